"""Decide by the table of scores: which of two candidates is better, and whether that is more than noise.

Two candidates are compared on the rows that both have, by the paired differences of their scores; the mean over repeats of a
row is its score, because rows and not runs are the sample. All decisions of rules are made here: with other answers a plan
counts what a search may cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Literal, TypeAlias

from sigwire.evaluate.cell import Cell
from sigwire.evaluate.pareto import pareto_front
from sigwire.evaluate.statistics import probability_better
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.objectives import COSTS, HEADLINE, costs_of
from sigwire.optimizers.selection import best_of_all_confidence, optimism

__all__ = ["Judge", "ScoreTable", "Strategy"]

Strategy: TypeAlias = Literal["paired", "greedy"]


_HOPE = 0.4
_LEAST_SAVING = 0.05
_MANY_ROWS = 24
_FEW_ROWS = 8


class ScoreTable:
    """Scores by candidate and row. A row without a score is missing. ``objectives``: their costs are kept."""

    def __init__(self, objectives: Sequence[str] = ()) -> None:
        self._objectives = objectives
        self._scores: dict[str, dict[str, float]] = {}
        self._repeats: dict[tuple[str, str], dict[int, float]] = {}  # of rows with several runs
        self._subscores: _Parts = {}
        self._costs: _Parts = {}
        self._failed: set[tuple[str, str]] = set()  # candidate and row
        self.fallen: set[str] = set()  # candidates that are worse on a row that must hold

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

    def add(self, candidate: str, row: str, repeat: int, cell: Cell) -> None:
        """Add a run: its score, what else the metric measured, and the costs that are objectives."""
        self.put(candidate, row, repeat, cell.score)
        if cell.failure is not None:
            self._failed.add((candidate, row))
        for parts, numbers in ((self._subscores, cell.subscores), (self._costs, costs_of(cell, self._objectives))):
            for name, number in numbers.items():
                parts.setdefault(candidate, {}).setdefault(row, {}).setdefault(name, []).append(number)

    def repeats(self, candidate: Candidate, row: str) -> list[float]:
        """Return the scores of all runs of a row, the first one first."""
        if found := self._repeats.get((candidate.digest, row)):
            return [found[at] for at in sorted(found)]
        return [*self.scores(candidate, (row,)).values()]

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

    def values(self, candidate: Candidate, name: str, rows: Iterable[str]) -> dict[str, float]:
        """Return the mean of a cost or a subscore of each scored row that has it. A run that failed has the score of a
        failure in each subscore."""
        is_cost = name in COSTS
        parts = (self._costs if is_cost else self._subscores).get(candidate.digest, {})
        found: dict[str, float] = {}
        for row, score in self.scores(candidate, rows).items():
            known = parts.get(row, {})
            if name in known:
                found[row] = _mean(sorted(known[name]))
            elif not is_cost and (candidate.digest, row) in self._failed:
                found[row] = score
        return found

    def scores(self, candidate: Candidate, rows: Iterable[str] | None = None) -> dict[str, float]:
        """Return the mean score of each row that the candidate has, of ``rows`` or of all."""
        found = self._scores.get(candidate.digest, {})
        wanted = sorted(found) if rows is None else rows
        return {row: found[row] for row in wanted if row in found}

    def by_candidate(self, rows: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the mean score by candidate digest and row."""
        return {digest: {row: found[row] for row in rows if row in found} for digest, found in self._scores.items()}


_Parts: TypeAlias = dict[str, dict[str, dict[str, list[float]]]]
"""By candidate, row and name the numbers of each run."""


class Judge:
    """Compares candidates by a table.

    ``confidence``: how sure a comparison must be, one-sided. ``strategy="greedy"`` compares means only, as other optimizers do.
    ``threshold``: the least score of a successful run; ``None``: above 0.
    ``unscored``: there is no metric, and each run without a failure is successful. ``objectives``: what counts besides
    ``headline``, the name that the score has among them.
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
        objectives: Sequence[str] = (HEADLINE,),
        headline: str = HEADLINE,
    ) -> None:
        self.table = table
        self.objectives, self.headline = tuple(objectives), headline
        self.confidence, self.threshold, self.seed = confidence, threshold, seed
        self.strategy: Strategy = strategy
        self._unscored = unscored

    def with_threshold(self, threshold: float | None) -> Judge:
        """Return the judge with another least score of a successful run, over the same table."""
        other = copy(self)
        other.threshold = threshold
        return other

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
        """Return candidates by mean score on ``rows``, best first; equal ones in the given order, fallen ones last."""
        return sorted(candidates, key=lambda each: (self.fell(each), -self.mean(each, rows)))

    # --- rows that must hold

    def drop(self, candidate: Candidate) -> None:
        """Note that a candidate is worse than the student on a row that must hold."""
        self.table.fallen.add(candidate.digest)

    def fell(self, candidate: Candidate) -> bool:
        """Return True if a candidate is worse than the student on a row that must hold: it is behind all others."""
        return candidate.digest in self.table.fallen

    def is_lower(self, candidate: Candidate, incumbent: Candidate, row: str) -> bool:
        """Return True if a candidate has a lower score on a row."""
        return any(each < 0 for each in self.differences(candidate, incumbent, (row,)))

    def holds(self, candidate: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if a candidate ran on all ``rows``, which must hold, and is on none worse than the incumbent."""
        return not self.fell(candidate) and all(
            self.differences(candidate, incumbent, (row,))
            and (len(self.table.repeats(candidate, row)) > 1 or not self.is_lower(candidate, incumbent, row))
            for row in rows
        )

    def _standing(self, challenger: Candidate, incumbent: Candidate) -> int:
        """Return 1 if only the incumbent fell, -1 if only the challenger did, else 0."""
        return self.fell(incumbent) - self.fell(challenger)

    # --- two candidates

    def differences(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> list[float]:
        """Return the differences of scores on the rows that both have, in the order of ``rows``."""
        first, second = self.table.scores(challenger, rows), self.table.scores(incumbent, rows)
        return [first[row] - second[row] for row in rows if row in first and row in second]

    def is_better(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if the challenger is better beyond noise (greedy: if its mean is higher)."""
        if standing := self._standing(challenger, incumbent):
            return standing > 0
        differences = self.differences(challenger, incumbent, rows)
        if self.strategy == "greedy":
            return sum(differences) > 0
        return sum(differences) > 0 and probability_better(differences) >= self.confidence

    def is_worse(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if the challenger is worse beyond noise: a race drops it."""
        if standing := self._standing(challenger, incumbent):
            return standing < 0
        differences = self.differences(challenger, incumbent, rows)
        return sum(differences) < 0 and probability_better([-each for each in differences]) >= self.confidence

    def advantage(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> float:
        """Return the mean difference of scores on the rows that both have; 0 without such rows. A fall outweighs it."""
        differences = self.differences(challenger, incumbent, rows)
        mean = sum(differences) / len(differences) if differences else 0.0
        return mean + self._standing(challenger, incumbent) * (1 + abs(mean))

    # --- several objectives

    def amounts(self, candidate: Candidate, objective: str, rows: Iterable[str]) -> dict[str, float]:
        """Return an objective of each of ``rows`` that the candidate has."""
        if objective == self.headline:
            return self.table.scores(candidate, rows)
        return self.table.values(candidate, objective, rows)

    def values(self, candidate: Candidate, objective: str, rows: Iterable[str]) -> dict[str, float]:
        """Return an objective of each of ``rows`` that the candidate has, larger ones better: costs have a minus."""
        found = self.amounts(candidate, objective, rows)
        return {row: -value for row, value in found.items()} if objective in COSTS else found

    def means(self, candidate: Candidate, rows: Sequence[str]) -> dict[str, float]:
        """Return the mean of each objective on those of ``rows`` that have it."""
        found = {name: list(self.amounts(candidate, name, rows).values()) for name in self.objectives}
        return {name: _mean(values) for name, values in found.items() if values}

    def point(self, candidate: Candidate, rows: Sequence[str]) -> tuple[float, ...] | None:
        """Return the mean of each objective on ``rows``, larger ones better; ``None`` if the candidate lacks one of a row."""
        found = [self.values(candidate, name, rows) for name in self.objectives]
        return (
            None if any(len(each) < len(rows) for each in found) else tuple(_mean([*each.values()]) for each in found)
        )

    def front(self, candidates: Iterable[Candidate], rows: Sequence[str]) -> list[Candidate]:
        """Return the candidates with all of ``rows`` that none beats in all objectives, the highest mean score first."""
        named = {each.digest: each for each in candidates}
        points = {digest: at for digest, each in named.items() if (at := self.point(each, rows)) is not None}
        return self.ranked([named[digest] for digest in pareto_front(points)], rows)

    def hopeful(self, candidates: Iterable[Candidate], incumbent: Candidate, rows: Sequence[str]) -> list[Candidate]:
        """Return the candidates that none is more promising than in all objectives, whatever number of rows they have."""
        named = {each.digest: each for each in candidates if len(self.table.scores(each, rows)) >= _FEW_ROWS}
        points = {
            digest: [self._promise(name, each, incumbent, rows) for name in self.objectives]
            for digest, each in named.items()
        }
        front = sorted(pareto_front(points), key=lambda digest: -points[digest][self.objectives.index(self.headline)])
        return [named[digest] for digest in front]

    def _promise(self, objective: str, each: Candidate, incumbent: Candidate, rows: Sequence[str]) -> float:
        """Return the mean difference of an objective, drawn to 0 if there are few rows."""
        new, old = self.values(each, objective, rows), self.values(incumbent, objective, rows)
        differences = [new[row] - old[row] for row in rows if row in new and row in old]
        return sum(differences) / (len(differences) + _FEW_ROWS)

    def gains(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if the challenger has a higher mean score, or is better beyond noise in another objective.

        Of a cost, a twentieth is the least that counts: each rewritten text is a little longer or shorter.
        """
        if standing := self._standing(challenger, incumbent):
            return standing > 0
        others = (name for name in self.objectives if name != self.headline)
        return self.advantage(challenger, incumbent, rows) > 0 or any(
            self._gains(name, challenger, incumbent, rows) for name in others
        )

    def _gains(self, objective: str, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        new, old = (self.values(each, objective, rows) for each in (challenger, incumbent))
        both = [row for row in rows if row in new and row in old]
        differences = [new[row] - old[row] for row in both]
        least = _LEAST_SAVING * -sum(old[row] for row in both) if objective in COSTS else 0.0
        if sum(differences) <= least:
            return False
        return self.strategy == "greedy" or probability_better(differences) >= self.confidence

    def may_be_better(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True if further runs may show the challenger to be better: on many rows a tie is not enough."""
        if standing := self._standing(challenger, incumbent):
            return standing > 0
        differences = self.differences(challenger, incumbent, rows)
        chance = probability_better(differences)
        return chance > 0.5 if len(differences) >= _MANY_ROWS else chance >= _HOPE

    def promising(self, candidates: Sequence[Candidate], incumbent: Candidate, rows: Sequence[str]) -> Candidate:
        """Return the most promising of candidates that ran on different numbers of rows: a few rows count little."""

        return max(candidates, key=lambda each: (-self.fell(each), self._promise(self.headline, each, incumbent, rows)))

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
