"""Chat completions, streamed: chunks -> events.

A chunk holds deltas of one or several choices (``growing``), the calls in fragments (``fragments``), and at the end the
counts, alone or with a delta. Hosts differ in all of it, and may answer with one whole body instead, or with an error
under status 200, in a chunk of its own or beside a delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from sigwire.core.events import (
    ResponseStart,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    events_of,
)
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import LMError
from sigwire.lm.codecs.openai_chat.decoding import choice_index, decode, decode_content, decode_usage, error_in_success
from sigwire.lm.codecs.openai_chat.partial_calls import PartialCall
from sigwire.lm.codecs.openai_chat.partial_choice import PartialChoice
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.rejected_call import recovered
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of, value_at

__all__ = ["FRAMING", "ChatDecoder", "decoder"]

FRAMING: Framing = "sse"

D = TypeVar("D", bound=ChatProfile)


def decoder(sent: EncodedRequest, target: Target[ChatProfile]) -> ChatDecoder[ChatProfile]:
    """A decoder for one streamed reply.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.openai_chat import encode
    >>> target = Target("openai", "m", ChatProfile())
    >>> reading = decoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> [type(event).__name__ for event in reading.feed({"choices": [{"index": 0, "delta": {"content": "Hi"}}]})]
    ['ResponseStart', 'TextDelta']
    >>> end = reading.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + reading.close()
    >>> [type(event).__name__ for event in end]
    ['ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """
    return ChatDecoder(sent, target)


class ChatDecoder(StreamDecoder[D], Generic[D]):
    """Chunks of one answer -> events. Raises ``LMError`` for an error in a chunk, and for an end without a finish reason."""

    def __init__(self, sent: EncodedRequest, target: Target[D]) -> None:
        super().__init__(sent, target)
        self._choices: dict[int, PartialChoice] = {}
        self._body: JsonObject = {}
        self._whole: JsonObject | None = None
        self._refused: Response | None = None
        self._counted = False
        self._known: set[str] = set()  # the fields of a chunk that have said what they have to say

    # --- what hosts behind other programs do otherwise

    def _decode(self, body: JsonObject) -> Response:
        return decode(body, self.sent, self.target)

    def _usage_of(self, body: JsonObject) -> Usage:
        return decode_usage(body)

    # --- reading

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def feed(self, event: JsonValue) -> list[StreamEvent]:
        """What a chunk says. One that is nothing but more text, as most are, is told at once."""
        if not isinstance(event, dict) or not event.keys() <= self._known or event.get("usage") is not None:
            return super().feed(event)
        more = self._more_text(event.get("choices"))
        if more is None:
            return super().feed(event)
        self._emitted.append(more)
        return [more]

    def _more_text(self, choices: JsonValue) -> TextDelta | None:
        only = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
        if not isinstance(only, dict) or (growing := self._choices.get(choice_index(only))) is None:
            return None
        return growing.more_text(only)

    def _read_any(self, event: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(event, dict) and "error" in event:
            self._refused = self._refused or recovered(event, self.sent, self.target)
        if self._refused is None:
            yield from super()._read_any(event)

    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        choices = objects_of(event.get("choices"))
        if not self._choices and any("message" in choice and "delta" not in choice for choice in choices):
            self._whole = event
            return
        self._keep(event)
        yield from self._start_response(string_of(self._body, "id"), string_of(self._body, "model"))
        for choice in choices:
            if choice.get("error"):
                raise self._failure(choice)
            yield from self._choice(choice_index(choice)).read(choice)
        if isinstance(event.get("usage"), dict) or "x_groq" in event:
            self._counted = not choices
            yield from self._update_usage(self._usage_of(self._body))

    def _keep(self, event: JsonObject) -> None:
        """The id and the model that came first, and of everything else what came last."""
        for name, value in event.items():
            if name == "choices" or value is None:
                continue
            if name in ("id", "model") and self._body.get(name):
                continue
            before = self._body.get(name)
            merged = name == "x_groq" and isinstance(before, dict) and isinstance(value, dict)
            self._body[name] = {**object_of(before), **object_of(value)} if merged else value
        named = {"id", "model"} & self._body.keys()
        self._known |= (event.keys() | {"usage"}) - {"error", "id", "model", "x_groq"} | named

    def _choice(self, number: int) -> PartialChoice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = PartialChoice(number, self.target.profile, self._begin)
        return choice

    def _begin(self, call: PartialCall) -> tuple[str, str]:
        return self._assign_call_id(call.id), self.sent.names.decode(call.name)

    # --- the end

    def _end(self) -> Iterator[StreamEvent]:
        if self._refused is not None:
            yield from self._end_refused(self._refused)
        elif self._whole is not None:
            yield from events_of(self._decode(self._whole))
        else:
            self._check_end()
            for number in sorted(self._choices):
                yield from self._choices[number].end()
            whole: list[JsonValue] = [self._choices[number].whole() for number in sorted(self._choices)]
            response = self._decode({**self._body, "object": "chat.completion", "choices": whole})
            yield from self._end_calls(response)
            yield from self._end_response(response, map(ChoiceEvents, range(len(whole))))

    def _check_end(self) -> None:
        """Raise where the answer is not all there: a choice is missing, or has not said why it ended."""
        if isinstance(said := value_at(self._body, "x_groq.error"), str):
            raise self._failure({"error": said})
        finished = self._counted or all(choice.finished for choice in self._choices.values())
        if not self._choices or sorted(self._choices) != list(range(len(self._choices))) or not finished:
            raise self._truncation_error()

    def _end_calls(self, response: Response) -> Iterator[StreamEvent]:
        for number, choice in enumerate(response.choices):
            for index, call in enumerate(choice.tool_calls):
                yield ToolCallEnd(index, call, number)

    def _end_refused(self, response: Response) -> Iterator[StreamEvent]:
        """The thinking so far, and the calls that the host refused."""
        growing, choice = self._choice(0), response.choices[0]
        yield from self._start_response(string_of(self._body, "id"), string_of(self._body, "model"))
        yield from growing.end()
        thinking = decode_content(growing.message(), self.target.profile)[0]
        for index, call in enumerate(choice.tool_calls):
            yield ToolCallStart(index, call.id, call.name)
            yield ToolCallDelta(index, call.arguments_text)
            yield ToolCallEnd(index, call)
        if thinking:
            rest = {"finish_reason": choice.finish_reason, "raw": choice.raw}
            choice = Choice.from_parts((*thinking, *choice.tool_calls), **rest)
        start = self._start or ResponseStart()
        whole = Response((choice,), response.usage, start.model, start.id, response.warnings, raw=response.raw)
        yield from self._end_response(whole, [ChoiceEvents(0)])
