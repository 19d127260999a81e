"""Bytes of a streamed reply -> JSON events, wherever the bytes are cut. Pure: no socket, no clock.

    splitter_for(framing) -> Splitter     feed(bytes) and close() give the JSON of each event that is whole

What came tells how it is cut, not what was asked for: a host that was asked for a stream may answer with one JSON object or
array, in one line or in many. So the first byte decides; ``framing`` only where there is none.

    EventStream      server-sent events: fields, comments, CR, LF or CRLF, many lines of data in one event
    Lines            lines of JSON; a line ends with LF and nothing else, for U+2028 and U+0085 stand inside texts

The words of a reply that is no stream at all (a page of HTML) are given as one text, for the codec to judge. A frame that
is not JSON is an ``LMTransportError``: it was garbled on its way, or cut off. Each byte is looked at a bounded number of
times, and no more than one event is kept, of at most ``LIMIT`` bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from pydantic_core import from_json

from sigwire.core.json import JsonValue, loads
from sigwire.errors import LMTransportError, LMUnexpectedError
from sigwire.lm.codecs.shared.interface import Framing

__all__ = ["LIMIT", "FrameDecoder", "LineDecoder", "SSEDecoder", "ServerSentEvent", "make_frame_decoder"]

LIMIT = 64 * 1024 * 1024
"""Bytes of one event. The greatest that are sent hold an image."""

_BOM = b"\xef\xbb\xbf"
_DONE = "[DONE]"
_FIELDS = b"deir:"  # data, event, id, retry and comments begin so, and no JSON does
_EXCERPT = 500


class FrameDecoder(Protocol):
    """Pieces of a reply in, JSON of whole events out. ``close`` gives what the end of the reply completes.

    What they give is to be read before the next piece is fed. It ends with an ``LMTransportError`` at an event that is not
    JSON, with an ``LMUnexpectedError`` at one that is too long: after the events before it, wherever the bytes were cut.
    """

    def feed(self, data: bytes) -> Iterator[JsonValue]: ...

    def close(self) -> Iterator[JsonValue]: ...


def make_frame_decoder(framing: Framing, limit: int = LIMIT) -> FrameDecoder:
    """A splitter for one reply, of which ``framing`` is expected.

    >>> splitter = make_frame_decoder("sse")
    >>> [*splitter.feed(b'data: {"a": 1}\\n\\ndata: {"a"')], [*splitter.feed(b": 2}\\r\\n\\r\\ndata: [DONE]")]
    ([{'a': 1}], [{'a': 2}])
    >>> [*splitter.close()], [*make_frame_decoder("sse").feed(b'{"a": 1}\\n')]
    ([], [{'a': 1}])
    """
    return _SniffingDecoder(framing, limit)


class _SniffingDecoder:
    """Waits for the first byte that is no white space, and leaves the rest to the splitter that it fits."""

    def __init__(self, framing: Framing, limit: int) -> None:
        self._framing: Framing = framing
        self._limit = limit
        self._start = b""
        self._splitter: FrameDecoder | None = None

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        if self._splitter is None:
            data = self._begin(data)
        return self._splitter.feed(data) if self._splitter is not None else iter(())

    def close(self) -> Iterator[JsonValue]:
        return self._splitter.close() if self._splitter is not None else iter(())

    def _begin(self, data: bytes) -> bytes:
        """Choose a splitter, if that can be done now; the bytes for it."""
        start = self._start + data
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        start = start.removeprefix(_BOM).lstrip(b" \t\r\n")
        if start:
            self._splitter = _json_of(start[0], self._framing, self._limit)
        self._start = b" "  # the place of a byte order mark is past
        return start


def _json_of(first: int, framing: Framing, limit: int) -> FrameDecoder:
    is_json = first in b"{[" or (framing == "ndjson" and first not in _FIELDS)
    return NdjsonDecoder(limit) if is_json else _SSEJsonDecoder(limit)


# --- server-sent events ----------------------------------------------------------------------------------------


class ServerSentEvent(NamedTuple):
    """One event: its data, the lines joined by LF, and its name, ``""`` where it has none."""

    data: str
    name: str = ""


class SSEDecoder:
    """Bytes of ``text/event-stream`` -> events. Comments, ids and waiting times are left out.

    The last event is given although the blank line behind it is missing: hosts forget it.

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

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that are whole now. Raises ``LMUnexpectedError`` for one that is too long."""
        return self._read(self._lines.feed(self._with_lf(data)))

    def close(self) -> list[ServerSentEvent]:
        """The event that the end of the reply completes, if any."""
        return [*self._read(self._lines.close()), *self._finished()]

    def _with_lf(self, data: bytes) -> bytes:
        """Every end of a line as LF. A CR ends its line at once; an LF that comes after it, in the next piece, is its own."""
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
                    events += self._finished()
            elif line.startswith(b"data:"):
                self._add(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
        return events

    def _add(self, data: bytes) -> None:
        self._size = _within(self._size + len(data) + 1, self._limit)
        self._data.append(data)

    def _finished(self) -> list[ServerSentEvent]:
        data, name = self._data, self._name
        self._data, self._name, self._size = [], b"", 0
        if not data:
            return []
        if len(data) == 1 and not name:  # nearly every event there is
            return [ServerSentEvent(data[0].decode("utf-8", "replace"))]
        return [ServerSentEvent(b"\n".join(data).decode("utf-8", "replace"), name.decode("utf-8", "replace"))]


class _SSEJsonDecoder:
    """The JSON of server-sent events, and the words of a reply that holds none."""

    def __init__(self, limit: int) -> None:
        self._stream = SSEDecoder(limit)
        self._words = b""
        self._spoke = False

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        if not self._spoke:
            self._words = (self._words + data[:_EXCERPT])[:_EXCERPT]
        return self._json(self._stream.feed(data))

    def close(self) -> Iterator[JsonValue]:
        yield from self._json(self._stream.close())
        if not self._spoke and not self._words.startswith(b":"):
            yield self._words.decode("utf-8", "replace")

    def _json(self, events: list[ServerSentEvent]) -> Iterator[JsonValue]:
        if events:
            self._spoke, self._words = True, b""
        for event in events:
            try:
                value = from_json(event.data, allow_inf_nan=False)
            except ValueError:
                yield from _refused_by_the_fast_reader(event)
            else:
                yield _named(event.name, value) if event.name else value


def _refused_by_the_fast_reader(event: ServerSentEvent) -> Iterable[JsonValue]:
    """An end mark, nothing at all, events without the blank line between them, or what only the strict reader takes."""
    if event.data.startswith(_DONE) or not event.data.strip():
        return ()
    try:
        return (_named(event.name, loads(event.data)),)
    except ValueError as fault:
        return _line_by_line(event, fault)


def _parsed(text: str) -> JsonValue:
    """As fast as it goes; what the fast reader refuses, half of a surrogate pair among it, is for the strict one to say."""
    try:
        value: JsonValue = from_json(text, allow_inf_nan=False)
    except ValueError:
        value = loads(text)
    return value


def _named(name: str, value: JsonValue) -> JsonValue:
    """An error that says so only in its event's name says so in its data."""
    if name == "error" and isinstance(value, dict) and not value.keys() & {"error", "type"}:
        return {"error": value}
    return value


def _line_by_line(event: ServerSentEvent, fault: ValueError) -> Iterator[JsonValue]:
    """Events without the blank line between them. Raises ``LMTransportError`` where it is not that."""
    lines = [line for line in event.data.split("\n") if line.strip() and not line.startswith(_DONE)]
    if len(lines) < 2:
        raise _garbled(event.data) from fault
    return map(_json_line, lines)


# --- lines -----------------------------------------------------------------------------------------------------


class LineDecoder:
    """Bytes -> lines without their LF. ``close`` gives the last one if it has no LF.

    >>> lines = LineDecoder()
    >>> lines.feed(b"a\\nb"), lines.feed(b"c\\n\\nd"), lines.close()
    ([b'a'], [b'bc', b''], [b'd'])
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit, self._size = limit, 0
        self._open: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now. Raises ``LMUnexpectedError`` for one that is too long."""
        lines = data.split(b"\n")
        self._open.append(lines[0])
        self._size += len(lines[0])
        if len(lines) > 1:
            lines[0] = b"".join(self._open)
            self._open = [lines.pop()]
            self._size = _within(len(self._open[0]), self._limit)
            _within(max(map(len, lines)), self._limit)
            return lines
        _within(self._size, self._limit)
        return []

    def close(self) -> list[bytes]:
        """The last line, if it is not empty."""
        last = b"".join(self._open)
        self._open, self._size = [], 0
        return [last] if last else []


class NdjsonDecoder:
    """The JSON of lines. A first line that is none begins a document of many lines, which the end completes."""

    def __init__(self, limit: int) -> None:
        self._lines = LineDecoder(limit)
        self._limit, self._size = limit, 0
        self._document: list[bytes] = []
        self._spoke = False

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        return self._read(self._lines.feed(data))

    def close(self) -> Iterator[JsonValue]:
        yield from self._read(self._lines.close())
        if self._document:
            yield from _elements(_json_line(b"\n".join(self._document).decode("utf-8", "replace")))

    def _read(self, lines: list[bytes]) -> Iterator[JsonValue]:
        for line in lines:
            if self._document:
                self._keep(line)
            elif line.strip():
                yield from self._values(line)

    def _values(self, line: bytes) -> list[JsonValue]:
        try:
            values = _elements(_json_line(line.decode("utf-8", "replace")))
        except LMTransportError:
            if self._spoke:
                raise
            self._keep(line)
            return []
        self._spoke = True
        return values

    def _keep(self, line: bytes) -> None:
        self._size = _within(self._size + len(line) + 1, self._limit)
        self._document.append(line)


def _elements(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [value]


def _json_line(line: str) -> JsonValue:
    try:
        return _parsed(line)
    except ValueError as fault:
        raise _garbled(line) from fault


# --- faults ----------------------------------------------------------------------------------------------------


def _garbled(text: str) -> LMTransportError:
    return LMTransportError(f"An event of the stream is not JSON; it was garbled or cut off: {text[:200]!r}.")


def _within(size: int, limit: int) -> int:
    if size > limit:
        raise LMUnexpectedError(f"An event of the stream is longer than {limit:,} bytes. Nothing more was read of it.")
    return size
