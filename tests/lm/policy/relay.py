"""A relay in front of a fake provider that loses connections by a script: HTTP/1.1 with kept connections."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any, Self
from urllib.parse import urlsplit

__all__ = ["Relay"]

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class Relay:
    """Forwards each request, unless the script has another act for it: "close", "reset", "silent", or "drip".

    "close" and "reset" end the connection without a reply, "silent" sends none, "drip" sends a head and a byte each
    ``drip`` seconds. After the script each request is forwarded.
    """

    def __init__(self, url: str, *acts: str, drip: float = 0.1) -> None:
        self._upstream = urlsplit(url)
        self._acts, self._drip = deque(acts), drip
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}{self._upstream.path}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection.makefile("rb") as received:
            while line := received.readline():
                headers: dict[str, str] = {}
                while header := received.readline().strip():
                    name, _, value = header.decode("latin-1").partition(":")
                    headers[name.lower()] = value.strip()
                body = received.read(int(headers.get("content-length", 0)))
                act = self._acts.popleft() if self._acts else "forward"
                if not self._act(connection, act, line.split()[1].decode(), headers, body):
                    break
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def _act(self, connection: socket.socket, act: str, path: str, headers: dict[str, str], body: bytes) -> bool:
        """Perform an act. Return True if the connection stays open."""
        if act == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.close()
        elif act == "silent":
            connection.recv(1)
        elif act == "drip":
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            while True:
                connection.sendall(b"1\r\n:\r\n")
                time.sleep(self._drip)
        elif act == "forward":
            connection.sendall(self._forward(path, headers, body))
            return True
        return False

    def _forward(self, path: str, headers: dict[str, str], body: bytes) -> bytes:
        upstream = HTTPConnection(str(self._upstream.hostname), self._upstream.port or 80)
        upstream.request("POST", path, body, headers)
        reply = upstream.getresponse()
        content, kept = reply.read(), {"content-type", "retry-after", "date"}
        upstream.close()
        named: list[tuple[str, Any]] = [pair for pair in reply.getheaders() if pair[0].lower() in kept]
        named.append(("content-length", len(content)))
        head = "".join(f"{name}: {value}\r\n" for name, value in named)
        return f"HTTP/1.1 {reply.status} {reply.reason}\r\n{head}\r\n".encode("latin-1") + content
