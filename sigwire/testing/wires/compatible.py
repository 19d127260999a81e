"""Chat completions of OpenAI-compatible hosts: OpenAI's rules for turns and tools, other field names.

Mistral, DeepSeek, OpenRouter and local servers accept fields that OpenAI does not know, and rename some. One address serves
all of them: unknown fields and thinking in the history are ignored, no key is required, every stream has the token counts,
and reasoning is in ``reasoning_content``. Models of DeepSeek and Kimi that think refuse a turn with calls and without it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import ThinkingPart
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import ParsedRequest, ReceivedRequest, bearer
from sigwire.testing.wires.openai_chat import FIELDS, OpenAIChat

__all__ = ["CompatibleChat"]

_NAMES: Mapping[str, str] = {"random_seed": "seed"}
"""Field names of hosts, and OpenAI's names."""


class CompatibleChat(OpenAIChat):
    """``POST /compatible/v1/chat/completions``."""

    name = "compatible"
    base = "/compatible/v1"
    route = re.compile(r"/compatible/v1/chat/completions")
    finish_reasons: ClassVar[Mapping[str, str]] = {}  # OpenRouter sends "error"
    reasoning = "reasoning_content"
    longest_id = sys.maxsize

    def key(self, exchange: ReceivedRequest) -> str | None:
        return bearer(exchange)  # local servers require no key

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        _check_reasoning(body)
        parsed = super().read(RequestNode(_in_openais_words(body)), exchange)
        request = replace(parsed.request, options={**parsed.request.options, **_reasoning(body)})
        request = replace(request, messages=_with_thinking(request.messages, body["messages"].items()))
        return replace(parsed, request=request, usage=True, padded=False)


def _check_reasoning(body: RequestNode) -> None:
    model = body["model"].text().rpartition("/")[2]
    host = next((host for host in _BLANK_REASONING if model.startswith(host)), None)
    thinking = body.get("thinking")
    if host is None or not body.has("messages") or (thinking is not None and thinking.text_at("type") == "disabled"):
        return
    for number, message in enumerate(body["messages"].items()):
        given = message.fields().get("reasoning_content")
        if message.has("tool_calls") and (given is None or given == _BLANK_REASONING[host]):
            raise message.wrong(
                "The `reasoning_content` in the thinking mode must be passed back to the API. "
                f"It is missing in assistant tool call message at index {number}."
            )


_BLANK_REASONING: Mapping[str, str | None] = {
    "deepseek-reasoner": None, "deepseek-v4": None, "kimi-k2-thinking": None, "kimi-k2.": "", "kimi-k3": "",
}  # fmt: skip
"""Models that think, by the start of their names, and the text that their host takes for missing reasoning."""


def _in_openais_words(body: RequestNode) -> JsonObject:
    named = {_NAMES.get(name, name): value for name, value in body.fields().items()}
    known = {name: value for name, value in named.items() if name in FIELDS}
    if known.get("tool_choice") == "any":
        known["tool_choice"] = "required"
    if body.has("messages"):
        known["messages"] = [_without_thinking(message) for message in body["messages"].items()]
    return known


def _reasoning(body: RequestNode) -> JsonObject:
    """Return OpenRouter's option of reasoning, an object."""
    asked = body.get("reasoning")
    if asked is None:
        return {}
    if (budget := asked.get("max_tokens")) is not None:
        return {"reasoning": {"budget": budget.integer(1)}}
    is_off = asked.flag_at("enabled", default=True) is False
    effort = asked.text_at("effort")
    return {"reasoning": "off"} if is_off or effort == "none" else {"reasoning": effort or "medium"}


def _with_thinking(messages: tuple[Message, ...], nodes: list[RequestNode]) -> tuple[Message, ...]:
    """Put OpenRouter's items of reasoning first in the turns that have them: the vendor gets them back so."""
    turns = iter([node for node in nodes if node["role"].value == "assistant"])
    return tuple(
        Message(message.role, (ThinkingPart("", provider="openrouter"), *message.parts))
        if message.role == "assistant" and next(turns).has("reasoning_details")
        else message
        for message in messages
    )


def _without_thinking(message: RequestNode) -> Mapping[str, Any]:
    # Mistral sends content as a list with thinking parts; a list of only those is no content.
    content = message.get("content")
    if content is None or content.kind != "array":
        return message.fields()
    parts = [part.value for part in content.items() if part["type"].text() != "thinking"]
    return {**message.fields(), "content": parts or None}
