"""Objectives of a search: the headline score, further scores of the metric, and what a run takes.

A score is better if it is larger, a cost if it is smaller. Costs are those of the program, without its metric, as if every
answer had been asked: a hit of a cache or of an earlier candidate counts what the answer took when it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_items
from sigwire.core.response import Usage
from sigwire.errors import ConfigurationError, suggest
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.costs import program_cost

__all__ = ["COSTS", "HEADLINE", "are_objectives", "costs_of", "named_objectives", "unknown_objective"]

HEADLINE = "score"
"""The name of the headline score, beside the name of its metric."""


def _tokens(cell: Cell) -> float | None:
    if cell.hits and not cell.spared:  # of a journal without objectives
        return None
    counts = [_total(usage) for part in (cell.usage, cell.spared) for usage in part.values()]
    return None if None in counts else float(sum(each or 0 for each in counts))


def _total(usage: JsonObject) -> int | None:
    return Usage.from_json(usage).total_tokens


def _cost(cell: Cell) -> float | None:
    known, is_whole = program_cost(cell)
    if cell.spared_cost is None or not is_whole or (cell.hits and not cell.spared):
        return None
    return known + cell.spared_cost


COSTS: Mapping[str, Callable[[Cell], float | None]] = {
    "cost": _cost,
    "tokens": _tokens,
    "calls": lambda cell: float(cell.requests + cell.hits),
    "seconds": lambda cell: cell.seconds,
}
"""The amounts of a run by objective; ``None`` if it is unknown. ``cost`` in US dollars; ``calls`` to models."""


def costs_of(cell: Cell, objectives: Sequence[str]) -> dict[str, float]:
    """Return the known costs of a run that are objectives.

    >>> cell = Cell(1.0, requests=2, hits=1, usage={"m": {"input_tokens": 5}}, spared={"m": {"input_tokens": 3}})
    >>> costs_of(cell, ("score", "calls", "tokens"))
    {'calls': 3.0, 'tokens': 8.0}
    """
    found = {name: COSTS[name](cell) for name in objectives if name in COSTS}
    return {name: value for name, value in found.items() if value is not None}


def are_objectives(given: object) -> bool:
    """Return True for distinct names.

    >>> are_objectives(("score", "tokens")), are_objectives("tokens"), are_objectives(["f1", "f1"])
    (True, False, False)
    """
    names = given if is_items(given) else ()
    return 0 < len({*map(str, names)}) == len(names) and all(isinstance(name, str) for name in names)


def named_objectives(given: Sequence[str], headline: str) -> tuple[tuple[str, ...], str]:
    """Return the objectives, the headline among them, and the name that it has there: ``headline`` or "score".

    >>> named_objectives(("tokens",), "exact"), named_objectives(["exact", "f1"], "exact")
    ((('score', 'tokens'), 'score'), (('exact', 'f1'), 'exact'))
    """
    name = next((each for each in given if each in (HEADLINE, headline)), HEADLINE)
    return (tuple(given) if name in given else (name, *given)), name


def unknown_objective(name: str, scores: Sequence[str]) -> ConfigurationError:
    """Return the error of an objective that the first runs do not have. ``scores``: what the metric measures besides."""
    if name in COSTS:
        others = ", ".join(f'"{each}"' for each in COSTS if each != name)
        return ConfigurationError(
            f"The objective {name!r} is not known of the first runs (searching): the model has no known price, or the provider "
            f"counts nothing. Give the model a price, LM(price=Price(...)), or write one of {others}."
        )
    known = (HEADLINE, *scores, *COSTS)
    return ConfigurationError(
        f"The metric has no score {name!r} (searching). {suggest(name, known)}Objectives are {', '.join(known)}. Return the "
        "score as a subscore, or name one of these."
    )
