"""Slot filling: from a text and a JSON Schema of parameters to arguments, by rules. Pure.

The sources of a value, in order: known values with a high score; the whole text (options, flags, objects inside objects);
mentions, best score first, each for one slot only; known values, values on which demos agree, defaults.

The end of this file writes a mention in the form of its slot: a number, an ISO date, a city with its state, a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.offline.mentions import Date, Mention, ParsedText, overlap
from sigwire.lm.offline.scoring import (
    ScoredValue,
    as_number,
    find_flag,
    find_option,
    find_quoted_option,
    fits,
    mention_family,
    name_strength,
    rank_mentions,
)
from sigwire.lm.offline.slots import Schema, Slot, SlotHabit, items_of, options_of, slots_of, type_of
from sigwire.lm.offline.words import CITIES

__all__ = ["FilledArguments", "KnownValues", "fill"]

KnownValues: TypeAlias = "Mapping[str, ScoredValue]"
"""Values by parameter from another source than the text."""

_HIGH_SCORE = 2.5  # of a known value that no text outweighs
_OPTIONAL_SCORE = 1.35  # from which an optional parameter is filled
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_CITY_STATE = re.compile(r"city[ ,/]*(?:and|,)\s*(?:state|country)|[A-Z][a-z]+, [A-Z]{2}\b", re.IGNORECASE)
_ENDS_IN_STATE = re.compile(r", ([A-Z]{2})$")
_ENUMERATED = frozenset({"name", "quoted", "number", "id", "date", "list"})


@dataclass(frozen=True, slots=True)
class FilledArguments:
    """Arguments for a tool: ``evidence`` has the score of each, ``lack`` is the share of required values ``missing``.

    ``further`` has the arguments that differ in further calls, if a text names several values ("Rome and Oslo").
    """

    arguments: JsonObject
    evidence: Mapping[str, float]
    missing: tuple[str, ...] = ()
    lack: float = 0.0
    further: tuple[JsonObject, ...] = ()


def fill(
    parameters: Schema,
    text: str,
    habits: Mapping[str, SlotHabit] | None = None,
    known: KnownValues | None = None,
    topic: frozenset[str] = frozenset(),
) -> FilledArguments:
    """Return arguments for an object schema from a text; ``topic`` has the stems of the tool, seldom values.

    >>> schema = {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"]}
    >>> fill(schema, "The weather in Rome for the next 3 days").arguments
    {'city': 'Rome', 'days': 3}
    """
    return _ArgumentDraft(slots_of(parameters, habits or {}), ParsedText.of(text, topic), known or {}).result()


class _ArgumentDraft:
    """Arguments under construction: values, scores and used mentions; ``_single`` has the mentions that alone fill a slot."""

    def __init__(self, slots: Sequence[Slot], text: ParsedText, known: KnownValues) -> None:
        self._slots, self._text, self._known = slots, text, known
        self._arguments: JsonObject = {}
        self._evidence: dict[str, float] = {}
        self._single: list[tuple[Mention, Slot]] = []
        self._used: list[Mention] = []
        self._fill_from_whole_text()
        self._fill_from_mentions()
        self._fill_defaults()

    def _set(self, slot: Slot, found: ScoredValue) -> None:
        self._arguments[slot.name], self._evidence[slot.name] = found

    def _open_slots(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.name not in self._arguments]

    def _is_free(self, mention: Mention) -> bool:
        return not any(overlap(mention, other) for other in self._used)

    def _fill_from_whole_text(self) -> None:
        for slot in self._slots:
            if (known := self._known.get(slot.name)) and known[1] >= _HIGH_SCORE:
                self._set(slot, known)
            elif (found := self._from_whole_text(slot)) is not None:
                self._set(slot, found)
                self._used.extend(_spelled_out(found[0], self._text))

    def _from_whole_text(self, slot: Slot) -> ScoredValue | None:
        if not slot.options:
            return _BY_TYPE[slot.type](slot, self._text) if slot.type in _BY_TYPE else None
        # Two slots with equal options, such as units, never have the same option.
        equal = [other.name for other in self._slots if other.options == slot.options]
        return find_option(slot, self._text, [self._arguments[name] for name in equal if name in self._arguments])

    def _fill_from_mentions(self) -> None:
        for score, slot, mention in rank_mentions(self._open_slots(), self._text):
            # A date may give its year to one slot and its day to another.
            shared = mention.kind == "date" and mention_family(slot) == "number"
            if slot.name not in self._arguments and (shared or self._is_free(mention)):
                self._use(score, slot, mention)

    def _use(self, score: float, slot: Slot, mention: Mention) -> None:
        """Fill a slot with its best mention, with a better known value, or not at all."""
        if (known := self._known.get(slot.name)) and known[1] > score:
            self._set(slot, known)
        elif score < _least_score(slot):
            return
        else:
            group = [mention]
            if slot.type == "array" and mention.kind != "list":
                group = [m for m in self._text.enumeration(mention) if self._is_free(m)]
            elif slot.type != "array" and mention.kind in _ENUMERATED:
                self._single.append((mention, slot))
            self._set(slot, (_value_of(slot, group, self._text), score))
            self._used.extend(group)

    def _fill_defaults(self) -> None:
        for slot in self._open_slots():
            if slot.required and (found := self._known.get(slot.name) or _default(slot, self._text)):
                self._set(slot, found)

    def result(self) -> FilledArguments:
        ordered = {slot.name: self._arguments[slot.name] for slot in self._slots if slot.name in self._arguments}
        required = [slot.name for slot in self._slots if slot.required]
        missing = tuple(name for name in required if name not in ordered)
        lack = len(missing) / (len(required) or 1)
        further = self._enumerated_values() or self._repeated_values()
        return FilledArguments(ordered, self._evidence, missing, lack, further)

    def _enumerated_values(self) -> tuple[JsonObject, ...]:
        """Return the other values of an enumeration ("Rome and Oslo"); two enumerations of one length are paired."""
        several: dict[str, list[JsonValue]] = {}
        for mention, slot in self._single:
            peers = self._text.enumeration(mention)
            peers.remove(mention)
            if all(self._is_free(peer) and fits(slot, peer) for peer in peers):
                several[slot.name] = [_value_of(slot, [peer], self._text) for peer in peers]
        count = max(map(len, several.values()), default=0)
        return tuple({name: v[i] for name, v in several.items() if len(v) == count} for i in range(count))

    def _repeated_values(self) -> tuple[JsonObject, ...]:
        """Return further sets of values after the used ones, if the free mentions repeat their kinds in order."""
        if not self._single:
            return ()
        used = sorted(self._single, key=lambda pair: pair[0].start)
        kinds, slots, rest = [m.kind for m, _ in used], [slot for _, slot in used], self._free_after(used[-1][0])
        rounds = [rest[start : start + len(used)] for start in range(0, len(rest), len(used))]
        if any([m.kind for m in found] != kinds for found in rounds):
            return ()
        return tuple(self._write(slots, found) for found in rounds)

    def _free_after(self, last: Mention) -> list[Mention]:
        after = (m for m in self._text.mentions if m.start > last.start and m.kind in _ENUMERATED)
        return list(filter(self._is_free, after))

    def _write(self, slots: Sequence[Slot], mentions: Sequence[Mention]) -> JsonObject:
        return {slot.name: _value_of(slot, [m], self._text) for slot, m in zip(slots, mentions, strict=True)}


def _least_score(slot: Slot) -> float:
    """Return the score that a mention needs: 0 for a required slot, more for a slot that demos often omit."""
    if slot.required and slot.schema.get("default") is None:
        return 0.0
    habit = slot.habit
    return 1.8 - 0.9 * habit.given / (habit.shown + 1) if habit.shown else _OPTIONAL_SCORE


def _spelled_out(value: JsonValue, text: ParsedText) -> list[Mention]:
    """Return the place where the text spells an option, as a mention that no other slot may use."""
    at = text.text.lower().find(value.lower()) if isinstance(value, str) and len(value) > 2 else -1
    if at < 0 or any(m.kind == "number" and m.start <= at < m.end for m in text.mentions):
        return []  # the unit of a number belongs to its number
    return [Mention("phrase", value, at, at + len(str(value)), "")]


def _object(slot: Slot, text: ParsedText) -> ScoredValue | None:
    inner = _ArgumentDraft(slots_of(slot.schema, {}), text, {}).result()
    if inner.missing or not inner.arguments:
        return None
    score = max(inner.evidence.values(), default=0.0)
    return (inner.arguments, score) if slot.required or score > _OPTIONAL_SCORE else None


def _named_items(slot: Slot, text: ParsedText) -> ScoredValue | None:
    named = [option for option in options_of(items_of(slot.schema)) if name_strength(str(option), text) >= 2.0]
    return (named, 2.0) if named else None


_BY_TYPE: Mapping[str, Callable[[Slot, ParsedText], ScoredValue | None]] = {
    "array": _named_items,
    "boolean": find_flag,
    "object": _object,
    "string": lambda slot, text: find_quoted_option(slot, text) if slot.soft and "place" not in slot.roles else None,
}


def _default(slot: Slot, text: ParsedText) -> ScoredValue | None:
    """Return a value on which demos agree, the default, or the whole text as a query."""
    shown = slot.habit.values
    if shown and (slot.options or (len(shown) > 1 and all(value == shown[0] for value in shown))):
        return shown[0], 0.6
    if (default := slot.schema.get("default")) is not None:
        return default, 0.3
    return (text.text.strip(), 0.2) if slot.type == "string" and "query" in slot.roles else None


def _value_of(slot: Slot, group: Sequence[Mention], text: ParsedText) -> JsonValue:
    mention = group[0]
    if slot.type == "array":
        if mention.kind == "list":
            return cast(JsonValue, mention.value)
        item = replace(slot, type=type_of(items_of(slot.schema)))
        return [_value_of(item, [mention], text) for mention in group]
    if slot.type in ("integer", "number"):
        return _number(slot, mention)
    by_kind = _WRITERS.get(mention.kind)
    return by_kind(slot, mention, text) if by_kind else str(mention.value)


def _number(slot: Slot, mention: Mention) -> JsonValue:
    value = cast("int | float", as_number(slot, mention))
    if slot.type == "integer":
        return int(value)
    is_share = mention.unit in ("%", "percent") and "percent" not in slot.description.lower() + slot.name.lower()
    return round(value / 100, 10) if is_share else value


def _date(slot: Slot, mention: Mention, text: ParsedText) -> str:
    """Write a date as ISO 8601; a missing year is taken from the text, the demos or the description."""
    date = cast(Date, mention.value)
    sources = (str(date.year), text.text, json.dumps(slot.habit.values), slot.description)
    year = next((match[0] for source in sources if (match := _YEAR.search(source))), None)
    return f"{year}-{date.month:02d}-{date.day:02d}" if year else mention.text


def _name(slot: Slot, mention: Mention, text: ParsedText) -> str:
    """Write a place with its state if demos or the description have one."""
    if "place" not in slot.roles or "," in mention.text:
        return mention.text
    states = [match[1] for value in slot.habit.values if (match := _ENDS_IN_STATE.search(str(value)))]
    if states or (len(slot.habit.values) < 3 and _CITY_STATE.search(slot.description)):
        state = CITIES.get(mention.text.lower()) or max(states, key=states.count, default=None)
        return f"{mention.text}, {state}" if state else mention.text
    return mention.text


_WRITERS: Mapping[str, Callable[[Slot, Mention, ParsedText], str]] = {"date": _date, "name": _name}
