"""Means and differences over rows and seeds, against scipy and an analysis of variance. ``test_seed_coverage`` simulates."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from sigwire.evaluate.quantiles import t_p, t_quantile
from sigwire.evaluate.seeds import seeds_difference, seeds_interval
from sigwire.evaluate.statistics import Interval, mean_interval, paired_difference

DRAW = random.Random(7)


def table(rows: int, seeds: int, luck: float = 0.3) -> list[list[float]]:
    """Return scores of 0 and 1 with hard and easy rows, and lucky and unlucky seeds."""
    shifts = [DRAW.gauss(0, luck) for _ in range(seeds)]
    levels = [DRAW.gauss(0, 1) for _ in range(rows)]
    return [[float(level + shift + DRAW.gauss(0, 1) > -0.5) for shift in shifts] for level in levels]


def mean_squares(scores: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the mean squares of rows, of seeds and of the rest: the two-way analysis of variance, as in a textbook."""
    values = numpy.array(scores)
    n, seeds = values.shape
    rows, columns = values.mean(1, keepdims=True), values.mean(0, keepdims=True)
    rest = values - rows - columns + values.mean()
    return (
        float(seeds * ((rows - values.mean()) ** 2).sum() / (n - 1)),
        float(n * ((columns - values.mean()) ** 2).sum() / (seeds - 1)),
        float((rest**2).sum() / ((n - 1) * (seeds - 1))),
    )


def crossed(scores: Sequence[Sequence[float]], confidence: float = 0.95) -> tuple[float, float, float]:
    """Return the crossed interval of a mean that needs no cut, and the p of a mean of 0."""
    n, seeds = len(scores), len(scores[0])
    rows, columns, rest = mean_squares(scores)
    variance = (rows + columns - rest) / (n * seeds)
    below = rows**2 / (n - 1) + columns**2 / (seeds - 1) + rest**2 / ((n - 1) * (seeds - 1))
    freedom = max((rows + columns - rest) ** 2 / below, seeds - 1)
    mean, error = float(numpy.mean(scores)), math.sqrt(variance)
    low, high = scipy.stats.t.interval(confidence, freedom, mean, error)
    return float(low), float(high), float(2 * scipy.stats.t.sf(abs(mean) / error, freedom))


@pytest.mark.parametrize("freedom", [1, 1.3, 2.5, 7, 30.2, 199.9, 1_999.5])
def test_student_with_any_degrees_of_freedom_matches_scipy(freedom: float) -> None:
    for p in (0.0005, 0.4, 0.5, 0.9, 0.975, 0.99999):
        assert t_quantile(p, freedom) == pytest.approx(scipy.stats.t.ppf(p, freedom), rel=1e-9, abs=1e-12)
    for t in (0.0, 0.01, -1.0, 2.5, 40.0, 1e6):
        assert t_p(t, freedom) == pytest.approx(2 * scipy.stats.t.sf(abs(t), freedom), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("clusters", [None, list("aabbccddeeffgghhiijj")])
def test_one_seed_is_the_rule_for_rows(clusters: Sequence[str] | None) -> None:
    first, second = table(20, 1), table(20, 1)
    before, after = [row[0] for row in first], [row[0] for row in second]
    assert seeds_interval(first, clusters, confidence=0.9) == mean_interval(before, clusters, confidence=0.9)
    for is_single_run in (True, False):
        assert seeds_difference(first, second, clusters, is_single_run=is_single_run) == paired_difference(
            before, after, clusters, is_single_run=is_single_run
        )
    assert seeds_interval([]) == mean_interval([])


def test_interval_over_rows_is_taken_if_seeds_have_no_luck() -> None:
    scores = [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]] * 8  # both seeds have one mean, answers have luck
    assert seeds_interval(scores) == mean_interval([1.0, 0.5, 0.5, 0.0] * 8)


def test_interval_over_seeds_is_that_of_student_if_their_luck_is_all() -> None:
    scores = [[0.2, 0.5, 0.6, 0.9]] * 10
    expected = scipy.stats.ttest_1samp(scores[0], 0).confidence_interval(0.95)
    found = seeds_interval(scores)
    assert found is not None
    assert found.method == "t over 4 seeds"
    assert (found.low, found.high) == pytest.approx((max(expected.low, 0), min(expected.high, 1)))


def test_crossed_interval_is_that_of_the_analysis_of_variance() -> None:
    # The luck of rows is as large as that of seeds, and what is left is small: neither look alone has all.
    rows, seeds = [DRAW.gauss(0, 0.05) for _ in range(9)], [DRAW.gauss(0, 0.04) for _ in range(8)]
    scores = [[0.5 + row + seed + DRAW.gauss(0, 0.01) for seed in seeds] for row in rows]
    differences = [[value - 0.44 for value in row] for row in scores]
    found = seeds_interval([[2 * value for value in row] for row in scores])  # above 1: no ends of a range are added
    assert found is not None
    assert found.method == "t crossed with 8 seeds"
    assert (found.low, found.high) == pytest.approx([2 * each for each in crossed(scores)[:2]], rel=1e-9)

    zeros = [[0.0] * 8 for _ in rows]
    difference = seeds_difference(zeros, [[50 * value for value in row] for row in differences])
    low, high, p = crossed(differences)
    assert difference.interval is not None
    assert difference.p == pytest.approx(p, rel=1e-6)
    assert (difference.interval.low, difference.interval.high) == pytest.approx((50 * low, 50 * high), rel=1e-9)


SCORES = st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.0])
TABLES = st.tuples(st.integers(2, 12), st.integers(2, 5)).flatmap(
    lambda size: st.tuples(
        *(
            st.lists(st.lists(SCORES, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])
            for _ in "ab"
        )
    )
)


@given(TABLES, st.sampled_from([0.8, 0.95]))
def test_interval_is_the_widest_and_p_the_largest_and_both_give_one_verdict(
    tables: tuple[list[list[float]], list[list[float]]], confidence: float
) -> None:
    first, second = tables
    found = seeds_difference(first, second, confidence=confidence)
    differences = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(first, second, strict=True)]
    means = [[sum(row) / len(row) for row in scores] for scores in tables]
    of_rows = paired_difference(*means, None, confidence=confidence, is_single_run=False)
    assert (found.mean, found.wins, found.losses) == (of_rows.mean, of_rows.wins, of_rows.losses)
    assert found.p >= of_rows.p
    if found.interval is None:
        assert not any(map(sum, differences))  # no row differs in its mean
        return
    width = found.interval.high - found.interval.low
    if of_rows.interval is not None and of_rows.p <= 1 - confidence:
        assert width >= of_rows.interval.high - of_rows.interval.low - 1e-9
    of_seeds = numpy.mean(differences, axis=0)
    if len({*of_seeds.round(9)}) > 1:
        assert found.p >= scipy.stats.ttest_1samp(of_seeds, 0).pvalue - 1e-9
    assert (found.p > 1 - confidence) == (0 in found.interval)


def test_widest_interval_reaches_to_zero_if_a_narrower_one_holds_zero() -> None:
    first, second = [[0, 0.5], [0.5, 0], [0.5, 0.5], [0.5, 0.5]], [[1, 1], [1, 1], [0.5, 1], [0.5, 1]]
    found = seeds_difference(
        first, second, confidence=0.8
    )  # flips of four rows have a p of 1/8, and more by the interval
    assert found.interval is not None
    assert found.interval.method == "t crossed with 2 seeds"
    assert found.p > 0.2
    assert found.interval.low == 0.0


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_equal_scores_at_an_end_of_the_range_have_the_interval_of_wilson(score: float) -> None:
    rows = [[score] * 3 for _ in range(40)]
    expected = scipy.stats.binomtest(int(40 * score), 40).proportion_ci(method="wilson")
    found = seeds_interval(rows)
    assert found is not None
    assert found.method == "Wilson"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    by_cluster = seeds_interval(rows, [row // 2 for row in range(40)])
    expected = scipy.stats.binomtest(int(20 * score), 20).proportion_ci(method="wilson")
    assert by_cluster is not None
    assert (by_cluster.low, by_cluster.high) == pytest.approx((expected.low, expected.high))


def test_rows_that_stand_twice_in_their_cluster_add_nothing() -> None:
    for luck in (0.0, 0.8):
        first, second = table(25, 4, luck), table(25, 4, luck)
        once = seeds_difference(first, second, list(range(25)))
        twice = seeds_difference(first * 2, second * 2, [*range(25)] * 2)
        assert once.interval is not None
        assert twice.interval is not None
        assert (twice.interval.low, twice.interval.high) == pytest.approx((once.interval.low, once.interval.high))
        assert twice.p == pytest.approx(once.p)
        as_if_new = seeds_difference(first * 2, second * 2)
        assert as_if_new.interval is not None
        if luck == 0.0:
            assert as_if_new.interval.high - as_if_new.interval.low < once.interval.high - once.interval.low


def test_programs_without_a_differing_score_differ_by_nothing() -> None:
    same = table(12, 3)
    found = seeds_difference(same, same)
    assert (found.mean, found.interval, found.p, found.is_few) == (0.0, None, 1.0, False)


def test_rows_without_a_range_that_are_too_few_have_no_interval() -> None:
    assert seeds_interval([[5, 7, 6], [3, 4, 9]]) is None
    found = seeds_difference([[5, 7], [3, 4]], [[6, 9], [4, 4]])
    assert found.interval is None
    assert found.is_few
    few = seeds_interval([[50, 70], [90, 40], [60, 60], [55, 80], [10, 30]])
    assert few is not None
    assert few.is_few


def test_equal_scores_without_a_range_have_no_interval() -> None:
    assert seeds_interval([[7.0, 7.0]] * 9) is None


def test_smallest_difference_is_larger_if_seeds_have_luck() -> None:
    calm = seeds_difference([[0.0] * 3] * 50, [[float(row % 2)] * 3 for row in range(50)])
    lucky = seeds_difference([[0.0] * 3] * 50, [[0.0, float(row % 2), 1.0] for row in range(50)])
    assert calm.smallest is not None
    assert lucky.smallest is not None
    assert lucky.smallest > 5 * calm.smallest
    assert isinstance(lucky.interval, Interval)
