"""Requests through HTTP, HTTPS and SOCKS proxies, given or named by the environment."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from sigwire.errors import ConfigurationError, LMTimeoutError, LMTransportError
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.http.urls import parse_url, proxy_from_env
from tests.lm.http.server import (
    SECRET,
    Call,
    Certificates,
    Script,
    Server,
    ask,
    hang,
    no_open_sockets,
    reply,
    says,
    unknown,
)
from tests.patience import PATIENCE


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
