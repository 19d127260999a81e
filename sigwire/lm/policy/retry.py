"""Retry transient failures of an exchange, at most ``RetryPolicy.retries`` times.

The error decides what is retried (``LMError.retryable``: rate limits, overload, server faults, timeouts, lost connections).
The wait is the one that the provider states; without it, a wait that doubles, less a random part that spreads clients out.
A call's deadline ends its retries: no wait passes it. A reused connection that the server closed before the first byte of a
reply is no failure of the provider: the exchange is repeated at once on a new connection, a redial.
Time and chance are arguments: a ``Clock`` waits, ``random`` draws. Knows no provider.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, LMError, LMTransportError
from sigwire.keywords import ChecksKeywords

if TYPE_CHECKING:
    from sigwire.lm.policy.call import Call, Exchange

__all__ = ["CLOCK", "Clock", "RetryPolicy", "Sleep"]

T = TypeVar("T")


class Clock(Protocol):
    """A clock with a blocking and an awaitable sleep."""

    def sleep(self, seconds: float) -> None: ...

    async def asleep(self, seconds: float) -> None: ...


class _SystemClock:
    """The clock of the system."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


CLOCK: Clock = _SystemClock()


@dataclass(frozen=True, slots=True)
class Sleep:
    """Effect: wait ``seconds``."""

    seconds: float
    clock: Clock = CLOCK

    def run(self) -> None:
        self.clock.sleep(self.seconds)

    async def arun(self) -> None:
        await self.clock.asleep(self.seconds)


@dataclass(frozen=True, slots=True)
class RetryPolicy(ChecksKeywords):
    """The layer that retries: how often, and with which waits.

    ``retries``: exchanges after the first. A wait is ``first_wait`` seconds, doubled each time up to ``longest_backoff``,
    less a random part of at most ``jitter`` of it. If the provider states a longer wait, that one is kept; if it exceeds
    ``longest_wait`` seconds, the error is raised at once.

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

    def __post_init__(self) -> None:
        numbers: list[Any] = [self.retries, self.first_wait, self.longest_backoff, self.longest_wait, self.jitter]
        fit = all(isinstance(number, (int, float)) and number >= 0 for number in numbers)
        if not fit or type(self.retries) is not int:
            raise ConfigurationError(
                f"A RetryPolicy is made of numbers, 0 or more, and retries is whole: not {self!r:.200}."
            )

    def backoff(self, number: int) -> float:
        """Return the wait after failure ``number`` (from 0) for which the provider stated none, in seconds."""
        whole = min(self.first_wait * 2.0 ** min(number, 64), self.longest_backoff)
        return whole * (1.0 - self.jitter * self.random())

    def wait(self, error: LMError, number: int) -> float | None:
        """Return the seconds to wait after failure ``number`` (from 0), or ``None`` if the error is not retried.

        An error with a partial answer is never retried.

        >>> from sigwire.errors import LMAuthenticationError, LMRateLimitError
        >>> RetryPolicy().wait(LMRateLimitError(retry_after=30.0), 0)
        30.0
        >>> RetryPolicy().wait(LMRateLimitError(retry_after=3600.0), 0)
        >>> RetryPolicy().wait(LMAuthenticationError(), 0)
        """
        if not error.retryable or error.partial is not None or number >= self.retries:
            return None
        stated = error.retry_after or 0.0
        return max(stated, self.backoff(number)) if stated <= self.longest_wait else None

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]:
        """Perform an exchange until it succeeds or is not retried; each failure is an attempt in ``call.log``.

        The last error is raised unchanged, with the log as its ``attempts``. Once the exchange has emitted an event with
        content, its failure is final. Anything but an ``LMError`` passes at once.
        """
        number, empty, redial = 0, 0, False
        emitted, call.purpose = call.emitted, "ask"
        while True:
            try:
                return (yield from inner())
            except LMError as error:
                call.record(error=error)
                empty += _is_empty(error)
                redial = not redial and isinstance(error, LMTransportError) and error.stale
                seconds = 0.0 if redial else self.wait(error, number) if empty <= 1 else None
                if seconds is None or call.emitted != emitted or not call.has_time_for(seconds):
                    error.attempts = tuple(call.log)
                    raise
            call.purpose = "redial" if redial else "retry"
            if not redial:
                number += 1
                call.waited = seconds
                yield Sleep(seconds, self.clock)


def _is_empty(error: LMError) -> bool:
    """Return True for a success without an answer: one may be a broken reply, the second is how this server answers."""
    # A success that names an error by its code is that error, and one that is no JSON was damaged in transit.
    succeeded = error.status is not None and 200 <= error.status < 300
    return succeeded and error.provider_code is None and not isinstance(error, LMTransportError)
