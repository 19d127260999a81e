"""``Leased``: the layer that holds a permit of a coordinator while an exchange runs; ``money_layers``: the layers of a call.

The permits of a coordinator bound the rate, calls, tokens and money of several processes. The layer is inside the limiter: a
permit has a start time, and the exchange starts when its permit does. No I/O: a ``LeaseSource`` has the connection.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Self

from sigwire.effects.steps import Steps
from sigwire.errors import LMRateLimitError
from sigwire.lm.policy.call import Call, Layer
from sigwire.lm.policy.money.ledger import MemoryLedger, Reserved
from sigwire.lm.policy.money.opened import OpenBudget, close_budget, open_budget
from sigwire.lm.policy.money.prices import Price
from sigwire.lm.policy.money.queue import BudgetAccount, Held
from sigwire.lm.policy.money.reserve import Priced, Reserve, blocks_a_loop, still_held
from sigwire.lm.policy.money.sums import BudgetLimits, Sums
from sigwire.lm.policy.waiting import Wait

__all__ = ["LEAST_SLACK", "Lease", "LeaseSource", "Leased", "money_layers"]


LEAST_SLACK = 0.05
"""Seconds: the slack of a first ask. It costs a twentieth of the rate."""
_MOST_SLACK = 3.0  # of a process that is always late: its permit is used all the same


class LeaseSource:
    """The coordinator of several processes, as the layer sees it: a budget that is open in a ``with`` block.

    ``strict`` and ``needs_price``: as of ``Budget``.
    """

    strict = needs_price = False

    def __init__(self) -> None:
        self.account = BudgetAccount(
            BudgetLimits(), MemoryLedger()
        )  # the key of its leases; the coordinator has the amounts

    def __enter__(self) -> Self:
        open_budget(self)
        return self

    def __exit__(self, *error: object) -> None:
        close_budget(self)

    def deadline(self) -> float | None:
        """Return ``None``: each call has its own deadline."""
        return None

    def lease(self, need: Sums, own: Sequence[int], *, waits: bool, slack: float = LEAST_SLACK) -> Future[Lease]:
        """Return the permit of an exchange, which resolves at its start time. It fails with the reason of a refusal.

        ``own``: numbers of leases that the caller holds. Without ``waits``, what does not fit now is refused.
        ``slack``: seconds after its start in which the permit may be used.
        """
        raise NotImplementedError

    def settle(self, number: int, charge: Sums, refused: float | None) -> None:
        """Report what the exchange of a permit has used. ``refused``: the wait that a rate limit (429) states, 0 if none.

        It must not wait: ``finally`` blocks call it.
        """
        raise NotImplementedError


class Lease(Held):
    """The permit of one exchange. ``last``: the time of ``time.monotonic()`` until which it may be used."""

    __slots__ = ("_refused", "_source", "last", "number")

    def __init__(self, source: LeaseSource, number: int, last: float) -> None:
        super().__init__(((source.account, Reserved(number, os.getpid())),))
        self._source, self.number, self.last = source, number, last
        self._refused: float | None = None

    def note(self, error: BaseException) -> None:
        if isinstance(error, LMRateLimitError):
            self._refused = error.retry_after or 0.0

    def settle(self, charge: Sums) -> None:
        if self.tickets:
            self.tickets = ()
            self._source.settle(self.number, charge, self._refused)


class Leased(Reserve):
    """The layer that takes a permit for each exchange, and settles it by the usage."""

    __slots__ = ()

    def hold(self, call: Call, need: Sums) -> Steps[Held]:
        """Return a permit when it starts. Raises ``BudgetSpent`` if the coordinator refuses it."""
        (source,) = self.budgets
        assert isinstance(source, LeaseSource)
        own = [ticket.number for held in still_held() for ticket in held.numbers(source.account)]
        asked = time.monotonic()
        slack = LEAST_SLACK
        lease: Lease = yield _LeaseEffect(source, need, own, call.deadline, slack)
        while time.monotonic() > lease.last and slack < _MOST_SLACK:  # sent now, it would go beside later ones
            lease.settle(Sums())
            slack *= 4
            lease = yield _LeaseEffect(source, need, own, call.deadline, slack)
        call.report.queued += time.monotonic() - asked
        return lease


@dataclass(frozen=True, slots=True)
class _LeaseEffect:
    """Effect: wait for a permit. A wait that ends early gives it back."""

    source: LeaseSource
    need: Sums
    own: Sequence[int]
    deadline: float | None
    slack: float

    def run(self) -> Lease:
        future = self.source.lease(self.need, self.own, waits=not blocks_a_loop(), slack=self.slack)
        try:
            return Wait(future, self.deadline).run()
        except BaseException:
            _give_back(future)
            raise

    async def arun(self) -> Lease:
        future = self.source.lease(self.need, self.own, waits=True, slack=self.slack)
        try:
            return await Wait(future, self.deadline).arun()
        except BaseException:
            _give_back(future)
            raise


def _give_back(future: Future[Lease]) -> None:
    if not future.cancel() and future.exception() is None:  # resolved at the same moment
        future.result(0).settle(Sums())


def money_layers(
    budgets: tuple[OpenBudget, ...], price: Price | None, output_limit: int | None, limiter: Layer | None
) -> tuple[Layer, ...]:
    """Return the layers for the open budgets and ``LM(price=)`` around the limiter, and those for leases inside it.

    ``output_limit``: the most output tokens of the model, if it is known.
    """
    leased: list[Layer] = [Leased((each,), price, output_limit) for each in budgets if isinstance(each, LeaseSource)]
    local = tuple(each for each in budgets if not isinstance(each, LeaseSource))
    outer: list[Layer] = [] if leased else [Priced(price)]
    if local:
        outer = [Reserve(local, price, output_limit)]
    return (*outer, *([] if limiter is None else [limiter]), *leased)
