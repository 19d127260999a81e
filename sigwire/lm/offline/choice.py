"""Choosing among the offered tools by words: which one the text speaks of, and how surely. Pure.

A tool's words weigh by where they stand (its name most) and by how few of the other tools have them. Filling counts
too: a tool whose required parameters all find a value fits better than one that has to guess. ``Candidate.relevance``
is what the decision to call nothing is made by.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sigwire.lm.offline.filling import Filling, Known, fill
from sigwire.lm.offline.mentions import find_mentions
from sigwire.lm.offline.schemas import Schema, is_mapping, options_of, properties_of, required_of
from sigwire.lm.offline.slots import Habit
from sigwire.lm.offline.words import GENERIC, STOP_WORDS, content_stems, name_words, words

__all__ = ["Candidate", "OfferedTool", "rank"]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the request offers it."""

    name: str
    description: str
    parameters: Schema

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> OfferedTool | None:
        """From an OpenAI-like dict; a provider's built-in tool is none that we can call."""
        function = spec.get("function")
        if not is_mapping(function):
            return None
        parameters = function.get("parameters")
        return cls(
            str(function["name"]), str(function.get("description") or ""), parameters if is_mapping(parameters) else {}
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool with arguments: ``score`` compares it with the others, ``relevance`` says whether to call anything at all."""

    tool: OfferedTool
    filling: Filling
    score: float
    relevance: float


def rank(
    text: str,
    tools: Sequence[OfferedTool],
    *,
    bonus: Mapping[str, float] | None = None,
    habits: Mapping[str, Mapping[str, Habit]] | None = None,
    known: Mapping[str, Known] | None = None,
    said: Collection[str] = (),
    fill_best: int = 4,
) -> list[Candidate]:
    """The tools that suit a text best, best first, with their arguments. Stems in ``said`` are dealt with and count little."""
    bonus, habits, known = bonus or {}, habits or {}, known or {}
    asked = {one: weight * (0.15 if one in said else 1.0) for one, weight in _asked(text).items()}
    bags = [_bag(tool.name, tool.description, _parameter_text(tool)) for tool in tools]
    rarity = _rarity(bags)
    scored = sorted(
        (
            (_match(asked, bag, rarity) + bonus.get(tool.name, 0.0), -place)
            for place, (tool, bag) in enumerate(zip(tools, bags, strict=True))
        ),
        reverse=True,
    )
    found: list[Candidate] = []
    for score, place in scored[:fill_best]:
        tool, bag = tools[-place], bags[-place]
        filling = fill(tool.parameters, text, habits.get(tool.name), known.get(tool.name), frozenset(bag))
        found.append(Candidate(tool, filling, score + _filled(tool, filling), _relevance(asked, tool, bag, filling)))
    return sorted(found, key=lambda candidate: -candidate.score)


def _asked(text: str) -> dict[str, float]:
    """The content stems of a text; generic words and words inside values count little."""
    inside = bytearray(len(text) + 1)
    for mention in find_mentions(text):
        inside[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    asked: dict[str, float] = {}
    for word in words(text):
        if not word.text[0].isalpha() or word.text.lower().split("'")[0] in STOP_WORDS:
            continue
        weight = 0.3 if inside[word.start] else 0.3 if word.stem in GENERIC else 1.0
        asked[word.stem] = max(asked.get(word.stem, 0.0), weight)
    return asked


def _parameter_text(tool: OfferedTool) -> str:
    return " ".join(
        f"{name}: {schema.get('description', '')} {' '.join(map(str, options_of(schema)))}"
        for name, schema in properties_of(tool.parameters).items()
    )


@functools.lru_cache(maxsize=1024)
def _bag(name: str, description: str, parameters: str) -> Mapping[str, float]:
    """A tool's stems, each with the weight of the best place it stands in."""
    bag: dict[str, float] = {}
    for stems, weight in (
        (content_stems(parameters.replace("_", " ")), 0.35),
        (content_stems(description), 0.8),
        ([s for s in name_words(name) if s not in STOP_WORDS], 1.3),
    ):
        for one in stems:
            bag[one] = max(bag.get(one, 0.0), weight)
    return bag


def _rarity(bags: Sequence[Mapping[str, float]]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for bag in bags:
        for one, weight in bag.items():
            counts[one] = counts.get(one, 0.0) + min(1.0, weight)
    return {one: math.log(1 + len(bags) / max(count, 0.5)) for one, count in counts.items()}


def _match(asked: Mapping[str, float], bag: Mapping[str, float], rarity: Mapping[str, float]) -> float:
    hit = sum(weight * bag[one] * rarity[one] for one, weight in asked.items() if one in bag)
    size = math.sqrt(sum((weight * rarity[one]) ** 2 for one, weight in bag.items())) or 1.0
    return hit / (0.5 + 0.5 * size / 4)


def _filled(tool: OfferedTool, filling: Filling) -> float:
    required = required_of(tool.parameters)
    lack = len(filling.missing) / len(required) if required else 0.0
    sure = sum(1 for name in filling.arguments if filling.evidence.get(name, 0.0) > 0.9)
    return 0.15 * min(sure, 4) - 1.5 * lack


def _relevance(asked: Mapping[str, float], tool: OfferedTool, bag: Mapping[str, float], filling: Filling) -> float:
    """How surely the text asks for this tool at all."""
    return _AT_NONE + sum(
        weight * value for weight, value in zip(_RELEVANCE, features(asked, tool, bag, filling), strict=True)
    )


# Weights of ``features``: from a logistic fit on questions with and without a fitting tool, rounded.
_RELEVANCE = (1.3, 2.3, -1.75, -1.0, 1.7, 1.3)
_AT_NONE = -1.9


def features(
    asked: Mapping[str, float], tool: OfferedTool, bag: Mapping[str, float], filling: Filling
) -> tuple[float, ...]:
    """What relevance is made of: how much of the text the tool's words cover, how much of the tool's name the text
    says, how many required values are missing, weak and sure, and how many of the optional ones are sure."""
    total = sum(asked.values()) or 1.0
    covered = sum(weight * min(1.0, bag.get(one, 0.0) * 1.25) for one, weight in asked.items()) / total
    name = [s for s in name_words(tool.name) if s not in STOP_WORDS and s not in GENERIC]
    named = sum(1 for s in name if s in asked) / len(name) if name else 0.5
    required = required_of(tool.parameters)
    found = [filling.evidence.get(n, 0.0) for n in required if n in filling.arguments]
    size = len(required) or 1
    sure = sum(1 for score in found if score >= 1.5) / size
    weak = sum(1 for score in found if score < 0.5) / size
    beside = sum(1 for n, score in filling.evidence.items() if n not in required and score >= 1.5)
    return covered, named, len(filling.missing) / size, weak, sure, min(beside, 2) / 2
