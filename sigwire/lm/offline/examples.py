"""Examples: hints from the demos of a request about tools, parameters and the form of values. Pure.

Nothing is kept between requests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sigwire.core.json import JsonValue
from sigwire.lm.offline.request import PromptDemo
from sigwire.lm.offline.slots import SlotHabit
from sigwire.lm.offline.words import content_stems

__all__ = ["DemoHints", "habits_of", "learn_from_demos", "rank_demos"]

_CLOSE = 0.75


@dataclass(frozen=True, slots=True)
class DemoHints:
    """Hints for one question: ``bonus`` by tool, ``habits`` by tool and parameter.

    ``abstain`` if the nearest demo calls nothing, ``one_at_a_time`` if no demo has two calls.
    """

    bonus: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())
    habits: Mapping[str, Mapping[str, SlotHabit]] = field(default_factory=lambda: dict[str, Mapping[str, SlotHabit]]())
    abstain: bool = False
    one_at_a_time: bool = False


def learn_from_demos(text: str, demos: Sequence[PromptDemo]) -> DemoHints:
    """Return the hints of the demos for a question."""
    ranked = rank_demos(text, demos)
    if not ranked:
        return DemoHints()
    bonus: dict[str, float] = {}
    shown: dict[str, list[Mapping[str, JsonValue]]] = {}
    for likeness, demo in ranked:
        for name, arguments in demo.calls:
            bonus.setdefault(name, 3.0 * likeness)
            shown.setdefault(name, []).append(arguments)
    likeness, nearest = ranked[0]
    habits = {name: habits_of(calls) for name, calls in shown.items()}
    one_at_a_time = len(demos) > 1 and max(len(demo.calls) for demo in demos) == 1
    return DemoHints(bonus, habits, likeness > _CLOSE and not nearest.calls, one_at_a_time)


def rank_demos(text: str, demos: Sequence[PromptDemo]) -> list[tuple[float, PromptDemo]]:
    """Return the demos with their likeness to a text (0 to 1), most alike and latest first; rare words weigh more."""
    bags = [set(content_stems(demo.text)) for demo in demos]
    counts = Counter(part for bag in bags for part in bag)
    weights = {part: math.log(1 + (1 + len(demos)) / (1 + count)) for part, count in counts.items()}
    asked = set(content_stems(text))
    scored = [(_cosine(asked, bag, weights), -place) for place, bag in enumerate(bags)]
    return [(score, demos[-place]) for score, place in sorted(scored, reverse=True)]


def _cosine(a: set[str], b: set[str], weights: Mapping[str, float]) -> float:
    def square(bag: set[str]) -> float:
        return sum(weights.get(part, 1.0) ** 2 for part in bag)

    return square(a & b) / (math.sqrt(square(a) * square(b)) or 1.0)


def habits_of(shown: Sequence[Mapping[str, JsonValue]]) -> dict[str, SlotHabit]:
    """Return the habits by parameter of the arguments or fields of demos."""
    names = dict.fromkeys(name for values in shown for name in values)
    given = {name: tuple(values[name] for values in shown if name in values) for name in names}
    return {name: SlotHabit(given[name], len(shown), len(given[name])) for name in names}
