"""Slots: what a JSON Schema of parameters says about each, put as words to look for. Pure.

Each parameter becomes a ``Slot`` with *cues* (the stems of its name and description, with their weights) and *roles*
(origin, place, person, date ...: what makes a preposition or a kind of name count for it). What demos show about a
parameter comes in as a ``Habit``: words that stood around its value, and how it was written.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sigwire.core.json import JsonValue
from sigwire.lm.offline.schemas import options_of, properties_of, required_of, resolved, type_of
from sigwire.lm.offline.words import STOP_WORDS, content_stems, name_words, stem

__all__ = ["Habit", "Slot", "slots_of"]


@dataclass(frozen=True, slots=True)
class Habit:
    """What demos show about one parameter: stems that stood near its value, the values it had, nearest demo first,
    how often it was given, and the values that their texts did not say (placeholders)."""

    cues: Counter[str] = field(default_factory=lambda: Counter[str]())
    values: tuple[JsonValue, ...] = ()
    shown: int = 0
    given: int = 0
    unsaid: tuple[JsonValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter: its schema, and the words that speak of it."""

    name: str
    schema: Mapping[str, Any]
    type: str
    required: bool
    cues: Mapping[str, float]
    names: tuple[str, ...]
    roles: frozenset[str]
    options: tuple[Any, ...] = ()
    soft: tuple[str, ...] = ()
    habit: Habit = Habit()

    @property
    def description(self) -> str:
        return str(self.schema.get("description") or "")

    @property
    def has_default(self) -> bool:
        return "default" in self.schema and self.schema["default"] is not None


# Role of a parameter <- stems of its name. A role makes prepositions and kinds of names count.
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
    "unit": "unit units",
    "language": "language lang",
    "currency": "currency",
    "color": "color colour",
    "id": "id identifier number code key zip phone isbn sku reference password pin token account",
    "count": "count number num quantity amount total limit",
    "year": "year season",
}
_ROLE_OF_STEM: dict[str, set[str]] = {}
for _role, _names in _ROLES.items():
    for _name in _names.split():
        _ROLE_OF_STEM.setdefault(stem(_name), set()).add(_role)

_OPTION_TEXT = re.compile(r"'([^'\n]{1,40})'|\"([^\"\n]{1,40})\"")
_EXAMPLES = re.compile(r"\b(?:e\.?g\.?|such as|for example|for instance|like|example)\b.*", re.IGNORECASE | re.DOTALL)


def slots_of(parameters: Mapping[str, Any], habits: Mapping[str, Habit]) -> list[Slot]:
    """The slots of an object schema, required ones first in their own order."""
    required = set(required_of(parameters))
    never = Habit(shown=max((habit.shown for habit in habits.values()), default=0))
    slots = [
        _slot(name, schema, name in required, habits.get(name, never))
        for name, schema in properties_of(parameters).items()
    ]
    return sorted(slots, key=lambda slot: not slot.required)


def _slot(name: str, schema: Mapping[str, Any], required: bool, habit: Habit) -> Slot:
    schema = resolved(schema)
    names, cues, roles, soft = _vocabulary(name, str(schema.get("description") or ""))
    if habit.cues:
        cues = {**cues, **{cue: cues.get(cue, 0.0) + min(2.0, 1.0 + 0.25 * n) for cue, n in habit.cues.items()}}
    if schema.get("format") in ("date", "date-time"):
        roles = frozenset({"date"})
    return Slot(name, schema, type_of(schema), required, cues, names, roles, options_of(schema), soft, habit)


@functools.lru_cache(maxsize=4096)
def _vocabulary(
    name: str, description: str
) -> tuple[tuple[str, ...], Mapping[str, float], frozenset[str], tuple[str, ...]]:
    names = name_words(name)
    cues: dict[str, float] = {}
    for cue in content_stems(_EXAMPLES.sub("", description)):
        cues.setdefault(cue, 0.8)
    for cue in names:
        if cue not in STOP_WORDS:
            cues[cue] = 2.0
    roles = {role for cue in names for role in _ROLE_OF_STEM.get(cue, ())}
    if not roles:
        roles = {
            role for cue in content_stems(_EXAMPLES.sub("", description))[:6] for role in _ROLE_OF_STEM.get(cue, ())
        } - {"query", "count"}
    soft = tuple(a or b for a, b in _OPTION_TEXT.findall(description))
    return names, cues, frozenset(roles), soft
