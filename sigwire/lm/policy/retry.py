"""Retry transient failures of an exchange, and wait before each retry.

The error decides what is retried (``LMError.retryable``: server faults, overload, rate limits, timeouts, lost connections).

    reused connection without a reply   repeated at once on a new connection (a "redial"), once, free
    401 with a key that has changed     repeated at once with the new key, once, free
    rate limit                          up to 32 times: the limiter paces them; they do not count as ``retries``
    success without an answer           once
    any other transient failure         ``retries`` times, unless the target's budget of retries is spent (``throttle``)

A stated wait is kept, and a little more, which spreads clients out; without one the wait is drawn below a bound that doubles. A
call's deadline ends its retries: no wait passes it. If another model is left (``Call.patience``), one failure is retried,
and rate limits within that patience. Time and chance are arguments: a ``Clock`` waits, ``random`` draws.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from sigwire.effects.cancellation import StreamCancelled, current_scope, on_cancel
from sigwire.effects.steps import Steps
from sigwire.effects.waiting import sleep, wait_for
from sigwire.errors import ConfigurationError, LMAuthenticationError, LMError, LMRateLimitError, LMTransportError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.policy.throttle import throttle_failure, throttle_success

if TYPE_CHECKING:
    from sigwire.lm.policy.call import Call, Exchange

__all__ = ["CLOCK", "Clock", "RetryPolicy", "Sleep", "TimedClock", "timed"]

T = TypeVar("T")


class Clock(Protocol):
    """A clock with a blocking and an awaitable sleep."""

    def sleep(self, seconds: float) -> None: ...

    async def asleep(self, seconds: float) -> None: ...


@runtime_checkable
class TimedClock(Clock, Protocol):
    """A clock that states its time: ``now`` in seconds, from any start. Threads of sigwire call it, too."""

    def now(self) -> float: ...


class _SystemClock:
    """The clock of the system. Cancelling the current scope ends a blocking sleep."""

    def sleep(self, seconds: float) -> None:
        if current_scope() is None:
            sleep(seconds)
            return
        cancelled = threading.Event()
        with on_cancel(cancelled.set):
            if wait_for(cancelled.wait, seconds):
                raise StreamCancelled

    async def asleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


CLOCK: Clock = _SystemClock()


def timed(clock: Clock) -> TimedClock | None:
    """Return a clock by which the limiter and the circuits of a model count as well; ``None`` if it states no time.

    >>> timed(CLOCK)
    """
    return clock if isinstance(clock, TimedClock) else None


@dataclass(frozen=True, slots=True)
class Sleep:
    """Effect: wait ``seconds``."""

    seconds: float
    clock: Clock = CLOCK

    def run(self) -> None:
        self.clock.sleep(self.seconds)

    async def arun(self) -> None:
        await self.clock.asleep(self.seconds)


_MAX_ROUNDS = 32  # exchanges that end in a rate limit, in one call
_SHORTEST_WAIT = 0.05
_OVERLOAD_WAIT = 2.0  # the least first bound of the wait after an overload without a stated wait


@dataclass(frozen=True, slots=True)
class RetryPolicy(ChecksKeywords):
    """The layer that retries: how often, and with which waits.

    ``retries``: exchanges after the first; 0 retries no failure of the provider. If the provider states a wait, it is kept,
    plus up to a quarter (at most a second); if it exceeds ``longest_wait`` seconds, the error is raised at once. Without a
    stated wait, the bound is ``first_wait`` seconds, doubled each time up to ``longest_backoff``, and the wait is the bound
    less a random part: of the whole bound, but at least 0.05 s remain (``jitter="full"``), or of a share of it (a number).
    ``clock`` waits: ``sleep`` and ``asleep``. If it has a method ``now``, the limiter of the model and the circuits of its
    fallbacks count by it; each wait counts in full against the call's deadline (``sigwire.testing.FakeClock``).

    >>> policy = RetryPolicy(random=lambda: 0.5)
    >>> [policy.backoff(number) for number in range(6)]
    [0.25, 0.5, 1.0, 2.0, 4.0, 4.0]
    """

    retries: int = 3
    first_wait: float = 0.5
    longest_backoff: float = 8.0
    longest_wait: float = 120.0
    jitter: float | Literal["full"] = "full"
    clock: Clock = CLOCK
    random: Callable[[], float] = field(default=random.random)

    def __post_init__(self) -> None:
        jitter = 1.0 if self.jitter == "full" else self.jitter
        numbers: list[Any] = [self.retries, self.first_wait, self.longest_backoff, self.longest_wait, jitter]
        fit = all(isinstance(number, (int, float)) and number >= 0 for number in numbers)
        if not fit or type(self.retries) is not int:
            raise ConfigurationError(
                f"A RetryPolicy is made of numbers, 0 or more, and retries is whole: not {self!r:.200}."
            )

    def backoff(self, number: int, least: float = 0.0) -> float:
        """Return the wait after failure ``number`` (from 0) for which the provider stated none, in seconds.

        ``least``: a bound of the first wait that replaces a smaller ``first_wait``.
        """
        bound = min(max(self.first_wait, least) * 2.0 ** min(number, 64), self.longest_backoff)
        jitter = 1.0 if self.jitter == "full" else self.jitter
        return max(bound * (1.0 - jitter * self.random()), min(_SHORTEST_WAIT, bound))

    def wait(self, error: LMError, number: int) -> float | None:
        """Return the seconds to wait after failure ``number`` (from 0), ``None`` if the stated wait is too long.

        >>> from sigwire.errors import LMRateLimitError
        >>> RetryPolicy(random=lambda: 0.5).wait(LMRateLimitError(retry_after=2.0), 0)
        2.25
        >>> RetryPolicy().wait(LMRateLimitError(retry_after=3600.0), 0)
        """
        if stated := error.retry_after:
            if stated > self.longest_wait:
                return None
            return max(stated + min(1.0, stated / 4) * self.random(), _SHORTEST_WAIT)
        return self.backoff(number, _OVERLOAD_WAIT if error.overload else 0.0)

    def around(self, call: Call, inner: Exchange[T]) -> Steps[T]:
        """Perform an exchange until it succeeds or is not retried; each failure is an attempt in ``call.report.log``.

        The last error is raised, with the log as its ``attempts``; if a bound ended the retries, its text and the last attempt
        name the bound. Once the exchange has emitted an event with content, its failure is final. Anything but an ``LMError``
        passes at once.
        """
        failures: _Failures | None = None
        report = call.report
        emitted, report.purpose = report.emitted, "ask"
        while True:
            try:
                result = yield from inner()
            except LMError as error:
                failures = failures or _Failures(self, call, emitted)
                seconds = failures.wait_after(error)
                report.record(error=error)
                if seconds is None:
                    error.attempts = tuple(report.log)
                    raise
                report.purpose = "redial" if failures.is_stale else "retry"
                _log_retry(call, seconds, error)
            else:
                throttle_success(call.target)
                return result
            if seconds > 0.0:
                report.waited = seconds
                began = time.monotonic()
                yield Sleep(seconds, self.clock)
                if self.clock is not CLOCK:
                    call.advance(seconds - (time.monotonic() - began))


def _log_retry(call: Call, seconds: float, error: LMError) -> None:
    from sigwire.observe.tracing.logs import log_retry  # loads logging; few calls are retried

    log_retry(call.target.model, len(call.report.log), seconds, error)


class _Failures:
    """The failures of one exchange and its retries, by kind."""

    __slots__ = (
        "_call",
        "_emitted",
        "_empty",
        "_failed",
        "_most",
        "_policy",
        "_rounds",
        "_waited",
        "_was_renewed",
        "is_stale",
    )

    def __init__(self, policy: RetryPolicy, call: Call, emitted: int) -> None:
        self._policy, self._call, self._emitted = policy, call, emitted
        self._rounds = self._failed = self._empty = 0
        self._waited = 0.0
        self._most = policy.retries if call.patience is None else min(policy.retries, 1)
        self.is_stale = self._was_renewed = False

    def wait_after(self, error: LMError) -> float | None:
        """Return the seconds until the retry of a failed exchange, ``None`` for no retry. Sets ``call.report.why``."""
        call, was_stale = self._call, self.is_stale
        self.is_stale = isinstance(error, LMTransportError) and error.stale and not was_stale
        if error.partial is not None or call.report.emitted != self._emitted:
            return None
        if self.is_stale:
            return 0.0
        if isinstance(error, LMAuthenticationError) and error.key_changed and not self._was_renewed:
            self._was_renewed = True
            return 0.0
        why, seconds = self._retry(error) if error.retryable else (None, None)
        if why is not None:
            call.report.why = why
            error.message = f"{error.message} No retry: {why}."
            error.args = (error.message,)
        return seconds

    def _retry(self, error: LMError) -> tuple[str | None, float | None]:
        """Return why a transient failure is not retried, or the wait; neither if all retries are used."""
        policy, call = self._policy, self._call
        throttled = None
        if isinstance(error, LMRateLimitError):
            number, most = self._rounds, _MAX_ROUNDS if policy.retries else 0
            self._rounds += 1
        else:
            number, most = self._failed, self._most
            self._failed += 1
            self._empty += error.empty
            throttled = throttle_failure(call.target) if call.report.began is not None else None
        # One success without an answer may be a broken reply, the second is how this server answers.
        if number >= most or (self._empty > 1 and error.empty):
            return None, None
        seconds = policy.wait(error, number)
        if seconds is None:
            return f"the stated wait exceeds {policy.longest_wait:g} s", None
        bound = self._bound_of(seconds) or throttled
        return bound, None if bound else seconds

    def _bound_of(self, seconds: float) -> str | None:
        """Return why a wait does not start; ``None`` if it may."""
        call = self._call
        self._waited += seconds
        if not call.has_time_for(seconds):
            return "no time left"
        return None if call.patience is None or self._waited <= call.patience else "another model is asked"
