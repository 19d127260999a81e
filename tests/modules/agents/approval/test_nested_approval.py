"""Approval of calls of inner agents: decisions are checked first, states are found by place, approving once runs once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sigwire import ApprovalNeeded, FakeLM, InputError, Journal, ReAct, StateError, Tool, ToolCall
from tests.grids import grid
from tests.modules.agents.approval.test_approval import MODES, call_in, suspended, through_json

SUBMIT = ToolCall("end", "submit", {"a": "done"})


class Bank:
    """Agents that pay, inside tools ``ask`` of agents, ``depth`` deep. ``paid`` has the payments."""

    def __init__(self, depth: int, answers: list[Any] | None = None) -> None:
        self.paid: list[int] = []
        self.reads = 0
        pay = ToolCall("p", "pay", {"cents": 5})
        self.innermost: Any = ReAct("q -> a", tools=[Tool(self.pay, approve=True), self.read])
        self.innermost.set_lm(FakeLM(answers or [pay, SUBMIT]))
        self.agent: Any = self.innermost
        for _ in range(depth):
            self.agent = self._around(self.agent)

    def _around(self, inner: Any) -> Any:
        def ask(q: str) -> str:
            return str(inner(q=q).a)

        agent: Any = ReAct("q -> a", tools=[ask, self.read])
        calls = [ToolCall("o", "ask", {"q": "tea"}), ToolCall("r", "read", {})]
        agent.react.lm = FakeLM([calls, SUBMIT])
        return agent

    def pay(self, cents: int) -> str:
        self.paid.append(cents)
        return f"paid {cents}"

    def read(self) -> str:
        self.reads += 1
        return "page"


# --- decisions are checked before anything runs -------------------------------------------------------------


WRONG = [
    (True, 'A decision is "approve"'),
    ({"deny": 1}, 'A decision is "approve"'),
    ({"edit": {"cents": "many"}}, "pay refuses the edited arguments"),
    ({"edit": {"dollars": 1}}, "pay refuses the edited arguments"),
]


@grid("wrong, depth, mode", WRONG, range(4), MODES)
def test_wrong_decision_at_any_depth_is_refused_before_anything_runs(
    wrong: tuple[Any, str], depth: int, mode: str
) -> None:
    decision, problem = wrong
    bank = Bank(depth)
    error = suspended(bank.agent)
    id = "o/" * depth + "p"
    reads, claims = bank.reads, list[str]()
    with pytest.raises(InputError) as raised:
        call_in(mode, bank.agent, "resume", through_json(error.state), {id: decision}, claim=claims.append)
    assert problem in str(raised.value)
    assert f"about {id}" in str(raised.value)
    assert (bank.paid, bank.reads, claims) == ([], reads, [])
    assert call_in(mode, bank.agent, "resume", error.state, {id: {"edit": {"cents": 7}}})[0].a == "done"
    assert bank.paid == [7]


@pytest.mark.parametrize("decision", [True, {"edit": {"cents": "many"}}])
def test_journal_refuses_a_wrong_decision_about_an_inner_call(decision: Any, tmp_path: Path) -> None:
    bank = Bank(2)
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(ApprovalNeeded) as raised:
            journal.run(bank.agent, "r", q="x")
        (pending,) = raised.value.pending
        with pytest.raises(InputError, match=pending.id.replace(".", r"\.")):
            journal.decide("r", {pending.id: decision})
        assert journal.runs()[0].state == "waiting"
        assert journal.resume(bank.agent, "r", {pending.id: {"edit": {"cents": 4}}}).a == "done"
    assert bank.paid == [4]


# --- the state of an inner agent is found by its place ------------------------------------------------------


class Twice:
    """An agent whose tool ``both`` asks one agent twice."""

    def __init__(self, answers: list[Any], ask: Callable[[Any], str] | None = None) -> None:
        self.bank = Bank(0, answers)
        inner = self.bank.innermost

        def both() -> str:
            return ask(inner) if ask else f"{inner(q='first').a} {inner(q='second').a}"

        self.agent: Any = ReAct("q -> a", tools=[both])
        self.agent.react.lm = FakeLM([ToolCall("o", "both", {}), SUBMIT])


def ask_at_first() -> Callable[[Any], str]:
    """Return the code of a tool that asks the agent when it runs for the first time."""
    times = count()
    return lambda inner: "nothing to pay" if next(times) else str(inner(q="x").a)


def pay(cents: int) -> ToolCall:
    return ToolCall("p", "pay", {"cents": cents})


def submit(text: str) -> ToolCall:
    return ToolCall("end", "submit", {"a": text})


@pytest.mark.parametrize("mode", MODES)
def test_second_run_of_an_agent_that_waits_gets_its_state(mode: str) -> None:
    first, again, second = [ToolCall("r", "read", {}), submit("one")], [submit("one")], [pay(5), submit("two")]
    twice = Twice([*first, second[0], *again, second[1]])
    error = suspended(twice.agent, mode)
    result, _ = call_in(mode, twice.agent, "resume", through_json(error.state), {"o/p": "approve"})
    assert result.steps[0].results[0].content == "one two"
    assert twice.bank.paid == [5]
    tasks = [request.messages[1].text for request in twice.bank.innermost.react.lm.requests]
    assert [task.split()[-1] for task in tasks] == ["first", "first", "second", "first", "second"]


@pytest.mark.parametrize("mode", MODES)
def test_both_runs_of_an_agent_wait_and_each_approval_pays_once(mode: str) -> None:
    twice = Twice([pay(1), submit("one"), pay(2), submit("two")])
    error = suspended(twice.agent, mode)
    with pytest.raises(ApprovalNeeded) as raised:
        call_in(mode, twice.agent, "resume", through_json(error.state), {"o/p": "approve"})
    assert [call.arguments for call in raised.value.pending] == [{"cents": 2}]
    result, _ = call_in(mode, twice.agent, "resume", through_json(raised.value.state), {"o/p": "approve"})
    assert result.steps[0].results[0].content == "one two"
    assert twice.bank.paid == [1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_decision_about_a_run_that_is_made_no_more_is_an_error(mode: str) -> None:
    twice = Twice([pay(5), submit("one")], ask_at_first())
    error = suspended(twice.agent, mode)
    with pytest.raises(StateError, match=r"decisions about p were not used"):
        call_in(mode, twice.agent, "resume", error.state, {"o/p": "approve"})
    assert twice.bank.paid == []


def test_journal_refuses_the_end_of_a_run_that_did_not_use_a_decision(tmp_path: Path) -> None:
    twice = Twice([pay(5), submit("one")], ask_at_first())
    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(ApprovalNeeded) as raised:
            journal.run(twice.agent, "r", q="x")
        with pytest.raises(StateError, match="were not used"):
            journal.resume(twice.agent, "r", {raised.value.pending[0].id: "approve"})
        assert journal.runs()[0].state == "failed"
    assert twice.bank.paid == []


def test_runs_of_a_batch_are_found_by_their_example() -> None:
    """The threads of a batch begin in any order; the second example waits."""
    answers = {"first": [submit("one")], "second": [pay(5), submit("two")]}

    bank = Bank(0)
    bank.innermost.set_lm(FakeLM(lambda request: answers[str(request.messages[1].text).split()[-1]].pop(0)))
    examples = [{"q": "first"}, {"q": "second"}]

    def every() -> str:
        return " ".join(each.a for each in bank.innermost.batch(examples, num_threads=2))

    agent: Any = ReAct("q -> a", tools=[every])
    agent.react.lm = FakeLM([ToolCall("o", "every", {}), SUBMIT])
    error = suspended(agent)
    answers["first"].append(submit("one"))
    assert agent.resume(through_json(error.state), {"o/p": "approve"}).steps[0].results[0].content == "one two"
    assert bank.paid == [5]


def test_run_of_a_call_inside_of_the_call_does_not_take_the_state() -> None:
    """An agent that the tool asks first has a tool that asks the agent of the state."""
    bank = Bank(0, [submit("inner"), pay(5), submit("inner"), submit("own")])

    def deep() -> str:
        return str(bank.innermost(q="deep").a)

    middle: Any = ReAct("q -> a", tools=[deep])
    middle.react.lm = FakeLM([ToolCall("d", "deep", {}), submit("middle")] * 2)

    def both() -> str:
        return f"{middle(q='first').a} {bank.innermost(q='own').a}"

    agent: Any = ReAct("q -> a", tools=[both])
    agent.react.lm = FakeLM([ToolCall("o", "both", {}), SUBMIT])
    error = suspended(agent)
    assert agent.resume(error.state, {"o/p": "approve"}).steps[0].results[0].content == "middle own"
    assert bank.paid == [5]


def test_state_without_a_place_resumes_the_first_run_of_the_signature() -> None:
    """States of earlier versions have no places and no schemas."""
    bank = Bank(1)
    state = through_json(suspended(bank.agent).state)
    for each in (state, state["inner"]["o"]):
        for name in ("place", "schemas", "decided"):
            del each[name]
    assert bank.agent.resume(state, {"o/p": "approve"}).a == "done"
    assert bank.paid == [5]
