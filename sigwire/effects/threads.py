"""``run_in_threads``: workers that take items from one queue, in as many threads as are of use.

Quick items (answers from a cache, of a server on this machine) keep one thread busy. More threads would only contend for the
interpreter's lock, at twice the CPU time. So threads beyond the first start while items are slow, within some milliseconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sized

from sigwire.effects.waiting import join

__all__ = ["ThreadGrowth", "run_in_threads"]

_MOMENT = 0.002  # seconds: of slow items, thirty-two threads have started after five
_QUICK_MOMENT = 0.02  # seconds, once items were quick: a short stall, as of a busy machine, starts no threads
_LONGEST_MOMENT = 0.1  # seconds
_PATIENCE = 1 / 8  # of the time that items were quick
_QUICK = 500  # items a second
_NOT_SLOW = 100  # items a second: quick ones on a busy machine
_GAIN = 1.5  # of the rate, by twice the threads: less, and they wait for the CPU
_MOST_DELAYED = 3  # moments in a row
_MOST_HELD = 8  # moments without a gain


def run_in_threads(work: Callable[[], object], limit: int, waiting: Sized) -> None:
    """Run a worker in at most ``limit`` daemon threads until all are done. ``waiting``: the items that no worker has taken.

    An interrupt of the caller does not wait for the threads.

    >>> items, taken = [1, 2, 3], []
    >>> run_in_threads(lambda: [taken.append(items.pop()) for _ in items[:]], 2, items)
    >>> taken
    [3, 2, 1]
    """
    threads: list[threading.Thread] = []
    wanted, growth = limit if len(waiting) <= limit else 1, ThreadGrowth()
    while True:
        for _ in range(new := wanted - len(threads)):
            threads.append(threading.Thread(target=work, name="sigwire-gather", daemon=True))
            threads[-1].start()
        if wanted == limit or not waiting:
            break
        before, began, used = len(waiting), time.monotonic(), time.process_time()
        join(threads[0], growth.moment)
        seconds, used, left = time.monotonic() - began, time.process_time() - used, len(waiting)
        if left and growth.is_needed(before - left - new, seconds, used):
            wanted = min(2 * wanted, limit)
    for thread in threads:
        join(thread)


class ThreadGrowth:
    """Whether twice the threads would help, by the moments since the first thread. ``moment``: the seconds to the next look.

    They do not help if quick items keep the CPU busy. If other processes have the CPU, the last doubling did not raise the
    rate, new threads have no item yet, or the look itself came late.

    >>> growth = ThreadGrowth()
    >>> growth.is_needed(items=4, seconds=0.002, cpu_seconds=0.0018), growth.is_needed(items=0, seconds=0.02, cpu_seconds=0)
    (False, True)
    """

    def __init__(self) -> None:
        self._quick_seconds = self._rate = 0.0  # the rate before the last doubling
        self._delayed = self._held = 0

    @property
    def moment(self) -> float:
        least = _QUICK_MOMENT if self._quick_seconds else _MOMENT
        return min(max(least, _PATIENCE * self._quick_seconds), _LONGEST_MOMENT)

    def is_needed(self, items: int, seconds: float, cpu_seconds: float) -> bool:
        """Return True if more threads should start after a moment. ``items``: taken in it, without the first of new threads."""
        rate = max(items, 0) / seconds if seconds else 0.0
        if rate >= _QUICK and cpu_seconds >= seconds / 2:
            self._quick_seconds += seconds
            self._delayed = self._held = 0
            return False
        was_quick = bool(self._quick_seconds) and rate >= _NOT_SLOW
        if was_quick and rate < _GAIN * self._rate and self._held < _MOST_HELD:
            self._held += 1
            return False
        if (items < 0 or (not rate and seconds > 2 * self.moment)) and self._delayed < _MOST_DELAYED:
            self._delayed += 1
            return False
        self._rate = rate
        self._delayed = self._held = 0
        return True
