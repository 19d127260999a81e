"""Nested tags to plain JSON values: ``<person><name>Ada</name></person>`` gives ``{"person": {"name": "Ada"}}``.

For answers only: no attributes, no entities but the five of XML, no documents, no expansion. Tags that do not nest are text.
Repeated tags, and ``<item>``, make a list.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from sigwire.core.json import JsonValue

__all__ = ["read_tags"]

_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)\s*>")
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
        closing, name = tag[1], tag[2]
        if not closing and len(outer) < _MAX_DEPTH:
            outer.append((name, children, tag.end()))
            children = []
        elif closing and outer and outer[-1][0] == name:
            _, siblings, start = outer.pop()
            siblings.append((name, _collect(children) if children else _unescape(text[start : tag.start()])))
            children = siblings
    # A tag that is not closed is text: only the tags in front of it nest.
    siblings = outer[0][1] if outer else children
    return _collect(siblings) if siblings else _unescape(text)


def _unescape(text: str) -> str:
    text = text.strip()
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def _collect(children: list[_Child]) -> JsonValue:
    if all(name == "item" for name, _ in children):
        return [value for _, value in children]
    by_name: dict[str, list[JsonValue]] = {}
    for name, value in children:
        by_name.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in by_name.items()}
