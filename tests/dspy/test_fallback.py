"""DSPy's JSON fallback: an answer that cannot be read leads to one more request with the JSON adapter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.response import Choice
from sigwire.errors import LMServerError, OutputTruncated
from sigwire.lm.fake import FakeLM
from tests.ways import in_every_way

JSON = '{"answer": 4}'


class Program(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = dspy.ChainOfThought("question -> answer: int")

    def forward(self, question: str) -> Any:
        return self.inner(question=question)


@in_every_way
@pytest.mark.parametrize(
    "adapter", [None, dspy.ChatAdapter(), dspy.XMLAdapter(use_json_adapter_fallback=True)], ids=repr
)
def test_unreadable_answer_is_asked_for_as_json(way: Callable[..., Any], adapter: Any) -> None:
    lm = FakeLM(["nonsense", '{"reasoning": "r", "answer": 4}'])
    with dspy.context(lm=lm, adapter=adapter):
        prediction = way(Program(), question="2+2?")
    assert prediction.answer == 4
    assert [attempt.purpose for attempt in prediction.attempts] == ["ask", "repair"]
    first, second = ("".join(message.text for message in request.messages) for request in lm.requests)
    assert ("JSON object" in first, "JSON object" in second, "2+2?" in second) == (False, True, True)


@in_every_way
def test_flag_turns_the_fallback_off(way: Callable[..., Any]) -> None:
    lm = FakeLM(["nonsense", JSON])
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    with dspy.context(lm=lm, adapter=adapter), pytest.raises(dspy.AdapterParseError):
        way(Program(), question="2+2?")
    assert len(lm.requests) == 1


@pytest.mark.parametrize("adapter", [dspy.JSONAdapter(), dspy.BAMLAdapter()], ids=repr)
def test_json_adapters_do_not_fall_back(adapter: dspy.Adapter) -> None:
    lm = FakeLM(["nonsense", JSON])
    with dspy.context(lm=lm, adapter=adapter), pytest.raises(dspy.AdapterParseError):
        dspy.Predict("question -> answer: int")(question="2+2?")
    assert len(lm.requests) == 1


def test_error_of_both_answers_is_the_second_with_the_first_as_its_cause() -> None:
    with dspy.context(lm=FakeLM(["nonsense", "more nonsense"])), pytest.raises(dspy.AdapterParseError) as caught:
        dspy.Predict("question -> answer: int")(question="2+2?")
    cause: Any = caught.value.__cause__
    assert (caught.value.adapter_name, cause.adapter_name) == ("JSONAdapter", "ChatAdapter")
    assert [attempt.purpose for attempt in caught.value.attempts] == ["ask", "repair"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [(Choice("half", finish_reason="length"), OutputTruncated), (LMServerError("busy"), LMServerError)],
)
def test_other_failures_are_not_asked_for_again(answer: Any, error: type[Exception]) -> None:
    lm = FakeLM([answer, JSON])
    with dspy.context(lm=lm), pytest.raises(error):
        dspy.Predict("question -> answer: int")(question="2+2?")
    assert len(lm.requests) == 1


def test_reasks_come_before_the_fallback() -> None:
    lm = FakeLM(["nonsense", "again", JSON])
    with dspy.context(lm=lm):
        prediction = dspy.Predict("question -> answer: int", max_reasks=1)(question="2+2?")
    assert (prediction.answer, len(lm.requests)) == (4, 3)
    assert "again" not in "".join(message.text for message in lm.requests[2].messages)


@pytest.mark.parametrize("way", ["call", "acall"])
async def test_adapter_by_itself_falls_back(way: str) -> None:
    signature, lm = dspy.Signature("question -> answer: int"), FakeLM(["nonsense", JSON])
    arguments: Any = (lm, {}, signature, [], {"question": "2+2?"})
    adapter = dspy.ChatAdapter()
    assert (adapter(*arguments) if way == "call" else await adapter.acall(*arguments)) == [{"answer": 4}]


def test_fallback_keeps_options_and_callbacks_of_the_adapter() -> None:
    seen: list[str] = []

    class Watch(dspy.BaseCallback):
        def on_adapter_parse_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
            seen.append(type(exception).__name__)

    adapter = dspy.ChatAdapter(callbacks=[Watch()], use_native_function_calling=False)
    made: Any = adapter.fallback()
    assert (made.native_tools, made is adapter.fallback()) == (False, True)
    with dspy.context(lm=FakeLM(["nonsense", JSON]), adapter=adapter):
        dspy.Predict("question -> answer: int")(question="2+2?")
    assert seen == ["AdapterParseError", "NoneType"]


def test_flag_is_saved_with_the_settings(tmp_path: Any) -> None:
    path = tmp_path / "settings.json"
    with dspy.context(adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        dspy.settings.save(path, exclude_keys=["trace"])
    assert dspy.load_settings(path)["adapter"] == dspy.ChatAdapter(use_json_adapter_fallback=False)
    assert dspy.load_settings(path)["adapter"] != dspy.ChatAdapter()
