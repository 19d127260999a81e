"""JSON Schema, compiled to what a wire takes. The rules are data: each codec has its table, the mechanism is here.

``compile_schema(schema, rules, where)`` gives the schema to send and the warnings to attach. Three things can happen
to a keyword that a wire does not take, and which one is decided by the table, never by code that knows a provider:

    rewritten   without loss (const -> enum, oneOf -> anyOf, type list -> anyOf, $ref -> its target): no warning
    dropped     its meaning is written into ``description`` for the model to read: one warning naming path and keyword
    refused     nothing honest can be sent (recursion, an open map, a root that is no object): UnsupportedFeature

A table for a wire that knows only a few keywords:

    TOOLS = SchemaRules(keep=frozenset({"type", "properties", "required", "items", "enum", "description"}),
                        rewrite=(const_to_enum, one_of_to_any_of), inline_refs=True, recursion="refuse")

The caller's schema is never changed; where nothing has to be done it is returned as it is, not copied. Compiled
schemas are cached by their text: do not change them either. Whatever a wire does not enforce is still validated after
the answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.response import LMWarning
from sigwire.errors import UnsupportedFeature

__all__ = [
    "AS_IS",
    "SchemaRules",
    "any_of_for_types",
    "compile_schema",
    "const_to_enum",
    "merge_all_of",
    "one_of_to_any_of",
]

Rewrite: TypeAlias = Callable[[JsonObject], JsonObject]
"""One schema object -> an equal one in other words. It gets a copy, may change it, and does not look below it."""

_SILENT = frozenset({"$schema", "$id", "$comment", "$anchor", "$vocabulary", "title", "examples", "deprecated",
                     "readOnly", "writeOnly", "discriminator", "$defs", "definitions"})  # fmt: skip
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
                     "unevaluatedProperties", "unevaluatedItems", "additionalItems"})  # fmt: skip
_SHAPES = frozenset({"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if", "properties", "items",
                     "prefixItems", "format", "pattern"})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class SchemaRules:
    """What one place of a wire takes. The default takes every schema as it is.

    ``keep``: the keywords it knows, ``None`` for all; the others are dropped into the description (``silent`` ones
    without a word or warning). ``values``: per keyword the values it takes, the others being dropped (``format``,
    ``minItems``). ``rewrite``: applied to each schema object in order, before anything is dropped. ``inline_refs``:
    put the target where the ``$ref`` is. ``ref_siblings``: whether keywords may stand beside ``$ref``; where not,
    they are left out, descriptions without a warning. ``recursion``: "keep" it, "open" it where it recurs (any
    object, described in words, warned about), "optional": kept where the recurring property is not required, refused
    elsewhere, or "refuse" it. ``closed``: ``additionalProperties: false`` where an object leaves it out.
    ``open_maps``: whether an object may allow undeclared keys by schema; "open" sends it without saying so, with a
    warning. ``untyped``: whether ``{}`` may be sent. ``root``: "any" schema, an "object" schema without a union, or an
    object schema or a "union".
    """

    keep: frozenset[str] | None = None
    silent: frozenset[str] = _SILENT
    values: Mapping[str, frozenset[str | int]] = field(default_factory=dict[str, frozenset[str | int]])
    rewrite: tuple[Rewrite, ...] = ()
    inline_refs: bool = False
    ref_siblings: bool = True
    recursion: Literal["keep", "open", "optional", "refuse"] = "keep"
    closed: bool = False
    open_maps: Literal["keep", "open", "refuse"] = "keep"
    untyped: Literal["keep", "refuse"] = "keep"
    root: Literal["any", "object", "union"] = "any"


AS_IS = SchemaRules()


def compile_schema(
    schema: JsonObject, rules: SchemaRules, where: str, to: str = "this provider"
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """The schema as the wire takes it, and what was lost. ``where`` names it in messages ("tool 'add'"), ``to`` who gets it.

    Raises ``UnsupportedFeature`` with the path of what cannot be sent.

    >>> rules = SchemaRules(keep=frozenset({"type", "enum", "description"}), rewrite=(const_to_enum,))
    >>> compile_schema({"const": "a"}, rules, "tool 'f'")
    ({'enum': ['a']}, ())
    >>> schema, warnings = compile_schema({"type": "integer", "minimum": 1}, rules, "tool 'f'")
    >>> schema
    {'type': 'integer', 'description': '(minimum: 1)'}
    >>> warnings[0].detail
    "tool 'f': minimum at the root is not enforced by the provider; it was written into the description."
    """
    if rules is AS_IS:
        return schema, ()
    try:
        compiled, lost = _compile_text(dumps(schema), rules)
    except _RefusedError as refused:
        path, why = refused.args
        raise UnsupportedFeature(
            f"The schema of {where} cannot be sent to {to}: at {path or 'the root'} {why}. "
            "Change the schema there, or use a model whose provider takes it."
        ) from None
    return compiled, tuple(LMWarning("schema", f"{where}: {detail}") for detail in lost)


@functools.lru_cache(maxsize=2048)
def _compile_text(text: str, rules: SchemaRules) -> tuple[JsonObject, tuple[str, ...]]:
    schema = loads(text)
    compiler = _Compiler(schema, rules)
    compiled = compiler.root()
    # A schema that needs nothing keeps its order of keys, and so the bytes a provider's cache has seen.
    return (schema if compiled == schema else compiled), compiler.lost_in_words()


# --- rewrites: one schema object at a time, nothing is lost -------------------------------------------


def const_to_enum(node: JsonObject) -> JsonObject:
    """``const: x`` says the same as ``enum: [x]``.

    >>> const_to_enum({"const": 1})
    {'enum': [1]}
    """
    if "const" in node:
        node["enum"] = [node.pop("const")]
    return node


def one_of_to_any_of(node: JsonObject) -> JsonObject:
    """``oneOf`` as ``anyOf``; the answer is still validated against the caller's own schema.

    >>> one_of_to_any_of({"oneOf": [{"type": "string"}]})
    {'anyOf': [{'type': 'string'}]}
    """
    if "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")
    return node


def any_of_for_types(node: JsonObject) -> JsonObject:
    """A list of types as a union, each member with the keywords that speak of its type.

    >>> any_of_for_types({"type": ["string", "null"], "maxLength": 3})
    {'anyOf': [{'type': 'string', 'maxLength': 3}, {'type': 'null'}]}
    """
    types = node.get("type")
    if not isinstance(types, list) or "anyOf" in node:
        return node
    if len(types) == 1:
        return {**node, "type": types[0]}
    outer = {
        name: value
        for name, value in node.items()
        if name in ("description", "title", "default", "$defs", "definitions")
    }
    inner = {name: value for name, value in node.items() if name != "type" and name not in outer}
    return {**outer, "anyOf": [_of_one_type(kind, inner) for kind in types]}


def _of_one_type(kind: JsonValue, keywords: JsonObject) -> JsonObject:
    member: JsonObject = {"type": kind}
    for name, value in keywords.items():
        if name == "enum" and isinstance(value, list):
            fitting = [
                item for item in value if _json_type(item) == kind or (kind, _json_type(item)) == ("number", "integer")
            ]
            if fitting and fitting != [None]:
                member[name] = fitting
        elif _TYPE_OF_KEYWORD.get(name, kind) == kind or (kind, _TYPE_OF_KEYWORD.get(name)) == ("integer", "number"):
            member[name] = value
    return member


_TYPE_OF_KEYWORD: Mapping[str, str] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"), "array"),
    **dict.fromkeys(("properties", "required", "additionalProperties", "patternProperties", "propertyNames",
                     "minProperties", "maxProperties", "dependentRequired", "dependentSchemas"), "object"),
}  # fmt: skip


_TYPE_NAMES: Mapping[type, str] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip


def _json_type(value: JsonValue) -> str:
    return _TYPE_NAMES.get(type(value), "null")


def merge_all_of(node: JsonObject) -> JsonObject:
    """``allOf`` members that do not contradict each other, merged into the object that holds them.

    >>> merge_all_of({"allOf": [{"type": "integer"}, {"minimum": 1}]})
    {'type': 'integer', 'minimum': 1}
    """
    members = node.get("allOf")
    if not isinstance(members, list):
        return node
    merged: JsonObject = {name: value for name, value in node.items() if name != "allOf"}
    for member in members:
        if not isinstance(member, dict) or not _absorb(merged, member):
            return node
    return merged


def _absorb(merged: JsonObject, member: JsonObject) -> bool:
    for name, value in member.items():
        have = merged.get(name)
        if (
            name == "properties"
            and isinstance(have, dict)
            and isinstance(value, dict)
            and not have.keys() & value.keys()
        ):
            merged[name] = {**have, **value}
        elif name == "required" and isinstance(have, list) and isinstance(value, list):
            merged[name] = have + [key for key in value if key not in have]
        elif name in merged and have != value:
            return False
        else:
            merged[name] = value
    return True


# --- the walk ------------------------------------------------------------------------------------------


_NOT_ENFORCED = "is not enforced by the provider; it was written into the description."


class _RefusedError(Exception):
    """A path of the schema, and why what stands there cannot be sent."""


class _Compiler:
    """One schema on its way to one wire. ``lost`` collects (keyword, path, what happened)."""

    def __init__(self, schema: JsonObject, rules: SchemaRules) -> None:
        self.document = schema
        self.rules = rules
        self.lost: list[tuple[str, str, str]] = []
        self.recursive = _recursive_refs(schema)
        self.endless = _recursive_refs(schema, required_only=True)

    def lost_in_words(self) -> tuple[str, ...]:
        """One sentence for each kind of loss, so that a large schema does not give a hundred warnings."""
        by_fate: dict[str, list[str]] = {}
        for keyword, path, fate in self.lost:
            by_fate.setdefault(fate, []).append(f"{keyword} at {path or 'the root'}")
        return tuple(f"{', '.join(dict.fromkeys(places))} {fate}" for fate, places in by_fate.items())

    def root(self) -> JsonObject:
        start, reference = self.document, self.document.get("$ref")
        if self.rules.root != "any" and isinstance(reference, str) and (target := _resolve(start, reference)):
            start = {**target, **{name: value for name, value in start.items() if name != "$ref"}}
        node = self.node(start, "", ())
        union = "anyOf" in node
        if self.rules.root == "object" and (union or node.get("type") != "object"):
            raise _RefusedError("", "the root must be an object schema without a union")
        if self.rules.root == "union" and not union and node.get("type") != "object":
            raise _RefusedError("", "the root must be an object schema")
        if self.rules.inline_refs and not any(_refs(node)):
            return {name: value for name, value in node.items() if name not in ("$defs", "definitions")}
        return node

    def node(self, node: JsonObject, path: str, inside: tuple[str, ...]) -> JsonObject:
        """One schema object. ``inside`` are the references that were followed to get here."""
        reference = node.get("$ref")
        if isinstance(reference, str):
            if reference in self.recursive and (reference in inside or not self.rules.inline_refs):
                return self.recurrence(node, reference, path)
            if self.rules.inline_refs:
                return self.inlined(node, reference, path, inside)
            if not self.rules.ref_siblings and len(node) > 1:
                return self.bare_reference(node, path)
        compiled = dict(node)
        for rewrite in self.rules.rewrite:
            compiled = rewrite(compiled)
        if "$ref" in compiled and "$ref" not in node:  # a rewrite brought it up (allOf)
            return self.node(compiled, path, inside)
        compiled = self.dropped(compiled, path)
        compiled = {name: self.below(name, value, path, inside) for name, value in compiled.items()}
        return self.completed(compiled, path)

    def bare_reference(self, node: JsonObject, path: str) -> JsonObject:
        for name in node:
            if name not in ("$ref", "description") and name not in self.rules.silent:
                self.lost.append((name, path, "beside $ref was left out."))
        kept: JsonObject = {"$ref": node["$ref"]}
        if not path:  # the root keeps the definitions it points into
            kept |= {name: self.below(name, node[name], path, ()) for name in ("$defs", "definitions") if name in node}
        return kept

    def inlined(self, node: JsonObject, reference: str, path: str, inside: tuple[str, ...]) -> JsonObject:
        target = _resolve(self.document, reference)
        if target is None:
            raise _RefusedError(path, f"{reference!r} points at nothing inside the schema")
        siblings = {name: value for name, value in node.items() if name != "$ref"}
        return self.node({**target, **siblings}, path, (*inside, reference))

    def recurrence(self, node: JsonObject, reference: str, path: str) -> JsonObject:
        match self.rules.recursion:
            case "open":
                self.lost.append(("recursion", path, "ends there in an object of any content."))
                name = reference.rsplit("/", 1)[-1]
                return {
                    "type": "object",
                    "description": f"Same structure as {name if name != '#' else 'the root object'}.",
                }
            case "refuse":
                raise _RefusedError(path, f"it is recursive ({reference})")
            case "optional" if reference in self.endless:
                raise _RefusedError(path, f"it is recursive in required properties ({reference})")
            case _:
                bare = self.rules.ref_siblings or len(node) == 1
                return self.whole_reference(node, path) if bare else self.bare_reference(node, path)

    def whole_reference(self, node: JsonObject, path: str) -> JsonObject:
        return {name: self.below(name, value, path, ()) for name, value in self.dropped(node, path).items()}

    def dropped(self, node: JsonObject, path: str) -> JsonObject:
        kept: JsonObject = {}
        words: list[str] = []
        for name, value in node.items():
            if self.takes(name, value):
                kept[name] = value
            elif name == "additionalProperties" and isinstance(value, bool):
                pass  # True is the default and False asks for what a model does anyway
            elif name not in self.rules.silent:
                self.lost.append((name, path, _NOT_ENFORCED))
                words.append(f"{name}: {value if isinstance(value, str) else dumps(value)}")
        if words:
            text = f"{node.get('description') or ''} ({'; '.join(words)})".strip()
            kept["description"] = text
        return kept

    def takes(self, name: str, value: JsonValue) -> bool:
        if self.rules.keep is not None and name not in self.rules.keep:
            return False
        allowed = self.rules.values.get(name)
        return allowed is None or (isinstance(value, str | int) and value in allowed)

    def below(self, name: str, value: JsonValue, path: str, inside: tuple[str, ...]) -> JsonValue:
        """What a keyword holds: schemas are compiled, data passes as it is."""
        if name in ("$defs", "definitions") and self.rules.inline_refs and self.rules.recursion in ("open", "refuse"):
            return value  # nothing will point there any more
        if name in _MAPS and isinstance(value, dict):
            return {
                key: self.node(child, f"{path}/{name}/{key}", inside) if isinstance(child, dict) else child
                for key, child in value.items()
            }
        if isinstance(value, list) and (name in _LISTS or name == "items"):
            return [
                self.node(child, f"{path}/{name}/{number}", inside) if isinstance(child, dict) else child
                for number, child in enumerate(value)
            ]
        if name in _SINGLE and isinstance(value, dict):
            return self.node(value, f"{path}/{name}", inside)
        return value

    def completed(self, node: JsonObject, path: str) -> JsonObject:
        """Rules about what has to be there, after what may not be there is gone."""
        if self.rules.untyped == "refuse" and not node.keys() & _SHAPES:
            raise _RefusedError(path, "it does not say which type it is")
        if node.get("type") != "object":
            return node
        extra = node.get("additionalProperties")
        opens = isinstance(extra, dict) or extra is True or (extra is None and "properties" not in node)
        if opens and path and self.rules.open_maps == "refuse":
            raise _RefusedError(
                path, "it is a map of undeclared keys; declare the keys, or use a list of key and value"
            )
        if opens and extra and self.rules.open_maps == "open":
            self.lost.append(("additionalProperties", path, "cannot be described to the provider and was left out."))
            return {name: value for name, value in node.items() if name != "additionalProperties"}
        if self.rules.closed and extra is not False:
            return {**node, "additionalProperties": False}
        return node


def _resolve(document: JsonObject, reference: str) -> JsonObject | None:
    """What a reference inside the document points at; ``None`` for anything else. Nothing is ever fetched."""
    if not reference.startswith("#"):
        return None
    node: JsonValue = document
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node if isinstance(node, dict) else None


def _recursive_refs(document: JsonObject, *, required_only: bool = False) -> frozenset[str]:
    """The references that lead back to themselves, by any way or by required properties alone."""
    graph: dict[str, set[str]] = {}
    waiting = [*_refs(document), "#"]
    while waiting:
        reference = waiting.pop()
        if reference in graph:
            continue
        target = _resolve(document, reference)
        graph[reference] = set(_refs(target, required_only)) if target is not None else set()
        waiting.extend(graph[reference])
    return frozenset(reference for reference in graph if _reaches(graph, reference, reference))


def _reaches(graph: Mapping[str, set[str]], start: str, goal: str) -> bool:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        reference = waiting.pop()
        if reference == goal:
            return True
        if reference not in seen:
            seen.add(reference)
            waiting.extend(graph.get(reference, ()))
    return False


def _refs(node: JsonValue, required_only: bool = False) -> Iterator[str]:
    """Every reference below, definitions left out: they count only when something points at them."""
    if isinstance(node, list):
        for child in node:
            yield from _refs(child, required_only)
    elif isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield reference
        for name, child in node.items():
            if name in ("$defs", "definitions", "enum", "const", "default", "examples"):
                continue
            if name == "properties" and isinstance(child, dict):
                required = node.get("required") if required_only else list(child)
                child = [child[key] for key in child if isinstance(required, list) and key in required]
            yield from _refs(child, required_only)
