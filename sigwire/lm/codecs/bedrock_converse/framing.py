"""The binary frames of ConverseStream -> JSON events, wherever the bytes are cut. Pure: no socket, no clock.

A frame (``application/vnd.amazon.eventstream``): total length, length of the headers, CRC-32 of these eight bytes, headers,
payload, CRC-32 of all bytes before it; numbers are big-endian. Source: https://smithy.io/2.0/aws/amazon-eventstream.html.

An event is ``{type: payload}``; an exception is ``{"error": {"code": name, "message": ...}}``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from zlib import crc32

from pydantic_core import from_json

from sigwire.core.json import JsonObject, JsonValue
from sigwire.errors import LMTransportError, LMUnexpectedError
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from sigwire.lm.codecs.shared.interface import FrameDecoder
from sigwire.lm.codecs.shared.untrusted import object_of, string_of

__all__ = ["EventStreamDecoder"]

_PRELUDE = struct.Struct("!III")
_CHECKSUM = 4
_LENGTH = struct.Struct("!H")


class EventStreamDecoder:
    """Frames of one reply -> events. Raises ``LMTransportError`` for a frame with a wrong checksum or of another form.

    A reply that is no event stream (JSON, a page of HTML) is read by the decoder of server-sent events. Each byte is checked
    once, and at most one frame of at most ``limit`` bytes is kept.

    >>> [*EventStreamDecoder(100).feed(b'{"message": "no stream"}\\n')], [*EventStreamDecoder(100).close()]
    ([{'message': 'no stream'}], [])
    """

    has_end_mark = False

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._size = 0  # of the next frame, when its prelude was checked
        self._other: FrameDecoder | None = None
        self._has_frames = False

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        if self._other is None and not self._has_frames and not self._buffer and data[:1] not in (b"", b"\x00"):
            self._other = make_frame_decoder("sse", self._limit)  # a length below 16 MB starts with a zero
        if self._other is not None:
            return self._other.feed(data)
        self._buffer += data
        return self._frames()

    def close(self) -> Iterator[JsonValue]:
        if self._other is not None:
            yield from self._other.close()
        elif self._buffer:
            raise _damaged("The last frame of the stream is cut off")

    def _frames(self) -> Iterator[JsonValue]:
        while len(self._buffer) >= (self._size or _PRELUDE.size):
            if not self._size:
                self._size = self._check_prelude()
                continue
            frame = bytes(self._buffer[: self._size])
            del self._buffer[: self._size]
            self._size, self._has_frames = 0, True
            yield _event_of(frame)

    def _check_prelude(self) -> int:
        """Return the length of the next frame."""
        size, headers, checksum = _PRELUDE.unpack_from(self._buffer)
        if crc32(self._buffer[: _PRELUDE.size - _CHECKSUM]) != checksum:
            raise _damaged("The start of a frame has another checksum than it states")
        if size > self._limit:
            raise LMUnexpectedError(f"A frame of the stream is longer than {self._limit:,} bytes; it was not read.")
        if size < _PRELUDE.size + headers + _CHECKSUM:
            raise _damaged("A frame of the stream is shorter than its headers")
        return int(size)


def _event_of(frame: bytes) -> JsonValue:
    """Return the event of a whole frame whose prelude was checked."""
    _, headers_size, _ = _PRELUDE.unpack_from(frame)
    body, checksum = frame[:-_CHECKSUM], int.from_bytes(frame[-_CHECKSUM:], "big")
    if crc32(body) != checksum:
        raise _damaged("A frame of the stream has another checksum than it states")
    end = _PRELUDE.size + headers_size
    headers = _read_headers(body[_PRELUDE.size : end])
    kind, payload = headers.get(":message-type"), body[end:]
    if kind == "error":
        return {"error": {"code": headers.get(":error-code", ""), "message": headers.get(":error-message", "")}}
    data = _read_payload(payload)
    if kind == "exception":
        message = string_of(data, "message") or string_of(data, "Message") or ""
        return {"error": {"code": headers.get(":exception-type", ""), "message": message}}
    return {headers.get(":event-type", ""): data}


def _read_payload(payload: bytes) -> JsonObject:
    try:
        return object_of(from_json(payload, allow_inf_nan=False)) if payload else {}
    except ValueError as error:
        raise _damaged(f"An event of the stream is not JSON ({payload[:200]!r})") from error


_FIXED: Mapping[int, int] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""The sizes of the values of headers by type: booleans, integers, time and UUID. 6 is bytes and 7 is text, with a length."""
_TEXT = 7


def _read_headers(data: bytes) -> dict[str, str]:
    """Return the headers with a text; those of other types are skipped."""
    found: dict[str, str] = {}
    place = 0
    try:
        while place < len(data):
            name_end = place + 1 + data[place]
            name, kind = data[place + 1 : name_end].decode(), data[name_end]
            place = name_end + 1
            size = _FIXED.get(kind)
            if size is None:
                (size,) = _LENGTH.unpack_from(data, place)
                place += _LENGTH.size
            if place + size > len(data):
                raise IndexError
            if kind == _TEXT:
                found[name] = data[place : place + size].decode()
            place += size
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise _damaged("The headers of a frame cannot be read") from error
    return found


def _damaged(what: str) -> LMTransportError:
    return LMTransportError(f"{what}; it was corrupted or cut off (reading the stream).")
