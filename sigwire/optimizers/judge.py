"""Decide by the table of scores: which of two candidates is better, and whether that is more than noise.

Two candidates are compared on the rows that both have, by the paired differences of their scores; the mean over repeats of a
row is its score, because rows and not runs are the sample. All decisions of rules are made here: with other answers a plan
counts what a search may cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from sigwire.evaluate.cell import Cell
from sigwire.evaluate.statistics import probability_better
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.selection import best_of_all_confidence, optimism

__all__ = ["Judge", "ScoreTable", "Strategy"]

Strategy: TypeAlias = Literal["paired", "greedy"]


_HOPE = 0.4
_MANY_ROWS = 24
_FEW_ROWS = 8


class ScoreTable:
    """Scores by candidate and row. A row without a score is missing."""

    def __init__(self) -> None:
        self._scores: dict[str, dict[str, float]] = {}
        self._repeats: dict[tuple[str, str], dict[int, float]] = {}  # of rows with several runs
        self._subscores: dict[str, dict[str, dict[str, list[float]]]] = {}  # by candidate, row and name, of each run

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

    def put_subscores(self, candidate: str, row: str, subscores: Mapping[str, float]) -> None:
        """Add what else the metric measured of a run."""
        for name, score in subscores.items():
            self._subscores.setdefault(candidate, {}).setdefault(row, {}).setdefault(name, []).append(score)

    def subscores(self, rows: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the mean of each subscore by candidate digest and name, over the runs on ``rows``."""
        means: dict[str, dict[str, float]] = {}
        for digest, found in self._subscores.items():
            runs: dict[str, list[float]] = {}
            for row in rows:
                for name, scores in found.get(row, {}).items():
                    runs.setdefault(name, []).extend(scores)
            means |= {digest: {name: _mean(sorted(runs[name])) for name in sorted(runs)}} if runs else {}
        return means

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
        self.confidence, self.threshold, self.seed = confidence, threshold, seed
        self.strategy: Strategy = strategy
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

    def promising(self, candidates: Sequence[Candidate], incumbent: Candidate, rows: Sequence[str]) -> Candidate:
        """Return the most promising of candidates that ran on different numbers of rows: a few rows count little."""

        def promise(each: Candidate) -> float:
            differences = self.differences(each, incumbent, rows)
            return sum(differences) / (len(differences) + _FEW_ROWS)

        return max(candidates, key=promise)

    # --- the end of a search

    def sure(self, winner: Candidate, baseline: Candidate, others: Sequence[Candidate], rows: Sequence[str]) -> float:
        """Return how sure it is that the winner of all candidates is better than the baseline (``best_of_all_confidence``)."""
        scores = [self.table.scores(each, rows) for each in others if each not in (baseline, winner)]
        return best_of_all_confidence(
            self.table.scores(baseline, rows), self.table.scores(winner, rows), scores, seed=self.seed
        )

    def optimism(self, candidates: Sequence[Candidate], rows: Sequence[str]) -> float:
        """Return by how much the mean of the best candidate is too high, because it was chosen on these rows."""
        return optimism([self.table.scores(each, rows) for each in candidates], seed=self.seed)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("-inf")
