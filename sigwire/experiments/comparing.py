"""Pairs of arms: compared by rows and seeds, adjusted by Holm's steps. ``best_arms``, and the sensitivity to an axis."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import mul
from random import Random
from statistics import fmean

from sigwire.core.json import Value
from sigwire.evaluate.comparison import DIFFERENCE_COLUMNS, ChangedExample, Comparison, adjusted_differences, verdict_of
from sigwire.evaluate.seeds import ScoreTable, seeds_difference, seeds_p
from sigwire.evaluate.statistics import PairedDifference, holm
from sigwire.experiments.arm import ArmResult
from sigwire.show.card import Card
from sigwire.show.numbers import count

__all__ = ["ONE_SEED", "ArmComparison", "ArmPair", "Sensitivity", "best_arms", "compare_arms", "sensitivity_of"]

ONE_SEED = "one seed says nothing about the optimizer"


@dataclass(frozen=True, eq=False)
class ArmPair:
    """An arm and its baseline, by one metric: at the seeds of both, on the rows that both have scored at all of these."""

    first: ArmResult
    second: ArmResult
    metric: str

    @property
    def name(self) -> str:
        """The name of the arm."""
        return self.second.name

    @property
    def baseline(self) -> str:
        """The name of the baseline."""
        return self.first.name

    @cached_property
    def common(self) -> tuple[int, ...]:
        """The seeds of both."""
        return tuple(seed for seed in self.first.seeds if seed in self.second.points)

    @property
    def seeds(self) -> int:
        """The number of seeds of both."""
        return len(self.common)

    @property
    def scores(self) -> Sequence[tuple[str, tuple[float, ...], tuple[float, ...]]]:
        """For each row its id, and the scores of baseline and arm at the seeds of both."""
        return self._scores

    @cached_property
    def _scores(self) -> Sequence[tuple[str, tuple[float, ...], tuple[float, ...]]]:
        first, second = (each.scores(self.metric, self.common) for each in (self.first, self.second))
        return [(row, scores, second[row]) for row, scores in first.items() if row in second]

    @property
    def omitted(self) -> int:
        """The number of rows that both ran, and that lack a score."""
        first, second = (
            {row for seed in self.common for row in arm.values(self.metric, seed)} for arm in (self.first, self.second)
        )
        return len(first & second) - len(self.scores)

    @property
    def note(self) -> str:
        """The end of the sentence: what one seed cannot show, if an arm has a search."""
        return ONE_SEED if self.seeds == 1 and (self.first.reports or self.second.reports) else ""

    @cached_property
    def _tables(self) -> tuple[ScoreTable, ScoreTable, list[Hashable] | None]:
        rows, first, second = zip(*self.scores, strict=True) if self.scores else ((), (), ())
        return first, second, self.first.clusters(rows)

    @property
    def least_p(self) -> float:
        """The p by the seeds alone; that of ``difference`` is it or more."""
        return seeds_p(*self._tables)

    def difference(self, confidence: float, seed: int = 0) -> PairedDifference:
        """Return the mean of the arm less that of its baseline, over rows and seeds."""
        return seeds_difference(
            *self._tables,
            confidence=confidence,
            is_single_run=all(self.first.run(seed).repeat == 1 for seed in self.common),
            seed=seed,
        )

    def changed(self, sign: int) -> list[ChangedExample]:
        """Return the rows whose mean rose (1) or fell (-1), the largest change first, with the records of the first seed."""
        gains = [(sign * (fmean(after) - fmean(before)), row) for row, before, after in self.scores]
        changed = [row for gain, row in sorted(gains, key=lambda each: -each[0]) if gain > 0]
        pairs = ((self.first.row(self.common[0], row), self.second.row(self.common[0], row)) for row in changed)
        return [(example, before, after) for (example, before), (_, after) in pairs]


@dataclass(frozen=True, slots=True, repr=False)
class ArmComparison(Comparison):
    """Arms of an experiment, each with the one that differs in an axis only; ``ExperimentResult.compare`` makes it.

    ``differences`` are of the headline, ``others`` of each other metric; each has its own ``baseline``. ``runs`` is empty:
    an arm has a run for each seed. ``against``: the label of the baselines. ``alone``: arms whose baseline is not in the grid,
    or not measured at one of their seeds.
    """

    axis: str = ""
    against: str = ""
    alone: tuple[str, ...] = ()

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the differences as one HTML file: a forest plot, sentences, a table."""
        from sigwire.evaluate.reports.page import write_page
        from sigwire.experiments.page import differences_page

        write_page(differences_page(self, self._card()), path)

    def _card(self) -> Card:
        head = ["arm", "baseline", "metric", *DIFFERENCE_COLUMNS]
        table = [[each.name, each.baseline, each.metric, *each.cells] for each in self.all]
        rows = [("differences", list(self.sentences))]
        for each in self.differences:
            if each.omitted:
                rows.append((f"{each.name}: left out", [f"{count(each.omitted, 'row')} that lack a score"]))
        if self.alone:
            rows.append(("not compared", [f"{', '.join(self.alone)}: the other arm is not measured"]))
        return Card(
            "Comparison",
            f"{self.axis} against {self.against}; p adjusted for {len(table)} (Holm)",
            rows,
            [head, *table],
        )


def compare_arms(
    pairs: Sequence[tuple[ArmResult, ArmResult]],
    metrics: Sequence[str],
    axis: str = "",
    against: str = "",
    alone: Sequence[str] = (),
) -> ArmComparison:
    """Return the comparison of pairs of (baseline, arm), by all metrics, the headline first; Holm over all of both."""
    made = {metric: [ArmPair(first, second, metric) for first, second in pairs] for metric in metrics}
    found = adjusted_differences(made, pairs[0][0].confidence)
    headline, *rest = metrics
    return ArmComparison({}, found[headline], {name: found[name] for name in rest}, axis, against, tuple(alone))


def best_arms(arms: Sequence[ArmResult], metric: str) -> list[str]:
    """Return the names of the arms that no other is shown to be better than: all pairs, Holm. They have the same rows."""
    pairs = [pair for first, second in combinations(arms, 2) if (pair := ArmPair(first, second, metric)).scores]
    confidence, beaten = arms[0].confidence, set[str]()
    # Most pairs are decided by their seeds; those of the rest are flipped, which takes a hundred times as long.
    ps = [pair.least_p for pair in pairs]
    found = [None if p > 1 - confidence else pair.difference(confidence) for p, pair in zip(ps, pairs, strict=True)]
    ps = [p if each is None else each.p for p, each in zip(ps, found, strict=True)]
    for pair, difference, p in zip(pairs, found, holm(ps), strict=True):
        verdict = "not shown to be better" if difference is None else verdict_of(p, difference, confidence)
        if verdict != "not shown to be better":
            beaten.add(pair.baseline if verdict == "better" else pair.name)
    return [each.name for each in arms if each.name not in beaten]


@dataclass(frozen=True, slots=True)
class Sensitivity(Value):
    """How far the labels of an axis move the mean. ``values``: the mean of each label; ``spread``: ``high`` less ``low``.

    ``expected_spread``: of labels without any effect, by the noise of rows alone. A spread near it shows nothing.
    """

    low: float
    high: float
    spread: float
    expected_spread: float
    values: Mapping[str, float]


def sensitivity_of(
    arms: Mapping[str, ArmResult], metric: str, *, draws: int = 1_000, seed: int = 0
) -> Sensitivity | None:
    """Return the sensitivity to the labels of arms, on the rows scored by all at the seeds of all; ``None``: there are none.

    Without an effect of labels each row's deviations from its mean are as likely with the other sign: ``expected_spread`` is
    the mean spread over seeded draws of these signs.
    """
    seeds = [each for each in next(iter(arms.values())).seeds if all(each in arm.points for arm in arms.values())]
    tables = [arm.scores(metric, seeds) for arm in arms.values()] if seeds else []
    rows = [row for row in tables[0] if all(row in each for each in tables)] if tables else []
    if not rows:
        return None
    means = [[fmean(table[row]) for table in tables] for row in rows]
    deviations = [[value - fmean(row) for value in row] for row in means if len(set(row)) > 1]
    columns = list(zip(*deviations, strict=True))
    values = dict(zip(arms, map(fmean, zip(*means, strict=True)), strict=True))
    random, spreads = Random(seed), 0.0
    for _ in range(draws if deviations else 0):
        signs = random.choices((-1, 1), k=len(deviations))
        sums = [sum(map(mul, signs, column)) for column in columns]
        spreads += (max(sums) - min(sums)) / len(rows)
    low, high = min(values.values()), max(values.values())
    return Sensitivity(low, high, high - low, spreads / draws, values)
