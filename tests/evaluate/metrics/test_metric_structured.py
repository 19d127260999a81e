"""Metrics of JSON and of schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import sigwire
from sigwire import Example, Prediction

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Order(BaseModel):
    item: str
    count: int


@given(JSON)
def test_a_value_matches_itself(value: Any) -> None:
    score = sigwire.json_match()(Example(answer=[value]), Prediction(answer=[value]))
    assert (score.value, score.feedback, score.subscores["scalars"]) == (1, "", 1)


@given(JSON, JSON)
def test_a_match_is_symmetric_and_subscores_are_shares(one: Any, other: Any) -> None:
    metric = sigwire.json_match()
    score = metric(Example(answer=[one]), Prediction(answer=[other]))
    assert score.value == metric(Example(answer=[other]), Prediction(answer=[one])).value
    assert 0 <= score.subscores["scalars"] <= 1
    assert bool(score.feedback) is (score.value == 0)


@pytest.mark.parametrize(
    ("gold", "answer", "options", "feedback"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {}, ""),
        ({"a": 1}, '{"a": 1.0}', {}, ""),
        ({"a": 1}, {"a": True}, {}, "a: expected 1, got True"),
        ({"a": 1.0}, {"a": 1.2}, {"tolerance": 0.3}, ""),
        ({"a": 1, "id": 7}, {"a": 1, "id": 8}, {"ignore": ["id"]}, ""),
        ({"rows": [{"n": 1}, {"n": 2}]}, {"rows": [{"n": 1}]}, {}, "rows[1]: expected {'n': 2}, got nothing"),
        ({}, {"x": 1}, {}, "x: expected nothing, got 1"),
        (["a"], "a", {}, "answer is not JSON"),
        ({"item": "tea", "count": 2}, Order(item="tea", count=3), {}, "count: expected 2, got 3"),
        (Order(item="tea", count=2), Order(item="tea", count=2), {}, ""),
        ([1, 2], [2, 1], {}, "[0]: expected 1, got 2; [1]: expected 2, got 1"),
    ],
)
def test_json_match(gold: Any, answer: Any, options: dict[str, Any], feedback: str) -> None:
    score = sigwire.json_match(**options)(Example(answer=gold), Prediction(answer=answer))
    assert score.value == float(not feedback)
    assert score.feedback.startswith(feedback)


def test_json_match_lists_five_differences_and_counts_the_rest() -> None:
    score = sigwire.json_match()(Example(answer=[1] * 8), Prediction(answer=[2] * 7 + [1]))
    assert score.feedback.endswith("[4]: expected 1, got 2; and 2 more")
    assert score.subscores["scalars"] == pytest.approx(1 / 8)


def test_json_match_raises_for_an_example_that_is_no_json() -> None:
    with pytest.raises(sigwire.InputError, match="json_match reads JSON from 'answer' of the example"):
        sigwire.json_match()(Example(answer="{"), Prediction(answer={}))


@pytest.mark.parametrize(
    ("schema", "answer", "feedback"),
    [
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], ""),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", ""),
        (list[int], [1, "2"], "must be an integer, not '2'"),
        (Order, {"item": "tea"}, "count"),
        (Order, Order(item="tea", count=1), ""),
        (Order, "no JSON", "answer is not JSON"),
    ],
)
def test_matches_schema(schema: Any, answer: Any, feedback: str) -> None:
    score = sigwire.matches_schema(schema)(Example(), Prediction(answer=answer))
    assert score.value == float(not feedback)
    assert feedback in score.feedback
