"""Declarations of fields: ``InputField`` and ``OutputField``.

A declaration is a pydantic ``FieldInfo`` marked with its direction, so pydantic's constraints work unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from sigwire.core.foreign_names import DIRECTION_KEY
from sigwire.core.narrow import is_mapping, is_object
from sigwire.core.record import UNSET, Unset
from sigwire.errors import warn_user
from sigwire.signatures.roles import Direction

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = [
    "ADDED_KEY", "AT_CALL_KEY", "REPEATS_KEY", "UNSET", "InputField", "OutputField", "Unset", "added_output", "declare",
    "direction_of", "extra_of", "redeclare",
]  # fmt: skip


def InputField(  # noqa: N802  (dataclass_transform's name for it)
    *,
    desc: str | None = None,
    default: object = UNSET,
    default_factory: Callable[[], object] | None = None,
    init: Literal[True] = True,
    repeats: bool = False,
    **constraints: Any,
) -> Any:
    """Declare an input of a signature class.

    ``desc`` (or pydantic's ``description``) describes the field to the model. ``default`` or ``default_factory`` makes the
    field optional. ``constraints`` are pydantic's, and shown to the model: ``gt ge lt le multiple_of min_length max_length
    pattern ...``. Other keywords are kept in ``json_schema_extra``. ``init`` is for type checkers only. ``repeats=True``: many
    calls have the same value, such as a document. It is sent before other inputs, and the provider's prompt cache is marked
    behind it.

    >>> from sigwire.signatures.signature import Signature
    >>> class Search(Signature):
    ...     '''Find passages.'''
    ...     query: str = InputField(desc="what to look for")
    ...     k: int = InputField(default=3, ge=1)
    ...     passages: list[str] = OutputField()
    >>> Search.spec.field("k").constraints
    'at least 1'
    """
    more = {REPEATS_KEY: True} if repeats else {}
    return declare("input", desc=desc, default=default, default_factory=default_factory, **constraints, **more)


def OutputField(  # noqa: N802
    *,
    desc: str | None = None,
    default: object = UNSET,
    default_factory: Callable[[], object] | None = None,
    init: Literal[False] = False,
    **constraints: Any,
) -> Any:
    """Declare an output of a signature class; keywords as for ``InputField``.

    Constraints are shown to the model *and* enforced on its answer. A default is used if the answer lacks the field.
    """
    return declare("output", desc=desc, default=default, default_factory=default_factory, **constraints)


ADDED_KEY = "added"
"""The key in ``json_schema_extra`` of an output that a module added to a signature."""


REPEATS_KEY = "repeats"
"""The key in ``json_schema_extra`` of an input whose value many calls share."""


AT_CALL_KEY = "refused_at_call"
"""The key in ``json_schema_extra`` of an output that the first call refuses, not its declaration, if no text can fill it."""


def added_output(declared: Any) -> Any:
    """Return the declaration of an output, marked as added by a module; another value unchanged.

    >>> added_output(OutputField(desc="Think.")).json_schema_extra["added"]
    True
    """
    return redeclare(declared, {"json_schema_extra": {ADDED_KEY: True}}) if direction_of(declared) else declared


_IGNORED_OPTIONS = ("prefix", "format", "parser")


_PYDANTIC = frozenset(
    "alias alias_priority validation_alias serialization_alias title field_title_generator examples exclude "
    "discriminator deprecated frozen validate_default repr pattern strict coerce_numbers_to_str gt ge lt le "
    "multiple_of allow_inf_nan max_digits decimal_places min_length max_length union_mode fail_fast".split()
)


def declare(direction: Direction, **options: Any) -> FieldInfo:
    """Return the marked ``FieldInfo`` of a field, as ``InputField`` and ``OutputField`` do."""
    from pydantic import Field

    for name in _IGNORED_OPTIONS:
        if name in options:
            warn_user(f"{name}= has no effect on a field; describe it with desc=.", DeprecationWarning)
            del options[name]
    defaults = {name: options.pop(name, UNSET) for name in ("default", "default_factory")}
    given = {name: value for name, value in defaults.items() if _is_given(value, name)}
    description = _first_given(options.pop("desc", None), options.pop("description", None))
    extra = dict(options.pop("json_schema_extra", None) or {})
    extra |= {name: options.pop(name) for name in list(options) if name not in _PYDANTIC}
    extra[DIRECTION_KEY] = direction
    if description is not None:
        extra["desc"] = given["description"] = description
    info: FieldInfo = Field(**given, **options, json_schema_extra=extra)
    return info


def _is_given(value: object, name: str) -> bool:
    # ``default=...`` means "required" to pydantic; ``default=None`` is a default.
    return value is not UNSET and value is not ... and not (value is None and name == "default_factory")


def _first_given(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def redeclare(declared: FieldInfo, changes: Mapping[str, Any]) -> FieldInfo:
    """Return a declaration with changed options. A constraint that is changed to ``None`` is removed.

    >>> redeclare(OutputField(ge=1, le=5), {"ge": 2, "le": None}).metadata
    [Ge(ge=2)]
    """
    # Options for texts of optimizers; a declaration has no attribute for them.
    kept = {name: changes[name] for name in _IGNORED_OPTIONS if name in changes}
    given = {name: value for name, value in changes.items() if name not in _IGNORED_OPTIONS}
    extra = {**extra_of(declared), **given.pop("json_schema_extra", {}), **kept}
    extra.pop("constraints", None)  # computed again when the field is compiled
    options = {**_attributes(declared, given), **given, "json_schema_extra": extra}
    new = declare(cast("Direction", direction_of(declared)), **options)
    new.metadata = [*_remaining_metadata(declared.metadata, given.keys()), *new.metadata]
    return new


_ATTRIBUTES = (
    "default", "default_factory", "alias", "alias_priority", "validation_alias", "serialization_alias", "title",
    "field_title_generator", "description", "examples", "exclude", "discriminator", "deprecated", "frozen",
    "validate_default", "repr",
)  # fmt: skip


_ALTERNATIVES = {"default": "default_factory", "default_factory": "default", "desc": "description"}


def _attributes(info: FieldInfo, changed: Collection[str]) -> dict[str, Any]:
    """Return the options of a declaration without its constraints, changed options, and alternatives of those."""
    from pydantic import Field

    blank: Any = Field()
    dropped = {*changed, *(_ALTERNATIVES[name] for name in changed if name in _ALTERNATIVES)}
    kept = {name: getattr(info, name) for name in _ATTRIBUTES if name not in dropped}
    return {name: value for name, value in kept.items() if value is not getattr(blank, name)}


def _remaining_metadata(metadata: list[Any], names: Collection[str]) -> Iterator[Any]:
    for item in metadata:
        dropped = [name for name in names if getattr(item, name, None) is not None]
        if not dropped:
            yield item
        elif dataclasses.is_dataclass(item) and len(dataclasses.fields(item)) > 1:  # Len, Interval, StringConstraints
            defaults = {field.name: field.default for field in dataclasses.fields(item)}
            yield dataclasses.replace(cast(Any, item), **{name: defaults[name] for name in dropped})
        elif kept := {name: value for name, value in _metadata_values(item).items() if name not in dropped}:
            yield type(item)(**kept)


def _metadata_values(item: Any) -> dict[str, Any]:
    """Return the constraints of pydantic's collective object; none for an object of one constraint."""
    return {} if dataclasses.is_dataclass(item) else dict(cast("dict[str, Any]", item.__dict__))


def direction_of(value: object) -> Direction | None:
    """Return the direction of a declaration; ``None`` for any other value.

    >>> direction_of(OutputField()), direction_of(3)
    ('output', None)
    """
    extra = getattr(value, "json_schema_extra", None)
    direction = extra.get(DIRECTION_KEY) if is_mapping(extra) else None
    return direction if direction in ("input", "output") else None


def extra_of(info: FieldInfo) -> dict[str, Any]:
    """Return ``json_schema_extra`` of a declaration."""
    extra = info.json_schema_extra
    return extra if is_object(extra) else {}
