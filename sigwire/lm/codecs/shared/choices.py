"""The end of every decode(): resolve the finish reason against the content, number calls, join several responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigwire.core.messages import Part
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, number_calls

__all__ = ["choice_of", "is_synthetic_id", "join_responses", "number_parts", "resolve_finish"]


def resolve_finish(
    reason: object,
    table: Mapping[str, FinishReason],
    *,
    text: str,
    calls: Sequence[ToolCall],
    refusal: str | None = None,
) -> tuple[FinishReason, tuple[ToolCall, ...], tuple[LMWarning, ...]]:
    """Return the finish reason that fits the content, the complete calls, and a warning for an incomplete call.

    A truncated answer keeps its reason and loses its last call if the arguments of that call do not parse. Otherwise
    calls mean ``tool_calls`` whatever the wire sent, a refusal means ``content_filter``, and an unknown reason is ``stop``
    with text and ``error`` without. A missing reason is a warning: the answer may be incomplete.

    >>> resolve_finish("stop", {"stop": "stop"}, text="", calls=[ToolCall("call_0", "f", {})])[0]
    'tool_calls'
    """
    calls = tuple(calls)
    known = table.get(reason) if isinstance(reason, str) else None
    missing = _missing_reason(reason)
    if known in ("length", "content_filter"):
        if not calls or calls[-1].error is None:
            return known, calls, ()
        detail = f"The call of {calls[-1].name!r} was cut off ({known}) and left out."
        return known, calls[:-1], (LMWarning("tool_calls", detail),)
    if calls:
        return "tool_calls", calls, missing
    if refusal is not None:
        return "content_filter", calls, missing
    if known is None or known == "tool_calls":  # "tool_calls" without a call is no reason
        known = "stop" if text else "error"
    return known, calls, missing


def _missing_reason(reason: object) -> tuple[LMWarning, ...]:
    if reason:
        return ()
    return (LMWarning("finish_reason", "The provider gave no finish reason; the answer may be incomplete."),)


def number_parts(parts: Sequence[Part], taken: Iterable[str]) -> tuple[list[Part], tuple[ToolCall, ...]]:
    """Return the parts and their calls, with synthetic ids for calls without an id. ``taken``: ids that are in use."""
    calls = number_calls((part for part in parts if isinstance(part, ToolCall)), taken)
    remaining = iter(calls)
    return [next(remaining) if isinstance(part, ToolCall) else part for part in parts], calls


def choice_of(text: str, parts: Iterable[Part], calls: Sequence[ToolCall], **rest: Any) -> Choice:
    """Return the choice of these parts without calls that are not in ``calls``; of text and calls alone if those are all.

    >>> choice_of("a", [TextPart("a")], []).parts
    ()
    """
    kept = [part for part in parts if not isinstance(part, ToolCall) or part in calls]
    is_plain = kept == [*([TextPart(text)] if text else ()), *calls]
    return Choice(text, tuple(calls), **rest) if is_plain else Choice.from_parts(kept, **rest)


# Providers send numbers of seven (Gemini) and eight digits (Ollama); a conversation has fewer calls.
_SYNTHETIC = re.compile(r"call_(0|[1-9]\d{0,4})")


def is_synthetic_id(call_id: str) -> bool:
    """Return True if sigwire made this id because the provider sent none.

    >>> is_synthetic_id("call_0"), is_synthetic_id("call_x7Kq"), is_synthetic_id("call_3091305")
    (True, False, False)
    """
    return _SYNTHETIC.fullmatch(call_id) is not None


def join_responses(responses: Sequence[Response]) -> Response:
    """Join the responses to one request: all choices, the sum of tokens, each warning once."""
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
