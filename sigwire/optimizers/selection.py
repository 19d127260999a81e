"""Statistics of choosing the best of many: how sure the choice is, and by how much its mean is too high."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from operator import mul
from typing import TypeAlias

__all__ = ["best_of_all_confidence", "optimism"]

RowScores: TypeAlias = Mapping[str, float]

_MOST_FLIPS = 2_000_000  # less than half a second
_SIGNS = (-1.0, 1.0) * 128  # by byte: random bytes are four times as fast as random choices


def best_of_all_confidence(
    baseline: RowScores, winner: RowScores, others: Sequence[RowScores], *, seed: object = 0
) -> float:
    """Return how sure it is that the winner of a race of candidates is better than the baseline, by the rows that both have.

    The best of many noisy means is too high. The race is therefore run again, 200 to 1,000 times, in a world where no candidate
    differs from the baseline: the signs of the differences of each row are flipped at random, for all candidates alike
    (Westfall and Young 1993, *Resampling-Based Multiple Testing*). A candidate that was dropped has no scores on later rows;
    there it gets the flipped differences of the winner. The answer is the share of races whose winner is less convincing.

    >>> same = {str(row): 0.0 for row in range(20)}
    >>> better = {str(row): float(row < 12) for row in range(20)}
    >>> best_of_all_confidence(same, better, []), best_of_all_confidence(same, same, [])
    (1.0, 0.0)
    """
    first, *rest = ({row: each[row] - baseline[row] for row in each if row in baseline} for each in (winner, *others))
    if not first or (observed := _studentized(list(first.values()))) <= 0:
        return 0.0
    family = [first, *(each for each in rest if each)]
    stages = _stages(family)
    lines = [_Line(each, first) for each in family]
    draws = min(1_000, max(200, _MOST_FLIPS // (len(family) * len(first))))
    source, below = random.Random(f"{seed}/race"), 0
    for _ in range(draws):
        signs = _signs(source, len(first))
        below += _studentized(_raced([line.flipped(signs, source) for line in lines], stages)) < observed
    return below / draws


def _signs(source: random.Random, count: int) -> list[float]:
    return list(map(_SIGNS.__getitem__, source.randbytes(count)))


def _stages(family: Sequence[RowScores]) -> list[tuple[list[int], int]]:
    """Return the places of the rows after which candidates were dropped, and how many went on."""
    sizes, places = sorted({len(each) for each in family}), {row: place for place, row in enumerate(family[0])}
    return [
        (
            [places[row] for row in next(each for each in family if len(each) == size) if row in places],
            sum(len(each) > size for each in family),
        )
        for size in sizes[:-1]
    ]


class _Line:
    """The differences of a candidate on the rows of the winner; on rows that it has not, those of the winner."""

    def __init__(self, differences: RowScores, winner: RowScores) -> None:
        self.own = [differences.get(row, 0.0) for row in winner]
        lacking = [(at, value) for at, (row, value) in enumerate(winner.items()) if row not in differences]
        self.lent = [(at, value) for at, value in lacking if value]

    def flipped(self, signs: Sequence[float], source: random.Random) -> list[float]:
        """Return the differences in a world without differences."""
        world = list(map(mul, signs, self.own))
        for (at, value), sign in zip(self.lent, _signs(source, len(self.lent)), strict=True):
            world[at] = sign * value
        return world


def _raced(worlds: Sequence[Sequence[float]], stages: Sequence[tuple[Sequence[int], int]]) -> Sequence[float]:
    """Return the winner of a race: after each stage the best candidates by their sum go on."""
    running = list(worlds)
    for rows, count in stages:
        running.sort(key=lambda each: -sum([each[row] for row in rows]))
        del running[count:]
    return max(running, key=sum)


def _studentized(differences: Sequence[float]) -> float:
    """Return the mean in units of its standard error, whose spread has one row's change more: few rows are no certainty."""
    total = sum(differences)
    spread = sum(each * each for each in differences) - total * total / len(differences) + 1.0
    return float(total / spread**0.5)


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
    """Draw rows; return the mean gap of their best candidate: its mean on them less its mean on all rows.

    The same gap of the candidate that is best on all rows, 0 on average, is subtracted: few draws are enough, and no gap is
    below 0.
    """
    table = [[scores.get(row, 0.0) for row in rows] for scores in compared]
    totals = [sum(line) for line in table]
    leader, gap = max(range(len(table)), key=totals.__getitem__), 0.0
    for _ in range(draws):
        drawn = source.choices(range(len(rows)), k=len(rows))
        sums = [sum([line[at] for at in drawn]) for line in table]
        best = max(range(len(table)), key=sums.__getitem__)
        gap += (sums[best] - sums[leader]) + (totals[leader] - totals[best])
    return gap / draws / len(rows)
