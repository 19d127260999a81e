"""Inputs that are variables of a session: their JSON values, and the lines by which a prompt describes them.

A line has the type, the size and the beginning of a value. It is bounded, whatever the size of the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from sigwire.core.json import JsonValue
from sigwire.core.record import FieldValues
from sigwire.errors import InputError
from sigwire.modules.agents.tool_results import encode

__all__ = ["describe_variables", "json_variables"]

_BEGINNING = 200  # characters of a value that a prompt shows
_ITEMS, _DEPTH = 5, 3


def json_variables(inputs: FieldValues) -> dict[str, JsonValue]:
    """Return the inputs as JSON values. Raises ``InputError`` for media and for values without a JSON form."""
    return {name: _json_value(name, value) for name, value in inputs.items()}


def _json_value(name: str, value: object) -> JsonValue:
    try:
        content, media = encode(value)
    except ValueError as error:
        raise InputError(
            f"The input {name!r} cannot be a variable of code: {error}. Pass JSON values or text."
        ) from error
    if media:
        raise InputError(f"The input {name!r} holds media, which code cannot read. Pass text, or use Predict.")
    return content


def describe_variables(values: Mapping[str, JsonValue], texts: Mapping[str, str]) -> str:
    """Return a line for each variable: name, type, size, beginning. ``texts``: descriptions of fields.

    >>> print(describe_variables({"page": "word " * 2_000_000, "years": [2024, 2025], "k": 3}, {"page": "a site"}))
    page: str of 10,000,000 characters (a site), begins with 'word word word word word word word word word word ...
    years: list of 2 items: [2024, 2025]
    k: int: 3
    """
    return "\n".join(_line(name, value, texts.get(name, "")) for name, value in values.items())


def _line(name: str, value: JsonValue, text: str) -> str:
    head = _head(value, _DEPTH)
    shown, start = repr(head), f"{name}: {_kind(value)}{f' ({text})' if text else ''}"
    is_whole = head == value and len(shown) <= _BEGINNING
    return f"{start}: {shown}" if is_whole else f"{start}, begins with {shown[:_BEGINNING]}..."


def _kind(value: JsonValue) -> str:
    if isinstance(value, str):
        return f"str of {len(value):,} characters"
    if isinstance(value, list | dict):
        return f"{type(value).__name__} of {len(value):,} {'items' if isinstance(value, list) else 'keys'}"
    return type(value).__name__


def _head(value: JsonValue, depth: int) -> JsonValue:
    """Return a bounded part of a value."""
    if isinstance(value, str):
        return value[: _BEGINNING + 1]
    if isinstance(value, list):
        return [_head(item, depth - 1) for item in value[:_ITEMS]] if depth else []
    if isinstance(value, dict):
        items = islice(value.items(), _ITEMS if depth else 0)
        return {key[:_BEGINNING]: _head(item, depth - 1) for key, item in items}
    return value
