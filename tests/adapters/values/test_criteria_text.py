"""Criteria in the prompts and schemas of text models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.values.criteria_text import describe_criteria
from sigwire.adapters.values.output_schema import output_schema
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.signatures.criteria import Criteria
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature


class Ticket(BaseModel):
    urgent: Annotated[bool, Criteria({True: "service is down"})]


class Triage(Signature):
    """Sort."""

    text: str = InputField()
    urgent: Annotated[bool, Criteria({True: "service\nis down"})] = OutputField(desc="Now?")
    harm: Annotated[float, Criteria("none", ("severe", "hurt"))] = OutputField()
    tags: Annotated[list[Literal["spam", "bill"]], Criteria({"bill": "money"})] = OutputField()
    ticket: Ticket = OutputField()


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter()])
def test_prompt_has_criteria_behind_the_type_and_the_reminder_has_the_type_alone(adapter: Any) -> None:
    system, user = (message.text for message in adapter.format(Triage, {"text": "x"}).messages)
    assert "- urgent: Now?\n  type: bool  // true: service is down\n" in system
    assert "- harm\n  type: float  // 0: none; 1: severe (hurt)\n" in system
    assert '- tags\n  type: ("spam" | "bill")[]  // bill: money\n' in system
    assert "urgent: bool,  // true: service is down" in system
    assert "(bool)" in user
    assert "service" not in user


def test_schema_of_a_text_model_has_criteria_as_descriptions() -> None:
    format_ = JSONAdapter().format(Triage, {"text": "x"}, capabilities=Capabilities(json_schema=True)).response_format
    assert format_ is not None
    assert format_.schema is not None
    properties: Any = format_.schema["properties"]
    assert properties["urgent"]["description"] == "Now? (true: service is down)"
    assert properties["tags"]["description"] == "bill: money"
    assert "x-" not in str(format_.schema)
    assert output_schema(Triage.spec.outputs, keeps_criteria=True)["properties"]["harm"]["x-levels"]  # type: ignore[index,call-overload]


def test_type_as_schema_has_criteria_as_descriptions() -> None:
    system = ChatAdapter(types="schema").format(Triage, {"text": "x"}).messages[0].text
    assert '{"type":"boolean","description":"true: service is down"}' in system


def test_schema_without_criteria_is_returned_as_it_is() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "boolean"}}}
    assert describe_criteria(schema) is schema
