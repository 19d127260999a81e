"""Read untrusted JSON: a member that is missing or of another type reads as nothing."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite
from typing import TypeGuard

from sigwire.core.json import JsonObject, JsonValue

__all__ = ["index_of", "is_number", "key_of", "object_of", "objects_of", "remove_members", "string_of", "value_at"]


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for a finite number. JSON such as ``1e999`` is read as infinity.

    >>> [is_number(value) for value in (1, 0.5, True, "1", float("inf"))]
    [True, True, False, False, False]
    """
    return type(value) is int or (type(value) is float and isfinite(value))


def string_of(data: JsonValue, name: str) -> str | None:
    """Return the member of an object if it is a text that is not empty, else ``None``.

    >>> string_of({"id": "a"}, "id"), string_of({"id": ""}, "id"), string_of("a", "id")
    ('a', None, None)
    """
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, str) and value else None


def objects_of(value: JsonValue) -> tuple[JsonObject, ...]:
    """Return the objects in a list; ``()`` for any other value.

    >>> objects_of([{"a": 1}, 2]), objects_of(None)
    (({'a': 1},), ())
    """
    return tuple([item for item in value if isinstance(item, dict)]) if isinstance(value, list) else ()


def object_of(value: JsonValue) -> JsonObject:
    """Return the object; ``{}`` for any other value.

    >>> object_of({"a": 1}), object_of(None)
    ({'a': 1}, {})
    """
    return value if isinstance(value, dict) else {}


def index_of(data: JsonObject) -> int:
    """Return the member ``index``, 0 without it."""
    index = data.get("index")
    return index if isinstance(index, int) else 0


def key_of(value: JsonValue) -> int | str | None:
    """Return an index or id as a key; ``None`` for any other value.

    >>> key_of(1), key_of("a"), key_of([1]), key_of(True)
    (1, 'a', None, None)
    """
    return value if type(value) is int or isinstance(value, str) else None


def remove_members(data: JsonObject, names: Collection[str]) -> JsonObject:
    """Return the object without these members and without those that are ``null``.

    >>> remove_members({"a": 1, "b": 2, "c": None}, {"a"})
    {'b': 2}
    """
    return {name: value for name, value in data.items() if name not in names and value is not None}


def value_at(data: JsonValue, path: str) -> JsonValue:
    """Return the value at a dotted path of object members, else ``None``."""
    if "." not in path:
        return data.get(path) if isinstance(data, dict) else None
    for step in path.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(step)
    return data
