"""Modules with DSPy's methods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.capabilities import Capabilities
from sigwire.core.tools.calls import ToolCall
from sigwire.dspy.agents import AgentRun, ReAct
from sigwire.dspy.modules import ChainOfThought, Module, Predict
from sigwire.dspy.tools import Tool, ToolCalls
from sigwire.errors import OverrideError
from sigwire.lm.fake import FakeLM
from sigwire.modules import predict as core

NAMES = ["first", "many[0]", "many[1][0].predict", "many[1][1]", "named['k']"]


class Nested(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Predict("a -> b")
        self.many = [Predict("a -> b"), (ChainOfThought("a -> b"), Predict("a -> b"))]
        self.named = {"k": core.Predict("a -> b")}


class Same(Module):
    def forward(self, n: int) -> int:
        return n


def add(a: int, b: int) -> int:
    return a + b


def double(n: int) -> int:
    return 2 * n


def test_map_named_predictors_replaces_each_predictor() -> None:
    nested = Nested()
    mapped = nested.map_named_predictors(lambda predict: Predict("x -> y"))
    assert mapped is nested
    assert [name for name, _ in nested.named_parameters()] == NAMES
    assert all(predict.signature.signature == "x -> y" for _, predict in nested.named_predictors())
    assert isinstance(nested.many[1], tuple)


def test_reset_copy_drops_demos_and_model_and_keeps_the_original() -> None:
    nested = Nested()
    nested.set_lm(FakeLM("x"))
    nested.first.demos = [{"a": "1"}]
    copied = nested.reset_copy()
    assert (copied.first.demos, copied.first.lm) == ([], None)
    assert (nested.first.demos, nested.first.lm is not None) == ([{"a": "1"}], True)


async def test_batch_accepts_options_of_dspy_and_warns_of_those_without_effect() -> None:
    inputs = [{"n": 1}]
    assert Same().batch(inputs, disable_progress_bar=True, provide_traceback=False, max_errors=None) == [1]
    with pytest.warns(UserWarning, match="takes no notice of straggler_limit: nothing is run twice"):
        assert await Same().abatch(inputs, straggler_limit=3) == [1]
    with pytest.raises(TypeError, match="'num_thread'"):
        Same().batch(inputs, num_thread=3)


def test_predict_merges_and_returns_its_options() -> None:
    predict = Predict("a -> b", temperature=0.5, top_p=0.9)
    assert predict.get_config() == {"temperature": 0.5, "top_p": 0.9}
    predict.update_config(top_p=0.1)
    assert predict.config == {"temperature": 0.5, "top_p": 0.1}


async def test_adapter_of_a_call_precedes_that_of_the_predictor_and_of_the_settings() -> None:
    predict = dspy.Predict("text -> mood")
    lm = dspy.DummyLM([{"mood": "calm"}] * 4, adapter=(xml := dspy.XMLAdapter()))

    def asked() -> str:
        return str(lm.history[-1]["messages"][-1]["content"])

    with dspy.context(lm=lm, adapter=xml):
        predict.adapter = dspy.JSONAdapter()
        assert (predict(text="Sea.", adapter=xml).mood, asked()[:6]) == ("calm", "<text>")
        assert ((await predict.acall(text="Sea.", adapter=None)).mood, asked()[:6]) == ("calm", "<text>")
        with pytest.raises(dspy.AdapterParseError, match="JSONAdapter"):
            predict(text="Sea.")
        assert dspy.settings.adapter is xml
        predict.reset()
        assert predict.adapter is None
        assert predict(text="Sea.").mood == "calm"


def test_adapter_may_be_the_name_of_an_input() -> None:
    predict = dspy.Predict("adapter -> plug", lm=dspy.DummyLM([{"plug": "USB"}]))
    assert predict(adapter="of a phone").plug == "USB"


def test_predictors_inside_modules_are_those_of_the_door() -> None:
    agent = ReAct("question -> answer", tools=[add])
    assert isinstance(agent.react, Predict)
    assert isinstance(agent.extract, ChainOfThought)
    assert isinstance(agent.extract.predict, Predict)
    assert isinstance(ChainOfThought("a -> b").predict, Predict)
    assert all(isinstance(tool, Tool) for tool in agent.tools.values())
    assert agent.tools["add"].func is add


@pytest.mark.parametrize("signature", ["question, tools: list[Tool] -> calls: ToolCalls", None])
async def test_tool_calls_of_a_prediction_have_the_methods_of_dspy(signature: str | None) -> None:
    lm = FakeLM([ToolCall("x", "add", {"a": 1, "b": 2})] * 2)
    predict = Predict(signature or "question, tools: dspy.Tool -> calls: dspy.ToolCalls", lm=lm)
    for prediction in (predict(question="?", tools=[Tool(add)]), await predict.acall(question="?", tools=[Tool(add)])):
        assert isinstance(prediction.calls, ToolCalls)
        assert prediction.calls.format() == {"tool_calls": [{"name": "add", "args": {"a": 1, "b": 2}}]}


async def test_agent_prediction_has_the_trajectory_of_dspy() -> None:
    turns = [
        [{"name": "add", "args": {"a": 1, "b": 2}}, {"name": "double", "args": {"n": 2}}],
        ToolCall("", "submit", {"answer": 3}),
    ]
    agent = ReAct("question -> answer: int", tools=[add, double])
    expected = {
        "thought_0": "", "tool_name_0": "add", "tool_args_0": {"a": 1, "b": 2}, "observation_0": 3,
        "thought_1": "", "tool_name_1": "double", "tool_args_1": {"n": 2}, "observation_1": 4,
        "thought_2": "", "tool_name_2": "submit", "tool_args_2": {"answer": 3}, "observation_2": "Completed.",
    }  # fmt: skip
    for awaited in (False, True):
        agent.set_lm(FakeLM(turns, capabilities=Capabilities(native_tools=True, parallel_tool_calls=True)))
        result: Any = await agent.acall(question="?") if awaited else agent(question="?")
        assert result.trajectory == expected
        assert AgentRun.of(result).trajectory == expected
        assert result.answer == 3


def test_trajectory_is_named_run_trajectory_when_an_output_has_that_name() -> None:
    agent = ReAct("question -> trajectory", tools=[double])
    agent.set_lm(FakeLM([ToolCall("", "submit", {"trajectory": "short"})]))
    result = agent(question="?")
    assert (result.trajectory, result.run_trajectory["tool_name_0"]) == ("short", "submit")


def look(query: str) -> str:
    return f"found {query}"


def turn(name: str, **args: Any) -> dict[str, Any]:
    return {"next_thought": "next", "tool_calls": dspy.ToolCalls.from_dict_list([{"name": name, "args": args}])}


@pytest.mark.parametrize("is_awaited", [False, True])
def test_script_of_tool_calls_runs_the_second_agent(is_awaited: bool) -> None:
    agent = dspy.ReActV2("question -> answer", tools=[look])
    agent.set_lm(dspy.DummyLM([turn("look", query="cats"), turn("submit", answer="found cats")]))
    result = asyncio.run(agent.acall(question="?")) if is_awaited else agent(question="?")
    assert (result.answer, result.termination_reason) == ("found cats", "submit")
    assert result.trajectory["observation_0"] == "found cats"


@pytest.mark.parametrize("before", [[], [turn("missing")]])
def test_script_of_tool_calls_answers_for_an_agent_without_tools(before: list[Any]) -> None:
    agent = dspy.ReActV2("question -> answer")
    agent.set_lm(
        dspy.DummyLM([*before, {**turn("submit"), "tool_calls": {"name": "submit", "arguments": {"answer": "yes"}}}])
    )
    assert agent(question="?").answer == "yes"


def test_tool_calls_of_a_predictor_are_no_script() -> None:
    predict = dspy.Predict("question, tools: list[Tool] -> tool_calls: ToolCalls")
    predict.set_lm(dspy.DummyLM([{"tool_calls": '{"tool_calls": [{"name": "look", "args": {"query": "cats"}}]}'}]))
    (call,) = predict(question="?", tools=[dspy.Tool(look)]).tool_calls
    assert (call.name, call.arguments) == ("look", {"query": "cats"})


def test_submit_tool_of_the_second_agent_returns_its_fields() -> None:
    agent = dspy.ReActV2("question -> answer", tools=[look])
    assert agent.tools["submit"](answer="Paris") == {"answer": "Paris"}
    assert list(agent.tools) == ["look", "submit"]


class Named(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict("question -> answer")

    def __call__(self, text: str) -> Any:  # type: ignore[override]
        return self.predict(question=text)

    async def acall(self, text: str) -> Any:  # type: ignore[override]
        return await self.predict.acall(question=text)


def test_module_may_name_its_entries_as_calls() -> None:
    module = Named()
    module.set_lm(FakeLM([{"answer": "a"}] * 3))
    assert module("?").answer == asyncio.run(module.acall("?")).answer == "a"
    *_, last = dspy.streamify(module, async_streaming=False)("?")
    assert last.answer == "a"


def test_call_beside_forward_is_refused() -> None:
    with pytest.raises(OverrideError, match="overrides '__call__'"):

        class Both(dspy.Module):
            def forward(self) -> None: ...

            def __call__(self) -> None: ...  # type: ignore[override]
