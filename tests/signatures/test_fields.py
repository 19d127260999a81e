"""Fields: constraints that count, defaults that are fresh, names as titles."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.errors import FieldDefinitionError
from sigwire.signatures.declarations import UNSET, InputField, OutputField, declare, direction_of
from sigwire.signatures.fields import compile_bare, compile_field, infer_prefix
from sigwire.signatures.roles import Direction
from sigwire.signatures.signature import make_signature

CONSTRAINTS: list[tuple[dict[str, Any], Any, str, Any, Any]] = [
    ({"gt": 0}, int, "more than 0", 1, 0),
    ({"ge": 0}, int, "at least 0", 0, -1),
    ({"lt": 5}, float, "less than 5", 4.9, 5),
    ({"le": 5}, int, "at most 5", 5, 6),
    ({"ge": 1, "le": 5}, int, "at least 1, at most 5", 3, 9),
    ({"multiple_of": 3}, int, "a multiple of 3", 6, 7),
    ({"min_length": 2}, str, "length at least 2", "ab", "a"),
    ({"max_length": 2}, list[int], "length at most 2", [1, 2], [1, 2, 3]),
    ({"pattern": "^a+$"}, str, "matching the pattern ^a+$", "aa", "b"),
]


@pytest.mark.parametrize(
    ("given", "kind", "words", "good", "bad"), CONSTRAINTS, ids=[str(case[0]) for case in CONSTRAINTS]
)
def test_constraints_are_described_and_enforced(
    given: dict[str, Any], kind: Any, words: str, good: Any, bad: Any
) -> None:
    spec = compile_field("x", kind, declare("output", **given))
    assert spec.constraints == words
    assert spec.info.json_schema_extra["constraints"] == words  # type: ignore[index, call-overload]
    assert spec.adapter.validate_python(good) == good
    with pytest.raises(ValidationError):
        spec.adapter.validate_python(bad)


def test_constraints_of_optional_types_accept_none() -> None:
    spec = compile_field("x", int | None, OutputField(ge=1))
    assert spec.adapter.validate_python(None) is None
    with pytest.raises(ValidationError):
        spec.adapter.validate_python(0)


def test_constraints_inside_a_type_are_enforced() -> None:
    spec = compile_field("x", list[Annotated[int, Field(ge=1)]], OutputField())
    assert spec.adapter.validate_python(["1"]) == [1]
    with pytest.raises(ValidationError):
        spec.adapter.validate_python([0])


def test_type_that_cannot_be_validated_raises_with_advice() -> None:
    class Odd:
        pass

    with pytest.raises(FieldDefinitionError, match=r"'x'.*Odd"):
        _ = compile_field("x", Odd, OutputField()).adapter


def test_discriminated_unions_are_validated() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    spec = compile_field("pet", Cat | Dog, OutputField(discriminator="kind"))
    assert spec.adapter.validate_python({"kind": "dog"}) == Dog(kind="dog")
    with pytest.raises(ValidationError, match="'cat', 'dog'"):
        spec.adapter.validate_python({"kind": "fish"})


def test_validator_is_built_once_on_first_use() -> None:
    spec = compile_field("x", int, OutputField())
    assert spec._adapter is None
    assert spec.adapter is spec.adapter


def test_defaults_are_fresh_copies() -> None:
    listed = compile_field("x", list[int], InputField(default=[1]))
    made = compile_field("x", list[int], InputField(default_factory=list))
    for spec in (listed, made):
        assert spec.has_default
        assert not spec.required
        assert spec.default_value() == spec.default_value()
        assert spec.default_value() is not spec.default_value()
    assert compile_field("x", int | None, InputField(default=None)).default_value() is None
    assert compile_field("x", int, InputField()).default_value() is UNSET


def test_nullable_output_is_not_required_but_nullable_input_is() -> None:
    assert not compile_field("x", int | None, OutputField()).required
    assert compile_field("x", int | None, InputField()).required
    assert compile_field("x", int, OutputField()).required


def test_one_declaration_may_serve_many_fields() -> None:
    shared = InputField(ge=1)
    first, second = compile_field("first", int, shared), compile_field("second", float, shared)
    assert (first.prefix, second.prefix) == ("First:", "Second:")
    assert "prefix" not in shared.json_schema_extra


@pytest.mark.parametrize("direction", ["input", "output"])
@pytest.mark.parametrize(
    "kind", [bool, float, int, str, str | None, list[int], Literal["a"], Annotated[int, Field(ge=1)]]
)
@pytest.mark.parametrize("name", ["answer", "isValid", "k2", "_", "désolé"])
def test_bare_field_equals_a_declared_field(kind: Any, direction: Direction, name: str) -> None:
    bare, declared = compile_bare(name, kind, direction), compile_field(name, kind, declare(direction))
    for field in dataclasses.fields(bare):
        if not field.name.startswith("_"):
            assert getattr(bare, field.name) == getattr(declared, field.name)
    assert (bare == declared, hash(bare) == hash(declared)) == (True, True)
    assert repr(bare.info) == repr(declared.info)
    assert bare.info is bare.info
    assert pickle.loads(pickle.dumps(bare)) == bare


def test_direction_is_read_from_declarations_only() -> None:
    assert direction_of(InputField()) == "input"
    assert direction_of(OutputField()) == "output"
    assert direction_of("input") is None
    assert direction_of(None) is None


def test_desc_and_description_are_equivalent() -> None:
    assert compile_field("x", str, InputField(desc="a")).description == "a"
    assert compile_field("x", str, InputField(description="a")).description == "a"
    assert compile_field("x", str, InputField()).description == ""


PREFIXES = [
    ("question", "Question"),
    ("camelCaseName", "Camel Case Name"),
    ("snake_case_name", "Snake Case Name"),
    ("URLAddress", "URL Address"),
    ("HTTPServerURL", "HTTP Server URL"),
    ("modelT45Enhanced", "Model T 45 Enhanced"),
    ("text2sql", "Text 2 Sql"),
    ("some_URL_here", "Some URL Here"),
    ("größe", "Größe"),
    ("x", "X"),
]


@pytest.mark.parametrize(("name", "prefix"), PREFIXES)
def test_infer_prefix_makes_a_title(name: str, prefix: str) -> None:
    assert infer_prefix(name) == prefix


@given(st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,20}", fullmatch=True))
def test_infer_prefix_keeps_every_letter(name: str) -> None:
    assert infer_prefix(name).replace(" ", "").lower() == name.replace("_", "").lower()


def test_unknown_field_raises_with_all_names() -> None:
    with pytest.raises(KeyError, match="no field 'z'; it has a, b"):
        make_signature("a -> b").spec.field("z")


CALLS: list[Any] = [
    ToolCalls([ToolCall("call_0", "f", {"a": 1})]),
    {"tool_calls": [{"name": "f", "args": {"a": 1}}]},
    [{"name": "f", "arguments": '{"a": 1}'}],
    {"name": "f", "arguments": {"a": 1}},
    [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
]


@pytest.mark.parametrize("value", CALLS, ids=repr)
def test_tool_calls_are_read_from_every_known_shape(value: Any) -> None:
    spec = make_signature("q, tools: list[Tool] -> calls: ToolCalls").spec.field("calls")
    read = spec.adapter.validate_python(value)
    assert [(call.id, call.name, call.arguments) for call in read] == [("call_0", "f", {"a": 1})]
    assert spec.adapter.validate_python(spec.adapter.dump_python(read, mode="json")) == read
