"""Fitting: change a JSON value, along a type's JSON Schema, from what models write to what the type declares.

``fit(shape, value)`` applies a closed table: "5" becomes 5, "yes" becomes true, an enum's name becomes its value. Every change
is listed with its place. A value that the table does not know stays unchanged: the validator decides. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from sigwire.adapters.values.json_text import read_json
from sigwire.adapters.values.type_shape import Shape, enum_values
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_items, is_object
from sigwire.errors import JsonReadError

__all__ = ["FittedValue", "fit"]


@dataclass
class FittedValue:
    """A JSON value after fitting, the changes, and whether a part of it does not fit."""

    value: JsonValue
    changes: list[str] = field(default_factory=list[str])
    misfit: bool = False


def fit(shape: Shape, value: JsonValue) -> FittedValue:
    """Return the value with every change that the table knows.

    >>> fitted = fit(Shape({"type": "object", "properties": {"age": {"type": "integer"}}}), {"age": "5"})
    >>> fitted.value, fitted.changes
    ({'age': 5}, ['age: the text "5" was read as a number'])
    """
    fitter = _Fitter(shape)
    fitted = fitter.fit(shape.schema, value, "")
    return FittedValue(fitted, fitter.changes, fitter.misfit)


_MAX_STEPS = 200_000  # unions of unions try their members in turn
_FitType: TypeAlias = "Callable[[Any, JsonObject, JsonValue, str], JsonValue]"


class _Fitter:
    def __init__(self, shape: Shape, steps: int = 0) -> None:
        self.shape = shape
        self.changes: list[str] = []
        self.misfit = False
        self.steps = steps

    def fit(self, schema: object, value: JsonValue, path: str) -> JsonValue:
        schema = self.shape.resolve(schema)
        self.steps += 1
        if self.steps > _MAX_STEPS:
            return self._refuse(value)
        members = schema.get("anyOf") or schema.get("oneOf")
        if members:
            return self._union(members, value, path)
        if "enum" in schema or "const" in schema:
            return self._enum(schema, value, path)
        fit_type = self._BY_TYPE.get(schema.get("type", ""))
        return fit_type(self, schema, value, path) if fit_type else value

    def _add_change(self, path: str, what: str) -> None:
        self.changes.append(f"{path}: {what}" if path else what)

    def _refuse(self, value: JsonValue) -> JsonValue:
        self.misfit = True
        return value

    def _integer(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        if type(value) is int:
            return value
        if isinstance(value, float) and value.is_integer():
            self._add_change(path, f"{value!r} was read as a whole number")
            return int(value)
        match = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
        return self._as_number(value, int(match[1].replace(",", "")) if match else None, path)

    def _number(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        if type(value) in (int, float):
            return value
        number = float(value) if isinstance(value, str) and _FLOAT.fullmatch(value.strip()) else None
        return self._as_number(value, number, path)

    def _as_number(self, value: JsonValue, number: int | float | None, path: str) -> JsonValue:
        if number is None:
            return self._refuse(value)
        self._add_change(path, f'the text "{str(value)[:40]}" was read as a number')
        return number

    def _boolean(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        if isinstance(value, bool):
            return value
        word = value.strip().strip(".").lower() if isinstance(value, str) else value
        if not isinstance(word, (str, int)) or word not in _BOOLEANS:
            return self._refuse(value)
        self._add_change(path, f"{_quote(value)} was read as {str(_BOOLEANS[word]).lower()}")
        return _BOOLEANS[word]

    def _null(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        if value is None:
            return None
        if not isinstance(value, str) or value.strip().lower() not in ("null", "none"):
            return self._refuse(value)
        self._add_change(path, f"{_quote(value)} was read as null")
        return None

    def _string(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        if isinstance(value, str):
            return value
        if schema.get("format") == "decimal" and type(value) in (int, float):
            return value
        if type(value) is not int or "format" in schema:  # a float's text may have been another: 1.10 is not "1.1"
            return self._refuse(value)
        self._add_change(path, f"the number {str(value)[:40]} was read as text")
        return str(value)

    def _array(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        value = self._decode_string(value, list, path)
        if not is_items(value):
            return self._refuse(value)
        first: Any = schema.get("prefixItems") or []
        rest = schema.get("items", {})
        return [
            self.fit(first[at] if at < len(first) else rest, item, f"{path}[{at}]") for at, item in enumerate(value)
        ]

    def _object(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        value = self._decode_string(value, dict, path)
        if not is_object(value):
            return self._refuse(value)
        known: Any = schema.get("properties") or {}
        rest = schema.get("additionalProperties", {})
        return {
            key: self.fit(known.get(key, rest), item, f"{path}.{key}" if path else key) for key, item in value.items()
        }

    def _decode_string(self, value: JsonValue, wanted: type[object], path: str) -> JsonValue:
        """Return the JSON inside a string if it is of the wanted type, else the value."""
        if not isinstance(value, str):
            return value
        try:
            inner, repairs = read_json(value)
        except JsonReadError:
            return value
        if not isinstance(inner, wanted):
            return value
        self._add_change(path, "JSON in a string was decoded")
        for repair in repairs:
            self._add_change(path, repair.what)
        return inner

    _BY_TYPE: ClassVar[Mapping[Any, _FitType]] = {
        "integer": _integer,
        "number": _number,
        "boolean": _boolean,
        "null": _null,
        "string": _string,
        "array": _array,
        "object": _object,
    }

    def _enum(self, schema: JsonObject, value: JsonValue, path: str) -> JsonValue:
        choices = enum_values(schema)
        if any(type(choice) is type(value) and choice == value for choice in choices):
            return value
        names: Any = schema.get("names") or []
        found = _matches(value, choices, [str(choice) for choice in choices]) or _matches(value, choices, names)
        if len(found) != 1:
            return self._refuse(value)
        self._add_change(path, f"{_quote(value)} was read as {_quote(found[0])}")
        return found[0]

    def _union(self, members: Any, value: JsonValue, path: str) -> JsonValue:
        trials = [self._trial(member, value, path) for member in members]
        fitting = [trial for trial in trials if not trial[1].misfit]
        made, fitter = next((trial for trial in fitting if not trial[1].changes), (None, None))
        if fitter is not None:
            return made
        if not fitting or any(repr(other) != repr(fitting[0][0]) for other, _ in fitting if other != fitting[0][0]):
            return self._refuse(value)
        self.changes += fitting[0][1].changes
        return fitting[0][0]

    def _trial(self, member: object, value: JsonValue, path: str) -> tuple[JsonValue, _Fitter]:
        fitter = _Fitter(self.shape, self.steps)
        made = fitter.fit(member, value, path)
        self.steps = fitter.steps
        return made, fitter


_BOOLEANS: Mapping[str | int, bool] = {"true": True, "yes": True, 1: True, "false": False, "no": False, 0: False}
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,4000}))(?:\.0+)?", re.ASCII)


def _matches(value: object, choices: list[JsonValue], spellings: list[str]) -> list[JsonValue]:
    """Return the choices with the value's spelling: exactly, else without quotes and case."""
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        return []
    text = str(value)
    exact = [choice for choice, spelling in zip(choices, spellings, strict=False) if spelling == text]
    folded = text.strip().strip("'\"`*").strip().lower()
    return exact or [choice for choice, spelling in zip(choices, spellings, strict=False) if spelling.lower() == folded]


def _quote(value: object) -> str:
    return f'"{value[:40]}"' if isinstance(value, str) else repr(value)[:40]
