"""Responses, streamed: events -> events.

Each item of the answer begins, grows and ends; what stands at its end counts. The last event holds the answer once more,
whole, and decode() reads it; where a host leaves its items out, those that came stand in. Only the types of events in
``_HANDLERS`` say something; the progress of built-in tools and types we do not know are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sigwire.core.events import (
    PartEnd,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import ThinkingPart
from sigwire.core.response import Response
from sigwire.core.tools.tool import ToolCall
from sigwire.errors import LMError
from sigwire.lm.codecs.openai_responses.decoding import decode, decode_item, error_in_success
from sigwire.lm.codecs.openai_responses.items import is_message
from sigwire.lm.codecs.openai_responses.profiles import ResponsesProfile
from sigwire.lm.codecs.openai_responses.stops import StopCutter
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["FRAMING", "ResponsesDecoder", "decoder"]

FRAMING: Framing = "sse"

_CALLS = ("function_call", "custom_tool_call")


def decoder(sent: EncodedRequest, target: Target[ResponsesProfile]) -> ResponsesDecoder:
    """A decoder for one streamed reply.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.openai_responses import OPENAI, encode
    >>> target = Target("openai", "m", OPENAI)
    >>> reading = decoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> reading.feed({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"})
    [TextDelta(path='', turn=None, text='Hi', choice=0)]
    """
    return ResponsesDecoder(sent, target)


@dataclass(slots=True)
class _PartialItem:
    """An item as far as it has come. ``call`` is the call's place among the calls, and ``voice`` whose deltas are told."""

    item: JsonObject
    done: bool = False
    call: int | None = None
    call_id: str = ""
    voice: str = ""
    texts: dict[JsonValue, list[str]] = field(default_factory=dict[JsonValue, list[str]])
    arguments: list[str] = field(default_factory=list[str])

    def whole(self) -> JsonObject:
        """The item; of one that never ended, what its deltas came to."""
        if self.done:
            return self.item
        if self.item.get("type") in _CALLS:
            name = "arguments" if self.item["type"] == "function_call" else "input"
            return {**self.item, name: "".join(self.arguments), "status": "incomplete"}
        if is_message(self.item) and self.texts:
            texts = ("".join(pieces) for pieces in self.texts.values())
            content: list[JsonValue] = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
            return {**self.item, "content": content}
        return self.item


class ResponsesDecoder(StreamDecoder[ResponsesProfile]):
    """Events of one answer -> events. Raises ``LMError`` for a failure, and for an end without the last event."""

    def __init__(self, sent: EncodedRequest, target: Target[ResponsesProfile]) -> None:
        super().__init__(sent, target)
        self._items: dict[JsonValue, _PartialItem] = {}
        self._begun: JsonObject = {}
        self._ended: JsonObject | None = None
        self._thought: str | None = None  # the reasoning item before a call
        self._calls = 0
        self._told_calls: set[int] = set()
        self._stop = StopCutter(sent.stop)

    # --- reading

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        handle = self._HANDLERS.get(string_of(event, "type") or "")
        if handle is not None:
            yield from handle(self, event)
        elif "output" in event and "type" not in event:
            self._ended = event  # one body in place of a stream

    def _read_begin(self, event: JsonObject) -> Iterator[StreamEvent]:
        self._begun = object_of(event.get("response"))
        yield from self._start_response(string_of(self._begun, "id"), string_of(self._begun, "model"))

    def _read_end(self, event: JsonObject) -> Iterator[StreamEvent]:
        """The answer, whole. Raises the error of one that failed."""
        response = object_of(event.get("response"))
        if response.get("error") or response.get("status") == "failed" or event.get("type") == "response.failed":
            raise self._failure({"status": "failed", **response})
        self._ended = {**self._begun, **response}
        yield from ()

    def _read_error(self, event: JsonObject) -> Iterator[StreamEvent]:
        """An error that stands flat in its event."""
        raise self._failure({"error": {name: value for name, value in event.items() if name != "type"}})

    def _read_item(self, event: JsonObject) -> Iterator[StreamEvent]:
        item = object_of(event.get("item"))
        growing = self._items[self._place(event)] = _PartialItem(item)
        if item.get("type") in _CALLS:
            yield from self._begin_call(growing)

    def _begin_call(self, growing: _PartialItem) -> Iterator[StreamEvent]:
        if self._stop.found:
            return
        growing.call, self._calls = self._calls, self._calls + 1
        growing.call_id = self._assign_call_id(string_of(growing.item, "call_id"))
        name = self.sent.names.decode(string_of(growing.item, "name") or "")
        yield ToolCallStart(growing.call, growing.call_id, name)

    def _read_text(self, event: JsonObject) -> Iterator[StreamEvent]:
        index, piece = event.get("content_index"), string_of(event, "delta") or ""
        growing = self._growing(event, {"type": "message", "role": "assistant", "content": []})
        pieces = growing.texts.setdefault(index if isinstance(index, int) else 0, [])
        if not pieces:  # another text
            yield from self._tell_text(self._stop.close())
        pieces.append(piece)
        yield from self._tell_text(self._stop.feed(piece))

    def _read_thinking(self, event: JsonObject) -> Iterator[StreamEvent]:
        """Of a summary or of the reasoning itself: some hosts send both."""
        growing, piece = self._growing(event, {"type": "reasoning"}), string_of(event, "delta") or ""
        growing.voice = growing.voice or str(event["type"])
        if piece and growing.voice == event["type"] and not self._stop.found:
            yield ReasoningDelta(piece)

    def _read_paragraph(self, event: JsonObject) -> Iterator[StreamEvent]:
        """Parts of a summary stand apart."""
        if event.get("summary_index") not in (0, None) and not self._stop.found:
            yield ReasoningDelta("\n\n")

    def _read_arguments(self, event: JsonObject) -> Iterator[StreamEvent]:
        growing, piece = self._growing(event, {}), string_of(event, "delta") or ""
        growing.arguments.append(piece)
        if piece and growing.call is not None and not self._stop.found:
            yield ToolCallDelta(growing.call, piece)

    def _read_item_end(self, event: JsonObject) -> Iterator[StreamEvent]:
        item = object_of(event.get("item"))
        growing = self._growing(event, item)
        growing.item, growing.done = item, True
        yield from self._tell_text(self._stop.close())
        if item.get("type") in _CALLS:
            yield from self._end_call(growing)
        elif item.get("type") == "reasoning":
            self._thought = string_of(item, "id")
            for part in decode_item(item, self.sent.names, self.target.profile.family):
                if isinstance(part, ThinkingPart) and not self._stop.found:
                    yield PartEnd(part)

    def _end_call(self, growing: _PartialItem) -> Iterator[StreamEvent]:
        """The call, unless it is broken: whether it is left out then, the answer's end tells."""
        if growing.call is None:
            yield from self._begin_call(growing)
        if growing.call is None:
            return
        if not growing.arguments and (text := string_of(growing.item, "arguments") or string_of(growing.item, "input")):
            yield ToolCallDelta(growing.call, text)
        for part in decode_item(growing.item, self.sent.names, self.target.profile.family, self._thought):
            if isinstance(part, ToolCall) and part.error is None and not self._stop.found:
                self._told_calls.add(growing.call)
                yield ToolCallEnd(growing.call, replace(part, id=growing.call_id))

    # --- where an event belongs

    def _place(self, event: JsonObject) -> JsonValue:
        index = event.get("output_index")
        if isinstance(index, int):
            return index
        return string_of(event, "item_id") or string_of(event.get("item"), "id") or len(self._items)

    def _growing(self, event: JsonObject, item: JsonObject) -> _PartialItem:
        """The item that an event speaks of; it may never have been announced."""
        place = self._place(event)
        if place not in self._items:
            self._items[place] = _PartialItem(item)
        return self._items[place]

    def _tell_text(self, text: str) -> Iterator[StreamEvent]:
        if text:
            yield TextDelta(text)

    # --- the end

    def _end(self) -> Iterator[StreamEvent]:
        if self._ended is None:
            raise self._truncation_error()
        yield from self._tell_text(self._stop.close())
        items: list[JsonValue] = [growing.whole() for growing in self._items.values()]
        output = objects_of(self._ended.get("output")) or items
        response = decode({**self._ended, "output": list[JsonValue](output)}, self.sent, self.target)
        yield from self._end_calls(response)
        yield from self._end_response(response, [ChoiceEvents(0)])

    def _end_calls(self, response: Response) -> Iterator[StreamEvent]:
        for index, call in enumerate(response.choices[0].tool_calls):
            if index not in self._told_calls:
                yield ToolCallEnd(index, call)

    _HANDLERS: ClassVar[Mapping[str, Callable[[Any, JsonObject], Iterator[StreamEvent]]]] = {
        "error": _read_error,
        "response.cancelled": _read_end,
        "response.completed": _read_end,
        "response.created": _read_begin,
        "response.custom_tool_call_input.delta": _read_arguments,
        "response.failed": _read_end,
        "response.function_call_arguments.delta": _read_arguments,
        "response.in_progress": _read_begin,
        "response.incomplete": _read_end,
        "response.output_item.added": _read_item,
        "response.output_item.done": _read_item_end,
        "response.output_text.delta": _read_text,
        "response.queued": _read_begin,
        "response.reasoning_summary_part.added": _read_paragraph,
        "response.reasoning_summary_text.delta": _read_thinking,
        "response.reasoning_text.delta": _read_thinking,
    }
