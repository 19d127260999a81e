"""Means and differences of scores by example and seed: the seed is a second source of luck beside the example.

A seed is a whole replicate: another search, another sample of every answer. Scores are a table, a row for each example with
its score at each seed. The mean of the table has three intervals: over the means of rows (``mean_interval``,
``paired_difference``; clusters as well), over the means of seeds (by t), and crossed, of both at once: the mean squares of rows
and seeds less those of the rest, with Satterthwaite's degrees of freedom, or those of seeds if they are more. The interval is
the widest, p the largest of the three (docs/decisions/0094-seeds-are-luck.md). With one seed only the first can be made.

F. E. Satterthwaite, Biometrics Bulletin 2, 1946, 110-114. Clusters of rows, crossed with seeds: A. C. Cameron, J. B. Gelbach,
D. L. Miller, J. Bus. Econ. Stat. 29, 2011, 238-249.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeAlias

from sigwire.evaluate.quantiles import t_of, t_p, t_quantile
from sigwire.evaluate.statistics import (
    TOO_FEW,
    Clusters,
    Interval,
    PairedDifference,
    is_bounded,
    mean_interval,
    no_interval_reason,
    paired_difference,
    reaching_zero,
    standard_error,
    wilson_interval,
)

__all__ = ["ScoreTable", "seeds_difference", "seeds_interval", "seeds_p"]

ScoreTable: TypeAlias = "Sequence[Sequence[float]]"
"""For each example its score at each seed; all rows have the same seeds, in one order."""


def seeds_interval(table: ScoreTable, clusters: Clusters | None = None, *, confidence: float = 0.95) -> Interval | None:
    """Return the interval of the mean of a table: the widest of those over rows, over seeds and crossed.

    With one seed it is ``mean_interval``. If all scores are 0, or all are 1, it is Wilson's, of the rows or clusters. ``None``:
    scores that are not between 0 and 1 have fewer than five rows or clusters, or all scores are equal.

    >>> seeds_interval([[1, 0.5, 0], [1, 1, 0.5], [0, 0.5, 0], [1, 1, 1]] * 5)
    Interval(low=0.087..., high=1.0, method='t over 3 seeds', is_few=False)
    >>> seeds_interval([[1, 1]] * 200).method
    'Wilson'
    """
    if not table or len(table[0]) == 1:
        return mean_interval([row[0] for row in table], clusters, confidence=confidence)
    first, values = table[0][0], [fmean(row) for row in table]
    if first in (0, 1) and all(score == first for row in table for score in row):
        return wilson_interval(first, len(table) if clusters is None else len(set(clusters)), confidence=confidence)
    if no_interval_reason(values, clusters) == TOO_FEW:
        return None
    rows = mean_interval(values, clusters, confidence=confidence)
    least, most = (0.0, 1.0) if all(map(is_bounded, table)) else (-math.inf, math.inf)
    return _widest(rows, _looks(table, clusters), confidence, least, most)


def seeds_difference(
    first: ScoreTable,
    second: ScoreTable,
    clusters: Clusters | None = None,
    *,
    confidence: float = 0.95,
    is_single_run: bool = True,
    seed: int = 0,
) -> PairedDifference:
    """Return the difference of two programs on the same examples at the same seeds.

    With one seed it is ``paired_difference``. Of several, the interval is the widest and p the largest of the three; an
    interval reaches to 0 where p is not significant, so that both give one verdict. ``wins`` and ``losses`` are rows by their
    means; ``smallest`` is the largest of the three.

    >>> lucky = seeds_difference([[0, 0, 0], [1, 0, 1]] * 40, [[1, 0, 0], [1, 0, 1]] * 40)
    >>> lucky.mean, lucky.interval.method, lucky.p > 0.4
    (0.166..., 't over 3 seeds', True)
    """
    seeds = len(first[0]) if first else 1
    is_single_run = is_single_run and seeds == 1
    before, after = ([fmean(row) for row in table] for table in (first, second))
    found = paired_difference(before, after, clusters, confidence=confidence, is_single_run=is_single_run, seed=seed)
    table = _differences(first, second)
    if seeds == 1 or not any(map(any, table)) or (found.is_few and found.interval is None):
        return found
    looks = list(_looks(table, clusters))
    least, most = (-1.0, 1.0) if all(map(is_bounded, (*first, *second))) else (-math.inf, math.inf)
    interval = _widest(found.interval, looks, confidence, least, most)
    p = max([found.p, *(each.p for each in looks)])
    if interval is not None and p > 1 - confidence:
        interval = reaching_zero(interval)
    smallest = [each.smallest(confidence) for each in looks]
    if found.smallest is not None:
        smallest.append(found.smallest)
    return replace(found, interval=interval, p=p, smallest=max(smallest, default=None))


def seeds_p(first: ScoreTable, second: ScoreTable, clusters: Clusters | None = None) -> float:
    """Return the p of ``seeds_difference`` by the looks over seeds alone: it is that or more. 0 with one seed.

    >>> seeds_p([[0.0, 0.0, 0.0]] * 9, [[0.3, -0.2, 0.1]] * 9) > 0.5
    True
    """
    if not first or len(first[0]) == 1:
        return 0.0
    return max(each.p for each in _looks(_differences(first, second), clusters))


def _differences(first: ScoreTable, second: ScoreTable) -> list[list[float]]:
    return [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]


@dataclass(frozen=True, slots=True)
class _Look:
    """One way to see the mean of a table: its standard error and degrees of freedom."""

    method: str
    mean: float
    error: float
    freedom: float

    def interval(self, confidence: float, least: float, most: float) -> Interval:
        half = t_of(confidence, self.freedom) * self.error
        return Interval(max(self.mean - half, least), min(self.mean + half, most), self.method)

    @property
    def p(self) -> float:
        """The p at which the interval begins to exclude 0."""
        if not self.error:
            return float(not self.mean)
        return t_p(self.mean / self.error, self.freedom)

    def smallest(self, confidence: float, power: float = 0.8) -> float:
        """Return the smallest true difference that the interval excludes from 0 with this power."""
        return (t_of(confidence, self.freedom) + t_quantile(power, self.freedom)) * self.error


def _looks(table: ScoreTable, clusters: Clusters | None) -> Iterator[_Look]:
    """Yield the looks at the mean of a table over its seeds, and over both rows and seeds."""
    n, seeds = len(table), len(table[0])
    of_rows, of_seeds = [fmean(row) for row in table], [fmean(column) for column in zip(*table, strict=True)]
    mean, error = fmean(of_seeds), standard_error(of_seeds)
    yield _Look(f"t over {seeds} seeds", mean, error, seeds - 1)
    keys: Sequence[Hashable] = range(n) if clusters is None else clusters
    if (groups := len(set(keys))) < 2:
        return
    sums: dict[tuple[Hashable, int], float] = {}  # of what rows and seeds leave unexplained, by cluster and seed
    for key, row, of_row in zip(keys, table, of_rows, strict=True):
        for place, (score, of_seed) in enumerate(zip(row, of_seeds, strict=True)):
            sums[key, place] = sums.get((key, place), 0.0) + score - of_row - of_seed + mean
    free = (groups - 1) * (seeds - 1)
    rest = groups * seeds / free * math.fsum(each * each for each in sums.values()) / (n * seeds) ** 2
    rows = standard_error(of_rows, clusters) ** 2
    variance = rows + error**2 - rest
    if variance > 0:
        parts = rows**2 / (groups - 1) + error**4 / (seeds - 1) + rest**2 / free
        yield _Look(f"t crossed with {seeds} seeds", mean, math.sqrt(variance), max(variance**2 / parts, seeds - 1))


def _widest(
    rows: Interval | None, looks: Iterator[_Look] | Sequence[_Look], confidence: float, least: float, most: float
) -> Interval | None:
    """Return the widest of the interval over rows and those of looks; the examples are too few for it if they are for rows."""
    found = [*([rows] if rows else []), *(each.interval(confidence, least, most) for each in looks if each.error)]
    widest = max(found, key=lambda each: each.high - each.low, default=None)
    return replace(widest, is_few=True) if widest and rows and rows.is_few else widest
