"""Several fields in one JSON object: wrapped or truncated, each field is read or has a problem."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.objects import ObjectCodec
from sigwire.core.json import dumps
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from tests.strategies import texts


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)
    tags: list[str] = []


class Left(BaseModel):
    x: int


class Right(BaseModel):
    x: int


def several(text: str, **rest: t.Any) -> ObjectCodec:
    return ObjectCodec(Signature(text, **rest).spec.outputs)


def test_object_gives_all_fields() -> None:
    read = several("q -> name: str, tags: list[str]").read('{"name": " x ", "tags": ["a"]}', strict=True)
    assert (read.values, read.repairs, read.problems) == ({"name": " x ", "tags": ["a"]}, [], {})


WRAPPED = [
    '{"json": {"name": "x", "age": 3}}',
    '{"json": "{\\"name\\": \\"x\\", \\"age\\": 3}"}',
    '{"type": "function", "parameters": {"name": "x", "age": 3}}',
    '{"name": "answer", "arguments": {"name": "x", "age": 3}}',
    '{"function": {"name": "answer", "arguments": "{\\"name\\": \\"x\\", \\"age\\": 3}"}}',
    '"{\\"name\\": \\"x\\", \\"age\\": 3}"',
    '```json\n{"name": "x", "age": 3}\n```',
    '```\n{"name": "x", "age": 3}',
    'The object is {"name": "x", "age": 3}. Good luck!',
    "{'name': 'x', 'age': 3}",
    '{"name": "x", "age": "3"}',
    '{"name": "x", "age": 3, "why": "because"}',
]


@pytest.mark.parametrize("text", WRAPPED)
def test_wrapped_objects_are_repairs_that_strict_refuses(text: str) -> None:
    codec_ = several("q -> name: str, age: int")
    read = codec_.read(text)
    assert (read.values, read.problems) == ({"name": "x", "age": 3}, {})
    assert read.repairs
    assert codec_.read(text, strict=True).problems


def test_problems_are_by_field_and_valid_fields_are_kept() -> None:
    read = several("q -> name: str, age: int, tags: list[str]").read('{"name": "x", "age": "old"}')
    assert read.values == {"name": "x"}
    assert read.problems == {
        "age": "should be a valid integer, unable to parse string as an integer, not 'old'",
        "tags": "the field is missing",
    }


def test_missing_optional_fields_have_defaults_without_a_repair() -> None:
    class Outputs(Signature):
        q: str = InputField()
        a: int = OutputField()
        b: list[str] = OutputField(default_factory=list)
        c: str | None = OutputField()
        d: str = OutputField(default="d")

    codec_ = ObjectCodec(Outputs.spec.outputs)
    for strict in (True, False):
        read = codec_.read('{"a": 1, "d": ""}', strict=strict)
        assert (read.values, read.repairs, read.problems) == ({"a": 1, "b": [], "c": None, "d": ""}, [], {})
    assert list(codec_.read('{"d": "x", "c": null, "b": ["y"], "a": 1}').values) == ["a", "b", "c", "d"]
    first, second = (codec_.read('{"a": 1}').values["b"] for _ in range(2))
    assert first is not second


def test_only_field_is_read_without_its_object() -> None:
    read = several("q -> tags: list[str]").read('["a"]')
    assert (read.values, [r.what for r in read.repairs]) == (
        {"tags": ["a"]},
        ["the value stood alone, without its object"],
    )
    assert several("q -> tags: list[str]").read('["a"]', strict=True).problems
    person = several("q -> person: Person", custom_types={"Person": Person}).read('{"name": "x", "age": 3}')
    assert person.values == {"person": Person(name="x", age=3)}


def test_empty_list_null_and_missing_member_are_different() -> None:
    codec_ = several("q -> tags: list[str] | None")
    assert [codec_.read(text).values["tags"] for text in ('{"tags": []}', '{"tags": null}', "{}")] == [[], None, None]


def test_truncated_object_gives_no_field() -> None:
    read = several("q -> name: str, age: int").read('{"name": "x", "age": 3')
    assert read.values == {}
    assert "not closed" in read.problems[""]


def test_duplicate_members_are_listed_or_refused() -> None:
    codec_ = several("q -> side: Left | Right", custom_types={"Left": Left, "Right": Right})
    read = codec_.read('{"side": {"x": 1}}')
    assert read.values == {"side": Left(x=1)}
    assert [r.what for r in read.repairs] == ["the value fits Left and Right alike; Left was taken"]
    assert "alike" in codec_.read('{"side": {"x": 1}}', strict=True).problems["side"]


# Texts that look like members, fences or JSON of their own.
tricky = texts | st.sampled_from(['"text"', '"tags": ["a"]', '{"person": 1}', "```json\n", "\\", "null", "5", ""])
people = st.builds(Person, name=tricky, age=st.integers(0, 2**70), tags=st.lists(tricky, max_size=2))


@given(tricky, st.lists(tricky), people, st.none() | st.integers())
def test_object_of_dumped_fields_is_read_back(text: str, tags: list[str], person: Person, number: int | None) -> None:
    codecs = [FieldCodec(spec) for spec in OUTPUTS]
    values = {"text": text, "tags": tags, "person": person, "number": number}
    dumped = {codec_.field.name: codec_.dump(values[codec_.field.name]) for codec_ in codecs}
    read = OBJECT.read(dumps(dumped), strict=True)
    assert (read.values, read.repairs, read.problems) == (values, [], {})


OUTPUTS = Signature(
    "q -> text: str, tags: list[str], person: Person, number: int | None", custom_types={"Person": Person}
).spec.outputs
OBJECT = ObjectCodec(OUTPUTS)
