"""Inputs that a signature does not have: refused, or left out with or without a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, InputError, ToolDefinitionError
from sigwire.evaluate.evaluation import Evaluate
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.code.program_of_thought import ProgramOfThought
from sigwire.modules.code.rlm import RLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.settings import context
from tests.ways import in_every_way

EXAMPLE = Example(question="2+2?", answer="4", topic="sums").with_inputs("question", "answer", "topic")


class Program(Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Predict("question -> answer")

    def forward(self, **inputs: object) -> Any:
        return self.inner(**inputs)


MODULES: dict[str, tuple[Callable[[], Any], Any]] = {
    "Predict": (lambda: Predict("question -> answer"), {"answer": "4"}),
    "ChainOfThought": (lambda: ChainOfThought("question -> answer"), {"reasoning": "r", "answer": "4"}),
    "ReAct": (lambda: ReAct("question -> answer", tools=[len]), ToolCall("a", "submit", {"answer": "4"})),
    "program": (Program, {"answer": "4"}),
}
every_module = pytest.mark.parametrize(("make", "answer"), MODULES.values(), ids=MODULES)


@in_every_way
@every_module
def test_unknown_inputs_are_left_out_when_the_setting_allows(
    way: Callable[..., Any], make: Callable[[], Any], answer: Any
) -> None:
    module, lm = make(), FakeLM([answer] * 2)
    module.set_lm(lm)
    with (
        context(unknown_inputs="warn"),
        pytest.warns(UserWarning, match="has no input 'topic'; it was left out") as seen,
    ):
        assert way(module, question="2+2?", topic="sums").answer == "4"
    assert len(seen) == 1
    with context(unknown_inputs="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert way(module, question="2+2?", topic="sums").answer == "4"
    assert "sums" not in repr([request.messages for request in lm.requests])


@in_every_way
@every_module
def test_unknown_input_is_refused_by_default(way: Callable[..., Any], make: Callable[[], Any], answer: Any) -> None:
    module, lm = make(), FakeLM([answer])
    module.set_lm(lm)
    for policy in (None, "error"):
        with (
            context(unknown_inputs=policy),
            pytest.raises(InputError, match=r"no input 'topic'.*unknown_inputs=\"warn\""),
        ):
            way(module, question="2+2?", topic="sums")
    assert lm.requests == []


@pytest.mark.parametrize("make", [ProgramOfThought, RLM])
def test_modules_that_write_code_follow_the_setting(make: Callable[..., Any]) -> None:
    module = make("question -> answer")
    module.set_lm(FakeLM([]))
    for policy, unknown in (("error", True), ("ignore", False)):
        with context(unknown_inputs=policy), pytest.raises(Exception) as caught:  # the model has no answer
            module(question="2+2?", topic="sums")
        assert ("no input 'topic'" in str(caught.value)) is unknown


def test_whole_example_is_the_inputs_of_a_call_when_the_setting_allows() -> None:
    with context(unknown_inputs="ignore"):
        assert Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))(**EXAMPLE).answer == "4"


def test_missing_input_is_an_error_whatever_the_setting_is() -> None:
    with context(unknown_inputs="ignore"), pytest.raises(InputError, match="needs the input 'question'"):
        Predict("question -> answer", lm=FakeLM([]))(qestion="2+2?")  # type: ignore[call-arg, unused-ignore]


def test_devset_may_have_an_input_that_the_program_does_not_use() -> None:
    def exact(example: Example, prediction: Any, trace: object = None) -> bool:
        return bool(example.answer == prediction.answer)

    with context(unknown_inputs="ignore"):
        program = Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))
        assert Evaluate(devset=[EXAMPLE], metric=exact, num_threads=1)(program).score == 100


def test_module_as_a_tool_follows_the_setting() -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "4"}] * 2))
    tool = Tool.from_schema("ask", "Ask.", {"type": "object", "properties": {"topic": {}, "question": {}}}, predict)
    with pytest.raises(InputError, match="no input 'topic'"):
        tool(question="2+2?", topic="sums")
    with context(unknown_inputs="ignore"):
        assert tool(question="2+2?", topic="sums").answer == "4"


def test_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match='"error", "warn", "ignore" or None'), context(unknown_inputs="drop"):
        pass


class Named(Module):
    def forward(self, question: str) -> str:
        return question


def plain(question: str) -> str:
    return question


@pytest.mark.parametrize(
    "handler", [Predict("question -> answer"), ReAct("question -> answer", tools=[len]), Named(), plain]
)
def test_partial_with_an_unknown_name_is_refused_when_the_tool_is_made(handler: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"a partial binds 'qestion'.*Did you mean question\?"):
        Tool(partial(handler, qestion="2+2?"))
    with context(unknown_inputs="ignore"), pytest.raises(ToolDefinitionError, match="a partial binds 'topic'"):
        Tool(partial(handler, topic="sums"))


def test_partial_may_bind_what_calls_take_beside_inputs() -> None:
    lm = FakeLM([{"answer": "4"}])
    assert Tool(partial(Predict("question -> answer"), lm=lm, config={"seed": 1}))(question="2+2?").answer == "4"
