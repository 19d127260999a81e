"""``Criteria``: descriptions of the values of a deciding output, or its levels; and the deciding outputs of a signature.

``Annotated[bool, Criteria({True: "service is down"})]`` writes ``x-criteria`` (descriptions by label) or ``x-levels`` into the
JSON Schema of the type. Prompts and schemas for text models show both as text; decision wires send them.

``deciding_outputs`` walks models, dataclasses, ``TypedDict``s and optional members; lists of them and dicts have no questions.

A class whose values hold their evidence is a type of outputs too, and not of their members: its ``decided_type`` is the type
that is asked, such as ``Annotated[bool, Criteria(...)]``, and ``of_evidence(evidence, rule)`` makes its value. As metadata,
``Annotated[bool, TheClass]``, the class gives its criteria.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import no_info_after_validator_function

from sigwire.core.evidence import DecisionRule, Evidence, Question, index_of, label_of
from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_mapping
from sigwire.core.record import UNSET
from sigwire.errors import SignatureError
from sigwire.keywords import ChecksKeywords
from sigwire.show.values import MOST_IN_REPR, call_line, short_repr
from sigwire.signatures.annotations import allows_none, strip_annotated
from sigwire.signatures.fields import CHECKS, FieldSpec, SignatureSpec

if TYPE_CHECKING:
    from pydantic.annotated_handlers import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

__all__ = [
    "Criteria",
    "DecidingOutput",
    "criteria_of",
    "criteria_texts",
    "deciding_outputs",
    "or_none",
    "with_criterion",
]

_MOST_LEVELS = 10
_MOST_DEPTH = 32


class Criteria(ChecksKeywords):
    """When each value of an output applies: put it into ``Annotated``.

    ``Criteria({value: description})`` describes values of a ``bool``, ``Literal`` or ``Enum``, or of the members of a list of
    these; also of some of them only. ``Criteria("none", "minor", ("severe", "someone is hurt"))`` has 2 to 10 ordered levels of
    a ``float`` (the value is the mean level) or an ``int`` (a level), numbered from 0: a text, or a label with its description.
    A number outside of the levels is no value of the output.

    Raises ``SignatureError`` for fewer than 2 or more than 10 levels, an empty label, and equal labels.

    >>> Criteria("none", "minor", ("severe", "someone is hurt"))
    Criteria('none', 'minor', ('severe', 'someone is hurt'))
    """

    __slots__ = ("descriptions", "levels")

    def __init__(self, *levels: str | tuple[str, str] | Mapping[Any, str]) -> None:
        self.levels: tuple[tuple[str, str], ...] = ()
        self.descriptions: dict[Any, str] = {}
        if len(levels) == 1 and is_mapping(levels[0]):
            self.descriptions = _descriptions(levels[0])
            return
        self.levels = tuple(map(_level, levels))
        if not 2 <= len(levels) <= _MOST_LEVELS:
            raise _wrong(
                f"Criteria have 2 to {_MOST_LEVELS} levels, not {len(levels)}", "Pass a mapping to describe values."
            )
        labels = [label.strip() for label, _ in self.levels]
        if equal := next((label for label in labels if labels.count(label) > 1), None):
            raise _wrong(f"Criteria have the level {equal!r} twice", "Rename one of the levels.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Criteria) and (self.levels, self.descriptions) == (other.levels, other.descriptions)

    def __hash__(self) -> int:
        return hash((self.levels, tuple(map(label_of, self.descriptions))))

    def __repr__(self) -> str:
        levels: Iterator[object] = ((label, text) if text else label for label, text in self.levels)
        parts: Iterable[object] = [self.descriptions] if self.descriptions else levels
        return call_line("Criteria", (short_repr(each, MOST_IN_REPR) for each in parts))

    @property
    def texts(self) -> dict[str, str]:
        """The descriptions by label, of levels that have one and of values."""
        if self.levels:
            return {label: text for label, text in self.levels if text}
        return {label_of(value): text for value, text in self.descriptions.items()}

    def with_text(self, label: str, text: str) -> Criteria:
        """Return a copy with another description of a value or a level. Raises ``KeyError`` for an unknown label."""
        made = Criteria.__new__(Criteria)
        made.levels, made.descriptions = self.levels, self.descriptions
        if self.levels:
            if label not in (known := [each for each, _ in self.levels]):
                raise KeyError(label)
            made.levels = tuple(
                (each, text if at == known.index(label) else old) for at, (each, old) in enumerate(self.levels)
            )
        else:
            made.descriptions = dict(self.descriptions)
            key = next((value for value in made.descriptions if label_of(value) == label), None)
            if key is None and label not in self.texts:
                raise KeyError(label)
            made.descriptions[key] = text
        return made

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Refuse a number outside of the levels."""
        schema = handler(source)
        return no_info_after_validator_function(self._level_of, schema) if self.levels else schema

    def _level_of(self, number: Any) -> Any:
        last = len(self.levels) - 1
        if isinstance(number, int | float) and not 0 <= number <= last:
            (first, _), (highest, _) = self.levels[0], self.levels[-1]
            facts = {"first": first, "last": last, "highest": highest}
            raise PydanticCustomError("level", "should be a level from 0 ({first}) to {last} ({highest})", facts)
        return number

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonObject:
        schema: JsonObject = dict(cast("Any", handler(core_schema)))
        if self.levels:
            schema["x-levels"] = [
                {"label": label, **({"description": text} if text else {})} for label, text in self.levels
            ]
        else:
            schema["x-criteria"] = {**self.texts}
        return schema


def _descriptions(given: Mapping[Any, Any]) -> dict[Any, str]:
    texts: dict[Any, Any] = dict(given)
    if not texts:
        raise _wrong("Criteria describe no value", "Pass {value: description}, or levels.")
    for value, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise _wrong(f"The criterion of {value!r} is a text, not {text!r}", "Describe when the value applies.")
    return texts


def _level(given: Any) -> tuple[str, str]:
    pair: Any = (given, "") if isinstance(given, str) else given
    try:
        label, text = pair
    except (TypeError, ValueError):
        label = text = None
    if not isinstance(label, str) or not isinstance(text, str):
        raise _wrong(f"A level is a text or (label, description), not {given!r}", "Pass values as one mapping.")
    if not label.strip():
        raise _wrong("A level has an empty label", "Name each level.")
    return label, text


def _wrong(what: str, next_step: str) -> SignatureError:
    return SignatureError(f"{what} (making Criteria). {next_step}")


@dataclass(frozen=True, slots=True)
class DecidingOutput(Question):
    """A deciding output of a signature. ``steps``: the field, then members, to its value; ``keys``: their names in JSON.

    ``member``: the value of a list that it stands for, ``siblings`` all of them.

    ``allows_none``: an output that abstains is ``None``. ``criteria``: its descriptions or levels. ``made_by``: the class of
    values that hold their evidence.
    """

    steps: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    member: Any = UNSET
    siblings: tuple[Any, ...] = ()
    allows_none: bool = False
    criteria: Criteria | None = None
    made_by: Any = None

    def value_of(self, evidence: Evidence, rule: DecisionRule) -> Any:
        """Return the value of the output for evidence that a rule decided."""
        if evidence.confidence < rule.least:
            if self.allows_none:
                return None
            evidence = evidence.decided(replace(rule, least=0.0), is_mean=self.is_mean)  # for ``partial``
        is_none = evidence.value is None and self.allows_none
        return evidence.value if self.made_by is None or is_none else self.made_by.of_evidence(evidence, rule)


def criteria_of(metadata: tuple[Any, ...]) -> list[Criteria]:
    """Return the criteria among the metadata of a type."""
    return [each for each in metadata if isinstance(each, Criteria)]


class _CriterionText:
    """Metadata: another description of a value or level of an output inside of a type, in its JSON Schema."""

    __slots__ = ("_keys", "label", "path", "text")

    def __init__(self, output: DecidingOutput, label: str, text: str) -> None:
        self.path, self._keys = ".".join(output.steps), output.keys[1:]
        self.label, self.text = label, text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CriterionText) and (self.path, self.label, self.text) == (
            other.path,
            other.label,
            other.text,
        )

    def __hash__(self) -> int:
        return hash((self.path, self.label, self.text))

    def __repr__(self) -> str:
        return short_repr(f"{self.path}: {self.label}: {self.text}", MOST_IN_REPR)

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonObject:
        return self._changed(handler(core_schema), self._keys, handler.resolve_ref_schema)

    def _changed(self, schema: Any, keys: tuple[str, ...], resolve: Callable[[Any], Any]) -> JsonObject:
        """Return a schema with the text at the end of ``keys``; definitions on the way are written into it."""
        if any(name in schema for name in ("x-criteria", "x-levels")):
            return self._described(schema)
        for union in ("anyOf", "oneOf", "allOf"):
            if union in schema:
                return {**schema, union: [self._changed(each, keys, resolve) for each in schema[union]]}
        node = resolve(schema)
        name = keys[0] if keys else "items"
        parts: Any = node.get("properties", {}) if keys else node
        if name not in parts:
            return cast(JsonObject, schema)
        changed = {**parts, name: self._changed(parts[name], keys[1:], resolve)}
        return {**node, "properties": changed} if keys else changed

    def _described(self, schema: Any) -> JsonObject:
        levels: Any = [
            {**level, "description": self.text} if level["label"] == self.label else level
            for level in schema.get("x-levels", ())
        ]
        return {
            **schema,
            **({"x-levels": levels} if levels else {"x-criteria": {**schema["x-criteria"], self.label: self.text}}),
        }


def criteria_texts(spec: FieldSpec, *, has_bare_levels: bool = False) -> dict[str, dict[str, str]]:
    """Return the descriptions of criteria of an output, by path and label; those of members of its models too.

    ``has_bare_levels``: levels without a description are among them, with an empty one.
    """
    if spec.role != "value":
        return {}
    changed = {(each.path, each.label): each.text for each in spec.metadata if isinstance(each, _CriterionText)}
    found: dict[str, dict[str, str]] = {}
    for output in _of_field(spec):
        if output.criteria is not None:
            path, texts = ".".join(output.steps), output.criteria.texts
            texts = dict(output.criteria.levels) or texts if has_bare_levels else texts
            own = {label: changed.pop((path, label), text) for label, text in texts.items()}
            found.setdefault(path, own)
    for (path, label), text in changed.items():  # of levels that had none
        found[path][label] = text
    return found


def with_criterion(spec: FieldSpec, path: str, label: str, text: str) -> FieldSpec:
    """Return an output with another description of a value or level. Raises ``KeyError`` if it has no such criteria."""
    output = next((each for each in _of_field(spec) if ".".join(each.steps) == path and each.criteria), None)
    if output is None or output.criteria is None:
        raise KeyError(path)
    changed = output.criteria.with_text(label, text)
    if criteria_texts(spec)[path].get(label) == text:
        return spec
    info = copy(spec.info)
    if any(each is output.criteria for each in info.metadata):
        info.metadata = [changed if each is output.criteria else each for each in info.metadata]
    else:
        rest = [
            each
            for each in info.metadata
            if not isinstance(each, _CriterionText) or (each.path, each.label) != (path, label)
        ]
        info.metadata = [*rest, _CriterionText(output, label, text)]
    return replace(spec, metadata=tuple(info.metadata), _info=info)


def or_none(kind: Any) -> Any:
    """Return a type or ``None``, with the criteria around both.

    >>> or_none(Annotated[bool, Criteria({True: "down"})]).__metadata__
    (Criteria({True: 'down'}),)
    """
    metadata = getattr(kind, "__metadata__", ())
    return Annotated[(typing.get_args(kind)[0] | None, *metadata)] if metadata else kind | None


def deciding_outputs(spec: SignatureSpec) -> tuple[DecidingOutput, ...]:
    """Return the outputs of a signature that a distribution can decide, by path.

    Raises ``SignatureError`` if criteria do not fit their output.

    >>> from sigwire.signatures.signature import Signature
    >>> [each.path for each in deciding_outputs(Signature("a -> urgent: bool, tags: list[Literal['x', 'y']], why: str").spec)]
    ['urgent', 'tags[x]', 'tags[y]']
    """
    return _of_fields(tuple(map(_Key, spec.outputs)))


class _Key:
    """A field by identity, for a cache."""

    __slots__ = ("spec",)

    def __init__(self, spec: FieldSpec) -> None:
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.spec is self.spec

    def __hash__(self) -> int:
        return id(self.spec)


@lru_cache(maxsize=512)
def _of_fields(fields: tuple[_Key, ...]) -> tuple[DecidingOutput, ...]:
    return tuple(output for key in fields if key.spec.role == "value" for output in _of_field(key.spec))


def _of_field(spec: FieldSpec) -> Iterator[DecidingOutput]:
    return _outputs(spec.annotation, spec.metadata, (spec.name,), (spec.name,), ())


def _outputs(
    annotation: Any, metadata: tuple[Any, ...], steps: tuple[str, ...], keys: tuple[str, ...], seen: tuple[Any, ...]
) -> Iterator[DecidingOutput]:
    path = ".".join(steps)
    nullable = allows_none(annotation)
    kind, found = _unwrapped(annotation, metadata)
    made_by = kind if isinstance(kind, type) and getattr(kind, "decided_type", None) is not None else None
    if made_by is not None:
        if len(steps) > 1:
            return
        kind, own = _unwrapped(cast("Any", made_by).decided_type, ())
        found += own
    if len(found) > 1:
        raise SignatureError(f"{path} has two Criteria (defining a signature). Join them.")
    criteria = found[0] if found else None
    base = DecidingOutput(
        path, "bool", (True, False), steps=steps, keys=keys, allows_none=nullable, criteria=criteria, made_by=made_by
    )
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if criteria is not None and criteria.levels:
        if nullable or kind not in (int, float):
            what = "levels on an optional output" if nullable else f"levels, and its type is {_shown(kind)}"
            raise SignatureError(f"{path} has {what} (defining a signature). Levels are of a float or an int.")
        yield replace(base, kind="score", values=tuple(range(len(criteria.levels))), is_mean=kind is float)
    elif values := _values_of(kind):
        if nullable and None not in values:
            values = (*values, None)
        elif None in values:
            values = (*(value for value in values if value is not None), None)
        _check_values(path, criteria, values)
        is_flag = values == (True, False) and all(type(value) is bool for value in values)
        if len(values) > 1:
            yield base if is_flag else replace(base, kind="choice", values=values)
    elif origin is list and arguments and (members := _values_of(_unwrapped(arguments[0], ())[0])):
        inner = _unwrapped(arguments[0], ())[1]
        both = [*found, *inner]
        if len(both) > 1:
            raise SignatureError(f"{path} has two Criteria (defining a signature). Join them.")
        _check_values(path, both[0] if both else None, members)
        if _unwrapped(arguments[0], ())[0] is bool:
            return
        for member in members:
            yield replace(
                base,
                path=f"{path}[{label_of(member)}]",
                member=member,
                siblings=members,
                criteria=both[0] if both else None,
            )
    elif criteria is not None:
        raise SignatureError(
            f"{path} has Criteria, and its type is {_shown(kind)} (defining a signature). They describe values of a bool, "
            "Literal or Enum, or levels of a float or int."
        )
    elif not any(kind is each for each in seen) and len(steps) < _MOST_DEPTH:
        for name, key, member, extra in _members(kind):
            yield from _outputs(member, extra, (*steps, name), (*keys, key), (*seen, kind))


def _shown(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def _unwrapped(annotation: Any, metadata: tuple[Any, ...]) -> tuple[Any, list[Criteria]]:
    """Return a type without ``Annotated``, aliases and ``| None``, and the criteria around it."""
    found = _declared(metadata)
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            found += _declared(annotation.__metadata__)
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, UnionType):
            rest = [each for each in typing.get_args(annotation) if each is not type(None)]
            if len(rest) != 1:
                return annotation, found
            annotation = rest[0]
        elif (bare := strip_annotated(annotation)) is not annotation:
            annotation = bare
        else:
            return annotation, found


def _declared(metadata: tuple[Any, ...]) -> list[Criteria]:
    """Return the criteria among the metadata of a type, also those of classes whose values hold evidence."""
    found = criteria_of(metadata)
    for each in metadata:
        found += criteria_of(getattr(getattr(each, "decided_type", None), "__metadata__", ()))
    return found


def _values_of(kind: Any) -> tuple[Any, ...]:
    """Return the values of a ``bool``, ``Literal`` or ``Enum``, else nothing."""
    if kind is bool:
        return (True, False)
    if typing.get_origin(kind) is Literal:
        return typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(cast("Iterator[Any]", iter(kind)))
    return ()


def _check_values(path: str, criteria: Criteria | None, values: tuple[Any, ...]) -> None:
    for value in () if criteria is None else criteria.descriptions:
        if index_of(values, value) is None:
            raise SignatureError(
                f"{path} has a criterion of {value!r}, which is no value of it (defining a signature). "
                f"Its values are {', '.join(map(repr, values))}."
            )


def _members(kind: Any) -> Iterator[tuple[str, str, Any, tuple[Any, ...]]]:
    """Yield name, name in JSON, type and metadata of the members of a model, dataclass or ``TypedDict``."""
    if not isinstance(kind, type):
        return
    model: Any = kind
    if hasattr(model, "model_fields"):
        for name, info in model.model_fields.items():
            key = info.alias if isinstance(info.alias, str) and info.alias == info.validation_alias else name
            yield name, key, info.annotation, tuple(info.metadata)
        return
    if dataclasses.is_dataclass(model) or hasattr(model, "__total__"):
        try:
            hints: dict[str, Any] = typing.get_type_hints(model, include_extras=True)
        except (NameError, TypeError):  # an unresolved forward reference: its types are unknown
            return
        for name, hint in hints.items():
            while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
                hint = typing.get_args(hint)[0]
            yield name, name, hint, ()


def _check(spec: FieldSpec) -> None:
    if spec.direction == "output" and spec.role == "value":
        for _ in _of_field(spec):
            pass


CHECKS.append(_check)  # fields that are compiled before this file is loaded have no criteria
