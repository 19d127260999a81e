"""A small HTTP/1.1 server on the loopback interface: keep-alive, one thread per connection, one function that answers.

It knows no provider: ``answer(request) -> ServerReply``, whose body is bytes or a stream that is sent in packets. Stopping
the server closes connections that clients hold open.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from sigwire.testing.playback import ByteSink, ClientDisconnected
from sigwire.testing.wire import ReceivedRequest

__all__ = ["LoopbackServer", "ServerReply"]


@dataclass(frozen=True, slots=True)
class ServerReply:
    """A reply. ``cut`` closes the connection after half of the body.

    ``play`` sends a streamed body instead and returns True if the body ends properly.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    play: Callable[[ByteSink], bool] | None = None


# Seconds that stopping waits for the thread of an unfinished answer.
_STOP_SECONDS = 2.0


class LoopbackServer(ThreadingHTTPServer):
    """Listens after construction; ``start`` starts answering, ``stop`` closes all connections."""

    request_queue_size = 128
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
        self._thread.join()
        self.server_close()
        with self._lock:
            open_connections = dict(self._open)
        for connection in open_connections:
            with contextlib.suppress(OSError):  # the client closed it already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in open_connections.values():
            thread.join(_STOP_SECONDS)

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
        self._send(server.answer(ReceivedRequest(self.command, unquote(url.path), query, headers, self._body(headers))))

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
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        if reply.play is not None:
            self._play(reply.play)
            return
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
        self.wfile.flush()
        self.close_connection = self.close_connection or reply.cut

    def _play(self, play: Callable[[ByteSink], bool]) -> None:
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            whole = play(_ChunkedWriter(self, selector))
        if whole:
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        self.close_connection = self.close_connection or not whole

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are recorded, not printed."""


class _ChunkedWriter:
    """Writes a response body in HTTP chunks."""

    def __init__(self, handler: _Handler, selector: selectors.BaseSelector) -> None:
        self._file, self._connection, self._selector = handler.wfile, handler.connection, selector
        self._server = cast(LoopbackServer, handler.server)

    def send(self, data: bytes) -> None:
        self.check()
        try:
            self._file.write(b"%x\r\n%b\r\n" % (len(data), data))
            self._file.flush()
        except OSError:
            raise ClientDisconnected("server stopped" if self._server.stopping else "client left") from None

    def check(self) -> None:
        if self._server.stopping:
            raise ClientDisconnected("server stopped")
        # Readable without a byte: the client has closed. A byte is the next request.
        try:
            is_closed = bool(self._selector.select(0)) and self._connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            is_closed = True
        if is_closed:
            raise ClientDisconnected("client left")
