"""Blocking requests: ``http.client`` over connections that are kept, and bounded by a deadline. Knows no proxies.

    lines = Lines(keep_alive, context)         the idle connections, for any thread; not for a forked child
    reply = lines.open(trip)                   sends, and reads the reply's head
    reply.read(), reply.next()                 all of the body, or its next piece, b"" after the last
    reply.finish()                             keeps the connection where the reply allows it, else closes it

The standard library reads the replies. Added is what it leaves open: every wait ends at the request's deadline (``_Line``), and
a reply that could be read in two ways, or is not whole, is an error and not a short answer (``_Reply``).
"""

from __future__ import annotations

import io
import os
import re
import socket
import ssl
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from typing import Any, NoReturn, cast

from sigwire.errors import LMError
from sigwire.lm.routes import Origin
from sigwire.lm.trips import ProtocolError, Trip, Unpacker, configured, explained, read_head, time_left
from sigwire.streams import StreamLeft, listening, on_leave

__all__ = ["BlockingReply", "Lines"]

_PIECE = 64 * 1024
_CONTROL = re.compile(r"[\r\n\0]")


# --- a connection, and what http.client reads from it --------------------------------------------------


class _Line:
    """A connection to an origin. Every wait ends at ``deadline``."""

    __slots__ = ("deadline", "ended", "generation", "has_more", "left", "origin", "since", "socket")

    def __init__(self, connected: socket.socket, origin: Origin, generation: int) -> None:
        self.socket, self.origin, self.generation = connected, origin, generation
        self.deadline: float | None = None
        self.since = 0.0
        self.ended = False  # the other side has closed
        self.has_more = False  # more came than belongs to the reply
        self.left = False  # the stream that this was part of was left

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Inside, who leaves the stream that this is part of ends all waiting. Raises ``StreamLeft`` then."""
        try:
            with on_leave(self._leave):
                yield
        except Exception:
            if self.left:
                raise StreamLeft("the stream was left before its end") from None
            raise

    def _leave(self) -> None:
        self.left = True
        with suppress(OSError):
            socket.socket.shutdown(
                self.socket, socket.SHUT_RDWR
            )  # an SSLSocket's own would pull the rug from under a read

    def send(self, head: bytes, body: bytes) -> ConnectionError | None:
        """A server may answer and close before it has read everything (too long, wrong key): its answer is worth reading."""
        try:
            for piece in [head + body] if len(body) <= _PIECE else [head, body]:
                left = memoryview(piece)
                while left:
                    self.socket.settimeout(time_left(self.deadline))
                    left = left[self.socket.send(left) :]
        except ConnectionError as error:
            return error
        return None

    def makefile(self, mode: str) -> _Incoming:
        """What ``HTTPResponse`` asks of a socket."""
        return _Incoming(self)

    def is_quiet(self) -> bool:
        """Whether nothing has come and the other side has not closed: what an idle connection must be to be used again."""
        try:
            self.socket.setblocking(False)
            # Under TLS too, and there an SSLSocket's own recv could not look ahead.
            socket.socket.recv(self.socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close the socket, at once."""
        self.socket.close()


class _Bytes(io.RawIOBase):
    """What comes over a line."""

    def __init__(self, line: _Line) -> None:
        self.line = line
        self.paused = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.paused:
            return None
        line = self.line
        line.socket.settimeout(time_left(line.deadline))
        size = line.socket.recv_into(buffer)
        line.ended = not size
        return size


class _Incoming(io.BufferedReader):
    """A reply, as it comes. When it is closed it looks whether it holds more than was read."""

    def __init__(self, line: _Line) -> None:
        self._bytes = _Bytes(line)
        super().__init__(self._bytes, _PIECE)

    def close(self) -> None:
        if not self.closed:
            self._bytes.paused = True
            self._bytes.line.has_more = bool(self.peek(1))
        super().close()


class _Reply(HTTPResponse):
    """A reply to one request. Raises ``ProtocolError`` where two programs could read it differently (RFC 9112, section 6)."""

    def __init__(self, line: _Line, method: str) -> None:
        self.line = line
        self.fields: Mapping[str, str] = {}
        super().__init__(cast(Any, line), method=method)

    def begin(self) -> None:
        super().begin()
        while 100 <= self.status < 200 and self.status != 101:  # provisional, such as 103 Early Hints
            self.headers = cast(Any, None)
            super().begin()
        if self.line.ended:
            raise ProtocolError("the server closed the connection in the middle of the reply's head")
        if self.headers.defects or any(_CONTROL.search(value) for value in self.headers.values()):
            raise ProtocolError("a line of the reply's head is no header")
        self.fields = read_head(self.status, self.headers.items())
        length = self.fields.get("content-length")
        if length is not None and not (length.isascii() and length.isdecimal()):  # two different ones came as "1, 2"
            raise ProtocolError("the reply's content-length is no number")
        if self.chunked and length is not None:  # a sign of a confused or hostile hop
            self.will_close = True

    @property
    def is_reusable(self) -> bool:
        """Whether all of the reply has come and nothing else, and the server keeps the connection open."""
        self.close()
        return not (self.will_close or self.line.has_more or self.line.ended)


# --- connections that are kept -------------------------------------------------------------------------


class Lines:
    """Opens connections, and keeps those that may be used again, the last used first.

    ``context`` gives the TLS context. ``close`` closes the idle ones; those in use are closed when they come back.
    """

    def __init__(self, keep_alive: float, context: Callable[[], ssl.SSLContext]) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._generation = 0  # counts the closings: what was opened before one is not kept
        self._idle: dict[Origin, deque[_Line]] = {}
        self._lock = threading.Lock()
        _all_lines.add(self)

    def open(self, trip: Trip) -> BlockingReply:
        """Send the request and read the reply's head."""
        line = self._take(trip.endpoint.origin)
        try:
            if line is None:
                line = self._connect(trip)
            line.deadline = trip.deadline
            if listening():
                with line.waiting():
                    reply = _exchange(line, trip)
            else:
                reply = _exchange(line, trip)
        except BaseException as error:
            if line is not None:
                line.close()
            _tell(error, trip)
        return BlockingReply(self, line, reply, trip)

    def _connect(self, trip: Trip) -> _Line:
        deadline = None if trip.connect_limit is None else time.monotonic() + trip.connect_limit
        generation = self._generation
        return _Line(_open(trip, deadline, self._context), trip.endpoint.origin, generation)

    def _take(self, origin: Origin) -> _Line | None:
        """A connection that is still good, if there is one."""
        while True:
            with self._lock:
                idle = self._idle.get(origin)
                if not idle:
                    return None
                line = idle.pop()
            if time.monotonic() - line.since < self._keep_alive and line.is_quiet():
                return line
            line.close()

    def put(self, line: _Line) -> None:
        """Keep a connection for later, or close it."""
        line.since = now = time.monotonic()
        surplus = [line]
        with self._lock:
            if line.generation == self._generation:
                idle = self._idle.setdefault(line.origin, deque())
                idle.append(line)
                surplus.clear()
                while idle and now - idle[0].since > self._keep_alive:
                    surplus.append(idle.popleft())
        for old in surplus:
            old.close()

    def close(self) -> None:
        """Close the idle ones; those in use are closed when they come back."""
        with self._lock:
            self._generation += 1
            lines = [line for idle in self._idle.values() for line in idle]
            self._idle.clear()
        for line in lines:
            line.close()

    def start_anew(self) -> None:
        """In a forked child: the connections are the parent's, and a thread that did not come along may hold the lock."""
        self._lock = threading.Lock()
        self.close()  # this process's copies of the file descriptors; nothing is sent


_all_lines: weakref.WeakSet[Lines] = weakref.WeakSet()


def _start_anew() -> None:
    for lines in list(_all_lines):
        lines.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_anew)


# --- one exchange --------------------------------------------------------------------------------------


def _exchange(line: _Line, trip: Trip) -> _Reply:
    """Send the request and read the reply's head."""
    trip.phase = "sending the request"
    refusal = line.send(_head(trip), trip.request.body)
    trip.phase = "waiting for the reply"
    reply = _Reply(line, trip.request.method)
    try:
        reply.begin()
    except (OSError, HTTPException, ProtocolError) as error:
        raise refusal or error from None
    trip.phase = "reading the reply"
    if refusal is not None:  # the server takes no more of this request, so it cannot take another one here
        reply.will_close = True
    return reply


def _head(trip: Trip) -> bytes:
    """The request line and the headers; what is in them was checked (``sendable``)."""
    first = f"{trip.request.method} {trip.endpoint.target} HTTP/1.1"
    lines = [first, *(f"{name}: {value}" for name, value in trip.headers.items())]
    return "\r\n".join([*lines, f"content-length: {len(trip.request.body)}", "", ""]).encode("latin-1")


class BlockingReply:
    """A reply whose head has come."""

    __slots__ = ("_done", "_line", "_lines", "_reply", "_trip", "_unpacker", "headers", "status")

    def __init__(self, lines: Lines, line: _Line, reply: _Reply, trip: Trip) -> None:
        self._lines, self._line, self._reply, self._trip = lines, line, reply, trip
        self.status = reply.status
        self.headers = reply.fields
        self._unpacker: Unpacker | None = None
        self._done = False

    def read(self) -> bytes:
        """The whole body."""
        pieces = list(iter(self.next, b""))  # not http.client's read, which makes room for whatever length is announced
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def next(self) -> bytes:
        """The next piece of the body, ``b""`` after the last."""
        try:
            if self._unpacker is None:
                self._unpacker = Unpacker(self.headers.get("content-encoding", ""))
            while packed := self._read_some():
                if piece := self._unpacker.feed(packed):
                    return piece
            return self._unpacker.feed(b"")
        except BaseException as error:
            self._fail()
            _tell(error, self._trip)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.next, b"")

    def _read_some(self) -> bytes:
        if listening():
            with self._line.waiting():
                return self._checked_piece()
        return self._checked_piece()

    def _checked_piece(self) -> bytes:
        piece = self._reply.read1(_PIECE)
        if not piece and self._reply.length:
            raise IncompleteRead(b"", self._reply.length)
        return piece

    def finish(self) -> None:
        """Give the connection back where it may be used again, else close it. May be called twice."""
        if self._done:
            return
        self._done = True
        complete = self._reply.isclosed() or self._reply.length == 0
        if self._reply.is_reusable and complete:
            self._lines.put(self._line)
        else:
            self._line.close()

    def _fail(self) -> None:
        self._done = True
        self._reply.close()
        self._line.close()


def _tell(error: BaseException, trip: Trip) -> NoReturn:
    """Raise what went wrong in sigwire's words; what is not the network's business, as it is."""
    told = _told(error, trip)
    if told is None:
        raise error
    raise told from error


def _told(error: BaseException, trip: Trip) -> LMError | None:
    if isinstance(error, TimeoutError):
        return trip.too_late()
    if isinstance(error, RemoteDisconnected):
        return trip.broken("the server closed the connection without a reply")
    if isinstance(error, OSError):
        return trip.broken(*explained(error))
    if isinstance(error, IncompleteRead):
        missing = f" ({error.expected} bytes are missing)" if error.expected else ""
        return trip.broken(f"the server closed the connection in the middle of the reply's body{missing}")
    if isinstance(error, HTTPException):
        return trip.broken("what came is not an HTTP/1.1 reply")
    return trip.broken(str(error)) if isinstance(error, ProtocolError) else None


# --- the way there -------------------------------------------------------------------------------------


def _open(trip: Trip, deadline: float | None, context: Callable[[], ssl.SSLContext]) -> socket.socket:
    """TCP, and TLS where the address wants it."""
    end = trip.endpoint
    opened = configured(_dial(end.host, end.port, deadline))
    if end.scheme == "http":
        return opened
    try:
        opened.settimeout(time_left(deadline))
        return context().wrap_socket(opened, server_hostname=end.host)
    except BaseException:
        opened.close()
        raise


def _dial(host: str, port: int, deadline: float | None) -> socket.socket:
    """To the first address of the host that takes it; they share the time that is left."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError | None = None
    for untried, info in zip(range(len(infos), 0, -1), infos, strict=True):
        left = time_left(deadline)
        try:
            return socket.create_connection((str(info[4][0]), port), None if left is None else left / untried)
        except OSError as error:
            failure = failure or error
    raise failure or OSError("the name has no addresses")
