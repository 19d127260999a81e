"""Fields as they grow: the events of a response become events of a signature's outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from sigwire.core.events import (
    ProgramEvent,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from sigwire.core.tools import Tool

if TYPE_CHECKING:
    from sigwire.adapters.plan import Plan

__all__ = ["FieldReader"]

_PASSED_ON = (ReasoningDelta, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart, UsageUpdate)


class FieldReader:
    """Reads one response in pieces."""

    def __init__(self, plan: Plan, tools: tuple[Tool, ...] = (), path: str = "", turn: int | None = None) -> None:
        self._path, self._turn = path, turn

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        """What an event of the response means for the fields."""
        if isinstance(event, _PASSED_ON):
            yield replace(event, path=self._path, turn=self._turn)

    def close(self) -> Iterable[ProgramEvent]:
        """What is left to say at the response's end."""
        return ()
