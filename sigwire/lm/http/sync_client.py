"""Blocking requests on kept connections, bounded by a deadline. Knows no proxies.

``ReplyParser`` parses and does no I/O. This file does the rest: every wait ends at the deadline (``_SyncConnection``), an
idle connection is checked before reuse (``ConnectionPool``).
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

from sigwire.effects.cancellation import StreamCancelled, current_scope
from sigwire.effects.forks import reset_when_forked
from sigwire.lm.http.connect import open_socket
from sigwire.lm.http.deadlines import seconds_until
from sigwire.lm.http.errors import ProtocolError
from sigwire.lm.http.exchange import READ, WRITE, HttpExchange, SocketWaiter
from sigwire.lm.http.reply_parser import ReplyParser
from sigwire.lm.http.urls import Origin

if TYPE_CHECKING:
    import ssl

__all__ = ["ConnectionPool", "SyncReply"]

_CHUNK_SIZE = 64 * 1024
A = TypeVar("A")
R = TypeVar("R")
P = ParamSpec("P")


def _wanted_by_tls(error: OSError) -> int:
    """Return the direction that a TLS connection waits for. Raises any other error again."""
    import ssl

    if isinstance(error, ssl.SSLWantReadError):
        return READ
    if isinstance(error, ssl.SSLWantWriteError):
        return WRITE
    raise error


class _SyncConnection:
    """A connection to an origin. Only the wait of ``_perform`` blocks; it ends at ``deadline``.

    Data is read before polling, except the begin of a reply: that saves a system call if the data has arrived.
    """

    __slots__ = ("_ready", "deadline", "generation", "idle_since", "is_cancelled", "origin", "socket")

    def __init__(self, connected: socket.socket, origin: Origin, generation: int) -> None:
        self.socket, self.origin, self.generation = connected, origin, generation
        self.deadline: float | None = None
        self._ready = SocketWaiter(connected.fileno())
        self.idle_since = 0.0
        self.is_cancelled = False  # the cancel scope was cancelled

    def cancellable(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function whose waits end when the current scope is cancelled. Raises ``StreamCancelled`` then."""
        scope = current_scope()
        if scope is None:
            return function(*args, **kwargs)
        try:
            with scope.on_cancel(self._cancel):
                result = function(*args, **kwargs)
        except Exception as error:
            if self.is_cancelled:
                raise StreamCancelled from error
            raise
        if self.is_cancelled:  # the shutdown can look like the end of a reply
            raise StreamCancelled
        return result

    def _cancel(self) -> None:
        self.is_cancelled = True
        with suppress(OSError):
            # SSLSocket.shutdown would break a read in another thread.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def send(self, head: memoryview, body: memoryview) -> ConnectionError | None:
        """Send head and body. Return the error if the server closed early: it may have answered (wrong key, body too long)."""
        try:
            for chunk in (memoryview(b"".join((head, body))),) if len(body) <= _CHUNK_SIZE else (head, body):
                sent = self._perform(WRITE, self.socket.send, chunk)
                while sent < len(chunk):
                    sent += self._perform(WRITE, self.socket.send, chunk[sent:])
        except ConnectionError as error:
            return error
        return None

    def receive(self, *, is_first: bool = False) -> bytes:
        """Return the next bytes; ``b""`` if the server closed the connection. The first bytes of a reply take their time."""
        return self._perform(READ, self.socket.recv, _CHUNK_SIZE, READ if is_first else 0)

    def _perform(self, waits_for: int, attempt: Callable[[A], R], argument: A, wanted: int = 0) -> R:
        while True:
            remaining = seconds_until(self.deadline)
            if wanted and not self._ready.wait(wanted, remaining):
                raise TimeoutError
            try:
                return attempt(argument)
            except BlockingIOError:
                wanted = waits_for
            except OSError as error:  # TLS may have to read before it writes, and write before it reads
                wanted = _wanted_by_tls(error)

    def is_quiet(self) -> bool:
        """Return True if an idle connection can be reused: the server sent nothing and did not close."""
        return not self._ready.is_readable()

    def close(self) -> None:
        self.socket.close()


class ConnectionPool:
    """Open connections and keep the reusable ones; the last used is reused first. ``context`` returns the TLS context."""

    def __init__(self, keep_alive: float, context: Callable[[], ssl.SSLContext]) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._generation = 0  # counts calls of close(): an older connection is not kept
        self._idle: dict[Origin, deque[_SyncConnection]] = {}
        self._lock = threading.RLock()  # a stream that is collected meanwhile releases its connection
        reset_when_forked(self)

    def open(self, exchange: HttpExchange) -> SyncReply:
        """Send the request and read the reply's head."""
        connection = None if exchange.request.new_connection else self._acquire(exchange.server.origin)
        exchange.may_be_stale = connection is not None
        try:
            if connection is None:
                connection = self._connect(exchange)
            connection.deadline = exchange.next_deadline()
            reply = connection.cancellable(_send_and_read_head, connection, exchange)
        except BaseException as error:
            if connection is not None:
                connection.close()
            _raise_error(error, exchange)
        return SyncReply(self, connection, reply, exchange)

    def _connect(self, exchange: HttpExchange) -> _SyncConnection:
        seconds = exchange.connect_seconds()
        deadline = None if seconds is None else time.monotonic() + seconds
        generation = self._generation
        origin = exchange.server.origin
        return _SyncConnection(open_socket(origin, deadline, self._context), origin, generation)

    def _acquire(self, origin: Origin) -> _SyncConnection | None:
        while True:
            with self._lock:
                idle = self._idle.get(origin)
                if not idle:
                    return None
                connection = idle.pop()
            if time.monotonic() - connection.idle_since < self._keep_alive and connection.is_quiet():
                return connection
            connection.close()

    def release(self, connection: _SyncConnection) -> None:
        """Keep a connection for reuse, or close it if the pool was closed meanwhile."""
        connection.idle_since = now = time.monotonic()
        surplus = [connection]
        with self._lock:
            if connection.generation == self._generation:
                idle = self._idle.setdefault(connection.origin, deque())
                idle.append(connection)
                surplus.clear()
                while idle and now - idle[0].idle_since > self._keep_alive:
                    surplus.append(idle.popleft())
        for old in surplus:
            old.close()

    def close(self) -> None:
        """Close idle connections; a connection in use closes at its release."""
        with self._lock:
            self._generation += 1
            connections = [each for idle in self._idle.values() for each in idle]
            self._idle.clear()
        for connection in connections:
            connection.close()

    def reset_after_fork(self) -> None:
        """Forget the parent's connections in a forked child; a thread of the parent may hold the old lock."""
        self._lock = threading.RLock()
        self.close()  # closes the child's copies of the descriptors; sends nothing


def _send_and_read_head(connection: _SyncConnection, exchange: HttpExchange) -> ReplyParser:
    exchange.phase = "sending the request"
    refusal = connection.send(exchange.whole_head(), memoryview(exchange.request.body))
    exchange.phase = "waiting for the reply"
    reply = ReplyParser(exchange.request.method, exchange.max_reply)
    try:
        while not reply.has_head:
            if reply.failure is not None:
                raise reply.failure
            reply.feed(connection.receive(is_first=not reply.head_length))
            exchange.may_be_stale = exchange.may_be_stale and not reply.head_length
    except (OSError, ProtocolError) as error:
        reply.close()
        raise refusal or error from None
    exchange.phase = "reading the reply"
    if refusal is not None:  # the server stopped reading this request: no other one can follow
        reply.is_reusable = False
    return reply


class SyncReply:
    """A reply whose head was read."""

    __slots__ = ("_connection", "_done", "_exchange", "_pool", "_reply", "end_first", "headers", "status")

    def __init__(
        self, pool: ConnectionPool, connection: _SyncConnection, reply: ReplyParser, exchange: HttpExchange
    ) -> None:
        self._pool, self._connection, self._reply, self._exchange = pool, connection, reply, exchange
        self.status = reply.status
        self.headers = reply.headers
        self.end_first = exchange.end_first
        self._done = False

    def read(self) -> bytes:
        """Return the whole body."""
        return b"".join(iter(self.next, b""))

    def next(self) -> bytes:
        """Return the next chunk of the body; ``b""`` at the end."""
        if self._done and not self._reply.is_whole:
            raise self._exchange.closed_early()
        try:
            return self._take() if self._reply.is_whole else self._connection.cancellable(self._take)
        except BaseException as error:
            self._reply.is_reusable = False
            self.finish()
            _raise_error(error, self._exchange)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.next, b"")

    def _take(self) -> bytes:
        exchange, connection = self._exchange, self._connection
        while (chunk := self._reply.take()) is None:
            connection.deadline = exchange.next_deadline()
            self._reply.feed(connection.receive())
            exchange.has_chunk = True
        exchange.has_chunk = True
        return chunk

    def finish(self) -> None:
        """Release the connection if it can be reused, else close it. A second call does nothing."""
        if self._done:
            return
        self._done = True
        self._reply.close()
        if self._reply.is_whole and self._reply.is_reusable:
            self._pool.release(self._connection)
        else:
            self._connection.close()


def _raise_error(error: BaseException, exchange: HttpExchange) -> NoReturn:
    """Raise the ``LMError`` for a network error; raise any other error unchanged."""
    failure = exchange.error_for(error)
    if failure is None:
        raise error
    raise failure from error
