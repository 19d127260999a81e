"""A reply in pieces over HTTP, as effects: opened, read piece by piece, put away.

    reply = Pieces(transport, request)
    yield reply.open()                        the head is there: ``reply.status``, ``reply.headers``
    piece = yield reply.next()                bytes, cut anywhere; ``None`` at the end
    yield reply.shut()                        the connection is closed where the body was not read to its end

Made for one driver: what was opened blocking is read blocking.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING

from sigwire.effects.steps import FunctionEffect, Steps

if TYPE_CHECKING:
    from sigwire.lm.http.messages import AsyncReplyStream, HttpRequest, ReplyStream, Transport

__all__ = ["ReplyReader"]


class ReplyReader:
    """One reply that is read as it comes."""

    def __init__(self, transport: Transport, request: HttpRequest) -> None:
        self._transport, self._request = transport, request
        self._blocking: AbstractContextManager[ReplyStream] | None = None
        self._awaited: AbstractAsyncContextManager[AsyncReplyStream] | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._apieces: AsyncIterator[bytes] | None = None
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._next = FunctionEffect(self._read, self._aread)  # one for all pieces

    def open(self) -> FunctionEffect[None]:
        """Send the request and wait for the reply's head."""
        return FunctionEffect(self._open, self._aopen)

    def next(self) -> FunctionEffect[bytes | None]:
        """The next piece of the body; ``None`` at its end."""
        return self._next

    def close(self) -> FunctionEffect[None]:
        """Put the connection back, or close it if the body was not read to its end."""
        return FunctionEffect(self.abort, self._ashut)

    def rest(self) -> Steps[bytes]:
        """The whole rest of the body."""
        body = bytearray()
        while (piece := (yield self._next)) is not None:
            body += piece
        return bytes(body)

    def abort(self) -> None:
        """Put a blocking reply away, without waiting."""
        manager, self._blocking = self._blocking, None
        if manager is not None:
            manager.__exit__(None, None, None)

    def _open(self) -> None:
        manager = self._transport.stream(self._request)
        reply = manager.__enter__()
        self._blocking, self._pieces = manager, iter(reply)
        self.status, self.headers = reply.status, reply.headers

    async def _aopen(self) -> None:
        manager = self._transport.astream(self._request)
        reply = await manager.__aenter__()
        self._awaited, self._apieces = manager, aiter(reply)
        self.status, self.headers = reply.status, reply.headers

    def _read(self) -> bytes | None:
        return next(self._pieces, None)

    async def _aread(self) -> bytes | None:
        return None if self._apieces is None else await anext(self._apieces, None)

    async def _ashut(self) -> None:
        manager, self._awaited = self._awaited, None
        if manager is not None:
            await manager.__aexit__(None, None, None)
