"""The Pareto front of entries that are measured by several numbers: the one function of plots, searches and experiments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

__all__ = ["pareto_front"]

K = TypeVar("K", bound=Hashable)


def pareto_front(entries: Mapping[K, Sequence[float]]) -> list[K]:
    """Return the names of the entries that no other dominates, in their order.

    An entry dominates another if it is as large in each number and larger in one: pass a cost with a minus. Equal entries
    stay together. An entry with a NaN dominates none, and none dominates it; leave out what is not measured.

    >>> pareto_front({"cheap": (0.6, -1.0), "dear": (0.9, -5.0), "beaten": (0.6, -2.0), "as cheap": (0.6, -1.0)})
    ['cheap', 'dear', 'as cheap']
    """
    rest = {name: tuple(values) for name, values in entries.items()}
    return [name for name, values in rest.items() if not any(_dominates(other, values) for other in rest.values())]


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))
