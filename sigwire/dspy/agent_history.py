"""The history of a ``ReActV2`` as programs of DSPy read it: a turn with inputs, thought, calls and their results.

The agent and JSON have the messages of the conversation, which keep everything that a provider sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.tools.calls import ToolResult
from sigwire.dspy.tools import NamedResult, ToolCallResults, ToolCalls
from sigwire.dspy.types import History
from sigwire.signatures.types import history

__all__ = ["AgentHistory", "messages_of", "with_closed_turn"]

_THOUGHT, _CALLS = "next_thought", "tool_calls"


class _Event(history.Turn):
    """A turn of an agent, with the messages that it stands for."""

    __slots__ = ("messages",)
    messages: tuple[history.AnyTurn, ...]

    def __init__(self, fields: Mapping[str, object], messages: Iterable[history.AnyTurn] = ()) -> None:
        super().__init__(fields)
        object.__setattr__(self, "messages", tuple(messages))


class AgentHistory(History):
    """A history whose turns with calls are mappings: the inputs, "next_thought" and "tool_calls" with their results.

    >>> from sigwire.core.tools.calls import ToolCall
    >>> call = Message.assistant("Look.", [ToolCall("c", "find", {})])
    >>> (turn,) = AgentHistory([{"q": "a"}, call, Message.tool(ToolResult("c", "find", 3))]).messages
    >>> turn["q"], turn["next_thought"], turn["tool_calls"].tool_call_results.tool_call_results[0].value
    ('a', 'Look.', 3)
    """

    __slots__ = ()

    def __init__(self, messages: Iterable[Mapping[str, object] | Message] = ()) -> None:
        super().__init__(list(_events(history.History(messages).messages)))

    def to_json(self) -> JsonObject:
        """Return the JSON of the messages."""
        return messages_of(self).to_json()


def messages_of(given: history.History) -> history.History:
    """Return the messages of a history that may have turns with calls; the same object if it has none."""
    if not any(isinstance(turn, Mapping) and isinstance(turn.get(_CALLS), ToolCalls) for turn in given.messages):
        return given
    return history.History([message for turn in given.messages for message in _messages(turn)])


def with_closed_turn(given: history.History) -> history.History:
    """Return a history whose last inputs belong to the earlier conversation: calls that follow are a turn of their own."""
    last = given.messages[-1] if len(given) else None
    return history.History([*given.messages[:-1], _Event(last, [last])]) if isinstance(last, history.Turn) else given


def _events(turns: Iterable[history.AnyTurn]) -> Iterator[history.AnyTurn]:
    held: list[history.AnyTurn] = []  # the inputs, and the message with calls that waits for its results
    for turn in turns:
        last = held[-1] if held else None
        if isinstance(last, Message) and isinstance(turn, Message) and turn.role == "tool":
            yield _event([*held, turn])
            held = []
        elif isinstance(turn, Message) and turn.tool_calls and not isinstance(last, Message):
            held.append(turn)
        elif isinstance(turn, (Message, _Event)):
            yield from held
            yield turn
            held = []
        else:
            yield from held
            held = [turn]
    yield from held


def _event(turns: list[history.AnyTurn]) -> _Event:
    *inputs, asked, answered = turns
    assert isinstance(asked, Message)
    assert isinstance(answered, Message)
    values = [NamedResult(each.name, each.content, each.id, each.is_error) for each in answered.tool_results]
    calls = ToolCalls(asked.tool_calls, asked.text, tool_call_results=ToolCallResults(values))
    given = {name: value for turn in inputs if isinstance(turn, Mapping) for name, value in turn.items()}
    thought = {_THOUGHT: asked.text} if asked.text else {}
    return _Event({**given, **thought, _CALLS: calls}, turns)


def _messages(turn: history.AnyTurn) -> Iterator[history.AnyTurn]:
    calls = turn.get(_CALLS) if isinstance(turn, Mapping) else None
    if isinstance(turn, _Event) and turn.messages:
        yield from turn.messages
    elif isinstance(turn, Mapping) and isinstance(calls, ToolCalls):
        if inputs := {name: value for name, value in turn.items() if name not in (_THOUGHT, _CALLS)}:
            yield history.Turn(inputs)
        yield Message.assistant(str(turn.get(_THOUGHT) or calls.text), calls)
        results = calls.tool_call_results.tool_call_results if calls.tool_call_results is not None else ()
        yield Message.tool(*(ToolResult(each.call_id or "", each.name, each.value, each.is_error) for each in results))
    else:
        yield turn
