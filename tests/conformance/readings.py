"""What a recorded exchange says of itself, and our values in the same terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sigwire.core.messages import ThinkingPart
from sigwire.core.response import Choice, Response
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.core.tools.tool import ToolCall
from sigwire.lm.codecs.shared.interface import EncodedRequest
from tests.conformance.recordings import Exchange

USED = ("input", "output", "cached_input", "cache_write", "reasoning")
"""The numbers of tokens that are recorded."""


def sent_of(exchange: Exchange) -> EncodedRequest:
    """The recorded request, as what was encoded and sent."""
    return EncodedRequest("", exchange["request"] or {}, {}, {}, (), NameMap((), NameRules()))


def used(response: Response) -> dict[str, Any]:
    """The tokens of a response, by the names of ``USED``."""
    usage = response.usage
    numbers = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
    return dict(zip(USED, (*numbers, usage.reasoning_tokens), strict=True))


def thoughts(choice: Choice) -> list[str]:
    """The thoughts that can be read, one by one."""
    return [part.text for part in choice.parts if isinstance(part, ThinkingPart) and part.redacted is None]


def read_call(call: ToolCall) -> tuple[str, str, Any]:
    """A call that was read, to be compared with an ``expected_call``."""
    return call.id, call.name, call.arguments


def expected_call(call: Exchange) -> tuple[str, str, Any]:
    """A call as it is recorded."""
    return call["id"], call["name"], call["arguments"]


def without_space(text: str | None) -> str:
    """A text whose white space is no matter."""
    return "".join((text or "").split())


def in_form(body: Exchange, equal: Mapping[str, Callable[[Exchange], Exchange]]) -> Exchange:
    """A body with the differences that mean the same undone, each by its rule."""
    for rule in equal.values():
        body = rule(body)
    return body
