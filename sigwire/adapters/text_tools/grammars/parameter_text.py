"""Argument values written as plain text, typed by the tool's schema.

The text of a parameter that is declared as a string stays unchanged. Any other text is read as JSON or as a Python literal,
and the value is kept if its type is among the declared ones. Otherwise the text stays, and validation judges it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sigwire.adapters.text_tools.grammars.literals import read_literal
from sigwire.adapters.values.json_text import read_json
from sigwire.core.json import JsonValue, loads
from sigwire.core.narrow import is_mapping, is_sequence

__all__ = ["read_value"]


def read_value(text: str, schema: object, root: object = None) -> JsonValue:
    """Return the value of a parameter's text. ``schema`` is the parameter's, ``root`` the schema with its definitions.

    >>> read_value("12345", {"type": "string"}), read_value("12345", {"type": "integer"})
    ('12345', 12345)
    >>> read_value("True", {"type": ["boolean", "null"]}), read_value("soon", {"type": "integer"})
    (True, 'soon')
    """
    types = frozenset(_types_of(schema, root, 0))
    if not types - {"string"}:
        return text
    for read in (loads, read_literal, _read_lenient_json):
        try:
            value: JsonValue = read(text.strip())
        except ValueError:
            continue
        if any(_CHECKS[type_](value) for type_ in types if type_ in _CHECKS):
            return value
    return text


def _read_lenient_json(text: str) -> JsonValue:
    if not text.startswith(("{", "[")):
        raise ValueError
    return read_json(text)[0]


def _is_integer(value: object) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _is_number(value: object) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


_CHECKS: Mapping[str, Callable[[object], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
}
_MAX_DEPTH = 8


def _types_of(schema: object, root: object, depth: int) -> Iterator[str]:
    """Yield the JSON types that a schema allows; nothing if the schema has no types."""
    if not is_mapping(schema) or depth > _MAX_DEPTH:
        return
    if isinstance(schema.get("$ref"), str):
        yield from _types_of(_resolve(schema["$ref"], root), root, depth + 1)
    type_ = schema.get("type")
    if isinstance(type_, str):
        yield type_
    elif is_sequence(type_):
        yield from (name for name in type_ if isinstance(name, str))
    else:
        yield from _implied_types(schema)
    for key in ("anyOf", "oneOf", "allOf"):
        for member in _items_of(schema.get(key)):
            yield from _types_of(member, root, depth + 1)


def _implied_types(schema: Mapping[str, Any]) -> Iterator[str]:
    for value in [schema["const"]] if "const" in schema else _items_of(schema.get("enum")):
        yield next((name for name, check in _CHECKS.items() if check(value)), "string")
    if "properties" in schema:
        yield "object"
    if "items" in schema:
        yield "array"


def _items_of(value: object) -> Sequence[object]:
    return value if is_sequence(value) else ()


def _resolve(reference: str, root: object) -> object:
    found = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if is_mapping(found) else None
    return found
