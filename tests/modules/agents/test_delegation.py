"""Guards on results (``then``), nested calls (``max_depth``), injected parameters, histories without tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

import sigwire
from sigwire import (
    RLM,
    ApprovalNeeded,
    Cassette,
    ChainOfThought,
    CodeAct,
    ConfigurationError,
    FakeLM,
    History,
    Injected,
    InputError,
    Journal,
    Message,
    Module,
    Predict,
    ReAct,
    Tool,
    ToolCall,
    ToolDefinitionError,
    ToolFailed,
    WebSearch,
    context,
)
from sigwire.modules.agents.toolbox import Toolbox
from tests.modules.agents.test_module_tools import DONE, outer, read, with_lm
from tests.modules.code.driving import MODES, called

# --- then ---------------------------------------------------------------------------------------------------


def balance(account: int) -> int:
    return account * 100


async def awaited_balance(account: int) -> int:
    await asyncio.sleep(0)
    return account * 100


class Session:
    async def call_tool(self, name: str, *, arguments: dict[str, Any]) -> object:
        return {"content": [], "structuredContent": arguments["account"] * 100}


def mcp_balance() -> Tool:
    schema = {"type": "object", "properties": {"account": {"type": "integer"}}}
    return Tool.from_mcp_tool(Session(), {"name": "balance", "inputSchema": schema}, result_mode="structured")


def langchain_balance() -> Tool:
    from langchain_core.tools import tool

    @tool
    def balance(account: int) -> int:
        "The balance."
        return account * 100

    return Tool.from_langchain(balance)


def module_balance() -> Tool:
    answer = {"reasoning": "r", "cents": 500}
    return Tool(with_lm(ChainOfThought("account: int -> cents: int"), answer, answer), name="balance")


KINDS: dict[str, Callable[[], Tool]] = {
    "function": lambda: Tool(balance),
    "async function": lambda: Tool(awaited_balance),
    "MCP": mcp_balance,
    "LangChain": langchain_balance,
    "module": module_balance,
}


def euros(cents: Any) -> str:
    return f"{cents / 100:.2f} EUR"


async def awaited_euros(cents: Any) -> str:
    await asyncio.sleep(0)
    return euros(cents)


@pytest.mark.parametrize("guard", [euros, awaited_euros])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_then_gets_the_value_that_the_model_would_see(kind: str, mode: str, guard: Any) -> None:
    tool = KINDS[kind]().then(guard).then(lambda text: {"text": text})
    result = called(mode, outer([tool], tool.name, {"account": 5}), q="x")
    assert read(result) == {"text": "5.00 EUR"}


@pytest.mark.parametrize("guard", [euros, awaited_euros])
def test_then_holds_for_direct_calls(guard: Any) -> None:
    for make in (KINDS["function"], KINDS["async function"]):
        tool = make().then(guard)
        assert tool(account=5) == asyncio.run(tool.acall(account=5)) == "5.00 EUR"


def test_then_keeps_the_tool_and_its_texts() -> None:
    tool = module_balance()
    guarded = tool.then(euros)
    assert guarded.handler is tool.handler
    assert (guarded.spec, tool.guards, guarded != tool) == (tool.spec, (), True)
    assert guarded == tool.then(euros)
    assert guarded.described(sigwire.ToolText("Other.")).guards == (euros,)


def test_copy_of_a_guarded_tool_has_a_copy_of_its_module_and_the_guard() -> None:
    expert = with_lm(Predict("question -> answer"), {"answer": "a"}, {"answer": "b"})
    agent = ReAct("q -> a", tools=[Tool(expert, name="ask").then(str.upper)])
    copied = agent.deepcopy().tools["ask"]
    assert (agent.tools["ask"].handler is expert, copied.handler is expert) == (True, False)
    assert (agent.tools["ask"](question="x"), copied(question="x")) == ("A", "B")
    assert "tools['ask']" in [name for name, _ in agent.named_predictors()]


@pytest.mark.parametrize("mode", MODES)
def test_then_refuses_a_result(mode: str) -> None:
    def refuse(cents: int) -> str:
        raise ToolFailed("not for you")

    result = called(mode, outer([Tool(balance).then(refuse)], "balance", {"account": 5}), q="x")
    assert (result.steps[0].results[0].is_error, read(result)) == (True, "not for you")


def test_then_sees_each_value_once_also_in_a_journal(tmp_path: Path) -> None:
    seen: list[Any] = []

    def note(cents: int) -> int:
        seen.append(cents)
        return cents + 1

    def agent(*answers: Any) -> Any:
        made: Any = ReAct("q -> a", tools=[Tool(balance).then(note)])
        return with_lm(made, *answers)

    with Journal(tmp_path / "runs.sqlite3") as journal:
        with pytest.raises(sigwire.LMServerError):
            journal.run(agent(ToolCall("c", "balance", {"account": 5}), sigwire.LMServerError("down")), "one", q="x")
        assert read(journal.run(agent(DONE), "one", q="x")) == 501
    assert seen == [500]


def test_then_of_a_tool_that_nothing_here_runs_is_refused() -> None:
    for tool, guard in ((Tool.web_search(WebSearch()), euros), (Tool(balance), 3)):
        with pytest.raises(ToolDefinitionError):
            tool.then(guard)  # type: ignore[arg-type]


def test_then_sees_a_list_of_what_a_generator_yields() -> None:
    def rows(n: int) -> Iterator[int]:
        yield from range(n)

    assert Tool(rows).then(sum)(n=4) == 6


# --- max_depth ----------------------------------------------------------------------------------------------


class Selfish(Module):
    """An agent whose tool is the agent."""

    def __init__(self, kind: Any = ReAct) -> None:
        self.depths = 0
        self.agent: Any = kind("question -> answer", tools=[Tool(self.ask)])
        self.agent.set_lm(FakeLM(self.answer))

    def ask(self, question: str) -> str:
        self.depths += 1
        return str(self.agent(question=question).answer)

    def answer(self, request: Any) -> Any:
        if request.tools:
            results = [result for message in request.messages for result in message.tool_results]
            if not results:
                return ToolCall("c", "ask", {"question": "again"})
            return ToolCall("s", "submit", {"answer": str(results[-1].content)})
        return {
            "reasoning": "",
            "code": "try:\n    found = ask('again')\nexcept Exception as e:\n    found = str(e)\nsubmit(answer=found)",
        }

    def forward(self, question: str) -> Any:
        return self.agent(question=question)

    async def aforward(self, question: str) -> Any:
        return await self.agent.acall(question=question)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [ReAct, CodeAct, RLM])
def test_agent_that_calls_itself_ends_within_max_depth(kind: Any, mode: str) -> None:
    program = Selfish(kind)
    with context(max_depth=3):
        result = called(mode, program, question="x")
    assert (
        result.answer
        == "The call was not run: calls of tools are nested 3 deep, which is the limit (max_depth). Do without it."
    )
    assert program.depths == 3


def test_depth_is_eight_unless_it_is_set() -> None:
    program = Selfish()
    program(question="x")
    assert program.depths == 8


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
def test_depth_below_one_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_depth"), context(max_depth=wrong):
        pass


# --- injected parameters ------------------------------------------------------------------------------------


class User:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"User({self.name})"


def refund(order: int, user: Injected[User]) -> str:
    """Refund an order.

    Args:
        order: its number
        user: the customer
    """
    return f"{order} for {user.name}"


async def awaited_refund(order: int, user: Injected[User]) -> str:
    await asyncio.sleep(0)
    return refund(order, user)


class Refunds(Module):
    """Refund orders."""

    def forward(self, order: int, user: Injected[User]) -> str:
        return refund(order, user)


class AwaitedRefunds(Module):
    async def aforward(self, order: int, user: Injected[User]) -> str:
        return refund(order, user)


class Desk:
    def refund(self, order: int, *, user: Injected[User]) -> str:
        return refund(order, user)


TAKING: dict[str, Callable[[], Any]] = {
    "function": lambda: Tool(refund, name="refund"),
    "async function": lambda: Tool(awaited_refund, name="refund"),
    "method": lambda: Tool(Desk().refund),
    "schema": lambda: Tool.from_schema(
        "refund",
        "",
        {"type": "object", "properties": {"order": {"type": "integer"}}, "additionalProperties": False},
        refund,
    ),
    "forward": lambda: Tool(Refunds(), name="refund"),
    "aforward": lambda: Tool(AwaitedRefunds(), name="refund"),
    "partial": lambda: Tool(partial(Refunds()), name="refund"),
    "then": lambda: Tool(refund).then(str),
}
ADA = {"user": User("ada")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", TAKING)
def test_injected_value_reaches_the_tool(kind: str, mode: str) -> None:
    tool = TAKING[kind]()
    assert list(tool.parameters["properties"]) == ["order"]
    with context(injected=ADA):
        result = called(mode, outer([tool], "refund", {"order": 7}), q="x")
    assert read(result) == "7 for ada"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", TAKING)
def test_injected_parameter_is_refused_from_the_model(kind: str, mode: str) -> None:
    with context(injected=ADA):
        result = called(mode, outer([TAKING[kind]()], "refund", {"order": 7, "user": {"name": "eve"}}), q="x")
    assert result.steps[0].results[0].is_error
    assert "user" in read(result)


def test_injected_parameter_is_refused_beside_open_keywords() -> None:
    def note(user: Injected[User], **more: str) -> str:
        return f"{user.name} {more}"

    with context(injected=ADA):
        assert Tool(note)(a="x") == "ada {'a': 'x'}"
        with pytest.raises(InputError, match="user: there is no such argument"):
            Tool(note).bind({"a": "x", "user": "eve"})


WRONG: list[tuple[dict[str, Any], str]] = [({}, "needs the injected 'user'"), ({"user": "ada"}, "is no User")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [ReAct, CodeAct, RLM])
@pytest.mark.parametrize(("given", "problem"), WRONG)
def test_missing_or_wrong_value_raises_before_the_first_request(kind: Any, mode: str, given: Any, problem: str) -> None:
    agent = with_lm(kind("q -> a", tools=[refund]), DONE)
    with context(injected=given), pytest.raises(ConfigurationError, match=rf"{problem}.*context\(injected=") as raised:
        called(mode, agent, q="x")
    assert "refund" in str(raised.value)
    assert agent.predictors()[0].lm.requests == []


@pytest.mark.parametrize("kind", TAKING)
def test_every_kind_of_tool_is_checked_before_the_first_request(kind: str) -> None:
    agent = outer([TAKING[kind]()], "refund", {"order": 7})
    with pytest.raises(ConfigurationError, match="injected 'user'"):
        agent(q="x")
    assert agent.react.lm.requests == []


def test_module_is_called_when_a_hint_of_forward_cannot_be_resolved() -> None:
    class Odd(Module):
        def forward(self, question: unknown.Type) -> str:  # type: ignore[name-defined]  # noqa: F821
            return str(question)

    assert Odd()(question="x") == "x"


@pytest.mark.parametrize("mode", MODES)
def test_inner_agent_is_checked_before_its_own_first_request(mode: str) -> None:
    inner = with_lm(ReAct("question -> answer", tools=[refund]), DONE)
    with pytest.raises(ConfigurationError, match="injected 'user'"):
        called(mode, outer({"ask": inner}, "ask"), q="x")
    assert inner.predictors()[0].lm.requests == []


@pytest.mark.parametrize("mode", MODES)
def test_injected_value_holds_for_the_whole_tree(mode: str) -> None:
    inner = with_lm(
        ReAct("question -> answer", tools=[refund]),
        ToolCall("i", "refund", {"order": 3}),
        ToolCall("j", "submit", {"answer": "inner"}),
    )
    with context(injected=ADA):
        result = called(mode, outer({"ask": inner}, "ask"), q="x")
    assert result.a == "done"
    assert "3 for ada" in str(inner.predictors()[0].lm.requests[1].messages)


@pytest.mark.parametrize("make", [CodeAct, RLM])
@pytest.mark.parametrize("mode", MODES)
def test_code_calls_tools_with_injected_values(make: Any, mode: str) -> None:
    agent = with_lm(make("q -> a", tools=[refund]), {"reasoning": "", "code": "submit(a=refund(7))"})
    with context(injected=ADA):
        assert called(mode, agent, q="x").a == "7 for ada"
    assert "user" not in "".join(message.text for message in agent.predictors()[0].lm.requests[0].messages)


def optional(order: int, user: Injected[User] | None = None, more: Injected[int | str] = 3) -> str:
    return f"{order} {user} {more}"


def test_default_makes_an_injected_parameter_optional() -> None:
    tool = Tool(optional)
    assert list(tool.parameters["properties"]) == ["order"]  # type: ignore[arg-type]
    assert tool(order=1) == "1 None 3"
    with context(injected={**ADA, "more": "x"}):
        assert tool(order=1) == "1 User(ada) x"
    with context(injected={"more": [1]}), pytest.raises(ConfigurationError, match="'more'"):
        tool(order=1)


class Named(Protocol):
    name: str


FITTING: list[tuple[Any, Any, Any]] = [
    (list[int], [1], ["a"]),
    (int | None, None, "a"),
    (dict[str, User], ADA, {"user": 1}),
    (Callable[[], int], lambda: 1, 3),
    (Named, User("x"), ...),
    (Any, object(), ...),
    (float, 3, "3"),
]


@pytest.mark.parametrize(("kind", "good", "bad"), FITTING, ids=[str(kind) for kind, _, _ in FITTING])
def test_injected_value_is_checked_by_its_type_and_passed_unchanged(kind: Any, good: Any, bad: Any) -> None:
    def take(value: Any) -> Any:
        return value

    take.__annotations__["value"] = Injected[kind]  # type: ignore[misc]
    with context(injected={"value": good}):
        assert Tool(take)() is good
    if bad is not ...:
        with context(injected={"value": bad}), pytest.raises(ConfigurationError, match="'value'"):
            Tool(take)()


def test_parameter_that_cannot_be_passed_by_name_is_refused() -> None:
    def positional(user: Injected[User], /, order: int) -> None: ...
    def starred(user: Injected[User], *orders: int) -> None: ...

    for function in (positional, starred):
        with pytest.raises(ToolDefinitionError, match=r"'user'.*Put it after a '\*'"):
            Tool(function)


async def test_hundred_concurrent_tasks_have_values_of_their_own() -> None:
    async def one(number: int) -> str:
        with context(injected={"user": User(f"u{number}")}):
            tool = Tool(refund) if number % 2 else Tool(AwaitedRefunds(), name="refund")
            return str(read(await outer([tool], "refund", {"order": number}).acall(q="x")))

    found = await asyncio.gather(*map(one, range(100)))
    assert found == [f"{number} for u{number}" for number in range(100)]


class Watching(sigwire.BaseCallback):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_tool_start(self, call_id: str, instance: Any, inputs: Any) -> None:
        self.seen.append(repr(inputs))

    def on_module_start(self, call_id: str, instance: Any, inputs: Any) -> None:
        self.seen.append(repr(inputs))


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", TAKING)
def test_injected_value_is_in_no_journal_cassette_state_log_or_listener(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Secret(User):
        def __repr__(self) -> str:
            return "SECRET-repr"

    def agent() -> Any:
        return outer(
            [Tool(lambda **given: None, name="other", parameters={"type": "object"}), TAKING[kind]()],
            "refund",
            {"order": 7},
        )

    watching = Watching()
    caplog.set_level(logging.DEBUG)
    secret = Secret("not shown")
    with (
        context(injected={"user": secret}, callbacks=[watching]),
        Journal(tmp_path / "runs.sqlite3") as journal,
        Cassette(tmp_path / "tape.jsonl", mode="record"),
    ):
        assert "SECRET" not in repr(sigwire.settings)
        result = journal.run(agent(), "one", q="x")
        made = agent()
        with pytest.warns(UserWarning, match="a plain load refuses the file"):
            made.save(tmp_path / "state.json")
    assert read(result) == "7 for not shown"
    assert b"SECRET" not in bytes_of(tmp_path)
    assert "SECRET" not in caplog.text + "".join(watching.seen)
    assert watching.seen


def test_on_resume_the_caller_sets_the_values_again() -> None:
    agent = outer([Tool(refund, approve=True)], "refund", {"order": 7})
    with context(injected={"user": User("ada")}), pytest.raises(ApprovalNeeded) as raised:
        agent(q="x")
    assert "ada" not in str(raised.value.state)
    decisions = {raised.value.pending[0].id: "approve"}
    with pytest.raises(ConfigurationError, match="injected 'user'"):
        agent.resume(raised.value.state, decisions)
    with context(injected={"user": User("bob")}):
        assert read(agent.resume(raised.value.state, decisions)) == "7 for bob"


def test_injected_setting_is_a_dict_by_name() -> None:
    for wrong in (3, [User("x")], {1: 2}):
        with pytest.raises(ConfigurationError, match="'injected' takes a dict"), context(injected=wrong):
            pass


def test_toolbox_of_its_own_raises_for_a_missing_value() -> None:
    with pytest.raises(ConfigurationError, match="injected 'user'"):
        Toolbox([refund])([ToolCall("c", "refund", {"order": 1})])


# --- History.without_tools ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_history_without_tools_hands_a_conversation_over(mode: str) -> None:
    first = with_lm(
        ReAct("q -> a", tools=[balance]),
        sigwire.Choice("I look it up.", (ToolCall("c", "balance", {"account": 5}),)),
        ToolCall("s", "submit", {"a": "500 cents"}),
    )
    history = called(mode, first, q="How much?").history
    kept = history.without_tools()
    assert [dict(kept.messages[0]), kept.messages[1]] == [{"q": "How much?"}, Message.assistant("I look it up.")]
    assert len(kept) == 2
    assert len(history) == 5
    second = with_lm(Predict("q, history: History -> a"), {"a": "Hello"})
    assert called(mode, second, q="And now?", history=kept).a == "Hello"
    assert "balance" not in str(second.lm.requests[0].messages)


def test_history_without_tools_keeps_what_has_none() -> None:
    history = History([{"q": "x", "a": "y"}, Message.user("Hi"), Message.assistant("Hello")])
    assert history.without_tools() == history
    assert History([{"q": "x", "calls": sigwire.ToolCalls([ToolCall("c", "f", {})])}]).without_tools() == History(
        [{"q": "x"}]
    )
