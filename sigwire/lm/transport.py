"""Where bytes move: one HTTP request out, one reply back. Decides nothing about providers, retries or keys.

    HttpRequest(url, headers, body)  ─▶  Transport.send / asend / stream / astream  ─▶  HttpReply(status, headers, body)

``Transport`` is the seam: anything with these methods will do, a test double included. ``HttpTransport`` is what sigwire
uses. Its rules:

- One ``send`` is at most one request on the network. Nothing is retried here; a kept connection is looked at before use.
- Idle connections are kept and belong to no event loop or thread: a hundred calls of ``asyncio.run`` may share one.
  ``close()`` closes them; so does the end of the transport or of the interpreter; a forked child begins with none.
- Who stops waiting (a deadline, a cancelled task, an interrupt) closes the connection: no answer is paid for in silence.
- A redirect is an error, because following it would take the key along. Cookies are not kept. ``.netrc`` is not read.
- Any status is a reply; no reply is ``LMTransportError`` or ``LMTimeoutError``, which name the address without its query.

Written once, as programs of ``sigwire.steps``; HTTP/1.1 itself is in ``http1``, sockets, TLS and proxies in ``sockets``.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urljoin

from sigwire.errors import ConfigurationError, LMTimeoutError, LMTransportError
from sigwire.lm.http1 import ProtocolError, ReplyReader, encode_head
from sigwire.lm.pool import Connection, Pool
from sigwire.lm.routes import Certificate, Endpoint, Origin, endpoint, proxy_from_env, shown, tls_context
from sigwire.lm.sockets import Line, Proxy, Within, connect, secure, time_left
from sigwire.steps import Program, arun, run

__all__ = [
    "AsyncReplyStream",
    "HttpReply",
    "HttpRequest",
    "HttpTransport",
    "ReplyStream",
    "Transport",
]

# --- what goes out, what comes back --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. ``timeout`` (seconds for everything, connecting included) is the transport's own where it is ``None``.

    The repr shows neither the values of headers nor the query, where keys travel.

    >>> HttpRequest("https://api.example.com/v1/chat?key=k", {"authorization": "Bearer k"}, b"{}")
    HttpRequest(POST https://api.example.com/v1/chat, headers: authorization, 2 bytes)
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    method: str = "POST"
    timeout: float | None = None

    def __repr__(self) -> str:
        names = ", ".join(self.headers) or "none"
        return f"HttpRequest({self.method} {shown(self.url)}, headers: {names}, {len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One reply, whatever its status. Headers are by lower-case name; repeated ones are joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"HttpReply({self.status}, {len(self.body)} bytes)"


class ReplyStream(Protocol):
    """A reply whose body comes in pieces, cut anywhere."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def __iter__(self) -> Iterator[bytes]: ...


class AsyncReplyStream(Protocol):
    """The same, awaited."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Transport(Protocol):
    """What carries requests to a provider. Raises ``LMTransportError`` and ``LMTimeoutError`` where no reply comes."""

    def send(self, request: HttpRequest) -> HttpReply:
        """Send, and wait for the whole reply."""
        ...

    async def asend(self, request: HttpRequest) -> HttpReply:
        """Send, and await the whole reply. Cancelling closes the connection."""
        ...

    def stream(self, request: HttpRequest) -> AbstractContextManager[ReplyStream]:
        """Send, and wait for the reply's head. Leaving the block before the body's end closes the connection."""
        ...

    def astream(self, request: HttpRequest) -> AbstractAsyncContextManager[AsyncReplyStream]:
        """The same, awaited."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...

    async def aclose(self) -> None:
        """The same, awaited."""
        ...


# --- the client ----------------------------------------------------------------------------------------


class HttpTransport:
    """HTTP/1.1 over plain sockets. Opens nothing before the first call; may be shared by threads and event loops.

    - ``connect_timeout`` bounds connecting, TLS and proxies included; ``timeout`` the whole exchange. Seconds, or ``None``
      for no limit. (A blocking look-up of a host name has the system resolver's own limits.)
    - ``proxy``: ``http://``, ``https://`` or ``socks5://``, with ``user:password@`` where needed, for every request. Without it
      ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` count, but never for this machine itself, unless
      ``trust_env`` is off.
    - ``ca``: a PEM file or directory of authorities trusted beside the system's. ``certificate``: a PEM file with a client
      certificate and its key, or ``(certificate, key)`` or ``(certificate, key, password)``. ``tls``: an ``SSLContext`` of your
      own, instead of both.
    - ``headers`` go with every request; those of the request win.
    - ``keep_alive``: how long an idle connection is kept, in seconds; ``max_idle``: how many for each host.

    After ``close()`` it can be used again; also as a context manager, with ``with`` or ``async with``.
    Raises ``ConfigurationError`` for settings that cannot work.

    >>> with HttpTransport(timeout=5) as transport:
    ...     transport
    HttpTransport(timeout=5, connect_timeout=10.0)
    """

    def __init__(
        self,
        *,
        connect_timeout: float | None = 10.0,
        timeout: float | None = 600.0,
        proxy: str | None = None,
        trust_env: bool = True,
        ca: str | os.PathLike[str] | None = None,
        certificate: Certificate | None = None,
        tls: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        keep_alive: float = 50.0,
        max_idle: int = 100,
    ) -> None:
        if tls is not None and (ca is not None or certificate is not None):
            raise ConfigurationError("HttpTransport has tls= and ca= or certificate=: load those into the SSLContext.")
        self.connect_timeout = _checked_timeout("connect_timeout", connect_timeout)
        self.timeout = _checked_timeout("timeout", timeout)
        self._proxy = Proxy.parse(proxy) if proxy else None
        self._trust_env = trust_env
        self._ca, self._certificate, self._tls = ca, certificate, tls
        self._headers = {
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": "sigwire",
            **_lower(headers or {}),
        }
        self._routes: dict[Origin, Proxy | None] = {}
        self._heads: dict[tuple[Any, ...], bytes] = {}
        self._pool = Pool(keep_alive, max_idle)
        weakref.finalize(self, self._pool.close)

    def send(self, request: HttpRequest) -> HttpReply:
        """Send, and wait for the whole reply. An interrupt closes the connection."""
        with _Trip(self, request) as trip:
            return run(self._whole(trip))

    async def asend(self, request: HttpRequest) -> HttpReply:
        """Send, and await the whole reply. Cancelling closes the connection."""
        with _Trip(self, request) as trip:
            async with asyncio.timeout(time_left(trip.deadline)):
                return await arun(self._whole(trip))

    @contextmanager
    def stream(self, request: HttpRequest) -> Generator[_Stream]:
        """Send, and wait for the reply's head; iterating gives the body as it comes.

        The deadline counts on. Leaving the block before the body's end closes the connection.
        """
        trip = _Trip(self, request)
        with trip:
            exchange = run(self._start(trip))
        try:
            yield _Stream(trip, exchange)
        finally:
            exchange.finish()

    @asynccontextmanager
    async def astream(self, request: HttpRequest) -> AsyncGenerator[_AsyncStream]:
        """The same, awaited."""
        trip = _Trip(self, request)
        with trip:
            async with asyncio.timeout(time_left(trip.deadline)):
                exchange = await arun(self._start(trip))
        try:
            yield _AsyncStream(trip, exchange)
        finally:
            exchange.finish()

    def close(self) -> None:
        """Close all idle connections, at once; those in use close when their reply has come."""
        self._pool.close()

    async def aclose(self) -> None:
        """The same; nothing has to be awaited."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        proxy = f", proxy={self._proxy}" if self._proxy else ""
        return f"HttpTransport(timeout={self.timeout}, connect_timeout={self.connect_timeout}{proxy})"

    # The programs

    def _whole(self, trip: _Trip) -> Program[HttpReply]:
        exchange = yield from self._start(trip)
        try:
            body = yield from exchange.read()
        finally:
            exchange.finish()
        return HttpReply(exchange.reader.status, exchange.reader.headers, body)

    def _start(self, trip: _Trip) -> Program[_Exchange]:
        """Send the request and read the reply's head."""
        end = trip.endpoint
        proxy = self._route(end)
        absolute = proxy is not None and end.scheme == "http" and not proxy.scheme.startswith("socks")
        head = self._head(trip, absolute, proxy)
        connection = self._pool.take(end.origin)
        if connection is None:
            generation, deadline = self._pool.generation, trip.connect_deadline(self.connect_timeout)
            line: Line = yield Within(self._open(end, deadline, proxy, absolute), deadline)
            connection = Connection(line, end.origin, generation)
        exchange = _Exchange(self._pool, connection, trip)
        try:
            yield from exchange.start(head, trip.request.body)
            _refuse_redirect(trip, exchange.reader)
        except BaseException:
            connection.close()
            raise
        return exchange

    def _head(self, trip: _Trip, absolute: bool, proxy: Proxy | None) -> bytes:
        """The request's head. Between two requests to a model only the length differs, so the rest is kept."""
        request = trip.request
        known = (request.url, request.method, *request.headers.items())
        head = self._heads.get(known)
        if head is None:
            if len(self._heads) >= _HEADS:
                self._heads.clear()
            head = self._heads[known] = self._encode_head(trip, absolute, proxy)
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(request.body))

    def _encode_head(self, trip: _Trip, absolute: bool, proxy: Proxy | None) -> bytes:
        """All but the length."""
        end, request = trip.endpoint, trip.request
        headers = {"host": end.authority, **end.authorization, **self._headers, **_lower(request.headers)}
        if absolute and proxy is not None:
            headers |= proxy.authorization
        for framing in ("content-length", "transfer-encoding"):
            headers.pop(framing, None)
        try:
            return encode_head(request.method, end.absolute if absolute else end.target, headers)[:-2]
        except ValueError as error:
            raise ConfigurationError(f"{error} (building the request to {end.shown}). Correct it.") from None

    def _open(self, end: Endpoint, deadline: float | None, proxy: Proxy | None, absolute: bool) -> Program[Line]:
        address = (end.host, end.port)
        if proxy is None:
            line: Line = yield from connect(address, deadline)
        else:
            context = self._context() if proxy.scheme == "https" else None
            line = yield from proxy.open(address, deadline, context)
        try:
            if proxy is not None and not absolute and not proxy.scheme.startswith("socks"):
                yield from proxy.tunnel(line, address)
            if end.scheme == "https":
                line = yield from secure(line, self._context(), end.host)
        except BaseException:
            line.bottom.close()
            raise
        return line

    def _route(self, end: Endpoint) -> Proxy | None:
        """The proxy to an origin, settled at the first request to it."""
        if end.origin not in self._routes:
            from_env = proxy_from_env(end) if self._trust_env and self._proxy is None else None
            self._routes[end.origin] = self._proxy or from_env
        return self._routes[end.origin]

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = tls_context(self._ca, self._certificate)
        return self._tls


_HEADS = 64


def _checked_timeout(name: str, seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise ConfigurationError(
            f"HttpTransport's {name} is {seconds!r}. Give seconds above zero, or None for no limit."
        )
    return seconds


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


# --- one request on its way ----------------------------------------------------------------------------


class _Trip:
    """A request, its deadline, and how far it got. As a context manager it turns what went wrong into sigwire's errors."""

    __slots__ = ("connect_limit", "deadline", "endpoint", "limit", "phase", "request")

    def __init__(self, transport: HttpTransport, request: HttpRequest) -> None:
        self.request = request
        self.endpoint = endpoint(request.url)
        self.limit = transport.timeout if request.timeout is None else _checked_timeout("timeout", request.timeout)
        self.deadline = None if self.limit is None else time.monotonic() + self.limit
        self.connect_limit = self.limit
        self.phase = "connecting"

    def connect_deadline(self, seconds: float | None) -> float | None:
        """When connecting must be done."""
        if seconds is None:
            return self.deadline
        self.connect_limit = seconds if self.limit is None else min(seconds, self.limit)
        deadline = time.monotonic() + seconds
        return deadline if self.deadline is None else min(deadline, self.deadline)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, TimeoutError):
            raise self._too_late() from error
        if isinstance(error, OSError | ProtocolError):
            raise self._broken(error) from error

    def _too_late(self) -> LMTimeoutError:
        limit = self.connect_limit if self.phase == "connecting" else self.limit
        within = "in time" if limit is None else f"within {limit:g} s"  # the system has limits too
        if self.phase == "connecting":
            return LMTimeoutError(
                f"No connection to {self.endpoint.shown} {within}. Check the address, the network and proxies, "
                "or raise connect_timeout."
            )
        return LMTimeoutError(
            f"{self.endpoint.shown} did not answer {within} ({self.phase}). Raise timeout, or ask for less."
        )

    def _broken(self, error: OSError | ProtocolError) -> LMTransportError:
        what, hint, retryable = _explained(error)
        made = LMTransportError(f"No answer from {self.endpoint.shown} ({self.phase}): {what}. {hint}".rstrip())
        made.retryable = retryable
        return made


_CERTIFICATE_HINT = "If an authority of your own issued the certificate, pass its file as ca."
_REFUSED_HINT = "Check that the server is running and that the address is right."
_NAME_HINT = "Check the host's name and the network."


def _explained(error: OSError | ProtocolError) -> tuple[str, str, bool]:
    """What happened, what to do about it, and whether trying again can help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted ({error.verify_message})", _CERTIFICATE_HINT, False
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no reason given'})", "", True
    if isinstance(error, socket.gaierror):
        return f"the host's name is not known ({error.strerror})", _NAME_HINT, True
    if isinstance(error, OSError):
        what = os.strerror(error.errno).lower() if error.errno else str(error)
        return what, _REFUSED_HINT if isinstance(error, ConnectionRefusedError) else "", True
    return str(error), "", True


_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def _refuse_redirect(trip: _Trip, reader: ReplyReader) -> None:
    location = reader.headers.get("location")
    if location is None or reader.status not in _REDIRECTS:
        return
    error = LMTransportError(
        f"{trip.endpoint.shown} redirects to {shown(urljoin(trip.endpoint.shown, location))}. Redirects are not followed, "
        "because the key would go along: if the new address is right, make it the base URL.",
        status=reader.status,
    )
    error.retryable = False
    raise error


# --- connections ---------------------------------------------------------------------------------------


class _Exchange:
    """One request and its reply on one connection."""

    __slots__ = ("_connection", "_done", "_first", "_line", "_pool", "_trip", "reader")

    def __init__(self, pool: Pool, connection: Connection, trip: _Trip) -> None:
        self.reader = ReplyReader()
        self._pool, self._connection, self._trip = pool, connection, trip
        self._line = connection.line
        self._line.bottom.deadline = trip.deadline
        self._first = b""
        self._done = False

    def start(self, head: bytes, body: bytes) -> Program[None]:
        """Send the request, and read until the reply's head is there."""
        reader, trip = self.reader, self._trip
        trip.phase = "sending the request"
        refusal = yield from self._send(head, body)
        trip.phase = "waiting for the reply"
        try:
            while not reader.has_head:
                self._first = yield from self._receive()
        except (OSError, ProtocolError) as error:
            raise refusal or error from None
        trip.phase = "reading the reply"
        if refusal is not None:  # the server takes no more of this request, so it cannot take another one here
            self._connection.generation = -1

    def _send(self, head: bytes, body: bytes) -> Program[ConnectionError | None]:
        """A server may answer and close before it has read everything (too long, wrong key): its answer is worth reading."""
        try:
            if len(body) <= _SMALL:
                yield from self._line.send(head + body)
            else:
                yield from self._line.send(head)
                yield from self._line.send(body)
        except ConnectionError as error:
            return error
        return None

    def _receive(self) -> Program[bytes]:
        data = yield from self._line.receive()
        if data:
            return self.reader.feed(data)
        self.reader.end()
        return b""

    def next(self) -> Program[bytes]:
        """The next piece of the body, ``b""`` after the last."""
        piece, self._first = self._first, b""
        while not piece and not self.reader.complete:
            piece = yield from self._receive()
        return piece

    def read(self) -> Program[bytes]:
        """The whole body."""
        pieces = [self._first]
        while not self.reader.complete:
            pieces.append((yield from self._receive()))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def finish(self) -> None:
        """Give the connection back where it may be used again, else close it. May be called twice."""
        if self._done:
            return
        self._done = True
        if self.reader.keep_alive:
            self._pool.put(self._connection)
        else:
            self._connection.close()


_SMALL = 64 * 1024  # up to here head and body are sent as one piece


class _Stream:
    """A reply's head, and its body in pieces."""

    __slots__ = ("_exchange", "_trip")

    def __init__(self, trip: _Trip, exchange: _Exchange) -> None:
        self._trip, self._exchange = trip, exchange

    @property
    def status(self) -> int:
        return self._exchange.reader.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._exchange.reader.headers

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._trip:
            piece = run(self._exchange.next())
        if not piece:
            raise StopIteration
        return piece


class _AsyncStream:
    """The same, awaited."""

    __slots__ = ("_exchange", "_trip")

    def __init__(self, trip: _Trip, exchange: _Exchange) -> None:
        self._trip, self._exchange = trip, exchange

    @property
    def status(self) -> int:
        return self._exchange.reader.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._exchange.reader.headers

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with self._trip:
            async with asyncio.timeout(time_left(self._trip.deadline)):
                piece = await arun(self._exchange.next())
        if not piece:
            raise StopAsyncIteration
        return piece
