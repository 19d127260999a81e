"""``RemoteCells``: the runs of a search on the processes of an executor. Each program is a job, its runs are the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.effects.steps import Steps
from sigwire.errors import BudgetSpent
from sigwire.evaluate.cell import Cell, CellOptions
from sigwire.evaluate.metric_plan import Metrics
from sigwire.evaluate.rows.map_rows import coordinated, lost_record
from sigwire.evaluate.rows.rows import row_of
from sigwire.jobs.driver import Driver, chunk_size, chunks_of
from sigwire.jobs.job import Job
from sigwire.jobs.submissions import Chunk, ExecutorLike, Submissions
from sigwire.lm.policy.money.budget import Budget
from sigwire.modules.module import Module
from sigwire.optimizers.errors import SearchPaused

__all__ = ["RemoteCells", "RemoteRun"]

_STALL = 300.0  # seconds


class RemoteRun(NamedTuple):
    """A run to make. ``repeat``: from 0."""

    program: Module
    example: Example
    repeat: int


class RemoteCells:
    """Makes runs on the executor of a search, which it keeps until ``close``."""

    def __init__(self, executor: ExecutorLike, metric: Metrics | None, concurrency: int) -> None:
        self._submissions = Submissions(executor, None, _STALL, keeps=True)
        self._metric, self._concurrency = metric, concurrency

    def close(self) -> None:
        """End the processes of an executor that was made here."""
        self._submissions.close_executor()

    def steps(
        self, runs: Sequence[RemoteRun], options: CellOptions, budget: Budget, keep: Callable[[int, Cell], None]
    ) -> Steps[None]:
        """Make runs; ``keep`` gets the position and the cell of each as it ends. ``options``: those of ``cell_steps``.

        Raises ``BudgetSpent``, ``JobRefused`` if no run can be made, and ``SearchPaused`` if the engine of the executor ends.
        """
        limits = budget.limits
        limited = None if limits.calls is limits.tokens is limits.money is None else budget
        with ExitStack() as stack:
            journal = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            coordinator = stack.enter_context(coordinated(None, None, limited))
            chunks = self._chunks(runs, options, journal, coordinator)
            driver = Driver(chunks, self._submissions, _CellSink(keep), journal)
            yield from driver.steps()
        if driver.status == "budget":
            raise BudgetSpent(driver.detail)
        if driver.status != "complete":
            raise SearchPaused.after([driver.detail])

    def _chunks(
        self, runs: Sequence[RemoteRun], options: CellOptions, journal: Path, coordinator: str | None
    ) -> Iterator[Chunk]:
        size = chunk_size(len(runs), self._submissions.in_flight, self._concurrency)
        jobs: dict[int, tuple[Module, list[JsonObject]]] = {}
        for index, (program, example, repeat) in enumerate(runs):
            row = row_of(example, str(index), index, repeat)
            jobs.setdefault(id(program), (program, []))[1].append({**row, "rollout_id": repeat or None})
        for program, rows in jobs.values():
            metrics = self._metric if self._metric is None or callable(self._metric) else list(self._metric)
            job = replace(Job.of(program, metrics, concurrency=self._concurrency), options=cast(JsonObject, options))
            yield from chunks_of(job.text(journal=journal, coordinator=coordinator), rows, size)


class _CellSink:
    """Gives cells to the search, which stores each as it comes."""

    def __init__(self, keep: Callable[[int, Cell], None]) -> None:
        self._keep = keep

    def keep(self, record: JsonObject) -> Steps[None]:
        self._keep(int(str(record["id"])), Cell.from_json(record))
        yield from ()

    def give_up(self, row: JsonObject) -> Steps[None]:
        yield from self.keep(lost_record(row))

    def sync(self) -> None:
        """Do nothing: the journal of the search syncs itself."""

    def is_over(self) -> bool:
        return False
