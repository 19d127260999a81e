"""Criteria of outputs are texts that searches tune."""

from __future__ import annotations

import json
import pickle
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from sigwire.adapters.values.output_schema import output_schema
from sigwire.errors import ConfigurationError
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.candidate import Candidate, applied, slots
from sigwire.signatures.criteria import Criteria, deciding_outputs
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature


class Triage(Signature):
    """Sort."""

    text: str = InputField()
    urgent: Annotated[bool, Criteria({True: "service is down"})] = OutputField()
    tags: Annotated[list[Literal["spam", "bill"]], Criteria({"bill": "money"})] = OutputField()


def test_candidates_change_criteria_in_the_family_of_fields() -> None:
    student = Predict(Triage, lm=FakeLM([{"urgent": True, "tags": []}]))
    found = {slot: text for slot, text in slots(student, tune=["fields"]).items() if ".criteria." in slot}
    assert found == {"self.fields.urgent.criteria.true": "service is down", "self.fields.tags.criteria.bill": "money"}
    program = applied(student, Candidate({"self.fields.urgent.criteria.true": "people wait"}))
    program(text="x")
    system = student.lm.requests[0].messages[0].text
    assert "// true: people wait" in system
    assert "// bill: money" in system
    assert "criteria" in str(student.dump_state())
    for slot in ("self.fields.urgent.criteria.odd", "self.fields.odd.criteria.true"):
        with pytest.raises(ConfigurationError, match="slot"):
            applied(student, Candidate({slot: "x"}))


class Owner(TypedDict):
    known: Annotated[bool, Criteria({True: "in the list"})]


class Part(BaseModel):
    urgent: Annotated[bool, Criteria({True: "now"})] | None
    harm: Annotated[float, Criteria("none", ("severe", "hurt"))] = Field(alias="damage", validation_alias="damage")
    owner: Owner


class Nested(Signature):
    """Sort."""

    text: str = InputField()
    first: Part | None = OutputField()
    second: Part = OutputField()
    tags: list[Annotated[Literal["spam", "bill"], Criteria({"bill": "money"})]] = OutputField()
    flag: Annotated[bool, Criteria({False: "no"})] | None = OutputField()


NESTED = {
    "self.fields.first.urgent.criteria.true": "now",
    "self.fields.first.harm.criteria.severe": "hurt",
    "self.fields.first.owner.known.criteria.true": "in the list",
    "self.fields.second.urgent.criteria.true": "now",
    "self.fields.second.harm.criteria.severe": "hurt",
    "self.fields.second.owner.known.criteria.true": "in the list",
    "self.fields.tags.criteria.bill": "money",
    "self.fields.flag.criteria.false": "no",
}


@pytest.mark.parametrize("slot", [*NESTED, "self.fields.second.harm.criteria.none"])
def test_candidates_change_criteria_inside_of_types_at_one_place(slot: str) -> None:
    value = {"urgent": True, "damage": 1, "owner": {"known": True}}
    answer = {"first": value, "second": value, "tags": ["bill"], "flag": None}

    def sent(program: Predict[..., Any]) -> tuple[str, str]:
        program(text="x")
        return program.lm.requests[-1].messages[0].text, str(output_schema(program.signature.spec.outputs))

    student = Predict(Nested, lm=FakeLM([answer] * 3))
    texts = {name: text for name, text in slots(student, tune=["fields"]).items() if ".criteria." in name}
    assert texts == NESTED
    program = applied(student, Candidate({slot: "people wait"}))
    before, after = sent(student), sent(program)
    assert [each.count("people wait") for each in after] == [1, 1]
    if text := NESTED.get(slot):
        assert before[0].count(text) - after[0].count(text) == 1
    assert slots(program, tune=["fields"])[slot] == "people wait"
    again = Predict(Nested)
    program.lm = None
    again.load_state(json.loads(json.dumps(program.dump_state())))
    assert again.signature.equals(program.signature)
    assert pickle.loads(pickle.dumps(program)).signature.equals(program.signature)
    assert not again.signature.equals(Nested)
    assert slots(again, tune=["fields"]) == slots(program, tune=["fields"])
    assert [each.path for each in deciding_outputs(program.signature.spec)] == [
        each.path for each in deciding_outputs(Nested.spec)
    ]


def test_equal_criteria_of_a_state_change_no_signature() -> None:
    state = Nested.dump_state()
    assert Nested.load_state(state).spec.by_name["first"] is Nested.spec.by_name["first"]
