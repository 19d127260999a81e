"""``Coordinator``: an HTTP server in the driver that gives permits to the workers of a run.

It listens on the loopback interface by default, and its URL has a random token in the path. A worker keeps one
connection (``permits``): its end frees nothing, the worker's permits then count as used. No key, row or answer is sent to it.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Self

from sigwire.errors import ConfigurationError
from sigwire.jobs.lease_book import LeaseAsk, LeaseBook, LeaseReply, Settlement
from sigwire.keywords import ChecksKeywords
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.policy.money.opened import OpenBudget, open_budgets
from sigwire.lm.policy.money.sums import Amounts, Sums

__all__ = ["Coordinator"]

_MOST_BYTES = 1 << 20
_MOST_SECONDS = 60.0  # of slack
_FIRST_SECONDS = 10.0  # for the first request of a connection


class Coordinator(ChecksKeywords):
    """The limits of a run over all its workers, served inside a ``with`` block.

    ``rate``: exchanges a second, spread evenly. ``calls``: exchanges in all. ``budget``: US dollars, or a ``Budget``, whose
    tokens and calls count as well. The open budgets of the caller are charged also. A rate limit (429) that one worker meets
    slows all workers down. ``host`` and ``port`` to listen on; 0 is a free port. ``address``: the host name in ``url``, if
    workers reach this one by another name. The traffic is not encrypted: use a private network, or a tunnel.

    ``url`` is for ``permits_of`` in the workers, and a secret: it has the token. At the end of the block the connections are
    closed, and a worker that still runs is refused at its next call.

    >>> with Coordinator(calls=100, rate=20) as coordinator:
    ...     coordinator.url.startswith("http://127.0.0.1:")
    True
    """

    _renamed: ClassVar[Mapping[str, str]] = {"money": "budget", "usd": "budget", "bind": "host"}

    def __init__(
        self,
        *,
        rate: float | None = None,
        calls: int | None = None,
        budget: Budget | float | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        address: str | None = None,
    ) -> None:
        if rate is not None and not 0 < rate < float("inf"):
            raise ConfigurationError(f"rate is a number of calls a second above 0, not {rate!r:.80} (making it).")
        own = budget if isinstance(budget, Budget) or budget is None else Budget(money=budget)
        given = [each for each in (own, None if calls is None else Budget(calls=calls)) if each is not None]
        self._budgets: tuple[OpenBudget, ...] = (*open_budgets(), *given)
        self._counter = Budget()
        accounts = [budget.account for budget in (*self._budgets, self._counter)]
        self.book = LeaseBook(rate=rate, accounts=tuple(dict.fromkeys(accounts)))
        self._place, self._address, self._token = (host, port), address or host, secrets.token_urlsafe(24)
        self._server: _LeaseServer | None = None

    @property
    def url(self) -> str:
        """The URL for workers. The part behind ``#`` is not sent: it has the conditions of the budgets."""
        if self._server is None:
            raise ConfigurationError("The coordinator does not run (reading its url). Use it inside its `with` block.")
        conditions = {name for each in self._budgets for name in ("strict", "needs_price") if getattr(each, name)}
        conditions |= {"paced"} if self.book.is_paced else set()
        host = f"[{self._address}]" if ":" in self._address else self._address
        return f"http://{host}:{self._server.server_port}/{self._token}#{','.join(sorted(conditions))}"

    @property
    def spent(self) -> Amounts:
        """The amounts that workers have used."""
        return self._counter.spent

    def __enter__(self) -> Self:
        try:
            self._server = _LeaseServer(self._place, self.book, f"/{self._token}")
        except OSError as error:
            host, port = self._place
            raise ConfigurationError(
                f"Cannot listen on {host}:{port} (starting the coordinator): {error}. Use another host or port, or port 0."
            ) from error
        threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="sigwire-coordinator", daemon=True
        ).start()
        return self

    def __exit__(self, *error: object) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


class _LeaseServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, place: tuple[str, int], book: LeaseBook, path: str) -> None:
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self.book, self.path = book, path
        self._connections: set[socket.socket] = set()
        super().__init__(place, _LeaseHandler)  # closes itself if the port is in use

    def server_bind(self) -> None:
        """Bind without a look-up of the host's name, which may take seconds."""
        super(ThreadingHTTPServer, self).server_bind()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        assert isinstance(request, socket.socket)
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self._connections):
            with suppress(OSError):  # its handler has closed it
                connection.shutdown(socket.SHUT_RDWR)


class _LeaseHandler(BaseHTTPRequestHandler):
    """One connection: that of a worker."""

    protocol_version = "HTTP/1.1"
    timeout = _FIRST_SECONDS
    disable_nagle_algorithm = True

    @property
    def _owner(self) -> _LeaseServer:
        assert isinstance(self.server, _LeaseServer)
        return self.server

    def setup(self) -> None:
        super().setup()
        for name, seconds in (("SO_KEEPALIVE", 1), ("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10)):  # of a dead machine
            if (option := getattr(socket, name, None)) is not None:
                level = socket.SOL_SOCKET if name == "SO_KEEPALIVE" else socket.IPPROTO_TCP
                self.connection.setsockopt(level, option, seconds)

    def finish(self) -> None:
        self._owner.book.drop(self.client_address)
        with suppress(OSError):  # the worker is gone
            super().finish()

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        """Answer one message."""
        length = self.headers.get("Content-Length", "")
        if not hmac.compare_digest(self.path.encode(), self._owner.path.encode()):
            return self._send(404, b"{}")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            return self._send(400, b"{}")
        self.connection.settimeout(None)
        try:
            asks, settled = _read(self.rfile.read(int(length)))
        except (ValueError, TypeError, KeyError, AttributeError):
            return self._send(400, b"{}")
        reply = self._owner.book.answer(self.client_address, asks, settled)
        return self._send(200, _written(reply))

    def _send(self, status: int, body: bytes) -> None:
        self.close_connection = status != 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: the path has the token."""


def _read(body: bytes) -> tuple[list[LeaseAsk], list[Settlement]]:
    message: dict[str, list[list[object]]] = json.loads(body)
    asks = [
        LeaseAsk(_sums(need), [_integer(number) for number in _list(own)], bool(waits), _seconds(slack))
        for need, own, waits, slack in message["asks"]
    ]
    settled = [
        Settlement(_integer(number), _sums(charge), None if refused is None else float(str(refused)))
        for number, charge, refused in message["settled"]
    ]
    return asks, settled


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError
    return [*value]  # pyright: ignore[reportUnknownVariableType]


def _integer(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _seconds(value: object) -> float:
    if not isinstance(value, float | int) or not 0 <= value <= _MOST_SECONDS:
        raise TypeError
    return float(value)


def _sums(value: object) -> Sums:
    return Sums(*map(_integer, _list(value)))


def _written(reply: LeaseReply) -> bytes:
    return json.dumps({"answers": reply.answers, "again": reply.again}).encode()
