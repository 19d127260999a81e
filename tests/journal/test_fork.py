"""Forks of recorded runs: kept effects, new requests, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigwire import (
    ApprovalNeeded,
    FakeLM,
    InputError,
    Journal,
    JournalDivergence,
    Module,
    Parallel,
    Predict,
    ReAct,
    RunIsLive,
    Tool,
    ToolCall,
    current_call,
)
from sigwire.journal.lock import RunLock
from tests.grids import grid

MODES = ["sync", "async", "stream", "astream"]
TURNS = 5


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "runs.sqlite3") as journal:
        yield journal


def run(mode: str, journal: Journal, program: Any, name: str, **inputs: Any) -> Any:
    if mode == "sync":
        return journal.run(program, name, **inputs)
    if mode == "async":
        return asyncio.run(journal.arun(program, name, **inputs))
    if mode == "stream":
        return list(journal.stream(program, name, **inputs))[-1].value

    async def collected() -> list[Any]:
        return [event async for event in journal.astream(program, name, **inputs)]

    return asyncio.run(collected())[-1].value


class Counter:
    """An agent that counts: each turn calls ``add``, the last submits. ``ran`` has the calls, ``keys`` their keys."""

    def __init__(self, turns: int = TURNS, first: int = 0, name: str = "lm", **options: Any) -> None:
        self.ran: list[int] = []
        self.keys: list[str] = []

        def add(n: int) -> int:
            self.ran.append(n)
            self.keys.append(current_call().idempotency_key)
            return n + 1

        answers = [ToolCall(f"c{at}", "add", {"n": at}) for at in range(first, turns - 1)]
        self.lm = FakeLM([*answers, ToolCall("end", "submit", {"answer": name})], model=name)
        self.agent: Any = ReAct("question -> answer", tools=[add], lm=self.lm, **options)


def recorded(journal: Journal) -> Counter:
    first = Counter()
    journal.run(first.agent, "one", question="?")
    return first


# --- what is kept -----------------------------------------------------------------------------------------


@grid("at, mode", range(TURNS), MODES)
def test_fork_at_a_turn_pays_for_the_turns_from_there(journal: Journal, at: int, mode: str) -> None:
    first, other = recorded(journal), Counter(first=at, name="other")
    before = journal.effects("one")
    assert journal.fork("one", at) == "one~1"
    assert len(other.lm.requests) == 0
    result = run(mode, journal, other.agent, "one~1")
    assert (result.answer, len(other.lm.requests), other.ran) == ("other", TURNS - at, list(range(at, TURNS - 1)))
    assert [each.results[0].content for each in result.steps[:-1]] == [1, 2, 3, 4]
    assert (len(result.steps), journal.effects("one")) == (TURNS, before)
    assert journal.run(first.agent, "one").answer == "lm"


def test_fork_takes_another_text_and_another_tool(journal: Journal) -> None:
    recorded(journal)
    fork = journal.fork("one", 3)

    def add(n: int) -> str:
        """Add one, slowly."""
        return f"slow {n + 1}"

    lm = FakeLM([ToolCall("c", "add", {"n": 7}), ToolCall("end", "submit", {"answer": "done"})], model="other")
    agent: Any = ReAct("question -> answer", tools=[add], lm=lm)
    agent.react.signature = agent.react.signature.with_instructions("Count.")
    result = journal.run(agent, fork)
    assert [step.results[0].content for step in result.steps[:-1]] == [1, 2, 3, "slow 8"]
    assert lm.requests[0].messages[0].text.endswith("Task:\nCount.")


def test_results_of_kept_calls_are_replaced(journal: Journal) -> None:
    recorded(journal)
    fork = journal.fork("one", 2, results={"ReAct.0/turn.1/tool.0": {"n": 40}})
    other = Counter(first=4, name="other")
    result = journal.run(other.agent, fork)
    assert [step.results[0].content for step in result.steps[:-1]] == [1, {"n": 40}]
    assert '{"n":40}' in str(other.lm.requests[0].to_json()).replace(" ", "").replace("'", '"')
    assert journal.run(other.agent, fork).steps[1].results[0].content == {"n": 40}


def test_calls_of_a_fork_have_the_keys_of_the_first_run(journal: Journal) -> None:
    first = recorded(journal)
    journal.fork("one", 2, name="what if")
    other = Counter(first=2)
    journal.run(other.agent, "what if")
    assert other.keys == first.keys[2:]


def test_fork_of_a_fork_keeps_what_the_fork_did(journal: Journal) -> None:
    recorded(journal)
    second = Counter(first=1, name="second")
    journal.run(second.agent, journal.fork("one", 1, results={"ReAct.0/turn.0/tool.0": 70}))
    third = Counter(first=3, name="third")
    fork = journal.fork("one~1", 3)
    assert fork == "one~2"
    result = journal.run(third.agent, fork)
    assert [step.results[0].content for step in result.steps[:-1]] == [70, 2, 3, 4]
    assert len(third.lm.requests) == 2
    assert [info.run for info in journal.runs()] == ["one", "one~1", "one~2"]


def test_fork_that_was_killed_goes_on(journal: Journal) -> None:
    recorded(journal)
    fork = journal.fork("one", 1)

    class Killed(BaseException):
        pass

    dead = Counter(first=1)
    respond, asked = dead.lm.respond, iter("12")

    def dying(request: Any) -> Any:
        if next(asked, None) is None:
            raise Killed
        return respond(request)

    dead.lm.respond = dying  # type: ignore[method-assign]
    with pytest.raises(Killed):
        journal.run(dead.agent, fork)
    after = Counter(first=3)
    result = journal.run(after.agent, fork)
    assert (len(result.steps), len(after.lm.requests)) == (TURNS, 2)


# --- places -----------------------------------------------------------------------------------------------


class Team:
    """An agent whose tool ``ask`` is an agent of three turns."""

    def __init__(self, outer: list[Any], inner: list[Any]) -> None:
        def step(n: int) -> int:
            return n + 1

        self.inner_lm, self.outer_lm = FakeLM(inner), FakeLM(outer)
        self.inner: Any = ReAct("q -> a", tools=[step], lm=self.inner_lm)

        def ask(q: str) -> str:
            return str(self.inner(q=q).a)

        self.outer: Any = ReAct("question -> answer", tools=[ask], lm=self.outer_lm)


def steps_of(*numbers: int, end: str) -> list[Any]:
    return [*(ToolCall(f"s{n}", "step", {"n": n}) for n in numbers), ToolCall("e", "submit", {"a": end})]


def test_fork_inside_of_a_tool_keeps_what_the_tool_did_until_there(journal: Journal) -> None:
    asks = [ToolCall("a", "ask", {"q": "x"}), ToolCall("e", "submit", {"answer": "out"})]
    team = Team(asks, steps_of(0, 1, end="in"))
    journal.run(team.outer, "one", question="?")
    place = "ReAct.0/turn.0/tool.0/ReAct.0/turn.1"
    other = Team(asks[1:], steps_of(5, end="anew"))
    result = journal.run(other.outer, journal.fork("one", place))
    assert (len(other.inner_lm.requests), len(other.outer_lm.requests)) == (2, 1)
    assert result.steps[0].results[0].content == "anew"


def test_fork_at_one_of_parallel_calls_keeps_the_others(journal: Journal) -> None:
    ran: list[str] = []

    def look(what: str) -> str:
        ran.append(what)
        return what.upper()

    calls = [ToolCall("a", "look", {"what": "x"}), ToolCall("b", "look", {"what": "y"})]
    lm = FakeLM([calls, ToolCall("e", "submit", {"answer": "1"}), ToolCall("e", "submit", {"answer": "2"})])
    agent: Any = ReAct("question -> answer", tools=[look], lm=lm, parallel=False)
    journal.run(agent, "one", question="?")
    fork = journal.fork("one", "ReAct.0/turn.0/tool.1", results={"ReAct.0/turn.0/tool.0": "given"})
    result = journal.run(agent, fork)
    assert [each.content for each in result.steps[0].results] == ["given", "Y"]
    assert (ran, result.answer) == (["x", "y", "y"], "2")


def test_fork_of_a_program_around_an_agent_keeps_what_the_program_asked_before(journal: Journal) -> None:
    class Plan(Module):
        def __init__(self, counter: Counter, answers: list[Any]) -> None:
            super().__init__()
            self.plan: Any = Predict("goal -> question", lm=FakeLM(answers))
            self.agent = counter.agent

        def forward(self, goal: str) -> Any:
            return self.agent(question=self.plan(goal=goal).question)

    journal.run(Plan(Counter(), [{"question": "?"}]), "one", goal="count")
    other = Counter(first=2, name="other")
    result = journal.run(Plan(other, []), journal.fork("one", 2))
    assert (result.answer, len(other.lm.requests)) == ("other", 3)


def test_fork_of_parallel_programs_pays_for_one(journal: Journal) -> None:
    class Both(Module):
        def __init__(self, answers: list[Any]) -> None:
            super().__init__()
            self.lm = FakeLM(answers)
            self.ask: Any = Predict("q -> a", lm=self.lm)

        def forward(self) -> list[str]:
            asked = Parallel(num_threads=1)([(self.ask, {"q": "x"}), (self.ask, {"q": "y"})])
            return [each.a for each in asked]

    journal.run(Both([{"a": "1"}, {"a": "2"}]), "one")
    place = next(each.place for each in journal.effects("one") if "part.1" in each.place)
    other = Both([{"a": "3"}])
    assert journal.run(other, journal.fork("one", place)) == ["1", "3"]


# --- decisions --------------------------------------------------------------------------------------------


def paying(answers: list[Any], ran: list[int]) -> Any:
    def pay(n: int) -> str:
        ran.append(n)
        return f"paid {n}"

    return ReAct("question -> answer", tools=[Tool(pay, approve=True)], lm=FakeLM(answers))


def test_fork_of_a_waiting_run_waits_and_keeps_decisions_before_the_turn(journal: Journal) -> None:
    ran: list[int] = []
    pays = [ToolCall(f"p{n}", "pay", {"n": n}) for n in (1, 2)]
    agent = paying([*pays, ToolCall("e", "submit", {"answer": "x"})], ran)
    with pytest.raises(ApprovalNeeded) as raised:
        journal.run(agent, "one", question="?")
    with pytest.raises(ApprovalNeeded) as second:
        journal.resume(agent, "one", {raised.value.pending[0].id: "approve"})
    fork = journal.fork("one", 1)
    other = paying([ToolCall("p", "pay", {"n": 3}), ToolCall("e", "submit", {"answer": "y"})], ran)
    with pytest.raises(ApprovalNeeded) as again:
        journal.run(other, fork)
    assert [call.arguments for call in again.value.pending] == [{"n": 3}]
    result = journal.resume(other, fork, {again.value.pending[0].id: "approve"})
    assert ([step.results[0].content for step in result.steps[:-1]], ran) == (["paid 1", "paid 3"], [1, 3])
    assert journal.resume(agent, "one", {second.value.pending[0].id: "approve"}).answer == "x"


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"run": "two", "at": 0}, "has no run 'two'"),
        ({"run": "one", "at": TURNS}, "no turn 5 (forking it). Its turns are 0 to 4"),
        ({"run": "one", "at": -1}, "no turn -1"),
        ({"run": "one", "at": True}, "no place True"),
        ({"run": "one", "at": "ReAct.0/turn.9"}, "no place 'ReAct.0/turn.9'"),
        ({"run": "one", "at": "ReAct.0/turn.1", "name": "one"}, "has a run 'one' already"),
        ({"run": "one", "at": 1, "name": ""}, "the name of the run, a text"),
        ({"run": "one", "at": 1, "results": {"ReAct.0/turn.1/tool.0": 1}}, "ReAct.0/turn.1/tool.0: no call of the run"),
        ({"run": "one", "at": 1, "results": {"ReAct.0/turn.0/ReAct.0/ask.0": 1}}, "no call of the run"),
        ({"run": "one", "at": 1, "results": {"ReAct.0/turn.0/tool.0": object()}}, "has no JSON form"),
    ],
)
def test_fork_that_does_not_fit_is_refused_and_makes_no_run(
    journal: Journal, options: dict[str, Any], problem: str
) -> None:
    recorded(journal)
    with pytest.raises(InputError) as raised:
        journal.fork(**options)
    assert problem in str(raised.value)
    assert [info.run for info in journal.runs()] == ["one"]


def test_live_run_is_not_forked(journal: Journal) -> None:
    recorded(journal)
    lock = RunLock.acquire(journal.path.with_name(f"{journal.path.name}.locks"), "one")
    try:
        with pytest.raises(RunIsLive):
            journal.fork("one", 1)
    finally:
        lock.release()


def test_other_program_under_the_name_of_a_fork_diverges_before_a_request(journal: Journal) -> None:
    recorded(journal)
    fork = journal.fork("one", 3)
    lm = FakeLM([{"answer": "x"}])
    with pytest.raises(JournalDivergence, match="the run 'one' has no effect there"):
        journal.run(Predict("question -> answer", lm=lm), fork, question="?")
    assert lm.requests == []


class Twice(Module):
    """Two predictors, one after the other; ``signature`` is that of the first."""

    def __init__(self, signature: str, answers: list[Any]) -> None:
        super().__init__()
        self.lm = FakeLM(answers)
        self.first: Any = Predict(signature, lm=self.lm, max_reasks=1)
        self.second: Any = Predict("a -> b", lm=self.lm)

    def forward(self, q: str) -> list[Any]:
        first = self.first(q=q).a
        return [first, *(self.second(a=str(first)).b for _ in range(2))]


def test_request_before_the_fork_that_the_first_run_did_not_make_diverges(journal: Journal) -> None:
    journal.run(Twice("q -> a", [{"a": "one"}, {"b": "2"}, {"b": "3"}]), "one", q="x")
    fork = journal.fork("one", "Twice.0/Predict.2")
    assert journal.run(Twice("q -> a", [{"b": "4"}]), fork) == ["one", "2", "4"]
    other = Twice("q -> a: int", [{"a": 1}, {"b": "5"}])
    with pytest.raises(JournalDivergence, match=r"no effect there \(replaying Twice.0/Predict.0/ask.1\)"):
        journal.run(other, journal.fork("one", "Twice.0/Predict.2"))
    assert other.lm.requests == []
