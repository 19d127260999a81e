"""Evidence: how strongly a request hints at each value of its outputs, as distributions. Pure, and not calibrated.

A hint is a mention of the value in the inputs (``scoring``), or the values of near demos. Equal requests get equal numbers; a
literal mention gives more than 0.5, no hint at all the uniform distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from sigwire.core.evidence import label_of
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_array, is_mapping
from sigwire.lm.offline.examples import rank_demos
from sigwire.lm.offline.mentions import ParsedText
from sigwire.lm.offline.request import PromptContent, PromptDemo, parse_json
from sigwire.lm.offline.scoring import find_flag, name_strength
from sigwire.lm.offline.slots import Schema, Slot, is_nullable, options_of, properties_of, resolve, slots_of, type_of

__all__ = ["evidence_of"]

_UNNAMED = -2.0  # the score of a member of a list that the text does not name


def evidence_of(content: PromptContent) -> JsonObject:
    """Return the distributions of the deciding outputs of a request, by path, in the form of ``Choice.evidence``."""
    ranked = rank_demos(content.question, content.demos)
    reader = _HintReader(ParsedText.of(content.question, frozenset()), ranked)
    return {
        path: {"values": values, "probabilities": [*_softmax(scores)]}
        for output in content.outputs
        for path, values, scores in reader.output(output.name, output.schema, (output.name,))
    }


def _softmax(scores: Sequence[float]) -> list[float]:
    scale = 1 + math.log(len(scores)) / 3  # a literal mention outweighs any number of others
    powers = [math.exp(scale * min(score, 10.0)) for score in scores]
    return [power / sum(powers) for power in powers]


class _HintReader:
    """Scores the values of outputs for one text."""

    def __init__(self, text: ParsedText, ranked: Sequence[tuple[float, PromptDemo]]) -> None:
        self._text, self._ranked = text, ranked

    def output(
        self, name: str, schema: Schema, path: tuple[str, ...]
    ) -> Iterator[tuple[str, list[JsonValue], list[float]]]:
        """Yield path, values and scores of the questions in an output."""
        only, written = resolve(schema), ".".join(path)
        nothing: list[JsonValue] = [None] if is_nullable(schema) else []
        levels = schema.get("x-levels") or only.get("x-levels")
        if type_of(only) == "object":
            for member, inner in properties_of(only).items():
                yield from self.output(member, inner, (*path, member))
        elif is_array(levels):
            labels = [str(level["label"]) if is_mapping(level) else "" for level in levels]
            yield written, [*range(len(labels))], self._scores(path, [*range(len(labels))], labels)
        elif type_of(only) == "array":
            items: object = only.get("items")
            for option in options_of(items) if is_mapping(items) else ():
                strength = name_strength(label_of(option), self._text)
                true = strength or _UNNAMED
                yield f"{written}[{label_of(option)}]", [True, False], [true / 2, -true / 2]
        elif options := options_of(only):
            values: list[JsonValue] = [value for value in options if value is not None]
            values += nothing or [None] * (None in options)
            if len(values) > 1:
                yield written, values, self._scores(path, values, [label_of(value) for value in values])
        elif type_of(only) == "boolean":
            values = [True, False, *nothing]
            yield written, values, self._flag_scores(name, only, path, values)

    def _scores(self, path: tuple[str, ...], values: Sequence[JsonValue], labels: Sequence[str]) -> list[float]:
        votes = self._votes(path)
        named = [
            0.0 if value is None else name_strength(label, self._text)
            for value, label in zip(values, labels, strict=True)
        ]
        return [score + votes.get(label_of(value), 0.0) for score, value in zip(named, values, strict=True)]

    def _flag_scores(
        self, name: str, schema: Schema, path: tuple[str, ...], values: Sequence[JsonValue]
    ) -> list[float]:
        slot: Slot = slots_of({"properties": {name: schema}}, {})[0]
        found, votes = find_flag(slot, self._text), self._votes(path)
        scores = [votes.get(label_of(value), 0.0) for value in values]
        if found is not None and found[1] > 0.4:
            scores[0 if found[0] else 1] += found[1]
        return scores

    def _votes(self, path: tuple[str, ...]) -> Mapping[str, float]:
        """Return what near demos add to each label."""
        votes: dict[str, float] = {}
        for likeness, demo in self._ranked[:5]:
            value: JsonValue = parse_json(demo.fields[path[0]]) if path[0] in demo.fields else None
            for key in path[1:]:
                value = value.get(key) if isinstance(value, dict) else None
            if path[0] in demo.fields and not isinstance(value, list | dict):
                votes[label_of(value)] = votes.get(label_of(value), 0.0) + 2 * likeness**2
        return votes
