"""Evaluations and compilations as spans, and the events of scores."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import StatusCode

import sigwire
from sigwire import Evaluate, Example, FakeLM
from sigwire.observe.tracing import names

DEVSET = [Example(question=str(number), answer="4").with_inputs("question") for number in range(3)]


def exact(example: Any, prediction: Any, trace: object = None) -> sigwire.Score:
    if example.question == "2":
        raise ZeroDivisionError("a bug")
    return sigwire.Score(float(example.answer == prediction.answer), "Compare.", subscores={"length": 0.5})


def answer(request: Any) -> dict[str, str]:
    return {"answer": "4" if "\n0" in request.messages[-1].text else "5"}


@pytest.fixture
def result(telemetry: Any) -> sigwire.EvaluationResult:
    program = sigwire.Predict("question -> answer", lm=FakeLM(answer))
    return Evaluate(devset=DEVSET, metric=exact, display_progress=False, num_threads=2)(program)


def test_evaluation_has_a_span_for_each_example(telemetry: Any, result: sigwire.EvaluationResult) -> None:
    example = ["  example", "    predict Predict", "      chat fake"]
    assert telemetry.tree == ["invoke_workflow Evaluate", *example * 3]
    found = telemetry.attributes("invoke_workflow Evaluate")
    assert (found["gen_ai.operation.name"], found["gen_ai.workflow.name"]) == ("invoke_workflow", "Evaluate")
    assert (found["sigwire.program"], found["sigwire.examples"]) == ("Predict", 3)
    assert (found["sigwire.score"], found["sigwire.status"]) == (result.score, "complete")


def test_every_score_is_an_event_in_the_span_of_its_example(telemetry: Any, result: sigwire.EvaluationResult) -> None:
    spans = {span.get_span_context().span_id: span for span in telemetry.spans if span.name == "example"}
    events = [event for event in telemetry.events if event.event_name == "gen_ai.evaluation.result"]
    assert {event.span_id for event in events} == set(spans)
    assert sorted(
        (
            spans[event.span_id].attributes["sigwire.example.index"],
            event.attributes["gen_ai.evaluation.name"],
            event.attributes.get("gen_ai.evaluation.score.value"),
            event.attributes.get("error.type", ""),
        )
        for event in events
    ) == [
        (0, "exact", 1.0, ""),
        (0, "exact.length", 0.5, ""),
        (1, "exact", 0.0, ""),
        (1, "exact.length", 0.5, ""),
        (2, "exact", None, "ZeroDivisionError"),
    ]
    assert all(names.EVALUATION_EXPLANATION not in event.attributes for event in events)


def test_explanation_of_a_score_is_content(telemetry: Any) -> None:
    telemetry.start(content=True, redact=lambda kind, value: value.upper() if isinstance(value, str) else value)
    program = sigwire.Predict("question -> answer", lm=FakeLM(answer))
    Evaluate(devset=DEVSET[:1], metric=exact, display_progress=False)(program)
    assert telemetry.events[0].attributes["gen_ai.evaluation.explanation"] == "COMPARE."


def test_bug_of_the_metric_is_on_the_span_of_its_example(telemetry: Any, result: sigwire.EvaluationResult) -> None:
    (failed,) = [span for span in telemetry.spans if (span.attributes or {}).get("sigwire.failure")]
    assert failed.attributes["sigwire.failure"] == "metric"
    assert failed.attributes["error.type"] == "ZeroDivisionError"
    assert failed.status.status_code is StatusCode.ERROR


def test_failure_of_a_program_has_its_score_and_its_kind(telemetry: Any) -> None:
    program = sigwire.Predict("question -> answer: int", lm=FakeLM(["no number"]))
    Evaluate(devset=DEVSET[:1], metric=exact, display_progress=False)(program)
    (event,) = telemetry.events
    assert (event.attributes["gen_ai.evaluation.score.value"], event.attributes["sigwire.failure"]) == (0.0, "program")


async def test_awaited_and_streamed_evaluations_have_the_same_spans(telemetry: Any) -> None:
    program = sigwire.Predict("question -> answer", lm=FakeLM(answer))
    evaluate = Evaluate(devset=DEVSET[:2], metric=exact, display_progress=False)
    await evaluate.acall(program)
    first = telemetry.tree
    with telemetry.user_span("request"):
        list(evaluate.stream(program))
    assert telemetry.tree == [*first, "request", *["  " + line for line in first]]


def test_optimizer_is_a_workflow_around_its_programs(telemetry: Any) -> None:
    student = sigwire.Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "4"}))
    optimizer = sigwire.BootstrapFewShot(metric=lambda example, prediction, trace=None: 1.0, max_bootstrapped_demos=1)
    optimizer.compile(student, trainset=DEVSET[:2])
    assert telemetry.tree[0] == "invoke_workflow BootstrapFewShot"
    assert telemetry.attributes("invoke_workflow BootstrapFewShot")["sigwire.program"] == "Predict"
    assert "chat fake" in "".join(telemetry.tree)
    assert all(line.startswith(" ") for line in telemetry.tree[1:])
