"""``EvaluationResult``: the outcome of an evaluation, as an object, a card, rows and files.

A ``Prediction`` with the fields ``score`` and ``results``; all other figures are attributes, computed by ``ScoredRun``.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias

from sigwire.core.example import Example, Prediction
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.narrow import is_object
from sigwire.core.record import FieldValue, Meta, new_record
from sigwire.core.response import Usage
from sigwire.effects.steps import run
from sigwire.errors import ConfigurationError
from sigwire.evaluate.calibration import Calibration, Label, calibration_of_records
from sigwire.evaluate.cell import Cell, score_steps
from sigwire.evaluate.comparison import Comparison, compare
from sigwire.evaluate.figures import exports
from sigwire.evaluate.figures.run_card import run_card
from sigwire.evaluate.figures.scored_run import ScoredRun, is_wrong
from sigwire.evaluate.figures.tool_counts import ToolCounts
from sigwire.evaluate.fingerprint.identity import metric_fingerprint
from sigwire.evaluate.metric_plan import MetricPlan, Metrics
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.segments import Segment
from sigwire.evaluate.statistics import TOO_FEW, Interval
from sigwire.settings import current
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import inline, number
from sigwire.show.markdown import card_markdown

__all__ = ["EvaluationResult", "ResultScore"]

ResultTriple: TypeAlias = tuple[Example, FieldValue, float]


@dataclass(slots=True, eq=False, repr=False)
class _ResultMeta(Meta):
    """The metadata of a result: copies, pickles keep the run beside the fields."""

    run: ScoredRun | None = None


class ResultScore(float):
    """The score of an example in ``results``; ``feedback`` and ``subscores`` are those of the metric."""

    feedback: str = ""
    subscores: Mapping[str, float] = {}

    @property
    def score(self) -> float:
        """The number."""
        return float(self)


class EvaluationResult(Prediction, HasCard):
    """The outcome of an evaluation. ``Evaluate`` makes it.

    ``score``: percent of all examples, every failure at ``failure_score``. ``results``: (example, prediction,
    score) in the order of the devset; ``score.feedback`` is that of the metric, if it gave any. ``mean`` and ``interval``
    leave out what was not scored, so they may differ from ``score``. In ``show()`` and in notebooks it is a card.

    >>> from sigwire.evaluate.evaluation import Evaluate
    >>> devset = [Example(number=n, even=n % 2 == 0).with_inputs("number") for n in range(10)]
    >>> evaluate = Evaluate(devset=devset, metric=lambda example, prediction: example.even == prediction.even, progress=False)
    >>> result = evaluate(lambda number: Prediction(even=number != 3))
    >>> result.score, result.mean, [record.index for record in result.wrong], result.interval.method
    (60.0, 0.6, [1, 5, 7, 9], 'adjusted t')
    >>> {even: part.mean for even, part in result.by("even").items()}
    {True: 1.0, False: 0.2}
    """

    __slots__ = ()
    if TYPE_CHECKING:
        score: float
        results: list[ResultTriple]

    def __init__(self, score: float, results: Sequence[ResultTriple] = ()) -> None:
        """Make a result of the two fields, without records: a test double."""
        super().__init__(score=score, results=results)

    @classmethod
    def make(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        cls: type[Self],
        program_name: str,
        records: Sequence[ExampleRecord],
        examples: Sequence[Example],
        predictions: Sequence[FieldValue],
        *,
        header: JsonObject | None = None,
        earlier: Sequence[JsonObject] = (),
        status: str = "complete",
        metric_names: Sequence[str] = ("score",),
        repeat: int = 1,
        reduce: str = "mean",
        cluster: str | None = None,
        interval: float = 0.95,
        failure_score: float = 0.0,
        errors: str = "score",
        seconds: float = 0.0,
        path: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Return the result of records; ``examples`` and ``predictions`` are those of the records, in their order.

        ``header``: that of the last part of the run; ``earlier``: those of the parts before.
        """
        header = header or {}
        devset = header.get("devset")
        found = devset.get("n") if isinstance(devset, dict) else None
        run = ScoredRun(
            program_name,
            tuple(records),
            tuple(examples),
            tuple(predictions),
            found if isinstance(found, int) else len({record.index for record in records}),
            header,
            status,
            tuple(metric_names),
            repeat,
            reduce,
            cluster,
            interval,
            failure_score,
            errors,
            seconds,
            None if path is None else os.fspath(path),
            earlier=tuple(earlier),
        )
        return cls.of(run)

    @classmethod
    def of(cls, run: ScoredRun) -> Self:
        """Return the result of a run."""
        fields = {"score": run.percent, "results": _triples(run)}
        return new_record(cls, fields, None, _ResultMeta(run=run))

    @property
    def run(self) -> ScoredRun:
        """The records and settings from which all figures are computed."""
        run = self._meta.run if isinstance(self._meta, _ResultMeta) else None
        if run is None:
            raise ConfigurationError(f"This {type(self).__name__} has no records (reading it). Evaluate makes results.")
        return run

    # --- the figures

    @property
    def mean(self) -> float:
        """The mean score of the scored examples; NaN if there are none."""
        return self.run.mean

    @property
    def interval(self) -> Interval | None:
        """The confidence interval of the mean, with its method, and ``is_few`` if the examples are too few.

        ``None``: scores that are not between 0 and 1 are fewer than five, or equal.
        """
        return self.run.interval

    @property
    def metrics(self) -> Mapping[str, float]:
        """The mean of each metric by name, the headline first."""
        return self.run.metrics

    @property
    def intervals(self) -> Mapping[str, Interval | None]:
        """The confidence interval of each metric by name, the headline first; see ``interval``."""
        return self.run.intervals

    @property
    def n(self) -> int:
        """The number of examples, run or not."""
        return self.run.n

    @property
    def scored(self) -> int:
        """The number of examples with a score."""
        return len(self.run.scored_values)

    @property
    def unscored(self) -> int:
        """The number of examples that ran and have no score."""
        return len(self.run.values) - self.scored

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and highest mean that missing scores between 0 and 1 would give."""
        return self.run.bounds

    @property
    def failures(self) -> Counter[str]:
        """The number of failures by class: of the program, the provider and the metric."""
        return self.run.failures

    @property
    def records(self) -> Sequence[ExampleRecord]:
        """One record for each run of an example, in the order of the devset."""
        return self.run.records

    @property
    def wrong(self) -> Sequence[ExampleRecord]:
        """The records of answers with a score below 1."""
        return [record for record in self.run.records if is_wrong(record)]

    @property
    def failed(self) -> Sequence[ExampleRecord]:
        """The records whose program failed."""
        return self.run.failed

    @property
    def not_scored(self) -> Sequence[ExampleRecord]:
        """The records without a score: the provider or the metric failed."""
        return self.run.not_scored

    @property
    def tools(self) -> Mapping[str, ToolCounts]:
        """The calls and errors of each tool, of all agents of the program, the tool with the most errors first."""
        return self.run.tools

    @property
    def warnings(self) -> Counter[str]:
        """The number of warnings by feature: "tool" for exceptions of tools, else what a provider dropped or approximated."""
        return self.run.warnings

    @property
    def usage(self) -> Mapping[str, Usage]:
        """The tokens of the program by model."""
        return self.run.usage

    @property
    def cost(self) -> float | None:
        """The known cost of the program in US dollars, at least that if ``is_cost_partial``; ``None``: unknown."""
        return self.run.cost

    @property
    def is_cost_partial(self) -> bool:
        """Whether the cost of a record is unknown, so that ``cost`` is a lower bound."""
        return self.run.is_cost_partial

    @property
    def seconds(self) -> float:
        """The duration of the evaluation."""
        return self.run.seconds

    @property
    def concurrency(self) -> JsonValue:
        """The number of examples under way at once, as far as the run stored it."""
        return self.run.header.get("num_threads")

    @property
    def status(self) -> str:
        """``complete``, ``cancelled``, ``budget`` or ``aborted``; of an executor ``stalled`` and ``engine-lost`` as well."""
        return self.run.status

    @property
    def segments(self) -> Sequence[Segment]:
        """The parts of a run that was resumed, each with its versions, its commit and the models that answered in it."""
        return self.run.segments

    @property
    def path(self) -> str | None:
        """The file of records."""
        return self.run.path

    @property
    def coverage(self) -> float:
        """The share of the runs that did not end unsure (``Unsure``); 1 without runs."""
        return self.run.coverage

    @property
    def answered_score(self) -> float:
        """``score`` of the runs that did not end unsure: percent, every failure at ``failure_score``; NaN if all are unsure."""
        return self.run.answered.percent if self.coverage else math.nan

    def calibration(self, field: str, *, label: Label = None, source: str | None = None, bins: int = 10) -> Calibration:
        """Return how well the probabilities of an output agree with its labels.

        ``field``: the path of the output, "urgent", "ticket.urgent" or "tags[billing]". ``label``: the field of the examples
        that has the right value, by default the path, or a function of the example. ``source``: "measured", "logprob",
        "sampled" or "stated"; needed if the records have several. ``bins``: of equal width. Rows without evidence or label
        are left out. Raises ``InputError`` if no row is left, and for several sources.
        """
        run = self.run
        return calibration_of_records(run.records, run.examples, field, label=label, source=source, bins=bins)

    # --- parts and comparisons

    def by(self, name: str) -> dict[JsonValue, Self]:
        """Return a result for each value of a field of the examples. Raises ``InputError`` for an unknown field."""
        return {value: type(self).of(run) for value, run in self.run.by(name).items()}

    def compare(self, other: EvaluationResult, *, common: bool = False) -> Comparison:
        """Compare another program on the same examples with this one, which is the baseline."""
        names = (self.run.program_name, other.run.program_name)
        first, second = names if names[0] != names[1] else ("first", "second")
        return compare({first: self, second: other}, common=common)

    def rescore(self, metric: Metrics) -> Self:
        """Return the result of the same outputs with another metric. The program is not run; failed runs stay as they are.

        The values of a result that ``load_records`` read without a program are JSON data. A metric that reads an attribute
        of such a value raises ``ConfigurationError``.
        """
        plan = MetricPlan(metric)
        triples = zip(self.run.records, self.run.examples, self.run.predictions, strict=True)
        records = tuple(
            record
            if record.cell.outputs is None
            else replace(record, cell=run(score_steps(record.cell, example, prediction, plan)))
            for record, example, prediction in triples
        )
        if self.run.is_plain:
            _check_plain(records)
        header: JsonObject = {**self.run.header, "metrics": [*plan.names]}
        if is_object(found := header.get("fingerprint")):
            scored: JsonObject = {
                name: metric_fingerprint(each, [], current().lm) for name, each in plan.metrics.items()
            }
            header["fingerprint"] = {**found, "metrics": scored}
        return type(self).of(replace(self.run, records=records, metric_names=plan.names, header=header, path=None))

    # --- exports

    def rows(self) -> list[dict[str, JsonValue]]:
        """Return a flat dict for each record, for ``pandas.DataFrame`` and others; each has all columns."""
        return exports.rows(self.run)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV. Text that a spreadsheet would run as a formula gets a leading apostrophe (CWE-1236)."""
        exports.write_text(path, exports.csv_text(self.rows()))

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the records as ``log=`` does: a line for each part of the run, one for each record, one for the end."""
        end: JsonObject = {"status": self.status, "records": len(self.records), "seconds": self.seconds}
        lines: list[JsonObject] = []
        for place, header in enumerate((*self.run.earlier, self.run.header)):
            lines.append({**header, "type": "segment" if place else "run"})
            lines += [each.to_json() for each in self.records if each.segment == place]
        exports.write_text(path, "".join(f"{dumps(line)}\n" for line in [*lines, {"type": "end", **end}]))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a report as one HTML file: figures, plots, and a table of the records with drill-down. No network is used."""
        from sigwire.evaluate.reports.page import write_page
        from sigwire.evaluate.reports.run_page import run_page

        write_page(run_page(self.run), path)

    def to_markdown(self) -> str:
        """Return the figures as Markdown, for the description of a change."""
        card = run_card(self.run)
        return card_markdown(replace(card, rows=[row for row in card.rows if row[0] != "first wrong"]))

    def to_inspect(self, path: str | os.PathLike[str]) -> str:
        """Write a log of Inspect AI; return its path. ``path``: a ``.json`` file, or a folder for ``inspect view``."""
        from sigwire.evaluate.reports.inspect_log import write_inspect_log

        return str(write_inspect_log(self.run, path))

    def save_as_csv(self, path: str | os.PathLike[str]) -> None:
        """Write flat rows as CSV: fields of example and prediction, and the score."""
        exports.write_text(path, exports.csv_text(exports.flat_rows(self.run)))

    def save_as_json(self, path: str | os.PathLike[str]) -> None:
        """Write flat rows as JSON: an array of the rows of ``save_as_csv``."""
        exports.write_text(path, exports.json_text(exports.flat_rows(self.run)))

    # --- shown

    def __repr__(self) -> str:
        if not isinstance(self._meta, _ResultMeta):
            return f"EvaluationResult(score={self.score}, results=<list of {len(self.results)} results>)"
        run = self.run
        name = inline(run.metric_name, 60)
        errors = sum(found.errors for found in run.tools.values())
        counts = {"n": self.n, "failed": len(run.failed), "unscored": self.unscored, "tool_errors": errors}
        counts["segments"] = len(run.segments) if len(run.segments) > 1 else 0
        status = "" if run.status == "complete" else f", status={run.status!r}"
        shown = "".join(f", {label}={count}" for label, count in counts.items() if count or label == "n")
        shown += f", {TOO_FEW}" if run.is_few and self.scored else ""
        return f"EvaluationResult({name}={number(run.mean)}{shown}{status})"

    def _card(self) -> Card:
        return run_card(self.run)


def _check_plain(records: Iterable[ExampleRecord]) -> None:
    """Raise ``ConfigurationError`` if a metric took JSON data for a typed value."""
    for record in records:
        failure = record.cell.failure
        if failure is not None and failure.kind == "metric" and _OF_JSON.match(failure.message):
            raise ConfigurationError(
                f"The metric failed with {failure.message!r:.200} (scoring the records of a file): the values are JSON data. "
                "Pass the program or its signature, load_records(path, program), and they have their types."
            )


_OF_JSON = re.compile(r"'(?:dict|list|str|int|float|bool|NoneType)' object has no attribute ")


def _triples(run: ScoredRun) -> list[ResultTriple]:
    scores = [_score(each.cell, run.failure_score) for each in run.records]
    return list(zip(run.examples, run.predictions, scores, strict=True))


def _score(cell: Cell, failure_score: float) -> float:
    number = failure_score if cell.score is None else cell.score
    if not cell.feedback and not cell.subscores:
        return number
    score = ResultScore(number)
    score.feedback, score.subscores = cell.feedback, cell.subscores
    return score
