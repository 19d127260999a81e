"""Called, awaited, streamed, streamed and awaited: equal answers of the model give an equal end of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Choice, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMServerError, SigwireError
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


def fail() -> None:
    """Fail."""
    raise ValueError("no")


def busy(request: Request) -> LMServerError:
    return LMServerError("busy")


CALL, BROKEN = ToolCall("c", "add", {"a": 1, "b": 2}), ToolCall("c", "add", None, '{"a": 1')
AS_TEXT = '~~~tool_call\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n~~~'
ANSWERS = (
    CALL,
    Choice("I think.", (CALL, replace(CALL, id="d")), reasoning="Hm."),
    [ToolCall("e", "fail", {}), CALL],
    ToolCall("f", "nowhere", {}),
    ToolCall("g", "add", {"a": "x"}),
    Choice("", (BROKEN,), finish_reason="tool_calls"),
    Choice("", (BROKEN,), finish_reason="length"),
    AS_TEXT,
    f"First this.\n{AS_TEXT}\nThen that: `{AS_TEXT}`",
    AS_TEXT[:40],
    "Just words.",
    "[[ ## answer ## ]]\n7",
    "",
    Choice("half", finish_reason="length"),
    Choice("half", finish_reason="content_filter"),
    Choice("", refusal="I would rather not"),
    Choice(finish_reason="error"),
    busy,  # a new exception each time: a run sets attributes on its exception
    ToolCall("s", "submit", {"answer": "none"}),
    ToolCall("s", "submit", {"answer": 3}),
)
PLAIN = Capabilities()
ABLE = Capabilities(native_tools=True, parallel_tool_calls=True, tool_choice=True)


Agent: TypeAlias = ReAct[..., Any]


def called(agent: Agent) -> Any:
    return agent(question="?")


def awaited(agent: Agent) -> Any:
    return asyncio.run(agent.acall(question="?"))


def streamed(agent: Agent) -> Any:
    events = agent.stream(question="?")
    list(events)
    return events.value


def streamed_and_awaited(agent: Agent) -> Any:
    async def read() -> Any:
        events = agent.astream(question="?")
        async for _ in events:
            pass
        return events.value

    return asyncio.run(read())


def ended(way: Callable[[Agent], Any], answers: list[Any], capabilities: Capabilities, cut: int) -> tuple[Any, ...]:
    """Return the end of a run without its seconds."""
    agent: Agent = ReAct("question -> answer: int", tools=[add, fail], max_iters=3)

    def deltas(text: str) -> list[str]:
        return [text[at : at + cut] for at in range(0, len(text), cut)]

    lm = FakeLM(answers, capabilities=capabilities, cut=deltas, usage=Usage(input_tokens=1, output_tokens=2))
    agent.set_lm(lm)
    result: Any
    try:
        result = way(agent)
        said = result.answer
    except SigwireError as error:
        result, said = error, (type(error).__name__, str(error))
    run = AgentRun.of(result)
    steps = [replace(step, seconds=0.0, call_seconds=(), reports=()) for step in run.steps]
    return said, run.termination_reason, steps, run.history, run.attempts, len(lm.requests), lm.requests


@given(st.lists(st.sampled_from(ANSWERS), min_size=4, max_size=4), st.sampled_from([PLAIN, ABLE]), st.integers(1, 9))
def test_agent_run_has_equal_results_in_all_four_ways_of_calling(
    answers: list[Any], capabilities: Capabilities, cut: int
) -> None:
    once = ended(called, answers, capabilities, cut)
    for way in (awaited, streamed, streamed_and_awaited):
        assert ended(way, answers, capabilities, cut) == once
