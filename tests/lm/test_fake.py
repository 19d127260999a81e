"""FakeLM: every kind of scripted answer, sync and async."""

from __future__ import annotations

import datetime
import itertools
import json
from typing import Any

import pytest
from pydantic import BaseModel

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.errors import ConfigurationError, LMRateLimitError, UnsupportedOption
from sigwire.lm.fake import FakeLM

ASK = Request((Message.user("go"),))
CALL = ToolCall("call_0", "add", {"a": 1})

ANSWERS: list[tuple[Any, Choice]] = [
    ("text", Choice("text")),
    ({"answer": "red"}, Choice("[[ ## answer ## ]]\nred\n\n[[ ## completed ## ]]\n")),
    (
        {"answer": "red", "calls": ToolCalls([CALL])},
        Choice("[[ ## answer ## ]]\nred\n\n[[ ## completed ## ]]\n", (CALL,), finish_reason="tool_calls"),
    ),
    ({"calls": ToolCalls([CALL], "adding")}, Choice("adding", (CALL,), finish_reason="tool_calls")),
    ({"answer": "red", "calls": ToolCalls()}, Choice("[[ ## answer ## ]]\nred\n\n[[ ## completed ## ]]\n")),
    (CALL, Choice(tool_calls=(CALL,), finish_reason="tool_calls")),
    ([CALL], Choice(tool_calls=(CALL,), finish_reason="tool_calls")),
    ([{"name": "add", "args": {"a": 1}}], Choice(tool_calls=(CALL,), finish_reason="tool_calls")),
    (ToolCalls([CALL], "adding"), Choice("adding", (CALL,), finish_reason="tool_calls")),
    (Choice("cut", finish_reason="length"), Choice("cut", finish_reason="length")),
    (lambda request: request.messages[-1].text * 2, Choice("gogo")),
]


@pytest.mark.parametrize(("answer", "choice"), ANSWERS)
async def test_fake_answers_each_kind_of_item_blocking_and_awaited(answer: Any, choice: Choice) -> None:
    assert FakeLM([answer]).respond(ASK).choices == (choice,)
    assert (await FakeLM([answer]).arespond(ASK)).choices == (choice,)


def test_fake_returns_a_scripted_response_unchanged() -> None:
    response = Response((Choice("a"), Choice("b")), Usage(3, 4), "other")
    assert FakeLM([response]).respond(ASK) == response


@pytest.mark.parametrize("error", [LMRateLimitError("slow down"), KeyboardInterrupt, ValueError("no")])
async def test_fake_raises_scripted_errors_blocking_and_awaited(error: Any) -> None:
    kind = error if isinstance(error, type) else type(error)
    with pytest.raises(kind):
        FakeLM([error]).respond(ASK)
    with pytest.raises(kind):
        await FakeLM([error]).arespond(ASK)


def test_fake_uses_one_item_for_each_choice() -> None:
    lm = FakeLM(["a", "b", "c"])
    assert lm("go", n=2) == ["a", "b"]
    assert lm.remaining == 1
    assert FakeLM([["a", "b"]])("go", n=2) == ["a", "b"]


def test_fake_records_requests_of_copies() -> None:
    lm = FakeLM(["a", "b"])
    lm.respond(ASK)
    lm.copy(rollout_id=1)("again")
    assert [request.messages[-1].text for request in lm.requests] == ["go", "again"]
    assert lm.requests[0] is ASK


def test_fake_raises_when_the_script_is_empty() -> None:
    lm = FakeLM(["only"])
    lm("first")
    with pytest.raises(ConfigurationError, match=r"no answer left \(request 2 .*'second question'"):
        lm("second question")


def test_fake_refuses_an_item_of_unknown_type() -> None:
    with pytest.raises(ConfigurationError, match="cannot answer with float"):
        FakeLM([1.5])("go")  # type: ignore[list-item]


def test_fake_accepts_functions_and_endless_iterators() -> None:
    assert FakeLM(lambda request: "same")("a") == ["same"]
    endless = FakeLM(itertools.cycle(["tick", "tock"]))
    assert [endless("a")[0] for _ in range(3)] == ["tick", "tock", "tick"]
    assert endless.remaining is None


def test_fake_reports_given_usage_and_capabilities() -> None:
    lm = FakeLM(["a"], usage=Usage(5, 2), capabilities=Capabilities(json_object=True))
    assert lm.respond(ASK).usage == Usage(5, 2)
    lm.capabilities = Capabilities(reasoning=True)
    assert lm.capabilities.reasoning


class Point(BaseModel):
    x: int
    seen: datetime.date


class JSONAdapter:
    """Stands for an adapter of that name."""


class Custom:
    def format_outputs(self, fields: Any) -> str:
        return f"<<{fields['answer']}>>"


def test_fake_formats_field_values_in_the_chat_layout() -> None:
    fields = {"point": Point(x=1, seen=datetime.date(2026, 1, 2)), "tags": ["é"], "none": None, "text": "as it is"}
    assert FakeLM([fields])("go")[0].split("\n\n")[:4] == [
        '[[ ## point ## ]]\n{"x":1,"seen":"2026-01-02"}',
        '[[ ## tags ## ]]\n["é"]',
        "[[ ## none ## ]]\nnull",
        "[[ ## text ## ]]\nas it is",
    ]


def test_fake_formats_fields_in_the_layout_of_the_adapter() -> None:
    assert json.loads(FakeLM([{"answer": 3}], adapter=JSONAdapter())("go")[0]) == {"answer": 3}
    assert FakeLM([{"answer": "red"}], adapter=Custom())("go") == ["<<red>>"]


def test_options_that_no_model_has_are_refused_at_construction_and_in_a_call() -> None:
    with pytest.raises(UnsupportedOption, match=r"FakeLM has no option 'temprature' .*Did you mean temperature\?"):
        FakeLM(["hi"], temprature=1)
    with pytest.raises(UnsupportedOption, match=r"'usge'.*Did you mean usage\?"):
        FakeLM(["hi"], usge=Usage())
    lm = FakeLM(["hi"])
    with pytest.raises(UnsupportedOption, match=r"'nonsense' \(calling the model\)"):
        lm("hello", nonsense=1)
    assert lm("hello", num_ctx=4096) == ["hi"]
