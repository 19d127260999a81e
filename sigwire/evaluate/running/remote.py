"""``RemoteRuns``: the runs of examples of an evaluation, on the processes of an executor."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.effects.steps import Steps
from sigwire.evaluate.records import ExampleRecord, RecordFile
from sigwire.evaluate.rows.map_rows import lost_record
from sigwire.evaluate.rows.rows import row_of
from sigwire.evaluate.rows.run import coordinated
from sigwire.evaluate.running.options import EvaluationOptions
from sigwire.jobs.driver import Driver, chunk_size, chunks_of
from sigwire.jobs.job import Job
from sigwire.jobs.journal import key_of, read_blocks, remove_block
from sigwire.jobs.submissions import Submissions
from sigwire.observe.callbacks import watched_call
from sigwire.settings import context

__all__ = ["RemoteRuns"]

_STALL = 300.0  # seconds
_Keep = Callable[[ExampleRecord], Steps[None]]


class RemoteRuns:
    """Runs rows by a ``Driver``. ``raises``: kinds of failures that end the evaluation; ``log``: the file of records."""

    def __init__(
        self,
        program: object,
        options: EvaluationOptions,
        raises: Sequence[str],
        concurrency: int,
        log: RecordFile | None,
    ) -> None:
        self._options, self._log = options, log
        row_options: JsonObject = {
            "timeout": options.timeout, "failure_score": options.failure_score, "raises": [*raises],
        }  # fmt: skip
        metric: Any = options.metric
        with ExitStack() as stack:
            if options.fresh:
                stack.enter_context(context(fresh=True))
            self._job = replace(Job.of(program, metric, concurrency=concurrency), options=row_options)

    def steps(
        self, rows: Iterable[tuple[Example, str, int, int]], keep: _Keep, is_over: Callable[[], bool]
    ) -> Steps[tuple[str, str]]:
        """Run examples (with id, index and repeat); return the status of the driver and its detail."""
        options = self._options
        with ExitStack() as stack:
            journal = Path(
                f"{self._log.path}.journal" if self._log else stack.enter_context(tempfile.TemporaryDirectory())
            )
            coordinator = stack.enter_context(coordinated(None, None, options.budget))
            sink = _RemoteSink(options, keep, is_over, (lambda: None) if self._log is None else self._log.sync)
            pending = {key_of(row): row for row in (row_of(*row) for row in rows)}
            for record in [*read_blocks(journal)] if self._log else ():
                if is_same_row(record, pending.get(key_of(record))):
                    del pending[key_of(record)]
                    yield from sink.keep(record)
            remove_block(journal)
            submissions = Submissions(options.executor, None, _STALL)
            size = chunk_size(len(pending), submissions.in_flight, self._job.concurrency)
            text = self._job.text(journal=journal, coordinator=coordinator)
            driver = Driver(chunks_of(((text, row) for row in pending.values()), size), submissions, sink, journal)
            try:
                yield from driver.steps()
            finally:
                submissions.close()
            return driver.status, driver.detail


def is_same_row(record: JsonObject, row: JsonObject | None) -> bool:
    """Return True if a record is of this row, and not of another with its id."""
    return row is not None and all(record[name] == row[name] for name in ("inputs", "labels"))


class _RemoteSink:
    """Gives records to the evaluation; its listeners see each when it is there."""

    def __init__(
        self, options: EvaluationOptions, keep: _Keep, is_over: Callable[[], bool], sync: Callable[[], object]
    ) -> None:
        self._options, self._keep, self.is_over, self._sync = options, keep, is_over, sync

    def keep(self, record: JsonObject) -> Steps[None]:
        read = ExampleRecord.from_json(record, kept=False)
        facts = {"id": read.id, "index": read.index, "repeat": read.repeat, "inputs": read.inputs}
        with watched_call("example", self._options, facts) as end:
            end(read.cell)
        yield from self._keep(read)

    def give_up(self, row: JsonObject) -> Steps[None]:
        yield from self.keep(lost_record(row))

    def sync(self) -> None:
        self._sync()
