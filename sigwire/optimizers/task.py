"""The view that rules have of a search: rows, slots, the judge and random numbers; no model, clock or validation row."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.errors import InputError
from sigwire.evaluate.plain import dumped_example, plain_fields
from sigwire.modules.field_types import FieldTypes, types_of
from sigwire.optimizers.candidate import Candidate, Demo, Slot
from sigwire.optimizers.judge import Judge
from sigwire.optimizers.sampling import Choices, ChoiceSampler, RandomChoices
from sigwire.signatures.signature import SignatureClass

__all__ = ["Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """A search as rules see it.

    ``baseline``: the student as it is; ``teacher``: the program that makes demos, as it is. ``slots``: the texts that may be
    tuned, by name. ``signatures``: the signature of each predictor. ``train`` and ``val``: ids of rows. ``outline``: the
    structure of the program as text. ``tunes``: what may change ("instructions", "demos", "tools", "fields", "tool_names").
    ``is_taught``: the teacher has demos of its own. ``evidence``:
    training rows on which the winner and the student are compared as well, because no candidate gains from them. ``must_hold``:
    validation rows on which a candidate may not be worse than the student. ``fixed``: passages that a text must keep, by slot.
    ``labels``: the values by label of each choice that candidates may have. ``plan``: answers are made up, and choices repeat
    (few) or do not (many). ``drawn``: the training rows as they were given, equal ones repeatedly.
    """

    baseline: Candidate
    teacher: Candidate
    slots: Mapping[Slot, str]
    signatures: Mapping[str, SignatureClass]
    train: tuple[str, ...]
    val: tuple[str, ...]
    judge: Judge
    seed: int
    outline: str
    tunes: frozenset[str]
    example_of: Callable[[str], Example]
    is_taught: bool = False
    evidence: tuple[str, ...] = ()
    must_hold: tuple[str, ...] = ()
    fixed: Mapping[Slot, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    labels: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    plan: Literal["", "few", "many"] = ""
    drawn: tuple[str, ...] = ()

    def rng(self, purpose: str, *index: object) -> random.Random:
        """Return random numbers for one purpose. A draw for one purpose shifts none of another."""
        text = "/".join(map(str, (self.seed, purpose, *index)))
        return random.Random(int.from_bytes(sha256(text.encode()).digest()[:8], "big"))

    def sampled(self, candidate: Candidate, purpose: str, number: int) -> Candidate:
        """Return a candidate whose answers are drawn at temperature 1. A search that goes on after a kill draws the samples
        that were under way again, with the same ``seed``, which most providers take.
        """
        return candidate.with_lm_options({"temperature": 1.0, "seed": self.rng(purpose, number).getrandbits(31)})

    def choices(self, purpose: str, options: Mapping[str, int]) -> ChoiceSampler:
        """Return a sampler of choices among numbers of options; in a plan a random one, which needs no library."""
        seed = self.rng(purpose).getrandbits(32)
        return RandomChoices(options, seed, distinct=self.plan == "many") if self.plan else Choices(options, seed)

    def example(self, row: str) -> Example:
        """Return a training example. Raises ``InputError`` for a row of the validation set."""
        if row not in self.train:
            raise InputError(f"The row {row!r} is not in the training set: rules do not read other rows.")
        return self.example_of(row)

    def plain(self, example: Example) -> JsonObject:
        """Return the fields of an example as JSON, by the types of the program's fields; of one name that of the first."""
        types: FieldTypes = {
            spec.name: spec for each in reversed([*self.signatures.values()]) for spec in each.spec.fields
        }
        return plain_fields(dict(example.items()), types)

    def labeled_demo(self, row: str, predictor: str) -> Demo | None:
        """Return a training row as a demo of a predictor; ``None`` if it has none of its outputs or inputs."""
        example, fields = self.example(row), self.signatures[predictor]
        if not any(name in example for name in fields.input_fields) or not any(
            name in example for name in fields.output_fields
        ):
            return None
        return Demo(dumped_example(example, types_of(fields)), row)

    def lacking(self, slot: Slot, text: str) -> str | None:
        """Return a passage that the text of a slot must keep and lacks; ``None`` if it has all."""
        return next((passage for passage in self.fixed.get(slot, ()) if passage not in text), None)

    def with_rows(self, train: tuple[str, ...], val: tuple[str, ...]) -> Task:
        """Return the task with other rows."""
        return replace(self, train=train, val=val)

    def planned(self, judge: Judge, plan: Literal["few", "many"]) -> Task:
        """Return the task of a plan, with a judge of made-up answers."""
        return replace(self, judge=judge, plan=plan)
