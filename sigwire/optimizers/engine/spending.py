"""The budget of a search and its totals. Runs that a journal holds count as they did when they were made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn

from sigwire.core.response import Usage
from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.costs import add_costs, metric_cost, program_cost
from sigwire.lm.policy.money.budget import Budget
from sigwire.optimizers.events import Spent

__all__ = ["Spending", "cost_of_run", "read_budget"]


def read_budget(given: object) -> Budget:
    """Return a budget; a number is a limit of calls.

    >>> read_budget(200).limits.calls
    200
    """
    if given is None:
        return Budget()
    if isinstance(given, Budget):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return Budget(calls=given)
    raise ConfigurationError(
        f"budget is a number of calls or a Budget, not {given!r:.80} (making an optimizer). Write budget=200, or "
        "budget=Budget(money=2.0)."
    )


class Spending:
    """The totals of a search beside their limits. ``clock`` returns seconds; ``runs``: a limit of runs before test rows."""

    def __init__(self, budget: Budget, clock: Callable[[], float], runs: int | None = None) -> None:
        self._limits, self._seconds, self._runs = budget.limits, budget.seconds, runs
        self._clock, self._began = clock, clock()
        self.total = Spent()
        self._worst = Spent(calls=1)  # of one run

    def add(self, spent: Spent) -> None:
        """Add what one run or one answer of the writing model cost."""
        self.total = self.total.plus(spent)
        worst = self._worst
        if spent.runs and (
            spent.calls > worst.calls or spent.tokens > worst.tokens or (spent.money or 0) > (worst.money or 0)
        ):
            self._worst = replace(
                worst,
                calls=max(worst.calls, spent.calls),
                tokens=max(worst.tokens, spent.tokens),
                money=max(worst.money or 0.0, spent.money or 0.0),
            )

    def fitting(self, runs: int) -> int:
        """Return how many of ``runs`` more runs fit by the costliest run until now. Raises ``BudgetSpent`` if none fits, or if
        all of them would not fit at their mean cost."""
        self.check_time()
        fits = runs
        for part, limit, spent, worst in self._parts():
            if limit is None or runs == 0:
                continue
            mean = spent / self.total.runs if self.total.runs else worst
            rest = limit - spent
            if rest < worst or rest < mean * runs:
                self._refuse(part, spent, limit, max(worst, mean * runs))
            if worst:
                fits = min(fits, int(rest // worst))
        return fits

    def share(self, spent: Spent) -> float:
        """Return the largest part of a limit that is spent, 0 without limits."""
        used = {"runs": spent.runs, "calls": spent.calls, "tokens": spent.tokens, "money": spent.money or 0.0}
        shares = [used[part] / limit for part, limit, _, _ in self._parts() if limit]
        shares += [(self._clock() - self._began) / self._seconds] if self._seconds else []
        return max(shares, default=0.0)

    def end_search(self) -> None:
        """Lift the limit of runs: what follows are test rows."""
        self._runs = None

    def check_time(self) -> None:
        """Raise ``BudgetSpent`` if the seconds of the budget are over."""
        if self._seconds is not None and (passed := self._clock() - self._began) >= self._seconds:
            self._refuse("seconds", passed, self._seconds, 0)

    def rest(self) -> Budget | None:
        """Return a budget of what is left, which holds the calls of a block of runs to the limits; ``None`` without limits."""
        left = {part: max(0, limit - spent) for part, limit, spent, _ in self._parts() if limit is not None}
        left.pop("runs", None)
        if not left:
            return None
        calls, tokens, money = left.get("calls"), left.get("tokens"), left.get("money")
        return Budget(
            calls=None if calls is None else int(calls), tokens=None if tokens is None else int(tokens), money=money
        )

    def _parts(self) -> tuple[tuple[str, float | None, float, float], ...]:
        limits, total, worst = self._limits, self.total, self._worst
        return (
            ("runs", self._runs, total.runs, 1),
            ("calls", limits.calls, total.calls, worst.calls),
            ("tokens", limits.tokens, total.tokens, worst.tokens),
            ("money", limits.money, total.money or 0.0, worst.money or 0.0),
        )

    def _refuse(self, part: str, spent: float, limit: float, needed: float) -> NoReturn:
        raise BudgetSpent(
            f"The budget of the search is spent: {spent:g} of {limit:g} {part}, and the next runs may take {needed:g}.",
            part=part,
            spent=spent,
            limit=limit,
            needed=needed,
        )


def cost_of_run(cell: Cell) -> Spent:
    """Return what a run cost, its metric included."""
    usage = [Usage.from_json(counts) for counts in cell.usage.values()]
    money, is_partial = add_costs((program_cost(cell), metric_cost(cell)))
    return Spent(
        runs=1,
        calls=cell.requests + cell.metric_requests,
        tokens=sum((each.input_tokens or 0) + (each.output_tokens or 0) for each in usage),
        money=money,
        seconds=cell.seconds,
        is_partial=is_partial,
    )
