"""Inputs of a ``Predict`` of the door: texts of any type, optional inputs."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import sigwire.dspy as dspy
from tests.ways import in_every_way


def lm() -> dspy.DummyLM:
    return dspy.DummyLM([{"answer": "4"}] * 3)


@pytest.mark.parametrize("value", [123, ["a", "b"], {"k": 1}])
def test_text_input_takes_a_value_of_any_type_without_a_warning(value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dspy.Predict("context -> answer", lm=lm())(context=value).answer == "4"


def notes_of(caplog: pytest.LogCaptureFixture, signature: str, **inputs: Any) -> str:
    """Return the messages of DSPy's logger during a call."""
    caplog.clear()
    assert dspy.Predict(signature, lm=lm())(**inputs).answer == "4"
    return " ".join(record.getMessage() for record in caplog.records if record.name == "dspy.predict.predict")


@pytest.mark.parametrize(
    ("kind", "unfit", "fit"),
    [
        ("int", "many", 3),
        ("list[int]", ["7"], [7]),
        ("dict[str, float]", {"pi": "3"}, {"pi": 3}),
        ("tuple[int, ...]", (1, "b"), (1,)),
        ("Literal['up', 'down']", "left", "down"),
    ],
)
def test_typed_input_of_another_type_is_a_record_of_the_logger_of_dspy(
    caplog: pytest.LogCaptureFixture, kind: str, unfit: Any, fit: Any
) -> None:
    note = notes_of(caplog, f"size: {kind} -> answer", size=unfit)
    assert note.startswith(f"Type mismatch for field 'size': expected {kind} (Input should be")
    assert notes_of(caplog, f"size: {kind} -> answer", size=fit) == ""
    with dspy.context(warn_on_type_mismatch=False):
        assert notes_of(caplog, f"size: {kind} -> answer", size=unfit) == ""


def test_optional_input_may_be_missing() -> None:
    predict = dspy.Predict("question, hint: str | None -> answer", lm=lm())
    assert predict(question="2+2?").answer == asyncio.run(predict.acall(question="2+2?")).answer == "4"


def test_required_input_may_not_be_missing() -> None:
    with pytest.raises(dspy.InputError, match="needs the input 'question'"):
        dspy.Predict("question, hint: str | None -> answer", lm=lm())(hint="none")


EXAMPLE = dspy.Example(question="2+2?", answer="4", topic="sums").with_inputs("question", "topic")
UNKNOWN = "fields not in signature. These fields will be ignored: ['answer', 'topic']. Expected: ['question']."


@in_every_way
@pytest.mark.parametrize(
    ("module", "answer"),
    [
        (dspy.Predict, {"answer": "4"}),
        (dspy.ChainOfThought, {"reasoning": "r", "answer": "4"}),
        (lambda signature: dspy.ReAct(signature, tools=[len]), {"next_tool_name": "finish", "next_thought": "done"}),
    ],
    ids=["Predict", "ChainOfThought", "ReAct"],
)
def test_whole_example_is_the_inputs_of_a_call(
    way: Callable[..., Any], module: Any, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = module("question -> answer")
    made.set_lm(dspy.DummyLM([answer, {"answer": "4"}]))
    assert way(made, **EXAMPLE).answer == "4"
    notes = [record.getMessage() for record in caplog.records if record.name == "dspy.predict.predict"]
    assert [UNKNOWN in note for note in notes] == [True]


def test_setting_decides_about_unknown_inputs(caplog: pytest.LogCaptureFixture) -> None:
    with dspy.context(unknown_inputs="ignore"):
        assert dspy.Predict("question -> answer", lm=lm())(**EXAMPLE).answer == "4"
    assert caplog.records == []
    with dspy.context(unknown_inputs="error"), pytest.raises(dspy.InputError, match="no input 'answer', 'topic'"):
        dspy.Predict("question -> answer", lm=lm())(**EXAMPLE)


def test_program_is_scored_on_a_devset_with_an_input_that_it_does_not_use() -> None:
    evaluate = dspy.Evaluate(devset=[EXAMPLE], metric=dspy.evaluate.answer_exact_match, num_threads=1)
    assert evaluate(dspy.Predict("question -> answer", lm=lm())).score == 100


def test_signature_of_a_call_does_not_replace_the_inputs_of_the_predictor() -> None:
    predict = dspy.Predict("question -> answer", lm=lm())
    assert predict(signature="text -> answer", text="x").answer == predict(question="y").answer == "4"


def test_agent_takes_a_value_of_any_type_for_a_text_and_may_miss_an_optional_input() -> None:
    script = [{"next_tool_name": "finish", "next_thought": "done", "next_tool_args": {}}, {"answer": "4"}]
    agent = dspy.ReAct("question, hint: str | None -> answer", tools=[len])
    agent.set_lm(dspy.DummyLM(script))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert agent(question=["2+2?"]).answer == "4"
