"""The code that both clients share: decompression, request heads and reply heads."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Set
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.errors import ConfigurationError
from sigwire.lm.http.compression import BodyDecompressor
from sigwire.lm.http.errors import ProtocolError, TooLongError
from sigwire.lm.http.exchange import encode_head, read_head

BODIES = st.binary(max_size=300)


def unpacked(packed: bytes, coding: str, cuts: Set[int], limit: int | None = None) -> bytes:
    """Feed the body, cut at these places."""
    unpacker = BodyDecompressor(coding, limit)
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(packed)), len(packed)]
    pieces = [packed[start:end] for start, end in pairwise(edges) if start < end]
    return b"".join(map(unpacker.feed, [*pieces, b""]))


@given(BODIES, st.sets(st.integers(0, 400)), st.sampled_from(["gzip", "x-gzip", "Deflate", "identity", ""]))
def test_decompressor_returns_the_body_for_any_coding_and_any_cut(body: bytes, cuts: set[int], coding: str) -> None:
    pack = {"gzip": gzip.compress, "x-gzip": gzip.compress, "Deflate": zlib.compress}.get(coding, bytes)
    assert unpacked(pack(body), coding, cuts) == body


@given(BODIES, st.data())
def test_decompressor_refuses_a_truncated_body(body: bytes, data: st.DataObject) -> None:
    packed = gzip.compress(body, mtime=0)
    stop = data.draw(st.integers(1, len(packed) - 1))
    with pytest.raises(ProtocolError, match="truncated"):
        unpacked(packed[:stop], "gzip", set())


@given(st.integers(1, 300), st.integers(0, 400), st.sets(st.integers(0, 400)), st.sampled_from(["gzip", "deflate", ""]))
def test_decompressor_accepts_a_body_up_to_the_limit_for_any_cut(
    limit: int, size: int, cuts: set[int], coding: str
) -> None:
    body = bytes(number % 251 for number in range(size))
    pack = {"gzip": gzip.compress, "deflate": zlib.compress}.get(coding, bytes)
    if size <= limit:
        assert unpacked(pack(body), coding, cuts, limit) == body
    else:
        with pytest.raises(TooLongError, match=f"longer than {limit} bytes"):
            unpacked(pack(body), coding, cuts, limit)


def test_decompressor_expands_no_byte_beyond_the_limit() -> None:
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    tracemalloc.start()
    with pytest.raises(TooLongError):
        BodyDecompressor("gzip", 1000).feed(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1024 * 1024


def test_decompressor_accepts_an_empty_body() -> None:
    assert unpacked(b"", "gzip", set()) == b""


def test_decompressor_refuses_an_unrequested_coding() -> None:
    with pytest.raises(ProtocolError, match="content-encoding is 'br'"):
        BodyDecompressor("br")


@given(st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=20), max_size=4))
def test_encode_head_refuses_header_injection(headers: dict[str, str]) -> None:
    try:
        encode_head("POST", "/", headers, "http://model.test/")
    except ConfigurationError:
        return
    sent = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")
    assert sent.count(b"\r") == sent.count(b"\n") == len(headers)
    assert b"\0" not in sent


def test_read_head_lowers_names_and_joins_repeated_headers() -> None:
    pairs = [("X-Limit", "1"), ("x-limit", "2"), ("Transfer-Encoding", "Chunked")]
    assert read_head(200, pairs) == {"x-limit": "1, 2", "transfer-encoding": "Chunked"}


@pytest.mark.parametrize(("status", "coding"), [(101, "chunked"), (200, "gzip, chunked"), (200, "identity"), (200, "")])
def test_read_head_refuses_protocol_switch_and_unknown_transfer_encoding(status: int, coding: str) -> None:
    with pytest.raises(ProtocolError):
        read_head(status, [("transfer-encoding", coding)])
