"""Typed JSON: one field's type at work, pydantic asked in the right order.

Reading: exactly as declared; else mended along the type's shape; else (values with validators of their own) as pydantic
converts; else unwrapped one level. Each step but the first is listed or, with ``strict``, refused. Writing: compact JSON as
pydantic serializes, the same for a value and for the JSON that was made of it. Problems are said in a line for the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from sigwire.adapters.values.json_text import JsonKind, read_json, unwrap_candidates
from sigwire.adapters.values.type_shape import CompiledType, compiled, fit, is_array, is_object
from sigwire.core.json import JsonValue, dumps, loads
from sigwire.core.response import Repair
from sigwire.core.set_order import sort_sets
from sigwire.errors import InputError, JsonReadError, ValueReadError
from sigwire.signatures.fields import FieldSpec

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = [
    "AcceptedValue",
    "ReadValue",
    "TypedJson",
    "describe_problem",
    "has_constants",
    "shorten_repr",
    "untyped_json",
    "validated",
]


class ReadValue(NamedTuple):
    """A value that was read, and what had to be repaired for it."""

    value: Any
    repairs: tuple[Repair, ...] = ()


class AcceptedValue(NamedTuple):
    """A JSON value that the type takes: the typed value, what was changed for it, and the JSON that fitted in the end."""

    value: Any
    changes: list[str]
    json: JsonValue


_MOST_REPAIRS = 20
_LONGEST_BARE = 100  # characters of a text that may be a value in an odd spelling


class TypedJson:
    """The type of one field. ``settled``: a value that fits exactly needs no second look."""

    __slots__ = ("_options", "_validator", "_writer", "compiled", "field", "settled")

    def __init__(self, field: FieldSpec) -> None:
        self.field = field
        self.compiled: CompiledType = compiled(field)
        self.settled = self.compiled.forked is None and self.compiled.forgiving is None
        self._options: dict[str, Any] = dict(self.compiled.read_options)
        self._validator = self.compiled.validator
        self._writer = self.compiled.adapter.serializer

    # --- reading -------------------------------------------------------------------------------------

    def exactly(self, text: str) -> Any:
        """The value of a JSON text that fits without any conversion; else pydantic's error."""
        return self._validator.validate_json(text, strict=True, **self._options)

    def read(self, text: str, strict: bool) -> ReadValue:
        """The value in a text that is, or holds, JSON."""
        try:
            if self.compiled.finite or not has_constants(text):
                value = self.exactly(text)
                return ReadValue(value) if self.settled else self._settle(value, text, strict)
        except ValueReadError:
            raise
        except ValueError:  # of pydantic, or of a text that is no Unicode
            pass
        try:
            found, repairs = read_json(text, strict, kind=self._kind)
        except JsonReadError as fault:
            return self._read_bare(text, fault, strict)
        read = self.load(found, strict)
        return ReadValue(read.value, (*self.repairs([repair.what for repair in repairs]), *read.repairs))

    def _settle(self, value: Any, text: str, strict: bool) -> ReadValue:
        if self.compiled.forgiving is not None:
            return self.load(loads(text), strict)
        return ReadValue(value, self.repairs(self.doubts(value, text, strict)))

    def _read_bare(self, text: str, fault: JsonReadError, strict: bool) -> ReadValue:
        """A text that is no JSON: a word or a number in a spelling that the type's own table knows, or nothing."""
        if strict or fault.code not in ("not_json", "malformed") or len(text) > _LONGEST_BARE:
            raise fault
        try:
            return self.load(text.strip(), strict)
        except ValueReadError:
            raise fault from None

    @property
    def _kind(self) -> JsonKind | None:
        """The only kind of JSON structure that can be looked for in prose; ``None`` when there is not just one."""
        kinds = self.compiled.shape.kinds & {"object", "array", "any"}
        return cast(JsonKind, next(iter(kinds))) if len(kinds) == 1 and "any" not in kinds else None

    def load(self, value: JsonValue, strict: bool) -> ReadValue:
        """The value in JSON, mended or unwrapped where that makes it fit."""
        try:
            accepted = self.accept(value)
        except ValueReadError:
            inner = None if strict else self._unwrapped(value)
            if inner is None:
                raise
            return inner
        if strict and accepted.changes:
            raise ValueReadError(f"does not match the type exactly: {'; '.join(accepted.changes[:_MOST_PROBLEMS])}")
        known = self.compiled.forgiving
        if known is not None and isinstance(value, dict) and value and not value.keys() & known:
            return self._foreign(value, accepted, strict)
        return self._done(accepted, [], strict)

    def _foreign(self, value: dict[str, JsonValue], accepted: AcceptedValue, strict: bool) -> ReadValue:
        """An object without a single known member fits a type that requires none: what it holds may be meant instead."""
        what = f"none of the members {', '.join(map(repr, list(value)[:5]))} is known"
        if strict:
            raise ValueReadError(what)
        return self._unwrapped(value) or self._done(accepted, [f"{what}; they were left out"], strict)

    def _unwrapped(self, value: JsonValue) -> ReadValue | None:
        for inner, what in unwrap_candidates(value):
            try:
                return self._done(self.accept(inner), [what], strict=False)
            except ValueReadError:
                continue
        return None

    def _done(self, accepted: AcceptedValue, before: list[str], strict: bool) -> ReadValue:
        doubts = self.doubts(accepted.value, dumps(accepted.json), strict) if self.compiled.forked else []
        return ReadValue(accepted.value, self.repairs([*before, *accepted.changes, *doubts]))

    def accept(self, value: JsonValue) -> AcceptedValue:
        """The value as it is, or mended, or converted. Raises ``ValueReadError``."""
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
        # A type's own "before" validators see Python values, for which pydantic's strictness asks too much; then a value of
        # the right JSON types is exact, though only the lax mode takes it.
        exact = self.compiled.has_functions and not misfit
        return AcceptedValue(
            made, changes if exact else [*changes, "the value was converted to the declared type"], value
        )

    def _validate(self, value: JsonValue, exact: bool) -> Any:
        text = dumps(value)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair: a Python string holds it, JSON text does not
            return self._validator.validate_python(value, **self._options)
        return self._validator.validate_json(text, strict=True if exact else None, **self._options)

    def doubts(self, made: Any, text: str, strict: bool) -> list[str]:
        """Whether another member of a union fits as well as the one that was taken."""
        if self.compiled.forked is None:
            return []
        try:
            other = self.compiled.forked.validate_json(text, strict=True, **self._options)
        except ValueError:
            return []
        if other == made:
            return []
        if type(made) is type(other):
            what, taken = "a part of the value fits several types alike", "the one declared first"
        else:
            what, taken = f"the value fits {type(made).__name__} and {type(other).__name__} alike", type(made).__name__
        if strict:
            raise ValueReadError(f"{what}; it must fit only one")
        return [f"{what}; {taken} was taken"]

    def repairs(self, changes: Sequence[str]) -> tuple[Repair, ...]:
        """Changes as repairs of the field; of very many only the first."""
        if len(changes) > _MOST_REPAIRS:
            changes = [*changes[:_MOST_REPAIRS], f"and {len(changes) - _MOST_REPAIRS} more of the kind"]
        return tuple(Repair(self.field.name, what) for what in changes)

    # --- writing -------------------------------------------------------------------------------------

    def to_json(self, value: Any) -> str:
        """Compact JSON text of a value, or of its dump. Raises ``InputError`` where JSON has no place for it."""
        try:
            text = self._writer.to_json(
                value, by_alias=self.compiled.by_alias, warnings=False, fallback=str_of
            ).decode()
        except ValueError:
            text = _written_slowly(partial(self._plain, value), self.field.name)
        if self.compiled.has_sets:
            text = _ordered(value, text)
        if self.compiled.has_floats and ("null" in text or has_constants(text)):
            _refuse_not_numbers(value, self.field.name)
        return text

    def dump(self, value: Any) -> JsonValue:
        """Plain JSON of a value."""
        return cast(JsonValue, loads(self.to_json(value)))

    def _plain(self, value: Any) -> Any:
        by_alias = self.compiled.by_alias
        return self._writer.to_python(value, mode="json", by_alias=by_alias, warnings=False, fallback=str_of)


def str_of(value: Any) -> str:
    """The text of a value that has no JSON: its ``str``. One that shows where in memory it lies means nothing to a model
    and differs in every run: that is a ``ValueError``.

    >>> str_of(complex(1, 2))
    '(1+2j)'
    """
    text = str(value)
    if _ADDRESS.search(text):
        raise ValueError(f"a {type(value).__name__} has no JSON form, and no text but its place in memory")
    return text


_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]{4,}")


def _ordered(value: Any, text: str) -> str:
    """JSON text with the elements of sets in order, whatever order the process gives them."""
    if "[" not in text or has_constants(text):
        return text
    written: JsonValue = loads(text)
    ordered = sort_sets(value, written)
    return text if ordered == written else _escaped(dumps(ordered))


def has_constants(text: str) -> bool:
    """Whether the text may hold ``NaN`` or ``Infinity``, which pydantic would read."""
    return "NaN" in text or "Infinity" in text


_NOT_A_NUMBER = re.compile(r'"\s*[+-]?(?:nan|inf(?:inity)?)\s*"', re.IGNORECASE)
_LONE = re.compile("[\ud800-\udfff]")


def _escaped(text: str) -> str:
    return _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _written_slowly(plain: Callable[[], Any], field: str | None) -> str:
    """JSON text where the fast way fails: of half a surrogate pair, which only an escape can write, or of what has none."""
    try:
        return _escaped(dumps(plain()))
    except (ValueError, TypeError, RecursionError) as fault:
        where = f"The field {field!r} holds" if field else "A value holds"
        raise InputError(f"{where} what JSON cannot express: {fault}. Give it as plain data, or as text.") from fault


def _refuse_not_numbers(value: Any, field: str | None) -> None:
    from pydantic_core import to_jsonable_python

    pending: list[Any] = [to_jsonable_python(value, fallback=str_of, inf_nan_mode="constants", bytes_mode="base64")]
    while pending:
        current = pending.pop()
        if isinstance(current, float) and not math.isfinite(current):
            where = f"The field {field!r} holds" if field else "A value holds"
            raise InputError(f"{where} {current!r}, which JSON cannot express. Use None, or a number.")
        if is_object(current):
            pending += current.values()
        elif is_array(current):
            pending += current


def untyped_json(value: Any, field: str | None = None) -> str:
    """JSON of a value whose declared type says nothing about it; what is no JSON at all is written as its ``str``.

    Raises ``InputError`` where that would only say where in memory the value lies.

    >>> untyped_json({"a": (1, None)})
    '{"a":[1,null]}'
    """
    from pydantic_core import to_json, to_jsonable_python

    base64: Literal["base64"] = "base64"
    try:
        text = to_json(value, fallback=str_of, inf_nan_mode="null", bytes_mode=base64).decode()
    except ValueError:
        text = _written_slowly(partial(to_jsonable_python, value, fallback=str_of, bytes_mode=base64), field)
    text = _ordered(value, text)
    if "null" in text or has_constants(text):
        _refuse_not_numbers(value, field)
    return text


# --- saying what is wrong ----------------------------------------------------------------------------

_MOST_PROBLEMS = 5


def validated(validate: Callable[[Any], Any], value: Any) -> Any:
    """What ``validate`` makes of the value; its ``ValueError`` becomes a ``ValueReadError``."""
    try:
        return validate(value)
    except ValueError as fault:
        raise ValueReadError(describe_problem(fault)) from None


def describe_problem(fault: ValueError) -> str:
    """A fault in one line; of pydantic's: where, what was expected, what was there."""
    if not hasattr(fault, "errors"):
        return str(fault)
    found = cast("ValidationError", fault).errors(include_url=False, include_context=False)
    lines = [_line(error) for error in found[:_MOST_PROBLEMS]]
    more = len(found) - _MOST_PROBLEMS
    return "; ".join(dict.fromkeys(lines)) + (f"; and {more} more" if more > 0 else "")


def _line(error: Mapping[str, Any]) -> str:
    where = ".".join(map(str, error["loc"]))
    said: str = error["msg"].removeprefix("Value error, ")
    if said.startswith("Input "):
        said = said.removeprefix("Input ")
    present = "" if error["type"] in ("missing", "json_invalid") else f", not {shorten_repr(error['input'])}"
    return f"{where + ': ' if where else ''}{said}{present}"


def shorten_repr(value: object) -> str:
    """A value in a message: its repr, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:56] + " ..."
