"""Replies of every wire against the models of the official packages, in pydantic's strict mode: the strictest of clients."""

from __future__ import annotations

import contextlib
import json
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, FinishReason, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMError
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider

MODELS = {
    "openai": "openai/gpt-4.1-mini",
    "openai-responses": "openai/gpt-4.1-mini",
    "anthropic": "anthropic/claude-haiku-4-5",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/qwen3",
    "compatible": "vllm/m",
}
CALLS = (ToolCall("call_a", "add", {"city": "Ōslo", "days": 3}), ToolCall("", "add", {}))
ANSWERS: dict[str, Any] = {
    "text": "Hello there",
    "no text": "",
    "parallel calls": Choice("Let me see.", CALLS, "Two sums"),
    "a refusal": Choice(refusal="No."),
    "counts": Response((Choice("Hi", reasoning="Hm"),), Usage(9, 8, 3, None, 2)),
    "probabilities": Choice(
        "Hi", logprobs={"content": [{"token": "Hi", "logprob": -1.0, "bytes": [72, 105], "top_logprobs": []}]}
    ),
    **{f"finish reason {reason}": Choice("Hi", finish_reason=reason) for reason in get_args(FinishReason)},
}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
ASKED = Request((Message.user("Hi"),), (TOOL,))  # type: ignore[arg-type]


def official_types(wire: str, streamed: bool) -> Any:
    """Return the type that the official package of a wire has for a whole reply, or for one event."""
    if wire in ("openai", "compatible"):
        chat = pytest.importorskip("openai.types.chat", reason="the official openai package is not installed")
        return chat.ChatCompletionChunk if streamed else chat.ChatCompletion
    if wire == "openai-responses":
        responses = pytest.importorskip("openai.types.responses", reason="the official openai package is not installed")
        return responses.ResponseStreamEvent if streamed else responses.Response
    if wire == "anthropic":
        types = pytest.importorskip("anthropic.types", reason="the official anthropic package is not installed")
        return types.RawMessageStreamEvent if streamed else types.Message
    if wire == "gemini":
        return pytest.importorskip("google.genai.types", reason="google-genai is not installed").GenerateContentResponse
    return pytest.importorskip("ollama", reason="the official ollama package is not installed").ChatResponse


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", MODELS)
def test_replies_validate_strictly_with_the_models_of_the_official_package(wire: str, streamed: bool) -> None:
    adapter = TypeAdapter(official_types(wire, streamed))
    options = {"wire": "responses"} if wire == "openai-responses" else {}
    with FakeProvider(list(ANSWERS.values())) as provider:
        lm = LM(MODELS[wire], base_url=provider.url(wire), api_key="any", num_retries=0, **options)
        for _ in ANSWERS:
            with contextlib.suppress(LMError):  # an answer can be an error to sigwire's client
                list(lm.stream(ASKED)) if streamed else lm.respond(ASKED)
    for name, sent in zip(ANSWERS, provider.requests, strict=True):
        assert sent.status == 200, sent.answer
        if wire == "compatible" and name == "finish reason error":
            continue  # OpenRouter's word, which OpenAI's package does not have
        for body in sent.answer if streamed else [sent.answer]:  # type: ignore[union-attr]
            if body != {"type": "ping"}:  # the types of the package leave keep-alives out
                _validate(adapter, body, name)


def _validate(adapter: TypeAdapter[Any], body: Any, name: str) -> None:
    try:
        adapter.validate_json(json.dumps(body), strict=True)
    except ValueError as error:
        raise AssertionError(f"{name}: {error}\n{json.dumps(body, indent=1)}") from error
