"""The transport and a well-behaved server: one request, one reply, blocking and awaited (the parameter ``call``)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable

import pytest

import sigwire
from sigwire.errors import ConfigurationError
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
from tests.lm.http.server import SECRET, Call, Server, ask, reply, says


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
