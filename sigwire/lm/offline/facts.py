"""Facts: what the results of earlier calls give, as named values that further calls and the answer can use. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sigwire.core.json import JsonValue
from sigwire.lm.offline.choice import OfferedTool
from sigwire.lm.offline.places import UNITS
from sigwire.lm.offline.reading import Step
from sigwire.lm.offline.schemas import Schema, options_of, properties_of, type_of
from sigwire.lm.offline.words import STOP_WORDS, name_words, stem, words

__all__ = ["Fact", "facts_of", "known_for"]

_ID = stem("id")
_VALUE_NAMES = frozenset(stem(word) for word in "value amount quantity number x input price total n".split())


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of a result: its key (``""`` for a whole result), the stems that tell what it is, and which step gave it."""

    key: str
    stems: frozenset[str]
    value: JsonValue
    step: int


def facts_of(steps: Sequence[Step]) -> list[Fact]:
    """The facts of all successful steps, later steps first."""
    found: list[Fact] = []
    for number, step in reversed(list(enumerate(steps))):
        if not step.failed:
            about = frozenset(s for s in name_words(step.name) if s not in STOP_WORDS)
            found.extend(_facts(step.result, "", about, number))
    return found


def _facts(value: JsonValue, key: str, about: frozenset[str], step: int) -> Iterator[Fact]:
    stems = about | frozenset(name_words(key))
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _facts(item, name, stems, step)
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        yield from _facts(value[0], key, about, step)
    elif value is not None:
        yield Fact(key, stems, value, step)


_OF_TYPE: Mapping[str, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "string": (str, int), "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip


def known_for(tool: OfferedTool, facts: Sequence[Fact], question: str) -> dict[str, tuple[JsonValue, float]]:
    """The parameters of a tool that facts can fill, each fact for one parameter."""
    places = {word.stem: -place for place, word in enumerate(words(question))}
    slots = properties_of(tool.parameters)
    scored = [
        (_suits(name, schema, fact) + _asked_for(fact, places), -row, -place, name, fact)
        for row, (name, schema) in enumerate(slots.items())
        for place, fact in enumerate(_by_question(facts, places))
        if _suits(name, schema, fact) > 0
    ]
    known: dict[str, tuple[JsonValue, float]] = {}
    used: list[Fact] = []
    for score, _, _, name, fact in sorted(scored, key=lambda item: item[:3], reverse=True):
        if name not in known and fact not in used:
            known[name] = (fact.value, score)
            used.append(fact)
    return {**_units(slots, used), **known}


def _by_question(facts: Sequence[Fact], places: Mapping[str, int]) -> list[Fact]:
    """Facts in the order in which the question speaks of them."""
    return sorted(facts, key=lambda fact: -max((places[s] for s in name_words(fact.key) if s in places), default=-999))


def _asked_for(fact: Fact, places: Mapping[str, int]) -> float:
    return 0.7 if any(s in places for s in name_words(fact.key)) else 0.0


def _units(slots: Mapping[str, Schema], used: Sequence[Fact]) -> dict[str, tuple[JsonValue, float]]:
    """The unit that a used fact's name ends in ("weight_kg"), for a parameter that says what unit a value comes in."""
    units = {UNITS[part] for fact in used for part in fact.key.lower().split("_")[1:] if part in UNITS}
    found: dict[str, tuple[JsonValue, float]] = {}
    for name, schema in slots.items():
        options = [o for o in options_of(schema) if isinstance(o, str) and UNITS.get(o.lower()) in units]
        if (
            options
            and {stem("from"), stem("source"), stem("unit")} & set(name_words(name))
            and stem("to") not in name_words(name)
        ):
            found[name] = (options[0], 2.6)
    return found


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def _suits(name: str, schema: Schema, fact: Fact) -> float:
    """How well a fact fills a parameter, by what both are called and by their types."""
    kind = type_of(schema)
    if not isinstance(fact.value, _OF_TYPE.get(kind, (object,))) or (
        isinstance(fact.value, bool) and kind != "boolean"
    ):
        return 0.0
    if options := options_of(schema):
        return 2.0 if fact.value in options else 0.0
    wanted = {s for s in name_words(name) if s not in STOP_WORDS}
    key = set(name_words(fact.key))
    if _ID in wanted:
        entity = wanted - {_ID}
        return 3.0 if fact.key == name else 2.8 if _ID in key and entity <= fact.stems else 0.0
    if _is_date(name, schema):
        return 1.6 if isinstance(fact.value, str) and _ISO_DATE.match(fact.value) else 0.0
    if fact.key == name:
        return 1.2 if len(wanted) == 1 else 2.6
    if wanted & key:
        return 1.0
    return 0.8 if kind in ("integer", "number") and wanted & _VALUE_NAMES and _ID not in key else 0.0


def _is_date(name: str, schema: Schema) -> bool:
    described = str(schema.get("description", "")).lower()
    return schema.get("format") == "date" or stem("date") in name_words(name) or "date" in described
