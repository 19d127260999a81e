"""Concepts that a prompt may teach, and the sentences that teach them.

A ``Concept`` is one convention of a task. A sentence teaches it if it has a word of every group; a sentence that has a word of
the first group and of ``misleading``, and none of the last group, teaches the contrary. ``FILLER`` changes nothing but the
length, ``HARMFUL`` sentences cost accuracy, ``METHOD`` sentences help once several concepts are taught.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = [
    "FILLER",
    "HARMFUL",
    "METHOD",
    "Concept",
    "Guidance",
    "is_harmful",
    "is_method",
    "read_guidance",
    "sentences",
]

Words = tuple[str, ...]


@dataclass(frozen=True)
class Concept:
    """One convention: the groups of words that teach it, sentences for the writing model, and for tools where it belongs."""

    name: str
    groups: tuple[Words, ...]
    sentences: Words
    misleading: Words = ()
    wrong_sentences: Words = ()
    tools: Words = ()
    argument: str = ""
    tool_sentences: Words = ()

    def is_taught_by(self, sentence: str) -> bool:
        return all(any(word in sentence for word in group) for group in self.groups)

    def is_denied_by(self, sentence: str) -> bool:
        subject, *_, target = self.groups
        return (
            any(word in sentence for word in subject)
            and any(word in sentence for word in self.misleading)
            and not any(word in sentence for word in target)
        )


TEXTS: Mapping[str, Any] = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))
"""The templates of rows and the sentences of the writing model that teach no concept."""
FILLER, HARMFUL, METHOD = (tuple[str, ...](TEXTS[name]) for name in ("filler", "harmful", "method"))
_HARMFUL_WORDS = ("first impression", "most general", "paraphrase", "few characters", "mentioned first")


def is_harmful(sentence: str) -> bool:
    return any(word in sentence for word in _HARMFUL_WORDS)


def is_method(sentence: str) -> bool:
    return "specific" in sentence and any(word in sentence for word in ("convention", "rule", "case"))


@dataclass(frozen=True)
class Guidance:
    """The content of a text: the names of concepts taught and denied, the harmful sentences, the method, the rest."""

    taught: frozenset[str]
    denied: frozenset[str]
    harmful: int
    method: bool
    other: int


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in lower case.

    >>> sentences("Due dates: use ISO. Amounts,\\n e.g. 5 EUR")
    ['due dates: use iso', 'amounts,', 'e.g. 5 eur']
    """
    parts = re.split(r"(?<=[a-z0-9\")])[.!?](?:\s|$)|\n|\\n", text.lower())
    return [part.strip(" -*\t\"'") for part in parts if part.strip(" -*\t\"'.")]


@lru_cache(maxsize=4096)
def read_guidance(text: str, concepts: tuple[Concept, ...]) -> Guidance:
    """Return what the text teaches of the concepts."""
    taught, denied = set[str](), set[str]()
    harmful, other, method = 0, 0, False
    for sentence in sentences(text):
        known = False
        for concept in concepts:
            if concept.is_taught_by(sentence):
                taught.add(concept.name)
                known = True
            elif concept.is_denied_by(sentence):
                denied.add(concept.name)
                known = True
        if is_harmful(sentence):
            harmful += 1
        elif is_method(sentence):
            method = True
        elif not known:
            other += 1
    return Guidance(frozenset(taught), frozenset(denied - taught), harmful, method, other)


def named(concepts: Iterable[Concept]) -> Mapping[str, Concept]:
    """Return the concepts by name."""
    return {concept.name: concept for concept in concepts}
