"""Slot filling: from a text and a JSON Schema of parameters to arguments, by rules. Pure.

The ways to fill a slot, in the order in which they are tried:

    known           what something other than the text gives, where the reason is strong
    the whole text  options, flags, units, objects inside objects
    mentions        the values in the text, best score first, each for one slot only
    known, again    where the text gave nothing; then defaults, and what demos agree on

Parameters that may be left out are, unless the text speaks of them. ``slots`` says what a parameter is looking for,
``scene`` what the text has, ``scores`` how well they fit, ``options`` what the whole text decides, ``written`` how a slot
wants a value to look.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.offline.mentions import Mention
from sigwire.lm.offline.options import Reasoned, flag, is_mentioned, option, option_shown, unit
from sigwire.lm.offline.places import UNITS
from sigwire.lm.offline.scene import Scene, enumeration, touch
from sigwire.lm.offline.schemas import items_of, options_of, properties_of
from sigwire.lm.offline.scores import family, fits, ranked
from sigwire.lm.offline.slots import Habit, Slot, slots_of
from sigwire.lm.offline.words import stem
from sigwire.lm.offline.written import value_of

__all__ = ["Filling", "Known", "fill"]


@dataclass(frozen=True, slots=True)
class Filling:
    """Arguments for a tool: ``evidence`` says per parameter how good the reason is, ``missing`` what had to be left out.

    ``alternatives`` are all the values of a parameter that the text names in one enumeration; ``repeats`` further
    sets of values that the text gives in the same order and kinds.
    """

    arguments: JsonObject
    evidence: Mapping[str, float]
    missing: tuple[str, ...] = ()
    alternatives: Mapping[str, tuple[JsonValue, ...]] = field(
        default_factory=lambda: dict[str, tuple[JsonValue, ...]]()
    )
    repeats: tuple[JsonObject, ...] = ()


Known: TypeAlias = "Mapping[str, Reasoned]"
"""Values that something other than the text gives for a parameter, and how good the reason is."""


def fill(
    parameters: Mapping[str, Any],
    text: str,
    habits: Mapping[str, Habit] | None = None,
    known: Known | None = None,
    about: frozenset[str] = frozenset(),
) -> Filling:
    """Arguments for an object schema out of a text; ``known`` values win where the text's reason is weaker.

    ``about`` has the stems of what the parameters are for; words that say it are seldom values.

    >>> schema = {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"]}
    >>> fill(schema, "The weather in Rome for the next 3 days").arguments
    {'city': 'Rome', 'days': 3}
    """
    return _filled(slots_of(parameters, habits or {}), Scene.of(text, about), known or {})


def _filled(slots: Sequence[Slot], scene: Scene, known: Known) -> Filling:
    draft = _ArgumentDraft(slots, scene, known)
    draft.by_whole_text()
    draft.by_mentions()
    draft.in_reading_order()
    draft.by_last_resorts()
    return draft.filling()


_SURE = 2.5  # a reason from elsewhere that no text outweighs
_FITS_WELL = 1.35  # a reason that is enough for what may be left out


class _ArgumentDraft:
    """Arguments in the making: which slots have a value and why, and which mentions are taken."""

    def __init__(self, slots: Sequence[Slot], scene: Scene, known: Known) -> None:
        self._slots, self._scene, self._known = slots, scene, known
        self._arguments: JsonObject = {}
        self._evidence: dict[str, float] = {}
        self._chosen: dict[str, list[Mention]] = {}
        self._used: list[Mention] = []

    def _give(self, slot: Slot, found: Reasoned) -> None:
        self._arguments[slot.name], self._evidence[slot.name] = found

    def _open(self) -> list[Slot]:
        return [slot for slot in self._slots if slot.name not in self._arguments]

    def _is_free(self, mention: Mention) -> bool:
        return not any(touch(mention, other) for other in self._used)

    # --- the whole text ---

    def by_whole_text(self) -> None:
        for slot in self._slots:
            known = self._known.get(slot.name)
            if known and known[1] >= _SURE:
                self._give(slot, known)
            elif (found := _by_itself(slot, self._scene, self._options_taken(slot))) is not None:
                self._give(slot, found)
                self._used.extend(_said_as(found[0], self._scene))

    def _options_taken(self, slot: Slot) -> list[JsonValue]:
        """Options that slots with the same options have already: from one unit to the same one is never meant."""
        pairs = slot.options and slot.roles & {"origin", "target"}
        alike = [other.name for other in self._slots if pairs and other.options == slot.options]
        return [self._arguments[name] for name in alike if name in self._arguments]

    # --- mentions ---

    def by_mentions(self) -> None:
        for score, slot, mention in ranked(self._open(), self._scene):
            if slot.name not in self._arguments and (_is_shared(slot, mention) or self._is_free(mention)):
                self._weigh(score, slot, mention)

    def _weigh(self, score: float, slot: Slot, mention: Mention) -> None:
        """Fill a slot with its best mention, unless there is a better reason for another value, or for none."""
        known = self._known.get(slot.name)
        if known and known[1] > score:
            self._give(slot, known)
        elif score < _least(slot):
            return
        elif slot.required and slot.habit.unsaid and mention.kind == "phrase" and score < 1.2:
            self._give(slot, (slot.habit.unsaid[0], 0.6))
        else:
            group = self._group(slot, mention)
            self._chosen[slot.name] = group
            self._give(slot, (value_of(slot, group, self._scene), score))
            self._used.extend(group)

    def _group(self, slot: Slot, mention: Mention) -> list[Mention]:
        """The mentions that make up a value: one, or for an array the whole enumeration "A, B and C"."""
        if slot.type != "array" or mention.kind in ("list", "pair"):
            return [mention]
        return [m for m in enumeration(mention, self._scene.mentions, self._scene.text) if self._is_free(m)]

    def in_reading_order(self) -> None:
        for slot, group in _in_reading_order(self._slots, self._chosen):
            self._arguments[slot.name] = value_of(slot, group, self._scene)

    # --- what is left ---

    def by_last_resorts(self) -> None:
        for slot in self._open():
            if slot.required and (found := self._known.get(slot.name) or _last_resort(slot, self._scene)):
                self._give(slot, found)

    def filling(self) -> Filling:
        ordered = {slot.name: self._arguments[slot.name] for slot in self._slots if slot.name in self._arguments}
        missing = tuple(slot.name for slot in self._open() if slot.required)
        several = self._alternatives()
        return Filling(ordered, self._evidence, missing, several, () if several else self._repeats())

    def _alternatives(self) -> dict[str, tuple[JsonValue, ...]]:
        """For each parameter with one value out of an enumeration whose other values nothing has taken: all of them."""
        found: dict[str, tuple[JsonValue, ...]] = {}
        for slot in self._slots:
            group = self._chosen.get(slot.name, ())
            if len(group) != 1 or group[0].kind not in _COUNTED or slot.type == "array":
                continue
            peers = enumeration(group[0], self._scene.mentions, self._scene.text)
            free = all(peer is group[0] or self._is_free(peer) for peer in peers)
            if len(peers) > 1 and free and all(fits(slot, peer) for peer in peers):
                found[slot.name] = tuple(value_of(slot, [peer], self._scene) for peer in peers)
        return found

    def _repeats(self) -> tuple[JsonObject, ...]:
        """Further sets of values after the chosen ones, with the same kinds and units in the same order."""
        own = self._single_values()
        if not own:
            return ()
        last = own[-1][0].start
        rest = [m for m in self._scene.mentions if m.kind in _COUNTED and m.start > last and self._is_free(m)]
        found: list[JsonObject] = []
        while len(rest) >= len(own) and all(_alike(m, o) for m, (o, _) in zip(rest, own, strict=False)):
            found.append({slot.name: value_of(slot, [m], self._scene) for m, (_, slot) in zip(rest, own, strict=False)})
            rest = rest[len(own) :]
        return () if rest else tuple(found)

    def _single_values(self) -> list[tuple[Mention, Slot]]:
        """The mentions that alone fill a slot, as they are read."""
        alone = [(group[0], slot) for slot in self._slots if len(group := self._chosen.get(slot.name, [])) == 1]
        return sorted(((m, slot) for m, slot in alone if m.kind in _COUNTED), key=lambda pair: pair[0].start)


_COUNTED = frozenset({"name", "quoted", "number", "id", "date", "list", "pair"})


def _alike(a: Mention, b: Mention) -> bool:
    return a.kind == b.kind and UNITS.get(a.unit, a.unit) == UNITS.get(b.unit, b.unit)


def _is_shared(slot: Slot, mention: Mention) -> bool:
    """Whether other slots may take the mention too: a time has an hour and a minute, a price its currency."""
    return mention.kind == "currency" or (mention.kind in ("date", "time") and family(slot) == "number")


def _least(slot: Slot) -> float:
    """The score a mention needs: little where the slot must be filled, more where it may be left out or examples
    leave it out.
    """
    if slot.required and not slot.has_default:
        return 0.0
    habit = slot.habit
    if not habit.shown:
        return _FITS_WELL
    return 1.9 - 0.9 * habit.given / (habit.shown + 1)


def _said_as(value: JsonValue, scene: Scene) -> list[Mention]:
    """Where the text says an option word for word; no other slot takes it from there."""
    at = scene.text.lower().find(value.lower()) if isinstance(value, str) and len(value) > 2 else -1
    if at < 0 or any(m.kind == "number" and m.start <= at < m.end for m in scene.mentions):
        return []  # the unit of a number stays with its number
    return [Mention("phrase", value, at, at + len(cast(str, value)), "")]


_ORDINALS = frozenset(stem(word) for word in "first second third start end begin from to initial final min max".split())


def _in_reading_order(
    slots: Sequence[Slot], chosen: Mapping[str, list[Mention]]
) -> Iterator[tuple[Slot, list[Mention]]]:
    """Slots that differ by a number or an ordinal only ("side1", "side2"; "start_year", "end_year") take values as
    they are read.
    """
    families: dict[tuple[str, tuple[str, ...]], list[Slot]] = {}
    for slot in slots:
        if slot.name in chosen and not (slot.type == "string" and slot.roles & {"origin", "target"}):
            base = tuple(part for part in slot.names if not part.isdigit() and part not in _ORDINALS)
            families.setdefault((slot.type, base), []).append(slot)
    for alike in families.values():
        if len(alike) > 1 and all(len(chosen[slot.name]) == 1 for slot in alike):
            ordered = sorted((chosen[slot.name] for slot in alike), key=lambda group: group[0].start)
            yield from zip(sorted(alike, key=slots.index), ordered, strict=True)


def _by_itself(slot: Slot, scene: Scene, taken: Sequence[JsonValue]) -> Reasoned | None:
    """What the whole text says of a slot that is no matter of a single mention."""
    if slot.options:
        return option(slot, scene, taken)
    if slot.type == "string":
        return _by_description(slot, scene)
    fill_slot = _BY_TYPE.get(slot.type)
    return None if fill_slot is None else fill_slot(slot, scene)


def _by_description(slot: Slot, scene: Scene) -> Reasoned | None:
    if "unit" in slot.roles:
        return unit(slot, scene)
    return option_shown(slot, scene) if slot.soft and not slot.roles & {"place", "currency"} else None


def _nested(slot: Slot, scene: Scene) -> Reasoned | None:
    given = next((m for m in scene.mentions if m.kind == "object"), None)
    return (given.value, 2.0) if given is not None else _object(slot, slot.schema, scene)


def _object(slot: Slot, schema: Mapping[str, Any], scene: Scene) -> Reasoned | None:
    """An object whose required members the text has."""
    if not properties_of(schema):
        return None
    inner = _filled(slots_of(schema, {}), scene, {})
    if inner.missing or not inner.arguments:
        return None
    score = max(inner.evidence.values(), default=0.0)
    return (inner.arguments, score) if slot.required or score > _FITS_WELL else None


def _array(slot: Slot, scene: Scene) -> Reasoned | None:
    """An array of one object, or of the options that the text names; other arrays are enumerations of mentions."""
    items = items_of(slot.schema)
    if properties_of(items):
        found = _object(slot, items, scene)
        return None if found is None else ([found[0]], 1.0)
    named = [value for value in options_of(items) if is_mentioned(str(value), scene)]
    return (cast(JsonValue, named), 2.0) if named else None


_BY_TYPE: Mapping[str, Callable[[Slot, Scene], Reasoned | None]] = {"array": _array, "boolean": flag, "object": _nested}


_DEFAULT_TEXT = re.compile(
    r"default(?:s|ed)?(?:\s+value)?(?:\s+is|\s+to|:|\s+of|=)?\s*(?:'([^']*)'|\"([^\"]*)\"|(-?\d+(?:\.\d+)?))",
    re.IGNORECASE,
)


def _last_resort(slot: Slot, scene: Scene) -> Reasoned | None:
    """A required value that nothing in the text speaks of: its default, a value that demos agree on, or the text itself."""
    shown = slot.habit.values
    if shown and (slot.options or (len(shown) > 1 and len({json.dumps(value) for value in shown}) == 1)):
        return shown[0], 0.6
    if slot.has_default:
        return slot.schema["default"], 0.3
    if match := _DEFAULT_TEXT.search(slot.description):
        text = next(group for group in match.groups() if group is not None)
        if slot.type == "string":
            return text, 0.2
        if slot.type in ("integer", "number") and re.fullmatch(r"-?\d+(?:\.\d+)?", text):
            return float(text) if "." in text and slot.type == "number" else int(float(text)), 0.2
    if (
        slot.type in ("integer", "number")
        and {"rest", "stationary", "zero"} & scene.stems
        and {"initial", "start"} & set(slot.names)
    ):
        return 0, 0.5
    if slot.type == "string" and "query" in slot.roles and not slot.options:
        return scene.text.strip(), 0.2
    return None
