"""Deciding a value from a distribution, and evidence as JSON. Pure: no text, no model."""

from __future__ import annotations

import json
import math
import pickle
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.events import collect, events_of
from sigwire.core.evidence import (
    DecisionRule,
    Evidence,
    Question,
    decide,
    index_of,
    normalized,
    read_evidence,
    share_of_values,
)
from sigwire.core.record import UNSET
from sigwire.core.response import Choice, Response
from sigwire.errors import ConfigurationError, InputError, StateError


class Area(Enum):
    BILLING = "billing"
    REPAIR = "repair"


BOOL = Question("urgent", "bool", (True, False))
AREA = Question("area", "choice", (Area.BILLING, Area.REPAIR, None))
HARM = Question("harm", "score", (0, 1, 2), is_mean=True)
LEVEL = Question("level", "score", (0, 1, 2))


@pytest.mark.parametrize(
    ("threshold", "p", "value", "confidence"),
    [
        (0.5, 0.5, True, 0.5),
        (0.5, 0.4, False, 0.6),
        (0.8, 0.8, True, 0.5),
        (0.8, 0.7999, False, 0.5001),
        (0.2, 0.3, True, 0.6316),
        (0.0, 0.0, True, 1.0),
        (0.0, 0.1, True, 1.0),
        (1.0, 1.0, True, 1.0),
        (1.0, 0.99, False, 1.0),
    ],
)
def test_bool_is_decided_by_its_threshold(threshold: float, p: float, value: bool, confidence: float) -> None:
    decided, found = decide("bool", (True, False), (p, 1 - p), DecisionRule(threshold=threshold))
    assert decided is value
    assert found == pytest.approx(confidence, abs=1e-4)


@pytest.mark.parametrize(
    ("probabilities", "weights", "answered", "value", "confidence"),
    [
        ((0.5, 0.3, 0.2), {}, UNSET, Area.BILLING, 0.5),
        ((0.4, 0.4, 0.2), {}, UNSET, Area.BILLING, 0.4),
        ((0.4, 0.4, 0.2), {}, Area.REPAIR, Area.REPAIR, 0.4),
        ((0.4, 0.4, 0.2), {}, "repair", Area.REPAIR, 0.4),
        ((0.5, 0.3, 0.2), {Area.REPAIR: 2}, UNSET, Area.REPAIR, 0.6 / 1.3),
        ((0.5, 0.3, 0.2), {"repair": 2, None: 4}, UNSET, None, 0.8 / 1.9),
        ((0.5, 0.3, 0.2), {"billing": 0}, Area.BILLING, Area.REPAIR, 0.6),
        ((1.0, 0.0, 0.0), {"billing": 0}, UNSET, Area.REPAIR, 0.0),
    ],
)
def test_choice_is_decided_by_weighted_probabilities(
    probabilities: tuple[float, ...], weights: dict[Any, float], answered: Any, value: Any, confidence: float
) -> None:
    rule = DecisionRule(weights=weights)
    rule.check(AREA)
    decided, found = decide("choice", AREA.values, probabilities, rule, answered=answered)
    assert decided is value
    assert found == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("question", "cuts", "value", "confidence"),
    [
        (HARM, (), 0.75, 0.25),
        (LEVEL, (), 1, 0.25),
        (LEVEL, (0.8, 1.2), 0, 0.5),
        (LEVEL, (0.75, 1.2), 1, 0.25),
        (LEVEL, (0.1, 0.7), 2, 0.25),
    ],
)
def test_score_is_the_mean_level_or_the_level_by_cuts(
    question: Question, cuts: tuple[float, ...], value: float, confidence: float
) -> None:
    evidence = Evidence.of(question, (0.5, 0.25, 0.25), "stated", DecisionRule(cuts=cuts))
    assert (evidence.value, evidence.confidence, evidence.expected) == (value, confidence, 0.75)


@pytest.mark.parametrize("masses", [(1e308, 1e308), (10**400, 1), (float("nan"), 1.0), (float("inf"), 1.0), ()])
def test_masses_without_a_finite_sum_are_no_distribution(masses: tuple[float, ...]) -> None:
    assert normalized(masses) is None


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=6))
def test_confidence_of_the_default_rule_is_the_probability_of_the_value(masses: list[float]) -> None:
    found = normalized(masses)
    assert found is not None
    values = tuple(f"v{at}" for at in range(len(found)))
    evidence = Evidence.of(Question("x", "choice", values), found, "measured")
    assert evidence.confidence == pytest.approx(evidence.p(evidence.value)) == pytest.approx(max(found))
    value, confidence = decide("bool", (True, False), (found[0], 1 - found[0]))
    assert confidence == pytest.approx(found[0] if value else 1 - found[0])


def test_evidence_abstains_below_the_least_confidence() -> None:
    sure = Evidence.of(BOOL, (0.9, 0.1), "logprob", DecisionRule(least=0.9))
    unsure = Evidence.of(BOOL, (0.62, 0.38), "logprob", DecisionRule(least=0.9))
    assert (sure.value, sure.confidence) == (True, 0.9)
    assert (unsure.value, unsure.confidence) == (None, 0.62)


@pytest.mark.parametrize(
    "numbers",
    [
        {"threshold": 1.1},
        {"least": -0.1},
        {"threshold": True},
        {"threshold": float("nan")},
        {"weights": {"a": -1}},
        {"weights": {"a": float("inf")}},
        {"weights": [("a", 1)]},
        {"cuts": (1, 1)},
        {"cuts": (2, 1)},
        {"cuts": ("a",)},
        {"cuts": (math.nan,)},
        {"cuts": (0.5, math.inf)},
    ],
)
def test_rule_refuses_numbers_that_no_rule_can_have(numbers: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(numbers)).removesuffix("s")):
        DecisionRule(**numbers)


@pytest.mark.parametrize(
    ("question", "rule", "said"),
    [
        (BOOL, DecisionRule(weights={True: 2}), r"decisions\['urgent'\]: weights are of a choice"),
        (AREA, DecisionRule(threshold=0.6), r"decisions\['area'\]: a threshold is of a bool"),
        (AREA, DecisionRule(weights={"sales": 2}), r"'sales' is no value.*billing, repair, null"),
        (AREA, DecisionRule(weights={"billing": 0, "repair": 0, None: 0}), "all weights are 0"),
        (LEVEL, DecisionRule(cuts=(1.0,)), "3 levels have 2 cuts, not 1"),
        (BOOL, DecisionRule(cuts=(1.0,)), "cuts are of a score"),
    ],
)
def test_rule_that_does_not_fit_its_output_is_refused(question: Question, rule: DecisionRule, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        rule.check(question)


@pytest.mark.parametrize(
    "rule",
    [
        DecisionRule(),
        DecisionRule(threshold=0.8, least=0.6),
        DecisionRule(weights={"a": 2.0}),
        DecisionRule(weights={"1": 2.0, 1: 3.0, None: 0.5}),
        DecisionRule(cuts=(0.4, 1.7)),
    ],
)
def test_rule_survives_json_and_pickle(rule: DecisionRule) -> None:
    assert DecisionRule.from_json(json.loads(json.dumps(rule.to_json()))) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule


@pytest.mark.parametrize("data", [{"threshold": 2}, {"cut": 1}, {"weights": 3}, {"cuts": 3}, {"least": "x"}])
def test_broken_json_of_a_rule_is_a_state_error(data: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="DecisionRule"):
        DecisionRule.from_json(data)


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence.of(BOOL, (0.25, 0.75), "logprob", coverage=0.875),
        Evidence.of(AREA, (0.25, 0.5, 0.25), "measured", answered=Area.BILLING),
        Evidence.of(AREA, (0.25, 0.5, 0.25), "measured", answered=None),
        Evidence.of(HARM, (0.25, 0.5, 0.25), "sampled", samples=4),
        Evidence.of(LEVEL, (0.25, 0.5, 0.25), "stated", DecisionRule(least=0.9)),
    ],
)
def test_evidence_survives_json_and_pickle(evidence: Evidence) -> None:
    question = next(
        each for each in (BOOL, AREA, HARM, LEVEL) if each.values == evidence.values and each.kind == evidence.kind
    )
    read = Evidence.from_json(json.loads(json.dumps(evidence.to_json()))).typed(question)
    assert read == evidence == pickle.loads(pickle.dumps(evidence))
    assert type(read.value) is type(evidence.value)


def test_evidence_of_other_values_is_not_typed() -> None:
    with pytest.raises(InputError, match="'area'"):
        Evidence.of(BOOL, (0.5, 0.5), "stated").typed(AREA)


def test_p_reads_values_and_labels_and_refuses_others() -> None:
    evidence = Evidence.of(AREA, (0.5, 0.25, 0.25), "stated")
    assert (evidence.p(Area.BILLING), evidence.p("repair"), evidence.p(None)) == (0.5, 0.25, 0.25)
    with pytest.raises(InputError, match="'sales' is no value of this evidence"):
        evidence.p("sales")
    with pytest.raises(InputError, match="no mean level"):
        _ = evidence.expected


def test_values_of_equal_text_or_number_are_distinct() -> None:
    assert [index_of((1, "1", True), each) for each in (1, "1", True, "true", 2)] == [0, 1, 2, 2, None]


def test_shares_count_values_and_ignore_others() -> None:
    assert share_of_values([True, True, False, "true", "x"], (True, False)) == (0.75, 0.25)
    assert share_of_values(["x"], (True, False)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"values": [None, "repair", "billing"], "probabilities": [0.5, 0.25, 0.25]}, ((0.25, 0.25, 0.5), UNSET, None)),
        (
            {
                "values": ["billing", "repair", None],
                "probabilities": [0.5, 0.5, 0],
                "answered": "repair",
                "confidence": 0.7,
            },
            ((0.5, 0.5, 0.0), Area.REPAIR, 0.7),
        ),
        ({"values": ["billing", "sales"], "probabilities": [0.5, 0.5]}, None),
        ({"values": ["billing", "repair"], "probabilities": [0, 0]}, None),
        ({"values": ["billing"], "probabilities": ["x"]}, None),
        ({"refused": True}, None),
        (None, None),
    ],
)
def test_json_of_a_choice_is_read_by_value(data: Any, found: Any) -> None:
    assert read_evidence(data, AREA) == found


def test_evidence_of_a_choice_is_in_its_json_and_in_the_events_of_its_stream() -> None:
    measured: Any = {"urgent": {"values": [True, False], "probabilities": [0.75, 0.25]}}
    response = Response((Choice('{"urgent":true}', evidence=measured),))
    assert Response.from_json(response.to_json()) == response == collect(events_of(response))
    assert "evidence" not in Choice("4").to_json()
