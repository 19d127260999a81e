"""The limiters of the process: ``limiter_of`` a target, and ``limits``, their states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.lm.policy.limits.limit import Limit, LimitState
from sigwire.lm.policy.limits.limiter import Limiter
from sigwire.lm.policy.registry import ProcessTable

if TYPE_CHECKING:
    from sigwire.lm.policy.call import TargetKey
    from sigwire.lm.policy.retry import TimedClock

__all__ = ["limiter_of", "limits"]

_limiters: ProcessTable[tuple[object, ...], tuple[str, str, Limiter]] = ProcessTable(
    4096, lambda found: found[2].reset()
)


def limiter_of(
    target: TargetKey, limit: Limit | None = None, *, start: int = 32, clock: TimedClock | None = None
) -> Limiter:
    """Return the limiter of a target. Targets of one account with an equal ``Limit`` that has a key share one.

    ``clock``: the clock of the limiter, in place of the machine's. Each clock has limiters of its own.
    """
    name = target.model if limit is None or limit.key is None else limit.key
    # The id: a clock may be unhashable, and its limiter keeps it.
    key = (target.provider, target.origin, target.account, name, limit or Limit(), clock and id(clock))
    return _limiters.find(key, lambda: (target.provider, name, _limiter(limit, start, clock)))[2]


def _limiter(limit: Limit | None, start: int, clock: TimedClock | None) -> Limiter:
    if clock is None:
        return Limiter(limit, start=start)
    from sigwire.lm.policy.limits.alarm import Alarm

    return Limiter(limit, start=start, clock=clock.now, wake_at=Alarm(clock).wake_at)


def limits() -> list[LimitState]:
    """Return the state of each limiter of the process: slots, queue, rate and allowance.

    >>> all(state.in_flight == 0 for state in limits())
    True
    """
    with _limiters.lock:
        known = list(_limiters.entries.values())
    return [limiter.state(provider, name) for provider, name, limiter in known]
