"""Histories of ReAct: complete them, and read them. Pure functions from histories to histories.

The functions keep two rules of all providers: a message with calls is followed by one message with a result for each call,
and call ids are unique in the conversation.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence

from sigwire.core.json import dumps
from sigwire.core.messages import Message, Part
from sigwire.core.record import FieldValues
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.signatures.fields import SignatureSpec
from sigwire.signatures.types.history import AnyTurn, History, Turn, regrouped

__all__ = [
    "INTERRUPTED", "answer_open_calls", "answer_text", "earlier_history", "interrupted_result", "latest_inputs",
    "with_calls_that_ran", "without_outputs",
]  # fmt: skip

INTERRUPTED = "The call was interrupted. It may or may not have taken effect."


def earlier_history(before: object, spec: SignatureSpec) -> History:
    """Return the history of an earlier run (``None``: none), from which another run of a signature continues.

    Raises ``InputError`` for a value that is no history.
    """
    return without_outputs(answer_open_calls(History.read(before)), spec) if before is not None else History()


def answer_open_calls(history: History) -> History:
    """Return the history with a result for every call and no result without a call; the same object if nothing changes.

    An interrupt or the user may have truncated a history anywhere. Added results have the text ``INTERRUPTED``.
    """
    groups = _answered_groups(history.messages)
    unchanged = all(len(group) == 1 and group[0] is turn for group, turn in zip(groups, history.messages, strict=True))
    return history if unchanged else regrouped(history, groups)


def _answered_groups(turns: Sequence[AnyTurn]) -> list[list[AnyTurn]]:
    """Return each turn as it is kept. Results that were missing follow the turn before them."""
    groups: list[list[AnyTurn]] = []
    open_calls: tuple[ToolCall, ...] = ()
    for turn in turns:
        if isinstance(turn, Message) and turn.role == "tool":
            groups.append([_result_message(open_calls, turn)] if open_calls else [])
            open_calls = ()
            continue
        if open_calls:
            groups[-1].append(_result_message(open_calls, Message.tool()))
        open_calls = turn.tool_calls if isinstance(turn, Message) and turn.role == "assistant" else ()
        groups.append([turn])
    if open_calls:
        groups[-1].append(_result_message(open_calls, Message.tool()))
    return groups


def _result_message(calls: tuple[ToolCall, ...], message: Message) -> Message:
    """Return the message with exactly one result for each call, in call order."""
    given = {result.id: result for result in message.tool_results}
    results = tuple(given.get(call.id) or interrupted_result(call) for call in calls)
    others: tuple[Part, ...] = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    return message if results == message.parts else Message("tool", (*results, *others))


def interrupted_result(call: ToolCall) -> ToolResult:
    """Return the result of a call that was interrupted."""
    return ToolResult(call.id, call.name, INTERRUPTED, is_error=True)


def with_calls_that_ran(history: History, runs: Sequence[ToolRun]) -> History:
    """Return the history with the calls of its last message as they ran; the same object if none was edited."""
    last = history.messages[-1] if history.messages else None
    if not isinstance(last, Message):
        return history
    ran = {done.call.id: done.call for done in runs}
    if all(ran.get(call.id, call).arguments == call.arguments for call in last.tool_calls):
        return history
    parts: tuple[Part, ...] = tuple(
        ran.get(part.id, part) if isinstance(part, ToolCall) else part for part in last.parts
    )
    return regrouped(history, [*((turn,) for turn in history.messages[:-1]), (Message(last.role, parts),)])


def latest_inputs(history: History, names: Container[str]) -> dict[str, object]:
    """Return the inputs that the conversation is about: those of the last turn with any input."""
    for turn in reversed(history.messages):
        if isinstance(turn, Turn) and (found := {name: value for name, value in turn.items() if name in names}):
            return found
    return {}


def without_outputs(history: History, spec: SignatureSpec) -> History:
    """Return the history with each turn's outputs as an assistant message; the same object if no turn has outputs."""
    names = {field.name for field in spec.outputs}
    if not any(isinstance(turn, Turn) and not names.isdisjoint(turn) for turn in history.messages):
        return history
    return regrouped(history, [tuple(_split_turn(turn, names, spec)) for turn in history.messages])


def _split_turn(turn: AnyTurn, outputs: Collection[str], spec: SignatureSpec) -> Iterator[AnyTurn]:
    if not isinstance(turn, Turn):
        yield turn
        return
    answers = {name: value for name, value in turn.items() if name in outputs}
    if inputs := {name: value for name, value in turn.items() if name not in answers}:
        yield Turn(inputs)
    if answers:
        yield Message.assistant(answer_text(answers, spec))


def answer_text(outputs: FieldValues, spec: SignatureSpec) -> str:
    """Return output values as the text of an assistant message: a single text as it is, other values as JSON by their types."""
    if len(outputs) == 1 and isinstance(only := next(iter(outputs.values())), str):
        return only
    return dumps(spec.dump(outputs))
