"""Tools that ran when their process was killed: ``on_crash``, decisions, keys for other services."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import (
    ApprovalNeeded,
    FakeLM,
    InputError,
    Journal,
    PendingCall,
    ReAct,
    RetryTool,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolInterrupted,
    current_call,
)

MODES = ["run", "arun", "stream", "astream"]
PLACE = "ReAct.0/turn.0/tool.0"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "runs.sqlite3") as journal:
        yield journal


class Killed(BaseException):
    """In place of a kill: no code of the library handles it."""


class Payments:
    """An agent that pays, and is killed in the tool as long as ``kills`` is not used up.

    Killed calls of one turn wait for each other, so that none ends the run before the others began.
    """

    def __init__(self, kills: int = 1, calls: int = 1, **options: Any) -> None:
        self.kills, self.paid, self.keys = kills, list[int](), list[str]()
        self.in_flight = threading.Barrier(min(kills, calls))
        self.agent: Any = ReAct("q -> a", tools=[Tool(self.pay, **options)])
        self.calls = [ToolCall(f"c{at}", "pay", {"cents": at + 1}) for at in range(calls)]
        self.agent.set_lm(FakeLM([self.calls]))

    def pay(self, cents: int) -> str:
        self.keys.append(current_call().idempotency_key)
        if self.kills:
            self.kills -= 1
            self.in_flight.wait(timeout=60)
            raise Killed
        self.paid.append(cents)
        return f"paid {cents}"

    def killed(self, journal: Journal) -> None:
        with pytest.raises(Killed):
            journal.run(self.agent, "one", q="?")
        self.agent.set_lm(FakeLM([ToolCall("s", "submit", {"a": "done"})]))


async def go_on(mode: str, journal: Journal, agent: Any) -> Any:
    if mode == "run":
        return await asyncio.to_thread(journal.run, agent, "one", q="?")
    if mode == "arun":
        return await journal.arun(agent, "one", q="?")
    if mode == "stream":
        return list(journal.stream(agent, "one", q="?"))[-1].value
    return [event async for event in journal.astream(agent, "one", q="?")][-1].value


@pytest.mark.parametrize("mode", MODES)
async def test_interrupted_tool_asks_for_a_decision_by_default(journal: Journal, mode: str) -> None:
    payments = Payments()
    payments.killed(journal)
    for _ in range(2):
        with pytest.raises(ApprovalNeeded) as caught:
            await go_on(mode, journal, payments.agent)
    (pending,) = caught.value.pending
    assert pending == PendingCall(PLACE, "pay", {"cents": 1}, "the process ended while the tool ran", "crash")
    assert caught.value.state["run"] == "one"
    assert caught.value.reason == "approval"
    assert [info.state for info in journal.runs()] == ["waiting"]
    assert payments.paid == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("decision", "paid", "content", "is_error"),
    [
        ("rerun", [1], "paid 1", False),
        ({"result": "paid 1, says the bank"}, [], "paid 1, says the bank", False),
        ({"result": {"cents": [1]}}, [], {"cents": [1]}, False),
        ({"deny": "too late"}, [], "The call was denied: too late", True),
    ],
)
async def test_decision_gives_the_call_its_result(
    journal: Journal, mode: str, decision: Any, paid: list[int], content: Any, is_error: bool
) -> None:
    payments = Payments()
    payments.killed(journal)
    journal.decide("one", {PLACE: decision})
    result = await go_on(mode, journal, payments.agent)
    (shown,) = result.steps[0].results
    assert (shown.content, shown.is_error, payments.paid) == (content, is_error, paid)
    assert journal.run(payments.agent, "one").steps == result.steps


async def test_resume_decides_and_goes_on(journal: Journal) -> None:
    payments = Payments()
    payments.killed(journal)
    assert (await journal.aresume(payments.agent, "one", {PLACE: "rerun"})).a == "done"
    assert payments.paid == [1]


def test_crash_after_the_decision_does_not_ask_again(journal: Journal) -> None:
    payments = Payments()
    payments.killed(journal)
    payments.agent.set_lm(FakeLM([sigwire.LMServerError("busy")]))
    with pytest.raises(sigwire.LMServerError):
        journal.resume(payments.agent, "one", {PLACE: {"result": "paid"}})
    payments.agent.set_lm(FakeLM([ToolCall("s", "submit", {"a": "done"})]))
    assert journal.run(payments.agent, "one", q="?").a == "done"


def test_crash_during_the_rerun_asks_again(journal: Journal) -> None:
    payments = Payments(kills=2)
    payments.killed(journal)
    with pytest.raises(Killed):
        journal.resume(payments.agent, "one", {PLACE: "rerun"})
    with pytest.raises(ApprovalNeeded):
        journal.run(payments.agent, "one", q="?")
    journal.resume(payments.agent, "one", {PLACE: "rerun"})
    assert payments.paid == [1]
    assert [effect.attempt for effect in journal.effects("one") if effect.kind == "tool"] == [3]


def test_all_calls_in_flight_are_pending_at_once(journal: Journal) -> None:
    payments = Payments(kills=2, calls=2)
    payments.killed(journal)
    with pytest.raises(ApprovalNeeded) as caught:
        journal.run(payments.agent, "one", q="?")
    assert [call.arguments for call in caught.value.pending] == [{"cents": 1}, {"cents": 2}]
    for decisions in ({}, {PLACE: "rerun"}, {call.id: "rerun" for call in caught.value.pending} | {"other": "rerun"}):
        with pytest.raises(InputError, match="one decision for each"):
            journal.resume(payments.agent, "one", decisions)
    journal.resume(payments.agent, "one", {call.id: "rerun" for call in caught.value.pending})
    assert sorted(payments.paid) == [1, 2]


@pytest.mark.parametrize("decision", ["again", {}, {"result": 1, "deny": "no"}, {"retry": True}, None])
def test_unknown_decision_raises_input_error(journal: Journal, decision: Any) -> None:
    payments = Payments()
    payments.killed(journal)
    with pytest.raises(InputError, match="A decision is"):
        journal.decide("one", {PLACE: decision})


def test_decision_about_an_unknown_run_raises_input_error(journal: Journal) -> None:
    with pytest.raises(InputError, match="no run 'one'"):
        journal.decide("one", {})


@pytest.mark.parametrize("mode", MODES)
async def test_tool_with_on_crash_rerun_runs_again(journal: Journal, mode: str) -> None:
    payments = Payments(on_crash="rerun")
    payments.killed(journal)
    assert (await go_on(mode, journal, payments.agent)).a == "done"
    assert payments.paid == [1]


@pytest.mark.parametrize("mode", MODES)
async def test_tool_with_on_crash_fail_ends_the_run(journal: Journal, mode: str) -> None:
    payments = Payments(on_crash="fail")
    payments.killed(journal)
    with pytest.raises(ToolInterrupted, match=f"pay at {PLACE}"):
        await go_on(mode, journal, payments.agent)
    assert payments.paid == []
    assert (await journal.aresume(payments.agent, "one", {PLACE: {"deny": "no"}})).a == "done"


def test_tool_that_raised_runs_again_if_its_exception_ended_the_run(journal: Journal) -> None:
    fails = [True]

    def pay() -> str:
        if fails.pop() if fails else False:
            raise ConnectionError("bank is closed")
        return "paid"

    agent: Any = ReAct("q -> a", tools=[pay], on_tool_error="abort", lm=FakeLM([ToolCall("c", "pay", {})]))
    with pytest.raises(ConnectionError):
        journal.run(agent, "one", q="?")
    agent.set_lm(FakeLM([ToolCall("s", "submit", {"a": "done"})]))
    assert journal.run(agent, "one", q="?").steps[0].results[0].content == "paid"


@pytest.mark.filterwarnings("ignore::sigwire.ToolWarning")
@pytest.mark.parametrize("error", [RetryTool("wrong account"), ValueError("a bug")])
def test_error_that_the_model_sees_is_a_recorded_result(journal: Journal, error: Exception) -> None:
    ran: list[int] = []

    def pay() -> str:
        ran.append(1)
        raise error

    agent: Any = ReAct("q -> a", tools=[pay], lm=FakeLM([ToolCall("c", "pay", {}), sigwire.LMServerError("busy")]))
    with pytest.raises(sigwire.LMServerError):
        journal.run(agent, "one", q="?")
    agent.set_lm(FakeLM([ToolCall("s", "submit", {"a": "done"})]))
    (result,) = journal.run(agent, "one", q="?").steps[0].results
    assert result.is_error
    assert str(error) in result.content
    assert ran == [1]


# --- current_call -----------------------------------------------------------------------------------------


def test_idempotency_key_is_the_same_in_a_rerun_and_different_at_other_places(journal: Journal) -> None:
    payments = Payments(on_crash="rerun", calls=2)
    payments.agent.set_lm(FakeLM([[payments.calls[0], ToolCall("same", "pay", {"cents": 1})]]))
    payments.agent.toolbox.parallel = 1
    payments.killed(journal)
    journal.run(payments.agent, "one", q="?")
    first, again, second = payments.keys
    assert first == again != second
    assert len(first) == 32
    assert int(first, 16)


async def test_current_call_has_name_arguments_and_place(journal: Journal) -> None:
    seen: list[Any] = []

    async def pay(cents: int) -> str:
        call = current_call()
        seen.append((call.name, dict(call.arguments), call.run, call.place))
        return "paid"

    agent: Any = ReAct("q -> a", tools=[pay])
    for run in (True, False):
        agent.set_lm(FakeLM([ToolCall("c", "pay", {"cents": 1}), ToolCall("s", "submit", {"a": "done"})]))
        await (journal.arun(agent, "one", q="?") if run else agent.acall(q="?"))
    assert seen == [("pay", {"cents": 1}, "one", PLACE), ("pay", {"cents": 1}, "", "")]
    assert current_call().name == ""


def test_key_without_a_journal_is_random_and_constant_in_a_call() -> None:
    keys: list[str] = []

    def pay() -> str:
        keys.extend((current_call().idempotency_key, current_call().idempotency_key))
        return "paid"

    agent: Any = ReAct("q -> a", tools=[pay])
    agent.set_lm(FakeLM([ToolCall("c", "pay", {}), ToolCall("d", "pay", {}), ToolCall("s", "submit", {"a": "done"})]))
    agent(q="?")
    assert keys[0] == keys[1] != keys[2] == keys[3]


# --- tools ------------------------------------------------------------------------------------------------


def test_on_crash_of_another_name_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="on_crash is one of ask, rerun, fail"):
        Tool(len, name="size", on_crash="retry")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("annotations", "on_crash"),
    [
        ({}, "ask"),
        ({"readOnlyHint": True}, "rerun"),
        ({"idempotentHint": True, "destructiveHint": True}, "rerun"),
        ({"readOnlyHint": False}, "ask"),
        ({"readOnlyHint": "yes"}, "ask"),
        (None, "ask"),
    ],
)
def test_mcp_tool_runs_again_if_its_server_allows(annotations: Any, on_crash: str) -> None:
    class Session:
        async def call_tool(self, name: str, *, arguments: Any) -> object:
            return {"content": []}

    definition = {"name": "pay", "inputSchema": {"type": "object"}, "annotations": annotations}
    assert Tool.from_mcp_tool(Session(), definition).on_crash == on_crash
    assert Tool.from_mcp_tool(Session(), definition, on_crash="fail").on_crash == "fail"


def test_on_crash_is_part_of_the_json_of_a_tool() -> None:
    tool = Tool.from_schema("ping", on_crash="rerun")
    assert tool.to_json()["on_crash"] == "rerun"
    assert Tool.from_json(tool.to_json()) == tool != Tool.from_schema("ping")


@pytest.mark.parametrize(
    "decisions",
    [None, "rerun", [(PLACE, "rerun")], {PLACE: "approve"}, {PLACE: {"deny": 3}}, {PLACE: {"result": object()}}],
)
def test_wrong_decision_is_an_input_error(journal: Journal, decisions: Any) -> None:
    payments = Payments()
    payments.killed(journal)
    with pytest.raises(InputError, match="deciding"):
        journal.decide("one", decisions)


@pytest.mark.parametrize("mode", MODES)
async def test_tool_that_a_budget_stops_runs_again_in_the_next_run(journal: Journal, mode: str) -> None:
    inner: Any = sigwire.Predict("number: int -> text", lm=FakeLM([{"text": "one"}]))

    def ask(number: int) -> str:
        return str(inner(number=number).text)

    agent = ReAct(
        "q -> a", tools=[ask], lm=FakeLM([ToolCall("c", "ask", {"number": 1}), ToolCall("s", "submit", {"a": "x"})])
    )
    with sigwire.Budget(calls=1), pytest.raises(sigwire.BudgetSpent):
        await go_on(mode, journal, agent)
    result = await go_on(mode, journal, agent)
    assert result.steps[0].results[0].content == "one"
