"""``GEPAResult``: the report of a search in the form of the ``gepa`` package and of ``detailed_results``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.optimizers.reports.report import OptimizationReport

__all__ = ["GEPAResult"]


class GEPAResult:
    """The candidates that ran on validation rows, the student first, and their scores. Programs are made on access.

    ``best_outputs_valset`` is ``None``: outputs are not kept.
    """

    best_outputs_valset = None

    def __init__(self, student: Module, report: OptimizationReport) -> None:
        self._student, self._report = student, report
        found = {report.baseline.digest: report.baseline}
        found |= {trial.candidate.digest: trial.candidate for trial in report.trials}
        self._candidates = [each for digest, each in found.items() if report.scores.get(digest)]

    def __deepcopy__(self, memo: Any) -> GEPAResult:
        return self  # nothing in it changes

    @property
    def candidates(self) -> list[Module]:
        """The programs."""
        return [applied(self._student, each) for each in self._candidates]

    @property
    def parents(self) -> list[list[int | None]]:
        """The numbers of the parents of each candidate."""
        numbers = {each.digest: number for number, each in enumerate(self._candidates)}
        found = [[numbers[parent] for parent in each.parents if parent in numbers] for each in self._candidates]
        return [[*each] or [None] for each in found]

    @cached_property
    def val_subscores(self) -> list[Mapping[str, float]]:
        """The score of each row that a candidate ran on, by the id of the row."""
        return [self._report.scores[each.digest] for each in self._candidates]

    @property
    def val_aggregate_scores(self) -> list[float]:
        """The mean score of each candidate on the rows that it ran on."""
        return [sum(each.values()) / len(each) for each in self.val_subscores]

    @property
    def val_aggregate_subscores(self) -> list[Mapping[str, float]] | None:
        """The means of the metric's subscores of each candidate, by name; ``None`` if the metric has none."""
        found = [self._report.subscores.get(each.digest, {}) for each in self._candidates]
        return found if any(found) else None

    @property
    def objective_pareto_front(self) -> dict[str, float] | None:
        """The best mean of each subscore."""
        best: dict[str, float] = {}
        for each in self.val_aggregate_subscores or ():
            for name, mean in each.items():
                best[name] = max(mean, best.get(name, mean))
        return best or None

    @property
    def per_objective_best_candidates(self) -> dict[str, list[int]] | None:
        """The numbers of the candidates with the best mean, by subscore."""
        means, front = self.val_aggregate_subscores, self.objective_pareto_front
        if means is None or front is None:
            return None
        return {name: [at for at, each in enumerate(means) if each.get(name) == best] for name, best in front.items()}

    @property
    def per_val_instance_best_candidates(self) -> dict[str, list[int]]:
        """The numbers of the candidates with the best score, by row."""
        best = self.highest_score_achieved_per_val_task
        return {
            row: [number for number, each in enumerate(self.val_subscores) if each.get(row) == score]
            for row, score in best.items()
        }

    @property
    def highest_score_achieved_per_val_task(self) -> dict[str, float]:
        """The best score of each row."""
        best: dict[str, float] = {}
        for each in self.val_subscores:
            for row, score in each.items():
                best[row] = max(score, best.get(row, score))
        return best

    @property
    def discovery_eval_counts(self) -> list[int]:
        """The calls that were made until each candidate was measured."""
        spent = {trial.candidate.digest: trial.spent for trial in self._report.trials}
        return [found.calls if (found := spent.get(each.digest)) else 0 for each in self._candidates]

    @property
    def total_metric_calls(self) -> int:
        """The runs of the search."""
        return self._report.spent.runs

    @property
    def num_full_val_evals(self) -> int:
        """The number of candidates that ran on all validation rows."""
        most = max((len(each) for each in self.val_subscores), default=0)
        return sum(len(each) == most for each in self.val_subscores)

    @property
    def best_idx(self) -> int:
        """The number of the candidate that the search returned."""
        digests = [each.digest for each in self._candidates]
        winner = self._report.winner.digest
        return digests.index(winner) if winner in digests else 0

    @property
    def best_candidate(self) -> Module:
        """The program of ``best_idx``."""
        winner: Candidate = self._candidates[self.best_idx] if self._candidates else self._report.winner
        return applied(self._student, winner)

    def to_dict(self) -> JsonObject:
        """Return the result as JSON, with texts in place of programs."""
        means, best, front = (
            self.val_aggregate_subscores,
            self.per_objective_best_candidates,
            self.objective_pareto_front,
        )
        return {
            "candidates": [dict(each.texts) for each in self._candidates],
            "parents": [list(each) for each in self.parents],
            "val_aggregate_scores": list(self.val_aggregate_scores),
            "val_subscores": [dict(each) for each in self.val_subscores],
            "per_val_instance_best_candidates": {
                row: list(found) for row, found in self.per_val_instance_best_candidates.items()
            },
            "val_aggregate_subscores": None if means is None else [dict(each) for each in means],
            "per_objective_best_candidates": None if best is None else {name: [*found] for name, found in best.items()},
            "objective_pareto_front": None if front is None else {**front},
            "highest_score_achieved_per_val_task": dict(self.highest_score_achieved_per_val_task),
            "discovery_eval_counts": list(self.discovery_eval_counts),
            "total_metric_calls": self.total_metric_calls,
            "num_full_val_evals": self.num_full_val_evals,
            "best_idx": self.best_idx,
        }

    def __repr__(self) -> str:
        return f"<GEPAResult of {len(self._candidates)} candidates>"
