"""Sets in JSON: their elements in an order that does not change from one process to the next.

Python orders a set of texts by hashes that differ in every process, and so would prompts, cache keys and saved files. JSON is
made by pydantic; here only the arrays that were sets are put in order, found by walking value and JSON side by side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any, cast

from sigwire.core.json import JsonValue, dumps

__all__ = ["sort_sets"]


def sort_sets(value: Any, written: JsonValue) -> JsonValue:
    """The JSON ``written`` of a value, with the elements of its sets in order: numbers first, then the others by their text.

    Where value and JSON have no common shape, as under a serializer of one's own, the JSON stays as it is.

    >>> sort_sets({"tags": {"b", "a"}, "sizes": {10, 9}}, {"tags": ["b", "a"], "sizes": [10, 9]})
    {'tags': ['a', 'b'], 'sizes': [9, 10]}
    """
    if isinstance(written, list):
        if not isinstance(value, (Set, list, tuple)) or len(cast("Sequence[Any]", value)) != len(written):
            return written
        items = [sort_sets(item, text) for item, text in zip(cast("Sequence[Any]", value), written, strict=True)]
        return sorted(items, key=_place) if isinstance(value, Set) else items
    if isinstance(written, dict):
        members = _members(value, written)
        return {name: sort_sets(members[name], item) if name in members else item for name, item in written.items()}
    return written


def _place(item: JsonValue) -> tuple[bool, float, str]:
    if isinstance(item, int | float):
        return False, item, ""
    return True, 0.0, item if isinstance(item, str) else dumps(item)


def _members(value: Any, written: dict[str, JsonValue]) -> dict[str, Any]:
    """What a value holds, by the names it has in JSON."""
    if isinstance(value, Mapping):
        inside: list[Any] = [*cast(Any, value).values()]
        return dict(zip(written, inside, strict=True)) if len(inside) == len(written) else {}
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name, None) for each in dataclasses.fields(value)}
    members: dict[str, Any] = {}
    for name, info in getattr(value.__class__, "model_fields", {}).items():
        members[info.serialization_alias or name] = members[name] = getattr(value, name, None)
    return members | (getattr(value, "model_extra", None) or {})
