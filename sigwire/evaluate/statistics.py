"""Statistics of evaluations: intervals of a mean, tests of paired differences, corrections for several comparisons.

Pure functions of the standard library; draws are seeded. The unit is the example or the cluster of examples, never the
repeat: ``reduce_scores`` makes one value of the repeats of an example first. Scores need no range; those of 0 and 1 get the
methods for proportions. Reads top to bottom: repeats, one mean, two programs, several comparisons.

Clusters and pairs: E. Miller, "Adding Error Bars to Evals", arXiv 2411.00640.
"""

from __future__ import annotations

import math
import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median, multimode

from sigwire.core.json import Value
from sigwire.errors import ConfigurationError
from sigwire.evaluate.quantiles import NORMAL, t_quantile, z_of

__all__ = [
    "Interval",
    "PairedDifference",
    "bonett_price",
    "bootstrap_interval",
    "check_reducer",
    "clustered_interval",
    "holm",
    "holm_confidences",
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
    "wilson",
]  # fmt: skip

Clusters = Sequence[Hashable]
"""For each value its cluster: equal keys belong together."""

_FEWEST_CLUSTERS = 5  # with fewer, no interval: t(3) and less is too wide to help and its assumptions cannot be seen
_EXACT_FLIPS = 20


@dataclass(frozen=True, slots=True)
class Interval(Value):
    """A confidence interval: ``low`` to ``high``, and the ``method`` that gave it."""

    low: float
    high: float
    method: str = ""

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class PairedDifference(Value):
    """The difference of two programs on the same examples: mean of second minus first.

    ``n``: pairs; ``wins`` and ``losses``: pairs in which the second is better or worse; ``p``: two-sided, by sign flips;
    ``smallest``: the smallest difference that so many pairs show with 80 % power; ``interval``: ``None`` if there are too
    few pairs.
    """

    n: int
    mean: float
    interval: Interval | None
    p: float
    wins: int
    losses: int
    smallest: float | None = None


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
    values: Sequence[float], clusters: Clusters | None = None, *, confidence: float = 0.95, is_single_run: bool = True
) -> Interval | None:
    """Return the interval of a mean: Wilson's if the values are 0 or 1 of a single run without clusters, else by t.

    ``None``: ``no_interval_reason`` gives the reason. Values that are all 0, or all 1, get Wilson's over the clusters.

    >>> mean_interval([1, 1, 0, 1, 1, 0, 1, 1])
    Interval(low=0.409..., high=0.928..., method='Wilson')
    >>> mean_interval([0.5, 0.7, 0.9, 0.4, 0.6]).method
    't'
    """
    if not values:
        return None
    groups = len(values) if clusters is None else len(set(clusters))
    is_flat = len(set(values)) == 1
    if _is_binary(values) and ((clusters is None and is_single_run) or is_flat):
        return wilson(round(fmean(values) * groups), groups, confidence=confidence)
    if groups < _FEWEST_CLUSTERS or is_flat:
        return None
    return clustered_interval(values, clusters, confidence=confidence)


def no_interval_reason(values: Sequence[float], clusters: Clusters | None = None) -> str:
    """Return the reason why ``mean_interval`` is ``None``.

    >>> no_interval_reason([0.5, 0.7]), no_interval_reason([0.5] * 9)
    ('too few', 'no spread')
    """
    groups = len(values) if clusters is None else len(set(clusters))
    return "too few" if groups < _FEWEST_CLUSTERS else "no spread"


def wilson(successes: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval of a proportion (E. B. Wilson, JASA 22, 1927, 209-212).

    >>> wilson(45, 50)
    Interval(low=0.786..., high=0.956..., method='Wilson')
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"wilson() takes 0 to n successes of n > 0, not {successes} of {n}.")
    z, share = z_of(confidence), successes / n
    scale = 1 + z * z / n
    center = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == n else center + half
    return Interval(low, high, "Wilson")


def clustered_interval(
    values: Sequence[float], clusters: Clusters | None = None, *, confidence: float = 0.95
) -> Interval:
    """Return mean ± t·SE with the standard error of clusters; cut to 0 and 1 if all values are in that range.

    ``t`` has as many degrees of freedom as clusters, less 1.

    >>> clustered_interval([0.2, 0.4, 0.6, 0.8])
    Interval(low=0.089..., high=0.910..., method='t')
    >>> clustered_interval([0.2, 0.4, 0.6, 0.8], ["a", "a", "b", "b"]).high
    1.0
    """
    groups = len(values) if clusters is None else len(set(clusters))
    half = t_quantile((1 + confidence) / 2, groups - 1) * standard_error(values, clusters)
    mean = fmean(values)
    low, high = mean - half, mean + half
    if all(0 <= value <= 1 for value in values):
        low, high = max(low, 0.0), min(high, 1.0)
    return Interval(low, high, "t" if clusters is None else "t by cluster")


def standard_error(values: Sequence[float], clusters: Clusters | None = None) -> float:
    """Return the standard error of the mean: SE² = G/(G−1) · Σ over clusters of (sum of deviations)² / n².

    With an example in each cluster it is sd/√n. Raises ``ValueError`` for fewer than two clusters.

    >>> round(standard_error([1, 2, 3, 4]), 6), round(standard_error([1, 2, 3, 4], "aabb"), 6)
    (0.645497, 1.0)
    """
    mean = fmean(values)
    sums = _cluster_sums([value - mean for value in values], clusters)
    if len(sums) < 2:
        raise ValueError("standard_error() takes two clusters or more.")
    return math.sqrt(len(sums) / (len(sums) - 1) * sum(each * each for each in sums)) / len(values)


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

    For a difference of two programs, pass the differences of the pairs. It undercovers below some 20 clusters; for a mean,
    ``mean_interval`` is better.

    >>> bootstrap_interval([0.1, 0.4, 0.5, 0.9, 0.3, 0.7, 0.2, 0.8], seed=1)
    Interval(low=0.3..., high=0.6..., method='BCa bootstrap')
    """
    groups = _groups(values, clusters)
    random, estimate = Random(seed), statistic(values)
    drawn = sorted(statistic(_joined(random.choices(groups, k=len(groups)))) for _ in range(draws))
    if drawn[0] == drawn[-1]:
        return Interval(drawn[0], drawn[0], "BCa bootstrap")
    rank = (bisect_left(drawn, estimate) + sum(each == estimate for each in drawn) / 2) / draws
    bias = NORMAL.inv_cdf(min(max(rank, 0.5 / draws), 1 - 0.5 / draws))
    acceleration = _acceleration([statistic(_joined(groups[:g] + groups[g + 1 :])) for g in range(len(groups))])

    def end(z: float) -> float:
        shifted = NORMAL.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        return drawn[min(int(shifted * draws), draws - 1)]

    z = z_of(confidence)
    return Interval(end(-z), end(z), "BCa bootstrap")


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

    Interval: Bonett-Price's if all scores are 0 or 1 of single runs without clusters, else by t over the differences. The p
    is McNemar's exact one, or by sign flips, of whole clusters; it is never below the p at which the interval would exclude 0,
    and an interval reaches to 0 where p is not significant. So both give the same verdict, that of the stricter one. Raises
    ``ValueError`` if the lengths differ.

    >>> difference = paired_difference([0, 0, 1, 1, 0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 0, 1, 1, 1, 1, 1])
    >>> difference.mean, difference.wins, difference.losses, difference.p, difference.interval.method
    (0.5, 5, 0, 0.0625, 'Bonett-Price')
    >>> difference.interval.low
    0.0
    """
    if len(first) != len(second):
        raise ValueError(f"Paired scores come from the same examples; there are {len(first)} and {len(second)}.")
    differences = [b - a for a, b in zip(first, second, strict=True)]
    wins, losses = _count_signs(differences)
    n, mean = len(differences), fmean(differences) if differences else 0.0
    if n and clusters is None and is_single_run and _is_binary([*first, *second]):
        error: float | None = _bonett_price_error(wins, losses, n)
        p = mcnemar_p(wins, losses)

        def interval_at(level: float) -> Interval | None:
            return bonett_price(wins, losses, n, confidence=level)
    else:
        _, error = _paired_t(differences, clusters, confidence)
        p = sign_flip_p(differences, clusters, seed=seed)

        def interval_at(level: float) -> Interval | None:
            return _paired_t(differences, clusters, level)[0]

    interval = interval_at(confidence)
    if interval is not None:
        p = max(p, _p_of_interval(interval_at))
        if p > 1 - confidence:
            interval = reaching_zero(interval)
    smallest = None if error is None else smallest_difference(error, confidence=confidence)
    return PairedDifference(n, mean, interval, p, wins, losses, smallest)


def reaching_zero(interval: Interval) -> Interval:
    """Return the interval, extended to 0: of a difference that is not significant.

    >>> reaching_zero(Interval(0.1, 0.5, "paired t")).low
    0.0
    """
    return Interval(min(interval.low, 0.0), max(interval.high, 0.0), interval.method)


def _p_of_interval(interval_at: Callable[[float], Interval | None]) -> float:
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


def _paired_t(
    differences: Sequence[float], clusters: Clusters | None, confidence: float
) -> tuple[Interval | None, float | None]:
    """Return the interval by t and the standard error; ``None`` for few clusters, or differences without spread."""
    groups = len(differences) if clusters is None else len(set(clusters))
    if groups < _FEWEST_CLUSTERS or len(set(differences)) == 1:
        return None, None
    mean, error = fmean(differences), standard_error(differences, clusters)
    half = t_quantile((1 + confidence) / 2, groups - 1) * error
    return Interval(mean - half, mean + half, "paired t" if clusters is None else "paired t by cluster"), error


def bonett_price(wins: int, losses: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Return the interval of a difference of paired proportions (D. G. Bonett, R. M. Price, J. Educ. Behav. Stat. 37, 2012).

    ``wins``: pairs with 1 for the second program only; ``losses``: pairs with 1 for the first only; ``n``: all pairs.

    >>> bonett_price(12, 4, 100)
    Interval(low=-0.001..., high=0.158..., method='Bonett-Price')
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

    Exact up to 20 differences that are not 0, else from seeded draws. Clusters are flipped whole.

    >>> sign_flip_p([0.5, 0.25, 0.1, 0.3, 0.2, 0.4])
    0.03125
    """
    flips = _flips(differences, clusters)
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
