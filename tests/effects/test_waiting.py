"""Waits in slices: they end when they should, and an interrupt that the system does not deliver to them is seen."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import CancelledError, Future

import pytest

from sigwire.effects import waiting
from sigwire.effects.inbox import Empty, Inbox
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(waiting, "SLICE_SECONDS", 0.001)


def test_wait_goes_on_after_a_slice() -> None:
    slices: list[float] = []
    assert waiting.wait_for(lambda left: slices.append(left) or len(slices) == 3)
    assert slices == [0.001] * 3


def test_future_is_waited_for_over_several_slices() -> None:
    future: Future[int] = Future()
    threading.Timer(0.01, lambda: future.set_result(3)).start()
    assert waiting.result_of(future) == 3


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("of the call")])
def test_error_of_a_future_is_raised(error: Exception) -> None:
    future: Future[int] = Future()
    future.set_exception(error)
    with pytest.raises(type(error), match=str(error)):
        waiting.result_of(future)


def test_cancelled_future_raises() -> None:
    future: Future[int] = Future()
    future.cancel()
    with pytest.raises(CancelledError):
        waiting.result_of(future, 1)


def test_timed_waits_end() -> None:
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    assert not waiting.join(thread, 0.003)
    with pytest.raises(TimeoutError):
        waiting.result_of(Future[int](), 0.003)
    with pytest.raises(Empty):
        Inbox[int]().get(timeout=0.003)
    with pytest.raises(Empty):
        Inbox[int]().get_nowait()


def test_inbox_waits_for_an_item_over_several_slices() -> None:
    inbox: Inbox[int] = Inbox()
    threading.Timer(0.01, lambda: inbox.put(3)).start()
    assert inbox.get() == 3


def test_acquire_returns_when_another_thread_releases_the_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(0.01, lock.release).start()
    waiting.acquire(lock)
    assert lock.locked()


SCRIPT = """
import asyncio, ctypes, os, signal, sys, threading
from concurrent.futures import Future
from sigwire.effects import waiting
from sigwire.effects.emitting import stream
from sigwire.effects.gather import Gather
from sigwire.effects.inbox import Inbox
from sigwire.effects.loops import block_on
from sigwire.effects.steps import FunctionEffect
from sigwire.effects.threads import run_in_threads

def held():
    yield Gather([one(), one()])

def one():
    yield FunctionEffect(threading.Event().wait, None)

lock, waiting.SLICE_SECONDS = threading.Lock(), 0.05
lock.acquire()
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()
ctypes.CDLL(None).siginterrupt(signal.SIGINT, 0)
for wait in (
    lambda: waiting.join(thread),
    lambda: waiting.result_of(Future()),
    lambda: Inbox().get(),
    lambda: waiting.acquire(lock),
    lambda: waiting.wait_for(threading.Event().wait),
    lambda: run_in_threads(threading.Event().wait, 4, [1, 2]),
    lambda: block_on(asyncio.sleep(60)),
    lambda: next(stream(held())),
):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="siginterrupt is called by ctypes")
def test_interrupt_is_seen_when_the_system_restarts_waits() -> None:
    """signal(7): a handler with ``SA_RESTART``, as that of polars, lets the system go on with an untimed wait."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "interrupted\n" * 8, done.stderr
