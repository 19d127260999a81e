"""``run_in_threads``: as many threads as are of use."""

from __future__ import annotations

import threading
from collections import deque
from types import SimpleNamespace

import pytest

from sigwire.effects import threads
from sigwire.effects.threads import run_in_threads

LIMIT = 6


class Items:
    """A queue of items, and the threads that took one."""

    def __init__(self, number: int) -> None:
        self.waiting = deque(range(number))
        self.takers: list[int] = []

    def take(self) -> bool:
        try:
            self.waiting.popleft()
        except IndexError:
            return False
        self.takers.append(threading.get_ident())
        return True


@pytest.mark.parametrize("number", [LIMIT, 3 * LIMIT])
def test_items_that_wait_for_each_other_get_all_threads(number: int) -> None:
    items, barrier = Items(number), threading.Barrier(LIMIT)

    def work() -> None:
        while items.take():
            barrier.wait(timeout=60)

    run_in_threads(work, LIMIT, items.waiting)
    assert len(items.takers) == number
    assert len({*items.takers}) == LIMIT


@pytest.mark.parametrize(
    ("taken", "used", "is_busy"),
    [(2, 0.0015, True), (0, 0.0015, False), (2, 0.0005, False)],
    ids=["quick", "slow", "waiting"],
)
def test_more_threads_start_unless_quick_items_keep_the_cpu_busy(
    taken: int, used: float, is_busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monotonic, process_time = iter([0.0, 0.002]), iter([0.0, used])
    clocks = SimpleNamespace(monotonic=monotonic.__next__, process_time=process_time.__next__)
    monkeypatch.setattr(threads, "time", clocks)
    worker = threading.Thread(target=int)
    worker.start()
    assert threads._is_busy(worker, Sizes(10, 10 - taken), 0.002) is is_busy


@pytest.mark.parametrize(
    ("quick_for", "moment"), [(0.0, 0.002), (0.08, 0.01), (60.0, 0.1)], ids=["at once", "a while", "long"]
)
def test_items_that_were_quick_for_longer_may_stall_for_longer(
    quick_for: float, moment: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, moments = iter([0.0, quick_for]), list[float]()
    waiting, begun, ended = deque(range(LIMIT + 1)), threading.Event(), threading.Event()

    def is_busy(_thread: object, _waiting: object, seconds: float) -> bool:
        moments.append(seconds)
        waiting.clear()
        ended.set()
        return True

    def work() -> None:
        begun.set()
        ended.wait(timeout=60)

    monkeypatch.setattr(threads, "time", SimpleNamespace(monotonic=clock.__next__))
    monkeypatch.setattr(threads, "_is_busy", is_busy)
    run_in_threads(work, LIMIT, waiting)
    assert begun.is_set()
    assert moments == [pytest.approx(moment)]


class Sizes:
    """The sizes of a queue, one for each look."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = iter(sizes)

    def __len__(self) -> int:
        return next(self._sizes)
