"""Replies as both clients parse them, without a network: the same however they are cut, and none with two ends."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis.strategies import integers, sampled_from, sets

from sigwire.lm.http.errors import ProtocolError
from sigwire.lm.http.reply_parser import ReplyParser


def read(pieces: Iterable[bytes], method: str = "POST") -> tuple[int, dict[str, str], bytes, bool]:
    """Return the reply in these chunks, after which the server closes the connection."""
    reply = ReplyParser(method)
    for piece in (*pieces, b""):
        if not reply.is_whole:
            reply.feed(piece)
    if not reply.has_head and reply.failure is not None:
        raise reply.failure
    body = b"".join(iter(reply.take, b""))  # type: ignore[arg-type]  # the reply ended
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


@pytest.mark.parametrize(
    "rest", [b"", b"Internal Server Error", b"HTTP/1.1 502 Bad Gateway\r\n\r\n", b"fffffffffffffffff\r\n"]
)
def test_reply_parser_returns_the_body_that_arrived_before_a_failure(rest: bytes) -> None:
    reply = ReplyParser("POST")
    reply.feed(OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n" + rest)
    reply.feed(b"")
    assert (reply.has_head, reply.take(), reply.is_whole) == (True, b"abc", False)
    with pytest.raises(ProtocolError):
        reply.take()
