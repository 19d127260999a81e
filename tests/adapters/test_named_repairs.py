"""Deviations of small models that are read as named repairs: backticks around a value, a header in another case."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire import AdapterParseError, CallReport, ChatAdapter, FakeLM, Predict
from sigwire.settings import context
from tests.modules.code.driving import MODES, called

Count = "question -> count: int, kind: Literal['ant', 'bee']"

ANSWERS = {
    "[[ ## count ## ]]\n`3`\n\n[[ ## kind ## ]]\nbee\n\n[[ ## completed ## ]]": ("the backticks were taken off",),
    "[[ ## Count ## ]]\n3\n\n[[ ## KIND ## ]]\nbee\n\n[[ ## Completed ## ]]": (
        "the section was named 'Count'",
        "the section was named 'KIND'",
        "the section was named 'Completed'",
    ),
    "[[ ## Count ## ]]\n``3``\n\n[[ ## kind ## ]]\nbee": (
        "the section was named 'Count'",
        "the backticks were taken off",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", ANSWERS)
def test_deviation_is_read_and_named(answer: str, mode: str) -> None:
    predict = Predict(Count, lm=FakeLM([answer]))
    with context(adapter=ChatAdapter()):
        result = called(mode, predict, question="?")
    assert (result.count, result.kind) == (3, "bee")
    assert tuple(repair.what for repair in CallReport.of(result).repairs) == ANSWERS[answer]


@pytest.mark.parametrize("answer", ANSWERS)
def test_deviation_is_refused_when_the_adapter_is_strict(answer: str) -> None:
    with pytest.raises(AdapterParseError), context(adapter=ChatAdapter(strict=True)):
        Predict(Count, lm=FakeLM([answer]))(question="?")


@pytest.mark.parametrize("text", ["`3` or `4`", "`3", "3`", "`three`"])
def test_other_backticks_are_no_number(text: str) -> None:
    answer = f"[[ ## count ## ]]\n{text}\n\n[[ ## kind ## ]]\nbee"
    with pytest.raises(AdapterParseError, match="count"):
        Predict(Count, lm=FakeLM([answer]))(question="?")


def test_names_that_differ_in_case_alone_are_different_fields() -> None:
    answer = "[[ ## kind ## ]]\nlower\n\n[[ ## Kind ## ]]\nupper\n\n[[ ## completed ## ]]"
    result: Any = Predict("question -> kind, Kind", lm=FakeLM([answer]))(question="?")
    assert (result.kind, result.Kind, CallReport.of(result).repairs) == ("lower", "upper", ())


def test_second_section_in_another_case_does_not_replace_the_first() -> None:
    answer = "[[ ## answer ## ]]\nfirst\n\n[[ ## Answer ## ]]\nsecond\n\n[[ ## completed ## ]]"
    result: Any = Predict("question -> answer", lm=FakeLM([answer]))(question="?")
    assert result.answer == "first"
    assert len(CallReport.of(result).repairs) == 1
