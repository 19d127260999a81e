"""Messages: what was said in a conversation, by whom, in which order.

A message is a role and a tuple of parts. Order is kept because some providers refuse a replay that changes it (thinking,
call, thinking, call). Calls and results are parts like any other; a role "tool" message holds the results of one turn.
``OpaquePart`` keeps what only its provider understands, to be sent back as it came.

A conversation is sent again and again, longer each time, so what is worked out about a message is kept beside it
(``derived``). A message does not change, nor may what is in it: the arguments of its calls, say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from sigwire.core.json import Value
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.tool import ToolCall, ToolResult

__all__ = [
    "AudioPart",
    "FilePart",
    "ImagePart",
    "MediaPart",
    "Message",
    "OpaquePart",
    "Part",
    "Role",
    "TextPart",
    "ThinkingPart",
]

T = TypeVar("T")

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Part: TypeAlias = TextPart | ImagePart | AudioPart | FilePart | ThinkingPart | OpaquePart | ToolCall | ToolResult


class _Derived(Value):
    """A place beside the fields: no part of the value, and left behind by copies."""

    __slots__ = ("_derived",)
    _derived: dict[Callable[[Any], Any], Any]


@dataclass(frozen=True, slots=True)
class Message(_Derived):
    """One turn of a conversation.

    >>> Message.user("Hello").text
    'Hello'
    >>> Message.from_json(Message.user("Hello").to_json()) == Message.user("Hello")
    True
    """

    role: Role
    parts: tuple[Part, ...] = ()

    @classmethod
    def system(cls, text: str) -> Message:
        """Instructions for the model."""
        return cls("system", (TextPart(text),))

    @classmethod
    def user(cls, text: str, *media: MediaPart) -> Message:
        """What the user says, with media after the text."""
        return cls("user", (TextPart(text), *media))

    @classmethod
    def assistant(cls, text: str = "", tool_calls: Iterable[ToolCall] = ()) -> Message:
        """What the model says, with its calls after the text."""
        return cls("assistant", (*((TextPart(text),) if text else ()), *tool_calls))

    @classmethod
    def tool(cls, *results: ToolResult) -> Message:
        """The results of one turn's calls, in call order."""
        return cls("tool", results)

    def derived(self, make: Callable[[Message], T]) -> T:
        """What ``make``, a function of some module, gives for this message: made once, and kept as long as the message is.

        >>> message = Message.user("Hello")
        >>> message.derived(id) == message.derived(id) == id(message)
        True
        """
        try:
            derived = self._derived
        except AttributeError:
            derived = {}
            object.__setattr__(self, "_derived", derived)
        if make in derived:
            kept: T = derived[make]
        else:
            kept = derived[make] = make(self)
        return kept

    @property
    def text(self) -> str:
        """The text parts joined; nothing of thinking, calls or results."""
        return "".join([part.text for part in self.parts if isinstance(part, TextPart)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls among the parts."""
        return _of(ToolCall, self.parts)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results among the parts."""
        return _of(ToolResult, self.parts)


def _of(kind: type[T], parts: tuple[Any, ...]) -> tuple[T, ...]:
    """The parts of this kind. Most turns have a single part, and every wire looks at every turn: that one is not copied."""
    if len(parts) == 1:
        return parts if isinstance(parts[0], kind) else ()
    return tuple([part for part in parts if isinstance(part, kind)])
