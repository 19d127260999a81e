"""A large nested answer (f): 200 items of six fields, as JSON text, to typed values. The floor is pydantic alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from benchmarks.timing import FLOOR, OURS, Job
from sigwire import ChatAdapter, Choice, InputField, JSONAdapter, OutputField, Signature

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
    """f, through both adapters."""
    floor = TypeAdapter(dict[str, list[Item]])
    rows = [item.model_dump() for item in ITEMS]
    whole, alone = json.dumps({"items": rows}), json.dumps(rows)
    json_plan: Any = JSONAdapter().plan(ReadCatalogue)
    chat_plan: Any = ChatAdapter().plan(ReadCatalogue)
    answers = {
        "JSON": (json_plan, Choice(text=whole)),
        "Chat": (chat_plan, Choice(text=f"[[ ## items ## ]]\n{alone}\n")),
    }
    for name, (plan, choice) in answers.items():
        assert plan.parse(choice).fields["items"] == floor.validate_json(whole)["items"] == ITEMS
        yield Job(
            "f",
            f"parse 200 nested items, {name}",
            "≤ 1.1x",
            {FLOOR: lambda: floor.validate_json(whole), OURS: lambda plan=plan, choice=choice: plan.parse(choice)},
            unit="ms",
        )
