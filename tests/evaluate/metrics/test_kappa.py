"""Agreement of a judge with labels: kappa, its interval, its counts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire import Prediction
from sigwire.evaluate.scores import Score

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("judge", "labels", "kappa"),
    [
        ([True, True, False, False], [True, True, False, False], 1.0),
        ([True, False, True, False], [True, True, False, False], 0.0),
        ([True, True, False, False], [False, False, True, True], -1.0),
        (list("aabbc"), list("aabcc"), 0.7058823529411765),
        ([True, True], [True, True], None),
    ],
)
def test_kappa(judge: list[Any], labels: list[Any], kappa: float | None) -> None:
    found = sigwire.agreement(judge, labels)
    assert found.kappa == (None if kappa is None else pytest.approx(kappa))
    assert found.interval is None


def test_kappa_of_the_table_of_a_textbook() -> None:
    counts = {(True, True): 20, (True, False): 5, (False, True): 10, (False, False): 15}
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    found = sigwire.agreement([one for one, _ in pairs], [other for _, other in pairs])
    assert (found.kappa, found.observed, found.n, found.confusion) == (pytest.approx(0.4), 0.7, 50, counts)
    assert found.interval is not None
    assert found.interval.low < 0.4 < found.interval.high
    assert str(found).startswith("kappa 0.40 (95 % ")


@given(PAIRS)
def test_kappa_is_symmetric_and_at_most_1(pairs: list[tuple[str, str]]) -> None:
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    forth, back = sigwire.agreement(one, other), sigwire.agreement(other, one)
    assert forth.kappa == (None if back.kappa is None else pytest.approx(back.kappa))
    assert forth.kappa is None or -1 <= forth.kappa <= 1


def test_interval_is_seeded_and_narrows_with_more_labels() -> None:
    rng = random.Random(1)
    labels = [rng.random() < 0.5 for _ in range(300)]
    judge = [label if rng.random() < 0.8 else not label for label in labels]
    first, again = sigwire.agreement(judge, labels, seed=3), sigwire.agreement(judge, labels, seed=3)
    few = sigwire.agreement(judge[:40], labels[:40], seed=3)
    assert first == again
    assert first.interval is not None
    assert few.interval is not None
    assert first.interval.high - first.interval.low < few.interval.high - few.interval.low


@pytest.mark.parametrize(("n", "is_few"), [(12, True), (60, False)])
def test_interval_of_few_labels_states_that_they_are_too_few(n: int, is_few: bool) -> None:
    labels = [bool(index % 3) for index in range(n)]
    found = sigwire.agreement([not labels[0], *labels[1:]], labels)
    assert found.interval is not None
    assert found.interval.is_few == is_few
    assert ("; too few to say)" in str(found)) == is_few


def test_interval_of_full_agreement_is_no_certainty() -> None:
    found = sigwire.agreement([True, False] * 40, [True, False] * 40)
    assert str(found) == "kappa 1.00 (95 % 1.00 … 1.00; too few to say), 100% of 80 equal"


def test_numbers_and_scores_count_by_the_threshold() -> None:
    judge = [0.9, Score(0.2), Prediction(score=0.7), True]
    assert sigwire.agreement(judge, [True, False, True, 1], threshold=0.66).kappa == 1


@pytest.mark.parametrize(("judge", "labels"), [([], []), ([1], [1, 2]), ([[1]], [1])])
def test_lists_that_do_not_fit_are_refused(judge: list[Any], labels: list[Any]) -> None:
    with pytest.raises(sigwire.InputError):
        sigwire.agreement(judge, labels)
