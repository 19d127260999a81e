"""``wake_at``: one daemon thread that wakes limiters when their next send is due.

Waiting calls cannot do it: the loop of the first one may be blocked, and its pace is that of all. The thread starts when a call
waits for a time, and ends a second after the last one; a forked child starts its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

__all__ = ["wake_at"]


class _Alarm:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[Callable[[], object], float] = {}
        self._thread: threading.Thread | None = None

    def wake_at(self, wake: Callable[[], object], due: float) -> None:
        """Call ``wake`` at a time of ``time.monotonic()``, or before if an earlier call asked for it."""
        with self._changed:
            if due >= self._due.get(wake, float("inf")):
                return
            self._due[wake] = due
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="sigwire-limits", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _serve(self) -> None:
        while due := self._next():
            for wake in due:
                wake()

    def _next(self) -> list[Callable[[], object]]:
        """Wait until calls are due and return them; none if the thread ends."""
        with self._changed:
            while self._due or self._changed.wait(_IDLE_SECONDS) or self._due:
                now = time.monotonic()
                if due := [wake for wake, at in self._due.items() if at <= now]:
                    for wake in due:
                        del self._due[wake]
                    return due
                if self._due:
                    self._changed.wait(min(self._due.values()) - now)
            self._thread = None
        return []


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


def _reset_after_fork() -> None:
    global _alarm
    _alarm = _Alarm()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_reset_after_fork)
