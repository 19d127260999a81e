"""The questions of an output schema, and the JSON object of their answers.

A ``boolean`` is a bool, an ``enum`` or a union of constants a choice, a number with ``x-levels`` a score. Objects are walked:
``ticket.urgent``. A list of enum members is one bool for each member: ``tags[billing]``. A constant is a choice of one value,
which is not sent. ``x-levels``: ``[{"label": ..., "description"?: ...}]``; ``x-criteria``: descriptions by label of a value
(``core.evidence.label_of``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sigwire.core.evidence import EvidenceKind, Question, label_of
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.record import UNSET
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["AskedQuestion", "answer_object", "read_questions"]

_MOST_DEPTH = 32


@dataclass(frozen=True, slots=True)
class AskedQuestion(Question):
    """A question of a request. ``keys``: where its value stands in the answer; ``member``: of which value of a list it is.

    ``texts`` stand for the values on the wire; ``descriptions``: when each value applies. ``is_optional``: a refusal leaves the
    output out; ``is_nullable``: it makes the output ``None``.

    How one host writes it: ``name``; ``form``, its kind there; ``choices``, the values; and ``places``, the position of each
    value as an answer writes it, by its type too, because ``True`` and 1 are equal.
    """

    keys: tuple[str, ...] = ()
    instructions: str = ""
    texts: tuple[str, ...] = ()
    descriptions: tuple[str | None, ...] = ()
    member: Any = UNSET
    is_optional: bool = False
    is_nullable: bool = False
    name: str = ""
    form: EvidenceKind = "bool"
    choices: tuple[str | bool, ...] = ()
    places: Mapping[tuple[type, object], int] = field(default_factory=dict[tuple[type, object], int])

    @property
    def is_asked(self) -> bool:
        """Whether the question is sent: a constant is not."""
        return len(self.values) > 1 or self.member is not UNSET


def read_questions(schema: JsonObject, label: str) -> tuple[AskedQuestion, ...]:
    """Return the questions of the JSON Schema of an object. ``label``: the model in errors.

    Raises ``UnsupportedFeature`` for an output that is no question, naming its path.

    >>> schema = {"properties": {"urgent": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}}, "required": ["urgent"]}
    >>> [(each.path, each.kind, each.instructions, each.is_optional) for each in read_questions(schema, "m")]
    [('urgent', 'bool', 'Urgent?', False), ('kind', 'choice', 'Kind?', True)]
    """
    definitions = {**object_of(schema.get("definitions")), **object_of(schema.get("$defs"))}
    found = tuple(_Reader(definitions, label).members(schema, ()))
    seen: set[str] = set()
    for question in found:
        if question.path in seen:
            raise UnsupportedFeature(
                f"Two questions for {label} are called {question.path!r} (encoding the request). Rename one of the outputs."
            )
        seen.add(question.path)
    return found


class _Reader:
    """Reads the questions of one schema."""

    def __init__(self, definitions: Mapping[str, JsonValue], label: str) -> None:
        self._definitions, self._label = definitions, label

    def members(self, schema: JsonObject, keys: tuple[str, ...]) -> Iterator[AskedQuestion]:
        """Yield the questions of an object."""
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        for name, member in object_of(schema.get("properties")).items():
            yield from self._output(self._resolve(object_of(member)), (*keys, name), is_optional=name not in names)

    def _output(self, schema: JsonObject, keys: tuple[str, ...], *, is_optional: bool) -> Iterator[AskedQuestion]:
        path = ".".join(keys)
        if len(keys) > _MOST_DEPTH:
            raise self._refuse(path, "is nested too deeply")
        variants = [self._resolve(each) for each in self._variants(schema)]
        kinds = [each for each in variants if each.get("type") != "null"]
        is_nullable = len(kinds) < len(variants)
        only = {**kinds[0], **_outer(schema)} if len(kinds) == 1 else schema
        instructions = string_of(schema, "description") or string_of(only, "description") or _words(keys[-1])
        asked = AskedQuestion(
            path, "bool", (True, False), keys=keys, instructions=instructions, is_optional=is_optional
        )
        if "properties" in only:
            yield from self.members(only, keys)
        elif "x-levels" in only:
            score = _score(asked, only, is_nullable=is_nullable)
            if len(score.values) < 2 or not all(score.texts):
                raise self._refuse(path, "has fewer than two levels, or one without a label")
            yield score
        elif only.get("type") == "array":
            yield from self._list(asked, only)
        elif values := _values_of(variants):
            yield _choice(asked, values, object_of(only.get("x-criteria")))
        else:
            raise self._refuse(path, f"is {_kind_of(only)}")

    def _list(self, asked: AskedQuestion, schema: JsonObject) -> Iterator[AskedQuestion]:
        items = self._resolve(object_of(schema.get("items")))
        members = _values_of([self._resolve(each) for each in self._variants(items)])
        if not members or items.get("type") == "boolean":
            raise self._refuse(asked.path, "is a list of other values than members of a Literal or Enum")
        criteria = {**object_of(items.get("x-criteria")), **object_of(schema.get("x-criteria"))}
        for member in members:
            label = label_of(member)
            meaning = string_of(criteria, label)
            yield replace(
                asked,
                path=f"{asked.path}[{label}]",
                instructions=f"{asked.instructions}\nDoes this apply: {label}{f' ({meaning})' if meaning else ''}?",
                texts=("true", "false"),
                descriptions=(None, None),
                member=member,
            )

    def _variants(self, schema: JsonObject) -> Sequence[JsonObject]:
        """Return the members of a union, those of unions inside it too; a schema that is none alone."""
        kind = schema.get("type")
        if isinstance(kind, list):
            return [{**schema, "type": each} for each in kind]
        union = [*objects_of(schema.get("anyOf")), *objects_of(schema.get("oneOf"))]
        found = (each for member in union for each in self._variants(self._resolve(member)))
        return [*found] if union else [schema]

    def _resolve(self, schema: JsonObject) -> JsonObject:
        """Return a schema without reference at its top; members beside the reference stay."""
        for _ in range(_MOST_DEPTH):
            inner = objects_of(schema.get("allOf"))
            reference = string_of(schema, "$ref")
            if reference is not None:
                target = object_of(self._definitions.get(reference.rpartition("/")[2]))
            elif len(inner) == 1:
                target = inner[0]
            else:
                return schema
            schema = {**target, **{name: value for name, value in schema.items() if name not in ("$ref", "allOf")}}
        return {}

    def _refuse(self, path: str, problem: str) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{self._label} answers questions only, and the output {path!r} {problem} (nothing was sent). It takes bool, "
            "Literal, Enum, lists of members of those, and numbers with levels (Criteria). Ask for the other outputs with "
            "another model."
        )


def _outer(schema: JsonObject) -> JsonObject:
    return {name: schema[name] for name in ("description", "x-criteria", "x-levels") if name in schema}


def _words(name: str) -> str:
    words = name.replace("_", " ").strip()
    return f"{words[:1].upper()}{words[1:]}?"


def _kind_of(schema: JsonObject) -> str:
    kind = schema.get("type")
    if kind in ("number", "integer"):
        return "a number without levels"
    return (
        "an object of any keys" if kind == "object" else f"of type {kind}" if isinstance(kind, str) else "of any type"
    )


def _values_of(variants: Iterable[JsonObject]) -> tuple[JsonValue, ...]:
    """Return the values of a union of constants, ``None`` last; empty if one of its members is something else."""
    found: list[JsonValue] = []
    for each in variants:
        listed = each.get("enum")
        if isinstance(listed, list):
            found += listed
        elif "const" in each:
            found.append(each["const"])
        elif each.get("type") == "boolean":
            found += [True, False]
        elif each.get("type") == "null":
            found.append(None)
        else:
            return ()
    if found and all(value is None for value in found):
        return ()
    values = [value for value in found if value is not None] + [None] * (None in found)
    return tuple(value for at, value in enumerate(values) if not _is_among(value, values[:at]))


def _is_among(value: JsonValue, others: Iterable[JsonValue]) -> bool:
    return any(type(value) is type(other) and value == other for other in others)


def _choice(asked: AskedQuestion, values: tuple[JsonValue, ...], criteria: JsonObject) -> AskedQuestion:
    is_bool = len(values) == 2 and all(isinstance(value, bool) for value in values)
    values = (True, False) if is_bool else values
    texts = tuple(map(label_of, values))
    return replace(
        asked,
        kind="bool" if is_bool else "choice",
        values=values,
        texts=texts,
        descriptions=tuple(string_of(criteria, text) for text in texts),
        is_nullable=values[-1] is None,
    )


def _score(asked: AskedQuestion, schema: JsonObject, *, is_nullable: bool) -> AskedQuestion:
    levels = objects_of(schema["x-levels"])
    texts = tuple(string_of(level, "label") or "" for level in levels)
    descriptions = tuple(string_of(level, "description") for level in levels)
    numbers = tuple(range(len(levels)))
    if is_nullable:  # no level stands for None, so the levels are members of a choice
        return replace(
            asked,
            kind="choice",
            values=(*numbers, None),
            texts=(*texts, "null"),
            descriptions=(*descriptions, None),
            is_nullable=True,
        )
    is_mean = schema.get("type") != "integer"
    return replace(asked, kind="score", values=numbers, texts=texts, descriptions=descriptions, is_mean=is_mean)


def answer_object(answers: Iterable[tuple[AskedQuestion, Any]]) -> JsonObject:
    """Return the answers as the object of the schema. ``UNSET`` leaves an output out.

    >>> answer_object([(AskedQuestion("a.b", "bool", (True, False), keys=("a", "b")), True)])
    {'a': {'b': True}}
    """
    whole: JsonObject = {}
    for question, value in answers:
        if value is UNSET:
            continue
        place: Any = whole
        for key in question.keys[:-1]:
            place = place.setdefault(key, {})
        if question.member is UNSET:
            place[question.keys[-1]] = value
            continue
        members = place.setdefault(question.keys[-1], [])
        if value:
            members.append(question.member)
    return whole
