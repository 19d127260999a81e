"""``agreement``: how far a judge's verdicts are those of people. Use it before the scores of a judge are believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from sigwire.core.example import Prediction
from sigwire.errors import InputError
from sigwire.evaluate.scores import Score, read_score
from sigwire.evaluate.statistics import TOO_FEW, Interval, bootstrap_interval

__all__ = ["Agreement", "agreement"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cohen's kappa of two raters, and the counts behind it.

    ``kappa``: 1 for full agreement, 0 for that of chance; ``None`` if both raters have one and the same label only.
    ``interval`` of kappa at 95 %, with ``is_few`` below 30 labels or if all are equal; ``None`` if kappa is, or for fewer than
    10 labels. ``observed``: the share of equal labels. ``confusion``: the number of cases by the judge's verdict and the label.
    """

    kappa: float | None
    interval: Interval | None
    observed: float
    n: int
    confusion: Mapping[tuple[Hashable, Hashable], int]

    def __str__(self) -> str:
        kappa = "not defined" if self.kappa is None else f"{self.kappa:.2f}"
        few = f"; {TOO_FEW}" if self.interval is not None and self.interval.is_few else ""
        ends = "" if self.interval is None else f" (95 % {self.interval.low:.2f} … {self.interval.high:.2f}{few})"
        return f"kappa {kappa}{ends}, {self.observed:.0%} of {self.n} equal"


_FEWEST = 10  # labels; the bootstrap covers less than it states for such few


def agreement(
    judge: Sequence[object], labels: Sequence[object], *, threshold: float | None = None, seed: int = 0
) -> Agreement:
    """Return how far the verdicts of a judge agree with the labels of people for the same cases, in the same order.

    A verdict or label is a bool, a number or a text. With ``threshold``, numbers, ``Score`` and ``Prediction(score=)`` on
    both sides count as whether they reach it. The interval is a seeded bootstrap (BCa) over cases. Raises ``InputError`` for
    lists of different lengths, and for none. J. Cohen, Educ. Psychol. Meas. 20, 1960.

    >>> found = agreement([0.9, 0.8, 0.3, 0.7], [True, True, False, False], threshold=0.66)
    >>> found.kappa, found.observed, found.confusion[True, False]
    (0.5, 0.75, 1)
    """
    if len(judge) != len(labels) or not labels:
        raise InputError(
            f"agreement() takes a verdict for each label; got {len(judge)} verdicts and {len(labels)} labels."
        )
    pairs = [
        (_label(verdict, threshold), _label(label, threshold)) for verdict, label in zip(judge, labels, strict=True)
    ]
    confusion = Counter(pairs)
    kinds = list(confusion)
    codes = [float(kinds.index(pair)) for pair in pairs]  # the bootstrap draws numbers

    def drawn_kappa(drawn: Sequence[float]) -> float:
        kappa = _kappa(Counter(kinds[int(code)] for code in drawn))
        return 0.0 if kappa is None else kappa

    kappa = _kappa(confusion)
    enough = kappa is not None and len(pairs) >= _FEWEST
    interval = bootstrap_interval(codes, statistic=drawn_kappa, seed=seed) if enough else None
    observed = sum(count for (one, other), count in confusion.items() if one == other) / len(pairs)
    return Agreement(kappa, interval, observed, len(pairs), dict(confusion))


def _label(value: object, threshold: float | None) -> Hashable:
    if threshold is not None and not isinstance(value, bool):
        return read_score(value).value >= threshold
    if isinstance(value, (Score, Prediction)):
        return read_score(value).value
    if not isinstance(value, Hashable):
        raise InputError(f"A verdict or label is a bool, a number or a text, not {value!r:.80} (agreement).")
    return value


def _kappa(confusion: Mapping[tuple[Hashable, Hashable], int]) -> float | None:
    n = sum(confusion.values())
    judged: Counter[Hashable] = Counter()
    labelled: Counter[Hashable] = Counter()
    for (verdict, label), count in confusion.items():
        judged[verdict] += count
        labelled[label] += count
    observed = sum(count for (verdict, label), count in confusion.items() if verdict == label) / n
    expected = sum(judged[label] * count for label, count in labelled.items()) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)
