"""``ArmResult``: what was measured of one arm, at all of its seeds; and the scores of its rows that statistics read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import TypeAlias

from sigwire.core.example import Example
from sigwire.evaluate.costs import add_costs, cost_text
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.seeds import seeds_interval
from sigwire.evaluate.statistics import TOO_FEW, Interval
from sigwire.experiments.point import MeasuredPoint
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import inline, number
from sigwire.show.numbers import count

__all__ = ["ArmResult", "calls_of", "interval_text", "seconds_of"]

_Values: TypeAlias = Mapping[str, float | None]
"""The score of each row by its id; ``None``: not scored."""
_Scores: TypeAlias = Mapping[str, tuple[float, ...]]
"""The scores of each row by its id, at some seeds."""


@dataclass(frozen=True, eq=False, repr=False)
class ArmResult(HasCard):
    """An arm of an experiment, over its seeds. ``result["mini · gepa"]`` returns it.

    ``points``: what was found at each seed. ``metric_names``: the headline first. Scores are those of the rows that are scored
    at all seeds; ``mean`` and ``interval`` are of the headline. ``calls``, ``cost``, ``tokens`` and ``seconds`` are sums of the
    measurements, ``search_calls`` and ``search_cost`` those of the searches. In notebooks it is a card.
    """

    name: str
    labels: Mapping[str, str]
    points: Mapping[int, MeasuredPoint]
    metric_names: tuple[str, ...]
    confidence: float = 0.95
    _values: dict[tuple[str, int], _Values] = field(default_factory=dict[tuple[str, int], "_Values"], init=False)

    _scores: dict[tuple[str | int, ...], _Scores] = field(
        default_factory=dict[tuple[str | int, ...], "_Scores"], init=False
    )

    # --- scores

    @property
    def by_seed(self) -> Mapping[int, EvaluationResult]:
        """The measurement at each seed."""
        return {seed: each.evaluation for seed, each in self.points.items()}

    @property
    def reports(self) -> Mapping[int, OptimizationReport]:
        """The report of the search at each seed; empty without an optimizer.

        Scores of a search come from the rows on which it chose; ``estimate.corrected`` has them without the optimism of that
        choice. No table of an experiment shows them.
        """
        return {seed: each.search for seed, each in self.points.items() if each.search is not None}

    @property
    def mean(self) -> float:
        """The mean score; NaN if no row is scored at all seeds."""
        return self.mean_of(self.metric_names[0])

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the mean, over rows and seeds; see ``seeds_interval``."""
        return self.intervals[self.metric_names[0]]

    @property
    def metrics(self) -> Mapping[str, float]:
        """The mean of each metric by name, the headline first."""
        return {name: self.mean_of(name) for name in self.metric_names}

    @cached_property
    def intervals(self) -> Mapping[str, Interval | None]:
        """The confidence interval of each metric by name, the headline first."""
        return {name: self._interval(name) for name in self.metric_names}

    @cached_property
    def seed_means(self) -> Mapping[int, float]:
        """The mean score at each seed."""
        found = self.scores(self.metric_names[0], self.seeds)
        means = [fmean(column) for column in zip(*found.values(), strict=True)] or [math.nan] * len(self.points)
        return dict(zip(self.seeds, means, strict=True))

    @property
    def seed_sd(self) -> float | None:
        """The standard deviation of the means of seeds; ``None`` with one seed."""
        return stdev(self.seed_means.values()) if len(self.points) > 1 else None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds at which the arm was measured."""
        return tuple(self.points)

    @property
    def n(self) -> int:
        """The number of rows that are scored at all seeds."""
        return len(self.scores(self.metric_names[0], self.seeds))

    @property
    def omitted(self) -> int:
        """The number of rows that ran, and have no score at some seed."""
        return len({row for seed in self.seeds for row in self.values(self.metric_names[0], seed)}) - self.n

    def mean_of(self, metric: str) -> float:
        """Return the mean of a metric; NaN if no row is scored at all seeds."""
        found = self.scores(metric, self.seeds)
        return fmean(fmean(row) for row in found.values()) if found else math.nan

    def _interval(self, metric: str) -> Interval | None:
        found = self.scores(metric, self.seeds)
        return seeds_interval([*found.values()], self.clusters([*found]), confidence=self.confidence)

    def scores(self, metric: str, seeds: Sequence[int]) -> _Scores:
        """Return the scores of each row that has one at all of some seeds, by its id."""
        if (found := self._scores.get((metric, *seeds))) is None:
            found = self._scores[metric, *seeds] = self._common_scores(metric, seeds)
        return found

    def _common_scores(self, metric: str, seeds: Sequence[int]) -> _Scores:
        found: dict[str, tuple[float, ...]] = {}
        if not seeds:
            return found
        first, *rest = (self.values(metric, seed) for seed in seeds)
        for row, value in first.items():
            scores = (value, *(each.get(row) for each in rest))
            known = tuple(score for score in scores if score is not None)
            if len(known) == len(scores):
                found[row] = known
        return found

    def values(self, metric: str, seed: int) -> _Values:
        """Return the score of each row at a seed by its id, over its repeats; ``None``: not scored."""
        if (metric, seed) not in self._values:
            run = replace(self.run(seed), headline=metric)  # a run without one score of the metric has none for it
            self._values[metric, seed] = {run.by_example[index][0].id: value for index, value in run.values.items()}
        return self._values[metric, seed]

    def run(self, seed: int) -> ScoredRun:
        """Return the records at a seed."""
        return self.points[seed].evaluation.run

    def clusters(self, rows: Sequence[str]) -> list[Hashable] | None:
        """Return the cluster of each row, or ``None`` without clusters."""
        run = self.run(self.seeds[0])
        return None if run.cluster is None else [run.cluster_of(self.indexes[row]) for row in rows]

    @cached_property
    def indexes(self) -> Mapping[str, int]:
        """The index of each row by its id, at the first seed."""
        return {records[0].id: index for index, records in self.run(self.seeds[0]).by_example.items()}

    def row(self, seed: int, row: str) -> tuple[Example, ExampleRecord]:
        """Return a row, and its record at a seed."""
        run = self.run(seed)
        records = run.by_example[self.indexes[row]]
        if records[0].id != row:  # the measurement of this seed has the rows in another order
            records = next(each for each in run.by_example.values() if each[0].id == row)
        return run.example_by_index[records[0].index], records[0]

    # --- what it took

    @property
    def calls(self) -> int:
        """The requests that the measurements sent."""
        return sum(map(calls_of, self.by_seed.values()))

    @property
    def cost(self) -> float | None:
        """The known cost of the measurements in US dollars, at least that if ``is_cost_partial``; ``None``: unknown."""
        return self._cost[0]

    @property
    def is_cost_partial(self) -> bool:
        """Whether the cost of a measurement is unknown, so that ``cost`` is a lower bound."""
        return self._cost[1]

    @cached_property
    def _cost(self) -> tuple[float | None, bool]:
        return add_costs((each.cost or 0.0, not each.is_cost_partial) for each in self.by_seed.values())

    @property
    def search_calls(self) -> int:
        """The requests that the searches sent."""
        return sum(each.spent.calls for each in self.reports.values())

    @property
    def search_cost(self) -> float | None:
        """The known cost of the searches in US dollars; ``None``: unknown."""
        return self._search_cost[0]

    @cached_property
    def _search_cost(self) -> tuple[float | None, bool]:
        spent = [each.spent for each in self.reports.values()]
        return add_costs((each.money or 0.0, not (each.is_partial or each.money is None)) for each in spent)

    @property
    def cost_texts(self) -> tuple[str, str]:
        """The cost of the measurements and that of the searches, for people."""
        return cost_text(*self._cost), cost_text(*self._search_cost)

    @property
    def tokens(self) -> int:
        """The known tokens of the measurements."""
        return sum(each.run.total_usage.total_tokens or 0 for each in self.by_seed.values())

    @property
    def seconds(self) -> float:
        """The seconds of the program in the measurements, one row after another."""
        return math.fsum(map(seconds_of, self.by_seed.values()))

    @property
    def failures(self) -> Counter[str]:
        """The number of failures by class: of the program, the provider and the metric."""
        return sum((each.failures for each in self.by_seed.values()), Counter[str]())

    @property
    def failed(self) -> int:
        """The number of runs in which the program failed."""
        return sum(len(each.failed) for each in self.by_seed.values())

    # --- shown

    def __repr__(self) -> str:
        headline = f"{inline(self.metric_names[0], 60)}={number(self.mean)}"
        return f"ArmResult({inline(self.name, 80)!r}, {headline}, {count(len(self.points), 'seed')})"

    def _card(self) -> Card:
        rows = [
            (name, [f"{number(self.metrics[name])}   {interval_text(found)}"]) for name, found in self.intervals.items()
        ]
        if self.seed_sd is not None:
            means = "  ".join(f"{seed}: {number(mean)}" for seed, mean in self.seed_means.items())
            rows.append(("seeds", [f"sd {number(self.seed_sd)}   {means}"]))
        if self.omitted:
            rows.append(("left out", [f"{count(self.omitted, 'row')} without a score at some seed"]))
        if self.failures:
            rows.append(("failed", [f"{number:,} {name}" for name, number in self.failures.most_common()]))
        cost, search_cost = self.cost_texts
        rows.append(("measured", [f"{count(self.calls, 'call')} · {cost}"]))
        if self.reports:
            kept = sum(each.winner == each.baseline for each in self.reports.values())
            shown = f" · {kept} of {len(self.reports)} kept the student" if kept else ""
            rows.append(("searches", [f"{count(self.search_calls, 'call')} · {search_cost}{shown}"]))
        return Card("ArmResult", self.name, rows)


def calls_of(measured: EvaluationResult) -> int:
    """Return the requests that the program sent in a measurement."""
    return sum(each.cell.requests for each in measured.records)


def seconds_of(measured: EvaluationResult) -> float:
    """Return the seconds of the program in a measurement, one row after another, at whatever parallelism."""
    return math.fsum(each.cell.seconds for each in measured.records)


def interval_text(found: Interval | None, digits: int = 3) -> str:
    """Return an interval for a cell of a table.

    >>> interval_text(Interval(0.5, 0.75)), interval_text(Interval(0.5, 0.75, is_few=True)), interval_text(None)
    ('[0.500, 0.750]', '[0.500, 0.750] (few)', 'too few to say')
    """
    if found is None:
        return TOO_FEW
    return f"[{found.low:.{digits}f}, {found.high:.{digits}f}]{' (few)' if found.is_few else ''}"
