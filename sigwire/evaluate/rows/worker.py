"""``RowRunner``: the steps of a row in a worker, which are those of an example in ``Evaluate``.

The text of a job names it by its path; ``MOVED`` of the package has the paths of earlier versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.evaluate.cell import Cell, CellOptions, cell_steps
from sigwire.evaluate.failures import failure_of, unscored
from sigwire.evaluate.metric_plan import Metric, MetricPlan
from sigwire.evaluate.rows.rows import ENDED, as_example, example_of, record_of
from sigwire.evaluate.segments import utc_now
from sigwire.jobs.errors import RowEnded
from sigwire.jobs.journal import key_of
from sigwire.observe.place import enter

__all__ = ["RowReader", "RowRunner"]

RowReader: TypeAlias = "Callable[[str], Example | Mapping[str, object]]"


class RowRunner:
    """Runs and scores rows with a program."""

    def __init__(
        self, program: object, metrics: Sequence[Metric], options: CellOptions, read: RowReader | None = None
    ) -> None:
        self._program, self._read = program, read
        self._plan = MetricPlan(metrics if len(metrics) > 1 else metrics[0]) if metrics else None
        self._options: CellOptions = {"raises": ["caller"], **options}

    def steps(self, row: JsonObject) -> Steps[JsonObject]:
        """Run one row, or score its ``stored`` outputs; return its record as JSON."""
        own, repeat = key_of(row)
        started = utc_now()
        enter(self._program, own)
        sample = cast("int | None", row.get("rollout_id", repeat if repeat > 1 else None))
        try:
            example = (
                example_of(row, self._program) if self._read is None else (yield from _read_steps(self._read, own))
            )
        except Exception as error:
            if self._read is None or (failure := failure_of(error)).kind == "caller":
                raise
            again = replace(failure, kind="provider")  # not scored, and run again by a resumed run
            return record_of(row, Cell(None, failure=again), started)
        answered: list[Cell] = []
        stored = Cell.from_json(cast(JsonObject, row["stored"])) if "stored" in row else None
        try:
            cell = yield from cell_steps(
                self._program,
                example,
                self._plan,
                rollout_id=sample,
                keep=lambda prediction, cell: answered.append(cell),
                stored=stored,
                **self._options,
            )
        except Exception as error:
            if not answered:
                raise
            cell = replace(answered[0], failure=unscored(error))
            raise RowEnded(error, {**record_of(row, cell, started), ENDED: True}) from error
        return record_of(row, cell, started)


def _read_steps(read: RowReader, own: str) -> Steps[Example]:
    call = partial(read, own)
    given = yield FunctionEffect(call, partial(to_thread, call))
    return as_example(given, f"The row {own}")
