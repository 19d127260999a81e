"""Prompt types: types in a prompt's notation to JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import dumps
from sigwire.lm.offline.prompt_types import read_tool_line, read_type

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("string", STRING),
    ("int (>= 0)", INTEGER),
    ("string[]", {"type": "array", "items": STRING}),
    ('"a" | "b"', {"enum": ["a", "b"]}),
    ('("a" | "b")[]', {"type": "array", "items": {"enum": ["a", "b"]}}),
    ("string | null", {"type": ["string", "null"]}),
    ('"a" | "b" | null', {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}),
    ("int | string", {"anyOf": [INTEGER, STRING]}),
    ("date", {"type": "string", "format": "date"}),
    ("Unknown", {}),
    (
        "{ name: string, age?: int (>= 0)  // in years\n}",
        {"type": "object", "properties": {"name": STRING, "age": INTEGER}, "required": ["name"]},
    ),
    ('{"type": "integer"}', INTEGER),
]


@pytest.mark.parametrize(("text", "schema"), CASES)
def test_read_type_returns_the_schema_of_a_type(text: str, schema: dict[str, Any]) -> None:
    assert read_type(text) == schema


def test_read_tool_line_returns_a_tool_with_described_parameters() -> None:
    tool = read_tool_line("find(city: string, days?: integer = 3): Find it.", {"city": "Where."})
    assert tool == {
        "name": "find",
        "description": "Find it.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Where."}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    }
    assert read_tool_line("no tool here", {}) is None


@given(st.text(alphabet=st.sampled_from("{}[]()|:,?\"'ab =1-//\n"), max_size=40))
def test_read_type_returns_json_for_any_text(text: str) -> None:
    dumps(read_type(text))
