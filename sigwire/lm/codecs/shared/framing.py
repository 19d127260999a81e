"""Bytes of a streamed reply -> JSON events, wherever the bytes are cut. Pure: no socket, no clock.

The first byte decides how the reply is decoded, ``framing`` only if that byte is ambiguous: a host may answer a request
for a stream with one JSON object or array, on one line or on many.

``[DONE]`` ends the stream; nothing behind it is read. A reply that is no stream (a page of HTML) is yielded as one text,
for the codec to judge. A frame that is not JSON is an ``LMTransportError``: corrupted in transit or truncated. Each byte is
read a bounded number of times, and at most one event of at most ``LIMIT`` bytes is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from typing import Literal, NamedTuple

from pydantic_core import from_json

from sigwire.core.json import JsonValue, loads
from sigwire.errors import LMTransportError, LMUnexpectedError
from sigwire.lm.codecs.shared.interface import FrameDecoder, Framing

__all__ = ["LIMIT", "LineDecoder", "SSEDecoder", "ServerSentEvent", "make_frame_decoder"]

LIMIT = 64 * 1024 * 1024
"""Bytes of one event. The largest known events hold an image."""

_BOM = b"\xef\xbb\xbf"
_DONE = "[DONE]"
_FIELDS = b"deir:"  # first bytes of data, event, id, retry and comments; no JSON starts with them
_EXCERPT = 500


def make_frame_decoder(framing: Framing, limit: int = LIMIT) -> FrameDecoder:
    """Return a decoder for one reply that is expected in ``framing``.

    >>> decoder = make_frame_decoder("sse")
    >>> [*decoder.feed(b'data: {"a": 1}\\n\\ndata: {"a"')], [*decoder.feed(b": 2}\\r\\n\\r\\ndata: [DONE]")]
    ([{'a': 1}], [{'a': 2}])
    >>> [*decoder.close()], [*make_frame_decoder("sse").feed(b'{"a": 1}\\n')]
    ([], [{'a': 1}])
    """
    return framing(limit) if callable(framing) else _SniffingDecoder(framing, limit)


class _SniffingDecoder:
    """Choose the decoder by the first byte that is no white space."""

    def __init__(self, framing: Literal["ndjson", "sse"], limit: int) -> None:
        self._framing: Literal["ndjson", "sse"] = framing
        self._limit = limit
        self._start = b""
        self._decoder: FrameDecoder | None = None

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        if self._decoder is None:
            data = self._choose_decoder(data)
        return self._decoder.feed(data) if self._decoder is not None else iter(())

    def close(self) -> Iterator[JsonValue]:
        return self._decoder.close() if self._decoder is not None else iter(())

    @property
    def has_end_mark(self) -> bool:
        return self._decoder is not None and self._decoder.has_end_mark

    def _choose_decoder(self, data: bytes) -> bytes:
        start = self._start + data
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        start = start.removeprefix(_BOM).lstrip(b" \t\r\n")
        if start:
            self._decoder = _decoder_for(start[0], self._framing, self._limit)
        self._start = b" "  # a byte order mark cannot follow
        return start


def _decoder_for(first: int, framing: Literal["ndjson", "sse"], limit: int) -> FrameDecoder:
    is_json = first in b"{[" or (framing == "ndjson" and first not in _FIELDS)
    return NdjsonDecoder(limit) if is_json else _SSEJsonDecoder(limit)


# --- server-sent events ----------------------------------------------------------------------------------------


class ServerSentEvent(NamedTuple):
    """One event: its data, lines joined by LF, and its name or ``""``."""

    data: str
    name: str = ""


class SSEDecoder:
    """Bytes of ``text/event-stream`` -> events. Comments, ids and retry times are dropped.

    ``close`` returns the last event even without the blank line behind it, which some hosts omit.

    >>> stream = SSEDecoder()
    >>> stream.feed(b": ping\\nevent: x\\ndata: a\\ndata: b\\n"), stream.close()
    ([], [ServerSentEvent(data='a\\nb', name='x')])
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._lines = LineDecoder(limit)
        self._limit, self._size = limit, 0
        self._data: list[bytes] = []
        self._name = b""
        self._after_cr = False

    @property
    def is_between_events(self) -> bool:
        """Whether the next byte starts an event."""
        return not (self._data or self._name or self._after_cr or self._lines.has_partial_line)

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Return the events that are complete. Raises ``LMUnexpectedError`` for one that is too long."""
        return self._read(self._lines.feed(self._normalize_line_ends(data)))

    def close(self) -> list[ServerSentEvent]:
        """Return the event that the end of the reply completes, if any."""
        return [*self._read(self._lines.close()), *self._end_event()]

    def _normalize_line_ends(self, data: bytes) -> bytes:
        """Replace CR and CRLF by LF. A CR ends its line at once; an LF at the start of the next chunk belongs to it."""
        if self._after_cr and data:
            data, self._after_cr = data.removeprefix(b"\n"), False
        if b"\r" not in data:
            return data
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read(self, lines: Iterable[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for line in lines:
            if not line:
                if self._data or self._name:
                    events += self._end_event()
            elif line.startswith(b"data:"):
                self._add(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
        return events

    def _add(self, data: bytes) -> None:
        self._size = _check_size(self._size + len(data) + 1, self._limit)
        self._data.append(data)

    def _end_event(self) -> list[ServerSentEvent]:
        data, name = self._data, self._name
        self._data, self._name, self._size = [], b"", 0
        if not data:
            return []
        if len(data) == 1 and not name:  # nearly every event
            return [ServerSentEvent(data[0].decode("utf-8", "replace"))]
        return [ServerSentEvent(b"\n".join(data).decode("utf-8", "replace"), name.decode("utf-8", "replace"))]


class _SSEJsonDecoder:
    """The JSON of server-sent events, and the text of a reply without events."""

    def __init__(self, limit: int) -> None:
        self._stream = SSEDecoder(limit)
        self._limit = limit
        self._text = b""
        self._has_events = self.has_end_mark = False
        self._is_between_events = True

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        """Return the JSON of the complete events. Nearly all are one line of data: these are parsed where they stand."""
        if self.has_end_mark:
            return iter(())
        found: list[JsonValue] = []
        at = 0
        if self._is_between_events and len(data) <= self._limit and b"\r" not in data:
            while data.startswith(b"data:", at) and (end := data.find(b"\n\n", at)) == data.find(b"\n", at) > 0:
                try:
                    found.append(from_json(data[at + 5 : end], allow_inf_nan=False))
                except ValueError:
                    break
                at = end + 2
        if found:
            self._has_events, self._text = True, b""
        return iter(found) if at and at == len(data) else chain(found, self._feed_lines(data[at:]))

    def _feed_lines(self, data: bytes) -> Iterator[JsonValue]:
        """Read any events, up to the end of an incomplete one that the chunk before began."""
        cut = 0 if self._is_between_events else data.find(b"\n\n") + 2
        part = data[:cut] if cut > 1 else data
        if not self._has_events:
            self._text = (self._text + part[:_EXCERPT])[:_EXCERPT]
        events = self._stream.feed(part)
        self._is_between_events = self._stream.is_between_events
        parsed = self._json(events)
        return chain(parsed, self._feed_later(data[cut:])) if 1 < cut < len(data) else parsed

    def _feed_later(self, data: bytes) -> Iterator[JsonValue]:
        yield from self.feed(data)

    def close(self) -> Iterator[JsonValue]:
        yield from self._json(self._stream.close())
        if not self._has_events and not self._text.startswith(b":"):
            yield self._text.decode("utf-8", "replace")

    def _json(self, events: list[ServerSentEvent]) -> Iterator[JsonValue]:
        if events:
            self._has_events, self._text = True, b""
        for event in events:
            if self.has_end_mark:
                return
            try:
                value = from_json(event.data, allow_inf_nan=False)
            except ValueError:
                yield from self._parse_strictly(event)
            else:
                yield _as_error(event.name, value) if event.name else value

    def _parse_strictly(self, event: ServerSentEvent) -> Iterable[JsonValue]:
        """Read an end mark, an empty event, events without a blank line between them, or JSON for the strict parser."""
        data = "\n".join(takewhile(lambda line: not line.startswith(_DONE), event.data.split("\n")))
        self.has_end_mark = len(data) < len(event.data)
        if not data.strip():
            return ()
        try:
            return (_as_error(event.name, loads(data)),)
        except ValueError as error:
            return _line_by_line(data, error)


def _parse(text: str) -> JsonValue:
    """Parse with the fast parser, then with the strict one, which accepts lone surrogates."""
    try:
        value: JsonValue = from_json(text, allow_inf_nan=False)
    except ValueError:
        value = loads(text)
    return value


def _as_error(name: str, value: JsonValue) -> JsonValue:
    """Wrap the data of an event named "error" as an error, unless the data has a type or an error."""
    if name == "error" and isinstance(value, dict) and not value.keys() & {"error", "type"}:
        return {"error": value}
    return value


def _line_by_line(data: str, error: ValueError) -> Iterator[JsonValue]:
    """Read events without a blank line between them. Raises ``LMTransportError`` for any other text."""
    lines = [line for line in data.split("\n") if line.strip()]
    if len(lines) < 2:
        raise _invalid_json_error(data) from error
    return map(_json_line, lines)


# --- lines -----------------------------------------------------------------------------------------------------


class LineDecoder:
    """Bytes -> lines without their LF; texts contain U+2028 and U+0085. ``close`` returns the last line if it has no LF.

    >>> lines = LineDecoder()
    >>> lines.feed(b"a\\nb"), lines.feed(b"c\\n\\nd"), lines.close()
    ([b'a'], [b'bc', b''], [b'd'])
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit, self._size = limit, 0
        self._partial_line: list[bytes] = []

    @property
    def has_partial_line(self) -> bool:
        """Whether the start of a line is held back until its end arrives."""
        return self._size > 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete. Raises ``LMUnexpectedError`` for one that is too long."""
        lines = data.split(b"\n")
        self._partial_line.append(lines[0])
        self._size += len(lines[0])
        if len(lines) > 1:
            lines[0] = b"".join(self._partial_line)
            self._partial_line = [lines.pop()]
            self._size = _check_size(len(self._partial_line[0]), self._limit)
            _check_size(max(map(len, lines)), self._limit)
            return lines
        _check_size(self._size, self._limit)
        return []

    def close(self) -> list[bytes]:
        """Return the last line if it is not empty."""
        last = b"".join(self._partial_line)
        self._partial_line, self._size = [], 0
        return [last] if last else []


class NdjsonDecoder:
    """The JSON of lines. If the first line is no JSON, the whole reply is one document, complete at its end."""

    has_end_mark = False

    def __init__(self, limit: int) -> None:
        self._lines = LineDecoder(limit)
        self._limit, self._size = limit, 0
        self._document: list[bytes] = []
        self._has_events = False

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        return self._read(self._lines.feed(data))

    def close(self) -> Iterator[JsonValue]:
        yield from self._read(self._lines.close())
        if self._document:
            yield from _elements(_json_line(b"\n".join(self._document).decode("utf-8", "replace")))

    def _read(self, lines: list[bytes]) -> Iterator[JsonValue]:
        for line in lines:
            if self._document:
                self._add_to_document(line)
            elif line.strip():
                yield from self._values(line)

    def _values(self, line: bytes) -> list[JsonValue]:
        try:
            values = _elements(_json_line(line.decode("utf-8", "replace")))
        except LMTransportError:
            if self._has_events:
                raise
            self._add_to_document(line)
            return []
        self._has_events = True
        return values

    def _add_to_document(self, line: bytes) -> None:
        self._size = _check_size(self._size + len(line) + 1, self._limit)
        self._document.append(line)


def _elements(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _json_line(line: str) -> JsonValue:
    try:
        return _parse(line)
    except ValueError as error:
        raise _invalid_json_error(line) from error


# --- errors ----------------------------------------------------------------------------------------------------


def _invalid_json_error(text: str) -> LMTransportError:
    return LMTransportError(f"An event of the stream is not JSON; it was corrupted or cut off: {text[:200]!r}.")


def _check_size(size: int, limit: int) -> int:
    if size > limit:
        raise LMUnexpectedError(f"An event of the stream is longer than {limit:,} bytes; the rest was not read.")
    return size
