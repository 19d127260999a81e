"""One request on its way: its deadline, how far it got, and sigwire's errors for what became of it.

    trip = Trip(request, endpoint, headers, proxy, limit, connect_limit)
    trip.timed_out(), trip.broken(what, hint)      the errors; they name the address without its query
    has_news(descriptor)                          whether an idle connection may not be used again
    explained(error)                              what an error of the system means: (what, hint, whether trying again can help)
    sendable(method, target, headers)             the head of a request, or an error that names what cannot be sent
    Unpacker(coding, limit)                       a body without its compression, piece by piece

Shared by the two clients, ``blocking`` and ``awaiting``, so that both say the same of the same trouble. Opens nothing.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from sigwire.errors import ConfigurationError, LMTimeoutError, LMTransportError
from sigwire.lm.http.deadlines import _shorter
from sigwire.lm.http.errors import ProtocolError
from sigwire.lm.http.urls import Proxy, ServerUrl, shown

if TYPE_CHECKING:
    from sigwire.lm.http.messages import HttpRequest

__all__ = [
    "HttpExchange",
    "configure_socket",
    "encode_head",
    "has_pending_data",
    "read_head",
]


class HttpExchange:
    """A request, where it goes, its deadlines (``time.monotonic()``), and how far it got (``phase``).

    ``head`` is what ``sendable`` made: all of the head but the length of the body. ``max_reply``: how many bytes of the reply's
    body are taken, without its compression.
    """

    __slots__ = ("connect_limit", "deadline", "endpoint", "head", "limit", "max_reply", "phase", "proxy", "request")

    def __init__(
        self,
        request: HttpRequest,
        endpoint: ServerUrl,
        head: bytes,
        proxy: Proxy | None,
        limits: tuple[float | None, float | None],
        max_reply: int | None = None,
    ) -> None:
        self.request, self.endpoint, self.head, self.proxy = request, endpoint, head, proxy
        self.limit, connect_limit = limits
        self.deadline = None if self.limit is None else time.monotonic() + self.limit
        self.connect_limit = _shorter(self.limit, connect_limit)
        self.max_reply = max_reply
        self.phase = "connecting"

    @property
    def needs_tls(self) -> bool:
        """To the server or to the proxy."""
        return self.endpoint.scheme == "https" or (self.proxy is not None and self.proxy.scheme == "https")

    def whole_head(self) -> bytes:
        """The request line and the headers, up to the body."""
        return b"%bcontent-length: %d\r\n\r\n" % (self.head, len(self.request.body))

    def timed_out(self) -> LMTimeoutError:
        """The error for a deadline that has passed."""
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

    def broken(self, what: str, hint: str = "", retryable: bool = True) -> LMTransportError:
        """The error for a reply that did not come, or not whole."""
        made = LMTransportError(f"No answer from {self.endpoint.shown} ({self.phase}): {what}. {hint}".rstrip())
        made.retryable = retryable
        return made

    def closed_early(self) -> LMTransportError:
        """The error for reading on in a reply that was left, or had failed, before its end."""
        return self.broken("the reply was let go of before its end", "Read it inside its block.", retryable=False)

    def refuse_redirect(self, status: int, headers: Mapping[str, str]) -> None:
        """Raise ``LMTransportError`` where the reply is a redirect."""
        location = headers.get("location")
        if location is None or status not in _REDIRECTS:
            return
        error = LMTransportError(
            f"{self.endpoint.shown} redirects to {shown(urljoin(self.endpoint.shown, location))}. Redirects are not "
            "followed, because the key would go along: if the new address is right, make it the base URL.",
            status=status,
        )
        error.retryable = False
        raise error


_REDIRECTS = frozenset({301, 302, 303, 307, 308})


# --- sockets -------------------------------------------------------------------------------------------

# An answer may be minutes in the making. Probes keep the way open through routers that forget silent connections.
_KEEP_ALIVE = [
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 5))
    if hasattr(socket, name)
]


def configure_socket(opened: socket.socket) -> socket.socket:
    """The socket, set up for a connection that may be silent for long."""
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


def has_pending_data(descriptor: int) -> bool:
    """Whether something can be read from a socket, the end included. An idle connection on which there is may not be used."""
    if not hasattr(select, "poll"):  # Windows, where select takes any number
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


# --- headers and bodies --------------------------------------------------------------------------------


def read_head(status: int, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A reply's headers by lower-case name; repeated ones are joined by commas.

    Raises ``ProtocolError`` for what was not asked for: another protocol, or a coding of the connection's other than chunks.
    """
    headers: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if status == 101:
        raise ProtocolError("the server switched to another protocol")
    coding = headers.get("transfer-encoding", "chunked")
    if coding.lower() != "chunked":
        raise ProtocolError(f"the reply's transfer-encoding is {coding!r}, which was not asked for")
    return headers


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x01-\t\v\f\x0e-\xff]*")
_BREAK = re.compile(r"[\r\n\0]")


def encode_head(method: str, target: str, headers: Mapping[str, str], shown: str) -> bytes:
    """The head of a request, but for the length of its body and the line that ends it.

    Raises ``ConfigurationError`` for what cannot be sent; the value of a header is not shown.
    """
    if not _TOKEN.fullmatch(method):
        raise ConfigurationError(f"{method!r} is no method (building the request to {shown}). Correct it.")
    for name, value in headers.items():
        if not (_TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
            raise ConfigurationError(f"{_unsendable(name, value)} (building the request to {shown}). Correct it.")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), ""]
    return "\r\n".join(lines).encode("latin-1")


def _unsendable(name: str, value: str) -> str:
    if not _TOKEN.fullmatch(name):
        return f"{name!r} is no name for a header"
    if _BREAK.search(value):
        return f"the value of the header {name!r} holds a line break (a key read from a file often does)"
    return f"the value of the header {name!r} holds characters that a header cannot carry"
