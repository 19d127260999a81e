"""Awaited requests on connections of aiohttp's connector, with one connection pool per event loop.

aiohttp opens, keeps and closes connections (addresses, TLS, proxies). From the request to the end of its reply the connection's
protocol is an ``AsyncReply``, which parses with ``ReplyParser``: aiohttp 3.14 never wakes the reader of a body whose framing
breaks, and discards what it received before an error. Its session is not used: cookies, redirects, forms and retries would be
switched off, and it costs as much as everything else (docs/decisions/0014-http-client.md).

An asyncio connection belongs to the loop that opened it. The first request of a loop opens its ``_LoopPool``. A pool is closed

- by a loop that ends in order (``asyncio.run``, ``Runner``): the loop closes its async generators, ``_close_with_loop``
  among them;
- by ``close()``, from any thread;
- after ``loop.close()`` without that: the loop drops its timers, and the finalizer of one timer closes the pool's sockets,
  which are known through ``socket_factory``.

Importing aiohttp is slower than importing the rest of sigwire; the first awaited request imports this module.
"""

from __future__ import annotations

import asyncio
import importlib
import socket
import ssl
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, cast

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from sigwire.effects.forks import reset_when_forked
from sigwire.effects.loops import running_loop
from sigwire.effects.waiting import wait_for
from sigwire.errors import ConfigurationError
from sigwire.lm.http.aiohttp_errors import raise_transport_error
from sigwire.lm.http.connect import NameLookups
from sigwire.lm.http.deadlines import DeadlineTimer, seconds_until
from sigwire.lm.http.errors import ProtocolError
from sigwire.lm.http.exchange import READ, HttpExchange, SocketWaiter, configure_socket
from sigwire.lm.http.reply_parser import ReplyParser
from sigwire.lm.http.urls import Origin, Proxy

__all__ = ["AsyncConnectionPool", "AsyncReply"]

_TlsContext: TypeAlias = "Callable[[], ssl.SSLContext]"
_Key: TypeAlias = "tuple[asyncio.AbstractEventLoop, Proxy | None]"
_FAR_FUTURE_SECONDS, _CLOSE_WAIT_SECONDS = 1e8, 1.0  # seconds
# A larger body is sent in parts: a write of the whole would block the loop.
_LARGE_BODY, _PART_SIZE = 512 * 1024, 64 * 1024
_MAX_UNREAD = 256 * 1024  # received bytes of a reply, before the socket is read no further


class AsyncConnectionPool:
    """The pools of all event loops, one per loop and SOCKS proxy."""

    def __init__(self, keep_alive: float, context: _TlsContext) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._pools: dict[_Key, _LoopPool] = {}
        self._lock = threading.Lock()
        reset_when_forked(self)

    async def open(self, exchange: HttpExchange) -> AsyncReply:
        """Send the request and read the reply's head."""
        socks = exchange.proxy if exchange.proxy is not None and exchange.proxy.is_socks else None
        pool = self._pools.get((asyncio.get_running_loop(), socks)) or await self._open_pool(socks)
        reply = AsyncReply(pool, exchange)
        await reply.start()
        return reply

    async def _open_pool(self, socks: Proxy | None) -> _LoopPool:
        with self._lock:
            pool = _LoopPool(self._pools, socks, self._keep_alive, self._context)
            self._pools[pool.loop, socks] = pool
        await anext(pool.end)
        return pool

    def close(self) -> None:
        """Close the idle connections of all loops, from any thread; a connection in use closes after its reply."""
        for pool in self._take_pools():
            pool.close_when_idle()

    def _take_pools(self) -> list[_LoopPool]:
        with self._lock:
            pools, self._pools = self._pools, {}
        return list(pools.values())

    async def aclose(self) -> None:
        """Close all pools and await the closing of those of the running loop."""
        here = [pool for pool in list(self._pools.values()) if pool.loop is asyncio.get_running_loop()]
        self.close()
        await asyncio.gather(*(pool.closing for pool in here if pool.closing is not None), return_exceptions=True)

    def reset_after_fork(self) -> None:
        """Forget the parent's loops in a forked child. Closing through a loop would change the parent's selector."""
        self._lock = threading.Lock()  # a thread of the parent may hold the old lock
        pools = self._take_pools()
        _inherited_pools.extend(pools)
        for pool in pools:
            pool.close_sockets()  # closes the child's copies of the descriptors; sends nothing


# Kept alive: on collection aiohttp would warn and use the parent's selector.
_inherited_pools: list[_LoopPool] = []


async def _close_with_loop(pools: dict[_Key, _LoopPool], pool: _LoopPool) -> AsyncGenerator[None]:
    """Wait as an async generator of the loop, which the ending loop or ``close`` closes; then close the pool."""

    # loop.close() drops all timers: the finalizer of a timer that never fires reports a closed loop.
    def never() -> None: ...

    weakref.finalize(never, _close_after_loop, pools, weakref.ref(pool)).atexit = False
    timer = weakref.ref(pool.loop.call_later(_FAR_FUTURE_SECONDS, never))
    del never
    try:
        yield
    finally:
        if (waiting := timer()) is not None:
            waiting.cancel()
        pools.pop((pool.loop, pool.socks), None)
        pool.deadlines.close()
        await pool.connector.close()


def _close_after_loop(pools: dict[_Key, _LoopPool], reference: weakref.ref[_LoopPool]) -> None:
    if (pool := reference()) is not None and pool.loop.is_closed():
        pools.pop((pool.loop, pool.socks), None)
        pool.close_without_loop()


class _LoopPool:
    """The connections of one event loop, and the replies that use them."""

    def __init__(
        self, pools: dict[_Key, _LoopPool], socks: Proxy | None, keep_alive: float, context: _TlsContext
    ) -> None:
        self.loop, self.socks, self._context = asyncio.get_running_loop(), socks, context
        self.replies: set[AsyncReply] = set()
        self.is_closing = False
        self.closing: asyncio.Task[None] | None = None
        self.closed = threading.Event()
        self.end = _close_with_loop(pools, self)
        self.deadlines = DeadlineTimer(self.loop)
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        # Transports that a request used before, with a waiter for each socket.
        self._transports: weakref.WeakKeyDictionary[asyncio.Transport, SocketWaiter] = weakref.WeakKeyDictionary()
        self._targets: dict[Origin, aiohttp.ClientRequest] = {}
        self.connector = self._connector(keepalive_timeout=keep_alive, limit=0, socket_factory=self._new_socket)

    def _connector(self, **options: Any) -> aiohttp.TCPConnector:
        if self.socks is None:
            return aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver(cast(Any, NameLookups())), **options)
        try:
            connectors: Any = importlib.import_module("aiohttp_socks")
        except ImportError as error:
            raise ConfigurationError(
                f'{self.socks} is a SOCKS proxy, which needs the package aiohttp-socks. Run: pip install "sigwire[socks]"'
            ) from error
        where = {name: getattr(self.socks, name) or None for name in ("host", "port", "username", "password")}
        made: aiohttp.TCPConnector = connectors.ProxyConnector(**where, rdns=True, **options)
        return made

    def _new_socket(self, info: Any) -> socket.socket:
        opened = configure_socket(socket.socket(*info[:3]))
        self._sockets.add(opened)
        return opened

    async def connection(self, exchange: HttpExchange) -> Connection:
        """Open a connection, or reuse a kept one that is still usable.

        aiohttp 3.14 (``BaseConnector._get``) reuses a kept connection without a check: it loses the request if the server
        closed the connection, and takes an unsolicited reply for the answer.
        """
        target, limit = self._target(exchange), _connect_limit(exchange.connect_seconds())
        while True:
            connection = await self.connector.connect(target, [], limit)
            transport, protocol = connection.transport, connection.protocol
            waiter = None if transport is None else self._transports.get(transport)
            if transport is None or protocol is None or (waiter is None and protocol.should_close):
                _abort(connection)
                raise ProtocolError("the server closed the connection, or sent on it, before the request")
            if waiter is None:
                self._transports[transport] = SocketWaiter(transport.get_extra_info("socket").fileno())
                return connection
            if not (protocol.should_close or waiter.wait(READ, 0.0) or exchange.request.new_connection):
                exchange.may_be_stale = True
                return connection
            _abort(connection)  # check the next kept connection; without one the connector opens a new one

    def _target(self, exchange: HttpExchange) -> aiohttp.ClientRequest:
        """Return the target for aiohttp's connector, which takes it as a request; this request is never sent."""
        proxy = None if self.socks is not None else exchange.proxy
        if proxy is not None:  # aiohttp changes requests through a proxy: not shared
            return self._new_target(exchange, proxy=URL(proxy.url), proxy_headers=proxy.authorization)
        target = self._targets.get(exchange.server.origin)
        if target is None:
            target = self._targets[exchange.server.origin] = self._new_target(exchange)
        return target

    def _new_target(self, exchange: HttpExchange, **proxy: Any) -> aiohttp.ClientRequest:
        url = URL(f"{exchange.server.origin.scheme}://{exchange.server.authority}", encoded=True)
        tls = self._context() if exchange.needs_tls else True
        return aiohttp.ClientRequest("POST", url, loop=self.loop, ssl=tls, **proxy)

    def discard(self, reply: AsyncReply) -> None:
        """Forget a finished reply; close the pool if it was the last one and the pool is closing."""
        self.replies.discard(reply)
        if self.is_closing and not self.replies and not self.loop.is_closed():
            self._close()

    def close_when_idle(self) -> None:
        """Close when no reply uses the pool; from any thread."""
        if self.loop.is_closed():
            self.close_without_loop()
            return
        if running_loop() is self.loop:
            self._close_when_idle()
            return
        if not (self.loop.is_running() or self.replies):
            self._disconnect_sockets()  # at once; a stopped loop notices when it runs again
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self.loop.call_soon_threadsafe(self._close_when_idle)
            if self.loop.is_running():
                wait_for(self.closed.wait, _CLOSE_WAIT_SECONDS)

    def _close_when_idle(self) -> None:
        self.is_closing = True
        if self.replies:
            self.closed.set()  # the rest closes after its replies
        else:
            self._close()

    def _close(self) -> None:
        self.closing = self.loop.create_task(self.end.aclose())
        self.closing.add_done_callback(self._on_closed)

    def _on_closed(self, closing: asyncio.Task[None]) -> None:
        if not closing.cancelled():
            closing.exception()  # retrieve it: the loop may have closed the generator at the same time
        self.closed.set()

    def close_without_loop(self) -> None:
        self.close_sockets()
        for reply in list(self.replies):
            reply.finish()
        for transport in list(self._transports):
            _detach(transport)
        with suppress(StopIteration):  # a closed loop has nothing to wait for
            self.connector.close().__await__().send(None)

    def close_sockets(self) -> None:
        """Close the file descriptors; no running loop may watch them."""
        for opened in list(self._sockets):
            opened.close()

    def _disconnect_sockets(self) -> None:
        for opened in list(self._sockets):
            with suppress(OSError):  # already disconnected
                opened.shutdown(socket.SHUT_RDWR)


@lru_cache(maxsize=64)
def _connect_limit(seconds: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=seconds, ceil_threshold=_FAR_FUTURE_SECONDS)


def _detach(transport: asyncio.Transport) -> None:
    """Detach a transport from its socket, when the loop and the socket are closed."""
    # No public method does it: ``abort`` needs the loop. If asyncio renames the private attributes, the only effect is a
    # ``ResourceWarning`` at collection.
    with suppress(RuntimeError):
        transport.abort()
    below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None) or transport
    if hasattr(below, "_sock"):
        setattr(below, "_sock", None)  # noqa: B010


class AsyncReply(asyncio.Protocol):
    """A request and its reply. Until the reply ends it is the protocol of the connection; a reader waits for ``_waiter``."""

    __slots__ = (
        "_connection",
        "_done",
        "_exchange",
        "_is_writable",
        "_parser",
        "_pool",
        "_sending",
        "_transport",
        "_unread",
        "_waiter",
        "end_first",
        "headers",
        "status",
    )

    status: int
    headers: dict[str, str]

    def __init__(self, pool: _LoopPool, exchange: HttpExchange) -> None:
        self._pool, self._exchange = pool, exchange
        self._parser = ReplyParser(exchange.request.method, exchange.max_reply)
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._sending: asyncio.Task[None] | None = None
        self._is_writable: asyncio.Event | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._unread = 0
        self._done = False
        self.end_first = exchange.end_first
        pool.replies.add(self)
        pool.deadlines.add(self, exchange.deadline)

    async def start(self) -> None:
        """Send the request and await the reply's head."""
        exchange, reply = self._exchange, self._parser
        try:
            self._connection = connection = await self._pool.connection(exchange)
            seconds_until(exchange.deadline)
            self._send(connection)
            while not reply.has_head:
                if reply.failure is not None:
                    raise reply.failure
                await self._wait()
        except BaseException as error:
            self._fail(error)
        exchange.phase = "reading the reply"
        self.status, self.headers = reply.status, reply.headers

    def _send(self, connection: Connection) -> None:
        self._transport = transport = connection.transport
        assert transport is not None  # no await since the pool checked it
        transport.set_protocol(self)
        self._exchange.phase = "sending the request"
        head, body = self._exchange.whole_head(), memoryview(self._exchange.request.body)
        if len(body) <= _LARGE_BODY:
            transport.write(b"".join((head, body)))
        else:
            transport.write(head)
            self._is_writable = asyncio.Event()
            self._is_writable.set()
            self._sending = self._pool.loop.create_task(_send_in_parts(transport, body, self._is_writable))
        self._exchange.phase = "waiting for the reply"

    async def read(self) -> bytes:
        """Await the whole body."""
        chunks: list[bytes] = []
        while chunk := await self.next():
            chunks.append(chunk)
        return b"".join(chunks)

    async def next(self) -> bytes:
        """Await the next chunk of the body; ``b""`` at the end."""
        if self._done and not self._parser.is_whole:
            raise self._exchange.closed_early()
        try:
            while (chunk := self._parser.take()) is None:
                await self._wait()
                self._exchange.has_chunk = True
        except BaseException as error:
            self._fail(error)
        self._exchange.has_chunk = True
        return chunk

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if chunk := await self.next():
            return chunk
        raise StopAsyncIteration

    async def _wait(self) -> None:
        """Wait until the connection or the deadline calls ``_wake``; everything received before was taken."""
        if self._waiter is not None:
            raise RuntimeError("two tasks read one reply")
        if self._unread > _MAX_UNREAD and self._transport is not None:
            self._transport.resume_reading()
        self._unread = 0
        self._waiter = self._pool.loop.create_future()
        deadlines, exchange = self._pool.deadlines, self._exchange
        deadlines.move(self, exchange.next_deadline())
        try:
            await self._waiter
        finally:
            self._waiter = None
            deadlines.move(self, exchange.deadline)  # the time of the consumer does not count as idle

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the reply. A complete reply releases its connection, a broken one closes it."""
        reply = self._parser
        self._exchange.may_be_stale = False
        reply.feed(data)
        if reply.is_whole or reply.failure is not None:
            self._disconnect(reuse=reply.is_whole and reply.is_reusable)
        else:
            self._unread += len(data)
            if self._unread > _MAX_UNREAD and self._transport is not None:
                self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """End the reply: the server closed the connection."""
        self._parser.feed(b"")
        self._disconnect()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the reply: the connection was closed or failed."""
        if self._connection is not None and self._connection.protocol is not None:
            self._connection.protocol.connection_lost(exc)
        if exc is not None:
            self._parser.fail(exc)
        self.eof_received()

    def expire(self) -> None:
        """Fail and close the connection: the deadline has passed."""
        self._parser.fail(TimeoutError())
        self.eof_received()

    def pause_writing(self) -> None:
        if self._is_writable is not None:
            self._is_writable.clear()

    def resume_writing(self) -> None:
        if self._is_writable is not None:
            self._is_writable.set()

    def _fail(self, error: BaseException) -> NoReturn:
        self.finish()
        raise_transport_error(error, self._exchange)

    def finish(self) -> None:
        """Close the connection unless the end of the reply released it. A second call does nothing."""
        if self._done:
            return
        self._done = True
        self._disconnect()
        self._parser.close()
        self._pool.discard(self)

    def _disconnect(self, *, reuse: bool = False) -> None:
        """Return the connection to its protocol, and release or close it. After it no byte and no deadline counts."""
        # If the request is not fully sent, the server does not read the rest: no other request can follow.
        self._pool.deadlines.remove(self)
        if self._sending is not None:
            reuse = reuse and self._sending.done()
            with suppress(RuntimeError):  # the loop is closed
                self._sending.cancel()
        connection, transport = self._connection, self._transport
        self._connection = self._transport = None
        if connection is not None and connection.protocol is not None and transport is not None:
            transport.set_protocol(connection.protocol)
            if reuse and not transport.get_write_buffer_size():
                transport.resume_reading()
                connection.release()
                return
        _abort(connection)


async def _send_in_parts(transport: asyncio.Transport, body: memoryview, writable: asyncio.Event) -> None:
    """Send a large body in parts. A server may answer before it has read everything; the reply has the reason."""
    for start in range(0, len(body), _PART_SIZE):
        await writable.wait()
        transport.write(body[start : start + _PART_SIZE])


def _abort(connection: Connection | None) -> None:
    """Close a connection at once, without a TLS shutdown; does nothing if the loop is closed."""
    if connection is None:
        return
    with suppress(RuntimeError):
        if connection.transport is not None:
            connection.transport.abort()
    with suppress(RuntimeError):
        connection.close()
