"""Replies as the blocking client reads them, without a network: the same however they are cut, and none with two ends."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from, sets

from sigwire.lm.http.errors import ProtocolError
from sigwire.lm.http.sync_client import _READ, _WRITE, _ReplyParser, _SocketWaiter, _SyncConnection


class Pieces:
    """A connection that receives these chunks and is then closed by the server."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    def receive(self) -> bytes:
        return next(self._pieces, b"")


def read(pieces: Iterable[bytes], method: str = "POST") -> tuple[int, dict[str, str], bytes, bool]:
    reply = _ReplyParser(cast(Any, Pieces(pieces)), method)
    reply.read_head()
    body = b"".join(iter(reply.read_chunk, b""))
    return reply.status, reply.headers, body, reply.is_reusable


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = {"transfer-encoding": "chunked"}
WHOLE: dict[str, tuple[bytes, tuple[int, dict[str, str], bytes, bool]]] = {
    "a length": (OK + b"Content-Length: 3\r\n\r\nabc", (200, {"content-length": "3"}, b"abc", True)),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n2\r\nbc\r\n0\r\n\r\n", (200, CHUNKED, b"abc", True)),
    "words after it": (OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: 1\r\n\r\n", (200, CHUNKED, b"a", True)),
    "no body at all": (b"HTTP/1.1 204 No\r\nx: \t1 \r\n\r\n", (204, {"x": "1"}, b"", True)),
    "as long as it is open": (OK + b"x: \r\n\r\nabc", (200, {"x": ""}, b"abc", False)),
    "an old server": (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", (200, {"content-length": "1"}, b"a", False)),
    "farewell": (OK + b"connection: close\r\n\r\n", (200, {"connection": "close"}, b"", False)),
    "hints before it": (
        b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + OK + b"content-length: 0\r\n\r\n",
        (200, {"content-length": "0"}, b"", True),
    ),
    "in Latin 1": (OK + b"x: \xe9\r\ncontent-length: 0\r\n\r\n", (200, {"x": "é", "content-length": "0"}, b"", True)),
    "framed twice": (
        OK + b"transfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n1\r\na\r\n0\r\n\r\n",
        (200, {**CHUNKED, "content-length": "9"}, b"a", False),
    ),
}  # fmt: skip


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(place % len(data) for place in places), len(data)]
    return [piece for start, end in pairwise(edges) if (piece := data[start:end])]


@given(sampled_from(sorted(WHOLE)), sets(integers(0, 200), max_size=6))
def test_reply_parser_returns_the_same_reply_for_any_cut(name: str, places: set[int]) -> None:
    data, expected = WHOLE[name]
    assert read(cut(data, places)) == expected


@pytest.mark.parametrize("name", WHOLE)
def test_reply_parser_refuses_a_truncated_reply_unless_the_close_ends_its_body(name: str) -> None:
    data, (status, headers, _, _) = WHOLE[name]
    for end in range(len(data)):
        if name == "as long as it is open" and data[:end].endswith((b"\r\n\r\n", b"a", b"ab")):
            assert read([data[:end]])[:2] == (status, headers)
        else:
            with pytest.raises(ProtocolError, match="the server closed the connection"):
                read([data[:end]])


@given(sampled_from(sorted(name for name in WHOLE if WHOLE[name][1][3])), sets(integers(0, 200), max_size=6))
def test_reply_parser_does_not_reuse_a_connection_with_bytes_after_the_reply(name: str, places: set[int]) -> None:
    data, (status, headers, body, _) = WHOLE[name]
    *before, last = cut(data, places)
    assert read([*before, last + OK]) == (status, headers, body, False)


def test_reply_parser_expects_no_body_for_head() -> None:
    head = OK + b"content-length: 3\r\n\r\n"
    assert read([head], "HEAD") == (200, {"content-length": "3"}, b"", True)
    assert read([head + b"abc"], "HEAD") == (200, {"content-length": "3"}, b"", False)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (OK + b"transfer-encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", "framing of the reply's body"),
        (OK + b"transfer-encoding: chunked\r\n\r\n1_0\r\naaaaaaaaaa\r\n0\r\n\r\n", "framing of the reply's body"),
        (OK + b"x: a\r\n b\r\n\r\n", "not an HTTP/1.1 reply"),
        (OK + b"x : a\r\n\r\n", "not an HTTP/1.1 reply"),
        (OK + b"x: a\0b\r\n\r\n", "not an HTTP/1.1 reply"),
        (OK.replace(b"\r", b"") + b"content-length: 0\n\n", "not an HTTP/1.1 reply"),
        (OK + b"content-length: 1\r\ncontent-length: 1\r\n\r\na", "not an HTTP/1.1 reply"),
        (OK + b"x: " + b"y" * 200_000, "its head is too long"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: h2\r\nconnection: upgrade\r\n\r\n", "switched to another protocol"),
    ],
)
def test_reply_parser_refuses_malformed_replies(data: bytes, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        read([data])


# --- waiting -------------------------------------------------------------------------------------------


@pytest.fixture
def ends() -> Iterator[tuple[_SyncConnection, socket.socket]]:
    """A line, and the other end of it."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield _SyncConnection(ours, ("http", "host", 80), 0), theirs


def test_sync_connection_waits_until_the_deadline_of_the_current_request(
    ends: tuple[_SyncConnection, socket.socket],
) -> None:
    line, theirs = ends
    for seconds in (0.05, 0.01):
        line.deadline = time.monotonic() + seconds
        with pytest.raises(TimeoutError):
            line.receive()
        assert time.monotonic() >= line.deadline
    theirs.send(b"late")
    with pytest.raises(TimeoutError):  # what is there does not count any more
        line.receive()
    line.deadline = None
    assert line.receive() == b"late"
    threading.Timer(0.05, theirs.send, [b"in time"]).start()
    assert line.receive() == b"in time"


def test_sync_connection_sends_a_whole_body_over_partial_writes(ends: tuple[_SyncConnection, socket.socket]) -> None:
    line, theirs = ends
    body = bytes(range(256)) * 20_000
    with ThreadPoolExecutor(1) as other:
        sent = other.submit(line.send, b"head ", body)
        taken = bytearray()
        while len(taken) < len(body) + 5:
            taken += theirs.recv(100_000)
        assert sent.result(10) is None
    assert bytes(taken) == b"head " + body


def test_sync_connection_times_out_when_the_server_does_not_read(ends: tuple[_SyncConnection, socket.socket]) -> None:
    line, _ = ends
    line.deadline = time.monotonic() + 0.05
    with pytest.raises(TimeoutError):
        line.send(b"head ", bytes(20_000_000))


def test_sync_connection_is_quiet_until_data_or_close(
    ends: tuple[_SyncConnection, socket.socket],
) -> None:
    line, theirs = ends
    assert line.is_quiet()
    theirs.send(b"unasked")
    assert not line.is_quiet()
    assert line.receive() == b"unasked"
    assert line.is_quiet()
    theirs.close()
    assert not line.is_quiet()
    assert line.receive() == b""


def test_socket_waiter_falls_back_to_select_without_poll(
    ends: tuple[_SyncConnection, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    line, theirs = ends
    monkeypatch.delattr("sigwire.lm.http.sync_client.select.poll")
    ready = _SocketWaiter(line.socket)
    assert (ready.wait(_READ, 0.0), ready.wait(_WRITE, None)) == (False, True)
    theirs.send(b"news")
    assert ready.wait(_READ, None)
