"""Blocking waits for threads, futures, locks and events, in slices of a second.

Python runs the handler of a signal between two instructions of the main thread, so an interrupt is seen when a wait of the
system ends. A signal that arrives just before a wait is missed until its end, and the signal handler of an extension (polars)
lets the system restart untimed waits (signal(7), ``SA_RESTART``). So no wait of the package is longer than a slice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import threading
    from concurrent.futures import Future

__all__ = ["SLICE_SECONDS", "acquire", "join", "result_of", "sleep", "wait_for"]

SLICE_SECONDS = 1.0

T = TypeVar("T")


class Acquirable(Protocol):
    """A lock."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...


def wait_for(wait: Callable[[float], object], seconds: float | None = None) -> bool:
    """Call ``wait`` with the seconds of a slice until it returns something true. Return False after ``seconds``.

    Without ``seconds`` the wait has no end.

    >>> import threading
    >>> wait_for(threading.Event().wait, 0.001)
    False
    """
    end = None if seconds is None else time.monotonic() + seconds
    left = SLICE_SECONDS
    while True:
        if end is not None:
            left = min(SLICE_SECONDS, max(0.0, end - time.monotonic()))
        if wait(left):
            return True
        if end is not None and time.monotonic() >= end:
            return False


def join(thread: threading.Thread, seconds: float | None = None) -> bool:
    """Wait for the end of a thread. Return False if it still runs after ``seconds``.

    >>> import threading
    >>> thread = threading.Thread(target=print)
    >>> thread.start(); join(thread)
    <BLANKLINE>
    True
    """

    def has_ended(left: float) -> bool:
        thread.join(left)
        return not thread.is_alive()

    return wait_for(has_ended, seconds)


def result_of(future: Future[T], seconds: float | None = None) -> T:
    """Return the result of a future or raise its error, as ``Future.result``. Raises ``TimeoutError`` after ``seconds``.

    >>> from concurrent.futures import Future
    >>> future = Future()
    >>> future.set_result(42)
    >>> result_of(future)
    42
    """

    def is_done(left: float) -> bool:
        from concurrent.futures import CancelledError  # the owner of a future has loaded it

        with suppress(TimeoutError, CancelledError):
            future.exception(left)
        return future.done()

    if not wait_for(is_done, seconds):
        raise TimeoutError
    return future.result(0)


def acquire(lock: Acquirable) -> None:
    """Acquire a lock.

    >>> import threading
    >>> lock = threading.Lock()
    >>> acquire(lock)
    >>> lock.locked()
    True
    """
    if not lock.acquire(blocking=False):
        wait_for(lambda left: lock.acquire(timeout=left))


def sleep(seconds: float) -> None:
    """Sleep. An interrupt that arrives just before is seen after a second.

    >>> sleep(0.001)
    """
    wait_for(time.sleep, max(0.0, seconds))
