"""Calls in the stream of a module are validated when they end; the result has the calls as before."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from sigwire import ChatAdapter, FakeLM, Predict, ReAct, ToolCall, context
from sigwire.core.events import ToolCallEnd
from tests.modules.code.driving import events

STREAMS = pytest.mark.parametrize("mode", ["stream", "astream"])
NATIVE = pytest.mark.parametrize("native", [True, False])


def refuse(value: str) -> str:
    raise KeyError(value)


def find(n: int) -> int:
    """Find a number."""
    return n


def look(place: Annotated[str, AfterValidator(refuse)]) -> str:
    """Look at a place."""
    return place


CHOOSE = "question, tools: list[Tool] -> calls: ToolCalls"
CALLS = [
    ToolCall("a", "find", {"n": 1}),
    ToolCall("b", "find", {"n": "many"}),
    ToolCall("c", "fnd", {"n": 1}),
    ToolCall("d", "look", {"place": "here"}),
]
CODES = [None, "schema_mismatch", "unknown_tool", "schema_mismatch"]


def codes(streamed: list[Any]) -> list[Any]:
    return [event.call.error and event.call.error.code for event in streamed if isinstance(event, ToolCallEnd)]


@STREAMS
@NATIVE
def test_streamed_call_has_its_problem_when_it_ends(mode: str, native: bool) -> None:
    calls = CALLS if native else [call for call in CALLS if call.name != "fnd"]  # text is no call of an unknown tool
    predict: Any = Predict(CHOOSE, lm=FakeLM([calls]))
    with context(adapter=ChatAdapter(native_tools=native)):
        streamed = events(mode, predict, question="?", tools=[find, look])
    assert codes(streamed) == (CODES if native else [CODES[0], CODES[1], CODES[3]])
    assert [call.error for call in streamed[-1].value.calls] == [None] * len(calls)


@STREAMS
def test_streamed_call_of_an_agent_has_its_problem_before_its_result(mode: str) -> None:
    submit = ToolCall("s", "submit", {"answer": "done"})
    agent = ReAct("question -> answer", tools=[find, look], lm=FakeLM([CALLS[:3], submit]))
    assert codes(events(mode, agent, question="?")) == [*CODES[:3], None]


def test_validator_that_raises_any_error_marks_the_call_for_a_re_ask() -> None:
    predict: Any = Predict(CHOOSE, lm=FakeLM([CALLS[3:], CALLS[:1]]), max_reasks=1)
    assert [call.name for call in predict(question="?", tools=[find, look]).calls] == ["find"]
