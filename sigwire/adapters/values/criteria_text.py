"""Criteria of a JSON Schema (``x-criteria``, ``x-levels``) as text: for prompts, and as descriptions for text wires."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_array, is_items, is_object

__all__ = ["criteria_text", "describe_criteria"]

_KEYS = ("x-criteria", "x-levels")


def criteria_text(schema: object) -> str:
    """Return the criteria of a type as one line, those of the items of a list and of an optional type too; empty without.

    >>> criteria_text({"type": "boolean", "x-criteria": {"true": "service is down"}})
    'true: service is down'
    >>> criteria_text({"x-levels": [{"label": "none"}, {"label": "severe", "description": "someone is hurt"}]})
    '0: none; 1: severe (someone is hurt)'
    """
    return "; ".join(_parts(schema))


def _parts(schema: object) -> Iterator[str]:
    if not is_object(schema):
        return
    for label, text in _items(schema.get("x-criteria")):
        yield f"{label}: {_line(text)}"
    levels: Any = schema.get("x-levels")
    for number, level in enumerate(levels if is_array(levels) else ()):
        meaning = f" ({_line(level['description'])})" if level.get("description") else ""
        yield f"{number}: {_line(level['label'])}{meaning}"
    yield from _parts(schema.get("items"))
    members: Any = schema.get("anyOf")
    for member in members if is_array(members) else ():
        yield from _parts(member)


def _items(criteria: object) -> list[tuple[str, Any]]:
    return list(criteria.items()) if is_object(criteria) else []


def _line(text: object) -> str:
    return " ".join(str(text).split())


def describe_criteria(schema: Any) -> Any:
    """Return a schema whose criteria are in the descriptions of their nodes. A schema without criteria is returned as it is.

    >>> describe_criteria({"type": "boolean", "description": "Now?", "x-criteria": {"true": "service is down"}})
    {'type': 'boolean', 'description': 'Now? (true: service is down)'}
    """
    return _described(schema) if _has_criteria(schema) else schema


def _has_criteria(schema: object) -> bool:
    if is_object(schema):
        return any(key in schema for key in _KEYS) or any(map(_has_criteria, schema.values()))
    return is_items(schema) and any(map(_has_criteria, schema))


def _described(schema: Any) -> Any:
    if is_array(schema):
        return [_described(each) for each in schema]
    if not is_object(schema):
        return schema
    made: JsonObject = {key: _described(value) for key, value in schema.items() if key not in _KEYS}
    own: JsonValue = "; ".join(_parts({key: schema[key] for key in _KEYS if key in schema}))
    if own:
        known = made.get("description")
        made["description"] = f"{known} ({own})" if known else own
    return made
