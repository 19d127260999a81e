"""``LeaseBook``: which worker may send how many exchanges, and when. No network: ``coordinator`` serves it.

A worker asks for a permit when an exchange waits. A permit has a start time at most 0.2 seconds ahead, so a dead or slow worker
holds few. It reserves the upper bound of the exchange in the budgets, and the worker settles it by the usage. Permits of a
worker whose connection ends count as used, at their bounds: their exchanges may have been sent.

A permit may be used until ``slack`` seconds after its start; a worker that is later gives it back and asks with more slack. For
at most rate + 1 sends in any second, starts are (1 + slack) / rate apart: what is sent in a second has started in 1 + slack.
The largest slack holds as long as its permits can be in one second with later ones. So lateness costs rate, never the limit.

Messages are JSON of numbers only: no key, prompt or answer.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from sigwire.lm.policy.limits.pace import Pace
from sigwire.lm.policy.money.leases import LEAST_SLACK
from sigwire.lm.policy.money.queue import BudgetAccount, Held, reserve
from sigwire.lm.policy.money.sums import Refusal, Sums

__all__ = ["LeaseAsk", "LeaseBook", "LeaseReply", "Settlement"]

_AHEAD = 0.2  # seconds: the latest start of a permit
_POLL_SECONDS = 0.1  # until a reservation of another exchange may have been settled


class LeaseAsk(NamedTuple):
    """A permit that a worker asks for.

    ``own``: its permits that come back only after this exchange. Without ``waits`` the ask is refused if it does not fit now.
    ``slack``: seconds after the start of the permit in which it may be used.
    """

    need: Sums
    own: Sequence[int] = ()
    waits: bool = True
    slack: float = LEAST_SLACK


class Settlement(NamedTuple):
    """The amounts that the exchange of a permit has used; all zero: it was not sent.

    ``refused``: the wait that a rate limit (429) states, 0 if none.
    """

    number: int
    charge: Sums
    refused: float | None = None


class LeaseReply(NamedTuple):
    """Answers to the first asks, in their order: a number and the seconds until its start, or a refusal.

    ``again``: the seconds after which the worker asks for the rest; ``None`` if all are answered.
    """

    answers: list[tuple[int, float] | Refusal]
    again: float | None


class _Permit(NamedTuple):
    worker: Hashable
    start: float
    need: Sums
    held: Held


class LeaseBook:
    """The permits of one run. ``rate``: exchanges a second, spread evenly: at most ``rate`` + 1 are sent in any second.

    ``clock``: the time, in seconds.

    >>> book = LeaseBook(rate=10, clock=lambda: 0.0)
    >>> reply = book.answer("worker", [LeaseAsk(Sums(1))] * 5, [])
    >>> [round(delay, 3) for _, delay in reply.answers], round(reply.again, 3)
    ([0.0, 0.105], 0.11)
    """

    def __init__(
        self,
        *,
        rate: float | None = None,
        accounts: tuple[BudgetAccount, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate, self._accounts, self._clock = rate or math.inf, accounts, clock
        self._lock = threading.Lock()
        self._pace, self._last = Pace(), clock()
        self._next = -math.inf  # the earliest next start by the stated rate
        self._slack, self._slack_until = LEAST_SLACK, -math.inf
        self._permits: dict[int, _Permit] = {}
        self._number = 0
        self._waiting: dict[Hashable, None] = {}  # workers whose asks had to wait

    @property
    def is_paced(self) -> bool:
        """Whether a rate is stated, so that a permit must not be used late."""
        return self._rate < math.inf

    @property
    def rate(self) -> float:
        """The present exchanges a second: the stated ones, or fewer after a rate limit (429); infinity without either."""
        return min(self._rate, self._pace.rate)

    def answer(self, worker: Hashable, asks: Sequence[LeaseAsk], settled: Sequence[Settlement]) -> LeaseReply:
        """Settle permits, then answer the asks of a worker."""
        with self._lock:
            for each in settled:
                self._settle(each)
            return self._answer(worker, asks)

    def drop(self, worker: Hashable) -> None:
        """Count the permits of a worker that is gone as used."""
        with self._lock:
            self._waiting.pop(worker, None)
            for number, permit in list(self._permits.items()):
                if permit.worker == worker:
                    self._permits.pop(number).held.settle(permit.need._replace(estimated=permit.need.calls))

    def _settle(self, settled: Settlement) -> None:
        permit = self._permits.pop(settled.number, None)
        if permit is None:  # the connection of the worker ended in between, and the permit counts as used
            return
        permit.held.settle(settled.charge)
        if settled.refused is not None:
            self._pace.refuse(permit.start, self._clock(), settled.refused or None)
        elif settled.charge.calls:
            self._pace.accept(permit.start)

    def _answer(self, worker: Hashable, asks: Sequence[LeaseAsk]) -> LeaseReply:
        reply = LeaseReply([], None)
        for ask in asks:
            now = self._clock()
            if self._last > self._slack_until or ask.slack > self._slack:
                self._widen(ask.slack)
            start = self._next_start(now)
            if start > now + _AHEAD + 1e-9:
                return reply._replace(again=start - now - _AHEAD / 2 + self._queued(worker) / self.rate)
            outcome = self._reserve(ask)
            if outcome is None:
                return reply._replace(again=_POLL_SECONDS)
            reply.answers.append(outcome if isinstance(outcome, Refusal) else self._grant(worker, ask, outcome, start))
        self._waiting.pop(worker, None)
        return reply

    def _next_start(self, now: float) -> float:
        """Return the earliest start of a permit. Starts are given ahead of the clock, so the last one is the present."""
        at = max(now, self._last)
        return max(at + self._pace.wait(at), self._next)

    def _widen(self, slack: float) -> None:
        """Set the slack of the permits to come; the next start is as far from the last as the larger slack asks."""
        self._next += max(0.0, slack - self._slack) / self._rate
        self._slack = slack

    def _queued(self, worker: Hashable) -> int:
        """Return how many other workers wait before this one: each comes again in its turn, and not all at once."""
        self._waiting.setdefault(worker)
        return next(place for place, each in enumerate(self._waiting) if each == worker)

    def _reserve(self, ask: LeaseAsk) -> Held | Refusal | None:
        """Reserve the bound of an exchange; ``None`` if reservations of others may come back."""
        own = [permit.held for number in ask.own if (permit := self._permits.get(number)) is not None]
        outcome = reserve(self._accounts, ask.need, own, waits=False)
        if isinstance(outcome, Refusal) and not outcome.final and ask.waits:
            return None
        assert isinstance(outcome, Held | Refusal)
        return outcome

    def _grant(self, worker: Hashable, ask: LeaseAsk, held: Held, start: float) -> tuple[int, float]:
        self._number += 1
        self._permits[self._number] = _Permit(worker, start, ask.need, held)
        self._waiting.pop(worker, None)
        self._last = start
        self._pace.send(start)
        self._next = start + (1 + self._slack) / self._rate
        if ask.slack == self._slack:
            self._slack_until = start + 1 + self._slack
        return self._number, max(0.0, start - self._clock())
