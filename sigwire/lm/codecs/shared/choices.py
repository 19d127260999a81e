"""What every decoder does at the end: the finish reason against the content, the counts, several answers as one."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigwire.core.json import JsonValue
from sigwire.core.response import FinishReason, LMWarning, Response, Usage
from sigwire.core.tools.tool import ToolCall
from sigwire.lm.codecs.shared.untrusted import is_number, value_at

__all__ = ["is_synthetic_id", "join_responses", "resolve_finish", "usage_of"]


def resolve_finish(
    reason: object,
    table: Mapping[str, FinishReason],
    *,
    text: str,
    calls: Sequence[ToolCall],
    refusal: str | None = None,
) -> tuple[FinishReason, tuple[ToolCall, ...], tuple[LMWarning, ...]]:
    """The finish reason that fits the content, the calls that are whole, and a warning for a call that is not.

    A cut answer keeps its reason and loses its last call when that one's arguments do not parse. Otherwise calls mean
    ``tool_calls`` whatever the wire says, a refusal means ``content_filter``, and an unknown reason is ``stop`` with
    text and ``error`` without.

    >>> resolve_finish("stop", {"stop": "stop"}, text="", calls=[ToolCall("call_0", "f", {})])[0]
    'tool_calls'
    """
    calls = tuple(calls)
    known = table.get(reason) if isinstance(reason, str) else None
    if known in ("length", "content_filter"):
        if calls and calls[-1].error is not None:
            lost = LMWarning("tool_calls", f"The call of {calls[-1].name!r} was cut off ({known}) and left out.")
            return known, calls[:-1], (lost,)
        return known, calls, ()
    if calls:
        return "tool_calls", calls, ()
    if refusal is not None:
        return "content_filter", calls, ()
    if known == "tool_calls":  # the wire speaks of calls that are not there
        known = "stop" if text else "error"
    return known or ("stop" if text else "error"), calls, ()


def usage_of(data: JsonValue, paths: Mapping[str, str | tuple[str, ...]]) -> Usage:
    """Token counts by dotted path, the first path that holds a number; missing, ``null`` and boundless ones are unknown.

    >>> paths = {"input_tokens": "prompt", "cached_tokens": "details.cached"}
    >>> usage_of({"prompt": 3, "details": {"cached": 1}}, paths) == Usage(input_tokens=3, cached_tokens=1)
    True
    """
    counts: dict[str, Any] = {}
    if not isinstance(data, dict):
        return Usage()
    for name, path in paths.items():
        for first, rest in _taken_apart(path):
            value: Any = data.get(first)
            if rest and value is not None:
                value = value_at(value, rest)
            if value is not None and is_number(value):
                counts[name] = value if name == "cost" else int(value)
                break
    return Usage(**counts)


@functools.cache
def _taken_apart(path: str | tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The first step and the rest of each path in a table."""
    steps = (candidate.partition(".") for candidate in ((path,) if isinstance(path, str) else path))
    return tuple((first, rest) for first, _, rest in steps)


# Ids of providers' own may be numbers too, of seven digits (Gemini) and eight (Ollama); a conversation's count is not.
_INVENTED = re.compile(r"call_(0|[1-9]\d{0,4})")


def is_synthetic_id(call_id: str) -> bool:
    """Whether sigwire made this id up because the provider sent none.

    >>> is_synthetic_id("call_0"), is_synthetic_id("call_x7Kq"), is_synthetic_id("call_3091305")
    (True, False, False)
    """
    return _INVENTED.fullmatch(call_id) is not None


def join_responses(responses: Sequence[Response]) -> Response:
    """The choices of several answers to one request as one response; tokens are added up, a warning is given once."""
    usage = Usage()
    for response in responses:
        usage += response.usage
    return replace(
        responses[0],
        choices=tuple(choice for response in responses for choice in response.choices),
        usage=usage,
        warnings=tuple(dict.fromkeys(warning for response in responses for warning in response.warnings)),
        attempts=tuple(attempt for response in responses for attempt in response.attempts),
        raw=[response.raw for response in responses],
    )
