"""``cell_steps``: one run of a program on one example, as optimizers use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sigwire import (
    ConfigurationError,
    Example,
    FakeLM,
    LMServerError,
    Module,
    OutputTruncated,
    Predict,
    Prediction,
    Tool,
    ToolCall,
    context,
)
from sigwire.effects.emitting import stream
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps, arun, run
from sigwire.evaluate.cell import Cell, cell_steps
from sigwire.evaluate.metric_plan import MetricPlan

EXAMPLE = Example(question="2+2?", answer="4").with_inputs("question")
EXACT = MetricPlan(lambda example, prediction, trace=None: example.answer == prediction.answer)
drivers = pytest.mark.parametrize("drive", [run, lambda steps: asyncio.run(arun(steps))], ids=["sync", "async"])
Drive = Callable[[Steps[Cell]], Cell]


def two_step() -> Module:
    class TwoSteps(Module):
        def __init__(self) -> None:
            self.think = Predict("question -> thought", lm=FakeLM(lambda request: {"thought": "add"}))
            self.parts = [Predict("question, thought -> answer", lm=FakeLM(lambda request: {"answer": "4"}))]

        def forward(self, question: str) -> Any:
            return self.parts[0](question=question, thought=self.think(question=question).thought)

    return TwoSteps()


@drivers
def test_traced_cell_has_a_demo_for_each_predictor_by_its_path(drive: Drive) -> None:
    outer: list[Any] = []
    with context(trace=outer):
        cell = drive(cell_steps(two_step(), EXAMPLE, EXACT, traced=True))
    assert [step.path for step in cell.trace] == ["think", "parts[0]"]
    demo = Example.from_json(cell.trace[1].demo)
    assert demo == Example(question="2+2?", thought="add", answer="4", augmented=True)
    assert set(demo.inputs().keys()) == {"question", "thought"}
    assert (cell.score, cell.requests, outer) == (1.0, 2, [])
    assert Cell.from_json(cell.to_json()) == cell


def test_demo_of_a_trace_has_tools_by_name_and_canonical_calls() -> None:
    def look_up(order: int) -> str:
        """Look up an order."""
        return "late"

    call = ToolCall("call_0", "look_up", {"order": 7})
    program = Predict("question, tools: list[Tool] -> calls: ToolCalls", lm=FakeLM([call]))
    example = Example(question="Where is 7?", tools=[Tool(look_up)]).with_inputs("question", "tools")
    (step,) = run(cell_steps(program, example, None, traced=True)).trace
    demo = Example.from_json(step.demo)
    assert demo.tools == ["look_up"]
    assert [(each.name, each.arguments) for each in demo.calls] == [("look_up", {"order": 7})]


@drivers
def test_strict_metric_gets_the_trace(drive: Drive) -> None:
    seen: list[Any] = []

    def metric(example: Example, prediction: Prediction, trace: Any = None) -> bool:
        seen.append(None if trace is None else len(trace))
        return True

    drive(cell_steps(two_step(), EXAMPLE, MetricPlan(metric), traced=True))
    drive(cell_steps(two_step(), EXAMPLE, MetricPlan(metric), traced=True, strict=True))
    assert seen == [None, 2]


RAISED = [
    (OutputTruncated("cut"), "program"),
    (LMServerError("down"), "provider"),
    (ConfigurationError("no"), "caller"),
    (KeyError("own"), "bug"),
]


@drivers
@pytest.mark.parametrize(("error", "kind"), RAISED, ids=lambda value: str(value))
def test_error_of_a_raised_kind_is_raised_and_others_are_failures(error: Exception, kind: str, drive: Drive) -> None:
    program = Predict("question -> answer", lm=FakeLM([error] * 2, num_retries=0))
    with pytest.raises(type(error)) as caught:
        drive(cell_steps(program, EXAMPLE, EXACT, raises={kind}))
    assert caught.value is error
    cell = drive(cell_steps(program, EXAMPLE, EXACT, raises={"metric"}, failure_score=-1.0))
    assert cell.failure is not None
    assert cell.failure.kind == ("program" if kind == "bug" else kind)
    assert cell.failure.is_bug == (kind == "bug")
    assert cell.score == (-1.0 if cell.failure.kind == "program" else None)


def test_failure_has_the_path_of_the_predictor() -> None:
    program = two_step()
    program.parts[0].lm = FakeLM([OutputTruncated("cut")])  # type: ignore[attr-defined]
    failure = run(cell_steps(program, EXAMPLE, EXACT)).failure
    assert failure is not None
    assert (failure.path, failure.traceback) == ("parts[0]", "")


def test_traceback_of_a_bug_starts_in_the_users_code() -> None:
    class Broken(Module):
        def forward(self, question: str) -> Any:
            raise KeyError("answer")

    failure = run(cell_steps(Broken(), EXAMPLE, EXACT)).failure
    assert failure is not None
    assert failure.traceback.splitlines()[1].endswith("in forward")


def test_cells_inside_a_stream_ask_for_whole_answers_and_emit_nothing() -> None:
    program = Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "4"}))

    def steps() -> Steps[list[Cell]]:
        cells: list[Cell] = yield Gather([cell_steps(program, EXAMPLE, EXACT) for _ in range(3)])
        return cells

    assert list(stream(steps())) == []


@drivers
def test_function_is_a_program(drive: Drive) -> None:
    async def shout(question: str) -> Prediction:
        return Prediction(answer="4")

    for program in (shout, lambda question: Prediction(answer="4")):
        assert drive(cell_steps(program, EXAMPLE, EXACT)).score == 1.0


@drivers
def test_keep_gets_the_live_prediction(drive: Drive) -> None:
    kept: list[Any] = []
    cell = drive(
        cell_steps(lambda question: Prediction(answer=b"4"), EXAMPLE, EXACT, keep=lambda *given: kept.extend(given))
    )
    assert kept[0].answer == b"4"
    assert kept[1] == replace(cell, score=None)
