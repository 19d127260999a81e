"""Fields that opaque parts add to a turn or to a block."""

from __future__ import annotations

from collections.abc import Iterable

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import OpaquePart
from sigwire.errors import UnsupportedFeature

__all__ = ["fields_of", "join_fields"]


def fields_of(parts: Iterable[Part]) -> JsonObject:
    """Return the members of all opaque parts. Raises ``UnsupportedFeature`` for one that is no object."""
    fields: JsonObject = {}
    for part in parts:
        if isinstance(part, OpaquePart):
            if not isinstance(part.data, dict):
                raise UnsupportedFeature(
                    "There is no place for an opaque item that is no object (encoding the request). Leave it out."
                )
            fields = join_fields(fields, part.data)
    return fields


def join_fields(fields: JsonObject, more: JsonObject) -> JsonObject:
    """Return both; two lists of one name become one list, because turns that became one have such a list each.

    >>> join_fields({"a": 1, "citations": [1]}, {"a": 2, "citations": [2]})
    {'a': 2, 'citations': [1, 2]}
    """
    return {**fields, **{name: _joined(fields.get(name), value) for name, value in more.items()}}


def _joined(first: JsonValue, second: JsonValue) -> JsonValue:
    return [*first, *second] if isinstance(first, list) and isinstance(second, list) else second
