"""Awaited requests: aiohttp, with one session for each event loop, closed when the loop ends.

    sessions = Sessions(keep_alive, context)
    reply = await sessions.open(trip)          sends, and reads the reply's head
    await reply.read(), await reply.next()     all of the body, or its next piece, b"" after the last
    reply.finish()                             keeps the connection where the reply allows it, else closes it

A connection of asyncio's belongs to the loop that opened it. So a ``_Home`` is made by the first request of each loop, and ends

- with the loop, where that is told so (``asyncio.run``, ``Runner``): an async generator of ours is among those it shuts down;
- by ``close()``, which may be called from anywhere;
- where a loop was closed without a word: at the next request of another loop, or ``close()``. Its sockets are known
  (``socket_factory``), so they can be closed without it.

Importing aiohttp takes longer than everything else in sigwire; this module is imported by the first awaited request.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import aiohttp
from yarl import URL

from sigwire.lm.routes import Proxy
from sigwire.lm.trips import (
    ProtocolError,
    Trip,
    Unpacker,
    configured,
    explained,
    extra,
    joined,
    no_tunnel,
    socks_fault,
    time_left,
)

__all__ = ["AwaitedReply", "Sessions"]

_Key: TypeAlias = "tuple[asyncio.AbstractEventLoop, Proxy | None]"
_LARGE = 512 * 1024  # larger bodies are sent in parts, so that the loop stays free
_HEAD_LIMITS: dict[str, Any] = {"max_line_size": 64 * 1024, "max_field_size": 64 * 1024}


# --- sessions ------------------------------------------------------------------------------------------


class Sessions:
    """The sessions of all event loops. A SOCKS proxy has sessions of its own."""

    def __init__(self, keep_alive: float, context: Callable[[], ssl.SSLContext]) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._homes: dict[_Key, _Home] = {}
        _all_sessions.add(self)

    async def open(self, trip: Trip) -> AwaitedReply:
        """Send the request and read the reply's head."""
        home = await self._home(trip.proxy if trip.proxy is not None and trip.proxy.is_socks else None)
        home.users += 1
        try:
            async with asyncio.timeout(time_left(trip.deadline)):
                response = await home.request(trip, self._context() if trip.needs_tls else None)
        except BaseException as error:
            home.leave()
            raise _told(error, trip) from None
        trip.phase = "reading the reply"
        return AwaitedReply(home, response, trip)

    async def _home(self, socks: Proxy | None) -> _Home:
        loop = asyncio.get_running_loop()
        home = self._homes.get((loop, socks))
        if home is None:
            self._bury_the_dead()
            home = self._homes[loop, socks] = _Home(socks, self._keep_alive)
            home.end = _until_the_loop_ends(self._homes, home)
            await anext(home.end)
        return home

    def _bury_the_dead(self) -> None:
        for key in [key for key in list(self._homes) if key[0].is_closed()]:
            if home := self._homes.pop(key, None):
                home.bury()

    def close(self) -> None:
        """Close the idle connections of all loops, from any thread; those in use close when their reply has come."""
        homes, self._homes = self._homes, {}
        for home in homes.values():
            home.retire()

    async def aclose(self) -> None:
        """The same, and await the end of those of this loop."""
        self.close()
        await asyncio.sleep(0)

    def start_anew(self) -> None:
        """In a forked child: the loops are the parent's. Closing through them would reach into its selectors."""
        homes, self._homes = self._homes, {}
        _of_the_parent.extend(homes.values())
        for home in homes.values():
            home.close_sockets()  # this process's copies of the file descriptors; nothing is sent


_all_sessions: weakref.WeakSet[Sessions] = weakref.WeakSet()
_of_the_parent: list[
    _Home
] = []  # never collected, because aiohttp would complain of it, and touch the parent's selector


def _start_anew() -> None:
    for sessions in list(_all_sessions):
        sessions.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_anew)


async def _until_the_loop_ends(homes: dict[_Key, _Home], home: _Home) -> AsyncGenerator[None]:
    """Waits among the loop's async generators; a loop that ends in order closes them."""
    try:
        yield
    finally:
        homes.pop((home.loop, home.socks), None)
        await home.connector.close()


class _Home:
    """A session, its loop, its sockets, and how many requests use it."""

    def __init__(self, socks: Proxy | None, keep_alive: float) -> None:
        self.loop, self.socks = asyncio.get_running_loop(), socks
        self.users, self.retired = 0, False
        self.end: AsyncGenerator[None] | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self.connector = self._connector(keepalive_timeout=keep_alive, limit=0, socket_factory=self._new_socket)
        self._session = aiohttp.ClientSession(
            connector=self.connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            response_class=_Response,
            skip_auto_headers=("content-type",),
            **_HEAD_LIMITS,
        )

    def _connector(self, **options: Any) -> aiohttp.TCPConnector:
        if self.socks is None:
            return aiohttp.TCPConnector(**options)
        connectors: Any = extra("aiohttp_socks", self.socks)
        where = {name: getattr(self.socks, name) or None for name in ("host", "port", "username", "password")}
        made: aiohttp.TCPConnector = connectors.ProxyConnector(**where, rdns=True, **options)
        return made

    def _new_socket(self, info: Any) -> socket.socket:
        opened = configured(socket.socket(*info[:3]))
        self._sockets.add(opened)
        return opened

    async def request(self, trip: Trip, context: ssl.SSLContext | None) -> aiohttp.ClientResponse:
        """Send, and await the reply's head."""
        # What idle connections have to say (that the server closed them) is heard in two turns of the loop: one in which
        # the selector tells, one in which asyncio is called. A POST must not find out by being lost.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        request, end = trip.request, trip.endpoint
        proxy = None if self.socks is not None else trip.proxy
        return await self._session.request(
            request.method,
            URL(end.absolute, encoded=True),
            headers=trip.headers,
            data=io.BytesIO(request.body) if len(request.body) > _LARGE else request.body,
            allow_redirects=False,
            proxy=None if proxy is None else proxy.url,
            proxy_headers=None if proxy is None else proxy.authorization,
            ssl=True if context is None else context,
            timeout=aiohttp.ClientTimeout(total=None, connect=trip.connect_limit, ceil_threshold=1e9),
        )

    def leave(self) -> None:
        """One request less."""
        self.users -= 1
        if self.retired and not self.users:
            self._close()

    def retire(self) -> None:
        """Close when nobody uses it any more; from any thread."""
        if self.loop.is_closed():
            self.bury()
            return
        if _running_loop() is self.loop:
            self._retire()
            return
        if not (self.loop.is_running() or self.users):
            self._shut_down_sockets()  # at once; the loop learns of it when it runs again
        with suppress(RuntimeError):  # closed in the meantime
            self.loop.call_soon_threadsafe(self._retire)

    def _retire(self) -> None:
        self.retired = True
        if not self.users:
            self._close()

    def _close(self) -> None:
        self._closing = self.loop.create_task(self.connector.close())

    def bury(self) -> None:
        """The loop is closed, and closed nothing else."""
        self.close_sockets()
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


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


# --- one exchange --------------------------------------------------------------------------------------


class _Response(aiohttp.ClientResponse):
    """A reply whose connection is closed at once when nobody waits for its head any more, and not after TLS's farewells."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        try:
            return await super().start(connection)
        except BaseException:
            if connection.transport is not None:
                connection.transport.abort()
            raise


class AwaitedReply:
    """A reply whose head has come."""

    __slots__ = ("_done", "_home", "_response", "_trip", "_unpacker", "headers", "status")

    def __init__(self, home: _Home, response: aiohttp.ClientResponse, trip: Trip) -> None:
        self._home, self._response, self._trip = home, response, trip
        self.status = response.status
        self.headers = joined(response.headers.items())
        self._unpacker: Unpacker | None = None
        self._done = False

    async def read(self) -> bytes:
        """The whole body."""
        pieces: list[bytes] = []
        while piece := await self.next():
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def next(self) -> bytes:
        """The next piece of the body, ``b""`` after the last."""
        try:
            if self._unpacker is None:
                self._unpacker = Unpacker(self.headers.get("content-encoding", ""))
            async with asyncio.timeout(time_left(self._trip.deadline)):
                while packed := await self._response.content.readany():
                    if piece := self._unpacker.feed(packed):
                        return piece
            return self._unpacker.feed(b"")
        except BaseException as error:
            self.finish()
            raise _told(error, self._trip) from None

    def finish(self) -> None:
        """Give the connection back where it may be used again, else close it. May be called twice."""
        if self._done:
            return
        self._done = True
        connection = self._response.connection
        if connection is not None and connection.transport is not None:  # the body's end would have given it back
            connection.transport.abort()
        self._response.close()
        self._home.leave()


def _told(error: BaseException, trip: Trip) -> BaseException:
    """What went wrong, in sigwire's words; what is not the network's business, as it is."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError | aiohttp.ConnectionTimeoutError):
        trip.phase = "connecting"
    elif trip.phase == "connecting":
        trip.phase = "waiting for the reply"
    if isinstance(error, TimeoutError):
        return trip.too_late()
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return trip.broken(no_tunnel(trip.proxy, error.status))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        return trip.broken(*explained(cause)) if isinstance(cause, OSError) else trip.broken(str(cause))
    if isinstance(error, aiohttp.ClientConnectorError):
        return trip.broken(*explained(error.os_error))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return trip.broken("the server closed the connection without a reply")
    if isinstance(error, OSError):
        return trip.broken(*explained(error))
    if isinstance(error, aiohttp.ClientPayloadError):
        return trip.broken(f"the reply's body is cut off or damaged ({error})")
    if isinstance(error, aiohttp.ClientError):
        return trip.broken(
            f"what came is not an HTTP/1.1 reply ({getattr(error, 'message', '') or type(error).__name__})"
        )
    if isinstance(error, ProtocolError):
        return trip.broken(str(error))
    return trip.broken(socks_fault(trip.proxy, error)) if type(error).__module__.startswith("python_socks") else error
