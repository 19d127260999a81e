"""Texts of tools as state of a predictor: in requests of every wire, native and as text; saved; with aliases both ways."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire import ChatAdapter, Example, History, JSONAdapter, Message, ToolText
from sigwire.core.events import Finished, ToolCallEnd, ToolCallStart, ToolDone
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.errors import StateError, ToolDefinitionError
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.predict import Predict
from sigwire.modules.tool_texts import alias_problem
from sigwire.settings import context
from sigwire.testing import FakeProvider, Streamed

MODELS = {
    "openai": ("openai/gpt-4.1-mini", None),
    "openai-responses": ("openai/gpt-4.1-mini", "responses"),
    "anthropic": ("anthropic/claude-haiku-4-5", None),
    "gemini": ("gemini/gemini-3-flash", None),
    "ollama": ("ollama/qwen3", None),
}
SIGNATURE = "question, tools: list[Tool] -> tool_calls: ToolCalls"
TEXTS = {"search": ToolText("Look it up.", {"query": "Three words."}), "absent": ToolText("Not offered.")}
ALIASED = {"search": ToolText("Look it up.", {"query": "Three words."}, alias="look_up")}
SUBMIT = ToolCall("call_s", "submit", {"answer": "Oslo"})


def search(query: str, k: int = 3) -> str:
    """Search the web.

    Args:
        query: The query.
        k: How many.
    """
    return f"found {query}"


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


SEARCH, ADD = Tool(search), Tool(add)


def model(provider: FakeProvider, wire: str) -> LM:
    name, own_wire = MODELS[wire]
    return LM(name, base_url=provider.url(wire), api_key="any", wire=own_wire)


def described(texts: dict[str, ToolText], **options: Any) -> Predict[..., Any]:
    predict: Predict[..., Any] = Predict(SIGNATURE, **options)
    predict.tool_texts = texts
    return predict


def called(name: str) -> ToolCall:
    return ToolCall("call_1", name, {"query": "capital of Norway"})


def body_of(provider: FakeProvider, at: int = -1) -> str:
    return json.dumps(provider.requests[at].body, ensure_ascii=False)


# --- requests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("wire", MODELS)
def test_request_has_the_texts_of_the_predictor(wire: str, native: bool) -> None:
    answer: Any = called("search") if native else '~~~tool_call\n{"name": "search", "arguments": {"query": "x"}}\n~~~'
    with FakeProvider([answer]) as provider, context(adapter=ChatAdapter(native_tools=native)):
        result = described(TEXTS, lm=model(provider, wire))(question="?", tools=[search, ADD])
        body = body_of(provider)
    assert result.tool_calls[0].name == "search"
    assert "Look it up." in body
    assert "Three words." in body
    assert "Search the web." not in body
    assert "The query." not in body
    assert "How many." in body
    assert "The sum." in body


def test_request_is_unchanged_without_texts() -> None:
    with FakeProvider([called("search")] * 2) as provider:
        lm = model(provider, "openai")
        Predict(SIGNATURE, lm=lm)(question="?", tools=[SEARCH, ADD])
        described({"absent": ToolText("Not offered.")}, lm=lm)(question="?", tools=[SEARCH, ADD])
        assert body_of(provider, 0) == body_of(provider, 1)


def test_tool_of_the_user_is_unchanged() -> None:
    before = SEARCH.to_json()
    described(ALIASED, lm=FakeLM([called("look_up")]))(question="?", tools=[SEARCH])
    assert SEARCH.to_json() == before
    assert SEARCH.name == "search"


def test_plan_keeps_the_prompt_of_described_tools() -> None:
    predict = described(TEXTS, lm=FakeLM([called("search")] * 2))
    lm: Any = predict.lm
    predict(question="?", tools=[SEARCH, ADD])
    predict(question="?", tools=[SEARCH, ADD])
    assert lm.requests[0].tools is lm.requests[1].tools


def test_two_agents_describe_one_tool_differently() -> None:
    first: ReAct[..., Any] = ReAct("question -> answer", tools=[SEARCH])
    second: ReAct[..., Any] = ReAct("question -> answer", tools=[SEARCH])
    first.react.tool_texts = {"search": ToolText("For news.")}
    second.react.tool_texts = {"search": ToolText("For history.")}
    with FakeProvider([SUBMIT, SUBMIT]) as provider:
        for agent in (first, second):
            agent.set_lm(model(provider, "openai"))
            agent(question="?")
        assert "For news." in body_of(provider, 0)
        assert "For history." not in body_of(provider, 0)
        assert "For history." in body_of(provider, 1)


@pytest.mark.parametrize("given", [SEARCH, [SEARCH], {"search": SEARCH}, (SEARCH,)])
def test_texts_apply_to_every_form_of_the_input(given: object) -> None:
    predict = described(TEXTS, lm=FakeLM([called("search")]))
    predict(question="?", tools=given)
    lm: Any = predict.lm
    assert lm.requests[0].tools[0]["function"]["description"] == "Look it up."


@pytest.mark.parametrize("reask", [0, 1])
def test_arguments_are_validated_by_the_tool(reask: int) -> None:
    wrong, right = ToolCall("call_0", "look_up", {"q": 1}), called("look_up")
    predict = described(ALIASED, lm=FakeLM([wrong, right] if reask else [right]), max_reasks=reask)
    result = predict(question="?", tools=[SEARCH])
    assert result.tool_calls[0] == called("search")
    assert len(result.attempts) == 1 + reask
    lm: Any = predict.lm
    if reask:
        assert "look_up" in json.dumps([message.to_json() for message in lm.requests[-1].messages])


# --- agents ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("wire", MODELS)
def test_agent_runs_the_tool_of_the_user_by_its_alias(wire: str, native: bool, awaited: bool) -> None:
    text = '~~~tool_call\n{"name": "look_up", "arguments": {"query": "capital of Norway"}}\n~~~'
    end = '~~~tool_call\n{"name": "submit", "arguments": {"answer": "Oslo"}}\n~~~'
    answers: list[Any] = [called("look_up"), SUBMIT] if native else [text, end]
    agent: ReAct[..., Any] = ReAct("question -> answer", tools=[SEARCH, ADD])
    agent.react.tool_texts = ALIASED
    with FakeProvider(answers) as provider, context(adapter=ChatAdapter(native_tools=native)):
        agent.set_lm(model(provider, wire))
        result = asyncio.run(agent.acall(question="?")) if awaited else agent(question="?")
        bodies = [body_of(provider, 0), body_of(provider, 1)]
    assert result.answer == "Oslo"
    (step, _) = result.steps
    assert (step.calls[0].name, step.results[0].name) == ("search", "search")
    assert step.results[0].content == "found capital of Norway"
    assert all("look_up" in body and "search" not in body for body in bodies)
    assert '"look_up"' not in json.dumps(result.history.to_json())


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("wire", MODELS)
def test_streamed_agent_emits_true_names(wire: str, native: bool) -> None:
    text = '~~~tool_call\n{"name": "look_up", "arguments": {"query": "capital of Norway"}}\n~~~'
    end = '~~~tool_call\n{"name": "submit", "arguments": {"answer": "Oslo"}}\n~~~'
    answers: list[Any] = [called("look_up"), SUBMIT] if native else [text, end]
    agent: ReAct[..., Any] = ReAct("question -> answer", tools=[SEARCH, ADD])
    agent.react.tool_texts = ALIASED
    with FakeProvider(answers, streamed=Streamed(cut=5)) as provider, context(adapter=ChatAdapter(native_tools=native)):
        agent.set_lm(model(provider, wire))
        events = list(agent.stream(question="?"))
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["search", "submit"]
    assert [event.call.name for event in events if isinstance(event, ToolCallEnd)] == ["search", "submit"]
    assert [event.result.name for event in events if isinstance(event, ToolDone)] == ["search", "submit"]
    assert isinstance(events[-1], Finished)
    assert events[-1].value.answer == "Oslo"


@pytest.mark.parametrize("native", [True, False])
def test_streamed_predictor_emits_true_names(native: bool) -> None:
    text = '[[ ## note ## ]]\nI look.\n\n~~~tool_call\n{"name": "look_up", "arguments": {"query": "capital of Norway"}}\n~~~'
    answer = [called("look_up")] if native else text
    predict: Predict[..., Any] = Predict(
        "question, tools: list[Tool] -> note, tool_calls: ToolCalls", lm=FakeLM([answer])
    )
    predict.tool_texts = ALIASED
    with context(adapter=ChatAdapter(native_tools=native)):
        events = list(predict.stream(question="?", tools=[SEARCH]))
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["search"]
    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    assert isinstance(events[-1], Finished)
    assert events[-1].value.tool_calls[0] == end.call
    assert end.call.name == "search"


def test_async_handler_runs_under_an_alias() -> None:
    async def look(query: str) -> str:
        await asyncio.sleep(0)
        return query.upper()

    agent: ReAct[..., Any] = ReAct("question -> answer", tools=[look])
    agent.react.tool_texts = {"look": ToolText(alias="peek")}
    agent.set_lm(FakeLM([ToolCall("call_1", "peek", {"query": "x"}), SUBMIT]))
    assert asyncio.run(agent.acall(question="?")).steps[0].results[0].content == "X"


# --- aliases in the prompt ------------------------------------------------------------------------------


def past_turns() -> Iterator[list[Any]]:
    call, result = ToolCall("call_0", "search", {"query": "old"}), ToolResult("call_0", "search", "old result")
    yield [Message.user("Before?"), Message.assistant("", [call]), Message.tool(result)]
    yield [{"question": "Before?", "tool_calls": ToolCalls([call]), "tool_results": [result]}]
    yield [{"question": "Before?", "tool_calls": [{"id": "call_0", "name": "search", "args": {"query": "old"}}],
            "tool_results": [{"call_id": "call_0", "name": "search", "value": "old result"}]}]  # fmt: skip


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("turns", list(past_turns()))
def test_history_and_demos_are_shown_with_aliases(turns: list[Any], native: bool) -> None:
    predict: Predict[..., Any] = Predict(
        "question, history: History, tools: list[Tool] -> tool_calls: ToolCalls", lm=FakeLM([called("look_up")])
    )
    predict.tool_texts = ALIASED
    predict.demos = [Example(question="A demo?", tool_calls=ToolCalls([called("search")]))]
    history = History(messages=turns)
    with context(adapter=ChatAdapter(native_tools=native)):
        result = predict(question="?", tools=[SEARCH], history=history)
    lm: Any = predict.lm
    sent = json.dumps([message.to_json() for message in lm.requests[0].messages])
    assert "search" not in sent
    assert sent.count("look_up") >= 2
    assert "old result" in sent
    assert result.tool_calls == ToolCalls([called("search")])
    assert result.choice.tool_calls[0].name == "search"
    assert "search" in json.dumps(history.to_json())
    assert "search" in json.dumps([demo.to_json() for demo in predict.demos])


def test_trace_has_true_names_and_the_tools_of_the_user() -> None:
    predict = described(ALIASED, lm=FakeLM([called("look_up")]))
    trace: list[Any] = []
    with context(trace=trace):
        predict(question="?", tools=(SEARCH,))
    ((_, inputs, prediction),) = trace
    assert inputs["tools"] == (SEARCH,)
    assert prediction.tool_calls[0].name == "search"


def test_tool_choice_names_the_alias() -> None:
    predict = described(ALIASED, lm=FakeLM([called("look_up")]))
    predict(question="?", tools=[SEARCH], config={"tool_choice": "search"})
    lm: Any = predict.lm
    assert lm.requests[0].tool_choice.allowed == ("look_up",)


@pytest.mark.parametrize("alias", ["submit", "finish", "web search", "", "add", "ADD", "x" * 65])
def test_alias_is_refused_when_reserved_in_use_or_invalid(alias: str) -> None:
    if alias.casefold() != "add":
        assert alias_problem(alias) is not None
    if alias:
        predict = described({"search": ToolText(alias=alias)}, lm=FakeLM([]))
        with pytest.raises(ToolDefinitionError, match="alias of the tool 'search'"):
            predict(question="?", tools=[SEARCH, ADD])


def test_two_tools_cannot_have_one_alias() -> None:
    predict = described({"search": ToolText(alias="run"), "add": ToolText(alias="Run")}, lm=FakeLM([]))
    with pytest.raises(ToolDefinitionError, match="another tool is called"):
        predict(question="?", tools=[SEARCH, ADD])


# --- texts that do not fit ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (SEARCH, ToolText(args={"q": "The query."})),
        (Tool(search, tunable=False), ToolText("Look it up.")),
        (Tool.web_search(), ToolText("Look it up.")),
    ],
)
def test_view_is_refused_when_texts_do_not_fit(tool: Tool, text: ToolText) -> None:
    with pytest.raises(ToolDefinitionError, match="search"):
        tool.described(text)


@pytest.mark.parametrize(
    "wrong", [{"desc": 1}, {"args": "query"}, {"args": {"query": 1}}, {"alias": ["x"]}, {"args": None}]
)
def test_tool_text_holds_texts_only(wrong: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="holds texts"):
        ToolText(**wrong)


# --- views ----------------------------------------------------------------------------------------------


def test_equal_texts_give_one_view() -> None:
    one, other = ToolText("a", {"query": "b", "k": "c"}), ToolText("a", {"k": "c", "query": "b"})
    assert SEARCH.described(one) is SEARCH.described(other)


def test_view_shares_handler_types_and_validation() -> None:
    view = SEARCH.described(ALIASED["search"])
    assert view.handler is SEARCH.handler
    assert view(query="x") == "found x"
    assert view.bind({"query": "x", "k": "5"}).kwargs == {"query": "x", "k": 5}
    properties: Any = view.parameters["properties"]
    assert properties["query"] == {"type": "string", "description": "Three words."}
    assert pickle.loads(pickle.dumps(view)) == view


def test_view_of_a_subclass_keeps_its_overrides() -> None:
    class Strict(Tool):
        @property
        def spec(self) -> Any:
            made: Any = super().spec
            return {**made, "function": {**made["function"], "strict": True}}

        def bind(self, arguments: Any) -> Any:
            return super().bind({**arguments, "k": 7})

    view = Strict(search).described(ToolText("Look it up.", {"query": "Three words."}))
    function: Any = view.spec["function"]
    assert (function["strict"], function["description"]) == (True, "Look it up.")
    assert function["parameters"] == view.parameters
    assert view.bind({"query": "x"}).kwargs["k"] == 7


def test_tool_of_the_door_is_described() -> None:
    view = dspy.Tool(search, desc="Old.").described(ALIASED["search"])
    assert (view.name, view.description, view(query="x")) == ("look_up", "Look it up.", "found x")


def test_tunable_is_part_of_the_json_of_a_tool() -> None:
    fixed = Tool(search, tunable=False)
    assert Tool.from_json(fixed.to_json(), handler=search).tunable is False
    assert "tunable" not in SEARCH.to_json()


# --- state ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Predict, ChainOfThought])
def test_saved_texts_give_the_same_request(make: Any, tmp_path: Path) -> None:
    def program() -> Any:
        return make("question, tools: list[Tool] -> note, tool_calls: ToolCalls")

    saved, loaded = program(), program()
    saved.predictors()[0].tool_texts = ALIASED
    saved.save(tmp_path / "program.json")
    loaded.load(tmp_path / "program.json")
    copied = saved.deepcopy()
    requests: list[Any] = []
    for each in (saved, loaded, copied):
        lm = FakeLM([called("look_up")])
        each.set_lm(lm)
        each(question="?", tools=[SEARCH])
        requests.append(lm.requests[0].to_json())
    assert requests[0] == requests[1] == requests[2]
    copied.predictors()[0].tool_texts["search"] = ToolText("Other.")
    assert saved.predictors()[0].tool_texts == ALIASED


def test_state_lacks_texts_when_there_are_none() -> None:
    assert "tool_texts" not in Predict("a -> b").dump_state()


def test_state_without_texts_removes_those_of_the_predictor() -> None:
    predict = described(TEXTS)
    predict.load_state(Predict(SIGNATURE).dump_state())
    assert predict.tool_texts == {}


@pytest.mark.parametrize("wrong", [[], {"search": "text"}, {"search": {"desc": 1}}, {"search": {"unknown": "x"}}])
def test_wrong_texts_are_refused_and_change_nothing(wrong: Any) -> None:
    predict = described(TEXTS)
    with pytest.raises(StateError):
        predict.load_state({**predict.dump_state(), "tool_texts": wrong})
    assert predict.tool_texts == TEXTS


def test_json_adapter_shows_the_texts() -> None:
    with context(adapter=JSONAdapter(native_tools=False)):
        predict = described(TEXTS, lm=FakeLM(['~~~tool_call\n{"name": "search", "arguments": {"query": "x"}}\n~~~']))
        predict(question="?", tools=[SEARCH])
    lm: Any = predict.lm
    assert "Look it up." in lm.requests[0].messages[0].text
