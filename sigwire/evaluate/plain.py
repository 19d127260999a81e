"""Values of users and models as JSON for a record, and back to the types that the signature of a program declares.

``plain_value`` takes any value and never raises: media are references (type, size, SHA-256), tools their names; a value without
a JSON form is the name of its class. ``plain_fields`` writes declared fields by their types, and ``typed_fields`` reads them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeAlias, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.record import Record, to_plain
from sigwire.core.tools.tool import Tool
from sigwire.modules.module import Module
from sigwire.signatures.annotations import contains
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.signature import SignatureMeta
from sigwire.signatures.types.media import Audio, File, Image

__all__ = [
    "NO_TYPES", "FieldTypes", "dumped_example", "dumped_fields", "plain_fields", "plain_value", "typed_fields", "types_of",
]  # fmt: skip

_MOST_DEPTH = 60
_SCALARS = (str, int, bool, type(None))
_MEDIA = (Audio, File, Image)


FieldTypes: TypeAlias = Mapping[str, FieldSpec]
"""The declared fields of a program, by name."""

NO_TYPES: FieldTypes = {}


def types_of(program: object) -> FieldTypes:
    """Return the fields that a program declares: those of its signature, else the outputs of its predictors.

    Outputs of one name and different types are left out. ``program`` may be a signature class; a function declares nothing.

    >>> from sigwire.modules.predict import Predict
    >>> list(types_of(Predict("text -> score: float")))
    ['text', 'score']
    """
    own: object = program if isinstance(program, SignatureMeta) else getattr(program, "signature", None)
    if isinstance(own, SignatureMeta):
        return own.spec.by_name
    if not isinstance(program, Module):
        return NO_TYPES
    specs = [spec for _, each in program.named_predictors() for spec in each.signature.spec.outputs]
    found = {spec.name: spec for spec in specs}
    unclear = {spec.name for spec in specs if spec.annotation != found[spec.name].annotation}
    return {name: spec for name, spec in found.items() if name not in unclear}


def typed_fields(fields: JsonObject, types: FieldTypes) -> dict[str, Any]:
    """Return the fields of a record, declared ones with their types; JSON that does not fit, and references, are unchanged.

    >>> import datetime
    >>> from sigwire.signatures.signature import Signature
    >>> types = types_of(Signature("a -> when: datetime.date", custom_types={"datetime": datetime}))
    >>> typed_fields({"when": "2026-01-02", "id": 7}, types)
    {'when': datetime.date(2026, 1, 2), 'id': 7}
    """
    return {name: _typed(value, types[name]) if name in types else value for name, value in fields.items()}


def _typed(value: JsonValue, spec: FieldSpec) -> Any:
    if value is None or spec.role == "tools":
        return value
    try:
        made = spec.load(value)
        return made if plain_fields({spec.name: made}, {spec.name: spec}) == {spec.name: value} else value
    except (ValueError, TypeError):
        return value


def dumped_fields(fields: Mapping[str, object], types: FieldTypes) -> dict[str, object]:
    """Return the fields with the declared ones as JSON by their types; others, tools and calls are unchanged.

    Raises ``ValueError`` for a declared field without a JSON form.
    """
    return {
        name: types[name].dump(value) if name in types and types[name].role == "value" else value
        for name, value in fields.items()
    }


def dumped_example(example: Example, types: FieldTypes) -> JsonObject:
    """Return ``example.to_json()`` with the declared fields by their types.

    Raises ``ValueError`` for a declared field without a JSON form.
    """
    keys = example._input_keys  # pyright: ignore[reportPrivateUsage]
    plain = Example(dumped_fields(example.__dict__, types))
    return (plain if keys is None else plain.with_inputs(*keys)).to_json()


def plain_fields(fields: Mapping[str, object], types: FieldTypes = NO_TYPES) -> JsonObject:
    """Return the fields of a record as JSON, those in ``types`` by the declared type.

    >>> plain_fields({"answer": "4", "sure": float("nan"), "tags": ("a", object())})
    {'answer': '4', 'sure': 'nan', 'tags': ['a', '<object>']}
    """
    return {
        name: value if type(value) is str else plain_value(_by_type(value, types[name]) if name in types else value)
        for name, value in fields.items()
    }


def _by_type(value: object, spec: FieldSpec) -> object:
    """Return the JSON of a value by its declared type; media, tools and values of no JSON form as they are."""
    if type(value) in _SCALARS or spec.role != "value":
        return value
    if type(value) is float and spec.annotation is float and not spec.metadata:
        return value
    if contains(spec.annotation, *_MEDIA):
        return value
    try:
        return spec.dump(value)
    except (ValueError, TypeError):
        return value


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
