"""Slot filling: arguments from a text, by the types, names and descriptions of a schema."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire.lm.offline.filling import fill
from sigwire.lm.offline.slots import SlotHabit


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {
        "properties": {n: p if isinstance(p, dict) else {"type": p} for n, p in properties.items()},
        "required": required,
    }


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "a box of height 3 and width 5",
        schema("width", "height", width="integer", height="integer"),
        {"width": 5, "height": 3},
    ),
    ("add 7 and 9", schema("number1", "number2", number1="integer", number2="integer"), {"number1": 7, "number2": 9}),
    (
        "a car of 900 kg going 20 m/s",
        schema("velocity", "mass", velocity="number", mass="number"),
        {"velocity": 20, "mass": 900},
    ),
    (
        "a loan of $5000 at 4% for 3 years",
        schema("rate", "years", "amount", rate="number", years="integer", amount="integer"),
        {"rate": 0.04, "years": 3, "amount": 5000},
    ),
    (
        "interest of 4%",
        schema("rate", rate={"type": "number", "description": "The rate in percent."}),
        {"rate": 4},
    ),
    (
        "a train from Oslo to Bergen",
        schema("destination", "origin", destination="string", origin="string"),
        {"destination": "Bergen", "origin": "Oslo"},
    ),
    (
        "hotels in Chicago",
        schema("city", city={"type": "string", "description": "City and state, e.g. 'Boston, MA'"}),
        {"city": "Chicago, IL"},
    ),
    (
        "from 2012 to 2015",
        schema("from_year", "to_year", from_year="integer", to_year="integer"),
        {"from_year": 2012, "to_year": 2015},
    ),
    ("Play it loud", schema("volume", volume={"enum": ["quiet", "loud"]}), {"volume": "loud"}),
    (
        "from 5 miles to kilometers",
        schema(
            "to_unit",
            "from_unit",
            to_unit={"enum": ["miles", "kilometers"]},
            from_unit={"enum": ["miles", "kilometers"]},
        ),
        {"to_unit": "kilometers", "from_unit": "miles"},
    ),
    ("a route that avoids tolls", schema("avoid_tolls", avoid_tolls="boolean"), {"avoid_tolls": True}),
    ("rooms without breakfast", schema("breakfast", breakfast="boolean"), {"breakfast": False}),
    (
        "the mean of 3, 4 and 8",
        schema("numbers", numbers={"type": "array", "items": {"type": "integer"}}),
        {"numbers": [3, 4, 8]},
    ),
    (
        "invite Ann, Bob and Carl",
        schema("guests", guests={"type": "array", "items": {"type": "string"}}),
        {"guests": ["Ann", "Bob", "Carl"]},
    ),
    (
        "ship 3 lamps to Ann Lee (ann@example.com)",
        schema(
            "quantity",
            "to",
            quantity="integer",
            to={"type": "object", **schema("name", "email", name="string", email="string")},
        ),
        {"quantity": 3, "to": {"name": "Ann Lee", "email": "ann@example.com"}},
    ),
    (
        "user 'admin' with 's3' as the password",
        schema("password", "user", password="string", user="string"),
        {"password": "s3", "user": "admin"},
    ),
    ("What time is it?", schema("zone", zone={"type": "string", "default": "UTC"}), {"zone": "UTC"}),
]


@pytest.mark.parametrize(("text", "parameters", "arguments"), CASES)
def test_fill_returns_the_arguments_of_a_text(text: str, parameters: dict[str, Any], arguments: dict[str, Any]) -> None:
    filled = fill(parameters, text)
    assert filled.arguments == arguments
    assert filled.missing == ()


def test_fill_reports_missing_required_values_and_omits_optional_ones() -> None:
    filled = fill(schema("weight", weight="number", height="number", name="string"), "How tall is it?")
    assert filled.arguments == {}
    assert filled.missing == ("weight",)


def test_fill_uses_a_value_for_one_slot_only() -> None:
    filled = fill(schema("a", "b", a="integer", b="integer"), "only 5 here")
    assert len(filled.arguments) == 1
    assert len(filled.missing) == 1


def test_fill_returns_further_arguments_for_an_enumeration() -> None:
    filled = fill(schema("city", city="string"), "the weather in Oslo, Rome and Lyon")
    assert filled.further == ({"city": "Rome"}, {"city": "Lyon"})


def test_fill_prefers_known_values_to_mentions_with_lower_scores() -> None:
    parameters = schema("customer_id", customer_id="integer")
    assert fill(parameters, "what Ann paid in 2024", known={"customer_id": (7, 2.8)}).arguments == {"customer_id": 7}


def test_fill_follows_the_habits_of_demos_for_optional_values_and_forms() -> None:
    parameters = schema("city", city="string", mood="string")
    shown = SlotHabit(values=("Fresno, CA", "Napa, CA"), shown=2, given=2)
    assert fill(parameters, "concerts in Berkeley", {"city": shown}).arguments == {"city": "Berkeley, CA"}
