"""Chat completions as OpenAI's compatible hosts serve them: the same rules for turns and tools, other words around them.

A host such as Mistral, DeepSeek, OpenRouter or a server of one's own takes fields that OpenAI does not know, and calls some
things by another name. All of them are served at one place: a field that is not known is passed over, so is thinking that is
sent back, a key is not asked for, and the tokens are told in every stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import ParsedRequest, ReceivedRequest, bearer
from sigwire.testing.wires.openai_chat import FIELDS, OpenAIChat

__all__ = ["CompatibleChat"]

_NAMES: Mapping[str, str] = {"random_seed": "seed"}
"""Fields of a host, and OpenAI's word for them."""


class CompatibleChat(OpenAIChat):
    """``POST /compatible/v1/chat/completions``."""

    name = "compatible"
    base = "/compatible/v1"
    route = re.compile(r"/compatible/v1/chat/completions")

    def key(self, exchange: ReceivedRequest) -> str | None:
        return bearer(exchange)  # a server of one's own asks for none

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        asked = super().read(RequestNode(_in_openais_words(body)), exchange)
        return replace(asked, usage=True, padded=False)


def _in_openais_words(body: RequestNode) -> JsonObject:
    named = {_NAMES.get(name, name): value for name, value in body.fields().items()}
    known = {name: value for name, value in named.items() if name in FIELDS}
    if known.get("tool_choice") == "any":
        known["tool_choice"] = "required"
    if body.has("messages"):
        known["messages"] = [_without_thinking(message) for message in body["messages"].items()]
    return known


def _without_thinking(message: RequestNode) -> Mapping[str, Any]:
    """A turn whose content may be a list with thinking in it, as Mistral has it; a list of nothing else is no content."""
    content = message.get("content")
    if content is None or content.kind != "array":
        return message.fields()
    said = [part.value for part in content.items() if part["type"].text() != "thinking"]
    return {**message.fields(), "content": said or None}
