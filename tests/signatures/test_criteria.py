"""Criteria of values and levels, and the deciding outputs of a signature."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from sigwire.errors import SignatureError, StateError
from sigwire.signatures.criteria import Criteria, deciding_outputs
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature


class Area(Enum):
    BILLING = "billing"
    REPAIR = "repair"


@dataclass
class Place:
    indoors: bool
    name: str


class Facts(TypedDict):
    area: Area | None
    note: str


class Ticket(BaseModel):
    urgent: Annotated[bool, Criteria({True: "service is down"})]
    place: Place
    facts: Facts | None = None
    again: list[Ticket] = []


class Triage(Signature):
    """Sort the ticket."""

    text: str = InputField()
    urgent: Annotated[bool, Criteria({True: "service is down"})] = OutputField(desc="Must someone act?")
    harm: Annotated[float, Criteria("none", "minor", ("severe", "someone is hurt"))] = OutputField()
    level: Annotated[int, Criteria("low", "high")] = OutputField()
    area: Area | None = OutputField()
    sure: bool | None = OutputField()
    tags: list[Literal["billing", "spam"]] = OutputField()
    kind: Literal["only"] = OutputField()
    ticket: Ticket = OutputField()
    by_name: dict[str, bool] = OutputField()
    share: float = OutputField()


def test_deciding_outputs_are_found_through_models_dataclasses_and_typed_dicts() -> None:
    found = {
        each.path: (each.kind, each.values, each.is_mean, each.allows_none) for each in deciding_outputs(Triage.spec)
    }
    assert found == {
        "urgent": ("bool", (True, False), False, False),
        "harm": ("score", (0, 1, 2), True, False),
        "level": ("score", (0, 1), False, False),
        "area": ("choice", (Area.BILLING, Area.REPAIR, None), False, True),
        "sure": ("choice", (True, False, None), False, True),
        "tags[billing]": ("bool", (True, False), False, False),
        "tags[spam]": ("bool", (True, False), False, False),
        "ticket.urgent": ("bool", (True, False), False, False),
        "ticket.place.indoors": ("bool", (True, False), False, False),
        "ticket.facts.area": ("choice", (Area.BILLING, Area.REPAIR, None), False, True),
    }
    assert deciding_outputs(Triage.spec) is deciding_outputs(Triage.spec)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Criteria("one"), "2 to 10 levels, not 1"),
        (lambda: Criteria(*"abcdefghijk"), "2 to 10 levels, not 11"),
        (lambda: Criteria("a", " "), "empty label"),
        (lambda: Criteria("a", ("a", "again")), "'a' twice"),
        (lambda: Criteria("a", 3), "level is a text"),  # type: ignore[arg-type]
        (lambda: Criteria({}), "describe no value"),
        (lambda: Criteria({True: ""}), "criterion of True is a text"),
    ],
)
def test_criteria_refuse_what_no_model_can_read(made: Any, said: str) -> None:
    with pytest.raises(SignatureError, match=said):
        made()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Annotated[Literal["a", "b"], Criteria({"c": "x"})], "criterion of 'c', which is no value of it"),
        (Annotated[bool, Criteria("low", "high")], "levels, and its type is bool"),
        (Annotated[str, Criteria({"a": "x"})], "Criteria, and its type is str"),
        (Annotated[float | None, Criteria("low", "high")], "levels on an optional output"),
        (Annotated[bool, Criteria({True: "x"}), Criteria({False: "y"})], "two Criteria"),
        (list[Annotated[Literal["a", "b"], Criteria({"c": "x"})]], "criterion of 'c'"),
    ],
)
def test_signature_refuses_criteria_that_do_not_fit_naming_the_field(kind: Any, said: str) -> None:
    with pytest.raises(SignatureError, match=rf"found.*{said}|found has {said}"):
        make_signature({"a": (str, InputField()), "found": (kind, OutputField())})


def test_criteria_of_a_nested_output_are_checked_with_its_path() -> None:
    class Inner(BaseModel):
        flag: Annotated[bool, Criteria("low", "high")]

    with pytest.raises(SignatureError, match=r"found\.flag has levels"):
        make_signature({"a": (str, InputField()), "found": (Inner, OutputField())})


def test_criteria_are_equal_by_content_and_survive_a_pickle() -> None:
    for criteria in (Criteria("low", ("high", "x")), Criteria({True: "x"})):
        assert pickle.loads(pickle.dumps(criteria)) == criteria
        assert hash(pickle.loads(pickle.dumps(criteria))) == hash(criteria)
    assert Criteria("a", "b") != Criteria("b", "a")


def test_schema_has_the_criteria_for_wires_that_decide() -> None:
    schema = Ticket.model_json_schema()["$defs"]["Ticket"]["properties"]["urgent"]
    assert schema["x-criteria"] == {"true": "service is down"}
    levels = Triage.spec.by_name["harm"].adapter.json_schema()["x-levels"]
    assert levels == [{"label": "none"}, {"label": "minor"}, {"label": "severe", "description": "someone is hurt"}]


def test_state_of_a_signature_keeps_changed_criteria() -> None:
    changed = Triage.load_state({"criteria": {"urgent": {"true": "people wait"}, "harm": {"severe": "broken bones"}}})
    assert changed.spec.by_name["urgent"].adapter.json_schema()["x-criteria"] == {"true": "people wait"}
    again = Triage.load_state(changed.dump_state())
    assert again.equals(changed)
    assert not again.equals(Triage)
    saved = {
        "urgent": {"true": "service is down"},
        "harm": {"severe": "someone is hurt"},
        "ticket.urgent": {"true": "service is down"},
    }
    assert Triage.dump_state()["criteria"] == saved
    assert "criteria" not in Signature("a -> b").dump_state()


@pytest.mark.parametrize(
    "criteria", [{"urgent": {"odd": "x"}}, {"urgent": {"true": 3}}, {"urgent": "x"}, {"odd": {"x": "y"}}, "x"]
)
def test_state_with_criteria_that_do_not_fit_is_refused(criteria: Any) -> None:
    with pytest.raises(StateError, match="criteria"):
        Triage.load_state({"criteria": criteria})
