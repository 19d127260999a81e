"""The events of a Converse answer, and the binary frames that carry them (``application/vnd.amazon.eventstream``)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from zlib import crc32

from sigwire.core.json import JsonObject, dumps
from sigwire.testing.chunking import Cutter

__all__ = ["EventStreamFraming", "encode_frame", "events"]


def encode_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one frame with text headers and both checksums.

    >>> encode_frame({}, b"").hex()
    '000000100000000005c248eb7d98c8ff'
    """
    head = b"".join(
        bytes((len(name.encode()),)) + name.encode() + b"\x07" + struct.pack("!H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", len(head) + len(payload) + 16, len(head))
    frame = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return frame + struct.pack("!I", crc32(frame))


@dataclass(frozen=True, slots=True)
class EventStreamFraming:
    """Frames of events ``{type: payload}``. A type that ends with "Exception" is sent as an exception.

    >>> EventStreamFraming().frame({"messageStop": {}}, first=True)[12:26]
    b'\\r:message-type'
    """

    content_type: ClassVar[str] = "application/vnd.amazon.eventstream"

    def frame(self, event: JsonObject, *, first: bool) -> bytes:
        ((kind, payload),) = event.items()
        kinds = ("exception", ":exception-type") if kind.endswith("Exception") else ("event", ":event-type")
        headers = {":message-type": kinds[0], kinds[1]: kind, ":content-type": "application/json"}
        return encode_frame(headers, dumps(payload).encode())

    def ping(self) -> bytes:
        return b""  # the service sends none

    def end(self, *, empty: bool, failed: bool = False) -> bytes:
        return b""


def events(body: JsonObject, cut: Cutter) -> Iterator[JsonObject]:
    """Yield the events of a whole answer."""
    answer: Any = body
    message = answer["output"]["message"]
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(message["content"]):
        ((kind, data),) = block.items()
        if kind in _AT_START:
            start = {name: value for name, value in data.items() if name != _AT_START[kind]}
            yield {"contentBlockStart": {"contentBlockIndex": index, "start": {kind: start}}}
        for delta in _deltas(kind, data, cut):
            yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": {kind: delta}}}
        yield {"contentBlockStop": {"contentBlockIndex": index}}
    yield {"messageStop": {"stopReason": body["stopReason"]}}
    yield {"metadata": {"usage": body["usage"], "metrics": body["metrics"]}}


_AT_START: Mapping[str, str] = {"image": "source", "toolResult": "content", "toolUse": "input"}
"""The blocks with a start, and the member that comes in deltas."""


def _deltas(kind: str, data: Any, cut: Cutter) -> Iterator[Any]:
    if kind == "text":
        yield from cut(data)
    elif kind == "toolUse":
        yield from ({"input": text} for text in cut(dumps(data["input"])))
    elif kind == "reasoningContent" and "reasoningText" in data:
        reasoned = data["reasoningText"]
        yield from ({"text": text} for text in cut(reasoned["text"]))
        yield {"signature": reasoned["signature"]}
    elif kind == "toolResult":
        yield data["content"]
    else:
        yield {name: value for name, value in data.items() if name != "format"}
