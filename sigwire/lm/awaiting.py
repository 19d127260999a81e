"""Awaited requests: aiohttp, with one session for each event loop, closed when the loop ends.

    sessions = Sessions(keep_alive, context)
    reply = await sessions.open(trip)          sends, and reads the reply's head
    await reply.read(), await reply.next()     all of the body, or its next piece, b"" after the last
    reply.finish()                             keeps the connection where the reply allows it, else closes it

A connection of asyncio's belongs to the loop that opened it. So a ``_Home`` is made by the first request of each loop, and ends

- with the loop, where that is told so (``asyncio.run``, ``Runner``): an async generator of ours is among those it shuts down;
- by ``close()``, which may be called from anywhere;
- with a loop that is closed by hand, without that: a timer tells, which the loop drops. The sockets are known
  (``socket_factory``), so they can be closed without it.

Importing aiohttp takes longer than everything else in sigwire; this module is imported by the first awaited request.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import os
import socket
import ssl
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, NoReturn, TypeAlias, cast

import aiohttp
from yarl import URL

from sigwire.errors import ConfigurationError, LMError
from sigwire.lm.routes import Proxy
from sigwire.lm.trips import ProtocolError, Trip, Unpacker, configured, explained, has_news, read_head, time_left

__all__ = ["AwaitedReply", "Sessions"]

_Key: TypeAlias = "tuple[asyncio.AbstractEventLoop, Proxy | None]"
_YEARS, _MOMENT = 1e8, 1.0  # seconds
_LARGE = 512 * 1024  # larger bodies are sent in parts, so that the loop stays free
_HEAD_LIMITS: dict[str, Any] = {"max_line_size": 64 * 1024, "max_field_size": 64 * 1024}


# --- sessions ------------------------------------------------------------------------------------------


class Sessions:
    """The sessions of all event loops. A SOCKS proxy has sessions of its own."""

    def __init__(self, keep_alive: float, context: Callable[[], ssl.SSLContext]) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._homes: dict[_Key, _Home] = {}
        self._lock = threading.Lock()
        _all_sessions.add(self)

    async def open(self, trip: Trip) -> AwaitedReply:
        """Send the request and read the reply's head."""
        socks = trip.proxy if trip.proxy is not None and trip.proxy.is_socks else None
        home = self._homes.get((asyncio.get_running_loop(), socks)) or await self._new_home(socks)
        home.users += 1
        try:
            response = await home.request(trip, self._context() if trip.needs_tls else None)
        except BaseException as error:
            home.leave()
            _tell(error, trip)
        return AwaitedReply(home, response, trip)

    async def _new_home(self, socks: Proxy | None) -> _Home:
        with self._lock:
            home = self._homes[asyncio.get_running_loop(), socks] = _Home(self._homes, socks, self._keep_alive)
        await anext(home.end)
        return home

    def close(self) -> None:
        """Close the idle connections of all loops, from any thread; those in use close when their reply has come."""
        for home in self._let_go():
            home.retire()

    def _let_go(self) -> list[_Home]:
        with self._lock:
            homes, self._homes = self._homes, {}
        return list(homes.values())

    async def aclose(self) -> None:
        """The same, and await the end of those of this loop."""
        here = [home for home in list(self._homes.values()) if home.loop is asyncio.get_running_loop()]
        self.close()
        await asyncio.gather(*(home.closing for home in here if home.closing is not None))

    def start_anew(self) -> None:
        """In a forked child: the loops are the parent's. Closing through them would reach into its selectors."""
        self._lock = threading.Lock()  # a thread that did not come along may hold the other
        homes = self._let_go()
        _of_the_parent.extend(homes)
        for home in homes:
            home.close_sockets()  # this process's copies of the file descriptors; nothing is sent


_all_sessions: weakref.WeakSet[Sessions] = weakref.WeakSet()
# Never collected, because aiohttp would complain of it, and reach into the parent's selector.
_of_the_parent: list[_Home] = []


def _start_anew() -> None:
    for sessions in list(_all_sessions):
        sessions.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_anew)


async def _until_the_loop_ends(homes: dict[_Key, _Home], home: _Home) -> AsyncGenerator[None]:
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
        await home.connector.close()


def _bury(homes: dict[_Key, _Home], reference: weakref.ref[_Home]) -> None:
    if (home := reference()) is not None and home.loop.is_closed():
        homes.pop((home.loop, home.socks), None)
        home.bury()


class _Home:
    """A session, its loop, its sockets, and how many requests use it."""

    def __init__(self, homes: dict[_Key, _Home], socks: Proxy | None, keep_alive: float) -> None:
        self.loop, self.socks = asyncio.get_running_loop(), socks
        self.users, self.retired = 0, False
        self.closing: asyncio.Task[None] | None = None
        self.closed = threading.Event()
        self.end = _until_the_loop_ends(homes, self)
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._transports: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self.connector = self._connector(keepalive_timeout=keep_alive, limit=0, socket_factory=self._new_socket)
        self._session = aiohttp.ClientSession(
            connector=self.connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            request_class=type("_HomesRequest", (_Request,), {"transports": self._transports}),
            response_class=_Response,
            skip_auto_headers=("content-type",),
            **_HEAD_LIMITS,
        )

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
        opened = configured(socket.socket(*info[:3]))
        self._sockets.add(opened)
        return opened

    async def request(self, trip: Trip, context: ssl.SSLContext | None) -> aiohttp.ClientResponse:
        """Send, and await the reply's head."""
        request, end = trip.request, trip.endpoint
        proxy = None if self.socks is not None else trip.proxy
        time_left(trip.deadline)  # aiohttp counts from here on
        while True:
            try:
                return await self._session.request(
                    request.method,
                    URL(end.absolute, encoded=True),
                    headers=trip.headers,
                    data=io.BytesIO(request.body) if len(request.body) > _LARGE else request.body,
                    allow_redirects=False,
                    proxy=None if proxy is None else proxy.url,
                    proxy_headers=None if proxy is None else proxy.authorization,
                    ssl=True if context is None else context,
                    timeout=_timeout(trip.limit, trip.connect_limit),
                )
            except _GivenUpError:  # and closed; nothing was sent, and sooner or later there is no other idle one
                continue

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
            if self.loop.is_running():
                self.closed.wait(_MOMENT)

    def _retire(self) -> None:
        self.retired = True
        if self.users:
            self.closed.set()  # as far as it can be now
        else:
            self._close()

    def _close(self) -> None:
        self.closing = self.loop.create_task(self.end.aclose())
        self.closing.add_done_callback(lambda _: self.closed.set())

    def bury(self) -> None:
        """The loop is closed, and closed nothing else."""
        self.close_sockets()
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


@lru_cache(maxsize=64)
def _timeout(total: float | None, connect: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, connect=connect, ceil_threshold=_YEARS)


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


class _GivenUpError(Exception):
    """An idle connection was closed by the server, or spoken on."""


class _Request(aiohttp.ClientRequest):
    """Looks at a kept connection before it is used again.

    aiohttp would find out that the server has closed it when the request is lost, and would take whatever the server has said
    unasked for the reply (it keeps connections on which something came: aiohttp 3.14, ``BaseConnector._get``).
    """

    transports: ClassVar[weakref.WeakSet[asyncio.Transport]]  # of one home: those that have carried a request

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        if conn.transport in self.transports and (
            conn.protocol.should_close or has_news(conn.transport.get_extra_info("socket").fileno())
        ):
            _abort(conn)
            raise _GivenUpError
        self.transports.add(conn.transport)
        return await super().send(conn)


class _Response(aiohttp.ClientResponse):
    """A reply whose connection is closed at once when nobody waits for its head any more, and not after TLS's farewells."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        try:
            return await super().start(connection)
        except BaseException:
            _abort(connection)
            raise


def _abort(connection: Any) -> None:
    """Close a connection at once; where its loop is closed, that is done already."""
    if connection is not None and connection.transport is not None:
        with suppress(RuntimeError):
            connection.transport.abort()


class AwaitedReply:
    """A reply whose head has come."""

    __slots__ = ("_done", "_home", "_response", "_trip", "_unpacker", "headers", "status")

    def __init__(self, home: _Home, response: aiohttp.ClientResponse, trip: Trip) -> None:
        self._home, self._response, self._trip = home, response, trip
        self._unpacker: Unpacker | None = None
        self._done = False
        self.status = response.status
        trip.phase = "reading the reply"
        try:
            self.headers = read_head(response.status, response.headers.items())
        except ProtocolError as error:
            self.finish()
            raise trip.broken(str(error)) from None

    async def read(self) -> bytes:
        """The whole body."""
        try:
            unpacker = self._begin()
            return unpacker.feed(await self._response.read()) + unpacker.feed(b"")
        except BaseException as error:
            self._fail(error)

    async def next(self) -> bytes:
        """The next piece of the body, ``b""`` after the last."""
        try:
            unpacker = self._begin()
            while packed := await self._response.content.readany():
                if piece := unpacker.feed(packed):
                    return piece
            return unpacker.feed(b"")
        except BaseException as error:
            self._fail(error)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if piece := await self.next():
            return piece
        raise StopAsyncIteration

    def _begin(self) -> Unpacker:
        time_left(self._trip.deadline)  # aiohttp minds it only while it waits
        if self._unpacker is None:
            self._unpacker = Unpacker(self.headers.get("content-encoding", ""))
        return self._unpacker

    def _fail(self, error: BaseException) -> NoReturn:
        self.finish()
        _tell(error, self._trip)

    def finish(self) -> None:
        """Give the connection back where it may be used again, else close it. May be called twice."""
        if self._done:
            return
        self._done = True
        if not self._response.closed:  # the body's end would have closed it, and given the connection back
            _abort(self._response.connection)
            with suppress(RuntimeError):
                self._response.close()
        self._home.leave()


_WHILE_CONNECTING = (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError, aiohttp.ConnectionTimeoutError)


def _tell(error: BaseException, trip: Trip) -> NoReturn:
    """Raise what went wrong in sigwire's words; what is not the network's business, as it is.

    aiohttp's own errors are not shown as the cause: they hold the address with its query, where keys travel.
    """
    told = _told(error, trip)
    if told is None:
        raise error
    raise told from getattr(error, "os_error", None)


def _told(error: BaseException, trip: Trip) -> LMError | None:
    if isinstance(error, _WHILE_CONNECTING) or _is_socks_error(error):
        trip.phase = "connecting"
    elif trip.phase == "connecting":
        trip.phase = "waiting for the reply"
    if isinstance(error, TimeoutError):
        return trip.too_late()
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return trip.broken(_no_tunnel(trip.proxy, error.status))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return trip.broken(*explained(cast(OSError, error.certificate_error)))
    if isinstance(error, aiohttp.ClientConnectorError):
        return trip.broken(*explained(error.os_error))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        begun = not isinstance(error.message, str)  # aiohttp puts there what has come of the head
        where = "in the middle of the reply's head" if begun else "without a reply"
        return trip.broken(f"the server closed the connection {where}")
    if isinstance(error, OSError):
        return trip.broken(*explained(error))
    if isinstance(error, aiohttp.ClientPayloadError):
        cut = "Not enough data" in str(error)
        what = "the server closed the connection in the middle of" if cut else "there is a fault in the framing of"
        return trip.broken(f"{what} the reply's body")
    if isinstance(error, aiohttp.ClientError):
        return trip.broken("what came is not an HTTP/1.1 reply")
    if isinstance(error, ProtocolError):
        return trip.broken(str(error))
    return trip.broken(_socks_fault(trip.proxy, error)) if _is_socks_error(error) else None


# --- proxies -------------------------------------------------------------------------------------------


def _no_tunnel(proxy: Proxy | None, status: int) -> str:
    """What to say of a proxy that refused CONNECT."""
    why = " (it wants a user name and password in its URL)" if status == 407 else ""
    return f"{proxy} answered CONNECT with status {status}{why}"


def _socks_connectors(proxy: Proxy) -> Any:
    """aiohttp's connectors for SOCKS. Raises ``ConfigurationError`` where it is not installed."""
    try:
        return importlib.import_module("aiohttp_socks")
    except ImportError as error:
        raise ConfigurationError(
            f'{proxy} speaks SOCKS, which aiohttp needs one more package for. Run: pip install "sigwire[socks]"'
        ) from error


def _is_socks_error(error: BaseException) -> bool:
    """Whether it is one of the extra's own, which must not be imported to ask."""
    return type(error).__module__.startswith(("python_socks", "aiohttp_socks"))


_SOCKS_FAULTS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "it took too long",
    7: "command not supported",
    8: "address type not supported",
}


def _socks_fault(proxy: Proxy | None, error: BaseException) -> str:
    """What to say of a SOCKS proxy that refused, or is not there."""
    code = getattr(error, "error_code", None)
    if code is not None:
        return f"{proxy} could not connect: {_SOCKS_FAULTS.get(code, f'fault {code}')}"
    hint = " (user and password belong into its URL)" if "authentication" in str(error).lower() else ""
    return f"{proxy}: {error}{hint}"
