"""A stable order for the elements of sets in JSON.

Python orders a set of texts by hashes that differ in every process, which would change prompts, cache keys and saved files.
pydantic encodes the JSON; this file sorts the arrays that were sets, found by walking value and JSON in parallel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence, Set
from typing import cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.narrow import is_mapping

__all__ = ["sort_sets"]


def sort_sets(value: object, written: JsonValue) -> JsonValue:
    """Return ``written``, the JSON of a value, with the elements of sets sorted: numbers first, others by their text.

    JSON that differs in shape from the value, as a custom serializer makes it, is returned unchanged.

    >>> sort_sets({"tags": {"b", "a"}, "sizes": {10, 9}}, {"tags": ["b", "a"], "sizes": [10, 9]})
    {'tags': ['a', 'b'], 'sizes': [9, 10]}
    """
    if isinstance(written, list):
        if not isinstance(value, (Set, list, tuple)) or len(cast("Sequence[object]", value)) != len(written):
            return written
        items = [sort_sets(item, text) for item, text in zip(cast("Sequence[object]", value), written, strict=True)]
        return sorted(items, key=_sort_key) if isinstance(value, Set) else items
    if isinstance(written, dict):
        members = _members(value, written)
        return {name: sort_sets(members[name], item) if name in members else item for name, item in written.items()}
    return written


def _sort_key(item: JsonValue) -> tuple[bool, float, str]:
    if isinstance(item, int | float):
        return False, item, ""
    return True, 0.0, item if isinstance(item, str) else dumps(item)


def _members(value: object, written: JsonObject) -> dict[str, object]:
    if is_mapping(value):
        inside = list(value.values())
        return dict(zip(written, inside, strict=True)) if len(inside) == len(written) else {}
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name, None) for each in dataclasses.fields(value)}
    members: dict[str, object] = {}
    for name, info in getattr(value.__class__, "model_fields", {}).items():
        members[info.serialization_alias or name] = members[name] = getattr(value, name, None)
    return members | (getattr(value, "model_extra", None) or {})
