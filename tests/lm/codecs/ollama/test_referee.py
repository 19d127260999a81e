"""Ollama: the types of the official client accept the encoded requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.request import Request
from tests.lm.codecs.ollama.test_messages import CONVERSATIONS
from tests.lm.codecs.ollama.test_options import FIELDS
from tests.lm.codecs.ollama.test_replies import REPLIES
from tests.lm.codecs.ollama.test_tools import OFFERS
from tests.lm.codecs.ollama.wire import ASKED, answer, decoded, encoded


def test_official_client_accepts_the_encoded_requests() -> None:
    theirs = pytest.importorskip("ollama", reason="the ollama package is not installed")
    for messages, _ in CONVERSATIONS.values():
        sent = encoded(Request(messages)).body
        read = theirs._types.ChatRequest.model_validate(sent).model_dump(exclude_none=True)
        assert read["messages"] == sent["messages"]
    for request, *_ in OFFERS.values():
        sent = encoded(replace(request, messages=(ASKED,))).body
        read = theirs._types.ChatRequest.model_validate(sent).model_dump(exclude_none=True)
        assert read.get("tools") == sent.get("tools")
    for to, options, *_ in FIELDS.values():
        sent = encoded(Request((ASKED,), options=options), to).body
        read = theirs._types.ChatRequest.model_validate(sent)
        assert (read.think, read.logprobs) == (sent.get("think"), sent.get("logprobs"))


NOT_READ = {
    "row 53 empty arguments": "their type requires arguments",
    "row 53 arguments as text all the same": "their type takes an object only",
    "row 54 invalid arguments": "their type takes an object only",
    "row 60 cut inside a call": "their type takes an object only",
    "a picture": "their type takes no text for a picture in an answer",
}
"""Replies that the official client cannot read, each with the reason."""


def test_official_client_decodes_the_same_responses() -> None:
    theirs = pytest.importorskip("ollama", reason="the ollama package is not installed")
    for name in REPLIES.keys() - NOT_READ.keys():
        wire = answer(*REPLIES[name][:2])
        choice, read = decoded(wire).choices[0], theirs.ChatResponse.model_validate(wire).message
        assert (read.content, read.thinking or None) == (choice.text, choice.reasoning)
        calls = [(call.function.name, dict(call.function.arguments)) for call in read.tool_calls or ()]
        assert calls == [(call.name, call.arguments) for call in choice.tool_calls]
