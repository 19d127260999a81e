"""``EvaluationRun``: one evaluation under way. It starts the pending runs, keeps what is finished, and decides when to stop.

Several threads may finish at once; what is finished is in the log before the progress shows it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigwire.core.example import Example, Prediction
from sigwire.effects.cancellation import CANCEL_GRACE_SECONDS, CancelScope, on_cancel, set_scope
from sigwire.effects.emitting import Emit
from sigwire.effects.gather import Gather
from sigwire.effects.loops import has_running_loop
from sigwire.effects.steps import Steps
from sigwire.errors import BudgetSpent, ConfigurationError, SigwireError
from sigwire.evaluate.cell import Cell, cell_steps
from sigwire.evaluate.examples import check_devset, check_program, example_ids, split_fields
from sigwire.evaluate.failures import Failure
from sigwire.evaluate.figures.stored_run import stored_prediction
from sigwire.evaluate.git import git_state
from sigwire.evaluate.metric_plan import MetricPlan
from sigwire.evaluate.plain import plain_fields
from sigwire.evaluate.progress import progress_reporter
from sigwire.evaluate.records import ExampleRecord, RecordFile, finished_records, run_header, utc_now
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.running.options import EvaluationOptions
from sigwire.jobs.errors import JobRefused
from sigwire.lm.policy.limits.runs import Run, current_run
from sigwire.modules.module import Module
from sigwire.modules.where import locate
from sigwire.observe.callbacks import watched_steps
from sigwire.observe.place import enter
from sigwire.settings import Settings, context, current

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject
    from sigwire.lm.policy.limits.limiter import Limiter

__all__ = [
    "EvaluationAborted", "EvaluationInterrupted", "EvaluationRun", "ExampleDone",
]  # fmt: skip

DEFAULT_MAX_ERRORS = 10
_METRIC_FAILURES_AT_START = 3


class EvaluationAborted(SigwireError):
    """An evaluation ended before all examples were run. ``result`` has those that are finished."""

    def __init__(self, message: str, result: EvaluationResult | None = None) -> None:
        super().__init__(message)
        self.result = result


class EvaluationInterrupted(KeyboardInterrupt):
    """Ctrl-C ended an evaluation. ``result`` has the finished examples."""

    def __init__(self, message: str, result: EvaluationResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, slots=True)
class ExampleDone:
    """An event of a streamed evaluation: an example is finished. ``done`` of ``total`` runs are."""

    record: ExampleRecord
    done: int
    total: int


class EvaluationRun:
    """One evaluation: the pending runs, what is finished, and why it stopped. Threads share it."""

    def __init__(self, program: object, options: EvaluationOptions, plan: MetricPlan) -> None:
        self._program, self._options, self._plan = program, options, plan
        check_program(program)
        self._examples = check_devset(options.devset, program)
        self._ids = example_ids(self._examples)
        self._header = self._make_header()
        self._lock = threading.Lock()
        self._run, self._scope = Run(), CancelScope()
        self._records: dict[tuple[int, int], ExampleRecord] = {}
        self._predictions: dict[tuple[int, int], Any] = {}
        self._failures = self._done = 0
        self._is_start = True  # only failures of the metric yet
        self._active: set[tuple[int, int]] = set()
        self._stop: tuple[str, Exception | None, str] | None = None  # status, cause, sentence
        self._is_closed = False
        self._has_printed = False
        self._started = time.monotonic()
        self._log = self._open_log()

    def _make_header(self) -> JsonObject:
        options = self._options
        header = run_header(self._program, self._ids, self._plan.names, options.repeat, options.reduce)
        names = ("errors", "failure_score", "interval", "cluster")
        rest: JsonObject = {**{name: getattr(options, name) for name in names}, "num_threads": self._limit()}
        git = None if options.log in (None, False) else git_state()
        return {**header, **rest, **({"git": git} if git is not None else {})}

    def _open_log(self) -> RecordFile | None:
        given = self._options.log
        if given is None or given is False:
            return None
        name = type(self._program).__name__
        path = Path("runs") / name / f"{utc_now().replace(':', '-')}.jsonl" if given is True else Path(given)
        log = RecordFile(path)
        try:
            kept = finished_records(log.rows, self._header, path, resume=self._options.resume)
        except BaseException:
            log.close()
            raise
        if kept is None:
            log.append(self._header)
            return log
        positions = {own: index for index, own in enumerate(self._ids)}
        for (own, repeat), record in kept.items():
            index = positions[own]
            if repeat <= self._options.repeat and _is_same(record, self._examples[index]):
                self._records[index, repeat] = replace(record, index=index)
                self._predictions[index, repeat] = stored_prediction(record)
        return log

    # --- running

    def steps(self) -> Steps[EvaluationResult]:
        options = self._options
        pending = [
            (index, repeat)
            for repeat in range(1, options.repeat + 1)
            for index in range(len(self._examples))
            if (index, repeat) not in self._records
        ]
        total = len(self._examples) * options.repeat
        mode = options.progress if options.display_progress in (None, True) else False
        self._reporter = progress_reporter(mode, total, self._plan.name)
        self._total, self._done = total, len(self._records)
        for record in self._records.values():
            self._reporter.update(record.cell)
        try:
            with on_cancel(self._scope.cancel):
                if pending and options.executor is not None:
                    yield from self._remote(pending)
                elif pending:
                    yield Gather([self._one(*each) for each in pending], limit=self._limit())
        except KeyboardInterrupt as error:
            raise self._interrupted() from error
        except BaseException as error:
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(error, "result", self._cancelled())  # noqa: B010
            raise
        return self._finished()

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

    def _remote(self, pending: Sequence[tuple[int, int]]) -> Steps[None]:
        """Run examples on the executor. Loaded late: other evaluations need no jobs."""
        from sigwire.evaluate.running.remote import RemoteRuns

        rows = [(self._examples[index], self._ids[index], index, repeat) for index, repeat in pending]
        raises = sorted(_RAISED[self._options.errors])
        remote = RemoteRuns(self._program, self._options, raises, self._limit(), self._log)
        try:
            status, detail = yield from remote.steps(rows, self._keep_remote, self._is_over)
        except JobRefused as error:
            self._end_by(error, "")
            return
        if status != "complete":
            self._end(status, None, detail)

    def _keep_remote(self, record: ExampleRecord) -> Steps[None]:
        done = self._keep(record, stored_prediction(record))
        if done is not None:
            yield Emit(ExampleDone(record, done, self._total))

    def _is_over(self) -> bool:
        return self._stop is not None or self._is_out_of_time()

    def _one(self, index: int, repeat: int) -> Steps[None]:
        """Run one example, in a context of its own, unless the evaluation has stopped."""
        if self._stop is not None or self._is_out_of_time():
            return
        self._active.add((index, repeat))
        try:
            yield from self._one_started(index, repeat)
        finally:
            self._active.discard((index, repeat))

    def _one_started(self, index: int, repeat: int) -> Steps[None]:
        current_run.set(self._run)
        if not has_running_loop():  # a task is cancelled by its loop, a thread by the scope
            set_scope(self._scope)
        options, started = self._options, utc_now()
        example = self._examples[index]
        enter(self._program, self._ids[index])
        predictions: list[Any] = []
        steps = cell_steps(
            self._program,
            example,
            self._plan,
            timeout=options.timeout,
            failure_score=options.failure_score,
            rollout_id=repeat if repeat > 1 else None,
            raises=_RAISED[options.errors],
            keep=predictions.append,
        )
        if options.budget is not None or options.fresh:
            steps = self._bounded(steps)
        try:
            cell = yield from watched_steps("example", options, lambda: self._facts(index, repeat), steps)
        except Exception as error:
            self._end_by(error, self._ids[index])
            return
        if cell.failure is not None and self._is_out_of_time():
            return
        inputs, labels = map(plain_fields, split_fields(example))
        record = ExampleRecord(self._ids[index], index, repeat, inputs, labels, cell, started)
        if (done := self._keep(record, predictions[0] if predictions else Prediction())) is not None:
            yield Emit(ExampleDone(record, done, self._total))

    def _facts(self, index: int, repeat: int) -> dict[str, object]:
        """Return the facts of a run for callbacks."""
        facts = {"id": self._ids[index], "index": index, "repeat": repeat, "metric": self._plan.name}
        return {**facts, "inputs": dict(self._examples[index].inputs().items())}

    def _bounded(self, steps: Steps[Cell]) -> Steps[Cell]:
        with ExitStack() as stack:
            if self._options.budget is not None:
                stack.enter_context(self._options.budget)
            if self._options.fresh:
                stack.enter_context(context(fresh=True))
            return (yield from steps)

    def _is_out_of_time(self) -> bool:
        """End the evaluation, and return True, if the seconds of its budget are over."""
        ends = None if self._options.budget is None else self._options.budget.deadline()
        if ends is None or time.monotonic() < ends:
            return False
        with self._lock:
            self._end("budget", None, "The seconds of the budget are over")
        return True

    def _keep(self, record: ExampleRecord, prediction: object) -> int | None:
        """Write a record, then show it. Return the number of finished runs; ``None`` after the end of the evaluation."""
        line = None if self._log is None else record.to_json()
        with self._lock:
            if self._is_closed:
                return None
            if self._log is not None and line is not None:
                self._log.append(line)
            self._records[record.index, record.repeat] = record
            self._predictions[record.index, record.repeat] = prediction
            self._done += 1
            self._check_failures(record.cell)
            self._reporter.update(record.cell)
            return self._done

    def _check_failures(self, cell: Cell) -> None:
        failure = cell.failure
        self._is_start = self._is_start and failure is not None and failure.kind == "metric"
        if failure is None:
            return
        self._failures += 1
        if failure.is_bug:
            self._print_traceback(failure)
        if self._is_start and self._failures == _METRIC_FAILURES_AT_START:
            self._end("aborted", None, f"The metric failed on the first {_METRIC_FAILURES_AT_START} examples")
        most = DEFAULT_MAX_ERRORS if self._options.max_errors is None else self._options.max_errors
        if self._failures > most:
            self._end("aborted", None, f"More than {most} examples failed (max_errors={most})")

    def _print_traceback(self, failure: Failure) -> None:
        wanted = self._options.provide_traceback
        if wanted or (wanted is None and not self._has_printed):
            self._has_printed = True
            self._reporter.note(_visible(failure.traceback))

    def _end(self, status: str, cause: Exception | None, sentence: str) -> None:
        if self._stop is None:
            self._stop = (status, cause, sentence)

    def _end_by(self, error: Exception, example: str) -> None:
        """End by an error that was raised: a spent budget, a failure of the caller, or the first one with errors="raise"."""
        with suppress(Exception):
            locate(error, example=example)
        if self._is_out_of_time():
            return
        with self._lock:
            if isinstance(error, BudgetSpent) and self._options.budget is not None:
                self._end("budget", error, "The budget is spent")
            elif self._options.errors == "raise":
                self._end("raised", error, "")
            else:
                self._end("aborted", error, f"No example can succeed: {type(error).__name__}: {error}")

    # --- ending

    def _finished(self) -> EvaluationResult:
        status, cause, sentence = self._stop or ("complete", None, "")
        result = self._close("aborted" if status == "raised" else status)
        if status == "raised" and cause is not None:
            with suppress(Exception):  # a user's exception class may refuse attributes
                setattr(cause, "result", result)  # noqa: B010
            raise cause
        if status == "aborted":
            last = next((each.cell.failure for each in reversed(self._records.values()) if each.cell.failure), None)
            detail = f"; the last: {last.type}: {last.message:.300}" if last is not None and cause is None else ""
            text = f"{sentence}{detail}".rstrip(".")
            raise EvaluationAborted(f"{text}. {self._summary()}", result) from cause
        return result

    def _interrupted(self) -> EvaluationInterrupted:
        """Return the exception to raise after Ctrl-C; print what it holds."""
        result = self._cancelled()
        line = f"The evaluation was interrupted. {self._summary()}"
        sys.stderr.write(f"\n{result!r}\n{line}\n")
        return EvaluationInterrupted(line, result)

    def _cancelled(self) -> EvaluationResult:
        """Wake what is under way, which then closes its connections, and return the result of what is finished."""
        self._end("cancelled", None, "")
        if self._scope.cancel():
            ends = time.monotonic() + CANCEL_GRACE_SECONDS
            while self._active and time.monotonic() < ends:
                time.sleep(0.01)
        return self._close("cancelled")

    def _summary(self) -> str:
        done = f"{len(self._records)} of {self._total} runs are finished; error.result has them."
        if self._log is None:
            return f"{done} With log=, the next evaluation goes on from there."
        return f"{done} Evaluate again with log={str(self._log.path)!r} to go on from there."

    def _close(self, status: str) -> EvaluationResult:
        seconds = time.monotonic() - self._started
        with self._lock:
            self._is_closed = True
            if self._log is not None:
                try:
                    self._log.append(
                        {"type": "end", "status": status, "records": len(self._records), "seconds": seconds}
                    )
                except OSError:  # the disk is full; an error that is already raised keeps its result
                    if status == "complete":
                        raise
                finally:
                    self._log.close()
        places = sorted(self._records)
        options = self._options
        result = EvaluationResult.make(
            type(self._program).__name__
            if isinstance(self._program, Module)
            else getattr(self._program, "__name__", ""),
            [self._records[place] for place in places],
            [self._examples[index] for index, _ in places],
            [self._predictions[place] for place in places],
            header=self._header,
            status=status,
            metric_names=self._plan.names,
            repeat=options.repeat,
            reduce=options.reduce,
            cluster=options.cluster,
            interval=options.interval,
            failure_score=options.failure_score,
            errors=options.errors,
            seconds=seconds,
            path=None if self._log is None else str(self._log.path),
        )
        self._reporter.close(status, result)
        return result


_RAISED: Mapping[str, frozenset[str]] = {
    "score": frozenset({"caller"}),
    "skip": frozenset({"caller"}),
    "raise": frozenset({"caller", "provider", "program", "metric"}),
}


def _is_same(record: ExampleRecord, example: Example) -> bool:
    """Return True if a record is of this example, and not of another with its id."""
    return (record.inputs, record.labels) == tuple(map(plain_fields, split_fields(example)))


def _visible(text: str) -> str:
    """Return a text without control characters that a terminal would obey."""
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)
