"""Fields: what a user declares (InputField, OutputField) and what the library reads (FieldSpec, SignatureSpec).

A declaration is a pydantic ``FieldInfo`` marked with its direction, so every pydantic constraint works as it does
there. ``compile_field`` turns name, annotation and declaration into a ``FieldSpec``; from then on nobody needs pydantic
until a value is validated: ``FieldSpec.adapter`` builds its validator on first use, constraints included. A field of a plain
type of which nothing is declared (``compile_bare``) needs it no earlier either: loading it is a good part of a first call.
"""

from __future__ import annotations

import copy
import dataclasses
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast, get_args

from sigwire.core.json import dumps
from sigwire.errors import FieldDefinitionError
from sigwire.signatures.roles import Role, allows_none, role_of, validated_as
from sigwire.signatures.types.base import as_mapping

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.fields import FieldInfo

__all__ = [
    "UNSET",
    "Direction",
    "FieldSpec",
    "InputField",
    "OutputField",
    "SignatureSpec",
    "Unset",
    "compile_bare",
    "compile_field",
    "declare",
    "direction_of",
    "infer_prefix",
    "redeclare",
]

Direction: TypeAlias = Literal["input", "output"]

DIRECTION_KEY = "__dspy_field_type"  # DSPy's name for it: tools that read DSPy signatures look here


class Unset(Enum):
    """The type of ``UNSET``."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET
"""No value was given; ``None`` is a value."""


# --- declaring -----------------------------------------------------------------------------------


def InputField(  # noqa: N802  (DSPy's and dataclass_transform's name for it)
    *,
    desc: str | None = None,
    default: Any = UNSET,
    default_factory: Callable[[], Any] | None = None,
    init: Literal[True] = True,
    **constraints: Any,
) -> Any:
    """Declare an input of a signature class.

    ``desc`` (or pydantic's ``description``) tells the model what the field means. ``default`` or ``default_factory``
    makes it optional. ``constraints`` are pydantic's: ``gt ge lt le multiple_of min_length max_length pattern ...``;
    they are shown to the model. Any other keyword is kept in ``json_schema_extra``. ``init`` is for type checkers only.

    >>> from sigwire.signatures.signature import Signature
    >>> class Search(Signature):
    ...     '''Find passages.'''
    ...     query: str = InputField(desc="what to look for")
    ...     k: int = InputField(default=3, ge=1)
    ...     passages: list[str] = OutputField()
    >>> Search.spec.field("k").constraints
    'at least 1'
    """
    return declare("input", desc=desc, default=default, default_factory=default_factory, **constraints)


def OutputField(  # noqa: N802
    *,
    desc: str | None = None,
    default: Any = UNSET,
    default_factory: Callable[[], Any] | None = None,
    init: Literal[False] = False,
    **constraints: Any,
) -> Any:
    """Declare an output of a signature class; keywords as for ``InputField``.

    Constraints are shown to the model *and* enforced on its answer. A default stands in where the answer lacks the
    field.
    """
    return declare("output", desc=desc, default=default, default_factory=default_factory, **constraints)


_LEGACY = ("prefix", "format", "parser")
_PYDANTIC = frozenset(
    "alias alias_priority validation_alias serialization_alias title field_title_generator examples exclude "
    "discriminator deprecated frozen validate_default repr pattern strict coerce_numbers_to_str gt ge lt le "
    "multiple_of allow_inf_nan max_digits decimal_places min_length max_length union_mode fail_fast".split()
)


def declare(direction: Direction, **options: Any) -> FieldInfo:
    """The marked ``FieldInfo`` of a field; what ``InputField`` and ``OutputField`` return."""
    from pydantic import Field

    for name in _LEGACY:
        if name in options:
            warnings.warn(
                f"{name}= has no effect on a field; describe it with desc=.", DeprecationWarning, stacklevel=3
            )
            del options[name]
    given = {
        name: options.pop(name) for name in ("default", "default_factory") if _is_given(options.get(name, UNSET), name)
    }
    options = {name: value for name, value in options.items() if name not in ("default", "default_factory")}
    description = _first_given(options.pop("desc", None), options.pop("description", None))
    extra = dict(options.pop("json_schema_extra", None) or {})
    extra |= {name: options.pop(name) for name in list(options) if name not in _PYDANTIC}
    extra[DIRECTION_KEY] = direction
    if description is not None:
        extra["desc"] = given["description"] = description
    info: FieldInfo = Field(**given, **options, json_schema_extra=extra)
    return info


def _is_given(value: Any, name: str) -> bool:
    # ``default=...`` is pydantic's way to say "required"; ``default=None`` is a default.
    return value is not UNSET and value is not ... and not (value is None and name == "default_factory")


def _first_given(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def redeclare(declared: FieldInfo, changes: Mapping[str, Any]) -> FieldInfo:
    """A declaration with some of its options changed; a constraint that is changed to ``None`` is gone.

    >>> redeclared(OutputField(ge=1, le=5), {"ge": 2, "le": None}).metadata
    [Ge(ge=2)]
    """
    # DSPy's way to set a text that optimizers wrote; a declaration has no place for it.
    kept = {name: changes[name] for name in _LEGACY if name in changes}
    given = {name: value for name, value in changes.items() if name not in _LEGACY}
    extra = {**_extra(declared), **given.pop("json_schema_extra", {}), **kept}
    extra.pop("constraints", None)  # written anew when the field is compiled
    options = {**_attributes(declared, given), **given, "json_schema_extra": extra}
    new = declare(cast("Direction", direction_of(declared)), **options)
    new.metadata = [*_without(declared.metadata, given.keys()), *new.metadata]
    return new


_ATTRIBUTES = (
    "default", "default_factory", "alias", "alias_priority", "validation_alias", "serialization_alias", "title",
    "field_title_generator", "description", "examples", "exclude", "discriminator", "deprecated", "frozen",
    "validate_default", "repr",
)  # fmt: skip
_EITHER = {"default": "default_factory", "default_factory": "default", "desc": "description"}


def _attributes(info: FieldInfo, changed: Collection[str]) -> dict[str, Any]:
    """What a declaration says beside its constraints, without what is changed or stands in the way of a change."""
    from pydantic import Field

    blank: Any = Field()
    gone = {*changed, *(_EITHER[name] for name in changed if name in _EITHER)}
    said = {name: getattr(info, name) for name in _ATTRIBUTES if name not in gone}
    return {name: value for name, value in said.items() if value is not getattr(blank, name)}


def _without(metadata: list[Any], names: Collection[str]) -> Iterator[Any]:
    """Constraints without those of some names."""
    for item in metadata:
        dropped = [name for name in names if getattr(item, name, None) is not None]
        if not dropped:
            yield item
        elif dataclasses.is_dataclass(item) and len(dataclasses.fields(item)) > 1:  # Len, Interval, StringConstraints
            defaults = {field.name: field.default for field in dataclasses.fields(item)}
            yield dataclasses.replace(cast(Any, item), **{name: defaults[name] for name in dropped})
        elif left := {name: value for name, value in _parts(item).items() if name not in dropped}:
            yield type(item)(**left)


def _parts(item: Any) -> dict[str, Any]:
    """The constraints that pydantic keeps in one object of its own; none for a constraint that is an object by itself."""
    return {} if dataclasses.is_dataclass(item) else dict(cast("dict[str, Any]", item.__dict__))


def direction_of(value: object) -> Direction | None:
    """The direction of a value made by ``InputField`` or ``OutputField``; ``None`` for everything else.

    >>> direction_of(OutputField()), direction_of(3)
    ('output', None)
    """
    extra = as_mapping(getattr(value, "json_schema_extra", None)) or {}
    direction = extra.get(DIRECTION_KEY)
    return direction if direction in ("input", "output") else None


# --- compiled ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field, resolved and immutable.

    ``annotation`` is the type without ``Annotated`` around it; ``info`` is pydantic's ``FieldInfo`` with the
    constraints. ``description`` is ``""`` when none was given, ``default`` is ``UNSET`` when there is none.
    ``required`` is false for a field with a default and for an output whose type admits ``None``. ``constraints`` says
    the limits in words.

    >>> from sigwire.signatures.signature import Signature
    >>> score = Signature("text -> score: float").spec.outputs[0]
    >>> score.name, score.annotation, score.role, score.required
    ('score', <class 'float'>, 'value', True)
    >>> score.adapter.validate_json("0.5")
    0.5
    """

    name: str
    annotation: Any = field(hash=False)
    direction: Direction
    role: Role
    description: str
    default: Any = field(hash=False)
    default_factory: Callable[[], Any] | None
    required: bool
    nullable: bool
    constraints: str
    prefix: str
    metadata: tuple[Any, ...] = field(hash=False, repr=False)
    _info: FieldInfo | None = field(compare=False, repr=False)
    _adapter: TypeAdapter[Any] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def info(self) -> FieldInfo:
        """The declaration, with DSPy's keys filled in; of a plain field it is made on first use."""
        info = self._info
        if info is None:
            from pydantic.fields import FieldInfo

            bare = FieldInfo.from_annotated_attribute(self.annotation, declare(self.direction))
            info = _shared_info(bare, self.name, self.direction)
            object.__setattr__(self, "_info", info)
        return info

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """The validator of the field's values, constraints included; built on first use."""
        adapter = self._adapter
        if adapter is None:
            adapter = self._build_adapter()
            object.__setattr__(self, "_adapter", adapter)
        return adapter

    def _build_adapter(self) -> TypeAdapter[Any]:
        from pydantic import Field, TypeAdapter
        from pydantic.errors import PydanticUserError

        metadata = self.metadata
        if self.info.discriminator is not None:
            metadata = (*metadata, Field(discriminator=self.info.discriminator))
        target = validated_as(self.annotation, self.role)
        annotated: Any = Annotated
        try:
            return TypeAdapter(annotated[(target, *metadata)] if metadata else target)
        except (PydanticUserError, TypeError) as fault:
            raise FieldDefinitionError(
                f"Field {self.name!r}: values of {self.annotation!r} cannot be validated: {fault}. "
                "Use a type pydantic knows, and constraints that fit it."
            ) from fault

    def load(self, value: Any) -> Any:
        """A value out of JSON as the declared type; bytes stand in base64 there."""
        if not _holds_bytes(self.annotation):
            return self.adapter.validate_python(value)
        from pydantic import ConfigDict, TypeAdapter

        return TypeAdapter[Any](self.annotation, config=ConfigDict(val_json_bytes="base64")).validate_json(dumps(value))

    @property
    def has_default(self) -> bool:
        """Whether a value stands in when none is given."""
        return self.default is not UNSET or self.default_factory is not None

    def default_value(self) -> Any:
        """A fresh default: a copy of ``default``, or what the factory makes; ``UNSET`` when there is neither."""
        if self.default_factory is not None:
            return self.default_factory()
        if self.default is None or type(self.default) in _IMMUTABLE:
            return self.default
        return copy.deepcopy(self.default)

    def __getstate__(self) -> list[Any]:
        # Validators are rebuilt where the field arrives; they may not survive the trip.
        return [getattr(self, name) for name in self.__slots__ if name != "_adapter"] + [None]

    def __setstate__(self, state: list[Any]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            object.__setattr__(self, name, value)


_IMMUTABLE = (str, int, float, bool, Unset)


def compile_field(name: str, annotation: Any, declared: FieldInfo) -> FieldSpec:
    """Resolve one field. ``annotation`` may carry ``Annotated`` metadata, which joins the declaration's constraints."""
    from pydantic.fields import FieldInfo
    from pydantic_core import PydanticUndefined

    direction = direction_of(declared)
    assert direction is not None
    info = _shared_info(FieldInfo.from_annotated_attribute(annotation, declared), name, direction)
    role = role_of(info.annotation, name, direction)
    default = UNSET if info.default is PydanticUndefined or info.default is ... else info.default
    factory: Any = info.default_factory
    nullable = allows_none(info.annotation)
    return FieldSpec(
        name=name,
        annotation=info.annotation,
        direction=direction,
        role=role,
        description=_given_description(info, name),
        default=default,
        default_factory=factory,
        required=default is UNSET and factory is None and not (nullable and direction == "output"),
        nullable=nullable,
        constraints=_constraints(info),
        prefix=str(_extra(info)["prefix"]),
        metadata=tuple(info.metadata),
        _info=info,
    )


_PLAIN = (bool, float, int, str)


def compile_bare(name: str, annotation: Any, direction: Direction) -> FieldSpec:
    """Resolve a field of which nothing is declared but its type. Plain ones do without pydantic, which takes long to load.

    >>> compile_bare("answer", str, "output") == compile_field("answer", str, OutputField())
    True
    """
    if not any(annotation is kind for kind in _PLAIN):
        return compile_field(name, annotation, declare(direction))
    return FieldSpec(
        name=name,
        annotation=annotation,
        direction=direction,
        role="value",
        description="",
        default=UNSET,
        default_factory=None,
        required=True,
        nullable=False,
        constraints="",
        prefix=_prefix_of(name),
        metadata=(),
        _info=None,
    )


def _shared_info(info: FieldInfo, name: str, direction: Direction) -> FieldInfo:
    """The FieldInfo with DSPy's keys filled in. A copy, so that a declaration may serve several signatures."""
    info = copy.copy(info)
    extra = dict(_extra(info))
    extra[DIRECTION_KEY] = direction
    extra["desc"] = extra.get("desc") or info.description or f"${{{name}}}"
    extra["prefix"] = extra.get("prefix") or _prefix_of(name)
    if constraints := _constraints(info):
        extra["constraints"] = constraints
    info.json_schema_extra = extra
    return info


def _prefix_of(name: str) -> str:
    return f"{infer_prefix(name)}:"


def _extra(info: FieldInfo) -> dict[str, Any]:
    extra: Any = info.json_schema_extra
    return cast("dict[str, Any]", extra) if isinstance(extra, dict) else {}


def _given_description(info: FieldInfo, name: str) -> str:
    description = str(_extra(info)["desc"])
    return "" if description == f"${{{name}}}" else description


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


def _constraints(info: FieldInfo) -> str:
    return ", ".join(_in_words(info.metadata))


def _in_words(metadata: list[Any]) -> Iterator[str]:
    for item in metadata:
        for name, text in _CONSTRAINTS.items():
            value = getattr(item, name, None)
            if value is not None and not (name == "min_length" and value == 0):
                yield text.format(getattr(value, "pattern", value))


_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]+|\d+")


def infer_prefix(name: str) -> str:
    """A field's name as a title.

    >>> infer_prefix("camelCaseName"), infer_prefix("URLAddress"), infer_prefix("modelT45Enhanced")
    ('Camel Case Name', 'URL Address', 'Model T 45 Enhanced')
    """
    words = [word for run in _LETTERS_OR_DIGITS.findall(name) for word in _camel_words(run)]
    return " ".join(word[:1].upper() + word[1:] for word in words)


def _camel_words(run: str) -> Iterator[str]:
    """Words of a run of letters: "camelCase" at the C, "URLAddress" before the A."""
    start = 0
    for at in range(1, len(run)):
        ends_capitals = run[at - 1].isupper() and run[at + 1 : at + 2].islower()
        if run[at].isupper() and (run[at - 1].islower() or ends_capitals):
            yield run[start:at]
            start = at
    yield run[start:]


def _holds_bytes(annotation: Any) -> bool:
    """Whether bytes stand anywhere in a type; those in a user's own classes are their own business."""
    return annotation in (bytes, bytearray) or any(map(_holds_bytes, get_args(annotation)))


@dataclass(frozen=True, slots=True)
class SignatureSpec:
    """A signature, compiled: inputs first, then outputs, and which field has which special role.

    ``instructions_given`` is false when the instructions were made up from the field names. An edit makes a new spec,
    so a spec's identity is a safe cache key.
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
    by_name: Mapping[str, FieldSpec] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        derived = {
            "inputs": tuple(spec for spec in self.fields if spec.direction == "input"),
            "outputs": tuple(spec for spec in self.fields if spec.direction == "output"),
            "tools_field": self._only("tools"),
            "calls_field": self._only("tool_calls"),
            "history_field": self._only("history"),
            "by_name": {spec.name: spec for spec in self.fields},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def _only(self, role: Role) -> FieldSpec | None:
        return next((spec for spec in self.fields if spec.role == role), None)

    def field(self, name: str) -> FieldSpec:
        """The field of that name. Raises ``KeyError`` naming the fields there are."""
        try:
            return self.by_name[name]
        except KeyError:
            raise KeyError(f"{self.name} has no field {name!r}; it has {', '.join(self.by_name) or 'none'}.") from None

    def load(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Field values read from JSON as the declared types; what is not a field stays as it is.

        >>> from sigwire.signatures.signature import Signature
        >>> Signature("a -> when: datetime.date", custom_types={"datetime": __import__("datetime")}).spec.load(
        ...     {"when": "2026-01-02"}
        ... )
        {'when': datetime.date(2026, 1, 2)}
        """
        known = self.by_name
        return {
            name: known[name].load(value) if name in known and value is not None else value
            for name, value in fields.items()
        }
