"""Retry budgets: if too many exchanges with a target fail, no call retries there.

Each target has 50 tokens. A retryable failure that is no rate limit costs 1, a success returns 0.25; below 25 tokens the retry
layer raises. So up to 20 % of failures are retried without end, and a dead provider gets one exchange a call and about 25 more.

The registry belongs to the process: all threads and event loops share it, other processes do not. A forked child starts empty.
A target without failures has no entry, so a plain call reads one dict.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sigwire.lm.policy.registry import ProcessTable

if TYPE_CHECKING:
    from sigwire.lm.policy.call import TargetKey

__all__ = ["Throttle", "throttle_failure", "throttle_reset", "throttle_success"]

_FULL, _ENOUGH, _RETURNED = 50.0, 25.0, 0.25
_REMEMBERED = 60  # exchanges, for the text of the error


class Throttle:
    """The tokens of one target, and the outcomes of its last exchanges.

    >>> throttle = Throttle()
    >>> [throttle.failure() for _ in range(26)][-2:]
    [None, 'retries are throttled: 26 of the last 26 exchanges failed']
    """

    __slots__ = ("_outcomes", "tokens")

    def __init__(self) -> None:
        self.tokens = _FULL
        self._outcomes: deque[bool] = deque(maxlen=_REMEMBERED)

    def failure(self) -> str | None:
        """Pay for a failure. Return why it is not retried; ``None`` if it may be."""
        self.tokens = max(self.tokens - 1.0, 0.0)
        self._outcomes.append(True)
        if self.tokens >= _ENOUGH:
            return None
        return f"retries are throttled: {sum(self._outcomes)} of the last {len(self._outcomes)} exchanges failed"

    def success(self) -> bool:
        """Return a part of a token. Return True if the budget is full again."""
        self.tokens = min(self.tokens + _RETURNED, _FULL)
        self._outcomes.append(False)
        return self.tokens == _FULL


_throttles: ProcessTable[TargetKey, Throttle] = ProcessTable(4096)


def throttle_failure(target: TargetKey) -> str | None:
    """Count a retryable failure of a target. Return why it is not retried; ``None`` if it may be."""
    with _throttles.lock:
        return _throttles.find(target, Throttle).failure()


def throttle_success(target: TargetKey) -> None:
    """Count a success of a target."""
    known = _throttles.entries
    if known and target in known:
        with _throttles.lock:
            throttle = known.get(target)
            if throttle is not None and throttle.success():
                del known[target]


def throttle_reset() -> None:
    """Forget all targets."""
    _throttles.clear()
