"""The transport against slow, broken and hostile servers, and against redirects."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress

import pytest

from sigwire.errors import ConfigurationError, LMTimeoutError, LMTransportError
from sigwire.lm.http.transport import HttpTransport
from tests.lm.http.server import (
    SECRET,
    Call,
    Script,
    Server,
    ask,
    drip,
    drip_to_the_end,
    hang,
    head,
    no_open_sockets,
    reply,
    reset,
    says,
    unknown,
)
from tests.patience import PATIENCE

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
        started = time.monotonic()
        with pytest.raises(LMTimeoutError) as caught:
            await transport.asend(ask(server.url, timeout=timeout))
        assert time.monotonic() - started >= timeout
        failed.append(str(caught.value).partition(" s ")[0].rpartition("within ")[2])

    async with HttpTransport() as transport:
        waiting = asyncio.create_task(transport.asend(ask(server.url, timeout=10 * PATIENCE)))
        async with asyncio.TaskGroup() as group:
            for timeout in (0.25, 0.1, 0.2, 0.15):
                group.create_task(fail(transport, timeout))
            for longer in (None, PATIENCE):
                got = await transport.asend(ask(serve().url, timeout=longer))
                assert got.status == 200
        assert not waiting.done()  # each request ended at its own deadline, and this one is later
        waiting.cancel()
        await asyncio.wait([waiting])
    assert sorted(failed) == ["0.1", "0.15", "0.2", "0.25"]  # a loop that is late meets several at once, in any order


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
