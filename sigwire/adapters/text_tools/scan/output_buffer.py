"""What a scan lets out: text, thoughts and whole calls as events, in order; and what it holds back until it is sure.

Calls may have to wait: while the model may still be thinking, or may still write prose where none is allowed. From the first
waiting call on everything waits, and then goes out as it was meant (``release``) or as the text it came from (``withdraw``).

Space next to calls is tidied: none at the ends, and between two texts what stood before the calls, or else after them.
A text without calls goes out exactly as it is.
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
    """Calls, and the text that they were read from; none for a mark that says no more than that they are over."""

    raw: str
    calls: tuple[ToolCall, ...]
    notes: tuple[str, ...]
    dialect: str


class OutputBuffer:
    """Collects events. ``whole_message``: calls count only where nothing else was said."""

    __slots__ = (
        "_after_calls",
        "_has_emitted",
        "_has_prose",
        "_held",
        "_space",
        "_space_before_calls",
        "_whole_message",
        "call_count",
        "dialect",
        "events",
        "notes",
    )

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
        """Whether a call has been read, let out or not."""
        return self.call_count > 0 or any(isinstance(item, _PendingCalls) and item.calls for item in self._held or ())

    @property
    def has_text(self) -> bool:
        """Whether anything but space was said, thoughts aside, or anything is held."""
        return self._has_prose or self._held is not None

    # --- what comes in ---------------------------------------------------------------------------------

    def add_text(self, event: TextDelta | ReasoningDelta, *, thought: bool = False) -> None:
        """Let out text, or reasoning that does not belong to the text. ``thought``: it stands in a thinking block."""
        if isinstance(event, TextDelta) and not thought and not event.text.isspace():
            self._has_prose = True
        if self._held is not None:
            self._held.append(event)
        else:
            self._emit(event)

    def add_calls(
        self, raw: str, calls: tuple[ToolCall, ...], notes: tuple[str, ...], dialect: str, *, wait: bool = False
    ) -> None:
        """Let out calls; with ``wait`` they are held, and all that follows."""
        if self._held is None and (wait or self._whole_message):
            self._held = []
        held = _PendingCalls(raw, calls, notes, dialect)
        if self._held is not None:
            self._held.append(held)
        else:
            self._emit_calls(held)

    def add_marker(self, raw: str) -> None:
        """Leave a mark out, unless the calls before it turn out to be text."""
        if self._held is not None:
            self._held.append(_PendingCalls(raw, (), (), ""))

    def add_note(self, what: str) -> None:
        """Remember what was forgiven or left out."""
        self.notes.append(what)

    # --- what was held ---------------------------------------------------------------------------------

    def release(self) -> None:
        """Let out what was held, as calls; in a message that must hold nothing else they wait for its end."""
        if not self._whole_message:
            self._flush(as_calls=True)

    def withdraw(self, *, everything: bool) -> None:
        """Let out what was held as the text that it was. ``everything``: nothing so far was said, all was thought."""
        self._flush(as_calls=False)
        self._has_prose = self._has_prose and not everything

    def finish(self) -> None:
        """The end of the text."""
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

    # --- what goes out ---------------------------------------------------------------------------------

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
