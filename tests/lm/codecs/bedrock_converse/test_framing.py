"""Converse: the binary frames of a stream, wherever they are cut and whatever is damaged. botocore is the referee."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonValue
from sigwire.errors import LMTransportError, LMUnexpectedError
from sigwire.lm.codecs.bedrock_converse.framing import EventStreamDecoder
from sigwire.testing.clouds.event_stream import EventStreamFraming, encode_frame

FRAMING = EventStreamFraming()
DELTA = FRAMING.frame({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "é"}}}, first=True)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
headers = st.dictionaries(names, names, max_size=3)
frames = st.lists(st.tuples(headers, st.dictionaries(names, names | st.integers(), max_size=3)), min_size=1, max_size=4)


def fed(data: bytes, cuts: Iterable[int] = (), limit: int = 10_000) -> list[JsonValue]:
    decoder, at = EventStreamDecoder(limit), sorted({cut % (len(data) + 1) for cut in cuts})
    chunks = [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]
    return [*(event for chunk in chunks for event in decoder.feed(chunk)), *decoder.close()]


@pytest.mark.long
@given(frames, st.lists(st.integers(0, 2000), max_size=6))
def test_frames_are_read_as_botocore_reads_them_wherever_they_are_cut(sent: list[Any], cuts: list[int]) -> None:
    eventstream = pytest.importorskip("botocore.eventstream")
    plain = {":message-type": "event", ":event-type": "e"}
    data = b"".join(encode_frame({**extra, **plain}, json.dumps(payload).encode()) for extra, payload in sent)
    theirs = eventstream.EventStreamBuffer()
    theirs.add_data(data)
    read = [{message.headers[":event-type"]: json.loads(message.payload)} for message in theirs]
    assert fed(data, cuts) == read == [{"e": payload} for _, payload in sent]


@given(st.integers(0, len(DELTA) - 1), st.integers(1, 255), st.lists(st.integers(0, 200), max_size=3))
def test_any_changed_byte_is_a_transport_error(place: int, change: int, cuts: list[int]) -> None:
    damaged = bytearray(DELTA)
    damaged[place] ^= change
    if place == 0:  # no zero: the reply is no event stream, and its text is for the decoder to judge
        assert all(isinstance(event, str) for event in fed(bytes(damaged), cuts))
        return
    with pytest.raises(LMTransportError) as caught:
        fed(bytes(damaged), cuts)
    assert caught.value.retryable


@pytest.mark.parametrize("size", [1, 11, 12, 40, len(DELTA) - 1])
def test_truncated_frame_is_a_transport_error(size: int) -> None:
    with pytest.raises(LMTransportError, match="cut off"):
        fed(DELTA + DELTA[:size])


def test_header_of_every_type_is_skipped_or_read() -> None:
    values = [(0, b""), (1, b""), (2, b"\1"), (3, b"\0\1"), (4, bytes(4)), (5, bytes(8)), (6, b"\0\2ab"), (8, bytes(8)),
              (9, bytes(16))]  # fmt: skip
    head = b"".join(b"\1" + str(kind).encode() + bytes((kind,)) + value for kind, value in values)
    frame = encode_frame({":message-type": "event", ":event-type": "e"}, b"{}")
    texts = frame[12 : 12 + int.from_bytes(frame[4:8], "big")]
    assert fed(_frame(head + texts, b'{"a":1}')) == [{"e": {"a": 1}}]


def _frame(head: bytes, payload: bytes) -> bytes:
    """Return a frame with these bytes as its headers."""
    from struct import pack
    from zlib import crc32

    prelude = pack("!II", len(head) + len(payload) + 16, len(head))
    frame = prelude + pack("!I", crc32(prelude)) + head + payload
    return frame + pack("!I", crc32(frame))


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (_frame(b"\5a", b""), "headers"),
        (_frame(b"\1a\x07\xff\xff", b""), "headers"),
        (_frame(b"", b"{no"), "not JSON"),
        (_frame(b"", b"")[:4] + b"\0\0\xff\0" + _frame(b"", b"")[8:], "checksum"),
    ],
)
def test_frame_of_another_form_is_a_transport_error(frame: bytes, text: str) -> None:
    with pytest.raises(LMTransportError, match=text):
        fed(frame)


def test_frame_over_the_limit_is_refused_before_it_is_kept() -> None:
    with pytest.raises(LMUnexpectedError, match="longer than 50 bytes"):
        fed(DELTA[:12], limit=50)


def test_exceptions_and_errors_are_error_events() -> None:
    raised = FRAMING.frame({"throttlingException": {"message": "slow"}}, first=True)
    unmodeled = encode_frame({":message-type": "error", ":error-code": "c", ":error-message": "m"}, b"")
    assert fed(raised + unmodeled) == [
        {"error": {"code": "throttlingException", "message": "slow"}},
        {"error": {"code": "c", "message": "m"}},
    ]


@pytest.mark.parametrize(
    ("data", "events"),
    [(b'{"message": "no"}\n', [{"message": "no"}]), (b"<html>no</html>", ["<html>no</html>"]), (b"", [])],
)
def test_reply_that_is_no_event_stream_is_read_as_json_or_text(data: bytes, events: list[JsonValue]) -> None:
    assert fed(data) == events
