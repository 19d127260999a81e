"""Answers: the values of the requested fields, and the text of the answer in the form of the prompt. Pure.

The source of a value is the nearest demo, a result (``Fact``) or slot filling from the inputs. If no source has a value,
a neutral value of the right type is used: every answer is valid, and free text states that nothing was found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.offline.examples import habits_of, rank_demos
from sigwire.lm.offline.filling import FilledArguments, fill
from sigwire.lm.offline.request import Output, PromptContent, PromptDemo, Step, as_text, parse_json
from sigwire.lm.offline.slots import (
    Schema,
    complete,
    has_type,
    is_nullable,
    options_of,
    properties_of,
    text_of,
    type_of,
)
from sigwire.lm.offline.words import STOP_WORDS, content_stems, name_words, stem

__all__ = ["Fact", "answer_text", "facts_of", "finish_arguments"]

_ABSTAIN = (
    "I am offline/lexical, a word-matching stand-in and not a language model. I found nothing here that answers this."
)
_REASONING = (
    "offline/lexical does not reason: this answer comes from matching words of the request and copying its examples."
)
_REASONING_NAMES = frozenset(stem(word) for word in ("reasoning", "rationale", "thought", "explanation"))
# Form of a question -> JSON type of its answer.
_ASKS: tuple[tuple[str, str], ...] = (
    (r"\bhow (?:many|much|long|old|far|heavy|often)\b|\btotal\b|\baverage\b|\bcount\b", "number"),
    (r"\bwhen\b|\b(?:which|what) (?:day|date)\b|\bwhose?\b|\bwhich\b|\bwhere\b", "string"),
)
_ERROR_LABEL = re.compile(r"^error:\s*", re.IGNORECASE)


def answer_text(content: PromptContent) -> str:
    """Return the answer to a request without a call: in the form of the prompt, or as plain text."""
    if content.form == "text" or not content.outputs:
        return _result_text(content, facts_of(content.steps)) if content.steps else _ABSTAIN
    return _WRITERS[content.form](_answer_fields(content, content.outputs))


def finish_arguments(content: PromptContent, parameters: Schema) -> JsonObject:
    """Return arguments for the tool that submits the final answer."""
    return _answer_fields(content, [Output(name, schema) for name, schema in properties_of(parameters).items()])


def _answer_fields(content: PromptContent, outputs: Sequence[Output]) -> JsonObject:
    ranked = rank_demos(content.question, content.demos)
    required = [o.name for o in outputs if not (is_nullable(o.schema) or type_of(o.schema) == "array")]
    schema = {"properties": {o.name: o.schema for o in outputs}, "required": required}
    shown = [_typed_fields(demo, outputs) for demo in content.demos if demo.fields]
    filled, facts = fill(schema, content.question, habits_of(shown)), facts_of(content.steps)
    return {output.name: _value(output, content, ranked, filled, facts) for output in outputs}


def _typed_fields(demo: PromptDemo, outputs: Sequence[Output]) -> JsonObject:
    return {o.name: _typed_value(o.schema, demo.fields[o.name]) for o in outputs if o.name in demo.fields}


def _typed_value(schema: Schema, text: str) -> JsonValue:
    return text if type_of(schema) == "string" else complete(schema, parse_json(text))


def _value(
    output: Output,
    content: PromptContent,
    ranked: Sequence[tuple[float, PromptDemo]],
    filled: FilledArguments,
    facts: Sequence[Fact],
) -> JsonValue:
    name, schema = output.name, output.schema
    if _REASONING_NAMES & set(name_words(name)):
        return _REASONING
    if content.steps and (found := _from_facts(output, content, facts)) is not None:
        return complete(schema, found)
    evidence, label = filled.evidence.get(name, 0.0), _label(name, schema, ranked)
    if label is not None and evidence < 3.0:
        return label
    if evidence <= 0.4 and is_nullable(schema):
        return None
    is_unknown = evidence <= 0.4 and _is_free_text(schema)
    return complete(schema, _ABSTAIN if is_unknown else filled.arguments.get(name))


def _is_free_text(schema: Schema) -> bool:
    return type_of(schema) == "string" and not options_of(schema)


def _label(name: str, schema: Schema, ranked: Sequence[tuple[float, PromptDemo]]) -> JsonValue | None:
    """Return the value of the most similar demos, for a field whose values repeat: labels, choices, flags."""
    shown = [(likeness, demo.fields[name]) for likeness, demo in ranked if name in demo.fields]
    values = [value for _, value in shown]
    repeats = len(set(values)) < len(values) and max(map(len, values)) <= 60
    if not values or not (repeats or options_of(schema) or type_of(schema) == "boolean"):
        return None
    votes = dict.fromkeys(values, 0.0)
    for place, (likeness, value) in enumerate(shown[:5]):
        votes[value] += likeness**2 + 0.01 / (1 + place)
    return _typed_value(schema, max(votes, key=lambda value: votes[value]))


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of a result: its key (``""`` for a whole result), the stems of its tool and key, the number of its step."""

    key: str
    stems: frozenset[str]
    value: JsonValue
    step: int


def facts_of(steps: Sequence[Step]) -> list[Fact]:
    """Return the facts of all successful steps, later steps first."""
    found: list[Fact] = []
    for number, step in reversed(list(enumerate(steps))):
        if not step.failed:
            topic = frozenset(name_words(step.name)) - STOP_WORDS
            found.extend(_facts(step.result, "", topic, number))
    return found


def _facts(value: JsonValue, key: str, topic: frozenset[str], step: int) -> Iterator[Fact]:
    stems = topic | frozenset(name_words(key))
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _facts(item, name, stems, step)
    elif value is not None:
        yield Fact(key, stems, value, step)


def _from_facts(output: Output, content: PromptContent, facts: Sequence[Fact]) -> JsonValue | None:
    if _is_free_text(output.schema):
        named = next((text_of(fact.value) for fact in facts if fact.key == output.name), None)
        return _result_text(content, facts) if named is None else named
    fitting = [fact for fact in facts if has_type(type_of(output.schema), fact.value)]
    return _best_fact(fitting, content, output.name).value if fitting else None


def _result_text(content: PromptContent, facts: Sequence[Fact]) -> str:
    if facts:
        return text_of(_best_fact(facts, content).value)
    failure = content.steps[-1].result
    if failure is None:
        return _ABSTAIN
    # ``ERROR:`` marks a failure on wires that have no flag for it.
    return f"I could not find this out: {_ERROR_LABEL.sub('', text_of(failure))}"


def _best_fact(facts: Sequence[Fact], content: PromptContent, name: str = "") -> Fact:
    called = {part for step in content.steps for part in name_words(step.name)}
    asked = (set(content_stems(content.question)) - called) | set(name_words(name))
    kinds = [kind for pattern, kind in _ASKS if re.search(pattern, content.question, re.IGNORECASE)]
    given = [value for step in content.steps for value in step.arguments.values()]

    def score(fact: Fact) -> float:
        names = name_words(fact.key)
        points = fact.step + 1.5 * sum(part in asked for part in names) + (not fact.key)
        points += sum(0.8 for kind in kinds if has_type(kind, fact.value))
        return points - 2.5 * (fact.value in given) - (stem("id") in names)

    return max(facts, key=score)


_WRITERS: Mapping[str, Callable[[JsonObject], str]] = {
    "sections": lambda fields: "\n\n".join(
        [*(f"[[ ## {name} ## ]]\n{as_text(value)}" for name, value in fields.items()), "[[ ## completed ## ]]"]
    ),
    "xml": lambda fields: "\n".join(f"<{name}>\n{as_text(value)}\n</{name}>" for name, value in fields.items()),
    "json": lambda fields: json.dumps(fields, ensure_ascii=False),
}
