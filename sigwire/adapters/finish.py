"""The end of a choice: the error that its finish reason requires, truncated calls, and the ids of calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import is_

from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, FinishReason, LMWarning
from sigwire.core.tools.calls import ToolCall, number_calls
from sigwire.errors import ContentFiltered, EmptyResponse, MalformedToolCall, OutputTruncated, Refused

__all__ = [
    "check_finish_reason", "drop_truncated_calls", "truncated_error", "was_truncated", "with_calls", "with_unique_ids"
]  # fmt: skip

_EMPTY = "The model returned no text and no tool calls. Ask again, or look at choice.raw for the provider's reason."
_ONLY_CALLS = (
    "The model called tools and wrote nothing, and the signature has no output for calls. Add one: calls: ToolCalls."
)
_FILTERED = "The provider's content filter stopped the answer. Change the inputs, or the provider's safety settings."
_MALFORMED = (
    "The provider could not read the tool call that the model wrote; nothing of it arrived. Ask again, or simplify the "
    "tools' schemas. choice.raw has the provider's reason."
)
_TRUNCATED = (
    "The answer was cut off by the token limit. Raise max_tokens or ask for less; the partial text is in error.text."
)


def with_unique_ids(choices: tuple[Choice, ...], taken: Iterable[str]) -> tuple[Choice, ...]:
    """Return the choices with call ids that are new to the conversation, whose ids are ``taken``."""
    for choice in choices:
        if choice.tool_calls:
            unique = tuple(_with_unique_ids(choice, taken) for choice in choices)
            return choices if all(map(is_, unique, choices)) else unique
    return choices


def _with_unique_ids(choice: Choice, taken: Iterable[str]) -> Choice:
    calls = number_calls(choice.tool_calls, taken)
    if calls is choice.tool_calls:
        return choice
    remaining = iter(calls)
    parts = tuple(next(remaining, part) if isinstance(part, ToolCall) else part for part in choice.parts)
    return replace(choice, tool_calls=calls, parts=parts)


def check_finish_reason(choice: Choice, *, has_calls: bool = False) -> None:
    """Raise the error of a choice that holds no answer, before its text is parsed.

    With ``has_calls``, only a refusal and the content filter are errors: complete calls stay usable.
    """
    if choice.refusal:
        raise Refused(f"The model declined: {choice.refusal}", choice=choice)
    if choice.finish_reason == "content_filter":
        raise ContentFiltered(_FILTERED, choice=choice)
    if has_calls:
        return
    if choice.finish_reason == "length":
        raise truncated_error(choice)
    if not choice.text or choice.text.isspace():
        if choice.finish_reason == "error":
            raise MalformedToolCall(_MALFORMED, choice=choice)
        raise EmptyResponse(_ONLY_CALLS if choice.tool_calls else _EMPTY, choice=choice)


def truncated_error(choice: Choice) -> OutputTruncated:
    """Return the error for an answer that the token limit truncated."""
    return OutputTruncated(_TRUNCATED, choice=choice)


def drop_truncated_calls(choices: tuple[Choice, ...], warnings: list[LMWarning]) -> tuple[Choice, ...]:
    """Drop last calls that the token limit truncated: half of an argument may be another command."""
    for choice in choices:  # a loop: most answers have one choice, and a generator costs more than the test
        if choice.tool_calls and choice.finish_reason == "length":
            return tuple(_without_truncated_call(choice, warnings) for choice in choices)
    return choices


def _without_truncated_call(choice: Choice, warnings: list[LMWarning]) -> Choice:
    if not was_truncated(choice.finish_reason, choice.tool_calls):
        return choice
    name = choice.tool_calls[-1].name or "at the end"
    warnings.append(LMWarning("tool_calls", f"the call {name!r} was cut off and left out"))
    return with_calls(choice, choice.text, choice.tool_calls[:-1])


def was_truncated(reason: FinishReason, calls: Sequence[ToolCall]) -> bool:
    """Return True if the token limit truncated the last call."""
    error = calls[-1].error if reason == "length" and calls else None
    return error is not None and error.code == "malformed_json"


def with_calls(choice: Choice, text: str, calls: tuple[ToolCall, ...]) -> Choice:
    """Return the choice with this text and these calls; its other parts stay, in front."""
    kept = tuple(part for part in choice.parts if not isinstance(part, (TextPart, ToolCall)))
    parts = (*kept, *((TextPart(text),) if text else ()), *calls) if kept else ()
    reason = "tool_calls" if calls and choice.finish_reason == "stop" else choice.finish_reason
    return replace(choice, text=text, tool_calls=calls, finish_reason=reason, parts=parts)
