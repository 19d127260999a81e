"""Responses, streamed: events -> events.

Each item of the response starts, gets deltas and ends; its end has the valid state. The last event has the complete
response, which decode() reads; if a host omits its items there, the items of the stream replace them. Types of events
without a row in ``_HANDLERS`` are ignored: progress of built-in tools, and unknown types.
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
from sigwire.core.parts import ThinkingPart
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMError
from sigwire.lm.codecs.openai_responses.decoding import argument_text, decode, decode_item, error_in_success
from sigwire.lm.codecs.openai_responses.items import is_message
from sigwire.lm.codecs.openai_responses.profiles import ResponsesProfile
from sigwire.lm.codecs.openai_responses.stops import StopCutter
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["FRAMING", "ResponsesDecoder", "decoder"]

FRAMING: Framing = "sse"

_CALLS = ("function_call", "custom_tool_call")


@dataclass(slots=True)
class _PartialItem:
    """An item that is not complete yet. ``call``: its index among the calls. ``source``: the type of its reasoning events."""

    item: JsonObject
    is_done: bool = False
    call: int | None = None
    call_id: str = ""
    source: str = ""
    texts: dict[JsonValue, list[str]] = field(default_factory=dict[JsonValue, list[str]])
    arguments: list[str] = field(default_factory=list[str])

    def wire_item(self) -> JsonObject:
        if self.is_done:
            return self.item
        if self.item.get("type") in _CALLS:
            name = "arguments" if self.item["type"] == "function_call" else "input"
            return {**self.item, name: "".join(self.arguments), "status": "incomplete"}
        if is_message(self.item) and self.texts:
            texts = ("".join(deltas) for deltas in self.texts.values())
            content: list[JsonValue] = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
            return {**self.item, "content": content}
        return self.item


class ResponsesDecoder(StreamDecoder[ResponsesProfile]):
    """Events of one reply -> events. Raises ``LMError`` for a failure and for an end without the last event.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.openai_responses import OPENAI, encode
    >>> target = Target("openai", "m", OPENAI)
    >>> decoding = ResponsesDecoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> decoding.feed({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"})
    [TextDelta(path='', turn=None, within='', text='Hi', choice=0)]
    """

    def __init__(self, sent: EncodedRequest, target: Target[ResponsesProfile]) -> None:
        super().__init__(sent, target)
        self._items: dict[JsonValue, _PartialItem] = {}
        self._created: JsonObject = {}
        self._final: JsonObject | None = None
        self._reasoning_id: str | None = None  # the reasoning item before a call
        self._calls = 0
        self._ended_calls: set[int] = set()
        self._cutter = StopCutter(sent.stop)

    # --- reading

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def _read(self, event: JsonObject) -> Iterator[StreamEvent]:
        handle = self._HANDLERS.get(string_of(event, "type") or "")
        if handle is not None:
            yield from handle(self, event)
        elif "output" in event and "type" not in event:
            self._final = event  # a body that is not streamed

    def _read_start(self, event: JsonObject) -> Iterator[StreamEvent]:
        self._created = object_of(event.get("response"))
        yield from self._start_response(string_of(self._created, "id"), string_of(self._created, "model"))

    def _read_end(self, event: JsonObject) -> Iterator[StreamEvent]:
        response = object_of(event.get("response"))
        if response.get("error") or response.get("status") == "failed" or event.get("type") == "response.failed":
            raise self._failure({"status": "failed", **response})
        self._final = {**self._created, **response}
        yield from ()

    def _read_error(self, event: JsonObject) -> Iterator[StreamEvent]:
        raise self._failure({"error": {name: value for name, value in event.items() if name != "type"}})

    def _read_item(self, event: JsonObject) -> Iterator[StreamEvent]:
        item = object_of(event.get("item"))
        partial = self._items[self._key_of(event)] = _PartialItem(item)
        if item.get("type") in _CALLS:
            yield from self._start_call(partial)

    def _start_call(self, partial: _PartialItem) -> Iterator[StreamEvent]:
        if self._cutter.found:
            return
        partial.call, self._calls = self._calls, self._calls + 1
        partial.call_id = self._assign_call_id(string_of(partial.item, "call_id"))
        name = self.sent.names.decode(string_of(partial.item, "name") or "")
        yield ToolCallStart(partial.call, partial.call_id, name)

    def _read_text(self, event: JsonObject) -> Iterator[StreamEvent]:
        index, delta = event.get("content_index"), string_of(event, "delta") or ""
        partial = self._partial_item(event, {"type": "message", "role": "assistant", "content": []})
        deltas = partial.texts.setdefault(index if isinstance(index, int) else 0, [])
        if not deltas:  # another text
            yield from self._emit_text(self._cutter.close())
        deltas.append(delta)
        yield from self._emit_text(self._cutter.feed(delta))

    def _read_thinking(self, event: JsonObject) -> Iterator[StreamEvent]:
        """Read reasoning, of the first source only: some hosts send the summary and the reasoning itself."""
        partial, delta = self._partial_item(event, {"type": "reasoning"}), string_of(event, "delta") or ""
        partial.source = partial.source or str(event["type"])
        if delta and partial.source == event["type"] and not self._cutter.found:
            yield ReasoningDelta(delta)

    def _read_paragraph(self, event: JsonObject) -> Iterator[StreamEvent]:
        if event.get("summary_index") not in (0, None) and not self._cutter.found:
            yield ReasoningDelta("\n\n")

    def _read_arguments(self, event: JsonObject) -> Iterator[StreamEvent]:
        partial, delta = self._partial_item(event, {}), string_of(event, "delta") or ""
        partial.arguments.append(delta)
        if delta and partial.call is not None and not self._cutter.found:
            yield ToolCallDelta(partial.call, delta)

    def _read_item_end(self, event: JsonObject) -> Iterator[StreamEvent]:
        item = object_of(event.get("item"))
        partial = self._partial_item(event, item)
        partial.item, partial.is_done = item, True
        yield from self._emit_text(self._cutter.close())
        if item.get("type") in _CALLS:
            yield from self._end_call(partial)
        elif item.get("type") == "reasoning":
            self._reasoning_id = string_of(item, "id")
            for part in decode_item(item, self.sent.names, self.target.profile.family):
                if isinstance(part, ThinkingPart) and not self._cutter.found:
                    yield PartEnd(part)

    def _end_call(self, partial: _PartialItem) -> Iterator[StreamEvent]:
        """Yield the end of a valid call. The end of the response decides on an invalid call."""
        if partial.call is None:
            yield from self._start_call(partial)
        if partial.call is None:
            return
        if not partial.arguments and (text := argument_text(partial.item)):
            yield ToolCallDelta(partial.call, text)
        for part in decode_item(partial.item, self.sent.names, self.target.profile.family, self._reasoning_id):
            if isinstance(part, ToolCall) and part.error is None and not self._cutter.found:
                self._ended_calls.add(partial.call)
                yield ToolCallEnd(partial.call, replace(part, id=partial.call_id))

    # --- the item of an event

    def _key_of(self, event: JsonObject) -> JsonValue:
        index = event.get("output_index")
        if isinstance(index, int):
            return index
        return string_of(event, "item_id") or string_of(event.get("item"), "id") or len(self._items)

    def _partial_item(self, event: JsonObject, item: JsonObject) -> _PartialItem:
        """Return the item of an event; an item without a start event starts here, as ``item``."""
        key = self._key_of(event)
        if key not in self._items:
            self._items[key] = _PartialItem(item)
        return self._items[key]

    def _emit_text(self, text: str) -> Iterator[StreamEvent]:
        if text:
            yield TextDelta(text)

    # --- the end

    def _end(self) -> Iterator[StreamEvent]:
        if self._final is None and self._has_end_mark and self._items:
            self._final = {**self._created, "status": None}
        if self._final is None:
            raise self._truncation_error()
        yield from self._emit_text(self._cutter.close())
        items: list[JsonValue] = [partial.wire_item() for partial in self._items.values()]
        output = objects_of(self._final.get("output")) or items
        response = decode({**self._final, "output": list[JsonValue](output)}, self.sent, self.target)
        yield from self._end_calls(response)
        yield from self._end_response(response, [ChoiceEvents(0)])

    def _end_calls(self, response: Response) -> Iterator[StreamEvent]:
        for index, call in enumerate(response.choices[0].tool_calls):
            if index not in self._ended_calls:
                yield ToolCallEnd(index, call)

    _HANDLERS: ClassVar[Mapping[str, Callable[[Any, JsonObject], Iterator[StreamEvent]]]] = {
        "error": _read_error,
        "response.cancelled": _read_end,
        "response.completed": _read_end,
        "response.created": _read_start,
        "response.custom_tool_call_input.delta": _read_arguments,
        "response.failed": _read_end,
        "response.function_call_arguments.delta": _read_arguments,
        "response.in_progress": _read_start,
        "response.incomplete": _read_end,
        "response.output_item.added": _read_item,
        "response.output_item.done": _read_item_end,
        "response.output_text.delta": _read_text,
        "response.queued": _read_start,
        "response.reasoning_summary_part.added": _read_paragraph,
        "response.reasoning_summary_text.delta": _read_thinking,
        "response.reasoning_text.delta": _read_thinking,
    }


decoder = ResponsesDecoder
