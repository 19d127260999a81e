"""``plain_value``: any value of a user or a model as JSON for a record. Never raises.

Media are references (type, size, SHA-256), tools their names. A value without a JSON form is the name of its class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.record import Record, to_plain
from sigwire.core.tools.tool import Tool
from sigwire.signatures.types.media import Audio, File, Image

__all__ = ["plain_fields", "plain_value"]

_MOST_DEPTH = 60
_SCALARS = (str, int, bool, type(None))


def plain_fields(fields: Mapping[str, object]) -> JsonObject:
    """Return the fields of a record as JSON.

    >>> plain_fields({"answer": "4", "sure": float("nan"), "tags": ("a", object())})
    {'answer': '4', 'sure': 'nan', 'tags': ['a', '<object>']}
    """
    return {name: value if type(value) is str else plain_value(value) for name, value in fields.items()}


def plain_value(value: object, depth: int = 0) -> JsonValue:
    """Return a value as JSON."""
    if type(value) in _SCALARS:
        return cast(JsonValue, value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _MOST_DEPTH:
        return "<nested too deeply>"
    fields = value.__dict__ if isinstance(value, Record) else value
    if is_mapping(fields):
        return {str(name): plain_value(item, depth + 1) for name, item in fields.items()}
    if is_items(value):
        return [plain_value(item, depth + 1) for item in value]
    return _plain_object(value, depth)


def _plain_object(value: object, depth: int) -> JsonValue:
    if isinstance(value, (Audio, File, Image)):
        return _media_reference(value)
    if isinstance(value, Tool):
        return value.name
    try:
        plain = to_plain(value)
    except Exception:  # a user's class may raise anything
        plain = value
    return f"<{type(value).__name__}>" if plain is value else plain_value(plain, depth + 1)


def _media_reference(value: Audio | File | Image) -> JsonObject:
    content = repr(sorted(value.to_json().items())).encode()
    kind = type(value).__name__.lower()
    return {"media": kind, "bytes": len(content), "sha256": sha256(content).hexdigest()}
