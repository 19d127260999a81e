"""The ledger of one budget: what is spent, and what calls under way have reserved. Not locked: ``queue`` has the lock.

Crosses threads, tasks and event loops. A forked child goes on with a copy of what is spent, without the reservations of its
parent; ``store`` has the ledger that processes share.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from sigwire.lm.policy.money.sums import BudgetLimits, Refusal, Sums

__all__ = ["Ledger", "MemoryLedger", "Reserved"]


class Reserved(NamedTuple):
    """A reservation in a ledger, of a process."""

    number: int
    pid: int


class Ledger(Protocol):
    """The amounts of a budget that are spent and reserved."""

    @property
    def shared(self) -> bool:
        """Whether other processes write to it: nothing wakes a call that waits for them."""
        ...

    def totals(self) -> tuple[Sums, Sums]:
        """Return what is spent and what is reserved."""
        ...

    def check(self, need: Sums, limits: BudgetLimits, own: Iterable[Reserved]) -> Refusal | None:
        """Return the reason why ``need`` does not fit; ``None`` if it fits. ``own``: the caller's reservations."""
        ...

    def take(self, need: Sums, limits: BudgetLimits, own: Iterable[Reserved]) -> Reserved | Refusal:
        """Reserve ``need`` if it fits."""
        ...

    def settle(self, ticket: Reserved, charge: Sums) -> None:
        """Replace a reservation by what its call has used."""
        ...


class MemoryLedger:
    """A ledger in this process."""

    shared = False

    def __init__(self) -> None:
        self._spent = self._reserved = Sums()
        self._held: dict[int, Sums] = {}
        self._numbers, self._pid = 0, os.getpid()

    def totals(self) -> tuple[Sums, Sums]:
        self._forget_after_fork()
        return self._spent, self._reserved

    def check(self, need: Sums, limits: BudgetLimits, own: Iterable[Reserved]) -> Refusal | None:
        spent, reserved = self.totals()
        refusal = limits.refusal(need, spent, reserved, Sums())
        if refusal is None or refusal.final:
            return refusal
        mine = Sums()
        for ticket in own:
            mine = mine.plus(self._held.get(ticket.number, Sums()))
        return limits.refusal(need, spent, reserved, mine)

    def take(self, need: Sums, limits: BudgetLimits, own: Iterable[Reserved]) -> Reserved | Refusal:
        if (refusal := self.check(need, limits, own)) is not None:
            return refusal
        self._numbers += 1
        self._held[self._numbers] = need
        self._reserved = self._reserved.plus(need)
        return Reserved(self._numbers, self._pid)

    def settle(self, ticket: Reserved, charge: Sums) -> None:
        self._forget_after_fork()
        held = self._held.pop(ticket.number, None) if ticket.pid == self._pid else None
        if held is not None:
            self._reserved = self._reserved.minus(held)
            self._spent = self._spent.plus(charge)

    def _forget_after_fork(self) -> None:
        if self._pid != (pid := os.getpid()):
            self._pid, self._reserved, self._held = pid, Sums(), {}
