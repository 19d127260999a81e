"""Types as prompts write them -> JSON Schema: ``string[]``, ``{ name: string, age?: int }``, ``"a" | "b"``,
``list[int]``. Pure.

A tolerant reader: what it does not know is ``{}`` (anything), and remarks such as ``(>= 0)`` or ``// why`` are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from sigwire.core.json import JsonObject
from sigwire.lm.offline.schemas import is_list, is_mapping

__all__ = ["read_tool_line", "read_type"]

_TOKEN = re.compile(r"//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_][\w.-]*|-?\d+(?:\.\d+)?|\S")
_KINDS = {
    "string": "string str text",
    "integer": "int integer",
    "number": "float number decimal",
    "boolean": "bool boolean",
    "null": "null None",
    "object": "object dict map record",
    "array": "list array tuple set",
}
_NAMED: Mapping[str, JsonObject] = {
    **{name: {"type": kind} for kind, names in _KINDS.items() for name in names.split()},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "time": {"type": "string", "format": "time"},
    "true": {"const": True},
    "false": {"const": False},
}


def read_type(text: str) -> JsonObject:
    """The JSON Schema of a type's text.

    >>> read_type('{ name: string, tags: string[], kind?: "a" | "b" }')["required"]
    ['name', 'tags']
    >>> read_type("list[int] | null")
    {'type': ['array', 'null'], 'items': {'type': 'integer'}}
    """
    if text.lstrip().startswith("{") and (schema := _as_schema(text)) is not None:
        return schema
    return _Reader([token for token in _TOKEN.findall(text) if not token.startswith("//")]).union()


def _as_schema(text: str) -> JsonObject | None:
    """JSON Schema given as such."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        return None
    keywords = {"type", "properties", "enum", "anyOf", "$ref", "items", "const"}
    return cast(JsonObject, value) if is_mapping(value) and value.keys() & keywords else None


class _Reader:
    """Recursive descent over the tokens; every step consumes one, so it ends."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, token: str) -> bool:
        if self._peek() == token:
            self._at += 1
            return True
        return False

    def union(self) -> JsonObject:
        variants = [self._postfix()]
        while self._take("|"):
            variants.append(self._postfix())
        return _union(variants)

    def _postfix(self) -> JsonObject:
        schema: JsonObject = self._primary()
        while True:
            if self._peek() == "[" and self._tokens[self._at + 1 : self._at + 2] == ["]"]:
                self._at += 2
                schema = {"type": "array", "items": schema}
            elif self._take("("):
                self._skip(")")
            else:
                return schema

    def _primary(self) -> JsonObject:
        token = self._next()
        if token == "{":
            return self._object()
        if token == "(":
            schema = self.union()
            self._take(")")
            return schema
        if token[:1] in ("'", '"'):
            return {"enum": [token[1:-1]]}
        if re.fullmatch(r"-?\d+(?:\.\d+)?", token):
            return {"enum": [json.loads(token)]}
        if self._peek() == "[" and self._tokens[self._at + 1 : self._at + 2] != ["]"]:
            self._at += 1
            return self._generic(token)
        return dict(_NAMED.get(token, {}))

    def _generic(self, name: str) -> JsonObject:
        arguments: list[JsonObject] = []
        while self._peek() not in ("]", ""):
            arguments.append(self.union())
            if not self._take(","):
                break
        self._skip("]")
        make: Callable[[list[JsonObject]], JsonObject] = _GENERICS.get(name.rpartition(".")[2].lower(), lambda a: {})
        return make(arguments)

    def _object(self) -> JsonObject:
        properties: JsonObject = {}
        required: list[Any] = []
        while self._peek() not in ("}", ""):
            name = self._next().strip("\"'")
            optional = self._take("?")
            if not self._take(":"):
                continue
            properties[name] = self.union()
            if not optional and not (self._peek() == "=" and self._skip_default()):
                required.append(name)
            if not self._take(","):
                self._take(";")
        self._take("}")
        return {"type": "object", "properties": properties, "required": required}

    def _skip_default(self) -> bool:
        while self._peek() not in (",", "}", ";", ""):
            self._at += 1
        return True

    def _skip(self, closer: str) -> None:
        depth = 1
        opener = {")": "(", "]": "["}[closer]
        while depth and self._peek():
            token = self._next()
            depth += (token == opener) - (token == closer)


def _union(variants: list[JsonObject]) -> JsonObject:
    real = [variant for variant in variants if variant.get("type") != "null"]
    if len(real) < len(variants) and real:
        one = _union(real)
        kind = one.get("type")
        return {**one, "type": [kind, "null"]} if isinstance(kind, str) else {"anyOf": [one, {"type": "null"}]}
    if len(real) <= 1:
        return real[0] if real else {"type": "null"}
    enums = [enum for variant in real if is_list(enum := variant.get("enum"))]
    if len(enums) == len(real):
        return {"enum": [member for enum in enums for member in enum]}
    return {"anyOf": list(real)}


_GENERICS: Mapping[str, Callable[[list[JsonObject]], JsonObject]] = {
    **dict.fromkeys(("list", "array", "sequence", "set", "tuple"), lambda a: {"type": "array", "items": a[0] if a else {}}),
    **dict.fromkeys(("dict", "mapping", "map", "record"), lambda a: {"type": "object"}),
    "literal": lambda a: _union(a),
    "optional": lambda a: _union([*a, {"type": "null"}]),
    "union": lambda a: _union(a),
}  # fmt: skip

_LINE = re.compile(r"^(?P<name>[\w.-]+)\((?P<arguments>.*)\)(?::\s*(?P<description>.*))?$")


def read_tool_line(line: str, described: Mapping[str, str]) -> JsonObject | None:
    """A tool written as ``name(a: integer, b?: string): What it does.``, with descriptions of its parameters.

    >>> read_tool_line("add(a: integer, b?: integer): Add.", {})["parameters"]["required"]
    ['a']
    """
    match = _LINE.match(line)
    if match is None:
        return None
    parameters = read_type("{ " + match["arguments"] + " }")
    properties: Any = parameters.get("properties") or {}
    for name, text in described.items():
        if name in properties:
            properties[name] = {**properties[name], "description": text}
    return {"name": match["name"], "description": match["description"] or "", "parameters": parameters}
