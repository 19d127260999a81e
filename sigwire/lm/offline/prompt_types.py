"""Prompt types: types in a prompt's notation to JSON Schema. Pure.

Reads ``string[]``, ``{ name: string, age?: int }``, ``"a" | "b"`` and JSON Schema itself. An unknown type is ``{}`` (any
value); remarks such as ``(>= 0)`` or ``// note`` are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import chain
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_mapping

__all__ = ["read_tool_line", "read_type"]

_TOKEN = re.compile(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_][\w.-]*|-?\d+(?:\.\d+)?|\S")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NAMED: Mapping[str, JsonObject] = {
    **{kind: {"type": kind} for kind in ("string", "integer", "number", "boolean", "null", "object", "array")},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "time": {"type": "string", "format": "time"},
    "true": {"const": True},
    "false": {"const": False},
}
_KEYWORDS = {"type", "properties", "enum", "anyOf", "$ref", "items", "const"}


def read_type(text: str) -> JsonObject:
    """Return the JSON Schema of a type in text.

    >>> read_type('{ name: string, tags: string[], kind?: "a" | "b" }')["required"]
    ['name', 'tags']
    """
    if text.lstrip().startswith("{"):
        try:
            value, _ = json.JSONDecoder().raw_decode(text.lstrip())
        except ValueError:
            value = None
        if is_mapping(value) and value.keys() & _KEYWORDS:
            return cast(JsonObject, value)
    return _TypeParser([token for token in _TOKEN.findall(text) if not token.startswith("//")]).union()


class _TypeParser:
    """Recursive descent over the tokens. Each step consumes a token, so the parser ends."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _accept(self, *expected: str) -> bool:
        if tuple(self._tokens[self._at : self._at + len(expected)]) != expected:
            return False
        self._at += len(expected)
        return True

    def union(self) -> JsonObject:
        variants = [self._postfix()]
        while self._accept("|"):
            variants.append(self._postfix())
        return _union(variants)

    def _postfix(self) -> JsonObject:
        schema: JsonObject = self._primary()
        while True:
            if self._accept("[", "]"):
                schema = {"type": "array", "items": schema}
            elif self._accept("("):
                self._skip_remark()
            else:
                return schema

    def _primary(self) -> JsonObject:
        token = self._next()
        if token == "{":
            return self._object()
        if token == "(":
            schema = self.union()
            self._accept(")")
            return schema
        if token[:1] in ("'", '"'):
            return {"enum": [token[1:-1]]}
        if _NUMBER.fullmatch(token):
            return {"enum": [json.loads(token)]}
        return dict(_NAMED.get(token, {}))

    def _object(self) -> JsonObject:
        properties: JsonObject = {}
        required: list[JsonValue] = []
        while self._peek() not in ("}", ""):
            name = self._next().strip("\"'")
            is_optional = self._accept("?")
            if self._accept(":"):
                properties[name] = self.union()
                if not self._skip_default() and not is_optional:
                    required.append(name)
                self._at += self._peek() in (",", ";")
        self._accept("}")
        return {"type": "object", "properties": properties, "required": required}

    def _skip_default(self) -> bool:
        start = self._at
        while self._peek() == "=" or (self._at > start and self._peek() not in (",", "}", ";", "")):
            self._at += 1
        return self._at > start

    def _skip_remark(self) -> None:
        depth = 1
        while depth and (token := self._next()):
            depth += (token == "(") - (token == ")")


def _union(variants: list[JsonObject]) -> JsonObject:
    real = [variant for variant in variants if variant.get("type") != "null"]
    if not real:
        return {"type": "null"}
    schema: JsonObject = {"anyOf": list(real)} if len(real) > 1 else real[0]
    if all("enum" in variant for variant in real):
        schema = {"enum": list(chain.from_iterable(cast("list[JsonValue]", variant["enum"]) for variant in real))}
    if len(real) == len(variants):
        return schema
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else {"anyOf": [schema, {"type": "null"}]}


_LINE = re.compile(r"^(?P<name>[\w.-]+)\((?P<arguments>.*)\)(?::\s*(?P<description>.*))?$")


def read_tool_line(line: str, notes: Mapping[str, str]) -> JsonObject | None:
    """Return the tool of a line ``name(a: integer, b?: string): Description.``; ``notes`` describe its parameters."""
    match = _LINE.match(line)
    if match is None:
        return None
    parameters = read_type("{ " + match["arguments"] + " }")
    properties = cast("dict[str, JsonObject]", parameters.get("properties") or {})
    for name in properties.keys() & notes.keys():
        properties[name] = {**properties[name], "description": notes[name]}
    return {"name": match["name"], "description": match["description"] or "", "parameters": parameters}
