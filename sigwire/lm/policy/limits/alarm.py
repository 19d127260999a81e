"""``wake_at``: one daemon thread that wakes limiters when their next send is due.

Waiting calls cannot do it: the loop of the first one may be blocked, and its pace is that of all. The thread starts when a call
waits for a time, and ends a second after the last one; a forked child starts its own.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from sigwire.effects.forks import on_fork
from sigwire.effects.inbox import Empty, Inbox

__all__ = ["wake_at"]


class _Alarm:
    # Without a lock: the collector may close a stream, whose slot wakes a limiter, inside any code of any thread.
    def __init__(self) -> None:
        self._asked: Inbox[tuple[Callable[[], object], float]] = Inbox()
        self._due: dict[Callable[[], object], float] = {}  # only the thread writes it
        self._thread: threading.Thread | None = None

    def wake_at(self, wake: Callable[[], object], due: float) -> None:
        """Call ``wake`` at a time of ``time.monotonic()``, or before if an earlier call asked for it."""
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
            now = time.monotonic()
            for wake in [wake for wake, at in waiting.items() if at <= now]:
                del waiting[wake]
                wake()
        self._thread = None
        if not self._asked.empty():  # the caller saw the thread that ends
            self._start()

    def _receive(self, waiting: dict[Callable[[], object], float]) -> bool:
        """Wait until a call is due, and add what was asked for until then. Return False if nothing was."""
        seconds = max(0.0, min(waiting.values()) - time.monotonic()) if waiting else _IDLE_SECONDS
        with suppress(Empty):
            wake, due = self._asked.get(timeout=min(seconds, threading.TIMEOUT_MAX))
            waiting[wake] = min(due, waiting.get(wake, due))
            return True
        return False


_IDLE_SECONDS = 1.0
_alarm = _Alarm()


def wake_at(wake: Callable[[], object], due: float) -> None:
    """Call ``wake`` from the alarm's thread at a time of ``time.monotonic()``. It must not block.

    >>> called = threading.Event()
    >>> wake_at(called.set, time.monotonic() + 0.001)
    >>> called.wait(5)
    True
    """
    _alarm.wake_at(wake, due)


@on_fork
def _reset_after_fork() -> None:
    global _alarm
    _alarm = _Alarm()
