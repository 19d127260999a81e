"""``RowRunner``: the steps of a row in a worker, which are those of an example in ``Evaluate``. Jobs name it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sigwire.core.json import JsonObject
from sigwire.effects.steps import Steps
from sigwire.evaluate.cell import CellOptions, cell_steps
from sigwire.evaluate.mapping.rows import example_of, record_of
from sigwire.evaluate.metric_plan import Metric, MetricPlan
from sigwire.evaluate.records import utc_now
from sigwire.jobs.journal import key_of
from sigwire.observe.place import enter

__all__ = ["RowRunner"]


class RowRunner:
    """Runs and scores rows with a program."""

    def __init__(self, program: object, metrics: Sequence[Metric], options: CellOptions) -> None:
        self._program = program
        self._plan = MetricPlan(metrics if len(metrics) > 1 else metrics[0]) if metrics else None
        self._options: CellOptions = {"raises": ["caller"], **options}

    def steps(self, row: JsonObject) -> Steps[JsonObject]:
        """Run one row; return its record as JSON."""
        own, repeat = key_of(row)
        started = utc_now()
        enter(self._program, own)
        sample = cast("int | None", row.get("rollout_id", repeat if repeat > 1 else None))
        example = example_of(row, self._program)
        cell = yield from cell_steps(self._program, example, self._plan, rollout_id=sample, **self._options)
        return record_of(row, cell, started)
