"""The blocking client's waits on a socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sigwire.lm.http.exchange import READ, WRITE, SocketWaiter
from sigwire.lm.http.sync_client import ConnectionPool, _SyncConnection

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
        assert sent.result(60) is None
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
    monkeypatch.delattr("sigwire.lm.http.exchange.select.poll")
    ready = SocketWaiter(line.socket.fileno())
    assert (ready.wait(READ, 0.0), ready.wait(WRITE, None)) == (False, True)
    theirs.send(b"news")
    assert ready.wait(READ, None)


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_no_wait_of_the_system_is_long(seconds: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal between two instructions does not end the wait that follows: Python sees it when the wait ends."""
    waits: list[float] = []

    class Poll:
        def register(self, descriptor: int, wanted: int) -> None: ...

        def poll(self, milliseconds: float) -> list[int]:
            waits.append(milliseconds)
            return [1] if len(waits) == 3 else []

    monkeypatch.setattr("sigwire.lm.http.exchange.select.poll", Poll)
    assert SocketWaiter(0).wait(READ, seconds)
    assert waits == [1000, 1000, 1000]


# --- the pool ------------------------------------------------------------------------------------------


def test_connection_is_released_while_its_thread_holds_the_lock_of_the_pool(
    ends: tuple[_SyncConnection, socket.socket],
) -> None:
    """As when the garbage collector closes a stream inside a method of the pool."""
    pool = ConnectionPool(60.0, lambda: pytest.fail("no TLS here"))

    def collect() -> None:
        with pool._lock:
            pool.release(ends[0])

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert pool._acquire(("http", "host", 80)) is ends[0]
