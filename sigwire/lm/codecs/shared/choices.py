"""The end of every decode(): resolve the finish reason against the content, number calls, join several responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.core.messages import Part
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, number_calls
from sigwire.errors import LMUnexpectedError
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target, WireProfile
from sigwire.lm.codecs.shared.untrusted import string_of
from sigwire.lm.codecs.shared.usage import UsageReading

__all__ = [
    "MOST_CHOICES",
    "check_count",
    "choice_of",
    "is_synthetic_id",
    "join_responses",
    "keep_calls",
    "number_parts",
    "resolve_finish",
    "response_of_body",
]


def response_of_body(
    body: JsonObject,
    choices: Iterable[Choice],
    counts: UsageReading,
    sent: EncodedRequest,
    warnings: Iterable[LMWarning] = (),
    *,
    model: str = "model",
    id: str = "id",
) -> Response:
    """Return the response of one body. ``warnings``: about its choices. ``model``, ``id``: members of the body.

    >>> from sigwire.core.tools.names import NameMap, NameRules
    >>> sent = EncodedRequest("", {}, {}, {}, (), NameMap((), NameRules()))
    >>> response_of_body({"model": "m", "id": "r1"}, [Choice("4")], UsageReading(Usage()), sent).model
    'm'
    """
    return Response(
        tuple(choices),
        counts.usage,
        string_of(body, model),
        string_of(body, id),
        (*sent.warnings, *warnings, *counts.warnings),
        raw=body,
    )


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


MOST_CHOICES = 4096
"""Choices of one reply; providers give 128 at most."""


def check_count(choices: int, target: Target[WireProfile]) -> None:
    """Raise ``LMUnexpectedError`` for a reply of more than ``MOST_CHOICES`` choices."""
    if choices > MOST_CHOICES:
        raise LMUnexpectedError(
            f"The reply has more than {MOST_CHOICES} choices (reading the reply). Check that base_url is an API of this wire.",
            model=target.model,
            provider=target.provider,
        )


def keep_calls(parts: Iterable[Part], calls: Iterable[ToolCall]) -> list[Part]:
    """Return the parts without the calls that are none of ``calls``, which are calls of the parts themselves, not equal ones.

    >>> kept, cut = ToolCall("a", "f", {}), ToolCall("b", "f", {})
    >>> keep_calls([TextPart("x"), kept, cut], [kept]) == [TextPart("x"), kept]
    True
    """
    kept = set(map(id, calls))
    return [part for part in parts if not isinstance(part, ToolCall) or id(part) in kept]


def choice_of(text: str, parts: Iterable[Part], calls: Sequence[ToolCall], **rest: Any) -> Choice:
    """Return the choice of these parts without calls that are not in ``calls``; of text and calls alone if those are all.

    >>> choice_of("a", [TextPart("a")], []).parts
    ()
    """
    kept = keep_calls(parts, calls)
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
