"""Tools as typed Python signatures."""

from __future__ import annotations

import enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from sigwire import Tool
from sigwire.core.json import JsonValue
from sigwire.modules.code.tool_signatures import python_type, tool_signature


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    name: str
    tags: list[str] = []


def paint(item: Item, color: Color, *, coats: Literal[1, 2] = 1, note: str | None = None) -> dict[str, float]:
    """Paint an item."""
    raise NotImplementedError


def anything(**options: int) -> None:
    """Take any options."""


class Store:
    def find(self, name: str, most: int = 3) -> list[Item]:
        """Find items."""
        raise NotImplementedError


SIGNATURES = [
    (
        paint,
        "def f(item: {'name': str, 'tags': list[str]}, color: Literal['red', 'blue'], coats: Literal[1, 2] = 1, "
        "note: str | None = None) -> dict[str, float]\n    Paint an item.",
    ),
    (anything, "def f(**more) -> None\n    Take any options."),
    (Store().find, "def f(name: str, most: int = 3) -> list[{'name': str, 'tags': list[str]}]\n    Find items."),
]


@pytest.mark.parametrize(("function", "text"), SIGNATURES)
def test_function_is_shown_with_its_types(function: Any, text: str) -> None:
    assert tool_signature("f", Tool(function)) == text


def test_tool_of_a_server_is_shown_with_its_output_schema() -> None:
    metadata: Any = {"outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    tool = Tool.from_schema("f", "Count.", handler=lambda: None, metadata=metadata)
    assert tool_signature("f", tool) == "def f() -> {'n': int}\n    Count."


TYPES: list[tuple[JsonValue, str]] = [
    ({}, "Any"),
    (True, "Any"),
    ({"type": ["integer", "null"]}, "int | None"),
    ({"const": 3}, "Literal[3]"),
    ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}, "str | list[float]"),
    ({"type": "array"}, "list[Any]"),
    ({"type": "object"}, "dict"),
    ({"type": "object", "additionalProperties": {"type": "boolean"}}, "dict[str, bool]"),
    ({"$ref": "#/$defs/Node"}, "Any"),
]


@pytest.mark.parametrize(("schema", "text"), TYPES)
def test_schema_is_a_type(schema: JsonValue, text: str) -> None:
    assert python_type(schema) == text
