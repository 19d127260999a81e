"""The deliveries of the fake provider: late, slow, silent, broken and reset replies, whole and streamed."""

from __future__ import annotations

import http.client
import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from sigwire.errors import ConfigurationError
from sigwire.testing import Delivered, FakeProvider, Raw, Streamed
from tests.testing.test_fake_provider import HI, KEY, post, text

STREAM = {**HI, "stream": True}


@contextmanager
def connected(provider: FakeProvider, timeout: float = 60) -> Iterator[http.client.HTTPConnection]:
    connection = connection_to(provider, timeout)
    try:
        yield connection
    finally:
        connection.close()


def connection_to(provider: FakeProvider, timeout: float = 60) -> http.client.HTTPConnection:
    place = urlsplit(provider.url("openai"))
    return http.client.HTTPConnection(str(place.hostname), place.port, timeout=timeout)


def ask(connection: http.client.HTTPConnection, body: object = HI) -> http.client.HTTPResponse:
    connection.request("POST", "/v1/chat/completions", json.dumps(body), KEY)
    return connection.getresponse()


def test_late_answer_comes_after_its_seconds() -> None:
    with FakeProvider([Delivered("late", after=0.1)]) as provider:
        began = time.monotonic()
        answer = text(post(provider.url("openai"))[1])
        assert (answer, time.monotonic() - began > 0.099) == ("late", True)


def test_silence_lasts_until_the_client_disconnects() -> None:
    with FakeProvider([Delivered(after=math.inf), "next"]) as provider:
        connection = connection_to(provider, timeout=0.1)
        with pytest.raises(TimeoutError):
            ask(connection)
        assert provider.traffic["secret"].now == 1
        connection.close()
        while provider.traffic["secret"].now:
            time.sleep(0.001)
        assert text(post(provider.url("openai"))[1]) == "next"


def test_closing_the_provider_ends_a_silence() -> None:
    before = threading.active_count()
    with FakeProvider([Delivered(after=math.inf)]) as provider:
        connection = connection_to(provider, timeout=0.1)
        with pytest.raises(TimeoutError):
            ask(connection)
        began = time.monotonic()
    assert time.monotonic() - began < 60
    assert threading.active_count() == before
    connection.close()


@pytest.mark.parametrize("body", [HI, STREAM], ids=["whole", "streamed"])
def test_slow_answer_comes_byte_by_byte(body: object) -> None:
    slow = Delivered(Raw("{}") if body is HI else Streamed("Hi"), every=0.001)
    with FakeProvider([slow]) as provider, connected(provider) as connection:
        began = time.monotonic()
        data = ask(connection, body).read()
        assert time.monotonic() - began >= 0.001 * (len(data) - 1)
    assert data == b"{}" if body is HI else data.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("body", [HI, STREAM], ids=["whole", "streamed"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_connection_breaks_before_the_first_byte(body: object, reset: bool) -> None:
    lost = Delivered("lost", stop="head", reset=reset)
    # RemoteDisconnected is a ConnectionResetError: the exact type separates a closed connection from a reset one.
    with FakeProvider([lost]) as provider, connected(provider) as connection, pytest.raises(ConnectionError) as caught:
        ask(connection, body)
    assert caught.type is (ConnectionResetError if reset else http.client.RemoteDisconnected)


@pytest.mark.parametrize("body", [HI, STREAM], ids=["whole", "streamed"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_connection_breaks_in_the_middle_of_the_body(body: object, reset: bool) -> None:
    broken = Delivered("Hello there, you", stop="body", reset=reset)
    with FakeProvider([broken]) as provider, connected(provider) as connection:
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            ask(connection, body).read()
        progress = provider.requests[0].stream
        assert progress is None or (progress.wait(), progress.sent) == ("broken off", progress.total // 2)


def test_stream_that_stops_after_its_events_is_reset() -> None:
    broken = Delivered(Streamed("Hello there", stop_after=1), reset=True)
    with FakeProvider([broken]) as provider, connected(provider) as connection:
        response = ask(connection, STREAM)
        assert response.readline().startswith(b"data: ")
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            response.read()


def test_connection_closes_after_the_reply_without_an_announcement() -> None:
    with FakeProvider([Delivered("one", close=True)]) as provider, connected(provider) as connection:
        response = ask(connection)
        assert response.getheader("connection") is None
        response.read()
        assert isinstance(connection.sock, socket.socket)
        assert connection.sock.recv(1) == b""


def test_delivery_of_the_provider_applies_to_answers_without_one() -> None:
    with FakeProvider([Delivered("now"), "never"], delivered=Delivered(after=math.inf)) as provider:
        assert text(post(provider.url("openai"))[1]) == "now"
        with connected(provider, timeout=0.1) as connection, pytest.raises(TimeoutError):
            ask(connection)


@pytest.mark.parametrize(("option", "value"), [("after", -1), ("every", -0.1), ("stop", "tail")])
def test_delivery_refuses_values_that_do_not_exist(option: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}="):
        Delivered("x", **{option: value})  # type: ignore[arg-type]
