"""The floor of the HTTP jobs: requests over a plain socket, and over asyncio's protocols, without a library."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

__all__ = ["AsyncSender", "Sender", "head"]

HEADERS = {"content-type": "application/json", "authorization": "Bearer benchmark"}


def head(port: int, path: str, headers: Mapping[str, str] = HEADERS) -> bytes:
    """Return the head of a request, up to the number of the body's bytes."""
    lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{port}", *(f"{name}: {headers[name]}" for name in headers)]
    return "\r\n".join([*lines, "content-length: "]).encode()


def request(before: bytes, body: bytes) -> bytes:
    return b"%b%d\r\n\r\n%b" % (before, len(body), body)


def body_of(data: bytes) -> bytes | None:
    """Return the body of a successful reply, or None if the reply is incomplete."""
    end = data.find(b"\r\n\r\n") + 4
    if end < 4:
        return None
    assert data.startswith(b"HTTP/1.1 200 ")
    start = data.index(b"content-length: ") + 16
    whole = end + int(data[start : data.index(b"\r\n", start)])
    return data[end:whole] if len(data) >= whole else None


class Sender:
    """Posts bodies over one connection and returns the bodies of the replies."""

    def __init__(self, port: int, path: str) -> None:
        self._before = head(port, path)
        self._connection = socket.create_connection(("127.0.0.1", port))
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __call__(self, body: bytes) -> bytes:
        connection = self._connection
        connection.sendall(request(self._before, body))
        data = connection.recv(65536)
        while (answer := body_of(data)) is None:
            data += connection.recv(65536)
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Conversation(asyncio.Protocol):
    """One request at a time, one answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.data = b""
        self.waiting: asyncio.Future[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.waiting and (body := body_of(self.data)) is not None:
            self.data = b""
            self.waiting.set_result(body)

    def ask(self, sent: bytes) -> asyncio.Future[bytes]:
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(sent)
        return self.waiting


class AsyncSender:
    """The same for many tasks: as many connections as are in use at once."""

    def __init__(self, port: int, path: str) -> None:
        self._port, self._before = port, head(port, path)
        self._idle: list[Conversation] = []

    async def __call__(self, body: bytes) -> bytes:
        idle = self._idle
        conversation = idle.pop() if idle else await self._open()
        answer = await conversation.ask(request(self._before, body))
        idle.append(conversation)
        return answer

    async def _open(self) -> Conversation:
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(Conversation, "127.0.0.1", self._port))[1]

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().transport.close()
        await asyncio.sleep(0)  # the loop closes the sockets
