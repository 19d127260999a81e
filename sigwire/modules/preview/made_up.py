"""Made-up values of types, and made-up inputs of a signature: valid, small, and without meaning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.schema import inline_refs
from sigwire.signatures.fields import FieldSpec, SignatureSpec
from sigwire.signatures.types.media import Audio, File, Image

__all__ = ["made_up_inputs", "made_up_json"]

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgAAIAAAUAAeImvDMAAAAASUVORK5CYII="
_MEDIA: Mapping[type, object] = {
    Image: Image(f"data:image/png;base64,{_PIXEL}"),
    Audio: Audio(data="AAAA", audio_format="wav"),
    File: File(file_data=b"made up", filename="made-up.txt", media_type="text/plain"),
}


def made_up_inputs(spec: SignatureSpec, given: Collection[str] = ()) -> dict[str, object]:
    """Return a value for each input that has no default and is not ``given``. A history is omitted.

    >>> from sigwire.signatures.signature import make_signature
    >>> made_up_inputs(make_signature("question, k: int, kinds: list[Literal['a', 'b']] -> answer").spec)
    {'question': 'made up', 'k': 1, 'kinds': ['a']}
    """
    omitted = {*given, *(field.name for field in (spec.history_field, spec.tools_field) if field is not None)}
    return {field.name: _value(field) for field in spec.inputs if field.name not in omitted and not field.has_default}


def _value(field: FieldSpec) -> object:
    kind = next((kind for kind in _MEDIA if field.annotation is kind), None)
    if kind is not None:
        return _MEDIA[kind]
    return field.load(made_up_json(inline_refs(field.adapter.json_schema())))


def made_up_json(schema: JsonObject) -> JsonValue:
    """Return a value that fits a JSON Schema without references.

    >>> made_up_json({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 5}}})
    {'n': 5}
    """
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    choices = cast("Sequence[JsonValue]", schema.get("enum") or schema.get("examples") or ())
    if choices:
        return choices[0]
    variants = cast("Sequence[JsonObject]", schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf") or ())
    if variants:
        return made_up_json(next((each for each in variants if each.get("type") != "null"), variants[0]))
    kind = schema.get("type", "string")
    name = str(kind[0] if isinstance(kind, list) else kind)
    return _OF_TYPE.get(name, _text)(schema)


def _text(schema: Mapping[str, Any]) -> JsonValue:
    text: str = _FORMATS.get(schema.get("format", ""), "made up")
    return text[: schema.get("maxLength")].ljust(schema.get("minLength", 0), ".")


_FORMATS: Mapping[str, str] = {
    "date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z", "duration": "P1D",
    "email": "made@example.com", "uri": "https://example.com", "uuid": "00000000-0000-4000-8000-000000000000",
}  # fmt: skip


def _number(schema: Mapping[str, Any]) -> JsonValue:
    lowest, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    if lowest is None and above is not None:
        lowest = above + 1
    highest = schema.get("maximum", schema.get("exclusiveMaximum", 1))
    value: JsonValue = min(1, highest) if lowest is None else lowest
    return value


def _list(schema: Mapping[str, Any]) -> JsonValue:
    first: Sequence[JsonObject] = schema.get("prefixItems", ())
    if first:
        return [made_up_json(each) for each in first]
    return [made_up_json(schema.get("items") or {}) for _ in range(max(schema.get("minItems", 1), 1))]


def _object(schema: Mapping[str, Any]) -> JsonValue:
    parts: Mapping[str, JsonObject] = schema.get("properties", {})
    return {name: made_up_json(parts[name]) for name in schema.get("required", ()) if name in parts}


def _yes(schema: Mapping[str, Any]) -> JsonValue:
    return True


_OF_TYPE: Mapping[str, Callable[[Mapping[str, Any]], JsonValue]] = {
    "integer": _number, "number": _number, "boolean": _yes, "array": _list, "object": _object,
}  # fmt: skip
