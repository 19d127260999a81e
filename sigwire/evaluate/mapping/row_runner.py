"""``RowRunner``: the steps of a row in a worker, which are those of an example in ``Evaluate``. Jobs name it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from sigwire.core.json import JsonObject
from sigwire.effects.steps import Steps
from sigwire.evaluate.cell import cell_steps
from sigwire.evaluate.mapping.rows import example_of, record_of
from sigwire.evaluate.metric_plan import Metric, MetricPlan
from sigwire.evaluate.records import utc_now
from sigwire.jobs.journal import key_of
from sigwire.observe.place import enter

__all__ = ["RowOptions", "RowRunner"]


class RowOptions(TypedDict, total=False):
    """Options of ``cell_steps``. ``raises``: kinds of failures that end the run."""

    traced: bool
    strict: bool
    timeout: float | None
    failure_score: float
    raises: list[str]
    explained: bool


class RowRunner:
    """Runs and scores rows with a program."""

    def __init__(self, program: object, metrics: Sequence[Metric], options: RowOptions) -> None:
        self._program = program
        self._plan = MetricPlan(metrics if len(metrics) > 1 else metrics[0]) if metrics else None
        self._options = options

    def steps(self, row: JsonObject) -> Steps[JsonObject]:
        """Run one row; return its record as JSON."""
        own, repeat = key_of(row)
        options, started = self._options, utc_now()
        enter(self._program, own)
        cell = yield from cell_steps(
            self._program,
            example_of(row, self._program),
            self._plan,
            traced=options.get("traced", False),
            strict=options.get("strict", False),
            timeout=options.get("timeout"),
            failure_score=options.get("failure_score", 0.0),
            rollout_id=repeat if repeat > 1 else None,
            raises=frozenset(options.get("raises", ("caller",))),
            explained=options.get("explained", False),
        )
        return record_of(row, cell, started)
