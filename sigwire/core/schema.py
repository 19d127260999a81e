"""JSON Schema: generated from Python types, and compiled to validators.

Schemas are draft 2020-12, unless ``$schema`` names an older draft. pydantic generates them from Python types, here without
its derived titles. Validators are those of ``jsonschema``, compiled once per schema; a ``$ref`` is resolved inside its own
schema only, nothing is fetched. Problems of a value are short lines that a model can act on.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.narrow import is_array, is_mapping, is_object
from sigwire.core.typed_dict import TypeExpression, to_typing_extensions
from sigwire.errors import ToolDefinitionError

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema

__all__ = [
    "TypeExpression", "Validate", "check_schema", "inline_refs", "schema_of", "shorten", "untitled_generator",
    "validator",
]  # fmt: skip

Validate: TypeAlias = "Callable[[JsonValue], list[str]]"
"""Returns the problems of a value, one line each with its path; empty for a valid value."""


def schema_of(annotation: TypeExpression) -> JsonObject:
    """Return the JSON Schema of a Python type. ``$ref`` is kept only if a type contains itself.

    Raises pydantic's ``PydanticUserError`` (a ``TypeError`` or ``RuntimeError``) for types without a schema.

    >>> schema_of(list[int])
    {'items': {'type': 'integer'}, 'type': 'array'}
    """
    from pydantic import TypeAdapter

    return inline_refs(TypeAdapter(to_typing_extensions(annotation)).json_schema(schema_generator=untitled_generator()))


@functools.cache
def untitled_generator() -> type[GenerateJsonSchema]:
    """Return pydantic's generator without the titles it derives from names. Imported on first use: pydantic loads slowly."""
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: object) -> bool:
            return False

        def encode_default(self, dft: Any) -> Any:
            return (
                dft if type(dft) in _ENCODED else super().encode_default(dft)
            )  # pydantic makes a TypeAdapter for each

    return Untitled


_ENCODED = frozenset({str, int, bool, type(None)})
_DEFS = "#/$defs/"
_MOST_NODES = 20_000  # Types that share types can double at each level: larger schemas keep their definitions.


def inline_refs(schema: JsonObject) -> JsonObject:
    """Replace every ``#/$defs`` reference by its definition, except in recursive definitions.

    >>> inline_refs({"$defs": {"A": {"type": "integer"}}, "items": {"$ref": "#/$defs/A"}})
    {'items': {'type': 'integer'}}
    """
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict):
        return schema
    whole: JsonObject = {key: value for key, value in schema.items() if key != "$defs"}
    inline = _Inliner(definitions)
    if inline.size(whole) > _MOST_NODES:
        return schema
    kept: JsonObject = {name: inline(definitions[name]) for name in definitions if name in inline.recursive}
    result: JsonObject = inline(whole)
    return {"$defs": kept, **result} if kept else result


class _Inliner:
    """Replaces references. ``recursive`` are the definitions that refer to themselves; references to them are kept."""

    def __init__(self, definitions: JsonObject) -> None:
        self.definitions = definitions
        self.recursive = {name for name in definitions if name in _reachable(name, definitions)}
        self._sizes: dict[str, int] = {}

    def __call__(self, value: JsonValue) -> Any:
        if is_array(value):
            return [self(item) for item in value]
        if not is_object(value):
            return value
        name = self._inlined_name(value)
        if name is None:
            return {
                key: _without_mapping(item) if key == "discriminator" else self(item) for key, item in value.items()
            }
        siblings = {key: self(item) for key, item in value.items() if key != "$ref"}
        return {**self(self.definitions[name]), **siblings}

    def size(self, value: JsonValue) -> int:
        """Return the number of nodes of the value after its references are replaced."""
        if is_array(value):
            return sum(self.size(item) for item in value)
        if not is_object(value):
            return 1
        name = self._inlined_name(value)
        if name is not None and name not in self._sizes:
            self._sizes[name] = self.size(self.definitions[name])
        return 1 + sum(self.size(item) for item in value.values()) + (self._sizes[name] if name else 0)

    def _inlined_name(self, schema: JsonObject) -> str | None:
        name = _definition_name(schema.get("$ref"))
        return name if name in self.definitions and name not in self.recursive else None


def _without_mapping(discriminator: JsonValue) -> JsonValue:
    """Drop the mapping of pydantic's discriminator: it refers to definitions that were inlined."""
    if not is_object(discriminator):
        return discriminator
    return {key: value for key, value in discriminator.items() if key != "mapping"}


def _definition_name(ref: object) -> str | None:
    return ref[len(_DEFS) :] if isinstance(ref, str) and ref.startswith(_DEFS) else None


def _reachable(name: str, definitions: JsonObject) -> set[str]:
    """Return the definitions that a definition refers to, directly or not; itself only if it is recursive."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for ref in _refs(definitions.get(waiting.pop())):
            inner = _definition_name(ref)
            if inner is not None and inner not in found:
                found.add(inner)
                waiting.append(inner)
    return found


def _refs(schema: JsonValue) -> Iterator[str]:
    if is_object(schema):
        if isinstance(ref := schema.get("$ref"), str):
            yield ref
        for value in schema.values():
            yield from _refs(value)
    elif is_array(schema):
        for value in schema:
            yield from _refs(value)


def check_schema(schema: JsonObject, where: str) -> None:
    """Raise ``ToolDefinitionError`` unless this is a valid schema for a tool's arguments; ``where`` names the tool."""
    try:
        text = dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolDefinitionError(
            f"{where}: the parameters are not JSON ({error}). Use plain dicts, lists and values."
        ) from error
    if problem := _problem_of(text):
        raise ToolDefinitionError(f"{where}: {problem}")


@functools.lru_cache(maxsize=1024)
def _problem_of(text: str) -> str | None:
    """Return the problem of a schema. Cached by its text: a check takes a millisecond, and tools are made repeatedly."""
    from jsonschema import FormatChecker, SchemaError

    schema: JsonObject = loads(text)
    try:
        # No formats: one is "regex", and a JavaScript pattern need not be valid in Python.
        _draft(schema).check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        place = "/".join(str(step) for step in error.absolute_path) or "its top"
        return (
            f"the parameters are not a valid JSON Schema (2020-12). At {place}: {shorten(error.message)}. Correct it."
        )
    if schema.get("type", "object") != "object":
        return f"the parameters must describe an object, not {schema['type']!r}. Put the value into a property."
    return _problem_inside(schema)


def _draft(schema: JsonObject) -> Any:
    """Return the validator class: draft 2020-12 unless ``$schema`` names another known draft."""
    from jsonschema import Draft202012Validator, validators

    library: Any = validators
    return library.validator_for(schema, default=Draft202012Validator)


def _problem_inside(schema: JsonObject) -> str | None:
    """Return the first unresolvable reference or invalid pattern of names. Only subschemas are searched, not defaults."""
    resource = _resource(schema)
    identifier = resource.id() or ""
    resolver = _empty_registry().with_resource(identifier, resource).resolver(base_uri=identifier)
    waiting: list[tuple[Any, Any]] = [(resolver, resource)]
    while waiting:
        resolver, resource = waiting.pop()
        contents: object = resource.contents
        if is_object(contents) and (problem := _ref_problem(contents, resolver) or _pattern_problem(contents)):
            return problem
        waiting += [(resolver.in_subresource(inner), inner) for inner in resource.subresources()]
    return None


def _ref_problem(schema: JsonObject, resolver: Any) -> str | None:
    from referencing.exceptions import Unresolvable

    ref = schema.get("$ref")
    try:
        if isinstance(ref, str):
            resolver.lookup(ref)
    except (Unresolvable, ValueError, AttributeError, TypeError):  # the last two: a pointer into a plain value
        return (
            f"the parameters refer to {ref!r}, which is not in the schema; nothing is fetched. "
            "Put the definition under $defs and refer to it as '#/$defs/Name'."
        )
    return None


def _pattern_problem(schema: JsonObject) -> str | None:
    patterns = schema.get("patternProperties")
    for pattern in patterns if is_mapping(patterns) else ():
        try:
            re.compile(pattern)
        except re.error as error:
            return f"the pattern {pattern!r} under patternProperties is invalid ({error}). Use Python's re syntax."
    return None


def _resource(schema: JsonObject) -> Any:
    from referencing.jsonschema import DRAFT202012, specification_with

    declared = schema.get("$schema")
    specification: Any = specification_with(declared if isinstance(declared, str) else "", default=DRAFT202012)
    return specification.create_resource(schema)


def _empty_registry() -> Any:
    """Return a registry without schemas and without a way to fetch one."""
    import referencing

    library: Any = referencing
    return library.Registry()


def validator(schema: JsonObject) -> Validate:
    """Compile a schema to a function that returns the problems of a value, one short line each.

    >>> problems = validator({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    >>> problems({"n": 1}), problems({"n": "x"}), problems({"m": 1})
    ([], ["n: must be an integer, not 'x'"], ['n: this argument is required'])
    """
    return _compile(dumps(schema))


@functools.lru_cache(maxsize=1024)
def _compile(text: str) -> Validate:
    from jsonschema import validators

    schema: JsonObject = loads(text)
    library: Any = validators
    compiled: Any = library.extend(_draft(schema), {"pattern": _pattern})(schema, registry=_empty_registry())

    def problems(value: JsonValue) -> list[str]:
        try:
            return _lines(sorted(compiled.iter_errors(value), key=_path))
        except RecursionError:
            return ["the value is nested too deeply"]

    return problems


def _pattern(validator: object, pattern: str, value: object, schema: object) -> Iterator[Any]:
    """Check a pattern. JSON Schema has JavaScript patterns; one that is invalid in Python is left to the tool."""
    from jsonschema import ValidationError

    try:
        fits = not isinstance(value, str) or re.search(pattern, value)
    except re.error:
        return
    if not fits:
        yield ValidationError(f"must match the pattern {shorten(pattern)}")


class _Error(Protocol):
    """``jsonschema.ValidationError``."""

    validator: str
    validator_value: Any
    instance: Any
    schema: Any
    message: str
    absolute_path: Sequence[str | int]
    relative_path: Sequence[str | int]
    context: Iterable[_Error] | None


_MOST_PROBLEMS = 8
_LONGEST_LINE, _LONGEST_ECHO = 160, 60


def _lines(errors: list[_Error]) -> list[str]:
    lines = list(dict.fromkeys(line for error in errors for line in _describe(error)))
    if len(lines) <= _MOST_PROBLEMS:
        return lines
    return [*lines[:_MOST_PROBLEMS], f"and {len(lines) - _MOST_PROBLEMS} more problems"]


def _path(error: _Error) -> tuple[str, ...]:
    return tuple(str(step) for step in error.absolute_path)


def _describe(error: _Error) -> Iterator[str]:
    for steps, text in _DESCRIBERS.get(error.validator, _describe_other)(error):
        place = ".".join((*_path(error), *map(shorten, steps)))
        yield f"{place}: {text}" if place else text


# Lines about an error: the path below the path of the error, and the text.
_Lines: TypeAlias = Iterable[tuple[tuple[str, ...], str]]


def _must(words: Callable[[_Error], str]) -> Callable[[_Error], _Lines]:
    """Return the describer "must <words>, not <the value>"."""
    return lambda error: [((), f"must {words(error)}, not {_echo(error)}")]


def _kinds(errors: Iterable[_Error]) -> str:
    wanted = [error.validator_value for error in errors]
    flat: list[str] = [kind for each in wanted for kind in ([each] if isinstance(each, str) else each)]
    return " or ".join(dict.fromkeys(_KINDS.get(kind, kind) for kind in flat))


def _describe_required(error: _Error) -> _Lines:
    missing = [name for name in error.validator_value if name not in error.instance]
    what = "this argument is required" if not error.absolute_path else "is required"
    return [((name,), what) for name in missing]


def _describe_unknown(error: _Error) -> _Lines:
    known: JsonObject = error.schema.get("properties", {})
    patterns: JsonObject = error.schema.get("patternProperties", {})
    for name in error.instance:
        if name not in known and not any(re.search(pattern, name) for pattern in patterns):
            allowed = f"the names are: {shorten(', '.join(known))}" if known else "no name is allowed here"
            yield (name,), f"there is no such argument; {allowed}"


def _describe_alternatives(error: _Error) -> _Lines:
    """Describe that no alternative fits: by the types if only types differ, else by the error of the best alternative."""
    inner: list[_Error] = list(error.context or ())
    if inner and all(each.validator == "type" and not each.relative_path for each in inner):
        yield (), f"must be {_kinds(inner)}, not {_echo(error)}"
    elif inner:
        nearest = min(inner, key=_distance)
        steps = tuple(str(step) for step in nearest.relative_path)
        describe = _DESCRIBERS.get(nearest.validator, _describe_other)
        yield from ((steps + deeper, text) for deeper, text in describe(nearest))
    else:
        yield (), f"must fit exactly one alternative, and fits several: {_echo(error)}"


def _distance(error: _Error) -> tuple[bool, int]:
    """Return the distance of an alternative from fitting: greatest for a wrong type, smaller for a deeper error."""
    return error.validator == "type" and not error.relative_path, -len(error.relative_path)


def _describe_bound(words: str) -> Callable[[_Error], _Lines]:
    return _must(lambda error: f"be {words} {_text(error.validator_value)}")


def _describe_count(words: str) -> Callable[[_Error], _Lines]:
    def describe(error: _Error) -> _Lines:
        yield (), f"must have {words} {error.validator_value} {_COUNTED[type(error.instance).__name__]}"

    return describe


def _describe_other(error: _Error) -> _Lines:
    """Describe an error of any other keyword by the library's message, with the quoted value shortened."""
    quoted, message = repr(error.instance), str(error.message)
    if len(quoted) > _LONGEST_ECHO:
        message = message.replace(quoted, shorten(quoted, _LONGEST_ECHO))
    yield (), shorten(message)


_KINDS: Mapping[str, str] = {
    "array": "an array", "boolean": "a boolean", "integer": "an integer", "null": "null", "number": "a number",
    "object": "an object", "string": "a string",
}  # fmt: skip
_COUNTED: Mapping[str, str] = {"str": "characters", "dict": "properties", "list": "items"}
_DESCRIBERS: Mapping[str, Callable[[_Error], _Lines]] = {
    "additionalProperties": _describe_unknown,
    "anyOf": _describe_alternatives,
    "const": _must(lambda error: f"be {shorten(_text(error.validator_value))}"),
    "enum": _must(lambda error: f"be one of {shorten(', '.join(map(_text, error.validator_value)))}"),
    "exclusiveMaximum": _describe_bound("less than"),
    "exclusiveMinimum": _describe_bound("more than"),
    "maxItems": _describe_count("at most"),
    "maxLength": _describe_count("at most"),
    "maxProperties": _describe_count("at most"),
    "maximum": _describe_bound("at most"),
    "minItems": _describe_count("at least"),
    "minLength": _describe_count("at least"),
    "minProperties": _describe_count("at least"),
    "minimum": _describe_bound("at least"),
    "multipleOf": _describe_bound("a multiple of"),
    "oneOf": _describe_alternatives,
    "required": _describe_required,
    "type": _must(lambda error: f"be {_kinds([error])}"),
}


def _echo(error: _Error) -> str:
    return shorten(repr(error.instance), _LONGEST_ECHO)


def _text(value: object) -> str:
    return value if isinstance(value, str) else dumps(value)


def shorten(text: str, longest: int = _LONGEST_LINE) -> str:
    """Return a text as one line, without its middle if it is too long.

    >>> shorten("abcdefghijklmnop", 12)
    'abcd ... nop'
    """
    text = " ".join(text.split())
    half = (longest - 5) // 2
    return text if len(text) <= longest else f"{text[: longest - 5 - half]} ... {text[-half:]}"
