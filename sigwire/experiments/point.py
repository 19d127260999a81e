"""``Point`` and ``MeasuredPoint``: one cell of the grid of an experiment, and what was found at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sigwire.show.card import BoundedRepr

if TYPE_CHECKING:
    from sigwire.effects.steps import Steps
    from sigwire.evaluate.evaluation import Evaluate
    from sigwire.evaluate.metric_plan import Metrics
    from sigwire.evaluate.result import EvaluationResult
    from sigwire.optimizers.reports.report import OptimizationReport

__all__ = ["AXES", "SEPARATOR", "Grid", "MeasuredPoint", "Point", "arm_name"]

AXES: tuple[str, ...] = ("program", "dataset", "model", "adapter", "options", "wording", "optimizer")
"""The axes of a grid but the seed, in the order in which their labels make the name of an arm."""

SEPARATOR = " · "
"""Joins the labels of an arm's name; no label may have it."""


@dataclass(frozen=True, slots=True)
class Point(BoundedRepr):
    """An arm at a seed. ``labels`` has the label of every axis of ``AXES``; ``arm`` is the name that tables show."""

    labels: Mapping[str, str]
    arm: str
    seed: int


@dataclass(frozen=True, slots=True)
class MeasuredPoint(BoundedRepr):
    """The findings at a point: the measurement on test rows, and the search before it (None without an optimizer).

    ``shared`` is True where the search kept its student and the measurement is that of the arm without an optimizer.
    """

    point: Point
    evaluation: EvaluationResult
    search: OptimizationReport | None = None
    folder: Path | None = None
    shared: bool = False


class Grid(Protocol):
    """An ``Experiment``, as its checks, its record, its plan and its run read it: the checked options, and the points."""

    @property
    def programs(self) -> Any: ...
    @property
    def datasets(self) -> Any: ...
    @property
    def models(self) -> Any: ...
    @property
    def adapters(self) -> Any: ...
    @property
    def options(self) -> Any: ...
    @property
    def wordings(self) -> Any: ...
    @property
    def optimizers(self) -> Any: ...
    @property
    def seeds(self) -> Iterable[int]: ...
    @property
    def metric(self) -> Metrics: ...
    @property
    def metrics(self) -> tuple[str, ...]: ...
    @property
    def repeat(self) -> int: ...
    @property
    def source(self) -> str | None: ...
    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def arms(self) -> Sequence[Mapping[str, str]]: ...
    @property
    def points(self) -> tuple[Point, ...]: ...
    def program_of(self, labels: Mapping[str, str]) -> Any: ...
    def settings_of(self, point: Point) -> dict[str, Any]: ...
    def search_steps(
        self, point: Point, program: Any, num_threads: int | None = None, **options: Any
    ) -> Steps[Any]: ...
    def evaluate(self, labels: Mapping[str, str], **options: Any) -> Evaluate: ...


def arm_name(axes: Mapping[str, Sequence[str]], labels: Mapping[str, str]) -> str:
    """Return the name of an arm: its labels of the axes with several; the label of its program if no axis has.

    >>> arm_name({"program": ["cot"], "model": ["a", "b"], "optimizer": ["none", "gepa"]}, {"program": "cot", "model": "a",
    ...     "optimizer": "gepa"})
    'a · gepa'
    """
    several = [labels[axis] for axis in AXES if len(axes.get(axis, ())) > 1]
    return SEPARATOR.join(several) or labels["program"]
