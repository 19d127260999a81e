"""Schema rules: what is rewritten, dropped with words, refused with the path, and what never changes."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sigwire.core.json import JsonObject, dumps
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs.shared.schema import (
    AS_IS,
    SchemaRules,
    any_of_for_types,
    compile_schema,
    const_to_enum,
    merge_all_of,
    one_of_to_any_of,
)

REWRITES = (merge_all_of, const_to_enum, one_of_to_any_of, any_of_for_types)


def obj(**properties: Any) -> JsonObject:
    return {"type": "object", "properties": properties}


def compiled(schema: JsonObject, rules: SchemaRules) -> tuple[JsonObject, list[str]]:
    before = copy.deepcopy(schema)
    result, warnings = compile_schema(schema, rules, "tool 'f'")
    assert schema == before
    assert all(warning.feature == "schema" for warning in warnings)
    return result, [warning.detail for warning in warnings]


def refused(schema: JsonObject, rules: SchemaRules) -> str:
    with pytest.raises(UnsupportedFeature, match=r"schema of tool 'f'") as caught:
        compile_schema(schema, rules, "tool 'f'")
    return str(caught.value)


def test_rules_that_take_everything_return_the_very_schema() -> None:
    schema = obj(a={"anything": "goes"})
    assert compile_schema(schema, AS_IS, "x")[0] is schema


# --- rewrites ---------------------------------------------------------------------------------------------------

SAME: dict[str, tuple[JsonObject, JsonObject]] = {
    "const": (obj(a={"const": 1}), obj(a={"enum": [1]})),
    "oneOf": (obj(a={"oneOf": [{"type": "string"}]}), obj(a={"anyOf": [{"type": "string"}]})),
    "list of types": (
        obj(a={"type": ["string", "null"], "minLength": 1, "description": "d"}),
        obj(a={"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}], "description": "d"}),
    ),
    "list of one type": (obj(a={"type": ["string"]}), obj(a={"type": "string"})),
    "list of types with enum": (
        obj(a={"type": ["string", "null"], "enum": ["a", None]}),
        obj(a={"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
    ),
    "allOf of one": (obj(a={"allOf": [{"type": "string"}], "title": "A"}), obj(a={"title": "A", "type": "string"})),
    "allOf of objects": (
        {"allOf": [obj(a={}) | {"required": ["a"]}, obj(b={}) | {"required": ["b"]}]},
        obj(a={}, b={}) | {"required": ["a", "b"]},
    ),
    "allOf that contradicts": (
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
    ),
    "data is not a schema": (
        {"type": "string", "enum": [{"const": 1}], "default": {"const": 2}},
        {"type": "string", "enum": [{"const": 1}], "default": {"const": 2}},
    ),
    "properties named like keywords": (
        obj(const={"const": 1}, properties={"type": "string"}),
        obj(const={"enum": [1]}, properties={"type": "string"}),
    ),
    "inside items, prefixItems and additionalProperties": (
        {"items": {"const": 1}, "prefixItems": [{"const": 2}], "additionalProperties": {"const": 3}},
        {"items": {"enum": [1]}, "prefixItems": [{"enum": [2]}], "additionalProperties": {"enum": [3]}},
    ),
}


@pytest.mark.parametrize(("schema", "wanted"), SAME.values(), ids=SAME)
def test_rewriting_loses_nothing_and_warns_of_nothing(schema: JsonObject, wanted: JsonObject) -> None:
    assert compiled(schema, SchemaRules(rewrite=REWRITES)) == (wanted, [])


# --- dropping -----------------------------------------------------------------------------------------------------

FEW = SchemaRules(
    keep=frozenset({"type", "properties", "description", "format"}), values={"format": frozenset({"date"})}
)
NOT_ENFORCED = "is not enforced by the provider; it was written into the description."


def test_dropped_keywords_are_in_the_description_and_in_one_warning() -> None:
    schema = obj(
        a={"type": "integer", "minimum": 1, "maximum": 9, "description": "A number."},
        b={"type": "string", "pattern": "^x$", "title": "B", "examples": ["x"]},
        c={"type": "string", "format": "date"},
        d={"type": "string", "format": "uri"},
    )
    result, warnings = compiled(schema | {"additionalProperties": False}, FEW)
    assert result == obj(
        a={"type": "integer", "description": "A number. (minimum: 1; maximum: 9)"},
        b={"type": "string", "description": "(pattern: ^x$)"},
        c={"type": "string", "format": "date"},
        d={"type": "string", "description": "(format: uri)"},
    )
    places = "minimum at /properties/a, maximum at /properties/a, pattern at /properties/b, format at /properties/d"
    assert warnings == [f"tool 'f': {places} {NOT_ENFORCED}"]


def test_a_schema_that_needs_nothing_keeps_its_order() -> None:
    schema: JsonObject = {"required": ["a"], "type": "object", "properties": {"a": {"type": "string"}}}
    assert dumps(compiled(schema, SchemaRules(rewrite=REWRITES))[0]) == dumps(schema)


# --- references and recursion ----------------------------------------------------------------------------------------

POINT = obj(x={"type": "integer"})
POINTS = obj(p={"$ref": "#/$defs/P", "description": "d"}, q={"$ref": "#/$defs/P"}) | {"$defs": {"P": POINT}}
NODE = obj(name={"type": "string"}, next={"$ref": "#/$defs/N"})
OPTIONAL_LIST = obj(head={"$ref": "#/$defs/N"}) | {"$defs": {"N": NODE | {"required": ["name"]}}}
ENDLESS_LIST = obj(head={"$ref": "#/$defs/N"}) | {"$defs": {"N": NODE | {"required": ["next"]}}}
TREE = obj(kids={"type": "array", "items": {"$ref": "#"}})


def test_references_are_inlined_with_their_sibling_keywords() -> None:
    assert compiled(POINTS, SchemaRules(inline_refs=True)) == (obj(p=POINT | {"description": "d"}, q=POINT), [])


def test_references_are_kept_and_may_lose_sibling_keywords() -> None:
    assert compiled(POINTS, SchemaRules(rewrite=REWRITES)) == (POINTS, [])
    bare = obj(p={"$ref": "#/$defs/P"}, q={"$ref": "#/$defs/P"}) | {"$defs": {"P": POINT}}
    assert compiled(POINTS, SchemaRules(ref_siblings=False)) == (bare, [])
    loud = obj(p={"$ref": "#/$defs/P", "minProperties": 1}) | {"$defs": {"P": POINT}}
    _, warnings = compiled(loud, SchemaRules(ref_siblings=False))
    assert warnings == ["tool 'f': minProperties at /properties/p beside $ref was left out."]


def test_a_reference_out_of_an_all_of_follows_the_rules_of_references() -> None:
    schema = obj(p={"allOf": [{"$ref": "#/$defs/P"}], "description": "d", "default": {}}) | {"$defs": {"P": POINT}}
    bare = obj(p={"$ref": "#/$defs/P"}) | {"$defs": {"P": POINT}}
    rules = SchemaRules(rewrite=(merge_all_of,), ref_siblings=False)
    assert compiled(schema, rules) == (bare, ["tool 'f': default at /properties/p beside $ref was left out."])
    endless = obj(p={"allOf": [{"$ref": "#"}]}) | {"required": ["p"]}
    assert "recursive in required" in refused(endless, replace(rules, recursion="optional"))


def test_a_reference_to_nothing_is_refused() -> None:
    for reference in ("#/$defs/Q", "https://x/y.json"):
        assert "points at nothing" in refused(obj(p={"$ref": reference}), SchemaRules(inline_refs=True))


@pytest.mark.parametrize("schema", [OPTIONAL_LIST, ENDLESS_LIST, TREE], ids=["optional", "endless", "tree"])
def test_recursion_is_kept_if_the_wire_accepts_recursion(schema: JsonObject) -> None:
    assert compiled(schema, SchemaRules(rewrite=REWRITES)) == (schema, [])


@pytest.mark.parametrize("schema", [OPTIONAL_LIST, ENDLESS_LIST, TREE], ids=["optional", "endless", "tree"])
@pytest.mark.parametrize("inline", [True, False])
def test_recursion_is_refused_with_its_path(schema: JsonObject, inline: bool) -> None:
    message = refused(schema, SchemaRules(recursion="refuse", inline_refs=inline))
    assert "/properties/" in message
    assert "recursive" in message


def test_recursion_through_optional_properties_may_be_all_a_wire_takes() -> None:
    rules = SchemaRules(recursion="optional")
    assert compiled(OPTIONAL_LIST, rules) == (OPTIONAL_LIST, [])
    assert compiled(TREE, rules) == (TREE, [])
    assert "in required properties (#/$defs/N)" in refused(ENDLESS_LIST, rules)


def test_recursion_can_be_opened_where_it_recurs() -> None:
    result, warnings = compiled(OPTIONAL_LIST, SchemaRules(recursion="open", inline_refs=True))
    inner: JsonObject = {"type": "object", "description": "Same structure as N."}
    node = obj(name={"type": "string"}, next=inner) | {"required": ["name"]}
    assert result == obj(head=node)
    assert warnings == [
        "tool 'f': recursion at /properties/head/properties/next ends there in an object of any content."
    ]


# --- what has to be there ---------------------------------------------------------------------------------------------

MAP: JsonObject = {"type": "object", "additionalProperties": {"type": "integer"}}


def test_objects_are_closed_if_the_wire_requires_closed_objects() -> None:
    assert compiled(obj(a=obj()), SchemaRules(closed=True))[0] == obj(a=obj() | {"additionalProperties": False}) | {
        "additionalProperties": False
    }


def test_open_maps_are_kept_opened_or_refused() -> None:
    assert compiled(obj(m=MAP), SchemaRules(rewrite=REWRITES)) == (obj(m=MAP), [])
    result, warnings = compiled(obj(m=MAP), SchemaRules(open_maps="open"))
    assert result == obj(m={"type": "object"})
    assert warnings == [
        "tool 'f': additionalProperties at /properties/m cannot be described to the provider and was left out."
    ]
    assert "at /properties/m it is a map of undeclared keys" in refused(obj(m=MAP), SchemaRules(open_maps="refuse"))


def test_a_schema_without_a_type_can_be_refused() -> None:
    assert "at /properties/a it has no type" in refused(obj(a={}), SchemaRules(untyped="refuse"))
    assert compiled(obj(a={}), SchemaRules(untyped="keep")) == (obj(a={}), [])


def test_the_root_can_have_to_be_an_object() -> None:
    rules = SchemaRules(root="object")
    assert "at the root the root must be an object" in refused({"type": "array"}, rules)
    assert "the root must be" in refused({"anyOf": [obj(), obj()]}, rules)
    assert compiled({"anyOf": [obj(), obj()]}, SchemaRules(root="union"))[1] == []
    assert "the root must be an object" in refused({"type": "array"}, SchemaRules(root="union"))
    recursive: JsonObject = {"$ref": "#/$defs/N", "$defs": {"N": NODE}}
    assert compiled(recursive, rules) == (NODE | {"$defs": {"N": NODE}}, [])


# --- properties -----------------------------------------------------------------------------------------------------------

scalars = st.sampled_from([1, -1, "a", "abcd", None, True, 2.5])
leaves: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda value: {"const": value}, scalars),
    st.builds(lambda values: {"enum": values}, st.lists(scalars, min_size=1, max_size=3)),
    st.builds(
        lambda types, low: {"type": types, "minimum": low, "minLength": 2},
        st.lists(
            st.sampled_from(["integer", "string", "null", "boolean", "number"]), min_size=1, max_size=3, unique=True
        ),
        st.integers(0, 2),
    ),
    st.just({"$ref": "#/$defs/D"}),
)
schemas: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda a, b: obj(a=a, b=b) | {"required": ["a"]}, inner, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"allOf": [a, {"description": "d"}]}, inner),
    ),
    max_leaves=5,
).map(lambda schema: {**schema, "$defs": {"D": {"type": "integer", "minimum": 0}}})
instances: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


@given(schemas, st.lists(instances, min_size=1, max_size=5), st.booleans())
def test_rewritten_schemas_accept_exactly_what_the_originals_accept(
    schema: JsonObject, values: list[Any], inline: bool
) -> None:
    rewritten, _ = compile_schema(schema, SchemaRules(rewrite=REWRITES, inline_refs=inline), "tool 'f'")
    ours, theirs = Draft202012Validator(rewritten), Draft202012Validator(schema)
    assert [ours.is_valid(value) for value in values] == [theirs.is_valid(value) for value in values]


@given(schemas, st.lists(instances, min_size=1, max_size=5))
def test_dropping_keywords_never_refuses_what_the_original_accepts(schema: JsonObject, values: list[Any]) -> None:
    rules = SchemaRules(
        keep=frozenset({"type", "properties", "required", "items", "anyOf", "enum", "description"}),
        rewrite=REWRITES,
        inline_refs=True,
    )
    loose, _ = compile_schema(schema, rules, "tool 'f'")
    theirs, ours = Draft202012Validator(schema), Draft202012Validator(loose)
    assert all(ours.is_valid(value) for value in values if theirs.is_valid(value))
