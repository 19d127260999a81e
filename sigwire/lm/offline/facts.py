"""Facts: what the results of earlier calls give, as named values that further calls and the answer can use. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sigwire.core.json import JsonValue
from sigwire.lm.offline.choice import OfferedTool
from sigwire.lm.offline.reading import Step
from sigwire.lm.offline.slots import type_of
from sigwire.lm.offline.words import STOP_WORDS, name_words, stem

__all__ = ["Fact", "facts_of", "known_for"]

_ID = stem("id")
_VALUE_NAMES = frozenset(stem(word) for word in "value amount quantity number x input price total n".split())


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of a result: its key (``""`` for a whole result), the stems that tell what it is, and which step gave it."""

    key: str
    stems: frozenset[str]
    value: JsonValue
    step: int


def facts_of(steps: Sequence[Step]) -> list[Fact]:
    """The facts of all successful steps, later steps first."""
    found: list[Fact] = []
    for number, step in reversed(list(enumerate(steps))):
        if not step.failed:
            about = frozenset(s for s in name_words(step.name) if s not in STOP_WORDS)
            found.extend(_facts(step.result, "", about, number))
    return found


def _facts(value: JsonValue, key: str, about: frozenset[str], step: int) -> Iterator[Fact]:
    stems = about | frozenset(name_words(key))
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _facts(item, name, stems, step)
    elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        yield from _facts(value[0], key, about, step)
    elif value is not None:
        yield Fact(key, stems, value, step)


_OF_TYPE: Mapping[str, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "string": (str, int), "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip


def known_for(tool: OfferedTool, facts: Sequence[Fact]) -> dict[str, tuple[JsonValue, float]]:
    """The parameters of a tool that facts can fill."""
    known: dict[str, tuple[JsonValue, float]] = {}
    for name, schema in (tool.parameters.get("properties") or {}).items():
        scored = [(_suits(name, schema, fact), -place, fact.value) for place, fact in enumerate(facts)]
        score, _, value = max(scored, key=lambda item: item[:2], default=(0.0, 0, None))
        if score > 0:
            known[name] = (value, score)
    return known


def _suits(name: str, schema: Any, fact: Fact) -> float:
    kind = type_of(schema) if isinstance(schema, Mapping) else "string"
    if not isinstance(fact.value, _OF_TYPE.get(kind, (object,))) or (
        isinstance(fact.value, bool) and kind != "boolean"
    ):
        return 0.0
    wanted = [s for s in name_words(name) if s not in STOP_WORDS]
    key = name_words(fact.key)
    if fact.key == name and (len(wanted) > 1 or _ID in wanted):
        return 3.0
    if _ID in wanted:
        entity = set(wanted) - {_ID}
        return 2.8 if _ID in key and entity <= fact.stems else 0.0
    if fact.key == name:
        return 1.2
    if set(wanted) & set(key):
        return 1.0
    if kind in ("integer", "number") and set(wanted) & _VALUE_NAMES:
        return 0.8 - 0.1 * len(fact.key) / 40
    return 0.0
