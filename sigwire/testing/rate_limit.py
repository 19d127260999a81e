"""Rate limits of a fake provider: the requests that it refuses, the headers that announce a limit, and its counters.

RateLimit    what a key may send, and what a refusal states
Quota        the state of one limit, for the headers of a reply
Traffic      the counters of one key
Turnstile    admits the requests of all keys; used from any thread
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords
from sigwire.testing.answers import Fault

__all__ = ["Admission", "Quota", "RateLimit", "Traffic", "Turnstile"]


@dataclass(frozen=True, slots=True)
class RateLimit(ChecksKeywords):
    """The limits of each key of a fake provider. What exceeds them is refused with the wire's 429, or 503 and 529.

    ``requests`` and ``tokens`` per ``per`` seconds refill evenly, from full buckets of ``burst`` requests (default:
    ``requests``) and ``tokens``; if ``fixed``, a bucket is filled whole at the start of each window of ``per`` seconds. A
    request costs its estimated tokens and its ``max_tokens``. ``concurrency``: requests that are answered at once; one more
    is an ``overloaded`` fault. ``retry_after`` of a refusal: "exact", a number of seconds, or ``None`` for no statement.
    ``headers``: whether replies announce requests and tokens, on wires whose provider does (OpenAI, Anthropic).

    Raises ``ConfigurationError`` for a limit that is not positive.

    >>> RateLimit(requests=20, per=1, burst=1, retry_after=None).capacity
    {'requests': 1}
    """

    requests: float | None = None
    tokens: float | None = None
    concurrency: int | None = None
    per: float = 60.0
    burst: float | None = None
    fixed: bool = False
    retry_after: float | Literal["exact"] | None = "exact"
    headers: bool = True

    def __post_init__(self) -> None:
        for name in ("requests", "tokens", "concurrency", "per", "burst"):
            if (given := getattr(self, name)) is not None and not given > 0:
                raise ConfigurationError(f"{name}={given} is no limit (limiting a fake provider). Give more than 0.")

    @property
    def capacity(self) -> dict[str, float]:
        """The size of each bucket."""
        sizes = {"requests": self.requests and (self.burst or self.requests), "tokens": self.tokens}
        return {name: size for name, size in sizes.items() if size is not None}


class Quota(NamedTuple):
    """The state of one limit: its name, its size, what is left, and the seconds until it is full."""

    name: str
    limit: int
    remaining: int
    reset: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """The counters of one key: requests ``seen``, ``accepted`` and ``refused`` by the limit, those answered ``now``, and the
    ``most`` at once.

    The limit does not count a request that a rule of the wire refuses; ``seen`` does, unless the key is wrong.
    """

    seen: int = 0
    accepted: int = 0
    refused: int = 0
    now: int = 0
    most: int = 0


class Admission(NamedTuple):
    """The refusal of a request, or ``None``; and the quotas that its reply announces."""

    fault: Fault | None
    quotas: Sequence[Quota]


class Turnstile:
    """Admits or refuses requests by the limit of their key, and counts them.

    >>> turnstile = Turnstile(RateLimit(requests=2, per=1), clock=lambda: 0.0)
    >>> [turnstile.admit("key", tokens=10).fault for _ in range(3)][1:]
    [None, Fault(kind='rate_limit', message=None, status=None, code=None, retry_after=0.5, param=None)]
    """

    def __init__(self, limit: RateLimit | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit or RateLimit(), clock
        self._lock = threading.Lock()
        self._accounts: dict[str, _Account] = {}

    def see(self, key: str) -> None:
        """Count a request whose key is accepted."""
        with self._lock:
            self._account(key).count(seen=1)

    def admit(self, key: str, tokens: int) -> Admission:
        """Admit a request, which ``finish`` ends, or return its refusal."""
        with self._lock:
            account, now = self._account(key), self._clock()
            fault = account.refusal({"requests": 1, "tokens": tokens}, now)
            account.count(refused=1) if fault else account.count(accepted=1, now=1)
            return Admission(fault, account.quotas(now) if self._limit.headers else ())

    def finish(self, key: str) -> None:
        """End an admitted request."""
        with self._lock:
            self._account(key).count(now=-1)

    @property
    def traffic(self) -> Mapping[str, Traffic]:
        """The counters by key."""
        with self._lock:
            return {key: account.traffic for key, account in self._accounts.items()}

    def _account(self, key: str) -> _Account:
        if key not in self._accounts:
            self._accounts[key] = _Account(self._limit, self._clock())
        return self._accounts[key]


class _Account:
    """The buckets and the counters of one key."""

    def __init__(self, limit: RateLimit, now: float) -> None:
        rates = {"requests": limit.requests, "tokens": limit.tokens}
        self._limit = limit
        self._buckets = {
            name: _Bucket(size, (rates[name] or 0) / limit.per, limit.per if limit.fixed else None, now)
            for name, size in limit.capacity.items()
        }
        self.traffic = Traffic()

    def count(self, seen: int = 0, accepted: int = 0, refused: int = 0, now: int = 0) -> None:
        old = self.traffic
        at_once = old.now + now
        counts = Traffic(old.seen + seen, old.accepted + accepted, old.refused + refused, at_once)
        self.traffic = replace(counts, most=max(old.most, at_once))

    def refusal(self, amounts: Mapping[str, float], now: float) -> Fault | None:
        """Take the amounts from the buckets if all of them fit; else return the refusal."""
        stated = self._limit.retry_after
        if self._limit.concurrency is not None and self.traffic.now >= self._limit.concurrency:
            return Fault("overloaded", retry_after=None if stated == "exact" else stated)
        wait = max((bucket.wait(amounts[name], now) for name, bucket in self._buckets.items()), default=0.0)
        if wait > 0:
            exact = math.ceil(wait * 1000) / 1000
            return Fault("rate_limit", retry_after=exact if stated == "exact" else stated)
        for name, bucket in self._buckets.items():
            bucket.level -= amounts[name]
        return None

    def quotas(self, now: float) -> Sequence[Quota]:
        return [
            Quota(name, int(bucket.size), max(0, int(bucket.level)), bucket.wait(bucket.size, now))
            for name, bucket in self._buckets.items()
        ]


@dataclass(slots=True)
class _Bucket:
    """A bucket that refills evenly by ``rate``, or whole at the start of each ``window`` of seconds."""

    size: float
    rate: float
    window: float | None
    at: float
    level: float = field(init=False)

    def __post_init__(self) -> None:
        self.level = self.size

    def wait(self, amount: float, now: float) -> float:
        """Refill, and return the seconds until ``amount`` fits. A larger amount than the bucket needs a full one."""
        missing = min(amount, self.size) - self._refill(now)
        if missing <= 1e-9:
            return 0.0
        return missing / self.rate if self.window is None else self.at + self.window - now

    def _refill(self, now: float) -> float:
        if self.window is None:
            self.level, self.at = min(self.size, self.level + (now - self.at) * self.rate), now
        elif now - self.at >= self.window:
            self.level, self.at = self.size, now - (now - self.at) % self.window
        return self.level
