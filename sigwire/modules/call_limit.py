"""The time limit of a call of a program, for ``batch``, ``Parallel`` and evaluations.

Requests to models end at the limit by their deadline. Blocking code of the user cannot be stopped: it runs in a thread of its
own, and the caller goes on without it a moment after the limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sigwire.effects.steps import Steps, arun, run
from sigwire.effects.time_limit import TimeLimitReached, call_within
from sigwire.errors import SigwireError
from sigwire.lm.policy.deadlines import deadline

__all__ = ["CallTimeout", "timed_steps"]

T = TypeVar("T")
_GRACE_SECONDS = 0.2  # requests end at their deadline, and their usage is known


class CallTimeout(SigwireError, TimeoutError):
    """A call took longer than the ``timeout`` of its ``batch`` or ``Parallel``."""


def timed_steps(steps: Steps[T], seconds: float, make_error: Callable[[], Exception]) -> Steps[T]:
    """Run steps for at most ``seconds``; raise the error of ``make_error`` after them, also if a result comes late."""
    ends = time.monotonic() + seconds
    try:
        with deadline(seconds):
            result: T = yield _Timed(steps, seconds)
    except Exception as error:
        if time.monotonic() < ends:
            raise
        raise make_error() from (None if isinstance(error, TimeLimitReached) else error)
    if time.monotonic() >= ends:
        raise make_error()
    return result


class _Timed:
    """Effect: run steps; awaited, cancel them after ``seconds``, blocking, go on without them."""

    __slots__ = ("_seconds", "_steps")

    nests = True

    def __init__(self, steps: Steps[T], seconds: float) -> None:
        self._steps, self._seconds = steps, seconds

    def run(self) -> object:
        return call_within(self._seconds + _GRACE_SECONDS, partial(run, self._steps), "sigwire-call")

    async def arun(self) -> object:
        import asyncio

        async with asyncio.timeout(self._seconds):
            return await arun(self._steps)
