"""The ledger of one budget: what is spent, and what calls under way have reserved. Not locked: ``queue`` has the lock.

Crosses threads, tasks and event loops. A forked child goes on with a copy of what is spent, without the reservations of its
parent; ``store`` has the ledger that processes share.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import NamedTuple, Protocol

from sigwire.lm.policy.money.sums import BudgetLimits, Refusal, Sums

__all__ = ["Ledger", "MemoryLedger", "Owner", "Ticket", "running_owner"]

Owner = tuple[int, int]
"""A thread and a task. What it has reserved does not come back while it waits."""


class Ticket(NamedTuple):
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

    def check(self, need: Sums, limits: BudgetLimits, owner: Owner) -> Refusal | None:
        """Return the reason why ``need`` does not fit; ``None`` if it fits."""
        ...

    def take(self, need: Sums, limits: BudgetLimits, owner: Owner) -> Ticket | Refusal:
        """Reserve ``need`` if it fits."""
        ...

    def settle(self, ticket: Ticket, charge: Sums) -> None:
        """Replace a reservation by what its call has used."""
        ...


class MemoryLedger:
    """A ledger in this process."""

    shared = False

    def __init__(self) -> None:
        self._spent = self._reserved = Sums()
        self._held: dict[int, tuple[Sums, Owner]] = {}
        self._numbers, self._pid = 0, os.getpid()

    def totals(self) -> tuple[Sums, Sums]:
        self._forget_after_fork()
        return self._spent, self._reserved

    def check(self, need: Sums, limits: BudgetLimits, owner: Owner) -> Refusal | None:
        spent, reserved = self.totals()
        refusal = limits.refusal(need, spent, reserved, Sums())
        if refusal is None or refusal.final:
            return refusal
        own = Sums()
        for held, holder in self._held.values():
            own = own.plus(held) if holder == owner else own
        return limits.refusal(need, spent, reserved, own)

    def take(self, need: Sums, limits: BudgetLimits, owner: Owner) -> Ticket | Refusal:
        if (refusal := self.check(need, limits, owner)) is not None:
            return refusal
        self._numbers += 1
        self._held[self._numbers] = need, owner
        self._reserved = self._reserved.plus(need)
        return Ticket(self._numbers, self._pid)

    def settle(self, ticket: Ticket, charge: Sums) -> None:
        self._forget_after_fork()
        held = self._held.pop(ticket.number, None) if ticket.pid == self._pid else None
        if held is not None:
            self._reserved = self._reserved.minus(held[0])
            self._spent = self._spent.plus(charge)

    def _forget_after_fork(self) -> None:
        if self._pid != (pid := os.getpid()):
            self._pid, self._reserved, self._held = pid, Sums(), {}


def running_owner() -> Owner:
    """Return the running thread, and its task if it runs one."""
    asyncio = sys.modules.get("asyncio")  # without it there is no task
    task = None
    if asyncio is not None:
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no event loop in this thread
            task = None
    return threading.get_ident(), id(task) if task is not None else 0
