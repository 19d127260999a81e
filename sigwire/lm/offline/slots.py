"""Slots: typed views of a JSON Schema, its parameters as words to look for, and neutral values. Pure.

A schema is untrusted: if a keyword is missing or has the wrong shape, a view returns its empty value.
Each parameter becomes a ``Slot`` with *cues* (stems of its name and description, weighted) and *roles* (origin, place,
date, ...; a role gives weight to a preposition or to a kind of name). A ``SlotHabit`` holds its values in demos.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonValue
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.lm.offline.words import STOP_WORDS, content_stems, name_words, stem

__all__ = [
    "Schema", "Slot", "SlotHabit", "complete", "has_type", "is_nullable", "items_of",
    "options_of", "properties_of", "required_of", "resolve", "slots_of", "text_of", "type_of",
]  # fmt: skip

Schema: TypeAlias = Mapping[str, Any]


def properties_of(schema: Schema) -> dict[str, Schema]:
    """Return the properties of an object schema that have a schema."""
    found = schema.get("properties")
    return {name: member for name, member in found.items() if is_mapping(member)} if is_mapping(found) else {}


def required_of(schema: Schema) -> tuple[str, ...]:
    """Return the names of the required properties."""
    return tuple(name for name in schema.get("required") or () if isinstance(name, str))


def items_of(schema: Schema) -> Schema:
    """Return the schema of an array's items, without its null variant."""
    found = schema.get("items")
    return resolve(found) if is_mapping(found) else {}


def options_of(schema: Schema) -> tuple[JsonValue, ...]:
    """Return the values that an enum or const allows; empty if any value is allowed."""
    found = schema.get("enum")
    if is_sequence(found):
        return tuple(found)
    return (schema["const"],) if "const" in schema else ()


def _variants(schema: Schema) -> list[Schema]:
    found: Sequence[object] = schema.get("anyOf") or schema.get("oneOf") or ()
    return [variant for variant in found if is_mapping(variant)]


def resolve(schema: Schema) -> Schema:
    """Return a schema merged with its first variant other than null."""
    real = [variant for variant in _variants(schema) if variant.get("type") != "null"]
    return {**schema, **real[0]} if real else schema


def is_nullable(schema: Schema) -> bool:
    """Return True if null is a valid value."""
    kinds = schema.get("type")
    is_null = any(variant.get("type") == "null" for variant in _variants(schema))
    return is_null or (is_sequence(kinds) and "null" in kinds)


def type_of(schema: Schema) -> str:
    """Return the type of a schema other than null; "string" if the schema has none.

    >>> type_of({"type": ["null", "integer"]}), type_of({"enum": ["a"]}), type_of({"properties": {}, "title": "T"})
    ('integer', 'string', 'string')
    """
    schema = resolve(schema)
    kinds = schema.get("type")
    kind = next((name for name in kinds if name != "null"), None) if is_sequence(kinds) else kinds
    if isinstance(kind, str):
        return kind
    if properties_of(schema):
        return "object"
    return "integer" if has_type("integer", *options_of(schema)[:1]) else "string"


@dataclass(frozen=True, slots=True)
class SlotHabit:
    """A parameter in the demos: its values (nearest demo first), the numbers of demos and of demos with a value."""

    values: tuple[JsonValue, ...] = ()
    shown: int = 0
    given: int = 0


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter: its schema, and the words that refer to it. ``soft`` are options that its description quotes."""

    name: str
    schema: Schema
    type: str
    required: bool
    cues: Mapping[str, float]
    names: tuple[str, ...]
    roles: frozenset[str]
    options: tuple[JsonValue, ...] = ()
    soft: tuple[str, ...] = ()
    habit: SlotHabit = SlotHabit()

    @property
    def description(self) -> str:
        return str(self.schema.get("description") or "")


# Role of a parameter <- words of its name.
_ROLES: Mapping[str, str] = {
    "origin": "from start origin source departure starting begin old",
    "target": "to end destination arrival target dest finish new",
    "place": "city location place country state area region town address where county venue district territory "
    "destination origin",
    "maker": "author artist director singer composer by painter sculptor writer band creator maker",
    "person": "person player actor student employee patient user cast host customer client owner recipient sender "
    "contact member doctor stylist therapist",
    "date": "date day deadline birthday when",
    "time": "time hour clock",
    "query": "query question search text message prompt input keyword content sentence expression body topic comment statement "
    "phrase term q words title task instruction",
    "id": "id identifier number code key zip phone isbn sku reference password pin token account",
}
_ROLES_OF_STEM: dict[str, set[str]] = {}
for _role, _names in _ROLES.items():
    for _name in _names.split():
        _ROLES_OF_STEM.setdefault(stem(_name), set()).add(_role)

_OPTION_TEXT = re.compile(r"'([^'\n]{1,40})'|\"([^\"\n]{1,40})\"")
_EXAMPLES = re.compile(r"\b(?:e\.?g\.?|such as|for example|for instance|like|example)\b.*", re.IGNORECASE | re.DOTALL)
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "integer": int, "number": (int, float), "string": str, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
_FORMATS: Mapping[str, tuple[str, str]] = {
    "date": (r"\d{4}-\d\d-\d\d\Z", "1970-01-01"),
    "date-time": (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", "1970-01-01T00:00:00"),
    "time": (r"\d\d:\d\d", "00:00:00"),
}


def slots_of(parameters: Schema, habits: Mapping[str, SlotHabit]) -> list[Slot]:
    """Return the slots of an object schema, required slots first, otherwise in the order of the schema."""
    required, slots = required_of(parameters), list[Slot]()
    not_given = SlotHabit(shown=max((habit.shown for habit in habits.values()), default=0))
    for name, member in properties_of(parameters).items():
        schema, habit = resolve(member), habits.get(name, not_given)
        names, cues, roles, soft = _vocabulary(name, str(schema.get("description") or ""))
        if schema.get("format") in ("date", "date-time"):
            roles = frozenset({"date"})
        kind, options = type_of(schema), options_of(schema)
        slots.append(Slot(name, schema, kind, name in required, cues, names, roles, options, soft, habit))
    return sorted(slots, key=lambda slot: not slot.required)


_Vocabulary: TypeAlias = "tuple[tuple[str, ...], Mapping[str, float], frozenset[str], tuple[str, ...]]"


@functools.lru_cache(maxsize=4096)
def _vocabulary(name: str, description: str) -> _Vocabulary:
    names = name_words(name)
    described = content_stems(_EXAMPLES.sub("", description))
    cues = {**dict.fromkeys(described, 0.8), **{cue: 2.0 for cue in names if cue not in STOP_WORDS}}
    roles = _roles(names) or _roles(described[:6]) - {"query"}
    return names, cues, roles, tuple(a or b for a, b in _OPTION_TEXT.findall(description))


def _roles(stems: Sequence[str]) -> frozenset[str]:
    return frozenset(role for part in stems for role in _ROLES_OF_STEM.get(part, ()))


def has_type(kind: str, value: object = None) -> bool:
    """Return True if a value has the JSON type ``kind``; an unknown type has every value."""
    return isinstance(value, _TYPES.get(kind, object)) and (kind == "boolean" or not isinstance(value, bool))


def complete(schema: Schema, value: object = None) -> JsonValue:
    """Return a value of the schema's type: the given value if it fits, with neutral values for missing members."""
    if (value is None and is_nullable(schema)) or type_of(schema) == "null":
        return None
    schema = resolve(schema)
    if options := options_of(schema):
        return cast(JsonValue, value) if value in options else options[0]
    by_type = _COMPLETE.get(type_of(schema))
    return by_type(schema, value) if by_type else cast(JsonValue, value)


def _complete_number(schema: Schema, value: object) -> JsonValue:
    match = re.search(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", "" if isinstance(value, bool) else str(value))
    number = json.loads(match[0]) if match else 0
    number = max(number, schema.get("minimum", number), schema.get("exclusiveMinimum", number - 1) + 1)
    number = min(number, schema.get("maximum", number), schema.get("exclusiveMaximum", number + 1) - 1)
    return int(number) if type_of(schema) == "integer" else number


def _complete_text(schema: Schema, value: object) -> JsonValue:
    text = text_of(cast(JsonValue, value)) if value is not None else ""
    pattern, neutral = _FORMATS.get(str(schema.get("format")), ("", ""))
    text = text if re.match(pattern, text) else neutral
    return text.ljust(int(schema.get("minLength") or 0), "-")[: schema.get("maxLength")]


def _complete_array(schema: Schema, value: object) -> JsonValue:
    items = items_of(schema) or {"type": "string"}
    given = value if is_sequence(value) else [] if value is None else [value]
    lacking = max(0, int(schema.get("minItems") or 0) - len(given))
    return [*(complete(items, item) for item in given), *(complete(items) for _ in range(lacking))]


def _complete_object(schema: Schema, value: object) -> JsonValue:
    given: Schema = value if is_mapping(value) else {}
    properties, required = properties_of(schema), required_of(schema)
    if not properties:
        return dict(given)
    return {name: complete(s, given.get(name)) for name, s in properties.items() if name in given or name in required}


_COMPLETE: Mapping[str, Callable[[Schema, object], JsonValue]] = {
    "integer": _complete_number,
    "number": _complete_number,
    "string": _complete_text,
    "array": _complete_array,
    "object": _complete_object,
    "boolean": lambda schema, value: str(value).lower() in ("true", "yes"),
}


def text_of(value: JsonValue) -> str:
    """Return a value as text: a list of plain values with commas, other structures as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)
