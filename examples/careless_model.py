"""A scripted model that reads the invoices of ``desk_data`` and writes JSON as careless models do.

``careless`` decides by the number of the invoice, so equal requests get equal answers. Most answers are right, some are right
in a form that is not JSON, some do not fit the type, and a few fit the type and are wrong. A re-ask gets a clean answer.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from sigwire import Request

__all__ = ["careless"]

LINE = re.compile(r"(\d+) x (.+) at ([\d.]+) EUR")


def careless(request: Request) -> str:
    """Return the answer to a request with an invoice: a section with JSON, or with nearly JSON."""
    text = request.messages[1].text
    value = read(text)
    is_reask = len(request.messages) > 2
    write = json.dumps if is_reask else random.Random(value["number"]).choices(HABITS, WEIGHTS)[0]
    return f"[[ ## invoice ## ]]\n{write(value)}\n\n[[ ## completed ## ]]"


def read(text: str) -> dict[str, Any]:
    """Return the content of an invoice."""
    number, issued = re.findall(r"Invoice (\S+) of (\S+)", text)[0]
    name, city = re.findall(r"To (.+), (.+)", text)[0]
    lines = [{"item": item, "units": int(n), "unit_price": float(price)} for n, item, price in LINE.findall(text)]
    total = float(re.findall(r"Total ([\d.]+)", text)[0])
    return {"number": number, "issued": issued, "buyer": {"name": name, "city": city}, "lines": lines, "total": total}


# --- habits: right content in another form -----------------------------------------------------------


def fenced(value: dict[str, Any]) -> str:
    return f"Here is the invoice:\n```json\n{json.dumps(value, indent=1)}\n```"


def as_python(value: dict[str, Any]) -> str:
    return repr(value)


def trailing_comma(value: dict[str, Any]) -> str:
    return json.dumps(value).removesuffix("}") + ",}"


def numbers_as_text(value: dict[str, Any]) -> str:
    lines = [{**line, "units": str(line["units"])} for line in value["lines"]]
    return json.dumps({**value, "lines": lines})


# --- habits: content that does not fit, and content that is wrong -----------------------------------


def with_currency(value: dict[str, Any]) -> str:
    return json.dumps({**value, "total": f"{value['total']:.2f} EUR"})


def without_city(value: dict[str, Any]) -> str:
    return json.dumps({**value, "buyer": {"name": value["buyer"]["name"]}})


def misread_price(value: dict[str, Any]) -> str:
    first, *others = value["lines"]
    return json.dumps({**value, "lines": [{**first, "unit_price": first["unit_price"] * 10}, *others]})


Habit = Callable[[dict[str, Any]], str]
HABITS: list[Habit] = [
    json.dumps, fenced, as_python, trailing_comma, numbers_as_text, with_currency, without_city, misread_price,
]  # fmt: skip
WEIGHTS = [40, 12, 12, 10, 8, 6, 6, 6]
