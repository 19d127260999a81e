"""Argument values that were written as plain text, typed by the tool's schema.

The text of a parameter that is declared as a string stays as it is, whatever it looks like. Otherwise the text is read as JSON
or as a Python literal and kept when its type is among the declared ones; what fits none of them stays text, for validation
to judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sigwire.adapters.text_tools.grammars.literals import LiteralError, read_literal
from sigwire.adapters.values.json_text import read_json
from sigwire.core.json import JsonValue, loads
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.errors import JsonReadError

__all__ = ["read_value"]


def read_value(text: str, schema: object, root: object = None) -> JsonValue:
    """The value of a parameter's text. ``schema`` is the parameter's, ``root`` the one that holds its definitions.

    >>> read_value("12345", {"type": "string"}), read_value("12345", {"type": "integer"})
    ('12345', 12345)
    >>> read_value("True", {"type": ["boolean", "null"]}), read_value("soon", {"type": "integer"})
    (True, 'soon')
    """
    kinds = frozenset(_kinds(schema, root, 0))
    if not kinds - {"string"}:
        return text
    for read in (_as_json, _as_literal, _as_loose_json):
        try:
            value = read(text.strip())
        except ValueError:
            continue
        if any(_FITS[kind](value) for kind in kinds if kind in _FITS):
            return value
    return text


def _as_json(text: str) -> JsonValue:
    value: JsonValue = loads(text)
    return value


def _as_literal(text: str) -> JsonValue:
    try:
        return read_literal(text)
    except LiteralError as fault:
        raise ValueError from fault


def _as_loose_json(text: str) -> JsonValue:
    if not text.startswith(("{", "[")):
        raise ValueError
    try:
        return read_json(text)[0]
    except JsonReadError as fault:
        raise ValueError from fault


def _is_integer(value: object) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


def _is_number(value: object) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


_FITS: Mapping[str, Callable[[object], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
}
_MAX_DEPTH = 8
_ALL = ("string", *_FITS)


def _kinds(schema: object, root: object, depth: int) -> Iterator[str]:
    """The JSON types that a schema allows; nothing where it does not say."""
    if not is_mapping(schema) or depth > _MAX_DEPTH:
        return
    if isinstance(schema.get("$ref"), str):
        yield from _kinds(_resolved(schema["$ref"], root), root, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, str):
        yield kind
    elif is_sequence(kind):
        yield from (name for name in kind if isinstance(name, str))
    else:
        yield from _implied(schema)
    for key in ("anyOf", "oneOf", "allOf"):
        members = schema.get(key)
        for member in members if is_sequence(members) else ():
            yield from _kinds(member, root, depth + 1)


def _implied(schema: Mapping[str, Any]) -> Iterator[str]:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    for value in values if is_sequence(values) else ():
        yield next((name for name, fits in _FITS.items() if fits(value)), "string")
    if "properties" in schema:
        yield "object"
    if "items" in schema:
        yield "array"


def _resolved(reference: str, root: object) -> object:
    found = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if is_mapping(found) else None
    return found
