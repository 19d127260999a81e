"""``ScoredRun``: the records of an evaluation, and the figures that are computed from its records.

One value for each example: its scores over the repeats, reduced. A failure of the program has ``failure_score``; a failure of
the provider or the metric has no score, and its example none if no other repeat has one. All figures are computed when they
are first read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import attrgetter
from statistics import fmean
from typing import TypeAlias

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.record import FieldValue
from sigwire.core.response import Usage
from sigwire.errors import ConfigurationError, InputError, suggest
from sigwire.evaluate.calibration import Calibration, calibration_of_records, paths_of
from sigwire.evaluate.costs import cost_text, program_cost
from sigwire.evaluate.figures.tool_counts import ToolCounts, total_tools, total_warnings
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.segments import Segment, SegmentCounter
from sigwire.evaluate.statistics import Interval, mean_interval, no_interval_reason, reduce_scores
from sigwire.show.card import BoundedRepr

__all__ = ["ScoredRun", "cost_of", "is_wrong"]


_ReadsScore: TypeAlias = Callable[[ExampleRecord], float | None]


def is_wrong(record: ExampleRecord) -> bool:
    """Return True for an answer with a score below 1."""
    return record.cell.failure is None and record.cell.score is not None and record.cell.score < 1


@dataclass(frozen=True)
class ScoredRun(BoundedRepr):
    """One evaluation of one program: its records and settings.

    ``examples`` and ``predictions``: those of the records, in their order. ``n``: the examples of the devset, run or not.
    ``confidence``: of the interval. ``seconds``: of the whole run. ``is_plain``: the values of the examples and predictions
    are JSON data of a file, read without the types of a program. ``header``: that of the last part of the run; ``earlier``:
    those of the parts before, if it was resumed.
    """

    program_name: str
    records: Sequence[ExampleRecord]
    examples: Sequence[Example]
    predictions: Sequence[FieldValue]
    n: int
    header: JsonObject = field(default_factory=dict[str, JsonValue])
    status: str = "complete"
    metric_names: Sequence[str] = ("score",)
    repeat: int = 1
    reduce: str = "mean"
    cluster: str | None = None
    confidence: float = 0.95
    failure_score: float = 0.0
    errors: str = "score"
    seconds: float = 0.0
    path: str | None = None
    is_plain: bool = False
    headline: str = ""
    earlier: Sequence[JsonObject] = ()

    @property
    def metric_name(self) -> str:
        """The name of the headline metric: ``headline``, or the first."""
        return self.headline or self.first_metric

    @property
    def first_metric(self) -> str:
        """The name of the first metric, whose values are the scores of the records."""
        return self.metric_names[0] if self.metric_names else "score"

    def with_metric(self, name: str) -> ScoredRun:
        """Return the run with another of its metrics as the headline. Failures count as they do for the first.

        Raises ``ConfigurationError`` if no record has a score of that name.
        """
        if name not in (known := self.by_metric):
            raise ConfigurationError(
                f"No record has a score {name!r} (choosing a metric). {suggest(name, known)}Its metrics: {', '.join(known)}."
            )
        return known[name]

    @cached_property
    def by_metric(self) -> Mapping[str, ScoredRun]:
        """The run with each of its metrics as the headline, by name, its own headline first."""
        scored = (name for record in self.records for name in record.cell.subscores)
        names = dict.fromkeys([self.metric_name, self.first_metric, *scored])
        return {name: self if name == self.metric_name else replace(self, headline=name) for name in names}

    # --- one value for each example

    @cached_property
    def by_example(self) -> Mapping[int, Sequence[ExampleRecord]]:
        """The records of each example that ran, by its index."""
        groups: dict[int, list[ExampleRecord]] = {}
        for record in sorted(self.records, key=attrgetter("index", "repeat")):
            groups.setdefault(record.index, []).append(record)
        return groups

    @cached_property
    def example_by_index(self) -> Mapping[int, Example]:
        """The example of each index."""
        return {record.index: example for record, example in zip(self.records, self.examples, strict=True)}

    @cached_property
    def values(self) -> Mapping[int, float | None]:
        """The reduced score of each example that ran, by its index; ``None``: not scored."""
        return self._reduced(self.score_of)

    def score_of(self, record: ExampleRecord) -> float | None:
        """Return the score that counts for the mean, or ``None``."""
        if self.errors == "skip" and record.cell.failure is not None:
            return None
        own, score = self.headline, record.cell.score
        is_other = own not in ("", self.first_metric) and score is not None and record.cell.failure is None
        return record.cell.subscores.get(own) if is_other else score

    def _reduced(self, read: _ReadsScore, missing: float | None = None) -> dict[int, float | None]:
        reduced: dict[int, float | None] = {}
        for index, records in self.by_example.items():
            scores = [missing if (score := read(record)) is None else score for record in records]
            reduced[index] = reduce_scores([score for score in scores if score is not None], self.reduce)
        return reduced

    @cached_property
    def scored_values(self) -> Sequence[float]:
        """The reduced scores of the examples that are scored."""
        return [value for value in self.values.values() if value is not None]

    @cached_property
    def clusters(self) -> Sequence[Hashable] | None:
        """The cluster of each scored example, or ``None`` without clusters."""
        if self.cluster is None:
            return None
        return [self.cluster_of(index) for index, value in self.values.items() if value is not None]

    def cluster_of(self, index: int) -> Hashable:
        """Return the cluster of an example: the JSON of its field ``cluster``."""
        return None if self.cluster is None else _field_key(self.by_example[index][0], self.cluster)

    # --- the headline

    @property
    def mean(self) -> float:
        """The mean of the scored examples; NaN if there are none."""
        return fmean(self.scored_values) if self.scored_values else math.nan

    @cached_property
    def interval(self) -> Interval | None:
        """The confidence interval of the mean."""
        return mean_interval(self.scored_values, self.clusters, confidence=self.confidence)

    @property
    def interval_text(self) -> str:
        """The interval with its confidence and method, or the reason why there is none."""
        if (found := self.interval) is None:
            return f"no interval: {no_interval_reason(self.scored_values, self.clusters)}"
        return f"{100 * self.confidence:g} % {found.low:.3f} … {found.high:.3f} ({found.method_text})"

    @property
    def is_few(self) -> bool:
        """Whether the scored examples are too few for an interval of the mean that holds."""
        return self.interval is None or self.interval.is_few

    @property
    def percent(self) -> float:
        """The percent of all examples that ran, every failure at ``failure_score``, two decimals."""
        values = [
            value for value in self._reduced(lambda r: r.cell.score, self.failure_score).values() if value is not None
        ]
        return round(100 * fmean(values), 2) if values else 0.0

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The mean if each missing score were 0, and if each were 1; ``None`` if scores are not all in that range."""
        if any(not 0 <= value <= 1 for value in self.scored_values):
            return None
        low, high = (
            [value for value in self._reduced(self.score_of, missing).values() if value is not None]
            for missing in (0.0, 1.0)
        )
        return (fmean(low), fmean(high)) if low else None

    @property
    def metrics(self) -> Mapping[str, float]:
        """The mean of each metric by name, the headline first."""
        return {name: run.mean for name, run in self.by_metric.items()}

    @property
    def intervals(self) -> Mapping[str, Interval | None]:
        """The interval of each metric by name, the headline first."""
        return {name: run.interval for name, run in self.by_metric.items()}

    # --- failures

    @property
    def failed(self) -> Sequence[ExampleRecord]:
        """The records whose program failed."""
        return [each for each in self.records if each.cell.failure is not None and each.cell.failure.kind == "program"]

    @property
    def not_scored(self) -> Sequence[ExampleRecord]:
        """The records without a score: failures of the provider, the metric or the caller."""
        return [record for record in self.records if record.cell.score is None]

    @property
    def failures(self) -> Counter[str]:
        """How often each class of error ended a run or its scoring."""
        return Counter(each.cell.failure.type for each in self.records if each.cell.failure is not None)

    @property
    def coverage(self) -> float:
        """The share of the runs that did not end unsure; 1 without runs."""
        return 1 - sum(map(_is_unsure, self.records)) / len(self.records) if self.records else 1.0

    @property
    def answered(self) -> ScoredRun:
        """The run without the records that ended unsure."""
        return self._with([place for place, record in enumerate(self.records) if not _is_unsure(record)])

    @cached_property
    def calibrations(self) -> Mapping[str, Calibration]:
        """The calibration of each output whose evidence has one source and whose labels are those of its path."""
        found: dict[str, Calibration] = {}
        for path in paths_of(self.records):
            with suppress(InputError):
                found[path] = calibration_of_records(self.records, self.examples, path)
        return found

    # --- usage

    @property
    def usage(self) -> Mapping[str, Usage]:
        """The tokens of the program by model."""
        totals: dict[str, Usage] = {}
        for record in self.records:
            for model, counts in record.cell.usage.items():
                usage = Usage.from_json({name: counts[name] for name in _COUNTS if name in counts})
                totals[model] = totals[model] + usage if model in totals else usage
        return totals

    @property
    def total_usage(self) -> Usage:
        """The tokens of the program with all models."""
        return reduce(lambda first, second: first + second, self.usage.values(), Usage())

    @property
    def cost(self) -> float | None:
        """The known cost of the program in US dollars, a lower bound if ``is_cost_partial``; ``None`` if nothing is known."""
        known = math.fsum(program_cost(record.cell)[0] for record in self.records)
        return None if self.is_cost_partial and not known else known

    @property
    def cost_text(self) -> str:
        """The cost for people: ``$0.75``, ``≥ $0.75`` if a part is unknown, or ``unknown``."""
        return cost_text(self.cost, self.is_cost_partial)

    @property
    def is_cost_partial(self) -> bool:
        """Whether the cost of a record is unknown."""
        return not all(program_cost(record.cell)[1] for record in self.records)

    # --- tools and warnings

    @cached_property
    def tools(self) -> Mapping[str, ToolCounts]:
        """The calls and errors of each tool, the one with the most errors first."""
        return total_tools(self.records)

    @cached_property
    def warnings(self) -> Counter[str]:
        """The number of warnings by feature: "tool" for exceptions of tools, else what a provider dropped or approximated."""
        return total_warnings(self.records)

    @cached_property
    def segments(self) -> Sequence[Segment]:
        """The parts of the run."""
        counter = SegmentCounter((*self.earlier, self.header))
        for record in self.records:
            counter.add(record.cell, record.segment)
        return counter.segments()

    def latency(self, share: float) -> float | None:
        """Return a quantile of the seconds of a run, of the runs that sent requests if there are such."""
        sent = [record.cell.seconds for record in self.records if record.cell.requests]
        ordered = sorted(sent or [record.cell.seconds for record in self.records])
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None

    # --- parts

    def by(self, name: str) -> Mapping[JsonValue, ScoredRun]:
        """Return a run for each value of a field of the inputs or labels, with the records of that value.

        Raises ``InputError`` if no record has the field.
        """
        known = dict.fromkeys(field for record in self.records for field in (*record.inputs, *record.labels))
        if name not in known:
            raise InputError(f"No example has a field {name!r} (grouping by it). {suggest(name, known)}".rstrip())
        groups: dict[str, list[int]] = {}
        labels: dict[str, JsonValue] = {}
        for place, record in enumerate(self.records):
            key = _field_key(record, name)
            labels[key] = {**record.inputs, **record.labels}.get(name)
            groups.setdefault(key, []).append(place)
        return {
            label if isinstance(label := labels[key], (str, int, float, bool)) else key: self._with(places)
            for key, places in groups.items()
        }

    def _with(self, places: Sequence[int]) -> ScoredRun:
        """Return a run of the records at some places."""
        records = [self.records[place] for place in places]
        return replace(
            self,
            records=records,
            examples=[self.examples[place] for place in places],
            predictions=[self.predictions[place] for place in places],
            n=len({record.index for record in records}),
            seconds=math.fsum(record.cell.seconds for record in records),
        )


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")


def cost_of(record: ExampleRecord) -> float | None:
    """Return the cost of a record; a run without requests costs nothing."""
    return 0.0 if record.cell.cost is None and not record.cell.requests else record.cell.cost


def _is_unsure(record: ExampleRecord) -> bool:
    return record.cell.failure is not None and record.cell.failure.type == "Unsure"


def _field_key(record: ExampleRecord, name: str) -> str:
    return dumps({**record.inputs, **record.labels}.get(name))
