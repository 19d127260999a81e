"""``ExperimentResult``: what an experiment found, as arms, comparisons, tables, plots and a page.

All is computed from the records of the points; nothing is run. Statistics of rows and seeds are those of
``sigwire/evaluate/seeds.py``, and scores of searches are in no table.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.errors import ConfigurationError, DataError, InputError, suggest
from sigwire.evaluate.figures.exports import csv_text, write_text
from sigwire.evaluate.pareto import pareto_front
from sigwire.experiments.arm import ArmResult
from sigwire.experiments.comparing import ONE_SEED, ArmComparison, Sensitivity, best_arms, compare_arms, sensitivity_of
from sigwire.experiments.point import AXES, SEPARATOR, MeasuredPoint, Point
from sigwire.experiments.tables import arm_card_table, arm_table, latex_table, point_row
from sigwire.show.card import Card, HasCard
from sigwire.show.markdown import card_markdown
from sigwire.show.numbers import count

if TYPE_CHECKING:
    from sigwire.optimizers.reports.plots import Svg

__all__ = ["ExperimentResult"]

Status: TypeAlias = Literal["complete", "partial"]
Cost: TypeAlias = Literal["cost", "calls", "search_calls", "tokens", "seconds"]


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentResult(HasCard):
    """The result of an experiment. ``Experiment.run`` and ``load_experiment`` make it; ``result["mini · gepa"]`` is an arm.

    ``axes``: the labels of each axis, in order; ``measured``: what was found at each point; ``missing``: the points that were
    not measured, so that ``status`` is "partial"; ``metrics``: their names, the headline first; ``record``: that of
    ``experiment.json``. In ``show()`` and in notebooks it is a card.
    """

    axes: Mapping[str, tuple[str, ...]]
    seeds: tuple[int, ...]
    measured: Sequence[MeasuredPoint]
    metrics: tuple[str, ...] = field(kw_only=True)
    missing: Sequence[Point] = field(default=(), kw_only=True)
    status: Status = field(default="complete", kw_only=True)
    folder: Path | None = field(default=None, kw_only=True)
    record: JsonObject | None = field(default=None, kw_only=True)
    confidence: float = field(default=0.95, kw_only=True)

    # --- arms

    @property
    def ordered(self) -> Sequence[MeasuredPoint]:
        """The measured points, in the order of their labels and seeds."""
        return self._ordered

    @cached_property
    def _ordered(self) -> Sequence[MeasuredPoint]:
        return sorted(self.measured, key=lambda each: self._place(each.point))

    @property
    def arms(self) -> Mapping[str, ArmResult]:
        """The arms that were measured at one seed or more, by name, in the order of their labels."""
        return self._arms

    @cached_property
    def _arms(self) -> Mapping[str, ArmResult]:
        found: dict[str, dict[int, MeasuredPoint]] = {}
        for each in self.ordered:
            found.setdefault(each.point.arm, {})[each.point.seed] = each
        return {
            name: ArmResult(name, next(iter(points.values())).point.labels, points, self.metrics, self.confidence)
            for name, points in found.items()
        }

    def _place(self, point: Point) -> tuple[int, ...]:
        places = (self.axes[axis].index(point.labels[axis]) for axis in AXES if axis in self.axes)
        return (*places, self.seeds.index(point.seed))

    def __getitem__(self, name: str) -> ArmResult:
        """Return an arm. Raises ``InputError`` for a name that no measured arm has."""
        if name not in self.arms:
            known = ", ".join(map(repr, self.arms))
            raise InputError(
                f"No arm {name!r:.80} was measured (reading a result). {suggest(name, self.arms)}Arms: {known:.500}."
            )
        return self.arms[name]

    @cached_property
    def best(self) -> tuple[str, ...]:
        """The arms that no other of their data set is shown to be better than: all pairs, Holm. Tables show them bold."""
        return tuple(name for arms in self._by_dataset().values() for name in best_arms(arms, self.metrics[0]))

    def _by_dataset(self) -> Mapping[str, list[ArmResult]]:
        groups: dict[str, list[ArmResult]] = {}
        for arm in self.arms.values():
            groups.setdefault(arm.labels["dataset"], []).append(arm)
        return groups

    # --- comparisons

    def compare(self, axis: str, baseline: str, metric: str | None = None) -> ArmComparison:
        """Compare each arm with the one that differs in ``axis`` only, where it has the label ``baseline``.

        ``metric``: the only one that is compared; by default each is, the headline first. p values and intervals are adjusted
        for all pairs and metrics of the call (Holm). Raises ``InputError`` for an unknown axis, label or metric, and
        ``DataError`` if no two such arms have a seed and a row in common.
        """
        self._check_axis(axis)
        if baseline not in (labels := self.axes[axis]):
            raise InputError(
                f"The axis {axis!r} has no label {baseline!r:.80} (comparing arms). {suggest(baseline, labels)}Labels: "
                f"{', '.join(map(repr, labels)):.500}."
            )
        if metric is not None and metric not in self.metrics:
            raise InputError(
                f"The experiment has no metric {metric!r:.80} (comparing arms). {suggest(metric, self.metrics)}Metrics: "
                f"{', '.join(map(repr, self.metrics)):.500}."
            )
        pairs: list[tuple[ArmResult, ArmResult]] = []
        alone: list[str] = []
        for arms in self._groups(axis).values():
            for label, arm in arms.items():
                first = arms.get(baseline)
                if label == baseline:
                    continue
                if first is not None and _have_common_rows(first, arm, self.metrics[0]):
                    pairs.append((first, arm))
                else:
                    alone.append(arm.name)
        if not pairs:
            raise DataError(
                f"No arm can be compared with one of {axis} {baseline!r:.80} (comparing arms): no two of them have a seed and "
                "a scored row in common. Run what is missing, or compare another axis."
            )
        return compare_arms(pairs, self.metrics if metric is None else [metric], axis, baseline, alone)

    def sensitivity(self, axis: str) -> Mapping[str, Sensitivity]:
        """Return how far the labels of an axis move the mean, for each group of arms that differ in it only, by its name.

        ``expected_spread`` is that of labels without any effect: wordings and adapters are reported as a range (M. Sclar and
        others, arXiv 2310.11324). Groups without two measured labels are left out.
        """
        self._check_axis(axis)
        found: dict[str, Sensitivity] = {}
        for name, arms in self._groups(axis).items():
            if len(arms) > 1 and (each := sensitivity_of(arms, self.metrics[0])) is not None:
                found[name] = each
        return found

    def _check_axis(self, axis: str) -> None:
        several = [name for name in AXES if name != "dataset" and len(self.axes.get(name, ())) > 1]
        if axis not in several:
            why = "has rows of its own for each label" if axis == "dataset" else "has no two labels"
            raise InputError(
                f"The axis {axis!r:.80} {why if axis in AXES else 'is unknown'} (comparing arms). {suggest(axis, several)}Axes "
                f"with several labels: {', '.join(several) or 'none'}."
            )

    def _groups(self, axis: str) -> Mapping[str, Mapping[str, ArmResult]]:
        """Return the arms that differ in an axis only, by the labels of the other axes and their label of it."""
        several = [name for name in AXES if name != axis and len(self.axes.get(name, ())) > 1]
        groups: dict[str, dict[str, ArmResult]] = {}
        for arm in self.arms.values():
            name = SEPARATOR.join(arm.labels[each] for each in several or ["program"])
            groups.setdefault(name, {})[arm.labels[axis]] = arm
        return groups

    def front(self, cost: Cost = "cost") -> tuple[str, ...]:
        """Return the arms of each data set that none beats in both the mean and what it takes, by their name.

        ``cost``: that of the measurement in US dollars, or "calls", "tokens", "seconds", "search_calls", for one seed. Raises
        ``ConfigurationError`` if the price of a call is unknown.
        """
        costs = self.costs(cost)
        return tuple(
            name
            for arms in self._by_dataset().values()
            for name in pareto_front({arm.name: (arm.mean, -costs[arm.name]) for arm in arms if arm.mean == arm.mean})
        )

    def costs(self, cost: Cost = "cost") -> Mapping[str, float]:
        """Return what each arm takes for one seed, by its name; see ``front``."""
        if cost not in _COSTS:
            raise InputError(
                f"cost={cost!r:.80} is unknown (the front of arms). {suggest(cost, _COSTS)}Use {', '.join(_COSTS)}."
            )
        found: dict[str, float] = {}
        for arm in self.arms.values():
            value: float | None = getattr(arm, cost)
            if cost == "cost" and (value is None or arm.is_cost_partial):
                raise ConfigurationError(
                    f'The price of a call of {arm.name!r:.80} is unknown (the front of arms by cost). Use front("calls"), or '
                    "give the model its prices."
                )
            found[arm.name] = (value or 0.0) / len(arm.points)
        return found

    # --- tables

    def rows(self) -> list[dict[str, JsonValue]]:
        """Return a flat dict for each measured point, for ``pandas.DataFrame`` and others; each has all columns.

        The axes, ``seed``, ``score`` (the mean of the headline), each metric, ``low`` and ``high`` of its interval at this
        point, ``n``, ``scored``, ``failed``; of the measurement ``calls``, ``cost`` and ``seconds`` (of the program);
        ``search_calls`` and ``search_cost``.
        """
        return [point_row(each, self.metrics) for each in self.ordered]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV. Text that a spreadsheet would run as a formula gets a leading apostrophe (CWE-1236)."""
        write_text(path, csv_text(self.rows()))

    def table(self) -> list[list[str]]:
        """Return the table of arms as texts; the first row names the columns. Means of ``best`` are ``Strong``."""
        return arm_table([*self.arms.values()], self.best, len(self.seeds))

    def to_markdown(self) -> str:
        """Return the table of arms as Markdown. Bold are the arms of ``best``."""
        return card_markdown(replace(self._card(), table=self.table()))

    def to_latex(self) -> str:
        """Return the table of arms as LaTeX, which needs the package booktabs. Bold are the arms of ``best``."""
        return latex_table(self.table())

    def to_html(self, path: str | os.PathLike[str], *, axis: str | None = None, baseline: str | None = None) -> None:
        """Write the experiment as an HTML file, and the pages of its points beside it, in the folder ``<name>-points``.

        Table, differences as a forest plot, seeds, front, points with links to their pages, and the record, folded. No
        network is used. ``axis`` and ``baseline``: of the differences; by default the optimizers, else the first axis with
        several labels, and its first label.
        """
        from sigwire.experiments.page import write_experiment_page

        write_experiment_page(self, self._card(), path, axis, baseline)

    def plot(self, kind: str = "score") -> Svg:
        """Return a plot: "score" (mean over the calls of the search), "front" (mean over cost) or "seeds".

        The front is by cost if all prices are known, else by calls. Raises ``InputError`` for other names.
        """
        from sigwire.experiments.plots import front_plot, plot_arms, score_plot, seeds_plot

        arms = [*self.arms.values()]

        def front() -> Svg:
            is_priced = not any(arm.cost is None or arm.is_cost_partial for arm in arms)
            by: Cost = "cost" if is_priced else "calls"
            return front_plot(arms, self.costs(by), self.front(by), "$ for a seed" if is_priced else "calls for a seed")

        return plot_arms(kind, {"score": lambda: score_plot(arms), "front": front, "seeds": lambda: seeds_plot(arms)})

    # --- shown

    def __repr__(self) -> str:
        missing = f", {len(self.missing)} missing" if self.missing else ""
        return f"ExperimentResult({count(len(self.arms), 'arm')}, {count(len(self.seeds), 'seed')}, {self.status}{missing})"

    def _card(self) -> Card:
        axes = [f"{count(len(labels), axis)}" for axis, labels in self.axes.items() if len(labels) > 1]
        table = arm_card_table([*self.arms.values()], self.best) if self.arms else ()
        return Card("Experiment", " · ".join([*axes, count(len(self.seeds), "seed")]), list(self._card_rows()), table)

    def _card_rows(self) -> Iterator[tuple[str, list[str]]]:
        arms = self.arms.values()
        if self.status == "partial":
            yield "status", [f"partial: {count(len(self.missing), 'point')} missing"]
        if len(self.best) == len(arms) > 1:
            yield "best", ["no arm is shown to be better than another (all pairs, Holm)"]
        elif arms:
            yield (
                "best",
                [", ".join(self.best), "in bold, or with a star: no arm is shown to be better (all pairs, Holm)"],
            )
        if omitted := [f"{arm.name}: {arm.omitted}" for arm in arms if arm.omitted]:
            yield "left out", [f"rows without a score at some seed: {', '.join(omitted)}"]
        if failed := [f"{arm.name}: {arm.failed:,}" for arm in arms if arm.failed]:
            yield "failed", [", ".join(failed)]
        if any(arm.reports and len(arm.points) == 1 for arm in arms):
            yield "seeds", [ONE_SEED]
        if len(versions := self._versions()) > 1:
            yield "measured by", [f"{name}: {count(number, 'record')}" for name, number in versions.items()]

    def _versions(self) -> Counter[str]:
        """Return the versions that measured the points, with the records of each: they may measure differently."""
        found = Counter[str]()
        for each in self.measured:
            for part in () if each.shared else each.evaluation.segments:
                found[f"sigwire {part.sigwire}, Python {part.python}"] += part.records
        return +found


_COSTS = ("cost", "calls", "search_calls", "tokens", "seconds")


def _have_common_rows(first: ArmResult, second: ArmResult, metric: str) -> bool:
    seeds = [seed for seed in first.seeds if seed in second.points]
    return bool(seeds) and not first.scores(metric, seeds).keys().isdisjoint(second.scores(metric, seeds))
