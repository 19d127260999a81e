"""Statistics of evaluations against scipy and published numbers. ``test_coverage`` has the simulations."""

from __future__ import annotations

import itertools
import math
import random

import numpy
import pytest
import scipy  # loads scipy.stats in the first test that reads it
from hypothesis import given
from hypothesis import strategies as st

from sigwire.errors import ConfigurationError
from sigwire.evaluate import statistics
from sigwire.evaluate.quantiles import t_quantile

DRAW = random.Random(12)
GRADED = [round(DRAW.random(), 3) for _ in range(23)]


# --- reference numbers


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10, 30, 99, 1_000, 2_000, 2_001, 50_000])
def test_t_quantile_matches_scipy(freedom: int) -> None:
    for p in (0.0005, 0.05, 0.5, 0.6, 0.9, 0.975, 0.9917, 0.9999):
        assert t_quantile(p, freedom) == pytest.approx(scipy.stats.t.ppf(p, freedom), rel=1e-9, abs=1e-12)


BINARY = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("values", [BINARY, [1.0] * 10, [0.0] * 7, [0.5] * 8, GRADED, [1.0]])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_adjusted_interval_is_that_of_scipy_with_the_ends_of_the_range_added(
    values: list[float], confidence: float
) -> None:
    expected = scipy.stats.ttest_1samp([*values, 0, 1], 0).confidence_interval(confidence)
    ours = statistics.mean_interval(values, confidence=confidence)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((max(expected.low, 0), min(expected.high, 1)), abs=1e-9)
    assert (ours.method, ours.is_few) == ("adjusted t", False)


def test_interval_by_t_matches_scipy() -> None:
    expected = scipy.stats.ttest_1samp(GRADED, 0).confidence_interval(0.95)
    ours = statistics.clustered_interval(GRADED)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert statistics.standard_error(GRADED) == pytest.approx(scipy.stats.sem(GRADED))


def test_interval_of_equal_clusters_is_the_interval_of_their_means() -> None:
    values, clusters = GRADED[:20], [index // 4 for index in range(20)]
    means = [sum(values[i : i + 4]) / 4 for i in range(0, 20, 4)]
    expected = scipy.stats.ttest_1samp(means, 0).confidence_interval(0.95)
    ours = statistics.clustered_interval(values, clusters)
    assert (ours.low, ours.high) == pytest.approx((max(expected.low, 0), min(expected.high, 1)), abs=1e-9)


def test_adjusted_interval_of_equal_clusters_is_the_interval_of_their_means() -> None:
    values, clusters = GRADED[:20], [index // 4 for index in range(20)]
    means = [sum(values[i : i + 4]) / 4 for i in range(0, 20, 4)]
    ours, alone = statistics.mean_interval(values, clusters), statistics.mean_interval(means)
    assert ours is not None
    assert alone is not None
    assert (ours.low, ours.high) == pytest.approx((alone.low, alone.high), abs=1e-9)
    assert ours.method == "adjusted t by cluster"


def test_scores_without_a_range_have_the_interval_by_t() -> None:
    percents = [100 * each for each in [*GRADED, *GRADED]]
    ours = statistics.mean_interval(percents)
    assert ours == statistics.clustered_interval(percents)
    assert (_method(ours), ours is not None and ours.is_few) == ("t", False)
    assert statistics.mean_interval([*percents, 0.5], range(len(percents) + 1)) is not None


@pytest.mark.parametrize(
    ("values", "clusters"),
    [
        (GRADED, None),  # fewer than 30
        ([0.0] * 97 + [1.0] * 3, None),  # skewed
        ([0.0] * 60, None),  # equal
        (GRADED * 3, [index // 3 for index in range(69)]),  # 23 clusters
        (GRADED * 3, [max(index - 30, 0) for index in range(69)]),  # one cluster is nearly half of all
    ],
)
def test_interval_by_t_states_that_its_values_are_too_few(values: list[float], clusters: list[int] | None) -> None:
    found = statistics.clustered_interval(values, clusters)
    assert found.is_few
    assert found.method_text == f"{found.method}; too few to say"
    assert not statistics.clustered_interval(GRADED * 3).is_few


@pytest.mark.parametrize(
    ("values", "reason"),
    [([], "too few to say"), ([2, 4, 1, 3], "too few to say"), ([5.0] * 8, "no spread"), ([0.5] * 8, "")],
)
def test_mean_has_no_interval_when_values_without_a_range_are_few_or_equal(values: list[float], reason: str) -> None:
    assert (statistics.mean_interval(values) is None) == bool(reason)
    assert statistics.no_interval_reason(values) == reason


def test_bonett_price_matches_an_example_of_the_literature() -> None:
    # The table of Bentur and others (2009) in M. W. Fagerland and others, Statist. Med. 33, 2014: n12 = 1, n21 = 7, n = 21.
    z, p12, p21 = scipy.stats.norm.ppf(0.975), 2 / 23, 8 / 23
    half = z * math.sqrt((p12 + p21 - (p12 - p21) ** 2) / 23)
    ours = statistics.bonett_price(1, 7, 21)
    assert (ours.low, ours.high) == pytest.approx((p12 - p21 - half, p12 - p21 + half), abs=1e-9)
    assert (round(ours.low, 4), round(ours.high, 4)) == (-0.5084, -0.0134)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (8, 1), (5, 5), (30, 12), (0, 25)])
def test_p_of_pairs_of_zero_and_one_matches_the_exact_test_of_mcnemar(wins: int, losses: int) -> None:
    expected = scipy.stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    first = [0.0] * wins + [1.0] * (losses + 7)
    second = [1.0] * wins + [0.0] * losses + [1.0] * 7
    paired = statistics.paired_difference(first, second)
    assert paired.p == pytest.approx(expected, abs=1e-9)
    assert paired.interval == statistics.bonett_price(wins, losses, wins + losses + 7)
    if wins + losses <= 20:
        assert statistics.sign_flip_p([b - a for a, b in zip(first, second, strict=True)]) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 2, 5, 9, 20])
def test_sign_flip_p_matches_the_permutation_test_of_scipy(count: int) -> None:
    differences = [value - 0.4 for value in GRADED[:count]]
    if 1 < count <= 9:
        expected = scipy.stats.permutation_test(
            (differences,), numpy.mean, permutation_type="samples", n_resamples=9_999
        )
        assert statistics.sign_flip_p(differences) == pytest.approx(expected.pvalue)
    total = abs(sum(differences)) - 1e-9
    sums = numpy.array([0.0])
    for difference in differences:
        sums = numpy.concatenate([sums + difference, sums - difference])
    assert statistics.sign_flip_p(differences) == pytest.approx(float((abs(sums) >= total).mean()))


def test_drawn_sign_flips_agree_with_the_exact_test() -> None:
    differences = [value - 0.4 for value in GRADED[:21]]
    sums = numpy.array([0.0])
    for difference in differences:
        sums = numpy.concatenate([sums + difference, sums - difference])
    exact = float((abs(sums) >= abs(sum(differences)) - 1e-9).mean())
    drawn = statistics.sign_flip_p(differences, seed=3)
    assert drawn == pytest.approx(exact, abs=0.02)
    assert drawn == statistics.sign_flip_p(differences, seed=3) != statistics.sign_flip_p(differences, seed=4)


def test_sign_flips_flip_clusters_whole() -> None:
    differences = [0.3, 0.1, 0.2, 0.2, 0.4, 0.1]
    assert statistics.sign_flip_p(differences, "aabbcc") == statistics.sign_flip_p([0.4, 0.4, 0.5]) == 0.25
    assert statistics.sign_flip_p([0.3, -0.3, 0.2, -0.2], "aabb") == 1.0


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (3, 0), (2, 5), (7, 7), (14, 4)])
def test_probability_better_is_the_posterior_of_a_uniform_prior_for_zero_and_one(wins: int, losses: int) -> None:
    expected = scipy.stats.beta.sf(0.5, wins + 1, losses + 1)
    assert statistics.probability_better([1.0] * wins + [-1.0] * losses) == pytest.approx(expected)


def test_probability_better_of_the_reverse_is_the_complement() -> None:
    for count in (7, 23):
        differences = [value - 0.45 for value in GRADED[:count]]
        forward = statistics.probability_better(differences)
        assert forward + statistics.probability_better([-each for each in differences]) == pytest.approx(1)
        assert (forward > 0.5) == (sum(differences) > 0)


def test_bootstrap_matches_scipy_within_the_noise_of_draws() -> None:
    expected = scipy.stats.bootstrap((GRADED,), numpy.mean, n_resamples=20_000, method="BCa", rng=5).confidence_interval
    ours = statistics.bootstrap_interval(GRADED, draws=5_000, seed=5)
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=0.01)
    assert ours == statistics.bootstrap_interval(GRADED, draws=5_000, seed=5)


def test_bootstrap_resamples_clusters_whole() -> None:
    values, clusters = [0.0, 0.0, 1.0, 1.0] * 10, [index // 2 for index in range(40)]
    alone, together = statistics.bootstrap_interval(values), statistics.bootstrap_interval(values, clusters)
    assert (together.high - together.low) / (alone.high - alone.low) == pytest.approx(math.sqrt(2), abs=0.15)


def test_bootstrap_of_equal_values_has_no_width() -> None:
    assert statistics.bootstrap_interval([0.5] * 9).low == statistics.bootstrap_interval([0.5] * 9).high == 0.5


@pytest.mark.parametrize("ps", [[0.01, 0.04, 0.03], [0.5, 0.5], [0.001], [], [0.9, 0.02, 0.02, 0.3]])
def test_holm_does_not_depend_on_the_order(ps: list[float]) -> None:
    expected = dict(zip(ps, statistics.holm(ps), strict=True))
    for order in itertools.permutations(ps):
        assert statistics.holm(order) == [expected[p] for p in order]
        assert len(statistics.holm_confidences(order)) == len(ps)
    assert all(adjusted >= p for p, adjusted in expected.items())


def test_sign_flip_p_is_drawn_until_draws_cannot_show_it_and_then_bounded() -> None:
    drawn = statistics.sign_flip_p([1.0] * 60 + [-1.0] * 34)  # a fair coin: 60 and more, or 34 and fewer
    assert drawn == pytest.approx(scipy.stats.binomtest(60, 94).pvalue, rel=0.3)
    for n in (60, 400):
        exact = 2.0 ** (1 - n)
        assert exact <= statistics.sign_flip_p([0.5] * n) <= 1e-8
    assert statistics.sign_flip_p([1.0] * 70 + [-1.0] * 20) > scipy.stats.binomtest(70, 90).pvalue


def test_holm_matches_published_numbers() -> None:
    # p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") of R.
    assert statistics.holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])
    # statsmodels 0.14, multipletests(..., method="holm").
    ps = [0.0123, 0.2, 0.0009, 0.011, 0.5, 0.04, 0.0123, 0.9]
    assert statistics.holm(ps) == pytest.approx([0.077, 0.6, 0.0072, 0.077, 1.0, 0.16, 0.077, 1.0])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_pass_and_all_at_k_are_the_means_over_all_choices_of_k_repeats(k: int) -> None:
    scores = [1.0, 0.0, 0.0, 1.0, 1.0]
    chosen = list(itertools.combinations(scores, k))
    assert statistics.reduce_scores(scores, f"pass@{k}") == pytest.approx(sum(map(max, chosen)) / len(chosen))
    assert statistics.reduce_scores(scores, f"all@{k}") == pytest.approx(sum(map(min, chosen)) / len(chosen))


def test_repeats_are_reduced_by_name() -> None:
    scores = [0.25, 1.0, 0.25, 0.5, 0.5]
    reduced = {how: statistics.reduce_scores(scores, how) for how in ("mean", "median", "max", "mode")}
    assert reduced == {"mean": 0.5, "median": 0.5, "max": 1.0, "mode": 0.25}
    assert statistics.reduce_scores([]) is None
    assert statistics.reduce_scores([1.0], "pass@2") is None


@pytest.mark.parametrize("how", ["average", "pass@0", "pass@", "all@x", "pass@4"])
def test_unknown_reduction_is_refused(how: str) -> None:
    with pytest.raises(ConfigurationError, match=how):
        statistics.check_reducer(how, repeat=3)


@pytest.mark.parametrize("scale", [1, 100])
def test_paired_difference_of_graded_scores_matches_the_paired_t_test(scale: int) -> None:
    first, second = ([scale * each for each in scores] for scores in (GRADED[:11], GRADED[11:22]))
    added = [-1, 1] if scale == 1 else []
    differences = [b - a for a, b in zip(first, second, strict=True)]
    expected = scipy.stats.ttest_1samp([*differences, *added], 0).confidence_interval(0.95)
    paired = statistics.paired_difference(first, second)
    assert paired.interval is not None
    assert (paired.interval.low, paired.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert paired.mean == pytest.approx(sum(second) / 11 - sum(first) / 11)
    assert paired.is_few == (scale == 100)


def test_equal_differences_are_shown_when_they_are_many_and_have_a_range() -> None:
    assert statistics.paired_difference([0.8] * 10, [0.9] * 10).p > 0.05  # one loss of 0.9 would make the mean 0
    assert statistics.paired_difference([0.8] * 60, [0.9] * 60).p < 0.01
    percents = statistics.paired_difference([80] * 60, [90] * 60)
    assert (percents.interval, percents.is_few) == (None, True)


def test_paired_difference_of_equal_programs_shows_nothing() -> None:
    paired = statistics.paired_difference(GRADED, GRADED)
    assert (paired.mean, paired.interval, paired.p, paired.wins, paired.losses) == (0, None, 1, 0, 0)
    assert statistics.paired_difference([], []).interval is None


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_outside_of_zero_and_one_is_refused(confidence: float) -> None:
    with pytest.raises(ConfigurationError, match="confidence"):
        statistics.mean_interval(GRADED, confidence=confidence)


def _method(interval: statistics.Interval | None) -> str:
    return "" if interval is None else interval.method


# --- verdict, interval and p agree

TABLES = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=2, max_size=30)
NUMBERS = st.lists(st.tuples(st.floats(0, 1, width=16), st.floats(0, 1, width=16)), min_size=2, max_size=30)


@given(TABLES | NUMBERS, st.sampled_from([0.9, 0.95, 0.99]))
def test_interval_excludes_zero_exactly_if_p_is_significant(pairs: list[tuple[float, float]], level: float) -> None:
    found = statistics.paired_difference([a for a, _ in pairs], [b for _, b in pairs], confidence=level)
    if found.interval is not None:
        assert (0 not in found.interval) == (found.p <= 1 - level)
        assert found.mean in found.interval or found.interval.method == "Bonett-Price"


def test_five_wins_of_ten_are_no_difference() -> None:
    found = statistics.paired_difference([0] * 5 + [1] * 5, [1] * 10)
    assert found.interval is not None
    assert (found.p, found.interval.low) == (0.0625, 0.0)
