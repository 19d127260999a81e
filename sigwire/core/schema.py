"""JSON Schema: from Python types, and compiled into validators.

Schemas are draft 2020-12. From Python they come through pydantic, without the titles it makes up. Validators are
``jsonschema``'s, compiled once per schema; a ``$ref`` is only ever looked up inside its own schema, nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.errors import ToolDefinitionError

__all__ = ["Validate", "check_schema", "inline_refs", "schema_of", "untitled", "validator"]

Validate: TypeAlias = "Callable[[JsonValue], list[str]]"
"""What is wrong with a value: one line per fault, each naming its place; empty when nothing is."""

_DEFS = "#/$defs/"
_LONGEST = 160


def schema_of(annotation: Any) -> JsonObject:
    """The JSON Schema of a Python type. ``$ref`` is kept only where a type contains itself.

    Raises pydantic's ``PydanticUserError`` (a ``TypeError`` or ``RuntimeError``) for types without a schema.

    >>> schema_of(list[int])
    {'items': {'type': 'integer'}, 'type': 'array'}
    """
    from pydantic import TypeAdapter

    return inline_refs(TypeAdapter(annotation).json_schema(schema_generator=untitled()))


def untitled() -> type[Any]:
    """pydantic's generator without the titles it derives from names; made late, so that importing core stays light."""
    if not _generators:
        from pydantic.json_schema import GenerateJsonSchema

        class Untitled(GenerateJsonSchema):
            def field_title_should_be_set(self, schema: Any) -> bool:
                return False

        _generators.append(Untitled)
    return _generators[0]


_generators: list[type[Any]] = []


def inline_refs(schema: JsonObject) -> JsonObject:
    """The schema with every ``#/$defs`` reference replaced by what it names, except where that would never end.

    >>> inline_refs({"$defs": {"A": {"type": "integer"}}, "items": {"$ref": "#/$defs/A"}})
    {'items': {'type': 'integer'}}
    """
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        return schema
    endless = {name for name in definitions if name in _reachable(name, definitions)}

    def inlined(value: JsonValue) -> Any:
        if isinstance(value, list):
            return [inlined(item) for item in value]
        if not isinstance(value, dict):
            return value
        name = _named(value)
        rest = {key: inlined(item) for key, item in value.items() if key != "$ref"}
        if name is None or name not in definitions or name in endless:
            return rest if "$ref" not in value else {"$ref": value["$ref"], **rest}
        return {**inlined(definitions[name]), **rest}

    whole: JsonObject = inlined({key: value for key, value in schema.items() if key != "$defs"})
    kept = {name: inlined(definitions[name]) for name in definitions if name in endless}
    return {"$defs": kept, **whole} if kept else whole


def _named(schema: Mapping[str, Any]) -> str | None:
    ref = schema.get("$ref")
    return ref[len(_DEFS) :] if isinstance(ref, str) and ref.startswith(_DEFS) else None


def _reachable(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that one definition leads to, itself only when it leads back."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in _refs(definitions.get(waiting.pop())):
            inner = other[len(_DEFS) :] if other.startswith(_DEFS) else None
            if inner is not None and inner not in found:
                found.add(inner)
                waiting.append(inner)
    return found


def _refs(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _refs(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _refs(value)


def check_schema(schema: JsonObject, where: str) -> None:
    """Raise ``ToolDefinitionError`` unless this is a valid schema for a tool's arguments; ``where`` names the tool."""
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as fault:
        place = "/".join(str(step) for step in fault.absolute_path) or "its top"
        raise ToolDefinitionError(
            f"{where}: the parameters are no valid JSON Schema (2020-12). At {place}: {_short(fault.message)}. Mend it there."
        ) from fault
    if schema.get("type", "object") != "object":
        raise ToolDefinitionError(f"{where}: the parameters must describe an object, not {schema['type']!r}.")
    _check_refs(schema, where)


def _check_refs(schema: JsonObject, where: str) -> None:
    refs = set(_refs(schema))
    if not refs:
        return
    resolver = _resolver(schema)
    for ref in sorted(refs):
        try:
            resolver.lookup(ref)
        except Exception as fault:  # the resolver's errors have no common base
            raise ToolDefinitionError(
                f"{where}: the parameters refer to {ref!r}, which is not in the schema, and nothing is fetched. "
                "Put the definition under $defs and refer to it as '#/$defs/Name'."
            ) from fault


def _resolver(schema: JsonObject) -> Any:
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resource: Any = DRAFT202012.create_resource(schema)
    identifier = resource.id() or ""
    registry: Any = Registry()
    return registry.with_resource(identifier, resource).resolver(base_uri=identifier)


def validator(schema: JsonObject) -> Validate:
    """Compile a schema; calling the result with a value gives its faults, one short line each.

    >>> faults = validator({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    >>> faults({"n": 1}), faults({"n": "x"})
    ([], ["n: 'x' is not of type 'integer'"])
    """
    from jsonschema import Draft202012Validator
    from referencing import Registry

    compiled: Any = Draft202012Validator(schema, registry=Registry())

    def faults(value: JsonValue) -> list[str]:
        try:
            return [_line(fault) for fault in sorted(compiled.iter_errors(value), key=_depth)]
        except RecursionError:
            return ["the value is nested too deeply"]

    return faults


def _depth(fault: Any) -> tuple[str, ...]:
    return tuple(str(step) for step in fault.absolute_path)


def _line(fault: Any) -> str:
    place = ".".join(str(step) for step in fault.absolute_path)
    message = _short(str(fault.message))
    return f"{place}: {message}" if place else message


def _short(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) <= _LONGEST else f"{message[:100]} ... {message[-50:]}"
