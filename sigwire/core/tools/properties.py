"""The schemas of a function's parameters, one at a time: cheaper than a record of all of them.

``properties_of`` returns the text that pydantic gives for a record of the parameters with ``extra="forbid"``, which plain
dataclasses and ``TypedDict`` inherit. It returns None where the two may differ, and the caller asks pydantic about the
record:

- a type that contains itself needs ``$defs``, whose names depend on the other parameters; a very large type needs them as well;
- metadata of a class (pydantic may write it into the class), inside another type, or with an option of a field, such as
  ``alias`` or a default;
- types with methods that make their schema; unions of several types, also as ``X | None``; other generic types.

Types without a name are composed here; that needs no pydantic. The schema of a model is made once in a process if nothing
in the model can change it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Protocol, cast
from weakref import WeakKeyDictionary

from typing_extensions import is_typeddict

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.schema import inline_refs, untitled_generator
from sigwire.core.typed_dict import TypeExpression

__all__ = ["Described", "annotated_metadata", "drop_repeated", "properties_of"]


class Described(Protocol):
    """A parameter: its property, its type and its description."""

    @property
    def offered_as(self) -> str: ...
    @property
    def hint(self) -> TypeExpression: ...
    @property
    def description(self) -> str | None: ...


def properties_of(parameters: Sequence[Described]) -> dict[str, JsonObject] | None:
    """Return the schema of each parameter by its property name, or None if pydantic must see all parameters together."""
    if not all(_is_independent(parameter.hint) for parameter in parameters):
        return None
    properties: dict[str, JsonObject] = {}
    for parameter in parameters:
        schema = _schema(parameter.hint)
        if schema is None:
            return None
        if _is_union(parameter.hint) and annotated_metadata(parameter.hint):
            drop_repeated(parameter.description, schema)
        properties[parameter.offered_as] = schema
    return properties if _size(properties) <= _MOST_NODES else None


_MOST_NODES = 6_000  # below the size at which a record keeps its definitions


def _size(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_size, cast("dict[str, object]", value).values()))
    return 1 + sum(map(_size, cast("list[object]", value))) if isinstance(value, list) else 1


def drop_repeated(description: str | None, schema: JsonObject) -> None:
    """Remove the description of ``Annotated`` inside ``X | None`` if the property has it, too."""
    members: Any = schema.get("anyOf", ())
    for member in members:
        if description and member.get("description") == description:
            del member["description"]


def annotated_metadata(hint: object) -> tuple[Any, ...]:
    """Return the metadata of ``Annotated``, also inside ``X | None``.

    >>> annotated_metadata(Annotated[int, "how many"] | None)
    ('how many',)
    """
    if typing.get_origin(hint) is Annotated:
        return (*annotated_metadata(typing.get_args(hint)[0]), *typing.get_args(hint)[1:])
    members = [member for member in typing.get_args(hint) if member is not types.NoneType]
    return annotated_metadata(members[0]) if _is_union(hint) and len(members) == 1 else ()


def _is_union(hint: object) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


# --- does the record change the type? ---------------------------------------------------------------------


def _is_independent(hint: Any) -> bool:
    """Return True if the schema of the type is the same alone and in a record."""
    if typing.get_origin(hint) is Annotated:
        return _is_described_value(hint)
    if _is_optional(hint):  # a description of the member is that of the property
        (member,) = (member for member in typing.get_args(hint) if member is not types.NoneType)
        if typing.get_origin(member) is Annotated:
            return typing.get_args(member)[0] in _NAMES and _is_described_value(member)
    return _is_independent_type(hint)


def _is_described_value(hint: Any) -> bool:
    inner, *metadata = typing.get_args(hint)
    return _is_type_metadata(metadata) and _is_independent_type(inner) and not _has_record(inner)


def _is_independent_type(hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return hint is Any or (isinstance(hint, type) and not _makes_its_schema(hint))
    if origin is typing.Literal:
        return True
    if origin in (list, dict, tuple, set, frozenset) or _is_optional(hint):
        return all(_is_independent_type(member) for member in arguments if member is not ...)
    return False


def _is_optional(hint: Any) -> bool:
    members = typing.get_args(hint)
    return _is_union(hint) and len(members) == 2 and types.NoneType in members


def _has_record(hint: Any) -> bool:
    """Return True if a type has members with types. pydantic keeps what it compiled for such a class."""
    if typing.get_origin(hint) is None:
        is_record = dataclasses.is_dataclass(hint) or is_typeddict(hint) or hasattr(hint, "_fields")
        return is_record or hasattr(hint, "__pydantic_core_schema__")
    return typing.get_origin(hint) is not typing.Literal and any(map(_has_record, typing.get_args(hint)))


_FIELD_OPTIONS = (
    "alias", "validation_alias", "serialization_alias", "deprecated", "exclude", "frozen", "init", "init_var", "kw_only",
    "validate_default", "discriminator", "default_factory", "json_schema_extra",
)  # fmt: skip


def _is_type_metadata(metadata: Sequence[Any]) -> bool:
    """Return True if the metadata describes or limits a type, without options of the field that has the type."""
    if len(metadata) == 1 and hasattr(
        metadata[0], "is_required"
    ):  # pydantic joins several ``Field`` of a record's member
        (field,) = metadata
        has_options = any(getattr(field, option, None) is not None for option in _FIELD_OPTIONS)
        return field.is_required() and not has_options and not any(map(_hooks, field.metadata))
    return not any(_hooks(data) or hasattr(data, "is_required") for data in metadata)


_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__", "__get_validators__")


def _hooks(value: object) -> list[object]:
    """Return the methods of a class or of metadata that make its schema."""
    return [hook for name in _HOOKS if (hook := getattr(value, name, None)) is not None]


def _makes_its_schema(value: object) -> bool:
    """Return True if a class has own methods for its schema: they may answer differently each time."""
    return not all(map(_is_of_pydantic, _hooks(value)))


def _is_of_pydantic(function: object) -> bool:
    if isinstance(function, functools.partial):
        return _is_of_pydantic(cast("functools.partial[object]", function).func)
    return str(getattr(function, "__module__", "")).startswith("pydantic.")


# --- the schema of a type alone ---------------------------------------------------------------------------


_NAMES: Mapping[object, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null",
}  # fmt: skip
_UNTYPED: Mapping[object, JsonObject] = {
    Any: {}, list: {"items": {}, "type": "array"}, dict: {"additionalProperties": True, "type": "object"},
}  # fmt: skip


def _schema(hint: Any) -> JsonObject | None:
    """Return the schema of an independent type, or None if it needs ``$defs``."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        if hint in _NAMES:
            return {"type": _NAMES[hint]}
        return dict(_UNTYPED[hint]) if hint in _UNTYPED else _class_schema(hint)
    if origin is typing.Literal and _are_several_strings(arguments):
        return {"enum": [*arguments], "type": "string"}
    if origin is list:
        return _container("items", "array", arguments[0])
    if origin is dict and arguments[0] is str:
        return _container("additionalProperties", "object", arguments[1])
    return _optional(arguments) if _is_union(hint) else _generated(hint)


def _are_several_strings(values: tuple[object, ...]) -> bool:
    return len(values) > 1 and all(type(value) is str for value in values)


def _container(key: str, kind: str, hint: Any) -> JsonObject | None:
    inner: JsonValue = _schema(hint)
    if inner == {} and kind == "object":
        inner = True
    return None if inner is None else {key: inner, "type": kind}


def _optional(members: Iterable[Any]) -> JsonObject | None:
    (member,) = (member for member in members if member is not types.NoneType)
    inner = _schema(member)
    if (
        inner is None or "anyOf" in inner or inner == {"type": "null"}
    ):  # pydantic joins unions, but not those of a class
        return None
    return {"anyOf": [inner, {"type": "null"}]}


# --- the schema of a class --------------------------------------------------------------------------------


def _class_schema(hint: type) -> JsonObject | None:
    # Ids, because these objects refer to the class and would keep it. pydantic replaces them when it rebuilds a model.
    made_of = (hint.__doc__, *(id(getattr(hint, name, None)) for name in _COMPILED))
    known = _KNOWN.get(hint)
    if known is None or known[0] != made_of:
        if not _is_fixed_class(hint):
            return _generated(hint)
        known = _KNOWN[hint] = made_of, _generated(hint)
    return None if known[1] is None else _copy(known[1])


_COMPILED = ("__pydantic_core_schema__", "__pydantic_validator__", "__pydantic_serializer__")
_KNOWN: WeakKeyDictionary[type, tuple[tuple[object, ...], JsonObject | None]] = WeakKeyDictionary()


def _is_fixed_class(hint: Any) -> bool:
    """Return True if the schema of a class cannot change: of an enum, or of a model of which all is known to pydantic."""
    if issubclass(hint, enum.Enum):
        return all(type(member.value) in (str, int) for member in hint)
    compiled: object = hint.__dict__.get("__pydantic_core_schema__")
    return hasattr(hint, "model_fields") and isinstance(compiled, dict) and _is_fixed(cast(Any, compiled))


def _is_fixed(value: Any) -> bool:
    """Return True if a part of what pydantic compiled holds no function of the user and no value that can change."""
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        return isinstance(parts.get("default"), _VALUES) and all(map(_is_fixed, parts.values()))
    if isinstance(value, list | tuple | set):
        return all(map(_is_fixed, cast("Iterable[Any]", value)))
    if isinstance(value, type):
        config: Any = getattr(value, "model_config", None) or getattr(value, "__pydantic_config__", None) or {}
        return not _makes_its_schema(value) and config.keys().isdisjoint(_CHANGING_OPTIONS)
    return isinstance(value, _VALUES) or _is_of_pydantic(value)


_VALUES = (str, int, float, bytes, types.NoneType, enum.Enum)
_CHANGING_OPTIONS = ("json_schema_extra", "model_title_generator", "field_title_generator")


def _copy(schema: JsonObject) -> JsonObject:
    return {key: _copied(value) for key, value in schema.items()}


def _copied(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _copy(value)
    return [*map(_copied, value)] if isinstance(value, list) else value


def _generated(hint: Any) -> JsonObject | None:
    from pydantic import BaseModel, TypeAdapter

    kind = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    inherits = dataclasses.is_dataclass(kind) or is_typeddict(kind)
    config: Any = None if isinstance(kind, type) and issubclass(kind, BaseModel) else {"extra": "forbid"}
    asked: Any = list[hint] if inherits else hint  # pydantic refuses to set the configuration of a record itself
    try:
        schema = inline_refs(TypeAdapter(asked, config=config).json_schema(schema_generator=untitled_generator()))
    except Exception:  # the record of all parameters gives the error, which names the parameter
        return None
    if "$defs" in schema:
        return None
    return cast("JsonObject", schema["items"]) if inherits else schema
