"""Output buffer of the scanner: emits text, reasoning and calls in order, and holds ambiguous ones back.

Calls wait while the model may still be thinking, or while prose may follow in a message that must hold none. From the first
waiting call on, everything waits. ``release`` emits it as calls, ``withdraw`` as the source text.

Space next to calls is trimmed: none at the ends; between two texts the space before the calls, else the space after them.
A text without calls is emitted unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from sigwire.core.events import ReasoningDelta, TextDelta, ToolCallEnd
from sigwire.core.tools.calls import ToolCall

__all__ = ["OutputBuffer", "TextEvent"]

TextEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallEnd


@dataclass(frozen=True, slots=True)
class _PendingCalls:
    """Calls and their source text. A marker that only ends a call has no calls."""

    raw: str
    calls: tuple[ToolCall, ...]
    notes: tuple[str, ...]
    dialect: str


class OutputBuffer:
    """Collects events. ``whole_message``: calls count only in a message without other text."""

    __slots__ = (
        "_after_calls", "_has_emitted", "_has_prose", "_held", "_space", "_space_before_calls", "_whole_message",
        "call_count", "dialect", "events", "notes"
    )  # fmt: skip

    def __init__(self, *, whole_message: bool = False) -> None:
        self.events: list[TextEvent] = []
        self.notes: list[str] = []
        self.dialect: str | None = None
        self.call_count = 0
        self._whole_message = whole_message
        self._held: list[_PendingCalls | TextDelta | ReasoningDelta] | None = None
        self._has_prose = False
        self._space: list[str] = []
        self._space_before_calls = ""
        self._after_calls = self._has_emitted = False

    @property
    def has_calls(self) -> bool:
        """Whether a call was read, emitted or not."""
        return self.call_count > 0 or any(isinstance(item, _PendingCalls) and item.calls for item in self._held or ())

    @property
    def has_text(self) -> bool:
        """Whether there was text other than space and thinking, or anything waits."""
        return self._has_prose or self._held is not None

    def add_text(self, event: TextDelta | ReasoningDelta, *, thought: bool = False) -> None:
        """Emit text, or reasoning that is no part of the text. ``thought``: the text is in a thinking block."""
        if isinstance(event, TextDelta) and not thought and not event.text.isspace():
            self._has_prose = True
        if self._held is not None:
            self._held.append(event)
        else:
            self._emit(event)

    def add_calls(
        self, raw: str, calls: tuple[ToolCall, ...], notes: tuple[str, ...], dialect: str, *, wait: bool = False
    ) -> None:
        """Emit calls. With ``wait``, the calls and everything after them are held."""
        if self._held is None and (wait or self._whole_message):
            self._held = []
        held = _PendingCalls(raw, calls, notes, dialect)
        if self._held is not None:
            self._held.append(held)
        else:
            self._emit_calls(held)

    def add_marker(self, raw: str) -> None:
        """Leave a marker out, unless the calls before it turn out to be text."""
        if self._held is not None:
            self._held.append(_PendingCalls(raw, (), (), ""))

    def add_note(self, what: str) -> None:
        """Record a repair or an omission."""
        self.notes.append(what)

    def release(self) -> None:
        """Emit held items as calls. In a message that must hold nothing else, the items wait for its end."""
        if not self._whole_message:
            self._flush(as_calls=True)

    def withdraw(self, *, everything: bool) -> None:
        """Emit held items as their source text. ``everything``: all text up to here was thinking."""
        self._flush(as_calls=False)
        self._has_prose = self._has_prose and not everything

    def finish(self) -> None:
        """End the text."""
        self._flush(as_calls=not (self._whole_message and self._has_prose))
        if self._space and not self.call_count:
            self.events.append(TextDelta("".join(self._space)))
        self._space = []

    def _flush(self, *, as_calls: bool) -> None:
        held, self._held = self._held or [], None
        for item in held:
            if not isinstance(item, _PendingCalls):
                self._emit(item)
            elif not as_calls:
                self._emit(TextDelta(item.raw))
            elif item.calls:
                self._emit_calls(item)

    def _emit_calls(self, held: _PendingCalls) -> None:
        if not self._after_calls:
            self._space_before_calls, self._after_calls = "".join(self._space), True
        self._space = []
        for call in held.calls:
            self.events.append(ToolCallEnd(self.call_count, call))
            self.call_count += 1
        self.notes += held.notes
        self.dialect = self.dialect or held.dialect

    def _emit(self, event: TextDelta | ReasoningDelta) -> None:
        if isinstance(event, ReasoningDelta):
            self.events.append(event)
            return
        text, body = event.text, event.text.strip()
        if not body:
            self._space.append(text)
            return
        lead = text[: len(text) - len(text.lstrip())]
        space = "".join([*self._space, lead])
        if self._after_calls:
            space = (self._space_before_calls or space) if self._has_emitted else ""
        self._space = [text[len(text.rstrip()) :]]
        self._after_calls, self._has_emitted = False, True
        self.events.append(TextDelta(space + body))
