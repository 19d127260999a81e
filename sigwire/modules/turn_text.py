"""Turns as text to read: for prompts, estimates and searches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwire.core.json import dumps
from sigwire.core.record import to_plain
from sigwire.signatures.types.history import AnyTurn, Turn

__all__ = ["as_text", "text_of_value"]


def as_text(turns: Iterable[AnyTurn]) -> str:
    """Return turns as text to read: thoughts, calls and results.

    >>> from sigwire import Message, ToolCall, ToolResult
    >>> call = Message.assistant("Add.", [ToolCall("c", "add", {"a": 1})])
    >>> print(as_text([call, Message.tool(ToolResult("c", "add", 3))]))
    Add.
    add({"a":1})
    -> 3
    """
    return "\n".join(line for turn in turns for line in _lines(turn))


def _lines(turn: AnyTurn) -> Iterator[str]:
    if isinstance(turn, Turn):
        yield from (f"{name}: {text_of_value(value)}" for name, value in turn.items())
        return
    if turn.text:
        yield turn.text
    yield from (f"{call.name}({call.arguments_text})" for call in turn.tool_calls)
    results = turn.tool_results
    for result in results:
        name = f" {result.name}:" if len(results) > 1 else ""
        yield f"->{name} {'error: ' if result.is_error else ''}{result.text}"


def text_of_value(value: object) -> str:
    """Return a field value as text: a text as it is, other values as JSON."""
    try:
        return value if isinstance(value, str) else dumps(to_plain(value))
    except (ValueError, RecursionError):  # only its field knows a JSON form
        return repr(value)
