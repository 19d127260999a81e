"""One HTTP exchange: its deadlines, its phase, its errors; the heads of requests and replies; options of sockets.

Both clients use this file, so that one failure has one text. Nothing here opens a connection.
"""

from __future__ import annotations

import math
import re
import select
import socket
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from sigwire.errors import ConfigurationError, LMError, LMTimeoutError, LMTransportError
from sigwire.lm.http.deadlines import shorter_limit
from sigwire.lm.http.errors import ProtocolError, describe_os_error
from sigwire.lm.http.urls import Proxy, ServerUrl
from sigwire.lm.secrets import redact_url

if TYPE_CHECKING:
    from sigwire.lm.http.messages import HttpRequest

__all__ = [
    "LOGIN_HINT", "READ", "WRITE", "HttpExchange", "Limits", "SocketWaiter", "configure_socket", "encode_head", "read_head",
]  # fmt: skip


class Limits(NamedTuple):
    """Seconds for an exchange, to connect, between two chunks of the body, and to a stream's first content; or no limit."""

    exchange: float | None
    connect: float | None
    idle: float | None = None
    first: float | None = None


class HttpExchange:
    """A request, its server and proxy, its deadlines (``time.monotonic()``), and the ``phase`` that errors name.

    ``head`` is the result of ``encode_head``: everything but the length of the body. ``max_reply``: the most bytes of the
    decompressed reply body. ``has_chunk``: whether a part of the body arrived. ``may_be_stale``: whether the request uses
    a kept connection on which no byte of the reply arrived.
    """

    __slots__ = (
        "_first",
        "_first_at",
        "_idle",
        "_started",
        "connect_limit",
        "deadline",
        "has_chunk",
        "head",
        "limit",
        "max_reply",
        "may_be_stale",
        "phase",
        "proxy",
        "request",
        "server",
    )

    def __init__(
        self,
        request: HttpRequest,
        server: ServerUrl,
        head: bytes,
        proxy: Proxy | None,
        limits: Limits,
        max_reply: int | None = None,
    ) -> None:
        self.request, self.server, self.head, self.proxy = request, server, head, proxy
        self.limit, connect_limit, self._idle, self._first = limits
        self._started = time.monotonic()
        self.deadline = None if self.limit is None else self._started + self.limit
        self.connect_limit = shorter_limit(self.limit, connect_limit)
        self.max_reply = max_reply
        self.phase = "connecting"
        self.has_chunk = self.may_be_stale = False
        self._first_at = None if self._first is None else self._started + self._first

    def connect_seconds(self) -> float | None:
        """Return the limit of connecting from now on. Loading the client, or waiting for its loop, may have taken time."""
        now = time.monotonic()
        if self.deadline is None or now - self._started < _TIMER_PRECISION:
            return self.connect_limit
        return shorter_limit(self.connect_limit, max(self.deadline - now, _TIMER_PRECISION))

    def end_first(self) -> None:
        """Lift the limit of the first content: it arrived."""
        self._first_at = None

    def next_deadline(self) -> float | None:
        """Return the deadline of a wait for bytes of the reply that starts now."""
        deadline = self.deadline if self._first_at is None else shorter_limit(self.deadline, self._first_at)
        if not self.has_chunk or self._idle is None:
            return deadline
        return shorter_limit(deadline, time.monotonic() + self._idle)

    @property
    def needs_tls(self) -> bool:
        """Whether the connection to the server or to the proxy uses TLS."""
        return self.server.origin.scheme == "https" or (self.proxy is not None and self.proxy.scheme == "https")

    def whole_head(self) -> memoryview:
        """Return the request line and the headers, including the empty line before the body.

        The key is in it: unlike bytes, a memoryview does not show its content in a traceback.
        """
        return memoryview(b"%bcontent-length: %d\r\n\r\n" % (self.head, len(self.request.body)))

    def error_for(self, error: BaseException, peer: tuple[str, int | None] | None = None) -> LMError | None:
        """Return the ``LMError`` for a network error, ``None`` for any other error. ``peer``: host and port, if they failed."""
        if isinstance(error, TimeoutError):
            return self.timed_out()
        if isinstance(error, OSError):
            what, hint, retryable = describe_os_error(error)
            if self.proxy is not None and peer == (self.proxy.host, self.proxy.port):
                what, hint = f"{self.proxy_name} failed: {what}", _PROXY_HINT if retryable else hint
            return self.transport_error(what, hint, retryable)
        if isinstance(error, ProtocolError):
            return self.transport_error(str(error), error.hint, error.retryable)
        return None

    @property
    def proxy_name(self) -> str:
        """The proxy in words; a proxy that is not known may stand in the way."""
        return f"the proxy {self.proxy.url}" if self.proxy is not None else "a proxy on the way"

    def proxy_refusal(self, status: int) -> LMTransportError:
        """Return the error for a request that a proxy refused."""
        problem = f"{self.proxy_name} answered with status {status}"
        if status == 407:
            problem += ": it refuses its login" if self.proxy and self.proxy.username else ": it needs a login"
        error = self.transport_error(problem, LOGIN_HINT if status == 407 else "", retryable=status >= 500)
        error.status = status
        return error

    def timed_out(self) -> LMTimeoutError:
        """Return the error for a deadline that has passed."""
        limit = self.connect_limit if self.phase == "connecting" else self.limit
        # Without a limit it is the operating system's.
        within = "in time" if limit is None else f"within {round(limit, 2) or limit:g} s"
        if self.phase == "connecting":
            through = "" if self.proxy is None else f" through {self.proxy_name}"
            return LMTimeoutError(
                f"No connection to {self.server.shown}{through} {within}. Check the address, the network and proxies, "
                "or raise connect_timeout."
            )
        now = time.monotonic() + _TIMER_PRECISION
        if self._first_at is not None and now >= self._first_at:
            what, name = f"sent no content within {self._first:g} s", "Timeout(first=...)"
        elif self.has_chunk and self._idle is not None and (self.deadline is None or now < self.deadline):
            what, name = f"sent nothing for {self._idle:g} s", "Timeout(idle=...)"
        else:
            what, name = f"did not answer {within}", "timeout"
        return LMTimeoutError(f"{self.server.shown} {what} ({self.phase}). Raise {name}, or ask for a shorter answer.")

    def transport_error(self, what: str, hint: str = "", retryable: bool = True) -> LMTransportError:
        """Return the error for a missing or incomplete reply."""
        error = LMTransportError(f"No answer from {self.server.shown} ({self.phase}): {what}. {hint}".rstrip())
        error.retryable, error.stale = retryable, self.may_be_stale
        return error

    def closed_early(self) -> LMTransportError:
        """Return the error for reading a reply that was closed, or failed, before its end."""
        return self.transport_error(
            "the reply was closed before it was fully read", "Read it inside its `with` block.", retryable=False
        )

    def check_reply(self, status: int, headers: Mapping[str, str]) -> None:
        """Raise ``LMTransportError`` if the reply is a redirect, or a proxy's demand for a login."""
        if status == 407:
            raise self.proxy_refusal(status)
        location = headers.get("location")
        if location is None or status not in _REDIRECTS:
            return
        error = LMTransportError(
            f"{self.server.shown} redirects to {redact_url(urljoin(self.server.shown, location))}. Redirects are not "
            "followed, because they would carry the key: if the new address is right, make it the base URL.",
            status=status,
        )
        error.retryable = False
        raise error


_TIMER_PRECISION = 0.002  # seconds by which a wait may end early
_PROXY_HINT = "Check HttpTransport(proxy=...), or HTTPS_PROXY, HTTP_PROXY and ALL_PROXY in the environment."
LOGIN_HINT = "Write http://user:password@host:port, in HttpTransport(proxy=...) or in HTTPS_PROXY and HTTP_PROXY."
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


# A reply can take minutes. TCP keep-alive probes stop routers from dropping silent connections.
_KEEP_ALIVE = [
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 5))
    if hasattr(socket, name)
]


def configure_socket(opened: socket.socket) -> socket.socket:
    """Set the options for a connection that may be silent for minutes; return the socket."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


READ, WRITE = 1, 4  # POLLIN and POLLOUT


_LONGEST_WAIT = 1.0  # seconds


class SocketWaiter:
    """The waits for one socket. An idle connection that can be read has data, or its end: it must not be reused."""

    __slots__ = ("_descriptor", "_poll", "_registered")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # Windows has no poll; its select has no limit on descriptors.
        self._poll = select.poll() if hasattr(select, "poll") else None
        self._registered = 0

    def wait(self, wanted: int, seconds: float | None) -> bool:
        """Return True if the socket is ready, or has failed, within ``seconds``; ``None`` waits without a limit.

        An interrupt between two instructions is seen when a wait of the system ends, so no wait is longer than a second.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _LONGEST_WAIT if seconds is None else min(seconds, _LONGEST_WAIT)
            if self._is_ready(wanted, left):
                return True
            if end is not None and (seconds := end - time.monotonic()) <= 0:
                return False

    def is_readable(self) -> bool:
        """Return True if the socket can be read now, or has failed."""
        return self._is_ready(READ, 0.0)

    def _is_ready(self, wanted: int, seconds: float) -> bool:
        if self._poll is None:
            reading, writing = ([self._descriptor] if wanted == which else [] for which in (READ, WRITE))
            return any(select.select(reading, writing, reading or writing, seconds))
        if wanted != self._registered:
            self._poll.register(self._descriptor, wanted)
            self._registered = wanted
        return bool(self._poll.poll(math.ceil(seconds * 1000)))


def read_head(status: int, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a reply's headers by lower-case name; the values of a repeated header are joined by commas.

    Raises ``ProtocolError`` for a switch to another protocol and for a transfer-encoding other than chunked.
    """
    headers: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if status == 101:
        raise ProtocolError("the server switched to another protocol")
    coding = headers.get("transfer-encoding", "chunked")
    if coding.lower() != "chunked":
        raise ProtocolError(f"the reply's transfer-encoding is {coding!r}, which was not requested")
    return headers


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x01-\t\v\f\x0e-\xff]*")
_BREAK = re.compile(r"[\r\n\0]")


def encode_head(method: str, target: str, headers: Mapping[str, str], shown: str) -> bytes:
    """Return the head of a request without the content-length and the final empty line.

    Raises ``ConfigurationError`` for characters that HTTP cannot carry; header values are not shown.
    """
    if not _TOKEN.fullmatch(method):
        raise ConfigurationError(f"{method!r} is not an HTTP method (building the request to {shown}). Correct it.")
    for name, value in headers.items():
        if not (_TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
            raise ConfigurationError(f"{_header_problem(name, value)} (building the request to {shown}). Correct it.")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), ""]
    return "\r\n".join(lines).encode("latin-1")


def _header_problem(name: str, value: str) -> str:
    if not _TOKEN.fullmatch(name):
        return f"{name!r} is not a header name"
    if _BREAK.search(value):
        return f"the value of the header {name!r} contains a line break (check a key that was read from a file)"
    return f"the value of the header {name!r} contains characters that a header cannot carry"
