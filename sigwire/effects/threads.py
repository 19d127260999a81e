"""``run_in_threads``: workers that take items from one queue, in as many threads as are of use.

Quick items (answers from a cache, of a server on this machine) keep one thread busy. More threads would only contend for the
interpreter's lock, at twice the CPU time. So threads beyond the first start while items are slow, within some milliseconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sized

from sigwire.effects.waiting import join

__all__ = ["run_in_threads"]

_MOMENT = 0.002  # seconds: of slow items, thirty-two threads have started after five
_LONGEST_MOMENT = 0.1  # seconds
_PATIENCE = 1 / 8  # of the time that items were quick: a short stall, as of a busy machine, starts no threads
_QUICK = 500  # items a second


def run_in_threads(work: Callable[[], object], limit: int, waiting: Sized) -> None:
    """Run a worker in at most ``limit`` daemon threads until all are done. ``waiting``: the items that no worker has taken.

    An interrupt of the caller does not wait for the threads.

    >>> items, taken = [1, 2, 3], []
    >>> run_in_threads(lambda: [taken.append(items.pop()) for _ in items[:]], 2, items)
    >>> taken
    [3, 2, 1]
    """
    threads: list[threading.Thread] = []
    wanted = limit if len(waiting) <= limit else 1
    began = time.monotonic()
    while True:
        for _ in range(wanted - len(threads)):
            threads.append(threading.Thread(target=work, name="sigwire-gather", daemon=True))
            threads[-1].start()
        if wanted == limit or not waiting:
            break
        quick_for = time.monotonic() - began
        if not _is_busy(threads[0], waiting, min(max(_MOMENT, _PATIENCE * quick_for), _LONGEST_MOMENT)):
            wanted, began = min(2 * wanted, limit), time.monotonic()
    for thread in threads:
        join(thread)


def _is_busy(thread: threading.Thread, waiting: Sized, moment: float) -> bool:
    """Wait a moment (seconds). Return True if more threads would not help: the items are quick, and keep the CPU busy."""
    before, began, used = len(waiting), time.monotonic(), time.process_time()
    join(thread, moment)
    seconds, left = time.monotonic() - began, len(waiting)
    return not left or (before - left >= _QUICK * seconds and time.process_time() - used >= seconds / 2)
