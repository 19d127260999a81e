"""Deadlines on ``time.monotonic()``: the remaining seconds, and one timer for all awaited replies of an event loop."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["DeadlineTimer", "Expiring", "seconds_until", "shorter_limit"]


def seconds_until(deadline: float | None) -> float | None:
    """Return the seconds until a deadline; ``None`` for no deadline. Raises ``TimeoutError`` if it has passed."""
    if deadline is None:
        return None
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def shorter_limit(one: float | None, other: float | None) -> float | None:
    """Return the shorter of two limits in seconds; ``None`` is no limit."""
    if one is None or other is None:
        return other if one is None else one
    return one if one < other else other


class Expiring(Protocol):
    """An object with a deadline."""

    def expire(self) -> None:
        """Fail: the deadline has passed."""


class DeadlineTimer:
    """The deadlines of the replies of one event loop, with one timer for all of them: a timer per request is slow."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Expiring, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    def add(self, reply: Expiring, deadline: float | None) -> None:
        """Call ``expire()`` when the deadline passes; ``None`` is no deadline."""
        self._waiting[reply] = due = math.inf if deadline is None else deadline
        if due < self._due:
            self._schedule(due)

    def move(self, reply: Expiring, deadline: float | None) -> None:
        """Change the deadline of a reply that has not ended."""
        if self._waiting.get(reply, deadline) != deadline:
            self.add(reply, deadline)

    def remove(self, reply: Expiring) -> None:
        """Forget a reply that ended."""
        self._waiting.pop(reply, None)

    def _schedule(self, deadline: float) -> None:
        self.close()
        self._due = deadline
        self._timer = self._loop.call_later(deadline - time.monotonic(), self._expire_due)

    def _expire_due(self) -> None:
        self._due, now = math.inf, time.monotonic()
        for reply in [reply for reply, deadline in self._waiting.items() if deadline <= now]:
            self.remove(reply)
            reply.expire()
        if (due := min(self._waiting.values(), default=math.inf)) < math.inf:
            self._schedule(due)

    def close(self) -> None:
        """Stop the timer and forget all replies."""
        if self._timer is not None:
            self._timer.cancel()
