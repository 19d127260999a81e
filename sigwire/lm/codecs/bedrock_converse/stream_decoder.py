"""Converse, streamed: the message starts, its blocks follow in deltas, the message stops, counts come last.

The index of an event names its block: deltas of several blocks may alternate. A text has no start; the start of a call has
its id and name. At its end a block is read by the same reader as in a whole reply. An input of no known call starts none: a
call whose block never ends, or beside such an input, is malformed without an input. The call of the last block is held back
until the stop reason shows that it was not truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from sigwire.core.events import StreamEvent, events_of
from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.parts import TextPart
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMError
from sigwire.lm.codecs.bedrock_converse.blocks import read_block
from sigwire.lm.codecs.bedrock_converse.decoding import decode, error_in_success
from sigwire.lm.codecs.bedrock_converse.framing import EventStreamDecoder
from sigwire.lm.codecs.bedrock_converse.tables import USAGE, ConverseProfile
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import key_of, object_of, string_of
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["FRAMING", "ConverseDecoder", "decoder"]

FRAMING: Framing = EventStreamDecoder
_Events: TypeAlias = Iterator[StreamEvent]


def decoder(sent: EncodedRequest, target: Target[ConverseProfile]) -> ConverseDecoder:
    """Return a decoder for one streamed reply.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.bedrock_converse import CONVERSE, encode
    >>> target = Target("bedrock", "m", CONVERSE)
    >>> stream = decoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> delta = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}}
    >>> [type(event).__name__ for event in stream.feed(delta)]
    ['ResponseStart', 'TextDelta']
    >>> end = stream.feed({"messageStop": {"stopReason": "end_turn"}})
    >>> [type(event).__name__ for event in end + stream.close()]
    ['ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """
    return ConverseDecoder(sent, target)


@dataclass(slots=True)
class _PartialContent:
    """A partial block: the data of its start and deltas, and the texts of its deltas, joined at its end."""

    kind: str
    data: JsonObject
    texts: list[str] = field(default_factory=list[str])
    lists: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    call_id: str = ""
    call: int | None = None  # its number, if the block is a call
    is_ended: bool = False  # its part was emitted
    is_lost: bool = False  # a call whose input may have gone astray

    def block(self) -> JsonObject:
        """Return the block as in a whole reply."""
        text = "".join(self.texts)
        data: JsonObject = {**self.data, **self.lists}
        match self.kind:
            case "text":
                return {"text": text}
            case "citation":
                return {"citationsContent": {"content": [{"text": text}], **data}}
            case "reasoningContent" if "redactedContent" in self.data:
                return {"reasoningContent": self.data}
            case "reasoningContent":
                return {"reasoningContent": {"reasoningText": {"text": text, **self.data}}}
            case "toolUse":
                return {"toolUse": {**data, "input": _LOST_INPUT if self.is_lost else _arguments_of(text)}}
            case kind:
                return {kind: data}


_LOST_INPUT = "{"  # no arguments: text that is no JSON makes the call malformed


def _arguments_of(text: str) -> JsonValue:
    """Return the input of a call: an object, or the text if it is none."""
    if not text.strip():
        return {}
    try:
        value: JsonValue = loads(text)
    except ValueError:
        return text
    return value


class ConverseDecoder(StreamDecoder[ConverseProfile]):
    """Events of one answer -> stream events. Raises ``LMError`` for an exception, and if the reply is truncated."""

    def __init__(self, sent: EncodedRequest, target: Target[ConverseProfile]) -> None:
        super().__init__(sent, target)
        self._choice = ChoiceEvents(0)
        self._body: JsonObject = {}
        self._blocks: list[_PartialContent] = []
        self._open: dict[int | str | None, _PartialContent] = {}  # by index
        self._has_astray_input = False
        self._whole: JsonObject | None = None  # a reply that was not streamed

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def _read(self, event: JsonObject) -> _Events:
        if "output" in event:
            self._whole = event
        for kind, payload in event.items():
            handle = self._HANDLERS.get(kind)
            if handle is not None:
                yield from handle(self, object_of(payload))

    def _message_start(self, payload: JsonObject) -> _Events:
        yield from self._start_response(None, self.target.model)

    def _message_stop(self, payload: JsonObject) -> _Events:
        yield from self._close_blocks()
        self._body |= payload

    def _metadata(self, payload: JsonObject) -> _Events:
        self._body |= payload
        yield from self._update_usage(read_usage(payload.get("usage"), USAGE).usage)

    # --- blocks

    def _block_start(self, payload: JsonObject) -> _Events:
        start = object_of(payload.get("start"))
        for kind, data in start.items():
            yield from self._open_block(key_of(payload.get("contentBlockIndex")), kind, object_of(data))

    def _open_block(self, index: int | str | None, kind: str, data: JsonObject) -> _Events:
        last, same = self._blocks[-1] if self._blocks else None, self._open.get(index)
        for block in (last, same):  # a block may have no end; a call waits for it
            if block is not None and (block.call is None or block is same):
                yield from self._end_part(block)
        yield from self._start_response(None, self.target.model)
        block = self._open[index] = _PartialContent(kind, data)
        self._blocks.append(block)
        if kind == "toolUse" and "type" not in data:
            block.call_id = self._assign_call_id(string_of(data, "toolUseId"))
            yield from self._choice.start_call(block.call_id, self.sent.names.decode(string_of(data, "name") or ""))
            block.call = self._choice.last_call

    def _block_delta(self, payload: JsonObject) -> _Events:
        index = key_of(payload.get("contentBlockIndex"))
        for kind, delta in object_of(payload.get("delta")).items():
            if index not in self._open and kind == "toolUse":
                self._has_astray_input = True
                continue
            if index not in self._open:
                yield from self._open_block(index, kind, {})
            yield from self._add_delta(self._open[index], kind, delta)

    def _add_delta(self, block: _PartialContent, kind: str, delta: JsonValue) -> _Events:
        match kind:
            case "text" if isinstance(delta, str):
                block.texts.append(delta)
                yield from self._choice.emit_text(delta)
            case "citation":
                block.kind = "citation"
                block.lists.setdefault("citations", []).append(delta)
            case "reasoningContent":
                text = string_of(delta, "text") or ""
                block.texts.append(text)
                block.data |= {name: value for name, value in object_of(delta).items() if name != "text"}
                yield from self._choice.emit_reasoning(text)
            case "toolUse":
                text = string_of(delta, "input") or ""
                block.texts.append(text)
                if block.call is not None:
                    yield from self._choice.emit_arguments(text, block.call)
            case "toolResult" if isinstance(delta, list):
                block.lists.setdefault("content", []).extend(delta)
            case _:
                block.data |= object_of(delta)

    def _block_stop(self, payload: JsonObject) -> _Events:
        block = self._open.pop(key_of(payload.get("contentBlockIndex")), None)
        if block is not None:
            yield from self._end_part(block)

    def _close_blocks(self) -> _Events:
        """End the blocks that did not end, in their order."""
        blocks, self._open = self._open, {}
        for block in blocks.values():
            block.is_lost = block.call is not None and not block.texts
            yield from self._end_part(block)

    def _end_part(self, block: _PartialContent) -> _Events:
        """Emit the part of a block that its deltas did not emit."""
        if block.is_ended:
            return
        block.is_ended = True
        block.is_lost |= block.call is not None and self._has_astray_input and not block.texts
        part = read_block(block.block(), self.target.profile.family, self.sent.names)
        if isinstance(part, ToolCall):
            self._choice.end_call(replace(part, id=block.call_id), block.call)
        elif isinstance(part, TextPart):
            self._choice.end_text()
        elif part is not None:
            yield from self._choice.emit_part(part)

    # --- the end

    def _end(self) -> _Events:
        if self._whole is not None and not self._blocks:
            yield from events_of(decode(self._whole, self.sent, self.target))
            return
        yield from self._close_blocks()
        if not string_of(self._body, "stopReason"):
            raise self._truncation_error()
        message: JsonObject = {"role": "assistant", "content": [block.block() for block in self._blocks]}
        body: JsonObject = {"output": {"message": message}, **self._body}
        yield from self._end_response(decode(body, self.sent, self.target), [self._choice])

    _HANDLERS: ClassVar[Mapping[str, Callable[[Any, JsonObject], _Events]]] = {
        "contentBlockDelta": _block_delta,
        "contentBlockStart": _block_start,
        "contentBlockStop": _block_stop,
        "messageStart": _message_start,
        "messageStop": _message_stop,
        "metadata": _metadata,
    }
