"""Statistics of choosing the best of many: how sure the choice is, and by how much its mean is too high."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["best_of_all_confidence", "optimism"]

RowScores: TypeAlias = Mapping[str, float]


class _Differences(NamedTuple):
    """The differences of a candidate to the baseline that are not 0: positions of rows, values; and the number of all."""

    rows: list[int]
    values: list[float]
    size: int

    def studentized(self, signs: Sequence[float] | None = None) -> float:
        """Return the mean in units of its standard error, after a change of signs. One row's change is added to the spread,
        so that a few equal differences are no certainty."""
        if signs is None:
            total = sum(self.values)
        else:
            total = sum(signs[row] * value for row, value in zip(self.rows, self.values, strict=True))
        spread = sum(value * value for value in self.values) - total * total / self.size + 1.0
        return float(total / spread**0.5)


def best_of_all_confidence(
    baseline: RowScores, winner: RowScores, others: Sequence[RowScores], *, draws: int = 2_000, seed: object = 0
) -> float:
    """Return how sure it is that the winner of many candidates is better than the baseline, by the rows that both have.

    The best of many noisy means is too high. The winner is therefore compared with the best of all candidates when the signs of
    the differences of each row are flipped at random, for all candidates alike (Westfall and Young 1993, *Resampling-Based
    Multiple Testing*, step one).

    >>> same = {str(row): 0.0 for row in range(20)}
    >>> better = {str(row): float(row < 12) for row in range(20)}
    >>> best_of_all_confidence(same, better, []), best_of_all_confidence(same, same, [])
    (1.0, 0.0)
    """
    places = {row: at for at, row in enumerate(baseline)}
    observed = _differences(baseline, winner, places)
    if observed is None or (value := observed.studentized()) <= 0:
        return 0.0
    family = [observed, *(found for each in others if (found := _differences(baseline, each, places)) is not None)]
    source, below = random.Random(f"{seed}/family"), 0
    for _ in range(draws):
        signs = source.choices((-1.0, 1.0), k=len(places))
        below += all(each.studentized(signs) < value for each in family)
    return below / draws


def _differences(baseline: RowScores, scores: RowScores, places: Mapping[str, int]) -> _Differences | None:
    """Return the differences on the rows that both have; ``None`` if there are none other than 0."""
    both = [row for row in baseline if row in scores]
    changed = [row for row in both if scores[row] != baseline[row]]
    if not changed:
        return None
    return _Differences([places[row] for row in changed], [scores[row] - baseline[row] for row in changed], len(both))


def optimism(candidates: Sequence[RowScores], *, draws: int = 100, seed: object = 0) -> float:
    """Return by how much the mean of the best candidate is too high, because it was chosen on the same rows.

    The rows are drawn with replacement; the best candidate of the drawn rows has a higher mean on them than on all rows
    (optimism by the bootstrap: Efron 1983, *Estimating the Error Rate of a Prediction Rule*). Races compare fewer candidates
    on later rows, so the optimism is estimated for each set of rows on which candidates were compared, and weighted by the
    rows that the set adds. Candidates have their scores in the order of the race.

    >>> optimism([{"a": 1.0, "b": 0.0}])
    0.0
    """
    found = [scores for scores in candidates if scores]
    if not found:
        return 0.0
    source, total, before = random.Random(f"{seed}/optimism"), 0.0, 0
    sizes = sorted({len(scores) for scores in found})
    for size in sizes:
        compared = [scores for scores in found if len(scores) >= size]
        rows = list(next(scores for scores in compared if len(scores) == size))
        if len(compared) > 1:
            total += (size - before) / sizes[-1] * _mean_gap(compared, rows, source, draws)
        before = size
    return total


def _mean_gap(compared: Sequence[RowScores], rows: Sequence[str], source: random.Random, draws: int) -> float:
    """Draw rows; return the mean gap of their best candidate: its mean on them less its mean on all rows."""
    table = [[scores.get(row, 0.0) for row in rows] for scores in compared]
    means = [sum(line) / len(rows) for line in table]
    gap = 0.0
    for _ in range(draws):
        drawn = source.choices(range(len(rows)), k=len(rows))
        sums = [sum([line[at] for at in drawn]) for line in table]
        best = max(range(len(table)), key=sums.__getitem__)
        gap += sums[best] / len(rows) - means[best]
    return gap / draws
