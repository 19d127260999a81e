r"""Values: between a field's typed value and its text or JSON, without loss and without guessing.

``FieldCodec(field)`` knows one field: ``render`` (value to text), ``read`` (text to value), ``dump`` and ``load`` (the same
for JSON), ``parts`` (text and media). ``ObjectCodec(fields)`` reads one JSON object with several fields. Four forms of text:

    text   str, and types whose JSON is a string (dates, enums of words, UUIDs, bytes as base64): the string as it stands
    JSON   numbers, booleans, lists, objects: compact JSON
    mixed  types with strings and others (int | str, Any): JSON, but a string that is not JSON by itself stands as it is
    code   text, in a fence where its edges would be lost

Texts lose blanks at their edges, so a text that is empty, or begins or ends with blanks, gets a backslash there; one that
already looks so gets one more. In ``X | None`` the text ``null`` is ``None``; the string "null" gets a backslash.

Reading tries what is exactly right first: one call into pydantic on the text. Only when that fails is the text taken apart
(``json_text``) and mended along the type (``shapes``). What was mended is in ``repairs``; ``strict`` refuses it. Constraints and
validators always have the last word.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn, TypeAlias

from sigwire.adapters.json_text import read_json, unwrapped
from sigwire.adapters.shapes import Compiled, compiled, fit
from sigwire.core.json import JsonValue, dumps, loads
from sigwire.core.messages import Part
from sigwire.core.response import Repair
from sigwire.core.tools import ToolCalls
from sigwire.errors import FieldDefinitionError, InputError, JsonReadError, ValueReadError
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.types import Audio, Code, File, Image, Reasoning

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["FieldCodec", "ObjectCodec", "ObjectRead", "Read", "ValueReadError"]


class Read(NamedTuple):
    """A value that was read, and what had to be repaired for it."""

    value: Any
    repairs: tuple[Repair, ...] = ()


class FieldCodec:
    r"""One field's values as text and as JSON. Made once for a field; which form it takes follows from the field's type.

    Reading raises ``ValueReadError``. For every value of the field's type ``read(render(value)) == value``,
    ``load(dump(value)) == value`` and ``render(dump(value)) == render(value)``; ``NaN`` and infinities, which JSON cannot
    hold, are refused both ways.

    >>> from sigwire.signatures.signature import Signature
    >>> codec = FieldCodec(Signature("text -> tags: list[str]").spec.outputs[0])
    >>> codec.render(["a", "b"])
    '["a","b"]'
    >>> codec.read("['a', 'b']")
    Read(value=['a', 'b'], repairs=(Repair(field='tags', what='single quotes (2 times)'),))
    """

    __slots__ = ("field",)
    has_media = False

    def __new__(cls, field: FieldSpec) -> FieldCodec:
        return object.__new__(_codec_for(field) if cls is FieldCodec else cls)

    def __init__(self, field: FieldSpec) -> None:
        self.field = field

    def render(self, value: Any) -> str:
        """The text of a value, or of what ``dump`` made of it, as it stands in a prompt."""
        raise NotImplementedError  # every form has its own

    def render_input(self, value: Any) -> str:
        """The text of a value among the inputs; media are replaced by their name."""
        return self.render(value)

    def read(self, text: str, *, strict: bool = False) -> Read:
        """The value in a text."""
        raise NotImplementedError

    def dump(self, value: Any) -> JsonValue:
        """The value as plain JSON."""
        raise NotImplementedError

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        """The value in JSON that ``dump`` or a model made."""
        raise NotImplementedError

    def parts(self, value: Any) -> tuple[str | Part, ...]:
        """The value among the inputs as texts and media, in order."""
        return (self.render_input(value),)

    def _repairs(self, changes: Sequence[str]) -> tuple[Repair, ...]:
        if len(changes) > _MOST_REPAIRS:
            changes = [*changes[:_MOST_REPAIRS], f"and {len(changes) - _MOST_REPAIRS} more of the kind"]
        return tuple(Repair(self.field.name, what) for what in changes)


_MOST_REPAIRS = 20


def _codec_for(field: FieldSpec) -> type[FieldCodec]:
    if field.role in _BY_ROLE:
        return _BY_ROLE[field.role]
    if field.annotation is str or field.annotation == (str | None):
        return _StringCodec
    if field.role == "media" and field.direction == "input":
        return _MediaCodec
    try:
        return _BY_TEXTS[compiled(field).shape.texts]
    except FieldDefinitionError:
        if field.direction == "input":
            return _UntypedCodec
        raise


# --- edges: what would be lost where a text begins and ends ------------------------------------------

_EDGES = frozenset(chr(code) for code in range(0x3001) if chr(code).isspace()) | {"\\"}
_OPEN, _OPENED = re.compile(r"\\*(?:\s|\Z)"), re.compile(r"\\+(?:\s|\Z)")
_CLOSE, _CLOSED = re.compile(r"\s\\*\Z"), re.compile(r"\s\\+\Z")
_NULL, _NULLED = re.compile(r"\\*(?:null|None)\Z"), re.compile(r"\\+(?:null|None)\Z")


def _guarded(text: str) -> str:
    if text and text[0] not in _EDGES and text[-1] not in _EDGES:
        return text
    before = "\\" if _OPEN.match(text) else ""
    after = "\\" if _CLOSE.search(text, _tail(text)) else ""
    return f"{before}{text}{after}"


def _unguarded(text: str) -> str:
    if text and text[0] == "\\" and _OPENED.match(text):
        text = text[1:]
    if text and text[-1] == "\\" and _CLOSED.search(text, _tail(text)):
        text = text[:-1]
    return text


def _tail(text: str) -> int:
    """Where the last blank before the closing backslashes can stand at the earliest; keeps the search short."""
    return max(0, len(text.rstrip("\\")) - 1)


# --- text --------------------------------------------------------------------------------------------


class _TextCodec(FieldCodec):
    """The string as it stands. Subclasses say how values become strings and back."""

    __slots__ = ("_nullable",)

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._nullable = field.nullable

    def render(self, value: Any) -> str:
        if type(value) is not str:
            if value is None:
                return "null"
            value = self._text(value)
        if self._nullable and _NULL.match(value):
            return "\\" + value
        return value if value and value[0] not in _EDGES and value[-1] not in _EDGES else _guarded(value)

    def read(self, text: str, *, strict: bool = False) -> Read:
        text = text.strip()
        if self._nullable and text in ("null", "None"):
            return self._none(text, strict)
        if text and (text[0] == "\\" or text[-1] == "\\"):
            text = text[1:] if self._nullable and _NULLED.match(text) else _unguarded(text)
        return self._read_text(text, strict)

    def _none(self, text: str, strict: bool) -> Read:
        if text == "null":
            return Read(None)
        if strict:
            raise ValueReadError("None is written null")
        return Read(None, self._repairs(["None was read as null"]))

    def _text(self, value: Any) -> str:
        return str.__str__(value) if isinstance(value, str) else _untyped_json(value, self.field)

    def _read_text(self, text: str, strict: bool) -> Read:
        raise NotImplementedError


class _StringCodec(_TextCodec):
    """``str`` and ``str | None``: never decoded, never validated but for constraints."""

    __slots__ = ("_validate",)

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._validate = bool(field.metadata)

    def read(self, text: str, *, strict: bool = False) -> Read:
        text = text.strip()
        if self._nullable or self._validate or not text or text[0] == "\\" or text[-1] == "\\":
            return super().read(text, strict=strict)
        return Read(text)

    def render_input(self, value: Any) -> str:
        return _guarded(_numbered(value)) if isinstance(value, (list, tuple)) else self.render(value)

    def dump(self, value: Any) -> JsonValue:
        return str.__str__(value) if isinstance(value, str) else _untyped_value(value, self.field)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        if isinstance(value, str):
            return self._read_text(value, strict)
        if value is None and self._nullable:
            return Read(None)
        if type(value) is int and not strict:
            read = self._read_text(str(value), strict)
            return Read(read.value, (*self._repairs(["a number was read as text"]), *read.repairs))
        raise ValueReadError(f"this should be a string, not {_shown(value)}")

    def _read_text(self, text: str, strict: bool) -> Read:
        return Read(_validated(self.field.adapter.validate_python, text) if self._validate else text)


def _numbered(items: Sequence[Any]) -> str:
    """A list where text is declared: one numbered line for each item, longer ones in a block.

    >>> print(_numbered(["a", "b"]))
    [1] «a»
    [2] «b»
    """
    if not items:
        return "[]"
    texts = [item if isinstance(item, str) else _untyped_json(item, None) for item in items]
    return "\n".join(
        f"[{number}] «««\n{text}\n»»»" if "\n" in text else f"[{number}] «{text}»"
        for number, text in enumerate(texts, 1)
    )


class _ReasoningCodec(_TextCodec):
    __slots__ = ()

    def dump(self, value: Any) -> JsonValue:
        return str.__str__(value) if isinstance(value, str) else _untyped_value(value, self.field)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return Read(None) if value is None and self._nullable else Read(_validated(Reasoning.read, value))

    def _read_text(self, text: str, strict: bool) -> Read:
        return Read(_validated(self.field.adapter.validate_python, text))


class _CodeCodec(_TextCodec):
    """Code: fences come off; a fence goes on where the edges of the code would be lost, or be taken for one."""

    __slots__ = ()

    def _text(self, value: Any) -> str:
        if not isinstance(value, Code):
            return super()._text(value)
        text = value.to_json()
        return value.fenced() if not text or text[0] in _EDGES or text[-1] in _EDGES else text

    def render(self, value: Any) -> str:
        # A dumped value is read first: a text and a Code must look alike.
        return super().render(value if value is None else self.load(_plain_code(value)).value)

    def dump(self, value: Any) -> JsonValue:
        return value.to_json() if isinstance(value, Code) else _untyped_value(value, self.field)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        if value is None and self._nullable:
            return Read(None)
        return self._read_text(value, strict) if isinstance(value, str) else self._made(value)

    def _read_text(self, text: str, strict: bool) -> Read:
        read = self._made(text)
        outside = _outside_fences(text, read.value.code)
        if outside and strict:
            raise ValueReadError("there is text around the code; give only the code")
        return Read(read.value, self._repairs(["text around the code was left out"])) if outside else read

    def _made(self, value: Any) -> Read:
        return Read(_validated(self.field.adapter.validate_python, value))


def _plain_code(value: Any) -> Any:
    return value.to_json() if isinstance(value, Code) else value


def _outside_fences(text: str, code: str) -> bool:
    """Whether taking the code out of its fences lost something: only a single fence around everything loses nothing."""
    if text == code:
        return False
    opening, _, rest = text.strip().partition("\n")
    fence = opening[: len(opening) - len(opening.lstrip("`"))]
    return not (fence and rest in (f"{code}\n{fence}", f"{code}{fence}"))


class _TextValueCodec(_TextCodec):
    """Types whose JSON is a string: dates, enums, UUIDs and the like."""

    __slots__ = ("_type",)

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._type = _Type(field)
        self._nullable = self._type.compiled.shape.nullable

    def _text(self, value: Any) -> str:
        dumped = self._type.dump(value)
        return dumped if isinstance(dumped, str) else dumps(dumped)

    def _read_text(self, text: str, strict: bool) -> Read:
        try:
            return Read(self._type.exactly(encode_basestring_ascii(text)))
        except ValueError as fault:
            problem = _problem(fault)
        for candidate, change in _unquoted(text):
            if strict and change:
                break
            try:
                made, changes, _ = self._type.accept(candidate)
            except ValueReadError:
                continue
            if strict and changes:
                break
            return Read(made, self._repairs([*filter(None, [change]), *changes]))
        raise ValueReadError(problem)

    def dump(self, value: Any) -> JsonValue:
        return self._type.dump(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return self._type.load(value, strict, self._repairs)


def _unquoted(text: str) -> Iterator[tuple[str, str]]:
    """The text, and what is inside its quotes; JSON quotes are no fault."""
    try:
        decoded = loads(text)
    except ValueError:
        decoded = None
    if isinstance(decoded, str):
        yield decoded, ""
    yield text, ""
    for mark in ("'", "`", '"', "**"):
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
            yield text[len(mark) : -len(mark)].strip(), "quotes around the value were taken off"


# --- JSON ----------------------------------------------------------------------------------------------


class _JsonCodec(FieldCodec):
    """Types whose JSON is never a string."""

    __slots__ = ("_exactly", "_type")

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._type = _Type(field)
        self._exactly = self._type.exactly

    def render(self, value: Any) -> str:
        return self._type.to_json(value)

    def read(self, text: str, *, strict: bool = False) -> Read:
        try:
            if "NaN" not in text and "Infinity" not in text:
                value = self._exactly(text)
                return Read(value) if self._type.settled else self._settle(value, text, strict)
        except ValueError:  # of pydantic, or of a text that is no Unicode
            pass
        try:
            found, repairs = read_json(text, strict, kind=self._type.structure)
        except JsonReadError as fault:
            return self._read_bare(text, fault, strict)
        read = self._type.load(found, strict, self._repairs)
        return Read(read.value, (*(Repair(self.field.name, r.what) for r in repairs), *read.repairs))

    def _read_bare(self, text: str, fault: JsonReadError, strict: bool) -> Read:
        """A text that is no JSON: a word or a number in a spelling that the type's own table knows, or nothing."""
        if strict or fault.code not in ("not_json", "malformed") or len(text) > _LONGEST_BARE:
            raise fault
        try:
            return self._type.load(text.strip(), strict, self._repairs)
        except ValueReadError:
            raise fault from None

    def _settle(self, value: Any, text: str, strict: bool) -> Read:
        if self._type.compiled.forgiving is not None:
            return self._type.load(loads(text), strict, self._repairs)
        return Read(value, self._repairs(self._type.doubts(value, text, strict)))

    def dump(self, value: Any) -> JsonValue:
        return self._type.dump(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return self._type.load(value, strict, self._repairs)


_LONGEST_BARE = 100


class _MixedCodec(_JsonCodec):
    """Types with strings among others: a string that would be read as JSON, or has blanks at its edges, is quoted."""

    __slots__ = ()

    def render(self, value: Any) -> str:
        text = self._type.to_json(value)
        if not text.startswith('"'):
            return text
        string: str = loads(text)
        return string if string and string == string.strip() and not _is_json(string) else text

    def read(self, text: str, *, strict: bool = False) -> Read:
        text = text.strip()
        is_json = _is_json(text)
        for candidate in ([text] if is_json else []) + [encode_basestring_ascii(text)]:
            try:
                value = self._exactly(candidate)
            except ValueError:
                continue
            doubts = [] if self._type.settled else self._type.doubts(value, candidate, strict)
            if is_json and candidate is not text:
                doubts = ["JSON was read as text", *doubts]
                if strict:
                    break
            return Read(value, self._repairs(doubts))
        if not is_json:
            try:
                return self._type.load(text, strict, self._repairs)
            except ValueReadError:
                pass
        return super().read(text, strict=strict)


def _is_json(text: str) -> bool:
    if text[:1] not in _JSON_STARTS:
        return False
    try:
        loads(text)
    except ValueError:
        return False
    return True


_JSON_STARTS = frozenset('{["-0123456789tfn')


# --- a type: pydantic, asked in the right order ----------------------------------------------------------

_Repairer: TypeAlias = "Callable[[Sequence[str]], tuple[Repair, ...]]"


class _Type:
    """A compiled type at work. ``settled`` types need no second look at a value that fits exactly."""

    __slots__ = ("_options", "_validator", "_writer", "compiled", "field", "settled")

    def __init__(self, field: FieldSpec) -> None:
        self.field = field
        self.compiled: Compiled = compiled(field)
        self.settled = self.compiled.forked is None and self.compiled.forgiving is None
        self._options: dict[str, Any] = dict(self.compiled.read_options)
        self._validator = self.compiled.adapter.validator
        self._writer = self.compiled.adapter.serializer

    @property
    def structure(self) -> Any:
        """The only kind of JSON structure that can be looked for in prose; ``None`` when there is not just one."""
        kinds = self.compiled.shape.kinds & {"object", "array", "any"}
        return next(iter(kinds)) if len(kinds) == 1 and "any" not in kinds else None

    def exactly(self, text: str) -> Any:
        """The value of a JSON text that fits without any conversion; else pydantic's error."""
        return self._validator.validate_json(text, strict=True, **self._options)

    def load(self, value: JsonValue, strict: bool, repairs: _Repairer) -> Read:
        """The value in JSON, mended or unwrapped where that makes it fit."""
        try:
            made, changes, fitted = self.accept(value)
            fault = None if not changes or not strict else ValueReadError(_changed(changes))
        except ValueReadError as error:
            fault = error
        known = self.compiled.forgiving
        foreign = known is not None and isinstance(value, dict) and bool(value) and not value.keys() & known
        if fault is None and not foreign:
            return Read(made, repairs([*changes, *self._doubts_of(made, fitted, strict)]))
        inner = None if strict else self._unwrapped(value, repairs)
        if inner is not None:
            return inner
        if fault is not None:
            raise fault
        if strict:
            raise ValueReadError(f"none of the members {_names(value)} is known")
        return Read(made, repairs([*changes, f"none of the members {_names(value)} is known; they were left out"]))

    def _unwrapped(self, value: JsonValue, repairs: _Repairer) -> Read | None:
        for inner, what in unwrapped(value):
            try:
                made, changes, fitted = self.accept(inner)
            except ValueReadError:
                continue
            return Read(made, repairs([what, *changes, *self._doubts_of(made, fitted, strict=False)]))
        return None

    def accept(self, value: JsonValue) -> tuple[Any, list[str], JsonValue]:
        """The typed value, what had to change for it, and the JSON that fitted in the end."""
        try:
            return self._validate(value, exact=True), [], value
        except ValueError as fault:
            problem = _problem(fault)
        try:
            fitted = fit(self.compiled.shape, value)
            return self._accept_fitted(fitted.value, fitted.changes, fitted.misfit)
        except RecursionError:
            raise ValueReadError("the JSON is nested too deeply") from None
        except ValueError as fault:
            raise ValueReadError(_problem(fault) or problem) from None

    def _accept_fitted(self, value: JsonValue, changes: list[str], misfit: bool) -> tuple[Any, list[str], JsonValue]:
        if changes:
            try:
                return self._validate(value, exact=True), changes, value
            except ValueError:
                pass
        if misfit and _NOT_A_NUMBER.search(dumps(value)):
            raise ValueReadError("NaN and infinities are not JSON; give a number or null")
        made = self._validate(value, exact=False)
        # A type's own "before" validators see Python values, for which pydantic's strictness asks too much; then a value of
        # the right JSON types is exact, though only the lax mode takes it.
        exact = self.compiled.has_functions and not misfit
        return made, changes if exact else [*changes, "the value was converted to the declared type"], value

    def _validate(self, value: JsonValue, exact: bool) -> Any:
        text = dumps(value)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair: a Python string holds it, JSON text does not
            return self._validator.validate_python(value, **self._options)
        return self._validator.validate_json(text, strict=True if exact else None, **self._options)

    # --- unions ------------------------------------------------------------------------------------------

    def _doubts_of(self, made: Any, value: JsonValue, strict: bool) -> list[str]:
        return self.doubts(made, dumps(value), strict) if self.compiled.forked else []

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

    # --- writing -----------------------------------------------------------------------------------------

    def to_json(self, value: Any) -> str:
        """Compact JSON text of a value, or of its dump."""
        try:
            text = self._writer.to_json(value, by_alias=self.compiled.by_alias, warnings=False, fallback=str).decode()
        except ValueError:  # half a surrogate pair, which only an escape can write
            text = _escaped(dumps(self._plain(value)))
        if "null" in text and self.compiled.has_floats:
            _refuse_not_numbers(self._plain(value), self.field)
        return text

    def dump(self, value: Any) -> JsonValue:
        return loads(self.to_json(value))  # type: ignore[no-any-return]  # JSON is what loads gives

    def _plain(self, value: Any) -> Any:
        return self._writer.to_python(value, mode="json", by_alias=self.compiled.by_alias, warnings=False, fallback=str)


_NOT_A_NUMBER = re.compile(r'"\s*[+-]?(?:nan|inf(?:inity)?)\s*"', re.IGNORECASE)
_LONE = re.compile("[\ud800-\udfff]")


def _escaped(text: str) -> str:
    return _LONE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _refuse_not_numbers(value: Any, field: FieldSpec | None) -> None:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, float) and not math.isfinite(current):
            _raise_not_a_number(current, field)
        if isinstance(current, dict):
            pending += current.values()
        elif isinstance(current, (list, tuple)):
            pending += current


def _raise_not_a_number(value: float, field: FieldSpec | None) -> NoReturn:
    where = f"The field {field.name!r} holds" if field else "A value holds"
    raise InputError(f"{where} {value!r}, which JSON cannot express. Use None, or a number.")


def _untyped_json(value: Any, field: FieldSpec | None) -> str:
    """JSON of a value whose type says nothing about its text; what is not JSON at all by its ``str``."""
    from pydantic_core import to_json, to_jsonable_python

    try:
        text = to_json(value, fallback=str, inf_nan_mode="null", bytes_mode="base64").decode()
    except ValueError:
        text = _escaped(dumps(to_jsonable_python(value, fallback=str, bytes_mode="base64")))
    if "null" in text:
        _refuse_not_numbers(to_jsonable_python(value, fallback=str, bytes_mode="base64"), field)
    return text


def _untyped_value(value: Any, field: FieldSpec) -> JsonValue:
    return loads(_untyped_json(value, field))  # type: ignore[no-any-return]  # JSON is what loads gives


# --- the rest ------------------------------------------------------------------------------------------------


class _UntypedCodec(FieldCodec):
    """An input of a type that pydantic does not know: shown as it can be, never read."""

    __slots__ = ()

    def render(self, value: Any) -> str:
        text = _untyped_json(value, self.field)
        return _guarded(loads(text)) if text.startswith('"') else text

    def read(self, text: str, *, strict: bool = False) -> Read:
        return Read(_unguarded(text.strip()))

    def dump(self, value: Any) -> JsonValue:
        return _untyped_value(value, self.field)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return Read(value)


class _CallsCodec(FieldCodec):
    """Tool calls as JSON; how calls stand in a conversation is decided elsewhere."""

    __slots__ = ()

    def render(self, value: Any) -> str:
        return dumps(self.dump(value))

    def read(self, text: str, *, strict: bool = False) -> Read:
        found, repairs = read_json(text, strict)
        return Read(self.load(found, strict=strict).value, tuple(Repair(self.field.name, r.what) for r in repairs))

    def dump(self, value: Any) -> JsonValue:
        return value.to_json() if isinstance(value, ToolCalls) else _untyped_value(value, self.field)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        if value is None and self.field.nullable:
            return Read(None)
        try:
            if isinstance(value, dict) and "tool_calls" in value:
                return Read(ToolCalls.from_json(value))
            return Read(ToolCalls.from_dict_list([value] if isinstance(value, dict) else value))  # type: ignore[arg-type]
        except (ValueError, TypeError, AttributeError) as fault:
            raise ValueReadError(f"these are no tool calls: {fault}") from None


class _MediaCodec(FieldCodec):
    """An input with media, alone or somewhere inside: the media are parts of their own, the rest is JSON around them."""

    __slots__ = ("_type",)
    has_media = True

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._type = _Type(field)

    def parts(self, value: Any) -> tuple[str | Part, ...]:
        pieces: list[str | Part] = []
        for piece in _written(self._typed(value)):
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        return tuple(pieces)

    def render(self, value: Any) -> str:
        return "".join(piece if isinstance(piece, str) else f"[{piece.kind}]" for piece in self.parts(value))

    def _typed(self, value: Any) -> Any:
        """A value from a saved demo is JSON: its media are found by the field's type."""
        try:
            return self._type.compiled.adapter.validate_python(value)
        except ValueError:
            return value

    def read(self, text: str, *, strict: bool = False) -> Read:
        return self.load(read_json(text, strict)[0], strict=strict)

    def dump(self, value: Any) -> JsonValue:
        return self._type.dump(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return self._type.load(value, strict, self._repairs)


def _written(value: Any) -> Iterator[str | Part]:
    """JSON text of a value, interrupted by the media in it."""
    if isinstance(value, (Image, Audio, File)):
        yield value.part()
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from _joined("[", ((("",), item) for item in value), "]")
    elif (members := _members(value)) is not None:
        yield from _joined("{", (((dumps(str(key)), ":"), item) for key, item in members.items()), "}")
    else:
        yield _untyped_json(value, None)


def _joined(opening: str, items: Iterator[tuple[tuple[str, ...], Any]], closing: str) -> Iterator[str | Part]:
    yield opening
    for position, (before, item) in enumerate(items):
        yield ("," if position else "") + "".join(before)
        yield from _written(item)
    yield closing


def _members(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    fields = getattr(type(value), "model_fields", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return None


_BY_ROLE: Mapping[str, type[FieldCodec]] = {
    "tool_calls": _CallsCodec, "code": _CodeCodec, "reasoning": _ReasoningCodec, "tools": _UntypedCodec,
    "history": _UntypedCodec,
}  # fmt: skip
_BY_TEXTS: Mapping[str, type[FieldCodec]] = {"always": _TextValueCodec, "never": _JsonCodec, "maybe": _MixedCodec}


# --- several fields in one object ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObjectRead:
    """Fields out of one JSON object: values by name, repairs, and what is wrong by name ("" for the whole answer)."""

    values: dict[str, Any] = field(default_factory=dict)
    repairs: tuple[Repair, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)


class ObjectCodec:
    """One JSON object whose members are fields. Nothing is raised: what cannot be read is in ``problems``, by field.

    >>> from sigwire.signatures.signature import Signature
    >>> codec = ObjectCodec(Signature("text -> name: str, age: int").spec.outputs)
    >>> codec.read('{"name": "Ada", "age": 36}').values
    {'name': 'Ada', 'age': 36}
    >>> read = codec.read('{"name": "Ada", "age": "old"}')
    >>> read.values, read.problems
    ({'name': 'Ada'}, {'age': "should be a valid integer, not 'old'"})
    """

    __slots__ = ("_codecs", "_exactly", "_fields", "_forgiving", "_required", "_settled")

    def __init__(self, fields: Sequence[FieldSpec]) -> None:
        self._fields = tuple(fields)
        self._codecs = {spec.name: FieldCodec(spec) for spec in fields}
        self._required = frozenset(spec.name for spec in fields if spec.required)
        self._settled = all(_is_settled(codec) for codec in self._codecs.values())
        self._exactly: Callable[[str], dict[str, Any]] | None = None

    def read(self, text: str, *, strict: bool = False) -> ObjectRead:
        """The fields in a text that is, or holds, a JSON object."""
        if self._settled and "NaN" not in text and "Infinity" not in text:
            found = self._read_exactly(text)
            if found is not None:
                return found
        try:
            value, repairs = read_json(text, strict, kind="object" if len(self._fields) != 1 else None)
        except JsonReadError as fault:
            return ObjectRead(problems={"": str(fault)})
        return self._spread(value, repairs, strict)

    def _read_exactly(self, text: str) -> ObjectRead | None:
        """All fields by one call of pydantic; ``None`` when something needs a closer look."""
        try:
            found = (self._exactly or self._compile())(text)
        except ValueError:
            return None
        if len(found) != len(self._fields) or found.keys() != self._codecs.keys():
            return None
        return ObjectRead(found)

    def _compile(self) -> Callable[[str], dict[str, Any]]:
        from pydantic import TypeAdapter
        from typing_extensions import TypedDict

        members = {spec.name: Annotated[(spec.annotation, *spec.metadata, spec.info)] for spec in self._fields}
        record: Any = TypedDict("Outputs", members)  # type: ignore[operator]  # the names are data
        record.__pydantic_config__ = {"extra": "allow", "ser_json_bytes": "base64", "val_json_bytes": "base64"}
        validate = TypeAdapter(record).validator.validate_json
        options = {name: value for spec in self._fields for name, value in _read_options(spec).items()}
        self._exactly = lambda text: validate(text, strict=True, **options)
        return self._exactly

    def _spread(self, value: JsonValue, repairs: tuple[Repair, ...], strict: bool) -> ObjectRead:
        members, found = self._members(value, strict)
        if members is None:
            return ObjectRead(problems={"": f"the answer should be a JSON object with {', '.join(self._codecs)}"})
        read = ObjectRead({}, (), {})
        made = [*repairs, *found]
        for name, codec in self._codecs.items():
            made += self._member(name, codec, members, strict, read)
        for stray in members.keys() - self._codecs.keys():
            if strict:
                read.problems[""] = f"the member {stray[:80]!r} is not asked for"
            else:
                made.append(Repair(None, f"the member {stray[:80]!r} is not an output; it was left out"))
        return ObjectRead(read.values, tuple(made), read.problems)

    def _member(
        self, name: str, codec: FieldCodec, members: Mapping[str, JsonValue], strict: bool, read: ObjectRead
    ) -> tuple[Repair, ...]:
        if name not in members:
            if codec.field.required:
                read.problems[name] = _ABSENT
            else:
                value = codec.field.default_value()
                read.values[name] = value if codec.field.has_default else None
            return ()
        try:
            made = codec.load(members[name], strict=strict)
        except ValueReadError as fault:
            read.problems[name] = str(fault)
            return ()
        read.values[name] = made.value
        return made.repairs

    def _members(self, value: JsonValue, strict: bool) -> tuple[dict[str, JsonValue] | None, tuple[Repair, ...]]:
        """The object with the fields: the value itself, or what it holds one level down."""
        if isinstance(value, dict) and (strict or not value or value.keys() & self._codecs.keys()):
            return value, ()
        if strict:
            return None, ()
        for inner, what in unwrapped(value):
            if isinstance(inner, dict) and inner.keys() & self._codecs.keys():
                return inner, (Repair(None, what),)
        return self._bare(value)

    def _bare(self, value: JsonValue) -> tuple[dict[str, JsonValue] | None, tuple[Repair, ...]]:
        """The value of the only field, standing alone."""
        if len(self._fields) == 1:
            name, codec = next(iter(self._codecs.items()))
            try:
                codec.load(value)
            except ValueReadError:
                pass
            else:
                return {name: value}, (Repair(name, "the value stood alone, without its object"),)
        return (value, ()) if isinstance(value, dict) else (None, ())


_ABSENT = "the field is missing from the answer"


def _is_settled(codec: FieldCodec) -> bool:
    """Whether pydantic alone may read the field."""
    if isinstance(codec, _StringCodec):
        return True
    return isinstance(codec, (_JsonCodec, _TextValueCodec)) and codec._type.settled


def _read_options(spec: FieldSpec) -> Mapping[str, bool]:
    return {} if spec.annotation is str else compiled(spec).read_options


# --- saying what is wrong -----------------------------------------------------------------------------------


def _validated(validate: Callable[[Any], Any], value: Any) -> Any:
    try:
        return validate(value)
    except ValueError as fault:
        raise ValueReadError(_problem(fault)) from None


_MOST_PROBLEMS = 5


def _problem(fault: ValueError) -> str:
    """A fault of pydantic in one line: where, what was expected, what was there."""
    errors = getattr(fault, "errors", None)
    if errors is None:
        return str(fault)
    return _lines(fault)  # type: ignore[arg-type]  # only pydantic's error has errors


def _lines(fault: ValidationError) -> str:
    found = fault.errors(include_url=False, include_context=False)
    lines = [_line(error["loc"], error["msg"], error["type"], error["input"]) for error in found[:_MOST_PROBLEMS]]
    more = len(found) - _MOST_PROBLEMS
    return "; ".join(dict.fromkeys(lines)) + (f"; and {more} more" if more > 0 else "")


def _line(location: tuple[int | str, ...], message: str, kind: str, value: Any) -> str:
    where = ".".join(map(str, location))
    said = message.removeprefix("Input ").removeprefix("Value error, ")
    said = said[:1].lower() + said[1:] if message.startswith("Input ") else said
    shown = "" if kind in ("missing", "json_invalid") else f", not {_shown(value)}"
    return f"{where + ': ' if where else ''}{said}{shown}"


def _changed(changes: list[str]) -> str:
    return f"not exactly as declared: {'; '.join(changes[:_MOST_PROBLEMS])}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:56] + " ..."


def _names(value: Any) -> str:
    return ", ".join(repr(name) for name in list(value)[:5])
