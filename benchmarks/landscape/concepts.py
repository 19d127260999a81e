"""What guidance is worth: the concepts that a prompt may teach, and the sentences that teach them.

A ``Concept`` is one convention of a task. A sentence teaches it if it has a word of every group; a sentence that has a word of
the first group and of ``misleading``, and none of the last group, teaches the contrary. ``FILLER`` changes nothing but the
length, ``HARMFUL`` sentences cost accuracy, ``METHOD`` sentences help once several concepts are taught.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

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


FILLER = (
    "Read the input carefully before you reply.",
    "Take a deep breath and work step by step.",
    "You are a careful expert with many years of experience.",
    "The result is used in an important decision.",
    "Keep the tone neutral and professional.",
    "Pay attention to every detail of the text.",
    "Consider the context as a whole.",
    "Be precise and consistent.",
    "Do not add explanations to the reply.",
    "Check your reply once more before you send it.",
    "Focus on what the writer needs.",
    "Ignore spelling mistakes and small talk.",
    "Think about similar cases that you know.",
    "A colleague will review each reply.",
    "Quality matters more than speed.",
    "Weigh the evidence before you settle on one reply.",
)
HARMFUL = (
    "Always answer with your first impression.",
    "If in doubt, choose the most general option.",
    "Be creative and paraphrase the reply in your own words.",
    "Answer with as few characters as possible.",
    "Prefer the option that is mentioned first.",
)
METHOD = (
    "If several conventions fit, apply the most specific one.",
    "Before you reply, check the conventions above one by one; the most specific convention wins.",
)
_HARMFUL_WORDS = ("first impression", "most general", "paraphrase", "few characters", "mentioned first")


def is_harmful(sentence: str) -> bool:
    return any(word in sentence for word in _HARMFUL_WORDS)


def is_method(sentence: str) -> bool:
    return "specific" in sentence and any(word in sentence for word in ("convention", "rule", "case"))


@dataclass(frozen=True)
class Guidance:
    """What a text teaches: the names of concepts taught and denied, the harmful sentences, the method, the rest."""

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
