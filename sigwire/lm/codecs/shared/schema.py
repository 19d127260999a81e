"""Compile a JSON Schema to the subset that a wire accepts. The rules are data: each codec has its table.

``compile_schema(schema, rules, where)`` returns the schema to send and the warnings to attach. The table alone decides
what happens to a keyword that the wire refuses:

    rewritten   without loss (const -> enum, oneOf -> anyOf, type list -> anyOf, $ref -> its target): no warning
    dropped     its meaning is written into ``description`` for the model: one warning with path and keyword
    refused     no equal schema exists (recursion, an open map, a root that is no object): UnsupportedFeature

A table for a wire that knows only a few keywords:

    TOOLS = SchemaRules(keep=frozenset({"type", "properties", "required", "items", "enum", "description"}),
                        rewrite=(const_to_enum, one_of_to_any_of), inline_refs=True, recursion="refuse")

The caller's schema is never changed; if it needs no change it is returned itself, not a copy. Compiled schemas are cached
by their text: do not change them. What a wire does not enforce is still validated in the answer.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.response import LMWarning
from sigwire.errors import UnsupportedFeature

__all__ = [
    "AS_IS", "OUTPUT_SCHEMA", "STRICT_SCHEMA", "SchemaRules", "any_of_for_types", "compile_schema", "const_to_enum",
    "is_open_map", "merge_all_of", "one_of_to_any_of", "require_defaults",
]  # fmt: skip

Rewrite: TypeAlias = Callable[[JsonObject], JsonObject]
"""One schema object -> an equal one. It gets a copy, may change it, and leaves the schemas inside it alone."""

_SILENT = frozenset({"$schema", "$id", "$comment", "$anchor", "$vocabulary", "title", "examples", "deprecated",
                     "readOnly", "writeOnly", "discriminator", "$defs", "definitions"})  # fmt: skip
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_SINGLE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
                     "unevaluatedProperties", "unevaluatedItems", "additionalItems"})  # fmt: skip
_SHAPES = frozenset({"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not", "if", "properties", "items",
                     "prefixItems", "format", "pattern"})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class SchemaRules:
    """The subset that one place of a wire accepts. The default accepts every schema.

    ``keep``: the known keywords, ``None`` for all; others are dropped into the description (``silent`` ones without a
    warning). ``values``: the values that a keyword accepts, others are dropped (``format``, ``minItems``). ``rewrite``:
    applied to each schema object in order, before keywords are dropped. ``inline_refs``: replace ``$ref`` by its target.
    ``ref_siblings``: whether keywords are accepted beside ``$ref``; if not, they are dropped, descriptions without a
    warning. ``recursion``: "keep", "refuse", "optional" (refuse it in required properties), or "open": send an object of
    any content, with a description and a warning. ``closed``: add ``additionalProperties: false`` to objects without it.
    ``open_maps``: whether an object may allow undeclared keys; "open" drops the keyword with a warning. ``untyped``:
    whether ``{}`` may be sent. ``root``: "any" schema, an "object" schema without a union, or an object or a "union".
    ``strict``: the whole schema must be enforced: refuse keywords that would be dropped, look-around in patterns, and
    properties that an answer may leave out.
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
    strict: bool = False


AS_IS = SchemaRules()


def compile_schema(
    schema: JsonObject, rules: SchemaRules, where: str, to: str = "this provider"
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return the schema for the wire, and a warning for each loss.

    ``where`` names the schema in messages ("tool 'add'"), ``to`` the target. Raises ``UnsupportedFeature`` with the path
    that cannot be sent.

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
            "Change the schema there, or use a model whose provider accepts it."
        ) from None
    return compiled, tuple(LMWarning("schema", f"{where}: {detail}") for detail in lost)


@functools.lru_cache(maxsize=2048)
def _compile_text(text: str, rules: SchemaRules) -> tuple[JsonObject, tuple[str, ...]]:
    schema = loads(text)
    compiler = _Compiler(schema, rules)
    compiled = compiler.compile_root()
    # A schema without changes keeps its order of keys, and with it the bytes in the provider's prompt cache.
    return (schema if compiled == schema else compiled), compiler.loss_sentences()


# --- rewrites: one schema object at a time, without loss ----------------------------------------------


def const_to_enum(node: JsonObject) -> JsonObject:
    """Write ``const: x`` as ``enum: [x]``.

    >>> const_to_enum({"const": 1})
    {'enum': [1]}
    """
    if "const" in node:
        node["enum"] = [node.pop("const")]
    return node


def one_of_to_any_of(node: JsonObject) -> JsonObject:
    """Write ``oneOf`` as ``anyOf``; the answer is still validated against the caller's schema.

    >>> one_of_to_any_of({"oneOf": [{"type": "string"}]})
    {'anyOf': [{'type': 'string'}]}
    """
    if "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")
    return node


def any_of_for_types(node: JsonObject) -> JsonObject:
    """Write a list of types as a union, each member with the keywords of its type.

    >>> any_of_for_types({"type": ["string", "null"], "maxLength": 3})
    {'anyOf': [{'type': 'string', 'maxLength': 3}, {'type': 'null'}]}
    """
    types = node.get("type")
    if not isinstance(types, list) or "anyOf" in node:
        return node
    if len(types) == 1:
        return {**node, "type": types[0]}
    outer = {name: node[name] for name in node if name in ("description", "title", "default", *_DEFINITIONS)}
    inner = {name: value for name, value in node.items() if name != "type" and name not in outer}
    return {**outer, "anyOf": [_member_of_type(kind, inner) for kind in types]}


def _member_of_type(kind: JsonValue, keywords: JsonObject) -> JsonObject:
    member: JsonObject = {"type": kind}
    for name, value in keywords.items():
        keyword_type = _TYPE_OF_KEYWORD.get(name, kind)
        if name == "enum" and isinstance(value, list):
            kinds = (kind, "integer") if kind == "number" else (kind,)
            items = [item for item in value if _TYPE_NAMES.get(type(item), "null") in kinds]
            if items and items != [None]:
                member[name] = items
        elif (keyword_type, kind) in ((kind, kind), ("number", "integer")):
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


def merge_all_of(node: JsonObject) -> JsonObject:
    """Merge ``allOf`` members that do not contradict each other into the object that holds them.

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
    """Add the keywords of a member. Return False if one contradicts."""
    for name, value in member.items():
        match name, merged.get(name), value:
            case "properties", dict() as have, dict() as more if not have.keys() & more.keys():
                merged[name] = {**have, **more}
            case "required", list() as have, list() as more:
                merged[name] = have + [key for key in more if key not in have]
            case _, have, _ if name in merged and have != value:
                return False
            case _:
                merged[name] = value
    return True


def require_defaults(node: JsonObject) -> JsonObject:
    """Require the properties that have a default: the model can write the default, which goes into the description.

    >>> require_defaults({"type": "object", "properties": {"n": {"type": "integer", "default": 5}}})["required"]
    ['n']
    """
    properties, required = node.get("properties"), node.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return node
    changed: JsonObject = dict(properties)
    for name, schema in properties.items():
        if name not in required and isinstance(schema, dict) and "default" in schema:
            required = [*required, name]
            if schema["default"] is not None:
                text = f"{schema.get('description') or ''} (default: {dumps(schema['default'])})".strip()
                changed[name] = {**schema, "description": text}
    return {**node, "properties": changed, "required": required}


# --- compiling -----------------------------------------------------------------------------------------


_NOT_ENFORCED = "is not enforced by the provider; it was written into the description."


OUTPUT_SCHEMA = SchemaRules(
    keep=frozenset(
        {
            "$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "definitions", "description", "enum",
            "format", "items", "minItems", "properties", "required", "title", "type",
        }
    ),
    values={
        "format": frozenset(
            {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"}
        ),
        "minItems": frozenset({0, 1}),
    },
    rewrite=(one_of_to_any_of, any_of_for_types),
    ref_siblings=False,
    recursion="refuse",
    closed=True,
    open_maps="refuse",
    untyped="refuse",
)  # fmt: skip
"""The JSON Schema of structured output with closed objects: Claude, on every host. Its tools accept every schema."""


# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
STRICT_SCHEMA = SchemaRules(
    keep=frozenset(
        {
            "$defs", "$ref", "additionalProperties", "anyOf", "const", "definitions", "description", "enum",
            "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum",
            "multipleOf", "pattern", "properties", "required", "title", "type",
        }
    ),
    silent=_SILENT | {"default"},
    values={
        "format": frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}),
    },
    rewrite=(merge_all_of, one_of_to_any_of, require_defaults),
    ref_siblings=False,
    closed=True,
    open_maps="refuse",
    untyped="refuse",
    root="object",
    strict=True,
)  # fmt: skip
"""The JSON Schema that OpenAI enforces (``strict: true``), and hosts that follow it."""

_LOOK_AROUND = re.compile(r"\(\?<?[=!]")


class _RefusedError(Exception):
    """A path in the schema, and the reason why it cannot be sent."""


class _Compiler:
    """Compile one schema for one place of a wire. ``lost`` collects (keyword, path, effect)."""

    def __init__(self, schema: JsonObject, rules: SchemaRules) -> None:
        self.document = schema
        self.rules = rules
        self.lost: list[tuple[str, str, str]] = []
        self.recursive = _recursive_refs(schema)
        self.endless = _recursive_refs(schema, required_only=True)
        self.drops_definitions = rules.inline_refs and rules.recursion in ("open", "refuse")

    def loss_sentences(self) -> tuple[str, ...]:
        """Return one sentence for each effect, so that a large schema does not give a hundred warnings."""
        by_effect: dict[str, list[str]] = {}
        for keyword, path, effect in self.lost:
            by_effect.setdefault(effect, []).append(f"{keyword} at {path or 'the root'}")
        return tuple(f"{', '.join(dict.fromkeys(places))} {effect}" for effect, places in by_effect.items())

    def compile_root(self) -> JsonObject:
        start, reference = self.document, self.document.get("$ref")
        if self.rules.root != "any" and isinstance(reference, str) and (target := _resolve(start, reference)):
            start = {**target, **_remove_keywords(start, {"$ref"})}
        node = self.compile_node(start, "", ())
        self.check_root(node)
        return _remove_keywords(node, _DEFINITIONS) if self.rules.inline_refs and not any(_refs(node)) else node

    def check_root(self, node: JsonObject) -> None:
        is_union, is_object = "anyOf" in node, node.get("type") == "object"
        if self.rules.root == "object" and (is_union or not is_object):
            raise _RefusedError("", "the root must be an object schema without a union")
        if self.rules.root == "union" and not is_union and not is_object:
            raise _RefusedError("", "the root must be an object schema")

    def compile_node(self, node: JsonObject, path: str, inside: tuple[str, ...]) -> JsonObject:
        """Compile one schema object. ``inside``: the references that were followed to it."""
        reference = node.get("$ref")
        if isinstance(reference, str) and (compiled := self.compile_ref(node, reference, path, inside)) is not None:
            return compiled
        compiled = dict(node)
        for rewrite in self.rules.rewrite:
            compiled = rewrite(compiled)
        if "$ref" in compiled and "$ref" not in node:  # from a rewrite (allOf)
            return self.compile_node(compiled, path, inside)
        compiled = self.drop_keywords(compiled, path)
        compiled = {name: self.compile_keyword(name, value, path, inside) for name, value in compiled.items()}
        return self.complete(compiled, path)

    def compile_ref(self, node: JsonObject, reference: str, path: str, inside: tuple[str, ...]) -> JsonObject | None:
        """Compile a node with a reference; ``None`` if the reference is kept like any keyword."""
        if reference in self.recursive and (reference in inside or not self.rules.inline_refs):
            return self.compile_recursion(node, reference, path)
        if self.rules.inline_refs:
            return self.inline_ref(node, reference, path, inside)
        return self.keep_bare_ref(node, path) if not self.rules.ref_siblings and len(node) > 1 else None

    def keep_bare_ref(self, node: JsonObject, path: str) -> JsonObject:
        for name in node:
            if name not in ("$ref", "description") and name not in self.rules.silent:
                self.refuse_if_strict(name, path)
                self.lost.append((name, path, "beside $ref was left out."))
        kept: JsonObject = {"$ref": node["$ref"]}
        if not path:  # references point into the definitions of the root
            kept |= {name: self.compile_keyword(name, node[name], path, ()) for name in node if name in _DEFINITIONS}
        return kept

    def inline_ref(self, node: JsonObject, reference: str, path: str, inside: tuple[str, ...]) -> JsonObject:
        target = _resolve(self.document, reference)
        if target is None:
            raise _RefusedError(path, f"{reference!r} points at nothing inside the schema")
        return self.compile_node({**target, **_remove_keywords(node, {"$ref"})}, path, (*inside, reference))

    def compile_recursion(self, node: JsonObject, reference: str, path: str) -> JsonObject:
        match self.rules.recursion:
            case "open":
                self.lost.append(("recursion", path, "ends there in an object of any content."))
                name = reference.rsplit("/", 1)[-1] if reference != "#" else "the root object"
                return {"type": "object", "description": f"Same structure as {name}."}
            case "refuse":
                raise _RefusedError(path, f"it is recursive ({reference})")
            case "optional" if reference in self.endless:
                raise _RefusedError(path, f"it is recursive in required properties ({reference})")
            case _ if self.rules.ref_siblings or len(node) == 1:
                kept = self.drop_keywords(node, path)
                return {name: self.compile_keyword(name, value, path, ()) for name, value in kept.items()}
            case _:
                return self.keep_bare_ref(node, path)

    def drop_keywords(self, node: JsonObject, path: str) -> JsonObject:
        """Return the keywords that the wire knows; the others are written into the description."""
        kept: JsonObject = {}
        dropped: list[str] = []
        for name, value in node.items():
            if self.accepts(name, value):
                kept[name] = value
            elif name == "additionalProperties" and isinstance(value, bool):
                pass  # True is the default, and models do not add keys against False
            elif name not in self.rules.silent:
                self.refuse_if_strict(name, path)
                self.lost.append((name, path, _NOT_ENFORCED))
                dropped.append(f"{name}: {value if isinstance(value, str) else dumps(value)}")
        if dropped:
            kept["description"] = f"{node.get('description') or ''} ({'; '.join(dropped)})".strip()
        return kept

    def refuse_if_strict(self, name: str, path: str) -> None:
        if self.rules.strict:
            raise _RefusedError(path, f"{name} cannot be enforced")

    def accepts(self, name: str, value: JsonValue) -> bool:
        if self.rules.keep is not None and name not in self.rules.keep:
            return False
        if self.rules.strict and name == "pattern" and isinstance(value, str) and _LOOK_AROUND.search(value):
            return False
        allowed = self.rules.values.get(name)
        return allowed is None or (isinstance(value, str | int) and value in allowed)

    def compile_keyword(self, name: str, value: JsonValue, path: str, inside: tuple[str, ...]) -> JsonValue:
        """Compile the schemas of a keyword; data stays as it is."""
        place = f"{path}/{name}"
        if self.drops_definitions and name in _DEFINITIONS:
            return value
        if name in _MAPS and isinstance(value, dict):
            return {key: self.compile_child(child, f"{place}/{key}", inside) for key, child in value.items()}
        if name in _LISTS and isinstance(value, list):
            return [self.compile_child(child, f"{place}/{number}", inside) for number, child in enumerate(value)]
        return self.compile_child(value, place, inside) if name in _SINGLE else value

    def compile_child(self, value: JsonValue, path: str, inside: tuple[str, ...]) -> JsonValue:
        return self.compile_node(value, path, inside) if isinstance(value, dict) else value

    def complete(self, node: JsonObject, path: str) -> JsonObject:
        """Check the compiled node, and open or close an object."""
        self.check_node(node, path)
        if self.rules.open_maps == "open" and node.get("additionalProperties") and is_open_map(node):
            self.lost.append(("additionalProperties", path, "cannot be described to the provider and was left out."))
            return _remove_keywords(node, {"additionalProperties"})
        closes = self.rules.closed and node.get("type") == "object"
        return {**node, "additionalProperties": False} if closes else node

    def check_node(self, node: JsonObject, path: str) -> None:
        if self.rules.untyped == "refuse" and not node.keys() & _SHAPES:
            raise _RefusedError(path, "it has no type")
        if self.rules.strict and (optional := _optional_of(node)):
            reason = f"{optional!r} may be left out and has no default; require it, or give it a default"
            raise _RefusedError(path, reason)
        if self.rules.open_maps == "refuse" and is_open_map(node):
            reason = "it is a map of undeclared keys; declare the keys, or use a list of key and value"
            raise _RefusedError(path, reason)


def _optional_of(node: JsonObject) -> str | None:
    """Return the first property that an object may leave out."""
    properties, required = node.get("properties"), node.get("required")
    names = properties if isinstance(properties, dict) else {}
    return next((name for name in names if not isinstance(required, list) or name not in required), None)


def _remove_keywords(node: JsonObject, names: Collection[str]) -> JsonObject:
    return {name: value for name, value in node.items() if name not in names}


def is_open_map(schema: JsonObject) -> bool:
    """Return True for an object that allows undeclared keys: by ``additionalProperties``, or by declaring no keys."""
    extra = schema.get("additionalProperties")
    is_open = isinstance(extra, dict) or extra is True or (extra is None and "properties" not in schema)
    return is_open and schema.get("type") == "object"


def _resolve(document: JsonObject, reference: str) -> JsonObject | None:
    """Return the target of a reference inside the document, else ``None``. Nothing is fetched."""
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
    """Return the references that lead back to themselves, by any path or by required properties alone."""
    graph: dict[str, set[str]] = {}
    waiting = [*_refs(document), "#"]
    while waiting:
        reference = waiting.pop()
        if reference in graph:
            continue
        target = _resolve(document, reference)
        graph[reference] = set(_refs(target, required_only)) if target is not None else set()
        waiting.extend(graph[reference])
    return frozenset(reference for reference in graph if reference in _reached(graph, reference))


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = graph[start]
    while waiting:
        found |= waiting
        waiting = {after for reference in waiting for after in graph[reference]} - found
    return found


def _refs(node: JsonValue, required_only: bool = False) -> Iterator[str]:
    """Yield every reference below a node, except in definitions: those count only if a reference points at them."""
    if isinstance(node, list):
        for child in node:
            yield from _refs(child, required_only)
    if not isinstance(node, dict):
        return
    reference = node.get("$ref")
    if isinstance(reference, str):
        yield reference
    for name, child in node.items():
        if name == "properties" and isinstance(child, dict):
            child = _required_of(child, node.get("required")) if required_only else list(child.values())
        if name not in _NOT_FOLLOWED:
            yield from _refs(child, required_only)


def _required_of(properties: JsonObject, required: JsonValue) -> list[JsonValue]:
    return [properties[key] for key in properties if key in required] if isinstance(required, list) else []


_NOT_FOLLOWED = _DEFINITIONS | {"enum", "const", "default", "examples"}
