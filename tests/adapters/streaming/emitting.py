"""What the tests of field streaming share: an answer cut into pieces and read, and what was told of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from sigwire.adapters.plan import ParsedChoice, Plan
from sigwire.adapters.streaming import FieldReader
from sigwire.core.events import (
    ChoiceEnd,
    FieldDelta,
    FieldEnd,
    FieldPartial,
    ProgramEvent,
    StreamEvent,
    TextDelta,
    ToolCallEnd,
)
from sigwire.core.response import Choice, FinishReason, Response
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import ModelError

__all__ = ["Told", "cuts", "pieces_of", "read", "read_whole", "tell"]

cuts = st.lists(st.integers(0, 200), max_size=8)


def pieces_of(text: str, at: Iterable[int]) -> list[str]:
    """The text, cut at these positions."""
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in at)})
    return [text[start:end] for start, end in pairwise(places)]


@dataclass
class Told:
    """What was told: texts and partial values by field, which fields ended, calls; everything in order."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    partials: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    ended: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    free: str = ""
    events: list[ProgramEvent] = field(default_factory=list[ProgramEvent])

    def add(self, events: Iterable[ProgramEvent]) -> None:
        for event in events:
            self.events.append(event)
            match event:
                case FieldDelta():
                    assert event.field not in self.ended
                    assert event.text
                    self.texts[event.field] = self.texts.get(event.field, "") + event.text
                case FieldPartial():
                    assert event.field not in self.ended
                    self.partials.setdefault(event.field, []).append(event.value)
                case FieldEnd():
                    assert event.field not in self.ended
                    self.ended.append(event.field)
                case ToolCallEnd():
                    self.calls.append(event.call)
                case TextDelta():
                    self.free += event.text
                case _:
                    pass


def read(reader: FieldReader, events: Iterable[StreamEvent]) -> Told:
    """What a reader tells of these events."""
    told = Told()
    for event in events:
        told.add(reader.feed(event))
    told.add(reader.close())
    return told


def tell(plan: Plan, pieces: Sequence[str], tools: tuple[Tool, ...] = (), finish: FinishReason = "stop") -> Told:
    """What is told of an answer that comes in these pieces."""
    return read(FieldReader(plan, tools), [*map(TextDelta, pieces), ChoiceEnd(finish)])


def read_whole(plan: Plan, text: str, tools: tuple[Tool, ...] = ()) -> tuple[ParsedChoice | None, Choice]:
    """What the plan reads of the same answer, and the choice it reads; no fields where it cannot be used."""
    (choice,) = plan.normalize(Response((Choice(text),)), tools).choices
    try:
        return plan.parse(choice), choice
    except ModelError:
        return None, choice
