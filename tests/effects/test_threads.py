"""``run_in_threads``: as many threads as are of use."""

from __future__ import annotations

import threading
from collections import deque

import pytest

from sigwire.effects.threads import ThreadGrowth, run_in_threads

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
    ("items", "seconds", "cpu", "is_needed"),
    [
        pytest.param(2, 0.002, 0.0015, False, id="quick"),
        pytest.param(0, 0.002, 0.0015, True, id="slow"),
        pytest.param(2, 0.002, 0.0005, True, id="waiting"),
        pytest.param(0, 0.005, 0.0, False, id="this thread was late too"),
        pytest.param(-1, 0.002, 0.0, False, id="a new thread had no turn"),
    ],
)
def test_more_threads_start_unless_quick_items_keep_the_cpu_busy(
    items: int, seconds: float, cpu: float, is_needed: bool
) -> None:
    assert ThreadGrowth().is_needed(items, seconds, cpu) is is_needed


def test_late_looks_delay_threads_three_times_in_a_row() -> None:
    growth = ThreadGrowth()
    assert [growth.is_needed(0, 1.0, 0.0) for _ in range(5)] == [False, False, False, True, False]


def test_threads_that_did_not_raise_the_rate_are_not_doubled_at_once() -> None:
    growth = ThreadGrowth()
    assert not growth.is_needed(100, 0.1, 0.09)
    assert growth.is_needed(10, 0.1, 0.01)
    assert [growth.is_needed(items, 0.1, 0.01) for items in (14, 14)] == [False, False]
    assert growth.is_needed(15, 0.1, 0.01)  # half as many again
    assert [growth.is_needed(15, 0.1, 0.01) for _ in range(9)] == [*[False] * 8, True]  # the items may be slower now


@pytest.mark.parametrize(
    ("quick_seconds", "moment"),
    [(0.0, 0.002), (0.08, 0.02), (0.4, 0.05), (60.0, 0.1)],
    ids=["none", "little", "a while", "long"],
)
def test_items_that_were_quick_for_longer_may_stall_for_longer(quick_seconds: float, moment: float) -> None:
    growth = ThreadGrowth()
    if quick_seconds:
        assert not growth.is_needed(100_000, quick_seconds, quick_seconds)
    assert growth.moment == pytest.approx(moment)
