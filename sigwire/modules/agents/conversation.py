"""Conversations that can always go on: histories as ReAct keeps, completes, shortens and shows them.

Pure functions from histories to histories. The rules every provider insists on are kept here: a message with calls is followed
by one message with a result for each of them, and ids are unique in the whole conversation.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from sigwire.core.json import dumps
from sigwire.core.messages import Message, Part
from sigwire.core.record import to_plain
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult, number_calls
from sigwire.signatures.types.history import AnyTurn, History, Turn

__all__ = [
    "INTERRUPTED",
    "answer_open_calls",
    "answer_text",
    "as_text",
    "assistant_message",
    "call_ids",
    "interrupted_result",
    "latest_inputs",
    "shorten_history",
    "with_fresh_ids",
    "without_outputs",
]

INTERRUPTED = "The call was interrupted. It may or may not have taken effect."
_REMOVED = "[Result removed to save space: {} characters]"
_WORTH_REMOVING = 200


# --- ids ----------------------------------------------------------------------------------------------


def call_ids(history: History) -> set[str]:
    """The ids of every call in a history."""
    found: set[str] = set()
    for turn in history.messages:
        if isinstance(turn, Message):
            found.update(call.id for call in turn.tool_calls)
        else:
            found.update(call.id for value in turn.values() if isinstance(value, ToolCalls) for call in value)
    return found


def with_fresh_ids(calls: Sequence[ToolCall], taken: Set[str]) -> tuple[ToolCall, ...]:
    """Calls with ids that are new to the conversation; the ones that are already are kept.

    >>> [call.id for call in with_fresh_ids([ToolCall("a", "f", {}), ToolCall("a", "f", {})], {"call_0"})]
    ['a', 'call_1']
    """
    ids = [call.id for call in calls]
    if all(ids) and len(set(ids)) == len(ids) and taken.isdisjoint(ids):
        return tuple(calls)
    used = set(taken)
    kept: list[ToolCall] = []
    for call in calls:
        kept.append(replace(call, id="") if call.id in used else call)
        used.add(call.id)
    return number_calls(kept, used)


def assistant_message(choice: Choice, calls: Sequence[ToolCall]) -> Message:
    """A choice as a message of the conversation, with these calls in place of its own."""
    if tuple(calls) == choice.tool_calls:
        return choice.message()
    waiting = iter(calls)
    parts = tuple(next(waiting) if isinstance(part, ToolCall) else part for part in choice.parts)
    return replace(choice, tool_calls=tuple(calls), parts=parts).message()


# --- completing -----------------------------------------------------------------------------------------


def answer_open_calls(history: History) -> History:
    """The history with a result for every call and no result without a call; the same object if there is nothing to do.

    A history may have been cut anywhere, by an interrupt or by its owner. What is added says that it was.
    """
    turns = list(_completed(history.messages))
    unchanged = len(turns) == len(history) and all(a is b for a, b in zip(turns, history.messages, strict=True))
    return history if unchanged else History(turns)


def _completed(turns: Sequence[AnyTurn]) -> Iterator[AnyTurn]:
    waiting: tuple[ToolCall, ...] = ()
    for turn in turns:
        if isinstance(turn, Message) and turn.role == "tool":
            if waiting:
                yield _answered(waiting, turn)
                waiting = ()
            continue
        if waiting:
            yield _answered(waiting, Message.tool())
        waiting = turn.tool_calls if isinstance(turn, Message) and turn.role == "assistant" else ()
        yield turn
    if waiting:
        yield _answered(waiting, Message.tool())


def _answered(calls: tuple[ToolCall, ...], message: Message) -> Message:
    """The message with exactly one result for each call, in call order."""
    given = {result.id: result for result in message.tool_results}
    results = tuple(given.get(call.id) or interrupted_result(call) for call in calls)
    others: tuple[Part, ...] = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    return message if results == message.parts else Message("tool", (*results, *others))


def interrupted_result(call: ToolCall) -> ToolResult:
    """The result of a call that nobody answered."""
    return ToolResult(call.id, call.name, INTERRUPTED, is_error=True)


# --- shortening ---------------------------------------------------------------------------------------


def shorten_history(history: History) -> History | None:
    """The history with the older half of its large tool results taken out, or ``None`` if none is left to take.

    The task, what the model said and the latest results always stay.
    """
    answers = [
        (at, turn) for at, turn in enumerate(history.messages) if isinstance(turn, Message) and turn.role == "tool"
    ]
    large = [(at, turn) for at, turn in answers[:-1] if _is_large(turn)]
    if not large:
        return None
    turns = list(history.messages)
    for at, turn in large[: (len(large) + 1) // 2]:
        turns[at] = Message("tool", tuple(_emptied(part) for part in turn.parts))
    return History(turns)


def _is_large(turn: Message) -> bool:
    return any(len(result.text) > _WORTH_REMOVING or result.media for result in turn.tool_results)


def _emptied(part: Part) -> Part:
    if not isinstance(part, ToolResult) or not (len(part.text) > _WORTH_REMOVING or part.media):
        return part
    return ToolResult(part.id, part.name, _REMOVED.format(len(part.text)), part.is_error)


# --- showing ----------------------------------------------------------------------------------------


def as_text(turns: Iterable[AnyTurn]) -> str:
    """Messages as text to read: what was thought, called and found.

    >>> print(as_text([Message.assistant("Add.", [ToolCall("c", "add", {"a": 1})]), Message.tool(ToolResult("c", "add", 3))]))
    Add.
    add({"a":1})
    -> 3
    """
    return "\n".join(line for turn in turns for line in _lines(turn))


def _lines(turn: AnyTurn) -> Iterator[str]:
    if isinstance(turn, Turn):
        yield from (f"{name}: {_shown(value)}" for name, value in turn.items())
        return
    if turn.text:
        yield turn.text
    yield from (f"{call.name}({call.arguments_text})" for call in turn.tool_calls)
    results = turn.tool_results
    for result in results:
        name = f" {result.name}:" if len(results) > 1 else ""
        yield f"->{name} {'error: ' if result.is_error else ''}{result.text}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else dumps(to_plain(value))


def latest_inputs(history: History, names: Container[str]) -> dict[str, Any]:
    """The inputs that the conversation is about: those of its last turn that has any."""
    for turn in reversed(history.messages):
        if isinstance(turn, Turn) and (found := {name: value for name, value in turn.items() if name in names}):
            return found
    return {}


def without_outputs(history: History, outputs: Collection[str]) -> History:
    """The history with answers as messages: a turn's outputs become what the assistant said after its inputs."""
    if not any(isinstance(turn, Turn) and any(name in turn for name in outputs) for turn in history.messages):
        return history
    turns: list[AnyTurn] = []
    for turn in history.messages:
        if not isinstance(turn, Turn):
            turns.append(turn)
            continue
        inputs = {name: value for name, value in turn.items() if name not in outputs}
        answers = {name: value for name, value in turn.items() if name in outputs}
        if inputs:
            turns.append(Turn(inputs))
        if answers:
            turns.append(Message.assistant(answer_text(answers)))
    return History(turns)


def answer_text(outputs: Mapping[str, Any]) -> str:
    """Output values as the text of an assistant's message: a single text as it is, anything else as JSON."""
    if len(outputs) == 1 and isinstance(only := next(iter(outputs.values())), str):
        return only
    return dumps({name: to_plain(value) for name, value in outputs.items()})
