"""Awaited requests: aiohttp's connections and its parser, kept for each event loop, closed when the loop ends.

    homes = Homes(keep_alive, context)
    reply = await homes.open(trip)             sends, and reads the reply's head
    await reply.read(), await reply.next()     all of the body, or its next piece, b"" after the last
    reply.finish()                             keeps the connection where the reply allows it, else closes it

aiohttp makes, keeps and ends the connections (addresses, TLS, proxies: its connector) and reads the replies (llhttp). Its
session, which is made for cookies, redirects, forms and retries, is left out: it costs as much as all the rest.

A connection of asyncio's belongs to the loop that opened it. So a ``_LoopPool`` is made by the first request of each loop, and ends

- with the loop, where that is told so (``asyncio.run``, ``Runner``): an async generator of ours is among those it shuts down;
- by ``close()``, which may be called from anywhere;
- with a loop that is closed by hand, without that: a timer tells, which the loop drops. The sockets are known
  (``socket_factory``), so they can be closed without it.

Importing aiohttp takes longer than everything else in sigwire; this module is imported by the first awaited request.
"""

from __future__ import annotations

import asyncio
import importlib
import math
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import StreamWriter
from yarl import URL

from sigwire.errors import ConfigurationError
from sigwire.lm.http.aiohttp_errors import raise_transport_error
from sigwire.lm.http.compression import BodyDecompressor
from sigwire.lm.http.deadlines import seconds_until
from sigwire.lm.http.exchange import HttpExchange, configure_socket, has_pending_data, read_head
from sigwire.lm.http.urls import Origin, Proxy

__all__ = ["AsyncConnectionPool", "AsyncReply"]

_Key: TypeAlias = "tuple[asyncio.AbstractEventLoop, Proxy | None]"
_YEARS, _MOMENT = 1e8, 1.0  # seconds
_LARGE, _PART = 512 * 1024, 64 * 1024  # larger bodies are sent in parts, so that the loop stays free
_READING: dict[str, Any] = {
    "auto_decompress": False,
    "max_field_size": 64 * 1024,
    "max_line_size": 64 * 1024,
    "read_until_eof": True,
}


# --- a home for each loop ------------------------------------------------------------------------------


class AsyncConnectionPool:
    """The homes of all event loops. A SOCKS proxy has homes of its own."""

    def __init__(self, keep_alive: float, context: Callable[[], ssl.SSLContext]) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._homes: dict[_Key, _LoopPool] = {}
        self._lock = threading.Lock()
        _all_homes.add(self)

    async def open(self, trip: HttpExchange) -> AsyncReply:
        """Send the request and read the reply's head."""
        socks = trip.proxy if trip.proxy is not None and trip.proxy.is_socks else None
        home = self._homes.get((asyncio.get_running_loop(), socks)) or await self._new_home(socks)
        reply = AsyncReply(home, trip)
        await reply.begin()
        return reply

    async def _new_home(self, socks: Proxy | None) -> _LoopPool:
        with self._lock:
            home = _LoopPool(self._homes, socks, self._keep_alive, self._context)
            self._homes[home.loop, socks] = home
        await anext(home.end)
        return home

    def close(self) -> None:
        """Close the idle connections of all loops, from any thread; those in use close when their reply has come."""
        for home in self._let_go():
            home.retire()

    def _let_go(self) -> list[_LoopPool]:
        with self._lock:
            homes, self._homes = self._homes, {}
        return list(homes.values())

    async def aclose(self) -> None:
        """The same, and await the end of those of this loop."""
        here = [home for home in list(self._homes.values()) if home.loop is asyncio.get_running_loop()]
        self.close()
        await asyncio.gather(*(home.closing for home in here if home.closing is not None), return_exceptions=True)

    def start_anew(self) -> None:
        """In a forked child: the loops are the parent's. Closing through them would reach into its selectors."""
        self._lock = threading.Lock()  # a thread that did not come along may hold the other
        homes = self._let_go()
        _of_the_parent.extend(homes)
        for home in homes:
            home.close_sockets()  # this process's copies of the file descriptors; nothing is sent


_all_homes: weakref.WeakSet[AsyncConnectionPool] = weakref.WeakSet()
# Never collected, because aiohttp would complain of it, and reach into the parent's selector.
_of_the_parent: list[_LoopPool] = []


def _start_anew() -> None:
    for homes in list(_all_homes):
        homes.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_anew)


async def _until_the_loop_ends(homes: dict[_Key, _LoopPool], home: _LoopPool) -> AsyncGenerator[None]:
    """Waits among the loop's async generators; a loop that ends in order closes them, and so does ``close``."""

    # A loop that is closed drops its timers, whatever else it forgets: so one that never rings tells of it.
    def never() -> None: ...

    weakref.finalize(never, _bury, homes, weakref.ref(home)).atexit = False
    timer = weakref.ref(home.loop.call_later(_YEARS, never))
    del never
    try:
        yield
    finally:
        if (waiting := timer()) is not None:
            waiting.cancel()
        homes.pop((home.loop, home.socks), None)
        home.deadlines.close()
        await home.connector.close()


def _bury(homes: dict[_Key, _LoopPool], reference: weakref.ref[_LoopPool]) -> None:
    if (home := reference()) is not None and home.loop.is_closed():
        homes.pop((home.loop, home.socks), None)
        home.bury()


class _LoopPool:
    """The connections of a loop, and the requests that use them."""

    def __init__(
        self,
        homes: dict[_Key, _LoopPool],
        socks: Proxy | None,
        keep_alive: float,
        context: Callable[[], ssl.SSLContext],
    ) -> None:
        self.loop, self.socks, self._context = asyncio.get_running_loop(), socks, context
        self.replies: set[AsyncReply] = set()
        self.retired = False
        self.closing: asyncio.Task[None] | None = None
        self.closed = threading.Event()
        self.end = _until_the_loop_ends(homes, self)
        self.deadlines = DeadlineTimer(self.loop)
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._transports: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()  # that have carried a request
        self._ways: dict[Origin, aiohttp.ClientRequest] = {}
        self.connector = self._connector(keepalive_timeout=keep_alive, limit=0, socket_factory=self._new_socket)

    def _connector(self, **options: Any) -> aiohttp.TCPConnector:
        if self.socks is None:
            return aiohttp.TCPConnector(
                resolver=aiohttp.ThreadedResolver(), **options
            )  # the system's, also with aiodns
        connectors: Any = _socks_connectors(self.socks)
        where = {name: getattr(self.socks, name) or None for name in ("host", "port", "username", "password")}
        made: aiohttp.TCPConnector = connectors.ProxyConnector(**where, rdns=True, **options)
        return made

    def _new_socket(self, info: Any) -> socket.socket:
        opened = configure_socket(socket.socket(*info[:3]))
        self._sockets.add(opened)
        return opened

    async def connection(self, trip: HttpExchange) -> Connection:
        """A new one, or one that was kept and is still good.

        aiohttp would find out that the server has closed it when the request is lost, and would take whatever the server has
        said unasked for the reply (it keeps connections on which something came: aiohttp 3.14, ``BaseConnector._get``).
        """
        way, limit = self._way(trip), _connect_limit(trip.connect_limit)
        while True:
            connection = await self.connector.connect(way, [], limit)
            transport = connection.transport
            if transport is None or connection.protocol is None:  # opened, and closed by the server at once
                connection.close()
                raise aiohttp.ServerDisconnectedError
            if transport not in self._transports:
                self._transports.add(transport)
                return connection
            if not (connection.protocol.should_close or has_pending_data(transport.get_extra_info("socket").fileno())):
                return connection
            _abort(connection)  # and look at the next one; sooner or later there is no other

    def _way(self, trip: HttpExchange) -> aiohttp.ClientRequest:
        """Where a connection goes, as aiohttp's connector wants to be told: as a request, which nobody sends."""
        proxy = None if self.socks is not None else trip.proxy
        if proxy is not None:  # aiohttp notes things in these
            return self._new_way(trip, proxy=URL(proxy.url), proxy_headers=proxy.authorization)
        way = self._ways.get(trip.endpoint.origin)
        if way is None:
            way = self._ways[trip.endpoint.origin] = self._new_way(trip)
        return way

    def _new_way(self, trip: HttpExchange, **proxy: Any) -> aiohttp.ClientRequest:
        url = URL(f"{trip.endpoint.scheme}://{trip.endpoint.authority}", encoded=True)
        tls = self._context() if trip.needs_tls else True
        return aiohttp.ClientRequest("POST", url, loop=self.loop, ssl=tls, **proxy)

    def leave(self, reply: AsyncReply) -> None:
        """One request less."""
        self.replies.discard(reply)
        if self.retired and not self.replies and not self.loop.is_closed():
            self._close()

    def retire(self) -> None:
        """Close when nobody uses it any more; from any thread."""
        if self.loop.is_closed():
            self.bury()
            return
        if _running_loop() is self.loop:
            self._retire()
            return
        if not (self.loop.is_running() or self.replies):
            self._shut_down_sockets()  # at once; the loop learns of it when it runs again
        with suppress(RuntimeError):  # closed in the meantime
            self.loop.call_soon_threadsafe(self._retire)
            if self.loop.is_running():
                self.closed.wait(_MOMENT)

    def _retire(self) -> None:
        self.retired = True
        if self.replies:
            self.closed.set()  # as far as it can be now
        else:
            self._close()

    def _close(self) -> None:
        self.closing = self.loop.create_task(self.end.aclose())
        self.closing.add_done_callback(self._ended)

    def _ended(self, closing: asyncio.Task[None]) -> None:
        if not closing.cancelled():
            closing.exception()  # that the loop was ending it at the same time is nobody's trouble
        self.closed.set()

    def bury(self) -> None:
        """The loop is closed, and closed nothing else."""
        self.close_sockets()
        for reply in list(self.replies):
            reply.finish()
        for transport in list(self._transports):
            _disown(transport)
        with suppress(StopIteration):  # on a closed loop there is nothing to wait for
            self.connector.close().__await__().send(None)

    def close_sockets(self) -> None:
        """Close the file descriptors; no loop may be watching them."""
        for opened in list(self._sockets):
            opened.close()

    def _shut_down_sockets(self) -> None:
        for opened in list(self._sockets):
            with suppress(OSError):  # not connected any more
                opened.shutdown(socket.SHUT_RDWR)


def _socks_connectors(proxy: Proxy) -> Any:
    """aiohttp's connectors for SOCKS. Raises ``ConfigurationError`` where it is not installed."""
    try:
        return importlib.import_module("aiohttp_socks")
    except ImportError as error:
        raise ConfigurationError(
            f'{proxy} speaks SOCKS, which aiohttp needs one more package for. Run: pip install "sigwire[socks]"'
        ) from error


class DeadlineTimer:
    """The deadlines of a loop's requests, with one timer for all: hardly one of them ever passes, and timers are dear."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[AsyncReply, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings = math.inf

    def add(self, reply: AsyncReply, deadline: float) -> None:
        """See that it is told when its deadline passes."""
        self._waiting[reply] = deadline
        if deadline < self._rings:
            self._set(deadline)

    def remove(self, reply: AsyncReply) -> None:
        """It has come to its end."""
        self._waiting.pop(reply, None)

    def _set(self, deadline: float) -> None:
        self.close()
        self._rings = deadline
        self._timer = self._loop.call_later(deadline - time.monotonic(), self._ring)

    def _ring(self) -> None:
        self._rings, now = math.inf, time.monotonic()
        for reply in [reply for reply, deadline in self._waiting.items() if deadline <= now]:
            self.remove(reply)
            reply.expire()
        if self._waiting:
            self._set(min(self._waiting.values()))

    def close(self) -> None:
        """Nothing is under way any more."""
        if self._timer is not None:
            self._timer.cancel()


@lru_cache(maxsize=64)
def _connect_limit(seconds: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, connect=seconds, ceil_threshold=_YEARS)


def _disown(transport: asyncio.Transport) -> None:
    """End what is left of a transport whose loop and socket are closed.

    Nothing public does that: ``abort`` marks it and then wants its loop. Without this asyncio writes a ``ResourceWarning`` when
    it is collected; should the names change, then that is all that happens.
    """
    with suppress(RuntimeError):
        transport.abort()
    below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None) or transport
    if hasattr(below, "_sock"):
        setattr(below, "_sock", None)  # noqa: B010


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


# --- one exchange --------------------------------------------------------------------------------------


class AsyncReply:
    """A request that is sent, and its reply. At the deadline the connection is closed, and who waits learns of it."""

    __slots__ = (
        "_body",
        "_connection",
        "_done",
        "_home",
        "_late",
        "_sending",
        "_trip",
        "_unpacker",
        "headers",
        "status",
    )

    _body: aiohttp.StreamReader
    status: int
    headers: dict[str, str]

    def __init__(self, home: _LoopPool, trip: HttpExchange) -> None:
        self._home, self._trip = home, trip
        self._connection: Connection | None = None
        self._sending: asyncio.Task[None] | None = None
        self._unpacker: BodyDecompressor | None = None
        self._late = self._done = False
        home.replies.add(self)
        if trip.deadline is not None:
            home.deadlines.add(self, trip.deadline)

    async def begin(self) -> None:
        """Send the request and await the reply's head."""
        trip = self._trip
        try:
            self._connection = connection = await self._home.connection(trip)
            seconds_until(trip.deadline)
            self._send(connection)
            await self._read_head(connection)
        except BaseException as error:
            self._fail(error)

    def expire(self) -> None:
        """Its deadline has passed."""
        self._late = True
        if self._connection is not None and self._connection.transport is not None:
            self._connection.transport.abort()

    def _send(self, connection: Connection) -> None:
        protocol, transport, request = connection.protocol, connection.transport, self._trip.request
        assert protocol is not None
        assert transport is not None
        self._trip.phase = "sending the request"
        protocol.set_response_params(skip_payload=request.method == "HEAD", **_READING)
        head = self._trip.whole_head()
        if len(request.body) <= _LARGE:
            transport.write(head + request.body)
        else:
            writer = StreamWriter(protocol, self._home.loop)
            self._sending = self._home.loop.create_task(_send_in_parts(writer, head, request.body))
        self._trip.phase = "waiting for the reply"

    async def _read_head(self, connection: Connection) -> None:
        assert connection.protocol is not None
        message, body = await connection.protocol.read()
        while 100 <= message.code < 200 and message.code != 101:  # provisional, such as 103 Early Hints
            message, body = await connection.protocol.read()
        self._trip.phase = "reading the reply"
        self.status, self.headers, self._body = message.code, read_head(message.code, message.headers.items()), body
        body.on_eof(self._give_back)

    async def read(self) -> bytes:
        """The whole body."""
        pieces: list[bytes] = []
        try:
            unpacker = self._begin()
            while packed := await self._body.readany():
                pieces.append(unpacker.feed(packed))
            self._check_late()
            pieces.append(unpacker.feed(b""))
        except BaseException as error:
            self._fail(error)
        return b"".join(pieces)

    async def next(self) -> bytes:
        """The next piece of the body, ``b""`` after the last."""
        try:
            unpacker = self._begin()
            while packed := await self._body.readany():
                if piece := unpacker.feed(packed):
                    return piece
            self._check_late()
            return unpacker.feed(b"")
        except BaseException as error:
            self._fail(error)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if piece := await self.next():
            return piece
        raise StopAsyncIteration

    def _begin(self) -> BodyDecompressor:
        if self._done and not self._body.is_eof():
            raise self._trip.closed_early()
        seconds_until(self._trip.deadline)
        if self._unpacker is None:
            self._unpacker = BodyDecompressor(self.headers.get("content-encoding", ""), self._trip.max_reply)
        return self._unpacker

    def _check_late(self) -> None:
        """A body may last until its connection ends, and then looks whole."""
        if self._late:
            raise TimeoutError

    def _fail(self, error: BaseException) -> NoReturn:
        self.finish()
        raise_transport_error(TimeoutError() if self._late and isinstance(error, Exception) else error, self._trip)

    def finish(self) -> None:
        """Give the connection back where it may be used again, else close it. May be called twice."""
        if self._done:
            return
        self._done = True
        self._home.deadlines.remove(self)
        if self._connection is not None:  # else the body's end has given it back
            _abort(self._connection)
        if self._sending is not None:
            with suppress(RuntimeError):  # its loop is closed
                self._sending.cancel()
        self._home.leave(self)

    def _give_back(self) -> None:
        """The reply is whole. Where the request is not, the server does not want the rest."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._sending is None or self._sending.done():
            connection.release()
        else:
            _abort(connection)


async def _send_in_parts(writer: StreamWriter, head: bytes, body: bytes) -> None:
    """Send as the other side takes it. A server may answer and close before it has read everything: the reply tells."""
    with suppress(OSError):
        await writer.write(head)
        for start in range(0, len(body), _PART):
            await writer.write(body[start : start + _PART])


def _abort(connection: Connection | None) -> None:
    """Close a connection at once, without TLS's farewells; where its loop is closed, that is done already."""
    if connection is None:
        return
    with suppress(RuntimeError):
        if connection.transport is not None:
            connection.transport.abort()
    with suppress(RuntimeError):
        connection.close()
