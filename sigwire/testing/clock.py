"""``FakeClock``: a clock whose waits take no time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

__all__ = ["FakeClock"]


class FakeClock:
    """A clock whose waits return at once and move its time: ``LM(..., retry=RetryPolicy(clock=FakeClock()))``.

    Retries, the limiter and the circuits of fallbacks then wait by it. ``slept``: the waits, in seconds and in order. Threads
    may share a clock; waits of two threads follow each other on it. ``advance`` moves the time without a wait.

    >>> clock = FakeClock()
    >>> clock.sleep(2.5)
    >>> clock.advance(60)
    >>> clock.now(), clock.slept
    (62.5, (2.5,))
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now, self._slept, self._lock = start, list[float](), threading.Lock()

    @property
    def slept(self) -> Sequence[float]:
        """The waits, in seconds and in order."""
        with self._lock:
            return tuple(self._slept)

    def now(self) -> float:
        """Return the time of the clock, in seconds."""
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        """Move the time on."""
        with self._lock:
            self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Note a wait, and move the time on by it."""
        with self._lock:
            self._now += seconds
            self._slept.append(seconds)

    async def asleep(self, seconds: float) -> None:
        """Note a wait, and move the time on by it. Other tasks get a turn."""
        import asyncio

        self.sleep(seconds)
        await asyncio.sleep(0)
