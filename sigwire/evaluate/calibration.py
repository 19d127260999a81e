"""Calibration: how well the probabilities of an output agree with its labels, from the evidence in the records of a run.

    records ──evidence of a path, label of the example──▶ rows ──calibration_of──▶ Calibration

Pure. Rows of several sources are never pooled: a probability of tokens and a stated one mean different things. The expected
calibration error (ECE) is the mean gap of equal-width bins, weighted by their rows: M. P. Naeini and others, AAAI 2015.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

from sigwire.core.evidence import Evidence, EvidenceSource, index_of
from sigwire.core.example import Example
from sigwire.core.json import Value
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.record import UNSET, Record
from sigwire.errors import ConfigurationError, InputError, suggest
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.statistics import Interval
from sigwire.keywords import ChecksKeywords
from sigwire.show.cleaning import inline
from sigwire.show.values import short_repr

__all__ = [
    "Calibration",
    "CalibrationBin",
    "Label",
    "LabeledEvidence",
    "calibration_of",
    "calibration_of_records",
    "paths_of",
]

Label: TypeAlias = "str | Callable[[Example], object] | None"
"""The name of the field of the examples that has the right value, or a function of an example; ``None``: the path."""

_LEAST_PROBABILITY = 1e-6  # of the log loss
_MOST_DRAWN, _FEWEST_DRAWS, _MOST_DRAWS = 1_000_000, 200, 1_000
_MEMBER = re.compile(r"(.*)\[(.*)\]", re.DOTALL)


class CalibrationBin(NamedTuple):
    """The rows whose probability is from ``low`` to ``high``: their number, mean probability, and observed share."""

    low: float
    high: float
    n: int
    mean_p: float
    share: float


class LabeledEvidence(NamedTuple):
    """The evidence of a row, and the right value."""

    evidence: Evidence
    label: object


@dataclass(frozen=True, slots=True)
class Calibration(Value, ChecksKeywords):
    """How well the probabilities of an output agree with its labels. ``EvaluationResult.calibration`` makes it.

    ``n``: rows with evidence and a label; ``source`` of the evidence; ``accuracy``: the share of right values. ``ece``: the
    mean gap between probability and observed share, by bins. Few rows show a gap of honest probabilities as well: ``interval``
    (95 %, by the bootstrap) is of the gap that many rows would show, and begins at 0 if honest ones explain it. ``brier``: the
    mean squared error over all values; ``log_loss``: with probabilities of 1e-6 at least. ``bins``: those with rows. A bool is
    binned by p(True), and its share is that of ``True``; other outputs by their confidence, and the share is that of right
    values.

    >>> rows = [LabeledEvidence(Evidence("logprob", "bool", (True, False), (0.8, 0.2), True, 0.8), n < 7) for n in range(10)]
    >>> found = calibration_of(rows, "urgent")
    >>> print(found, found.bins[0])
    calibration urgent: ECE 0.10, Brier 0.44 (logprob, 10 rows) CalibrationBin(low=0.8, high=0.9, n=10, mean_p=0.8, share=0.7)
    """

    path: str
    n: int
    source: EvidenceSource
    accuracy: float
    ece: float
    brier: float
    log_loss: float
    interval: Interval
    bins: tuple[CalibrationBin, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", tuple(CalibrationBin(*each) for each in self.bins))  # of JSON: lists

    def __str__(self) -> str:
        return f"calibration {inline(self.path)}: {self.summary}"

    @property
    def summary(self) -> str:
        """The figures in a few words."""
        rows = "1 row" if self.n == 1 else f"{self.n} rows"
        return f"ECE {self.ece:.2f}, Brier {self.brier:.2f} ({self.source}, {rows})"


class _BinnedRow(NamedTuple):
    """A row in its bin: the probability, and 1 if what it is of happened."""

    bin: int
    p: float
    happened: bool


def calibration_of(rows: Sequence[LabeledEvidence], path: str = "", *, bins: int = 10) -> Calibration:
    """Return the calibration of rows of one source. Raises ``InputError`` for no rows, several sources, and a label that is
    no value of the evidence.
    """
    if not rows:
        raise InputError(f"There are no rows with evidence and a label of {path!r} (calibrating).")
    if bins < 1:
        raise ConfigurationError(f"bins is a number above 0, not {bins} (calibrating).")
    sources = sorted({row.evidence.source for row in rows})
    if len(sources) > 1:
        raise InputError(
            f"The evidence of {path!r} has several sources: {', '.join(sources)} (calibrating). Name one: "
            f"calibration({path!r}, source={sources[0]!r})."
        )
    points, right, squares, losses = list[_BinnedRow](), 0, list[float](), list[float]()
    for evidence, label in rows:
        at = _place_of(evidence, label, path)
        squares.append(math.fsum((p - (place == at)) ** 2 for place, p in enumerate(evidence.probabilities)))
        losses.append(-math.log(max(evidence.probabilities[at], _LEAST_PROBABILITY)))
        is_right = _decided(evidence) == at
        right += is_right
        p, happened = (
            (evidence.probabilities[0], at == 0) if evidence.kind == "bool" else (evidence.confidence, is_right)
        )
        points.append(_BinnedRow(min(int(p * bins), bins - 1), p, happened))
    return Calibration(
        path,
        len(rows),
        rows[0].evidence.source,
        right / len(rows),
        error := _ece(points),
        fmean(squares),
        fmean(losses),
        _interval(points, error),
        tuple(_bins(points, bins)),
    )


def _place_of(evidence: Evidence, label: object, path: str) -> int:
    """Return the place of the right value among those of the evidence; of a score, that of the nearest level."""
    if evidence.kind == "score" and isinstance(label, int | float) and not isinstance(label, bool):
        return _nearest(evidence, label)
    if (at := index_of(evidence.values, label)) is None:
        known = inline(", ".join(map(repr, evidence.values)))
        raise InputError(
            f"The label {short_repr(label)} is no value of {inline(path)!r} (calibrating). Its values are {known}."
        )
    return at


def _nearest(evidence: Evidence, level: float) -> int:
    return max(0, min(int(level + 0.5), len(evidence.values) - 1))


def _decided(evidence: Evidence) -> int:
    """Return the place of the decided value; of an output that abstained, that of the most probable one."""
    value, most = evidence.value, evidence.probabilities.index(max(evidence.probabilities))
    if evidence.kind == "score":
        return most if value is None else _nearest(evidence, value)
    at = index_of(evidence.values, value)
    return most if at is None else at


def _ece(points: Iterable[_BinnedRow]) -> float:
    gaps, n = dict[int, float](), 0
    for place, p, happened in points:
        gaps[place] = gaps.get(place, 0.0) + p - happened
        n += 1
    return sum(map(abs, gaps.values())) / n


def _interval(points: Sequence[_BinnedRow], error: float) -> Interval:
    """Return the interval of the error of many rows.

    Draws of the rows are above the error by as much as it is above that of many rows, so they are reflected at it (the basic
    bootstrap: A. C. Davison, D. V. Hinkley, Bootstrap Methods and their Application, 1997, section 5.2). Near 0 that is not
    enough: the interval begins at 0 if honest probabilities have this error in 1 of 20 samples or more.
    """
    source = Random(len(points))
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _MOST_DRAWN // len(points)))
    drawn = sorted(_ece(source.choices(points, k=len(points))) for _ in range(draws))
    honest = sorted(
        _ece(_BinnedRow(place, p, source.random() < p) for place, p, _ in points) for _ in range(_FEWEST_DRAWS)
    )
    low, high = (2 * error - drawn[int(share * draws)] for share in (0.975, 0.025))
    low = 0.0 if error <= honest[int(0.95 * _FEWEST_DRAWS)] else min(max(low, 0.0), error)
    return Interval(low, max(high, error), "bootstrap", len(points) < 30)


def _bins(points: Sequence[_BinnedRow], count: int) -> Iterable[CalibrationBin]:
    for place in sorted({point.bin for point in points}):
        found = [point for point in points if point.bin == place]
        p, share = fmean(point.p for point in found), fmean(point.happened for point in found)
        yield CalibrationBin(place / count, (place + 1) / count, len(found), p, share)


# --- of the records of a run


def paths_of(records: Iterable[ExampleRecord]) -> list[str]:
    """Return the paths that have evidence in a record, in order."""
    return list(dict.fromkeys(path for record in records for path in record.cell.evidence))


def calibration_of_records(
    records: Sequence[ExampleRecord],
    examples: Sequence[Example],
    path: str,
    *,
    label: Label = None,
    source: str | None = None,
    bins: int = 10,
) -> Calibration:
    """Return the calibration of an output; see ``EvaluationResult.calibration``."""
    rows, has_evidence = list[LabeledEvidence](), False
    for record, example in zip(records, examples, strict=True):
        if (data := record.cell.evidence.get(path)) is None:
            continue
        evidence = Evidence.from_json(data)
        if source is not None and evidence.source != source:
            continue
        has_evidence = True
        found = label(example) if callable(label) else _label(example, path if label is None else label, path)
        if found is not UNSET:
            rows.append(LabeledEvidence(evidence, found))
    if rows:
        return calibration_of(rows, path, bins=bins)
    if not has_evidence:
        known = paths_of(records)
        from_source = "" if source is None else f" from the source {source!r}"
        remedy = (
            f"{suggest(path, known)}Its paths: {', '.join(known)}."
            if known
            else 'Evaluate Predict(..., evidence="auto").'
        )
        raise InputError(f"No record has evidence of {path!r}{from_source} (calibrating). {remedy}")
    raise InputError(
        f"No example has a label {path if label is None else label!r} (calibrating). Name the field of the examples that has "
        f"the right value: calibration({path!r}, label=...)."
    )


def _label(example: Example, name: str, path: str) -> object:
    """Return the label of an output: a field of the example, or a part of it by attributes and items; ``UNSET`` without one.

    The label of a member of a list is whether the list has the member.
    """
    member = _MEMBER.fullmatch(path)
    own = _MEMBER.fullmatch(name)
    value: Any = example
    for part in (name if own is None else own[1]).split("."):
        value = _part(value, part)
        if value is UNSET or value is None:
            break
    if member is None or value is UNSET:
        return value
    return index_of(list(value), member[2]) is not None if is_items(value) else value


def _part(value: Any, name: str) -> Any:
    if isinstance(value, Record) or is_mapping(value):
        return value.get(name, UNSET)
    return getattr(value, name, UNSET)
