"""Blocking requests over connections that are kept, and bounded by a deadline; httptools reads the replies. Knows no proxies.

    lines = Lines(keep_alive, context)         the idle connections, for any thread; not for a forked child
    reply = lines.open(trip)                   sends, and reads the reply's head
    reply.read(), reply.next()                 all of the body, or its next piece, b"" after the last
    reply.finish()                             keeps the connection where the reply allows it, else closes it

httptools (llhttp, strict as it comes) parses; it does no I/O. Ours is the rest: every wait ends at the request's deadline
(``_SyncConnection``, and ``dialing``, which connects), a reply has one end and nothing after it (``_ReplyParser``), and idle connections are
looked at before use (``ConnectionPool``).
"""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn, TypeVar

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from sigwire.effects.cancellation import StreamCancelled, current_scope, on_cancel
from sigwire.errors import LMError
from sigwire.lm.http.compression import BodyDecompressor
from sigwire.lm.http.connect import open_socket
from sigwire.lm.http.deadlines import seconds_until
from sigwire.lm.http.errors import ProtocolError, describe_os_error
from sigwire.lm.http.exchange import HttpExchange, read_head
from sigwire.lm.http.urls import Origin

if TYPE_CHECKING:
    import ssl

__all__ = ["ConnectionPool", "SyncReply"]

_PIECE = 64 * 1024
_LONGEST_HEAD = 128 * 1024
_FRAMINGS = frozenset({"content-length", "transfer-encoding"})
A = TypeVar("A")
R = TypeVar("R")


# --- waiting for a socket ------------------------------------------------------------------------------

_READ, _WRITE = 1, 4  # as poll has them


class _SocketWaiter:
    """Waits until a socket can be read from, or written to."""

    __slots__ = ("_descriptor", "_poll")

    def __init__(self, waited_for: socket.socket) -> None:
        self._descriptor = waited_for.fileno()
        self._poll = select.poll() if hasattr(select, "poll") else None  # not on Windows, where select takes any number

    def wait(self, wanted: int, seconds: float | None) -> bool:
        """Whether it is, or fails, within so many seconds; ``None`` waits for it."""
        if self._poll is None:
            reading, writing = ([self._descriptor] if wanted == which else [] for which in (_READ, _WRITE))
            return any(select.select(reading, writing, reading or writing, seconds))
        self._poll.register(self._descriptor, wanted)
        return bool(self._poll.poll(None if seconds is None else math.ceil(seconds * 1000)))


def _wanted(error: OSError) -> int:
    """What a TLS connection waits for, to read before it can write or the other way round. Raises any other error."""
    import ssl

    if isinstance(error, ssl.SSLWantReadError):
        return _READ
    if isinstance(error, ssl.SSLWantWriteError):
        return _WRITE
    raise error


# --- a connection, and what comes over it --------------------------------------------------------------


class _SyncConnection:
    """A connection to an origin. Nothing blocks but ``_wait``, which ends at ``deadline``.

    What is there is taken without asking first: a system call less, and in a thread one occasion less to lose its turn.
    """

    __slots__ = ("_ready", "deadline", "generation", "left", "origin", "since", "socket")

    def __init__(self, connected: socket.socket, origin: Origin, generation: int) -> None:
        self.socket, self.origin, self.generation = connected, origin, generation
        self.deadline: float | None = None
        self._ready = _SocketWaiter(connected)
        self.since = 0.0
        self.left = False  # nobody waits for this any more

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Inside, those for whom this is done end all waiting when they leave. Raises ``StreamCancelled`` then."""
        try:
            with on_cancel(self._leave):
                yield
        except Exception:
            if not self.left:
                raise
        if self.left:  # it may look as if the reply had come to its end
            raise StreamCancelled

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
                sent = self._now(_WRITE, self.socket.send, piece)
                while sent < len(piece):
                    sent += self._now(_WRITE, self.socket.send, memoryview(piece)[sent:])
        except ConnectionError as error:
            return error
        return None

    def receive(self) -> bytes:
        """What comes next; ``b""`` when the other side has closed."""
        return self._now(_READ, self.socket.recv, _PIECE)

    def _now(self, waits_for: int, attempt: Callable[[A], R], argument: A) -> R:
        """Do it, as soon as it can be done."""
        left = seconds_until(self.deadline)
        while True:
            try:
                return attempt(argument)
            except BlockingIOError:
                wanted = waits_for
            except OSError as error:  # TLS may have to read before it can write, and the other way round
                wanted = _wanted(error)
            if not self._ready.wait(wanted, left):
                raise TimeoutError
            left = seconds_until(self.deadline)

    def is_quiet(self) -> bool:
        """Whether nothing has come and the other side has not closed: what an idle connection must be to be used again."""
        return not self._ready.wait(_READ, 0.0)

    def close(self) -> None:
        """Close the socket, at once."""
        self.socket.close()


class _ReplyParser:
    """A reply to one request, as it comes. The methods ``on_...`` are for the parser. Raises ``ProtocolError``."""

    def __init__(self, line: _SyncConnection, method: str) -> None:
        self._line, self._has_body = line, method != "HEAD"
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(lenient_chunked_length=True)  # and the connection is not used again
        self._pairs: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []
        self._head_length = 0
        self._begun = False
        self.is_whole = False
        self.is_reusable = False  # whether the server keeps the connection open, and has sent nothing else on it
        self.status = 0
        self.headers: dict[str, str] = {}

    def read_head(self) -> None:
        """Wait for the head."""
        while not self._begun:
            data = self._line.receive()
            if not data:
                where = "in the middle of the reply's head" if self._head_length else "without a reply"
                raise ProtocolError(f"the server closed the connection {where}")
            self._head_length += len(data)
            self._feed(data)
            if self._head_length > _LONGEST_HEAD and not self._begun:
                raise ProtocolError("what came is not an HTTP/1.1 reply, or its head has no end")
        self.headers = read_head(self.status, self._pairs)
        if self.headers.keys() >= _FRAMINGS:  # a sign of a confused or hostile hop
            self.is_reusable = False

    def read_piece(self) -> bytes:
        """Wait for the next piece of the body; ``b""`` after the last."""
        while not (self._pieces or self.is_whole):
            data = self._line.receive()
            if data:
                self._feed(data)
            else:
                self._end()
        piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        return piece

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self.is_reusable = False
            if not self.is_whole:  # else this reply is all right, and more came than belongs to it
                fault = "there is a fault in the framing of the reply's body"
                raise ProtocolError(fault if self._begun else "what came is not an HTTP/1.1 reply") from None

    def _end(self) -> None:
        """The server has closed the connection: the end of a body whose length nobody told."""
        if self.headers.keys() & _FRAMINGS:
            raise ProtocolError("the server closed the connection in the middle of the reply's body")
        self.is_whole = True

    def close(self) -> None:
        """Nothing is read any more. The parser and this hold each other, and need not wait for the garbage collector."""
        del self._parser

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise ProtocolError("another reply, which nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._begun:  # else it stands after the last chunk
            self._pairs.append((name.decode("latin-1"), value.decode("latin-1").strip()))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if 100 <= self.status < 200 and self.status != 101:  # provisional, such as 103 Early Hints
            self._pairs.clear()
            return
        self._begun = True
        self.is_reusable = self._parser.should_keep_alive()
        self.is_whole = not self._has_body

    def on_body(self, body: bytes) -> None:
        if self._has_body:
            self._pieces.append(body)
        else:
            self.is_reusable = False

    def on_message_complete(self) -> None:
        self.is_whole = self._begun


# --- connections that are kept -------------------------------------------------------------------------


class ConnectionPool:
    """Opens connections, and keeps those that may be used again, the last used first.

    ``context`` gives the TLS context. ``close`` closes the idle ones; those in use are closed when they come back.
    """

    def __init__(self, keep_alive: float, context: Callable[[], ssl.SSLContext]) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._generation = 0  # counts the closings: what was opened before one is not kept
        self._idle: dict[Origin, deque[_SyncConnection]] = {}
        self._lock = threading.Lock()
        _all_lines.add(self)

    def open(self, trip: HttpExchange) -> SyncReply:
        """Send the request and read the reply's head."""
        line = self._take(trip.endpoint.origin)
        try:
            if line is None:
                line = self._connect(trip)
            line.deadline = trip.deadline
            if current_scope() is not None:
                with line.waiting():
                    reply = _exchange(line, trip)
            else:
                reply = _exchange(line, trip)
        except BaseException as error:
            if line is not None:
                line.close()
            _tell(error, trip)
        return SyncReply(self, line, reply, trip)

    def _connect(self, trip: HttpExchange) -> _SyncConnection:
        deadline = None if trip.connect_limit is None else time.monotonic() + trip.connect_limit
        generation = self._generation
        return _SyncConnection(open_socket(trip.endpoint, deadline, self._context), trip.endpoint.origin, generation)

    def _take(self, origin: Origin) -> _SyncConnection | None:
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

    def put(self, line: _SyncConnection) -> None:
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


_all_lines: weakref.WeakSet[ConnectionPool] = weakref.WeakSet()


def _start_anew() -> None:
    for lines in list(_all_lines):
        lines.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_anew)


# --- one exchange --------------------------------------------------------------------------------------


def _exchange(line: _SyncConnection, trip: HttpExchange) -> _ReplyParser:
    """Send the request and read the reply's head."""
    trip.phase = "sending the request"
    refusal = line.send(trip.whole_head(), trip.request.body)
    trip.phase = "waiting for the reply"
    reply = _ReplyParser(line, trip.request.method)
    try:
        reply.read_head()
    except (OSError, ProtocolError) as error:
        raise refusal or error from None
    trip.phase = "reading the reply"
    if refusal is not None:  # the server takes no more of this request, so it cannot take another one here
        reply.is_reusable = False
    return reply


class SyncReply:
    """A reply whose head has come."""

    __slots__ = ("_done", "_line", "_lines", "_reply", "_trip", "_unpacker", "headers", "status")

    def __init__(self, lines: ConnectionPool, line: _SyncConnection, reply: _ReplyParser, trip: HttpExchange) -> None:
        self._lines, self._line, self._reply, self._trip = lines, line, reply, trip
        self.status = reply.status
        self.headers = reply.headers
        self._unpacker: BodyDecompressor | None = None
        self._done = False

    def read(self) -> bytes:
        """The whole body."""
        pieces = list(iter(self.next, b""))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def next(self) -> bytes:
        """The next piece of the body, ``b""`` after the last."""
        if self._done and not self._reply.is_whole:
            raise self._trip.closed_early()
        try:
            if self._unpacker is None:
                self._unpacker = BodyDecompressor(self.headers.get("content-encoding", ""), self._trip.max_reply)
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
        if current_scope() is not None:
            with self._line.waiting():
                return self._reply.read_piece()
        return self._reply.read_piece()

    def finish(self) -> None:
        """Give the connection back where it may be used again, else close it. May be called twice."""
        if self._done:
            return
        self._done = True
        self._reply.close()
        if self._reply.is_whole and self._reply.is_reusable:
            self._lines.put(self._line)
        else:
            self._line.close()

    def _fail(self) -> None:
        if not self._done:
            self._done = True
            self._reply.close()
            self._line.close()


def _tell(error: BaseException, trip: HttpExchange) -> NoReturn:
    """Raise what went wrong in sigwire's words; what is not the network's business, as it is."""
    told = _told(error, trip)
    if told is None:
        raise error
    raise told from error


def _told(error: BaseException, trip: HttpExchange) -> LMError | None:
    if isinstance(error, TimeoutError):
        return trip.timed_out()
    if isinstance(error, OSError):
        return trip.broken(*describe_os_error(error))
    return trip.broken(str(error), error.hint, error.retryable) if isinstance(error, ProtocolError) else None
