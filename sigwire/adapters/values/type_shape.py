"""Shapes: what pydantic knows about a field's type, laid open once, and JSON values made to fit it.

``compiled(field)`` gives the type's validator and serializer, its JSON Schema (the *shape*), whether its values are texts,
and whether aliases are in use. ``fit(shape, value)`` walks a JSON value along the shape and mends, by a closed table, what
models write in place of the declared type ("5" for 5, "yes" for true, an enum's name for its value). Every change is listed
with its place; what the table does not know stays as it is, and the validator has the last word.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypeGuard

from sigwire.adapters.values.json_text import read_json
from sigwire.core.json import JsonObject, JsonValue
from sigwire.errors import JsonReadError
from sigwire.signatures.annotations import nested_types
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.types import Audio, File, Image

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

__all__ = [
    "CompiledType",
    "FittedValue",
    "Shape",
    "Texts",
    "compiled",
    "finite_validator",
    "fit",
    "is_array",
    "is_mapping",
    "is_object",
]

Texts: TypeAlias = Literal["always", "never", "maybe"]
"""Whether the JSON of a type's values is a string."""


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a mapping of whatever kind."""
    return isinstance(value, Mapping)


def is_array(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether a value is, or becomes in JSON, an array."""
    return isinstance(value, (list, tuple))


@dataclass(frozen=True, eq=False)
class Shape:
    """A type's JSON Schema, with the definitions it refers to."""

    schema: dict[str, Any]
    definitions: Mapping[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def resolve(self, schema: Any) -> dict[str, Any]:
        """The schema itself, where it is only a reference."""
        while is_object(schema) and "$ref" in schema:
            schema = self.definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
        return schema if is_object(schema) else {}

    @cached_property
    def texts(self) -> Texts:
        """Whether values of the type are strings in JSON; ``None`` does not count."""
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

    def _kinds(self, schema: Any, depth: int) -> set[str]:
        schema = self.resolve(schema)
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                return {"any"} if depth > 8 else {kind for m in schema[key] for kind in self._kinds(m, depth + 1)}
        if "enum" in schema or "const" in schema:
            return {_json_type(value) for value in _choices(schema)}
        kind = schema.get("type", "any")
        return set(kind) if is_array(kind) else {str(kind)}


@dataclass(frozen=True)
class CompiledType:
    """Everything about a field's type that calls do not change.

    ``by_alias`` is how values are written; ``read_options`` is what the validator needs to read them either way.
    ``validator`` refuses what JSON does not have, where ``finite``; else ``NaN`` must be looked for in the text.
    """

    adapter: TypeAdapter[Any] | _Scalar
    validator: SchemaValidator
    finite: bool
    shape: Shape
    by_alias: bool
    read_options: Mapping[str, bool]
    forked: SchemaValidator | None
    has_floats: bool
    has_functions: bool
    has_sets: bool

    @cached_property
    def runs_users_code(self) -> bool:
        """Whether reading a value runs functions of the user's, which may do anything."""
        return any(map(_is_users, _CoreSchema(self.adapter.core_schema).functions()))

    @cached_property
    def forgiving(self) -> frozenset[str] | None:
        """The known keys of an object type that requires none of them, so that any object would fit; else ``None``."""
        schema = self.shape.resolve(self.shape.schema)
        open_ended = schema.get("additionalProperties", False) is not False
        if "properties" not in schema or schema.get("required") or open_ended:
            return None
        known: Any = schema["properties"]
        return frozenset(known)


def compiled(spec: FieldSpec) -> CompiledType:
    """The type of a field, compiled once. Raises ``FieldDefinitionError`` for a type that pydantic cannot validate."""
    return _compiled(_IdentityKey(spec))


@dataclass(frozen=True, eq=False)
class _IdentityKey:
    """A field by identity. Equal fields will not do: ``A | B == B | A``, and yet they are read differently."""

    spec: FieldSpec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and other.spec is self.spec

    def __hash__(self) -> int:
        return id(self.spec)


@lru_cache(maxsize=1024)
def _compiled(same: _IdentityKey) -> CompiledType:
    adapter = _adapter(same.spec)
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
        core.forked(),
        core.has("float", "any", "custom-error"),
        core.has("function-before", "function-wrap", "function-plain"),
        core.has("set", "frozenset", "any", "is-instance"),
    )


def finite_validator(adapter: TypeAdapter[Any] | _Scalar) -> tuple[SchemaValidator, bool]:
    """A validator whose floats refuse ``NaN`` and infinities, which pydantic reads from JSON; and whether it could be made.

    Looking for the words in the text would cost more than reading a float does.
    """
    from pydantic_core import SchemaError, SchemaValidator

    core = _CoreSchema(adapter.core_schema)
    validator: Any = adapter.validator
    if core.has("any", "bytes", "custom-error", "json"):
        return validator, False
    if not core.has("float"):
        return validator, True
    try:
        return SchemaValidator(_changed(adapter.core_schema, "float", _finite), _use_prebuilt=False), True
    except (SchemaError, TypeError):
        return validator, False


def _adapter(spec: FieldSpec) -> TypeAdapter[Any] | _Scalar:
    if not spec.metadata and any(spec.annotation is kind for kind in _SCALARS):
        return _Scalar(spec.annotation)
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    if bytes not in nested_types(spec.annotation):
        return spec.adapter
    # JSON has no bytes: they travel as base64. Models inside have a configuration of their own, which rules them.
    config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    target: Any = Annotated[(spec.annotation, *spec.metadata)] if spec.metadata else spec.annotation
    try:
        return TypeAdapter(target, config=config)
    except PydanticUserError:
        return spec.adapter


_SCALARS: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number"}


class _Scalar:
    """What a ``TypeAdapter`` has, of a plain scalar, straight from pydantic's core.

    A process's first ``TypeAdapter`` loads all of pydantic and looks for its plugins in everything that is installed, which
    takes longer than a whole call. Plugins see the models and types that users wrote; in a plain number is nothing to see.
    """

    __slots__ = ("core_schema", "serializer", "shape", "validator")

    def __init__(self, kind: Any) -> None:
        from pydantic_core import SchemaSerializer, SchemaValidator

        self.core_schema: Any = {"type": kind.__name__}
        self.validator, self.serializer = SchemaValidator(self.core_schema), SchemaSerializer(self.core_schema)
        self.shape = Shape({"type": _SCALARS[kind]})

    def validate_python(self, value: Any) -> Any:
        """The value as the type takes it, else pydantic's error."""
        return self.validator.validate_python(value)


def _shape(adapter: TypeAdapter[Any] | _Scalar, by_alias: bool) -> Shape:
    if isinstance(adapter, _Scalar):
        return adapter.shape
    schema = adapter.json_schema(schema_generator=_generator(), by_alias=by_alias)
    return Shape(schema, schema.get("$defs", {}))


@cache
def _generator() -> Any:
    """Pydantic's JSON Schema, with what fitting needs: enum names, decimals as text, media by name."""
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
            """Defaults that are not JSON are left out of the text; nobody needs to hear of it."""

    return Generator


_MEDIA = (Image, Audio, File)


# --- the core schema: aliases and unions -----------------------------------------------------------------


class _CoreSchema:
    """What only pydantic's core schema tells."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        aliases = [
            (node.get("validation_alias"), node.get("serialization_alias"))
            for node in _nodes(schema)
            if node.get("type") in _FIELD_NODES
        ]
        self.has_aliases = any(reading or writing for reading, writing in aliases)
        # Names are written where an alias serves only one way: what is written must be readable.
        self.writes_aliases = all(reading == writing for reading, writing in aliases)

    def has(self, *kinds: str) -> bool:
        """Whether a node of one of the kinds is anywhere in the type."""
        return any(node["type"] in kinds for node in _nodes(self._schema))

    def functions(self) -> Iterator[object]:
        """What is called to read a value."""
        return (node["function"]["function"] for node in _nodes(self._schema) if node["type"] in _FUNCTION_NODES)

    def forked(self) -> SchemaValidator | None:
        """A validator that tries the members of unions in reverse: where it disagrees, a value fits several alike."""
        from pydantic_core import SchemaError, SchemaValidator

        if not any(_is_risky(node) for node in _nodes(self._schema)):
            return None
        try:
            return SchemaValidator(_changed(self._schema, "union", _reversed), _use_prebuilt=False)
        except (SchemaError, TypeError):
            return None


def _is_users(function: object) -> bool:
    home = (getattr(function, "__module__", None) or "builtins").partition(".")[0]
    return isinstance(function, partial) or home not in _NOT_THE_USERS


_NOT_THE_USERS = sys.stdlib_module_names | {"pydantic", "sigwire"}
_FUNCTION_NODES = ("function-after", "function-before", "function-wrap", "function-plain")
_FIELD_NODES = ("model-field", "typed-dict-field", "dataclass-field")
_KIND_OF_NODE: Mapping[str, str] = {
    "int": "number", "float": "number", "decimal": "number", "bool": "bool", "none": "null",
    "model": "object", "typed-dict": "object", "dataclass": "object", "dict": "object",
    "list": "array", "tuple": "array", "set": "array", "frozenset": "array", "call": "array",
    "str": "string", "literal": "literal", "enum": "literal", "date": "string", "datetime": "string", "time": "string",
    "timedelta": "string", "uuid": "string", "url": "string", "bytes": "string",
}  # fmt: skip


def _is_risky(node: Mapping[str, Any]) -> bool:
    """Whether two members of a union may fit one JSON value equally well. Scalars are told apart by exactness."""
    if node.get("type") != "union" or node.get("mode") == "left_to_right":
        return False
    kinds = [_KIND_OF_NODE.get(_choice(choice).get("type", ""), "unknown") for choice in node["choices"]]
    shared = [kind for kind in ("object", "array", "literal") if kinds.count(kind) > 1]
    return bool(shared) or ("unknown" in kinds and len(kinds) > 1)


def _choice(choice: Any) -> Any:
    return choice[0] if is_array(choice) else choice


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    pending: list[Any] = [schema]
    while pending:
        current = pending.pop()
        if is_object(current):
            if isinstance(current.get("type"), str):
                yield current
            pending += [value for key, value in current.items() if key not in ("metadata", "serialization")]
        elif is_array(current):
            pending += current


def _changed(schema: Any, kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A core schema with every node of a kind changed."""
    if is_object(schema):
        made = {key: value if key == "metadata" else _changed(value, kind, change) for key, value in schema.items()}
        return change(made) if made.get("type") == kind else made
    if is_array(schema) and type(schema) in (list, tuple):
        items = [_changed(item, kind, change) for item in schema]
        return tuple(items) if isinstance(schema, tuple) else items
    return schema


def _finite(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "allow_inf_nan": False}


def _reversed(node: dict[str, Any]) -> dict[str, Any]:
    return node if node.get("mode") == "left_to_right" else {**node, "choices": node["choices"][::-1]}


# --- fitting -----------------------------------------------------------------------------------------------


@dataclass
class FittedValue:
    """A JSON value along a shape: the value, what was changed, and whether something still does not fit."""

    value: JsonValue
    changes: list[str] = field(default_factory=list[str])
    misfit: bool = False


def fit(shape: Shape, value: JsonValue) -> FittedValue:
    """The value with everything mended that the table knows.

    >>> fitted = fit(Shape({"type": "object", "properties": {"age": {"type": "integer"}}}), {"age": "5"})
    >>> fitted.value, fitted.changes
    ({'age': 5}, ['age: the text "5" was read as a number'])
    """
    fitter = _Fitter(shape)
    fitted = fitter.fit(shape.schema, value, "")
    return FittedValue(fitted, fitter.changes, fitter.misfit)


_MAX_STEPS = 200_000  # unions of unions try members in turn; nothing real comes near
_Mend: TypeAlias = "Callable[[Any, JsonObject, Any, str], Any]"


class _Fitter:
    def __init__(self, shape: Shape, steps: int = 0) -> None:
        self.shape = shape
        self.changes: list[str] = []
        self.misfit = False
        self.steps = steps

    def fit(self, schema: Any, value: Any, path: str) -> Any:
        schema = self.shape.resolve(schema)
        self.steps += 1
        if self.steps > _MAX_STEPS:
            return self._no_fit(value)
        members = schema.get("anyOf") or schema.get("oneOf")
        if members:
            return self._union(members, value, path)
        if "enum" in schema or "const" in schema:
            return self._choice(schema, value, path)
        mend = self._MENDERS.get(schema.get("type", ""))
        return mend(self, schema, value, path) if mend else value

    def _changed(self, path: str, what: str) -> None:
        self.changes.append(f"{path}: {what}" if path else what)

    def _no_fit(self, value: Any) -> Any:
        self.misfit = True
        return value

    # --- one mender for each JSON type; each gives a value and says what it did -------------------------

    def _integer(self, schema: JsonObject, value: Any, path: str) -> Any:
        if type(value) is int:
            return value
        if isinstance(value, float) and value.is_integer():
            self._changed(path, f"{value!r} was read as a whole number")
            return int(value)
        number = _whole(value) if isinstance(value, str) else None
        return self._as_number(value, number, path)

    def _number(self, schema: JsonObject, value: Any, path: str) -> Any:
        if type(value) in (int, float):
            return value
        number = float(value) if isinstance(value, str) and _FLOAT.fullmatch(value.strip()) else None
        return self._as_number(value, number, path)

    def _as_number(self, value: Any, number: Any, path: str) -> Any:
        if number is None:
            return self._no_fit(value)
        self._changed(path, f'the text "{value[:40]}" was read as a number')
        return number

    def _boolean(self, schema: JsonObject, value: Any, path: str) -> Any:
        if isinstance(value, bool):
            return value
        word = value.strip().strip(".").lower() if isinstance(value, str) else value
        if not isinstance(word, (str, int)) or word not in _BOOLEANS:
            return self._no_fit(value)
        self._changed(path, f"{_shown(value)} was read as {str(_BOOLEANS[word]).lower()}")
        return _BOOLEANS[word]

    def _null(self, schema: JsonObject, value: Any, path: str) -> Any:
        if value is None:
            return None
        if not isinstance(value, str) or value.strip().lower() not in ("null", "none"):
            return self._no_fit(value)
        self._changed(path, f"{_shown(value)} was read as null")
        return None

    def _string(self, schema: JsonObject, value: Any, path: str) -> Any:
        if isinstance(value, str):
            return value
        if schema.get("format") == "decimal" and type(value) in (int, float):
            return value
        if type(value) is not int or "format" in schema:  # a float's text may have been another: 1.10 is not "1.1"
            return self._no_fit(value)
        self._changed(path, f"the number {str(value)[:40]} was read as text")
        return str(value)

    def _array(self, schema: JsonObject, value: Any, path: str) -> Any:
        value = self._opened(value, list, path)
        if not is_array(value):
            return self._no_fit(value)
        first: Any = schema.get("prefixItems") or []
        rest = schema.get("items", {})
        return [
            self.fit(first[at] if at < len(first) else rest, item, f"{path}[{at}]") for at, item in enumerate(value)
        ]

    def _object(self, schema: JsonObject, value: Any, path: str) -> Any:
        value = self._opened(value, dict, path)
        if not is_object(value):
            return self._no_fit(value)
        known: Any = schema.get("properties") or {}
        rest = schema.get("additionalProperties", {})
        return {
            key: self.fit(known.get(key, rest), item, f"{path}.{key}" if path else key) for key, item in value.items()
        }

    def _opened(self, value: Any, wanted: type[Any], path: str) -> Any:
        """JSON inside a string, where a structure is wanted."""
        if not isinstance(value, str):
            return value
        try:
            inner, repairs = read_json(value)
        except JsonReadError:
            return value
        if not isinstance(inner, wanted):
            return value
        self._changed(path, "JSON in a string was decoded")
        for repair in repairs:
            self._changed(path, repair.what)
        return inner

    _MENDERS: ClassVar[Mapping[Any, _Mend]] = {
        "integer": _integer, "number": _number, "boolean": _boolean, "null": _null,
        "string": _string, "array": _array, "object": _object,
    }  # fmt: skip

    # --- choices ----------------------------------------------------------------------------------------------

    def _choice(self, schema: JsonObject, value: Any, path: str) -> Any:
        choices = _choices(schema)
        if any(type(choice) is type(value) and choice == value for choice in choices):
            return value
        names: Any = schema.get("names") or []
        found = _alike(value, choices, [str(choice) for choice in choices]) or _alike(value, choices, names)
        if len(found) != 1:
            return self._no_fit(value)
        self._changed(path, f"{_shown(value)} was read as {_shown(found[0])}")
        return found[0]

    def _union(self, members: Any, value: Any, path: str) -> Any:
        trials = [self._trial(member, value, path) for member in members]
        fitting = [trial for trial in trials if not trial[1].misfit]
        exact = [trial for trial in fitting if not trial[1].changes]
        if exact:
            return exact[0][0]
        if not fitting or any(repr(made) != repr(fitting[0][0]) for made, _ in fitting if made != fitting[0][0]):
            return self._no_fit(value)
        made, fitter = fitting[0]
        self.changes += fitter.changes
        return made

    def _trial(self, member: Any, value: Any, path: str) -> tuple[Any, _Fitter]:
        fitter = _Fitter(self.shape, self.steps)
        made = fitter.fit(member, value, path)
        self.steps = fitter.steps
        return made, fitter


_BOOLEANS: Mapping[str | int, bool] = {"true": True, "yes": True, 1: True, "false": False, "no": False, 0: False}
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,4000}))(?:\.0+)?", re.ASCII)


def _whole(text: str) -> int | None:
    match = _WHOLE.fullmatch(text.strip())
    return int(match[1].replace(",", "")) if match else None


def _alike(value: Any, choices: list[Any], spellings: list[str]) -> list[Any]:
    """The choices whose spelling the value has: exactly, else but for quotes and case."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return []
    text = str(value)
    exact = [choice for choice, spelling in zip(choices, spellings, strict=False) if spelling == text]
    loose = text.strip().strip("'\"`*").strip().lower()
    return exact or [choice for choice, spelling in zip(choices, spellings, strict=False) if spelling.lower() == loose]


def _choices(schema: JsonObject) -> list[Any]:
    values: Any = schema.get("enum", [schema.get("const")])
    return list(values)


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), "any")


_JSON_TYPES: Mapping[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", list: "array", dict: "object",
}  # fmt: skip


def _shown(value: object) -> str:
    return f'"{value[:40]}"' if isinstance(value, str) else repr(value)[:40]
