"""Reading replies: however the bytes are cut, the same reply; what is not valid is refused."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Set
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.lm.http1 import ProtocolError, ReplyReader, encode_head

BODIES = st.binary(max_size=300)


def read(wire: bytes, cuts: Set[int] = frozenset(), *, closed: bool = False) -> tuple[ReplyReader, bytes]:
    """Feed the bytes, cut at these places."""
    reader, body = ReplyReader(), b""
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(wire)), len(wire)]
    for start, end in pairwise(edges):
        body += reader.feed(wire[start:end])
    if closed:
        reader.end()
    return reader, body


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def sized(body: bytes, *lines: str) -> bytes:
    return head(f"Content-Length: {len(body)}", *lines) + body


def chunked(pieces: list[bytes], *lines: str, trailer: bytes = b"") -> bytes:
    chunks = b"".join(b"%x;note=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)
    return head("transfer-encoding: chunked", *lines) + chunks + b"0\r\n" + trailer + b"\r\n"


@given(BODIES, st.sets(st.integers(0, 400)))
def test_a_body_of_known_length_is_the_same_however_it_is_cut(body: bytes, cuts: set[int]) -> None:
    reader, got = read(sized(body, "X-A: 1"), cuts)
    assert (got, reader.complete, reader.keep_alive) == (body, True, True)
    assert reader.headers == {"content-length": str(len(body)), "x-a": "1"}


@given(st.lists(st.binary(max_size=50), max_size=8), st.sets(st.integers(0, 600)))
def test_a_chunked_body_is_the_same_however_it_is_cut(pieces: list[bytes], cuts: set[int]) -> None:
    reader, got = read(chunked(pieces, trailer=b"x-sum: 1\r\n"), cuts)
    assert (got, reader.complete, reader.keep_alive) == (b"".join(pieces), True, True)


@given(BODIES, st.sets(st.integers(0, 400)))
def test_a_body_up_to_the_end_of_the_connection_is_the_same_however_it_is_cut(body: bytes, cuts: set[int]) -> None:
    reader, got = read(head() + body, cuts, closed=True)
    assert (got, reader.complete, reader.keep_alive) == (body, True, False)


@given(BODIES, st.sets(st.integers(0, 500)), st.sampled_from(["gzip", "x-gzip", "deflate"]), st.booleans())
def test_a_compressed_body_is_the_same_however_it_is_cut(body: bytes, cuts: set[int], coding: str, whole: bool) -> None:
    packed = zlib.compress(body) if coding == "deflate" else gzip.compress(body)
    wire = sized(packed, f"content-encoding: {coding}") if whole else chunked([packed], f"Content-Encoding: {coding}")
    assert read(wire, cuts)[1] == body


@given(st.one_of(BODIES.map(sized), st.lists(BODIES, max_size=3).map(chunked)), st.data())
def test_a_reply_that_stops_anywhere_before_its_end_is_an_error(wire: bytes, data: st.DataObject) -> None:
    stop = data.draw(st.integers(0, len(wire) - 1))
    with pytest.raises(ProtocolError, match="closed the connection"):
        read(wire[:stop], closed=True)


@given(st.binary(max_size=200))
def test_anything_else_is_refused_or_waited_for(noise: bytes) -> None:
    for wire in (noise, b"HTTP/1.1 200 OK\r\n" + noise, head("transfer-encoding: chunked") + noise):
        try:
            reader, _ = read(wire)
        except ProtocolError:
            continue
        assert reader.complete or reader._step is not None


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_some_statuses_never_have_a_body(status: str) -> None:
    reader, body = read(head("content-length: 10", status=status))
    assert (body, reader.complete, reader.keep_alive) == (b"", True, True)


@pytest.mark.parametrize(
    ("wire", "stays"),
    [
        (sized(b"ok"), True),
        (sized(b"ok", "Connection: close"), False),
        (sized(b"ok").replace(b"1.1", b"1.0"), False),
        (sized(b"ok", "connection: keep-alive").replace(b"1.1", b"1.0"), True),
        (chunked([b"ok"], "content-length: 2"), False),
        (sized(b"ok") + b"HTTP/1.1 200 OK\r\n", False),
    ],
    ids=["plain", "close", "1.0", "1.0 keep-alive", "two framings", "more than was asked for"],
)
def test_a_connection_is_used_again_only_where_the_reply_allows_it(wire: bytes, stays: bool) -> None:
    reader, body = read(wire)
    assert (body, reader.keep_alive) == (b"ok", stays)


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        head("no colon"),
        head("content-length : 2"),
        head(" content-length: 2"),
        head("a: b\n c: d"),
        head("a: b\rc: d"),
        head("a: \0"),
        head("content-length: -1"),
        head("content-length: +1"),
        head("content-length: 0x1"),
        head("content-length: ²"),
        head("content-length: 1, 2"),
        head("content-length: " + "9" * 19),
        head("transfer-encoding: gzip, chunked"),
        head("transfer-encoding: identity"),
        head("transfer-encoding: chunked") + b"-1\r\n",
        head("transfer-encoding: chunked") + b"0x1\r\na\r\n0\r\n\r\n",
        head("transfer-encoding: chunked") + b"1\r\nab\r\n0\r\n\r\n",
        head("transfer-encoding: chunked") + b"1;" + b"x" * 5000,
        head("content-encoding: br", "content-length: 0"),
        sized(gzip.compress(b"a" * 99, mtime=0)[:-4], "content-encoding: gzip"),
    ],
)
def test_what_two_programs_could_read_differently_is_refused(wire: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(wire)


def test_a_head_without_end_is_refused_in_time() -> None:
    reader = ReplyReader()
    reader.feed(b"HTTP/1.1 200 OK\r\n")
    line = b"x-a: " + b"b" * 1000 + b"\r\n"
    for _ in range(100):
        reader.feed(line)
    with pytest.raises(ProtocolError, match="longer"):
        reader.feed(line * 50)


@given(st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=20), max_size=4))
def test_no_header_can_add_a_line(headers: dict[str, str]) -> None:
    try:
        sent = encode_head("POST", "/", headers)
    except ValueError:
        return
    assert sent.count(b"\r\n") == len(headers) + 2
    assert sent.count(b"\n") == sent.count(b"\r") == len(headers) + 2
