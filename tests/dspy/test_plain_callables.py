"""An object that is called with messages is a model for ``Predict``, the adapters and the second step of an answer."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest import mock

import pytest

import sigwire.dspy as dspy
from sigwire.dspy.called_models import as_model
from sigwire.errors import ConfigurationError

ANSWER = "[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]"
ASK = dspy.Signature("question -> answer")


class Says:
    """A model of a program: it keeps what it is called with."""

    model, supports_function_calling = "mine", True

    def __init__(self, answer: Any = ANSWER) -> None:
        self.answer = answer
        self.given: dict[str, Any] = {}

    def __call__(self, messages: Any, **options: Any) -> list[Any]:
        self.given = {"messages": messages, **options}
        return [self.answer]


def test_predict_calls_the_object_blocking_and_awaited() -> None:
    lm: Any = Says()
    with dspy.context(lm=lm):
        assert dspy.Predict(ASK)(question="2+2?").answer == "4"
        assert asyncio.run(dspy.Predict(ASK).acall(question="2+2?")).answer == "4"
    assert [message["role"] for message in lm.given["messages"]] == ["system", "user"]
    assert dspy.Predict(ASK, lm=lm)(question="2+2?").answer == dspy.Predict(ASK)(question="?", lm=lm).answer == "4"


def test_stand_in_of_mock_is_called_as_a_model() -> None:
    lm = mock.MagicMock(spec=dspy.LM)
    lm.acall.return_value = [ANSWER]
    assert asyncio.run(dspy.Predict(ASK).acall(question="2+2?", lm=lm)).answer == "4"
    lm.acall.assert_called_once()
    lm.assert_not_called()


def test_adapter_offers_tools_natively_and_reads_calls() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{'a': 1, 'b': 2}"}}
    lm: Any = Says({"text": ANSWER, "tool_calls": [call]})
    signature = dspy.Signature("question, tools: list[dspy.Tool] -> answer, tool_calls: dspy.ToolCalls")
    inputs = {"question": "1+2?", "tools": [dspy.Tool(add)]}
    (fields,) = dspy.ChatAdapter(use_native_function_calling=True)(lm, {}, signature, [], inputs)
    assert (fields["answer"], fields["tool_calls"][0].args) == ("4", {"a": 1, "b": 2})
    assert [tool["function"]["name"] for tool in lm.given["tools"]] == ["add"]


def test_second_step_asks_the_object() -> None:
    lm: Any = Says('{"answer": "4"}')
    assert dspy.TwoStepAdapter(lm).parse(ASK, "It is 4.") == {"answer": "4"}


def test_model_of_sigwire_stays_the_same_object() -> None:
    lm = dspy.DummyLM([])
    assert as_model(lm) is lm
    assert as_model("openai/gpt-5-mini") == "openai/gpt-5-mini"
    with pytest.raises(ConfigurationError, match="not the class"):
        dspy.Predict(ASK)(question="?", lm=Says)


def test_saved_state_omits_the_object() -> None:
    predict: Any = dspy.Predict(ASK)
    for lm in (Says(), as_model(Says())):
        predict.set_lm(lm)
        assert predict.deepcopy().dump_state()["lm"] is None
