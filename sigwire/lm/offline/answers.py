"""Answering in words: the values of the asked-for fields, and the form the prompt teaches for them. Pure.

Values come from the nearest example, from the results of calls, or by slot filling from the inputs; where none of
these gives one, a neutral value of the right type stands in, so that the answer is always well formed. It is not
always right, and says so where there is room to say anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.offline.demos import habits_of, similar
from sigwire.lm.offline.facts import Fact, facts_of
from sigwire.lm.offline.filling import Filling, fill
from sigwire.lm.offline.reading import Demo, Output, Reading
from sigwire.lm.offline.schemas import (
    Schema,
    is_list,
    is_mapping,
    is_nullable,
    items_of,
    options_of,
    properties_of,
    required_of,
    resolved,
    type_of,
)
from sigwire.lm.offline.words import content_stems, name_words, sentences, stem

__all__ = ["ABSTAIN", "answer_fields", "answer_text", "finish_arguments"]

ABSTAIN = (
    "I am offline/lexical, a word-matching stand-in and not a language model. I found nothing here that answers this."
)
REASONING = (
    "offline/lexical does not reason: this answer comes from matching words of the request and copying its examples."
)


def answer_text(reading: Reading) -> str:
    """The answer to a request that wants no call: in the taught form, or as plain text."""
    if reading.form == "text" or not reading.outputs:
        return _plain_answer(reading)
    return _WRITE[reading.form](answer_fields(reading, reading.outputs))


def finish_arguments(reading: Reading, parameters: Schema) -> JsonObject:
    """Arguments for the tool that takes the final answer."""
    outputs = [Output(name, schema) for name, schema in properties_of(parameters).items()]
    return answer_fields(reading, outputs)


def _plain_answer(reading: Reading) -> str:
    close = similar(reading.question, reading.demos)
    if close and close[0][0] > 0.8 and close[0][1].answer and not close[0][1].calls:
        return close[0][1].answer
    if reading.steps:
        return str(_best_text(reading, facts_of(reading.steps)))
    return ABSTAIN


# --- the values ------------------------------------------------------------------------------------------


def answer_fields(reading: Reading, outputs: Sequence[Output]) -> JsonObject:
    """A value for every output."""
    ranked = similar(reading.question, reading.demos)
    if ranked and ranked[0][0] > 0.999 and all(output.name in ranked[0][1].fields for output in outputs):
        return {o.name: _typed(o.schema, ranked[0][1].fields[o.name]) for o in outputs}
    needed = [o.name for o in outputs if not (is_nullable(o.schema) or type_of(o.schema) == "array")]
    schema = {"properties": {o.name: o.schema for o in outputs}, "required": needed}
    shown = [(demo.text, _typed_fields(demo, outputs)) for demo in reading.demos if demo.fields]
    filling = fill(schema, reading.question, habits_of(shown))
    facts = facts_of(reading.steps)
    return {output.name: _value(output, reading, ranked, filling, facts) for output in outputs}


def _typed_fields(demo: Demo, outputs: Sequence[Output]) -> dict[str, JsonValue]:
    return {o.name: _typed(o.schema, demo.fields[o.name]) for o in outputs if o.name in demo.fields}


def _value(
    output: Output,
    reading: Reading,
    ranked: Sequence[tuple[float, Demo]],
    filling: Filling,
    facts: Sequence[Fact],
) -> JsonValue:
    name, schema = output.name, output.schema
    if {stem(w) for w in ("reasoning", "rationale", "thought", "explanation")} & set(name_words(name)):
        return REASONING
    if facts or reading.steps:
        found = _from_facts(output, reading, facts)
        if found is not None:
            return complete(schema, found)
    voted = _vote(name, schema, ranked)
    sure = filling.evidence.get(name, 0.0)
    if voted is not None and sure < 3.0:
        return voted
    if name in filling.arguments and (sure > 0.4 or type_of(schema) != "string"):
        return complete(schema, filling.arguments[name])
    if is_nullable(schema) and sure <= 0.4:
        return None
    if type_of(schema) == "string" and not options_of(schema):
        return complete(schema, _extract(reading))
    return complete(schema, filling.arguments.get(name))


def _vote(name: str, schema: Schema, ranked: Sequence[tuple[float, Demo]]) -> JsonValue | None:
    """The value that the most alike examples have, for fields whose values repeat: labels, choices, flags."""
    shown = [(likeness, demo.fields[name]) for likeness, demo in ranked if name in demo.fields]
    values = [value for _, value in shown]
    closed = bool(options_of(schema)) or type_of(schema) == "boolean"
    if not values or (not closed and (len(set(values)) == len(values) or max(map(len, values)) > 60)):
        return None
    votes: dict[str, float] = {}
    for place, (likeness, value) in enumerate(shown[:5]):
        votes[value] = votes.get(value, 0.0) + likeness**2 + 0.01 / (1 + place)
    return _typed(schema, max(votes, key=lambda value: votes[value]))


def _extract(reading: Reading) -> str:
    """The sentence of the longest input that tokens_by_text most with the rest; without a text to draw on, the plain truth."""
    texts = sorted(reading.inputs.values(), key=len)
    if not texts or len(texts[-1].split()) < 12:
        return ABSTAIN
    asked = set(content_stems(" ".join(texts[:-1]))) or set(content_stems(texts[-1]))
    parts = sentences(texts[-1])
    return max(parts, key=lambda part: (len(asked & set(content_stems(part))), -parts.index(part)))


# --- answers out of results ---------------------------------------------------------------------------


def _from_facts(output: Output, reading: Reading, facts: Sequence[Fact]) -> JsonValue | None:
    kind = type_of(output.schema)
    if kind == "string" and not options_of(output.schema):
        named = [fact for fact in facts if fact.key == output.name]
        return _as_text(named[0].value) if named else _best_text(reading, facts)
    suiting = [fact for fact in facts if _is(kind, fact.value)]
    if not suiting:
        return len(facts[0].value) if kind == "integer" and facts and isinstance(facts[0].value, list) else None
    return _best(suiting, reading, output.name).value


def _is(kind: str, value: JsonValue) -> bool:
    checks: Mapping[str, Callable[[Any], bool]] = {
        "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
        "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
        "boolean": lambda v: isinstance(v, bool),
        "array": lambda v: isinstance(v, list),
        "string": lambda v: isinstance(v, str),
    }
    return checks.get(kind, lambda v: False)(value)


_ASKS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    (
        r"\bhow (?:many|much|long|old|far|heavy|often)\b|\btotal\b|\baverage\b|\bcount\b",
        lambda v: isinstance(v, (int, float)),
    ),
    (
        r"\bwhen\b|\bwhich (?:day|date)\b|\bwhat (?:day|date)\b",
        lambda v: isinstance(v, str) and bool(re.match(r"\d{4}-\d\d", v)),
    ),
    (r"\bwho\b|\bwhose\b|\bwhich\b|\bwhere\b", lambda v: isinstance(v, str)),
)


def _best(facts: Sequence[Fact], reading: Reading, name: str = "") -> Fact:
    """The fact that answers the question: by what it is called, by the kind of value asked for, by how late it came."""
    called = {s for step in reading.steps for s in name_words(step.name)}
    asked = (set(content_stems(reading.question)) - called) | set(name_words(name))
    wants = [check for pattern, check in _ASKS if re.search(pattern, reading.question, re.IGNORECASE)]
    given = {json.dumps(value, default=str) for step in reading.steps for value in step.arguments.values()}

    def score(fact: Fact) -> float:
        points = 1.0 * fact.step + 1.5 * sum(1 for s in name_words(fact.key) if s in asked)
        points += 1.0 if not fact.key else 0.0
        points += sum(0.8 for check in wants if check(fact.value))
        points -= 2.5 if json.dumps(fact.value, default=str) in given else 0.0
        return points - (1.0 if stem("id") in name_words(fact.key) else 0.0)

    return max(facts, key=score)


def _best_text(reading: Reading, facts: Sequence[Fact]) -> str:
    if not facts:
        failure = reading.steps[-1].result if reading.steps else None
        return f"I could not find this out: {_unlabelled(_as_text(failure))}" if failure is not None else ABSTAIN
    return _as_text(_best(facts, reading).value)


def _unlabelled(failure: str) -> str:
    """Without the ``ERROR:`` that marks a failure where it can only be said in the text."""
    return re.sub(r"^error:\s*", "", failure, flags=re.IGNORECASE)


def _as_text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


# --- values that fit their type ----------------------------------------------------------------------


def complete(schema: Schema, value: Any = None) -> JsonValue:
    """A value of the schema's type: the given one if it fits, else with neutral values where something is lacking.

    >>> complete({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, {})
    {'n': 0}
    """
    if value is None and is_nullable(schema):
        return None
    schema = resolved(schema)
    options = options_of(schema)
    if options:
        return cast(JsonValue, value if value in options else options[0])
    return _COMPLETE.get(type_of(schema), _any)(schema, value)


def _any(schema: Schema, value: Any) -> JsonValue:
    return cast(JsonValue, value)


def _complete_number(schema: Schema, value: Any) -> JsonValue:
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else _digits(value)
    low, high = (
        schema.get("minimum", schema.get("exclusiveMinimum")),
        schema.get("maximum", schema.get("exclusiveMaximum")),
    )
    if low is not None and number < low:
        number = low + ("exclusiveMinimum" in schema)
    if high is not None and number > high:
        number = high - ("exclusiveMaximum" in schema)
    return int(number) if type_of(schema) == "integer" else number


def _digits(value: Any) -> int | float:
    match = re.search(r"-?\d+(?:\.\d+)?", str(value or ""))
    return (float(match[0]) if "." in match[0] else int(match[0])) if match else 0


def _complete_text(schema: Schema, value: Any) -> JsonValue:
    text = value if isinstance(value, str) else "" if value is None else _as_text(value)
    wanted = _FORMATS.get(str(schema.get("format")))
    if wanted and not re.match(wanted[0], text):
        return wanted[1]
    text = text.ljust(int(schema.get("minLength") or 0), "-")
    return text[: schema["maxLength"]] if "maxLength" in schema else text


_FORMATS: Mapping[str, tuple[str, str]] = {
    "date": (r"\d{4}-\d\d-\d\d\Z", "1970-01-01"),
    "date-time": (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", "1970-01-01T00:00:00"),
    "time": (r"\d\d:\d\d", "00:00:00"),
}


def _complete_array(schema: Schema, value: Any) -> JsonValue:
    items = items_of(schema) or {"type": "string"}
    given: list[Any] = value if is_list(value) else [] if value is None else [value]
    filled = [complete(items, item) for item in given]
    return filled + [complete(items) for _ in range(int(schema.get("minItems") or 0) - len(filled))]


def _complete_object(schema: Schema, value: Any) -> JsonValue:
    given: Mapping[str, Any] = value if is_mapping(value) else {}
    properties, required = properties_of(schema), required_of(schema)
    if not properties:
        return dict(given)
    return {name: complete(s, given.get(name)) for name, s in properties.items() if name in given or name in required}


_COMPLETE: Mapping[str, Callable[[Schema, Any], JsonValue]] = {
    "integer": _complete_number,
    "number": _complete_number,
    "string": _complete_text,
    "boolean": lambda schema, value: value if isinstance(value, bool) else str(value).lower() in ("true", "yes"),
    "array": _complete_array,
    "object": _complete_object,
    "null": lambda schema, value: None,
}


def _typed(schema: Schema, text: str) -> JsonValue:
    """A value that an example shows as text, in the type of its field."""
    if type_of(schema) == "string":
        return text
    try:
        return complete(schema, json.loads(text))
    except ValueError:
        return complete(schema, text)


# --- the forms -----------------------------------------------------------------------------------------


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sections(fields: JsonObject) -> str:
    return "\n\n".join(
        [*(f"[[ ## {name} ## ]]\n{_text(value)}" for name, value in fields.items()), "[[ ## completed ## ]]"]
    )


def _xml(fields: JsonObject) -> str:
    return "\n".join(f"<{name}>\n{_text(value)}\n</{name}>" for name, value in fields.items())


_WRITE: Mapping[str, Callable[[JsonObject], str]] = {
    "sections": _sections,
    "xml": _xml,
    "json": lambda fields: json.dumps(fields, ensure_ascii=False),
}
