"""``Told``: the events of one choice's fields, as they are made, and which fields are through."""

from __future__ import annotations

from typing import Protocol

from sigwire.core.events import (
    FieldDelta,
    FieldEnd,
    FieldPartial,
    ProgramEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from sigwire.core.json import JsonValue
from sigwire.core.tools.calls import ToolCall

__all__ = ["FieldEvents", "FieldSink", "OutputReader"]


class FieldEvents:
    """Collects events for whoever reads the stream. ``started_texts`` are the texts of which something was told already."""

    __slots__ = ("_choice", "_path", "_turn", "ended", "events", "started_texts")

    def __init__(self, path: str = "", turn: int | None = None, choice: int = 0) -> None:
        self._path, self._turn, self._choice = path, turn, choice
        self.events: list[ProgramEvent] = []
        self.started_texts: set[str] = set()
        self.ended: set[str] = set()

    def text(self, field: str, text: str) -> None:
        """More text of a field."""
        self.events.append(FieldDelta(field, text, self._choice, path=self._path, turn=self._turn))

    def partial(self, field: str, value: JsonValue) -> None:
        """A field's value as far as it has come."""
        self.events.append(FieldPartial(field, value, self._choice, path=self._path, turn=self._turn))

    def end(self, field: str) -> None:
        """Nothing more of a field."""
        self.ended.add(field)
        self.events.append(FieldEnd(field, self._choice, path=self._path, turn=self._turn))

    # --- beside the fields -------------------------------------------------------------------------------

    def reasoning(self, text: str) -> None:
        """More of what the model thinks, where no field holds it."""
        self.events.append(ReasoningDelta(text, self._choice, path=self._path, turn=self._turn))

    def free_text(self, text: str) -> None:
        """More of an answer that has no form."""
        self.events.append(TextDelta(text, self._choice, path=self._path, turn=self._turn))

    def call_start(self, index: int, id: str, name: str) -> None:
        """A call begins."""
        self.events.append(ToolCallStart(index, id, name, self._choice, path=self._path, turn=self._turn))

    def call_delta(self, index: int, arguments: str) -> None:
        """More of a call's argument text."""
        self.events.append(ToolCallDelta(index, arguments, self._choice, path=self._path, turn=self._turn))

    def call_end(self, index: int, call: ToolCall) -> None:
        """A call is complete."""
        self.events.append(ToolCallEnd(index, call, self._choice, path=self._path, turn=self._turn))

    def take(self) -> list[ProgramEvent]:
        """The events since the last time."""
        events, self.events = self.events, []
        return events


class OutputReader(Protocol):
    """Reads the outputs of one answer as its text comes; a layout makes one for each answer."""

    def opens(self, text: str) -> bool | None:
        """Whether a text, without blanks before it, begins as outputs do; ``None`` while that is too early to say."""
        ...

    def feed(self, text: str) -> None:
        """More text."""
        ...

    def close(self) -> None:
        """The end of the text."""
        ...


class FieldSink(Protocol):
    """Takes the text of one field as it comes."""

    def feed(self, text: str) -> None:
        """More text."""
        ...

    def close(self) -> None:
        """The end of the text."""
        ...
