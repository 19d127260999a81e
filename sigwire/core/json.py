"""JSON values, and ``Value``: frozen dataclasses with a lossless JSON form.

The declared type of a field decides how its JSON is decoded, never the data: a user's JSON that looks like a ``Value`` stays
the user's JSON. A field whose value equals its default is omitted, and so is a field without part in comparisons.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Never, Self, TypeAlias

from sigwire.core.narrow import is_array, is_object

__all__ = ["JsonObject", "JsonValue", "Value", "dumps", "is_too_deep", "loads", "loads_lenient", "loads_once"]

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"
JsonObject: TypeAlias = "dict[str, JsonValue]"

dumps: Callable[[object], str] = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Encode as compact JSON text. Non-ASCII characters are kept."""


def loads(text: str | bytes) -> Any:
    """Parse strict JSON. Raises ``ValueError``, also for ``NaN``, ``Infinity``, numbers too great for a float, and values
    that are nested too deeply (``is_too_deep``).

    >>> loads('{"a": [1, 2.0, null]}')
    {'a': [1, 2.0, None]}
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text))
    return _decode(text)


def loads_once(text: str) -> Any:
    """``loads`` that refuses duplicate keys with different values: other parsers may see the other value.

    >>> loads_once('{"path": "a", "path": "b"}')
    Traceback (most recent call last):
    ValueError: duplicate key 'path' with different values
    """
    return _decode_once(text)


def loads_lenient(text: str | bytes) -> Any:
    """``loads`` that reads ``NaN``, ``Infinity`` and numbers too great for a float as ``None``, and values of any depth.

    For replies that are paid and cannot be asked for again. Raises ``ValueError`` for any other text that is not JSON.

    >>> loads_lenient('{"logprob": -Infinity, "token": "a", "top": 1e999}')
    {'logprob': None, 'token': 'a', 'top': None}
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text))
    try:
        return _LENIENT.decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def is_too_deep(value: object) -> bool:
    """Return True if lists and objects are nested more than 200 deep, the limit of pydantic's parser.

    Code that walks such a value recursively would exceed the interpreter's limit.

    >>> is_too_deep([[[]]]), is_too_deep(loads("[" * 200 + "]" * 200))
    (False, False)
    """
    level = [value]
    for _ in range(_MAX_DEPTH + 1):
        parents = (each.values() if is_object(each) else each for each in level if is_object(each) or is_array(each))
        level = [child for children in parents for child in children]
        if not level:
            return False
    return True


_MAX_DEPTH = 200


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _read_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _refuse_contradiction(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) == len(pairs):
        return whole
    if (key := next((key for key, value in pairs if whole[key] != value), None)) is not None:
        raise ValueError(f"duplicate key {key[:60]!r} with different values")
    return whole


def _decoder(pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Callable[[str], Any]:
    """Return a decoder of texts. Made once: ``json.loads`` with an option makes a decoder for every call."""
    # ``decode`` searches for white space on both sides first, which costs more than most texts. It is called only if the
    # text does not start with its value, and for the message of an error.
    decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_read_float, object_pairs_hook=pairs_hook)
    raw_decode, decode = decoder.raw_decode, decoder.decode

    def read(text: str) -> Any:
        try:
            try:
                value, end = raw_decode(text)
            except ValueError:
                value, end = None, 0
            if not end or (end < len(text) and text[end:].strip(_WHITE_SPACE)):
                value = decode(text)
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        if len(text) > _MAX_DEPTH and text.count("[") + text.count("{") > _MAX_DEPTH and is_too_deep(value):
            raise ValueError(_TOO_DEEP)
        return value

    return read


_WHITE_SPACE = " \t\n\r"
_TOO_DEEP = "JSON is nested too deeply"
_LENIENT = json.JSONDecoder(
    parse_constant=lambda name: None,
    parse_float=lambda text: number if math.isfinite(number := float(text)) else None,
)
_decode = _decoder()
_decode_once = _decoder(_refuse_contradiction)


class Value:
    """Base of the canonical values: ``from_json(value.to_json())`` equals the value.

    A subclass is a frozen dataclass. ``kind`` is encoded as ``"type"`` if a field may hold several classes.

    >>> from sigwire.core.response import Usage
    >>> Usage(input_tokens=3).to_json()
    {'input_tokens': 3}
    >>> Usage.from_json({'input_tokens': 3}) == Usage(input_tokens=3)
    True
    """

    __slots__ = ()
    kind: ClassVar[str] = ""

    def to_json(self) -> JsonObject:
        """Return the value as JSON objects, lists and scalars."""
        data: JsonObject = {"type": self.kind} if self.kind else {}
        for name, default, write, _ in _plan(type(self)):
            value = getattr(self, name)
            if default is _REQUIRED or (value is not default and value != default) or type(value) is not type(default):
                data[name] = write(value)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """Decode the result of ``to_json``. Raises ``ValueError`` with the name of a missing or unknown field."""
        readers, required = _readers(cls)
        values: dict[str, object] = {}
        for name, value in data.items():
            if (read := readers.get(name)) is not None:
                values[name] = read(value)
            elif name != "type":
                raise ValueError(f"{cls.__name__} has no field {name!r}; the data is of another class or version.")
        if missing := required - values.keys():
            raise ValueError(f"{cls.__name__} needs a field {min(missing)!r}; the data has {sorted(data)}.")
        return cls(**values)


_REQUIRED = object()
_Coder: TypeAlias = Callable[[Any], Any]
_FieldPlan: TypeAlias = tuple[str, object, _Coder, _Coder]


def _make_plan(cls: Any) -> tuple[_FieldPlan, ...]:
    # Recursive aliases cannot be resolved; ``object`` makes their JSON pass unchanged.
    hints = typing.get_type_hints(cls, localns={"JsonValue": object, "JsonObject": object})
    return tuple(
        (field.name, _default(field), *_coders(hints[field.name])) for field in dataclasses.fields(cls) if field.compare
    )


_plan: Callable[[Any], tuple[_FieldPlan, ...]] = functools.cache(_make_plan)


def _make_readers(cls: Any) -> tuple[dict[str, _Coder], frozenset[str]]:
    """Return the functions that decode the fields by name, and the names of those without a default."""
    plan = _plan(cls)
    return {name: read for name, _, _, read in plan}, frozenset(row[0] for row in plan if row[1] is _REQUIRED)


_readers: Callable[[Any], tuple[dict[str, _Coder], frozenset[str]]] = functools.cache(_make_readers)


def _default(field: dataclasses.Field[object]) -> object:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return _REQUIRED


def _coders(hint: object) -> tuple[_Coder, _Coder]:
    """Return the functions that encode and decode a field of this type. A field without a ``Value`` passes unchanged."""
    members = _value_classes(hint)
    if not members:
        return (list, tuple) if typing.get_origin(hint) is tuple else (_as_is, _as_is)
    read = _reader(members)
    if any(typing.get_origin(member) is tuple for member in (hint, *typing.get_args(hint))):  # or None
        return _encode_values, lambda items: items if items is None else tuple(map(read, items))
    return _encode_value, lambda item: read(item) if isinstance(item, Mapping) else item


def _encode_value(value: object) -> object:
    return value.to_json() if isinstance(value, Value) else value


def _encode_values(values: tuple[Value, ...] | None) -> list[JsonObject] | None:
    return None if values is None else [value.to_json() for value in values]


def _reader(members: tuple[type[Value], ...]) -> _Coder:
    if len(members) == 1:
        return members[0].from_json
    by_kind = {member.kind: member for member in members}

    def read(item: Any) -> Value:
        try:
            member = by_kind[item["type"]]
        except (KeyError, TypeError):
            raise ValueError(f"Expected an object with a type out of {sorted(by_kind)}, got {item!r:.80}.") from None
        return member.from_json(item)

    return read


def _value_classes(hint: object) -> tuple[type[Value], ...]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType, tuple):
        return tuple(member for arg in typing.get_args(hint) for member in _value_classes(arg))
    return (hint,) if isinstance(hint, type) and issubclass(hint, Value) else ()


def _as_is(value: object) -> object:
    return value
