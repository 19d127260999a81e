"""Nested tags to plain JSON values: ``<person><name>Ada</name></person>`` gives ``{"person": {"name": "Ada"}}``.

For answers only: no attributes, no entities but the five of XML, no documents, no expansion. Tags that do not nest are text.
Repeated tags, and ``<item>``, make a list. ``with_lists`` makes lists and empty objects of single tags, by their types.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from sigwire.adapters.values.type_shape import Shape
from sigwire.core.json import JsonValue
from sigwire.core.narrow import is_items, is_object

__all__ = ["read_tags", "with_lists"]

_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)\s*(/?)>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
_MAX_DEPTH = 64
_Child: TypeAlias = tuple[str, JsonValue]


def read_tags(text: str) -> JsonValue:
    """Return the value of a text with nested tags; a text without tags is a string.

    >>> read_tags("<name>Ada</name><tags><item>a</item><item>b</item></tags>")
    {'name': 'Ada', 'tags': ['a', 'b']}
    """
    children: list[_Child] = []
    outer: list[tuple[str, list[_Child], int]] = []
    for tag in _TAG.finditer(text):
        closing, name, is_empty = tag.groups()
        if is_empty:
            children.append((name, ""))
        elif not closing and len(outer) < _MAX_DEPTH:
            outer.append((name, children, tag.end()))
            children = []
        elif closing and outer and outer[-1][0] == name:
            _, siblings, start = outer.pop()
            siblings.append((name, _collect(children) if children else _unescape(text[start : tag.start()])))
            children = siblings
    siblings = outer[0][1] if outer else children  # a tag that is not closed is text: the tags in front of it nest
    return _collect(siblings) if siblings else _unescape(text)


def with_lists(shape: Shape, value: JsonValue) -> JsonValue:
    """Return the value of nested tags with a list for each single tag that the type declares as a list.

    >>> with_lists(Shape({"type": "object", "properties": {"tags": {"type": "array"}}}), {"tags": "a"})
    {'tags': ['a']}
    """
    return _with_lists(shape, shape.schema, value, 0)


def _with_lists(shape: Shape, schema: object, value: JsonValue, depth: int) -> JsonValue:
    node = _only_member(shape, schema, value)
    if depth > _MAX_DEPTH:  # lists of themselves
        return value
    is_json = isinstance(value, str) and value.lstrip().startswith("[")
    if node.get("type") == "array" and not is_json:
        items = node.get("items")
        return [_with_lists(shape, items, item, depth + 1) for item in _items_of(value, shape.resolve(items))]
    if not is_object(value):
        return {} if value == "" and node.get("type") == "object" else value
    known, rest = node.get("properties", {}), node.get("additionalProperties")
    return {name: _with_lists(shape, known.get(name, rest), inner, depth + 1) for name, inner in value.items()}


def _only_member(shape: Shape, schema: object, value: JsonValue) -> dict[str, Any]:
    """Return a schema, or the only member of a union, besides ``null``, that has the names of the value."""
    node = shape.resolve(schema)
    members = [shape.resolve(member) for member in node.get("anyOf") or ()]
    names = set(value if is_object(value) else ())
    others = [each for each in members if each.get("type") != "null" and names <= {*each.get("properties", names)}]
    return others[0] if len(others) == 1 else node


def _items_of(value: JsonValue, items: dict[str, Any]) -> list[Any]:
    """Return the items of a list; ``<people><person>...`` has them in tags of another name than those of an item."""
    if is_object(value) and len(value) == 1 and not value.keys() & (items.get("properties") or {}).keys():
        value = next(iter(value.values()))
    if is_items(value):
        return list(value)
    return [] if value == "" else [value]


def _unescape(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text.strip()


def _collect(children: list[_Child]) -> JsonValue:
    if all(name == "item" for name, _ in children):
        return [value for _, value in children]
    by_name: dict[str, list[JsonValue]] = {}
    for name, value in children:
        by_name.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in by_name.items()}
