"""The recorded reading of an exchange, and decoded values in the same terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sigwire.core.parts import ThinkingPart
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.lm.codecs.shared.interface import EncodedRequest
from tests.conformance.recordings import Exchange

USED = ("input", "output", "cached_input", "cache_write", "reasoning")
"""The numbers of tokens that are recorded."""


def sent_of(exchange: Exchange) -> EncodedRequest:
    """Return the recorded request as an encoded request."""
    return EncodedRequest("", exchange["request"] or {}, {}, {}, (), NameMap((), NameRules()))


def used(response: Response) -> dict[str, Any]:
    """Return the tokens of a response, by the names of ``USED``."""
    usage = response.usage
    numbers = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    return dict(zip(USED, (*numbers, usage.reasoning_tokens), strict=True))


def reasoning_texts(choice: Choice) -> list[str]:
    """Return the readable reasoning, part by part."""
    return [part.text for part in choice.parts if isinstance(part, ThinkingPart) and part.redacted is None]


def read_call(call: ToolCall) -> tuple[str, str, Any]:
    """Return a decoded call, to be compared with an ``expected_call``."""
    return call.id, call.name, call.arguments


def expected_call(call: Exchange) -> tuple[str, str, Any]:
    """Return a recorded call."""
    return call["id"], call["name"], call["arguments"]


def without_space(text: str | None) -> str:
    """Return a text without white space."""
    return "".join((text or "").split())


def normal_form(body: Exchange, equal: Mapping[str, Callable[[Exchange], Exchange]]) -> Exchange:
    """Return a body in a normal form: each rule removes a difference without meaning."""
    for rule in equal.values():
        body = rule(body)
    return body
