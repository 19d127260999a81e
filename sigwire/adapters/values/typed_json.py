"""Typed JSON: reads and writes the JSON of one field's type with pydantic.

Reading tries in order: the exact type; a value fitted to the type's schema; pydantic's conversion; the value one level
inside. Each step but the first is a listed repair, which ``strict`` refuses. Writing gives compact JSON as pydantic serializes,
equal for a value and for its dump. A problem is one line of text for the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from sigwire.adapters.values.fitting import fit
from sigwire.adapters.values.json_text import JsonKind, read_json, unwrap_candidates
from sigwire.adapters.values.type_shape import CompiledType, compile_type
from sigwire.core.json import JsonValue, dumps, loads
from sigwire.core.narrow import is_items, is_object
from sigwire.core.response import Repair
from sigwire.core.set_order import sort_sets
from sigwire.errors import InputError, JsonReadError, ValueReadError
from sigwire.signatures.fields import FieldSpec

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = [
    "AcceptedValue", "ReadValue", "TypedJson", "describe_problem", "has_constants", "shorten_repr", "untyped_json",
    "validate_with",
]  # fmt: skip


class ReadValue(NamedTuple):
    """A value that was read, and the repairs that reading it needed."""

    value: Any
    repairs: tuple[Repair, ...] = ()


class AcceptedValue(NamedTuple):
    """A JSON value that fits the type: the typed value, the changes, and the changed JSON."""

    value: Any
    changes: list[str]
    json: JsonValue


T = TypeVar("T")

_MAX_REPAIRS = 20
_MAX_WORD = 100  # characters of a text that may be a value in an odd spelling


class TypedJson:
    """The type of one field. ``is_unambiguous``: a value that fits exactly needs no further check."""

    __slots__ = ("_options", "_validator", "_writer", "compiled", "field", "is_unambiguous")

    def __init__(self, field: FieldSpec) -> None:
        self.field = field
        self.compiled: CompiledType = compile_type(field)
        self.is_unambiguous = self.compiled.reversed_unions is None and self.compiled.optional_keys is None
        self._options: dict[str, Any] = dict(self.compiled.read_options)
        self._validator = self.compiled.validator
        self._writer = self.compiled.adapter.serializer

    def read_exact(self, text: str) -> Any:
        """Return the value of a JSON text that fits without conversion. Raises pydantic's error."""
        return self._validator.validate_json(text, strict=True, **self._options)

    def read(self, text: str, strict: bool) -> ReadValue:
        """Return the value in a text that is, or holds, JSON. Raises ``ValueReadError``."""
        try:
            if self.compiled.finite or not has_constants(text):
                value = self.read_exact(text)
                return ReadValue(value) if self.is_unambiguous else self._check_exact(value, text, strict)
        except ValueReadError:
            raise
        except ValueError:  # from pydantic, or for a text that is no Unicode
            pass
        try:
            found, repairs = read_json(text, strict, kind=self._kind)
        except JsonReadError as fault:
            return self._read_word(text, fault, strict)
        read = self.load(found, strict)
        return ReadValue(read.value, (*self.repairs([repair.what for repair in repairs]), *read.repairs))

    def _check_exact(self, value: Any, text: str, strict: bool) -> ReadValue:
        if self.compiled.optional_keys is not None:
            return self.load(loads(text), strict)
        return ReadValue(value, self.repairs(self.ambiguity(value, text, strict)))

    def _read_word(self, text: str, fault: JsonReadError, strict: bool) -> ReadValue:
        """Read a text that is no JSON, as a word or a number in a spelling that fitting knows."""
        if strict or fault.code not in ("not_json", "malformed") or len(text) > _MAX_WORD:
            raise fault
        try:
            return self.load(text.strip(), strict)
        except ValueReadError:
            raise fault from None

    @property
    def _kind(self) -> JsonKind | None:
        """The kind of JSON structure to search for in prose; ``None`` if several kinds fit."""
        kinds = self.compiled.shape.kinds & {"object", "array", "any"}
        return cast(JsonKind, next(iter(kinds))) if len(kinds) == 1 and "any" not in kinds else None

    def load(self, value: JsonValue, strict: bool) -> ReadValue:
        """Return the typed value of JSON, fitted or unwrapped if needed. Raises ``ValueReadError``."""
        try:
            accepted = self.accept(value)
        except ValueReadError:
            inner = None if strict else self._read_inner(value)
            if inner is None:
                raise
            return inner
        if strict and accepted.changes:
            raise ValueReadError(f"does not match the type exactly: {'; '.join(accepted.changes[:_MAX_PROBLEMS])}")
        known = self.compiled.optional_keys
        if known is not None and isinstance(value, dict) and value and not value.keys() & known:
            return self._read_unknown_keys(value, accepted, strict)
        return self._read_value(accepted, [], strict)

    def _read_unknown_keys(self, value: dict[str, JsonValue], accepted: AcceptedValue, strict: bool) -> ReadValue:
        """Read an object without known members, which fits a type that requires none: prefer a value inside it."""
        what = f"none of the members {', '.join(map(repr, list(value)[:5]))} is known"
        if strict:
            raise ValueReadError(what)
        return self._read_inner(value) or self._read_value(accepted, [f"{what}; they were left out"], strict)

    def _read_inner(self, value: JsonValue) -> ReadValue | None:
        for inner, what in unwrap_candidates(value):
            try:
                return self._read_value(self.accept(inner), [what], strict=False)
            except ValueReadError:
                continue
        return None

    def _read_value(self, accepted: AcceptedValue, before: list[str], strict: bool) -> ReadValue:
        doubts = self.ambiguity(accepted.value, dumps(accepted.json), strict) if self.compiled.reversed_unions else []
        return ReadValue(accepted.value, self.repairs([*before, *accepted.changes, *doubts]))

    def accept(self, value: JsonValue) -> AcceptedValue:
        """Return the value unchanged, fitted, or converted. Raises ``ValueReadError``."""
        try:
            return AcceptedValue(self._validate(value, exact=True), [], value)
        except ValueError:
            pass
        try:
            fitted = fit(self.compiled.shape, value)
            return self._accept_fitted(fitted.value, fitted.changes, fitted.misfit)
        except RecursionError:
            raise ValueReadError("the JSON is nested too deeply") from None
        except ValueError as fault:
            raise ValueReadError(describe_problem(fault)) from None

    def _accept_fitted(self, value: JsonValue, changes: list[str], misfit: bool) -> AcceptedValue:
        if changes:
            try:
                return AcceptedValue(self._validate(value, exact=True), changes, value)
            except ValueError:
                pass
        if misfit and _NOT_A_NUMBER.search(dumps(value)):
            raise ValueReadError("NaN and infinity are not valid JSON; write a number or null")
        made = self._validate(value, exact=False)
        # Custom "before" validators get Python values, for which strict mode asks too much: then a value of the right JSON
        # types is exact, even if only the lax mode accepts it.
        exact = self.compiled.has_functions and not misfit
        return AcceptedValue(
            made, changes if exact else [*changes, "the value was converted to the declared type"], value
        )

    def _validate(self, value: JsonValue, exact: bool) -> Any:
        text = dumps(value)
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate: valid in a Python string, not in JSON text
            return self._validator.validate_python(value, **self._options)
        return self._validator.validate_json(text, strict=True if exact else None, **self._options)

    def ambiguity(self, made: object, text: str, strict: bool) -> list[str]:
        """Return a change that names the ambiguity if another member of a union fits. With ``strict``, raise instead."""
        if self.compiled.reversed_unions is None:
            return []
        try:
            other = self.compiled.reversed_unions.validate_json(text, strict=True, **self._options)
        except ValueError:
            return []
        if other == made:
            return []
        if type(made) is type(other):
            what, used = "a part of the value fits several types alike", "the one declared first"
        else:
            what, used = f"the value fits {type(made).__name__} and {type(other).__name__} alike", type(made).__name__
        if strict:
            raise ValueReadError(f"{what}; it must fit only one")
        return [f"{what}; {used} was taken"]

    def repairs(self, changes: Sequence[str]) -> tuple[Repair, ...]:
        """Return the changes as repairs of the field, at most the first 20."""
        if len(changes) > _MAX_REPAIRS:
            changes = [*changes[:_MAX_REPAIRS], f"and {len(changes) - _MAX_REPAIRS} more of the kind"]
        return tuple(Repair(self.field.name, what) for what in changes)

    def to_json(self, value: object) -> str:
        """Return compact JSON text of a value, or of its dump. Raises ``InputError`` if JSON cannot express the value."""
        options: dict[str, Any] = {"by_alias": self.compiled.by_alias, "warnings": False, "fallback": str_of}
        try:
            text = self._writer.to_json(value, **options).decode()
        except ValueError:
            text = _write_slowly(partial(self._writer.to_python, value, mode="json", **options), self.field.name)
        if self.compiled.has_sets:
            text = _with_sorted_sets(value, text)
        if self.compiled.has_floats and ("null" in text or has_constants(text)):
            _refuse_nan(value, self.field.name)
        return text

    def dump(self, value: object) -> JsonValue:
        """Return plain JSON of a value."""
        return cast(JsonValue, loads(self.to_json(value)))


def str_of(value: object) -> str:
    """Return the ``str`` of a value that has no JSON. Raises ``ValueError`` for a text with a memory address, which differs in
    every run.

    >>> str_of(complex(1, 2))
    '(1+2j)'
    """
    text = str(value)
    if _ADDRESS.search(text):
        raise ValueError(f"the type {type(value).__name__} has no JSON form, and no text but its place in memory")
    return text


_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]{4,}")


def _with_sorted_sets(value: object, text: str) -> str:
    """Return JSON text with sorted sets, whose order differs between processes."""
    if "[" not in text or has_constants(text):
        return text
    written: JsonValue = loads(text)
    ordered = sort_sets(value, written)
    return text if ordered == written else _escape_surrogates(dumps(ordered))


def has_constants(text: str) -> bool:
    """Return True if the text may hold ``NaN`` or ``Infinity``, which pydantic accepts."""
    return "NaN" in text or "Infinity" in text


_NOT_A_NUMBER = re.compile(r'"\s*[+-]?(?:nan|inf(?:inity)?)\s*"', re.IGNORECASE)
_LONE = re.compile("[\ud800-\udfff]")


def _escape_surrogates(text: str) -> str:
    return _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _write_slowly(to_plain: Callable[[], object], field: str | None) -> str:
    """Return JSON text of values with lone surrogates, which only an escape can write. Raises ``InputError``."""
    try:
        return _escape_surrogates(dumps(to_plain()))
    except (ValueError, TypeError, RecursionError) as fault:
        where = f"The field {field!r} holds" if field else "A value holds"
        raise InputError(f"{where} what JSON cannot express: {fault}. Give it as plain data, or as text.") from fault


def _refuse_nan(value: object, field: str | None) -> None:
    from pydantic_core import to_jsonable_python

    pending: list[object] = [to_jsonable_python(value, fallback=str_of, inf_nan_mode="constants", bytes_mode="base64")]
    while pending:
        current = pending.pop()
        if isinstance(current, float) and not math.isfinite(current):
            where = f"The field {field!r} holds" if field else "A value holds"
            raise InputError(f"{where} {current!r}, which JSON cannot express. Use None, or a number.")
        if is_object(current):
            pending += current.values()
        elif is_items(current):
            pending += current


def untyped_json(value: object, field: str | None = None) -> str:
    """Return JSON of a value without a declared type; a value that has no JSON is written as its ``str``.

    Raises ``InputError`` if that ``str`` shows a memory address.

    >>> untyped_json({"a": (1, None)})
    '{"a":[1,null]}'
    """
    from pydantic_core import to_json, to_jsonable_python

    base64: Literal["base64"] = "base64"
    try:
        text = to_json(value, fallback=str_of, inf_nan_mode="null", bytes_mode=base64).decode()
    except ValueError:
        text = _write_slowly(partial(to_jsonable_python, value, fallback=str_of, bytes_mode=base64), field)
    text = _with_sorted_sets(value, text)
    if "null" in text or has_constants(text):
        _refuse_nan(value, field)
    return text


_MAX_PROBLEMS = 5


def validate_with(validate: Callable[[Any], T], value: object) -> T:
    """Return ``validate(value)``; its ``ValueError`` becomes a ``ValueReadError``."""
    try:
        return validate(value)
    except ValueError as fault:
        raise ValueReadError(describe_problem(fault)) from None


def describe_problem(fault: ValueError) -> str:
    """Return an error as one line; pydantic's errors as place, expected and found."""
    if not hasattr(fault, "errors"):
        return str(fault)
    found = cast("ValidationError", fault).errors(include_url=False, include_context=False)
    lines = [_describe_error(error) for error in found[:_MAX_PROBLEMS]]
    more = len(found) - _MAX_PROBLEMS
    return "; ".join(dict.fromkeys(lines)) + (f"; and {more} more" if more > 0 else "")


def _describe_error(error: Mapping[str, Any]) -> str:
    where = ".".join(map(str, error["loc"]))
    problem: str = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    present = "" if error["type"] in ("missing", "json_invalid") else f", not {shorten_repr(error['input'])}"
    return f"{where + ': ' if where else ''}{problem}{present}"


def shorten_repr(value: object) -> str:
    """Return the repr of a value for a message, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:56] + " ..."
