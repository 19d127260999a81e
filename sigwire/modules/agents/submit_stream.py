"""``SubmitStream``: stream an agent's outputs from the arguments of its ``submit`` call.

The events have the path of the agent's predictor and are emitted as the argument text arrives. If a submission is rejected,
the next ``AskStart`` of that path starts the outputs again. Values that need the user's code to validate, and answers in plain
text, are emitted from the accepted outputs at the end. The marks of an adapter's layout in plain text are not emitted.

A submission in a text, with arguments as JSON, is emitted before it is certain that the text is a call. If it turns out to
be none (a thought, a quotation), an ``AskStart`` without a request starts the outputs again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.plan import Plan
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.streaming.json_members import JsonMemberReader
from sigwire.adapters.streaming.text_before_outputs import LeadingTextReader
from sigwire.adapters.streaming.text_fields import emit_value
from sigwire.core.events import (
    AskStart,
    FieldDelta,
    FieldPartial,
    ProgramEvent,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
)
from sigwire.core.record import FieldValues
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.modules.agents.run import Termination
from sigwire.modules.agents.submit import Submit
from sigwire.modules.agents.submit_block import SubmitBlockReader
from sigwire.modules.program_stream import EventPath, EventReader, event_path_of, set_submit_listener

__all__ = ["SubmitStream", "with_submitted_fields"]


def with_submitted_fields(
    turn: Steps[Termination | None], submit: Submit, predictor: object, model: str, plan: Plan
) -> Steps[Termination | None]:
    """Run a turn whose predictor streams; its outputs are events at the path of the predictor.

    ``plan`` has the layout of outputs in plain text, and the form of calls that prompts teach.
    """
    submitted = SubmitStream(submit, plan.layout, plan.adapter.text_tools, event_path_of(predictor), model)
    set_submit_listener(predictor, submitted.wrap)
    try:
        end = yield from turn
    finally:
        set_submit_listener(predictor, None)
    outputs = end.outputs if end is not None else None
    if rest := submitted.unparsed_text() if outputs is None else submitted.rest(outputs):
        yield Emit(*event_path_of(predictor).stamp(rest))
    return end


class SubmitStream:
    """The events of the outputs in one turn.

    ``layout``: the adapter's layout that a model may use instead of a call; ``style``: the form of calls that prompts teach.
    """

    def __init__(self, submit: Submit, layout: Layout, style: str, event_path: EventPath, model: str) -> None:
        self._submit, self._layout, self._style = submit, layout, style
        self._event_path, self._model = event_path, model
        self._events = FieldEvents(event_path.path, event_path.turn)
        self._reader: _SubmitReader | None = None

    def wrap(self, reader: EventReader) -> EventReader:
        """Return a reader with the events of ``reader`` and those of the outputs in the arguments."""
        self._events = FieldEvents(self._event_path.path, self._event_path.turn)
        restart = AskStart(self._model, path=self._event_path.path, turn=self._event_path.turn)
        text, block = LeadingTextReader(self._layout), SubmitBlockReader(self._style, self._submit.name)
        self._reader = _SubmitReader(reader, self._submit, self._events, text, block, restart)
        return self._reader

    def unparsed_text(self) -> list[ProgramEvent]:
        """Return the text that looked like outputs, for a turn without outputs."""
        if self._reader is not None and (text := self._reader.text.release()):
            self._events.free_text(text)
        return self._events.take()

    def rest(self, outputs: FieldValues) -> list[ProgramEvent]:
        """Return the events of accepted outputs that were not emitted yet."""
        events = self._events
        if self._reader is not None:
            self._reader.discard_guess()
        for name, codec in self._submit.codecs.items():
            if name in outputs and name not in events.ended and name not in events.started_texts:
                emit_value(codec, outputs[name], events)
        return events.take()


class _SubmitReader:
    """Reads the first submission of an answer in the tool call events of another reader. ``restart`` discards its guess."""

    def __init__(
        self,
        reader: EventReader,
        submit: Submit,
        events: FieldEvents,
        text: LeadingTextReader,
        block: SubmitBlockReader,
        restart: AskStart,
    ) -> None:
        self._reader, self._submit, self._events, self.text = reader, submit, events, text
        self._block, self._restart = block, restart
        self._members = JsonMemberReader(submit.codecs.items(), events)
        self._index: int | None = None
        self._guess: list[ProgramEvent] = []

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        yield from self._add_outputs(self._reader.feed(event))
        if isinstance(event, TextDelta) and not event.choice and (arguments := self._block.feed(event.text)):
            self._members.feed(arguments)
            guess = self._events.take()
            self._guess += guess
            yield from guess

    def close(self) -> Iterable[ProgramEvent]:
        return self._add_outputs(self._reader.close())

    def discard_guess(self) -> None:
        """Start the outputs again if some were emitted from a block that is no call."""
        self._block.is_done = True
        if self._guess:
            self._events.events.append(self._restart)
            self._events.ended.clear()
            self._events.started_texts.clear()
            self._guess = []

    def _add_outputs(self, events: Iterable[ProgramEvent]) -> Iterable[ProgramEvent]:
        start: ToolCallStart | None = None
        for event in events:
            if getattr(event, "choice", 0):  # only the first choice is the agent's answer
                yield from self._flush_before(event)
            elif isinstance(event, TextDelta):
                if shown := self.text.feed(event.text):
                    yield replace(event, text=shown)
            elif isinstance(event, ToolCallStart):
                is_submit = self._index is None and event.name == self._submit.name
                self._index = event.index if is_submit else self._index
                if is_submit and self._guess:
                    start = event  # the whole call follows: a call in text
                else:
                    yield from self._flush_before(event)
            elif isinstance(event, ToolCallDelta) and event.index == self._index:
                if start is not None:
                    yield from self._check_guess(event.arguments)
                    yield from self._flush_before(start)
                yield event
                if start is None:
                    self._block.is_done = True
                    self._members.feed(event.arguments)
                    yield from self._events.take()
                start = None
            else:
                yield event

    def _check_guess(self, arguments: str) -> list[ProgramEvent]:
        """Return the outputs in the arguments of a call after a restart; nothing if they were emitted."""
        events = FieldEvents()
        JsonMemberReader(self._submit.codecs.items(), events).feed(arguments)
        if _values_in(events.take()) == _values_in(self._guess):
            self._guess = []
        else:
            self.discard_guess()
            JsonMemberReader(self._submit.codecs.items(), self._events).feed(arguments)
        return self._events.take()

    def _flush_before(self, event: ProgramEvent) -> Iterable[ProgramEvent]:
        if isinstance(event, ToolCallStart) and (shown := self.text.release()):
            self._events.free_text(shown)
            yield from self._events.take()
        yield event


def _values_in(events: Iterable[ProgramEvent]) -> dict[str, object]:
    values: dict[str, object] = {}
    for event in events:
        if isinstance(event, FieldDelta):
            values[event.field] = f"{values.get(event.field, '')}{event.text}"
        elif isinstance(event, FieldPartial):
            values[event.field] = event.value
    return values
