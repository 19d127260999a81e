"""Decide by the table of scores: which of two candidates is better, and whether that is more than noise.

Two candidates are compared on the rows that both have, by the paired differences of their scores; the mean over repeats of a
row is its score, because rows and not runs are the sample. All decisions of rules are made here: with other answers a plan
counts what a search may cost.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from sigwire.evaluate.cell import Cell
from sigwire.evaluate.statistics import probability_better
from sigwire.optimizers.candidate import Candidate

__all__ = ["Judge", "ScoreTable", "Strategy"]

Strategy: TypeAlias = Literal["paired", "greedy"]


_HOPE = 0.4
_MANY_ROWS = 24


class ScoreTable:
    """Scores by candidate and row. A row without a score is missing."""

    def __init__(self) -> None:
        self._scores: dict[str, dict[str, float]] = {}
        self._repeats: dict[tuple[str, str], dict[int, float]] = {}  # of rows with several runs

    def put(self, candidate: str, row: str, repeat: int, score: float | None) -> None:
        """Add the score of a run; ``None`` adds nothing."""
        if score is None:
            return
        scores = self._scores.setdefault(candidate, {})
        if repeat == 0 and row not in scores:
            scores[row] = score
            return
        first = {0: scores[row]} if row in scores else {}
        repeats = self._repeats.setdefault((candidate, row), first)
        repeats[repeat] = score
        scores[row] = _mean([repeats[at] for at in sorted(repeats)])

    def scores(self, candidate: Candidate, rows: Iterable[str] | None = None) -> dict[str, float]:
        """Return the mean score of each row that the candidate has, of ``rows`` or of all."""
        found = self._scores.get(candidate.digest, {})
        wanted = sorted(found) if rows is None else rows
        return {row: found[row] for row in wanted if row in found}

    def by_candidate(self, rows: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the mean score by candidate digest and row."""
        return {digest: {row: found[row] for row in rows if row in found} for digest, found in self._scores.items()}


class Judge:
    """Compares candidates by a table.

    ``confidence``: how sure a comparison must be, one-sided. ``strategy="greedy"`` compares means only, as other optimizers do.
    ``threshold``: the least score of a successful run; ``None``: above 0.
    ``unscored``: there is no metric, and each run without a failure is successful.
    """

    def __init__(
        self,
        table: ScoreTable,
        *,
        confidence: float = 0.9,
        strategy: Strategy = "paired",
        threshold: float | None = None,
        unscored: bool = False,
        seed: int = 0,
    ) -> None:
        self.table = table
        self.confidence, self.strategy, self.threshold, self.seed = confidence, strategy, threshold, seed
        self._unscored = unscored

    # --- one candidate

    def is_success(self, cell: Cell) -> bool:
        """Return True if a run is good enough to be shown as a demo."""
        if cell.failure is not None or cell.score is None:
            return cell.failure is None and self._unscored
        return cell.score > 0 if self.threshold is None else cell.score >= self.threshold

    def mean(self, candidate: Candidate, rows: Sequence[str]) -> float:
        """Return the mean score on those of ``rows`` that the candidate has; minus infinity if it has none."""
        return _mean(list(self.table.scores(candidate, rows).values()))

    def ranked(self, candidates: Sequence[Candidate], rows: Sequence[str]) -> list[Candidate]:
        """Return candidates by mean score on ``rows``, best first; equal ones in the given order."""
        return sorted(candidates, key=lambda each: -self.mean(each, rows))

    # --- two candidates

    def differences(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> list[float]:
        """Return the differences of scores on the rows that both have, in the order of ``rows``."""
        first, second = self.table.scores(challenger, rows), self.table.scores(incumbent, rows)
        return [first[row] - second[row] for row in rows if row in first and row in second]

    def is_better(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if the challenger is better beyond noise (greedy: if its mean is higher)."""
        differences = self.differences(challenger, incumbent, rows)
        if self.strategy == "greedy":
            return sum(differences) > 0
        return sum(differences) > 0 and probability_better(differences) >= self.confidence

    def is_worse(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if the challenger is worse beyond noise: a race drops it."""
        differences = self.differences(challenger, incumbent, rows)
        return sum(differences) < 0 and probability_better([-each for each in differences]) >= self.confidence

    def advantage(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> float:
        """Return the mean difference of scores on the rows that both have; 0 without such rows."""
        differences = self.differences(challenger, incumbent, rows)
        return sum(differences) / len(differences) if differences else 0.0

    def may_be_better(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if further runs may show the challenger to be better: on many rows a tie is not enough."""
        differences = self.differences(challenger, incumbent, rows)
        chance = probability_better(differences)
        return chance > 0.5 if len(differences) >= _MANY_ROWS else chance >= _HOPE

    # --- the end of a search

    def family_confidence(
        self, winner: Candidate, baseline: Candidate, others: Sequence[Candidate], rows: Sequence[str]
    ) -> float:
        """Return how sure it is that the winner of all compared candidates is better than the baseline.

        The best of many noisy means is too high. The winner is therefore compared with the best of all candidates when the
        signs of the differences of each row are flipped at random, for all candidates alike (Westfall and Young 1993,
        *Resampling-Based Multiple Testing*, step one; 2,000 seeded draws).
        """
        family = [
            differences
            for each in {one.digest: one for one in (winner, *others)}.values()
            if each.digest != baseline.digest
            for differences in [self._by_row(each, baseline, rows)]
            if differences
        ]
        observed = _studentized(list(self._by_row(winner, baseline, rows).values()))
        if observed <= 0:
            return 0.0
        draws, below = 2_000, 0
        source = random.Random(f"{self.seed}/family")
        for _ in range(draws):
            signs = {row: source.choice((-1.0, 1.0)) for row in rows}
            best = max(_studentized([signs[row] * value for row, value in each.items()]) for each in family)
            below += best < observed
        return below / draws

    def _by_row(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> dict[str, float]:
        first, second = self.table.scores(challenger, rows), self.table.scores(incumbent, rows)
        return {row: first[row] - second[row] for row in rows if row in first and row in second}

    def optimism(self, candidates: Sequence[Candidate], rows: Sequence[str], draws: int = 100) -> float:
        """Return by how much the mean of the best candidate is too high, because it was chosen on the same rows.

        The rows are drawn with replacement; the best candidate of the drawn rows has a higher mean on them than on all rows
        (optimism by the bootstrap: Efron 1983, *Estimating the Error Rate of a Prediction Rule*). Races compare fewer
        candidates on later rows, so the optimism is estimated for each set of rows on which candidates were compared, and
        weighted by the rows that the set adds.
        """
        found = [scores for each in candidates if (scores := self.table.scores(each, rows))]
        source = random.Random(f"{self.seed}/optimism")
        total, before = 0.0, 0
        for size in sorted({len(scores) for scores in found}):
            compared = [scores for scores in found if len(scores) >= size]
            stage = list(next(scores for scores in compared if len(scores) == size))
            if len(compared) > 1:
                gaps = [_gap(compared, stage, source) for _ in range(draws)]
                total += (size - before) / len(rows) * sum(gaps) / draws
            before = size
        return total


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("-inf")


def _studentized(differences: Sequence[float]) -> float:
    """Return the mean difference in units of its standard error; the error of an absent spread is that of one row's change."""
    count = len(differences)
    if not count:
        return 0.0
    mean = sum(differences) / count
    spread = sum((each - mean) ** 2 for each in differences)
    return float(mean / ((spread + 1.0) / (count * count)) ** 0.5)


def _gap(compared: Sequence[Mapping[str, float]], rows: Sequence[str], source: random.Random) -> float:
    """Draw rows; return the mean of their best candidate on them less its mean on all rows."""
    drawn = source.choices(rows, k=len(rows))
    best = max(compared, key=lambda scores: sum(scores.get(row, 0.0) for row in drawn))
    return sum(best.get(row, 0.0) for row in drawn) / len(drawn) - sum(best.get(row, 0.0) for row in rows) / len(rows)
