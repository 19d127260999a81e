"""``wake_at``: one daemon thread that wakes limiters when their next send is due. ``Alarm``: such a thread for another clock.

Waiting calls cannot do it: the loop of the first one may be blocked, and its pace is that of all. The thread starts when a call
waits for a time, and ends a second after the last one; a forked child starts its own.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from sigwire.effects.forks import reset_when_forked
from sigwire.effects.inbox import Empty, Inbox

if TYPE_CHECKING:
    from sigwire.lm.policy.retry import TimedClock

__all__ = ["Alarm", "wake_at"]


class Alarm:
    """Calls functions from a thread when their time has come, by the machine's clock or by ``clock``.

    The thread sleeps on ``clock``; while that does not reach the time, such as with one that a test sets, it looks again.

    >>> from sigwire.testing import FakeClock
    >>> clock, called = FakeClock(), threading.Event()
    >>> Alarm(clock).wake_at(called.set, clock.now() + 3600)
    >>> called.wait(5), clock.slept
    (True, (3600.0,))
    """

    # Without a lock: the collector may close a stream, whose slot wakes a limiter, inside any code of any thread.
    def __init__(self, clock: TimedClock | None = None) -> None:
        self._clock = clock
        self._now = time.monotonic if clock is None else clock.now
        self.reset_after_fork()
        reset_when_forked(self)

    def reset_after_fork(self) -> None:
        """Forget what was asked for, and the thread, which is the parent's."""
        self._asked: Inbox[tuple[Callable[[], object], float]] = Inbox()
        self._due: dict[Callable[[], object], float] = {}  # only the thread writes it
        self._thread: threading.Thread | None = None

    def wake_at(self, wake: Callable[[], object], due: float) -> None:
        """Call ``wake`` at a time of the clock, or before if an earlier call asked for it."""
        if due >= self._due.get(wake, math.inf):
            return
        self._asked.put((wake, due))
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        # Two callers at once may start two threads: they share the work, and both end.
        self._thread = thread = threading.Thread(target=self._serve, name="sigwire-limits", daemon=True)
        try:
            thread.start()
        except BaseException:  # the next caller starts another one
            self._thread = None
            raise

    def _serve(self) -> None:
        self._due = waiting = dict[Callable[[], object], float]()
        while self._receive(waiting) or waiting:
            now = self._now()
            for wake in [wake for wake, at in waiting.items() if at <= now]:
                del waiting[wake]
                wake()
        self._thread = None
        if not self._asked.empty():  # the caller saw the thread that ends
            self._start()

    def _receive(self, waiting: dict[Callable[[], object], float]) -> bool:
        """Wait until a call is due, and add what was asked for until then. Return False if nothing was."""
        seconds = max(0.0, min(waiting.values()) - self._now()) if waiting else _IDLE_SECONDS
        if self._clock is not None and waiting and seconds and self._asked.empty():
            self._clock.sleep(seconds)
            seconds = _LOOK_SECONDS if self._now() < min(waiting.values()) else 0.0
        with suppress(Empty):
            wake, due = self._asked.get(timeout=min(seconds, threading.TIMEOUT_MAX))
            waiting[wake] = min(due, waiting.get(wake, due))
            return True
        return False


_IDLE_SECONDS = 1.0
_LOOK_SECONDS = 0.005
_alarm = Alarm()


def wake_at(wake: Callable[[], object], due: float) -> None:
    """Call ``wake`` from the alarm's thread at a time of ``time.monotonic()``. It must not block.

    >>> called = threading.Event()
    >>> wake_at(called.set, time.monotonic() + 0.001)
    >>> called.wait(5)
    True
    """
    _alarm.wake_at(wake, due)
