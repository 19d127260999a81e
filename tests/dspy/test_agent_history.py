"""The history of a ``ReActV2``: turns with calls and results for programs, messages for the agent and for JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.agents.history import AgentHistory, messages_of


def look(query: str) -> str:
    if query == "bad":
        raise ValueError("no such thing")
    return f"found {query}"


def make_agent() -> Any:
    return cast("Any", dspy.ReActV2)("question -> answer", tools=[look])


def script(*calls: tuple[str, dict[str, Any]]) -> Any:
    given = [{"name": name, "args": args} for name, args in calls]
    return {"next_thought": "next", "tool_calls": dspy.ToolCalls.from_dict_list(given)}


def run_agent(*turns: Any, is_awaited: bool = False) -> Any:
    agent = make_agent()
    agent.set_lm(dspy.DummyLM([*turns, script(("submit", {"answer": "done"}))]))
    return asyncio.run(agent.acall(question="?")) if is_awaited else agent(question="?")


@pytest.mark.parametrize("is_awaited", [False, True])
def test_turn_has_inputs_thought_calls_and_results(is_awaited: bool) -> None:
    result = run_agent(script(("look", {"query": "a"}), ("look", {"query": "b"})), is_awaited=is_awaited)
    first, last = result.history.messages
    assert (first["question"], first["next_thought"], "question" in last) == ("?", "next", False)
    assert [call.arguments for call in first["tool_calls"]] == [{"query": "a"}, {"query": "b"}]
    results = first["tool_calls"].tool_call_results.tool_call_results
    assert [each.value for each in results] == ["found a", "found b"]
    assert [each.call_id for each in results] == [call.id for call in first["tool_calls"]]


def test_turn_has_the_error_of_an_unknown_tool() -> None:
    (first, _) = run_agent(script(("gone", {}))).history.messages
    (error,) = first["tool_calls"].tool_call_results.tool_call_results
    assert (error.is_error, "gone" in str(error.value)) == (True, True)


def test_agent_and_json_have_the_messages_of_the_conversation() -> None:
    result = run_agent(script(("look", {"query": "a"})))
    plain = messages_of(result.history)
    assert [getattr(turn, "role", "inputs") for turn in plain.messages] == [
        "inputs", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip
    stored = json.loads(json.dumps(result.history.to_json()))
    assert sigwire.History.from_json(stored) == plain
    assert AgentHistory(sigwire.History.from_json(stored)) == result.history


@pytest.mark.parametrize("is_stored", [False, True])
def test_agent_continues_from_its_history(is_stored: bool) -> None:
    result = run_agent(script(("look", {"query": "a"})))
    before = result.history.to_json() if is_stored else result.history
    agent = make_agent()
    lm = sigwire.FakeLM([dspy.ToolCalls.ToolCall("submit", {"answer": "more"})])
    agent.set_lm(lm)
    assert agent(question="And?", history=before).answer == "more"
    roles = [message.role for message in lm.requests[0].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "user"]


def test_turn_made_by_a_program_is_sent_as_messages() -> None:
    calls = dspy.ToolCalls.from_dict_list([{"id": "x", "name": "look", "args": {"query": "a"}}])
    results = dspy.ToolCallResults.from_tool_calls_and_values(list(calls), ["found a"])
    turn = {
        "question": "?",
        "next_thought": "Look.",
        "tool_calls": calls.model_copy(update={"tool_call_results": results}),
    }
    found: Any = messages_of(dspy.History([turn])).messages
    inputs, asked, answered = found
    assert (dict(inputs), asked.text, answered.tool_results[0].text) == ({"question": "?"}, "Look.", "found a")
