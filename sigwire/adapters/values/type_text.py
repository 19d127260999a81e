"""Types as a model reads them: a compact notation, or JSON Schema.

    { name: string, age: int (>= 0), tags?: string[] = [], kind: "a" | "b", note: string | null }

An optional member has ``?`` and its default after ``=``; limits are in brackets, descriptions after ``//`` with one member a
line. A type that refers to itself, or is large and used twice, has a name and is written once, at the end:

    Node
    where Node = { value: int, children: Node[] }

Both styles are made from the JSON Schema of ``type_shape``, with its aliases, enums, limits, defaults and descriptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias

from sigwire.adapters.values.criteria_text import criteria_text, describe_criteria
from sigwire.adapters.values.type_shape import Shape, compile_type, enum_values
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.narrow import is_items, is_object
from sigwire.errors import FieldDefinitionError
from sigwire.signatures.fields import FieldSpec

__all__ = [
    "TypeStyle",
    "brief_type_text",
    "compact_text",
    "field_type_text",
    "has_criteria",
    "schema_text",
    "type_suffix",
]

TypeStyle: TypeAlias = Literal["compact", "schema"]

_MAX_LINE = 100  # a longer object has a line for each member
_MAX_REPEATED = 40  # a longer type that is used twice is written once, under its name


def field_type_text(spec: FieldSpec, style: TypeStyle = "compact") -> str:
    """Return the type of a field in a prompt, without the field's limits: ``spec.constraints`` has these in words.

    Raises ``FieldDefinitionError`` for an output of a type that pydantic cannot validate.

    >>> from sigwire.signatures.signature import Signature
    >>> field_type_text(Signature("text -> pairs: dict[str, list[float] | None]").spec.outputs[0])
    '{ [key: string]: float[] | null }'
    """
    if spec.role in _BY_ROLE:
        return _BY_ROLE[spec.role]
    if spec.annotation is str:
        return _STRING[style]
    return _field_text(spec, style)


def has_criteria(spec: FieldSpec) -> bool:
    """Return True if the type text of a field ends with criteria of the field itself."""
    return bool(spec.metadata) and spec.role == "value" and bool(criteria_text(compile_type(spec).shape.schema))


def brief_type_text(spec: FieldSpec, limit: int) -> str:
    """Return the compact type of a field if it is one line of at most ``limit`` characters, else an empty text.

    The criteria of the field are left out.
    """
    text = field_type_text(spec)
    if has_criteria(spec):
        text = text.removesuffix(f"  // {criteria_text(compile_type(spec).shape.schema)}")
    return text if len(text) <= limit and "\n" not in text else ""


def type_suffix(spec: FieldSpec, limit: int) -> str:
    """Return the brief type in brackets, for a text behind a field's name; empty for plain text."""
    text = brief_type_text(spec, limit)
    return f" ({text})" if text and text != "string" else ""


_BY_ROLE: Mapping[str, str] = {
    "tools": "tools",
    "tool_calls": '{ name: string, arguments: { [key: string]: any } }[]',
    "history": "earlier turns",
    "reasoning": "string",
}  # fmt: skip
_STRING: Mapping[TypeStyle, str] = {"compact": "string", "schema": '{"type":"string"}'}


def _field_text(spec: FieldSpec, style: TypeStyle) -> str:
    try:
        shape = compile_type(spec).shape
    except FieldDefinitionError:
        if spec.direction == "output":
            raise
        return "any"
    shape = replace(shape, schema=_without_own_limits(spec, shape.schema))
    if spec.role == "code" and style == "compact":
        return f"{compile_type(spec).shape.schema.get('description', 'code')}"
    return compact_text(shape) if style == "compact" else schema_text(shape)


def _without_own_limits(spec: FieldSpec, schema: JsonObject) -> JsonObject:
    """Return the schema without the limits of the field, which the prompt has in words."""
    limits = [(key, getattr(item, name, None)) for name, key in _OWN_LIMITS for item in spec.metadata]
    own = [(key, value) for key, value in limits if value is not None]
    members = schema.get("anyOf")
    kept = {key: value for key, value in schema.items() if (key, value) not in own}
    if is_items(members):
        kept["anyOf"] = [_without_own_limits(spec, member) if is_object(member) else member for member in members]
    return kept


# pydantic's names, and JSON Schema's.
_OWN_LIMITS = (
    ("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"),
    ("multiple_of", "multipleOf"), ("pattern", "pattern"),
    ("min_length", "minLength"), ("min_length", "minItems"), ("min_length", "minProperties"),
    ("max_length", "maxLength"), ("max_length", "maxItems"), ("max_length", "maxProperties"),
)  # fmt: skip


@lru_cache(maxsize=1024)
def schema_text(shape: Shape) -> str:
    """Return the shape as one line of JSON Schema, without the keys that only programs need.

    >>> schema_text(Shape({"type": "integer", "title": "Age", "minimum": 0}))
    '{"type":"integer","minimum":0}'
    """
    return dumps(_without_titles(describe_criteria(shape.schema)))


def _without_titles(schema: object) -> object:
    if is_items(schema):
        return [_without_titles(item) for item in schema]
    if not is_object(schema):
        return schema
    return {
        key: {name: _without_titles(item) for name, item in value.items()}
        if key in _NAMED and is_object(value)
        else value
        if key in _DATA
        else _without_titles(value)
        for key, value in schema.items()
        if key not in _FOR_PROGRAMS
    }


_FOR_PROGRAMS = ("title", "names", "medium")
_NAMED = ("properties", "$defs")  # their keys are names of members, such as "title"
_DATA = ("default", "enum", "const", "examples")


@lru_cache(maxsize=1024)
def compact_text(shape: Shape) -> str:
    """Return the shape in the compact notation.

    >>> compact_text(Shape({"anyOf": [{"type": "array", "items": {"enum": ["a", 1]}}, {"type": "null"}]}))
    '("a" | 1)[] | null'
    """
    return _TypeWriter(shape).write()


_Write: TypeAlias = "Callable[[Any, JsonObject], str]"


class _TypeWriter:
    """Writes one shape. ``_named``: the definitions that are written at the end."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._named = _recursive_names(shape)
        self._named = [*self._named, *self._large_and_shared()]

    def _large_and_shared(self) -> list[str]:
        schemas = (self._shape.schema, *self._shape.definitions.values())
        uses = Counter(name for schema in schemas for name in _references(schema))
        shared = [name for name, count in uses.items() if count > 1 and name not in self._named]
        return [name for name in shared if len(self._text(self._shape.definitions[name])) > _MAX_REPEATED]

    def write(self) -> str:
        own = criteria_text(self._shape.schema)
        lines = [self._text(self._shape.schema) + (f"  // {own}" if own else "")]
        for name in self._named:
            schema = self._shape.definitions[name]
            lines.append(f"where {name} = {self._text(schema)}{_comment(schema)}")
        return "\n".join(lines)

    def _text(self, schema: object) -> str:
        if not is_object(schema):
            return "any"
        if "$ref" in schema:
            return self._reference(schema)
        text = self._type(schema)
        limits = ", ".join(_limits(schema))
        return f"{text} ({limits})" if limits else text

    def _reference(self, schema: JsonObject) -> str:
        key = _key_of(schema["$ref"])
        return key if key in self._named else self._text(self._shape.definitions.get(key, {}))

    def _type(self, schema: JsonObject) -> str:
        if "medium" in schema:
            return str(schema["medium"])
        if "enum" in schema or "const" in schema:
            return " | ".join(map(dumps, enum_values(schema)))
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                members: Any = schema[key]
                return " | ".join(dict.fromkeys(map(self._text, members)))
        kind = schema.get("type")
        write = self._WRITERS.get(kind if isinstance(kind, str) else "")
        return write(self, schema) if write else "any"

    def _array(self, schema: JsonObject) -> str:
        first: Any = schema.get("prefixItems")
        if first is None:
            item = self._text(schema.get("items", {}))
            return f"({item})[]" if " " in item and not item.startswith("{") else f"{item}[]"
        items = [self._text(item) for item in first]
        if is_object(schema.get("items")):
            items.append(f"...{self._text(schema['items'])}[]")
        return f"[{', '.join(items)}]"

    def _object(self, schema: JsonObject) -> str:
        properties: Any = schema.get("properties")
        if not properties:
            return self._map(schema)
        required: Any = schema.get("required", [])
        members = [
            (self._member(name, item, name in required), self._description(item)) for name, item in properties.items()
        ]
        if is_object(schema.get("additionalProperties")):
            members.append((f"[key: string]: {self._text(schema['additionalProperties'])}", ""))
        line = "{ " + ", ".join(text for text, _ in members) + " }"
        if len(line) <= _MAX_LINE and "\n" not in line and not any(comment for _, comment in members):
            return line
        lines = [f"  {text},{comment}".replace("\n", "\n  ") for text, comment in members]
        return "\n".join(["{", *lines, "}"])

    def _map(self, schema: JsonObject) -> str:
        values = schema.get("additionalProperties", {})
        if values is False:
            return "{}"
        keys: Any = schema.get("propertyNames", {})
        key = self._text(keys if "$ref" in keys else {"type": "string", **keys})
        return f"{{ [key: {key}]: {self._text(values)} }}"

    def _member(self, name: str, schema: object, required: bool) -> str:
        shown = name if name.isidentifier() else dumps(name)
        default = schema.get("default") if is_object(schema) else None
        suffix = "" if default is None else f" = {dumps(default)}"
        return f"{shown}{'' if required else '?'}: {self._text(schema)}{suffix}"

    def _description(self, schema: object) -> str:
        is_named = is_object(schema) and _key_of(schema.get("$ref", "")) in self._named
        return _comment(schema) or ("" if is_named else _comment(self._shape.resolve(schema)))

    _WRITERS: ClassVar[Mapping[str, _Write]] = {
        "string": lambda writer, schema: _FORMATS.get(str(schema.get("format")), "string"),
        "integer": lambda writer, schema: "int",
        "number": lambda writer, schema: "float",
        "boolean": lambda writer, schema: "bool",
        "null": lambda writer, schema: "null",
        "array": _array,
        "object": _object,
    }


_FORMATS: Mapping[str, str] = {
    "date-time": "datetime (ISO 8601)",
    "date": "date (YYYY-MM-DD)",
    "time": "time (HH:MM:SS)",
    "duration": "duration (ISO 8601, such as PT1H30M)",
    "uuid": "UUID",
    "uri": "URL",
    "email": "email address",
    "path": "path",
    "file-path": "path",
    "directory-path": "path",
    "base64url": "base64",
    "base64": "base64",
    "decimal": "decimal",
}

_LIMITS: Mapping[str, str] = {
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "multiple of {}",
    "pattern": "pattern {}",
}
_SIZES = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minProperties", "maxProperties", "members"),
)


def _limits(schema: JsonObject) -> Iterator[str]:
    for key, text in _LIMITS.items():
        if key in schema and not (key == "pattern" and schema.get("format") == "decimal"):
            yield text.format(schema[key])
    if "prefixItems" not in schema:
        for low, high, unit in _SIZES:
            yield from _size_limits(schema.get(low), schema.get(high), unit)
    if schema.get("uniqueItems"):
        yield "unique items"


def _size_limits(low: JsonValue, high: JsonValue, unit: str) -> Iterator[str]:
    unit = unit.removesuffix("s") if 1 in (high, low if high is None else None) else unit
    if low is not None and low == high:
        yield f"{low} {unit}"
    elif low and high is not None:
        yield f"{low} to {high} {unit}"
    elif low:
        yield f"at least {low} {unit}"
    elif high is not None:
        yield f"at most {high} {unit}"


def _comment(schema: object) -> str:
    text = schema.get("description") if is_object(schema) else None
    texts = [each for each in (" ".join(str(text or "").split()), criteria_text(schema)) if each]
    return f"  // {'; '.join(texts)}" if texts else ""


def _references(schema: object) -> Iterator[str]:
    if is_object(schema):
        if isinstance(schema.get("$ref"), str):
            yield _key_of(schema["$ref"])
        for key, value in schema.items():
            if key != "$defs" and key not in _DATA:
                yield from _references(value)
    elif is_items(schema):
        for item in schema:
            yield from _references(item)


def _recursive_names(shape: Shape) -> list[str]:
    """Return the definitions that refer to themselves, directly or not."""
    direct = {name: set(_references(schema)) for name, schema in shape.definitions.items()}
    return [name for name in direct if name in _reachable(direct, name)]


def _reachable(direct: Mapping[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    pending = list(direct[start])
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += direct.get(name, ())
    return reached


def _key_of(reference: object) -> str:
    return str(reference).rpartition("/")[2]
