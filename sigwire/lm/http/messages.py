"""The seam of HTTP: ``HttpRequest`` and ``HttpReply``, and ``Transport``, the protocol that carries one to the other.

Any object with the methods of ``Transport`` can be given to ``LM(..., transport=...)``. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Never, Protocol

from sigwire.errors import ConfigurationError
from sigwire.lm.secrets import redact_url

__all__ = ["AsyncReplyStream", "HttpReply", "HttpRequest", "ReplyStream", "TimeLimits", "Transport", "method_of"]


class TimeLimits(Protocol):
    """Limits of parts of an exchange, in seconds; ``None`` is no limit (``policy.deadlines.Timeout``).

    ``connect``: with the name look-up and TLS. ``first``: from the begin to the first content of a stream. ``idle``: between
    two chunks of the body.
    """

    @property
    def connect(self) -> float | None: ...

    @property
    def first(self) -> float | None: ...

    @property
    def idle(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. ``timeout``: seconds for the whole exchange, connecting included. ``limits``: those of its parts; without
    them a missing ``timeout`` is the transport's. ``new_connection``: whether to open a connection instead of using a kept one.

    The repr shows no header values and no query, because both can hold keys.

    >>> HttpRequest("https://api.example.com/v1/chat?key=k", {"authorization": "Bearer k"}, b"{}")
    HttpRequest(POST https://api.example.com/v1/chat, headers: authorization, 2 bytes)
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    method: str = "POST"
    timeout: float | None = None
    new_connection: bool = False
    limits: TimeLimits | None = None

    def __repr__(self) -> str:
        names = ", ".join(self.headers) or "none"
        return f"HttpRequest({self.method} {redact_url(self.url)}, headers: {names}, {len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One reply of any status. Header names are in lower case; the values of a repeated header are joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"HttpReply({self.status}, {len(self.body)} bytes)"


class ReplyHead(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


class ReplyStream(ReplyHead, Protocol):
    """A reply whose body is read in chunks of any size."""

    def __iter__(self) -> Iterator[bytes]: ...


class AsyncReplyStream(ReplyHead, Protocol):
    """A reply whose body is awaited in chunks of any size."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...


def method_of(transport: object, name: str) -> Callable[[HttpRequest], Any]:
    """Return a method of a transport: ``send``, ``asend``, ``stream`` or ``astream``; for a missing one, what raises.

    The error, ``ConfigurationError``, comes with the call that needs the method: the other kinds of calls work.

    >>> method_of(object(), "asend")(None)
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: The transport object has no asend, which awaited calls need (sending a request). ...
    """
    found: Callable[[HttpRequest], Any] | None = getattr(transport, name, None)
    return found if callable(found) else partial(_refuse, type(transport).__name__, name)


_CALLS: Mapping[str, tuple[str, str]] = {
    "send": ("blocking calls", "await the call (acall)"),
    "asend": ("awaited calls", "call without await"),
    "stream": ("blocking streams", "call without a stream"),
    "astream": ("awaited streams", "await the call without a stream"),
}


def _refuse(transport: str, name: str, request: HttpRequest) -> Never:
    calls, instead = _CALLS[name]
    raise ConfigurationError(
        f"The transport {transport} has no {name}, which {calls} need (sending a request). Add {name}(request), or {instead}."
    )


class Transport(Protocol):
    """Carries requests to a provider. Raises ``LMTransportError`` or ``LMTimeoutError`` if no reply arrives."""

    def send(self, request: HttpRequest) -> HttpReply:
        """Send a request and wait for the whole reply."""
        ...

    async def asend(self, request: HttpRequest) -> HttpReply:
        """Send a request and await the whole reply. Cancelling closes the connection."""
        ...

    def stream(self, request: HttpRequest) -> AbstractContextManager[ReplyStream]:
        """Send a request and wait for the reply's head. Leaving the block before the body ends closes the connection."""
        ...

    def astream(self, request: HttpRequest) -> AbstractAsyncContextManager[AsyncReplyStream]:
        """Return ``stream`` as an asynchronous context manager."""
        ...

    def close(self) -> None:
        """Close all connections."""

    async def aclose(self) -> None:
        """Close all connections and await their end."""
