"""Coverage of intervals and errors of verdicts: exact where samples can be counted, else seeded simulations.

An interval of 95 % has to hold the true mean in 93 % of evaluations or more, and programs of equal mean have to be found
different in 6 % or fewer, unless the figure states that its examples are too few. Simulations compute the formula with
numpy; ``_check_formula`` compares it with the package.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

import numpy
import pytest
import scipy

from sigwire.evaluate import statistics

Numbers = Any  # an array of numpy

pytestmark = pytest.mark.long

RATES = (0.5, 0.8, 0.95)
COUNTS = (10, 20, 50, 200)
RUNS = 3_000


# --- one mean


@pytest.mark.parametrize("n", [5, *COUNTS])
def test_interval_of_single_runs_covers_every_rate(n: int) -> None:
    found = [_interval([1.0] * wins + [0.0] * (n - wins)) for wins in range(n + 1)]
    for rate in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995):
        weights = scipy.stats.binom.pmf(range(n + 1), n, rate)
        assert sum(weights[wins] for wins, each in enumerate(found) if rate in each) >= 0.93, rate


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("n", COUNTS)
def test_interval_over_repeats_covers(rate: float, n: int) -> None:
    draw = numpy.random.default_rng(n)
    for likeness in (0.5, 3, 100):  # of the repeats of an example: 0.5 is nearly all or nothing
        values = draw.binomial(5, draw.beta(rate * likeness, (1 - rate) * likeness, (RUNS, n))) / 5
        low, high = _drawn_interval(values, range(n))
        assert _share((low <= rate + 1e-12) & (rate - 1e-12 <= high)) >= 0.93, likeness
        _check_formula(values, range(n), low, high)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("groups", [6, 8, 15, 40])
@pytest.mark.parametrize("is_equal", [True, False])
def test_interval_by_cluster_covers(rate: float, groups: int, is_equal: bool) -> None:
    draw = numpy.random.default_rng(groups)
    sizes = [4 if is_equal else 1 + (7 * group * group + 3) % 10 for group in range(groups)]
    clusters = numpy.repeat(range(groups), sizes)
    for likeness, repeats in itertools.product((1, 9), (1, 5)):
        chances = draw.beta(rate * likeness, (1 - rate) * likeness, (RUNS, groups))[:, clusters]
        values = draw.binomial(repeats, chances) / repeats
        low, high = _drawn_interval(values, clusters)
        assert _share((low <= rate + 1e-12) & (rate - 1e-12 <= high)) >= 0.93, (likeness, repeats)
        _check_formula(values, clusters, low, high)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("n", COUNTS)
def test_interval_of_graded_scores_covers(rate: float, n: int) -> None:
    values = numpy.random.default_rng(n).beta(2 * rate, 2 * (1 - rate), (RUNS, n))
    low, high = _drawn_interval(values, range(n))
    assert _share((low <= rate) & (rate <= high)) >= 0.93


@pytest.mark.parametrize("n", COUNTS)
def test_interval_without_a_range_covers_or_states_that_it_is_too_few(n: int) -> None:
    draw = numpy.random.default_rng(n)
    kinds = {
        "normal": (50 + draw.normal(0, 10, (1_000, n)), 50),
        "skewed": (draw.exponential(20, (1_000, n)) + 2, 22),
        "near the end": (100 * draw.beta(1.9, 0.1, (1_000, n)), 95),
        "rare": (numpy.where(draw.random((1_000, n)) < 0.05, 0.0, 100.0) + 1, 96),
    }
    for kind, (drawn, mean) in kinds.items():
        found = [statistics.mean_interval(values) for values in drawn.tolist()]
        missed = sum(each is not None and not each.is_few and mean not in each for each in found)
        assert missed / len(found) <= 0.07, kind
    assert n < 50 or not _interval([50 + value for value in draw.normal(0, 10, 100).tolist()]).is_few


def test_clustered_interval_covers_examples_that_share_a_source() -> None:
    draw, covered, ignored = random.Random(16), 0, 0
    clusters = [index // 4 for index in range(80)]
    for _ in range(2_000):
        sources = [draw.gauss(0.5, 0.1) for _ in range(20)]
        values = [draw.gauss(sources[cluster], 0.1) for cluster in clusters]
        covered += 0.5 in statistics.clustered_interval(values, clusters)
        ignored += 0.5 in statistics.clustered_interval(values)
    assert 0.93 <= covered / 2_000 <= 0.97
    assert ignored / 2_000 < 0.87


# --- two programs


@pytest.mark.parametrize("rare", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("n", COUNTS)
def test_rare_win_does_not_make_a_program_of_equal_mean_different(rare: float, n: int) -> None:
    """One program wins 1 - ``rare`` in a few examples and loses ``rare`` in the others."""
    found = 0.0
    for wins in range(n + 1):
        weight = scipy.stats.binom.pmf(wins, n, rare)
        if weight > 1e-5:
            second = [1.0] * wins + [0.0] * (n - wins)
            found += weight * (statistics.paired_difference([rare] * n, second, is_single_run=False).p <= 0.05)
    assert found <= 0.06


@pytest.mark.parametrize("n", COUNTS)
def test_programs_of_equal_mean_are_found_different_in_six_percent_at_most(n: int) -> None:
    draw = numpy.random.default_rng(n)
    kinds = {
        "normal": draw.normal(0, 0.1, (RUNS, n)),
        "two values": draw.choice([-0.3, 0.3], (RUNS, n)),
        "skewed": 0.2 - draw.exponential(0.2, (RUNS, n)).clip(max=1.0),
        "rare loss and noise": draw.normal(0, 0.03, (RUNS, n)) + numpy.where(draw.random((RUNS, n)) < 0.1, -0.81, 0.09),
    }
    for kind, differences in kinds.items():
        differences = differences - (0.2 * math.exp(-5) if kind == "skewed" else 0)  # the mean of what was cut off
        low, high = _drawn_interval(differences, range(n), ends=(-1, 1))
        assert _share((low > 0) | (high < 0)) <= 0.06, kind


@pytest.mark.parametrize("groups", [6, 8, 15, 40])
def test_programs_of_equal_mean_are_found_different_by_cluster_in_six_percent_at_most(groups: int) -> None:
    draw = numpy.random.default_rng(groups)
    clusters = numpy.repeat(range(groups), [1 + (7 * group * group + 3) % 10 for group in range(groups)])
    shared = draw.normal(0, 0.1, (RUNS, groups)), numpy.where(draw.random((RUNS, groups)) < 0.1, -0.81, 0.09)
    for each in shared:
        differences = each[:, clusters] + draw.normal(0, 0.05, (RUNS, len(clusters)))
        low, high = _drawn_interval(differences, clusters, ends=(-1, 1))
        assert _share((low > 0) | (high < 0)) <= 0.06


@pytest.mark.parametrize("n", [10, 20, 30, 50])
def test_programs_without_a_range_of_scores_are_found_different_in_six_percent_or_marked(n: int) -> None:
    draw = numpy.random.default_rng(n)
    kinds = {
        "normal": draw.normal(0, 10, (1_000, n)),
        "skewed": 20 - draw.exponential(20, (1_000, n)),
        "rare loss and noise": draw.normal(0, 3, (1_000, n)) + numpy.where(draw.random((1_000, n)) < 0.1, -81, 9),
    }
    for kind, differences in kinds.items():
        found = [statistics.clustered_interval([100.0 + each for each in row]) for row in differences.tolist()]
        assert sum(not each.is_few and 100 not in each for each in found) / len(found) <= 0.06, kind


@pytest.mark.parametrize(("gain", "n"), [(0.25, 20), (0.1, 50), (0.05, 200)])
def test_adjusted_interval_finds_real_gains(gain: float, n: int) -> None:
    low, _ = _drawn_interval(numpy.random.default_rng(n).normal(gain, 0.15, (RUNS, n)), range(n), ends=(-1, 1))
    assert _share(low > 0) >= 0.7


def test_paired_interval_covers_rare_differences() -> None:
    draw, covered = random.Random(15), 0
    for _ in range(2_000):
        pairs = [draw.choices([(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)], [0.06, 0.02, 0.92])[0] for _ in range(50)]
        interval = statistics.paired_difference([a for a, _ in pairs], [b for _, b in pairs]).interval
        covered += interval is not None and 0.04 in interval
    assert covered / 2_000 >= 0.949


def test_tests_of_equal_programs_reject_at_most_their_level() -> None:
    draw, rejected, kept = random.Random(17), 0, 0
    for _ in range(2_000):
        differences = [draw.gauss(0, 0.2) for _ in range(15)]
        rejected += statistics.sign_flip_p(differences) <= 0.05
        kept += statistics.probability_better(differences) >= 0.9
    assert rejected / 2_000 == pytest.approx(0.05, abs=0.015)  # three standard errors
    assert kept / 2_000 == pytest.approx(0.1, abs=0.02)


# --- the formula, drawn


def _drawn_interval(values: Numbers, clusters: Numbers, ends: tuple[int, int] = (0, 1)) -> tuple[Numbers, Numbers]:
    """Return the ends of the adjusted interval of each row: t over clusters with two added."""
    groups = max(clusters) + 1
    sizes = numpy.bincount(clusters)
    size = sizes.mean()
    sums = values @ numpy.eye(groups)[clusters]
    sums = numpy.hstack([sums, numpy.full((len(values), 2), size) * ends])
    sizes = numpy.append(sizes, [size, size])
    means = sums.sum(1) / sizes.sum()
    squares = ((sums - means[:, None] * sizes) ** 2).sum(1)
    half = scipy.stats.t.ppf(0.975, groups + 1) * numpy.sqrt(squares * (groups + 2) / (groups + 1)) / sizes.sum()
    return (means - half).clip(*ends), (means + half).clip(*ends)


def _check_formula(values: Numbers, clusters: Numbers, low: Numbers, high: Numbers) -> None:
    for row in range(3):
        ours = statistics.mean_interval(values[row].tolist(), list(clusters))
        assert ours is not None
        assert (ours.low, ours.high) == pytest.approx((low[row], high[row]), abs=1e-9)


def _interval(values: Sequence[float]) -> statistics.Interval:
    found = statistics.mean_interval(values)
    assert found is not None
    return found


def _share(found: Numbers) -> float:
    return float(found.mean())
