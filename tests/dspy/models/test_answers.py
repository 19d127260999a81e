"""Answers of custom models in DSPy's forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.dspy.models.answers import FINISH_REASONS, decode_answer
from sigwire.errors import LMUnexpectedError
from sigwire.lm.openai_dicts import encode_outputs

CALL = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


@pytest.mark.parametrize(("theirs", "ours"), FINISH_REASONS.items())
def test_finish_reasons_have_one_meaning(theirs: str, ours: str) -> None:
    answer = {"choices": [{"message": {"content": "x"}, "finish_reason": theirs}]}
    assert decode_answer(answer).choices[0].finish_reason == ours


def test_unknown_finish_reason_is_a_warning() -> None:
    response = decode_answer({"choices": [{"message": {"content": "x"}, "finish_reason": "bored"}]})
    assert response.choices[0].finish_reason == "stop"
    assert response.warnings[0].feature == "finish_reason"


def test_finish_reason_is_tool_calls_when_stop_has_calls() -> None:
    response = decode_answer(
        {"choices": [{"message": {"content": None, "tool_calls": [CALL]}, "finish_reason": "stop"}]}
    )
    assert response.choices[0].finish_reason == "tool_calls"
    assert response.choices[0].text == ""


def test_objects_and_dicts_decode_equally() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
    as_dict = {
        "id": "r",
        "model": "m",
        "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
        "usage": usage,
    }
    as_object = SimpleNamespace(
        id="r", model="m", choices=[SimpleNamespace(message=SimpleNamespace(content="x"), finish_reason="stop")],
        usage=SimpleNamespace(**{**usage, "prompt_tokens_details": SimpleNamespace(cached_tokens=1)}),
    )  # fmt: skip
    for answer in (as_dict, as_object):
        response = decode_answer(answer)
        assert (response.id, response.model, response.choices[0].text) == ("r", "m", "x")
        assert response.usage == Usage(3, 2, 1)


def test_malformed_arguments_stay_on_their_call() -> None:
    broken = {"id": "b", "function": {"name": "g", "arguments": '{"a": '}}
    response = decode_answer({"choices": [{"message": {"content": "text", "tool_calls": [CALL, broken]}}]})
    good, bad = response.choices[0].tool_calls
    assert good.arguments == {"a": 1}
    assert bad.error is not None
    assert bad.raw_arguments == '{"a": '


def test_decode_answer_accepts_text_completions_and_lists() -> None:
    assert decode_answer({"choices": [{"text": "x"}]}).choices[0].text == "x"
    assert decode_answer("x").choices == (Choice("x"),)
    assert [c.text for c in decode_answer(["x", {"text": "y", "reasoning_content": "z"}]).choices] == ["x", "y"]


@pytest.mark.parametrize("answer", [None, 3, object(), {"choices": "x"}, [3]])
def test_decode_answer_refuses_other_values(answer: Any) -> None:
    with pytest.raises(LMUnexpectedError):
        decode_answer(answer)


def test_decoded_outputs_equal_the_encoded_ones() -> None:
    choices = (
        Choice("a"),
        Choice("b", (ToolCall("call_0", "f", {"a": 1}, '{"a":1}'),), "why", finish_reason="tool_calls"),
    )
    assert decode_answer(encode_outputs(decode_answer(list(encode_outputs_of(choices))))).choices == choices


def encode_outputs_of(choices: tuple[Choice, ...]) -> list[Any]:
    return list(encode_outputs(Response(choices)))
