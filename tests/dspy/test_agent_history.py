"""The history of a ``ReActV2``: turns with calls and results for programs, messages for the agent and for JSON."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.agent_history import AgentHistory, messages_of


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


def test_inputs_of_an_earlier_conversation_stay_a_turn_of_their_own() -> None:
    agent = make_agent()
    agent.set_lm(dspy.DummyLM([script(("submit", {"answer": "done"}))]))
    old, new = agent(history={"messages": [{"question": "old"}]}).history.messages
    assert (old, "question" in new) == ({"question": "old"}, False)


def test_calls_of_a_script_have_ids_by_turn_and_place() -> None:
    twice = script(("look", {"query": "a"}), ("look", {"query": "b"}))
    first, second, _ = run_agent(twice, twice).history.messages
    assert [call.id for each in (first, second) for call in each["tool_calls"]] == [
        "call_0_0", "call_0_1", "call_1_0", "call_1_1",
    ]  # fmt: skip


class Thinks(dspy.DummyLM):
    @property
    def supports_reasoning(self) -> bool:
        return True


@pytest.mark.parametrize("tools", [[], [look]])
def test_plain_text_is_no_answer_of_an_agent(tools: list[Any]) -> None:
    agent = cast("Any", dspy.ReActV2)("question -> answer", tools=tools)
    agent.set_lm(lm := Thinks([script(), script(("submit", {"answer": "forced"}))]))
    result = agent(question="?")
    assert (result.answer, result.termination_reason) == ("forced", "forced_submit")
    assert [entry["kwargs"].get("reasoning_effort") for entry in lm.history] == ["low", None]


@pytest.mark.parametrize("where", ["lm", "react"])
def test_effort_that_a_program_sets_is_kept(where: str) -> None:
    agent = make_agent()
    options: dict[str, Any] = {"reasoning_effort": "high"} if where == "lm" else {}
    lm = Thinks([script(("submit", {"answer": "done"}))], **options)
    agent.set_lm(lm)
    agent.react.update_config(**({"reasoning": "high"} if where == "react" else {}))
    agent(question="?")
    assert "low" not in lm.history[0]["kwargs"].values()
