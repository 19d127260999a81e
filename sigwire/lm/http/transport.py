"""Where bytes move: one HTTP request out, one reply back. Decides nothing about providers, retries or keys.

    HttpRequest(url, headers, body)  ─▶  Transport.send / asend / stream / astream  ─▶  HttpReply(status, headers, body)

``Transport`` is the seam: anything with these methods will do, a test double included. ``HttpTransport`` is what sigwire
uses. Its rules:

- One ``send`` is at most one request on the network. Nothing is retried here; a kept connection is looked at before use.
- Idle connections are kept: blocking ones for any thread, awaited ones for their event loop, with which they end.
  ``close()`` closes them; so does the end of the transport or of the interpreter; a forked child begins with none.
- Who stops waiting (a deadline, a cancelled task, an interrupt) closes the connection: no answer is paid for in silence.
- A redirect is an error, because following it would take the key along. Cookies are not kept. ``.netrc`` is not read.
- Any status is a reply; no reply is ``LMTransportError`` or ``LMTimeoutError``, which name the address without its query.

The work is done in ``blocking`` (httptools reads) and ``awaiting`` (aiohttp); ``trips`` and ``routes`` are for both.
"""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from sigwire.effects.steps import block_on
from sigwire.errors import ConfigurationError
from sigwire.lm.http.exchange import HttpExchange, encode_head
from sigwire.lm.http.messages import AsyncReplyStream, HttpReply, HttpRequest, ReplyStream
from sigwire.lm.http.sync_client import ConnectionPool, SyncReply
from sigwire.lm.http.urls import Certificate, Origin, Proxy, ServerUrl, endpoint, proxy_from_env, tls_context

if TYPE_CHECKING:
    import ssl

    from sigwire.lm.http.async_client import AsyncConnectionPool, AsyncReply

__all__ = [
    "HttpTransport",
]

# --- what goes out, what comes back --------------------------------------------------------------------


# --- the client ----------------------------------------------------------------------------------------


class HttpTransport:
    """Blocking on sockets of its own, awaited by aiohttp. Opens nothing before the first call; threads and loops may share it.

    - ``connect_timeout`` bounds connecting, TLS and proxies included; ``timeout`` the whole exchange. Seconds, or ``None``
      for no limit. (A blocking look-up of a host name has the system resolver's own limits.)
    - ``proxy``: ``http://``, ``https://`` or ``socks5://``, with ``user:password@`` where needed, for every request. Without it
      ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` count, but never for this machine itself, unless
      ``trust_env`` is off. SOCKS needs the extra ``socks``.
    - ``ca``: a PEM file or directory of authorities trusted beside the system's. ``certificate``: a PEM file with a client
      certificate and its key, or ``(certificate, key)`` or ``(certificate, key, password)``. ``tls``: an ``SSLContext`` of your
      own, instead of both.
    - ``headers`` go with every request; those of the request win.
    - ``keep_alive``: how long an idle connection is kept, in seconds.
    - ``max_reply``: the most bytes of a reply's body, its compression taken off, before it is refused; ``None`` for no limit.

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
        max_reply: int | None = 256 * 1024 * 1024,
    ) -> None:
        if tls is not None and (ca is not None or certificate is not None):
            raise ConfigurationError("HttpTransport has tls= and ca= or certificate=: load those into the SSLContext.")
        self.connect_timeout = _checked_timeout("connect_timeout", connect_timeout)
        self.timeout = _checked_timeout("timeout", timeout)
        self._max_reply = _checked_length("max_reply", max_reply)
        self._proxy = Proxy.parse(proxy) if proxy else None
        self._trust_env = trust_env
        self._headers = {
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": "sigwire",
            **_lower(headers or {}),
        }
        self._ways: dict[Origin, Proxy | None] = {}
        self._known_heads: dict[tuple[Any, ...], bytes] = {}
        self._clients = _Clients(keep_alive, _TlsContexts(ca, certificate, tls))
        weakref.finalize(self, self._clients.close)

    def send(self, request: HttpRequest) -> HttpReply:
        """Send, and wait for the whole reply. An interrupt closes the connection."""
        trip = self._trip(request)
        reply = self._clients.open(trip)
        try:
            trip.refuse_redirect(reply.status, reply.headers)
            return HttpReply(reply.status, reply.headers, reply.read())
        finally:
            reply.finish()

    async def asend(self, request: HttpRequest) -> HttpReply:
        """Send, and await the whole reply. Cancelling closes the connection."""
        trip = self._trip(request)
        reply = await self._clients.aopen(trip)
        try:
            trip.refuse_redirect(reply.status, reply.headers)
            return HttpReply(reply.status, reply.headers, await reply.read())
        finally:
            reply.finish()

    @contextmanager
    def stream(self, request: HttpRequest) -> Generator[ReplyStream]:
        """Send, and wait for the reply's head; iterating gives the body as it comes.

        The deadline counts on. Leaving the block before the body's end closes the connection.
        """
        trip = self._trip(request)
        reply = self._clients.open(trip)
        try:
            trip.refuse_redirect(reply.status, reply.headers)
            yield reply
        finally:
            reply.finish()

    @asynccontextmanager
    async def astream(self, request: HttpRequest) -> AsyncGenerator[AsyncReplyStream]:
        """The same, awaited."""
        trip = self._trip(request)
        reply = await self._clients.aopen(trip)
        try:
            trip.refuse_redirect(reply.status, reply.headers)
            yield reply
        finally:
            reply.finish()

    def close(self) -> None:
        """Close all idle connections; those in use close when their reply has come."""
        self._clients.close()

    async def aclose(self) -> None:
        """The same, and await that those of this event loop are closed."""
        await self._clients.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        proxy = f", proxy={self._proxy}" if self._proxy else ""
        return f"HttpTransport(timeout={self.timeout}, connect_timeout={self.connect_timeout}{proxy})"

    def _trip(self, request: HttpRequest) -> HttpExchange:
        limit = self.timeout if request.timeout is None else _checked_timeout("timeout", request.timeout)
        end = endpoint(request.url)
        limits = (limit, self.connect_timeout)
        return HttpExchange(request, end, self._head(request, end), self._way(end), limits, self._max_reply)

    def _head(self, request: HttpRequest, end: ServerUrl) -> bytes:
        """All but the length. Between two requests to a model it is the same, so it is made and checked once."""
        known = (request.url, request.method, *request.headers.items())
        head = self._known_heads.get(known)
        if head is None:
            if len(self._known_heads) >= _KNOWN:
                self._known_heads.clear()
            head = self._known_heads[known] = self._new_head(request, end)
        return head

    def _new_head(self, request: HttpRequest, end: ServerUrl) -> bytes:
        headers = {"host": end.authority, **end.authorization, **self._headers, **_lower(request.headers)}
        for framing in ("content-length", "transfer-encoding"):
            headers.pop(framing, None)
        proxy, target = self._way(end), end.target
        if proxy is not None and proxy.forwards(end):
            headers, target = headers | proxy.authorization, end.absolute
        return encode_head(request.method, target, headers, end.shown)

    def _way(self, end: ServerUrl) -> Proxy | None:
        """The proxy to an origin, settled at the first request to it."""
        if end.origin not in self._ways:
            from_env = proxy_from_env(end) if self._trust_env and self._proxy is None else None
            self._ways[end.origin] = self._proxy or from_env
        return self._ways[end.origin]


_KNOWN = 64


def _checked_timeout(name: str, seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise ConfigurationError(
            f"HttpTransport's {name} is {seconds!r}. Give seconds above zero, or None for no limit."
        )
    return seconds


def _checked_length(name: str, length: int | None) -> int | None:
    if length is not None and not length > 0:
        raise ConfigurationError(f"HttpTransport's {name} is {length!r}. Give bytes above zero, or None for no limit.")
    return length


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _TlsContexts:
    """Whom to trust, loaded when it is first needed."""

    def __init__(
        self, ca: str | os.PathLike[str] | None, certificate: Certificate | None, tls: ssl.SSLContext | None
    ) -> None:
        self._ca, self._certificate, self._tls = ca, certificate, tls

    def __call__(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = tls_context(self._ca, self._certificate)
        return self._tls


class _Clients:
    """The two clients. aiohttp, which takes long to import, is left alone until something is awaited."""

    def __init__(self, keep_alive: float, trust: _TlsContexts) -> None:
        self._keep_alive, self._trust = keep_alive, trust
        self._blocking = ConnectionPool(keep_alive, trust)
        self._homes: AsyncConnectionPool | None = None
        self._lock = threading.Lock()

    def open(self, trip: HttpExchange) -> SyncReply | _BridgedReply:
        """Send the request and read the reply's head. What goes through a proxy is left to aiohttp, which knows them all."""
        return self._blocking.open(trip) if trip.proxy is None else _BridgedReply(block_on(self.aopen(trip)))

    def aopen(self, trip: HttpExchange) -> Coroutine[Any, Any, AsyncReply]:
        """The same, awaited."""
        if self._homes is None:
            from sigwire.lm.http.async_client import AsyncConnectionPool

            with self._lock:
                self._homes = self._homes or AsyncConnectionPool(self._keep_alive, self._trust)
        return self._homes.open(trip)

    def close(self) -> None:
        self._blocking.close()
        if self._homes is not None:
            self._homes.close()

    async def aclose(self) -> None:
        self._blocking.close()
        if self._homes is not None:
            await self._homes.aclose()


class _BridgedReply:
    """An awaited reply for blocking code; it lives on an event loop of sigwire's own."""

    __slots__ = ("_reply",)

    def __init__(self, reply: AsyncReply) -> None:
        self._reply = reply

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._reply.headers

    def read(self) -> bytes:
        return block_on(self._reply.read())

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: block_on(self._reply.next()), b"")

    def finish(self) -> None:
        async def finish() -> None:
            self._reply.finish()

        contextvars.Context().run(block_on, finish())  # not part of what may have been left by now
