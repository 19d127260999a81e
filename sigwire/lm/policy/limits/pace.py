"""The controls of a limiter, each moved by one signal: slots by overload, the rate of sends by refusals, buckets by numbers.

Pure: every method has the time as an argument, in seconds of one clock. ``Slots`` bounds the exchanges at once. ``Pace``
bounds the exchanges a second, once the provider has refused one (429). ``RefillBucket`` keeps a limit that the caller or a
reply's headers state. The constants come from a simulation (docs/decisions/0036); a test runs it.
"""

from __future__ import annotations

import math
from collections import deque

__all__ = ["Pace", "RefillBucket", "Slots"]


class Slots:
    """The number of exchanges at once. It doubles each round until the first overload, then moves in small steps.

    A refusal for the rate (429) does not move it: 20 exchanges a second of 20 ms each are less than one at once.

    >>> slots = Slots()
    >>> slots.succeed(sent=0.0, now=0.2, used=32)
    >>> slots.limit
    64.0
    >>> slots.overload(sent=0.0, now=0.2)
    >>> slots.limit
    51.2
    """

    __slots__ = ("_cut_at", "_most", "_round_at", "_was_used", "adaptive", "limit")

    def __init__(self, start: float = 32, most: float = 512, *, adaptive: bool = True) -> None:
        self.limit, self._most, self.adaptive = min(float(start), most), most, adaptive
        self._round_at, self._cut_at, self._was_used = -math.inf, -math.inf, False

    def succeed(self, sent: float, now: float, used: int) -> None:
        """Count a success. The first success of an exchange that the round sent ends the round; a used one adds slots."""
        if 2 * used >= self.limit:
            self._was_used = True
        if sent < self._round_at or not self.adaptive:
            return
        if self._was_used:
            is_first = self._cut_at == -math.inf
            self.limit = min(self._most, self.limit * 2 if is_first else self.limit * 1.05 + 1)
        self._round_at, self._was_used = now, False

    def overload(self, sent: float, now: float) -> None:
        """Remove a fifth of the slots, at most once a round and once in two seconds."""
        if self.adaptive and sent >= self._cut_at and now >= self._cut_at + 2:
            self.limit = max(1.0, self.limit * 0.8)
            self._round_at, self._cut_at, self._was_used = now, now, False


class Pace:
    """The rate of sends: unlimited until the first refusal, then the rate that the provider has accepted of late.

    A send counts as accepted until its reply refuses it, so slow answers do not hide the rate. The rate grows by 5 % a second,
    faster while none is refused. After three seconds without an accepted send the pace is closed: single probes are sent until
    one is not refused.

    A stray refusal does not lower the rate: at most one in 25 sends of late. A lone one among fewer sends lowers it until
    twenty later sends are answered.

    >>> pace = Pace()
    >>> for number in range(31):
    ...     pace.send(number / 10)
    >>> pace.refuse(sent=2.9, now=3.0, stated=None)
    >>> pace.refuse(sent=3.0, now=3.0, stated=None)
    >>> round(pace.rate, 2), round(pace.wait(3.0), 2)
    (9.33, 0.11)
    """

    __slots__ = (
        "_at",
        "_backoff",
        "_before",
        "_clean",
        "_level",
        "_opens_at",
        "_probe_at",
        "_refused",
        "_sends",
        "_set_at",
        "rate",
    )

    def __init__(self) -> None:
        self.rate = math.inf
        self._sends: deque[float] = deque(maxlen=_MOST_SENDS)
        self._refused: deque[float] = deque(maxlen=_MOST_SENDS)  # the times of sends that were refused
        self._set_at = -math.inf  # when a refusal last set the rate
        self._before, self._clean = 0.0, 0  # the rate before a lone refusal, else 0; the later sends that were answered
        self._level, self._at = 0.0, 0.0
        self._opens_at = -math.inf  # when the next probe may go; minus infinity while the pace is open
        self._probe_at = math.inf  # when the current probe went
        self._backoff = _FIRST_PROBE

    def wait(self, now: float) -> float:
        """Return the seconds until the next send."""
        if self.rate == math.inf:
            return 0.0
        if self._opens_at > -math.inf:
            if self._probe_at == math.inf:
                return max(0.0, self._opens_at - now)
            if now < self._probe_at + _PROBE_SECONDS:
                return self._probe_at + _PROBE_SECONDS - now
            self._open()  # a probe that is not refused at once is being answered
        self._refill(now)
        return max(0.0, (1.0 - self._level) / self.rate - 1e-9)

    def send(self, now: float) -> None:
        """Count a send."""
        self._sends.append(now)
        if self.rate < math.inf:
            if self._opens_at > -math.inf:
                self._probe_at = now
            self._refill(now)
            self._level -= 1.0

    def refuse(self, sent: float, now: float, stated: float | None) -> None:
        """Count a refused send. ``stated``: the wait that the refusal states; it matters to probes only."""
        self._refused.append(sent)
        self._before = 0.0
        if self._opens_at > -math.inf:
            if sent >= self._probe_at:
                self._close(now, stated)
            return
        accepted = self._accepted()
        since = min(now - 3, sent)
        refused = sum(at >= since for at in self._refused)
        is_stray = refused * _STRAY <= sum(at >= since for at in accepted)
        if sent >= self._set_at and not is_stray:  # else the rate is younger than the send
            if refused == 1:
                self._before, self._clean = self.rate, 0
            self._lower(accepted, now)
        if not accepted or accepted[-1] <= now - 3:
            self._close(now, stated)

    def accept(self, sent: float) -> None:
        """Count an answered send: the answer of a probe opens the pace."""
        if self._opens_at > -math.inf and sent >= self._probe_at:
            self._open()
        if self._before and sent >= self._set_at:
            self._clean += 1
            if self._clean == _ENOUGH_CLEAN:  # the refusal was a stray one
                self.rate, self._before = max(self.rate, self._before), 0.0

    def _lower(self, accepted: list[float], now: float) -> None:
        self._refill(now)
        seconds = now - self._sends[0] if self._sends else 0.0
        if self.rate == math.inf and seconds < 3:  # a guess from little
            self.rate = max(_LEAST_FIRST_RATE, len(accepted) / max(0.5, seconds))
        else:
            least = _LEAST_RATE if self.rate == math.inf else _MOST_CUT * self.rate
            self.rate = max(_LEAST_RATE, least, min(self.rate, _rate(accepted, now)))
        self._set_at, self._level = now, min(self._level, 0.0)

    def _close(self, now: float, stated: float | None) -> None:
        self._opens_at, self._probe_at = now + (stated or self._backoff), math.inf
        self._backoff = min(2 * self._backoff, _LONGEST_PROBE)

    def _open(self) -> None:
        self._opens_at, self._probe_at, self._backoff, self._level = -math.inf, math.inf, _FIRST_PROBE, 0.0

    def _refill(self, now: float) -> None:
        seconds = now - self._at
        if seconds <= 0 or self.rate == math.inf:
            self._at = max(self._at, now)
            return
        # Faster with each second without a refusal; slow rates see few sends in a second.
        faster = (now - self._set_at) * min(1.0, self.rate / _FAST_RATE)
        self.rate = min(self.rate * math.exp(min(_GROWTH * (1.0 + faster) * seconds, 1.0)), _MOST_RATE)
        self._level = min(self._level + seconds * self.rate, max(1.0, self.rate / 20))
        self._at = now

    def _accepted(self) -> list[float]:
        """Return the times of the sends that count, oldest first."""
        refused = sorted(self._refused, reverse=True)
        accepted: list[float] = []
        for at in self._sends:
            while refused and refused[-1] < at:
                refused.pop()
            if refused and refused[-1] == at:
                refused.pop()
            else:
                accepted.append(at)
        return accepted


def _rate(accepted: list[float], now: float) -> float:
    """Return the accepted sends a second: of the last 3 or 10 seconds; of the last 15 sends if they are few."""
    rate = max(sum(at > now - seconds for at in accepted) / seconds for seconds in (3, 10))
    if rate < 5 and accepted:
        last = accepted[-15:]
        rate = len(last) / max(3.0, now - last[0])
    return rate


_MOST_SENDS = 8192
_STRAY = 25  # one refusal in so many accepted sends is no sign of a limit
_ENOUGH_CLEAN = 20  # answers that prove a lone refusal wrong
_GROWTH, _FAST_RATE = 0.05, 40.0  # faster growth is in full from this rate on
_LEAST_FIRST_RATE, _LEAST_RATE, _MOST_RATE, _MOST_CUT = 20.0, 1 / 60, 1e6, 0.7
_FIRST_PROBE, _LONGEST_PROBE, _PROBE_SECONDS = 0.5, 8.0, 2.0


class RefillBucket:
    """A stated limit: ``limit`` units, refilled evenly over ``per`` seconds, full at the start.

    ``mirror`` takes over the numbers of a provider's reply.

    >>> bucket = RefillBucket(limit=10, per=60.0, now=0.0)
    >>> bucket.take(10, 0.0)
    >>> bucket.wait(2, 0.0)
    12.0
    """

    __slots__ = ("_at", "_level", "limit", "rate", "taken")

    def __init__(self, limit: float, per: float, now: float) -> None:
        self.limit, self.rate, self._level, self._at = float(limit), limit / per, float(limit), now
        self.taken = 0.0  # units taken since the start: ``mirror`` compares it with that of its exchange

    def wait(self, units: float, now: float) -> float:
        """Return the seconds until ``units`` are there. More units than the limit pass when the bucket is full."""
        missing = min(units, self.limit) - self.level(now)
        return max(0.0, missing / self.rate) if missing > 1e-9 else 0.0

    def take(self, units: float, now: float) -> None:
        """Take units; negative ones go back."""
        self._level = min(self.limit, self.level(now) - units)
        self.taken += units

    def level(self, now: float) -> float:
        """Return the units that are there; negative if more were taken."""
        if now > self._at:
            self._level = min(self.limit, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def mirror(self, limit: float, remaining: float, reset: float, *, taken: float, sent: float) -> None:
        """Take over limit, remainder and the seconds until it is full again, as a reply states them.

        Providers count when an exchange arrives, not when it is answered: ``sent`` is that time, and ``taken`` the value of
        ``taken`` then. Units taken later are not in the remainder.
        """
        self.limit = max(limit, 1.0)
        if reset > 0 and remaining < limit:
            self.rate = (limit - remaining) / reset
        self._level, self._at = min(self.limit, remaining - max(0.0, self.taken - taken)), sent
