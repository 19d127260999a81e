"""Calls of tools in the history, and options of tools where tools are text."""

from __future__ import annotations

from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.capabilities import Capabilities

SIGNATURE = dspy.Signature("question, history: dspy.History, tools: list[dspy.Tool] -> thought, calls: dspy.ToolCalls")
CALLS = [dspy.ToolCalls.ToolCall(id=f"c{n}", name=f"tool_{n}", args={}) for n in range(2)]


def search(query: str) -> str:
    return query


def messages_of(turn: dict[str, Any]) -> list[Any]:
    lm = dspy.FakeLM([{"thought": "Done."}], capabilities=Capabilities(native_tools=True))
    inputs = {"question": "now?", "history": dspy.History(messages=[turn]), "tools": [dspy.Tool(search)]}
    dspy.ChatAdapter()(lm, {}, SIGNATURE, [], inputs)
    return list(lm.requests[-1].messages)


def turn(results: Any) -> dict[str, Any]:
    calls = dspy.ToolCalls(CALLS, tool_call_results=results)
    return {"question": "first?", "thought": "I search.", "calls": calls}


@pytest.mark.parametrize(
    "results", [None, dspy.ToolCallResults([dspy.ToolCallResults.ToolCallResult("tool_0", "x", "another")])]
)
def test_calls_without_results_are_left_out_with_a_warning(results: Any) -> None:
    with pytest.warns(UserWarning, match="'tool_0' in the history has no result"):
        messages = messages_of(turn(results))
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert ("I search." in messages[2].text, messages[2].tool_calls) == (True, ())


def test_call_with_a_result_is_kept_beside_one_without() -> None:
    results = dspy.ToolCallResults.from_tool_calls_and_values(CALLS[1:], ["found"])
    with pytest.warns(UserWarning, match="'tool_0'"):
        messages = messages_of(turn(results))
    assert [call.name for call in messages[2].tool_calls] == ["tool_1"]
    assert [(each.id, each.content) for each in messages[3].tool_results] == [("c1", "found")]


def test_options_of_native_tools_are_left_out_where_tools_are_text() -> None:
    lm = dspy.FakeLM([{"thought": "Done."}])
    options = {"tools": [{"type": "function", "function": {"name": "submit"}}], "parallel_tool_calls": True}
    choice = {"type": "function", "function": {"name": "submit"}}
    inputs = {"question": "now?", "history": dspy.History(), "tools": [dspy.Tool(search)]}
    adapter = dspy.ChatAdapter(use_native_function_calling=False)
    adapter(lm, {**options, "tool_choice": choice, "temperature": 0.5}, SIGNATURE, [], inputs)
    request = lm.requests[-1]
    assert (request.tools, request.tool_choice, request.parallel_tool_calls) == ((), None, None)
    assert request.options["temperature"] == 0.5
