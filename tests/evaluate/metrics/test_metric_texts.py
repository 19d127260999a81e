"""Scores of words and metrics of short answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire import Example, Prediction

WORDS = st.lists(st.sampled_from(["a", "Paris", "paris.", "the", "Tower", "tower", "é", "1889"]), max_size=8).map(
    " ".join
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel-Tower, a landmark!", "eiffeltower landmark"),
        ("An apple a day", "apple day"),
        ("theatre", "theatre"),
        ("Café", "cafe\u0301"),
        ("Über", "u\u0308ber"),
        ("one\n\ttwo", "one two"),
        ("the", ""),
        ("≠", "\u0338"),
        ("", ""),
    ],
)
def test_normalized_text(text: str, expected: str) -> None:
    assert sigwire.normalize_text(text) == expected


@given(st.text())
def test_normalization_is_idempotent(text: str) -> None:
    once = sigwire.normalize_text(text)
    assert sigwire.normalize_text(once) == once


@given(WORDS, WORDS)
def test_f1_is_symmetric_and_between_0_and_1(one: str, other: str) -> None:
    assert sigwire.f1_score(one, other) == sigwire.f1_score(other, one)
    assert 0 <= sigwire.f1_score(one, other) <= 1


@given(WORDS)
def test_a_text_with_words_has_an_f1_of_1_with_itself(text: str) -> None:
    has_words = bool(sigwire.normalize_text(text))
    assert sigwire.f1_score(text, text) == float(has_words)
    assert sigwire.em_score(text, text)


@given(WORDS, WORDS)
def test_precision_is_the_recall_of_the_swapped_texts(one: str, other: str) -> None:
    precision, recall = sigwire.precision_score(one, other), sigwire.precision_score(other, one)
    f1 = 2 * precision * recall / (precision + recall) if precision else 0
    assert sigwire.f1_score(one, other) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("prediction", "truth", "f1", "hotpot"),
    [
        ("a red house", "the red car", 0.5, 0.5),
        ("red red house", "red car", 0.4, 0.4),
        ("yes", "Yes!", 1.0, 1.0),
        ("yes it is", "yes", 0.5, 0.0),
        ("no", "no idea", 2 / 3, 0.0),
        ("noanswer", "no answer", 0.0, 0.0),
        ("", "", 0.0, 0.0),
    ],
)
def test_f1_and_the_f1_of_hotpotqa(prediction: str, truth: str, f1: float, hotpot: float) -> None:
    assert sigwire.f1_score(prediction, truth) == pytest.approx(f1)
    assert sigwire.hotpot_f1_score(prediction, truth) == pytest.approx(hotpot)
    assert sigwire.F1(prediction, ["nothing else", truth]) == pytest.approx(f1)
    assert sigwire.HotPotF1(prediction, [truth]) == pytest.approx(hotpot)


def test_exact_match_needs_one_of_the_answers() -> None:
    assert sigwire.EM("eiffel tower", ["Louvre", "The Eiffel Tower."]) is True
    assert sigwire.EM("eiffel", ["Louvre", "The Eiffel Tower."]) is False


@pytest.mark.parametrize("answers", [[], "Paris", None])
def test_scores_refuse_answers_that_are_no_list(answers: Any) -> None:
    for score in (sigwire.EM, sigwire.F1, sigwire.HotPotF1):
        with pytest.raises(ValueError, match="a list with at least one text"):
            score("Paris", answers)


# --- metrics -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "answer", "frac", "expected"),
    [
        ("Paris", "paris.", 1.0, True),
        (["Lyon", "Paris"], "the Paris", 1.0, True),
        (("Lyon", "Paris"), "Paris", 1.0, True),
        ("Paris", "Paris, France", 1.0, False),
        ("Paris", "Paris, France", 0.6, True),
        ("Paris", "Paris, France", 0.7, False),
        ("4", 4, 1.0, True),
        ("Paris", None, 1.0, False),
    ],
)
def test_answer_exact_match(gold: Any, answer: Any, frac: float, expected: bool) -> None:
    assert sigwire.answer_exact_match(Example(answer=gold), Prediction(answer=answer), frac=frac) is expected


@pytest.mark.parametrize("gold", [4, None, [], ["Paris", 4], {"a": 1}])
def test_answer_exact_match_raises_for_another_type_of_answer(gold: Any) -> None:
    with pytest.raises(ValueError, match="answer_exact_match reads a text or a list of texts"):
        sigwire.answer_exact_match(Example(answer=gold), Prediction(answer="4"))


def test_a_missing_field_is_an_error_that_names_metric_and_fields() -> None:
    with pytest.raises(
        sigwire.InputError, match=r"answer_exact_match reads 'answer' of the prediction; it has reply\."
    ):
        sigwire.answer_exact_match(Example(answer="4"), Prediction(reply="4"))


@pytest.mark.parametrize(
    ("gold", "context", "expected"),
    [
        ("Gustave Eiffel", ["nothing", "Built by Gustave Eiffel."], True),
        (["Sauvestre", "Eiffel"], ["It is Eiffel's"], False),
        ("Eiffel", "by the Eiffel company", True),
        ("Eiffel", [], False),
        ("the", ["the tower"], False),
    ],
)
def test_answer_passage_match(gold: Any, context: Any, expected: bool) -> None:
    assert sigwire.answer_passage_match(Example(answer=gold), Prediction(context=context)) is expected


def test_answer_passage_match_refuses_a_context_that_is_no_list() -> None:
    with pytest.raises(ValueError, match=r"reads passages from pred\.context"):
        sigwire.answer_passage_match(Example(answer="x"), Prediction(context=4))


@pytest.mark.parametrize(
    ("options", "gold", "answer", "expected"),
    [
        ({}, "Paris", "It is PARIS, sure.", 1.0),
        ({}, "Paris", "Parisian", 0.0),
        ({"normalize": False}, "Paris", "Parisian", 1.0),
        ({"normalize": False}, "Paris", "paris", 0.0),
        ({}, ["Lyon", "Paris"], "Paris it is", 1.0),
    ],
)
def test_contains(options: dict[str, Any], gold: Any, answer: str, expected: float) -> None:
    assert sigwire.contains(**options)(Example(answer=gold), Prediction(answer=answer)).value == expected


def test_contains_reads_fields_of_other_names() -> None:
    metric = sigwire.contains("reply", "keyword")
    assert metric(Example(keyword="tea"), Prediction(reply="Tea, please")).value == 1
    assert "contains 'tea'" in metric(Example(keyword="tea"), Prediction(reply="Coffee")).feedback


@pytest.mark.parametrize(
    ("gold", "answer", "options", "expected"),
    [
        (42, 42.4, {}, 1.0),
        (42, 42.6, {}, 0.0),
        (42, "The answer is 42.", {}, 1.0),
        ("1,200", "first 7, then 1,200.3 km", {}, 1.0),
        (-3, "-3", {}, 1.0),
        (3, "-3", {}, 0.0),
        (1000, 1400, {"relative": True}, 1.0),
        (0.3, 0.8, {}, 1.0),
        (1e-3, "1.2e-3", {"relative": True}, 1.0),
        (42, "forty-two", {}, 0.0),
        (42, None, {}, 0.0),
        (42, float("nan"), {}, 0.0),
        (1, True, {}, 0.0),
    ],
)
def test_within(gold: Any, answer: Any, options: dict[str, Any], expected: float) -> None:
    assert sigwire.within(0.5, **options)(Example(answer=gold), Prediction(answer=answer)).value == expected


def test_within_refuses_a_negative_tolerance_and_an_example_without_a_number() -> None:
    with pytest.raises(sigwire.ConfigurationError, match="tolerance of 0 or more"):
        sigwire.within(-1)
    with pytest.raises(sigwire.InputError, match="reads a number from 'answer' of the example"):
        sigwire.within(1)(Example(answer="many"), Prediction(answer="2"))
