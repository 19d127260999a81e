"""``FieldEvents``: the events of one choice's fields, and the protocols of their readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sigwire.core.events import FieldDelta, FieldEnd, FieldPartial, ProgramEvent, ReasoningDelta, TextDelta
from sigwire.core.json import JsonValue

__all__ = ["FieldEvents", "FieldSink", "OutputReader"]


class FieldEvents:
    """Collects the events of one choice. ``started_texts``: text fields with a first delta; ``ended``: complete fields."""

    __slots__ = ("_choice", "_path", "_turn", "ended", "events", "started_texts")

    def __init__(self, path: str = "", turn: int | None = None, choice: int = 0) -> None:
        self._path, self._turn, self._choice = path, turn, choice
        self.events: list[ProgramEvent] = []
        self.started_texts: set[str] = set()
        self.ended: set[str] = set()

    def text(self, field: str, text: str) -> None:
        """Emit a text delta of a field."""
        self.events.append(FieldDelta(field, text, self._choice, path=self._path, turn=self._turn))

    def partial(self, field: str, value: JsonValue) -> None:
        """Emit the partial value of a field."""
        self.events.append(FieldPartial(field, value, self._choice, path=self._path, turn=self._turn))

    def end(self, field: str) -> None:
        """Emit the end of a field."""
        self.ended.add(field)
        self.events.append(FieldEnd(field, self._choice, path=self._path, turn=self._turn))

    def reasoning(self, text: str) -> None:
        """Emit reasoning that no field holds."""
        self.events.append(ReasoningDelta(text, self._choice, path=self._path, turn=self._turn))

    def free_text(self, text: str) -> None:
        """Emit text of an answer without outputs."""
        self.events.append(TextDelta(text, self._choice, path=self._path, turn=self._turn))

    def call(self, event: Callable[..., ProgramEvent], index: int, *facts: object) -> None:
        """Emit an event of a call: its start, a delta of its argument text, or its end."""
        self.events.append(event(index, *facts, self._choice, path=self._path, turn=self._turn))

    def take(self) -> list[ProgramEvent]:
        """Return the events since the last call of ``take``."""
        events, self.events = self.events, []
        return events


class FieldSink(Protocol):
    """Reads the text of one field while it arrives."""

    def feed(self, text: str) -> None:
        """Read the next text."""

    def close(self) -> None:
        """Read the end of the text."""


class OutputReader(FieldSink, Protocol):
    """Reads the outputs of one answer while its text arrives. A layout makes one for each answer."""

    def opens(self, text: str) -> bool | None:
        """Return True if a text without leading blanks starts as outputs do; ``None`` if it is too short to decide."""
