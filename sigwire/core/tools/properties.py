"""The schemas of a function's parameters, one at a time: cheaper than a record of all of them, and kept by class.

``properties_of`` returns the text that pydantic gives for a record of the parameters with ``extra="forbid"``, which plain
dataclasses and ``TypedDict`` inherit. It returns None in these cases, and the caller asks pydantic about the record:

- a type that contains itself needs ``$defs``, whose names depend on the other parameters;
- an option of ``Field`` such as ``alias`` or ``deprecated`` belongs to a field, not to a type;
- unions of several types, and generic types other than the built-in ones.

Types without a name are composed here; that needs no pydantic. The schema of a class is made once in a process.
"""

from __future__ import annotations

import dataclasses
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
    return properties


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
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return hint is Any or isinstance(hint, type)
    if origin is typing.Literal:
        return True
    if origin is Annotated:
        return _is_type_metadata(arguments[1:]) and _is_independent(arguments[0])
    members = [member for member in arguments if member is not ...]
    if _is_union(hint):  # a description of a member is that of the property
        optional = len(members) == 2 and types.NoneType in members
        return optional and not any(map(_is_annotated_class, members)) and all(map(_is_independent, members))
    return origin in (list, dict, tuple, set, frozenset) and all(map(_is_independent, members))


_FIELD_OPTIONS = (
    "alias", "validation_alias", "serialization_alias", "deprecated", "exclude", "frozen", "init", "init_var", "kw_only",
    "validate_default", "discriminator",
)  # fmt: skip


def _is_type_metadata(metadata: Iterable[object]) -> bool:
    return all(getattr(data, option, None) is None for data in metadata for option in _FIELD_OPTIONS)


def _is_annotated_class(hint: object) -> bool:
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else int
    return not isinstance(inner, type) or inner not in _NAMES


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
    return None if inner is None else {"anyOf": [inner, {"type": "null"}]}


def _class_schema(hint: type) -> JsonObject | None:
    # Ids, because these objects refer to the class and would keep it. pydantic replaces them when it rebuilds a model.
    made_of = tuple(id(getattr(hint, name, None)) for name in _COMPILED)
    known = _KNOWN.get(hint)
    if known is None or known[0] != made_of:
        known = _KNOWN[hint] = made_of, _generated(hint)
    return None if known[1] is None else _copy(known[1])


_COMPILED = ("__pydantic_core_schema__", "__pydantic_validator__", "__pydantic_serializer__")
_KNOWN: WeakKeyDictionary[type, tuple[tuple[int, ...], JsonObject | None]] = WeakKeyDictionary()


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
