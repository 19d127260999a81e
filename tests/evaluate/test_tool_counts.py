"""Calls and errors of tools, and warnings, in cells, records, results, comparisons and exports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwire import (
    Evaluate,
    Example,
    FakeLM,
    Module,
    Prediction,
    ReAct,
    ToolCall,
    compare,
    load_records,
    track_usage,
)
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.effects.emitting import stream
from sigwire.effects.steps import Steps, arun, run
from sigwire.evaluate.cell import Cell, cell_steps
from sigwire.evaluate.failures import Failure
from sigwire.modules.agents.toolbox import Toolbox
from tests.evaluate.runs import make_result, scored_cell

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")

DEVSET = [Example(question=f"q{number}", answer="4").with_inputs("question") for number in range(4)]


def exact(example: Example, prediction: Prediction) -> bool:
    return bool(example.answer == prediction.answer)


def find(query: str) -> str:
    """Find documents."""
    raise RuntimeError("the index is gone")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


TURNS = [
    (ToolCall("1", "find", {"query": "x"}), ToolCall("2", "add", {"a": 2, "b": 2})),
    (ToolCall("3", "add", {"a": "two"}), ToolCall("4", "seek", {})),  # arguments that do not fit; no such tool
    (ToolCall("5", "submit", {"answer": "4"}),),
]


def agent(**options: Any) -> ReAct[..., Any]:
    """Return an agent that raises in a tool, makes two mistakes, and answers."""

    def play(request: Request) -> Choice:
        turn = sum(message.role == "assistant" for message in request.messages)
        return Choice(tool_calls=TURNS[turn], finish_reason="tool_calls")

    lm = FakeLM(play, capabilities=Capabilities(native_tools=True, parallel_tool_calls=True))
    made: ReAct[..., Any] = ReAct("question -> answer", tools=[find, add], **options)
    made.set_lm(lm)
    return made


class Outer(Module):
    """A program whose answer has no turns of the agent inside of it."""

    def __init__(self) -> None:
        self.agent = agent()

    def forward(self, question: str) -> Prediction:
        return Prediction(answer=self.agent(question=question).answer)

    async def aforward(self, question: str) -> Prediction:
        return Prediction(answer=(await self.agent.acall(question=question)).answer)


def streamed(steps: Steps[Cell]) -> Cell:
    events = stream(steps)
    while True:
        try:
            next(events)
        except StopIteration as end:
            return end.value


DRIVERS: dict[str, Callable[[Steps[Cell]], Cell]] = {
    "sync": run,
    "async": lambda steps: asyncio.run(arun(steps)),
    "streamed": streamed,
}
ERRORS = {"find": {"calls": 1, "errors": 1}, "add": {"calls": 2, "errors": 1}, "seek": {"calls": 1, "errors": 1}}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("make", [agent, Outer], ids=["flat", "nested"])
def test_cell_counts_calls_errors_and_exceptions_of_tools(driver: str, make: Callable[[], Any]) -> None:
    cell = DRIVERS[driver](cell_steps(make(), DEVSET[0], None))
    assert (cell.tools, cell.warnings) == (ERRORS, {"tool": 1})
    assert Cell.from_json(json.loads(json.dumps(cell.to_json()))) == cell


@pytest.mark.parametrize("driver", DRIVERS)
def test_tool_that_ends_the_run_is_counted(driver: str) -> None:
    cell = DRIVERS[driver](cell_steps(agent(on_tool_error="abort"), DEVSET[0], None))
    assert cell.failure is not None
    assert cell.tools["find"] == {"calls": 1, "errors": 1}


def test_tracker_counts_warnings_of_answers_and_a_long_name_is_cut() -> None:
    warned = Response((Choice("4"),), warnings=(LMWarning("temperature", "It was dropped."),))
    lm = FakeLM([warned, warned])
    with track_usage() as outer:
        with track_usage() as inner:
            lm("2+2?")
        lm("3+1?")
        Toolbox([add])([ToolCall("1", "x" * 500, {}), ToolCall("2", "add", {"a": 1, "b": 2})])
    assert (inner.warnings, outer.warnings) == (["temperature"], ["temperature"] * 2)
    assert outer.tool_calls == [("x" * 60, True), ("add", False)]


def test_result_shows_tools_that_fail_in_every_run(tmp_path: Path) -> None:
    evaluate = Evaluate(devset=DEVSET, metric=exact, progress=False)
    result = evaluate(Outer(), log=tmp_path / "run.jsonl")
    assert result.mean == 1.0
    assert result.tools == {"add": (8, 4), "find": (4, 4), "seek": (4, 4)}
    assert result.warnings == {"tool": 4}
    assert "tool_errors=12" in repr(result)
    text = result.to_markdown()
    assert "| tools | add: 8 calls, 4 errors<br>find: 4 calls, 4 errors<br>seek: 4 calls, 4 errors |" in text
    assert "| warnings | 4 tool |" in text
    assert (result.rows()[0]["tool_calls"], result.rows()[0]["tool_errors"]) == (4, 3)
    result.to_html(tmp_path / "run.html")
    assert "find: 4 calls, 4 errors" in (tmp_path / "run.html").read_text(encoding="utf-8").partition("<script")[0]


def test_resumed_evaluation_counts_what_a_whole_one_counts(tmp_path: Path) -> None:
    part, whole = (
        Evaluate(devset=DEVSET[:2], metric=exact, progress=False),
        Evaluate(devset=DEVSET, metric=exact, progress=False),
    )
    part(Outer(), log=tmp_path / "run.jsonl")
    resumed = whole(Outer(), log=tmp_path / "run.jsonl", resume=True)
    assert [record.cell.requests for record in resumed.records] == [3] * 4
    loaded = load_records(tmp_path / "run.jsonl")
    assert resumed.tools == loaded.tools == whole(Outer()).tools
    assert resumed.warnings == loaded.warnings == {"tool": 4}


def test_records_of_earlier_versions_are_counted_by_their_turns() -> None:
    answered = run(cell_steps(agent(), DEVSET[0], None))
    failed = run(cell_steps(agent(max_iters=2), DEVSET[0], None))
    assert isinstance(failed.failure, Failure)
    old = [Cell.from_json({**cell.to_json(), "tools": {}, "warnings": {}}) for cell in (answered, failed)]
    found, now = make_result(old), make_result([answered, failed])
    assert found.tools == now.tools == {"add": (4, 2), "find": (2, 2), "seek": (2, 2)}
    assert found.warnings == now.warnings == {"tool": 2}


def test_comparison_has_the_tools_and_warnings_of_each_program() -> None:
    quiet = make_result([scored_cell(1.0, tools={"find": {"calls": 2, "errors": 0}})] * 3)
    loud = make_result([scored_cell(1.0, tools={"find": {"calls": 1, "errors": 1}}, warnings={"tool": 1})] * 3)
    text = compare({"quiet": quiet, "loud": loud}).to_markdown()
    assert "| find | 6 calls | 3 calls, 3 errors |" in text
    assert "| warnings: tool | 0 | 3 |" in text
    assert "warnings" not in make_result([1.0]).compare(make_result([1.0])).to_markdown()
