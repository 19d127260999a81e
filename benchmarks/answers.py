"""``python -m benchmarks.answers``: how many deviating answers each adapter reads right, as a markdown table.

The answers of six signatures are written in each adapter's form and changed by one habit of models at a time. An answer
counts as *read* if all values equal the true ones; strict adapters read what needs no repair. A *wrong* value, accepted
without an error, would be worse than a refusal: the table has their number. The figures compare adapters and versions; no
model was asked, so they are not the rate of any model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from sigwire import Adapter, ChatAdapter, FakeLM, JSONAdapter, Signature, XMLAdapter
from sigwire.errors import ModelError

__all__ = ["HABITS", "Outcome", "outcomes", "table"]


class Person(BaseModel):
    name: str
    age: int


ROWS: tuple[tuple[Any, Mapping[str, Any]], ...] = (
    (Signature("q -> answer"), {"answer": "The opera is in Oslo."}),
    (Signature("q -> count: int, unit"), {"count": 3, "unit": "km"}),
    (Signature("q -> score: float, is_sure: bool"), {"score": 0.5, "is_sure": True}),
    (
        Signature("q -> topic: Literal['billing', 'delivery'], why", custom_types={"Literal": Literal}),
        {"topic": "billing", "why": "It names a charge."},
    ),
    (Signature("q -> names: list[str], note"), {"names": ["Ada", "Grace"], "note": "both"}),
    (
        Signature("q -> person: Person, note", custom_types={"Person": Person}),
        {"person": Person(name="Ada", age=36), "note": "found"},
    ),
)
ADAPTERS: Mapping[str, Callable[..., Adapter]] = {"Chat": ChatAdapter, "JSON": JSONAdapter, "XML": XMLAdapter}


def _in_form_of(adapter: type[Adapter]) -> Callable[[str, Mapping[str, Any]], str]:
    return lambda _, values: _written(adapter(), values)


def _written(adapter: Adapter, values: Mapping[str, Any]) -> str:
    return str(FakeLM([dict(values)], adapter=adapter)("?")[0])


def _texts(change: Callable[[str], str]) -> Callable[[str, Mapping[str, Any]], str]:
    return lambda text, _: change(text)


HABITS: Mapping[str, Callable[[str, Mapping[str, Any]], str]] = {
    "as asked": _texts(str),
    "a sentence before": _texts(lambda text: f"Sure, here is the answer:\n\n{text}"),
    "a sentence after": _texts(lambda text: f"{text}\n\nLet me know if you need more."),
    "a `<think>` block before": _texts(lambda text: f"<think>\nLet me see.\n</think>\n\n{text}"),
    "all in a code fence": _texts(lambda text: f"```\n{text}\n```"),
    "all in a `json` fence": _texts(lambda text: f"```json\n{text}\n```"),
    "names in another case": _texts(
        lambda text: re.sub(r'(\[\[ ## |</?|[{,]\s*")([a-z])', lambda m: m[1] + m[2].upper(), text)
    ),
    "no end mark or end": _texts(lambda text: re.sub(r"\s*(\[\[ ## completed ## \]\]|\}|</\w+>)\s*$", "", text)),
    "bold marks": _texts(lambda text: re.sub(r"(?m)^(\[\[ ## \w+ ## \]\])", r"**\1**", text)),
    "numbers and words in backticks": _texts(
        lambda text: re.sub(r"(?m)(?<=^)(3|0\.5|true|billing)(?=$)|(?<=>)(3|0\.5|true|billing)(?=<)", r"`\g<0>`", text)
    ),
    "numbers as JSON strings": _texts(lambda text: re.sub(r"(?<![\w.\"])(3|36|0\.5)(?![\w.\"])", r'"\1"', text)),
    "Python's literals": _texts(lambda text: text.replace("true", "True").replace('"', "'")),
    "a comma too many": _texts(lambda text: re.sub(r"([\"\w])(\s*[\]}])(?!\])", r"\1,\2", text)),
    "Chat's form": _in_form_of(ChatAdapter),
    "JSON's form": _in_form_of(JSONAdapter),
    "XML's form": _in_form_of(XMLAdapter),
}


class Outcome(NamedTuple):
    """How many of the answers were read right, read right by a strict adapter, refused, and read wrong."""

    read: int = 0
    strict: int = 0
    refused: int = 0
    wrong: int = 0


def outcomes(habit: str, adapter: str) -> Outcome:
    """Return the outcome of the answers with one habit.

    >>> outcomes("as asked", "Chat")
    Outcome(read=6, strict=6, refused=0, wrong=0)
    """
    found = [_read(ADAPTERS[adapter](), habit, *row) for row in ROWS]
    strict = [_read(ADAPTERS[adapter](strict=True), habit, *row) for row in ROWS]
    return Outcome(found.count(True), strict.count(True), found.count(None), (found + strict).count(False))


def _read(adapter: Adapter, habit: str, signature: Any, values: Mapping[str, Any]) -> bool | None:
    """Return whether an answer gives the true values; ``None`` if it is refused."""
    text = HABITS[habit](_written(type(adapter)(), values), values)
    try:
        return bool(adapter.parse(signature, text) == values)
    except ModelError:
        return None


def table() -> str:
    """Return the markdown table of the page about adapters."""
    total = len(ROWS)
    rows = [f"| the answer has | {' | '.join(ADAPTERS)} |", f"|---|{'---|' * len(ADAPTERS)}"]
    sums = {name: [outcomes(habit, name) for habit in HABITS] for name in ADAPTERS}
    for number, habit in enumerate(HABITS):
        rows.append(f"| {habit} | {' | '.join(_cell(sums[name][number]) for name in ADAPTERS)} |")
    shares = [f"{sum(each.read for each in found) / (total * len(HABITS)):.0%}" for found in sums.values()]
    wrong = [str(sum(each.wrong for each in found)) for found in sums.values()]
    return "\n".join([*rows, f"| all, read | {' | '.join(shares)} |", f"| all, wrong | {' | '.join(wrong)} |"])


def _cell(outcome: Outcome) -> str:
    return f"{outcome.read} ({outcome.strict})"


if __name__ == "__main__":
    print(table())
