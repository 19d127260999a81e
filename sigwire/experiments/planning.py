"""``ExperimentPlan``: what a run of an experiment may cost, before any call.

A point costs its measurement (test rows, times ``repeat``, times predictors; fewer calls if an agent or a cascade decides)
and its search (``Optimizer.plan``). Money is that of ``Optimizer.plan``, and for a measurement that of the first requests for a
few test rows, with the labels as answers; at most that of the longest of these rows with answers of ``max_tokens``. A search
that may keep its student may need no measurement.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from sigwire.core.example import Example
from sigwire.core.response import Usage
from sigwire.experiments.folder import finished_points, point_key, read_record, searches_of, twins_of
from sigwire.experiments.point import AXES, Grid, Point
from sigwire.experiments.record import check_record, record_of
from sigwire.modules.cascade import Cascade
from sigwire.modules.module import Module
from sigwire.modules.sampling.best_of_n import BestOfN
from sigwire.optimizers.engine.plan import Amount
from sigwire.optimizers.engine.sizes import size_of_program
from sigwire.settings import context, current
from sigwire.show.card import BoundedRepr
from sigwire.show.cleaning import inline
from sigwire.show.numbers import count, money_text

__all__ = ["ExperimentPlan", "PlannedPoint", "plan_of"]

_WIDTH = 80
_MOST_OF_HEAD = 300  # characters
_ROWS = 8  # that are previewed
_FEW_SEEDS = 5
_NOTHING = Amount(0, 0, 0)
_Cost: TypeAlias = tuple[float | None, float | None, tuple[str, ...]]
"""Of a measurement: expected, at most, and the models without a price."""


@dataclass(frozen=True, slots=True)
class PlannedPoint(BoundedRepr):
    """A point that is to be run. ``runs``: of the program on test rows; ``calls``: of models, its search included.

    ``money`` and ``most_money``: US dollars, expected and at most; ``None`` if a price is unknown, of the models ``unpriced``.
    ``is_least``: an agent, ``BestOfN`` or ``Refine`` decides how often it calls, so that ``calls`` and money are a lower bound.
    """

    point: Point
    runs: int
    calls: Amount
    money: float | None
    most_money: float | None
    unpriced: tuple[str, ...] = ()
    is_least: bool = False


@dataclass(frozen=True, repr=False)
class ExperimentPlan:
    """The cost that a run of an experiment may have: ``Experiment.plan``. Its text is for a terminal of 80 columns.

    ``points``: those to be run; ``finished``: how many the folder has. ``calls``, ``money`` and ``most_money``: the sums of the
    points; money is in US dollars, expected and at most, and ``None`` if a price is unknown. ``warnings``: sentences.
    """

    points: tuple[PlannedPoint, ...]
    finished: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def calls(self) -> Amount:
        """The calls of models: the least, the expected and the most."""
        return sum((each.calls for each in self.points), _NOTHING)

    @property
    def runs(self) -> int:
        """The runs of programs on test rows."""
        return sum(each.runs for each in self.points)

    @property
    def money(self) -> float | None:
        """The expected cost in US dollars; ``None`` if a price is unknown."""
        return _sum(each.money for each in self.points)

    @property
    def most_money(self) -> float | None:
        """The most that it costs in US dollars, without retries; ``None`` if a price is unknown."""
        return _sum(each.most_money for each in self.points)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is unknown."""
        return tuple(dict.fromkeys(name for each in self.points for name in each.unpriced))

    @property
    def is_least(self) -> bool:
        """Whether calls and money are a lower bound, because a part of a program decides how often it calls."""
        return any(each.is_least for each in self.points)

    def __repr__(self) -> str:
        return f"ExperimentPlan({inline(self._head, _MOST_OF_HEAD)})"

    @property
    def _head(self) -> str:
        calls = f"at least {self.calls.min:,}" if self.is_least else str(self.calls)
        money = (
            f"price unknown of {', '.join(self.unpriced) or 'its models'}"
            if self.money is None or self.most_money is None
            else f"≈ {money_text(self.money)}, {'at least' if self.is_least else f'at most {money_text(self.most_money)}'}"
        )
        return f"{count(len(self.points), 'point')}, {calls} calls; {money}"

    def __str__(self) -> str:
        lines = textwrap.wrap(self._head, _WIDTH, subsequent_indent="  ")
        if self.finished:
            lines.append(f"{count(self.finished, 'point')} of the folder finished and not counted")
        lines += _table(self.points)
        for warning in self.warnings:
            lines += textwrap.wrap(f"warning: {warning}", _WIDTH, subsequent_indent="  ")
        return "\n".join(lines)


def _sum(amounts: Iterable[float | None]) -> float | None:
    found = list(amounts)
    known = [each for each in found if each is not None]
    return sum(known) if len(known) == len(found) else None


def _table(points: Sequence[PlannedPoint]) -> list[str]:
    """Return the lines of a table of the arms; names are cut to what 80 columns leave."""
    arms: dict[str, list[PlannedPoint]] = {}
    for each in points:
        arms.setdefault(each.point.arm, []).append(each)
    if len(arms) < 2:
        return []
    rows = [("arm", "points", "calls", "money")]
    for name, found in arms.items():
        calls = sum((each.calls for each in found), _NOTHING)
        cost = _sum(each.money for each in found)
        shown = f"{calls.min:,}" if calls.min == calls.max else f"{calls.min:,} to {calls.max:,}"
        shown = f"≥ {calls.min:,}" if found[0].is_least else shown
        rows.append((name, str(len(found)), shown, "unknown" if cost is None else f"≈ {money_text(cost)}"))
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    widths[0] = min(widths[0], _WIDTH - sum(widths[1:]) - 6)
    names = [row[0] if len(row[0]) <= widths[0] else f"{row[0][: widths[0] - 1]}…" for row in rows]
    return [
        "  ".join([name.ljust(widths[0]), *(row[place].rjust(widths[place]) for place in range(1, 4))])
        for name, row in zip(names, rows, strict=True)
    ]


# --- the points


def plan_of(experiment: Grid, folder: str | os.PathLike[str] | None = None) -> ExperimentPlan:
    """Return the plan of a run. Raises ``ConfigurationError`` if the folder is of another experiment."""
    searches = searches_of(experiment)
    points, twins = experiment.points, twins_of(experiment.points, searches)
    finished = set[str]()
    if folder is not None and (record := read_record(Path(folder))) is not None:
        check_record(record, record_of(experiment), str(folder))
        finished = {*finished_points(Path(folder), experiment)}
    arms: dict[tuple[str, ...], PlannedPoint] = {}
    costs: dict[tuple[str, ...], _Cost] = {}  # optimizers measure the same program
    longest = {label: max(split.test, key=_length) for label, split in experiment.datasets.items()}
    found: list[PlannedPoint] = []
    for point in points:
        if (key := point_key(point)) in finished:
            continue
        labels = tuple(point.labels[axis] for axis in AXES)
        if labels not in arms:  # seeds cost the same
            arms[labels] = _planned(experiment, point, costs, longest, shares=key in twins)
        found.append(replace(arms[labels], point=point))
    seeds = Counter(point.arm for point in points if found and point.labels["optimizer"] in searches)
    return ExperimentPlan(tuple(found), len(finished), _warnings(seeds, len(experiment.axes["optimizer"])))


def _warnings(seeds: Mapping[str, int], optimizers: int) -> tuple[str, ...]:
    few = min(seeds.values(), default=_FEW_SEEDS)
    if few >= _FEW_SEEDS or optimizers < 2:
        return ()
    return (
        f"{count(few, 'seed')} of an optimizer: a search is lucky or not, and so few seeds show large differences only. "
        "Five or more find those of half a standard deviation in most cases: seeds=range(5).",
    )


def _planned(
    experiment: Grid,
    point: Point,
    costs: dict[tuple[str, ...], _Cost],
    longest: Mapping[str, Example],
    *,
    shares: bool,
) -> PlannedPoint:
    labels = point.labels
    split, search = experiment.datasets[labels["dataset"]], experiment.optimizers[labels["optimizer"]]
    runs = experiment.repeat * len(split.test)
    with context(**experiment.settings_of(point)):
        program = experiment.program_of(labels)
        predictors = max(len(program.named_predictors()), 1) if isinstance(program, Module) else 1
        calls = runs * predictors
        total = Amount(0 if search is not None and shares else runs * _fewest_calls(program), calls, calls)
        key = tuple(labels[axis] for axis in AXES if axis != "optimizer")
        if key not in costs:
            costs[key] = _cost_of_runs(program, split.test, longest[labels["dataset"]], calls)
        money, most, unpriced = costs[key]
        if search is not None:
            options = {"teacher": search.teacher, **search.options}
            forecast = search.optimizer.plan(program, split.train, split.dev or None, **options)
            total += forecast.calls
            if forecast.calls.max and (forecast.money is None or money is None or most is None):
                money = most = None
                unpriced = unpriced or _models_of(search.optimizer)
            elif forecast.money is not None and money is not None and most is not None:
                money, most = money + forecast.money.expected, most + forecast.money.max
    return PlannedPoint(point, runs, total, money, most, unpriced, _is_unbounded(program))


def _cost_of_runs(program: object, rows: Sequence[Example], longest: Example, calls: int) -> _Cost:
    """Return the expected and the highest cost of a measurement, and the models without a price."""
    if not isinstance(program, Module):
        return None, None, ("a function",)
    step = max(1, len(rows) // _ROWS)
    sizes = [size_of_program(program, part) for part in (rows[::step][:_ROWS], [longest])]
    likely, largest = sizes
    if likely is None or largest is None:
        return None, None, ("the settings",)
    money = likely.cost(Usage(likely.read, likely.written))
    most = largest.cost(Usage(max(likely.read, largest.read), max(likely.most, largest.most)))
    if money is None or most is None:
        return None, None, _names_of(program)
    return money * calls, most * calls, ()


def _length(row: Example) -> int:
    return len(repr(Example.inputs(row)))


def _names_of(program: Module) -> tuple[str, ...]:
    models = [predictor.lm or current().lm for _, predictor in program.named_predictors()]
    return tuple(dict.fromkeys(str(getattr(lm, "model", type(lm).__name__)) for lm in models if lm is not None))


def _models_of(optimizer: Any) -> tuple[str, ...]:
    lm = optimizer.prompt_model
    return () if lm is None else (str(getattr(lm, "model", type(lm).__name__)),)


def _is_unbounded(program: object) -> bool:
    """Return True if a part of a program decides how often it calls a model."""
    return isinstance(program, Module) and any(
        _is_agent(part) or isinstance(part, BestOfN) for _, part in program.named_sub_modules()
    )


def _is_agent(part: Module) -> bool:
    return hasattr(part, "toolbox") or hasattr(part, "max_iters")


def _fewest_calls(program: object) -> int:
    """Return the fewest calls of a run: one of an agent, one stage of a cascade, one of each other predictor."""
    if not isinstance(program, Module):
        return 1
    needed = {id(each) for each in program.predictors()}
    for _, part in reversed([*program.named_sub_modules()]):  # inner ones first
        own = {id(each): None for each in part.predictors()}
        if _is_agent(part):
            needed = {*(needed - own.keys()), *[*own][:1]}
        elif isinstance(part, Cascade):
            stages = [needed & {id(each) for each in stage.predictors()} for stage in part.stages]
            needed = (needed - own.keys()) | min(stages, key=len)
    return max(len(needed), 1)
