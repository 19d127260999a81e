"""``ExperimentRun``: one run of an experiment: the points that its folder lacks, at most ``parallel`` at once.

    point ──compile_steps(journal=)──▶ program ──Evaluate.steps(log=)──▶ measurement
                    └─ keeps its student ─────────────────────────────▶ measurement of the arm without an optimizer

A point ends with its measurement, without one (the budget around the run is spent), or with an error, which ends the run after
the points under way. What is finished is in the folder at each moment; the result is made of the folder's points.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

from sigwire.core.json import JsonObject
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.evaluate.reporters import reporter_of
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.rows.in_flight import RowsInFlight
from sigwire.evaluate.running.run import EvaluationInterrupted
from sigwire.experiments.folder import (
    ExperimentFolder,
    PointFiles,
    finished_points,
    keeps_student,
    made_result,
    point_key,
    points_of,
    searches_of,
    twins_of,
)
from sigwire.experiments.point import Grid, MeasuredPoint, Point
from sigwire.experiments.progress import ExperimentProgress, PointCounter
from sigwire.experiments.record import environment, merged_record, point_facts, record_of, served_models
from sigwire.keywords import check_whole
from sigwire.lm.policy.money.opened import open_budgets
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import applied
from sigwire.optimizers.errors import SearchPaused
from sigwire.optimizers.reports.report import OptimizationReport, StopReason
from sigwire.settings import context
from sigwire.show.card import BoundedRepr

if TYPE_CHECKING:
    from sigwire.experiments.result import ExperimentResult
    from sigwire.jobs.submissions import ExecutorLike
    from sigwire.lm.policy.money.budget import Budget

__all__ = ["ExperimentRun", "PointDone", "RunOptions"]


@dataclass(frozen=True, slots=True)
class PointDone(BoundedRepr):
    """An event of a streamed experiment: a point is finished. ``done`` of ``total`` points are."""

    measured: MeasuredPoint
    done: int
    total: int

    @property
    def point(self) -> Point:
        """The arm and the seed."""
        return self.measured.point


class RunOptions(TypedDict, total=False):
    """Options of ``run``, ``arun`` and the streams of an ``Experiment``, by keyword.

    ``budget``: around everything; budgets of optimizers nest in it. If it is spent, nothing is raised: ``status`` is "partial",
    and the same call goes on. ``parallel`` (1): points at once; ``num_threads``: rows at once in each. ``executor``: of the
    rows, as of ``Evaluate``; points have no cassettes then. ``cassettes`` (True): record the traffic of each point, for
    ``reproduce``. ``progress`` ("auto"): as of ``Evaluate``.
    """

    budget: Budget | None
    parallel: int
    num_threads: int | None
    executor: ExecutorLike | None
    cassettes: bool
    progress: Callable[[ExperimentProgress], object] | str | bool | None


class ExperimentRun:
    """A run of an experiment, from its folder to its result. ``RunOptions`` has the meanings of the options."""

    def __init__(
        self,
        experiment: Grid,
        folder: str | os.PathLike[str],
        *,
        budget: Budget | None = None,
        parallel: int = 1,
        num_threads: int | None = None,
        executor: ExecutorLike | None = None,
        cassettes: bool = True,
        progress: object = "auto",
    ) -> None:
        check_whole("parallel", parallel, "running an experiment", of="points at once", least=1)
        check_whole("num_threads", num_threads, "running an experiment", of="rows at once", least=1, optional=True)
        if budget is not None and not hasattr(budget, "deadline"):
            raise ConfigurationError(
                f"budget is a Budget, not {budget!r:.80} (running an experiment). Write budget=Budget(money=6.0)."
            )
        self._experiment, self._path, self._budget = experiment, folder, budget
        self._parallel, self._num_threads, self._executor = parallel, num_threads, executor
        self._executing: dict[str, Any] = (
            {} if executor is None else {"executor": executor}
        )  # else that of the optimizer
        self._cassettes = cassettes and executor is None
        self._searches = searches_of(experiment)
        self._twins = twins_of(experiment.points, self._searches)
        self._in_flight = RowsInFlight("point")
        self._lock = threading.Lock()
        self._found: dict[str, MeasuredPoint] = {}
        self._kept: list[tuple[Point, OptimizationReport]] = []  # searches that kept their student
        self._error: Exception | None = None
        self._is_spent = False
        counter = PointCounter(len(experiment.points), time.monotonic)
        self._reporter = reporter_of(counter, progress, "running an experiment")

    def steps(self) -> Steps[ExperimentResult]:
        """Return the steps of the run."""
        experiment = self._experiment
        new = record_of(experiment)
        with _held(ExperimentFolder(self._path, new)) as folder:
            self._folder = folder
            record = new if folder.record is None else merged_record(folder.record, new)
            self._found = finished_points(folder.path, experiment)
            pending = [point for point in experiment.points if point_key(point) not in self._found]
            for measured in self._found.values():
                self._reporter.update(measured)
            if pending:
                here = environment()
                here["cassettes"] = self._cassettes
                record["environments"] = [*cast("list[JsonObject]", record["environments"]), here]
            if record != folder.record:
                folder.write(record)
            try:
                yield from self._in_flight.gather(
                    [self._point(point) for point in pending], self._parallel, self._reporter.note
                )
                for point, report in self._kept:
                    yield from self._share(point, report)
            except KeyboardInterrupt as error:
                result = self._end("cancelled")
                text = f"The experiment was interrupted. {self._summary()}"
                raise EvaluationInterrupted(text, result) from error
            except BaseException as error:
                with suppress(Exception):  # an exception class may refuse attributes
                    setattr(error, "result", self._end("cancelled"))  # noqa: B010
                raise
            result = self._end("aborted" if self._error else "partial" if self._missing() else "complete")
        if self._error is not None:
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(self._error, "result", result)  # noqa: B010
            raise self._error
        return result

    # --- points

    def _point(self, point: Point) -> Steps[None]:
        """Run a point, within the budget and its settings. It raises nothing but interrupts."""
        if self._is_over():
            return
        # Not around all points: the consumer of a stream would work within them.
        with self._budget or nullcontext(), context(**self._experiment.settings_of(point)):
            try:
                found = yield from self._found_at(point)
            except Exception as error:
                if self._is_cut(error):
                    self._is_spent = True
                    return
                with self._lock:
                    self._error = self._error or error
                return
            if found is not None:
                yield from self._finish(found)

    def _found_at(self, point: Point) -> Steps[MeasuredPoint | None]:
        """Search and measure. Return ``None`` if the budget is spent, or if the measurement is that of another point."""
        labels, files = point.labels, PointFiles(self._folder.path, point)
        program, report = self._experiment.program_of(labels), None
        files.make()
        if labels["optimizer"] in self._searches:
            with self._cassette(files, "search"):
                program = yield from self._experiment.search_steps(
                    point, program, self._num_threads, journal=str(files.search), **self._executing
                )
            report = cast(OptimizationReport, program.optimization)
            if report.reason is StopReason.BUDGET and self._is_budget_spent():
                self._is_spent = True  # the search ended as if by its own budget; its journal goes on
                return None
        if isinstance(program, Module):
            files.save(program)
        if report is not None and keeps_student(report) and point_key(point) in self._twins:
            self._kept.append((point, report))
            return None
        with self._cassette(files, "test"):
            evaluation = yield from self._measured(labels, files, program)
        if evaluation.status != "complete":
            self._is_spent = True
            return None
        return MeasuredPoint(point, evaluation, report, files.folder)

    def _measured(self, labels: Mapping[str, str], files: PointFiles, program: object) -> Steps[EvaluationResult]:
        evaluate = self._experiment.evaluate(
            labels,
            log=files.records,
            num_threads=self._num_threads,
            executor=self._executor,
            budget=None if self._executor is not None else self._budget,
        )
        return (yield from evaluate.steps(program))

    def _share(self, point: Point, report: OptimizationReport) -> Steps[None]:
        """Finish a point whose search kept its student, with the measurement of the arm without an optimizer."""
        if (twin := self._found.get(self._twins[point_key(point)])) is not None:
            folder = PointFiles(self._folder.path, point).folder
            yield from self._finish(MeasuredPoint(point, twin.evaluation, report, folder, shared=True))

    def _finish(self, measured: MeasuredPoint) -> Steps[None]:
        with self._lock:
            self._found[point_key(measured.point)] = measured
            done = len(self._found)
        self._reporter.update(measured)
        yield Emit(PointDone(measured, done, len(self._experiment.points)))

    def _cassette(self, files: PointFiles, name: str) -> AbstractContextManager[object]:
        return files.cassette(name) if self._cassettes else nullcontext()

    # --- ending

    def _is_over(self) -> bool:
        return self._error is not None or self._is_spent

    def _is_budget_spent(self) -> bool:
        """Return True if a budget around the run is spent: the option, or one that the caller opened."""
        return any(getattr(budget, "is_spent", False) for budget in open_budgets())

    def _is_cut(self, error: BaseException) -> bool:
        """Return True for an error that follows from a spent budget around the run."""
        is_refused = any(isinstance(each, BudgetSpent) for each in (error, error.__cause__))
        return is_refused or (isinstance(error, SearchPaused) and self._is_budget_spent())

    def _missing(self) -> bool:
        return len(self._found) < len(self._experiment.points)

    def _summary(self) -> str:
        return (
            f"{len(self._found)} of {len(self._experiment.points)} points are finished; error.result has them. Run again with "
            f"the folder {str(self._folder.path)!r} to go on."
        )

    def _end(self, status: str) -> ExperimentResult:
        """Write what was found about the points and models, and return the result."""
        record = cast(JsonObject, self._folder.record)
        with self._lock:
            found = dict(self._found)
        points = {**cast(JsonObject, record["points"])}
        for key, measured in found.items():
            points[key] = points.get(key) or self._facts_of(measured)
        changed: JsonObject = {**record, "points": points, "models": served_models(record, found.values())}
        if changed != record:
            self._folder.write(changed)
        result = made_result(self._folder.path, changed, points_of(changed), found)
        self._reporter.close(status, result)
        return result

    def _facts_of(self, measured: MeasuredPoint) -> JsonObject:
        """Return the facts of a point for the record, about the program that was measured."""
        point, experiment = measured.point, self._experiment
        with context(**experiment.settings_of(point)):
            program = experiment.program_of(point.labels)
            if measured.search is not None:
                program = applied(program, measured.search.winner)
            return point_facts(program, experiment.datasets[point.labels["dataset"]].test[0])


@contextmanager
def _held(folder: ExperimentFolder) -> Generator[ExperimentFolder]:
    try:
        yield folder
    finally:
        folder.close()
