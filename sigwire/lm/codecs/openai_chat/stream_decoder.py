"""Chat completions, streamed: chunks -> events.

A chunk has deltas of one or several choices (``partial_choice``), the calls in fragments (``partial_calls``), and at the
end the usage, with or without a delta. Hosts vary all of this. A host may send a body that is not streamed, or an error
with status 200, with or without a delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from sigwire.core.events import (
    ResponseStart,
    StreamEvent,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    events_of,
)
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import LMError
from sigwire.lm.codecs.openai_chat.decoding import decode, decode_content, decode_usage, error_in_success
from sigwire.lm.codecs.openai_chat.partial_calls import PartialCall
from sigwire.lm.codecs.openai_chat.partial_choice import PartialChoice
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.rejected_call import recover_event
from sigwire.lm.codecs.shared.choices import check_count
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import index_of, object_of, objects_of, string_of, value_at

__all__ = ["FRAMING", "ChatDecoder", "decoder"]

FRAMING: Framing = "sse"

D = TypeVar("D", bound=ChatProfile)


class ChatDecoder(StreamDecoder[D], Generic[D]):
    """Chunks of one reply -> events. Raises ``LMError`` for an error in a chunk and for a reply without an end.

    The finish reason, ``[DONE]`` and a chunk of usage alone each end a reply.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.openai_chat import encode
    >>> target = Target("openai", "m", ChatProfile())
    >>> decoding = ChatDecoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> [type(event).__name__ for event in decoding.feed({"choices": [{"index": 0, "delta": {"content": "Hi"}}]})]
    ['ResponseStart', 'TextDelta']
    >>> end = decoding.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + decoding.close()
    >>> [type(event).__name__ for event in end]
    ['ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """

    def __init__(self, sent: EncodedRequest, target: Target[D]) -> None:
        super().__init__(sent, target)
        self._choices: dict[int, PartialChoice] = {}
        self._body: JsonObject = {}
        self._unstreamed: JsonObject | None = None
        self._rejected: Response | None = None
        self._has_usage = False
        self._settled: set[str] = set()  # fields of a chunk whose value does not change any more

    # --- hooks for programs between this library and the host

    def _decode(self, body: JsonObject) -> Response:
        return decode(body, self.sent, self.target)

    def _usage_of(self, body: JsonObject) -> Usage:
        return decode_usage(body).usage

    # --- reading

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def feed(self, event: JsonValue) -> list[StreamEvent]:
        """Return the events of a chunk. Most chunks only continue the text: these take a fast path."""
        if not isinstance(event, dict) or not event.keys() <= self._settled or event.get("usage") is not None:
            return super().feed(event)
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
        if not isinstance(choice, dict):
            return super().feed(event)
        number = choice.get("index")
        partial = self._choices.get(number if isinstance(number, int) else 0)
        delta = None if partial is None else partial.text_delta(choice)
        if delta is None:
            return super().feed(event)
        self._emitted.append(delta)
        return [delta]

    def _read_any(self, event: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(event, dict) and "error" in event:
            self._rejected = self._rejected or recover_event(event, self.sent, self.target)
        if self._rejected is None:
            yield from super()._read_any(event)

    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        choices = objects_of(event.get("choices"))
        if not self._choices and any("message" in choice and "delta" not in choice for choice in choices):
            self._unstreamed = event
            return
        self._merge_chunk(event)
        yield from self._start_response(string_of(self._body, "id"), string_of(self._body, "model"))
        for choice in choices:
            if choice.get("error"):
                raise self._failure(choice)
            yield from self._partial_choice(index_of(choice)).read(choice)
        if isinstance(event.get("usage"), dict) or "x_groq" in event:
            self._has_usage = not choices
            yield from self._update_usage(self._usage_of(self._body))

    def _merge_chunk(self, event: JsonObject) -> None:
        """Keep the first id and the first model, and the last value of any other field."""
        for name, value in event.items():
            if name == "choices" or value is None:
                continue
            if name in ("id", "model") and self._body.get(name):
                continue
            before = self._body.get(name)
            merged = name == "x_groq" and isinstance(before, dict) and isinstance(value, dict)
            self._body[name] = {**object_of(before), **object_of(value)} if merged else value
        named = {"id", "model"} & self._body.keys()
        self._settled |= (event.keys() | {"usage"}) - {"error", "id", "model", "x_groq"} | named

    def _partial_choice(self, number: int) -> PartialChoice:
        if number not in self._choices:
            check_count(len(self._choices) + 1, self.target)
            self._choices[number] = PartialChoice(
                number, self.target.profile, self.sent.names.wire_names, self._start_call
            )
        return self._choices[number]

    def _start_call(self, call: PartialCall, choice: int) -> tuple[str, str]:
        return self._assign_call_id(call.id, choice), self.sent.names.decode(call.name)

    # --- the end

    def _end(self) -> Iterator[StreamEvent]:
        if self._rejected is not None:
            yield from self._end_rejected(self._rejected)
        elif self._unstreamed is not None:
            yield from events_of(self._decode(self._unstreamed))
        else:
            self._check_complete()
            for number in sorted(self._choices):
                yield from self._choices[number].end()
            wires: list[JsonValue] = [self._choices[number].wire_choice() for number in sorted(self._choices)]
            response = self._decode({**self._body, "object": "chat.completion", "choices": wires})
            yield from self._end_calls(response)
            yield from self._end_response(response, map(ChoiceEvents, range(len(wires))))

    def _check_complete(self) -> None:
        if isinstance(error := value_at(self._body, "x_groq.error"), str):
            raise self._failure({"error": error})
        is_finished = (
            self._has_usage or self._has_end_mark or all(choice.is_finished for choice in self._choices.values())
        )
        if not self._choices or sorted(self._choices) != list(range(len(self._choices))) or not is_finished:
            raise self._truncation_error()

    def _end_calls(self, response: Response) -> Iterator[StreamEvent]:
        for number, choice in enumerate(response.choices):
            for index, call in enumerate(choice.tool_calls):
                yield ToolCallEnd(index, call, number)

    def _end_rejected(self, response: Response) -> Iterator[StreamEvent]:
        """Yield the rest of the reasoning and the calls that the host rejected."""
        partial, choice = self._partial_choice(0), response.choices[0]
        yield from self._start_response(string_of(self._body, "id"), string_of(self._body, "model"))
        yield from partial.end()
        thinking = decode_content(partial.wire_message(), self.target.profile)[0]
        for index, call in enumerate(choice.tool_calls):
            yield ToolCallStart(index, call.id, call.name)
            yield ToolCallDelta(index, call.arguments_text)
            yield ToolCallEnd(index, call)
        if thinking:
            rest = {"finish_reason": choice.finish_reason, "raw": choice.raw}
            choice = Choice.from_parts((*thinking, *choice.tool_calls), **rest)
        start = self._start or ResponseStart()
        joined = Response((choice,), response.usage, start.model, start.id, response.warnings, raw=response.raw)
        yield from self._end_response(joined, [ChoiceEvents(0)])


decoder: Callable[[EncodedRequest, Target[ChatProfile]], ChatDecoder[ChatProfile]] = ChatDecoder
