"""Reservations in all open budgets at once, and the queue of calls that wait for reservations of others to come back.

One lock for all budgets: a reservation is taken in all of them or in none. Each settled reservation wakes the calls that now
fit, first come first served among calls with the same budgets. The lock is held for a few sums, and for a commit if a budget is
in a file. A forked child has a lock and queues of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeAlias

from sigwire.effects.forks import on_fork
from sigwire.lm.policy.guard import Guard
from sigwire.lm.policy.money.ledger import Ledger, Reserved
from sigwire.lm.policy.money.sums import BudgetLimits, Refusal, Sums
from sigwire.lm.policy.waiting import claim

__all__ = ["BudgetAccount", "Held", "is_awaited", "reserve", "withdraw"]


@dataclass(frozen=True, slots=True, eq=False)
class BudgetAccount:
    """The limits and the ledger of one budget. ``refused``: the last reservation of this process that did not fit."""

    limits: BudgetLimits
    ledger: Ledger
    refused: list[Refusal] = field(default_factory=list["Refusal"])

    def totals(self) -> tuple[Sums, Sums]:
        """Return what is spent and what is reserved."""
        return _state.guard.use(self.ledger.totals)


_Ticket: TypeAlias = tuple[BudgetAccount, Reserved]
_NOTHING = Sums()


class Held:
    """A reservation in several accounts."""

    __slots__ = ("tickets",)

    def __init__(self, tickets: Sequence[_Ticket]) -> None:
        self.tickets = tickets

    def settle(self, charge: Sums) -> None:
        """Replace the reservation by ``charge``, what the call has used, and wake waiting calls. Only once."""
        tickets, self.tickets = self.tickets, ()
        _state.guard.release(_settle, tickets, charge)

    def note(self, error: BaseException) -> None:
        """Note how the exchange failed, before ``settle``. Budgets of this process do not need it."""

    def numbers(self, account: BudgetAccount) -> list[Reserved]:
        """Return the reservations in one account."""
        return [ticket for place, ticket in self.tickets if place is account]


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    number: int
    need: Sums
    own: Sequence[Held]
    future: Future[Held]


class _State:
    def __init__(self) -> None:
        self.guard = Guard()
        self.numbers = 0
        self.queues: dict[tuple[BudgetAccount, ...], deque[_Waiter]] = {}


_state = _State()


@on_fork
def _reset_after_fork() -> None:
    global _state
    _state = _State()


def reserve(
    accounts: tuple[BudgetAccount, ...], need: Sums, own: Sequence[Held], *, waits: bool = True
) -> Held | Future[Held] | Refusal:
    """Reserve ``need`` in all accounts. Returns a future if it does not fit now, and a refusal if it never fits.

    Without ``waits``, or if an account is shared with other processes, which wake no future, a refusal may be not final.
    """
    return _state.guard.use(_reserve, accounts, need, own, waits)


def _reserve(
    accounts: tuple[BudgetAccount, ...], need: Sums, own: Sequence[Held], waits: bool
) -> Held | Future[Held] | Refusal:
    waits = waits and not any(account.ledger.shared for account in accounts)
    is_first = not waits or accounts not in _state.queues
    outcome = _take(accounts, need, own) if is_first else _refusal(accounts, need, own)
    if isinstance(outcome, Held) or (outcome is not None and (outcome.final or not waits)):
        return outcome
    _state.numbers += 1
    future: Future[Held] = Future()
    _state.queues.setdefault(accounts, deque()).append(_Waiter(_state.numbers, need, own, future))
    return future


def is_awaited(accounts: tuple[BudgetAccount, ...]) -> bool:
    """Return True if a call waits for a reservation in these accounts."""
    return accounts in _state.queues


def withdraw(future: Future[Held]) -> None:
    """Leave the queue; a reservation that was made at the same moment is given back."""
    _state.guard.release(_withdraw, future)


def _withdraw(future: Future[Held]) -> None:
    held = None if future.cancel() or future.exception() is not None else future.result(0)
    _settle(held.tickets if held is not None else (), Sums())


def _settle(tickets: Sequence[_Ticket], charge: Sums) -> None:
    _give_back(tickets, charge)
    _wake()


def _give_back(tickets: Sequence[_Ticket], charge: Sums = _NOTHING) -> None:
    for account, ticket in tickets:
        account.ledger.settle(ticket, charge)


def _wake() -> None:
    """Resolve the futures of the calls that now fit or never fit."""
    blocked: set[BudgetAccount] = set()
    for accounts in sorted(_state.queues, key=_first_number):
        queue = _state.queues[accounts]
        while queue and blocked.isdisjoint(accounts):
            waiter = queue[0]
            outcome = None if waiter.future.cancelled() else _take(accounts, waiter.need, waiter.own)
            if isinstance(outcome, Refusal) and not outcome.final:
                blocked.update(accounts)
            else:
                queue.popleft()
                _resolve(waiter.future, outcome)
        if not queue:
            del _state.queues[accounts]


def _first_number(accounts: tuple[BudgetAccount, ...]) -> int:
    return _state.queues[accounts][0].number


def _resolve(future: Future[Held], outcome: Held | Refusal | None) -> None:
    # A future that is set to running cannot be cancelled between the check and the result.
    is_waiting = outcome is not None and claim(future)
    if isinstance(outcome, Refusal) and is_waiting:
        future.set_exception(outcome.error())
    elif isinstance(outcome, Held) and is_waiting:
        future.set_result(outcome)
    elif isinstance(outcome, Held):
        _give_back(outcome.tickets)


def _take(accounts: Sequence[BudgetAccount], need: Sums, own: Sequence[Held]) -> Held | Refusal:
    if (refusal := _refusal(accounts, need, own)) is not None:
        return refusal
    tickets: list[tuple[BudgetAccount, Reserved]] = []
    for account in accounts:
        outcome = account.ledger.take(need, account.limits, _tickets(own, account))
        if isinstance(outcome, Refusal):  # another process was faster
            _give_back(tickets)
            return outcome
        tickets.append((account, outcome))
    return Held(tickets)


def _refusal(accounts: Sequence[BudgetAccount], need: Sums, own: Sequence[Held]) -> Refusal | None:
    """Return why ``need`` does not fit: a final reason, else that of the outermost account."""
    refusals = [account.ledger.check(need, account.limits, _tickets(own, account)) for account in accounts]
    found = [refusal for refusal in refusals if refusal is not None]
    for account, refusal in zip(accounts, refusals, strict=True):
        if refusal is not None and refusal.final:
            account.refused[:] = [refusal]
    return next((refusal for refusal in found if refusal.final), found[0] if found else None)


def _tickets(own: Sequence[Held], account: BudgetAccount) -> list[Reserved]:
    return [ticket for held in own for ticket in held.numbers(account)]
