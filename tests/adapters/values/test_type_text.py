"""Types in prompts: every fact of a declaration is in the text, in both styles."""

from __future__ import annotations

import datetime as dt
import enum
import json
import typing as t
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel, Field, HttpUrl

from benchmarks.type_tokens import Types, estimated_tokens, table
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.values.type_text import TypeStyle, field_type_text
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.signatures.types import Code, Reasoning


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tag(BaseModel):
    text: str
    weight: float = Field(default=1.0, gt=0, le=1)


class Person(BaseModel):
    """A person."""

    name: str = Field(description="given name first", min_length=1, max_length=40)
    age: int = Field(ge=0)
    tags: list[Tag] = []
    favourite: Color | None = None
    kind: t.Literal["user", "admin"] = "user"
    code: str = Field(alias="zip-code", pattern="^[0-9]{5}$")


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Left(BaseModel):
    right: Right | None = None


class Right(BaseModel):
    left: Left


class Address(BaseModel):
    street: str
    city: str
    country: str
    postcode: str


class Order(BaseModel):
    billing: Address
    shipping: Address


class Titled(BaseModel):
    title: str
    default: int
    names: list[str] = Field(description="all of them")


@dataclass
class Point:
    x: float
    y: float = 0.0


class Pair(t.NamedTuple):
    left: int
    right: str


def field(kind: t.Any, direction: str = "output", **options: t.Any) -> t.Any:
    members: dict[str, t.Any] = {"__module__": __name__, "__annotations__": {"value": kind, "other": str}}
    members["value"] = OutputField(**options) if direction == "output" else InputField(**options)
    members["other"] = InputField() if direction == "output" else OutputField()
    return type(Signature)("Made", (Signature,), members).spec.field("value")


def text(kind: t.Any, style: TypeStyle = "compact", **options: t.Any) -> str:
    return field_type_text(field(kind, **options), style)


COMPACT: list[tuple[t.Any, str]] = [
    (str, "string"),
    (int, "int"),
    (float, "float"),
    (bool, "bool"),
    (None, "null"),
    (t.Any, "any"),
    (str | None, "string | null"),
    (int | str, "int | string"),
    (t.Literal["a", 1, True, None], '"a" | 1 | true | null'),
    (Color, '"red" | "blue"'),
    (list[int], "int[]"),
    (list[int | str], "(int | string)[]"),
    (list[Color], '("red" | "blue")[]'),
    (list[list[str]], "string[][]"),
    (set[int], "int[] (unique items)"),
    (tuple[int, str], "[int, string]"),
    (tuple[int, ...], "int[]"),
    (Pair, "[int, string]"),
    (dict[str, int], "{ [key: string]: int }"),
    (dict[dt.date, list[float]], "{ [key: date (YYYY-MM-DD)]: float[] }"),
    (dict[Color, int], '{ [key: "red" | "blue"]: int }'),
    (dict, "{ [key: string]: any }"),
    (dt.datetime, "datetime (ISO 8601)"),
    (dt.timedelta, "duration (ISO 8601, such as PT1H30M)"),
    (uuid.UUID, "UUID"),
    (Decimal, "decimal"),
    (bytes, "base64"),
    (HttpUrl, "URL (1 to 2083 characters)"),
    (Point, "{ x: float, y?: float = 0.0 }"),
    (t.Annotated[int, Field(ge=1, lt=5)] | None, "int (>= 1, < 5) | null"),
    (list[t.Annotated[str, Field(min_length=2)]], "(string (at least 2 characters))[]"),
    (Tag, "{ text: string, weight?: float (> 0, <= 1) = 1.0 }"),
    (Node, "Node\nwhere Node = { value: int, children?: Node[] = [] }"),
    (list[Node], "Node[]\nwhere Node = { value: int, children?: Node[] = [] }"),
    (Right, "Right\nwhere Left = { right?: Right | null }\nwhere Right = { left: Left }"),
    (Order, "{ billing: Address, shipping: Address }\n"
        "where Address = { street: string, city: string, country: string, postcode: string }"),
    (Titled, "{\n  title: string,\n  default: int,\n  names: string[],  // all of them\n}"),
    (Code, "python source code"),
    (Code["sql"], "sql source code"),
    (Reasoning, "string"),
    (Person, """{
  name: string (1 to 40 characters),  // given name first
  age: int (>= 0),
  tags?: { text: string, weight?: float (> 0, <= 1) = 1.0 }[] = [],
  favourite?: "red" | "blue" | null,
  kind?: "user" | "admin" = "user",
  "zip-code": string (pattern ^[0-9]{5}$),
}"""),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "expected"), COMPACT)
def test_type_is_written_in_compact_notation(kind: t.Any, expected: str) -> None:
    assert text(kind) == expected


def test_type_is_written_as_json_schema_without_titles() -> None:
    schema = json.loads(text(Person, "schema"))
    members = schema["properties"]
    assert members["name"] == {
        "description": "given name first", "maxLength": 40, "minLength": 1, "type": "string",
    }  # fmt: skip
    assert members["age"] == {"minimum": 0, "type": "integer"}
    assert members["zip-code"]["pattern"] == "^[0-9]{5}$"
    assert members["kind"] == {"default": "user", "enum": ["user", "admin"], "type": "string"}
    assert schema["$defs"]["Color"] == {"enum": ["red", "blue"], "type": "string"}
    assert schema["required"] == ["name", "age", "zip-code"]
    assert schema["description"] == "A person."


def test_members_named_like_schema_keywords_are_kept() -> None:
    assert list(json.loads(text(Titled, "schema"))["properties"]) == ["title", "default", "names"]


def test_text_field_is_string_in_both_styles() -> None:
    assert (text(str), text(str, "schema")) == ("string", '{"type":"string"}')


def test_type_text_omits_the_limits_of_the_field() -> None:
    assert text(str, max_length=3) == "string"


def test_tools_and_calls_have_short_type_names() -> None:
    spec = Signature("tools: list[Tool], text -> calls: ToolCalls").spec
    assert field_type_text(spec.inputs[0]) == "tools"
    assert field_type_text(spec.outputs[0]).startswith("{ name: string, arguments: ")


class Unknown:
    pass


def test_input_of_an_unknown_type_is_any() -> None:
    assert field_type_text(field(Unknown, "input")) == "any"


def test_order_of_a_union_is_kept() -> None:
    assert (text(int | str), text(str | int)) == ("int | string", "string | int")


def test_documented_table_equals_the_printed_table() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "types-in-prompts.md"
    assert table() in page.read_text(encoding="utf-8")


def test_compact_notation_is_shorter_than_json_schema() -> None:
    for spec in Types.spec.outputs:
        assert estimated_tokens(field_type_text(spec)) < estimated_tokens(field_type_text(spec, "schema"))


LIMITED: list[tuple[object, dict[str, t.Any], str, str]] = [
    (int, {"ge": 1, "le": 9}, "- n (int): at least 1, at most 9", '- n ({"type":"integer"}): at least 1, at most 9'),
    (
        int | None,
        {"ge": 0},
        "- n (int | null): at least 0",
        '- n ({"anyOf":[{"type":"integer"},{"type":"null"}]}): at least 0',
    ),
    (
        list[t.Annotated[int, Field(ge=1)]],  # the limits of what is inside are the type's own
        {"max_length": 2},
        "- n ((int (>= 1))[]): length at most 2",
        '- n ({"items":{"minimum":1,"type":"integer"},"type":"array"}): length at most 2',
    ),
    (
        str,
        {"pattern": "^x"},
        "- n (string): matching the pattern ^x",
        '- n ({"type":"string"}): matching the pattern ^x',
    ),
]


@pytest.mark.parametrize(("kind", "limits", "compact", "schema"), LIMITED, ids=[str(kind) for kind, *_ in LIMITED])
def test_limits_of_a_field_are_written_once(kind: object, limits: dict[str, t.Any], compact: str, schema: str) -> None:
    signature = Signature("text -> n").with_updated_fields("n", kind, **limits)
    for adapter, line in ((ChatAdapter(), compact), (ChatAdapter(types="schema"), schema)):
        assert line in adapter.format(signature, {"text": "x"}).messages[0].text.splitlines()
