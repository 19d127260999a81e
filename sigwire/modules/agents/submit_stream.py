"""``SubmitStream``: stream an agent's outputs from the arguments of its ``submit`` call.

The events have the path of the agent's predictor and are emitted as the argument text arrives. If a submission is rejected,
the next ``AskStart`` of that path starts the outputs again. Values that need the user's code to validate, and answers in plain
text, are emitted from the accepted outputs at the end. The marks of an adapter's layout in plain text are not emitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.streaming.json_members import JsonMemberReader
from sigwire.adapters.streaming.text_before_outputs import LeadingTextReader
from sigwire.adapters.streaming.text_fields import emit_value
from sigwire.core.events import ProgramEvent, StreamEvent, TextDelta, ToolCallDelta, ToolCallStart
from sigwire.core.record import FieldValues
from sigwire.modules.agents.submit import Submit
from sigwire.modules.program_stream import EventPath, EventReader

__all__ = ["SubmitStream"]


class SubmitStream:
    """The events of the outputs in one turn. ``layout``: the adapter's layout that a model may use instead of a call."""

    def __init__(self, submit: Submit, layout: Layout, event_path: EventPath) -> None:
        self._submit, self._layout, self._event_path = submit, layout, event_path
        self._events = FieldEvents(*event_path)
        self._text: LeadingTextReader | None = None

    def wrap(self, reader: EventReader) -> EventReader:
        """Return a reader with the events of ``reader`` and those of the outputs in the arguments."""
        self._events = FieldEvents(*self._event_path)
        self._text = LeadingTextReader(self._layout)
        return _SubmitReader(reader, self._submit, self._events, self._text)

    def unparsed_text(self) -> list[ProgramEvent]:
        """Return the text that looked like outputs, for a turn without outputs."""
        if self._text is not None and (text := self._text.release()):
            self._events.free_text(text)
        return self._events.take()

    def rest(self, outputs: FieldValues) -> list[ProgramEvent]:
        """Return the events of accepted outputs that were not emitted yet."""
        events = self._events
        for name, codec in self._submit.codecs.items():
            if name in outputs and name not in events.ended and name not in events.started_texts:
                emit_value(codec, outputs[name], events)
        return events.take()


class _SubmitReader:
    """Reads the first submission of an answer in the tool call events of another reader."""

    def __init__(self, reader: EventReader, submit: Submit, events: FieldEvents, text: LeadingTextReader) -> None:
        self._reader, self._name, self._events, self._text = reader, submit.name, events, text
        self._members = JsonMemberReader(submit.codecs.items(), events)
        self._index: int | None = None

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        return self._add_outputs(self._reader.feed(event))

    def close(self) -> Iterable[ProgramEvent]:
        return self._add_outputs(self._reader.close())

    def _add_outputs(self, events: Iterable[ProgramEvent]) -> Iterable[ProgramEvent]:
        for event in events:
            if getattr(event, "choice", 0):  # only the first choice is the agent's answer
                yield from self._flush_before(event)
            elif isinstance(event, TextDelta):
                if shown := self._text.feed(event.text):
                    yield replace(event, text=shown)
            elif isinstance(event, ToolCallStart):
                yield from self._flush_before(event)
                if self._index is None and event.name == self._name:
                    self._index = event.index
            elif isinstance(event, ToolCallDelta) and event.index == self._index:
                yield event
                self._members.feed(event.arguments)
                yield from self._events.take()
            else:
                yield event

    def _flush_before(self, event: ProgramEvent) -> Iterable[ProgramEvent]:
        """Yield the event; before the start of a call, the held text."""
        if isinstance(event, ToolCallStart) and (shown := self._text.release()):
            self._events.free_text(shown)
            yield from self._events.take()
        yield event
