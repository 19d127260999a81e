"""Messages, streamed: the message starts, its blocks follow in deltas, and the message ends.

The data of an event holds its type, so hosts may omit the event's name. At its end a block is read by the same readers as
in a whole reply. Pings and unknown events are ignored. An error may come at any time, under status 200. The stop reason
ends an answer; with content, ``message_stop`` or ``[DONE]`` does as well.

The index of an event names its block: deltas of several blocks may alternate. The input of a call is joined at the end of
its block. A block that ends without an input means no arguments; a call whose block never ends, or beside an input of no
known block, is malformed without one. The call of the last block is held back until the stop reason shows that it was not
truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

from sigwire.core.events import StreamEvent, events_of
from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.parts import TextPart
from sigwire.core.response import Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMError
from sigwire.lm.codecs.anthropic.blocks import read_block
from sigwire.lm.codecs.anthropic.decoding import decode, error_in_success
from sigwire.lm.codecs.anthropic.profiles import MessagesProfile
from sigwire.lm.codecs.anthropic.tables import USAGE
from sigwire.lm.codecs.shared.interface import EncodedRequest, Framing, Target
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents, StreamDecoder
from sigwire.lm.codecs.shared.untrusted import key_of, object_of, remove_members, string_of
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["FRAMING", "MessageDecoder", "decoder"]

FRAMING: Framing = "sse"


@dataclass(slots=True)
class _PartialBlock:
    """A partial block: its data at the start, and the deltas of its texts, by field."""

    data: JsonObject
    deltas: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    citations: list[JsonValue] = field(default_factory=list[JsonValue])
    call_id: str = ""
    call: int | None = None  # its number, if the block is a call
    is_ended: bool = False  # its part was emitted
    is_lost: bool = False  # a call whose input may have gone astray

    def add(self, name: str, delta: str) -> None:
        self.deltas.setdefault(name, []).append(delta)

    def body(self) -> JsonObject:
        texts: JsonObject = {
            name: (string_of(self.data, name) or "") + "".join(deltas)
            for name, deltas in self.deltas.items()
            if name != _INPUT
        }
        cited: JsonObject = {"citations": self.citations} if self.citations else {}
        given: JsonObject = LOST_INPUT if self.is_lost else _input_of("".join(self.deltas.get(_INPUT, ())))
        return {**self.data, **texts, **cited, **given}


_INPUT = "input"
LOST_INPUT: JsonObject = {_INPUT: "{"}  # no arguments: text that is no JSON makes the call malformed


def _input_of(text: str) -> JsonObject:
    """Return the input of a call: an object, or the text if it is none; ``{}`` keeps the input of the block's start."""
    if not text.strip():
        return {}
    try:
        return {_INPUT: loads(text)}
    except ValueError:
        return {_INPUT: text}


_Events: TypeAlias = Iterator[StreamEvent]
_Handler: TypeAlias = Callable[[Any, JsonObject], _Events]


class MessageDecoder(StreamDecoder[MessagesProfile]):
    """Events of one answer -> stream events. Raises ``LMError`` for an error event, and if the reply is truncated.

    A decoder that was closed on a paused turn accepts the events of the reply that continues it.

    >>> from sigwire.core.messages import Message
    >>> from sigwire.core.request import Request
    >>> from sigwire.lm.codecs.anthropic import ANTHROPIC, encode
    >>> target = Target("anthropic", "m", ANTHROPIC)
    >>> stream = MessageDecoder(encode(Request((Message.user("q"),)), target, stream=True), target)
    >>> delta = {"type": "text_delta", "text": "Hi"}
    >>> [type(event).__name__ for event in stream.feed({"type": "content_block_delta", "index": 0, "delta": delta})]
    ['ResponseStart', 'TextDelta']
    >>> end = stream.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    >>> [type(event).__name__ for event in end + stream.close()]
    ['UsageUpdate', 'ChoiceEnd', 'ResponseEnd']
    """

    def __init__(self, sent: EncodedRequest, target: Target[MessagesProfile]) -> None:
        super().__init__(sent, target)
        self._choice = ChoiceEvents(0)
        self._bodies: list[JsonObject] = []  # of paused turns
        self._paused_usage = Usage()
        self._whole: JsonObject | None = None  # a reply that was not streamed
        self._message: JsonObject = {}
        self._blocks: list[_PartialBlock] = []
        self._open: dict[int | str | None, _PartialBlock] = {}  # by index
        self._has_astray_input = False

    def _failure(self, event: JsonValue) -> LMError:
        return error_in_success(event, self.target)

    def _read(self, event: JsonObject) -> _Events:
        kind = string_of(event, "type")
        handle = self._HANDLERS.get(kind or "message")
        if handle is not None:
            yield from handle(self, event)
        elif kind == "error":
            raise error_in_success({**event, "error": remove_members(event, {"type"})}, self.target)

    # --- the message

    def _buffer_reply(self, event: JsonObject) -> _Events:
        """Keep a whole reply that the host sent in place of a stream."""
        if isinstance(event.get("content"), list | str):
            self._whole = event
        yield from ()

    def _message_start(self, event: JsonObject) -> _Events:
        message = object_of(event.get("message"))
        self._message = {**self._message, **message}
        yield from self._start_response(string_of(message, "id"), string_of(message, "model"))
        if "usage" in message:
            yield from self._count(message["usage"])

    def _message_delta(self, event: JsonObject) -> _Events:
        yield from self._close_blocks()
        delta = object_of(event.get("delta"))
        self._message = {**self._message, **delta}
        yield from self._count(event.get("usage"))

    def _count(self, usage: JsonValue) -> _Events:
        """Update token counts. Each count is the total of the message and replaces the last one."""
        counts: JsonObject = {**object_of(self._message.get("usage")), **remove_members(object_of(usage), ())}
        if counts:
            self._message = {**self._message, "usage": counts}
        yield from self._update_usage(self._paused_usage + read_usage(self._message.get("usage"), USAGE).usage)

    def _message_stop(self, event: JsonObject) -> _Events:
        self._has_end_mark = True
        yield from ()

    # --- blocks

    def _block_start(self, event: JsonObject) -> _Events:
        yield from self._start_response(None, None)
        yield from self._open_block(key_of(event.get("index")), object_of(event.get("content_block")))

    def _open_block(self, index: int | str | None, data: JsonObject) -> _Events:
        last, same = self._blocks[-1] if self._blocks else None, self._open.get(index)
        for block in (last, same):  # some hosts omit the end of blocks; a call waits for it
            if block is not None and (block.call is None or block is same):
                yield from self._end_part(block)
        cited = data.get("citations")
        block = _PartialBlock(data, citations=[*cited] if isinstance(cited, list) else [])
        self._open[index] = block
        self._blocks.append(block)
        kind = string_of(data, "type")
        if kind == "tool_use":
            block.call_id = self._assign_call_id(string_of(data, "id"))
            yield from self._choice.start_call(block.call_id, self.sent.names.decode(string_of(data, "name") or ""))
            block.call = self._choice.last_call
        elif kind == "text":
            yield from self._choice.emit_text(string_of(data, "text") or "")
        elif kind == "thinking":
            yield from self._choice.emit_reasoning(string_of(data, "thinking") or "")

    def _block_delta(self, event: JsonObject) -> _Events:
        delta, index = object_of(event.get("delta")), key_of(event.get("index"))
        kind = string_of(delta, "type") or ""
        block_type = _STARTED_BY.get(kind)
        block = self._open.get(index)
        if block_type is not None and (block is None or string_of(block.data, "type") != block_type):
            # Some hosts omit the start of blocks.
            yield from self._start_response(None, None)
            yield from self._open_block(index, {"type": block_type})
            block = self._open.get(index)
        add = self._DELTAS.get(kind)
        if add is not None and block is not None:
            yield from add(self, block, delta)
        self._has_astray_input |= kind == "input_json_delta" and block is None

    def _block_stop(self, event: JsonObject) -> _Events:
        block = self._open.pop(key_of(event.get("index")), None)
        if block is not None:
            yield from self._end_part(block)

    def _close_blocks(self) -> _Events:
        """End the blocks that did not end, in their order."""
        blocks, self._open = self._open, {}
        for block in blocks.values():
            block.is_lost = block.call is not None and _INPUT not in block.deltas and not block.data.get(_INPUT)
            yield from self._end_part(block)

    def _end_part(self, block: _PartialBlock) -> _Events:
        """Emit the part of a block that its deltas did not emit."""
        if block.is_ended:
            return
        block.is_ended = True
        if block.call is not None and self._has_astray_input and _INPUT not in block.deltas:
            block.is_lost = True
        for part in read_block(block.body(), self.target.profile.family, self.sent.names):
            if isinstance(part, ToolCall):
                self._choice.end_call(replace(part, id=block.call_id), block.call)
            elif isinstance(part, TextPart):
                self._choice.end_text()
            else:
                yield from self._choice.emit_part(part)

    # --- deltas

    def _text(self, block: _PartialBlock, delta: JsonObject) -> _Events:
        text = string_of(delta, "text") or ""
        block.add("text", text)
        yield from self._choice.emit_text(text)

    def _thinking(self, block: _PartialBlock, delta: JsonObject) -> _Events:
        text = string_of(delta, "thinking") or ""
        block.add("thinking", text)
        yield from self._choice.emit_reasoning(text)

    def _signature(self, block: _PartialBlock, delta: JsonObject) -> _Events:
        block.data = {**block.data, "signature": string_of(delta, "signature") or ""}
        yield from ()

    def _input(self, block: _PartialBlock, delta: JsonObject) -> _Events:
        text = string_of(delta, "partial_json") or ""
        block.add(_INPUT, text)
        if string_of(block.data, "type") == "tool_use":
            yield from self._choice.emit_arguments(text, block.call)

    def _citation(self, block: _PartialBlock, delta: JsonObject) -> _Events:
        block.citations.append(delta.get("citation"))
        yield from ()

    def _content(self, block: _PartialBlock, delta: JsonObject) -> _Events:
        block.data = {**block.data, **remove_members(delta, {"type", "content"})}
        block.add("content", string_of(delta, "content") or "")
        yield from ()

    # --- the end

    def _end(self) -> _Events:
        if self._whole is not None and not self._message and not self._blocks:
            yield from events_of(decode(self._whole, self.sent, self.target))
            return
        yield from self._close_blocks()
        if not (string_of(self._message, "stop_reason") or (self._has_end_mark and self._blocks)):
            raise self._truncation_error()
        body: JsonObject = {**self._message, "content": [block.body() for block in self._blocks]}
        self._bodies.append(body)
        bodies: JsonValue = body if len(self._bodies) == 1 else cast(JsonValue, self._bodies.copy())
        response = decode(bodies, self.sent, self.target)
        self._paused_usage = response.usage
        self._message, self._blocks, self._has_end_mark, self._has_astray_input = {}, [], False, False
        yield from self._end_response(response, [self._choice])

    _HANDLERS: ClassVar[Mapping[str, _Handler]] = {
        "content_block_delta": _block_delta,
        "content_block_start": _block_start,
        "content_block_stop": _block_stop,
        "message": _buffer_reply,
        "message_delta": _message_delta,
        "message_start": _message_start,
        "message_stop": _message_stop,
    }
    _DELTAS: ClassVar[Mapping[str, Callable[[Any, _PartialBlock, JsonObject], _Events]]] = {
        "citations_delta": _citation,
        "compaction_delta": _content,
        "input_json_delta": _input,
        "signature_delta": _signature,
        "text_delta": _text,
        "thinking_delta": _thinking,
    }


decoder = MessageDecoder


_STARTED_BY: Mapping[str, str] = {"text_delta": "text", "thinking_delta": "thinking"}
"""The block types that a delta can start."""
