r"""Field codecs: between a field's typed value and its text or JSON, without loss.

``FieldCodec(field)`` is the codec of one field: ``render`` (value to text), ``read`` (text to value), ``dump`` and ``load``
(value to JSON and back), ``parts`` (text and media). ``objects`` reads several fields in one JSON object. Forms of text:

    text   str, and types whose JSON is a string (dates, enums of words, UUIDs, bytes as base64): the bare string
    JSON   numbers, booleans, lists, objects: compact JSON
    mixed  types with strings and others (int | str, Any): JSON, but a string that is not JSON by itself is bare
    code   text, in a fence if its edges would be lost

Blanks at the ends of a text are protected by a backslash (``edges``). In ``X | None`` the text ``null`` is ``None``; the
string "null" gets a backslash.

``typed_json`` reads JSON. Changes are in ``repairs``; ``strict`` refuses them. Constraints and validators always apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any, ClassVar, Literal, TypeAlias, cast

from sigwire.adapters.values.edges import EDGES, escape_null, protect_edges, restore_edges, unescape_null
from sigwire.adapters.values.json_text import read_json
from sigwire.adapters.values.media_json import json_with_media
from sigwire.adapters.values.type_shape import compile_type
from sigwire.adapters.values.typed_json import (
    ReadValue,
    TypedJson,
    describe_problem,
    shorten_repr,
    untyped_json,
    validate_with,
)
from sigwire.core.json import JsonValue, dumps, loads
from sigwire.core.messages import Part
from sigwire.core.narrow import is_items
from sigwire.core.response import Repair
from sigwire.core.tools.calls import ToolCalls
from sigwire.errors import FieldDefinitionError, InputError, ValueReadError
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.types import Code, Reasoning

__all__ = ["ABSENT", "FieldCodec", "Form", "ReadValue", "ValueReadError"]

ABSENT = "the field is missing"
Form: TypeAlias = Literal["json", "mixed", "text", "whole"]


class FieldCodec:
    r"""The codec of one field; its form depends on the field's type.

    Reading raises ``ValueReadError``. For every value of the field's type ``read(render(value)) == value``,
    ``load(dump(value)) == value`` and ``render(dump(value)) == render(value)``; ``NaN`` and infinities, which JSON cannot
    hold, are refused both ways.

    >>> from sigwire.signatures.signature import Signature
    >>> codec = FieldCodec(Signature("text -> tags: list[str]").spec.outputs[0])
    >>> codec.render(["a", "b"])
    '["a","b"]'
    >>> codec.read("['a', 'b']")
    ReadValue(value=['a', 'b'], repairs=(Repair(field='tags', what='single quotes (2 times)'),))
    """

    __slots__ = ("_nullable", "field", "typed")
    has_media = False
    form: ClassVar[Form] = "whole"
    """The meaning of a prefix of the text: bare text, JSON, either; "whole": none before the text is complete."""

    def __new__(cls, field: FieldSpec) -> FieldCodec:
        return object.__new__(_codec_for(field) if cls is FieldCodec else cls)

    def __init__(self, field: FieldSpec) -> None:
        self.field = field

    # These methods serve inputs of types that pydantic does not know; subclasses override them.

    def render(self, value: object) -> str:
        """Return the text of a value, or of its dump, for a prompt. Raises ``InputError`` if JSON cannot express it."""
        text = untyped_json(value, self.field.name)
        return protect_edges(loads(text)) if text.startswith('"') else text

    def render_input(self, value: object) -> str:
        """Return the text of an input; media are replaced by their kind."""
        return self.render(value)

    def read(self, text: str, *, strict: bool = False) -> ReadValue:
        """Return the value in a text."""
        return ReadValue(restore_edges(text.strip()))

    def dump(self, value: object) -> JsonValue:
        """Return the value as plain JSON."""
        return self._untyped_json(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> ReadValue:
        """Return the value of JSON from ``dump`` or from a model."""
        return ReadValue(value)

    def load_member(
        self, members: Mapping[str, JsonValue], *, strict: bool = False, missing: str = ABSENT
    ) -> ReadValue:
        """Return the field's value in an object. A field that may be missing has its default, else ``None``."""
        if self.field.name in members:
            return self.load(members[self.field.name], strict=strict)
        if self.field.required:
            raise ValueReadError(missing)
        return ReadValue(self.field.default_value() if self.field.has_default else None)

    def parts(self, value: object) -> tuple[str | Part, ...]:
        """Return the texts and media of an input, in order."""
        return (self.render_input(value),)

    @property
    def is_unambiguous(self) -> bool:
        """Whether an exact read by pydantic needs no further check."""
        return False

    def _untyped_json(self, value: object) -> JsonValue:
        return cast(JsonValue, loads(untyped_json(value, self.field.name)))

    def _repair(self, what: str) -> tuple[Repair, ...]:
        return (Repair(self.field.name, what),)


def _codec_for(field: FieldSpec) -> type[FieldCodec]:
    if field.role in _BY_ROLE:
        return _BY_ROLE[field.role]
    if field.annotation is str or field.annotation == (str | None):
        return _StringCodec
    if field.role == "media" and field.direction == "input":
        return _MediaCodec
    try:
        return _BY_TEXTS[compile_type(field).shape.texts]
    except FieldDefinitionError:
        if field.direction == "input":
            return FieldCodec
        raise


class _TextCodec(FieldCodec):
    """A bare string. Subclasses convert values to strings and back."""

    __slots__ = ()

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._nullable = field.nullable

    def render(self, value: object) -> str:
        if type(value) is not str:
            if value is None:
                return "null"
            value = self._text(value)
        if self._nullable:
            value = escape_null(value)
        return value if value and value[0] not in EDGES and value[-1] not in EDGES else protect_edges(value)

    def read(self, text: str, *, strict: bool = False) -> ReadValue:
        text = text.strip()
        if self._nullable and text in ("null", "None"):
            return self._read_none(text, strict)
        if text and (text[0] == "\\" or text[-1] == "\\"):
            text = restore_edges(unescape_null(text) if self._nullable else text)
        return self._read_text(text, strict)

    def _read_none(self, text: str, strict: bool) -> ReadValue:
        if text == "null":
            return ReadValue(None)
        if strict:
            raise ValueReadError("write null, not None")
        return ReadValue(None, self._repair("None was read as null"))

    def _text(self, value: object) -> str:
        return str.__str__(value) if isinstance(value, str) else untyped_json(value, self.field.name)

    def dump(self, value: object) -> JsonValue:
        return str.__str__(value) if isinstance(value, str) else self._untyped_json(value)

    def _read_text(self, text: str, strict: bool) -> ReadValue:
        return ReadValue(text)


class _StringCodec(_TextCodec):
    """``str`` and ``str | None``: never decoded, validated only for constraints."""

    __slots__ = ("_validate",)
    form = "text"

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._validate = bool(field.metadata)

    @property
    def is_unambiguous(self) -> bool:
        return True

    def read(self, text: str, *, strict: bool = False) -> ReadValue:
        text = text.strip()
        if self._nullable or self._validate or not text or text[0] == "\\" or text[-1] == "\\":
            return super().read(text, strict=strict)
        return ReadValue(text)

    def render_input(self, value: object) -> str:
        return self.render(value) if type(value) is str or not is_items(value) else protect_edges(_number_items(value))

    def load(self, value: JsonValue, *, strict: bool = False) -> ReadValue:
        if isinstance(value, str):
            return self._read_text(value, strict)
        if value is None and self._nullable:
            return ReadValue(None)
        if type(value) is int and not strict:
            read = self._read_text(str(value), strict)
            return ReadValue(read.value, (*self._repair("a number was read as text"), *read.repairs))
        raise ValueReadError(f"expected a string, not {shorten_repr(value)}")

    def _read_text(self, text: str, strict: bool) -> ReadValue:
        return ReadValue(validate_with(self.field.adapter.validate_python, text) if self._validate else text)


def _number_items(items: Sequence[object]) -> str:
    """Return a list given for a text field as numbered items; items of several lines are blocks."""
    if not items:
        return "[]"
    texts = [item if isinstance(item, str) else untyped_json(item) for item in items]
    return "\n".join(
        f"[{number}] «««\n{text}\n»»»" if "\n" in text else f"[{number}] «{text}»"
        for number, text in enumerate(texts, 1)
    )


class _ReasoningCodec(_TextCodec):
    __slots__ = ()
    form = "text"

    def load(self, value: JsonValue, *, strict: bool = False) -> ReadValue:
        return ReadValue(None) if value is None and self._nullable else ReadValue(validate_with(Reasoning.read, value))

    def _read_text(self, text: str, strict: bool) -> ReadValue:
        return ReadValue(validate_with(self.field.adapter.validate_python, text))


class _CodeCodec(_TextCodec):
    """Code: reading removes fences; writing adds one if the edges of the code would be lost or look like a fence."""

    __slots__ = ()

    def _text(self, value: object) -> str:
        if not isinstance(value, Code):
            return super()._text(value)
        text = value.to_json()
        return value.fenced() if not text or text[0] in EDGES or text[-1] in EDGES else text

    def render(self, value: object) -> str:
        # A dump is loaded first: a text and a Code must render equally.
        plain = value.to_json() if isinstance(value, Code) else value
        return super().render(value if value is None else self.load(cast(JsonValue, plain)).value)

    def dump(self, value: object) -> JsonValue:
        return value.to_json() if isinstance(value, Code) else self._untyped_json(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> ReadValue:
        if value is None and self._nullable:
            return ReadValue(None)
        return self._read_text(value, strict) if isinstance(value, str) else self._validate_code(value)

    def _read_text(self, text: str, strict: bool) -> ReadValue:
        read = self._validate_code(text)
        outside = _outside_fences(text, read.value.code)
        if outside and strict:
            raise ValueReadError("there is text around the code; write only the code")
        return ReadValue(read.value, self._repair("text around the code was left out")) if outside else read

    def _validate_code(self, value: object) -> ReadValue:
        return ReadValue(validate_with(self.field.adapter.validate_python, value))


def _outside_fences(text: str, code: str) -> bool:
    """Return True if there is text around the code: anything but a single fence around all of it."""
    if text == code:
        return False
    opening, _, rest = text.strip().partition("\n")
    fence = opening[: len(opening) - len(opening.lstrip("`"))]
    return not (fence and rest in (f"{code}\n{fence}", f"{code}{fence}"))


class _TypedCodec(FieldCodec):
    __slots__ = ()

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self.typed = TypedJson(field)

    @property
    def is_unambiguous(self) -> bool:
        return self.typed.is_unambiguous

    def dump(self, value: object) -> JsonValue:
        return self.typed.dump(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> ReadValue:
        return self.typed.load(value, strict)


class _TextValueCodec(_TypedCodec, _TextCodec):
    """Types whose JSON is a string: dates, enums, UUIDs and the like."""

    __slots__ = ()

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._nullable = self.typed.compiled.shape.nullable

    def _text(self, value: object) -> str:
        text = self.typed.to_json(value)
        if not text.startswith('"'):
            return text
        return text[1:-1] if "\\" not in text else str(loads(text))

    def _read_text(self, text: str, strict: bool) -> ReadValue:
        try:
            return ReadValue(self.typed.read_exact(encode_basestring_ascii(text)))
        except ValueError as fault:
            problem = describe_problem(fault)
        for candidate, change in _unquote_candidates(text):
            try:
                made, changes, _ = self.typed.accept(candidate)
            except ValueReadError:
                continue
            if strict and (change or changes):
                break
            return ReadValue(made, self.typed.repairs([*filter(None, [change]), *changes]))
        raise ValueReadError(problem)


def _unquote_candidates(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text and the text inside its quotes, each with its repair; JSON quotes need none."""
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


class _JsonCodec(_TypedCodec):
    """Types whose JSON is never a string."""

    __slots__ = ()
    form: ClassVar[Form] = "json"

    def render(self, value: object) -> str:
        return self.typed.to_json(value)

    def read(self, text: str, *, strict: bool = False) -> ReadValue:
        return self.typed.read(text, strict)


class _MixedCodec(_JsonCodec):
    """Types with strings and others: a string that looks like JSON, or has blanks at its ends, is quoted."""

    __slots__ = ()
    form = "mixed"

    def render(self, value: object) -> str:
        text = self.typed.to_json(value)
        if not text.startswith('"'):
            return text
        string = text[1:-1] if "\\" not in text else str(loads(text))
        return string if string and string == string.strip() and not _is_json(string) else text

    def read(self, text: str, *, strict: bool = False) -> ReadValue:
        text = text.strip()
        is_json = _is_json(text)
        if is_json and (read := self._read_exactly(text, strict)):
            return read
        # Not JSON, or not of the declared types: the text may be a declared string.
        if not (strict and is_json) and (read := self._read_exactly(encode_basestring_ascii(text), strict)):
            return ReadValue(read.value, (*self._repair("JSON was read as text"), *read.repairs)) if is_json else read
        if not is_json:
            try:
                return self.typed.load(text, strict)
            except ValueReadError:
                pass
        return super().read(text, strict=strict)

    def _read_exactly(self, text: str, strict: bool) -> ReadValue | None:
        try:
            value = self.typed.read_exact(text)
        except ValueError:
            return None
        return ReadValue(value, self.typed.repairs(self.typed.ambiguity(value, text, strict)))


def _is_json(text: str) -> bool:
    if text[:1] not in _JSON_STARTS:
        return False
    try:
        loads(text)
    except ValueError:
        return False
    return True


_JSON_STARTS = frozenset('{["-0123456789tfn')


class _CallsCodec(FieldCodec):
    """Tool calls as JSON; ``prompts.turns`` writes them into a conversation."""

    __slots__ = ()

    def render(self, value: object) -> str:
        return dumps(self.dump(value))

    def read(self, text: str, *, strict: bool = False) -> ReadValue:
        found, repairs = read_json(text, strict)
        return ReadValue(self.load(found, strict=strict).value, tuple(Repair(self.field.name, r.what) for r in repairs))

    def dump(self, value: object) -> JsonValue:
        return value.to_json() if isinstance(value, ToolCalls) else self._untyped_json(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> ReadValue:
        if value is None and self.field.nullable:
            return ReadValue(None)
        calls: Any = [value] if isinstance(value, dict) else value
        try:
            if isinstance(value, dict) and "tool_calls" in value:
                return ReadValue(ToolCalls.from_json(value))
            return ReadValue(ToolCalls(calls))
        except (ValueError, TypeError, AttributeError) as fault:
            raise ValueReadError(f"invalid tool calls: {fault}") from None


class _MediaCodec(_TypedCodec):
    """An input that is or contains media: media become message parts, with JSON around them."""

    __slots__ = ()
    has_media = True

    def parts(self, value: object) -> tuple[str | Part, ...]:
        try:
            return tuple(json_with_media(self._load_media(value)))
        except RecursionError as fault:
            raise InputError(
                f"The field {self.field.name!r} holds itself, or is nested too deeply for JSON."
            ) from fault

    def render(self, value: object) -> str:
        return "".join(part if isinstance(part, str) else f"[{part.kind}]" for part in self.parts(value))

    def _load_media(self, value: object) -> object:
        """Return the typed value of a saved demo, which is JSON."""
        try:
            return self.typed.compiled.adapter.validate_python(value)
        except ValueError:
            return value

    def read(self, text: str, *, strict: bool = False) -> ReadValue:
        return self.load(read_json(text, strict)[0], strict=strict)


_BY_ROLE: Mapping[str, type[FieldCodec]] = {
    "tool_calls": _CallsCodec, "code": _CodeCodec, "reasoning": _ReasoningCodec, "tools": FieldCodec,
    "history": FieldCodec,
}  # fmt: skip
_BY_TEXTS: Mapping[str, type[FieldCodec]] = {"always": _TextValueCodec, "never": _JsonCodec, "maybe": _MixedCodec}
