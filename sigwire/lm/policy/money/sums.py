"""Calls, tokens and money as integers, so that sums and comparisons with a limit are exact.

Money is counted in units of 1e-12 dollars: a millionth of a price of 0.000001 dollars for a million tokens. Rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

from sigwire.core.json import Value
from sigwire.errors import BudgetSpent
from sigwire.show.numbers import money_text

__all__ = ["Amounts", "BudgetLimits", "Part", "Refusal", "Sums", "dollars", "units"]

Part: TypeAlias = Literal["calls", "tokens", "money"]
_UNITS = 10**12


def units(money: Decimal | float) -> int:
    """Return dollars in units of the ledger, rounded up.

    >>> units(0.1) + units(0.2) == units(0.3)
    True
    """
    exact = money if isinstance(money, Decimal) else Decimal(str(money))
    return math.ceil(exact * _UNITS)


def dollars(count: int) -> float:
    """Return units of the ledger in dollars."""
    return count / _UNITS


@dataclass(frozen=True, slots=True)
class Amounts(Value):
    """Calls, tokens and dollars of a budget; ``None``: no limit.

    ``unpriced``: calls whose price is not known, which are not in ``money``. ``estimated``: calls whose usage the provider did
    not send, such as cancelled ones; with them the amounts are lower bounds.
    """

    calls: int | None = 0
    tokens: int | None = 0
    money: float | None = 0.0
    unpriced: int = 0
    estimated: int = 0

    def __str__(self) -> str:
        at_least = "at least " if self.unpriced or self.estimated else ""
        known = [("calls", self.calls), ("tokens", self.tokens)]
        counts = [f"{count:,} {name}" for name, count in known if count is not None]
        money = [] if self.money is None else [money_text(self.money, 6)]
        return at_least + ", ".join([*money, *counts])


class Sums(NamedTuple):
    """Amounts of the ledger: ``money`` in units."""

    calls: int = 0
    tokens: int = 0
    money: int = 0
    unpriced: int = 0
    estimated: int = 0

    def plus(self, other: Sums) -> Sums:
        """Return the sum."""
        return Sums(*(mine + its for mine, its in zip(self, other, strict=True)))

    def minus(self, other: Sums) -> Sums:
        """Return the difference."""
        return Sums(*(mine - its for mine, its in zip(self, other, strict=True)))

    def shown(self) -> Amounts:
        """Return the amounts in dollars."""
        return Amounts(self.calls, self.tokens, dollars(self.money), self.unpriced, self.estimated)


class Refusal(NamedTuple):
    """A reservation that does not fit; ``final``: it would not fit either if all reservations of others came back."""

    part: Part
    spent: int
    limit: int
    needed: int
    final: bool

    def error(self) -> BudgetSpent:
        """Return the error for the caller."""
        part, is_money = self.part, self.part == "money"
        amounts = [dollars(amount) if is_money else amount for amount in (self.spent, self.limit, self.needed)]
        spent, limit, needed = (money_text(amount, 6) if is_money else f"{amount:,}" for amount in amounts)
        smaller = "" if part == "calls" else ", or give the call a smaller max_tokens"
        return BudgetSpent(
            f"The budget is spent: {spent} of {limit}{'' if is_money else f' {part}'}, and this call may take {needed} "
            f"(reserving its cost; nothing was sent). Raise Budget({part}=...){smaller}.",
            spent=amounts[0],
            limit=amounts[1],
            needed=amounts[2],
            part=part,
        )


class BudgetLimits(NamedTuple):
    """The limits of a budget; ``None``: no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: int | None = None

    def refusal(self, need: Sums, spent: Sums, reserved: Sums, own: Sums) -> Refusal | None:
        """Return the reason why ``need`` does not fit, final reasons first; ``None`` if it fits.

        ``reserved`` are all reservations, ``own`` those of the caller: they do not come back while the caller waits.

        >>> limits = BudgetLimits(calls=2)
        >>> limits.refusal(Sums(1), Sums(1), Sums(0), Sums())
        >>> limits.refusal(Sums(1), Sums(1), Sums(1), Sums()).final, limits.refusal(Sums(1), Sums(2), Sums(0), Sums()).final
        (False, True)
        """
        found: Refusal | None = None
        for place, part in enumerate(_PARTS):
            limit, needed, used = self[place], need[place], spent[place]
            if limit is None or used + reserved[place] + needed <= limit:
                continue
            final = used + own[place] + needed > limit
            if found is None or (final and not found.final):
                found = Refusal(part, used, limit, needed, final)
        return found

    def rest(self, used: Sums) -> Amounts:
        """Return the rest of each limit."""
        calls, tokens, money = (
            None if limit is None else max(limit - used[place], 0) for place, limit in enumerate(self)
        )
        return Amounts(calls, tokens, None if money is None else dollars(money))


_PARTS: tuple[Part, ...] = ("calls", "tokens", "money")
