"""The simulated model: how good an answer is, and the answer.

The quality of a prompt for a row is a number from 0 to 1, made of what the prompt teaches by instructions, examples and the
texts of tools. A row has a difficulty. The answer is right with the probability of a logistic curve of their difference, by
a number that is a hash of the whole request.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from benchmarks.landscape.chance import Chance, share
from benchmarks.landscape.concepts import Concept, named, read_guidance
from benchmarks.landscape.reading import Prompt
from benchmarks.landscape.tasks import Answer

__all__ = ["answer", "probability", "quality"]

SOFTNESS = 0.1
SHOWN_ENOUGH = 4
LONG = 8


def quality(prompt: Prompt) -> float:
    """Return the quality of a prompt for its row."""
    task, row, levers = prompt.task, prompt.row, prompt.task.levers
    if not task.concepts:
        return levers.plain
    guidance = read_guidance(prompt.guidance, task.concepts)
    right = sum(shown.right for shown in prompt.shown)
    common = 0.05 * min(1.0, right / SHOWN_ENOUGH)
    common += 0.04 * (guidance.method and len(guidance.taught) >= 3)
    common -= 0.07 * min(3, guidance.harmful)
    common -= 0.006 * min(10, max(0, guidance.other - LONG)) + 0.003 * max(0, len(prompt.shown) - LONG)
    common -= 0.04 * (len(prompt.shown) - right)
    if not row.concept:
        return min(levers.high, levers.plain + common)
    concept = named(task.concepts)[row.concept]
    untaught = 1.0 - levers.instructions * (concept.name in guidance.taught)
    untaught *= 1.0 - levers.demos * (1.0 - 0.4 ** _examples(prompt, concept))
    untaught *= 1.0 - levers.tools * _taught_by_tools(prompt.tools, concept)
    denied = 0.1 * (concept.name in guidance.denied)
    return min(levers.high, levers.low + (levers.high - levers.low) * (1.0 - untaught) + common - denied)


def _examples(prompt: Prompt, concept: Concept) -> int:
    same = [shown.right for shown in prompt.shown if shown.row.concept == concept.name]
    return max(0, 2 * sum(same) - len(same))


def _taught_by_tools(tools: Mapping[str, str], concept: Concept) -> float:
    """Return how clearly the texts of the tools teach a concept: of the right tool 1, of the other one a half."""
    clarity = 0.0
    for rank, name in enumerate(concept.tools):
        text = tools.get(name, "").lower()
        subjects, *_, targets = concept.groups
        groups = (subjects,) if not concept.argument and not rank else (subjects, targets)
        if all(any(word in text.replace(f'"{name}"', "") for word in group) for group in groups):
            clarity = max(clarity, 1.0 if not rank else 0.5)
    return clarity


def probability(prompt: Prompt) -> float:
    """Return the probability of a right answer."""
    difficulty = share("difficulty", prompt.row.ref)
    return 1.0 / (1.0 + math.exp((difficulty - quality(prompt)) / SOFTNESS))


def answer(prompt: Prompt, chance: Chance) -> dict[str, Any]:
    """Return the message of the model for a request of a task."""
    value: Answer = prompt.row.expected if chance.number() < probability(prompt) else prompt.row.naive
    if prompt.native:
        function = {"name": value["name"], "arguments": json.dumps(value["args"])}
        identity = f"call_{chance.letters()}"
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": identity, "type": "function", "function": function}],
        }
    if not isinstance(value, str):
        value = {"tool_calls": [value]}
    fields = {
        field.name: value if field.name == prompt.task.output else "The conventions decide." for field in prompt.outputs
    }
    return {"role": "assistant", "content": written(fields or {prompt.task.output: value}, prompt.is_json)}


def written(fields: Mapping[str, Any], is_json: bool) -> str:
    """Return output fields as a JSON object or as sections."""
    if is_json:
        return json.dumps(fields)
    texts = [
        f"[[ ## {name} ## ]]\n{value if isinstance(value, str) else json.dumps(value)}"
        for name, value in fields.items()
    ]
    return "\n\n".join([*texts, "[[ ## completed ## ]]"])
