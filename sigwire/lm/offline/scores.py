"""Scores: how well each value that a text mentions fits each slot. Pure.

Does the type fit, do the words around the mention speak of the slot, does its unit, does a preposition ("from", "in",
"by")? ``ranked`` asks it of all of them; the tables say what counts for how much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sigwire.lm.offline.mentions import Mention
from sigwire.lm.offline.places import CITIES, COLORS, COUNTRIES, CURRENCIES, LANGUAGES, MEASURES, UNITS
from sigwire.lm.offline.scene import Scene, enumeration
from sigwire.lm.offline.schemas import is_list, items_of, type_of
from sigwire.lm.offline.slots import Slot
from sigwire.lm.offline.words import GENERIC, name_words, stem
from sigwire.lm.offline.written import as_number

__all__ = ["family", "fits", "near_cue", "ranked"]


def ranked(slots: Sequence[Slot], scene: Scene) -> list[tuple[float, Slot, Mention]]:
    """Every slot with every mention that may fill it, best score first; required slots and reading order count a little."""
    scored: list[tuple[float, Slot, Mention]] = []
    for kind in ("number", "string", "array"):
        own = [slot for slot in slots if family(slot) == kind and not slot.options]
        fitting = [(i, s, j, m) for i, s in enumerate(own) for j, m in enumerate(scene.mentions) if fits(s, m)]
        for i, slot, j, mention in fitting:
            score = _score(slot, mention, scene) + (0.4 if slot.required else 0.0)
            scored.append((score - 0.02 * abs(i - j) - 0.001 * j, slot, mention))
    return sorted(scored, key=lambda item: -item[0])


def family(slot: Slot) -> str:
    """Which mentions can fill the slot; flags and objects are filled by themselves."""
    return _FAMILIES.get(slot.type, "string")


_FAMILIES = {"integer": "number", "number": "number", "array": "array", "boolean": "none", "object": "none"}


def fits(slot: Slot, mention: Mention) -> bool:
    """Whether a mention is of a kind and a form that the slot's type takes."""
    return mention.kind in _KINDS_OF_FAMILY[family(slot)] and (
        slot.type not in _FITS or _FITS[slot.type](slot, mention)
    )


_KINDS_OF_FAMILY: Mapping[str, frozenset[str]] = {
    "none": frozenset(),
    "number": frozenset({"number", "date", "time", "id"}),
    "string": frozenset(
        {"quoted", "name", "id", "email", "url", "date", "time", "phrase", "number", "pair", "currency"}
    ),
    "array": frozenset({"list", "pair", "number", "name", "quoted", "id", "phrase", "date", "url", "email"}),
}


def _fits_integer(slot: Slot, mention: Mention) -> bool:
    value = as_number(slot, mention)
    return value is not None and float(value).is_integer()


def _fits_array(slot: Slot, mention: Mention) -> bool:
    item = type_of(items_of(slot.schema))
    if mention.kind in ("list", "pair"):
        value = mention.value
        return is_list(value) and (item not in _JSON_OK or all(map(_JSON_OK[item], value)))
    return (mention.kind == "number") == (item in ("integer", "number")) and item not in ("array", "object")


_JSON_OK: Mapping[str, Callable[[Any], bool]] = {
    "integer": lambda v: isinstance(v, int),
    "number": lambda v: isinstance(v, (int, float)),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
_FITS: Mapping[str, Callable[[Slot, Mention], bool]] = {
    "integer": _fits_integer,
    "number": lambda slot, mention: as_number(slot, mention) is not None,
    "array": _fits_array,
}


def _score(slot: Slot, mention: Mention, scene: Scene) -> float:
    score = near_cue(slot, mention, scene) + _BASE.get((family(slot), mention.kind), 0.0)
    score += _list_score(slot, mention, scene)
    if mention.kind == "number" and family(slot) != "string":
        # "the GCD of two numbers, say 36 and 48": a number in words is often no value.
        score -= 1.8 if "year" not in slot.roles and _is_year(mention, scene) else 0.0
        return score + _unit_score(slot, mention) - (0.7 if mention.text[:1].isalpha() else 0.0)
    if family(slot) == "number":
        return score + 1.0
    return score + _role_score(slot, mention, scene)


def _list_score(slot: Slot, mention: Mention, scene: Scene) -> float:
    """Enumerations belong to arrays."""
    if (
        mention.kind in ("list", "pair", "phrase", "number")
        or len(enumeration(mention, scene.mentions, scene.text)) < 2
    ):
        return 0.0
    return 0.8 if slot.type == "array" else -0.3


_BASE: Mapping[tuple[str, str], float] = {
    ("string", "quoted"): 0.9, ("string", "name"): 0.6, ("string", "id"): 0.3, ("string", "email"): -0.5,
    ("string", "url"): -0.5, ("string", "date"): -0.8, ("string", "time"): -0.8, ("string", "phrase"): -0.3,
    ("string", "number"): -1.0, ("string", "pair"): -0.2, ("array", "list"): 2.0, ("array", "pair"): 1.2,
    ("array", "name"): 0.5, ("array", "quoted"): 0.8, ("array", "phrase"): -0.3,
}  # fmt: skip


def near_cue(slot: Slot, mention: Mention, scene: Scene) -> float:
    """How much the words around a mention speak of the slot; nearer words count more, those behind it a little less."""
    score = 0.0
    # A plain phrase modifies what follows it ("renewable energy"); a value follows what it is about ("radius of 5").
    ahead, behind = (0.6, 1.1) if mention.kind == "phrase" else (1.0, 0.7)
    after = scene.after(mention)
    if after and after[0].text.lower() == "as":  # "'x1' as the password": what it is stands behind
        ahead, behind = 0.3, 2.0
    for distance, word in enumerate(scene.before(mention)):
        if word.text[0].isdigit() and distance:
            break  # what stands before another value speaks of that value
        score += ahead * slot.cues.get(word.stem, 0.0) / (1 + 0.35 * distance)
    for distance, word in enumerate(after):
        if word.text[0].isdigit() or word.text.lower() == "and":
            break
        score += behind * slot.cues.get(word.stem, 0.0) / (1 + 0.5 * distance)
    if mention.kind == "phrase" or (mention.kind == "name" and " " not in mention.text):
        # A word that says what the slot is about is not its value: "user ID", "cell type".
        score -= 0.8 * sum(1 for part in name_words(mention.text) if part in slot.cues or part in GENERIC)
        score -= 0.4 * mention.text.endswith("ing")
        score -= 0.3 * sum(1 for part in name_words(mention.text) if part in scene.about)
        score += 0.05 * min(3, mention.text.count(" "))
    return min(score, 3.0)


_YEAR_WORDS = frozenset({"in", "since", "during", "year", "of", "until", "by"})


def _is_year(mention: Mention, scene: Scene) -> bool:
    if mention.unit or not isinstance(mention.value, int) or not 1900 <= mention.value <= 2100:
        return False
    before = scene.before(mention, 1)
    return bool(before) and before[0].text.lower() in _YEAR_WORDS


def _unit_score(slot: Slot, mention: Mention) -> float:
    unit = UNITS.get(mention.unit)
    if unit is None:
        looks_like_year = not mention.unit and isinstance(mention.value, int) and 1000 <= mention.value <= 2100
        return (0.8 if looks_like_year else -0.8) if "year" in slot.roles else 0.0
    if stem(unit) in slot.names:
        return 2.0
    measured = {stem(word) for word in MEASURES[unit].split()}
    score = 1.2 if measured & set(slot.names) else 0.6 if measured & slot.cues.keys() else -0.4
    return score + (0.8 if stem(unit) in slot.cues else 0.0)


_PREPOSITIONS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "from": (("origin", 2.0), ("place", 0.5)),
    "to": (("target", 2.0), ("place", 0.3)),
    "in": (("place", 1.5), ("language", 1.0), ("currency", 0.8)),
    "into": (("target", 1.5), ("language", 1.0)),
    "at": (("place", 1.0), ("time", 1.0)),
    "near": (("place", 1.8),),
    "around": (("place", 1.2),),
    "by": (("maker", 1.5), ("person", 0.4)),
    "with": (("person", 0.8),),
    "for": (("person", 0.4), ("query", 0.3)),
    "on": (("date", 1.0),),
    "about": (("query", 1.5),),
    "of": (("place", 0.2), ("maker", 0.4)),
}


def _role_score(slot: Slot, mention: Mention, scene: Scene) -> float:
    before = [word.text.lower() for word in scene.before(mention, 4)]
    word = next((text for text in before if text not in _DETERMINERS and not text[0].isdigit()), "")
    score = sum(gain for role, gain in _PREPOSITIONS.get(word, ()) if role in slot.roles)
    if ("origin" in slot.roles and word == "to") or ("target" in slot.roles and word == "from"):
        score -= 1.5
    if "place" in slot.roles and mention.kind == "name" and word not in _PLACE_WORDS and not _is_place(mention.text):
        score -= 0.8
    if not slot.roles and mention.kind in ("phrase", "name") and word in ("of", "for", "about"):
        score += 0.6
    by_kind = _KIND_SCORE.get(mention.kind)
    return score + (by_kind(slot, mention) if by_kind else 0.0)


_DETERMINERS = frozenset("the a an one each all every this that my our its".split())
_PLACE_WORDS = frozenset("in at near around from to of for".split())


def _is_place(text: str) -> bool:
    head = text.lower().partition(",")[0]
    return head in CITIES or head in COUNTRIES


def _name_score(slot: Slot, mention: Mention) -> float:
    head = mention.text.lower().partition(",")[0]
    known_place = _is_place(mention.text)
    if "place" in slot.roles:
        return 0.9 if known_place else 0.1
    if "language" in slot.roles:
        return 1.5 if head in LANGUAGES else -1.0
    if slot.roles & {"date", "time", "unit"}:
        return -1.5
    if "currency" in slot.roles:
        return 1.5 if head in CURRENCIES else -0.5
    return -0.8 if known_place else 0.3 if slot.roles & {"person", "maker"} else 0.0


def _year_score(slot: Slot, mention: Mention) -> float:
    return 1.8 if "year" in slot.roles and isinstance(mention.value, int) and 1000 <= mention.value <= 2100 else 0.0


def _phrase_score(slot: Slot, mention: Mention) -> float:
    text = mention.text.lower()
    shown = [value for value in slot.habit.values if isinstance(value, str)]
    if shown and all(value[:1].isupper() or value[:1].isdigit() for value in shown):
        return -1.5  # examples have names here
    lexicon = {"color": COLORS, "currency": CURRENCIES, "language": LANGUAGES}
    for role, known in lexicon.items():
        if role in slot.roles:
            return 2.0 if text in known else -1.0
    if slot.roles & {"date", "time"}:
        return 1.2 if text in ("today", "tomorrow", "tonight", "yesterday", "weekend", "noon", "midnight") else -2.0
    return -0.6 if slot.roles & {"place", "person", "maker", "id"} else 0.0


_KIND_SCORE: Mapping[str, Callable[[Slot, Mention], float]] = {
    "name": _name_score,
    "phrase": _phrase_score,
    "quoted": lambda slot, mention: -0.8 if slot.roles & {"date", "time"} else 0.0,
    "date": lambda slot, mention: 3.0 if slot.roles & {"date", "time", "year"} or slot.cues.get("dat") else 0.0,
    "time": lambda slot, mention: 3.0 if "time" in slot.roles else 0.0,
    "email": lambda slot, mention: 3.5 if slot.cues.get("email") or slot.roles & {"person", "target"} else 0.0,
    "url": lambda slot, mention: (
        3.5
        if {"url", "link", "uri", "site", "websit", "pag", "host", "server", "domain", "ip"} & slot.cues.keys()
        else 0.0
    ),
    "currency": lambda slot, mention: 2.5 if "currency" in slot.roles else -5.0,
    "id": lambda slot, mention: 1.2 if "id" in slot.roles else 0.0,
    "number": lambda slot, mention: _year_score(slot, mention) + (0.8 if "id" in slot.roles else 0.0),
}
