"""The next step with tools: calls to make, or none because the rest can be answered (or cannot). Pure.

The goal is the tool that the question speaks of. If the goal lacks a value that another tool may give (an id by a name), that one is
called first. A call is never repeated, so a loop always ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.core.request import ToolChoice
from sigwire.lm.offline.choice import Candidate, OfferedTool, rank
from sigwire.lm.offline.demos import Lessons, learn
from sigwire.lm.offline.facts import Fact, facts_of, known_for
from sigwire.lm.offline.parallel import spread
from sigwire.lm.offline.reading import Reading, Step
from sigwire.lm.offline.words import GENERIC, STOP_WORDS, content_stems, name_words, stem

__all__ = ["Call", "finish_tool", "next_calls"]

Call: TypeAlias = "tuple[str, JsonObject]"

CALL_FROM = -0.25  # Relevance from which a tool is called at all; measured on cases with and without a fitting tool.
GO_ON_FROM = -0.25  # The same for what is still open after the first results.

_FINISH_NAMES = frozenset({"submit", "submit_answer", "submit_final_answer", "finish", "final_answer"})


def finish_tool(tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """The tool that takes the final answer, if one is offered."""
    named = (tool for tool in tools if tool.name in _FINISH_NAMES)
    described = (tool for tool in tools if "final answer" in tool.description.lower())
    return next(named, None) or next(described, None)


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
    found = _wanted(reading, tools, lessons, forced and finish is None and not reading.steps)
    if found is None:
        return []
    calls = spread(found, reading.question, reading.steps) if parallel else [(found.tool.name, found.filling.arguments)]
    return [call for call in calls if not _was_made(call, reading.steps)]


def _wanted(reading: Reading, tools: Sequence[OfferedTool], lessons: Lessons, forced: bool) -> Candidate | None:
    facts = facts_of(reading.steps)
    known = {tool.name: known_for(tool, facts) for tool in tools} if facts else {}
    done = {step.name for step in reading.steps}
    ranked = rank(
        reading.question,
        tools,
        bonus=lessons.bonus,
        habits=lessons.habits,
        known=known,
        said=_said(reading.steps, tools),
    )
    least = GO_ON_FROM if reading.steps else CALL_FROM
    for candidate in ranked:
        if candidate.relevance + _lack(candidate) < least and not forced:
            continue
        if candidate.filling.missing:
            helper = _helper(candidate, ranked, tools, reading, facts)
            if helper is not None and not _was_made((helper.tool.name, helper.filling.arguments), reading.steps):
                return helper
        if candidate.relevance < least and not forced:
            continue
        fresh = not _was_made((candidate.tool.name, candidate.filling.arguments), reading.steps)
        if fresh and (candidate.tool.name not in done or _has_new_value(candidate, reading.steps)):
            return candidate
    return None


def _lack(candidate: Candidate) -> float:
    required = candidate.tool.parameters.get("required") or ()
    return 1.75 * len(candidate.filling.missing) / len(required) if required else 0.0


def _helper(
    goal: Candidate, ranked: Sequence[Candidate], tools: Sequence[OfferedTool], reading: Reading, facts: Sequence[Fact]
) -> Candidate | None:
    """A tool that can be called now and whose name or description promises a value that the goal lacks."""
    lacking = {s for name in goal.filling.missing for s in name_words(name) if s not in STOP_WORDS} - {
        stem("id"),
        stem("name"),
    }
    for candidate in rank(
        reading.question, tools, known={t.name: known_for(t, facts) for t in tools}, fill_best=len(tools)
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


def _was_made(call: Call, steps: Sequence[Step]) -> bool:
    key = _key(*call)
    return any(_key(step.name, step.arguments) == key for step in steps)


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return name + json.dumps(arguments, sort_keys=True, default=str)


def _has_new_value(candidate: Candidate, steps: Sequence[Step]) -> bool:
    """Whether a tool called before would be called with a value that the question gives and no call has had."""
    before = {
        json.dumps(v, default=str)
        for step in steps
        if step.name == candidate.tool.name
        for v in step.arguments.values()
    }
    failed = any(step.failed for step in steps if step.name == candidate.tool.name)
    new = [n for n, v in candidate.filling.arguments.items() if json.dumps(v, default=str) not in before]
    return bool(new) and not failed and any(candidate.filling.evidence.get(n, 0.0) > 0.9 for n in new)
