"""JSON Schema: from Python types, and compiled into validators.

Schemas are draft 2020-12, unless their ``$schema`` names an older draft. From Python they come through pydantic, without
the titles it makes up for fields. Validators are ``jsonschema``'s, compiled once per schema; a ``$ref`` is only ever looked
up inside its own schema, nothing is fetched. What is wrong with a value is said in short lines that a model can act on.

Reads top to bottom: from types, references, checking a schema, checking a value, and the table of what is said.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.errors import ToolDefinitionError

__all__ = ["Validate", "check_schema", "inline_refs", "schema_of", "shorten", "untitled_generator", "validator"]

Validate: TypeAlias = "Callable[[JsonValue], list[str]]"
"""What is wrong with a value: one line per fault, each naming its place; empty when nothing is."""


# --- from Python types -----------------------------------------------------------------------------


def schema_of(annotation: Any) -> JsonObject:
    """The JSON Schema of a Python type. ``$ref`` is kept only where a type contains itself.

    Raises pydantic's ``PydanticUserError`` (a ``TypeError`` or ``RuntimeError``) for types without a schema.

    >>> schema_of(list[int])
    {'items': {'type': 'integer'}, 'type': 'array'}
    """
    from pydantic import TypeAdapter

    from sigwire.core.typed_dict import to_typing_extensions

    return inline_refs(TypeAdapter(to_typing_extensions(annotation)).json_schema(schema_generator=untitled_generator()))


@functools.cache
def untitled_generator() -> type[Any]:
    """pydantic's generator without the titles it derives from names; made late, so that importing core stays light."""
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Untitled


# --- references --------------------------------------------------------------------------------------

_DEFS = "#/$defs/"
_MOST_NODES = (
    20_000  # Types that share types can double at each level: past this size the definitions stay definitions.
)


def inline_refs(schema: JsonObject) -> JsonObject:
    """The schema with every ``#/$defs`` reference replaced by what it names, except where that would never end.

    >>> inline_refs({"$defs": {"A": {"type": "integer"}}, "items": {"$ref": "#/$defs/A"}})
    {'items': {'type': 'integer'}}
    """
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        return schema
    whole: JsonObject = {key: value for key, value in schema.items() if key != "$defs"}
    inline = _Inline(definitions)
    if inline.size(whole) > _MOST_NODES:
        return schema
    kept: JsonObject = {name: inline(definitions[name]) for name in definitions if name in inline.endless}
    result: JsonObject = inline(whole)
    return {"$defs": kept, **result} if kept else result


class _Inline:
    """Replaces references. ``endless`` are the definitions that lead back to themselves: those stay references."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self.endless = {name for name in definitions if name in _reachable(name, definitions)}
        self._sizes: dict[str, int] = {}

    def __call__(self, value: Any) -> Any:
        if _is_array(value):
            return [self(item) for item in value]
        if not _is_object(value):
            return value
        name = self._inlined_name(value)
        if name is None:
            return {
                key: _without_mapping(item) if key == "discriminator" else self(item) for key, item in value.items()
            }
        beside = {key: self(item) for key, item in value.items() if key != "$ref"}
        return {**self(self.definitions[name]), **beside}

    def size(self, value: Any) -> int:
        """How many nodes the value has once its references are replaced."""
        if _is_array(value):
            return sum(self.size(item) for item in value)
        if not _is_object(value):
            return 1
        name = self._inlined_name(value)
        if name is not None and name not in self._sizes:
            self._sizes[name] = self.size(self.definitions[name])
        return 1 + sum(self.size(item) for item in value.values()) + (self._sizes[name] if name else 0)

    def _inlined_name(self, schema: Mapping[str, Any]) -> str | None:
        name = _named(schema.get("$ref"))
        return name if name in self.definitions and name not in self.endless else None


def _without_mapping(discriminator: Any) -> Any:
    """pydantic's discriminator points at definitions, which are no longer there."""
    if not _is_object(discriminator):
        return discriminator
    return {key: value for key, value in discriminator.items() if key != "mapping"}


def _named(ref: object) -> str | None:
    return ref[len(_DEFS) :] if isinstance(ref, str) and ref.startswith(_DEFS) else None


def _reachable(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that one definition leads to, itself only when it leads back."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for ref in _refs(definitions.get(waiting.pop())):
            inner = _named(ref)
            if inner is not None and inner not in found:
                found.add(inner)
                waiting.append(inner)
    return found


def _refs(schema: Any) -> Iterator[str]:
    if _is_object(schema):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _refs(value)
    elif _is_array(schema):
        for value in schema:
            yield from _refs(value)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


# --- checking a schema -------------------------------------------------------------------------------


def check_schema(schema: JsonObject, where: str) -> None:
    """Raise ``ToolDefinitionError`` unless this is a valid schema for a tool's arguments; ``where`` names the tool."""
    try:
        text = dumps(schema)
    except (TypeError, ValueError, RecursionError) as fault:
        raise ToolDefinitionError(
            f"{where}: the parameters are no JSON ({fault}). Use plain dicts, lists and values."
        ) from fault
    if problem := _problem_of(text):
        raise ToolDefinitionError(f"{where}: {problem}")


@functools.lru_cache(maxsize=1024)
def _problem_of(text: str) -> str | None:
    """What is wrong with a schema, given as text: checking costs a millisecond, and the same tools are made many times."""
    from jsonschema import FormatChecker, SchemaError

    schema: JsonObject = loads(text)
    try:
        # No formats: one of them is "regex", and JavaScript's patterns need not be Python's.
        _draft(schema).check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as fault:
        place = "/".join(str(step) for step in fault.absolute_path) or "its top"
        return (
            f"the parameters are no valid JSON Schema (2020-12). At {place}: {shorten(fault.message)}. Mend it there."
        )
    if schema.get("type", "object") != "object":
        return f"the parameters must describe an object, not {schema['type']!r}. Put the value into a property."
    return _fault_inside(schema)


def _draft(schema: JsonObject) -> Any:
    """The validator class: draft 2020-12 unless ``$schema`` names another that is known."""
    from jsonschema import Draft202012Validator, validators

    library: Any = validators
    return library.validator_for(schema, default=Draft202012Validator)


def _fault_inside(schema: JsonObject) -> str | None:
    """The first reference that leads nowhere inside the schema, or pattern of names that Python cannot read.

    Only schemas are looked at: data that looks like a reference (a default) is none.
    """
    resource = _resource(schema)
    waiting: list[tuple[Any, Any]] = [(_resolver(resource), resource)]
    while waiting:
        resolver, resource = waiting.pop()
        contents: Any = resource.contents
        if _is_object(contents) and (fault := _ref_fault(contents, resolver) or _pattern_fault(contents)):
            return fault
        waiting += [(resolver.in_subresource(inner), inner) for inner in resource.subresources()]
    return None


def _ref_fault(schema: Mapping[str, Any], resolver: Any) -> str | None:
    from referencing.exceptions import Unresolvable

    ref = schema.get("$ref")
    try:
        if isinstance(ref, str):
            resolver.lookup(ref)
    except (Unresolvable, ValueError, AttributeError, TypeError):  # the last two: a pointer into a plain value
        return (
            f"the parameters refer to {ref!r}, which is not in the schema, and nothing is fetched. "
            "Put the definition under $defs and refer to it as '#/$defs/Name'."
        )
    return None


def _pattern_fault(schema: Mapping[str, Any]) -> str | None:
    for pattern in schema.get("patternProperties", ()):
        try:
            re.compile(pattern)
        except re.error as fault:
            return f"the pattern {pattern!r} under patternProperties cannot be read ({fault}). Write it as Python's re does."
    return None


def _resource(schema: JsonObject) -> Any:
    from referencing.jsonschema import DRAFT202012, specification_with

    declared: Any = schema.get("$schema")
    specification: Any = DRAFT202012
    if isinstance(declared, str):
        specification = specification_with(declared, default=DRAFT202012)
    return specification.create_resource(schema)


def _resolver(resource: Any) -> Any:
    identifier = resource.id() or ""
    return _nothing_to_fetch().with_resource(identifier, resource).resolver(base_uri=identifier)


def _nothing_to_fetch() -> Any:
    """An empty registry: it knows no other schema, and no way to get one."""
    import referencing

    library: Any = referencing
    return library.Registry()


# --- checking a value --------------------------------------------------------------------------------


def validator(schema: JsonObject) -> Validate:
    """Compile a schema; calling the result with a value gives its faults, one short line each.

    >>> faults = validator({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    >>> faults({"n": 1}), faults({"n": "x"}), faults({"m": 1})
    ([], ["n: must be an integer, not 'x'"], ['n: this argument is required'])
    """
    return _compiled(dumps(schema))


@functools.lru_cache(maxsize=1024)
def _compiled(text: str) -> Validate:
    from jsonschema import validators

    schema: JsonObject = loads(text)
    library: Any = validators
    compiled: Any = library.extend(_draft(schema), {"pattern": _pattern})(schema, registry=_nothing_to_fetch())

    def faults(value: JsonValue) -> list[str]:
        try:
            return _lines(sorted(compiled.iter_errors(value), key=_place))
        except RecursionError:
            return ["the value is nested too deeply"]

    return faults


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    """JSON Schema's patterns are JavaScript's; one that Python cannot read is left to whoever can."""
    from jsonschema import ValidationError

    try:
        fits = not isinstance(value, str) or re.search(pattern, value)
    except re.error:
        return
    if not fits:
        yield ValidationError(f"must match the pattern {shorten(pattern)}")


_MOST_FAULTS = 8
_LONGEST_LINE, _LONGEST_ECHO = 160, 60


def _lines(faults: list[Any]) -> list[str]:
    lines = list(dict.fromkeys(line for fault in faults for line in _say(fault)))
    if len(lines) <= _MOST_FAULTS:
        return lines
    return [*lines[:_MOST_FAULTS], f"and {len(lines) - _MOST_FAULTS} more faults"]


def _place(fault: Any) -> tuple[str, ...]:
    return tuple(str(step) for step in fault.absolute_path)


def _say(fault: Any) -> Iterator[str]:
    saying = _SAYINGS.get(fault.validator, _say_it_plainly)
    for steps, said in saying(fault):
        place = ".".join((*_place(fault), *map(shorten, steps)))
        yield f"{place}: {said}" if place else said


# What is said of a fault, by the schema's keyword: where (below the fault's own place), and what.
_Said: TypeAlias = "Iterable[tuple[tuple[str, ...], str]]"


def _say_type(fault: Any) -> _Said:
    yield (), f"must be {_kinds([fault])}, not {_echo(fault)}"


def _kinds(faults: Iterable[Any]) -> str:
    wanted = [fault.validator_value for fault in faults]
    flat: list[str] = [kind for each in wanted for kind in ([each] if isinstance(each, str) else each)]
    return " or ".join(dict.fromkeys(_KINDS.get(kind, kind) for kind in flat))


def _say_required(fault: Any) -> _Said:
    missing = [name for name in fault.validator_value if name not in fault.instance]
    what = "this argument is required" if not fault.absolute_path else "is required"
    return [((name,), what) for name in missing]


def _say_unknown(fault: Any) -> _Said:
    known: dict[str, Any] = fault.schema.get("properties", {})
    patterns: dict[str, Any] = fault.schema.get("patternProperties", {})
    for name in fault.instance:
        if name not in known and not any(re.search(pattern, name) for pattern in patterns):
            allowed = f"there can be: {shorten(', '.join(known))}" if known else "nothing can stand here"
            yield (name,), f"there is no such argument; {allowed}"


def _say_enum(fault: Any) -> _Said:
    yield (), f"must be one of {shorten(', '.join(map(_text, fault.validator_value)))}, not {_echo(fault)}"


def _say_const(fault: Any) -> _Said:
    yield (), f"must be {shorten(_text(fault.validator_value))}, not {_echo(fault)}"


def _say_alternatives(fault: Any) -> _Said:
    """None of several schemas fits: their types where that is all, else the fault that is nearest to fitting."""
    inner: list[Any] = list(fault.context or ())
    if inner and all(one.validator == "type" and not one.relative_path for one in inner):
        yield (), f"must be {_kinds(inner)}, not {_echo(fault)}"
    elif inner:
        nearest = min(inner, key=_distance)
        steps = tuple(str(step) for step in nearest.relative_path)
        yield from (
            (steps + deeper, said) for deeper, said in _SAYINGS.get(nearest.validator, _say_it_plainly)(nearest)
        )
    else:
        yield (), f"fits more than one of the alternatives, and must fit one: {_echo(fault)}"


def _distance(fault: Any) -> tuple[bool, int]:
    """How far from fitting an alternative is: the wrong type altogether, else the deeper the fault the nearer."""
    return fault.validator == "type" and not fault.relative_path, -len(fault.relative_path)


def _say_bound(words: str) -> Callable[[Any], _Said]:
    def say(fault: Any) -> _Said:
        yield (), f"must {words} {_text(fault.validator_value)}, not {_echo(fault)}"

    return say


def _say_count(words: str) -> Callable[[Any], _Said]:
    def say(fault: Any) -> _Said:
        yield (), f"must have {words} {fault.validator_value} {_COUNTED[type(fault.instance).__name__]}"

    return say


def _say_it_plainly(fault: Any) -> _Said:
    """Any other keyword: the library's words, which may quote the value in full, are cut short."""
    message = str(fault.message)
    quoted = repr(fault.instance)
    yield (
        (),
        shorten(message.replace(quoted, shorten(quoted, _LONGEST_ECHO)) if len(quoted) > _LONGEST_ECHO else message),
    )


_KINDS: Mapping[str, str] = {
    "array": "an array", "boolean": "a boolean", "integer": "an integer", "null": "null", "number": "a number",
    "object": "an object", "string": "a string",
}  # fmt: skip
_COUNTED: Mapping[str, str] = {"str": "characters", "dict": "properties", "list": "items"}
_SAYINGS: Mapping[str, Callable[[Any], _Said]] = {
    "additionalProperties": _say_unknown,
    "anyOf": _say_alternatives,
    "const": _say_const,
    "enum": _say_enum,
    "exclusiveMaximum": _say_bound("be less than"),
    "exclusiveMinimum": _say_bound("be more than"),
    "maxItems": _say_count("at most"),
    "maxLength": _say_count("at most"),
    "maxProperties": _say_count("at most"),
    "maximum": _say_bound("be at most"),
    "minItems": _say_count("at least"),
    "minLength": _say_count("at least"),
    "minProperties": _say_count("at least"),
    "minimum": _say_bound("be at least"),
    "multipleOf": _say_bound("be a multiple of"),
    "oneOf": _say_alternatives,
    "required": _say_required,
    "type": _say_type,
}


def _echo(fault: Any) -> str:
    return shorten(repr(fault.instance), _LONGEST_ECHO)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def shorten(text: str, longest: int = _LONGEST_LINE) -> str:
    """One line of a text, its middle left out where it is too long.

    >>> short("abcdefghijklmnop", 12)
    'abcd ... nop'
    """
    text = " ".join(text.split())
    half = (longest - 5) // 2
    return text if len(text) <= longest else f"{text[: longest - 5 - half]} ... {text[-half:]}"
