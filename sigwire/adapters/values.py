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
(``json_text``) and mended along the type (``shapes``, put to work by ``typed``). What was mended is in ``repairs``; ``strict``
refuses it. Constraints and validators always have the last word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from json.encoder import encode_basestring_ascii
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypeAlias, cast

from sigwire.adapters.edges import EDGES, guarded, null_guarded, null_unguarded, unguarded
from sigwire.adapters.json_text import read_json, unwrapped
from sigwire.adapters.shapes import compiled, finite_validator, is_array, is_mapping
from sigwire.adapters.typed import Read, TypedJson, has_constants, problem_of, shown, untyped_json, validated
from sigwire.core.json import JsonValue, dumps, loads
from sigwire.core.messages import Part
from sigwire.core.response import Repair
from sigwire.core.tools import ToolCalls
from sigwire.errors import FieldDefinitionError, InputError, JsonReadError, ValueReadError
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.types import Audio, Code, File, Image, Reasoning

__all__ = ["FieldCodec", "ObjectCodec", "ObjectRead", "Read", "ValueReadError"]


Form: TypeAlias = Literal["json", "mixed", "text", "whole"]


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
    form: ClassVar[Form] = "whole"
    """What a piece of the text is: of text as it stands, of JSON, of either; or nothing before the whole is there."""

    def __new__(cls, field: FieldSpec) -> FieldCodec:
        return object.__new__(_codec_for(field) if cls is FieldCodec else cls)

    def __init__(self, field: FieldSpec) -> None:
        self.field = field

    # What stands here serves inputs of types that pydantic does not know; every other form has its own.

    def render(self, value: Any) -> str:
        """The text of a value, or of what ``dump`` made of it, as it stands in a prompt."""
        text = untyped_json(value, self.field.name)
        return guarded(loads(text)) if text.startswith('"') else text

    def render_input(self, value: Any) -> str:
        """The text of a value among the inputs; media are replaced by their name."""
        return self.render(value)

    def read(self, text: str, *, strict: bool = False) -> Read:
        """The value in a text."""
        return Read(unguarded(text.strip()))

    def dump(self, value: Any) -> JsonValue:
        """The value as plain JSON."""
        return self._untyped(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        """The value in JSON that ``dump`` or a model made."""
        return Read(value)

    def parts(self, value: Any) -> tuple[str | Part, ...]:
        """The value among the inputs as texts and media, in order."""
        return (self.render_input(value),)

    def _untyped(self, value: Any) -> JsonValue:
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
        return _BY_TEXTS[compiled(field).shape.texts]
    except FieldDefinitionError:
        if field.direction == "input":
            return FieldCodec
        raise


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
        if self._nullable:
            value = null_guarded(value)
        return value if value and value[0] not in EDGES and value[-1] not in EDGES else guarded(value)

    def read(self, text: str, *, strict: bool = False) -> Read:
        text = text.strip()
        if self._nullable and text in ("null", "None"):
            return self._none(text, strict)
        if text and (text[0] == "\\" or text[-1] == "\\"):
            text = unguarded(null_unguarded(text) if self._nullable else text)
        return self._read_text(text, strict)

    def _none(self, text: str, strict: bool) -> Read:
        if text == "null":
            return Read(None)
        if strict:
            raise ValueReadError("None is written null")
        return Read(None, self._repair("None was read as null"))

    def _text(self, value: Any) -> str:
        return str.__str__(value) if isinstance(value, str) else untyped_json(value, self.field.name)

    def _read_text(self, text: str, strict: bool) -> Read:
        return Read(text)


class _StringCodec(_TextCodec):
    """``str`` and ``str | None``: never decoded, never validated but for constraints."""

    __slots__ = ("_validate",)
    form = "text"

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self._validate = bool(field.metadata)

    def read(self, text: str, *, strict: bool = False) -> Read:
        text = text.strip()
        if self._nullable or self._validate or not text or text[0] == "\\" or text[-1] == "\\":
            return super().read(text, strict=strict)
        return Read(text)

    def render_input(self, value: Any) -> str:
        return guarded(_numbered(value)) if is_array(value) else self.render(value)

    def dump(self, value: Any) -> JsonValue:
        return str.__str__(value) if isinstance(value, str) else self._untyped(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        if isinstance(value, str):
            return self._read_text(value, strict)
        if value is None and self._nullable:
            return Read(None)
        if type(value) is int and not strict:
            read = self._read_text(str(value), strict)
            return Read(read.value, (*self._repair("a number was read as text"), *read.repairs))
        raise ValueReadError(f"this should be a string, not {shown(value)}")

    def _read_text(self, text: str, strict: bool) -> Read:
        return Read(validated(self.field.adapter.validate_python, text) if self._validate else text)


def _numbered(items: Sequence[Any]) -> str:
    """A list where text is declared: one numbered line for each item, longer ones in a block.

    >>> print(_numbered(["a", "b"]))
    [1] «a»
    [2] «b»
    """
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

    def dump(self, value: Any) -> JsonValue:
        return str.__str__(value) if isinstance(value, str) else self._untyped(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return Read(None) if value is None and self._nullable else Read(validated(Reasoning.read, value))

    def _read_text(self, text: str, strict: bool) -> Read:
        return Read(validated(self.field.adapter.validate_python, text))


class _CodeCodec(_TextCodec):
    """Code: fences come off; a fence goes on where the edges of the code would be lost, or be taken for one."""

    __slots__ = ()

    def _text(self, value: Any) -> str:
        if not isinstance(value, Code):
            return super()._text(value)
        text = value.to_json()
        return value.fenced() if not text or text[0] in EDGES or text[-1] in EDGES else text

    def render(self, value: Any) -> str:
        # A dumped value is read first: a text and a Code must look alike.
        return super().render(value if value is None else self.load(_plain_code(value)).value)

    def dump(self, value: Any) -> JsonValue:
        return value.to_json() if isinstance(value, Code) else self._untyped(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        if value is None and self._nullable:
            return Read(None)
        return self._read_text(value, strict) if isinstance(value, str) else self._made(value)

    def _read_text(self, text: str, strict: bool) -> Read:
        read = self._made(text)
        outside = _outside_fences(text, read.value.code)
        if outside and strict:
            raise ValueReadError("there is text around the code; give only the code")
        return Read(read.value, self._repair("text around the code was left out")) if outside else read

    def _made(self, value: Any) -> Read:
        return Read(validated(self.field.adapter.validate_python, value))


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

    __slots__ = ("typed",)

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self.typed = TypedJson(field)
        self._nullable = self.typed.compiled.shape.nullable

    def _text(self, value: Any) -> str:
        text = self.typed.to_json(value)
        if not text.startswith('"'):
            return text
        return text[1:-1] if "\\" not in text else str(loads(text))

    def _read_text(self, text: str, strict: bool) -> Read:
        try:
            return Read(self.typed.exactly(encode_basestring_ascii(text)))
        except ValueError as fault:
            problem = problem_of(fault)
        for candidate, change in _unquoted(text):
            try:
                made, changes, _ = self.typed.accept(candidate)
            except ValueReadError:
                continue
            if strict and (change or changes):
                break
            return Read(made, self.typed.repairs([*filter(None, [change]), *changes]))
        raise ValueReadError(problem)

    def dump(self, value: Any) -> JsonValue:
        return self.typed.dump(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return self.typed.load(value, strict)


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


# --- JSON --------------------------------------------------------------------------------------------


class _JsonCodec(FieldCodec):
    """Types whose JSON is never a string."""

    __slots__ = ("typed",)
    form: ClassVar[Form] = "json"

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self.typed = TypedJson(field)

    def render(self, value: Any) -> str:
        return self.typed.to_json(value)

    def read(self, text: str, *, strict: bool = False) -> Read:
        return self.typed.read(text, strict)

    def dump(self, value: Any) -> JsonValue:
        return self.typed.dump(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return self.typed.load(value, strict)


class _MixedCodec(_JsonCodec):
    """Types with strings among others: a string that would be read as JSON, or has blanks at its edges, is quoted."""

    __slots__ = ()
    form = "mixed"

    def render(self, value: Any) -> str:
        text = self.typed.to_json(value)
        if not text.startswith('"'):
            return text
        string = text[1:-1] if "\\" not in text else str(loads(text))
        return string if string and string == string.strip() and not _is_json(string) else text

    def read(self, text: str, *, strict: bool = False) -> Read:
        text = text.strip()
        is_json = _is_json(text)
        if is_json and (read := self._read_exactly(text, strict)):
            return read
        # Not JSON, or not of the declared types: the text itself may be the string that is declared.
        if not (strict and is_json) and (read := self._read_exactly(encode_basestring_ascii(text), strict)):
            return Read(read.value, (*self._repair("JSON was read as text"), *read.repairs)) if is_json else read
        if not is_json:
            try:
                return self.typed.load(text, strict)
            except ValueReadError:
                pass
        return super().read(text, strict=strict)

    def _read_exactly(self, text: str, strict: bool) -> Read | None:
        try:
            value = self.typed.exactly(text)
        except ValueError:
            return None
        return Read(value, self.typed.repairs(self.typed.doubts(value, text, strict)))


def _is_json(text: str) -> bool:
    if text[:1] not in _JSON_STARTS:
        return False
    try:
        loads(text)
    except ValueError:
        return False
    return True


_JSON_STARTS = frozenset('{["-0123456789tfn')


# --- tool calls and media ----------------------------------------------------------------------------


class _CallsCodec(FieldCodec):
    """Tool calls as JSON; how calls stand in a conversation is decided elsewhere."""

    __slots__ = ()

    def render(self, value: Any) -> str:
        return dumps(self.dump(value))

    def read(self, text: str, *, strict: bool = False) -> Read:
        found, repairs = read_json(text, strict)
        return Read(self.load(found, strict=strict).value, tuple(Repair(self.field.name, r.what) for r in repairs))

    def dump(self, value: Any) -> JsonValue:
        return value.to_json() if isinstance(value, ToolCalls) else self._untyped(value)

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

    __slots__ = ("typed",)
    has_media = True

    def __init__(self, field: FieldSpec) -> None:
        super().__init__(field)
        self.typed = TypedJson(field)

    def parts(self, value: Any) -> tuple[str | Part, ...]:
        try:
            written = list(_written(self._typed(value)))
        except RecursionError as fault:
            raise InputError(
                f"The field {self.field.name!r} holds itself, or is nested too deeply for JSON."
            ) from fault
        pieces: list[str | Part] = []
        for piece in written:
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
            return self.typed.compiled.adapter.validate_python(value)
        except ValueError:
            return value

    def read(self, text: str, *, strict: bool = False) -> Read:
        return self.load(read_json(text, strict)[0], strict=strict)

    def dump(self, value: Any) -> JsonValue:
        return self.typed.dump(value)

    def load(self, value: JsonValue, *, strict: bool = False) -> Read:
        return self.typed.load(value, strict)


def _written(value: Any) -> Iterator[str | Part]:
    """JSON text of a value, interrupted by the media in it."""
    if isinstance(value, (Image, Audio, File)):
        yield value.part()
    elif (members := _members(value)) is not None:
        yield from _joined("{", [(dumps(str(key)) + ":", item) for key, item in members.items()], "}")
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from _joined("[", [("", item) for item in cast("Iterable[Any]", value)], "]")
    else:
        yield untyped_json(value)


def _joined(opening: str, items: Sequence[tuple[str, Any]], closing: str) -> Iterator[str | Part]:
    yield opening
    for position, (before, item) in enumerate(items):
        yield ("," if position else "") + before
        yield from _written(item)
    yield closing


def _members(value: Any) -> Mapping[Any, Any] | None:
    if is_mapping(value):
        return value
    kind: Any = value.__class__
    names = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", None)
    return None if names is None else {name: getattr(value, name) for name in names}


_BY_ROLE: Mapping[str, type[FieldCodec]] = {
    "tool_calls": _CallsCodec, "code": _CodeCodec, "reasoning": _ReasoningCodec, "tools": FieldCodec,
    "history": FieldCodec,
}  # fmt: skip
_BY_TEXTS: Mapping[str, type[FieldCodec]] = {"always": _TextValueCodec, "never": _JsonCodec, "maybe": _MixedCodec}


# --- several fields in one object --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObjectRead:
    """Fields out of one JSON object: values by name, repairs, and what is wrong by name ("" for the whole answer)."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    repairs: tuple[Repair, ...] = ()
    problems: dict[str, str] = field(default_factory=dict[str, str])


class ObjectCodec:
    """One JSON object whose members are fields. Nothing is raised: what cannot be read is in ``problems``, by field.

    >>> from sigwire.signatures.signature import Signature
    >>> codec = ObjectCodec(Signature("text -> name: str, age: int").spec.outputs)
    >>> codec.read('{"name": "Ada", "age": 36}').values
    {'name': 'Ada', 'age': 36}
    >>> read = codec.read('{"name": "Ada", "age": "old"}')
    >>> read.values, read.problems
    ({'name': 'Ada'}, {'age': "should be a valid integer, unable to parse string as an integer, not 'old'"})
    """

    __slots__ = ("_codecs", "_exactly", "_quoted", "_settled")

    def __init__(self, fields: Sequence[FieldSpec]) -> None:
        self._codecs = {spec.name: FieldCodec(spec) for spec in fields}
        self._settled = all(_is_settled(codec) for codec in self._codecs.values())
        self._exactly: Callable[[str], dict[str, Any]] | None = None
        self._quoted = tuple(f'"{name}"' for name in self._codecs)

    def read(self, text: str, *, strict: bool = False) -> ObjectRead:
        """The fields in a text that is, or holds, a JSON object. Of a member that comes twice the first one counts."""
        if any(text.count(name) > 1 for name in self._quoted) and (members := _first_of_each(text)) is not None:
            if strict:
                return ObjectRead(problems={"": "a member of the object came twice"})
            return self._spread(members, (Repair(None, "a member came twice; the first one counts"),), strict)
        if self._settled and (found := self._read_exactly(text)):
            return found
        try:
            value, repairs = read_json(text, strict, kind=None if len(self._codecs) == 1 else "object")
        except JsonReadError as fault:
            return ObjectRead(problems={"": str(fault)})
        return self._spread(value, repairs, strict)

    def _read_exactly(self, text: str) -> ObjectRead | None:
        """All fields by one call of pydantic; ``None`` when something needs a closer look."""
        try:
            found = (self._exactly or self._compile())(text)
        except ValueError:
            return None
        if found.keys() == self._codecs.keys():
            return ObjectRead(found)
        if not found or not found.keys() <= self._codecs.keys():
            return None
        return ObjectRead({name: found[name] if name in found else _default(c) for name, c in self._codecs.items()})

    def _compile(self) -> Callable[[str], dict[str, Any]]:
        from pydantic import ConfigDict, TypeAdapter, with_config
        from typing_extensions import TypedDict

        make: Any = TypedDict  # checkers want to know the members; here they are data
        record = make("Outputs", {name: _member_type(codec.field) for name, codec in self._codecs.items()})
        config = ConfigDict(extra="allow", ser_json_bytes="base64", val_json_bytes="base64")
        adapter = TypeAdapter[dict[str, Any]](with_config(config)(record))
        options: Any = {key: on for codec in self._codecs.values() for key, on in _read_options(codec.field).items()}
        validator, finite = finite_validator(adapter)
        exactly: Callable[[str], dict[str, Any]] = partial(validator.validate_json, strict=True, **options)
        self._exactly = exactly if finite else partial(_without_constants, exactly)
        return self._exactly

    def _spread(self, value: JsonValue, repairs: Sequence[Repair], strict: bool) -> ObjectRead:
        """The members of the object to their fields."""
        members, found = self._members(value, strict)
        if members is None:
            names = ", ".join(map(repr, self._codecs))
            return ObjectRead(problems={"": f"the answer should be a JSON object with the members {names}"})
        values: dict[str, Any] = {}
        problems: dict[str, str] = {}
        made = [*repairs, *found]
        for name, codec in self._codecs.items():
            try:
                read = _member(codec, members, strict)
            except ValueReadError as fault:
                problems[name] = str(fault)
            else:
                values[name] = read.value
                made += read.repairs
        strays = [name for name in members if name not in self._codecs]
        if strays and strict:
            problems[""] = f"members that are not asked for: {', '.join(map(shown, strays))}"
        made += [Repair(None, f"the member {shown(name)} is not an output; it was left out") for name in strays]
        return ObjectRead(values, tuple(made), problems)

    def _members(self, value: JsonValue, strict: bool) -> tuple[dict[str, JsonValue] | None, tuple[Repair, ...]]:
        """The object with the fields: the value itself, or what it holds one level down."""
        found: list[tuple[dict[str, JsonValue], tuple[Repair, ...]]] = []
        if isinstance(value, dict):
            found.append((value, ()))
        if strict or (found and (not value or self._is_whole(found[0][0]))):
            return found[0] if found else (None, ())
        found += [(inner, (Repair(None, what),)) for inner, what in unwrapped(value) if isinstance(inner, dict)]
        whole = [members for members in found if self._is_whole(members[0])]
        some = [members for members in found if members[0].keys() & self._codecs.keys()]
        return next(iter(whole or some), None) or self._bare(value)

    def _is_whole(self, members: dict[str, JsonValue]) -> bool:
        """Whether an object has every required field, and any field at all."""
        known = members.keys() & self._codecs.keys()
        return bool(known) and all(name in members for name, codec in self._codecs.items() if codec.field.required)

    def _bare(self, value: JsonValue) -> tuple[dict[str, JsonValue] | None, tuple[Repair, ...]]:
        """The value of the only field, standing alone."""
        if len(self._codecs) == 1:
            name, codec = next(iter(self._codecs.items()))
            try:
                codec.load(value)
            except ValueReadError:
                pass
            else:
                return {name: value}, (Repair(name, "the value stood alone, without its object"),)
        return (value, ()) if isinstance(value, dict) else (None, ())


def _first_of_each(text: str) -> dict[str, JsonValue] | None:
    """The members of an object, where one comes twice; ``None`` where none does, or it is not strict JSON."""
    outermost: list[tuple[str, JsonValue]] = []

    def keep(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        outermost[:] = pairs  # objects are closed from the inside out
        return dict(pairs)

    try:
        whole = json.loads(text, object_pairs_hook=keep, strict=False)  # line breaks in strings are forgiven
    except (ValueError, RecursionError):
        return None
    repeated = isinstance(whole, dict) and len(cast("dict[str, JsonValue]", whole)) < len(outermost)
    return dict(reversed(outermost)) if repeated else None


def _without_constants(read: Callable[[str], dict[str, Any]], text: str) -> dict[str, Any]:
    if has_constants(text):
        raise ValueError("the text may hold NaN")
    return read(text)


def _member(codec: FieldCodec, members: Mapping[str, JsonValue], strict: bool) -> Read:
    name = codec.field.name
    if name in members:
        return codec.load(members[name], strict=strict)
    if codec.field.required:
        raise ValueReadError("the field is missing from the answer")
    return Read(_default(codec))


def _default(codec: FieldCodec) -> Any:
    return codec.field.default_value() if codec.field.has_default else None


def _member_type(spec: FieldSpec) -> Any:
    from pydantic import Field

    chosen = () if spec.info.discriminator is None else (Field(discriminator=spec.info.discriminator),)
    kind: Any = Annotated[(spec.annotation, *spec.metadata, *chosen)] if spec.metadata or chosen else spec.annotation
    return kind if spec.required else NotRequired[kind]


def _is_settled(codec: FieldCodec) -> bool:
    """Whether pydantic alone may read the field."""
    if isinstance(codec, _StringCodec):
        return True
    return isinstance(codec, (_JsonCodec, _TextValueCodec)) and codec.typed.settled


def _read_options(spec: FieldSpec) -> Mapping[str, bool]:
    return {} if spec.annotation is str else compiled(spec).read_options
