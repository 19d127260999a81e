"""How a stream is sent: packets, keep-alives, endings, what the provider records, and that everything ends with it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.request import Request
from sigwire.testing import Events, FakeProvider, Fault, Gate, Raw, Streamed
from sigwire.testing.framing import JsonArrayFraming, NdjsonFraming, SSEFraming
from sigwire.testing.playback import ClientDisconnected, StreamPlayback

HI: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
KEY = {"Authorization": "Bearer secret"}
EVENTS: list[Any] = [{"a": 1}, {"b": "é"}, {"c": [1, 2]}]
NDJSON = '{"a":1}\n{"b":"é"}\n{"c":[1,2]}\n'.encode()


LINES = NdjsonFraming()


class Taker:
    """An outlet that keeps what it is sent; it leaves after so many packets."""

    def __init__(self, patience: int = 1000) -> None:
        self.packets: list[bytes] = []
        self.patience = patience

    def send(self, data: bytes) -> None:
        self.check()
        self.packets.append(data)

    def check(self) -> None:
        if len(self.packets) >= self.patience:
            raise ClientDisconnected("client left")


def played(how: Streamed, framing: Any = LINES, **rest: Any) -> tuple[list[bytes], StreamPlayback, bool]:
    taker, performance = Taker(), StreamPlayback(EVENTS, framing, how, **rest)
    return taker.packets, performance, performance.play(taker)


@given(packets=st.one_of(st.none(), st.integers(1, 50), st.lists(st.integers(-5, 60))))
def test_packets_never_change_the_body(packets: int | Sequence[int] | None) -> None:
    found, performance, whole = played(Streamed(packets=packets))
    assert b"".join(found) == NDJSON
    assert b"" not in found
    assert (performance.progress.sent, performance.progress.ended, whole) == (3, "complete", True)


@pytest.mark.parametrize(
    ("packets", "lengths"),
    [(None, [8, 11, 12]), (10, [10, 10, 10, 1]), ([3, 9], [3, 6, 22]), ([], [31])],
    ids=str,
)
def test_packets_are_cut_by_the_script(packets: Any, lengths: list[int]) -> None:
    assert [len(packet) for packet in played(Streamed(packets=packets))[0]] == lengths


def test_progress_counts_an_event_before_the_client_reads_the_event() -> None:
    seen: list[int] = []

    class Reader(Taker):
        def send(self, data: bytes) -> None:
            super().send(data)
            seen.append(performance.progress.sent)

    performance = StreamPlayback(EVENTS, LINES, Streamed())
    assert performance.play(Reader(2)) is False
    assert seen == [1, 2]
    assert performance.progress.sent == 2  # the third was not received


def test_buffered_bytes_are_sent_before_a_gate() -> None:
    gate = Gate(3)
    assert played(Streamed(packets=[], gate=gate))[0] == NDJSON.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("framing", "alive", "end"),
    [
        (SSEFraming(done="[DONE]"), b": keep-alive\n\n", b"data: [DONE]\n\n"),
        (SSEFraming(newline="\r\n"), b": keep-alive\r\n\r\n", b""),
        (SSEFraming(alive={"type": "ping"}, named=False), b'data: {"type":"ping"}\n\n', b""),
        (NdjsonFraming(), b"\n", b""),
        (JsonArrayFraming(), b"\n", b"]"),
    ],
    ids=str,
)
def test_keep_alives_are_between_events_and_the_end_marker_is_last(framing: Any, alive: bytes, end: bytes) -> None:
    plain = [framing.frame(event, first=number == 0) for number, event in enumerate(EVENTS)]
    packets, *_ = played(Streamed(ping_every=2, packets=[]), framing)
    assert b"".join(packets) == alive + plain[0] + plain[1] + alive + plain[2] + end


def test_line_ends_of_server_sent_events_follow_the_script() -> None:
    packets, *_ = played(Streamed(newline="\r"), SSEFraming(done="[DONE]"))
    assert b"\n" not in b"".join(packets)
    assert packets[-1] == b"data: [DONE]\r\r"


def test_error_closes_a_json_array_and_sends_no_end_marker_of_an_event_stream() -> None:
    found = [
        b"".join(played(Streamed(stop_after=0), framing, fault={"error": "x"})[0])
        for framing in (JsonArrayFraming(), SSEFraming(named=True, done="[DONE]"))
    ]
    assert found == [b'[{"error":"x"}\n]', b'data: {"error":"x"}\n\n']


@pytest.mark.parametrize(
    ("how", "fault", "body", "ended"),
    [
        (Streamed(stop_after=1), None, b'{"a":1}\n', "broken off"),
        (Streamed(stop_after=1, clean=True), None, b'{"a":1}\n', "complete"),
        (Streamed(stop_after=1), {"error": "x"}, b'{"a":1}\n{"error":"x"}\n', "complete"),
        (Streamed(), {"error": "x"}, b'{"error":"x"}\n', "complete"),
        (Streamed(stop_after=0), None, b"", "broken off"),
    ],
    ids=str,
)
def test_stream_ends_by_the_script(how: Streamed, fault: Any, body: bytes, ended: str) -> None:
    packets, performance, whole = played(how, fault=fault)
    assert b"".join(packets) == body
    assert performance.progress.ended == ended
    assert whole == (ended == "complete")


def test_disconnected_client_ends_the_stream() -> None:
    taker, performance = Taker(2), StreamPlayback(EVENTS, NdjsonFraming(), Streamed())
    assert not performance.play(taker)
    assert (performance.progress.sent, performance.progress.ended) == (2, "client left")
    assert repr(performance.progress) == "Progress(2 of 3 events, client left)"


# --- through the provider ----------------------------------------------------------------------------------------


def connect(provider: FakeProvider, body: Any = HI) -> http.client.HTTPConnection:
    place = urlsplit(provider.url("openai"))
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), KEY)
    return connection


def test_streamed_of_the_provider_applies_to_answers_without_one() -> None:
    def answer(request: Request) -> Any:
        return Streamed("abcd", cut=2) if request.messages[-1].text == "Hi" else "abcd"

    with FakeProvider(answer, streamed=Streamed(cut=3)) as provider:
        for text in ("Hi", "Ho"):
            connection = connect(provider, {**HI, "messages": [{"role": "user", "content": text}]})
            connection.getresponse().read()
            connection.close()
    answers: Any = [sent.answer for sent in provider.requests]
    texts = [[chunk["choices"][0]["delta"].get("content") for chunk in answer] for answer in answers]
    assert texts == [["", "ab", "cd", None], ["", "abc", "d", None]]


def test_connection_is_kept_after_a_stream_and_serves_a_whole_answer() -> None:
    with FakeProvider([Streamed("one", seed=1), Streamed("two", seed=1)]) as provider:
        connection = connect(provider)
        assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
        socket = connection.sock
        connection.request("POST", "/v1/chat/completions", json.dumps({**HI, "stream": False}), KEY)
        assert json.loads(connection.getresponse().read())["choices"][0]["message"]["content"] == "two"
        assert connection.sock is socket
        connection.close()
    assert [sent.stream is None for sent in provider.requests] == [False, True]
    assert provider.requests[0].headers["authorization"] == "***"


def test_events_for_a_whole_answer_and_a_lossy_cut_are_server_errors() -> None:
    scripts = [(Events([{}]), False, "is for a whole answer"), (Streamed("ab", cut=lambda text: []), True, "made []")]
    for answer, stream, message in scripts:
        with FakeProvider([answer]) as provider:
            connection = connect(provider, {**HI, "stream": stream})
            reply = connection.getresponse()
            assert (reply.status, message in reply.read().decode()) == (500, True)
            connection.close()


def test_raw_answer_to_a_stream_is_sent_unchanged_and_a_fault_as_a_status() -> None:
    with FakeProvider([Raw({"choices": None}), Streamed(Fault("rate_limit"))]) as provider:
        for status in (200, 429):
            connection = connect(provider)
            reply = connection.getresponse()
            assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
            reply.read()
            connection.close()


def test_closing_ends_waiting_and_unread_streams_and_all_threads() -> None:
    before = threading.active_count()
    huge = "x" * 20_000_000
    with FakeProvider([Streamed("one", gate=Gate()), Streamed(huge, cut=10_000_000)]) as provider:
        connections = [connect(provider), connect(provider)]
        replies = [connection.getresponse() for connection in connections]
    progress = [sent.stream for sent in provider.requests]
    for reply, connection in zip(replies, connections, strict=True):
        reply.close()
        connection.close()
    assert [one.wait() if one else None for one in progress] == ["server stopped", "server stopped"]
    assert threading.active_count() == before


def test_disconnect_during_a_large_body_is_detected() -> None:
    with FakeProvider([Streamed("x" * 20_000_000, cut=1_000_000)]) as provider:
        connection = connect(provider)
        connection.getresponse().close()
        connection.close()
        progress = provider.requests[0].stream
        assert progress is not None
        assert progress.wait() == "client left"
        assert progress.sent < progress.total
