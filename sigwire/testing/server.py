"""A small HTTP/1.1 server on the loopback interface: keep-alive, a thread for each connection, one function that answers.

It knows nothing of providers: ``answer(exchange) -> ServerReply``, where the body is bytes or something that is played to the
client piece by piece. Closing it ends connections that clients still hold open.
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
    """What goes back. ``cut`` closes the connection after half of the body.

    ``play`` sends a body in pieces instead; it gives whether the body is to be ended properly.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False
    play: Callable[[ByteSink], bool] | None = None


# Seconds for an answer that is being made when the server stops; its thread is not waited for any longer.
_PATIENCE = 2.0


class LoopbackServer(ThreadingHTTPServer):
    """Listens from construction on; ``start`` begins to answer, ``stop`` ends everything."""

    request_queue_size = 128
    timeout = 0  # for handle_request, which is called when there is one

    def __init__(self, answer: Callable[[ReceivedRequest], ServerReply], host: str, port: int) -> None:
        self.answer = answer
        self.stopping = False
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self._serve, name="sigwire-fake-provider", daemon=True)
        self._bell, self._rope = socket.socketpair()
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own asks for the machine's name as well, which can take seconds and is not used.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and end the connections that are open."""
        self.stopping = True
        self._rope.send(b"!")
        self._thread.join()
        self.server_close()
        with self._lock:
            left = dict(self._open)
        for connection in left:
            with contextlib.suppress(OSError):  # the client was faster
                connection.shutdown(socket.SHUT_RDWR)
        for thread in left.values():
            thread.join(_PATIENCE)

    def server_close(self) -> None:
        super().server_close()
        self._bell.close()
        self._rope.close()

    def _serve(self) -> None:
        # Not serve_forever: it looks only now and then whether it should stop, and tests stop servers all the time.
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._bell, selectors.EVENT_READ)
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
        """A client that goes away is nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "sigwire-fake-provider"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together

    def do_POST(self) -> None:
        server = cast(LoopbackServer, self.server)
        place = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(place.query, keep_blank_values=True))
        self._send(
            server.answer(ReceivedRequest(self.command, unquote(place.path), query, headers, self._body(headers)))
        )

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

    def _send(self, answered: ServerReply) -> None:
        self.send_response(answered.status)
        for name, value in {"content-type": "application/json", **answered.headers}.items():
            self.send_header(name, value)
        if answered.play is not None:
            self._play(answered.play)
            return
        self.send_header("content-length", str(len(answered.body)))
        self.end_headers()
        self.wfile.write(answered.body[: len(answered.body) // 2] if answered.cut else answered.body)
        self.wfile.flush()
        self.close_connection = self.close_connection or answered.cut

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
    """The rest of a response, in HTTP's chunks."""

    def __init__(self, handler: _Handler, selector: selectors.BaseSelector) -> None:
        self._file, self._connection, self._selector = handler.wfile, handler.connection, selector
        self._server = cast(LoopbackServer, handler.server)

    def send(self, data: bytes) -> None:
        self.look()
        try:
            self._file.write(b"%x\r\n%b\r\n" % (len(data), data))
            self._file.flush()
        except OSError:
            raise ClientDisconnected("server stopped" if self._server.stopping else "client left") from None

    def look(self) -> None:
        if self._server.stopping:
            raise ClientDisconnected("server stopped")
        # Readable without a byte to read: the other side has closed. A next request may wait there as well.
        try:
            gone = bool(self._selector.select(0)) and self._connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            gone = True
        if gone:
            raise ClientDisconnected("client left")
