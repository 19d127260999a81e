"""Planning: the next tool calls, or none if the answer is known or out of reach. Pure.

The goal is the tool that the question names. If the goal lacks a value that another tool may return (an id for a name),
the planner calls that tool first. No call is made twice, so every loop ends.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.choice import ToolChoice
from sigwire.lm.offline.answers import Fact, facts_of
from sigwire.lm.offline.examples import learn_from_demos
from sigwire.lm.offline.filling import KnownValues
from sigwire.lm.offline.request import OfferedTool, PromptContent, Step
from sigwire.lm.offline.slots import Schema, complete, has_type, options_of, properties_of, required_of, type_of
from sigwire.lm.offline.tool_choice import ToolCandidate, rank_tools
from sigwire.lm.offline.words import GENERIC, STOP_WORDS, content_stems, name_words, sentences, stem

__all__ = ["Call", "finish_tool", "next_calls"]

Call: TypeAlias = "tuple[str, JsonObject]"

_CALL_FROM = -0.25  # relevance from which a tool is called; measured on cases with and without a fitting tool
_FINISHES = re.compile(r"\bfinal (?:answer|output|result)s?\b|\bends? the (?:task|conversation)\b", re.IGNORECASE)
# A comma or "and" starts a clause only before one of these words.
_ASKING = "|".join(
    """
also then finally next what how who when where which is are can could find calculate compute get give tell book play
order buy search show list convert determine estimate predict check send create generate identify retrieve analyze provide
plot solve evaluate compare look fetch add remove update set turn sort draw translate reserve recommend simulate
""".split()
)
_SPLIT = re.compile(rf"[,;]\s*(?:and\s+)?(?=(?:{_ASKING})\b)|\s+and\s+(?=(?:{_ASKING})\b)|;\s*", re.IGNORECASE)
_ID = stem("id")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_VALUE_NAMES = frozenset(stem(word) for word in "value amount quantity number x input price total n".split())
_SOURCE = {stem("from"), stem("source"), stem("unit")}
_UNITS = {
    "kg": "kilogram", "g": "gram", "lb": "pound", "oz": "ounce", "km": "kilometer", "m": "meter", "cm": "centimeter",
}  # fmt: skip


def finish_tool(tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """Return the offered tool that submits the final answer."""
    return next((tool for tool in tools if _FINISHES.search(tool.description)), None)


def next_calls(content: PromptContent, choice: ToolChoice, parallel: bool) -> list[Call]:
    """Return the calls to make now; empty if no tool fits or no call is left to make."""
    finish = finish_tool(content.tools)
    tools = [tool for tool in content.tools if tool is not finish and tool.name in (choice.allowed or (tool.name,))]
    if not tools or choice.mode == "none":
        return []
    least = _CALL_FROM if content.steps else _least_for_first_call(choice, finish)
    calls = _Planner(content, tools).calls(least, parallel)
    return [call for call in calls if not _was_made(call, content.steps)]


def _least_for_first_call(choice: ToolChoice, finish: OfferedTool | None) -> float:
    if finish is not None:  # a tool for the final answer implies calls of the other tools
        return _CALL_FROM - 2.4
    return -math.inf if choice.mode == "required" else _CALL_FROM


class _Planner:
    def __init__(self, content: PromptContent, tools: Sequence[OfferedTool]) -> None:
        self._content, self._tools = content, tools
        self._hints = learn_from_demos(content.question, content.demos)
        self._facts = facts_of(content.steps)
        self._known = {tool.name: _known_for(tool, self._facts, content.question) for tool in tools if self._facts}

    def calls(self, least: float, parallel: bool) -> list[Call]:
        if self._hints.abstain and not self._content.steps and least > -math.inf:
            return []
        found = self._next_tool(least)
        if found is None:
            return []
        if parallel and not self._hints.one_at_a_time and not found.filled.missing:
            return self._calls_by_clause() or _calls_of(found)
        return _calls_of(found)[:1]

    def _rank(self, text: str, most: int = 4) -> list[ToolCandidate]:
        return rank_tools(text, self._tools, self._hints, self._known, most)

    def _next_tool(self, least: float) -> ToolCandidate | None:
        """Return the most fitting tool that can be called, or a tool that may return a missing value."""
        ranked = self._rank(self._content.question)
        if self._content.steps or -math.inf < least < _CALL_FROM:
            open_stems = self._open_stems()
            ranked = [candidate for candidate in ranked if open_stems & _stems_of(candidate.tool)]
        for candidate in ranked:
            # A missing value costs relevance; a helper may still provide it.
            is_incomplete = candidate.filled.missing and candidate.relevance + 1.75 * candidate.filled.lack >= least
            if is_incomplete and (helper := self._helper(candidate)) is not None:
                return helper
            if self._is_ready(candidate, least):
                return candidate
        return None

    def _is_ready(self, candidate: ToolCandidate, least: float) -> bool:
        call, steps = (candidate.tool.name, candidate.filled.arguments), self._content.steps
        if candidate.relevance < least or (candidate.filled.missing and least > -math.inf):
            return False
        return not _was_made(call, steps) and not any(step.failed and step.name == call[0] for step in steps)

    def _helper(self, goal: ToolCandidate) -> ToolCandidate | None:
        """Return a tool that can be called now and whose words promise a value that the goal lacks."""
        members = properties_of(goal.tool.parameters)
        texts = (f"{' '.join(name_words(name))} {members[name].get('description', '')}" for name in goal.filled.missing)
        lacking = set(content_stems(" ".join(texts))) - GENERIC
        for candidate in self._rank(self._content.question, len(self._tools)):
            tool, filled = candidate.tool, candidate.filled
            is_sure = not filled.missing and any(score > 0.5 for score in filled.evidence.values())
            if is_sure and tool.name != goal.tool.name and lacking & _stems_of(tool):
                return None if _was_made((tool.name, filled.arguments), self._content.steps) else candidate
        return None

    def _open_stems(self) -> frozenset[str]:
        """Return the stems of the question that no call has covered by its tool, arguments or result."""
        steps, called = self._content.steps, {step.name for step in self._content.steps}
        covered = {part for fact in self._facts for part in name_words(fact.key)}
        covered |= {part for tool in self._tools if tool.name in called for part in _stems_of(tool)}
        covered |= {part for step in steps for value in step.arguments.values() for part in content_stems(str(value))}
        return frozenset(content_stems(self._content.question)) - GENERIC - covered

    def _calls_by_clause(self) -> list[Call]:
        """Return the calls of a question with several clauses; empty unless two clauses ask for different tools."""
        parts = [] if self._content.steps else _clauses(self._content.question)
        calls: dict[str, Call] = {}
        for part in parts if len(parts) > 1 else ():
            best = self._rank(part, 2)[0]
            if _is_sure(best):
                calls.update({_key(*call): call for call in _calls_of(best)})
        shapes = {(name, *arguments) for name, arguments in calls.values()}
        return list(calls.values()) if len(calls) > 1 and len(shapes) == len({shape[0] for shape in shapes}) else []


def _stems_of(tool: OfferedTool) -> frozenset[str]:
    schemas = properties_of(tool.parameters).values()
    options = " ".join(str(option) for schema in schemas for option in options_of(schema))
    return frozenset((*name_words(tool.name), *content_stems(f"{tool.description} {options}")))


def _clauses(text: str) -> list[str]:
    parts = (part.strip() for sentence in sentences(text) for part in _SPLIT.split(sentence))
    return [part for part in parts if len(part.split()) > 1]


def _calls_of(candidate: ToolCandidate) -> list[Call]:
    """Return the calls of a candidate: one, or one for each of several values; neutral values replace missing ones."""
    tool, filled = candidate.tool, candidate.filled
    if filled.missing:
        return [(tool.name, cast(JsonObject, complete(tool.parameters, filled.arguments)))]
    return [(tool.name, {**filled.arguments, **more}) for more in ({}, *filled.further)]


def _is_sure(candidate: ToolCandidate) -> bool:
    evidence = [candidate.filled.evidence.get(name, 0.0) for name in required_of(candidate.tool.parameters)]
    return candidate.relevance >= _CALL_FROM and min(evidence, default=0.0) >= 0.9


def _was_made(call: Call, steps: Sequence[Step]) -> bool:
    return any(_key(step.name, step.arguments) == _key(*call) for step in steps)


def _key(name: str, arguments: Mapping[str, JsonValue]) -> str:
    return name + json.dumps(arguments, sort_keys=True, default=str)


def _known_for(tool: OfferedTool, facts: Sequence[Fact], question: str) -> KnownValues:
    """Return the parameters of a tool that facts can fill, each fact for one parameter."""
    asked, slots = set(content_stems(question)), properties_of(tool.parameters)
    scored = [
        (score + 0.7 * bool(asked & set(name_words(fact.key))), -row, name, fact)
        for row, (name, schema) in enumerate(slots.items())
        for fact in facts
        if (score := _suitability(name, schema, fact)) > 0
    ]
    known: dict[str, tuple[JsonValue, float]] = {}
    used: list[Fact] = []
    for score, _, name, fact in sorted(scored, key=lambda item: item[:2], reverse=True):
        if name not in known and fact not in used:
            known[name] = (fact.value, score)
            used.append(fact)
    return {**_source_units(slots, used), **known}


def _source_units(slots: Mapping[str, Schema], used: Sequence[Fact]) -> dict[str, tuple[JsonValue, float]]:
    """Return the unit in the name of a used fact ("weight_kg") for a parameter with the unit of the source."""
    units = {stem(_UNITS[part]) for fact in used for part in fact.key.lower().split("_")[1:] if part in _UNITS}
    sources = [name for name in slots if _SOURCE & set(name_words(name)) and stem("to") not in name_words(name)]
    return {name: (option, 2.6) for name in sources for option in options_of(slots[name]) if stem(str(option)) in units}


def _suitability(name: str, schema: Schema, fact: Fact) -> float:
    """Return how well a fact fills a parameter, by their names and types; 0 if not at all."""
    kind, value = type_of(schema), fact.value
    if not has_type(kind, value) and not (kind == "string" and has_type("integer", value)):
        return 0.0
    if options := options_of(schema):
        return 2.0 * (value in options)
    if _ID in name_words(name):
        entity = set(name_words(name)) - {_ID}
        return 3.0 if fact.key == name else 2.8 * (_ID in name_words(fact.key) and entity <= fact.stems)
    if "date" in f"{name} {schema.get('format')} {schema.get('description')}".lower():
        return 1.6 * (_ISO_DATE.match(str(value)) is not None)
    return _name_suitability(set(name_words(name)) - STOP_WORDS, set(name_words(fact.key)), kind)


def _name_suitability(wanted: set[str], key: set[str], kind: str) -> float:
    if wanted == key:
        return 1.2 if len(wanted) == 1 else 2.6
    return 1.0 if wanted & key else 0.8 * (kind != "string" and bool(wanted & _VALUE_NAMES) and _ID not in key)
