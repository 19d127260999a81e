"""``Inbox``: a queue between threads whose ``get`` waits in slices (``waiting``)."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import TypeVar

from sigwire.effects.waiting import wait_for

__all__ = ["Empty", "Inbox"]

T = TypeVar("T")


class Inbox(SimpleQueue[T]):
    """A ``queue.SimpleQueue``: ``put`` may be called anywhere, also by the garbage collector and in signal handlers.

    >>> inbox = Inbox()
    >>> inbox.put(3)
    >>> inbox.get()
    3
    """

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Return the next item. Raises ``Empty`` after ``timeout`` seconds."""
        if not block:
            return super().get(False)
        taken: list[T] = []

        def take(left: float) -> bool:
            try:
                taken.append(super(Inbox, self).get(True, left))
            except Empty:
                return False
            return True

        if not wait_for(take, timeout):
            raise Empty
        return taken[0]
