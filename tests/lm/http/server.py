"""Servers, calls and counts of sockets for the tests of the transport.

``Server`` accepts connections in threads and gives every request to a ``Script``, which writes any bytes and returns
whether the connection stays open.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import socket
import ssl
import stat
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport
from tests.patience import PATIENCE

SECRET = "sk-canary-5Qz"


class Server:
    """A loopback server. ``requests``: (head, body) as received. ``open``: open connections; ``accepted``: all connections."""

    def __init__(self, script: Script | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.script, self.tls = script or ok, tls
        self.requests: list[tuple[str, bytes]] = []
        self.accepted = self.open = 0
        self.changed = threading.Condition()
        self.gone = threading.Event()  # a client closed its connection, or reset it
        self.go_on = threading.Event()  # for scripts that wait for the test
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1/chat"

    def close(self) -> None:
        self.go_on.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def is_left(self, open: int = 0) -> bool:
        """Whether, in a while at most, so many connections are open."""
        with self.changed:
            return self.changed.wait_for(lambda: self.open == open, PATIENCE)

    def has_reached_client(self) -> bool:
        """Whether, in a while at most, each client has something to read. Blocks the loop of the client."""
        sockets = [thing for thing in gc.get_objects() if issubclass(type(thing), socket.socket)]
        ends = [end for end in sockets if _peer(end) == self.port]
        return bool(ends) and all(select.select([end], [], [], PATIENCE)[0] for end in ends)

    def has_heard(self, requests: int) -> bool:
        """Whether, in a while at most, so many requests have come."""
        deadline = time.monotonic() + PATIENCE
        while len(self.requests) < requests and time.monotonic() < deadline:
            time.sleep(0.01)
        return len(self.requests) >= requests

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._count(+1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _count(self, change: int) -> None:
        with self.changed:
            self.accepted += max(change, 0)
            self.open += change
            self.changed.notify_all()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            while (request := read_request(connection)) is not None:
                self.requests.append(request)
                if not self.script(self, connection, *request):
                    return
            self.gone.set()
        except OSError:
            self.gone.set()
        finally:
            connection.close()
            self._count(-1)


Script: TypeAlias = Callable[[Server, socket.socket, str, bytes], bool]


def read_request(connection: socket.socket) -> tuple[str, bytes] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        if not (more := connection.recv(65536)):
            return None
        body += more
    return head.decode("latin-1"), body


def says(*pieces: bytes, stay: bool = False) -> Script:
    """Return a script that writes these bytes and then closes, unless ``stay``."""

    def script(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        for piece in pieces:
            connection.sendall(piece)
        return stay

    return script


def reply(body: bytes = b'{"ok":true}', *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


ok = says(reply(), stay=True)


def _peer(end: socket.socket) -> int | None:
    """Return the port that a socket is connected to."""
    try:
        return int(end.getpeername()[1])
    except (OSError, IndexError):
        return None


def hang(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    """Never answers; notices when the client goes."""
    connection.recv(1)
    server.gone.set()
    return False


def drip(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    """Sends a byte now and then, for ever: each wait is short, the whole is not."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    return go_on_dripping(server, connection)


def drip_to_the_end(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    """Return a script whose body ends with the connection."""
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    return go_on_dripping(server, connection)


def go_on_dripping(server: Server, connection: socket.socket) -> bool:
    while not server.go_on.wait(0.02):
        connection.sendall(b"x")
    return False


def reset(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


Call: TypeAlias = Callable[[HttpTransport, HttpRequest], HttpReply]


def blocking(transport: HttpTransport, request: HttpRequest) -> HttpReply:
    return transport.send(request)


def awaited(transport: HttpTransport, request: HttpRequest) -> HttpReply:
    return asyncio.run(transport.asend(request))


def streamed(transport: HttpTransport, request: HttpRequest) -> HttpReply:
    with transport.stream(request) as stream:
        return HttpReply(stream.status, stream.headers, b"".join(stream))


def streamed_awaited(transport: HttpTransport, request: HttpRequest) -> HttpReply:
    async def main() -> HttpReply:
        async with transport.astream(request) as stream:
            return HttpReply(stream.status, stream.headers, b"".join([piece async for piece in stream]))

    return asyncio.run(main())


def ask(url: str, body: bytes = b"{}", **kwargs: Any) -> HttpRequest:
    return HttpRequest(url, {"authorization": f"Bearer {SECRET}"}, body, **kwargs)


@contextmanager
def no_open_sockets() -> Iterator[None]:
    """Afterwards this process has no more sockets to servers than before, and nothing was left to the collector."""
    before = client_sockets()
    gc.freeze()  # what is there already is not looked through
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()
    assert not client_sockets() - before


def client_sockets() -> set[int]:
    """The open sockets of this process that connect to servers, by inode. Sockets of the servers are not kept alive."""
    return {inode for name in os.listdir("/dev/fd") if (inode := _client_socket(int(name)))}


def _client_socket(descriptor: int) -> int:
    """Return the inode of a client's socket, 0 of another file."""
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISSOCK(found.st_mode):
            return 0
        with socket.socket(fileno=os.dup(descriptor)) as thing:
            is_client = thing.family == socket.AF_INET and thing.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            return found.st_ino if is_client else 0
    except OSError:  # closed by another thread
        return 0


def head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode()


@dataclass(frozen=True)
class Certificates:
    """An untrusted authority, as a file, and its certificates."""

    ca: Path
    client: Path
    server: ssl.SSLContext
    demanding: ssl.SSLContext  # wants a client certificate
    other_host: ssl.SSLContext


def begin_and_hang(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello")
    return hang(server, connection, head, body)


def run_and_shut_down(main: Any) -> None:
    asyncio.run(main)


def run_and_close(main: Any) -> None:
    """Run a loop made by hand, which ends without closing its async generators."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main)
    loop.close()


def unknown(*args: Any, **kwargs: Any) -> Any:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
