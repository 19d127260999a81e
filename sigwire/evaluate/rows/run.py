"""``RowRun``: runs rows, and gives each finished row to its caller.

    rows ──Gather──▶ cell_steps ──────────────────────────▶ caller.keep     threads or tasks of this process
    rows ──chunks──▶ Driver ──▶ worker ─record─────────────▶ caller.keep     the processes of an executor

The caller is an evaluation, a search or ``map_rows``. It decides which rows are run, what is kept and when no more rows are
wanted; it does not know how rows are run.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sigwire.core.example import Example, Prediction
from sigwire.core.json import JsonObject
from sigwire.effects.cancellation import INTERRUPT_GRACE_SECONDS
from sigwire.effects.steps import Steps
from sigwire.evaluate.cell import Cell, CellOptions, cell_steps
from sigwire.evaluate.examples import split_fields
from sigwire.evaluate.failures import Failure, unscored
from sigwire.evaluate.metric_plan import MetricPlan, Metrics
from sigwire.evaluate.plain import Form, written_fields
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.rows.in_flight import RowsInFlight, waiting_text
from sigwire.evaluate.rows.rows import ENDED, is_record_of, row_of
from sigwire.evaluate.segments import utc_now
from sigwire.jobs.journal import RowKey, key_of, read_blocks, remove_block
from sigwire.lm.policy.limits.runs import Run
from sigwire.lm.policy.money.opened import open_budgets
from sigwire.modules.batch import in_run
from sigwire.modules.field_types import FieldTypes
from sigwire.settings import context

if TYPE_CHECKING:
    from sigwire.jobs.driver import DriverStatus
    from sigwire.jobs.job import Job
    from sigwire.jobs.submissions import ExecutorLike, Submissions
    from sigwire.lm.policy.money.budget import Budget

__all__ = ["FinishedRow", "Row", "RowExecutor", "RowRun", "RowsCaller", "RowsEnd", "coordinated"]

_LOST = Failure("worker", "WorkerLost", "The process ended while this row ran in it, with no other row in any worker.")


@dataclass(frozen=True, slots=True)
class Row:
    """A run of a program on an example.

    ``program`` is called when the row starts; a ``Job`` is sent as it is. ``id`` and ``repeat`` are the key of the row.
    ``sample``: the sample that model calls ask the cache for. ``name``: the example in the place of errors.
    ``types``: the fields that the program declares. ``stored``: an earlier record, whose outputs are scored; the program is not
    run.
    """

    program: Callable[[], Any]
    example: Example
    id: str
    index: int
    repeat: int
    sample: int | None
    name: str | None = None
    types: FieldTypes = field(default_factory=dict[str, Any])
    stored: ExampleRecord | None = None


class FinishedRow(NamedTuple):
    """A row that ended. ``started``: a time in UTC; ``prediction``: ``None`` if the row ran on an executor.

    ``is_recovered``: it ended in the part of the run before, which was killed.
    """

    row: Row
    cell: Cell
    started: str
    prediction: Any
    is_recovered: bool = False

    def record(self, segment: int = 0) -> ExampleRecord:
        """Return the record of the row. ``segment``: this part of a resumed run; that of stored outputs is kept.

        >>> row = Row(dict, Example(question="2+2?").with_inputs("question"), "7", 0, 1, None)
        >>> FinishedRow(row, Cell(1.0), "", None).record().inputs
        {'question': '2+2?'}
        """
        row = self.row
        if row.stored is not None:
            return replace(row.stored, cell=self.cell)
        inputs, labels = (written_fields(part, row.types) for part in split_fields(row.example))
        forms: dict[str, Form] = {**inputs.forms, **labels.forms}
        found = ExampleRecord(
            row.id, row.index, row.repeat, inputs.plain, labels.plain, self.cell, self.started, forms=forms
        )
        own = max(0, segment - self.is_recovered)
        return replace(found, segment=own) if own else found


class RowsEnd(NamedTuple):
    """The end of a run of rows. ``detail``: why it is not complete; ``lost`` and ``duplicates``: see ``Driver``."""

    status: DriverStatus = "complete"
    detail: str = ""
    lost: int = 0
    duplicates: int = 0


class RowExecutor(NamedTuple):
    """An executor, and how rows are sent to its processes.

    ``chunk``: rows sent together, by default from their number; without it rows are drawn before the first is sent.
    ``in_flight``, ``stall``, ``rate``, ``calls`` and ``coordinator``: see ``map_rows``.
    """

    executor: ExecutorLike
    chunk: int | None = None
    in_flight: int | None = None
    stall: float = 300.0
    rate: float | None = None
    calls: int | None = None
    coordinator: str | None = None


class RowsCaller:
    """The decisions of a caller of ``RowRun``."""

    def around(self, row: Row, steps: Steps[Cell]) -> Steps[Cell]:
        """Return the steps of a row with what belongs around them. Rows of an executor have none."""
        return steps

    def fail(self, row: Row, error: Exception) -> None:
        """Take an error that is no failure of the row. By default it ends the run of all rows."""
        raise error

    def keep(self, done: FinishedRow) -> Steps[None]:
        """Keep a finished row."""
        raise NotImplementedError

    def keep_unscored(self, done: FinishedRow) -> Steps[None]:
        """Keep a row whose program answered before ``fail`` was called. By default as any other."""
        return self.keep(done)

    def sync(self) -> None:
        """Return when all kept rows are on disk."""

    def is_over(self) -> bool:
        """Return True if no more rows are wanted."""
        return False

    def note(self, text: str) -> None:
        """Show a line, by default on stderr."""
        sys.stderr.write(text)


class RowRun:
    """Runs rows: at most ``limit`` at once here, or in each process of an executor. ``plan`` is that of ``metric``.

    ``end``: the end of the last run, also if it raised.
    """

    def __init__(
        self, metric: Metrics | None, plan: MetricPlan | None, limit: int, executor: RowExecutor | None = None
    ) -> None:
        self._metric, self._plan, self._limit, self._executor = metric, plan, limit, executor
        self._submissions: Submissions | None = None
        self.in_flight = RowsInFlight()
        self.run = Run()
        self.end = RowsEnd()

    def steps(
        self,
        rows: Iterable[Row],
        options: CellOptions,
        caller: RowsCaller,
        *,
        budget: Budget | None = None,
        settings: Mapping[str, Any] | None = None,
        journal: Path | None = None,
    ) -> Steps[RowsEnd]:
        """Run rows. ``options``: those of ``cell_steps``; ``budget`` and ``settings``: of these rows, not of what runs between.

        ``journal``: the folder of the rows that workers began and finished; those that a killed run left there are kept first.
        After a first interrupt of a blocked caller no row starts, and those in flight have ten seconds before it is raised.
        Raises ``JobRefused`` if a worker refuses the job, and what ``caller.fail`` raises.
        """
        self.end = RowsEnd()
        if self._executor is None:
            yield from self.at_once([self._one(row, options, caller, budget, settings) for row in rows], caller)
        else:
            yield from self._send(self._executor, rows, options, caller, budget, settings, journal)
        return self.end

    def at_once(self, parts: Sequence[Steps[None]], caller: RowsCaller) -> Steps[None]:
        """Run steps as rows of this process: at most ``limit`` at once, and after an interrupt as ``steps`` has it."""
        yield from self.in_flight.gather(parts, self._limit, caller.note)

    def close(self) -> None:
        """End the processes of an executor that was made here."""
        if self._submissions is not None:
            self._submissions.close()

    # --- in this process

    def _one(
        self,
        row: Row,
        options: CellOptions,
        caller: RowsCaller,
        budget: Budget | None,
        settings: Mapping[str, Any] | None,
    ) -> Steps[None]:
        """Run one row, in a context of its own, unless no more rows are wanted."""
        if caller.is_over():
            self.end = RowsEnd("stopped")
            return
        answered: list[tuple[Any, Cell]] = []
        # Not around ``Gather``: the consumer of a streamed run would work within the budget and the settings.
        with _NOTHING if budget is None else budget, _set(settings):
            program, started = row.program(), utc_now()
            in_run(self.run, program, row.name)
            steps = cell_steps(
                program,
                row.example,
                self._plan,
                rollout_id=row.sample,
                keep=lambda prediction, cell: answered.append((prediction, cell)),
                stored=None if row.stored is None else row.stored.cell,
                **options,
            )
            found: Cell | Exception
            try:
                found = yield from caller.around(row, steps)
            except Exception as error:
                found = error
        prediction = answered[0][0] if answered else Prediction()
        if isinstance(found, Cell):
            yield from caller.keep(FinishedRow(row, found, started, prediction))
            return
        try:
            caller.fail(row, found)
        finally:
            if answered:
                cell = replace(answered[0][1], failure=unscored(found))
                yield from caller.keep_unscored(FinishedRow(row, cell, started, prediction))

    # --- on an executor

    def _send(
        self,
        executor: RowExecutor,
        rows: Iterable[Row],
        options: CellOptions,
        caller: RowsCaller,
        budget: Budget | None,
        settings: Mapping[str, Any] | None,
        journal: Path | None,
    ) -> Steps[None]:
        from sigwire.jobs.driver import Driver, chunk_size, chunks_of  # rows of this process need no jobs
        from sigwire.jobs.submissions import Submissions

        if self._submissions is None:
            self._submissions = Submissions(executor.executor, executor.in_flight, executor.stall)
        with ExitStack() as stack:
            coordinator = stack.enter_context(coordinated(executor.rate, executor.calls, budget, executor.coordinator))
            if journal is None:
                journal = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            else:
                rows = yield from _recovered(rows, journal, caller)
            sink = _Sink(caller)
            sent: Iterable[tuple[str, JsonObject]] = self._sent(rows, options, sink, settings, journal, coordinator)
            if (size := executor.chunk) is None:
                sent = [*sent]
                size = chunk_size(len(sent), self._submissions.in_flight, self._limit)
            driver = Driver(chunks_of(sent, size), self._submissions, sink, journal)
            try:
                yield from driver.steps()
            except KeyboardInterrupt:
                yield from driver.let_end(INTERRUPT_GRACE_SECONDS, lambda rows: caller.note(waiting_text(rows)))
                raise
            finally:
                self.end = RowsEnd(driver.status, driver.detail, driver.lost, driver.duplicates)

    def _sent(
        self,
        rows: Iterable[Row],
        options: CellOptions,
        sink: _Sink,
        settings: Mapping[str, Any] | None,
        journal: Path,
        coordinator: str | None,
    ) -> Iterator[tuple[str, JsonObject]]:
        """Yield the text of its job and the JSON of each row. Rows of one program are rows of one job."""
        # By the id of the program, which is kept: another one could get its id.
        texts: dict[int, tuple[object, str]] = {}
        for row in rows:
            with _set(settings):  # a job has those of the context; the caller draws rows between its own steps
                program = row.program()
                if (found := texts.get(id(program))) is None:
                    text = self._job_of(program, options).text(journal=journal, coordinator=coordinator)
                    found = texts[id(program)] = program, text
            sink.rows[row.id, row.repeat] = row
            yield found[1], _json_of(row)

    def _job_of(self, program: object, options: CellOptions) -> Job:
        from sigwire.evaluate.rows.worker import RowRunner
        from sigwire.jobs.job import Job

        if isinstance(program, Job):
            return program
        metrics: Any = self._metric if self._metric is None or callable(self._metric) else list(self._metric)
        job = Job.of(program, metrics, concurrency=self._limit, runner=RowRunner)
        return replace(job, options=cast(JsonObject, options))


class _Sink:
    """Gives the records of the driver to the caller. ``rows``: those that are drawn and have no record yet, by key."""

    def __init__(self, caller: RowsCaller) -> None:
        self._caller, self.sync, self.is_over = caller, caller.sync, caller.is_over
        self.rows: dict[RowKey, Row] = {}

    def keep(self, record: JsonObject) -> Steps[None]:
        row, started = self.rows.pop(key_of(record)), str(record.get("started", ""))
        keep = self._caller.keep_unscored if ENDED in record else self._caller.keep
        yield from keep(FinishedRow(row, Cell.from_json(record), started, None))

    def give_up(self, row: JsonObject) -> Steps[None]:
        lost = self.rows.pop(key_of(row))
        yield from self._caller.keep(FinishedRow(lost, Cell(None, failure=_LOST), utc_now(), None))


_NOTHING = nullcontext()


def _set(settings: Mapping[str, Any] | None) -> AbstractContextManager[None]:
    return context(**settings) if settings else _NOTHING


def _json_of(row: Row) -> JsonObject:
    sent = row_of(row.example, row.id, row.index, row.repeat, row.types)
    if row.sample != (row.repeat if row.repeat > 1 else None):
        sent["rollout_id"] = row.sample
    if row.stored is not None:
        sent |= {"stored": row.stored.cell.to_json(), "segment": row.stored.segment}
    return sent


def _recovered(rows: Iterable[Row], journal: Path, caller: RowsCaller) -> Steps[Iterable[Row]]:
    """Keep the rows that are finished in the journals of a killed run; return the others."""
    read = [ExampleRecord.from_json(record, kept=False) for record in read_blocks(journal)]
    if read:
        found = {(record.id, record.repeat): record for record in read}
        pending: list[Row] = []
        for row in rows:
            record = found.get((row.id, row.repeat))
            if record is not None and is_record_of(record, row.example, row.types):
                yield from caller.keep(FinishedRow(row, record.cell, record.started, None, is_recovered=True))
            else:
                pending.append(row)
        rows = pending
    caller.sync()  # what was kept is on disk before its only other copy is removed
    remove_block(journal)
    return rows


@contextmanager
def coordinated(
    rate: float | None, calls: int | None, budget: Budget | None, coordinator: str | None = None
) -> Generator[str | None]:
    """Yield the URL of a coordinator with these limits and the open budgets, or the given one; ``None`` without limits."""
    if rate is None and calls is None and budget is None and (coordinator is not None or not open_budgets()):
        yield coordinator
        return
    from sigwire.jobs.coordinator import Coordinator  # needed for limits only

    with Coordinator(rate=rate, calls=calls, budget=budget) as made:
        yield made.url
