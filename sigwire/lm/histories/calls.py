"""Calls and their results: one tool turn directly behind each turn with calls, with one result for each call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sigwire.core.messages import Message, Part
from sigwire.core.parts import TextPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.histories.losses import Loss, Turn

__all__ = ["NOT_EXECUTED", "answer_calls", "error_text", "merge_call_turns"]

NOT_EXECUTED = "tool was not executed"
"""The content of the error result that answers a call without a result."""


def merge_call_turns(turns: Iterable[Turn], losses: list[Loss]) -> list[Turn]:
    """Merge an assistant turn with calls and the assistant turns directly behind it: one tool turn answers them."""
    merged: list[Turn] = []
    for number, message in turns:
        before = merged[-1][1] if merged else message
        if merged and message.role == "assistant" == before.role and before.tool_calls:
            merged[-1] = (merged[-1][0], Message("assistant", before.parts + message.parts))
            losses.append(
                Loss(number, None, "messages", "The turn became one with the turn of calls before it.", "none")
            )
        else:
            merged.append((number, message))
    return merged


def answer_calls(turns: Sequence[Turn], losses: list[Loss]) -> list[Turn]:
    """Put the results of each assistant turn behind it. They may be in any turn before the next assistant turn."""
    answered: list[Turn] = []
    start = 0
    while start < len(turns):
        number, message = turns[start]
        end = start + 1
        while end < len(turns) and turns[end][1].role != "assistant":
            end += 1
        calls: tuple[ToolCall, ...] = ()
        if message.role == "assistant":
            answered.append(turns[start])
            calls, start = message.tool_calls, start + 1
        answered.extend(_answer_turn(number, calls, turns[start:end], losses))
        start = end
    return answered


def _answer_turn(place: int, calls: Sequence[ToolCall], following: Sequence[Turn], losses: list[Loss]) -> list[Turn]:
    """Return one tool turn with the results of the calls, results without a call as text, and the other parts."""
    results = [(number, result) for number, message in following for result in message.tool_results]
    if not calls and not results:
        return list(following)
    before = len(losses)
    answers = [_answer_of(call, place, results, losses) for call in calls]
    turns: list[Turn] = [(following[0][0] if following else place, Message.tool(*answers))] if answers else []
    turns += _other_turns(following, results, losses)
    if len(losses) == before and [turn for _, turn in turns] != [turn for _, turn in following]:
        losses.append(Loss(place, None, "tool_results", "Results were put behind their calls, in call order.", "none"))
    return turns


def _other_turns(
    following: Sequence[Turn], orphans: Sequence[tuple[int, ToolResult]], losses: list[Loss]
) -> Iterator[Turn]:
    """Yield results without a call as text, and the other parts of each turn."""
    for number, message in following:
        for place, result in orphans:
            if place == number:
                losses.append(Loss(number, None, "tool_results", _orphan_detail(result), "form"))
                yield number, Message("user", _quoted(result))
        if rest := _others(message):
            yield number, replace(message, parts=rest)


def _others(message: Message) -> tuple[Part, ...]:
    return tuple(part for part in message.parts if not isinstance(part, ToolResult))


def _orphan_detail(result: ToolResult) -> str:
    return f"The result {result.id!r} of {result.name!r} answers no call; a user turn quotes it."


def _quoted(result: ToolResult) -> tuple[Part, ...]:
    text = f"[result of {result.name or result.id or 'a tool'}, whose call is not in the conversation]"
    return (TextPart(f"{text}\n{error_text(result)}"), *result.media)


def _answer_of(call: ToolCall, place: int, results: list[tuple[int, ToolResult]], losses: list[Loss]) -> ToolResult:
    """Take the call's result off the list: the one with its id, else one without an id that has its name."""
    by_id = (each for each in results if each[1].id == call.id)
    by_name = (each for each in results if not each[1].id and each[1].name in ("", call.name))
    each = next(by_id, None) or next(by_name, None)
    if each is None:
        why = f"The call {call.id!r} of {call.name!r} has no result; an error result answers it."
        losses.append(Loss(place, None, "tool_results", why, "form"))
        return ToolResult(call.id, call.name, NOT_EXECUTED, True)
    results.remove(each)
    found = each[1]
    return found if (found.id, found.name) == (call.id, call.name) else replace(found, id=call.id, name=call.name)


def error_text(result: ToolResult) -> str:
    """Return the result as text, for wires without an error flag: a failure starts with ``ERROR: ``.

    >>> error_text(ToolResult("call_0", "f", "boom", is_error=True))
    'ERROR: boom'
    """
    return f"ERROR: {result.text}" if result.is_error else result.text
