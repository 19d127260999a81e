"""The limiters of the process: ``limiter_of`` a target, and ``limits``, their states."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sigwire.effects.forks import on_fork
from sigwire.lm.policy.limits.limit import Limit, LimitState
from sigwire.lm.policy.limits.limiter import Limiter

if TYPE_CHECKING:
    from sigwire.lm.policy.call import TargetKey

__all__ = ["limiter_of", "limits"]

_lock = threading.Lock()
_limiters: dict[tuple[object, ...], tuple[str, str, Limiter]] = {}
_MOST_LIMITERS = 4096


def limiter_of(target: TargetKey, limit: Limit | None = None, *, start: int = 32) -> Limiter:
    """Return the limiter of a target. Targets of one account with an equal ``Limit`` that has a key share one."""
    name = target.model if limit is None or limit.key is None else limit.key
    key = (target.provider, target.origin, target.account, name, limit or Limit())
    with _lock:
        found = _limiters.get(key)
        if found is None:
            if len(_limiters) >= _MOST_LIMITERS:
                del _limiters[next(iter(_limiters))]
            found = _limiters[key] = (target.provider, name, Limiter(limit, start=start))
    return found[2]


def limits() -> list[LimitState]:
    """Return the state of each limiter of the process: slots, queue, rate and allowance.

    >>> all(state.in_flight == 0 for state in limits())
    True
    """
    with _lock:
        known = list(_limiters.values())
    return [limiter.state(provider, name) for provider, name, limiter in known]


@on_fork
def _reset_after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for _, _, limiter in _limiters.values():
        limiter.reset()
