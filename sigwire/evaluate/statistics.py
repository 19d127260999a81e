"""Statistics of evaluations: intervals of a mean, tests of paired differences, corrections for several comparisons.

Pure functions of the standard library; draws are seeded. The unit is the example or the cluster of examples, never the
repeat: ``reduce_scores`` makes one value of the repeats of an example first. Reads top to bottom: repeats, one mean, two
programs, several comparisons, values and clusters.

Scores between 0 and 1 have adjusted intervals: by t, with one example of each end of the range added. They hold near the ends,
for few examples and for skewed differences. Scores without a known range have plain ones by t, marked ``is_few`` if the
examples are too few for their skewness.

Clusters and pairs: E. Miller, "Adding Error Bars to Evals", arXiv 2411.00640. Added examples: A. Agresti, B. Caffo, Am. Stat.
54, 2000, 280-288; D. G. Bonett, R. M. Price, J. Educ. Behav. Stat. 37, 2012, 479-488. Skewness: W. G. Cochran, Sampling
Techniques, 3rd edition, 1977, section 2.15.
"""

from __future__ import annotations

import math
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from statistics import fmean, median, multimode
from typing import Self, TypeAlias

from sigwire.core.json import Value
from sigwire.errors import ConfigurationError
from sigwire.evaluate.quantiles import NORMAL, t_of, z_of

__all__ = [
    "TOO_FEW",
    "Interval",
    "PairedDifference",
    "bonett_price",
    "bootstrap_interval",
    "check_reducer",
    "clustered_interval",
    "holm",
    "holm_confidences",
    "is_bounded",
    "mcnemar_p",
    "mean_interval",
    "no_interval_reason",
    "paired_difference",
    "probability_better",
    "reaching_zero",
    "reduce_scores",
    "sign_flip_p",
    "smallest_difference",
    "standard_error",
    "wilson_interval",
]  # fmt: skip

Clusters = Sequence[Hashable]
"""For each value its cluster: equal keys belong together."""

TOO_FEW = "too few to say"
"""The words for a figure that its examples do not carry."""

_FEWEST_CLUSTERS = (
    5  # with fewer, no plain interval: t(3) and less is too wide to help and its assumptions cannot be seen
)
_MANY_CLUSTERS = 30  # a kind of example that is a tenth of all is missing in 0.9^30 = 4 % of devsets
_EXACT_FLIPS = 20


@dataclass(frozen=True, slots=True)
class Interval(Value):
    """A confidence interval: ``low`` to ``high``, and the ``method`` that gave it.

    ``is_few``: the values are too few; the interval may miss the mean more often than its confidence states.
    """

    low: float
    high: float
    method: str = ""
    is_few: bool = False

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def method_text(self) -> str:
        """The method, and ``TOO_FEW`` if the values are too few.

        >>> Interval(0.1, 0.9, "t", is_few=True).method_text == f"t; {TOO_FEW}"
        True
        """
        return f"{self.method}; {TOO_FEW}" if self.is_few else self.method


@dataclass(frozen=True, slots=True)
class PairedDifference(Value):
    """The difference of two programs on the same examples: mean of second minus first.

    ``n``: pairs; ``wins`` and ``losses``: pairs in which the second is better or worse; ``p``: two-sided, by sign flips;
    ``smallest``: the smallest difference that so many pairs show with 80 % power; ``interval``: ``None`` if there are too
    few pairs, or no score differs.
    """

    n: int
    mean: float
    interval: Interval | None
    p: float
    wins: int
    losses: int
    smallest: float | None = None

    @property
    def is_few(self) -> bool:
        """Whether scores differ, but in too few pairs for a verdict, or all by one amount of unknown range."""
        return bool(self.wins + self.losses) and (self.interval is None or self.interval.is_few)


# --- repeats of one example


def reduce_scores(scores: Sequence[float], how: str = "mean") -> float | None:
    """Return one value for the repeats of an example: ``mean``, ``median``, ``max``, ``mode``, ``pass@k`` or ``all@k``.

    ``pass@k``: the chance that at least one of k repeats succeeds (M. Chen and others, arXiv 2107.03374); ``all@k``: that
    all k succeed (S. Yao and others, arXiv 2406.12045). A score of 1 or more is a success. ``None``: there are no scores,
    or fewer than k. Of several modes the lowest is returned. Raises ``ConfigurationError`` for another name.

    >>> [reduce_scores([1, 0, 0, 1], how) for how in ("mean", "max", "mode", "pass@2", "all@2")]
    [0.5, 1.0, 0.0, 0.8333333333333334, 0.16666666666666666]
    """
    if len(scores) == 1 and how in _REDUCERS:
        return float(scores[0])
    name, k = check_reducer(how)
    if len(scores) < max(k, 1):
        return None
    if not k:
        return float(_REDUCERS[name](scores))
    n, successes = len(scores), sum(score >= 1 for score in scores)
    if name == "all":
        return math.comb(successes, k) / math.comb(n, k)
    return 1 - math.comb(n - successes, k) / math.comb(n, k)


_REDUCERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "max": max,
    "mode": lambda scores: min(multimode(scores)),
}
_AT_K = re.compile(r"(pass|all)@([1-9]\d*)")


def check_reducer(how: str, repeat: int | None = None) -> tuple[str, int]:
    """Return the name of a reducer and its k (0: none). Raises ``ConfigurationError`` for an unknown one, or k > repeat.

    >>> check_reducer("pass@3"), check_reducer("mean")
    (('pass', 3), ('mean', 0))
    """
    if how in _REDUCERS:
        return how, 0
    if not (match := _AT_K.fullmatch(how)):
        raise ConfigurationError(
            f"reduce={how!r:.80} is unknown (reducing repeats). Use {', '.join(_REDUCERS)}, pass@k or all@k."
        )
    k = int(match[2])
    if repeat is not None and k > repeat:
        raise ConfigurationError(f"reduce={how!r} needs repeat={k} or more, not {repeat} (reducing repeats).")
    return match[1], k


# --- one mean


def mean_interval(
    values: Sequence[float], clusters: Clusters | None = None, *, confidence: float = 0.95
) -> Interval | None:
    """Return the interval of a mean: adjusted if all values are between 0 and 1, else by t.

    Adjusted: t over the values with a 0 and a 1 added; of clusters, with two of mean size. At 95 % it covers 93 % or more, near
    0 and 1 as well, for 5 examples and more, for single runs, repeats and clusters. ``None``: ``no_interval_reason`` gives the
    reason.

    >>> mean_interval([1, 1, 0, 1, 1, 0, 1, 1])
    Interval(low=0.354..., high=1.0, method='adjusted t', is_few=False)
    >>> mean_interval([50, 70, 90, 40, 60])
    Interval(low=38..., high=85..., method='t', is_few=True)
    """
    if no_interval_reason(values, clusters):
        return None
    if not is_bounded(values):
        return clustered_interval(values, clusters, confidence=confidence)
    return _adjusted_interval(
        _Groups.of(values, clusters).with_added(0.0, 1.0), _method("t", clusters), confidence, 0.0
    )


def no_interval_reason(values: Sequence[float], clusters: Clusters | None = None) -> str:
    """Return the reason why ``mean_interval`` is ``None``; empty if there is an interval.

    >>> no_interval_reason([5, 7]) == TOO_FEW, no_interval_reason([5] * 9), no_interval_reason([0.5] * 9)
    (True, 'no spread', '')
    """
    if values and is_bounded(values):
        return ""
    groups = len(values) if clusters is None else len(set(clusters))
    return TOO_FEW if groups < _FEWEST_CLUSTERS else "" if _has_spread(values) else "no spread"


def clustered_interval(
    values: Sequence[float], clusters: Clusters | None = None, *, confidence: float = 0.95
) -> Interval:
    """Return mean ± t·SE with the standard error of clusters; cut to 0 and 1 if all values are in that range.

    ``t`` has as many degrees of freedom as clusters, less 1. ``is_few``: there are fewer than 30 clusters, those of unequal
    size counted by (Σ size)² / Σ size² (L. Kish, Survey Sampling, 1965), or not more than 25·skewness² (Cochran's rule).
    Raises ``ValueError`` for fewer than two clusters.

    >>> clustered_interval([0.2, 0.4, 0.6, 0.8])
    Interval(low=0.089..., high=0.910..., method='t', is_few=True)
    >>> clustered_interval([0.2, 0.4, 0.6, 0.8], ["a", "a", "b", "b"]).high
    1.0
    """
    groups = _Groups.of(values, clusters)
    low, high = groups.ends(confidence)
    if is_bounded(values):
        low, high = max(low, 0.0), min(high, 1.0)
    return Interval(low, high, _method("t", clusters), groups.is_few)


def _adjusted_interval(groups: _Groups, method: str, confidence: float, least: float) -> Interval:
    """Return the interval by t of groups that have the ends of the range, ``least`` and 1, added; it is cut to them."""
    low, high = groups.ends(confidence)
    return Interval(max(low, least), min(high, 1.0), f"adjusted {method}")


def _method(name: str, clusters: Clusters | None) -> str:
    return name if clusters is None else f"{name} by cluster"


def wilson_interval(share: float, n: int, *, confidence: float = 0.95) -> Interval:
    """Return the interval of a proportion (E. B. Wilson, JASA 22, 1927, 209-212). ``n``: the trials. It is never empty.

    >>> wilson_interval(1.0, 200)
    Interval(low=0.981..., high=1.0, method='Wilson', is_few=False)
    """
    square = z_of(confidence) ** 2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = math.sqrt(share * (1 - share) * square / n + (square / (2 * n)) ** 2) / (1 + square / n)
    return Interval(max(middle - half, 0.0), min(middle + half, 1.0), "Wilson")


def standard_error(values: Sequence[float], clusters: Clusters | None = None) -> float:
    """Return the standard error of the mean: SE² = G/(G−1) · Σ over clusters of (sum of deviations)² / n².

    With an example in each cluster it is sd/√n. Raises ``ValueError`` for fewer than two clusters.

    >>> round(standard_error([1, 2, 3, 4]), 6), round(standard_error([1, 2, 3, 4], "aabb"), 6)
    (0.645497, 1.0)
    """
    return _Groups.of(values, clusters).error


def bootstrap_interval(
    values: Sequence[float],
    clusters: Clusters | None = None,
    *,
    statistic: Callable[[Sequence[float]], float] = fmean,
    confidence: float = 0.95,
    draws: int = 2_000,
    seed: int = 0,
) -> Interval:
    """Return the BCa bootstrap interval of a statistic (B. Efron, JASA 82, 1987, 171-185). Clusters are resampled whole.

    For a difference of two programs, pass the differences of the pairs. ``is_few``: there are fewer than 30 clusters, for which
    it undercovers, or all draws have one value. For a mean, ``mean_interval`` is better.

    >>> bootstrap_interval([0.1, 0.4, 0.5, 0.9, 0.3, 0.7, 0.2, 0.8], seed=1)
    Interval(low=0.3..., high=0.6..., method='BCa bootstrap', is_few=True)
    """
    groups = _groups(values, clusters)
    random, estimate = Random(seed), statistic(values)
    drawn = sorted(statistic(_joined(random.choices(groups, k=len(groups)))) for _ in range(draws))
    if drawn[0] == drawn[-1]:
        return Interval(drawn[0], drawn[0], "BCa bootstrap", is_few=True)
    rank = (bisect_left(drawn, estimate) + sum(each == estimate for each in drawn) / 2) / draws
    bias = NORMAL.inv_cdf(min(max(rank, 0.5 / draws), 1 - 0.5 / draws))
    acceleration = _acceleration([statistic(_joined(groups[:g] + groups[g + 1 :])) for g in range(len(groups))])

    def end(z: float) -> float:
        shifted = NORMAL.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        return drawn[min(int(shifted * draws), draws - 1)]

    z = z_of(confidence)
    return Interval(end(-z), end(z), "BCa bootstrap", len(groups) < _MANY_CLUSTERS)


def _acceleration(without_one: Sequence[float]) -> float:
    mean = fmean(without_one)
    square = sum((mean - each) ** 2 for each in without_one)
    return sum((mean - each) ** 3 for each in without_one) / (6 * square * math.sqrt(square)) if square else 0.0


# --- two programs on the same examples


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Clusters | None = None,
    *,
    confidence: float = 0.95,
    is_single_run: bool = True,
    seed: int = 0,
) -> PairedDifference:
    """Return the difference of two programs on the same examples, with interval, p and smallest difference shown.

    Interval: Bonett-Price's if all scores are 0 or 1 of single runs without clusters; adjusted (t over the differences with a
    -1 and a 1 added) if all are between 0 and 1; else by t. The p is McNemar's exact one, or by sign flips, of whole clusters;
    it is never below the p at which the interval would exclude 0, and an interval reaches to 0 where p is not significant. So
    both give the same verdict, that of the stricter one. At 95 %, programs of equal mean between 0 and 1 are found to differ
    in 6 % of devsets, also if one wins much in a few examples and loses a little in all others. Raises ``ValueError`` if the
    lengths differ.

    >>> difference = paired_difference([0, 0, 1, 1, 0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 0, 1, 1, 1, 1, 1])
    >>> difference.mean, difference.wins, difference.losses, difference.p, difference.interval.method
    (0.5, 5, 0, 0.0625, 'Bonett-Price')
    >>> difference.interval.low
    0.0
    >>> paired_difference([0.8] * 10, [0.9] * 10).interval
    Interval(low=-0.188..., high=0.355..., method='adjusted paired t', is_few=False)
    """
    if len(first) != len(second):
        raise ValueError(f"Paired scores come from the same examples; there are {len(first)} and {len(second)}.")
    differences = [b - a for a, b in zip(first, second, strict=True)]
    wins, losses = _count_signs(differences)
    n, mean = len(differences), fmean(differences) if differences else 0.0
    if n and clusters is None and is_single_run and _is_binary([*first, *second]):
        p, (error, interval_at) = mcnemar_p(wins, losses), _of_proportions(wins, losses, n)
    elif wins + losses:
        p = sign_flip_p(differences, clusters, seed=seed)
        error, interval_at = _of_numbers(differences, clusters, is_bounded([*first, *second]))
    else:
        return PairedDifference(n, mean, None, 1.0, wins, losses)
    interval = interval_at(confidence)
    if interval is not None:
        p = max(p, _p_of_interval(interval_at))
        if p > 1 - confidence:
            interval = reaching_zero(interval)
    smallest = None if error is None else smallest_difference(error, confidence=confidence)
    return PairedDifference(n, mean, interval, p, wins, losses, smallest)


_IntervalAt: TypeAlias = Callable[[float], Interval | None]
"""The interval of a difference, by its confidence."""


def _of_proportions(wins: int, losses: int, n: int) -> tuple[float | None, _IntervalAt]:
    """Return standard error and interval of a difference of 0 and 1."""
    return _bonett_price_error(wins, losses, n), lambda level: bonett_price(wins, losses, n, confidence=level)


def _of_numbers(
    differences: Sequence[float], clusters: Clusters | None, is_bounded: bool
) -> tuple[float | None, _IntervalAt]:
    """Return standard error and interval of differences, by t; ``None`` for few clusters, or differences without spread."""
    groups, method = _Groups.of(differences, clusters), _method("paired t", clusters)
    if is_bounded:
        wider = groups.with_added(-1.0, 1.0)
        return wider.error, lambda level: _adjusted_interval(wider, method, level, -1.0)
    if len(groups.sums) < _FEWEST_CLUSTERS or not _has_spread(differences):
        return None, lambda level: None
    return groups.error, lambda level: Interval(*groups.ends(level), method, groups.is_few)


def reaching_zero(interval: Interval) -> Interval:
    """Return the interval, extended to 0: of a difference that is not significant.

    >>> reaching_zero(Interval(0.1, 0.5, "paired t")).low
    0.0
    """
    return replace(interval, low=min(interval.low, 0.0), high=max(interval.high, 0.0))


def _p_of_interval(interval_at: _IntervalAt) -> float:
    """Return the p at which an interval of a difference begins to exclude 0."""
    low, high = 0.0, 1.0  # of p: excluded at the larger one, if at all
    for _ in range(40):  # to 1e-12
        middle = (low + high) / 2
        found = interval_at(1 - middle)
        if found is None or 0 in found:
            low = middle
        else:
            high = middle
    return high


def _count_signs(differences: Sequence[float]) -> tuple[int, int]:
    return sum(each > 0 for each in differences), sum(each < 0 for each in differences)


def bonett_price(wins: int, losses: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Return the interval of a difference of paired proportions (D. G. Bonett, R. M. Price, J. Educ. Behav. Stat. 37, 2012).

    ``wins``: pairs with 1 for the second program only; ``losses``: pairs with 1 for the first only; ``n``: all pairs.

    >>> bonett_price(12, 4, 100)
    Interval(low=-0.001..., high=0.158..., method='Bonett-Price', is_few=False)
    """
    if wins < 0 or losses < 0 or wins + losses > n or n < 1:
        raise ValueError(f"bonett_price() takes wins and losses of n > 0 pairs, not {wins} and {losses} of {n}.")
    middle = (wins - losses) / (n + 2)
    half = z_of(confidence) * _bonett_price_error(wins, losses, n)
    return Interval(max(middle - half, -1.0), min(middle + half, 1.0), "Bonett-Price")


def _bonett_price_error(wins: int, losses: int, n: int) -> float:
    b, c = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    return math.sqrt((b + c - (b - c) ** 2) / (n + 2))


def mcnemar_p(wins: int, losses: int) -> float:
    """Return the two-sided p of McNemar's exact test: a fair coin for each pair in which the programs differ.

    Q. McNemar, Psychometrika 12, 1947, 153-157.

    >>> mcnemar_p(8, 1), mcnemar_p(0, 0)
    (0.0390625, 1.0)
    """
    total = wins + losses
    tail = sum(math.comb(total, k) for k in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / (1 << total))


def sign_flip_p(
    differences: Sequence[float], clusters: Clusters | None = None, *, draws: int = 10_000, seed: int = 0
) -> float:
    """Return the two-sided p of the sign-flip test of paired differences (R. A. Fisher, The Design of Experiments, 1935).

    Exact up to 20 differences that are not 0, else from seeded draws; where it is less than draws can show, an upper bound of
    it (W. Hoeffding, JASA 58, 1963, 13-30), so that many comparisons can be adjusted. Clusters are flipped whole.

    >>> sign_flip_p([0.5, 0.25, 0.1, 0.3, 0.2, 0.4]), sign_flip_p([0.5] * 100) < 1e-20
    (0.03125, True)
    """
    flips = _flips(differences, clusters)
    if len(flips) > _EXACT_FLIPS:
        bound = 2 * math.exp(-(math.fsum(flips) ** 2) / (2 * math.fsum(each * each for each in flips)))
        if bound * draws <= 1:
            return bound
    above, equal, total = _tail(flips, abs(sum(flips)), draws, seed)
    return min(1.0, 2 * (above + equal) / total)


def probability_better(
    differences: Sequence[float], clusters: Clusters | None = None, *, draws: int = 10_000, seed: int = 0
) -> float:
    """Return the one-sided probability that the second program is better: 1 less the mid-p of the sign-flip test.

    For scores of 0 and 1 it is the posterior probability that wins are more likely than losses, with a uniform prior. 0.5:
    no difference was seen. A rule that keeps the second program at 0.9 keeps an equal one in about 10 % of cases, in up
    to 12.5 % if few examples differ.

    >>> probability_better([1, 1, 1, 0, 0, 0]), probability_better([1, -1, 0]), probability_better([])
    (0.9375, 0.5, 0.5)
    """
    flips = _flips(differences, clusters)
    if not (observed := sum(flips)):
        return 0.5
    above, equal, total = _tail(flips, abs(observed), draws, seed)
    mid_p = (above + equal / 2) / total
    return 1 - mid_p if observed >= 0 else mid_p


def _flips(differences: Sequence[float], clusters: Clusters | None) -> list[float]:
    return [each for each in _cluster_sums(differences, clusters) if each]


def _tail(flips: Sequence[float], observed: float, draws: int, seed: int) -> tuple[float, float, int]:
    """Return how many sign patterns have a sum above ``observed``, how many have that sum, and how many there are."""
    near = 1e-9 * sum(map(abs, flips))  # the order of additions changes the last bits
    if len(flips) <= _EXACT_FLIPS:
        # Meet in the middle: the sums of the second half are sorted once, not combined with each of the first.
        half = len(flips) // 2
        first, second = _signed_sums(flips[:half]), sorted(_signed_sums(flips[half:]))
        at_least = sum(len(second) - bisect_left(second, observed - near - each) for each in first)
        above = sum(len(second) - bisect_left(second, observed + near - each) for each in first)
        return above, at_least - above, 1 << len(flips)
    random, drawn = Random(seed), [0.0] * draws
    for start in range(0, len(flips), 8):  # a random byte chooses the signs of eight differences
        block = flips[start : start + 8]
        sums_of_byte = _signed_sums([*block, *[0.0] * (8 - len(block))])
        drawn = list(map(operator.add, drawn, map(sums_of_byte.__getitem__, random.randbytes(draws))))
    sums = drawn + [-each for each in drawn]  # each pattern is as likely as its reverse
    above = sum(each > observed + near for each in sums)
    # The observed pattern counts as a draw, so that p is never 0 (B. Phipson, G. K. Smyth, SAGMB 9, 2010).
    return above, sum(each >= observed - near for each in sums) - above + 1, 2 * draws + 2


def _signed_sums(values: Iterable[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [each + sign * value for sign in (1, -1) for each in sums]
    return sums


def smallest_difference(error: float, *, confidence: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest true difference that an interval excludes from 0 with this power: 2.8·SE by default.

    ``error``: the standard error of the difference.

    >>> round(smallest_difference(0.05), 3)
    0.14
    """
    return (z_of(confidence) + NORMAL.inv_cdf(power)) * error


# --- several comparisons


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p values adjusted for their number (S. Holm, Scand. J. Statist. 6, 1979, 65-70), in the given order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, largest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(_by_size(ps)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = largest
    return adjusted


def holm_confidences(ps: Sequence[float], confidence: float = 0.95) -> list[float]:
    """Return the confidence of each comparison's interval under Holm's steps: the smallest p gets the widest interval.

    >>> [round(each, 4) for each in holm_confidences([0.01, 0.04, 0.03])]
    [0.9833, 0.95, 0.975]
    """
    confidences = [0.0] * len(ps)
    for rank, index in enumerate(_by_size(ps)):
        confidences[index] = 1 - (1 - confidence) / (len(ps) - rank)
    return confidences


def _by_size(ps: Sequence[float]) -> list[int]:
    return sorted(range(len(ps)), key=ps.__getitem__)


# --- values and clusters


def _is_binary(values: Iterable[float]) -> bool:
    return all(value in (0, 1) for value in values)


def is_bounded(values: Iterable[float]) -> bool:
    """Return True if all values are between 0 and 1."""
    return all(0 <= value <= 1 for value in values)


def _has_spread(values: Sequence[float]) -> bool:
    """Return True if values differ by more than the rounding of differences."""
    return max(values) - min(values) > 1e-9 * max(map(abs, values))


@dataclass(frozen=True)
class _Groups:
    """The sums and sizes of clusters; without clusters, each value is one."""

    sums: Sequence[float]
    sizes: Sequence[float]

    @classmethod
    def of(cls, values: Sequence[float], clusters: Clusters | None) -> Self:
        """Return the clusters of values. Raises ``ValueError`` if the lengths differ."""
        if clusters is None:
            return cls(values, [1] * len(values))
        groups = _groups(values, clusters)
        return cls([math.fsum(group) for group in groups], [len(group) for group in groups])

    def with_added(self, *values: float) -> Self:
        """Return the clusters and one of mean size for each value."""
        size = sum(self.sizes) / len(self.sizes)
        return type(self)([*self.sums, *(size * value for value in values)], [*self.sizes, *([size] * len(values))])

    @cached_property
    def mean(self) -> float:
        """The mean of all values."""
        return math.fsum(self.sums) / math.fsum(self.sizes)

    @cached_property
    def deviations(self) -> Sequence[float]:
        """The sum of deviations from the mean, of each cluster."""
        return [total - size * self.mean for total, size in zip(self.sums, self.sizes, strict=True)]

    @cached_property
    def error(self) -> float:
        """The standard error of the mean; see ``standard_error``."""
        if (count := len(self.sums)) < 2:
            raise ValueError("standard_error() takes two clusters or more.")
        squares = math.fsum(each * each for each in self.deviations)
        return math.sqrt(count / (count - 1) * squares) / math.fsum(self.sizes)

    def ends(self, confidence: float) -> tuple[float, float]:
        """Return the mean less and plus t·SE."""
        half = t_of(confidence, len(self.sums) - 1) * self.error
        return self.mean - half, self.mean + half

    @property
    def is_few(self) -> bool:
        """Whether there are too few clusters for an interval by t; see ``clustered_interval``."""
        effective = math.fsum(self.sizes) ** 2 / math.fsum(size * size for size in self.sizes)
        second, third = (fmean(each**power for each in self.deviations) for power in (2, 3))
        return effective < _MANY_CLUSTERS or not second or effective <= 25 * third**2 / second**3


def _groups(values: Sequence[float], clusters: Clusters | None) -> list[list[float]]:
    if clusters is None:
        return [[value] for value in values]
    if len(clusters) != len(values):
        raise ValueError(f"Each value needs a cluster; there are {len(values)} values and {len(clusters)} clusters.")
    groups: dict[Hashable, list[float]] = {}
    for key, value in zip(clusters, values, strict=True):
        groups.setdefault(key, []).append(value)
    return list(groups.values())


def _cluster_sums(values: Sequence[float], clusters: Clusters | None) -> Sequence[float]:
    return values if clusters is None else [math.fsum(group) for group in _groups(values, clusters)]


def _joined(groups: Sequence[Sequence[float]]) -> list[float]:
    return [value for group in groups for value in group]
