"""A large nested answer (f): 200 items of six fields, as JSON text, to typed values. The floor is pydantic alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, TypeAdapter

from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire import Adapter, ChatAdapter, Choice, InputField, JSONAdapter, OutputField, Signature

__all__ = ["jobs"]


class Maker(BaseModel):
    name: str
    country: str


class Item(BaseModel):
    sku: str
    price: float
    units: int
    kind: Literal["new", "used"]
    tags: list[str]
    maker: Maker


class ReadCatalogue(Signature):
    """Read the items of the catalogue."""

    page: str = InputField()
    items: list[Item] = OutputField()


ITEMS = [
    Item(
        sku=f"sku-{n}",
        price=n + 0.25,
        units=n,
        kind="new" if n % 2 else "used",
        tags=["a", f"tag {n}"],
        maker=Maker(name=f"Maker {n}", country="Norway"),
    )
    for n in range(200)
]


def jobs() -> Iterator[Job]:
    """Yield f, through two adapters."""
    rows = [item.model_dump() for item in ITEMS]
    yield job("JSON", JSONAdapter(), json.dumps({"items": rows}))
    yield job("Chat", ChatAdapter(), f"[[ ## items ## ]]\n{json.dumps(rows)}\n\n[[ ## completed ## ]]\n")


def job(name: str, adapter: Adapter, text: str) -> Job:
    """Return a job that parses an answer with one adapter, beside pydantic on the same JSON."""
    plan, choice = adapter.plan(ReadCatalogue), Choice(text=text)
    floor, alone = TypeAdapter(list[Item]), json.dumps([item.model_dump() for item in ITEMS])

    def sigwire_parse() -> object:
        return plan.parse(choice).fields["items"]

    def by_hand() -> object:
        return floor.validate_json(alone)

    assert sigwire_parse() == by_hand() == ITEMS
    return Job("f", f"parse 200 nested items, {name}", "≤ 1.1x", {FLOOR: by_hand, SIGWIRE: sigwire_parse}, unit="ms")
