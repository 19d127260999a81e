"""offline/lexical reads the prompts of the adapters and answers in their form."""

from __future__ import annotations

import datetime
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.lm.client import LM
from sigwire.signatures import InputField, OutputField, Signature

LEXICAL = LM("offline/lexical")
ADAPTERS = [ChatAdapter(), JSONAdapter(), XMLAdapter()]


class Guest(BaseModel):
    name: str
    email: str


class Booking(BaseModel):
    guest: Guest
    nights: int
    arrival: datetime.date
    room: Literal["single", "double"]


class Book(Signature):
    """Read the booking."""

    message: str = InputField()
    booking: Booking = OutputField()
    tags: list[str] = OutputField()
    note: str | None = OutputField()


MESSAGE = "Ann Lee (ann@example.com) wants a double room for 3 nights, arrival on 2026-05-04."


@pytest.mark.parametrize("capabilities", [Capabilities(), LEXICAL.capabilities], ids=["plain", "able"])
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
def test_lexical_returns_nested_outputs_in_every_form(adapter: Any, capabilities: Capabilities) -> None:
    plan = adapter.plan(Book, capabilities)
    response = LEXICAL.respond(plan.format({"message": MESSAGE}))
    parsed = plan.parse(plan.normalize(response).choices[0])
    assert parsed.fields["booking"] == Booking(
        guest=Guest(name="Ann Lee", email="ann@example.com"),
        nights=3,
        arrival=datetime.date(2026, 5, 4),
        room="double",
    )
    assert (parsed.fields["tags"], parsed.fields["note"], parsed.repairs) == ([], None, ())


class Sort(Signature):
    """Find the topic of the message."""

    message: str = InputField()
    topic: str = OutputField()


DEMOS = [
    {"message": "My parcel never arrived", "topic": "delivery"},
    {"message": "The parcel was left outside", "topic": "delivery"},
    {"message": "I was charged twice on my card", "topic": "payment"},
    {"message": "The charge on my card is too high", "topic": "payment"},
]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
def test_lexical_returns_the_label_of_the_most_similar_demos(adapter: Any) -> None:
    plan = adapter.plan(Sort, LEXICAL.capabilities)
    for message, topic in [("Where is my parcel?", "delivery"), ("A second charge appeared on the card", "payment")]:
        response = LEXICAL.respond(plan.format({"message": message}, DEMOS))
        assert plan.parse(plan.normalize(response).choices[0]).fields == {"topic": topic}


def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: Name of the city.
    """
    raise AssertionError("the tool must not run")


class Act(Signature):
    """Call the tools that the request needs."""

    request: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


@pytest.mark.parametrize("schemas", ["full", "compact"])
@pytest.mark.parametrize("capabilities", [Capabilities(), LEXICAL.capabilities], ids=["text", "native"])
def test_lexical_makes_calls_in_the_form_of_the_prompt(capabilities: Capabilities, schemas: Any) -> None:
    plan = ChatAdapter(tool_schemas=schemas).plan(Act, capabilities)
    inputs = {"request": "What is the weather in Oslo?", "tools": [Tool(weather)]}
    response = plan.normalize(LEXICAL.respond(plan.format(inputs)), plan.tools_of(inputs))
    (call,) = plan.parse(response.choices[0]).fields["calls"]
    assert (call.name, call.arguments) == ("weather", {"city": "Oslo"})
