"""Looking into JSON Schemas without fear: typed views of the few keywords that slot filling and answering need. Pure.

A schema comes from outside, so any keyword may be missing or of the wrong shape; each view then gives its empty value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

__all__ = [
    "Schema",
    "is_list",
    "is_mapping",
    "is_nullable",
    "items_of",
    "options_of",
    "properties_of",
    "required_of",
    "resolved",
    "type_of",
]

Schema: TypeAlias = Mapping[str, Any]


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is an object, in JSON's sense."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is an array, in JSON's sense."""
    return isinstance(value, list)


def properties_of(schema: Schema) -> dict[str, Schema]:
    """The properties that have a schema of their own."""
    found = schema.get("properties")
    return {name: member for name, member in found.items() if is_mapping(member)} if is_mapping(found) else {}


def required_of(schema: Schema) -> tuple[str, ...]:
    """The names of required properties."""
    found = schema.get("required")
    names = cast("Sequence[Any]", found) if isinstance(found, (list, tuple)) else ()
    return tuple(name for name in names if isinstance(name, str))


def items_of(schema: Schema) -> Schema:
    """What an array's items are, their null alternative aside."""
    found = schema.get("items")
    return resolved(found) if is_mapping(found) else {}


def options_of(schema: Schema) -> tuple[Any, ...]:
    """The values that an enum or const allows; empty where any value may come."""
    found = schema.get("enum")
    if is_list(found):
        return tuple(found)
    return (schema["const"],) if "const" in schema else ()


def _variants(schema: Schema) -> list[Schema]:
    found: Sequence[Any] = schema.get("anyOf") or schema.get("oneOf") or ()
    return [variant for variant in found if is_mapping(variant)]


def resolved(schema: Schema) -> Schema:
    """A schema without its null alternative: what has to be said when something is said.

    >>> resolved({"anyOf": [{"type": "null"}, {"type": "integer"}], "title": "N"})["type"]
    'integer'
    """
    real = [variant for variant in _variants(schema) if variant.get("type") != "null"]
    return {**schema, **real[0]} if real else schema


def is_nullable(schema: Schema) -> bool:
    """Whether null is an answer.

    >>> is_nullable({"type": ["string", "null"]}), is_nullable({"type": "string"})
    (True, False)
    """
    kinds = schema.get("type")
    return (is_list(kinds) and "null" in kinds) or any(variant.get("type") == "null" for variant in _variants(schema))


def type_of(schema: Schema) -> str:
    """The one type that a schema is about; "any" where it does not say.

    >>> type_of({"type": ["null", "integer"]}), type_of({"enum": ["a"]}), type_of({"properties": {}, "title": "T"})
    ('integer', 'string', 'string')
    """
    schema = resolved(schema)
    kind = schema.get("type")
    if is_list(kind):
        kind = next((one for one in kind if one != "null"), None)
    if isinstance(kind, str):
        return kind
    options = options_of(schema)
    return "object" if properties_of(schema) else "integer" if options and isinstance(options[0], int) else "string"
