"""A streamed HTTP reply as effects: open, read chunks, close.

One driver reads one reply: a reply that was opened blocking is read blocking.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from sigwire.core.json import JsonValue
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.lm.http.messages import method_of
from sigwire.lm.http.reply_mask import ReplyMask, StreamMask, mask_of

if TYPE_CHECKING:
    from sigwire.lm.http.messages import AsyncReplyStream, HttpRequest, ReplyHead, ReplyStream, Transport

__all__ = ["ReplyReader"]


class ReplyReader:
    """A reply that is read chunk by chunk, without the secrets that ``mask`` knows once the request was sent.

    ``is_masked``: whether the chunks are masked. Those of a binary stream with checksums are not: their events must be.
    """

    def __init__(self, transport: Transport, request: HttpRequest, mask: Callable[[], ReplyMask] | None = None) -> None:
        self._transport, self._request, self._mask_of = transport, request, mask or partial(mask_of, ())
        self.mask, self.is_masked = mask_of(()), True
        self._blocking: AbstractContextManager[ReplyStream] | None = None
        self._awaited: AbstractAsyncContextManager[AsyncReplyStream] | None = None
        self._reply: object = None
        self._achunks: AsyncIterator[bytes] | None = None
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._stream: StreamMask | None = None
        self._next: FunctionEffect[bytes | None] = _next_of(iter(()), self._aread)  # one effect for all chunks

    def open(self) -> FunctionEffect[None]:
        """Send the request and wait for the reply's head: ``status`` and ``headers``."""
        return FunctionEffect(self._open, self._aopen)

    def next(self) -> FunctionEffect[bytes | None]:
        """Return the effect of reading the next chunk; ``None`` at the end of the body."""
        return self._next

    def close(self) -> FunctionEffect[None]:
        """Release the connection, or close it if the body was not fully read."""
        return FunctionEffect(self.abort, self._aclose)

    def end_first(self) -> None:
        """Lift the limit of the first content; other transports than ``HttpTransport`` have none."""
        if (lift := getattr(self._reply, "end_first", None)) is not None:
            lift()

    def masked(self, event: JsonValue) -> JsonValue:
        """Return an event of the reply without secrets; ``event`` itself if it came of masked chunks."""
        return event if self.is_masked else self.mask.value(event)

    def rest(self) -> Steps[bytes]:
        """Read the rest of the body."""
        body = bytearray()
        while (chunk := (yield self._next)) is not None:
            body += chunk
        return bytes(body)

    def abort(self) -> None:
        """Close a blocking reply without waiting."""
        manager, self._blocking = self._blocking, None
        if manager is not None:
            manager.__exit__(None, None, None)

    def _open(self) -> None:
        manager: AbstractContextManager[ReplyStream] = method_of(self._transport, "stream")(self._request)
        reply = manager.__enter__()
        self._blocking, self._reply = manager, reply
        self._begin(reply)
        chunks = iter(reply)
        self._next = _next_of(chunks if self._stream is None else _masked(chunks, self._stream), self._aread)

    async def _aopen(self) -> None:
        manager: AbstractAsyncContextManager[AsyncReplyStream] = method_of(self._transport, "astream")(self._request)
        reply = await manager.__aenter__()
        self._awaited, self._reply, self._achunks = manager, reply, aiter(reply)
        self._begin(reply)

    def _begin(self, reply: ReplyHead) -> None:
        self.mask = mask = self._mask_of()
        self.status, self.headers = reply.status, mask.headers(reply.headers)
        self.is_masked = not mask.forms or _BINARY not in reply.headers.get("content-type", "")
        self._stream = StreamMask(mask) if mask.forms and self.is_masked else None

    async def _aread(self) -> bytes | None:
        chunk = None if self._achunks is None else await anext(self._achunks, None)
        if self._stream is None:
            return chunk
        return (self._stream.close() or None) if chunk is None else self._stream.feed(chunk)

    async def _aclose(self) -> None:
        manager, self._awaited = self._awaited, None
        if manager is not None:
            await manager.__aexit__(None, None, None)


_BINARY = "vnd.amazon.eventstream"


def _masked(chunks: Iterator[bytes], stream: StreamMask) -> Iterator[bytes]:
    for chunk in chunks:
        yield stream.feed(chunk)
    if rest := stream.close():
        yield rest


def _next_of(chunks: Iterator[bytes], awaited: Callable[[], Awaitable[bytes | None]]) -> FunctionEffect[bytes | None]:
    return FunctionEffect(partial(next, chunks, None), awaited)
