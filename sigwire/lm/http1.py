"""HTTP/1.1 as a client speaks it, without a socket: a request becomes bytes, and what comes back is read from bytes.

    head = encode_head("POST", "/v1/messages", headers)      the request line and headers, checked
    reader = ReplyReader()                                   reader.feed(data) gives the body's bytes, however data is cut
    reader.status, reader.headers                            known once reader.has_head
    reader.complete, reader.keep_alive                       whether all has come; whether the connection may be used again

Strict: what RFC 9112 calls invalid is a ``ProtocolError``, because a reply that two programs read differently is how one
answer is passed off as another. Pure; knows no timeouts, redirects or providers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

__all__ = ["ProtocolError", "ReplyReader", "encode_head"]

MAX_HEAD = 128 * 1024
_MAX_LINE = 4096  # of a chunk's size with its extensions, and of a trailer

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TOKEN = re.compile(_NAME)
_VALUE = re.compile(r"[^\r\n\0\u0100-\U0010ffff]*")
_HEAD = re.compile(rf"[!-~]+ [!-~]+ HTTP/1\.1\r\n(?:{_NAME}: {_VALUE.pattern}\r\n)*\r\n")
_HEADER = re.compile(rf"^({_NAME}):([^\r\n\0]*)(?:\r\n|\Z)", re.MULTILINE)
_BREAK = re.compile(r"[\r\n\0]")
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-9]\d\d)(?: [^\r\n]*)?", re.ASCII)
_CHUNK_LINE = re.compile(rb"([0-9a-fA-F]{1,16})[ \t]*(?:;[^\r\n]*)?\r\n")
_BODILESS = frozenset({204, 304})
_COMPRESSED = frozenset({"deflate", "gzip", "x-gzip"})


class ProtocolError(ValueError):
    """What came is not a whole HTTP/1.1 reply. The message says what was wrong, without quoting a body."""


def encode_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    r"""The request line and the headers. Raises ``ValueError`` for a header that cannot be sent; its value is not shown.

    >>> encode_head("GET", "/", {"host": "localhost"})
    b'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n'
    """
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    text = "\r\n".join(lines)
    if not _HEAD.fullmatch(text) or text.count("\r\n") != len(lines) - 1:
        raise ValueError(_unsendable(headers))
    return text.encode("latin-1")


def _unsendable(headers: Mapping[str, str]) -> str:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            return f"{name!r} is no name for a header"
        if _BREAK.search(value):
            return f"the value of the header {name!r} holds a line break (a key read from a file often does)"
        if not _VALUE.fullmatch(value):
            return f"the value of the header {name!r} holds characters that a header cannot carry"
    return "the method or target cannot be sent"


class _Unzip(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class ReplyReader:
    """Reads one reply. ``head_only`` is for answers that never have a body (to CONNECT).

    >>> reader = ReplyReader()
    >>> reader.feed(b"HTTP/1.1 200 OK\\r\\ncontent-len"), reader.feed(b"gth: 2\\r\\n\\r\\nok")
    (b'', b'ok')
    >>> reader.status, reader.headers, reader.complete, reader.keep_alive
    (200, {'content-length': '2'}, True, True)
    """

    __slots__ = (
        "_compressed",
        "_head_only",
        "_left",
        "_may_stay",
        "_pending",
        "_step",
        "_unzip",
        "complete",
        "has_head",
        "headers",
        "status",
    )

    def __init__(self, *, head_only: bool = False) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.has_head = False
        self.complete = False
        self._head_only = head_only
        self._may_stay = True
        self._pending = b""
        self._left = 0
        self._step: Callable[[bytes, int, list[bytes]], int] | None = self._read_head
        self._compressed = False
        self._unzip: _Unzip | None = None

    @property
    def keep_alive(self) -> bool:
        """Whether the connection is at the start of a new exchange, and the server keeps it open."""
        return self.complete and self._may_stay and not self._pending

    @property
    def started(self) -> bool:
        """Whether anything has come."""
        return self.has_head or bool(self._pending)

    def feed(self, data: bytes) -> bytes:
        """Take what came; give the part of the body that is in it. Raises ``ProtocolError``."""
        data = self._pending + data if self._pending else data
        body: list[bytes] = []
        position = 0
        while self._step is not None and (after := self._step(data, position, body)) >= 0:
            position = after
        self._pending = data[position:]
        piece = body[0] if len(body) == 1 else b"".join(body)
        return self._unzipped(piece) if self._compressed else piece

    def end(self) -> None:
        """The connection was closed. Raises ``ProtocolError`` unless that is where this reply ends."""
        if self._step == self._read_until_close:
            self._finish()
            self._unzipped(b"")
        if not self.complete:
            raise ProtocolError(self._cut_off())

    def _cut_off(self) -> str:
        if not self.started:
            return "the server closed the connection without a reply"
        if not self.has_head:
            return "the server closed the connection in the middle of the reply's head"
        missing = f" ({self._left} bytes are missing)" if self._step == self._read_sized else ""
        return f"the server closed the connection in the middle of the reply's body{missing}"

    # Each step takes (data, position, body) and gives the position after what it used, or -1 to wait for more.

    def _read_head(self, data: bytes, position: int, body: list[bytes]) -> int:
        end = data.find(b"\r\n\r\n", position)
        start = data[position : position + 7]
        if not b"HTTP/1.".startswith(start) or end - position > MAX_HEAD:
            raise ProtocolError("what came is not an HTTP/1.1 reply")
        if end < 0:
            if len(data) - position > MAX_HEAD:
                raise ProtocolError(f"the reply's head is longer than {MAX_HEAD} bytes")
            return -1
        version, status, headers = _parse_head(data[position:end].decode("latin-1"))
        if status == 101:
            raise ProtocolError("the server switched to another protocol")
        if status >= 200:  # what comes before is provisional, such as 103 Early Hints
            self.status, self.headers, self.has_head = status, headers, True
            self._frame(version)
        return end + 4

    def _frame(self, version: str) -> None:
        """How the body is delimited: RFC 9112, section 6.3."""
        headers = self.headers
        connection = headers.get("connection", "").lower()
        self._may_stay = "close" not in connection if version == "1" else "keep-alive" in connection
        if self._head_only or self.status in _BODILESS:
            self._finish()
            return
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        self._compressed = _is_compressed(headers.get("content-encoding"))
        if coding is not None:
            if coding.lower() != "chunked":
                raise ProtocolError(f"the reply's transfer-encoding is {coding!r}, which was not asked for")
            self._may_stay &= length is None  # both: a sign of a confused or hostile hop
            self._step = self._read_chunk_line
        elif length is not None:
            self._left = _content_length(length)
            self._step = self._read_sized
            if not self._left:
                self._finish()
        else:
            self._may_stay = False
            self._step = self._read_until_close

    def _read_sized(self, data: bytes, position: int, body: list[bytes]) -> int:
        piece = data[position : position + self._left] if position or len(data) > self._left else data
        if not piece:
            return -1
        body.append(piece)
        self._left -= len(piece)
        if not self._left:
            self._finish()
        return position + len(piece)

    def _read_until_close(self, data: bytes, position: int, body: list[bytes]) -> int:
        if position == len(data):
            return -1
        body.append(data[position:])
        return len(data)

    def _read_chunk_line(self, data: bytes, position: int, body: list[bytes]) -> int:
        line = _CHUNK_LINE.match(data, position)
        if not line:
            if _line_end(data, position) < 0:
                return -1
            raise ProtocolError("a chunk of the reply has no size")
        start, size = line.end(), int(line.group(1), 16)
        end = start + size
        if size and data[end : end + 2] == b"\r\n":  # nearly always: all of it is there
            body.append(data[start:end])
            return end + 2
        self._left = size
        self._step = self._read_chunk if size else self._read_trailer
        return start

    def _read_chunk(self, data: bytes, position: int, body: list[bytes]) -> int:
        piece = data[position : position + self._left]
        if piece:
            body.append(piece)
            self._left -= len(piece)
            return position + len(piece)
        if self._left or len(data) < position + 2:
            return -1
        if data[position : position + 2] != b"\r\n":
            raise ProtocolError("a chunk of the reply is longer than it says")
        self._step = self._read_chunk_line
        return position + 2

    def _read_trailer(self, data: bytes, position: int, body: list[bytes]) -> int:
        end = _line_end(data, position)
        if end < 0:
            return -1
        if end == position:
            self._finish()
        return end + 2

    def _finish(self) -> None:
        self._step = None
        self.complete = True

    def _unzipped(self, piece: bytes) -> bytes:
        if piece and self._unzip is None:
            self._unzip = zlib.decompressobj(47)  # 32 + 15: zlib's or gzip's own header, whichever is there
        if self._unzip is None:
            return piece
        try:
            plain = self._unzip.decompress(piece)
        except zlib.error as error:
            raise ProtocolError("the reply's compressed body is damaged") from error
        if self.complete and not self._unzip.eof:
            raise ProtocolError("the reply's compressed body is cut off")
        return plain


def _parse_head(text: str) -> tuple[str, int, dict[str, str]]:
    """The minor version, the status, and the headers by lower-case name; repeated ones are joined by commas."""
    first, more, rest = text.partition("\r\n")
    found = _STATUS_LINE.fullmatch(first)
    if not found:
        raise ProtocolError("the reply's first line is no HTTP/1.1 status line")
    pairs = _HEADER.findall(rest)
    if len(pairs) != rest.count("\r\n") + bool(more):
        raise ProtocolError("a line of the reply's head is no header")
    headers: dict[str, str] = {}
    for name, value in pairs:
        name, value = name.lower(), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return found.group(1), int(found.group(2)), headers


def _content_length(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):  # two different ones came as "1, 2"
        raise ProtocolError("the reply's content-length is no number")
    return int(text)


def _is_compressed(coding: str | None) -> bool:
    """Some servers compress although nobody asked them to."""
    if coding is None or coding.lower() in ("", "identity"):
        return False
    if coding.lower() not in _COMPRESSED:
        raise ProtocolError(f"the reply's content-encoding is {coding!r}, which was not asked for")
    return True


def _line_end(data: bytes, position: int) -> int:
    end = data.find(b"\r\n", position, position + _MAX_LINE)
    if end < 0 and len(data) - position >= _MAX_LINE:
        raise ProtocolError("a line between the reply's chunks does not end")
    return end
