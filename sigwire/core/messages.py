"""Messages: the turns of a conversation.

A message is a role and a tuple of parts. The order of parts is kept: some providers refuse a history that changes it
(thinking, call, thinking, call). Calls and results are parts; a message of role "tool" has the results of one turn.

A conversation is sent repeatedly, longer each time, so results computed from a message are cached on it (``derived``).
Messages and their contents, such as the arguments of calls, must not be mutated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from sigwire.core.json import Value
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.show.card import HasCard

__all__ = [
    "AudioPart", "FilePart", "ImagePart", "MediaPart", "Message", "OpaquePart", "Part", "Role", "TextPart",
    "ThinkingPart",
]  # fmt: skip

T = TypeVar("T")

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Part: TypeAlias = TextPart | ImagePart | AudioPart | FilePart | ThinkingPart | OpaquePart | ToolCall | ToolResult


class _Derived(Value):
    """A slot for cached results. Ignored by comparison and JSON, and not copied."""

    __slots__ = ("_derived",)
    _derived: dict[Callable[[Message], object], Any]


@dataclass(frozen=True, slots=True, repr=False)
class Message(_Derived, HasCard):
    """One turn of a conversation.

    >>> Message.user("Hello").text
    'Hello'
    >>> Message.from_json(Message.user("Hello").to_json()) == Message.user("Hello")
    True
    """

    _shown_by = "sigwire.core.cards.messages:message"
    role: Role
    parts: tuple[Part, ...] = ()

    @classmethod
    def system(cls, text: str) -> Message:
        """Return a message with instructions for the model."""
        return cls("system", (TextPart(text),))

    @classmethod
    def user(cls, text: str, *media: MediaPart) -> Message:
        """Return a user message: the text, then media."""
        return cls("user", (TextPart(text), *media))

    @classmethod
    def assistant(cls, text: str = "", tool_calls: Iterable[ToolCall] = ()) -> Message:
        """Return a message of the model: the text, then its calls."""
        return cls("assistant", (*((TextPart(text),) if text else ()), *tool_calls))

    @classmethod
    def tool(cls, *results: ToolResult) -> Message:
        """Return a message with the results of one turn, in call order."""
        return cls("tool", results)

    def derived(self, make: Callable[[Message], T]) -> T:
        """Return ``make(message)``, cached on the message. ``make`` must be a module-level function.

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
        """The joined text parts, without thinking, calls and results."""
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
    """Return the parts of a kind. Most messages have one part and every wire reads all messages: no copy for one part."""
    if len(parts) == 1:
        return parts if isinstance(parts[0], kind) else ()
    return tuple([part for part in parts if isinstance(part, kind)])
