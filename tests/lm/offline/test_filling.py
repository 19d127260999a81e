"""Slot filling: arguments out of a text, by the schema's types, names and descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire.lm.offline.filling import fill
from sigwire.lm.offline.slots import Habit


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
        "arrive on 3 May 2025",
        schema("date", date={"type": "string", "description": "In the format DD/MM/YYYY"}),
        {"date": "03/05/2025"},
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
    (
        "150 euros in yen",
        schema("amount", "target_currency", amount="number", target_currency="string"),
        {"amount": 150, "target_currency": "JPY"},
    ),
    ("What time is it?", schema("zone", zone={"type": "string", "default": "UTC"}), {"zone": "UTC"}),
]


@pytest.mark.parametrize(("text", "parameters", "arguments"), CASES)
def test_arguments_out_of_a_text(text: str, parameters: dict[str, Any], arguments: dict[str, Any]) -> None:
    filling = fill(parameters, text)
    assert filling.arguments == arguments
    assert filling.missing == ()


def test_what_the_text_does_not_say_is_missing_or_left_out() -> None:
    filling = fill(schema("weight", weight="number", height="number", name="string"), "How tall is it?")
    assert filling.arguments == {}
    assert filling.missing == ("weight",)


def test_a_value_is_used_once() -> None:
    filling = fill(schema("a", "b", a="integer", b="integer"), "only 5 here")
    assert len(filling.arguments) == 1
    assert len(filling.missing) == 1


def test_an_enumeration_for_one_value_gives_alternatives() -> None:
    filling = fill(schema("city", city="string"), "the weather in Oslo, Rome and Lyon")
    assert filling.alternatives == {"city": ("Oslo", "Rome", "Lyon")}


def test_known_values_win_over_weak_reasons() -> None:
    parameters = schema("customer_id", customer_id="integer")
    assert fill(parameters, "what Ann paid in 2024", known={"customer_id": (7, 2.8)}).arguments == {"customer_id": 7}


def test_habits_decide_about_optional_values_and_forms() -> None:
    parameters = schema("city", city="string", mood="string")
    shown = Habit(values=("Fresno, CA", "Napa, CA"), shown=2, given=2)
    assert fill(parameters, "concerts in Berkeley", {"city": shown}).arguments == {"city": "Berkeley, CA"}
