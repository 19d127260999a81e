"""Helpers of the streaming tests: cut an answer into chunks, read it, and collect the emitted events."""

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

__all__ = ["StreamedFields", "cut_at", "cuts", "read", "read_whole", "stream_fields"]

cuts = st.lists(st.integers(0, 200), max_size=8)


def cut_at(text: str, at: Iterable[int]) -> list[str]:
    """Cut the text at these positions."""
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in at)})
    return [text[start:end] for start, end in pairwise(places)]


@dataclass
class StreamedFields:
    """The emitted texts and partial values by field, the ended fields, the calls, and all events in order."""

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


def read(reader: FieldReader, events: Iterable[StreamEvent]) -> StreamedFields:
    """Collect the events of a reader."""
    streamed = StreamedFields()
    for event in events:
        streamed.add(reader.feed(event))
    streamed.add(reader.close())
    return streamed


def stream_fields(
    plan: Plan, chunks: Sequence[str], tools: tuple[Tool, ...] = (), finish: FinishReason = "stop"
) -> StreamedFields:
    """Collect the events of an answer in these chunks."""
    return read(FieldReader(plan, tools), [*map(TextDelta, chunks), ChoiceEnd(finish)])


def read_whole(plan: Plan, text: str, tools: tuple[Tool, ...] = ()) -> tuple[ParsedChoice | None, Choice]:
    """Parse the whole answer with the plan. Return the fields, ``None`` if unusable, and the parsed choice."""
    (choice,) = plan.normalize(Response((Choice(text),)), tools).choices
    try:
        return plan.parse(choice), choice
    except ModelError:
        return None, choice
