"""Streamed replies, what all wires share: events are told as they come, and the body is put together for the end.

A wire's decoder is an ``StreamDecoder``: it reads one event at a time, tells what it says, and keeps the pieces of the body in
the shape that decode() takes. At the end decode() reads that body, and what it finds beside the parts (finish reasons,
usage, warnings) ends the stream. So a streamed answer and a whole one are read by the same code.

``Told`` is one choice as it was told: it numbers the calls, keeps texts that stand side by side apart, and holds back a
call's end while the call may still turn out to be cut off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from sigwire.core.messages import Part, TextPart
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.tool import ToolCall
from sigwire.errors import LMError, LMTransportError
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target, WireProfile

__all__ = ["ChoiceEvents", "StreamDecoder"]

D = TypeVar("D", bound=WireProfile)


class ChoiceEvents:
    """One choice, as far as it was told. With ``calls_last`` no call ends before the answer does."""

    def __init__(self, number: int, *, calls_last: bool = False) -> None:
        self.number = number
        self._calls_last = calls_last
        self._begun = self._ended = 0  # calls
        self._held: list[ToolCall] = []
        self._pieces: list[str] = []
        self._text_before: str | None = None

    def emit_text(self, piece: str) -> Iterator[StreamEvent]:
        """More of the answer's text."""
        if not piece:
            return
        yield from self._go_on()
        if self._text_before is not None:
            yield PartEnd(TextPart(self._text_before), self.number)
            self._text_before = None
        self._pieces.append(piece)
        yield TextDelta(piece, self.number)

    def end_text(self) -> None:
        """The text is a part; text that follows is another one."""
        if self._pieces:
            self._text_before, self._pieces = "".join(self._pieces), []

    def emit_reasoning(self, piece: str) -> Iterator[StreamEvent]:
        """More of a thought; ``emit_part`` ends it."""
        if piece:
            yield from self._go_on_otherwise()
            yield ReasoningDelta(piece, self.number)

    def emit_part(self, part: Part) -> Iterator[StreamEvent]:
        """A whole part that is neither text nor a call."""
        yield from self._go_on_otherwise()
        yield PartEnd(part, self.number)

    def start_call(self, call_id: str, name: str) -> Iterator[StreamEvent]:
        """A call begins."""
        yield from self._go_on_otherwise()
        yield ToolCallStart(self._begun, call_id, name, self.number)
        self._begun += 1

    def emit_arguments(self, piece: str) -> Iterator[StreamEvent]:
        """More of the arguments of the call that began last."""
        if piece:
            yield ToolCallDelta(self._begun - 1, piece, self.number)

    def end_call(self, call: ToolCall) -> None:
        """The call is there. It is told with what comes next: at the answer's end it may turn out to be cut off."""
        self._held.append(call)

    def end(self, calls: int) -> Iterator[StreamEvent]:
        """The answer is over, and has so many calls."""
        del self._held[max(calls - self._ended, 0) :]
        yield from self._release()

    def _go_on(self) -> Iterator[StreamEvent]:
        if not self._calls_last:
            yield from self._release()

    def _go_on_otherwise(self) -> Iterator[StreamEvent]:
        yield from self._go_on()
        self._pieces, self._text_before = [], None

    def _release(self) -> Iterator[StreamEvent]:
        for call in self._held:
            yield ToolCallEnd(self._ended, call, self.number)
            self._ended += 1
        self._held = []


class StreamDecoder(ABC, Generic[D]):
    """A decoder that puts the body together. A wire says how an event is read, and what the body is at the end."""

    def __init__(self, sent: EncodedRequest, target: Target[D]) -> None:
        self.sent, self.target = sent, target
        self._told: list[StreamEvent] = []
        self._start: ResponseStart | None = None
        self._usage: Usage | None = None
        self._taken = set(sent.call_ids)

    def feed(self, event: JsonValue) -> list[StreamEvent]:
        """What one event of the wire says.

        Raises the ``LMError`` of a failure. The answer so far is its ``partial``; ``None`` where nothing was told yet.
        """
        return self._tell(self._read_any(event))

    def close(self) -> list[StreamEvent]:
        """The end of the answer. Raises a retryable ``LMError`` where the stream stopped before it."""
        return self._tell(self._end())

    @abstractmethod
    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        """What an event says."""

    @abstractmethod
    def _failure(self, event: JsonValue) -> LMError:
        """The error that an event tells of, or that it is."""

    @abstractmethod
    def _end(self) -> Iterator[StreamEvent]:
        """What only the end can tell: ``_end_response`` of the decoded body."""

    # --- for the wires

    def _start_response(self, response_id: str | None, model: str | None) -> Iterator[StreamEvent]:
        """The answer's beginning, again only where more is known."""
        told = self._start
        if told is None or ((response_id, model) not in ((told.id, told.model), (None, None))):
            self._start = ResponseStart(response_id, model)
            yield self._start

    def _update_usage(self, usage: Usage) -> Iterator[StreamEvent]:
        if usage != self._usage:
            self._usage = usage
            yield UsageUpdate(usage)

    def _assign_call_id(self, call_id: str | None) -> str:
        """The call's id, or the first free one for a call without."""
        number = 0
        while not call_id:
            candidate, number = f"call_{number}", number + 1
            call_id = candidate if candidate not in self._taken else None
        self._taken.add(call_id)
        return call_id

    def _end_response(self, response: Response, told: Iterable[ChoiceEvents]) -> Iterator[StreamEvent]:
        """The ends of the choices and of the answer, as the decoded body has them."""
        yield from self._start_response(response.id, response.model)
        for choice, so_far in zip(response.choices, told, strict=True):
            yield from so_far.end(len(choice.tool_calls))
        ends = [_end_of(choice, number) for number, choice in enumerate(response.choices)]
        came = collect((*self._told, *ends)).choices
        for end, choice, as_told in zip(ends, response.choices, came, strict=True):
            yield end if as_told == choice else replace(end, parts=choice.message().parts)
        yield from self._update_usage(response.usage)
        yield ResponseEnd(response.warnings, response.attempts, response.raw)

    def _truncation_error(self) -> LMError:
        return LMTransportError(
            "The stream stopped before the end of the answer.",
            model=self.target.model,
            provider=self.target.provider,
            status=200,
        )

    # --- reading, and what came so far where that fails

    def _read_any(self, event: JsonValue) -> Iterator[StreamEvent]:
        """An event, or several in a list: some hosts buffer the stream as one array."""
        if isinstance(event, list):
            for one in event:
                yield from self._read_any(one)
        elif isinstance(event, dict) and not event.get("error"):
            yield from self._read(event)
        else:
            raise self._failure(event)

    def _tell(self, events: Iterator[StreamEvent]) -> list[StreamEvent]:
        before = len(self._told)
        try:
            self._told.extend(events)
        except LMError as error:
            error.partial = self._so_far(before)
            raise
        return self._told[before:]

    def _so_far(self, told: int) -> Response | None:
        """The answer that came, each choice of it marked as failed; ``None`` where nothing of it was told yet."""
        if all(isinstance(event, ResponseStart | UsageUpdate) for event in self._told[:told]):
            return None
        choices = {event.choice for event in self._told if isinstance(event, TextDelta | ReasoningDelta | PartEnd)}
        choices |= {event.choice for event in self._told if isinstance(event, ToolCallEnd)}
        return collect((*self._told, *(ChoiceEnd("error", number, ordered=True) for number in choices)))


def _end_of(choice: Choice, number: int) -> ChoiceEnd:
    return ChoiceEnd(
        choice.finish_reason,
        number,
        choice.refusal,
        choice.logprobs,
        choice.citations,
        ordered=bool(choice.parts),
        raw=choice.raw,
    )
