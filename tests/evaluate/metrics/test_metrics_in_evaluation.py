"""Metrics inside an evaluation: DSPy's programs, feedback per example, judges that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire import Example, FakeLM, Predict, SemanticF1
from sigwire.effects.steps import run
from sigwire.evaluate.cell import cell_steps
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.metric_plan import MetricPlan

DEVSET = [Example(question=f"{n}+{n}?", answer=str(2 * n)).with_inputs("question") for n in range(4)]


def program() -> Predict[..., Any]:
    return Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "The 4."}))


def blocked(evaluate: Evaluate, module: Any) -> Any:
    return evaluate(module)


def awaited(evaluate: Evaluate, module: Any) -> Any:
    return asyncio.run(evaluate.acall(module))


CALLS = pytest.mark.parametrize("call", [blocked, awaited])


@CALLS
def test_exact_match_scores_a_devset(call: Callable[..., Any]) -> None:
    evaluate = Evaluate(devset=DEVSET, metric=sigwire.answer_exact_match, num_threads=2)
    assert call(evaluate, program()).score == 25.0


@CALLS
@pytest.mark.parametrize("failure", [sigwire.LMServerError("down"), "no fields"])
def test_a_failing_judge_scores_no_example_with_0(call: Callable[..., Any], failure: Any) -> None:
    def answer(request: sigwire.Request) -> Any:
        if "1+1?" in request.messages[-1].text:
            return failure
        return {"reasoning": "Same.", "recall": 1.0, "precision": 1.0}

    judge = SemanticF1(fields={"response": "answer"})
    judge.set_lm(FakeLM(answer))
    found = call(Evaluate(devset=DEVSET, metric=judge, num_threads=2), program())
    assert found.mean == 1.0
    assert (found.scored, found.unscored) == (3, 1)
    assert dict(found.failures) == {"JudgeError": 1}


def test_cell_has_feedback_and_the_requests_of_the_judge_apart() -> None:
    judge = SemanticF1(fields={"response": "answer"}, repeats=2)
    judge.set_lm(FakeLM(lambda request: {"reasoning": "Half.", "recall": 0.5, "precision": 0.5}))
    cell = run(cell_steps(program(), DEVSET[0], MetricPlan(judge), traced=True))
    assert (cell.score, cell.feedback) == (0.5, "recall 0.50, precision 0.50. Half.")
    assert (cell.requests, cell.metric_requests) == (1, 2)
    assert [step.path for step in cell.trace] == ["self"]


def test_cell_of_a_wrong_call_has_the_feedback_of_the_metric() -> None:
    task = Example(question="Tea?", tools=[], tool_calls=[{"name": "search", "args": {"q": "tea"}}])
    lm = FakeLM([[{"name": "lookup", "args": {"q": "tea"}}]])
    choose = Predict("question, tools: list[sigwire.Tool] -> tool_calls: sigwire.ToolCalls", lm=lm)
    cell = run(cell_steps(choose, task.with_inputs("question", "tools"), MetricPlan(sigwire.tool_call_match())))
    assert (cell.score, cell.feedback) == (0.0, "expected search(q='tea'), got lookup(q='tea')")
    assert cell.subscores == {"precision": 0.0, "recall": 0.0}


def test_evaluation_of_a_dspy_program_runs_through_the_door() -> None:
    evaluate = dspy.evaluate.Evaluate(devset=DEVSET, metric=dspy.evaluate.metrics.answer_exact_match, num_threads=1)
    lm = dspy.DummyLM([{"answer": "4"}] * 4)
    found = evaluate(dspy.Predict("question -> answer", lm=lm))
    assert isinstance(found, dspy.evaluate.EvaluationResult)
    assert (found.score, len(found.results)) == (25.0, 4)
