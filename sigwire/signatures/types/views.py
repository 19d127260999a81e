"""The view of a conversation with a fold: the turns that a request sends. Pure: the turns and the fold decide.

A view has the pinned turns, one user message with a note and the summary, and the turns from ``upto`` on. Pinned are a system
message that begins the conversation, and the task of the turns that follow if it is left out. Kept turns are the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import is_
from typing import TypeVar

from sigwire.core.fold import Fold
from sigwire.core.messages import Message, Part
from sigwire.core.tools.calls import ToolResult

__all__ = ["LARGE_RESULT", "folded_start", "is_cut", "pinned_turns", "quoted"]

T = TypeVar("T", bound="Mapping[str, object]")  # a Turn

LARGE_RESULT = 200
"""Characters of a tool result from which on it may be sent as a reference."""


def is_cut(turns: Sequence[object], at: int) -> bool:
    """Return True if a fold may end in front of turn ``at``: not between calls and their results.

    >>> from sigwire.core.tools.calls import ToolCall
    >>> call = Message.assistant("", [ToolCall("a", "f", {})])
    >>> turns = [Message.user("?"), call, Message.tool(ToolResult("a", "f", 1)), Message.assistant("!")]
    >>> [at for at in range(5) if is_cut(turns, at)]
    [0, 1, 3, 4]
    """
    if not 0 <= at <= len(turns):
        return False
    if at < len(turns) and isinstance(turn := turns[at], Message) and turn.role == "tool":
        return False
    before = turns[at - 1] if at else None
    return not (isinstance(before, Message) and before.tool_calls)


def pinned_turns(turns: Sequence[T | Message], upto: int) -> tuple[T | Message, ...]:
    """Return the turns before ``upto`` that are sent all the same."""
    found: list[T | Message] = []
    if upto and isinstance(first := turns[0], Message) and first.role == "system":
        found.append(first)
    if upto < len(turns) and isinstance(turns[upto], Message):
        found += [turn for turn in reversed(turns[:upto]) if not isinstance(turn, Message)][:1]
    return tuple(found)


def folded_start(turns: Sequence[T | Message], fold: Fold) -> tuple[T | Message, ...]:
    """Return the beginning of a view: all in front of the turns that are sent as they are."""
    upto = fold.upto
    start = list(pinned_turns(turns, upto)) if upto else []
    if upto:
        start.append(Message.user(_note(fold, upto - len(start))))
    return (*start, *(_with_references(turn, fold.reader) for turn in turns[upto : max(upto, fold.cleared)]))


def _note(fold: Fold, number: int) -> str:
    found = [f'{fold.search}(query="...") finds passages of them'] if fold.search else []
    found += [f'{fold.reader}(id="...") returns a whole tool result'] if fold.reader else []
    how = f" They are kept: {', and '.join(found)}." if found else ""
    note = f"[Note: the {number} earliest turns of this conversation were left out to save space.{how}"
    if not fold.summary:
        return f"{note}]"
    return f"{note} A summary of them follows, quoted as data; it may lack details.]\n{quoted(fold.summary)}"


def quoted(text: str) -> str:
    """Return a text with a mark in front of each line.

    >>> print(quoted("a\\nb"))
    > a
    > b
    """
    return "\n".join(f"> {line}" for line in text.splitlines())


def _with_references(turn: T | Message, reader: str) -> T | Message:
    if not isinstance(turn, Message) or turn.role != "tool":
        return turn
    parts = tuple([_reference(part, reader) for part in turn.parts])
    return turn if all(map(is_, parts, turn.parts)) else Message("tool", parts)


def _reference(part: Part, reader: str) -> Part:
    if not isinstance(part, ToolResult) or ((size := len(part.text)) <= LARGE_RESULT and not part.media):
        return part
    call = f'; {reader}(id="{part.id}")' if reader else ""
    media = "".join(_counts(part)) if part.media else ""
    return ToolResult(part.id, part.name, f"[Result left out: {size:,} characters{media}{call}]", part.is_error)


def _counts(result: ToolResult) -> Iterator[str]:
    kinds = [each.kind for each in result.media]
    yield from (f" and {kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
