"""Tool choice: the tools that suit a text, best first, each with its arguments. Pure.

A tool's words weigh by their place (its name most) and by their rarity among the offered tools. Arguments count as well:
a tool whose required parameters all have a value ranks above a tool that lacks some.
``ToolCandidate.relevance`` decides whether to call anything at all.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sigwire.lm.offline.examples import DemoHints
from sigwire.lm.offline.filling import FilledArguments, KnownValues, fill
from sigwire.lm.offline.mentions import coverage, find_mentions
from sigwire.lm.offline.request import OfferedTool
from sigwire.lm.offline.slots import options_of, properties_of, required_of
from sigwire.lm.offline.words import GENERIC, STOP_WORDS, content_stems, is_content, name_words, words

__all__ = ["ToolCandidate", "rank_tools"]
# Weights of ``_features``: a logistic fit on questions with and without a fitting tool, rounded.
_WEIGHTS = (1.3, 2.3, -1.75, -1.0, 1.7, 1.3)
_BIAS = -1.9


@dataclass(frozen=True, slots=True)
class ToolCandidate:
    """A tool with arguments: ``score`` ranks it among the tools, ``relevance`` decides whether to call it."""

    tool: OfferedTool
    filled: FilledArguments
    score: float
    relevance: float


def rank_tools(
    text: str, tools: Sequence[OfferedTool], hints: DemoHints, known: Mapping[str, KnownValues], most: int
) -> list[ToolCandidate]:
    """Return the ``most`` tools that suit a text, best first."""
    asked = _asked_stems(text)
    bags = [_bag(tool.name, tool.description, _parameter_text(tool)) for tool in tools]
    rarity, bonus = _rarity(bags), hints.bonus
    scores = [_match(asked, bag, rarity) + bonus.get(tool.name, 0.0) for tool, bag in zip(tools, bags, strict=True)]
    found: list[ToolCandidate] = []
    for place in sorted(range(len(tools)), key=lambda place: -scores[place])[:most]:
        tool, bag = tools[place], bags[place]
        filled = fill(tool.parameters, text, hints.habits.get(tool.name), known.get(tool.name), frozenset(bag))
        features = _features(asked, tool, bag, filled)
        relevance = _BIAS + sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
        found.append(ToolCandidate(tool, filled, scores[place] - 1.5 * filled.lack, relevance))
    return sorted(found, key=lambda candidate: -candidate.score)


def _asked_stems(text: str) -> dict[str, float]:
    """Return the content stems of a text; generic words and words inside values weigh little."""
    inside = coverage(text, find_mentions(text))
    asked: dict[str, float] = {}
    for word in words(text):
        if is_content(word):
            weight = 0.3 if inside[word.start] or word.stem in GENERIC else 1.0
            asked[word.stem] = max(asked.get(word.stem, 0.0), weight)
    return asked


def _parameter_text(tool: OfferedTool) -> str:
    return " ".join(
        f"{name}: {schema.get('description', '')} {' '.join(map(str, options_of(schema)))}"
        for name, schema in properties_of(tool.parameters).items()
    )


@functools.lru_cache(maxsize=1024)
def _bag(name: str, description: str, parameters: str) -> Mapping[str, float]:
    return {
        **dict.fromkeys(content_stems(parameters.replace("_", " ")), 0.35),
        **dict.fromkeys(content_stems(description), 0.8),
        **dict.fromkeys((part for part in name_words(name) if part not in STOP_WORDS), 1.3),
    }


def _rarity(bags: Sequence[Mapping[str, float]]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for bag in bags:
        for part, weight in bag.items():
            counts[part] = counts.get(part, 0.0) + min(1.0, weight)
    return {part: math.log(1 + len(bags) / max(count, 0.5)) for part, count in counts.items()}


def _match(asked: Mapping[str, float], bag: Mapping[str, float], rarity: Mapping[str, float]) -> float:
    hit = sum(weight * bag[part] * rarity[part] for part, weight in asked.items() if part in bag)
    size = math.sqrt(sum((weight * rarity[part]) ** 2 for part, weight in bag.items())) or 1.0
    return hit / (0.5 + 0.5 * size / 4)


def _features(
    asked: Mapping[str, float], tool: OfferedTool, bag: Mapping[str, float], filled: FilledArguments
) -> tuple[float, ...]:
    # In order: the share of the text that the tool's words cover; the share of the tool's name in the text; the shares of
    # required values that are missing, weak and sure; half the number of sure optional values.
    coverage = sum(weight * min(1.0, bag.get(part, 0.0) * 1.25) for part, weight in asked.items())
    name = set(name_words(tool.name)) - STOP_WORDS - GENERIC
    required = required_of(tool.parameters)
    found = [filled.evidence[part] for part in filled.evidence.keys() & set(required)]
    optional = [filled.evidence[part] for part in filled.evidence.keys() - set(required)]
    size = len(required) or 1
    return (
        coverage / (sum(asked.values()) or 1.0),
        len(name & asked.keys()) / len(name) if name else 0.5,
        filled.lack,
        sum(score < 0.5 for score in found) / size,
        sum(score >= 1.5 for score in found) / size,
        min(sum(score >= 1.5 for score in optional), 2) / 2,
    )
