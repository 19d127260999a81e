"""``grid``: tests over every combination of some axes, of which ``make test`` runs a covering sample."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["grid"]


def grid(names: str, *axes: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by every combination of the axes; those outside of a sample are ``long``.

    The sample has every combination of all axes but the last, each with one value of the last axis, in turn. So it has every
    pair of values of two axes if the last axis is the shortest one.

    >>> [case.values for case in grid("n, word", [1, 2, 3], "ab").args[1] if not case.marks]
    [(1, 'a'), (2, 'b'), (3, 'a')]
    """
    cases: list[Any] = []
    *_, last = numbered = [list(enumerate(axis)) for axis in axes]
    for case in itertools.product(*numbered):
        *places, place = [place for place, _ in case]
        is_sampled = sum(places) % len(last) == place
        cases.append(pytest.param(*(value for _, value in case), marks=() if is_sampled else pytest.mark.long))
    return pytest.mark.parametrize(names, cases)
