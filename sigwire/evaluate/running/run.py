"""``EvaluationRun``: one evaluation under way. It gives its rows to ``RowRun``, keeps what is finished, and makes the result.

Several threads may finish at once; what is finished is in the log before the progress shows it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigwire.core.example import Example
from sigwire.effects.cancellation import CANCEL_GRACE_SECONDS, CancelScope, on_cancel, set_scope
from sigwire.effects.emitting import Emit
from sigwire.effects.loops import has_running_loop
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, SigwireError
from sigwire.evaluate.cell import Cell, CellOptions, KeptRows, stored_prediction
from sigwire.evaluate.examples import check_devset, check_program, example_ids
from sigwire.evaluate.failures import Failure
from sigwire.evaluate.git import git_state
from sigwire.evaluate.metric_plan import MetricPlan
from sigwire.evaluate.progress import progress_reporter
from sigwire.evaluate.records import ExampleRecord, run_header
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.rows.run import FinishedRow, Row, RowExecutor, RowRun, RowsCaller
from sigwire.evaluate.running.log import RunLog
from sigwire.evaluate.running.options import EvaluationOptions
from sigwire.evaluate.running.stop import EvaluationStop, StopRule
from sigwire.evaluate.segments import utc_now
from sigwire.jobs.errors import JobRefused
from sigwire.modules.field_types import types_of
from sigwire.modules.module import Module
from sigwire.observe.callbacks import watched_call, watched_steps
from sigwire.settings import Settings, current
from sigwire.show.card import BoundedRepr

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject
    from sigwire.lm.policy.limits.limiter import Limiter

__all__ = [
    "EvaluationAborted", "EvaluationInterrupted", "EvaluationRun", "ExampleDone",
]  # fmt: skip


class EvaluationAborted(SigwireError):
    """An evaluation ended before all examples were run. ``result`` has those that are finished."""

    def __init__(self, message: str, result: EvaluationResult | None = None) -> None:
        super().__init__(message)
        self.result = result


class EvaluationInterrupted(KeyboardInterrupt):
    """Ctrl-C ended an evaluation or an experiment. ``result`` has what is finished: it is an ``EvaluationResult``, or an
    ``ExperimentResult``.

    The first Ctrl-C waits at most ten seconds for examples in flight, a second one does not.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, slots=True)
class ExampleDone(BoundedRepr):
    """An event of a streamed evaluation: an example is finished. ``done`` of ``total`` runs are."""

    record: ExampleRecord
    done: int
    total: int


class EvaluationRun(RowsCaller):
    """One evaluation: its rows, what is finished, and why it stopped. Threads share it."""

    def __init__(self, program: object, options: EvaluationOptions, plan: MetricPlan) -> None:
        self._program, self._options, self._plan = program, options, plan
        check_program(program)
        self._examples = check_devset(options.devset, program)
        self._types = types_of(program)
        self._ids = example_ids(self._examples, self._types)
        self._total = len(self._examples) * options.repeat
        self._lock = threading.Lock()
        self._scope = CancelScope()
        self._stop = StopRule(options.errors, options.max_errors, options.budget)
        self._has_printed = False
        self._started = time.monotonic()
        self._log = RunLog(_log_path(program, options), self._make_header(), options.resume)
        self._log.take(self._ids, self._examples, options.repeat, self._types)
        mode = options.progress if options.display_progress in (None, True) else False
        self._reporter = progress_reporter(mode, self._total, plan.name)
        executor = None if options.executor is None else RowExecutor(options.executor)
        self._rows = RowRun(options.metric, plan, self._limit(), executor)

    def _make_header(self) -> JsonObject:
        options = self._options
        header = run_header(self._program, self._ids, self._plan.metrics, options.repeat, options.reduce)
        names = ("errors", "failure_score", "interval", "cluster")
        rest: JsonObject = {**{name: getattr(options, name) for name in names}, "num_threads": self._limit()}
        git = None if options.log in (None, False) else git_state()
        return {**header, **rest, **({"git": git} if git is not None else {})}

    # --- running

    def steps(self) -> Steps[EvaluationResult]:
        for record in self._log.records.values():
            self._reporter.update(record.cell)
        try:
            with on_cancel(self._scope.cancel):
                yield from self._run_rows()
        except KeyboardInterrupt as error:
            raise self._interrupted() from error
        except BaseException as error:
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(error, "result", self._cancelled())  # noqa: B010
            raise
        return self._finished()

    def _run_rows(self) -> Steps[None]:
        options, log = self._options, self._log
        pending = [
            self._row(index, repeat)
            for repeat in range(1, options.repeat + 1)
            for index in range(len(self._examples))
            if (index, repeat) not in log.records
        ]
        if not pending:
            return
        cell_options: CellOptions = {
            "timeout": options.timeout,
            "failure_score": options.failure_score,
            "raises": _RAISED[options.errors],
            "requests": _KEPT_ROWS[options.requests],
        }
        journal = None if log.path is None else Path(f"{log.path}.journal")
        settings = {"fresh": True} if options.fresh else None
        with closing(self._rows) as rows:
            try:
                end = yield from rows.steps(
                    pending, cell_options, self, budget=options.budget, settings=settings, journal=journal
                )
            except JobRefused as error:
                self._stop.end_by(error, "")
                return
        if end.status != "complete":
            self._stop.end(end.status, None, end.detail)

    def _row(self, index: int, repeat: int) -> Row:
        name, sample = self._ids[index], repeat if repeat > 1 else None
        stored = self._log.unscored.get((index, repeat))
        return Row(self._get_program, self._examples[index], name, index, repeat, sample, name, self._types, stored)

    def _get_program(self) -> object:
        return self._program

    def _limit(self) -> int:
        """Return how many runs are under way at once: the option, a changed setting, or what the limiter suggests."""
        configured = current().num_threads
        if self._options.num_threads is not None or configured != Settings().num_threads:
            return self._options.num_threads or configured
        lm: object = None
        with suppress(ConfigurationError):  # predictors with different models
            lm = self._program.get_lm() if isinstance(self._program, Module) else None
        limiter: Limiter | None = getattr(lm or current().lm, "_limiter", None)
        return configured if limiter is None else limiter.suggested()

    # --- rows

    def around(self, row: Row, steps: Steps[Cell]) -> Steps[Cell]:
        if not has_running_loop():  # a task is cancelled by its loop, a thread by the scope
            set_scope(self._scope)
        return watched_steps("example", self._options, partial(self._facts, row), steps)

    def _facts(self, row: Row) -> dict[str, object]:
        """Return the facts of a row for callbacks."""
        facts = {"id": row.id, "index": row.index, "repeat": row.repeat, "metric": self._plan.name}
        return {**facts, "inputs": dict(Example.items(Example.inputs(row.example)))}

    def fail(self, row: Row, error: Exception) -> None:
        self._stop.end_by(error, row.id)

    def is_over(self) -> bool:
        return self._stop.is_over()

    def note(self, text: str) -> None:
        self._reporter.note(text)

    def sync(self) -> None:
        self._log.sync()

    def keep(self, done: FinishedRow) -> Steps[None]:
        record, prediction = done.record(self._log.segment), done.prediction
        if self._options.executor is not None:  # the row ran in another process: listeners see its end only
            with watched_call("example", self._options, self._facts(done.row)) as end:
                end(done.cell)
            prediction = stored_prediction(record.cell, self._types)
        elif (failure := done.cell.failure) is not None and failure.kind != "metric" and self._stop.is_out_of_time():
            return
        if (count := self._keep(record, prediction)) is not None:
            yield Emit(ExampleDone(record, count, self._total))

    def _keep(self, record: ExampleRecord, prediction: object) -> int | None:
        """Write a record, then show it. Return the number of finished runs; ``None`` after the end of the evaluation."""
        line = self._log.line_of(record)
        with self._lock:
            if self._log.is_closed:
                return None
            self._log.keep(record, prediction, line)
            failure = record.cell.failure
            if failure is not None and failure.is_bug:
                self._print_traceback(failure)
            self._stop.add(failure)
            self._reporter.update(record.cell)
            return len(self._log.records)

    def _print_traceback(self, failure: Failure) -> None:
        wanted = self._options.provide_traceback
        if wanted or (wanted is None and not self._has_printed):
            self._has_printed = True
            self._reporter.note(_visible(failure.traceback))

    # --- ending

    def _finished(self) -> EvaluationResult:
        status, cause, sentence = self._stop.reason or EvaluationStop("complete")
        result = self._close("aborted" if status == "raised" else status)
        if status == "raised" and cause is not None:
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(cause, "result", result)  # noqa: B010
            raise cause
        if status == "aborted":
            records = self._log.records
            last = next((each.cell.failure for each in reversed(records.values()) if each.cell.failure), None)
            detail = f"; the last: {last.type}: {last.message:.300}" if last is not None and cause is None else ""
            text = f"{sentence}{detail}".rstrip(".")
            raise EvaluationAborted(f"{text}. {self._summary()}", result) from cause
        return result

    def _interrupted(self) -> EvaluationInterrupted:
        """Return the exception to raise after Ctrl-C. Its message is the report: nothing else is printed."""
        result = self._cancelled()
        return EvaluationInterrupted(f"The evaluation was interrupted. {self._summary()}", result)

    def _cancelled(self) -> EvaluationResult:
        """Wake what is under way, which then closes its connections, and return the result of what is finished."""
        self._stop.end("cancelled")
        if self._scope.cancel():
            with suppress(KeyboardInterrupt):  # pressed again: the result of what is finished is wanted all the same
                self._rows.in_flight.wait(CANCEL_GRACE_SECONDS)
        return self._close("cancelled")

    def _summary(self) -> str:
        done = f"{len(self._log.records)} of {self._total} runs are finished; error.result has them."
        if self._log.path is None:
            return f"{done} With log=, the next evaluation goes on from there."
        return f"{done} Evaluate again with log={str(self._log.path)!r} to go on from there."

    def _close(self, status: str) -> EvaluationResult:
        seconds = time.monotonic() - self._started
        with self._lock:
            self._log.close(status, seconds)
        records, predictions = self._log.records, self._log.predictions
        places = sorted(records)
        options = self._options
        result = EvaluationResult.make(
            type(self._program).__name__
            if isinstance(self._program, Module)
            else getattr(self._program, "__name__", ""),
            [records[place] for place in places],
            [self._examples[index] for index, _ in places],
            [predictions[place] for place in places],
            header=self._log.header,
            earlier=self._log.earlier,
            status=status,
            metric_names=self._plan.names,
            repeat=options.repeat,
            reduce=options.reduce,
            cluster=options.cluster,
            interval=options.interval,
            failure_score=options.failure_score,
            errors=options.errors,
            seconds=seconds,
            path=None if self._log.path is None else str(self._log.path),
        )
        self._reporter.close(status, result)
        return result


_RAISED: Mapping[str, list[str]] = {
    "score": ["caller"],
    "skip": ["caller"],
    "raise": ["caller", "metric", "program", "provider"],
}


_KEPT_ROWS: Mapping[bool | str, KeptRows | None] = {True: "all", False: None, "failed": "failed"}


def _log_path(program: object, options: EvaluationOptions) -> Path | None:
    if options.log is None or options.log is False:
        return None
    if options.log is True:
        return Path("runs") / type(program).__name__ / f"{utc_now().replace(':', '-')}.jsonl"
    return Path(options.log)


def _visible(text: str) -> str:
    """Return a text without control characters that a terminal would obey."""
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)
