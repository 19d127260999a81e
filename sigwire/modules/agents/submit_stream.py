"""``SubmitStream``: the outputs of an agent in its stream. They come as arguments of a call of ``submit``, and are told as any are.

They grow as the argument text does, by the name of the predictor that was asked; where a submission is not accepted, the next
``AskStart`` of that name begins them afresh. What cannot be told as it comes (a value that a user's code checks, an answer in
plain text) is told from the outputs that were accepted; where that text has the form of an adapter's outputs, its marks are
told to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.streaming.json_members import JsonMemberReader
from sigwire.adapters.streaming.text_before_outputs import LeadingTextReader
from sigwire.adapters.streaming.text_fields import emit_value
from sigwire.core.events import ProgramEvent, StreamEvent, TextDelta, ToolCallDelta, ToolCallStart
from sigwire.modules.agents.submit import Submit
from sigwire.modules.ask import EventReader
from sigwire.modules.program_stream import EventPath

__all__ = ["SubmitStream"]


class SubmitStream:
    """What is told of the outputs in one turn. ``layout``: the form in which a model may write them instead."""

    def __init__(self, submit: Submit, layout: Layout, place: EventPath) -> None:
        self._submit, self._layout, self._place = submit, layout, place
        self._told = FieldEvents(*place)
        self._text: LeadingTextReader | None = None

    def beside(self, reader: EventReader) -> EventReader:
        """The reader, and beside the arguments that it tells the outputs in them."""
        self._told = FieldEvents(*self._place)
        self._text = LeadingTextReader(self._layout)
        return _SubmitReader(reader, self._submit, self._told, self._text)

    def unread(self) -> list[ProgramEvent]:
        """The text that was taken for outputs, where it turned out to be none."""
        if self._text is not None and (text := self._text.release()):
            self._told.free_text(text)
        return self._told.take()

    def rest(self, outputs: Mapping[str, Any]) -> list[ProgramEvent]:
        """What was not told yet of the outputs that were accepted."""
        told = self._told
        for name, codec in self._submit.codecs.items():
            if name in outputs and name not in told.ended and name not in told.begun:
                emit_value(codec, outputs[name], told)
        return told.take()


class _SubmitReader:
    """Reads the first submission of an answer while another reader tells its calls."""

    def __init__(self, reader: EventReader, submit: Submit, told: FieldEvents, text: LeadingTextReader) -> None:
        self._reader, self._name, self._told, self._text = reader, submit.name, told, text
        self._members = JsonMemberReader(submit.codecs.items(), told)
        self._index: int | None = None

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        return self._with_outputs(self._reader.feed(event))

    def close(self) -> Iterable[ProgramEvent]:
        return self._with_outputs(self._reader.close())

    def _with_outputs(self, events: Iterable[ProgramEvent]) -> Iterable[ProgramEvent]:
        for event in events:
            if isinstance(event, TextDelta) and not event.choice:
                if shown := self._text.feed(event.text):
                    yield replace(event, text=shown)
                continue
            if isinstance(event, ToolCallStart) and (shown := self._text.release()):
                self._told.free_text(shown)
                yield from self._told.take()
            yield event
            if isinstance(event, ToolCallStart):
                if self._index is None and event.name == self._name and not event.choice:
                    self._index = event.index
            elif isinstance(event, ToolCallDelta) and event.index == self._index and not event.choice:
                self._members.feed(event.arguments)
                yield from self._told.take()
