"""Several fields in one JSON object: all of them by one call of pydantic, else each by its own codec. Pure.

What cannot be read is not raised: it stands beside what could, by field. Read are an object as it is asked for, one that
is wrapped in another or in a list, the value of an only field standing alone, and one whose members come twice; what was
mended is in ``repairs``, and ``strict`` refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, NotRequired, cast

from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.json_text import read_json, unwrap_candidates
from sigwire.adapters.values.type_shape import compiled, finite_validator
from sigwire.adapters.values.typed_json import ReadValue, has_constants, shorten_repr
from sigwire.core.json import JsonValue
from sigwire.core.response import Repair
from sigwire.errors import JsonReadError, ValueReadError
from sigwire.signatures.fields import FieldSpec

__all__ = ["ObjectCodec", "ObjectRead"]


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
        self._settled = all(codec.settled for codec in self._codecs.values())
        self._exactly: Callable[[str], dict[str, Any]] | None = None
        self._quoted = tuple(f'"{name}"' for name in self._codecs)

    def read(self, text: str, *, strict: bool = False) -> ObjectRead:
        """The fields in a text that is, or holds, a JSON object. Of a member that comes twice the first one counts."""
        if any(text.count(name) > 1 for name in self._quoted) and (members := _first_of_each(text)) is not None:
            if strict:
                return ObjectRead(problems={"": "a field is repeated"})
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
            problems[""] = f"not output fields: {', '.join(map(shorten_repr, strays))}"
        made += [Repair(None, f"the member {shorten_repr(name)} is not an output; it was left out") for name in strays]
        return ObjectRead(values, tuple(made), problems)

    def _members(self, value: JsonValue, strict: bool) -> tuple[dict[str, JsonValue] | None, tuple[Repair, ...]]:
        """The object with the fields: the value itself, or what it holds one level down."""
        found: list[tuple[dict[str, JsonValue], tuple[Repair, ...]]] = []
        if isinstance(value, dict):
            found.append((value, ()))
        if strict or (found and (not value or self._is_whole(found[0][0]))):
            return found[0] if found else (None, ())
        found += [(inner, (Repair(None, what),)) for inner, what in unwrap_candidates(value) if isinstance(inner, dict)]
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


def _member(codec: FieldCodec, members: Mapping[str, JsonValue], strict: bool) -> ReadValue:
    name = codec.field.name
    if name in members:
        return codec.load(members[name], strict=strict)
    if codec.field.required:
        raise ValueReadError("the field is missing")
    return ReadValue(_default(codec))


def _default(codec: FieldCodec) -> Any:
    return codec.field.default_value() if codec.field.has_default else None


def _member_type(spec: FieldSpec) -> Any:
    from pydantic import Field

    chosen = () if spec.info.discriminator is None else (Field(discriminator=spec.info.discriminator),)
    kind: Any = Annotated[(spec.annotation, *spec.metadata, *chosen)] if spec.metadata or chosen else spec.annotation
    return kind if spec.required else NotRequired[kind]


def _read_options(spec: FieldSpec) -> Mapping[str, bool]:
    return {} if spec.annotation is str else compiled(spec).read_options
