"""Several fields in one JSON object: read by one call of pydantic, else each field by its codec. Pure.

Problems are returned by field, not raised. Repairs, which ``strict`` refuses, are: an object wrapped in another or in a list,
the value of an only field without its object, and duplicate keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, NotRequired, TypeAlias, cast

from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.json_text import read_json, unwrap_candidates
from sigwire.adapters.values.type_shape import compile_type, finite_validator
from sigwire.adapters.values.typed_json import has_constants, shorten_repr
from sigwire.core.json import JsonValue
from sigwire.core.response import Repair
from sigwire.errors import JsonReadError, ValueReadError
from sigwire.signatures.fields import FieldSpec

__all__ = ["FieldReadings", "ObjectCodec"]

_Members: TypeAlias = tuple[dict[str, JsonValue] | None, tuple[Repair, ...]]


class FieldReadings:
    """The result of reading a text: values by field, repairs, and problems by field ("" for the whole text)."""

    __slots__ = ("problems", "repairs", "values")

    def __init__(
        self,
        values: dict[str, Any] | None = None,
        repairs: list[Repair] | None = None,
        problems: dict[str, str] | None = None,
    ) -> None:
        self.values = {} if values is None else values
        self.repairs = [] if repairs is None else repairs
        self.problems = {} if problems is None else problems

    def add_deviation(self, name: str | None, what: str, strict: bool) -> None:
        """Add a problem if ``strict``, else a repair; ``None``: of the whole text."""
        if strict:
            self.problems[name or ""] = what
        else:
            self.repairs.append(Repair(name, what))


class ObjectCodec:
    """Codec of a JSON object whose members are fields. ``read`` raises nothing: ``problems`` are by field.

    >>> from sigwire.signatures.signature import Signature
    >>> codec = ObjectCodec(Signature("text -> name: str, age: int").spec.outputs)
    >>> codec.read('{"name": "Ada", "age": 36}').values
    {'name': 'Ada', 'age': 36}
    >>> read = codec.read('{"name": "Ada", "age": "old"}')
    >>> read.values, read.problems
    ({'name': 'Ada'}, {'age': "should be a valid integer, unable to parse string as an integer, not 'old'"})
    """

    __slots__ = ("_codecs", "_quoted_names", "_uses_pydantic", "_validate")

    def __init__(self, fields: Sequence[FieldSpec]) -> None:
        self._codecs = {spec.name: FieldCodec(spec) for spec in fields}
        self._uses_pydantic = all(codec.is_unambiguous for codec in self._codecs.values())
        self._validate: Callable[[str], dict[str, Any]] | None = None
        self._quoted_names = tuple(f'"{name}"' for name in self._codecs)

    def read(self, text: str, *, strict: bool = False) -> FieldReadings:
        """Return the fields in a text that is, or holds, a JSON object. Of duplicate keys the first one counts."""
        may_repeat = any(text.count(name) > 1 for name in self._quoted_names)
        if may_repeat and (members := _first_of_duplicates(text)) is not None:
            if strict:
                return FieldReadings(problems={"": "a field is repeated"})
            return self._read_members(members, (Repair(None, "a member came twice; the first one counts"),), strict)
        if self._uses_pydantic and (found := self._read_exact(text)):
            return found
        try:
            value, repairs = read_json(text, strict, kind=None if len(self._codecs) == 1 else "object")
        except JsonReadError as fault:
            return FieldReadings(problems={"": str(fault)})
        return self._read_members(value, repairs, strict)

    def _read_exact(self, text: str) -> FieldReadings | None:
        """Read all fields by one call of pydantic; ``None`` if a member does not fit exactly."""
        try:
            found = (self._validate or self._compile())(text)
        except ValueError:
            return None
        if found.keys() == self._codecs.keys():
            return FieldReadings(found)
        if not found or not found.keys() <= self._codecs.keys():
            return None
        return FieldReadings(
            {name: found[name] if name in found else c.load_member({}).value for name, c in self._codecs.items()}
        )

    def _compile(self) -> Callable[[str], dict[str, Any]]:
        from pydantic import ConfigDict, TypeAdapter, with_config
        from typing_extensions import TypedDict

        make: Any = TypedDict  # type checkers require literal members
        record = make("Outputs", {name: _member_type(codec.field) for name, codec in self._codecs.items()})
        config = ConfigDict(extra="allow", ser_json_bytes="base64", val_json_bytes="base64")
        adapter = TypeAdapter[dict[str, Any]](with_config(config)(record))
        options: dict[str, Any] = {}
        for codec in self._codecs.values():
            options |= {} if codec.field.annotation is str else compile_type(codec.field).read_options
        validator, finite = finite_validator(adapter)
        validate: Callable[[str], dict[str, Any]] = partial(validator.validate_json, strict=True, **options)
        self._validate = validate if finite else partial(_validate_without_constants, validate)
        return self._validate

    def _read_members(self, value: JsonValue, repairs: Sequence[Repair], strict: bool) -> FieldReadings:
        members, found = self._members(value, strict)
        if members is None:
            names = ", ".join(map(repr, self._codecs))
            return FieldReadings(problems={"": f"the answer should be a JSON object with the members {names}"})
        values: dict[str, Any] = {}
        problems: dict[str, str] = {}
        made = [*repairs, *found]
        for name, codec in self._codecs.items():
            try:
                read = codec.load_member(members, strict=strict)
            except ValueReadError as fault:
                problems[name] = str(fault)
            else:
                values[name] = read.value
                made += read.repairs
        unknown = [name for name in members if name not in self._codecs]
        if unknown and strict:
            problems[""] = f"not output fields: {', '.join(map(shorten_repr, unknown))}"
        made += [Repair(None, f"the member {shorten_repr(name)} is not an output; it was left out") for name in unknown]
        return FieldReadings(values, made, problems)

    def _members(self, value: JsonValue, strict: bool) -> _Members:
        """Return the object with the fields: the value, or an object one level inside."""
        own = value if isinstance(value, dict) else None
        if strict or (own is not None and (not own or self._is_complete(own))):
            return own, ()
        inner = [(each, (Repair(None, what),)) for each, what in unwrap_candidates(value) if isinstance(each, dict)]
        return self._best_of([*([] if own is None else [(own, ())]), *inner]) or self._only_value(value)

    def _best_of(self, objects: Sequence[tuple[dict[str, JsonValue], tuple[Repair, ...]]]) -> _Members | None:
        complete = [each for each in objects if self._is_complete(each[0])]
        partial = [each for each in objects if each[0].keys() & self._codecs.keys()]
        return next(iter([*complete, *partial]), None)

    def _is_complete(self, members: dict[str, JsonValue]) -> bool:
        """Return True if an object has every required field, and at least one field."""
        known = members.keys() & self._codecs.keys()
        return bool(known) and all(name in members for name, codec in self._codecs.items() if codec.field.required)

    def _only_value(self, value: JsonValue) -> _Members:
        """Return an object with the only field, if the value is that field's without its object."""
        if len(self._codecs) == 1:
            name, codec = next(iter(self._codecs.items()))
            try:
                codec.load(value)
            except ValueReadError:
                pass
            else:
                return {name: value}, (Repair(name, "the value stood alone, without its object"),)
        return (value, ()) if isinstance(value, dict) else (None, ())


def _first_of_duplicates(text: str) -> dict[str, JsonValue] | None:
    """Return the members of an object with duplicate keys; ``None`` if there are none, or the text is not strict JSON."""
    outermost: list[tuple[str, JsonValue]] = []

    def keep(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        outermost[:] = pairs  # the outermost object is the last one
        return dict(pairs)

    try:
        whole = json.loads(text, object_pairs_hook=keep, strict=False)  # accepts line breaks in strings
    except (ValueError, RecursionError):
        return None
    repeated = isinstance(whole, dict) and len(cast("dict[str, JsonValue]", whole)) < len(outermost)
    return dict(reversed(outermost)) if repeated else None


def _validate_without_constants(validate: Callable[[str], dict[str, Any]], text: str) -> dict[str, Any]:
    if has_constants(text):
        raise ValueError("the text may hold NaN")
    return validate(text)


def _member_type(spec: FieldSpec) -> Any:
    from pydantic import Field

    chosen = () if spec.info.discriminator is None else (Field(discriminator=spec.info.discriminator),)
    kind: Any = Annotated[(spec.annotation, *spec.metadata, *chosen)] if spec.metadata or chosen else spec.annotation
    return kind if spec.required else NotRequired[kind]
