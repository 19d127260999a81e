"""The next step with tools: calls to make, or none because the rest can be answered (or cannot). Pure.

The goal is the tool that the question speaks of. If the goal lacks a value that another tool may give (an id by a
name), that one is called first. A call is never repeated, so a loop always ends.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonObject
from sigwire.core.request import ToolChoice
from sigwire.lm.offline.answers import complete
from sigwire.lm.offline.choice import Candidate, OfferedTool, rank
from sigwire.lm.offline.demos import Lessons, learn
from sigwire.lm.offline.facts import Fact, facts_of, known_for
from sigwire.lm.offline.filling import Known
from sigwire.lm.offline.parallel import clauses, spread
from sigwire.lm.offline.reading import Reading, Step
from sigwire.lm.offline.schemas import options_of, properties_of, required_of
from sigwire.lm.offline.words import GENERIC, content_stems, name_words

__all__ = ["Call", "finish_tool", "next_calls"]

Call: TypeAlias = "tuple[str, JsonObject]"

CALL_FROM = -0.25  # Relevance from which a tool is called at all; measured on cases with and without a fitting tool.
GO_ON_FROM = -0.25  # The same for what is still open after the first results.

_FINISHES = re.compile(r"\bfinal (?:answer|output|result)s?\b|\bends the (?:task|conversation)\b", re.IGNORECASE)
_FINISH_NAMES = frozenset({"submit", "submit_answer", "submit_final_answer", "finish", "final_answer"})


def finish_tool(tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """The tool that takes the final answer, if one is offered."""
    described = (tool for tool in tools if _FINISHES.search(tool.description))
    named = (tool for tool in tools if tool.name in _FINISH_NAMES)
    return next(described, None) or next(named, None)


def next_calls(reading: Reading, choice: ToolChoice | None, parallel: bool) -> list[Call]:
    """The calls to make now; none when nothing fits or nothing is left to do."""
    if choice is not None and choice.mode == "none":
        return []
    finish = finish_tool(reading.tools)
    allowed = choice.allowed if choice is not None else ()
    tools = [t for t in reading.tools if t is not finish and (not allowed or t.name in allowed)]
    forced = choice is not None and choice.mode == "required"
    if not tools:
        return []
    lessons = learn(reading.question, reading.demos)
    if lessons.abstain and not forced and not reading.steps:
        return []
    found = _wanted(reading, tools, lessons, _least(reading, finish is not None, forced))
    if found is None:
        return []
    if found.filling.missing:  # only where a call is demanded: neutral values stand in for what nothing gives
        return [(found.tool.name, cast(JsonObject, complete(found.tool.parameters, found.filling.arguments)))]
    calls = [(found.tool.name, found.filling.arguments)]
    if parallel and not lessons.one_at_a_time:
        calls = _several(reading, tools, lessons) or spread(found)
    return [call for call in calls if not _was_made(call, reading.steps)]


def _several(reading: Reading, tools: Sequence[OfferedTool], lessons: Lessons) -> list[Call]:
    """The calls of a question whose clauses each ask for one; none unless at least two do."""
    parts = clauses(reading.question) if not reading.steps else []
    if len(parts) < 2:
        return []
    calls: dict[str, Call] = {}
    for part in parts:
        best = rank(part, tools, bonus=lessons.bonus, habits=lessons.habits, fill_best=2)[0]
        if best.relevance >= CALL_FROM and not best.filling.missing and _is_sure(best):
            calls.update({_key(*call): call for call in spread(best)})
    shapes = {(name, *arguments) for name, arguments in calls.values()}
    one_shape_each = len(shapes) == len({name for name, _ in calls.values()})
    return list(calls.values()) if len(calls) > 1 and one_shape_each else []


def _is_sure(candidate: Candidate) -> bool:
    """Whether the text itself gives every required value."""
    required = required_of(candidate.tool.parameters)
    return bool(required) and all(candidate.filling.evidence.get(name, 0.0) >= 0.9 for name in required)


def _least(reading: Reading, has_finish: bool, forced: bool) -> float:
    """The relevance from which to call. Who has a tool for the answer is meant to use the others first."""
    if reading.steps:
        return GO_ON_FROM
    return -math.inf if forced and not has_finish else CALL_FROM - 2.4 * has_finish


def _wanted(reading: Reading, tools: Sequence[OfferedTool], lessons: Lessons, least: float) -> Candidate | None:
    facts = facts_of(reading.steps)
    known = {tool.name: known_for(tool, facts, reading.question) for tool in tools} if facts else {}
    ranked = rank(
        reading.question,
        tools,
        bonus=lessons.bonus,
        habits=lessons.habits,
        known=known,
        said=_said(reading.steps, tools),
    )
    if reading.steps or -math.inf < least < CALL_FROM:
        still_open = _open(reading.question, reading.steps, tools, facts)
        ranked = [candidate for candidate in ranked if still_open & _speaks_of(candidate.tool)]
    for candidate in ranked:
        if candidate.relevance + _lack(candidate) < least:
            continue
        if candidate.filling.missing and not any(step.failed for step in reading.steps):
            helper = _helper(candidate, ranked, tools, reading, facts)
            if helper is not None and not _was_made((helper.tool.name, helper.filling.arguments), reading.steps):
                return helper
        if candidate.relevance < least:
            continue
        if candidate.filling.missing and least > -math.inf:
            continue
        if not reading.steps or _has_new_value(candidate, reading.steps, known.get(candidate.tool.name, {})):
            return candidate
    return None


def _lack(candidate: Candidate) -> float:
    required = required_of(candidate.tool.parameters)
    return 1.75 * len(candidate.filling.missing) / len(required) if required else 0.0


def _helper(
    goal: Candidate, ranked: Sequence[Candidate], tools: Sequence[OfferedTool], reading: Reading, facts: Sequence[Fact]
) -> Candidate | None:
    """A tool that can be called now and whose name or description promises a value that the goal lacks."""
    properties = properties_of(goal.tool.parameters)
    texts = [f"{' '.join(name_words(name))} {properties[name].get('description', '')}" for name in goal.filling.missing]
    lacking = {s for text in texts for s in content_stems(text)} - GENERIC
    for candidate in rank(
        reading.question,
        tools,
        known={t.name: known_for(t, facts, reading.question) for t in tools},
        fill_best=len(tools),
    ):
        if candidate.tool.name == goal.tool.name or candidate.filling.missing:
            continue
        promised = {*name_words(candidate.tool.name), *content_stems(candidate.tool.description)}
        if lacking & promised and any(score > 0.5 for score in candidate.filling.evidence.values()):
            return candidate
    return None


def _said(steps: Sequence[Step], tools: Sequence[OfferedTool]) -> frozenset[str]:
    """The stems that the tools called so far have dealt with."""
    called = {step.name for step in steps}
    texts = [f"{' '.join(name_words(tool.name))} {tool.description}" for tool in tools if tool.name in called]
    return frozenset(s for text in texts for s in content_stems(text)) - GENERIC


def _open(question: str, steps: Sequence[Step], tools: Sequence[OfferedTool], facts: Sequence[Fact]) -> frozenset[str]:
    """The stems of the question that no call so far has dealt with, by its tool, its arguments or its result."""
    given = {s for step in steps for value in step.arguments.values() for s in content_stems(str(value))}
    keys = {s for fact in facts for s in name_words(fact.key)}
    return frozenset(content_stems(question)) - GENERIC - _said(steps, tools) - given - keys


def _speaks_of(tool: OfferedTool) -> frozenset[str]:
    options = " ".join(str(o) for s in properties_of(tool.parameters).values() for o in options_of(s))
    return frozenset((*name_words(tool.name), *content_stems(f"{tool.description} {options}")))


def _was_made(call: Call, steps: Sequence[Step]) -> bool:
    key = _key(*call)
    return any(_key(step.name, step.arguments) == key for step in steps)


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return name + json.dumps(arguments, sort_keys=True, default=str)


def _has_new_value(candidate: Candidate, steps: Sequence[Step], known: Known) -> bool:
    """Whether a further call would use something new: a result, or a value of the question that no call has had."""
    if any(step.failed and step.name == candidate.tool.name for step in steps):
        return False
    before = {json.dumps(value, default=str) for step in steps for value in step.arguments.values()}
    for name, value in candidate.filling.arguments.items():
        fresh = json.dumps(value, default=str) not in before and candidate.filling.evidence.get(name, 0.0) > 0.9
        if (
            fresh
            and (name not in known or value == known[name][0])
            and not _was_made((candidate.tool.name, candidate.filling.arguments), steps)
        ):
            return True
    return False
