"""Compiled fields and signatures: ``FieldSpec`` and ``SignatureSpec``, the immutable view that adapters read.

``compile_field`` makes a ``FieldSpec`` of name, annotation and declaration. ``FieldSpec.adapter`` builds the validator on
first use. A field of a plain type without a declaration (``compile_bare``) does not import pydantic before that: loading
pydantic is a large part of a first call.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, cast

from sigwire.core.foreign_names import DIRECTION_KEY
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.record import FieldValue, FieldValues, dump_fields, is_same, to_plain
from sigwire.core.typed_dict import TypeExpression
from sigwire.errors import FieldDefinitionError, SignatureError
from sigwire.signatures.annotations import allows_none, is_untyped
from sigwire.signatures.declarations import (
    ADDED_KEY,
    AT_CALL_KEY,
    REPEATS_KEY,
    UNSET,
    Unset,
    declare,
    direction_of,
    extra_of,
    redeclare,
)
from sigwire.signatures.json_form import JsonForm
from sigwire.signatures.roles import Direction, Role, check_fillable, fillable_form, role_of, validated_as
from sigwire.signatures.types.history import History, changed_turns

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.fields import FieldInfo

__all__ = [
    "CHECKS", "FieldSpec", "SignatureSpec", "check_roles", "compile_bare", "compile_field", "fields_of", "infer_prefix",
    "list_names", "make_spec", "plain_history", "recompile", "replace_fields", "restored", "typed_history",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field, compiled and immutable.

    ``annotation``: the type without ``Annotated``; ``info``: pydantic's ``FieldInfo`` with the constraints;
    ``description``: ``""`` if none was given; ``default``: ``UNSET`` if there is none; ``required``: false for a field
    with a default and for an output that allows ``None``; ``constraints``: the limits as text.

    >>> from sigwire.signatures.signature import Signature
    >>> score = Signature("text -> score: float").spec.outputs[0]
    >>> score.name, score.annotation, score.role, score.required
    ('score', <class 'float'>, 'value', True)
    >>> score.adapter.validate_json("0.5")
    0.5
    """

    name: str
    annotation: TypeExpression = field(hash=False)
    direction: Direction
    role: Role = "value"
    description: str = ""
    default: FieldValue = field(default=UNSET, hash=False)
    default_factory: Callable[[], object] | None = None
    required: bool = True
    nullable: bool = False
    constraints: str = ""
    prefix: str = ""
    metadata: tuple[object, ...] = field(default=(), hash=False, repr=False)
    _info: FieldInfo | None = field(default=None, compare=False, repr=False)
    _adapter: TypeAdapter[Any] | None = field(default=None, init=False, compare=False, repr=False)
    _json_form: JsonForm | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def info(self) -> FieldInfo:
        """The declaration with the key of its direction; for a plain field made on first use."""
        info = self._info
        if info is None:
            from pydantic.fields import FieldInfo

            bare = FieldInfo.from_annotated_attribute(self.annotation, declare(self.direction))
            info = _completed_info(bare, self.name, self.direction)
            object.__setattr__(self, "_info", info)
        return info

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """The validator of values, with the constraints; built on first use."""
        adapter = self._adapter
        if adapter is None:
            adapter = self._build_adapter()
            object.__setattr__(self, "_adapter", adapter)
        return adapter

    @property
    def value_type(self) -> TypeExpression:
        """The type of values with its constraints, as pydantic validates it."""
        metadata = self.metadata
        if self._info is not None and self._info.discriminator is not None:
            from pydantic import Field

            metadata = (*metadata, Field(discriminator=self._info.discriminator))
        target = validated_as(self.annotation, self.role)
        annotated: TypeExpression = Annotated
        return annotated[(target, *metadata)] if metadata else target

    @property
    def is_added(self) -> bool:
        """Whether a module added the output to the signature of its user, as ``ChainOfThought`` adds ``reasoning``."""
        return self._info is not None and ADDED_KEY in extra_of(self._info)

    @property
    def repeats(self) -> bool:
        """Whether many calls have the same value of the input."""
        return self._info is not None and bool(extra_of(self._info).get(REPEATS_KEY))

    def _build_adapter(self) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        if self.direction == "output" and self.role == "value":
            check_fillable(self.annotation, self.name)
        try:
            return TypeAdapter(self.value_type)
        except (PydanticUserError, TypeError) as error:
            raise FieldDefinitionError(
                f"Field {self.name!r}: values of {self.annotation!r} cannot be validated: {error}. "
                "Use a type that pydantic supports, with constraints for that type."
            ) from error

    @property
    def json_form(self) -> JsonForm:
        """How values are written as JSON and read again, in prompts and in files; built on first use."""
        form = self._json_form
        if form is None:
            form = JsonForm.of(self.adapter, self.annotation, self.metadata)
            object.__setattr__(self, "_json_form", form)
        return form

    def dump(self, value: object) -> JsonValue:
        """Return the JSON of a value by the declared type, as in a prompt; ``load`` decodes it.

        A value of another type is written by its own type. Not finite numbers stay floats. Raises ``ValueError`` for a value
        without a JSON form.
        """
        if value is None or self.role != "value" or (self._is_scalar and type(value) in _SCALARS):
            return cast(JsonValue, to_plain(value))
        return self.json_form.dump(value)

    def load(self, value: object) -> FieldValue:
        """Decode a JSON value to the declared type. Bytes are base64 text in JSON. Raises ``ValueError`` if it does not fit."""
        if self._is_scalar and type(value) is self.annotation:
            return value
        return self.json_form.load(value)

    def restore(self, plain: JsonValue, write: Callable[[JsonValue], JsonValue] | None = None) -> FieldValue:
        """Decode what ``dump`` wrote. JSON that does not fit, or that the type writes in another way, is unchanged.

        ``write``: what was done to the JSON after ``dump``.

        >>> from sigwire.signatures.signature import Signature
        >>> score = Signature("text -> score: float").spec.outputs[0]
        >>> score.restore(0.5), score.restore("high")
        (0.5, 'high')
        """
        if plain is None or self.role == "tools":
            return plain
        try:
            made = self.load(plain)
            again = self.dump(made)
            return made if is_same(again if write is None else write(again), plain) else plain
        except Exception:  # a validator of the user may raise anything
            return plain

    @property
    def is_untyped(self) -> bool:
        """Whether a part of the type is untyped: its values are JSON data outside of the program that made them."""
        return is_untyped(self.annotation)

    def reads_back(self, value: object, plain: JsonValue) -> bool:
        """Return True if ``load`` makes an equal value of ``plain``, the JSON of a value."""
        if value is None or (self._is_scalar and type(value) is self.annotation):
            return True
        try:
            return is_same(self.load(plain), value)
        except Exception:  # as above
            return False

    @property
    def _is_scalar(self) -> bool:
        return not self.metadata and any(self.annotation is kind for kind in _SCALARS)

    @property
    def has_default(self) -> bool:
        """Whether the field has a default."""
        return self.default is not UNSET or self.default_factory is not None

    def default_value(self) -> FieldValue:
        """Return a fresh default: a copy of ``default``, or the factory's value; ``UNSET`` without a default."""
        if self.default_factory is not None:
            return self.default_factory()
        if self.default is None or type(self.default) in _IMMUTABLE:
            return self.default
        return copy.deepcopy(self.default)

    def __getstate__(self) -> list[object]:
        # Validators are rebuilt after unpickling: not all of them can be pickled.
        return [getattr(self, name) for name in self.__slots__ if name not in _BUILT] + [None] * len(_BUILT)

    def __setstate__(self, state: list[object]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            object.__setattr__(self, name, value)


_IMMUTABLE = (str, int, float, bool, Unset)
_SCALARS = (str, int, float, bool)
_BUILT = ("_adapter", "_json_form")  # the last slots


def compile_field(name: str, annotation: TypeExpression, declared: FieldInfo) -> FieldSpec:
    """Compile one field. ``Annotated`` metadata of the annotation are added to the constraints of the declaration."""
    from pydantic.fields import FieldInfo
    from pydantic_core import PydanticUndefined

    direction = direction_of(declared)
    assert direction is not None
    info = _completed_info(FieldInfo.from_annotated_attribute(annotation, declared), name, direction)
    if direction == "output":
        info.annotation = fillable_form(info.annotation)
    role = role_of(info.annotation, name, direction, at_call=AT_CALL_KEY in extra_of(info))
    default = UNSET if info.default is PydanticUndefined or info.default is ... else info.default
    factory = cast("Callable[[], object] | None", info.default_factory)
    nullable = allows_none(info.annotation)
    spec = FieldSpec(
        name=name,
        annotation=info.annotation,
        direction=direction,
        role=role,
        description="" if (described := str(extra_of(info)["desc"])) == f"${{{name}}}" else described,
        default=default,
        default_factory=factory,
        required=default is UNSET and factory is None and not (nullable and direction == "output"),
        nullable=nullable,
        constraints=_constraints_text(info),
        prefix=str(extra_of(info)["prefix"]),
        metadata=tuple(info.metadata),
        _info=info,
    )
    for check in CHECKS:
        check(spec)
    return spec


CHECKS: list[Callable[[FieldSpec], None]] = []
"""Checks of compiled fields, by files of this package that few programs load."""

_PLAIN = (bool, float, int, str)


def compile_bare(name: str, annotation: TypeExpression, direction: Direction) -> FieldSpec:
    """Compile a field that is declared by its type only. Plain types need no pydantic, which loads slowly.

    >>> from sigwire.signatures.declarations import OutputField
    >>> compile_bare("answer", str, "output") == compile_field("answer", str, OutputField())
    True
    """
    if not any(annotation is kind for kind in _PLAIN):
        return compile_field(name, annotation, declare(direction))
    return FieldSpec(name, annotation, direction, prefix=_default_prefix(name))


def _completed_info(info: FieldInfo, name: str, direction: Direction) -> FieldInfo:
    """Return a copy of the declaration with the key of its direction. A copy, because signatures may share a declaration."""
    info = copy.copy(info)
    extra = dict(extra_of(info))
    extra[DIRECTION_KEY] = direction
    extra["desc"] = extra.get("desc") or info.description or f"${{{name}}}"
    extra["prefix"] = extra.get("prefix") or _default_prefix(name)
    if constraints := _constraints_text(info):
        extra["constraints"] = constraints
    info.json_schema_extra = extra
    return info


def _default_prefix(name: str) -> str:
    return f"{infer_prefix(name)}:"


_CONSTRAINTS: Mapping[str, str] = {
    "gt": "more than {}",
    "ge": "at least {}",
    "lt": "less than {}",
    "le": "at most {}",
    "multiple_of": "a multiple of {}",
    "min_length": "length at least {}",
    "max_length": "length at most {}",
    "pattern": "matching the pattern {}",
    "max_digits": "at most {} digits",
    "decimal_places": "at most {} decimal places",
}


def _constraints_text(info: FieldInfo) -> str:
    return ", ".join(
        text.format(getattr(value, "pattern", value))
        for item in info.metadata
        for name, text in _CONSTRAINTS.items()
        if (value := getattr(item, name, None)) is not None and not (name == "min_length" and value == 0)
    )


_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]+|\d+")


def infer_prefix(name: str) -> str:
    """Return a field's name as a title.

    >>> infer_prefix("camelCaseName"), infer_prefix("URLAddress"), infer_prefix("modelT45Enhanced")
    ('Camel Case Name', 'URL Address', 'Model T 45 Enhanced')
    """
    words = [word for run in _LETTERS_OR_DIGITS.findall(name) for word in _camel_words(run)]
    return " ".join(word[:1].upper() + word[1:] for word in words)


def _camel_words(run: str) -> Iterator[str]:
    """Split a run of letters into words: "camelCase" at the C, "URLAddress" before the A."""
    start = 0
    for at in range(1, len(run)):
        ends_capitals = run[at - 1].isupper() and run[at + 1 : at + 2].islower()
        if run[at].isupper() and (run[at - 1].islower() or ends_capitals):
            yield run[start:at]
            start = at
    yield run[start:]


@dataclass(frozen=True, slots=True)
class SignatureSpec:
    """A compiled signature: inputs first, then outputs; fields by special role and by name.

    ``instructions_given`` is false for default instructions. An edit makes a new spec, so the identity of a spec is a safe
    cache key.
    """

    name: str
    instructions: str
    fields: tuple[FieldSpec, ...]
    instructions_given: bool = True
    inputs: tuple[FieldSpec, ...] = field(init=False, compare=False, repr=False)
    outputs: tuple[FieldSpec, ...] = field(init=False, compare=False, repr=False)
    tools_field: FieldSpec | None = field(init=False, compare=False, repr=False)
    calls_field: FieldSpec | None = field(init=False, compare=False, repr=False)
    history_field: FieldSpec | None = field(init=False, compare=False, repr=False)
    reasoning_field: FieldSpec | None = field(init=False, compare=False, repr=False)
    by_name: Mapping[str, FieldSpec] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        derived = {
            "inputs": tuple(spec for spec in self.fields if spec.direction == "input"),
            "outputs": tuple(spec for spec in self.fields if spec.direction == "output"),
            "tools_field": self._first_with_role("tools"),
            "calls_field": self._first_with_role("tool_calls"),
            "history_field": self._first_with_role("history"),
            "reasoning_field": self._first_with_role("reasoning"),
            "by_name": {spec.name: spec for spec in self.fields},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def _first_with_role(self, role: Role) -> FieldSpec | None:
        return next((spec for spec in self.fields if spec.role == role), None)

    @property
    def sent_outputs(self) -> tuple[FieldSpec, ...]:
        """The outputs that a tool sends of a result: all but those that a module added."""
        return tuple(spec for spec in self.outputs if not spec.is_added)

    def field(self, name: str) -> FieldSpec:
        """Return the field of that name. Raises ``KeyError`` with the names of all fields."""
        try:
            return self.by_name[name]
        except KeyError:
            raise KeyError(f"{self.name} has no field {name!r}; it has {', '.join(self.by_name) or 'none'}.") from None

    def dump(self, fields: FieldValues) -> JsonObject:
        """Return values as JSON by the declared types, values of other names by their own; ``load`` decodes them.

        Raises ``ValueError`` with the name of a field whose value has no JSON form.
        """
        return dump_fields(fields, self._dumped)

    def _dumped(self, name: str, value: object) -> JsonValue:
        if isinstance(value, History):
            value = self.plain_history(value)
        spec = self.by_name.get(name)
        return cast(JsonValue, to_plain(value)) if spec is None else spec.dump(value)

    def load(self, fields: FieldValues) -> dict[str, FieldValue]:
        """Decode JSON values to the declared types; values of other names are unchanged.

        Raises ``ValueError`` with the name of a field whose value does not fit.

        >>> from sigwire.signatures.signature import Signature
        >>> Signature("a -> when: datetime.date", custom_types={"datetime": __import__("datetime")}).spec.load(
        ...     {"when": "2026-01-02"}
        ... )
        {'when': datetime.date(2026, 1, 2)}
        """
        known = self.by_name
        return {name: self._loaded(known[name], value) if name in known else value for name, value in fields.items()}

    def _loaded(self, spec: FieldSpec, value: FieldValue) -> FieldValue:
        try:
            made = value if value is None else spec.load(value)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"The field {spec.name!r} cannot be read from {value!r:.60}: {error} (reading JSON). Read it with the "
                "signature that it was written with."
            ) from error
        return self.typed_history(made) if isinstance(made, History) else made

    def restore(self, fields: FieldValues) -> dict[str, FieldValue]:
        """Decode what ``dump`` wrote; see ``FieldSpec.restore``. Values of other names are unchanged.

        >>> from sigwire.signatures.signature import Signature
        >>> Signature("a -> score: float").spec.restore({"score": "high", "augmented": True})
        {'score': 'high', 'augmented': True}
        """
        return restored(fields, self.by_name)

    def plain_history(self, history: History) -> History:
        """Return a history with the values of declared fields as JSON by their types; ``typed_history`` decodes them."""
        return plain_history(history, self.by_name)

    def typed_history(self, history: History) -> History:
        """Return a history with the JSON values of declared fields by their types."""
        return typed_history(history, self.by_name)


def restored(fields: FieldValues, known: Mapping[str, FieldSpec]) -> dict[str, FieldValue]:
    """Decode what ``FieldSpec.dump`` wrote of the fields in ``known``; see ``FieldSpec.restore``. Others are unchanged."""
    found = {name: known[name].restore(value) if name in known else value for name, value in fields.items()}  # type: ignore[arg-type]
    return {name: typed_history(value, known) if isinstance(value, History) else value for name, value in found.items()}


def plain_history(history: History, known: Mapping[str, FieldSpec]) -> History:
    """Return a history with the values of the fields in ``known`` as JSON by their types; ``typed_history`` decodes them."""

    def plain(turn: FieldValues) -> dict[str, FieldValue]:
        return {
            name: known[name].dump(value) if name in known and known[name].role == "value" else value
            for name, value in turn.items()
        }

    return changed_turns(history, plain)


def typed_history(history: History, known: Mapping[str, FieldSpec]) -> History:
    """Return a history with the JSON values of the fields in ``known`` by their types."""
    return changed_turns(history, lambda turn: restored(turn, known))


def check_roles(signature: str, fields: Iterable[FieldSpec]) -> None:
    """Raise ``SignatureError`` if the fields contradict each other.

    >>> from sigwire.signatures.signature import Signature
    >>> Signature("question -> calls: ToolCalls")
    Traceback (most recent call last):
    sigwire.errors.SignatureError: StringSignature: the output 'calls' needs tool calls, but no input offers tools. \
Add an input such as tools: list[Tool].
    """
    by_role: dict[Role, list[str]] = {}
    for spec in fields:
        by_role.setdefault(spec.role, []).append(spec.name)
    for role in ("tools", "tool_calls", "history"):
        if len(names := by_role.get(role, [])) > 1:
            raise SignatureError(
                f"{signature}: {', '.join(map(repr, names))} are all {role.replace('_', ' ')} fields. "
                f"A signature has at most one; remove {' and '.join(map(repr, names[1:]))}."
            )
    if "tool_calls" in by_role and "tools" not in by_role:
        raise SignatureError(
            f"{signature}: the output {by_role['tool_calls'][0]!r} needs tool calls, but no input offers tools. "
            "Add an input such as tools: list[Tool]."
        )


def make_spec(name: str, fields: Iterable[FieldSpec], instructions: str | None) -> SignatureSpec:
    """Return a checked spec with inputs before outputs. ``None``: default instructions."""
    fields = tuple(fields)
    check_roles(name, fields)
    ordered = (*fields_of(fields, "input"), *fields_of(fields, "output"))
    text = _default_instructions(ordered) if instructions is None else instructions
    return SignatureSpec(name, text, ordered, instructions is not None)


def fields_of(fields: Iterable[FieldSpec], direction: str) -> tuple[FieldSpec, ...]:
    """Return the fields of one direction."""
    return tuple(spec for spec in fields if spec.direction == direction)


def _default_instructions(fields: Iterable[FieldSpec]) -> str:
    """Return instructions that name the fields. Tools and history are not named: they are not text in the prompt."""
    shown = [spec for spec in fields if spec.role not in ("tools", "tool_calls", "history")]
    inputs, outputs = (", ".join(f"`{spec.name}`" for spec in fields_of(shown, side)) for side in ("input", "output"))
    calls = any(spec.role == "tool_calls" for spec in fields)
    use = f"Use {inputs} to " if inputs else ""
    if not outputs:
        return _capitalize(f"{use}decide which tools to call.") if calls else f"Read {inputs}." if inputs else ""
    return _capitalize(f"{use}write {outputs}{', calling tools where they help' if calls else ''}.")


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def replace_fields(spec: SignatureSpec, fields: Iterable[FieldSpec]) -> SignatureSpec:
    """Return the spec with other fields. Default instructions are made again."""
    return make_spec(spec.name, fields, spec.instructions if spec.instructions_given else None)


def recompile(old: FieldSpec, annotation: TypeExpression, changes: Mapping[str, Any]) -> FieldSpec:
    """Return the field with another type or changed options; other options are kept."""
    declared = redeclare(old.info, changes)
    if annotation is not old.info.annotation:
        declared.annotation = None
    return compile_field(old.name, annotation, declared)


def list_names(fields: Iterable[FieldSpec]) -> str:
    """Return the names, separated by commas."""
    return ", ".join(spec.name for spec in fields)
