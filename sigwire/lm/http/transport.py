"""``HttpTransport``: one HTTP request out, one reply back. Decides nothing about providers, retries or keys.

- One ``send`` is at most one request on the network. Nothing is retried; a kept connection is checked before reuse.
- Idle connections are kept: blocking ones for any thread, awaited ones for their event loop. They are closed by
  ``close()``, by the end of the loop, of the transport and of the interpreter. A forked child starts without connections.
- A deadline, a cancelled task and an interrupt close the connection, so that no unread answer is generated and paid for.
- A redirect is an error, because following it would carry the key. Cookies are not kept. ``.netrc`` is not read.
- Any status is a reply. No reply is ``LMTransportError`` or ``LMTimeoutError``; both name the address without its query.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sigwire.core.lazy import version
from sigwire.effects.loops import block_on
from sigwire.effects.network import check_network
from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.http.exchange import HttpExchange, Limits, encode_head
from sigwire.lm.http.messages import AsyncReplyStream, HttpReply, HttpRequest
from sigwire.lm.http.sync_client import ConnectionPool, SyncReply
from sigwire.lm.http.urls import Certificate, Origin, Proxy, ServerUrl, parse_url, proxy_from_env, tls_context
from sigwire.lm.secrets import Secret, wrap_headers, wrap_url

if TYPE_CHECKING:
    import ssl

    from sigwire.lm.http.async_client import AsyncConnectionPool, AsyncReply

__all__ = ["HttpTransport"]


class HttpTransport(ChecksKeywords):
    """An HTTP/1.1 client, blocking and awaited. Opens nothing before the first call; threads and loops may share it.

    - ``connect_timeout`` bounds connecting, with name look-up, TLS and proxies; ``timeout`` the whole exchange;
      ``idle_timeout`` the wait between two chunks of a body. Seconds, or ``None`` for no limit. Limits of a request override
      them.
    - ``proxy``: ``http://``, ``https://`` or ``socks5://``, with ``user:password@`` if needed, for every request. Without it
      ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` apply, except to loopback addresses. SOCKS needs the
      extra ``socks``.
    - ``ca``: a PEM file or directory of authorities trusted beside the system's, or beside those of ``REQUESTS_CA_BUNDLE`` or
      ``CURL_CA_BUNDLE``. ``trust_env=False`` ignores these and the proxies of the environment.
    - ``certificate``: a PEM file with a client certificate and its key, or ``(certificate, key)`` or ``(certificate, key,
      password)``. ``tls``: an ``SSLContext`` instead of both.
    - ``headers`` are sent with every request; headers of the request override them.
    - ``keep_alive``: seconds that an idle connection is kept.
    - ``max_reply``: the most bytes of a decompressed reply body; ``None`` for no limit.

    Usable as a context manager (``with``, ``async with``), and again after ``close()``.
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
        idle_timeout: float | None = 120.0,
        proxy: str | None = None,
        trust_env: bool = True,
        ca: str | os.PathLike[str] | None = None,
        certificate: Certificate | None = None,
        tls: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        keep_alive: float = 50.0,
        max_reply: int | None = 256 * 1024 * 1024,
    ) -> None:
        proxy, headers = proxy and wrap_url(proxy), wrap_headers(headers or {})
        passwords: tuple[Secret, ...] = ()
        if isinstance(certificate, tuple):
            passwords = tuple(Secret(password) for password in certificate[2:])
            certificate = (*certificate[:2], *passwords)
        if tls is not None and (ca is not None or certificate is not None):
            raise ConfigurationError(
                "HttpTransport has tls= beside ca= or certificate=. Load both into the SSLContext."
            )
        self.connect_timeout = _checked("connect_timeout", connect_timeout)
        self.timeout = _checked("timeout", timeout)
        self.idle_timeout = _checked("idle_timeout", idle_timeout)
        self._max_reply = _checked("max_reply", max_reply, "bytes")
        self._proxy = Proxy.parse(proxy) if proxy else None
        self._trust_env = trust_env
        self._headers = {
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": f"sigwire/{version()}",
            **_lower_names(headers),
        }
        password = (self._proxy.password, *self._proxy.authorization.values()) if self._proxy else ()
        self.secrets: tuple[object, ...] = (headers, *map(Secret, password), *passwords)
        """The secrets that a reply must not show: headers, passwords of the proxy and of the certificate."""
        self._proxies: dict[Origin, Proxy | None] = {}
        self._heads: dict[tuple[Any, ...], bytes] = {}
        loaded_once = functools.cache(functools.partial(tls_context, ca, certificate, trust_env))
        self._clients = _Clients(keep_alive, loaded_once if tls is None else lambda: tls)
        weakref.finalize(self, self._clients.close)

    def send(self, request: HttpRequest) -> HttpReply:
        """Send a request and wait for the whole reply. An interrupt closes the connection."""
        exchange = self._exchange(request)
        reply = self._clients.open(exchange)
        try:  # a context manager would take longer
            exchange.check_reply(reply.status, reply.headers)
            return HttpReply(reply.status, reply.headers, reply.read())
        finally:
            reply.finish()

    async def asend(self, request: HttpRequest) -> HttpReply:
        """Send a request and await the whole reply. Cancelling closes the connection."""
        exchange = self._exchange(request)
        reply = await self._clients.aopen(exchange)
        try:  # a context manager would take longer
            exchange.check_reply(reply.status, reply.headers)
            return HttpReply(reply.status, reply.headers, await reply.read())
        finally:
            reply.finish()

    @contextmanager
    def stream(self, request: HttpRequest) -> Generator[SyncReply | _BridgedReply]:
        """Send a request and wait for the reply's head; iterating the reply yields chunks of the body.

        The deadline covers the body. Leaving the block before the body ends closes the connection.
        """
        exchange = self._exchange(request, streamed=True)
        reply = self._clients.open(exchange)
        try:
            exchange.check_reply(reply.status, reply.headers)
            yield reply
        finally:
            reply.finish()

    def astream(self, request: HttpRequest) -> AbstractAsyncContextManager[AsyncReplyStream]:
        """Return ``stream`` as an asynchronous context manager."""
        return self._aopened(request)

    @asynccontextmanager
    async def _aopened(self, request: HttpRequest) -> AsyncGenerator[AsyncReply]:
        exchange = self._exchange(request, streamed=True)
        reply = await self._clients.aopen(exchange)
        try:
            exchange.check_reply(reply.status, reply.headers)
            yield reply
        finally:
            reply.finish()

    def close(self) -> None:
        """Close all idle connections; a connection in use closes after its reply."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close all idle connections and await the closing of those of this event loop."""
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
        known = vars(self)  # without an attribute if the making of the transport failed
        proxy = f", proxy={self._proxy}" if known.get("_proxy") else ""
        return f"HttpTransport(timeout={known.get('timeout')}, connect_timeout={known.get('connect_timeout')}{proxy})"

    def _exchange(self, request: HttpRequest, *, streamed: bool = False) -> HttpExchange:
        limit, parts, end = _checked("timeout", request.timeout), request.limits, parse_url(request.url)
        check_network("model", end.shown)
        if parts is not None:
            limits = Limits(limit, parts.connect, parts.idle, parts.first if streamed else None)
        else:
            limits = Limits(self.timeout if limit is None else limit, self.connect_timeout, self.idle_timeout)
        return HttpExchange(request, end, self._head(request, end), self._proxy_for(end), limits, self._max_reply)

    def _head(self, request: HttpRequest, end: ServerUrl) -> bytes:
        """Return the encoded head. Requests to one model share it, so it is encoded and checked once."""
        key = (request.url, request.method, *request.headers.items())
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _MAX_CACHED_HEADS:
                self._heads.clear()
            head = self._heads[key] = self._new_head(request, end)
        return head

    def _new_head(self, request: HttpRequest, end: ServerUrl) -> bytes:
        headers = {"host": end.authority, **end.authorization, **self._headers, **_lower_names(request.headers)}
        for framing in ("content-length", "transfer-encoding"):
            headers.pop(framing, None)
        proxy, target = self._proxy_for(end), end.target
        if proxy is not None and proxy.reads_requests(end):
            headers, target = headers | proxy.authorization, end.absolute
        return encode_head(request.method, target, headers, end.shown)

    def _proxy_for(self, end: ServerUrl) -> Proxy | None:
        if end.origin not in self._proxies:
            from_env = proxy_from_env(end) if self._trust_env and self._proxy is None else None
            self._proxies[end.origin] = self._proxy or from_env
        return self._proxies[end.origin]


_MAX_CACHED_HEADS = 64
_Limit = TypeVar("_Limit", float | None, int | None)


def _checked(name: str, limit: _Limit, unit: str = "seconds") -> _Limit:
    if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"HttpTransport's {name} is {limit!r}. Give {unit} above zero, or None for no limit.")
    return limit


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _Clients:
    """The two clients. aiohttp is slow to import; the first awaited request imports it."""

    def __init__(self, keep_alive: float, context: Callable[[], ssl.SSLContext]) -> None:
        self._keep_alive, self._context = keep_alive, context
        self._sync_pool = ConnectionPool(keep_alive, context)
        self._async_pool: AsyncConnectionPool | None = None
        self._lock = threading.Lock()

    def open(self, exchange: HttpExchange) -> SyncReply | _BridgedReply:
        """Send the request and read the reply's head. Requests through a proxy use aiohttp, which supports all kinds."""
        if exchange.proxy is None:
            return self._sync_pool.open(exchange)
        return _BridgedReply(block_on(self.aopen(exchange)))

    def aopen(self, exchange: HttpExchange) -> Coroutine[Any, Any, AsyncReply]:
        if self._async_pool is None:
            from sigwire.lm.http.async_client import AsyncConnectionPool

            with self._lock:
                self._async_pool = self._async_pool or AsyncConnectionPool(self._keep_alive, self._context)
        return self._async_pool.open(exchange)

    def close(self) -> None:
        self._sync_pool.close()
        if self._async_pool is not None:
            self._async_pool.close()

    async def aclose(self) -> None:
        self._sync_pool.close()
        if self._async_pool is not None:
            await self._async_pool.aclose()


class _BridgedReply:
    """An awaited reply for blocking code, on sigwire's background loop."""

    __slots__ = ("_reply", "end_first", "headers", "status")

    def __init__(self, reply: AsyncReply) -> None:
        self._reply, self.status, self.headers = reply, reply.status, reply.headers
        self.end_first = reply.end_first

    def read(self) -> bytes:
        return block_on(self._reply.read())

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: block_on(self._reply.next()), b"")

    def finish(self) -> None:
        async def finish() -> None:
            self._reply.finish()

        contextvars.Context().run(block_on, finish())  # an empty context: the scope may be cancelled already
