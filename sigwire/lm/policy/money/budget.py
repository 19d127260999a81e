"""``Budget``: a limit for what the calls inside a ``with`` block spend."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import ClassVar, NoReturn, Self

from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.policy.money.ledger import Ledger, MemoryLedger
from sigwire.lm.policy.money.opened import close_budget, open_budget
from sigwire.lm.policy.money.queue import BudgetAccount
from sigwire.lm.policy.money.sums import Amounts, BudgetLimits, Sums, units

__all__ = ["Budget"]


class Budget(ChecksKeywords):
    """A limit for the calls of models inside a ``with`` block, in threads and tasks that it starts as well.

    ``money``: US dollars; ``tokens``: input and output; ``calls``: exchanges, retries and those that a provider refused among
    them, which take no tokens and no money; ``seconds``: a deadline for every call, from the first use of the budget. A budget
    without limits only counts. Each exchange reserves its upper bound before it is sent. It waits if other calls have reserved
    the rest, and raises ``BudgetSpent`` if it does not fit; it is settled by the usage that the provider sends. Calls under way
    at the limit end and are charged.

    ``strict``: calls without ``max_tokens`` or without a known price are refused, so that money and tokens are exact. A budget
    whose only limit is ``money`` always needs a price. Of nested budgets each is charged. ``path``: an SQLite file that has
    the ledger, for several processes; a new budget on the same file goes on where it ended.

    >>> from sigwire.lm.client import LM
    >>> lm = LM("offline/lexical")
    >>> with Budget(calls=2, tokens=50_000) as budget:
    ...     answers = lm("What is the capital of France?"), lm("And of Italy?")
    >>> budget.spent.calls, budget.left.calls
    (2, 0)
    >>> with budget:
    ...     lm("And of Spain?")
    Traceback (most recent call last):
    sigwire.errors.BudgetSpent: The budget is spent: 2 of 2 calls, and this call may take 1 (reserving its cost; ...
    """

    _renamed: ClassVar[Mapping[str, str]] = {"usd": "money", "dollars": "money", "cost": "money", "timeout": "seconds"}

    def __init__(
        self,
        *numbers: object,
        money: float | None = None,
        tokens: int | None = None,
        calls: int | None = None,
        seconds: float | None = None,
        strict: bool = False,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        if numbers:
            raise ConfigurationError(
                f"Budget({numbers[0]!r:.80}) does not name its limit (making it). Write Budget(money={numbers[0]!r:.80}) for "
                "US dollars, or tokens=, calls= or seconds=."
            )
        for name, limit in {"money": money, "seconds": seconds, "tokens": tokens, "calls": calls}.items():
            if limit is not None and not _is_limit(limit, whole=name in ("tokens", "calls")):
                raise ConfigurationError(f"{name} of a Budget is a number, 0 or more, not {limit!r:.80} (making it).")
        self.strict, self.seconds, self.path = strict, seconds, None if path is None else os.fspath(path)
        self._limits = BudgetLimits(calls, tokens, None if money is None else units(money))
        self._money = money
        self._ends: float | None = None
        self.account = BudgetAccount(self._limits, _make_ledger(self.path))

    # --- the block

    def __enter__(self) -> Self:
        self.deadline()
        open_budget(self)
        return self

    def __exit__(self, *error: object) -> None:
        close_budget(self)

    def deadline(self) -> float | None:
        """Return the end of ``seconds``, a time of ``time.monotonic()``; the first use starts it. ``None``: no limit."""
        if self._ends is None and self.seconds is not None:
            self._ends = time.monotonic() + self.seconds
        return self._ends

    # --- the amounts

    @property
    def spent(self) -> Amounts:
        """The amounts of the calls that ended."""
        return self.account.totals()[0].shown()

    @property
    def reserved(self) -> Amounts:
        """The upper bounds of the calls under way."""
        return self.account.totals()[1].shown()

    @property
    def left(self) -> Amounts:
        """The rest of each limit, without what is reserved; ``None``: no limit."""
        spent, reserved = self.account.totals()
        return self._limits.rest(spent.plus(reserved))

    @property
    def is_spent(self) -> bool:
        """Whether a call of this process did not fit, or the seconds are over. A smaller call may still fit.

        >>> Budget(calls=0).is_spent, Budget(seconds=0).is_spent
        (False, True)
        """
        ends = self.deadline()
        return bool(self.account.refused) or (ends is not None and time.monotonic() >= ends)

    @property
    def limits(self) -> Amounts:
        """The limits; ``None``: no limit."""
        return self._limits.rest(Sums())

    @property
    def needs_price(self) -> bool:
        """Whether a call without a known price is refused."""
        limits = self._limits
        return self.strict or (limits.money is not None and limits.calls is None and limits.tokens is None)

    def __repr__(self) -> str:
        limits = {
            "money": self._money,
            "tokens": self._limits.tokens,
            "calls": self._limits.calls,
            "seconds": self.seconds,
        }
        given = ", ".join(f"{name}={limit!r}" for name, limit in limits.items() if limit is not None)
        return f"<Budget({given}): {self.spent}>"

    # --- shared, not copied

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise ConfigurationError(
            "A Budget cannot be pickled: the copy would not see what this process spends. Make one in each process with the "
            'same file: Budget(path="budget.sqlite3", ...).'
        )


def _is_limit(value: object, *, whole: bool) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return math.isfinite(value) and value >= 0 and (not whole or isinstance(value, int))


def _make_ledger(path: str | None) -> Ledger:
    if path is None:
        return MemoryLedger()
    from sigwire.lm.policy.money.store import FileLedger  # only budgets of several processes need SQLite

    return FileLedger(path)
