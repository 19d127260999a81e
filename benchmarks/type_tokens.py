"""``python -m benchmarks.type_tokens``: the tokens of types in prompts, compact beside JSON Schema, as a markdown table.

Tokens are estimated, because real vocabularies must be downloaded: a word with the blank before it counts one token per six
letters, digits one per three, a run of blanks or of punctuation one per two characters, each rounded up. The estimate compares
the two columns; it is not for billing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from sigwire import InputField, OutputField, Signature
from sigwire.adapters.values.type_text import field_type_text

__all__ = ["TYPES", "estimated_tokens", "table"]


class Person(BaseModel):
    name: str
    age: int
    email: str | None = None


class Item(BaseModel):
    sku: str = Field(description="as printed on the label")
    units: int = Field(ge=1, le=99)
    price: float = Field(gt=0)
    kind: Literal["new", "used", "refurbished"] = "new"


class Order(BaseModel):
    """One order of one customer."""

    number: int
    buyer: Person
    receiver: Person | None = None
    items: list[Item] = Field(min_length=1)
    notes: list[str] = []


class Part(BaseModel):
    name: str
    parts: list[Part] = []


class Card(BaseModel):
    method: Literal["card"]
    last_digits: str = Field(pattern="^[0-9]{4}$")


class Transfer(BaseModel):
    method: Literal["transfer"]
    iban: str


class Types(Signature):
    """The types of the table, one type a field."""

    text: str = InputField()
    texts: list[str] = OutputField()
    choice: Literal["low", "medium", "high"] = OutputField()
    scores: dict[str, float] = OutputField()
    flat: Person = OutputField()
    limits: Item = OutputField()
    union: Card | Transfer = OutputField()
    recursive: Part = OutputField()
    nested: list[Order] = OutputField()


TYPES: Mapping[str, str] = {
    "texts": "`list[str]`",
    "choice": "`Literal` of three words",
    "scores": "`dict[str, float]`",
    "flat": "model of three members",
    "limits": "model with limits, a description, a default",
    "union": "union of two models",
    "recursive": "model that holds itself",
    "nested": "list of nested models",
}
_PARTS = re.compile(r" ?(?P<word>[A-Za-z]+)|(?P<digits>\d+)|(?P<blanks>\s+)|(?P<other>[^\w\s]+|_+)|(?P<rest>\w+)")
_PER_TOKEN: Mapping[str, int] = {"word": 6, "digits": 3, "blanks": 2, "other": 2, "rest": 1}


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text.

    >>> estimated_tokens("name: string"), estimated_tokens("")
    (3, 0)
    """
    return sum(-(-len(found[kind]) // _PER_TOKEN[kind]) for found, kind in _found(text))


def _found(text: str) -> list[tuple[re.Match[str], str]]:
    return [(match, match.lastgroup) for match in _PARTS.finditer(text) if match.lastgroup]


def table() -> str:
    """Return the markdown table of the page about types."""
    rows = ["| type | compact | JSON Schema | ratio |", "|---|---|---|---|"]
    rows += [_row(name, Types.spec.field(name)) for name in TYPES]
    return "\n".join(rows)


def _row(name: str, spec: Any) -> str:
    compact, schema = (estimated_tokens(field_type_text(spec, style)) for style in ("compact", "schema"))
    return f"| {TYPES[name]} | {compact} | {schema} | {schema / compact:.1f} |"


if __name__ == "__main__":
    print(table())
