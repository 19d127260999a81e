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
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from reprlib import repr as short
from typing import Any, ClassVar, Never, Self, TypeAlias, cast

from sigwire.core.narrow import is_array, is_items, is_object
from sigwire.errors import SigwireError, StateError
from sigwire.show.card import BoundedRepr

__all__ = [
    "JsonObject", "JsonValue", "ShapeError", "Value", "decode_fields", "decoding", "dumps", "is_too_deep", "loads",
    "loads_lenient", "loads_once",
]  # fmt: skip

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


class Value(BoundedRepr):
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
        """Decode the result of ``to_json``. Raises ``StateError``, a ``ValueError``, with the name of a field that is missing,
        unknown or of another type than it is declared with.
        """
        values = decode_fields(cls, data)
        with decoding(cls.__name__, data):
            return cls(**values)


def decode_fields(cls: type, data: Mapping[str, object], *, ignores_unknown: bool = False) -> dict[str, Any]:
    """Return the fields of a dataclass by the types that it declares. Raises ``StateError`` as ``Value.from_json`` does.

    Fields without part in comparisons are unknown.
    """
    name: object = ""
    values: dict[str, Any] = {}
    try:
        readers, required = _readers(cls)
        for name, value in data.items():
            if (read := readers.get(name)) is not None:
                values[name] = read(value)
            elif name != "type" and not ignores_unknown:
                raise _unfit(f"{cls.__name__} has no field {short(name)}", data)
    except SigwireError:
        raise
    except _SHAPE_ERRORS as error:
        place = f" with the field {short(name)}" if name else ""
        raise _unfit(f"This is no JSON of {cls.__name__}{place}: {_why(error)}", data) from error
    if missing := required - values.keys():
        raise _unfit(f"{cls.__name__} needs a field {min(missing)!r}", data)
    return values


class ShapeError(StateError):
    """JSON has another shape than the class that is decoded from it."""


_SHAPE_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError)
"""The errors of code that reads data of another shape."""


@contextmanager
def decoding(kind: str, data: object = None) -> Generator[None]:
    """Inside the block, data of another shape is a ``StateError``. ``kind``: the class that is decoded from ``data``.

    >>> with decoding("Score", {"value": "x"}):
    ...     float("x")
    Traceback (most recent call last):
    sigwire.core.json.ShapeError: This is no JSON of Score: could not convert string to float: 'x' (decoding {'value': 'x'}). \
Pass what to_json of this version returned.
    """
    try:
        yield
    except SigwireError:
        raise
    except _SHAPE_ERRORS as error:
        raise _unfit(f"This is no JSON of {kind}: {_why(error)}", data) from error


def _why(error: Exception) -> str:
    return f"it needs {short(error.args[0])}" if isinstance(error, KeyError) and error.args else f"{error!s:.200}"


def _unfit(what: str, data: object) -> ShapeError:
    return ShapeError(f"{what} (decoding {short(data)}). Pass what to_json of this version returned.")


_REQUIRED = object()
_Coder: TypeAlias = Callable[[Any], Any]
_FieldPlan: TypeAlias = tuple[str, object, _Coder, _Coder]


def _make_plan(cls: Any) -> tuple[_FieldPlan, ...]:
    # Recursive aliases cannot be resolved; ``object`` makes their JSON pass unchanged.
    hints = typing.get_type_hints(cls, localns={"JsonValue": object, "JsonObject": Mapping})
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
    """Return the functions that encode and decode a field of this type."""
    if not _value_classes(hint):
        return list if typing.get_origin(hint) is tuple else _as_is, _reader(hint)
    is_tuple = any(typing.get_origin(member) is tuple for member in (hint, *typing.get_args(hint)))  # or None
    return _encode_values if is_tuple else _encode_value, _reader(hint)


def _encode_value(value: Any) -> object:
    return value.to_json() if hasattr(value, "to_json") else value


def _encode_values(values: tuple[Value, ...] | None) -> list[JsonObject] | None:
    return None if values is None else [value.to_json() for value in values]


# A number may have lost or got its decimal point on its way.
_ACCEPTED: Mapping[object, tuple[type, ...]] = {
    str: (str,), bool: (bool,), int: (int, float), float: (int, float), type(None): (type(None),),
}  # fmt: skip
_SHOWN: Mapping[type, str] = {str: "a text", int: "a number", float: "a number", type(None): "null"}


def _reader(hint: Any) -> _Coder:
    """Return a function that decodes a value of this type, and raises ``TypeError`` for another. An open type takes all."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    kinds, choices, scalars = list[Any](), set[object](), set[type]()
    read_list: _Coder | None = None
    read_object: _Coder | None = None
    for member in typing.get_args(hint) if is_union else (hint,):
        origin = typing.get_origin(member) or member
        if origin is typing.Literal:
            choices |= set(typing.get_args(member))
        elif member in _ACCEPTED:
            scalars |= {*_ACCEPTED[member]}
        elif origin is tuple:
            read_list = _list_reader(_reader(typing.get_args(member)[0]))
        elif origin in (Mapping, dict):
            read_object = _object_reader(_reader((*typing.get_args(member), object, object)[1]))
        elif _is_coded(origin):
            kinds.append(member)
        else:
            return _as_is
    if kinds:
        read_object = kinds[0].from_json if len(kinds) == 1 else _kind_reader(kinds)
    known = frozenset(scalars)
    if known and not (choices or read_list or read_object):
        return _scalar_reader(known)

    def read(value: Any) -> Any:
        if type(value) in known or (choices and isinstance(value, str | int) and value in choices):
            return value
        if read_object is not None and (isinstance(value, Mapping) or not (known or choices or read_list)):
            return read_object(value)
        if read_list is not None and is_items(value):
            return read_list(value)
        wanted = sorted({*map(repr, choices), *(_SHOWN.get(kind, kind.__name__) for kind in known)})
        wanted += ["a list"] * (read_list is not None) + ["an object"] * (read_object is not None)
        raise TypeError(f"{' or '.join(wanted)} is needed, not {short(value)}")

    return read


def _scalar_reader(known: frozenset[type]) -> _Coder:
    is_number = int in known

    def read(value: Any) -> Any:
        if type(value) in known or (
            isinstance(value, str if str in known else ()) or (is_number and _is_number(value))
        ):
            return value
        wanted = sorted({_SHOWN.get(kind, kind.__name__) for kind in known})
        raise TypeError(f"{' or '.join(wanted)} is needed, not {short(value)}")

    return read


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_reader(read: _Coder) -> _Coder:
    return tuple if read is _as_is else lambda items: tuple(map(read, items))


def _object_reader(read: _Coder) -> _Coder:
    def read_all(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError(f"an object is needed, not {short(value)}")
        given = cast("Mapping[str, Any]", value)
        return given if read is _as_is else {name: read(item) for name, item in given.items()}

    return read_all


def _kind_reader(members: list[Any]) -> _Coder:
    by_kind = {member.kind: member for member in members}

    def read(item: Any) -> object:
        try:
            member = by_kind[item["type"]]
        except (LookupError, TypeError):
            raise ValueError(f"an object with a type out of {sorted(by_kind)} is needed, not {short(item)}") from None
        return member.from_json(item)

    return read


def _is_coded(kind: object) -> bool:
    """Return True for a ``Value``, and for another dataclass with a JSON form of its own."""
    if not isinstance(kind, type):
        return False
    cls = cast("type[object]", kind)
    return issubclass(cls, Value) or (dataclasses.is_dataclass(cls) and hasattr(cls, "from_json"))


def _value_classes(hint: object) -> tuple[Any, ...]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType, tuple):
        return tuple(member for arg in typing.get_args(hint) for member in _value_classes(arg))
    return (hint,) if _is_coded(hint) else ()


def _as_is(value: object) -> object:
    return value
