"""A small HTTP/1.1 server on the loopback interface: keep-alive, one thread per connection, one function that answers.

It knows no provider: ``answer(request) -> ServerReply``, whose body is bytes or a stream that is sent in packets, and whose
delivery may be late, slow or broken. Stopping the server closes connections that clients hold open.
"""

from __future__ import annotations

import contextlib
import math
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from sigwire.effects.waiting import join, sleep
from sigwire.testing.answers import Delivered
from sigwire.testing.playback import ByteSink, ClientDisconnected
from sigwire.testing.wire import ReceivedRequest

__all__ = ["LoopbackServer", "ServerReply"]


@dataclass(frozen=True, slots=True)
class ServerReply:
    """A reply. ``cut`` closes the connection after half of the body.

    ``play`` sends a streamed body instead and returns True if the body ends properly. ``done`` is called after the last byte
    or the break of the connection.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    play: Callable[[ByteSink], bool] | None = None
    delivery: Delivered = Delivered()
    done: Callable[[], None] | None = None


# A selector without a descriptor of its own: hundreds of connections may wait at once.
_Selector: Callable[[], selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)

# Seconds that stopping waits for the thread of an unfinished answer.
_STOP_SECONDS = 2.0


class LoopbackServer(ThreadingHTTPServer):
    """Listens after construction; ``start`` starts answering, ``stop`` closes all connections."""

    request_queue_size = 1024
    timeout = 0  # handle_request is called when a connection waits

    def __init__(self, answer: Callable[[ReceivedRequest], ServerReply], host: str, port: int) -> None:
        self.answer = answer
        self.stopping = False
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self._serve, name="sigwire-fake-provider", daemon=True)
        self._stop_receiver, self._stop_sender = socket.socketpair()
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer.server_bind looks up the host name, which can take seconds and is not used.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def start(self) -> None:
        """Start answering."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and close open connections."""
        self.stopping = True
        self._stop_sender.send(b"!")
        join(self._thread)
        self.server_close()
        with self._lock:
            open_connections = dict(self._open)
        for connection in open_connections:
            with contextlib.suppress(OSError):  # the client closed it already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in open_connections.values():
            join(thread, _STOP_SECONDS)

    def server_close(self) -> None:
        super().server_close()
        self._stop_receiver.close()
        self._stop_sender.close()

    def _serve(self) -> None:
        # Not serve_forever: it polls for a stop every 0.5 s.
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._stop_receiver, selectors.EVENT_READ)
            while selector.select() and not self.stopping:
                self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        with self._lock:
            self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._lock:
            self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a disconnected client is not an error of the server."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sigwire-fake-provider"
    disable_nagle_algorithm = True
    wbufsize = -1  # send head and body together

    def do_POST(self) -> None:
        server = cast(LoopbackServer, self.server)
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        reply = server.answer(ReceivedRequest(self.command, unquote(url.path), query, headers, self._body(headers)))
        try:
            self._send(reply)
        except ClientDisconnected:
            self.close_connection = True
        finally:
            if reply.done is not None:
                reply.done()
        if self.close_connection and reply.delivery.reset:
            self._reset()

    def do_GET(self) -> None:
        self.do_POST()

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(headers.get("content-length") or 0))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return b"".join(chunks)

    def _send(self, reply: ServerReply) -> None:
        how = reply.delivery
        self.pause(how.after)
        self.close_connection = self.close_connection or reply.cut or how.close or how.stop is not None
        if how.stop == "head":
            return
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        if reply.play is not None:
            self._play(reply.play, how.every)
            return
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        for packet in _packets(reply.body[: len(reply.body) // 2] if reply.cut or how.stop else reply.body, how.every):
            self.wfile.write(packet)
            self.wfile.flush()
            self.pause(how.every)

    def _play(self, play: Callable[[ByteSink], bool], every: float) -> None:
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        whole = play(_ChunkedWriter(self, every))
        if whole:
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        self.close_connection = self.close_connection or not whole

    def pause(self, seconds: float) -> None:
        """Wait. Raises ``ClientDisconnected`` as soon as the connection is closed; a server that stops closes it."""
        if not seconds:
            return
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            if not self.readable(None if rest == math.inf else rest):
                return
            self.check()
            sleep(min(rest, 0.01))  # the bytes of a next request make the connection readable

    def check(self) -> None:
        if cast(LoopbackServer, self.server).stopping:
            raise ClientDisconnected("server stopped")
        # Readable without a byte: the client has closed. A byte is the next request.
        try:
            is_closed = self.readable(0) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            is_closed = True
        if is_closed:
            raise ClientDisconnected("client left")

    def readable(self, seconds: float | None) -> bool:
        with _Selector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            return bool(selector.select(seconds))

    def _reset(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            socket.close(self.connection.detach())

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are recorded, not printed."""


class _ChunkedWriter:
    """Writes a response body in HTTP chunks, of one byte each if there is a pause ``every`` byte."""

    def __init__(self, handler: _Handler, every: float) -> None:
        self._handler, self._every = handler, every
        self._server = cast(LoopbackServer, handler.server)

    def send(self, data: bytes) -> None:
        for packet in _packets(data, self._every):
            self.check()
            try:
                self._handler.wfile.write(b"%x\r\n%b\r\n" % (len(packet), packet))
                self._handler.wfile.flush()
            except OSError:
                raise ClientDisconnected("server stopped" if self._server.stopping else "client left") from None
            self._handler.pause(self._every)

    def check(self) -> None:
        self._handler.check()


def _packets(data: bytes, every: float) -> Iterator[bytes]:
    return (data[place : place + 1] for place in range(len(data))) if every else iter((data,))
