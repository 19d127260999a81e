"""Tool calls that wait for a decision: what runs, what waits, the state, and the run that goes on in any way."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigwire
from sigwire import (
    AgentRun,
    ApprovalAsked,
    ApprovalNeeded,
    CodeAct,
    ConfigurationError,
    FakeLM,
    Finished,
    InputError,
    Journal,
    PendingCall,
    ReAct,
    StateError,
    Tool,
    Toolbox,
    ToolCall,
    ToolDefinitionError,
    ToolDone,
)
from tests.strategies import at_most

MODES = ["blocking", "awaited", "streamed", "astreamed"]
SUBMIT = ToolCall("end", "submit", {"a": "done"})


class Shop:
    """An agent that pays and reads; ``log`` has the calls that ran."""

    def __init__(self, calls: list[ToolCall], approve: Any = True, parallel: Any = 8, **options: Any) -> None:
        self.log: list[str] = []
        tools = [Tool(self.pay, approve=approve), Tool(self.read)]
        self.agent: Any = ReAct("q -> a", tools=tools, parallel=parallel, **options)
        self.agent.set_lm(FakeLM([calls, SUBMIT]))

    def pay(self, cents: int) -> str:
        self.log.append(f"pay {cents}")
        return f"paid {cents}"

    def read(self, page: int) -> str:
        self.log.append(f"read {page}")
        return f"page {page}"


def pay(id: str, cents: int = 500) -> ToolCall:
    return ToolCall(id, "pay", {"cents": cents})


def read(id: str, page: int = 1) -> ToolCall:
    return ToolCall(id, "read", {"page": page})


def call_in(mode: str, program: Any, method: str = "", *args: Any, **inputs: Any) -> tuple[Any, list[Any]]:
    """Call ``program`` or its method (``resume``) in a mode; return the value and the events."""
    names = {"blocking": "", "awaited": "a", "streamed": "stream", "astreamed": "astream"}
    name = names[mode]
    if method:
        name = {"blocking": method, "awaited": f"a{method}", "streamed": f"{method}_stream"}.get(
            mode, f"a{method}_stream"
        )
    target = getattr(program, name or "__call__") if name != "a" else program.acall
    if mode == "blocking":
        return target(*args, **inputs), []
    if mode == "awaited":
        return asyncio.run(target(*args, **inputs)), []
    events: list[Any] = []
    try:
        if mode == "streamed":
            events.extend(target(*args, **inputs))
        else:
            asyncio.run(_collect(target, events, args, inputs))
    except ApprovalNeeded as error:
        error.events = events  # type: ignore[attr-defined]
        raise
    assert isinstance(events[-1], Finished)
    return events[-1].value, events


async def _collect(start: Any, events: list[Any], args: Any, inputs: Any) -> None:
    async for event in start(*args, **inputs):
        events.append(event)


def suspended(agent: Any, mode: str = "blocking") -> Any:
    with pytest.raises(ApprovalNeeded) as raised:
        call_in(mode, agent, q="x")
    return raised.value


def through_json(state: object) -> Any:
    return json.loads(json.dumps(state))


# --- what waits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_calls_without_approval_run_and_the_others_wait(mode: str) -> None:
    shop = Shop([pay("p", 5), read("r")])
    error = suspended(shop.agent, mode)
    assert shop.log == ["read 1"]
    assert error.pending == (PendingCall("p", "pay", {"cents": 5}, "the tool needs approval", "approval"),)
    assert error.reason == error.termination_reason == "approval"
    assert [result.text for result in AgentRun.of(error).steps[0].results][1] == "page 1"
    if mode.endswith("streamed"):
        *_, last = error.events
        assert last == ApprovalAsked("p", "pay", {"cents": 5}, "the tool needs approval", path="self", turn=0)
        assert [event.result.name for event in error.events if isinstance(event, ToolDone)] == ["read"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("decision", "log", "shown", "is_error"),
    [
        ("approve", ["pay 5"], "paid 5", False),
        ({"edit": {"cents": 4}}, ["pay 4"], "paid 4", False),
        ({"deny": "too much"}, [], "The call was denied: too much", True),
        ("deny", [], "The call was denied: no reason was given", True),
    ],
)
def test_resumed_run_ends_with_the_decision(
    mode: str, decision: Any, log: list[str], shown: str, is_error: bool
) -> None:
    state = through_json(suspended(Shop([pay("p", 5), read("r")]).agent).state)
    other = Shop([pay("unused")])
    other.agent.set_lm(FakeLM([SUBMIT]))
    result, events = call_in(mode, other.agent, "resume", state, {"p": decision})
    assert (result.a, other.log, result.termination_reason) == ("done", log, "submit")
    step = result.steps[0]
    assert [(each.text, each.is_error) for each in step.results] == [(shown, is_error), ("page 1", False)]
    assert step.calls[0].arguments == result.history.messages[1].tool_calls[0].arguments
    assert len(result.attempts) == 2
    if events:
        assert [event.result.name for event in events if isinstance(event, ToolDone)] == ["pay", "submit"]


def test_edited_call_is_shown_to_the_model_as_what_ran() -> None:
    shop = Shop([pay("p", 5)])
    result = shop.agent.resume(suspended(shop.agent).state, {"p": {"edit": {"cents": 4}}})
    assert result.history.messages[1].tool_calls[0].arguments == {"cents": 4}
    assert result.steps[0].calls[0].arguments == {"cents": 4}


def test_invalid_call_is_answered_and_not_asked_about() -> None:
    shop = Shop([ToolCall("p", "pay", {"cents": "many"})])
    result = shop.agent(q="x")
    assert result.steps[0].results[0].is_error
    assert shop.log == []


@pytest.mark.parametrize(
    ("answer", "log", "text"),
    [
        (True, ["pay 5"], "paid 5"),
        (False, [], "The call was denied: no reason was given"),
        ("over the limit", [], "The call was denied: over the limit"),
        (7, [], "The call was denied: the approval function returned int, not True, False, a reason or None"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_function_decides_about_a_call(mode: str, is_async: bool, answer: Any, log: list[str], text: str) -> None:
    asked: list[ToolCall] = []

    def decide(call: ToolCall) -> object:
        asked.append(call)
        return answer

    async def adecide(call: ToolCall) -> object:
        await asyncio.sleep(0)
        return decide(call)

    shop = Shop([pay("p", 5)], approve=adecide if is_async else decide)
    result, _ = call_in(mode, shop.agent, q="x")
    assert (shop.log, result.steps[0].results[0].text) == (log, text)
    assert [call.arguments for call in asked] == [{"cents": 5}]


def test_function_that_raises_denies_and_none_asks_a_person() -> None:
    def broken(call: ToolCall) -> bool:
        raise LookupError("no such customer")

    denied = Shop([pay("p")], approve=broken)
    assert "LookupError: no such customer" in denied.agent(q="x").steps[0].results[0].text
    asks = Shop([pay("p", 5)], approve=lambda call: None if call.arguments["cents"] > 3 else True)
    assert suspended(asks.agent).pending[0].why == "the approval function left it to a person"


def test_approval_of_the_agent_is_for_tools_without_their_own() -> None:
    shop = Shop([pay("p"), read("r")], approve=False)
    shop.agent.toolbox.rules = ReAct("q -> a", approve=True).toolbox.rules
    assert [call.id for call in suspended(shop.agent).pending] == ["r"]
    assert shop.log == ["pay 500"]


def test_calls_after_a_waiting_call_wait_when_the_order_is_fixed() -> None:
    shop = Shop([read("r1"), pay("p"), read("r2", 2)], parallel=False)
    error = suspended(shop.agent)
    assert shop.log == ["read 1"]
    shop.agent.resume(error.state, {"p": "approve"})
    assert shop.log == ["read 1", "pay 500", "read 2"]


def test_all_waiting_calls_of_a_turn_are_asked_about_at_once() -> None:
    shop = Shop([pay("p1"), read("r"), pay("p2", 2)], parallel=False)
    error = suspended(shop.agent)
    assert [call.id for call in error.pending] == ["p1", "p2"]
    result = shop.agent.resume(error.state, {"p1": "deny", "p2": "approve"})
    assert shop.log == ["read 1", "pay 2"]
    assert [each.is_error for each in result.steps[0].results] == [True, False, False]


def test_function_is_asked_once_about_a_call_of_a_turn_that_waits() -> None:
    asked: list[str] = []

    def decide(call: ToolCall) -> bool | None:
        asked.append(call.id)
        return None if call.id == "p1" else True

    shop = Shop([pay("p1"), pay("p2")], approve=decide, parallel=False)
    error = suspended(shop.agent)
    shop.agent.resume(through_json(error.state), {"p1": "approve"})
    assert (asked, shop.log) == (["p1", "p2"], ["pay 500", "pay 500"])


def test_toolbox_without_an_agent_asks_as_well() -> None:
    with pytest.raises(ApprovalNeeded):
        Toolbox([Tool(len, name="count", description="", parameters={}, approve=True)])([ToolCall("c", "count", {})])


class McpServer:
    async def call_tool(self, name: str, *, arguments: dict[str, Any]) -> object:
        return {"content": []}


@pytest.mark.parametrize(("hints", "expected"), [({"destructiveHint": True}, True), ({}, None), (None, None)])
def test_destructive_mcp_tool_asks_by_default(hints: Any, expected: Any) -> None:
    definition = {
        "name": "drop",
        "inputSchema": {"type": "object"},
        **({"annotations": hints} if hints is not None else {}),
    }
    assert Tool.from_mcp_tool(McpServer(), definition).approve is expected
    assert Tool.from_mcp_tool(McpServer(), definition, approve=False).approve is False


def test_tool_with_an_approval_function_has_json_that_asks() -> None:
    tool = Tool(len, name="count", parameters={}, approve=lambda call: True, max_calls=2, repeat=True)
    data = tool.to_json()
    assert (data["approve"], data["max_calls"], data["repeat"]) == (True, 2, True)
    assert Tool.from_json(data, len).approve is True


def test_wrong_approve_is_refused() -> None:
    wrong: Any = "yes"
    with pytest.raises(ToolDefinitionError, match="approve is True, False or a function"):
        Tool(len, name="count", parameters={}, approve=wrong)
    with pytest.raises(ConfigurationError, match="approve is True, False or a function"):
        ReAct("q -> a", approve=wrong)


# --- the state --------------------------------------------------------------------------------------------


def test_state_has_no_code_no_class_path_and_no_key() -> None:
    shop = Shop([pay("p"), read("r")], secret="a secret of the shop")
    shop.agent.react.config["extra_headers"] = {"authorization": "Bearer sk-1234567890"}
    text = json.dumps(suspended(shop.agent).state)
    assert [found for found in ("sk-1234567890", "a secret", "sigwire", "Shop") if found in text] == []
    assert "a secret" not in str(vars(shop.agent))


@pytest.mark.parametrize(
    ("decisions", "problem"),
    [
        ({}, "missing or unknown: p"),
        ({"p": "approve", "x": "approve"}, "missing or unknown: x"),
        ({"p": "maybe"}, 'A decision is "approve"'),
        ({"p": {"edit": {"cents": "many"}}}, "pay refuses the edited arguments"),
        ({"p": {"edit": {"cents": object()}}}, "are no JSON"),
        ([], "decisions are a dict"),
    ],
)
def test_decisions_that_do_not_fit_are_refused_and_nothing_runs(decisions: Any, problem: str) -> None:
    shop = Shop([pay("p")])
    state = suspended(shop.agent).state
    with pytest.raises(InputError, match=problem):
        shop.agent.resume(state, decisions)
    assert shop.log == []
    assert shop.agent.resume(state, {"p": "approve"}).a == "done"


def changed(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda state: {**state, **changes}


def without_calls(state: dict[str, Any]) -> object:
    return {name: value for name, value in state.items() if name != "calls"}


def other_arguments(state: dict[str, Any]) -> object:
    """Return a state that shows one call, and would run another."""
    (call,) = state["calls"]
    return {**state, "calls": [{**call, "arguments": {"amount": 999}}]}


def no_state(state: dict[str, Any]) -> object:
    return "text"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (no_state, "no state of ApprovalNeeded"),
        (changed(format=2), "no state of ApprovalNeeded"),
        (changed(signature="0"), "the signature of the agent is another"),
        (changed(tools={"gone": "0"}), "the tool 'gone' is gone"),
        (changed(tools={"pay": "0"}), "the tool 'pay' has another description or schema"),
        (changed(run="r"), "the run has a journal"),
        (changed(history={"messages": 3}), "its state cannot be read"),
        (without_calls, "its state lacks calls"),
        (other_arguments, "the pending call 'p' is not one of its calls"),
        (
            changed(pending=[{"id": "q", "name": "pay", "arguments": {}}]),
            "the pending call 'q' is not one of its calls",
        ),
        (changed(calls=[{"type": "tool_call"}]), "its state cannot be read|its calls cannot be read"),
    ],
)
def test_state_that_does_not_fit_is_refused(change: Any, problem: str) -> None:
    shop = Shop([pay("p")])
    state = suspended(shop.agent).state
    with pytest.raises(StateError, match=problem):
        shop.agent.resume(change(state), {"p": "approve"})
    assert shop.log == []


def test_signed_state_is_resumed_unchanged_only() -> None:
    shop = Shop([pay("p")], secret=b"key")
    state = through_json(suspended(shop.agent).state)
    forged = {**state, "pending": [{**state["pending"][0], "why": "harmless"}]}
    for wrong in (forged, {name: value for name, value in state.items() if name != "mac"}):
        with pytest.raises(StateError, match="did not sign it"):
            shop.agent.resume(wrong, {"p": "approve"})
    assert shop.agent.resume(state, {"p": "approve"}).a == "done"


@pytest.mark.parametrize("change", [{"mac": "\u00e9"}, {3: "a key that is no text"}])
def test_forged_signature_of_any_text_is_refused(change: dict[Any, Any]) -> None:
    shop = Shop([pay("p")], secret=b"key")
    state = through_json(suspended(shop.agent).state)
    with pytest.raises(StateError, match="did not sign it"):
        shop.agent.resume({**state, **change}, {"p": "approve"})
    assert shop.log == []


@pytest.mark.parametrize("mode", MODES)
def test_claimed_state_runs_its_calls_once(mode: str) -> None:
    shop = Shop([pay("p")])
    state = suspended(shop.agent).state
    used: set[str] = set()

    def claim(id: str) -> bool:
        is_first = id not in used
        used.add(id)
        return is_first

    call_in(mode, shop.agent, "resume", state, {"p": "approve"}, claim=claim)
    with pytest.raises(StateError, match="The state is claimed"):
        call_in(mode, shop.agent, "resume", state, {"p": "approve"}, claim=claim)
    assert shop.log == ["pay 500"]


def test_run_can_wait_twice() -> None:
    shop = Shop([pay("p1")])
    shop.agent.set_lm(FakeLM([pay("p1"), pay("p2", 2), SUBMIT]))
    state = suspended(shop.agent).state
    with pytest.raises(ApprovalNeeded) as again:
        shop.agent.resume(through_json(state), {"p1": "approve"})
    assert [call.id for call in again.value.pending] == ["p2"]
    result = shop.agent.resume(through_json(again.value.state), {"p2": "approve"})
    assert (shop.log, len(result.steps)) == (["pay 500", "pay 2"], 3)


def test_inputs_of_a_resumed_run_have_their_types() -> None:
    import datetime

    agent: Any = ReAct("on: datetime.date -> a", tools=[Tool(lambda: "x", name="f", description="", approve=True)])
    agent.set_lm(FakeLM([ToolCall("f", "f", {}), SUBMIT]))
    with pytest.raises(ApprovalNeeded) as raised:
        agent(on=datetime.date(2026, 1, 2))
    result = agent.resume(through_json(raised.value.state), {"f": "approve"})
    assert result.history.messages[0]["on"] == datetime.date(2026, 1, 2)


PROCESS = """
import json, sys
from sigwire import FakeLM, ReAct, Tool, ToolCall
log = []
def pay(cents: int) -> str:
    log.append(cents)
    return f"paid {cents}"
def read(page: int) -> str:
    raise AssertionError("it ran in the other process")
agent = ReAct("q -> a", tools=[Tool(pay, approve=True), Tool(read)], secret="key")
agent.set_lm(FakeLM([ToolCall("end", "submit", {"a": "done"})]))
state, decisions = json.load(sys.stdin)
result = agent.resume(state, decisions)
print(json.dumps([result.a, log, [each.text for each in result.steps[0].results]]))
"""


@pytest.mark.long
def test_other_process_resumes_the_run() -> None:
    shop = Shop([pay("a", 1), read("r"), pay("b", 2), pay("c", 3)], secret="key")
    state = suspended(shop.agent).state
    decisions = {"a": "approve", "b": {"edit": {"cents": 20}}, "c": {"deny": "no"}}
    given = json.dumps([state, decisions])
    done = subprocess.run([sys.executable, "-c", PROCESS], input=given, capture_output=True, text=True, check=True)
    texts = ["paid 1", "page 1", "paid 20", "The call was denied: no"]
    assert json.loads(done.stdout) == ["done", [1, 20], texts]


DECISIONS = st.sampled_from(["approve", "deny", "edit"])


@pytest.mark.long
@at_most(40)
@given(st.lists(st.tuples(st.booleans(), DECISIONS), min_size=1, max_size=5), st.booleans())
def test_any_mix_of_decisions_gives_each_call_one_result(calls: list[tuple[bool, str]], in_parallel: bool) -> None:
    made = [pay(f"c{at}", at) if asks else read(f"c{at}", at) for at, (asks, _) in enumerate(calls)]
    shop = Shop(made, parallel=4 if in_parallel else False)
    decisions: dict[str, Any] = {}
    for at, (asks, decision) in enumerate(calls):
        if asks:
            decisions[f"c{at}"] = {"edit": {"cents": at + 100}} if decision == "edit" else decision
    result = shop.agent.resume(through_json(suspended(shop.agent).state), decisions) if decisions else shop.agent(q="x")
    step = result.steps[0]
    assert [each.id for each in step.results] == [call.id for call in made]
    ran = [_expected(at, asks, decision) for at, (asks, decision) in enumerate(calls)]
    assert sorted(shop.log) == sorted(line for line in ran if line)
    assert [each.is_error for each in step.results] == [not line for line in ran]


def _expected(at: int, asks: bool, decision: str) -> str:
    if not asks:
        return f"read {at}"
    return {"approve": f"pay {at}", "edit": f"pay {at + 100}"}.get(decision, "")


# --- agents inside tools -------------------------------------------------------------------------------


class Nested:
    """An agent whose tool is an agent."""

    def __init__(self) -> None:
        self.shop = Shop([pay("p", 5)])

        def order(what: str) -> str:
            """Order something."""
            return str(self.shop.agent(q=what).a)

        self.agent: Any = ReAct("q -> b", tools=[order, self.shop.read])
        calls = [ToolCall("o", "order", {"what": "tea"}), read("r", 7)]
        self.agent.set_lm(FakeLM([calls, ToolCall("end", "submit", {"b": "served"})]))


@pytest.mark.parametrize("mode", MODES)
def test_inner_agent_waits_by_its_path_and_is_resumed(mode: str) -> None:
    nested = Nested()
    error = suspended(nested.agent, mode)
    assert [(call.id, call.name) for call in error.pending] == [("o/p", "pay")]
    assert nested.shop.log == ["read 7"]
    if mode.endswith("streamed"):
        assert [event.id for event in error.events if isinstance(event, ApprovalAsked)] == ["o/p"]
    result, _ = call_in(mode, nested.agent, "resume", through_json(error.state), {"o/p": "approve"})
    assert (result.b, nested.shop.log) == ("served", ["read 7", "pay 5"])
    assert [each.text for each in result.steps[0].results] == ["done", "page 7"]


# --- with a journal -------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "runs.sqlite3") as journal:
        yield journal


PLACE = "ReAct.0/turn.0/tool.0/approval.0"


def journaled(journal: Journal, mode: str, agent: Any) -> Any:
    """Run in a mode; return the value or the error."""
    names = {"blocking": "run", "awaited": "arun", "streamed": "stream", "astreamed": "astream"}

    async def collected() -> list[Any]:
        return [event async for event in getattr(journal, names[mode])(agent, "r", q="x")]

    if mode == "blocking":
        return journal.run(agent, "r", q="x")
    if mode == "awaited":
        return asyncio.run(journal.arun(agent, "r", q="x"))
    events = list(journal.stream(agent, "r", q="x")) if mode == "streamed" else asyncio.run(collected())
    return events[-1].value


@pytest.mark.parametrize("mode", MODES)
def test_run_of_a_journal_waits_and_goes_on(journal: Journal, mode: str) -> None:
    shop = Shop([pay("p", 5), read("r")])
    for _ in range(2):  # the question is not answered by starting the run again
        with pytest.raises(ApprovalNeeded) as raised:
            journaled(journal, mode, shop.agent)
        assert [(call.id, call.kind) for call in raised.value.pending] == [(PLACE, "approval")]
        assert journal.runs()[0].state == "waiting"
    with pytest.raises(StateError, match="the run has a journal"):
        shop.agent.resume(raised.value.state, {PLACE: "approve"})
    journal.decide("r", {PLACE: {"edit": {"cents": 4}}})
    result = journaled(journal, mode, shop.agent)
    assert (result.a, shop.log) == ("done", ["read 1", "pay 4"])
    assert journaled(journal, mode, shop.agent).a == "done"
    assert shop.log == ["read 1", "pay 4"]


def test_journal_refuses_wrong_decisions_and_takes_a_better_edit(journal: Journal) -> None:
    shop = Shop([pay("p", 5)])
    with pytest.raises(ApprovalNeeded):
        journal.run(shop.agent, "r", q="x")
    refused: list[Any] = [{}, {"x": "approve"}, {PLACE: "rerun"}]
    for wrong in refused:
        with pytest.raises(InputError):
            journal.resume(shop.agent, "r", wrong)
    with pytest.raises(InputError, match="pay refuses the edited arguments"):
        journal.resume(shop.agent, "r", {PLACE: {"edit": {"cents": "many"}}})
    assert journal.resume(shop.agent, "r", {PLACE: {"deny": "no"}}).steps[0].results[0].is_error
    assert shop.log == []


def test_crash_after_the_approval_does_not_ask_again(journal: Journal) -> None:
    class Killed(BaseException):
        pass

    asked: list[str] = []
    kills = [Killed()]

    def decide(call: ToolCall) -> bool:
        asked.append(call.id)
        return True

    def ship(box: int) -> str:
        if kills:
            raise kills.pop()
        return f"shipped {box}"

    agent: Any = ReAct("q -> a", tools=[Tool(ship, approve=decide, on_crash="rerun")])
    agent.set_lm(FakeLM([ToolCall("s", "ship", {"box": 1}), SUBMIT]))
    with pytest.raises(Killed):
        journal.run(agent, "r", q="x")
    assert journal.run(agent, "r", q="x").steps[0].results[0].text == "shipped 1"
    assert asked == ["s"]


def test_inner_agent_of_a_journal_waits_at_its_place(journal: Journal) -> None:
    nested = Nested()
    with pytest.raises(ApprovalNeeded) as raised:
        journal.run(nested.agent, "r", q="x")
    (pending,) = raised.value.pending
    assert pending.id.startswith("ReAct.0/turn.0/tool.0/ReAct.0/turn.0/tool.0")
    assert journal.resume(nested.agent, "r", {pending.id: "approve"}).b == "served"
    assert nested.shop.log == ["read 7", "pay 5"]


@pytest.mark.parametrize("mode", ["blocking", "streamed"])
def test_code_waits_with_a_journal(journal: Journal, mode: str) -> None:
    pytest.importorskip("pydantic_monty")
    shop = Shop([])
    agent: Any = CodeAct("q -> a", tools=[Tool(shop.pay, approve=True), shop.read])
    code = "page = read(page=1)\nsubmit(a=pay(cents=5) + page)"
    agent.set_lm(FakeLM([{"reasoning": "Pay.", "code": code}]))
    with pytest.raises(ApprovalNeeded) as raised:
        journaled(journal, mode, agent)
    (pending,) = raised.value.pending
    journal.decide("r", {pending.id: "approve"})
    assert journaled(journal, mode, agent).a == "paid 5page 1"
    assert shop.log == ["read 1", "pay 5"]


def test_code_without_a_journal_cannot_be_resumed() -> None:
    pytest.importorskip("pydantic_monty")
    shop = Shop([])
    agent: Any = CodeAct("q -> a", tools=[Tool(shop.pay, approve=True)])
    agent.set_lm(FakeLM([{"reasoning": "Pay.", "code": "pay(cents=5)"}]))
    error = suspended(agent)
    with pytest.raises(StateError, match="runs code, whose state is not kept"):
        agent.resume(error.state, {"code_0_0": "approve"})
    assert shop.log == []


def test_saved_program_keeps_the_rules(tmp_path: Path) -> None:
    agent: Any = ReAct("q -> a", tools=[_listed], approve=True, max_calls=3, max_repeats=None)
    sigwire.save_program(agent, tmp_path / "agent.json")
    names: Mapping[str, Any] = {"functions": [_listed]}
    loaded: Any = sigwire.load_program(tmp_path / "agent.json", **names)
    assert loaded.toolbox.rules == agent.toolbox.rules


def _listed(page: int) -> str:
    return f"page {page}"
