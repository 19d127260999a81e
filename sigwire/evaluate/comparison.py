"""``compare``: programs on the same examples, each with the first, by paired differences.

"better" is written only if p, adjusted by Holm's steps for all programs and metrics, is significant, and the examples
are not too few; an interval excludes 0 in the same cases. Examples that one of the two could not score are left out of
the pair, and counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Literal, Never, Protocol, TypeAlias

from sigwire.core.example import Example
from sigwire.core.narrow import is_mapping
from sigwire.errors import ConfigurationError, DataError
from sigwire.evaluate.costs import cost_text
from sigwire.evaluate.figures.run_card import fields_text
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.figures.stored_run import load_run
from sigwire.evaluate.figures.tool_counts import ToolCounts
from sigwire.evaluate.fingerprint.identity import metric_differences
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.segments import segment_rows
from sigwire.evaluate.statistics import (
    TOO_FEW,
    PairedDifference,
    holm,
    holm_confidences,
    paired_difference,
    reaching_zero,
)
from sigwire.show.card import BoundedRepr, Card, HasCard
from sigwire.show.cleaning import inline, number
from sigwire.show.markdown import card_markdown
from sigwire.show.numbers import count, seconds_text

__all__ = [
    "DIFFERENCE_COLUMNS",
    "ChangedExample",
    "ComparedPair",
    "Comparison",
    "ProgramDifference",
    "adjusted_differences",
    "compare",
    "verdict_of",
]

DIFFERENCE_COLUMNS = ("verdict", "difference", "interval", "p", "won", "lost")
Verdict: TypeAlias = Literal["better", "worse", "not shown to be better"]
FilePath: TypeAlias = "str | PathLike[str]"
ChangedExample: TypeAlias = tuple[Example, ExampleRecord, ExampleRecord]
"""An example with the record of the baseline and that of the other program."""


class _HasRun(Protocol):
    """An ``EvaluationResult``."""

    @property
    def run(self) -> ScoredRun: ...


@dataclass(frozen=True, slots=True)
class ProgramDifference(BoundedRepr):
    """A program against the baseline. ``difference``: its mean minus that of the baseline, over examples scored in both.

    ``p``: adjusted for the number of programs and metrics; ``confidence``: of the interval, adjusted; ``omitted``: shared
    examples that one of the two did not score; ``regressions`` and ``wins``: examples with a lower or higher score, the largest
    change first. ``metric``: whose scores these are. ``seeds``: their number; ``note``: the end of the sentence.
    """

    name: str
    baseline: str
    difference: PairedDifference
    p: float
    confidence: float
    verdict: Verdict
    omitted: int
    regressions: Sequence[ChangedExample]
    wins: Sequence[ChangedExample]
    metric: str = ""
    seeds: int = 1
    note: str = ""

    @property
    def is_shown(self) -> bool:
        """The program is shown to be better or worse."""
        return self.verdict in ("better", "worse")

    @property
    def interval_text(self) -> str:
        """The interval with its confidence, or the reason why there is none."""
        if (interval := self.difference.interval) is None:
            return f"{TOO_FEW}, or no spread" if self.difference.is_few else "no score differs"
        return f"{100 * self.confidence:.4g} % {interval.low:+.3f} … {interval.high:+.3f}"

    @property
    def cells(self) -> list[str]:
        """The difference as cells of a table, whose names are ``DIFFERENCE_COLUMNS``."""
        numbers = [f"{self.difference.mean:+.3f}", self.interval_text, f"{self.p:.2g}"]
        return [self.verdict, *numbers, str(len(self.wins)), str(len(self.regressions))]

    @property
    def sentence(self) -> str:
        """The difference in one sentence."""
        found, interval = self.difference, self.difference.interval
        names = f"{inline(self.name, 40)} is {self.verdict}"
        numbers = f"{found.mean:+.3f}, {self.interval_text}"
        n = f"n = {found.n}" if self.seeds == 1 else f"n = {found.n} × {self.seeds} seeds"
        how = n if interval is None else f"{interval.method_text}; p = {self.p:.2g}; {n}"
        text = f"{names} than {inline(self.baseline, 40)}: {numbers} ({how})."
        if interval is not None and self.verdict == "not shown to be better" and found.smallest is not None:
            text += f" So many examples show differences of {found.smallest:.3f} or more."
        return f"{text[:-1]}; {self.note}." if self.note else text


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(HasCard):
    """Programs on the same examples; ``compare`` makes it. ``comparison["name"]`` is the difference of one program.

    ``runs``: by name, the baseline first. ``differences``: of the headline metric; ``others``: of each other metric that all
    runs have, by its name. In ``show()`` and in notebooks it is a card.
    """

    runs: Mapping[str, ScoredRun]
    differences: Sequence[ProgramDifference]
    others: Mapping[str, Sequence[ProgramDifference]] = field(default_factory=dict[str, Sequence[ProgramDifference]])

    def __getitem__(self, name: str) -> ProgramDifference:
        for each in self.differences:
            if each.name == name:
                return each
        raise KeyError(name)

    @property
    def regressions(self) -> Sequence[ChangedExample]:
        """The examples that the second of two programs lost. Raises ``ConfigurationError`` for three programs and more."""
        return self._only.regressions

    @property
    def wins(self) -> Sequence[ChangedExample]:
        """The examples that the second of two programs won. Raises ``ConfigurationError`` for three programs and more."""
        return self._only.wins

    @property
    def sentences(self) -> Sequence[str]:
        """A sentence for each program but the baseline; then those of other metrics that are better or worse."""
        found = [f"{each.metric}: {each.sentence}" for each in self.all[len(self.differences) :] if each.is_shown]
        return [*(each.sentence for each in self.differences), *found]

    @property
    def omitted_metrics(self) -> Sequence[str]:
        """The metrics that not all runs have, so that they are not compared."""
        names = dict.fromkeys(name for run in self.runs.values() for name in run.by_metric)
        return [name for name in names if any(name not in run.by_metric for run in self.runs.values())]

    @property
    def worse(self) -> Sequence[ProgramDifference]:
        """The differences, of any metric, in which a program is worse than the baseline."""
        return [each for each in self.all if each.verdict == "worse"]

    @property
    def all(self) -> Sequence[ProgramDifference]:
        """The differences by every metric, those of the headline first."""
        return [*self.differences, *(each for found in self.others.values() for each in found)]

    @property
    def _only(self) -> ProgramDifference:
        if len(self.differences) != 1:
            names = ", ".join(repr(each.name) for each in self.differences)
            raise ConfigurationError(f"Several programs are compared. Name one: comparison[name] with one of {names}.")
        return self.differences[0]

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a report as one HTML file: differences, right against wrong, and the examples side by side, lost first."""
        from sigwire.evaluate.reports.comparison_page import comparison_page
        from sigwire.evaluate.reports.page import write_page

        write_page(comparison_page(self.runs, self.all, self._card()), path)

    def to_markdown(self) -> str:
        """Return the programs and differences as Markdown, for the description of a change."""
        return card_markdown(self._card())

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{each.name[:40]!r}: {each.verdict}{f' ({TOO_FEW})' if each.difference.is_few else ''}"
            for each in self.differences[:8]
        )
        return f"Comparison({shown} than {self.differences[0].baseline[:40]!r})"

    def _card(self) -> Card:
        metric = next(iter(self.runs.values())).metric_name
        head = ["program", metric, "interval", "scored", "failed", "$ per 1,000", "p50"]
        table = [head, *(_program_row(name, run) for name, run in self.runs.items())]
        children = [*_difference_cards(self), *_metric_cards(self), *_tool_cards(self.runs)]
        rows = (
            [("not compared", [f"{', '.join(self.omitted_metrics)}: not all programs have scores of it"])]
            if self.omitted_metrics
            else []
        )
        for name, run in self.runs.items():
            rows += [(f"{name}: {label}", lines) for label, lines in segment_rows(run.segments)]
        return Card("Comparison", " · ".join(self.runs), rows, table, children)


def compare(
    results: Mapping[str, _HasRun | FilePath],
    *more: Never,
    common: bool = False,
    seed: int = 0,
    metric: str | None = None,
) -> Comparison:
    """Compare programs with the first of ``results``, by name: results of evaluations, or paths of their records.

    ``common``: compare the examples that all devsets share. ``metric``: the headline, by default the first metric; every other
    one that all results have is compared too, and p values and intervals are adjusted for the number of all (Holm). Raises
    ``ConfigurationError`` for fewer than two results, and for different devsets, metrics, repeats or reductions. E. Miller,
    arXiv 2411.00640: paired differences.

    >>> from sigwire.core.example import Prediction
    >>> from sigwire.evaluate.evaluation import Evaluate
    >>> devset = [Example(number=n, even=n % 2 == 0).with_inputs("number") for n in range(40)]
    >>> evaluate = Evaluate(devset=devset, metric=lambda example, prediction: example.even == prediction.even, progress=False)
    >>> always, last_bit = (lambda number: Prediction(even=True)), (lambda number: Prediction(even=not number & 1))
    >>> comparison = compare({"always": evaluate(always), "last bit": evaluate(last_bit)})
    >>> comparison["last bit"].verdict, len(comparison.wins), len(comparison.regressions)
    ('better', 20, 0)
    >>> print(comparison.sentences[0])
    last bit is better than always: +0.500, 95 % +0.311 … +0.641 (Bonett-Price; p = 1.9e-06; n = 40).
    """
    if more or not is_mapping(results) or len(results) < 2 or not all(map(_is_result, results.values())):
        raise ConfigurationError(
            "compare() takes two results or more by name, or paths of records (comparing results). Write "
            "compare({'baseline': a, 'optimized': b})."
        )
    runs = {name: load_run(each) if isinstance(each, (str, PathLike)) else each.run for name, each in results.items()}
    baseline, *others = runs
    for name in others:
        _refuse_different(baseline, runs[baseline], name, runs[name], common)
    if metric is not None:
        runs = {name: each.with_metric(metric) for name, each in runs.items()}
    headline, *rest = (
        name for name in runs[baseline].by_metric if all(name in each.by_metric for each in runs.values())
    )
    found = _differences(runs, [headline, *rest], seed)
    return Comparison(runs, found[headline], {name: found[name] for name in rest})


def _differences(
    runs: Mapping[str, ScoredRun], metrics: Sequence[str], seed: int
) -> Mapping[str, Sequence[ProgramDifference]]:
    """Return the differences from the first run by metric."""
    baseline, *others = runs
    scored = {metric: {name: run.with_metric(metric) for name, run in runs.items()} for metric in metrics}
    pairs = {
        metric: [_Pairs.of(baseline, by_name[baseline], name, by_name[name]) for name in others]
        for metric, by_name in scored.items()
    }
    return adjusted_differences(pairs, runs[baseline].confidence, seed)


class ComparedPair(Protocol):
    """A program and its baseline, with the scores of both. ``note``: the end of the sentence, if it needs one."""

    @property
    def name(self) -> str: ...
    @property
    def baseline(self) -> str: ...
    @property
    def scores(self) -> Sequence[object]: ...
    @property
    def omitted(self) -> int: ...
    @property
    def seeds(self) -> int: ...
    @property
    def note(self) -> str: ...
    def difference(self, confidence: float, seed: int, /) -> PairedDifference: ...
    def changed(self, sign: int, /) -> Sequence[ChangedExample]: ...


def adjusted_differences(
    pairs: Mapping[str, Sequence[ComparedPair]], confidence: float, seed: int = 0
) -> dict[str, list[ProgramDifference]]:
    """Return the differences of pairs by metric, adjusted together by Holm's steps.

    Metrics with the same scores in every pair are tested once: a score that stands under two names is one comparison.
    """
    tested: dict[str, str] = {}  # by metric the first one of the same scores
    for metric, group in pairs.items():
        scores = [pair.scores for pair in group]
        same = (name for name in tested.values() if [pair.scores for pair in pairs[name]] == scores)
        tested[metric] = next(same, metric)
    places = [(metric, pair) for metric in dict.fromkeys(tested.values()) for pair in pairs[metric]]
    plain = [pair.difference(confidence, seed) for _, pair in places]
    ps = [each.p for each in plain]
    levels = holm_confidences(ps, confidence)
    by_metric: dict[str, list[ProgramDifference]] = {}
    for (metric, pair), each, p, level in zip(places, plain, holm(ps), levels, strict=True):
        found = each if level == confidence else pair.difference(level, seed)
        verdict = verdict_of(p, found, confidence)
        if verdict == "not shown to be better" and found.interval is not None:  # Holm's steps may end before this one
            found = replace(found, interval=reaching_zero(found.interval))
        by_metric.setdefault(metric, []).append(
            ProgramDifference(
                pair.name,
                pair.baseline,
                found,
                p,
                level,
                verdict,
                pair.omitted,
                pair.changed(-1),
                pair.changed(1),
                metric,
                pair.seeds,
                pair.note,
            )
        )
    return {metric: [replace(each, metric=metric) for each in by_metric[first]] for metric, first in tested.items()}


def _is_result(given: object) -> bool:
    return isinstance(given, (str, PathLike)) or hasattr(given, "run")


def _refuse_different(first_name: str, first: ScoredRun, name: str, second: ScoredRun, common: bool) -> None:
    """Raise ``ConfigurationError`` if two runs did not measure the same."""
    settings = [("metric", "metric_name"), ("repeat", "repeat"), ("reduce", "reduce"), ("errors", "errors")]
    found = [
        f"{label} is {getattr(first, attribute)!r:.60} and {getattr(second, attribute)!r:.60}"
        for label, attribute in settings
        if getattr(first, attribute) != getattr(second, attribute)
    ]
    found.extend(metric_differences(first.header, second.header))
    before, after = _first_records(first), _first_records(second)
    shared = before.keys() & after.keys()
    if not common and (only := before.keys() ^ after.keys()):
        found.append(
            f"the devsets share {len(shared)} examples, and {len(only)} are in one of them only (common=True compares "
            "those that are shared)"
        )
    changed = [i for i in shared if (before[i].inputs, before[i].labels) != (after[i].inputs, after[i].labels)]
    if changed:
        found.append(f"{len(changed)} examples have other fields, such as {min(changed)!r:.40}")
    if not shared:
        found.append("no example ran in both")
    if found:
        raise DataError(
            f"{first_name!r} and {name!r} cannot be compared: {'; '.join(found)} (comparing results). Evaluate both "
            "programs with the same devset and metric."
        )


def _first_records(run: ScoredRun) -> Mapping[str, ExampleRecord]:
    return {records[0].id: records[0] for records in run.by_example.values()}


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The examples that two runs share: by id their indexes in both, and the reduced scores of those scored in both."""

    baseline: str
    first: ScoredRun
    name: str
    second: ScoredRun
    indexes: Sequence[tuple[int, int]]
    scores: Sequence[tuple[float, float]]
    omitted: int
    seeds: int = 1
    note: str = ""

    @classmethod
    def of(cls, baseline: str, first: ScoredRun, name: str, second: ScoredRun) -> _Pairs:
        places = {record.id: record.index for record in _first_records(second).values()}
        shared = [(each.index, places[each.id]) for each in _first_records(first).values() if each.id in places]
        indexes: list[tuple[int, int]] = []
        scores: list[tuple[float, float]] = []
        for a, b in shared:
            values = first.values[a], second.values[b]
            if values[0] is not None and values[1] is not None:
                indexes.append((a, b))
                scores.append((values[0], values[1]))
        return cls(baseline, first, name, second, indexes, scores, len(shared) - len(scores))

    def difference(self, confidence: float, seed: int) -> PairedDifference:
        clusters = None if self.first.cluster is None else [self.first.cluster_of(a) for a, _ in self.indexes]
        return paired_difference(
            [a for a, _ in self.scores],
            [b for _, b in self.scores],
            clusters,
            confidence=confidence,
            is_single_run=self.first.repeat == 1,
            seed=seed,
        )

    def changed(self, sign: int) -> list[ChangedExample]:
        """Return the examples whose score rose (1) or fell (-1), the largest change first."""
        gains = [(sign * (b - a), place) for place, (a, b) in enumerate(self.scores)]
        return [
            self._example(*self.indexes[place])
            for gain, place in sorted(gains, key=lambda each: (-each[0], each[1]))
            if gain > 0
        ]

    def _example(self, first: int, second: int) -> ChangedExample:
        record = self.first.by_example[first][0]
        return self.first.example_by_index[first], record, self.second.by_example[second][0]


def verdict_of(p: float, difference: PairedDifference, confidence: float) -> Verdict:
    """Return the verdict of a difference. ``p``: adjusted; an interval excludes 0 where it is significant."""
    if p > 1 - confidence or difference.is_few or difference.mean == 0:
        return "not shown to be better"
    return "better" if difference.mean > 0 else "worse"


# --- the card


def _program_row(name: str, run: ScoredRun) -> list[str]:
    cost, median = run.cost, run.latency(0.5)
    spent = None if cost is None else cost / max(len(run.by_example), 1)
    return [
        name,
        number(run.mean),
        run.interval_text,
        f"{len(run.scored_values)} of {len(run.by_example)}",
        str(len(run.failed)),
        "unknown" if spent is None else cost_text(1_000 * spent, run.is_cost_partial),
        "unknown" if median is None else seconds_text(median),
    ]


def _difference_cards(comparison: Comparison) -> Iterator[Card]:
    baseline = next(iter(comparison.runs.values()))
    for each in comparison.differences:
        rows = [("difference", [each.sentence])]
        if each.omitted:
            rows.append(("left out", [f"{count(each.omitted, 'example')} that one of the two did not score"]))
        rows.append(("changed", [f"{len(each.wins)} won, {len(each.regressions)} lost of {each.difference.n}"]))
        for label, changed in (("lost", each.regressions), ("won", each.wins)):
            if changed:
                rows.append((label, [" ".join(f"#{record.index}" for _, record, _ in changed[:12])]))
        tables = [
            Card(f"{len(changed)} {label}", table=_changed_table(baseline, changed))
            for label, changed in (("lost", each.regressions), ("won", each.wins))
            if changed
        ]
        yield Card(each.name, each.verdict, rows, _agreement(comparison, each), tables, is_open=True)


def _metric_cards(comparison: Comparison) -> Iterator[Card]:
    """Yield a table of the metrics beside the headline, if there are some."""
    if not comparison.others:
        return
    rows = [[each.metric, each.name, *each.cells] for each in comparison.all]
    head = ["metric", "program", *DIFFERENCE_COLUMNS]
    yield Card("metrics", "p adjusted for all of them", table=[head, *rows], is_open=True)


def _tool_cards(runs: Mapping[str, ScoredRun]) -> Iterator[Card]:
    """Yield a table of the calls of tools and the warnings of each program, if there are some."""
    tools = dict.fromkeys(name for run in runs.values() for name in run.tools)
    features = dict.fromkeys(feature for run in runs.values() for feature in run.warnings)
    rows = [[name, *(str(run.tools.get(name, ToolCounts())) for run in runs.values())] for name in tools]
    rows += [[f"warnings: {each}", *(str(run.warnings[each]) for run in runs.values())] for each in features]
    if rows:
        yield Card("tools", "calls and errors", table=[["", *runs], *rows], is_open=True)


def _agreement(comparison: Comparison, each: ProgramDifference) -> list[list[str]]:
    """Return the 2×2 table of right and wrong, if all scores are 0 or 1."""
    runs = comparison.runs
    scores = _Pairs.of(each.baseline, runs[each.baseline], each.name, runs[each.name]).scores
    if any(value not in (0, 1) for pair in scores for value in pair):
        return []
    counts = {pair: sum(found == pair for found in scores) for pair in ((1, 1), (1, 0), (0, 1), (0, 0))}
    return [
        ["", f"{each.name} right", f"{each.name} wrong"],
        [f"{each.baseline} right", str(counts[1, 1]), str(counts[1, 0])],
        [f"{each.baseline} wrong", str(counts[0, 1]), str(counts[0, 0])],
    ]


def _changed_table(baseline: ScoredRun, changed: Sequence[ChangedExample]) -> list[list[str]]:
    rows = [
        [
            str(first.index),
            first.id,
            fields_text(first.inputs),
            fields_text(first.labels),
            f"{number(first.cell.score)} → {number(second.cell.score)}",
            f"{fields_text(first.cell.outputs or {})} → {fields_text(second.cell.outputs or {})}",
        ]
        for _, first, second in changed[:20]
    ]
    return [["#", "id", "inputs", "labels", baseline.metric_name, "outputs"], *rows]
