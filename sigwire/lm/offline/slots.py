"""Slot filling: from a text and a JSON Schema of parameters to arguments, by rules. Pure.

Each parameter becomes a ``Slot`` with *cues*: the stems of its name and description. Each value that the text
mentions is scored against each slot: does the type fit, do the words around it say so, does its unit, does a
preposition ("from", "in", "by")? Values go to slots best score first, each value once. Parameters that may be left
out are, unless the text speaks of them.

What demos show about a parameter comes in as a ``Habit``: words that stood around its value, and how it was written.
"""

from __future__ import annotations

import functools
import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.offline.mentions import Date, Mention, find_mentions
from sigwire.lm.offline.places import CITIES, COLORS, COUNTRIES, CURRENCIES, LANGUAGES, MEASURES, UNITS
from sigwire.lm.offline.schemas import is_list, items_of, options_of, properties_of, required_of, resolved, type_of
from sigwire.lm.offline.words import GENERIC, STOP_WORDS, Word, content_stems, name_words, stem, words

__all__ = ["Filling", "Habit", "Known", "fill"]


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


# --- slots from a schema -----------------------------------------------------------------------------

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


# --- filling -------------------------------------------------------------------------------------------


Known: TypeAlias = "Mapping[str, tuple[JsonValue, float]]"
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
    return _fill(slots_of(parameters, habits or {}), _Scene.of(text, about), known or {})


@dataclass(frozen=True, slots=True)
class _Scene:
    """A text with its tokens and everything it mentions."""

    text: str
    tokens: tuple[Word, ...]
    mentions: tuple[Mention, ...]
    stems: frozenset[str]
    about: frozenset[str]

    @classmethod
    def of(cls, text: str, about: frozenset[str]) -> _Scene:
        if len(text) > _READ:  # slots x mentions x words: long texts are read at both ends only
            text = f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}"
        tokens = words(text)
        mentions = find_mentions(text)
        found = (*mentions, *_currencies(text), *_phrases(text, tokens, mentions))
        return cls(text, tokens, found, frozenset(word.stem for word in tokens), about)

    def before(self, mention: Mention, limit: int = 7) -> list[Word]:
        """The tokens before a mention, nearest first, up to a sentence's end."""
        at = bisect_right(self.tokens, mention.start, key=lambda word: word.end)
        return _until(reversed(self.tokens[max(0, at - limit) : at]), ".;?!")

    def after(self, mention: Mention, limit: int = 4) -> list[Word]:
        """The tokens after a mention up to the next clause."""
        at = bisect_left(self.tokens, mention.end, key=lambda word: word.start)
        return _until(self.tokens[at : at + limit], ".;?!,")


_READ = 6000


def _until(tokens: Iterator[Word] | Sequence[Word], stops: str) -> list[Word]:
    found: list[Word] = []
    for word in tokens:
        if word.text in stops:
            break
        found.append(word)
    return found


_CURRENCY_NAMES = sorted((name for name in CURRENCIES if name.isascii() and name != "$"), key=len, reverse=True)
_CURRENCY = re.compile(rf"(?<![\w])(?:{'|'.join(map(re.escape, _CURRENCY_NAMES))})\b", re.IGNORECASE)


def _currencies(text: str) -> Iterator[Mention]:
    """Currencies by name; they may stand inside other mentions ("150 euros")."""
    for match in _CURRENCY.finditer(text):
        yield Mention("currency", CURRENCIES[match[0].lower()], match.start(), match.end(), match[0])


def _phrases(text: str, tokens: tuple[Word, ...], mentions: tuple[Mention, ...]) -> Iterator[Mention]:
    """Runs of plain content words between stop words, punctuation and mentions: the weakest candidates for a string."""
    run: list[Word] = []
    taken = bytearray(len(text) + 1)
    for mention in mentions:
        taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    for position, word in enumerate((*tokens, Word(".", ".", len(text), len(text)))):
        plain = word.text[0].isalpha() and word.text.lower() not in STOP_WORDS
        if plain and not taken[word.start] and not (position == 0 and word.text[0].isupper()):
            run.append(word)
            continue
        if run:
            yield _phrase(text, run)
            yield from (_phrase(text, part) for part in _parts(run))
        run = []


def _parts(run: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The shorter phrases in a run of a few words."""
    for size in range(min(len(run) - 1, 3), 0, -1):
        for start in range(len(run) - size + 1):
            yield run[start : start + size]


def _phrase(text: str, run: Sequence[Word]) -> Mention:
    start, end = run[0].start, run[-1].end
    return Mention("phrase", text[start:end], start, end, text[start:end])


def _fill(slots: Sequence[Slot], scene: _Scene, known: Known) -> Filling:
    arguments: JsonObject = {}
    evidence: dict[str, float] = {}
    used: list[Mention] = []
    chosen: dict[str, list[Mention]] = {}
    for slot in slots:
        if slot.name in known and known[slot.name][1] >= _SURE:
            arguments[slot.name], evidence[slot.name] = known[slot.name]
        elif (found := _by_itself(slot, scene, _taken(slot, slots, arguments))) is not None:
            arguments[slot.name], evidence[slot.name] = found
            used.extend(_said_as(found[0], scene))
    for score, slot, mention in _ranked([s for s in slots if s.name not in arguments], scene):
        shared = mention.kind in ("date", "time") and _family(slot) == "number"  # a time has an hour and a minute
        shared = shared or mention.kind == "currency"
        if slot.name in arguments or (not shared and any(_touch(mention, other) for other in used)):
            continue
        if slot.name in known and known[slot.name][1] > score:
            arguments[slot.name], evidence[slot.name] = known[slot.name]
            continue
        if score < _least(slot):
            continue
        if slot.required and slot.habit.unsaid and mention.kind == "phrase" and score < 1.2:
            arguments[slot.name], evidence[slot.name] = slot.habit.unsaid[0], 0.6
            continue
        group = _group(slot, mention, scene, used)
        chosen[slot.name] = group
        arguments[slot.name], evidence[slot.name] = _value(slot, group, scene), score
        used.extend(group)
    for slot, group in _in_reading_order(slots, chosen):
        arguments[slot.name] = _value(slot, group, scene)
    missing = [name for name in (slot.name for slot in slots if slot.required) if name not in arguments]
    for slot in slots:
        if slot.name in missing and slot.name in known:
            arguments[slot.name], evidence[slot.name] = known[slot.name]
            missing.remove(slot.name)
        elif slot.name in missing and (last := _last_resort(slot, scene)) is not None:
            arguments[slot.name], evidence[slot.name] = last
            missing.remove(slot.name)
    ordered = {slot.name: arguments[slot.name] for slot in slots if slot.name in arguments}
    several = _alternatives(slots, chosen, used, scene)
    return Filling(ordered, evidence, tuple(missing), several, () if several else _repeats(slots, chosen, used, scene))


_COUNTED = frozenset({"name", "quoted", "number", "id", "date", "list", "pair"})


def _alternatives(
    slots: Sequence[Slot], chosen: Mapping[str, list[Mention]], used: Sequence[Mention], scene: _Scene
) -> dict[str, tuple[JsonValue, ...]]:
    """For each parameter with one value out of an enumeration whose other values nothing has taken: all of them."""
    found: dict[str, tuple[JsonValue, ...]] = {}
    for slot in slots:
        group = chosen.get(slot.name, ())
        if len(group) != 1 or group[0].kind not in _COUNTED or slot.type == "array":
            continue
        peers = enumeration(group[0], scene.mentions, scene.text)
        free = all(peer is group[0] or not any(_touch(peer, other) for other in used) for peer in peers)
        if len(peers) > 1 and free and all(_fits(slot, peer) for peer in peers):
            found[slot.name] = tuple(_value(slot, [peer], scene) for peer in peers)
    return found


def _repeats(
    slots: Sequence[Slot], chosen: Mapping[str, list[Mention]], used: Sequence[Mention], scene: _Scene
) -> tuple[JsonObject, ...]:
    """Further sets of values after the chosen ones, with the same kinds and units in the same order."""
    own = sorted(
        ((group[0], slot) for slot in slots if len(group := chosen.get(slot.name, [])) == 1), key=lambda p: p[0].start
    )
    own = [(mention, slot) for mention, slot in own if mention.kind in _COUNTED]
    if not own:
        return ()
    rest = [
        m
        for m in scene.mentions
        if m.kind in _COUNTED and m.start > own[-1][0].start and not any(_touch(m, u) for u in used)
    ]
    found: list[JsonObject] = []
    while len(rest) >= len(own) and all(_alike(m, o) for m, (o, _) in zip(rest, own, strict=False)):
        found.append({slot.name: _value(slot, [m], scene) for m, (_, slot) in zip(rest, own, strict=False)})
        rest = rest[len(own) :]
    return () if rest else tuple(found)


def _alike(a: Mention, b: Mention) -> bool:
    return a.kind == b.kind and UNITS.get(a.unit, a.unit) == UNITS.get(b.unit, b.unit)


def _least(slot: Slot) -> float:
    """The score a mention needs: little where the slot must be filled, more where it may be left out or examples
    leave it out.
    """
    if slot.required and not slot.has_default:
        return 0.0
    habit = slot.habit
    if not habit.shown:
        return 1.35
    return 1.9 - 0.9 * habit.given / (habit.shown + 1)


def _said_as(value: JsonValue, scene: _Scene) -> list[Mention]:
    """Where the text says an option word for word; no other slot takes it from there."""
    at = scene.text.lower().find(value.lower()) if isinstance(value, str) and len(value) > 2 else -1
    if at < 0 or any(m.kind == "number" and m.start <= at < m.end for m in scene.mentions):
        return []  # the unit of a number stays with its number
    return [Mention("phrase", value, at, at + len(cast(str, value)), "")]


_SURE = 2.5
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
    for family in families.values():
        if len(family) > 1 and all(len(chosen[slot.name]) == 1 for slot in family):
            ordered = sorted((chosen[slot.name] for slot in family), key=lambda group: group[0].start)
            yield from zip(sorted(family, key=slots.index), ordered, strict=True)


def _touch(a: Mention, b: Mention) -> bool:
    return a.start < b.end and b.start < a.end


# Slots that are not filled by a mention: the whole text decides.


def _is_quoted(slot: Slot, scene: _Scene) -> bool:
    """Whether the text gives the slot a value in quotes; then examples in its description are no options."""
    return any(m.kind in ("quoted", "url") and _near_cue(slot, m, scene) >= 1.5 for m in scene.mentions)


def _taken(slot: Slot, slots: Sequence[Slot], arguments: JsonObject) -> list[JsonValue]:
    """Options that slots with the same options have already: from one unit to the same one is never meant."""
    pairs = slot.options and slot.roles & {"origin", "target"}
    return [arguments[o.name] for o in slots if pairs and o.options == slot.options and o.name in arguments]


def _by_itself(slot: Slot, scene: _Scene, taken: Sequence[JsonValue]) -> tuple[JsonValue, float] | None:
    if slot.options:
        return _option(slot, [option for option in slot.options if option not in taken], scene)
    if slot.type == "boolean":
        return _flag(slot, scene)
    if slot.type == "object":
        return _nested(slot, scene)
    if slot.type == "array":
        return _array_of_options(slot, scene)
    if slot.type == "string" and "unit" in slot.roles:
        return _unit(slot, scene)
    if slot.type == "string" and slot.soft and not slot.roles & {"place", "currency"} and not _is_quoted(slot, scene):
        return _option(slot, slot.soft, scene, exact=True)
    return None


def _option(
    slot: Slot, options: Sequence[Any], scene: _Scene, *, exact: bool = False
) -> tuple[JsonValue, float] | None:
    if not options:
        return None
    scored = [(_mentioned(str(option), scene, exact), -place, option) for place, option in enumerate(options)]
    if slot.roles & {"origin", "target"} and not exact:
        scored = [
            (score + _direction(slot, str(option), scene), place, option) for score, place, option in scored if score
        ]
    score, _, best = max(scored, key=lambda item: item[:2], default=(0.0, 0, None))
    if score <= 0 and not exact and (pick := _number_option(options, slot, scene)) is not None:
        return pick, 2.0
    return (best, score) if score > (0 if slot.required else 0.9) else None


def _direction(slot: Slot, option: str, scene: _Scene) -> float:
    """Whether an option stands where the slot wants it: "to pounds" for a target, "12 kilograms" or "from ..." for an
    origin.
    """
    at = scene.text.lower().find(option.lower())
    before = next((word.text.lower() for word in reversed(scene.tokens) if word.end <= at), "")
    role = (
        "target"
        if before in ("to", "in", "into", "as")
        else "origin"
        if before == "from" or before[:1].isdigit()
        else ""
    )
    return 0.0 if not role else 1.0 if role in slot.roles else -9.0


def _mentioned(option: str, scene: _Scene, exact: bool) -> float:
    """How plainly a text names an option: its words as they are, or most of their stems."""
    if len(option) > 1 and re.search(rf"(?<!\w){re.escape(option)}(?!\w)", scene.text, re.IGNORECASE):
        return 3.0 + len(option) / 100
    if exact:
        return 0.0
    stems = [s for s in name_words(option) if s not in STOP_WORDS]
    hits = sum(1 for s in stems if len(s) > 3 and s in scene.stems) or _begins(option, scene)
    return 2.0 * hits / len(stems) if stems and hits * 2 > len(stems) - 1 else 0.0


def _begins(option: str, scene: _Scene) -> bool:
    """Whether the text has a word made from the option: "musical" from "music"."""
    return len(option) > 4 and any(word.text.lower().startswith(option.lower()) for word in scene.tokens)


def _number_option(options: Sequence[Any], slot: Slot, scene: _Scene) -> JsonValue | None:
    numbers = {m.value for m in scene.mentions if m.kind == "number" and _near_cue(slot, m, scene) > 0.5}
    return next(
        (o for o in options if o in numbers or (isinstance(o, str) and o.isdecimal() and int(o) in numbers)), None
    )


_NEGATIONS = frozenset({"not", "no", "without", "never", "exclude", "excluding", "don't", "doesn't", "disable", "skip"})


def _flag(slot: Slot, scene: _Scene) -> tuple[JsonValue, float] | None:
    parts = [s for s in slot.names if s not in STOP_WORDS and s not in _FLAG_WORDS]
    hits = [s for s in parts if s in scene.stems]
    if parts and len(hits) * 3 >= len(parts) * 2:
        place = next(i for i, word in enumerate(scene.tokens) if word.stem in hits)
        near = {word.text.lower() for word in scene.tokens[max(0, place - 4) : place]}
        return not (near & _NEGATIONS), 1.5
    return (bool(slot.schema.get("default", True)), 0.2) if slot.required and not slot.has_default else None


_FLAG_WORDS = frozenset(
    stem(w) for w in "is has include included show return use enable allow with should get want as format".split()
)


def _nested(slot: Slot, scene: _Scene) -> tuple[JsonValue, float] | None:
    properties = properties_of(slot.schema)
    given = next((m for m in scene.mentions if m.kind == "object"), None)
    if given is not None:
        return given.value, 2.0
    if not properties:
        return None
    inner = _fill(slots_of(slot.schema, {}), scene, {})
    if inner.missing or not inner.arguments:
        return None
    score = max(inner.evidence.values(), default=0.0)
    return (inner.arguments, score) if slot.required or score > 1.35 else None


def _array_of_options(slot: Slot, scene: _Scene) -> tuple[JsonValue, float] | None:
    items = items_of(slot.schema)
    if properties_of(items):
        inner = _fill(slots_of(items, {}), scene, {})
        fine = not inner.missing and inner.arguments and (slot.required or max(inner.evidence.values()) > 1.35)
        return ([inner.arguments], 1.0) if fine else None
    options = options_of(items)
    named = [option for option in options if _mentioned(str(option), scene, exact=False) >= 2.0]
    return (cast(JsonValue, named), 2.0) if named else None


def _unit(slot: Slot, scene: _Scene) -> tuple[JsonValue, float] | None:
    """The unit asked for: an option of the description that the text names, or "in miles" without a number."""
    if (found := _option(slot, slot.soft, scene, exact=True) if slot.soft else None) is not None:
        return found
    for before, word in zip(scene.tokens, scene.tokens[1:], strict=False):
        unit = UNITS.get(word.text.lower())
        if before.text.lower() in ("in", "to", "into", "as") and unit and len(word.text) > 1:
            return next((o for o in slot.soft if UNITS.get(o.lower()) == unit), word.text), 2.0
    if not slot.required:
        return None
    unit = next((m.unit for m in scene.mentions if m.kind == "number" and m.unit in UNITS), "")
    return (unit, 0.5) if unit else None


# --- scoring mentions against slots ------------------------------------------------------------------


def _ranked(slots: Sequence[Slot], scene: _Scene) -> list[tuple[float, Slot, Mention]]:
    scored: list[tuple[float, Slot, Mention]] = []
    for kind in ("number", "string", "array"):
        own = [slot for slot in slots if _family(slot) == kind and not slot.options]
        fitting = [(i, s, j, m) for i, s in enumerate(own) for j, m in enumerate(scene.mentions) if _fits(s, m)]
        for i, slot, j, mention in fitting:
            score = _score(slot, mention, scene) + (0.4 if slot.required else 0.0)
            scored.append((score - 0.02 * abs(i - j) - 0.001 * j, slot, mention))
    return sorted(scored, key=lambda item: -item[0])


def _family(slot: Slot) -> str:
    """Which mentions can fill the slot; flags and objects are filled by themselves."""
    return _FAMILIES.get(slot.type, "string")


_FAMILIES = {"integer": "number", "number": "number", "array": "array", "boolean": "none", "object": "none"}


def _fits(slot: Slot, mention: Mention) -> bool:
    return mention.kind in _KINDS_OF_FAMILY[_family(slot)] and (
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
    value = _as_number(slot, mention)
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
    "number": lambda slot, mention: _as_number(slot, mention) is not None,
    "array": _fits_array,
}


def _as_number(slot: Slot, mention: Mention) -> int | float | None:
    """A mention as a number for this slot: a date gives its year, a time its hour or minute."""
    if mention.kind == "number":
        return cast("int | float", mention.value)
    if mention.kind == "date":
        date = cast(Date, mention.value)
        return next((getattr(date, part) for part in ("year", "month", "day") if stem(part) in slot.names), None)
    if mention.kind == "time":
        hour, minute = str(mention.value).split(":")
        part = hour if stem("hours") in slot.names else minute if stem("minutes") in slot.names else None
        return int(re.match(r"\d+", mention.text)[0]) if part is hour else int(part) if part else None  # type: ignore[index]
    if mention.kind == "id" and "id" in slot.roles:
        digits = mention.text.lstrip("#")
        return int(digits) if digits.isdecimal() else None
    return None


def _score(slot: Slot, mention: Mention, scene: _Scene) -> float:
    score = _near_cue(slot, mention, scene) + _BASE.get((_family(slot), mention.kind), 0.0)
    score += _list_score(slot, mention, scene)
    if mention.kind == "number" and _family(slot) != "string":
        # "the GCD of two numbers, say 36 and 48": a number in words is often no value.
        score -= 1.8 if "year" not in slot.roles and _is_year(mention, scene) else 0.0
        return score + _unit_score(slot, mention) - (0.7 if mention.text[:1].isalpha() else 0.0)
    if _family(slot) == "number":
        return score + 1.0
    return score + _role_score(slot, mention, scene)


def _list_score(slot: Slot, mention: Mention, scene: _Scene) -> float:
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


def _near_cue(slot: Slot, mention: Mention, scene: _Scene) -> float:
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


def _is_year(mention: Mention, scene: _Scene) -> bool:
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


def _role_score(slot: Slot, mention: Mention, scene: _Scene) -> float:
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


# --- values ----------------------------------------------------------------------------------------------


def _group(slot: Slot, mention: Mention, scene: _Scene, used: Sequence[Mention]) -> list[Mention]:
    """The mentions that make up a value: one, or for an array the whole enumeration "A, B and C"."""
    if slot.type != "array" or mention.kind in ("list", "pair"):
        return [mention]
    return [m for m in enumeration(mention, scene.mentions, scene.text) if not any(_touch(m, other) for other in used)]


_JOINT = re.compile(r"^\s*(?:,|and|or|&|,\s*and|,\s*or|;|vs\.?|versus)\s*(?:the\s|a\s)?\s*$")


def enumeration(mention: Mention, mentions: Sequence[Mention], text: str) -> list[Mention]:
    """The run of mentions of one kind, joined by commas and "and", that a mention belongs to."""
    peers = [m for m in mentions if m.kind == mention.kind]
    run: list[Mention] = []
    found = False
    for peer in peers:
        if run and not _JOINT.match(text[run[-1].end : peer.start]):
            if found:
                break
            run = []
        run.append(peer)
        found = found or peer is mention
    return run if found else [mention]


def _value(slot: Slot, group: Sequence[Mention], scene: _Scene) -> JsonValue:
    if slot.type == "array":
        if group[0].kind in ("list", "pair"):
            return _floats(slot, group[0].value)
        item = replace(slot, type=type_of(items_of(slot.schema)))
        return [_value(item, [mention], scene) for mention in group]
    mention = group[0]
    if slot.type in ("integer", "number"):
        return _number_for(slot, mention)
    return _text_for(slot, mention, scene)


def _floats(slot: Slot, value: JsonValue) -> JsonValue:
    return value


def _number_for(slot: Slot, mention: Mention) -> JsonValue:
    value = cast("int | float", _as_number(slot, mention))
    if slot.type == "integer":
        return int(value)
    wants_percent = any(word in slot.description.lower() or word in slot.name.lower() for word in ("percent", "%"))
    if UNITS.get(mention.unit) == "percent" and not wants_percent:
        return round(value / 100, 10)
    return value


_DATE_FORMATS: tuple[tuple[str, str], ...] = (
    ("dd-mm-yyyy", "{d:02d}-{m:02d}-{y}"), ("dd/mm/yyyy", "{d:02d}/{m:02d}/{y}"), ("mm/dd/yyyy", "{m:02d}/{d:02d}/{y}"),
    ("mm-dd-yyyy", "{m:02d}-{d:02d}-{y}"), ("yyyy/mm/dd", "{y}/{m:02d}/{d:02d}"), ("yyyy-mm-dd", "{y}-{m:02d}-{d:02d}"),
    ("yyyy-mm", "{y}-{m:02d}"),
)  # fmt: skip


def _text_for(slot: Slot, mention: Mention, scene: _Scene) -> str:
    if mention.kind == "date":
        return _date_text(slot, _with_year(cast(Date, mention.value), slot, scene), mention.text)
    if mention.kind == "number" and mention.unit and "$€£¥₹".find(mention.unit) < 0:
        return mention.text if not slot.roles & {"id", "count"} else str(mention.value)
    if mention.kind == "name" and "place" in slot.roles:
        return _place_text(slot, mention.text)
    if mention.kind in ("name", "phrase") and "currency" in slot.roles:
        return CURRENCIES.get(mention.text.lower(), mention.text)
    if mention.kind == "currency":
        return str(mention.value)
    return str(mention.value)


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _with_year(date: Date, slot: Slot, scene: _Scene) -> Date:
    """A date said without its year: the year that the text says elsewhere, else the one that examples have."""
    if date.year is not None:
        return date
    sources = (scene.text, json.dumps(slot.habit.values), slot.description)
    year = next((match[0] for source in sources if (match := _YEAR.search(source))), None)
    return replace(date, year=int(year)) if year else date


def _date_text(slot: Slot, date: Date, text: str) -> str:
    if date.year is None or date.month is None:
        return text
    wanted = slot.description.lower()
    form = next((form for name, form in _DATE_FORMATS if name in wanted), "{y}-{m:02d}-{d:02d}")
    if date.day is None:
        return f"{date.year}-{date.month:02d}" if "yyyy-mm" in wanted else text
    return form.format(y=date.year, m=date.month, d=date.day)


_CITY_STATE = re.compile(r"city[ ,/]*(?:and|,)\s*(?:state|country)|[A-Z][a-z]+, [A-Z]{2}\b", re.IGNORECASE)


def _place_text(slot: Slot, text: str) -> str:
    shown = [str(value) for value in slot.habit.values if isinstance(value, str)]
    with_state = [value.rpartition(", ")[2] for value in shown if _ENDS_IN_STATE.search(value)]
    if "," in text or (len(shown) > 2 and not with_state) or not (with_state or _CITY_STATE.search(slot.description)):
        return text
    state = CITIES.get(text.lower()) or (max(with_state, key=with_state.count) if with_state else None)
    return f"{text.title() if text.islower() else text}, {state}" if state else text


_ENDS_IN_STATE = re.compile(r", [A-Z]{2}$")


_DEFAULT_TEXT = re.compile(
    r"default(?:s|ed)?(?:\s+value)?(?:\s+is|\s+to|:|\s+of|=)?\s*(?:'([^']*)'|\"([^\"]*)\"|(-?\d+(?:\.\d+)?))",
    re.IGNORECASE,
)


def _last_resort(slot: Slot, scene: _Scene) -> tuple[JsonValue, float] | None:
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
