"""Trying again: a trip to a provider that failed in a way that can pass is made again, a bounded number of times.

    response = yield from retrying(trip, RetryPolicy(retries=3), attempts, model)

``trip`` makes a new program for each try. What can pass is the error's own word (``LMError.retryable``: rate limits, overload,
server faults, timeouts, lost connections); how long to wait is the provider's word where there is one, else a wait that
doubles, less a random part, so that many clients do not come back at once. Decides by time and chance alone, and both are
arguments: a ``Clock`` waits, ``random`` draws. Knows no provider.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sigwire.core.response import Attempt
from sigwire.effects.steps import Steps
from sigwire.errors import LMError

__all__ = ["CLOCK", "Clock", "RetryPolicy", "Sleep", "retry_exchange"]

T = TypeVar("T")


class Clock(Protocol):
    """Who waits: blocking and awaited."""

    def sleep(self, seconds: float) -> None: ...

    async def asleep(self, seconds: float) -> None: ...


class _SystemClock:
    """The real one."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


CLOCK: Clock = _SystemClock()


@dataclass(frozen=True, slots=True)
class Sleep:
    """An effect: wait."""

    seconds: float
    clock: Clock = CLOCK

    def run(self) -> None:
        self.clock.sleep(self.seconds)

    async def arun(self) -> None:
        await self.clock.asleep(self.seconds)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently to try again.

    ``retries``: tries after the first. Waits are ``first_wait`` seconds, doubled each time up to ``longest_backoff``, less
    at random up to the part ``jitter``. A provider that asks for more time gets it, up to ``longest_wait``; one that asks
    for more than that is not asked again.

    >>> policy = RetryPolicy(random=lambda: 0.0)
    >>> [policy.backoff(number) for number in range(6)]
    [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    """

    retries: int = 3
    first_wait: float = 0.5
    longest_backoff: float = 8.0
    longest_wait: float = 120.0
    jitter: float = 0.25
    clock: Clock = CLOCK
    random: Callable[[], float] = field(default=random.random)

    def backoff(self, number: int) -> float:
        """The wait after failure ``number``, counted from 0, where the provider named none."""
        whole = min(self.first_wait * 2.0 ** min(number, 64), self.longest_backoff)
        return whole * (1.0 - self.jitter * self.random())

    def wait(self, error: LMError, number: int) -> float | None:
        """Seconds to wait after failure ``number``, counted from 0; ``None`` where the error stands, as it does once a part
        of the answer was shown.

        >>> from sigwire.errors import LMAuthenticationError, LMRateLimitError
        >>> RetryPolicy().wait(LMRateLimitError(retry_after=30.0), 0)
        30.0
        >>> RetryPolicy().wait(LMRateLimitError(retry_after=3600.0), 0)
        >>> RetryPolicy().wait(LMAuthenticationError(), 0)
        """
        if not error.retryable or error.partial is not None or number >= self._retries_for(error):
            return None
        asked = error.retry_after or 0.0
        return max(asked, self.backoff(number)) if asked <= self.longest_wait else None

    def _retries_for(self, error: LMError) -> int:
        # A success that holds no answer may be one broken reply; twice, it is a server that answers like this. An error that
        # the provider names in it, by its code, is what it says.
        empty = error.status is not None and 200 <= error.status < 300 and error.provider_code is None
        return min(self.retries, 1) if empty else self.retries


def retry_exchange(
    trip: Callable[[], Steps[T]], policy: RetryPolicy, attempts: list[Attempt], model: str | None = None
) -> Steps[T]:
    """Make the trip until it succeeds or ``policy`` ends it; failures are added to ``attempts``, as ``model``'s.

    The last error is raised as it is, with all ``attempts`` on it. Anything but an ``LMError`` passes at once.

    >>> from sigwire.errors import LMServerError
    >>> from sigwire.effects.steps import run
    >>> tries = iter([LMServerError("busy"), None])
    >>> def trip():
    ...     if error := next(tries):
    ...         raise error
    ...     return "done"
    ...     yield
    >>> attempts = []
    >>> run(retrying(trip, RetryPolicy(first_wait=0.0), attempts)), [attempt.error for attempt in attempts]
    ('done', ['server'])
    """
    number = 0
    while True:
        try:
            return (yield from trip())
        except LMError as error:
            attempts.append(Attempt("retry" if number else "ask", model or error.model, error=error.code))
            seconds = policy.wait(error, number)
            if seconds is None:
                error.attempts = tuple(attempts)
                raise
        number += 1
        yield Sleep(seconds, policy.clock)
