"""Fit the rules of a program: evidence of its outputs, scores of decided rows, and the best number of each coordinate."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from sigwire.core.evidence import DecisionRule, Evidence
from sigwire.core.json import JsonValue
from sigwire.errors import suggest
from sigwire.evaluate.cell import Cell
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.modules.tree import Predictor
from sigwire.optimizers.candidate import Candidate, cascades_of, tunable
from sigwire.optimizers.operators.deciding import Alternative, Observed, ObservedOutput, alternatives, folds_of, held_up
from sigwire.optimizers.rule import Measure, RuleSteps, RunKey
from sigwire.optimizers.task import Task
from sigwire.signatures.criteria import deciding_outputs

__all__ = ["RuleFit", "is_one_call", "no_evidence_text", "rules_of", "without_person"]

Rules: TypeAlias = Mapping[str, DecisionRule]
"""The rule of each output, by slot."""
_ScoreKey: TypeAlias = tuple[str, object]
"""A row, and the decisions of its outputs or the digest of the candidate."""
_NO_EVIDENCE = (
    'No run has evidence of {what} (calibrating). Make its predictors with evidence="auto". Known fields: {known}.'
)


class RuleFit:
    """The rules of a program while they are fitted, the evidence of its outputs, and the scores of decided rows.

    ``is_one_call``: the program is one predictor, so that equal decisions give equal scores; a row is run once for each.
    ``folds``: in how many parts of the training rows a number's gain must hold.
    """

    def __init__(self, task: Task, is_one_call: bool, rules: Rules, folds: int | None = None) -> None:
        self._task, self._is_one_call = task, is_one_call
        self._folds = None if folds is None else folds_of(task.drawn, folds, task.rng("folds").shuffle)
        self._start, self.rules = dict(rules), dict(rules)
        self.outputs: dict[str, ObservedOutput] = {}
        self._scores: dict[_ScoreKey, float] = {}
        self._kinds = {
            f"{name}.decisions.{each.path}": each
            for name, signature in task.signatures.items()
            for each in deciding_outputs(signature.spec)
        }

    def without_abstention(self) -> Candidate:
        """Return the student, whose outputs do not abstain if it is one predictor."""
        least = {
            slot: replace(rule, least=0.0) for slot, rule in self._start.items() if rule.least and self._is_one_call
        }
        return self._candidate(least)

    def observe(self, row: str, cell: Cell) -> None:
        """Keep the evidence of a run."""
        for step in cell.trace:
            for path, data in step.evidence.items():
                slot, evidence = f"{step.path}.decisions.{path}", Evidence.from_json(data)
                if slot not in self._kinds:
                    continue
                output = self.outputs.setdefault(
                    slot,
                    ObservedOutput(
                        slot, path, evidence.kind, evidence.values, self._has_no_number(slot), self.rules[slot]
                    ),
                )
                output.rows.setdefault(row, []).append(Observed(evidence.probabilities, evidence.answered))

    def _has_no_number(self, slot: str) -> bool:
        """Return True for the mean level of a score; a class of values may have a level besides, which cuts choose."""
        output = self._kinds[slot]
        return output.is_mean and output.made_by is None

    def choose(self, fields: Collection[str] | None) -> None:
        """Sort the outputs in program order, and leave out those that are not to be fitted."""
        order = [slot for slot in self._kinds if slot in self.outputs]
        self.fitted = [slot for slot in order if fields is None or self.outputs[slot].path in fields]
        self.others = [self.outputs[slot] for slot in order if slot not in self.fitted]
        self.outputs = {slot: self.outputs[slot] for slot in self.fitted}

    def candidate(self) -> Candidate:
        """Return the student with the rules that changed."""
        return self._candidate(self.rules)

    def _candidate(self, rules: Rules) -> Candidate:
        changed: dict[str, JsonValue] = {
            slot: rule.to_json() for slot, rule in rules.items() if rule != self._start[slot]
        }
        return self._task.baseline.with_numbers(changed) if changed else self._task.baseline

    def improve(self, output: ObservedOutput, number: int, most: int) -> RuleSteps[None]:
        """Try other numbers of a rule; keep the best, of equals that in the widest gap."""
        own = self.rules[output.slot]
        others = alternatives(output, own, number, most)
        tried = [Alternative(own, math.inf), *others]
        scores = yield from self._scored(output, own, [each.rule for each in others])
        if self._folds is not None:
            by_row = [dict(zip(self._task.train, each, strict=True)) for each in scores]
            best = held_up(by_row, [0.0, *(each.gap for each in others)], self._folds)
        else:
            means = [math.fsum(each) / len(each) for each in scores]
            best = max(range(len(tried)), key=lambda at: (means[at], tried[at].gap))
        self.rules[output.slot] = tried[best].rule

    def _scored(
        self, output: ObservedOutput, own: DecisionRule, others: Sequence[DecisionRule]
    ) -> RuleSteps[list[list[float]]]:
        """Return the scores on the training rows of the rule of an output, and of rules with another number.

        A row is not run for decisions of all outputs that have a score.
        """
        rows = self._task.train
        candidates = [self._candidate({**self.rules, output.slot: rule}) for rule in (own, *others)]
        keys = [self._keys(row, output, own, others, candidates) for row in rows]
        missing: dict[_ScoreKey, RunKey] = {}
        for row, of_row in zip(rows, keys, strict=True):
            for key, candidate in zip(of_row, candidates, strict=True):
                if key not in self._scores and key not in missing:
                    missing[key] = RunKey(candidate, row)
        cells: list[Cell] = (yield Measure(tuple(missing.values()))) if missing else []
        self._scores |= {key: cell.score or 0.0 for key, cell in zip(missing, cells, strict=True)}
        return [[self._scores[key] for key in of_rule] for of_rule in zip(*keys, strict=True)]

    def _keys(
        self,
        row: str,
        output: ObservedOutput,
        own: DecisionRule,
        others: Sequence[DecisionRule],
        candidates: Sequence[Candidate],
    ) -> list[_ScoreKey]:
        """Return for each candidate the key of its score on a row: what is decided, if the program is one predictor."""
        if not self._is_one_call:
            return [(row, candidate.digest) for candidate in candidates]
        decided = {slot: each.decided(row, self.rules[slot]) for slot, each in self.outputs.items()}
        values = [output.decided(row, own), *output.decided_by(row, others)]
        return [(row, tuple({**decided, output.slot: each}.values())) for each in values]


def is_one_call(program: object) -> bool:
    """Return True for a program that is one predictor."""
    return isinstance(program, Predictor | ChainOfThought)


def rules_of(program: Module) -> dict[str, DecisionRule]:
    """Return the rule of each deciding output of a program, by slot, in program order."""
    return {
        f"{name}.decisions.{each.path}": predictor.decisions.get(each.path, DecisionRule())
        for name, predictor in tunable(program).items()
        for each in deciding_outputs(predictor.signature.spec)
    }


def no_evidence_text(path: str | None, known: Collection[str]) -> str:
    hint = "" if path is None else suggest(path, known)
    shown = _NO_EVIDENCE.format(
        what="any output" if path is None else repr(path), known=", ".join(known) or "none has any"
    )
    return f"{shown} {hint}".rstrip()


def without_person(program: Module) -> Module:
    """Return the program, in a copy if a cascade of it asks a person."""
    if all(each.person is None for each in cascades_of(program).values()):
        return program
    found = program.deepcopy()
    for each in cascades_of(found).values():
        each.person = None
    return found
