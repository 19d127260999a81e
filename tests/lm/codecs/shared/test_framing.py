"""Streams of bytes: at any cut and framing the events are equal, or a documented error is raised."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonValue
from sigwire.errors import LMError, LMTransportError, LMUnexpectedError
from sigwire.lm.codecs.shared.framing import LineDecoder, ServerSentEvent, SSEDecoder, make_frame_decoder
from sigwire.lm.codecs.shared.interface import Framing


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def read(parts: Iterable[bytes], framing: Framing = "sse", limit: int = 1_000_000) -> list[JsonValue]:
    splitter = make_frame_decoder(framing, limit)
    found = [value for part in parts for value in splitter.feed(part)]
    return [*found, *splitter.close()]


def read_events(parts: Iterable[bytes]) -> list[ServerSentEvent]:
    stream = SSEDecoder()
    return [event for part in parts for event in stream.feed(part)] + stream.close()


# --- server-sent events ------------------------------------------------------------------------------------------

STREAMS: dict[str, tuple[bytes, list[ServerSentEvent]]] = {
    "nothing": (b"", []),
    "one event": (b"data: a\n\n", [ServerSentEvent("a")]),
    "no space": (b"data:a\n\n", [ServerSentEvent("a")]),
    "one space is the field's, the second is data": (b"data:  a\n\n", [ServerSentEvent(" a")]),
    "carriage returns": (b"data: a\r\rdata: b\r\r", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "both": (b"data: a\r\n\r\ndata: b\r\n\r\n", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "mixed": (b"data: a\r\n\ndata: b\n\r\n", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "lines of data are joined": (b"data: a\ndata:\ndata: b\n\n", [ServerSentEvent("a\n\nb")]),
    "a name": (b"event: error\ndata: a\n\ndata: b\n\n", [ServerSentEvent("a", "error"), ServerSentEvent("b")]),
    "comments": (b": ping\n\n:\ndata: a\n: still here\n\n", [ServerSentEvent("a")]),
    "other fields": (b"id: 1\nretry: 10\nwhat: ever\nfield\ndata: a\n\n", [ServerSentEvent("a")]),
    "no data": (b"event: ping\n\ndata: a\n\n", [ServerSentEvent("a")]),
    "blank lines": (b"\n\n\ndata: a\n\n\n\n", [ServerSentEvent("a")]),
    "no blank line at the end": (b"data: a\n\ndata: b\n", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "no line end at the end": (b"data: a\n\ndata: b", [ServerSentEvent("a"), ServerSentEvent("b")]),
    "line ends of Unicode are text": (
        "data: a\u2028b\u0085c\x0bd\n\n".encode(),
        [ServerSentEvent("a\u2028b\u0085c\x0bd")],
    ),
}


@pytest.mark.parametrize(("data", "events"), STREAMS.values(), ids=STREAMS)
def test_every_cut_of_a_stream_gives_its_events(data: bytes, events: list[ServerSentEvent]) -> None:
    assert read_events([data]) == events
    assert read_events([data[at : at + 1] for at in range(len(data))]) == events
    for cut in range(len(data) + 1):
        assert read_events([data[:cut], b"", data[cut:]]) == events


LINE = st.sampled_from(
    [b"data: a", b"data:", b"data:  b", b": c", b"event: d", b"", b"", b"x", b"data: \xc3\xa9", b"data: \xff"]
)


@given(st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r", b"\r\n"]))), st.lists(st.integers(0, 200)))
def test_any_cut_of_any_stream_gives_the_same_events(lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    data = b"".join(line + end for line, end in lines)
    assert read_events(pieces(data, cuts)) == read_events([data])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), min_size=1))
def test_written_event_is_decoded_unchanged(texts: list[str]) -> None:
    data = "".join(f"data: {text}\n" for text in texts).encode() + b"\n"
    assert read_events([data]) == [ServerSentEvent("\n".join(texts))]


# --- JSON --------------------------------------------------------------------------------------------------------

A: JsonValue = {"a": "é\u2028"}
B: JsonValue = {"b": [1, None]}
ONE, TWO = (json.dumps(value, ensure_ascii=False).encode() for value in (A, B))
PRETTY = json.dumps(A, ensure_ascii=False, indent=2).encode()

REPLIES: dict[str, tuple[bytes, list[JsonValue]]] = {
    "events": (b"data: " + ONE + b"\n\ndata: " + TWO + b"\n\n", [A, B]),
    "row 67 an end mark": (b"data: " + ONE + b"\n\ndata: [DONE]\n\n", [A]),
    "an end mark with more to it": (b"data: " + ONE + b"\n\ndata: [DONE] bye\n\n", [A]),
    "a byte order mark": (b"\xef\xbb\xbfdata: " + ONE + b"\n\n", [A]),
    "row 71 comments first": (b": OPENROUTER PROCESSING\n\n: again\n\ndata: " + ONE + b"\n\n", [A]),
    "comments alone": (b": ping\n\n: ping\n\n", []),
    "empty data": (b"data:\n\ndata: " + ONE + b"\n\n", [A]),
    "a name first": (b"event: message_start\ndata: " + ONE + b"\n\n", [A]),
    "an id first": (b"id: 1\ndata: " + ONE + b"\n\n", [A]),
    "a waiting time first": (b"retry: 1\ndata: " + ONE + b"\n\n", [A]),
    "pretty data": (b"".join(b"data: " + line + b"\n" for line in PRETTY.split(b"\n")) + b"\n", [A]),
    "no blank lines": (b"data: " + ONE + b"\ndata: " + TWO + b"\ndata: [DONE]\n", [A, B]),
    "an error in the name": (b'event: error\ndata: {"message": "no"}\n\n', [{"error": {"message": "no"}}]),
    "an error in both": (b'event: error\ndata: {"error": {"m": 1}}\n\n', [{"error": {"m": 1}}]),
    "an error with a type": (
        b'event: error\ndata: {"type": "error", "code": 1}\n\n',
        [{"type": "error", "code": 1}],
    ),
    "lines": (ONE + b"\n" + TWO + b"\n", [A, B]),
    "lines with CRLF and blanks": (ONE + b"\r\n\r\n \n" + TWO, [A, B]),
    "one object": (ONE, [A]),
    "one object in many lines": (PRETTY, [A]),
    "space and an object": (b"\n \t" + PRETTY + b"\n", [A]),
    "a byte order mark and an object": (b"\xef\xbb\xbf" + ONE, [A]),
    "an array": (b"[" + ONE + b", " + TWO + b"]\n", [A, B]),
    "an array in many lines": (b"[" + PRETTY + b"\n,\r\n" + TWO + b"]", [A, B]),
    "nothing": (b"", []),
    "white space": (b" \r\n\n", []),
}


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
@pytest.mark.parametrize(("data", "values"), REPLIES.values(), ids=REPLIES)
def test_row_69_every_cut_of_a_reply_gives_its_json_however_it_is_framed(
    data: bytes, values: list[JsonValue], framing: Framing
) -> None:
    assert read([data], framing) == values
    assert read([data[at : at + 1] for at in range(len(data))], framing) == values
    for cut in range(len(data) + 1):
        assert read([data[:cut], data[cut:]], framing) == values


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (b"data: " + ONE + b"\n\ndata: [DONE]\n\ndata: " + TWO + b"\n\n", [A]),
        (b"data: " + ONE + b"\ndata: " + ONE + b"\ndata: [DONE]\ndata: " + TWO + b"\n\n", [A, A]),
        (b"data: " + ONE + b"\n\ndata: [DONE]\n\ndata: garbage\n\n", [A]),
    ],
    ids=["an event", "a line of the same event", "garbage"],
)
def test_nothing_behind_the_end_mark_is_read(data: bytes, values: list[JsonValue]) -> None:
    for cut in range(len(data) + 1):
        decoder = make_frame_decoder("sse")
        assert [*decoder.feed(data[:cut]), *decoder.feed(data[cut:]), *decoder.close()] == values
        assert decoder.has_end_mark


def test_decoder_has_no_end_mark_before_it_is_read() -> None:
    for framing in ("sse", "ndjson"):
        decoder = make_frame_decoder(framing)
        assert not decoder.has_end_mark
        assert [*decoder.feed(ONE + b"\n" if framing == "ndjson" else b"data: " + ONE + b"\n\n")] == [A]
        assert not decoder.has_end_mark


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda of: st.lists(of, max_size=3) | st.dictionaries(st.text(), of, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(), JSON, max_size=4), min_size=1, max_size=5)


def events_of(values: list[JsonValue]) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\r\n\r\n" for value in values)


def lines_of(values: list[JsonValue]) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for value in values)


def array_of(values: list[JsonValue]) -> bytes:
    return json.dumps(values, indent=1).encode()


@pytest.mark.parametrize("write", [events_of, lines_of, array_of])
@given(values=OBJECTS, cuts=st.lists(st.integers(0, 400)))
def test_any_cut_of_any_reply_gives_the_same_json(
    write: Callable[[list[JsonValue]], bytes], values: list[JsonValue], cuts: list[int]
) -> None:
    data = write(values)
    assert read(pieces(data, cuts)) == read([data])
    assert len(read([data])) == len(values)


def test_an_event_is_given_with_its_last_byte() -> None:
    splitter = make_frame_decoder("sse")
    assert [*splitter.feed(b"data: " + ONE + b"\n")] == []
    assert [*splitter.feed(b"\n")] == [A]
    assert [*splitter.feed(b"data: " + TWO + b"\r\r")] == [B]
    assert [*splitter.feed(b"\n")] == []
    lines = make_frame_decoder("ndjson")
    assert [*lines.feed(ONE)] == []
    assert [*lines.feed(b"\n")] == [A]


@pytest.mark.parametrize("write", [events_of, lines_of])
def test_events_before_a_corrupt_frame_of_one_chunk_are_yielded(
    write: Callable[[list[JsonValue]], bytes],
) -> None:
    values, splitter = list[JsonValue](), make_frame_decoder("sse")
    with pytest.raises(LMTransportError, match="not JSON"):
        values.extend(splitter.feed(write([A, B]) + b"data: {\n\n"))
    assert values == [A, B]


@pytest.mark.parametrize("page", [b"<html><title>502</title></html>", b"upstream timed out\n", b"\n <p>\xff"])
def test_words_that_are_no_stream_are_one_text(page: bytes) -> None:
    assert read([page[:3], page[3:]]) == [page.strip().decode("utf-8", "replace") + ("\n" if b"timed" in page else "")]
    assert len(str(read([page.strip() * 500])[0])) == 500


@pytest.mark.parametrize("text", [b"<p>one</p>\n\n<p>two</p>\n\n<p>three</p>", b"one\n\n\n\ntwo\n"])
def test_text_of_several_paragraphs_is_given_once(text: bytes) -> None:
    for cut in range(len(text)):
        assert read([text[:cut], text[cut:]]) == [text.decode()]


# --- faults ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "framing"),
    [
        (b'data: {"a"\n\n', "sse"),
        (b'data: {"a": 1}\n\ndata: {"a', "sse"),
        (b"data: NaN\n\n", "sse"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "sse"),
        (b'data: {"a": 1}\ndata: oh\n\n', "sse"),
        (b'{"a": 1}\n{"b"', "ndjson"),
        (b'{"a": 1}\noh\n{"b": 1}\n', "ndjson"),
        (b'{"a": \n', "ndjson"),
        (b"[" * 100_000, "sse"),
        (b"oh\n", "ndjson"),
    ],
)
def test_a_frame_that_is_no_json_is_an_error_that_shows_it_and_is_worth_another_try(
    data: bytes, framing: Framing
) -> None:
    with pytest.raises(LMTransportError, match="not JSON") as caught:
        read([data], framing)
    assert caught.value.retryable
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "data",
    [
        b"data: " + b"x" * 2000,
        b": " + b"x" * 2000,
        (b"data: " + b"x" * 60 + b"\n") * 100,
        b'{"a": "' + b"x" * 2000,
        b"{\n" + b'"a":\n' * 1000,
        b"[" + b"\n" * 2000,
    ],
    ids=["a line", "a comment", "lines of data", "an object", "an object in many lines", "an array"],
)
@pytest.mark.parametrize("step", [1, 7, 5000])
def test_an_event_without_an_end_is_refused_before_it_is_kept(data: bytes, step: int) -> None:
    parts = iter([data[at : at + step] for at in range(0, len(data), step)])
    with pytest.raises(LMUnexpectedError, match="longer than 1,000 bytes"):
        read(parts, limit=1000)
    assert len(data) - len(b"".join(parts)) <= 1200 + step


def test_many_events_are_together_longer_than_one_may_be() -> None:
    data = (b"data: " + ONE + b"\n\n") * 500
    assert read([data], limit=100) == [A] * 500
    assert read([b": ping\n\n" * 500 + data[:-2]], limit=100) == [A] * 500


def test_line_of_many_chunks_is_joined_once() -> None:
    """Each chunk is kept by itself: no chunk copies the chunks before it."""
    lines = LineDecoder()
    parts = [bytes([65 + number % 26]) * 10 for number in range(1000)]
    for part in parts:
        assert lines.feed(part) == []
    kept: list[bytes] = vars(lines)["_partial_line"]
    assert all(one is part for one, part in zip(kept[1:], parts[1:], strict=False))
    assert lines.feed(b"\n") == [b"".join(parts)]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)), st.sampled_from(["sse", "ndjson"]))
def test_any_bytes_yield_json_or_a_documented_error_at_any_cut(data: bytes, cuts: list[int], framing: Framing) -> None:
    def outcome(parts: list[bytes]) -> object:
        try:
            return read(parts, framing, 1000)
        except LMError as error:
            return type(error)

    assert outcome(pieces(data, cuts)) == outcome([data])
