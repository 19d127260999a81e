"""The writing model: instructions, advice, rules, summaries and texts of tools, in the fields that a request asks for.

It draws sentences from a pool: most change nothing, some harm, few teach a concept. The odds of a concept depend on the request
alone: a failure of it with feedback points there strongly, its labelled examples weakly. What the current text or the best of
the scored attempts teaches is mostly kept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.landscape.chance import Chance
from benchmarks.landscape.concepts import FILLER, HARMFUL, METHOD, Concept, Guidance, read_guidance
from benchmarks.landscape.model import written
from benchmarks.landscape.reading import Field, fields_of, refs_in, sections_of, text_of
from benchmarks.landscape.tasks import TASKS, TOOLS, Task

__all__ = ["write"]

UNSEEN, LABELLED, MOST_LABELLED, FAILED, MISJUDGED = 0.025, 0.1, 0.3, 0.85, 0.08
KEPT, FILLER_KEPT, HARMFUL_KEPT = 0.95, 0.5, 0.4
HARMED, METHOD_FOUND = 0.15, 0.1
MOST_NEW = 3

_FAILURE = re.compile(r"wrong|incorrect|not the expected|should have|failed", re.IGNORECASE)
_SCORED = re.compile(r"score(?:\s*#\d+)?\"?\s*[:=]?\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_LEADING = re.compile(r"^\W*(\d+(?:\.\d+)?)%?\s*:\s", re.MULTILINE)
_ADDED = re.compile(r"advice|lesson|rule|item|add", re.IGNORECASE)
_TEXT = re.compile(r"instruct|prompt|guid|text|shorten", re.IGNORECASE)
_TOOL = re.compile(r"tool|arg|desc|texts$", re.IGNORECASE)  # at the start of a name
_ABOUT: Mapping[str, tuple[str, ...]] = {
    "tickets": ("ticket", "queue"),
    "records": ("document",),
    "tools": ("call the tool", *TOOLS),
    "coin": ("heads", "verdict"),
}


@dataclass(frozen=True)
class Brief:
    """The content of a writing request: its task, the failures and labelled rows by concept, and the text to build on."""

    task: Task
    failed: Counter[str]
    labelled: Counter[str]
    current: str
    sections: Mapping[str, str]


def write(body: Mapping[str, Any], chance: Chance) -> dict[str, Any]:
    """Return the message of the model for a request to write."""
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    system = "\n".join(text_of(one) for one in messages if one["role"] in ("system", "developer"))
    asked = next((text_of(one) for one in reversed(messages) if one["role"] == "user"), "")
    outputs = fields_of(system)[1] or (Field("text", "str", ""),)
    brief = brief_of(asked)
    fields = {field.name: _value(field, brief, chance) for field in outputs}
    return {"role": "assistant", "content": written(fields, "## completed ##" not in system + asked)}


def brief_of(asked: str) -> Brief:
    """Return what the last message of a request shows."""
    sections = sections_of(asked) or {"text": asked}
    shown = {name: text for name, text in sections.items() if refs_in(text)}
    texts = [text for name, text in sections.items() if name not in shown]
    failed, labelled = Counter[str](), Counter[str]()
    rows = {row.ref: row for text in shown.values() for _, _, row in refs_in(text)}
    if len(rows) == 1 and _FAILURE.search(asked):
        failed.update(row.concept for row in rows.values())
    else:
        for text in shown.values():
            _count(text, failed, labelled)
    return Brief(_task_of(asked), failed, labelled, "\n".join(map(_best_attempt, texts)), sections)


def _count(text: str, failed: Counter[str], labelled: Counter[str]) -> None:
    refs = refs_in(text)
    ends = [start for start, _, _ in refs[1:]] + [len(text)]
    for (start, _, row), end in zip(refs, ends, strict=True):
        (failed if _FAILURE.search(text, start, end) else labelled)[row.concept] += 1


def _best_attempt(text: str) -> str:
    """Return the best of several attempts with scores behind or before them, or the whole text."""
    behind, before = list(_SCORED.finditer(text)), list(_LEADING.finditer(text))
    if len(behind) > 1:
        starts = [0] + [one.end() for one in behind[:-1]]
        return max((float(one[1]), text[start : one.start()]) for start, one in zip(starts, behind, strict=True))[1]
    if before:
        ends = [one.start() for one in before[1:]] + [len(text)]
        return max((float(one[1]), text[one.end() : end]) for one, end in zip(before, ends, strict=True))[1]
    return text


def _task_of(asked: str) -> Task:
    if refs := refs_in(asked):
        return refs[0][1]
    lowered = asked.lower()
    counts = {name: sum(lowered.count(word) for word in words) for name, words in _ABOUT.items()}
    return TASKS[max(counts, key=lambda name: counts[name])]


# --- the values of fields --------------------------------------------------------------------------------


def _value(field: Field, brief: Brief, chance: Chance) -> Any:
    kind = field.type.lower()
    if "prefix" in field.name:
        return "Answer:"
    if kind.startswith(("int", "float", "number")):
        return 1
    if kind.startswith("bool"):
        return True
    if brief.task.levers.tools and _TOOL.match(field.name):
        texts = _tool_texts(brief, chance)
        return texts if _is_mapping(kind) else next((text["description"] for text in texts.values()), "")
    if _is_mapping(kind):
        advice = " ".join(_new(brief, chance))
        return dict.fromkeys(_names(brief), advice)
    if kind.startswith(("list", "array")) or kind.endswith("[]"):
        return _new(brief, chance)
    if _TEXT.search(field.name):
        return _instruction(brief, chance)
    if _ADDED.search(field.name):
        return "\n".join(_new(brief, chance))
    return _prose(brief, chance)


def _is_mapping(kind: str) -> bool:
    return kind.startswith(("dict", "map", "object", "{"))


def _names(brief: Brief) -> list[str]:
    for name, text in brief.sections.items():
        if "names" in name and text.startswith("["):
            return [str(one) for one in _first_json(text)]
    return ["self"]


def _first_json(text: str) -> Any:
    """Return the JSON value at the start of a text."""
    return json.JSONDecoder().raw_decode(text)[0]


def _instruction(brief: Brief, chance: Chance) -> str:
    """Return a whole instruction: the first sentence of the task, what is kept, and what is new."""
    kept = _kept(brief, chance)
    return "\n".join(dict.fromkeys([brief.task.instructions, *kept, *_new(brief, chance)]))


def _kept(brief: Brief, chance: Chance) -> list[str]:
    known = read_guidance(brief.current, brief.task.concepts)
    return [sentence for sentence, odds in _known_sentences(known, brief, chance) if chance.happens(odds)]


def _known_sentences(known: Guidance, brief: Brief, chance: Chance) -> list[tuple[str, float]]:
    found = list[tuple[str, float]]()
    for concept in brief.task.concepts:
        if concept.name in known.taught:
            found.append((chance.choice(concept.sentences), KEPT))
        elif concept.name in known.denied:
            found.append((chance.choice(concept.wrong_sentences), 0.3 if brief.failed[concept.name] else KEPT))
    lowered = brief.current.lower()
    pools = ((FILLER, FILLER_KEPT), (HARMFUL, HARMFUL_KEPT), (METHOD, KEPT))
    return found + [
        (sentence, odds) for pool, odds in pools for sentence in pool if sentence.lower().rstrip(".") in lowered
    ]


def _new(brief: Brief, chance: Chance) -> list[str]:
    """Return new sentences: what the evidence points at, by luck more, and what changes nothing or harms."""
    learned = _learned(brief, chance)
    filler = chance.sample(FILLER, 1 + int(chance.number() * 3))
    harmful = chance.sample(HARMFUL, 1) if chance.happens(HARMED) else []
    method = chance.sample(METHOD, 1) if chance.happens(METHOD_FOUND) else []
    return [*learned, *filler, *harmful, *method]


def _learned(brief: Brief, chance: Chance) -> list[str]:
    learned, wrong = list[str](), list[str]()
    for concept in brief.task.concepts:
        if chance.happens(_odds(brief, concept)):
            learned.append(chance.choice(concept.sentences))
        elif concept.wrong_sentences and chance.happens(MISJUDGED if brief.failed[concept.name] else UNSEEN):
            wrong.append(chance.choice(concept.wrong_sentences))
    return chance.sample(learned, MOST_NEW) + wrong[:1]


def _odds(brief: Brief, concept: Concept) -> float:
    missed = (1.0 - FAILED) ** brief.failed[concept.name]
    missed *= 1.0 - min(MOST_LABELLED, LABELLED * brief.labelled[concept.name])
    return 1.0 - missed * (1.0 - UNSEEN)


def _prose(brief: Brief, chance: Chance) -> str:
    """Return a description of what was shown, with at most one convention in it and seldom more of those given."""
    given = [
        sentence
        for sentence, odds in _known_sentences(read_guidance(brief.current, brief.task.concepts), brief, chance)
        if chance.happens(odds / 2) and sentence not in FILLER
    ]
    seen = _learned(brief, chance)[:2] if brief.failed or brief.labelled else []
    about = f"The texts are short and each has one {brief.task.output}."
    return "\n".join(dict.fromkeys([about, *given[:3], *seen]))


# --- the texts of tools ------------------------------------------------------------------------------------


def _tool_texts(brief: Brief, chance: Chance) -> dict[str, dict[str, Any]]:
    """Return texts by tool: the current description with what the evidence points at, and arguments that it points at."""
    shown = _shown_tools(brief)
    descriptions, arguments = dict(shown), {name: dict[str, str]() for name in shown}
    filler = chance.choice(FILLER)
    for concept in brief.task.concepts:
        name = next((tool for tool in concept.tools if tool in shown), None)
        if name is None or not chance.happens(_odds(brief, concept)):
            continue
        if concept.argument:
            arguments[name][concept.argument] = chance.choice(concept.tool_sentences)
        else:
            descriptions[name] += f" {chance.choice(concept.tool_sentences)}"
    texts = dict[str, dict[str, Any]]()
    for name in shown:
        if chance.happens(HARMED):
            descriptions[name] += f" {filler}"
        texts[name] = {"description": descriptions[name]} | ({"args": arguments[name]} if arguments[name] else {})
    return texts


def _shown_tools(brief: Brief) -> dict[str, str]:
    """Return the tools that a request to write shows, with their current descriptions if it has them as JSON."""
    for name, text in brief.sections.items():
        if _TOOL.match(name) and text.startswith("{"):
            found: dict[str, Any] = _first_json(text)
            return {tool: str(shown["description"] or "") for tool, shown in found.items() if "description" in shown}
    everything = "\n".join(brief.sections.values())
    return {name: desc for name, (desc, _) in TOOLS.items() if name in everything}
