"""Streamed replies, for all wires: events are emitted as they arrive, and the body is assembled for decode().

The ``StreamDecoder`` of a wire reads one event at a time, emits its content, and keeps the body in the shape that decode()
takes. At the end, decode() reads that body, and its finish reasons, usage and warnings end the stream: streamed and whole
replies are decoded by the same code.

``ChoiceEvents`` emits one choice: it numbers the calls, separates neighbouring text parts, and holds the end of a call
back while the call may turn out to be truncated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Generic, TypeVar

from sigwire.core.events import (
    ChoiceEnd,
    PartEnd,
    ReasoningDelta,
    ResponseEnd,
    ResponseStart,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
    collect,
)
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import CallIds, ToolCall
from sigwire.errors import LMError, LMTransportError
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target, WireProfile

__all__ = ["ChoiceEvents", "StreamDecoder"]

D = TypeVar("D", bound=WireProfile)


class ChoiceEvents:
    """The events of one choice. With ``calls_last`` no call ends before the choice does."""

    def __init__(self, number: int, *, calls_last: bool = False) -> None:
        self.number = number
        self._calls_last = calls_last
        self._started_calls = self._ended_calls = 0
        self._held_calls: dict[int, ToolCall] = {}  # complete, by number
        self._text: list[str] = []
        self._text_part: str | None = None  # a text part that ended; emitted if another text part follows

    def emit_text(self, delta: str) -> Iterator[StreamEvent]:
        if not delta:
            return
        yield from self._release_before_part()
        if self._text_part is not None:
            yield PartEnd(TextPart(self._text_part), self.number)
            self._text_part = None
        self._text.append(delta)
        yield TextDelta(delta, self.number)

    def end_text(self) -> None:
        """End the text part; text that follows is another part."""
        if self._text:
            self._text_part, self._text = "".join(self._text), []

    def emit_reasoning(self, delta: str) -> Iterator[StreamEvent]:
        """Emit a delta of a thinking part, which ``emit_part`` ends."""
        if delta:
            yield from self._start_other_part()
            yield ReasoningDelta(delta, self.number)

    def emit_part(self, part: Part) -> Iterator[StreamEvent]:
        """Emit a whole part other than a text or a call."""
        yield from self._start_other_part()
        yield PartEnd(part, self.number)

    @property
    def last_call(self) -> int:
        """The number of the call that started last."""
        return self._started_calls - 1

    def start_call(self, call_id: str, name: str) -> Iterator[StreamEvent]:
        yield from self._start_other_part()
        yield ToolCallStart(self._started_calls, call_id, name, self.number)
        self._started_calls += 1

    def emit_arguments(self, delta: str, call: int | None = None) -> Iterator[StreamEvent]:
        """Emit a delta of the arguments of a call, by its number; without one, of the call that started last."""
        if delta:
            yield ToolCallDelta(self.last_call if call is None else call, delta, self.number)

    def end_call(self, call: ToolCall, number: int | None = None) -> None:
        """Hold the complete call back until the next event: the last call of a choice may turn out to be truncated.

        ``number``: that of the call, if another call may end before it; calls are released in the order of their starts.
        """
        self._held_calls[self._ended_calls + len(self._held_calls) if number is None else number] = call

    def end(self, calls: int) -> Iterator[StreamEvent]:
        """End the choice, which has ``calls`` calls."""
        self._held_calls = {number: call for number, call in self._held_calls.items() if number < calls}
        yield from self._release_calls()

    def _release_before_part(self) -> Iterator[StreamEvent]:
        if not self._calls_last:
            yield from self._release_calls()

    def _start_other_part(self) -> Iterator[StreamEvent]:
        yield from self._release_before_part()
        self._text, self._text_part = [], None

    def _release_calls(self) -> Iterator[StreamEvent]:
        while (call := self._held_calls.pop(self._ended_calls, None)) is not None:
            yield ToolCallEnd(self._ended_calls, call, self.number)
            self._ended_calls += 1


class StreamDecoder(ABC, Generic[D]):
    """A decoder that assembles the body. A wire defines how an event is read and how the stream ends."""

    def __init__(self, sent: EncodedRequest, target: Target[D]) -> None:
        self.sent, self.target = sent, target
        self._emitted: list[StreamEvent] = []
        self._start: ResponseStart | None = None
        self._usage: Usage | None = None
        self._call_ids = defaultdict[int, CallIds](lambda: CallIds(sent.call_ids))  # by choice
        self._has_end_mark = False  # of the framing, or an event that ends the reply without a reason

    def feed(self, event: JsonValue) -> list[StreamEvent]:
        """Return the stream events of one event of the wire.

        Raises the ``LMError`` of a failure, with the response up to it as ``partial``: ``None`` without any content.
        """
        return self._emit(self._read_array(event) if isinstance(event, list) else self._read_any(event))

    def close(self, *, end_mark: bool = False) -> list[StreamEvent]:
        """Return the last events. Raises a retryable ``LMError`` if the stream was truncated."""
        self._has_end_mark |= end_mark
        return self._emit(self._end())

    @abstractmethod
    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        """Yield the stream events of one event."""

    @abstractmethod
    def _failure(self, event: JsonValue) -> LMError:
        """Return the error that an event holds, or the error for an event of unknown form."""

    @abstractmethod
    def _end(self) -> Iterator[StreamEvent]:
        """Yield the last events: ``_end_response`` of the decoded body."""

    # --- for the wires

    def _start_response(self, response_id: str | None, model: str | None) -> Iterator[StreamEvent]:
        """Yield the start of the response, again only if an id or model is new."""
        start = self._start
        if start is None or ((response_id, model) not in ((start.id, start.model), (None, None))):
            self._start = ResponseStart(response_id, model)
            yield self._start

    def _update_usage(self, usage: Usage) -> Iterator[StreamEvent]:
        if usage != self._usage:
            self._usage = usage
            yield UsageUpdate(usage)

    def _assign_call_id(self, call_id: str | None, choice: int = 0) -> str:
        """Return the id of a choice's next call: its own, unless that is missing or in use."""
        return self._call_ids[choice].unique(call_id or "")

    def _end_response(self, response: Response, choices: Iterable[ChoiceEvents]) -> Iterator[StreamEvent]:
        """Yield the ends of the choices and of the response, as decode() returned them."""
        yield from self._start_response(response.id, response.model)
        for choice, events in zip(response.choices, choices, strict=True):
            yield from events.end(len(choice.tool_calls))
        ends = [_end_of(choice, number) for number, choice in enumerate(response.choices)]
        streamed = collect((*self._emitted, *ends)).choices
        for end, choice, collected in zip(ends, response.choices, streamed, strict=True):
            yield end if collected == choice else replace(end, parts=choice.message().parts)
        yield from self._update_usage(response.usage)
        yield ResponseEnd(response.warnings, response.attempts, response.raw)

    def _truncation_error(self) -> LMError:
        return LMTransportError(
            "The stream stopped before the end of the answer.",
            model=self.target.model,
            provider=self.target.provider,
            status=200,
        )

    # --- reading, and the partial response of a failure

    def _read_array(self, events: list[JsonValue]) -> Iterator[StreamEvent]:
        """Read a list of events: some hosts buffer the stream as one array."""
        for event in events:
            yield from self._read_any(event)

    def _read_any(self, event: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(event, dict) and not event.get("error"):
            yield from self._read(event)
        else:
            raise self._failure(event)

    def _emit(self, events: Iterator[StreamEvent]) -> list[StreamEvent]:
        before = len(self._emitted)
        try:
            self._emitted.extend(events)
        except LMError as error:
            error.partial = self._partial_response(before)
            raise
        return self._emitted[before:]

    def _partial_response(self, count: int) -> Response | None:
        """Return the response of the emitted events, each choice failed; ``None`` if the first ``count`` had no content."""
        if all(isinstance(event, ResponseStart | UsageUpdate) for event in self._emitted[:count]):
            return None
        choices = {event.choice for event in self._emitted if isinstance(event, _CONTENT)}
        return collect((*self._emitted, *(ChoiceEnd("error", number, ordered=True) for number in choices)))


_CONTENT = TextDelta | ReasoningDelta | PartEnd | ToolCallEnd


def _end_of(choice: Choice, number: int) -> ChoiceEnd:
    return ChoiceEnd(
        choice.finish_reason,
        number,
        choice.refusal,
        choice.logprobs,
        choice.citations,
        ordered=bool(choice.parts),
        raw=choice.raw,
        evidence=choice.evidence,
    )
