"""Limits of the calls of a run: of the agent, of a tool, and of calls that bring nothing new."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

import pytest

from sigwire import ApprovalNeeded, ConfigurationError, FakeLM, ReAct, Tool, ToolCall

MODES = ["blocking", "awaited", "streamed"]
SUBMIT = ToolCall("end", "submit", {"a": "done"})
EXTRACTED = {"reasoning": "From the results.", "a": "extracted"}


def poll(job: int = 1) -> str:
    return "running"


def call_in(mode: str, agent: Any) -> Any:
    if mode == "awaited":
        return asyncio.run(agent.acall(q="x"))
    return agent(q="x") if mode == "blocking" else [*agent.stream(q="x")][-1].value


def agent_of(tools: list[Any], answers: list[Any], **options: Any) -> Any:
    agent: Any = ReAct("q -> a", tools=tools, **options)
    agent.set_lm(FakeLM(answers))
    return agent


def polls(number: int, job: Any = 1) -> list[ToolCall]:
    return [ToolCall(f"c{at}", "poll", {"job": job if job is not None else at}) for at in range(number)]


def texts(result: Any) -> list[str]:
    return [each.text for step in result.steps for each in step.results]


@pytest.mark.parametrize("mode", MODES)
def test_run_ends_with_one_extraction_when_its_calls_are_used_up(mode: str) -> None:
    agent = agent_of([poll], [polls(3, None), EXTRACTED], max_calls=2)
    result = call_in(mode, agent)
    assert (result.a, result.termination_reason) == ("extracted", "limit")
    assert texts(result) == ["running", "running", "The limit of 2 tool calls is reached."]
    assert [attempt.purpose for attempt in result.attempts] == ["ask", "extract"]


def test_calls_of_several_turns_count_together() -> None:
    agent = agent_of([poll], [polls(1, 1), polls(1, 2), polls(1, 3), EXTRACTED], max_calls=2)
    assert texts(agent(q="x"))[-1] == "The limit of 2 tool calls is reached."


def test_calls_beyond_the_limit_of_a_tool_fail_and_others_go_on() -> None:
    def other(n: int) -> int:
        return n

    calls = [*polls(2, None), ToolCall("o", "other", {"n": 5})]
    agent = agent_of([Tool(poll, max_calls=1), other], [calls, SUBMIT])
    result = agent(q="x")
    assert result.termination_reason == "submit"
    assert texts(result)[:3] == ["running", "The limit of 1 call of poll is reached. Continue without it.", "5"]


@pytest.mark.parametrize("mode", MODES)
def test_run_ends_when_the_model_goes_on_calling_a_tool_without_calls_left(mode: str) -> None:
    turns = [polls(1, n) for n in range(6)]
    agent = agent_of([Tool(poll, max_calls=1)], [*turns[:3], EXTRACTED])
    result = call_in(mode, agent)
    assert (result.a, result.termination_reason) == ("extracted", "limit")
    told = "The limit of 1 call of poll is reached. Continue without it."
    assert texts(result) == ["running", told, told]


def test_tool_without_calls_left_stays_in_the_request() -> None:
    agent = agent_of([Tool(poll, max_calls=1)], [polls(1, 1), polls(1, 2), SUBMIT])
    assert agent(q="x").termination_reason == "submit"
    first, *later = [request.tools for request in agent.react.lm.requests]
    assert later == [first, first]
    assert "poll" in str(first)


def test_turn_with_another_call_resets_the_count_of_idle_turns() -> None:
    def other(n: int) -> int:
        return n

    turns: list[Any] = [polls(1, 1), polls(1, 2), [*polls(1, 3), ToolCall("o", "other", {"n": 5})], polls(1, 4), SUBMIT]
    agent = agent_of([Tool(poll, max_calls=1), other], turns)
    assert agent(q="x").termination_reason == "submit"


@pytest.mark.parametrize("mode", MODES)
def test_run_ends_when_the_model_repeats_a_call_in_vain(mode: str) -> None:
    ran: list[int] = []

    def poll(job: int) -> str:
        ran.append(job)
        return "running"

    agent = agent_of([poll], [*([call] for call in polls(5)), EXTRACTED])
    result = call_in(mode, agent)
    assert (result.a, result.termination_reason, len(ran)) == ("extracted", "repeat", 3)
    refused = "This call gave the same result 3 times, and is not run again. Do something else."
    assert texts(result) == ["running", "running", "running", refused, refused]


def test_changed_result_allows_polling() -> None:
    progress = count()

    def poll(job: int) -> str:
        return f"{next(progress) // 2} of 9"

    agent = agent_of([poll], [*([call] for call in polls(9)), SUBMIT])
    assert agent(q="x").termination_reason == "submit"


@pytest.mark.parametrize(("tool", "options"), [({"repeat": True}, {}), ({}, {"max_repeats": None})])
def test_repetition_is_allowed_by_tool_and_agent(tool: Any, options: Any) -> None:
    agent = agent_of([Tool(poll, **tool)], [*([call] for call in polls(7)), SUBMIT], **options)
    assert agent(q="x").termination_reason == "submit"


def test_order_of_arguments_makes_no_other_call() -> None:
    def find(a: int, b: int) -> int:
        return a

    orders: list[Any] = [{"a": 1, "b": 2}, {"b": 2, "a": 1}]
    calls = [[ToolCall(f"c{at}", "find", orders[at % 2])] for at in range(5)]
    assert agent_of([find], [*calls, EXTRACTED])(q="x").termination_reason == "repeat"


def test_result_that_is_no_number_is_the_same_result() -> None:
    def measure() -> dict[str, float]:
        return {"mean": float("nan")}

    calls = [[ToolCall(f"c{at}", "measure", {})] for at in range(5)]
    assert agent_of([measure], [*calls, EXTRACTED])(q="x").termination_reason == "repeat"


def test_repetitions_count_over_resumed_runs() -> None:
    ran: list[int] = []

    def poll(job: int) -> str:
        ran.append(job)
        return "running"

    agent = agent_of([Tool(poll, approve=True)], [*([call] for call in polls(5)), EXTRACTED])
    with pytest.raises(ApprovalNeeded) as caught:
        agent(q="x")
    for name in ("c0", "c1"):
        state = json.loads(json.dumps(caught.value.state))
        with pytest.raises(ApprovalNeeded) as caught:
            agent.resume(state, {name: "approve"})
    result = agent.resume(json.loads(json.dumps(caught.value.state)), {"c2": "approve"})
    assert (result.a, result.termination_reason, len(ran)) == ("extracted", "repeat", 3)


def test_limits_count_over_resumed_runs() -> None:
    answers = [*([call] for call in polls(3)), EXTRACTED]
    agent = agent_of([Tool(poll, approve=True)], answers, max_calls=2)
    ids = iter(["c0", "c1"])
    with pytest.raises(ApprovalNeeded) as raised:
        agent(q="x")
    with pytest.raises(ApprovalNeeded) as again:
        agent.resume(json.loads(json.dumps(raised.value.state)), {next(ids): "approve"})
    result = agent.resume(json.loads(json.dumps(again.value.state)), {next(ids): "approve"})
    assert (result.termination_reason, texts(result)) == (
        "limit", ["running", "running", "The limit of 2 tool calls is reached."]
    )  # fmt: skip


def test_denied_calls_do_not_count() -> None:
    agent = agent_of([Tool(poll, approve=lambda call: call.id != "c0")], [polls(3, None), SUBMIT], max_calls=2)
    result = agent(q="x")
    assert texts(result)[1:3] == ["running", "running"]
    assert result.termination_reason == "submit"


@pytest.mark.parametrize("option", ["max_calls", "max_repeats"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_limit_that_is_no_number_of_calls_is_refused(option: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{option} is a number of calls"):
        ReAct("q -> a", **{option: value})
