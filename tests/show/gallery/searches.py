"""Specimens of evaluations and searches: results, comparisons, reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sigwire.core.example import Example, Prediction
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.comparison import Comparison
from sigwire.evaluate.failures import Failure
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.rows.map_result import MapResult
from sigwire.experiments.arm import ArmResult
from sigwire.experiments.comparing import ArmComparison
from sigwire.experiments.point import AXES, MeasuredPoint, Point
from sigwire.experiments.result import ExperimentResult
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.events import Spent
from sigwire.optimizers.reports.report import Estimate, OptimizationReport, SearchTrial, StopReason
from sigwire.show.card import HasCard
from tests.show.gallery.material import Material

__all__ = ["SEARCHES"]


def _result(of: Material, score: float = 0.0) -> EvaluationResult:
    cells = [
        Cell(score, of.text, {of.name: 1.0}, outputs={"answer": of.text}, requests=1, seconds=0.5) for _ in of.indices
    ]
    if of.count:
        cells.append(Cell(0.0, failure=Failure("program", of.name, of.text), requests=1, seconds=0.5))
    records = [
        ExampleRecord(f"{of.name}{at}", at, 1, {"question": of.text}, {"answer": of.text}, cell)
        for at, cell in enumerate(cells)
    ]
    examples = [Example(question=of.text, answer=of.text).with_inputs("question") for _ in cells]
    return EvaluationResult.make(
        of.name,
        records,
        examples,
        [Prediction(answer=of.text) for _ in cells],
        header={"devset": {"name": of.name, "n": len(cells)}, "lm": {"model": of.name}},
        metric_names=[of.name],
        status=of.name,
        path=of.name.replace("\x00", ""),
    )


def _map_result(of: Material) -> MapResult:
    result = MapResult(of.name, detail=of.text, kept=1, lost=of.count)
    for at in of.indices:
        failure = Failure("program", of.name, of.text) if at else None
        usage = {of.name: {"input_tokens": 3}}
        tools = {of.name: {"calls": 2, "errors": 1}}
        result.add(
            Cell(0.0, failure=failure, requests=1, usage=usage, tools=tools, warnings={of.name: 1}, served={of.name: 1})
        )
    return result


def _comparison(of: Material) -> Comparison:
    of = Material(of.text, max(of.count, 1))  # results without examples are not compared
    return _result(of).compare(_result(of, 1.0))


def _report(of: Material) -> OptimizationReport:
    start = Candidate()
    found = start.with_text("answer.instructions", of.encodable)
    trials = tuple(SearchTrial(at, found, of.text, (of.text,), 0.5, 10, of.text) for at in of.indices)
    return OptimizationReport(
        of.name,
        start,
        found,
        found,
        Estimate(0.5, 0.75, 0.7, 0.9, 10),
        StopReason.FINISHED,
        Spent(calls=20),
        trials,
        texts={"answer.instructions": "Be brief."},
        warnings=tuple(of.text for _ in of.indices),
        kept_student=of.name,
    )


def _experiment(of: Material) -> ExperimentResult:
    """Return an experiment of three arms, at as many seeds as there are parts, but at three at most."""
    labels = dict.fromkeys(AXES, "default")
    optimizers = (of.name, "gepa", "none")
    found = [
        MeasuredPoint(
            Point({**labels, "optimizer": optimizer}, f"{of.text[:200]} · {optimizer}", seed),
            _result(of, 0.5 * (optimizer == "gepa")),
            _report(of) if optimizer == "gepa" else None,
        )
        for optimizer in optimizers
        for seed in of.indices[:3]
    ]
    axes = {**dict.fromkeys(AXES, ("default",)), "optimizer": optimizers}
    seeds = tuple(of.indices[:3]) or (0,)
    return ExperimentResult(axes, seeds, found, metrics=(of.name,), status="partial", record={of.name: of.encodable})


def _arm(of: Material) -> ArmResult:
    arms = _experiment(Material(of.text, max(of.count, 1))).arms
    return next(arm for name, arm in arms.items() if name.endswith("gepa"))


def _arm_comparison(of: Material) -> ArmComparison:
    return _experiment(Material(of.text, max(of.count, 1))).compare("optimizer", "none")


SEARCHES: Mapping[type, Callable[[Material], HasCard]] = {
    ArmComparison: _arm_comparison,
    ArmResult: _arm,
    Comparison: _comparison,
    EvaluationResult: _result,
    ExperimentResult: _experiment,
    MapResult: _map_result,
    OptimizationReport: _report,
}
"""Specimens by class."""
