"""JSON Schema: generated from types, references inlined, schemas checked, values checked with short problems."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from sigwire.core.schema import check_schema, inline_refs, schema_of, shorten, validator
from sigwire.errors import ToolDefinitionError
from tests.strategies import json_values


class Leaf(BaseModel):
    colour: str


class Branch(BaseModel):
    leaves: list[Leaf]
    twin: Leaf | None = None


class Tree(BaseModel):
    left: Tree | None = None
    leaf: Leaf


class Chicken(BaseModel):
    egg: Egg | None = None


class Egg(BaseModel):
    chicken: Chicken | None = None


class Point(TypedDict):
    x: int


LEAF = {
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "title": "Leaf",
    "type": "object",
}


# --- from types ----------------------------------------------------------------------------------------


def test_schema_of_inlines_shared_types_without_titles() -> None:
    schema = schema_of(Branch)
    assert schema["properties"] == {
        "leaves": {"items": LEAF, "type": "array"},
        "twin": {"anyOf": [LEAF, {"type": "null"}], "default": None},
    }
    assert "$defs" not in schema


@pytest.mark.parametrize(("kind", "kept"), [(Tree, {"Tree"}), (list[Tree], {"Tree"}), (Chicken, {"Chicken", "Egg"})])
def test_recursive_type_stays_a_definition(kind: Any, kept: set[str]) -> None:
    schema = schema_of(kind)
    assert set(schema["$defs"]) == kept  # type: ignore[arg-type]
    Draft202012Validator.check_schema(schema)


def test_standard_typed_dict_has_a_schema() -> None:
    assert schema_of(list[Point])["items"]["required"] == ["x"]  # type: ignore[index,call-overload]


KINDS = [Branch, Tree, Chicken, list[Leaf], dict[str, Branch], int | None]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(value=json_values)
def test_inlining_references_does_not_change_validity(kind: Any, value: Any) -> None:
    from pydantic import TypeAdapter

    before, after = TypeAdapter(kind).json_schema(), schema_of(kind)
    assert Draft202012Validator(before).is_valid(value) == Draft202012Validator(after).is_valid(value)


# --- references ----------------------------------------------------------------------------------------


def test_siblings_of_a_reference_override_the_definition() -> None:
    schema: Any = {
        "$defs": {"A": {"type": "integer", "description": "of A"}},
        "$ref": "#/$defs/A",
        "description": "own",
    }
    assert inline_refs(schema) == {"type": "integer", "description": "own"}


def test_schema_without_definitions_is_unchanged() -> None:
    schema: Any = {"properties": {"$defs": {"type": "string"}}}
    assert inline_refs(schema) is schema


def test_property_named_ref_is_a_property() -> None:
    schema: Any = {"$defs": {"A": {"type": "integer"}}, "properties": {"$ref": {"$ref": "#/$defs/A"}}}
    assert inline_refs(schema) == {"properties": {"$ref": {"type": "integer"}}}


def test_other_references_are_unchanged() -> None:
    schema: Any = {"$defs": {"A": {"type": "integer"}}, "items": {"$ref": "#/properties/a"}}
    assert inline_refs(schema) == {"items": {"$ref": "#/properties/a"}}


def test_definitions_that_double_stay_definitions() -> None:
    levels: Any = {
        f"L{n}": {"items": {"$ref": f"#/$defs/L{n + 1}"}, "not": {"$ref": f"#/$defs/L{n + 1}"}} for n in range(64)
    }
    schema: Any = {"$defs": {**levels, "L64": {"type": "integer"}}, "$ref": "#/$defs/L0"}
    assert inline_refs(schema) is schema  # and not 2 ** 64 steps, which would not end


# --- checking schemas ------------------------------------------------------------------------------------

POINTER: Any = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}, "c": {"$ref": "#/definitions/c~1d"}},
    "definitions": {"c/d": {"type": "string"}},
}
RECURSIVE: Any = {
    "type": "object",
    "properties": {"next": {"$ref": "#"}, "tree": {"$ref": "#/$defs/tree"}},
    "additionalProperties": False,
    "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}
ANCHORED: Any = {
    "$id": "https://example.org/tool",
    "properties": {"a": {"$ref": "#number"}, "b": {"$ref": "inner#/properties/c"}},
    "$defs": {
        "n": {"$anchor": "number", "type": "integer"},
        "i": {"$id": "inner", "properties": {"c": {"type": "string"}}},
    },
}
FITTING: list[tuple[Any, Any, Any]] = [
    (POINTER, {"a": 1, "b": 2, "c": "x"}, {"b": "x"}),
    (RECURSIVE, {"next": {"tree": [[], [[]]]}}, {"next": {"tree": [[], [1]]}}),
    (ANCHORED, {"a": 1, "b": "x"}, {"b": 1}),
    ({}, {"anything": 1}, None),
    ({"properties": {"a": {"default": {"$ref": "data"}}}}, {"a": 1}, None),
    (
        {"properties": {"$ref": {"type": "string"}, "default": {"$ref": "#/properties/$ref"}}},
        {"default": "x"},
        {"default": 1},
    ),
    ({"properties": {"a": {"enum": [{"$ref": "nowhere"}]}}}, {"a": {"$ref": "nowhere"}}, {"a": 1}),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"items": [{"type": "integer"}]}}},
        {"a": [1, "x"]},
        {"a": ["x"]},
    ),
    ({"properties": {"a": {"pattern": "^\\p{L}+$"}}}, {"a": "5"}, None),
    ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False}, {"x1": 1}, {"y": 1}),
]


@pytest.mark.parametrize(("schema", "fits", "does_not"), FITTING, ids=lambda case: str(case)[:40])
def test_valid_schema_is_accepted_and_enforced(schema: Any, fits: Any, does_not: Any) -> None:
    check_schema(schema, "Tool 'f'")
    faults = validator(schema)
    assert faults(fits) == []
    assert does_not is None or faults(does_not)


UNUSABLE: list[tuple[Any, str]] = [
    ({"type": "array"}, "must describe an object, not 'array'"),
    ({"type": ["object", "null"]}, "must describe an object"),
    ({"properties": {"a": {"type": "objekt"}}}, "At properties/a/type"),
    ({"required": "a"}, "At required"),
    ({"properties": {"a": {"items": [{}]}}}, "At properties/a/items"),
    ({"properties": {"a": {"$ref": "#/$defs/A"}}}, "refer to '#/[$]defs/A', which is not in the schema"),
    ({"properties": {"a": {"$ref": "https://example.org/a.json"}}}, "nothing is fetched"),
    ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "nothing is fetched"),
    ({"$defs": {"A": {"$ref": "other.json#/x"}}}, "refer to 'other.json#/x'"),
    ({"properties": {"a": {"$ref": "#/properties/a/type/x"}, "b": {}}, "title": "t"}, "which is not in the schema"),
    ({"properties": {"a": {"$ref": "#/title/x"}}, "title": "t"}, "which is not in the schema"),
    ({"patternProperties": {"[": {}}}, "under patternProperties is invalid"),
]


@pytest.mark.parametrize(("schema", "message"), UNUSABLE, ids=lambda case: str(case)[:40])
def test_invalid_schema_raises_with_the_path(schema: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=f"Tool 'f': .*{message}"):
        check_schema(schema, "Tool 'f'")


def test_reference_to_itself_terminates() -> None:
    schema: Any = {"properties": {"a": {"$ref": "#/properties/a"}}}
    check_schema(schema, "Tool 'f'")
    assert validator(schema)({"a": 1}) == ["the value is nested too deeply"]


def test_deeply_nested_value_is_a_problem() -> None:
    value: Any = {}
    for _ in range(5_000):
        value = {"next": value}
    assert validator(RECURSIVE)(value) == ["the value is nested too deeply"]


# --- checking values -------------------------------------------------------------------------------------

SAID: list[tuple[Any, Any, str]] = [
    ({"type": "integer"}, "x", "must be an integer, not 'x'"),
    ({"type": ["string", "null"]}, 1, "must be a string or null, not 1"),
    ({"type": "number"}, True, "must be a number, not True"),
    ({"enum": ["a", 1, None]}, "b", "must be one of a, 1, null, not 'b'"),
    ({"const": "a"}, "b", "must be a, not 'b'"),
    ({"minimum": 1}, 0, "must be at least 1, not 0"),
    ({"maximum": 1}, 2, "must be at most 1, not 2"),
    ({"exclusiveMinimum": 0}, 0, "must be more than 0, not 0"),
    ({"exclusiveMaximum": 0}, 0, "must be less than 0, not 0"),
    ({"multipleOf": 5}, 3, "must be a multiple of 5, not 3"),
    ({"minLength": 2}, "a", "must have at least 2 characters"),
    ({"maxLength": 2}, "abc", "must have at most 2 characters"),
    ({"minItems": 1}, [], "must have at least 1 items"),
    ({"maxProperties": 0}, {"a": 1}, "must have at most 0 properties"),
    ({"pattern": "^a"}, "b", "must match the pattern ^a"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "must be an integer or null, not 'x'"),
    ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]}, 1, "must be at least 3, not 1"),
    ({"oneOf": [{"required": ["k"]}, {"type": "null"}]}, {}, "k: is required"),
    ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, "must fit exactly one alternative"),
    ({"uniqueItems": True}, [1, 1], "[1, 1] has non-unique elements"),
    ({"not": {"type": "integer"}}, 1, "1 should not be valid under {'type': 'integer'}"),
    ({"required": ["b"]}, {"a": 1}, "b: is required"),
    (
        {"additionalProperties": False, "properties": {"b": {}}},
        {"a": 1},
        "a: there is no such argument; the names are: b",
    ),
    ({"additionalProperties": False}, {"a": 1}, "a: there is no such argument; no name is allowed here"),
    ({"properties": {"n": {"items": {"type": "string"}}}}, {"n": ["a", 1]}, "n.1: must be a string, not 1"),
]


@pytest.mark.parametrize(("schema", "value", "text"), SAID, ids=lambda case: str(case)[:40])
def test_problems_have_their_path(schema: Any, value: Any, text: str) -> None:
    (fault,) = validator({"properties": {"arg": schema}})({"arg": value})
    assert fault.startswith((f"arg: {text}", f"arg.{text}"))


def test_missing_argument_is_called_an_argument() -> None:
    assert validator({"required": ["a"]})({}) == ["a: this argument is required"]


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"enum": ["a"]}, {"not": {}}, {"const": 1}, {"pattern": "^b"}])
def test_problem_does_not_repeat_a_long_value(schema: Any) -> None:
    (fault,) = validator({"properties": {"a": schema}})({"a": "x" * 100_000})
    assert len(fault) < 200
    assert fault.count("x") <= 80


def test_many_problems_are_shortened() -> None:
    faults = validator({"properties": {"a": {"items": {"type": "string"}}}})({"a": list(range(100))})
    assert faults[0] == "a.0: must be a string, not 0"
    assert faults[-1] == "and 92 more problems"


def test_schema_is_compiled_once() -> None:
    assert validator({"type": "object", "title": "x"}) is validator({"type": "object", "title": "x"})


@given(json_values)
def test_problems_of_any_value_are_short_lines(value: Any) -> None:
    for fault in validator(RECURSIVE)(value):
        assert 0 < len(fault) < 500


@given(st.text(max_size=300), st.integers(12, 100))
def test_shorten_is_never_longer_than_the_limit(text: str, longest: int) -> None:
    assert len(shorten(text, longest)) <= longest
