"""Scoring: how well the values of a text fit each slot. Pure.

``rank_mentions`` scores each mention for each slot: type, words around the mention, unit, preposition, kind of name.
The tables hold the weights. ``find_option`` and ``find_flag`` decide enums and flags from the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias, cast

from sigwire.core.json import JsonValue
from sigwire.lm.offline.mentions import Date, Mention, ParsedText
from sigwire.lm.offline.slots import Slot, items_of, type_of
from sigwire.lm.offline.words import CITIES, COUNTRIES, GENERIC, STOP_WORDS, name_words, stem

__all__ = [
    "ScoredValue", "as_number", "find_flag", "find_option", "find_quoted_option", "fits",
    "mention_family", "name_strength", "rank_mentions",
]  # fmt: skip

ScoredValue: TypeAlias = "tuple[JsonValue, float]"
"""A value, and a score of the evidence for it."""

_FAMILIES = {"integer": "number", "number": "number", "array": "array", "boolean": "", "object": ""}
_KINDS_OF_FAMILY: Mapping[str, frozenset[str]] = {
    "number": frozenset({"number", "date", "time", "id"}),
    "string": frozenset({"quoted", "name", "id", "email", "url", "date", "time", "phrase", "number"}),
    "array": frozenset({"list", "number", "name", "quoted", "id", "phrase", "date", "url", "email"}),
}
_KIND_SCORE: Mapping[str, float] = {
    "list": 2.0, "quoted": 0.9, "name": 0.6, "phrase": -0.3, "date": -0.8, "time": -0.8, "number": -1.0,
}  # fmt: skip
# Kind of mention -> gain for a slot with one of these roles or cues.
_EXPECTED: Mapping[str, tuple[float, frozenset[str]]] = {
    kind: (gain, frozenset((*names.split(), *map(stem, names.split()))))
    for kind, gain, names in (
        ("date", 3.0, "date"),
        ("time", 3.0, "time"),
        ("email", 3.5, "email"),
        ("id", 1.2, "id"),
        ("number", 0.8, "id"),
        ("url", 3.5, "url link uri site website page host server domain ip"),
    )
}
# Unit -> stems of the quantities that it measures.
_MEASURES: Mapping[str, frozenset[str]] = {
    unit: frozenset(map(stem, (*measured.split(), unit)))
    for units, measured in (
        ("$ € £ ¥ ₹ dollars euros", "price amount cost payment investment value money budget salary income revenue"),
        ("% percent", "rate percentage interest yield ratio probability discount"),
        ("m km cm mm miles feet meters kilometers", "distance length height width radius diameter side base"),
        ("kg g lb kilograms pounds", "mass weight"),
        ("m/s km/h mph", "speed velocity"),
        ("seconds minutes hours", "time duration"),
        ("years months", "time period term age"),
    )
    for unit in units.split()
}
_PREPOSITIONS: Mapping[str, Mapping[str, float]] = {
    "from": {"origin": 2.0, "place": 0.5},
    "to": {"target": 2.0, "place": 0.3},
    "in": {"place": 1.5},
    "by": {"maker": 1.5, "person": 0.4},
    "on": {"date": 1.0},
}
_DETERMINERS = frozenset("the a an one each all every this that my our its".split())
_NEGATIONS = frozenset({"not", "no", "without", "never", "exclude", "excluding", "don't", "doesn't", "disable", "skip"})
_FLAG_WORDS = frozenset(
    stem(w) for w in "is has include included show return use enable allow with should get want as format".split()
)


def rank_mentions(slots: Sequence[Slot], text: ParsedText) -> list[tuple[float, Slot, Mention]]:
    """Return each slot with each mention that fits it, best score first; reading order breaks ties."""
    scored: list[tuple[float, Slot, Mention]] = []
    for family in _KINDS_OF_FAMILY:
        members = [slot for slot in slots if mention_family(slot) == family and not slot.options]
        for i, slot in enumerate(members):
            for j, mention in enumerate(text.mentions):
                if fits(slot, mention):
                    score = _score(slot, mention, text) + (0.4 if slot.required else 0.0)
                    scored.append((score - 0.02 * abs(i - j) - 0.001 * j, slot, mention))
    return sorted(scored, key=lambda item: -item[0])


def mention_family(slot: Slot) -> str:
    """Return the family of mentions that can fill the slot: "number", "string", "array", or "" for flags and objects."""
    return _FAMILIES.get(slot.type, "string")


def fits(slot: Slot, mention: Mention) -> bool:
    """Return True if the slot's type accepts the mention's kind and form."""
    family = mention_family(slot)
    if mention.kind not in _KINDS_OF_FAMILY.get(family, ()):
        return False
    if family == "number":
        value = as_number(slot, mention)
        return value is not None and (slot.type == "number" or float(value).is_integer())
    if family == "array" and mention.kind != "list":
        item = type_of(items_of(slot.schema))
        return item not in ("array", "object") and (mention.kind == "number") == (item in ("integer", "number"))
    return True


def as_number(slot: Slot, mention: Mention) -> int | float | None:
    """Return a mention as a number: a date gives the part that the slot names, an id its digits."""
    if mention.kind == "number":
        return cast("int | float", mention.value)
    if mention.kind == "date":
        date = cast(Date, mention.value)
        return next((getattr(date, part) for part in ("year", "month", "day") if stem(part) in slot.names), None)
    digits = mention.text.lstrip("#")
    return int(digits) if mention.kind == "id" and "id" in slot.roles and digits.isdecimal() else None


def _score(slot: Slot, mention: Mention, text: ParsedText) -> float:
    score = _cue_score(slot, mention, text)
    if mention.kind == "number" and slot.type != "string":
        measured = _MEASURES.get(mention.unit, frozenset({stem(mention.unit)}))
        gain = 2.0 if stem(mention.unit) in slot.names else 1.2
        return score + (gain if measured & slot.cues.keys() else -0.4 * (mention.unit in _MEASURES))
    score += _KIND_SCORE.get(mention.kind, 0.0) + _preposition_score(slot, mention, text)
    if mention.kind in _EXPECTED:
        gain, expected = _EXPECTED[mention.kind]
        return score + gain * bool(expected & (slot.roles | slot.cues.keys()))
    return score + (_name_score(slot, mention) if mention.kind == "name" else _phrase_score(slot, mention))


def _cue_score(slot: Slot, mention: Mention, text: ParsedText) -> float:
    """Score the words around a mention by the cues of the slot: nearer words weigh more."""
    is_phrase = mention.kind == "phrase"
    # A plain phrase modifies the next word ("renewable energy"); a value follows its cue ("radius of 5").
    ahead, behind = (0.6, 1.1) if is_phrase else (1.0, 0.7)
    after = takewhile(lambda word: word.text.lower() != "and", text.after(mention))
    score = ahead * sum(
        slot.cues.get(w.stem, 0.0) / (1 + 0.35 * distance) for distance, w in enumerate(text.before(mention))
    )
    score += behind * sum(slot.cues.get(w.stem, 0.0) / (1 + 0.5 * distance) for distance, w in enumerate(after))
    if is_phrase or (mention.kind == "name" and " " not in mention.text):
        parts = name_words(mention.text)
        # A cue of the slot is not its value: "user ID", "cell type".
        score += 0.15 * len(parts) - 1.1 * sum(part in slot.cues or part in GENERIC for part in parts)
        score -= 0.3 * sum(part in text.topic for part in parts)
    return min(score, 3.0)


def _preposition_score(slot: Slot, mention: Mention, text: ParsedText) -> float:
    before = (word.text.lower() for word in text.before(mention, 4))
    word = next((word for word in before if word not in _DETERMINERS and not word[0].isdigit()), "")
    return sum(gain for role, gain in _PREPOSITIONS.get(word, {}).items() if role in slot.roles)


def _name_score(slot: Slot, mention: Mention) -> float:
    head = mention.text.lower().partition(",")[0]
    is_known_place = head in CITIES or head in COUNTRIES
    if "place" in slot.roles:
        return 0.9 if is_known_place else -0.6
    return -0.8 if is_known_place else 0.3 * bool(slot.roles & {"person", "maker"})


def _phrase_score(slot: Slot, mention: Mention) -> float:
    if mention.kind != "phrase" or not slot.roles & {"date", "time", "place", "person", "maker", "id"}:
        return 0.0
    return -2.0 if slot.roles & {"date", "time"} else -0.6


def find_option(slot: Slot, text: ParsedText, taken: Sequence[JsonValue] = ()) -> ScoredValue | None:
    """Return the option of an enum that the text names, except the options in ``taken``."""
    options = [option for option in slot.options if option not in taken]
    scored = [(name_strength(str(option), text), -place, option) for place, option in enumerate(options)]
    score, _, best = max(scored, key=lambda item: item[:2], default=(0.0, 0, None))
    return (best, score) if score > (0 if slot.required else 0.9) else None


def find_quoted_option(slot: Slot, text: ParsedText) -> ScoredValue | None:
    """Return the first option quoted in the slot's description that the text names literally."""
    return next(((option, 3.0) for option in slot.soft if _is_literal(option, text)), None)


def name_strength(option: str, text: ParsedText) -> float:
    """Return how plainly a text names an option: 3 literally, 2 by all of its stems, 0 not at all."""
    if _is_literal(option, text):
        return 3.0 + len(option) / 100
    stems = set(name_words(option)) - STOP_WORDS
    hits = sum(len(part) > 3 for part in stems & text.stems)
    if not hits and len(option) > 4:  # "musical" names the option "music"
        hits = any(word.text.lower().startswith(option.lower()) for word in text.tokens)
    return 2.0 * hits / len(stems) if hits * 2 > len(stems) - 1 and stems else 0.0


def _is_literal(option: str, text: ParsedText) -> bool:
    return len(option) > 1 and re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text.text, re.IGNORECASE) is not None


def find_flag(slot: Slot, text: ParsedText) -> ScoredValue | None:
    """Return True if the text names the flag, False after a negation, its default if it is required."""
    parts = set(slot.names) - STOP_WORDS - _FLAG_WORDS
    hits = parts & text.stems
    if not hits or len(hits) * 3 < len(parts) * 2:
        return (True, 0.2) if slot.required and slot.schema.get("default") is None else None
    place = next(i for i, word in enumerate(text.tokens) if word.stem in hits)
    near = {word.text.lower() for word in text.tokens[max(0, place - 4) : place]}
    return not near & _NEGATIONS, 1.5
