"""Results of experiments made of scores, without programs, models or searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sigwire.evaluate.cell import Cell
from sigwire.experiments.point import AXES, SEPARATOR, MeasuredPoint, Point
from sigwire.experiments.result import ExperimentResult
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Spent
from sigwire.optimizers.reports.report import Estimate, OptimizationReport, StopReason
from tests.evaluate.runs import make_result

__all__ = ["Scores", "make_experiment", "make_search"]

Scores = Sequence[float | Cell | Sequence[float | Cell]]
"""The score of each row."""


def make_search(*, calls: int = 100, money: float | None = 0.5, kept: bool = False) -> OptimizationReport:
    """Return the report of a search. Its scores are such that a table which shows one of them is found out: 0.123."""
    student = Candidate({"predict.instructions": "Answer."})
    winner = student if kept else Candidate({"predict.instructions": "Answer well."})
    estimate = Estimate(baseline=0.123, selection=0.123, corrected=0.123, rows=10)
    spent = Spent(runs=calls, calls=calls, money=money)
    return OptimizationReport("GEPA", student, winner, winner, estimate, StopReason.FINISHED, spent)


def make_experiment(
    arms: Mapping[str | tuple[str, ...], Mapping[int, Scores]],
    *,
    axes: Sequence[str] = ("optimizer",),
    metrics: tuple[str, ...] = ("exact",),
    fields: Sequence[dict[str, Any]] | None = None,
    options: Mapping[str, Any] | None = None,
    **rest: Any,
) -> ExperimentResult:
    """Return the result of a grid: by labels of ``axes`` and seed the scores of each row.

    Arms whose optimizer is not "none" have a search. ``options``: of ``EvaluationResult.make``.
    """
    labels = {tuple([each] if isinstance(each, str) else each): by_seed for each, by_seed in arms.items()}
    seen = {axis: tuple(dict.fromkeys(each[place] for each in labels)) for place, axis in enumerate(axes)}
    measured: list[MeasuredPoint] = []
    for found, by_seed in labels.items():
        all_labels = dict.fromkeys(AXES, "default") | {"optimizer": "none"} | dict(zip(axes, found, strict=True))
        for seed, scores in by_seed.items():
            point = Point(all_labels, SEPARATOR.join(found), seed)
            search = make_search() if all_labels["optimizer"] != "none" else None
            result = make_result(scores, fields=fields, metric_names=metrics, **(options or {}))
            measured.append(MeasuredPoint(point, result, search))
    seeds = tuple(dict.fromkeys(seed for by_seed in arms.values() for seed in by_seed))
    defaults = dict.fromkeys(AXES, ("default",)) | {"optimizer": ("none",)} | seen
    return ExperimentResult(defaults, seeds, measured, metrics=metrics, **rest)
