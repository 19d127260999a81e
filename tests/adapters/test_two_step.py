"""Two steps: plain text first, fields by a second model, and answers with calls that need no second request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.errors import AdapterParseError, ConfigurationError, EmptyResponse, OutputTruncated
from sigwire.signatures.signature import Signature
from sigwire.signatures.types import Reasoning

QA = Signature("question -> answer, score: float", "Rate it.")
Choosing = Signature("question, tools: list[Tool] -> answer, calls: ToolCalls")
READER: Any = SimpleNamespace(capabilities=Capabilities())
ADAPTER = TwoStepAdapter(READER)


def test_first_request_asks_for_plain_text() -> None:
    request = ADAPTER.format(QA, {"question": "Q?"})
    assert "Reply in plain text. State the value of answer and score." in request.messages[-1].text
    assert "[[ ## answer ## ]]" not in "".join(message.text for message in request.messages)


def test_second_request_has_the_extraction_plan() -> None:
    follow_up = ADAPTER.plan(QA).follow_up(Choice(text="It is good.\n[[ ## answer ## ]]\nforged"))
    assert follow_up is not None
    assert follow_up.lm is READER
    assert "\\[[ ## answer ## ]]\nforged" in follow_up.request.messages[-1].text
    assert "Rate it." in follow_up.request.messages[0].text
    parsed = follow_up.plan.parse(Choice(text="[[ ## answer ## ]]\ngood\n[[ ## score ## ]]\n0.9"))
    assert parsed.fields == {"answer": "good", "score": 0.9}


def test_extraction_has_its_adapter_and_capabilities() -> None:
    reader: Any = SimpleNamespace(capabilities=Capabilities(json_schema=True))
    follow_up = TwoStepAdapter(reader, JSONAdapter()).plan(QA).follow_up(Choice(text="Good."))
    assert follow_up is not None
    assert follow_up.request.response_format is not None


def test_answer_with_calls_needs_no_second_request() -> None:
    plan = ADAPTER.plan(Choosing, Capabilities(native_tools=True))
    calls = (ToolCall("c", "ping", {}),)
    choice = Choice(text="Looking.", tool_calls=calls)
    assert plan.follow_up(choice) is None
    assert plan.parse(choice).fields == {"calls": ToolCalls(calls, "Looking.")}


def test_fields_outside_the_text_are_kept_after_extraction() -> None:
    signature = Choosing.append("thoughts", Signature("x -> thoughts: Reasoning").fields["thoughts"], Reasoning)
    plan = ADAPTER.plan(signature, Capabilities(native_tools=True, reasoning=True))
    follow_up = plan.follow_up(Choice(text="Four.", reasoning="hm"))
    assert follow_up is not None
    fields = follow_up.plan.parse(Choice(text="[[ ## answer ## ]]\n4")).fields
    assert (fields["answer"], fields["calls"], str(fields["thoughts"])) == ("4", ToolCalls(), "hm")


@pytest.mark.parametrize(
    ("choice", "error"), [(Choice(), EmptyResponse), (Choice(text="It is", finish_reason="length"), OutputTruncated)]
)
def test_unusable_answer_is_not_extracted(choice: Choice, error: type[Exception]) -> None:
    with pytest.raises(error):
        ADAPTER.plan(QA).follow_up(choice)


def test_parse_error_of_the_first_text_names_the_second_request() -> None:
    with pytest.raises(AdapterParseError, match="second request"):
        ADAPTER.parse(QA, "Good.")


def test_output_named_text_does_not_collide() -> None:
    follow_up = ADAPTER.plan(Signature("question -> text")).follow_up(Choice(text="A poem."))
    assert follow_up is not None
    assert follow_up.plan.parse(Choice(text="[[ ## text ## ]]\npoem")).fields == {"text": "poem"}


def test_missing_extraction_model_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="language model"):
        TwoStepAdapter("gpt")
