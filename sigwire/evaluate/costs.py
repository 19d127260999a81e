"""Sums of costs in US dollars, of which a part may be unknown.

A sum with a known part is a lower bound, shown as ``≥ $0.06``; it is never 0 for requests whose price is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

from sigwire.evaluate.cell import Cell
from sigwire.show.numbers import money_text

__all__ = ["KnownCost", "add_cost", "add_costs", "cost_text", "metric_cost", "program_cost"]

KnownCost = tuple[float, bool]
"""The known part of a cost, and whether it is all of it."""


def program_cost(cell: Cell) -> KnownCost:
    """Return the cost of the program in a run; a run without requests costs nothing.

    >>> program_cost(Cell(1.0, requests=2, known_cost=0.5)), program_cost(Cell(1.0))
    ((0.5, False), (0.0, True))
    """
    return _known(cell.cost, cell.known_cost, cell.requests)


def metric_cost(cell: Cell) -> KnownCost:
    """Return the cost of the metric in a run."""
    return _known(cell.metric_cost, cell.known_metric_cost, cell.metric_requests)


def _known(cost: float | None, known: float, requests: int) -> KnownCost:
    return (known, not requests) if cost is None else (cost, True)


def add_cost(cost: float | None, is_partial: bool, more: KnownCost) -> tuple[float | None, bool]:
    """Return the sum of a cost, ``None`` if nothing of it is known, and one more; and whether it is partial.

    >>> add_cost(0.0, False, (0.0, False)), add_cost(None, True, (0.06, True))
    ((None, True), (0.06, True))
    """
    known, is_partial = (cost or 0.0) + more[0], is_partial or not more[1]
    return (None if is_partial and not known else known), is_partial


def add_costs(costs: Iterable[KnownCost]) -> tuple[float | None, bool]:
    """Return the sum of costs, ``None`` if nothing of it is known, and whether it is partial."""
    cost: float | None = 0.0
    is_partial = False
    for each in costs:
        cost, is_partial = add_cost(cost, is_partial, each)
    return cost, is_partial


def cost_text(cost: float | None, is_partial: bool) -> str:
    """Return a cost for people.

    >>> cost_text(0.06, True), cost_text(0.75, False), cost_text(None, True)
    ('≥ $0.06', '$0.75', 'unknown')
    """
    return "unknown" if cost is None else f"{'≥ ' if is_partial else ''}{money_text(cost)}"
