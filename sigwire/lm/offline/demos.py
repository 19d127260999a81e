"""Learning from the examples in a request: which tool such questions get, and how its parameters are read and written. Pure.

Nothing is kept between requests: what is learnt is what the request's own examples show.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sigwire.core.json import JsonValue
from sigwire.lm.offline.mentions import find_mentions
from sigwire.lm.offline.reading import Demo
from sigwire.lm.offline.slots import Habit
from sigwire.lm.offline.words import GENERIC, STOP_WORDS, content_stems, words

__all__ = ["Lessons", "habits_of", "learn", "similar"]


@dataclass(frozen=True, slots=True)
class Lessons:
    """What the examples teach for one question: a bonus by tool, habits by tool and parameter, whether to call
    nothing, and whether there is never more than one call."""

    bonus: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())
    habits: Mapping[str, Mapping[str, Habit]] = field(default_factory=lambda: dict[str, Mapping[str, Habit]]())
    abstain: bool = False
    one_at_a_time: bool = False


_CLOSE = 0.75


def learn(text: str, demos: Sequence[Demo]) -> Lessons:
    """What the examples teach for a question."""
    ranked = similar(text, demos)
    if not ranked:
        return Lessons()
    bonus: dict[str, float] = {}
    for likeness, demo in ranked:
        for name, _ in demo.calls:
            bonus[name] = max(bonus.get(name, 0.0), 3.0 * likeness)
    calls = [(demo.text, name, arguments) for _, demo in ranked for name, arguments in demo.calls]
    likeness, nearest = ranked[0]
    counts = [len(demo.calls) for demo in demos if demo.calls]
    one_at_a_time = len(counts) > 1 and max(counts) == 1
    return Lessons(bonus, _habits(calls), likeness > _CLOSE and not nearest.calls, one_at_a_time)


def similar(text: str, demos: Sequence[Demo]) -> list[tuple[float, Demo]]:
    """The examples with their likeness to a text (0 to 1), most alike first; rare words count more."""
    bags = [Counter(content_stems(demo.text)) for demo in demos]
    spread = Counter(one for bag in bags for one in bag)
    weight = {one: math.log(1 + (1 + len(demos)) / (1 + spread[one])) for one in spread}
    mine = Counter(content_stems(text))
    scored = [(_cosine(mine, bag, weight), -place) for place, bag in enumerate(bags)]
    return [(score, demos[-place]) for score, place in sorted(scored, reverse=True)]


def _cosine(a: Mapping[str, int], b: Mapping[str, int], weight: Mapping[str, float]) -> float:
    def size(bag: Mapping[str, int]) -> float:
        return math.sqrt(sum((weight.get(one, 1.0)) ** 2 for one in bag)) or 1.0

    shared = sum(weight.get(one, 1.0) ** 2 for one in a if one in b)
    return shared / (size(a) * size(b))


def _habits(calls: Iterable[tuple[str, str, Mapping[str, Any]]]) -> dict[str, dict[str, Habit]]:
    by_tool: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for text, name, arguments in calls:
        by_tool.setdefault(name, []).append((text, arguments))
    return {name: habits_of(shown) for name, shown in by_tool.items()}


def habits_of(shown: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Habit]:
    """Habits by parameter from texts and the arguments that were read out of them."""
    names = dict.fromkeys(name for _, arguments in shown for name in arguments)
    return {name: _habit(name, shown) for name in names}


def _habit(name: str, shown: Sequence[tuple[str, Mapping[str, Any]]]) -> Habit:
    cues: Counter[str] = Counter()
    values: list[JsonValue] = []
    unsaid: list[JsonValue] = []
    for text, arguments in shown:
        if name in arguments:
            values.append(arguments[name])
            cues.update(_words_around(text, arguments[name]))
            if isinstance(arguments[name], str) and not set(words(str(arguments[name]))) & set(words(text)):
                unsaid += [arguments[name]] * (_place_of(text, arguments[name]) is None)
    return Habit(cues, tuple(values), len(shown), len(values), tuple(unsaid))


def _words_around(text: str, value: JsonValue) -> set[str]:
    """The stems right before and after the place where a text says a value."""
    place = _place_of(text, value)
    if place is None:
        return set()
    tokens = words(text)
    before = [word for word in tokens if word.end <= place[0] and word.text[0].isalpha()][-2:]
    after = [word for word in tokens if word.start >= place[1] and word.text[0].isalpha()][:1]
    near = [word for word in (*before, *after) if word.text.lower() not in STOP_WORDS]
    return {word.stem for word in near} - GENERIC


def _place_of(text: str, value: JsonValue) -> tuple[int, int] | None:
    if isinstance(value, str) and value and (at := text.lower().find(value.lower())) >= 0:
        return at, at + len(value)
    if isinstance(value, str) and "," in value:  # "Chicago, IL" where the text says Chicago
        return _place_of(text, value.partition(",")[0])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        found = next((m for m in find_mentions(text) if m.kind == "number" and m.value == value), None)
        return (found.start, found.end) if found else None
    return None


def same(values: Sequence[JsonValue]) -> bool:
    """Whether all values are one."""
    return len({json.dumps(value, sort_keys=True) for value in values}) == 1
