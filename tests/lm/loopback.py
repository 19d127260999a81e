"""A provider on this machine that answers from a list, for tests of what goes over the wire."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Host", "Reply", "Seen"]


@dataclass
class Reply:
    """One canned reply. ``body`` is sent as JSON unless it is bytes; ``cut`` announces more than is sent."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False


@dataclass
class Seen:
    """One request as it came."""

    path: str
    query: str
    headers: dict[str, str]
    body: Any


class Host:
    """The provider. ``seen`` holds the requests; the last reply is given again and again."""

    def __init__(self, *replies: Any) -> None:
        self.replies = [reply if isinstance(reply, Reply) else Reply(reply) for reply in replies]
        self.seen: list[Seen] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, request: Seen) -> Reply:
        with self._lock:
            self.seen.append(request)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # one request a connection: nothing stays open between tests

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                url = urlsplit(self.path)
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = host._next(Seen(url.path, url.query, headers, json.loads(raw)))
                time.sleep(reply.delay)
                body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body) + reply.cut))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
