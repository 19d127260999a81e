"""TODO map."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from sigwire.lm.http.urls import shown

__all__ = ["AsyncReplyStream", "HttpReply", "HttpRequest", "ReplyStream", "Transport"]


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
