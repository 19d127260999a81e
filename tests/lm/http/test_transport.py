"""The transport against servers on this machine: well-behaved, slow, broken and hostile ones, and proxies.

``Server`` accepts connections in threads and gives every request to a ``Script``, which writes any bytes and returns
whether the connection stays open. Nearly every behaviour is tested blocking and awaited (the parameter ``call``).
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import sigwire
from sigwire.effects.emitting import Emit, stream
from sigwire.effects.gather import Gather
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import Steps, arun
from sigwire.errors import ConfigurationError, LMError, LMTimeoutError, LMTransportError
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.http.urls import parse_url, proxy_from_env, tls_context

SECRET = "sk-canary-5Qz"
PATIENCE = 5.0  # how long a test waits for what must happen; what must not happen is never waited for


# --- servers -------------------------------------------------------------------------------------------


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


@pytest.fixture(scope="module", autouse=True)
def a_small_heap() -> Iterator[None]:
    """Freeze the garbage of other tests, so that counting sockets does not scan it each time.

    aiohttp is imported here, because its import counts against the deadline of the first awaited call.
    """
    importlib.import_module("sigwire.lm.http.async_client")
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(script: Script | None = None, tls: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(script, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "REQUEST_METHOD",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


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


@pytest.fixture(params=[blocking, awaited, streamed, streamed_awaited], ids=lambda call: call.__name__)
def call(request: pytest.FixtureRequest) -> Call:
    return request.param


def ask(url: str, body: bytes = b"{}", **kwargs: Any) -> HttpRequest:
    return HttpRequest(url, {"authorization": f"Bearer {SECRET}"}, body, **kwargs)


@contextmanager
def no_open_sockets() -> Iterator[None]:
    """Afterwards this process has no more sockets to servers than before, and nothing was left to the collector."""
    before = client_sockets()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
        gc.collect()
    assert client_sockets() == before


def client_sockets() -> int:
    return sum(isinstance(thing, socket.socket) and is_client(thing) for thing in gc.get_objects())


def is_client(thing: socket.socket) -> bool:
    try:
        return (
            thing.fileno() >= 0
            and thing.family == socket.AF_INET
            and bool(thing.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
        )
    except OSError:
        return False


# --- one request, one reply ----------------------------------------------------------------------------


def test_request_is_sent_as_given(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    with HttpTransport(headers={"X-Team": "a", "x-both": "transport"}) as transport:
        request = HttpRequest(server.url + "?beta=1", {"X-Both": "request", "content-type": "application/json"}, b"{}")
        call(transport, request)
    head, body = server.requests[0]
    assert body == b"{}"
    first, *headers = head.split("\r\n")
    assert first == "POST /v1/chat?beta=1 HTTP/1.1"
    assert sorted(header.lower() for header in headers) == [
        "accept-encoding: identity",
        "accept: */*",
        "content-length: 2",
        "content-type: application/json",
        f"host: 127.0.0.1:{server.port}",
        f"user-agent: sigwire/{sigwire.__version__}",
        "x-both: request",
        "x-team: a",
    ]


def test_headers_of_one_request_are_not_sent_with_the_next(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    asked = [
        ("POST", "?a=1", "1"),
        ("GET", "?a=1", "1"),
        ("POST", "?a=2", "1"),
        ("POST", "?a=1", "2"),
        ("POST", "?a=1", "1"),
    ]
    with HttpTransport() as transport:
        for method, query, value in asked:
            call(transport, HttpRequest(server.url + query, {"x-value": value}, b"", method))
    heads = [head.split("\r\n") for head, _ in server.requests]
    sent = [(head[0], next(line for line in head if line.startswith("x-value"))) for head in heads]
    assert sent == [(f"{method} /v1/chat{query} HTTP/1.1", f"x-value: {value}") for method, query, value in asked]


def test_cache_of_heads_is_bounded(serve: Callable[..., Server]) -> None:
    server = serve()
    with HttpTransport() as transport:
        for number in range(200):
            transport.send(HttpRequest(server.url, {"authorization": f"Bearer {number}"}))
        assert len(transport._heads) <= 64
    assert all(f"Bearer {number}\r\n" in head for number, (head, _) in enumerate(server.requests))


def test_reply_has_status_headers_and_body(serve: Callable[..., Server], call: Call) -> None:
    server = serve(says(reply(b"slow down", "X-Limit: 1", "x-limit: 2", "Retry-After: 3", status="429 Too Many")))
    with HttpTransport() as transport:
        got = call(transport, ask(server.url))
    assert (got.status, got.body) == (429, b"slow down")
    assert got.headers == {"content-length": "9", "x-limit": "1, 2", "retry-after": "3"}


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_bodies_of_any_size_are_sent_and_received(serve: Callable[..., Server], call: Call, size: int) -> None:
    sent = os.urandom(size)

    def echo(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(reply(body))
        return True

    with HttpTransport() as transport:
        assert call(transport, ask(serve(echo).url, sent)).body == sent


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        ("http://127.0.0.1:{port}", "POST / HTTP/1.1", "127.0.0.1:{port}"),
        ("http://localhost:{port}/a b/é?q=ü&r=a%20b#part", "POST /a%20b/%C3%A9?q=%C3%BC&r=a%20b HTTP/1.1", "localhost:{port}"),
        ("http://127.0.0.1:{port}/models/gemini-2.5:generateContent", "POST /models/gemini-2.5:generateContent HTTP/1.1", ""),
    ],
)  # fmt: skip
def test_urls_are_sent_as_written(serve: Callable[..., Server], call: Call, url: str, line: str, host: str) -> None:
    server = serve()
    with HttpTransport() as transport:
        call(transport, ask(url.format(port=server.port)))
    head = server.requests[0][0].split("\r\n")
    assert head[0] == line
    assert f"host: {host.format(port=server.port)}" in head or not host


def test_user_in_the_url_becomes_a_header_and_is_never_shown(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    url = f"http://me:{SECRET}@127.0.0.1:{server.port}/"
    with HttpTransport() as transport:
        call(transport, HttpRequest(url))
        assert "authorization: Basic bWU6c2stY2FuYXJ5LTVReg==" in server.requests[0][0]
    assert SECRET not in repr(HttpRequest(url))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://host/",
        "ftp://host:21/",
        "http://",
        "http://[::1/",
        "http://host:99999999/",
        f"x://me:{SECRET}@h:1",
    ],
)
def test_invalid_url_is_a_configuration_error(call: Call, url: str) -> None:
    with HttpTransport() as transport, pytest.raises(ConfigurationError, match="not an HTTP address") as caught:
        call(transport, HttpRequest(url))
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "headers",
    [{"authorization": f"{SECRET}\n"}, {"authorization": f"{SECRET}\r\nx-evil: 1"}, {"x-api-key": f"{SECRET}…"}],
)
def test_invalid_header_is_named_without_its_value(
    serve: Callable[..., Server], call: Call, headers: dict[str, str]
) -> None:
    server = serve()
    with HttpTransport() as transport, pytest.raises(ConfigurationError, match=next(iter(headers))) as caught:
        call(transport, HttpRequest(server.url, headers))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


@pytest.mark.parametrize("method", ["", "GET / HTTP/1.1\r\nx-evil: 1\r\n\r\nPOST", "P OST"])
def test_invalid_method_is_a_configuration_error(call: Call, method: str) -> None:
    with HttpTransport() as transport, pytest.raises(ConfigurationError, match="is not an HTTP method"):
        call(transport, HttpRequest("http://127.0.0.1:1/", method=method))


# --- connections ---------------------------------------------------------------------------------------


def test_no_socket_is_open_before_the_first_call_and_after_close(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    with no_open_sockets():
        transport = HttpTransport()
        assert server.accepted == 0
        call(transport, ask(server.url))
        assert server.accepted == 1
        transport.close()
        assert server.is_left(0)


def test_threads_reuse_one_connection(serve: Callable[..., Server]) -> None:
    server = serve()
    with HttpTransport() as transport:
        for how in (blocking, streamed, blocking):
            how(transport, ask(server.url))
        thread = threading.Thread(target=blocking, args=(transport, ask(server.url)))
        thread.start()
        thread.join()
    assert (server.accepted, len(server.requests)) == (1, 4)


async def test_event_loop_reuses_its_connection(serve: Callable[..., Server]) -> None:
    server = serve()
    async with HttpTransport() as transport:
        for _ in range(3):
            await transport.asend(ask(server.url))
            async with transport.astream(ask(server.url)) as stream:
                assert [piece async for piece in stream]
    assert (server.accepted, len(server.requests)) == (1, 6)


def run_and_shut_down(main: Any) -> None:
    asyncio.run(main)


def run_and_close(main: Any) -> None:
    """Run a loop made by hand, which ends without closing its async generators."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main)
    loop.close()


@pytest.mark.parametrize("run", [run_and_shut_down, run_and_close])
@pytest.mark.long
def test_thousand_calls_on_twenty_loops_leave_no_socket_open(
    serve: Callable[..., Server], run: Callable[[Any], None]
) -> None:
    server = serve()

    async def fifty(transport: HttpTransport) -> None:
        for _ in range(2):
            replies = await asyncio.gather(*(transport.asend(ask(server.url)) for _ in range(25)))
            assert {reply.body for reply in replies} == {b'{"ok":true}'}

    with no_open_sockets():
        with HttpTransport() as transport:
            for _ in range(20):
                run(fifty(transport))
        assert server.is_left(0)
    assert len(server.requests) == 1000
    assert server.accepted == 500


def test_connections_close_with_a_loop_that_is_closed_by_hand(
    serve: Callable[..., Server], certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with no_open_sockets():
        transport = HttpTransport(ca=certificates.ca)
        run_and_close(transport.asend(ask(server.url)))
        assert server.is_left(0)  # the transport was not closed
        run_and_close(transport.asend(ask(server.url)))


def test_one_loop_can_run_several_times(serve: Callable[..., Server]) -> None:
    server = serve()
    with no_open_sockets(), closing(asyncio.new_event_loop()) as loop:
        transport = HttpTransport()
        for _ in range(2):
            loop.run_until_complete(transport.asend(ask(server.url)))
        assert server.accepted == 1
        transport.close()  # while the loop stands still
        assert server.is_left(0)
        loop.run_until_complete(transport.asend(ask(server.url)))
        loop.run_until_complete(transport.aclose())
        assert server.is_left(0)
    assert len(server.requests) == 3


async def test_other_thread_closes_the_connections_of_a_running_loop(serve: Callable[..., Server]) -> None:
    server = serve()
    transport = HttpTransport()
    await transport.asend(ask(server.url))
    async with transport.astream(ask(server.url)) as stream:
        await asyncio.to_thread(transport.close)
        assert b"".join([piece async for piece in stream]) == b'{"ok":true}'
    assert await asyncio.to_thread(server.is_left, 0)


def test_other_thread_closes_while_the_loop_ends(serve: Callable[..., Server]) -> None:
    server, complaints = serve(), list[Any]()
    transport = HttpTransport()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: complaints.append(about))
        await transport.asend(ask(server.url))
        closer = threading.Thread(target=transport.close)
        closer.start()
        closer.join(0.05)  # the callback waits for this loop, which is blocked until it ends
        await loop.shutdown_asyncgens()
        await asyncio.to_thread(closer.join)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # asyncio warns of a generator that started after the shutdown
        asyncio.run(main())
    gc.collect()
    assert not complaints
    assert server.is_left(0)


async def test_connections_close_when_all_tasks_of_the_loop_are_cancelled(
    serve: Callable[..., Server],
) -> None:
    server = serve()
    transport = HttpTransport()
    await transport.asend(ask(server.url))
    before = asyncio.all_tasks()
    transport.close()
    for task in asyncio.all_tasks() - before:
        task.cancel()
    assert await asyncio.to_thread(server.is_left, 0)
    assert (await transport.asend(ask(server.url))).status == 200
    await transport.aclose()


async def test_discarded_transports_leave_nothing_on_a_loop(serve: Callable[..., Server]) -> None:
    import aiohttp

    server = serve()
    for _ in range(20):
        async with HttpTransport() as transport:
            await transport.asend(ask(server.url))
    del transport
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, aiohttp.BaseConnector)]
    assert await asyncio.to_thread(server.is_left, 0)


def test_collected_transport_closes_its_connections(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    with no_open_sockets():
        call(HttpTransport(), ask(server.url))
        gc.collect()
        assert server.is_left(0)


def test_closed_transport_opens_connections_again(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    transport = HttpTransport()
    for _ in range(2):
        call(transport, ask(server.url))
        transport.close()
        assert server.is_left(0)
    assert server.accepted == 2


def test_connection_in_use_at_close_is_not_kept(serve: Callable[..., Server]) -> None:
    server = serve()
    transport = HttpTransport()
    with transport.stream(ask(server.url)) as stream:
        transport.close()
        assert b"".join(stream) == b'{"ok":true}'
    assert server.is_left(0)


async def test_async_context_manager_closes_the_transport(serve: Callable[..., Server]) -> None:
    server = serve()
    async with HttpTransport() as transport:
        await transport.asend(ask(server.url))
    assert server.is_left(0)
    await transport.asend(ask(server.url))
    await transport.aclose()
    assert server.is_left(0)


UNASKED = {
    "closed": b"",
    "spoken on": b"HTTP/1.1 408 Too slow\r\ncontent-length: 0\r\n\r\n",
    "answered unasked": reply(b"for somebody else"),
}


@dataclass
class Impatient:
    """Answer; on a signal send unsolicited bytes on the idle connection, then close it or keep it open."""

    what: bytes
    closes: bool
    given_up: threading.Event

    def __call__(self, server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(reply())
        if len(server.requests) > 1:
            return True
        server.go_on.wait(PATIENCE)
        connection.sendall(self.what)
        if self.closes:
            socket.socket.shutdown(connection, socket.SHUT_WR)  # ends TLS without close_notify
        self.given_up.set()
        connection.recv(1)
        return False


@pytest.fixture(params=[(name, closes) for name in UNASKED for closes in (True, False) if name != "closed" or closes])
def impatient(request: pytest.FixtureRequest) -> Impatient:
    name, closes = request.param
    return Impatient(UNASKED[name], closes, threading.Event())


@pytest.fixture(params=["http", "https"])
def given_up(
    request: pytest.FixtureRequest, serve: Callable[..., Server], impatient: Impatient, certificates: Certificates
) -> Server:
    return serve(impatient, certificates.server if request.param == "https" else None)


def test_idle_connection_closed_by_the_server_is_not_reused(
    given_up: Server, impatient: Impatient, certificates: Certificates
) -> None:
    with HttpTransport(ca=certificates.ca) as transport:
        transport.send(ask(given_up.url))
        given_up.go_on.set()
        assert impatient.given_up.wait(PATIENCE)
        assert transport.send(ask(given_up.url)).body == b'{"ok":true}'
    assert (given_up.accepted, len(given_up.requests)) == (2, 2)


@pytest.mark.parametrize("turns", [0, 1, 5])
async def test_idle_connection_closed_by_the_server_is_not_reused_async(
    given_up: Server, impatient: Impatient, certificates: Certificates, turns: int
) -> None:
    async with HttpTransport(ca=certificates.ca) as transport:
        await transport.asend(ask(given_up.url))
        given_up.go_on.set()
        assert impatient.given_up.wait(PATIENCE)  # the loop is blocked meanwhile
        for _ in range(turns):
            await asyncio.sleep(0)
        assert (await transport.asend(ask(given_up.url))).body == b'{"ok":true}'
    assert (given_up.accepted, len(given_up.requests)) == (2, 2)


@pytest.mark.parametrize("header", ["connection: close", "Connection: Keep-Alive, Close"])
def test_connection_close_header_is_obeyed(serve: Callable[..., Server], call: Call, header: str) -> None:
    server = serve(says(reply(b"", header), stay=True))
    with HttpTransport() as transport:
        call(transport, ask(server.url))
        assert server.is_left(0)


async def test_idle_connections_expire_after_keep_alive(serve: Callable[..., Server]) -> None:
    server = serve()
    async with HttpTransport(keep_alive=0.0) as transport:
        for _ in range(2):
            transport.send(ask(server.url))
            await transport.asend(ask(server.url))
    assert server.accepted == 4


def test_many_threads_share_one_transport(serve: Callable[..., Server]) -> None:
    def echo(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(reply(body))
        return True

    server = serve(echo)
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(25):
            body = f"{number} {turn}".encode()
            how = awaited if turn % 5 == 0 else blocking
            if how(transport, ask(server.url, body)).body != body:
                wrong.append(body)

    with HttpTransport() as transport:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert len(server.requests) == 400
    assert server.is_left(0)


# --- leaving early -------------------------------------------------------------------------------------


async def test_cancelling_closes_the_connection(serve: Callable[..., Server]) -> None:
    server = serve(hang)
    with no_open_sockets():
        async with HttpTransport() as transport:
            task = asyncio.create_task(transport.asend(ask(server.url)))
            while not server.requests:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.gone.wait, PATIENCE)
        del task


@pytest.mark.parametrize("script", [hang, drip])
async def test_cancelling_closes_a_tls_connection_without_shutdown(
    serve: Callable[..., Server], certificates: Certificates, script: Script
) -> None:
    server = serve(script, certificates.server)
    async with HttpTransport(ca=certificates.ca) as transport:
        task = asyncio.create_task(transport.asend(ask(server.url)))
        while not server.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.is_left, 0)


async def test_timeout_of_the_caller_closes_the_connection_and_is_raised_unchanged(
    serve: Callable[..., Server],
) -> None:
    server = serve(hang)
    async with HttpTransport() as transport:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.1):
                await transport.asend(ask(server.url))
        assert not isinstance(caught.value, LMError)
        assert await asyncio.to_thread(server.gone.wait, PATIENCE)


@pytest.mark.parametrize("run", [run_and_shut_down, run_and_close])
def test_ending_loop_cancels_its_requests(serve: Callable[..., Server], run: Callable[[Any], None]) -> None:
    server = serve(hang)

    async def leave(transport: HttpTransport) -> None:
        begun.append(asyncio.ensure_future(transport.asend(ask(server.url))))
        while not server.requests:
            await asyncio.sleep(0.001)

    begun: list[asyncio.Future[HttpReply]] = []
    with HttpTransport() as transport:
        run(leave(transport))
        begun[0].get_loop().set_exception_handler(
            lambda loop, context: None
        )  # asyncio has its own view of the second way
        begun.clear()
        gc.collect()
        assert server.gone.wait(PATIENCE)
        assert server.is_left(0)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals arrive in the main thread"
)
def test_interrupt_ends_a_blocking_call_at_once(serve: Callable[..., Server]) -> None:
    def interrupt(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return hang(server, connection, head, body)

    server = serve(interrupt)
    with HttpTransport() as transport, pytest.raises(KeyboardInterrupt):
        transport.send(ask(server.url))
    assert server.gone.wait(PATIENCE)


# aiohttp is imported beforehand: it takes so long that asyncio's debug mode would write a line about it.
FORKED = """
import asyncio, os, sys
import sigwire.lm.http.async_client
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
transport, request = HttpTransport(), HttpRequest(sys.argv[1])
transport.send(request)
asyncio.run(transport.asend(request))
child = os.fork()
status = transport.send(request).status
if child == 0:
    if os.fork() == 0:
        os._exit(transport.send(request).status != 200 or asyncio.run(transport.asend(request)).status != 200)
    os._exit(status != 200 or os.wait()[1])
sys.exit(os.wait()[1] or transport.send(request).status != 200)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_child_opens_its_own_connections(serve: Callable[..., Server]) -> None:
    server = serve()
    done = subprocess.run([sys.executable, "-X", "dev", "-c", FORKED, server.url], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (server.accepted, len(server.requests)) == (5, 7)


EXITS = """
import asyncio, sys, threading
import sigwire.lm.http.async_client
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
transport = HttpTransport()
transport.send(HttpRequest(sys.argv[1]))
asyncio.run(transport.asend(HttpRequest(sys.argv[1])))
threading.Thread(target=transport.send, args=(HttpRequest(sys.argv[2]),), daemon=True).start()
"""


def test_interpreter_exits_without_warnings(serve: Callable[..., Server]) -> None:
    server, silent = serve(), serve(hang)
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", EXITS, server.url, silent.url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert server.is_left(0)
    assert silent.is_left(0)


# --- slow and broken servers ---------------------------------------------------------------------------

BROKEN: dict[str, tuple[Script, str]] = {
    "closes without a reply": (says(), "closed the connection without a reply"),
    "resets": (reset, "connection reset by peer"),
    "cut in the head": (says(b"HTTP/1.1 200 OK\r\ncontent-le"), "in the middle of the reply's head"),
    "cut in the body": (says(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc"), "in the middle of the reply's body"),
    "cut in a chunk": (says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc"), "in the middle of the"),
    "cut before the last chunk": (says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"), "in the middle"),
    "speaks something else": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "not an HTTP/1.1 reply"),
    "speaks HTTP/2": (says(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80"), "not an HTTP/1.1 reply"),
    "never ends its head": (says(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 40_000), "not an HTTP/1.1 reply"),
    "two lengths": (says(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"), "is no number|not an HTTP"),
    "chunks without size": (says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nhello\r\n"), "body|not an HTTP"),
    "unasked coding": (says(reply(b"x", "content-encoding: br")), "content-encoding is 'br'"),
    "damaged gzip": (says(reply(b"not gzip", "content-encoding: gzip")), "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_reply_is_a_transport_error_with_the_address(
    serve: Callable[..., Server], call: Call, fault: str
) -> None:
    script, message = BROKEN[fault]
    server = serve(script)
    with no_open_sockets(), HttpTransport() as transport:
        with pytest.raises(LMTransportError, match=message) as caught:
            call(transport, ask(f"{server.url}?key={SECRET}"))
        assert caught.value.retryable
        assert server.url in str(caught.value)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert len(server.requests) == 1
        assert server.is_left(0)
        del caught


GARBLED: dict[str, bytes] = {
    "garbage at once": b"zz\r\n{}",
    "words after a chunk": b"3\r\nabc\r\nInternal Server Error",
    "second head": b"3\r\nabc\r\nHTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
    "huge chunk": b"ffffffffffffffffff\r\n{}",
    "chunk without its end": b"2\r\n{}XX0\r\n\r\n",
}


@pytest.mark.parametrize("fault", GARBLED)
def test_garbled_body_is_an_error_at_once_when_the_server_keeps_the_connection_open(
    serve: Callable[..., Server], call: Call, fault: str
) -> None:
    server = serve(says(head("transfer-encoding: chunked") + GARBLED[fault], stay=True))
    start = time.monotonic()
    with no_open_sockets(), HttpTransport(timeout=4 * PATIENCE) as transport:
        with pytest.raises(LMTransportError, match="invalid framing of the reply's body") as caught:
            call(transport, ask(server.url))
        assert server.is_left(0)
        del caught
    assert time.monotonic() - start < PATIENCE


def head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode()


AMBIGUOUS = [
    b"HTTP/2 200 OK\r\n\r\n",
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    head("no colon"),
    head("content-length: -1"),
    head("content-length: +1") + b"a",
    head("content-length: 0x1") + b"a",
    head("content-length: ²") + b"ab",
    head("content-length: 1, 2") + b"ab",
    head("content-length: " + "9" * 19) + b"a",
    head("transfer-encoding: gzip, chunked") + b"0\r\n\r\n",
    head("transfer-encoding: identity") + b"ab",
    head("transfer-encoding: chunked") + b"-1\r\n",
    head("transfer-encoding: chunked") + b"1\r\nab\r\n0\r\n\r\n",
    head("transfer-encoding: chunked") + b"1\na\n0\n\n",
]


@pytest.mark.parametrize("wire", AMBIGUOUS)
def test_ambiguous_framing_is_refused(serve: Callable[..., Server], call: Call, wire: bytes) -> None:
    server = serve(says(wire))
    with HttpTransport() as transport:
        with pytest.raises(LMTransportError):
            call(transport, ask(server.url))
        assert server.is_left(0)


def test_connection_with_unsolicited_bytes_is_not_reused(serve: Callable[..., Server], call: Call) -> None:
    server = serve(says(reply(b"ok") + reply(b"for somebody else"), stay=True))
    with HttpTransport() as transport:
        for _ in range(2):
            assert call(transport, ask(server.url)).body == b"ok"
    assert server.accepted == 2


def test_connection_is_not_reused_after_a_reply_with_two_framings(serve: Callable[..., Server]) -> None:
    twice = head("transfer-encoding: chunked", "content-length: 3") + b"1\r\na\r\n0\r\n\r\n"
    server = serve(says(twice, stay=True))
    with HttpTransport() as transport:
        assert transport.send(ask(server.url)).body == b"a"
        assert server.is_left(0)


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_too_long_reply_is_refused_and_not_retryable(serve: Callable[..., Server], call: Call, coding: str) -> None:
    body = gzip.compress(bytes(5_000)) if coding == "gzip" else bytes(5_000)
    server = serve(says(reply(body, f"content-encoding: {coding}"), stay=True))
    with no_open_sockets():
        with HttpTransport(max_reply=4_999) as transport:
            with pytest.raises(LMTransportError, match=r"longer than 4,999 bytes\..* raise max_reply") as caught:
                call(transport, ask(server.url))
            assert not caught.value.retryable
            assert server.is_left(0)
            del caught
        with HttpTransport(max_reply=5_000) as transport:
            assert call(transport, ask(server.url)).body == bytes(5_000)


def test_too_long_reply_is_refused_before_it_ends(serve: Callable[..., Server], call: Call) -> None:
    begins = head("content-length: 1000000") + bytes(5_000)  # and nothing more ever comes
    server = serve(says(begins, stay=True))
    with no_open_sockets(), HttpTransport(max_reply=4_999, timeout=20) as transport:
        with pytest.raises(LMTransportError, match="longer than 4,999 bytes"):
            call(transport, ask(server.url))
        assert server.is_left(0)


def test_refused_connection_error_names_the_problem(call: Call) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with no_open_sockets(), HttpTransport() as transport:
        with pytest.raises(
            LMTransportError, match=r"connecting\): connection refused\. Check that the server is"
        ) as caught:
            call(transport, ask(f"http://localhost:{port}/api/chat?key={SECRET}"))
        assert f"http://localhost:{port}/api/chat" in str(caught.value)
        assert isinstance(caught.value.__cause__, OSError)
        assert SECRET not in str(caught.value)
        del caught


def unknown(*args: Any, **kwargs: Any) -> Any:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_unknown_host_error_names_the_problem(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with HttpTransport() as transport, pytest.raises(LMTransportError, match="name is unknown"):
        call(transport, ask("http://nowhere.invalid/"))


@pytest.mark.parametrize("script", [hang, drip, drip_to_the_end])
def test_slow_server_fails_at_the_deadline(serve: Callable[..., Server], call: Call, script: Script) -> None:
    server = serve(script)
    with no_open_sockets(), HttpTransport(timeout=0.15) as transport:
        with pytest.raises(LMTimeoutError, match=r"did not answer within 0\.15 s") as caught:
            call(transport, ask(f"{server.url}?key={SECRET}"))
        assert server.url in str(caught.value)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert server.is_left(0)
        del caught


def test_request_timeout_overrides_the_transport(serve: Callable[..., Server], call: Call) -> None:
    with HttpTransport() as transport, pytest.raises(LMTimeoutError, match=r"0\.1 s"):
        call(transport, ask(serve(hang).url, timeout=0.1))
    with HttpTransport(timeout=0.0001) as transport:
        assert call(transport, ask(serve().url, timeout=PATIENCE)).status == 200


async def test_concurrent_requests_keep_their_own_deadlines(serve: Callable[..., Server]) -> None:
    server = serve(hang)
    failed: list[str] = []

    async def fail(transport: HttpTransport, timeout: float) -> None:
        with pytest.raises(LMTimeoutError) as caught:
            await transport.asend(ask(server.url, timeout=timeout))
        failed.append(str(caught.value).partition(" s ")[0].rpartition("within ")[2])

    async with HttpTransport() as transport, asyncio.TaskGroup() as group:
        for timeout in (0.25, 0.1, 0.2, 0.15):
            group.create_task(fail(transport, timeout))
        for longer in (None, PATIENCE):
            got = await transport.asend(ask(serve().url, timeout=longer))
            assert got.status == 200
    assert failed == ["0.1", "0.15", "0.2", "0.25"]


def test_connect_timeout_includes_tls(call: Call) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent, no_open_sockets():
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        with (
            HttpTransport(connect_timeout=0.1) as transport,
            pytest.raises(LMTimeoutError, match=r"No connection to https:\S+ within 0\.1 s"),
        ):
            call(transport, ask(url))


@pytest.mark.parametrize(
    "wrong", [{"max_reply": 0}, {"timeout": 0}, {"connect_timeout": -1}, {"timeout": float("nan")}]
)
def test_invalid_limits_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        HttpTransport(**wrong)  # type: ignore[arg-type]


def test_reply_before_the_request_is_fully_read_is_returned(serve: Callable[..., Server], call: Call) -> None:
    too_long = reply(b"too long", "connection: close", status="413 Too long")
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def answer_early() -> None:
            connection, _ = listening.accept()
            connection.recv(1000)
            connection.sendall(too_long)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):  # else the rest of the request would reset the connection, answer and all
                pass
            connection.close()

        threading.Thread(target=answer_early, daemon=True).start()
        with HttpTransport() as transport:
            got = call(transport, ask(f"http://127.0.0.1:{listening.getsockname()[1]}/", b"x" * 5_000_000))
    assert (got.status, got.body) == (413, b"too long")


async def test_sending_stops_when_the_reply_is_complete() -> None:
    body, come, answered, over = b"x" * 30_000_000, 0, threading.Event(), threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def answer_early() -> None:
            nonlocal come
            connection, _ = listening.accept()
            connection.sendall(reply(b"enough"))
            answered.wait(PATIENCE)
            with closing(connection), suppress(OSError):
                while data := connection.recv(65536):
                    come += len(data)
            over.set()

        threading.Thread(target=answer_early, daemon=True).start()
        async with HttpTransport() as transport:
            got = await transport.asend(ask(f"http://127.0.0.1:{listening.getsockname()[1]}/", body))
            answered.set()
            assert got.body == b"enough"
            assert await asyncio.to_thread(over.wait, PATIENCE)
    assert come < len(body)


def test_provisional_replies_are_skipped(serve: Callable[..., Server], call: Call) -> None:
    server = serve(says(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n", reply(b"done")))
    with HttpTransport() as transport:
        assert call(transport, ask(server.url)).body == b"done"


# --- redirects -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_refused_and_the_key_is_not_sent(serve: Callable[..., Server], call: Call, status: int) -> None:
    elsewhere = serve()
    location = f"location: {elsewhere.url}?key={SECRET}"
    server = serve(says(reply(b"", location, status=f"{status} Moved"), stay=True))
    with HttpTransport() as transport, pytest.raises(LMTransportError, match="redirects to") as caught:
        call(transport, ask(server.url))
    assert elsewhere.url in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert (caught.value.retryable, caught.value.status) == (False, status)
    assert elsewhere.accepted == 0
    assert server.is_left(0)


# --- TLS -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Certificates:
    """An untrusted authority, as a file, and its certificates."""

    ca: Path
    client: Path
    server: ssl.SSLContext
    demanding: ssl.SSLContext  # wants a client certificate
    other_host: ssl.SSLContext


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    import trustme

    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    own, demanding, other = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(3))
    for context in (own, demanding):
        authority.issue_cert("127.0.0.1", "localhost", "model.test").configure_cert(context)
    authority.issue_cert("elsewhere.example.org").configure_cert(other)
    authority.configure_trust(demanding)
    demanding.verify_mode = ssl.CERT_REQUIRED
    return Certificates(folder / "ca.pem", folder / "client.pem", own, demanding, other)


def test_private_authority_is_trusted_when_given(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with no_open_sockets(), HttpTransport(ca=certificates.ca) as transport:
        for size in (2, 1_000_000):
            assert call(transport, ask(server.url, b"x" * size)).status == 200
    assert [len(body) for _, body in server.requests] == [2, 1_000_000]
    assert server.is_left(0)


def test_certificate_of_an_unknown_authority_is_refused_and_not_retryable(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with (
        HttpTransport() as transport,
        pytest.raises(LMTransportError, match=r"not trusted .*REQUESTS_CA_BUNDLE.* LM\(\.\.\., transport=") as caught,
    ):
        call(transport, ask(server.url))
    assert not caught.value.retryable
    assert server.requests == []
    assert server.is_left(0)
    advice = str(caught.value).partition("transport=")[2].removesuffix(").")
    with eval(advice.replace("authority.pem", str(certificates.ca)), {"sigwire": sigwire}) as transport:
        assert call(transport, ask(server.url)).status == 200


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_authorities_of_the_environment_are_trusted(
    serve: Callable[..., Server], call: Call, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    server = serve(tls=certificates.server)
    monkeypatch.setenv(name, str(certificates.ca))
    with HttpTransport() as transport:
        assert call(transport, ask(server.url)).status == 200
    if name != "SSL_CERT_FILE":  # OpenSSL reads it itself
        with HttpTransport(trust_env=False) as transport, pytest.raises(LMTransportError, match="not trusted"):
            call(transport, ask(server.url))


def test_bundle_of_the_environment_replaces_the_system_authorities(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURL_CA_BUNDLE", "/does/not/exist.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.ca))
    assert len(tls_context(None, None).get_ca_certs()) == 1
    assert len(tls_context(certificates.ca, None).get_ca_certs()) == 1


def test_unreadable_bundle_of_the_environment_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/does/not/exist.pem")
    with pytest.raises(ConfigurationError, match="REQUESTS_CA_BUNDLE"):
        tls_context(None, None)


def test_certificate_for_another_host_is_refused(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.other_host)
    with HttpTransport(ca=certificates.ca) as transport, pytest.raises(LMTransportError, match="not valid for '127"):
        call(transport, ask(server.url))
    assert server.requests == []


def test_client_certificate_is_sent_when_requested(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.demanding)
    with HttpTransport(ca=certificates.ca, certificate=certificates.client) as transport:
        assert call(transport, ask(server.url)).status == 200
    with HttpTransport(ca=certificates.ca) as transport, pytest.raises(LMTransportError):
        call(transport, ask(server.url))
    assert len(server.requests) == 1


def test_given_tls_context_is_used_unchanged(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with HttpTransport(tls=ssl.create_default_context(cafile=certificates.ca)) as transport:
        assert call(transport, ask(server.url)).status == 200


@pytest.mark.parametrize("wrong", [{"ca": "/no/such/file.pem"}, {"certificate": ("/no/such.pem", "/no/such.key")}])
def test_unreadable_certificates_are_a_configuration_error(call: Call, wrong: dict[str, Any]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening, no_open_sockets():
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        with HttpTransport(**wrong) as transport, pytest.raises(ConfigurationError, match="cannot be loaded"):
            call(transport, ask(url))


def test_tls_context_beside_ca_is_refused(certificates: Certificates) -> None:
    with pytest.raises(ConfigurationError, match="tls="):
        HttpTransport(tls=ssl.create_default_context(), ca=certificates.ca)


def test_truncated_reply_over_tls_is_an_error(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), certificates.server)
    with (
        HttpTransport(ca=certificates.ca) as transport,
        pytest.raises(LMTransportError, match="in the middle of the reply"),
    ):
        call(transport, ask(server.url))


def test_server_without_tls_is_an_error(call: Call) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def greet_in_plain_text() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(65536)

        threading.Thread(target=greet_in_plain_text, daemon=True).start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        with HttpTransport() as transport, pytest.raises(LMTransportError, match="TLS failed"):
            call(transport, ask(url))


# --- proxies -------------------------------------------------------------------------------------------


def forward(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    """An HTTP proxy for plain requests that answers as the model."""
    connection.sendall(reply(b"by the proxy"))
    return True


def tunnel_to(target: Server) -> Script:
    """CONNECT: whatever name was asked for, the bytes go to the target."""

    def script(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        pump(connection, target)
        return False

    return script


def pump(connection: socket.socket, target: Server) -> None:
    with socket.create_connection(("127.0.0.1", target.port)) as onward:
        back = threading.Thread(target=copy, args=(onward, connection), daemon=True)
        back.start()
        copy(connection, onward)
        back.join(PATIENCE)


def copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class SocksServer(Server):
    """SOCKS5. ``asked`` are the addresses that were asked for; all of them lead to the target."""

    def __init__(self, target: Server, password: bytes = b"", status: int = 0) -> None:
        self.target, self.password, self.status = target, password, status
        self.asked: list[bytes] = []
        super().__init__()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._greet(connection):
                self.asked.append(connection.recv(300))
                connection.sendall(bytes([5, self.status, 0, 1, 127, 0, 0, 1, 0, 80]))
                if not self.status:
                    pump(connection, self.target)
        finally:
            connection.close()
            self._count(-1)

    def _greet(self, connection: socket.socket) -> bool:
        methods = connection.recv(10)[2:]
        if not self.password:
            connection.sendall(b"\x05\x00")
            return True
        if 2 not in methods:
            connection.sendall(b"\x05\xff")
            return False
        connection.sendall(b"\x05\x02")
        known = connection.recv(100) == b"\x01\x02me" + bytes([len(self.password)]) + self.password
        connection.sendall(b"\x01\x00" if known else b"\x01\x01")
        return known


def test_http_proxy_receives_plain_requests(serve: Callable[..., Server], call: Call) -> None:
    proxy = serve(forward)
    with HttpTransport(proxy=f"http://me:{SECRET}@127.0.0.1:{proxy.port}") as transport:
        assert call(transport, HttpRequest("http://model.test/v1?a=b")).body == b"by the proxy"
        assert SECRET not in repr(transport)
    lines = proxy.requests[0][0].split("\r\n")
    assert lines[:2] == ["POST http://model.test/v1?a=b HTTP/1.1", "host: model.test"]
    assert "proxy-authorization: Basic bWU6c2stY2FuYXJ5LTVReg==" in lines


def test_http_proxy_tunnels_tls_and_sees_no_key(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    target = serve(tls=certificates.server)
    proxy = serve(tunnel_to(target))
    with HttpTransport(proxy=f"me:pw@127.0.0.1:{proxy.port}", ca=certificates.ca) as transport:
        for _ in range(2):
            assert call(transport, ask("https://model.test/v1")).status == 200
    for head, _ in proxy.requests:
        first, *headers = head.split("\r\n")
        assert first == "CONNECT model.test:443 HTTP/1.1"
        assert "proxy-authorization: basic bwu6chc=" in [header.lower() for header in headers]
        assert SECRET not in head
    assert all("proxy-authorization" not in head and SECRET in head for head, _ in target.requests)
    assert proxy.is_left(0)
    assert target.is_left(0)


def test_proxy_over_tls_is_supported(serve: Callable[..., Server], call: Call, certificates: Certificates) -> None:
    target = serve(tls=certificates.server)
    proxy = serve(tunnel_to(target), certificates.server)

    def through(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        inner = TlsInTls(connection, certificates.server)
        inner.answer(reply(b"twice wrapped"))
        return False

    proxy.script = through
    with HttpTransport(proxy=f"https://localhost:{proxy.port}", ca=certificates.ca) as transport:
        assert call(transport, ask("https://model.test/v1")).body == b"twice wrapped"
        proxy.script = forward
        assert call(transport, ask("http://model.test/v1")).body == b"by the proxy"


class TlsInTls:
    """A server's TLS inside a connection that is TLS already; the standard library's sockets cannot do that."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        self.connection, self.incoming, self.outgoing = connection, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def answer(self, data: bytes) -> None:
        self.wait(self.tls.do_handshake)
        assert self.wait(self.tls.read).startswith(b"POST /v1 ")
        self.tls.write(data)
        self.flush()

    def wait(self, step: Callable[[], Any]) -> Any:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.flush()
                self.incoming.write(self.connection.recv(65536))

    def flush(self) -> None:
        self.connection.sendall(self.outgoing.read())


@pytest.mark.parametrize("url", ["https://model.test/", "http://model.test/"])
@pytest.mark.parametrize(("login", "problem"), [(f"me:{SECRET}@", "refuses its login"), ("", "needs a login")])
def test_proxy_that_wants_a_login_is_named_without_its_password(
    serve: Callable[..., Server], call: Call, url: str, login: str, problem: str
) -> None:
    proxy = serve(says(reply(b"", status="407 Proxy Authentication Required")))
    with no_open_sockets(), HttpTransport(proxy=f"http://{login}127.0.0.1:{proxy.port}") as transport:
        with pytest.raises(LMTransportError, match=rf"{problem}.*http://user:password@host:port") as caught:
            call(transport, ask(url))
        assert f"the proxy http://127.0.0.1:{proxy.port} answered with status 407" in str(caught.value)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert (caught.value.status, caught.value.retryable) == (407, False)
        del caught


def test_unknown_proxy_that_wants_a_login_is_an_error(serve: Callable[..., Server], call: Call) -> None:
    server = serve(says(reply(b"", status="407 Proxy Authentication Required")))
    with (
        HttpTransport() as transport,
        pytest.raises(LMTransportError, match="a proxy on the way answered with status 407"),
    ):
        call(transport, ask(server.url))


@pytest.mark.parametrize(("status", "is_retryable"), [("403 Forbidden", False), ("503 Busy", True)])
def test_refused_tunnel_names_the_proxy(
    serve: Callable[..., Server], call: Call, status: str, is_retryable: bool
) -> None:
    proxy = serve(says(reply(b"", status=status)))
    with HttpTransport(proxy=f"http://127.0.0.1:{proxy.port}") as transport:
        with pytest.raises(LMTransportError, match=f"127.0.0.1:{proxy.port} answered with status") as caught:
            call(transport, ask("https://model.test/"))
        assert caught.value.retryable == is_retryable


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
@pytest.mark.parametrize("url", ["https://model.test/", "http://model.test/"])
def test_dead_proxy_is_named(call: Call, scheme: str, url: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as unused:
        port = unused.getsockname()[1]
    with (
        HttpTransport(proxy=f"{scheme}://me:{SECRET}@127.0.0.1:{port}") as transport,
        pytest.raises(LMTransportError, match=f"the proxy {scheme}://127.0.0.1:{port}") as caught,
    ):
        call(transport, ask(url))
    assert "Check that the server is running" not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_unknown_name_of_a_proxy_names_the_proxy(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with (
        HttpTransport(proxy="http://proxy.test:3128") as transport,
        pytest.raises(LMTransportError, match=r"the proxy http://proxy\.test:3128 failed: the host name is unknown"),
    ):
        call(transport, ask("https://model.test/"))


def test_silent_proxy_is_named_when_connecting_times_out(serve: Callable[..., Server], call: Call) -> None:
    proxy = serve(hang)
    with (
        HttpTransport(proxy=f"http://127.0.0.1:{proxy.port}", connect_timeout=0.1) as transport,
        pytest.raises(LMTimeoutError, match=f"through the proxy http://127.0.0.1:{proxy.port} within 0.1 s"),
    ):
        call(transport, ask("https://model.test/"))


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("password", ["", SECRET])
def test_socks_proxy_resolves_the_name_and_carries_the_request(
    serve: Callable[..., Server], call: Call, scheme: str, password: str
) -> None:
    target = serve()
    proxy = SocksServer(target, password.encode())
    user = f"me:{password}@" if password else ""
    with (
        closing(proxy),
        no_open_sockets(),
        HttpTransport(proxy=f"{scheme}://{user}127.0.0.1:{proxy.port}") as transport,
    ):
        assert call(transport, ask("http://model.test:8080/v1")).status == 200
        assert call(transport, ask("http://10.1.2.3/v1")).status == 200
        assert call(transport, ask("http://[fd00::1]/v1")).status == 200
        assert proxy.asked == [
            b"\x05\x01\x00\x03\x0amodel.test" + (8080).to_bytes(2, "big"),
            b"\x05\x01\x00\x01\x0a\x01\x02\x03\x00\x50",
            b"\x05\x01\x00\x04\xfd" + bytes(14) + b"\x01\x00\x50",
        ]
        assert [head.split("\r\n")[:2] for head, _ in target.requests] == [
            ["POST /v1 HTTP/1.1", "host: model.test:8080"],
            ["POST /v1 HTTP/1.1", "host: 10.1.2.3"],
            ["POST /v1 HTTP/1.1", "host: [fd00::1]"],
        ]


def test_tls_works_through_a_socks_proxy(serve: Callable[..., Server], call: Call, certificates: Certificates) -> None:
    target = serve(tls=certificates.server)
    proxy = SocksServer(target)
    with closing(proxy), HttpTransport(proxy=f"socks5://127.0.0.1:{proxy.port}", ca=certificates.ca) as transport:
        assert call(transport, ask("https://model.test/v1")).status == 200


@pytest.mark.parametrize(
    ("password", "status", "user", "message"),
    [
        (b"", 5, "", "Connection refused by destination host"),
        (b"right", 0, "", "Write http://user:password@host:port"),
        (b"right", 0, f"me:{SECRET}@", "Write http://user:password@host:port"),
    ],
)
def test_refusing_socks_proxy_is_named_without_its_password(
    serve: Callable[..., Server], call: Call, password: bytes, status: int, user: str, message: str
) -> None:
    proxy = SocksServer(serve(), password, status)
    with closing(proxy), no_open_sockets(), HttpTransport(proxy=f"socks5://{user}127.0.0.1:{proxy.port}") as transport:
        with pytest.raises(LMTransportError, match=message) as caught:
            call(transport, ask("http://model.test/"))
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert proxy.is_left(0)
        del caught


def test_socks_proxy_without_the_extra_names_the_package_to_install(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp_socks", None)
    with HttpTransport(proxy=f"socks5://me:{SECRET}@127.0.0.1") as transport:
        with pytest.raises(ConfigurationError, match=r'pip install "sigwire\[socks\]"') as caught:
            call(transport, ask("http://model.test/"))
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "url", ["socks4://host:1", "ftp://host:1", "http://", "http://host:port", f"x://me:{SECRET}@h:1"]
)
def test_invalid_proxy_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="socks5h") as caught:
        HttpTransport(proxy=url)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_environment_names_the_proxy(
    serve: Callable[..., Server], call: Call, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    proxy = serve(forward)
    monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    with HttpTransport() as transport:
        assert call(transport, ask("http://model.test/")).body == b"by the proxy"


def test_trust_env_false_ignores_the_environment(
    serve: Callable[..., Server], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = serve(forward)
    monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with HttpTransport(trust_env=False) as transport, pytest.raises(LMTransportError, match="is unknown"):
        call(transport, ask("http://model.test/"))
    assert proxy.accepted == 0


def test_loopback_is_reached_without_the_proxy_of_the_environment(
    serve: Callable[..., Server], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, proxy = serve(), serve(forward)
    monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{proxy.port}")
    with HttpTransport() as transport:
        for host in ("127.0.0.1", "localhost"):
            assert call(transport, ask(server.url.replace("127.0.0.1", host))).body == b'{"ok":true}'
    with HttpTransport(proxy=f"http://127.0.0.1:{proxy.port}") as transport:
        assert call(transport, ask(server.url)).body == b"by the proxy"


@pytest.mark.parametrize(
    ("exceptions", "url", "direct"),
    [
        ("*", "http://model.test/", True),
        ("model.test", "http://model.test/", True),
        ("other.test, model.test", "http://model.test:8080/", True),
        (".test", "http://model.test/", True),
        ("*.test", "http://model.test/", True),
        ("MODEL.test", "http://Model.Test/", True),
        ("model.test:80", "http://model.test/", True),
        ("model.test:81", "http://model.test/", False),
        ("odel.test", "http://model.test/", False),
        ("10.0.0.0/8", "http://10.1.2.3/", True),
        ("10.1.2.3", "http://10.1.2.3/", True),
        ("11.0.0.0/8", "http://10.1.2.3/", False),
        ("fd00::/8", "http://[fd00::1]/", True),
        ("", "http://model.test/", False),
    ],
)
def test_no_proxy_entries_exclude_hosts(
    monkeypatch: pytest.MonkeyPatch, exceptions: str, url: str, direct: bool
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", exceptions)
    assert (proxy_from_env(parse_url(url)) is None) == direct


def test_cgi_program_ignores_upper_case_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    assert proxy_from_env(parse_url("http://model.test/"))
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    assert proxy_from_env(parse_url("http://model.test/")) is None


# --- streams -------------------------------------------------------------------------------------------


def step_by_step(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    """Send a chunk; send the next one when the client has received it."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n")
    for number in range(5):
        connection.sendall(b"7\r\ndata: %d\r\n" % number)
        assert server.go_on.wait(PATIENCE)
        server.go_on.clear()
    connection.sendall(b"0\r\n\r\n")
    return True


def test_chunks_are_yielded_as_they_arrive(serve: Callable[..., Server]) -> None:
    server = serve(step_by_step)
    with HttpTransport() as transport:
        for _ in range(2):
            with transport.stream(ask(server.url)) as stream:
                assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
                pieces = []
                for piece in stream:
                    pieces.append(piece)
                    server.go_on.set()
            assert pieces == [b"data: %d" % number for number in range(5)]
    assert server.accepted == 1


async def test_chunks_are_yielded_as_they_arrive_async(serve: Callable[..., Server]) -> None:
    server = serve(step_by_step)
    async with HttpTransport() as transport:
        for _ in range(2):
            async with transport.astream(ask(server.url)) as stream:
                assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
                pieces = []
                async for piece in stream:
                    pieces.append(piece)
                    server.go_on.set()
            assert pieces == [b"data: %d" % number for number in range(5)]
    assert server.accepted == 1


@pytest.mark.parametrize("how", ["blocking", "awaited"])
@pytest.mark.parametrize("fault", ["cut off", "reset", "garbled"])
async def test_slow_reader_gets_what_arrived_before_the_error(
    serve: Callable[..., Server], how: str, fault: str
) -> None:
    def script(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        assert server.go_on.wait(PATIENCE)
        connection.sendall(b"1\r\nb\r\n2\r\ncd\r\n" + (b"Internal Server Error" if fault == "garbled" else b""))
        return reset(server, connection, head, body) if fault == "reset" else False

    async def arrived() -> None:
        server.go_on.set()
        assert await asyncio.to_thread(server.is_left, 0)
        await asyncio.sleep(0.02)  # the loop reads what came

    async def read(transport: HttpTransport, request: HttpRequest) -> None:
        if how == "blocking":
            with transport.stream(request) as stream:
                for piece in stream:
                    pieces.append(piece)
                    await arrived()
        async with transport.astream(request) as awaited_stream:
            async for piece in awaited_stream:
                pieces.append(piece)
                await arrived()

    server, pieces = serve(script), list[bytes]()
    async with HttpTransport() as transport:
        with pytest.raises(LMTransportError):
            await read(transport, ask(server.url))
    assert b"".join(pieces) == b"abcd"


async def test_slow_reader_gets_a_reply_that_arrived_before_the_deadline(serve: Callable[..., Server]) -> None:
    body = bytes(range(256)) * 400
    async with HttpTransport(timeout=0.1) as transport, transport.astream(ask(serve(says(reply(body))).url)) as stream:
        await asyncio.sleep(0.15)
        assert b"".join([piece async for piece in stream]) == body


async def test_unread_body_is_not_received_without_bound(serve: Callable[..., Server]) -> None:
    sent = 0

    def flood(server: Server, connection: socket.socket, _: str, body: bytes) -> bool:
        nonlocal sent
        connection.sendall(head("content-length: 50000000"))
        for _ in range(50):
            connection.sendall(bytes(1_000_000))
            sent += 1
        return True

    server = serve(flood)
    async with HttpTransport() as transport:
        for _ in range(2):
            async with transport.astream(ask(server.url)) as stream:
                await asyncio.sleep(0.1)
                assert sent < 25
                assert sum([len(piece) async for piece in stream]) == 50_000_000
            sent = 0
    assert server.accepted == 1


def test_closing_a_stream_early_closes_the_connection(serve: Callable[..., Server]) -> None:
    server = serve(drip)
    with no_open_sockets(), HttpTransport() as transport:
        with transport.stream(ask(server.url)) as stream:
            assert next(iter(stream))
        assert server.is_left(0)
        with pytest.raises(ZeroDivisionError), transport.stream(ask(server.url)) as stream:
            raise ZeroDivisionError
        assert server.is_left(0)
        with pytest.raises(OSError, match="mine"), transport.stream(ask(server.url)) as stream:
            raise OSError("mine")  # not the transport's business
        del stream


@pytest.mark.parametrize(
    "script", [drip, says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")], ids=["left", "cut off"]
)
def test_reading_a_closed_reply_is_an_error_each_time(serve: Callable[..., Server], script: Script) -> None:
    with no_open_sockets(), HttpTransport() as transport:
        with transport.stream(ask(serve(script).url)) as stream:
            assert next(iter(stream))
            if script is not drip:
                with pytest.raises(LMTransportError, match="in the middle"):
                    next(iter(stream))
        for _ in range(2):
            with pytest.raises(LMTransportError, match="closed before it was fully read"):
                next(iter(stream))
        with transport.stream(ask(serve().url)) as stream:
            pass
        assert b"".join(stream) == b'{"ok":true}'  # it was here already, and nothing is waited for


@pytest.mark.parametrize(
    "script", [drip, says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")], ids=["left", "cut off"]
)
async def test_reading_a_closed_reply_is_an_error_each_time_async(serve: Callable[..., Server], script: Script) -> None:
    async with HttpTransport() as transport:
        async with transport.astream(ask(serve(script).url)) as stream:
            assert await anext(aiter(stream))
            if script is not drip:
                with pytest.raises(LMTransportError, match="in the middle"):
                    await anext(aiter(stream))
        for _ in range(2):
            with pytest.raises(LMTransportError, match="closed before it was fully read"):
                await anext(aiter(stream))


async def test_closing_a_stream_early_closes_the_connection_async(serve: Callable[..., Server]) -> None:
    server = serve(drip)

    async def read(transport: HttpTransport) -> None:
        async with transport.astream(ask(server.url)) as stream:
            async for _ in stream:
                begun.set()

    begun = asyncio.Event()
    async with HttpTransport() as transport:
        task = asyncio.create_task(read(transport))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.is_left, 0)
        async with transport.astream(ask(server.url)) as stream:
            async for _ in stream:
                break
        assert await asyncio.to_thread(server.is_left, 0)


def begin_and_hang(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello")
    return hang(server, connection, head, body)


@dataclass
class Fetch:
    """The effect of reading a stream to its end, blocking."""

    transport: HttpTransport
    url: str

    def run(self) -> bytes:
        with self.transport.stream(ask(self.url)) as reply:
            return b"".join(reply)

    async def arun(self) -> bytes:
        return await to_thread(self.run)


def fetched(effect: Fetch) -> Steps[bytes]:
    return (yield effect)


def says_hello() -> Steps[bytes]:
    yield Emit("hello")
    return b""


@pytest.mark.parametrize("script", [hang, begin_and_hang], ids=["before the head", "in the body"])
@pytest.mark.parametrize("proxied", [False, True])
def test_cancelling_steps_wakes_their_waiting_threads(
    serve: Callable[..., Server], script: Script, proxied: bool
) -> None:
    server = serve(script)
    with no_open_sockets(), HttpTransport(proxy=f"http://127.0.0.1:{server.port}" if proxied else None) as transport:

        def program() -> Steps[Any]:
            url = "http://model.test/v1" if proxied else server.url
            return (yield Gather([fetched(Fetch(transport, url)), says_hello()]))

        events = stream(program())
        assert next(events) == "hello"
        assert server.has_heard(1)
        events.close()
        assert server.is_left(0)


@contextmanager
def a_full_house() -> Iterator[str]:
    """The address of a server that takes no connection: its queue is full."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as server:
        waiting = [socket.socket() for _ in range(4)]
        for guest in waiting:
            guest.setblocking(False)
            guest.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        for guest in waiting:
            guest.close()


@contextmanager
def a_silent_house() -> Iterator[str]:
    """The address of a server that accepts connections and sends nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}/"


@pytest.fixture(params=[a_full_house, a_silent_house], ids=["connecting", "shaking hands"])
def deaf(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param() as url:
        yield url


def test_cancelling_steps_does_not_wait_for_a_connecting_socket(deaf: str) -> None:
    with no_open_sockets(), HttpTransport(connect_timeout=30) as transport:

        def program() -> Steps[Any]:
            return (yield Gather([fetched(Fetch(transport, deaf)), says_hello()]))

        events = stream(program())
        assert next(events) == "hello"
        wait_until(lambda: client_sockets() > 0)
        before = time.monotonic()
        events.close()
        assert client_sockets() == 0
        assert time.monotonic() - before < PATIENCE


async def test_cancelling_a_task_does_not_wait_for_a_connecting_socket(deaf: str) -> None:
    async with HttpTransport(connect_timeout=30) as transport:
        task = asyncio.ensure_future(arun(fetched(Fetch(transport, deaf))))
        await asyncio.to_thread(wait_until, lambda: client_sockets() > 0)
        before = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client_sockets() == 0
        assert time.monotonic() - before < PATIENCE


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 4 * PATIENCE  # it may look through every object of a long run
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


@pytest.mark.parametrize("proxied", [False, True])
async def test_cancelling_a_task_wakes_its_waiting_threads(serve: Callable[..., Server], proxied: bool) -> None:
    server = serve(begin_and_hang)
    async with HttpTransport(proxy=f"http://127.0.0.1:{server.port}" if proxied else None) as transport:
        url = "http://model.test/v1" if proxied else server.url
        task = asyncio.ensure_future(arun(fetched(Fetch(transport, url))))
        assert await asyncio.to_thread(server.has_heard, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.is_left, 0)


# --- what is loaded ------------------------------------------------------------------------------------

LIGHT = """
import sys
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
with HttpTransport() as transport:
    transport.send(HttpRequest(sys.argv[1]))
print(sorted({"aiohttp", "asyncio", "yarl", "python_socks"} & sys.modules.keys()))
"""


def test_blocking_call_does_not_import_aiohttp(serve: Callable[..., Server]) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT, serve().url], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
