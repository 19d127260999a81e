"""Compiled types: everything that pydantic knows about a field's type, computed once for each field.

``compile_type(field)`` returns the type's validator and serializer, its JSON Schema (the *shape*), and three flags: its values
are texts, it has aliases, two members of a union may fit one value. Knows nothing of texts and repairs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_items, is_object
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.json_form import alias_rules, schema_nodes
from sigwire.signatures.types import Audio, File, Image

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

__all__ = ["CompiledType", "Shape", "Texts", "compile_type", "enum_values", "finite_validator"]

Texts: TypeAlias = Literal["always", "never", "maybe"]
"""Whether the JSON of a type's values is a string."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A type's JSON Schema, with the definitions that it refers to."""

    schema: dict[str, Any]
    definitions: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def resolve(self, schema: object) -> dict[str, Any]:
        """Return the schema, or the definition that it refers to."""
        while is_object(schema) and "$ref" in schema:
            schema = self.definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
        return schema if is_object(schema) else {}

    @cached_property
    def texts(self) -> Texts:
        """Whether values of the type are strings in JSON, apart from ``None``."""
        found = {kind for kind in self._kinds(self.schema, 0) if kind != "null"}
        if not found:
            return "never"
        return "always" if found == {"string"} else "maybe" if found & {"string", "any"} else "never"

    @cached_property
    def nullable(self) -> bool:
        """Whether ``None`` is a value of the type."""
        return "null" in self._kinds(self.schema, 0)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The JSON types that values of the type have."""
        return frozenset(self._kinds(self.schema, 0))

    def _kinds(self, schema: object, depth: int) -> set[str]:
        node = self.resolve(schema)
        for key in ("anyOf", "oneOf", "allOf"):
            if key in node:
                return {"any"} if depth > 8 else {kind for m in node[key] for kind in self._kinds(m, depth + 1)}
        if "enum" in node or "const" in node:
            return {_JSON_TYPES.get(type(value), "any") for value in enum_values(node)}
        kind = node.get("type", "any")
        return set(kind) if is_items(kind) else {str(kind)}


@dataclass(frozen=True)
class CompiledType:
    """A field's type with its validators and flags.

    ``by_alias``: values are written under their aliases; ``read_options``: options with which the validator reads names and
    aliases. If ``finite`` is false, ``validator`` accepts ``NaN``, and the text must be searched for it.
    ``reversed_unions`` is a validator that tries the members of unions in reverse, if a union is ambiguous.
    """

    adapter: TypeAdapter[Any] | _Scalar
    validator: SchemaValidator
    finite: bool
    shape: Shape
    by_alias: bool
    read_options: Mapping[str, bool]
    reversed_unions: SchemaValidator | None
    has_floats: bool
    has_functions: bool
    has_sets: bool

    @cached_property
    def runs_users_code(self) -> bool:
        """Whether reading a value runs functions of the user, which may have effects."""
        return any(map(_is_users_function, _CoreSchema(self.adapter.core_schema).functions()))

    @cached_property
    def optional_keys(self) -> frozenset[str] | None:
        """The keys of an object type that requires none, so that every object fits; else ``None``."""
        schema = self.shape.resolve(self.shape.schema)
        open_ended = schema.get("additionalProperties", False) is not False
        if "properties" not in schema or schema.get("required") or open_ended:
            return None
        known: Any = schema["properties"]
        return frozenset(known)


def compile_type(spec: FieldSpec) -> CompiledType:
    """Return the type of a field; cached. Raises ``FieldDefinitionError`` if pydantic cannot validate the type."""
    return _compile(_IdentityKey(spec))


@dataclass(frozen=True, eq=False)
class _IdentityKey:
    """A field by identity: ``A | B == B | A``, but the two are read differently."""

    spec: FieldSpec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and other.spec is self.spec

    def __hash__(self) -> int:
        return id(self.spec)


@lru_cache(maxsize=1024)
def _compile(key: _IdentityKey) -> CompiledType:
    adapter = _type_adapter(key.spec)
    core = _CoreSchema(adapter.core_schema)
    options = {"by_alias": True, "by_name": True} if core.has_aliases else {}
    validator, finite = finite_validator(adapter)
    return CompiledType(
        adapter,
        validator,
        finite,
        _shape(adapter, core.writes_aliases),
        core.writes_aliases,
        options,
        core.reversed_unions(),
        core.has("float", "any", "custom-error"),
        core.has("function-before", "function-wrap", "function-plain"),
        core.has("set", "frozenset", "any", "is-instance"),
    )


def finite_validator(adapter: TypeAdapter[Any] | _Scalar) -> tuple[SchemaValidator, bool]:
    """Return a validator that refuses ``NaN`` and infinities, which pydantic reads from JSON; and whether it does.

    Searching the text for the words costs more than reading a float.
    """
    from pydantic_core import SchemaError, SchemaValidator

    core = _CoreSchema(adapter.core_schema)
    validator: Any = adapter.validator
    if core.has("any", "bytes", "custom-error", "json"):
        return validator, False
    if not core.has("float"):
        return validator, True
    try:
        schema = _change_nodes(adapter.core_schema, "float", lambda node: {**node, "allow_inf_nan": False})
        return SchemaValidator(schema, _use_prebuilt=False), True
    except (SchemaError, TypeError):
        return validator, False


def _type_adapter(spec: FieldSpec) -> TypeAdapter[Any] | _Scalar:
    if not spec.metadata and any(spec.annotation is kind for kind in _SCALARS):
        return _Scalar(spec.annotation)
    return spec.json_form.adapter


_SCALARS: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number"}


class _Scalar:
    """The parts of a ``TypeAdapter`` for a plain scalar, made by pydantic's core alone."""

    # The first ``TypeAdapter`` of a process loads all of pydantic and searches every installed package for plugins, which
    # takes longer than a call. Plugins are for types that users wrote, not for plain numbers.
    __slots__ = ("core_schema", "serializer", "shape", "validator")

    def __init__(self, kind: Any) -> None:
        from pydantic_core import SchemaSerializer, SchemaValidator

        self.core_schema: Any = {"type": kind.__name__}
        self.validator, self.serializer = SchemaValidator(self.core_schema), SchemaSerializer(self.core_schema)
        self.shape = Shape({"type": _SCALARS[kind]})

    def validate_python(self, value: Any) -> Any:
        return self.validator.validate_python(value)


def _shape(adapter: TypeAdapter[Any] | _Scalar, by_alias: bool) -> Shape:
    if isinstance(adapter, _Scalar):
        return adapter.shape
    schema = adapter.json_schema(schema_generator=_generator(), by_alias=by_alias)
    return Shape(schema, schema.get("$defs", {}))


@cache
def _generator() -> Any:
    """Return pydantic's generator of JSON Schemas with additions: enum names, decimals as text, media by name."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def enum_schema(self, schema: Any) -> Any:
            return {**super().enum_schema(schema), "names": [member.name for member in schema["members"]]}

        def decimal_schema(self, schema: Any) -> Any:
            return {"type": "string", "format": "decimal"}

        def generate_inner(self, schema: Any) -> Any:
            made = super().generate_inner(schema)
            reader = schema.get("function")
            owner = getattr(reader.get("function") if is_object(reader) else None, "__self__", None)
            return {**made, "medium": owner.__name__.lower()} if owner in _MEDIA else made

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Any:
            return {}

        def emit_warning(self, kind: Any, detail: str) -> None:
            """Emit no warning: a default that is not JSON is left out of the schema."""

    return Generator


_MEDIA = (Image, Audio, File)


class _CoreSchema:
    """Facts that only pydantic's core schema has."""

    def __init__(self, schema: object) -> None:
        self._schema = schema
        self.has_aliases, self.writes_aliases = alias_rules(schema)

    def has(self, *kinds: str) -> bool:
        return any(node["type"] in kinds for node in schema_nodes(self._schema))

    def functions(self) -> Iterator[object]:
        return (node["function"]["function"] for node in schema_nodes(self._schema) if node["type"] in _FUNCTION_NODES)

    def reversed_unions(self) -> SchemaValidator | None:
        """Return a validator with reversed unions: a value that it reads differently fits several members."""
        from pydantic_core import SchemaError, SchemaValidator

        if not any(_is_ambiguous(node) for node in schema_nodes(self._schema)):
            return None
        try:
            return SchemaValidator(_change_nodes(self._schema, "union", _reverse_choices), _use_prebuilt=False)
        except (SchemaError, TypeError):
            return None


def _is_users_function(function: object) -> bool:
    package = (getattr(function, "__module__", None) or "builtins").partition(".")[0]
    return isinstance(function, partial) or package not in _NOT_USERS


_NOT_USERS = sys.stdlib_module_names | {"pydantic", "sigwire"}
_FUNCTION_NODES = ("function-after", "function-before", "function-wrap", "function-plain")
_KIND_OF_NODE: Mapping[str, str] = {
    "int": "number", "float": "number", "decimal": "number", "bool": "bool", "none": "null",
    "model": "object", "typed-dict": "object", "dataclass": "object", "dict": "object",
    "list": "array", "tuple": "array", "set": "array", "frozenset": "array", "call": "array",
    "str": "string", "literal": "literal", "enum": "literal", "date": "string", "datetime": "string", "time": "string",
    "timedelta": "string", "uuid": "string", "url": "string", "bytes": "string",
}  # fmt: skip


def _is_ambiguous(node: Mapping[str, Any]) -> bool:
    """Return True if two members of a union may fit one JSON value. Of scalars, only one fits exactly."""
    if node.get("type") != "union" or node.get("mode") == "left_to_right":
        return False
    schemas = [choice[0] if is_items(choice) else choice for choice in node["choices"]]
    kinds = [_KIND_OF_NODE.get(schema.get("type", ""), "unknown") for schema in schemas]
    shared = [kind for kind in ("object", "array", "literal") if kinds.count(kind) > 1]
    return bool(shared) or ("unknown" in kinds and len(kinds) > 1)


def _change_nodes(schema: Any, kind: str, change: Callable[[JsonObject], JsonObject]) -> Any:
    if is_object(schema):
        made = {
            key: value if key == "metadata" else _change_nodes(value, kind, change) for key, value in schema.items()
        }
        return change(made) if made.get("type") == kind else made
    if is_items(schema) and type(schema) in (list, tuple):
        items = [_change_nodes(item, kind, change) for item in schema]
        return tuple(items) if isinstance(schema, tuple) else items
    return schema


def _reverse_choices(node: dict[str, Any]) -> dict[str, Any]:
    return node if node.get("mode") == "left_to_right" else {**node, "choices": node["choices"][::-1]}


def enum_values(schema: JsonObject) -> list[JsonValue]:
    """Return the values of a schema with ``enum`` or ``const``."""
    values: Any = schema.get("enum", [schema.get("const")])
    return list(values)


_JSON_TYPES: Mapping[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", list: "array", dict: "object",
}  # fmt: skip
