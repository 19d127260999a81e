"""Numbers of rules to try: from the probabilities that were observed, those at which a decision changes. Pure.

A bool has a threshold, a choice a weight for each value, an ``int`` score a cut between each two levels; a mean level has no
number. Between two neighbouring observed values all numbers decide alike, so that the middle of a gap stands for the gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from sigwire.core.evidence import DecisionRule, EvidenceKind, decide, label_of
from sigwire.core.record import UNSET

__all__ = ["Alternative", "Observed", "ObservedOutput", "alternatives", "folds_of", "held_up", "numbers_of"]


T = TypeVar("T")


class Observed(NamedTuple):
    """The probabilities of an output in one call of its predictor, and the own answer of the model."""

    probabilities: tuple[float, ...]
    answered: Any = UNSET


@dataclass(slots=True)
class ObservedOutput:
    """An output of a predictor and its probabilities, by row, in the order of calls. ``slot``: of its rule."""

    slot: str
    path: str
    kind: EvidenceKind
    values: tuple[Any, ...]
    is_mean: bool
    rule: DecisionRule
    rows: dict[str, list[Observed]] = field(default_factory=dict[str, list[Observed]])

    def decided(self, row: str, rule: DecisionRule) -> tuple[Any, ...]:
        """Return the values of a row by a rule; ``UNSET`` where the output abstains."""
        found: list[Any] = []
        for each in self.rows.get(row, ()):
            value, confidence = decide(
                self.kind, self.values, each.probabilities, rule, answered=each.answered, is_mean=self.is_mean
            )
            found.append(UNSET if confidence < rule.least else value)
        return tuple(found)

    def decided_by(self, row: str, rules: Sequence[DecisionRule]) -> list[tuple[Any, ...]]:
        """Return the values of a row by each of several rules that differ in one number, in ascending order of it.

        As the number ascends, the rules that decide alike are neighbours. So between two that do, no rule is applied.
        """

        def values(first: int, last: int, low: tuple[Any, ...], high: tuple[Any, ...]) -> list[tuple[Any, ...]]:
            if low == high or last - first == 1:
                return [low] * (last - first)
            middle = (first + last) // 2
            between = self.decided(row, rules[middle])
            return values(first, middle, low, between) + values(middle, last, between, high)

        if len(rules) < 2:
            return [self.decided(row, rule) for rule in rules]
        low, high = self.decided(row, rules[0]), self.decided(row, rules[-1])
        return [*values(0, len(rules) - 1, low, high), high]


class Alternative(NamedTuple):
    """A rule, and the width of the gap in which its number is."""

    rule: DecisionRule
    gap: float


def numbers_of(output: ObservedOutput) -> int:
    """Return how many numbers of the rule of an output can be tried.

    >>> numbers_of(ObservedOutput("self.decisions.x", "x", "choice", ("a", "b", "c"), False, DecisionRule()))
    3
    """
    if output.kind == "score":
        return 0 if output.is_mean else len(output.values) - 1
    return 1 if output.kind == "bool" else len(output.values)


def alternatives(output: ObservedOutput, rule: DecisionRule, number: int, most: int) -> list[Alternative]:
    """Return the rules that differ in one number, at most ``most``: evenly over the observed values.

    >>> output = ObservedOutput("self.decisions.x", "x", "bool", (True, False), False, DecisionRule())
    >>> output.rows = {"a": [Observed((0.25, 0.75))], "b": [Observed((0.75, 0.25))]}
    >>> [each.rule.threshold for each in alternatives(output, output.rule, 0, 40)]
    [0.125, 0.5, 0.875]
    """
    seen = [each for found in output.rows.values() for each in found]
    if output.kind == "bool":
        values = _thinned([0.0, *(each.probabilities[0] for each in seen), 1.0], most)
        found = [Alternative(replace(rule, threshold=(a + b) / 2), b - a) for a, b in values]
        if any(each.probabilities[0] == 0 for each in seen):  # only a threshold of 0 makes these true
            found.insert(0, Alternative(replace(rule, threshold=0.0), 0.0))
        return found
    if output.kind == "choice":
        return _weights(output, seen, rule, number, most)
    cuts = [*(rule.cuts or [level + 0.5 for level in range(len(output.values) - 1)])]
    low, high = [0.0, *cuts][number], [*cuts, float(len(output.values) - 1)][number + 1]
    means = [math.fsum(level * p for level, p in enumerate(each.probabilities)) for each in seen]
    inside = _thinned([low, *(mean for mean in means if low < mean < high), high], most)
    return [
        Alternative(replace(rule, cuts=(*cuts[:number], (a + b) / 2, *cuts[number + 1 :])), b - a) for a, b in inside
    ]


def folds_of(rows: Sequence[T], count: int, shuffle: Callable[[list[T]], None]) -> list[list[T]]:
    """Return rows in ``count`` parts of about one size; fewer rows are a part each.

    >>> folds_of("abcde", 2, lambda rows: None)
    [['a', 'c', 'e'], ['b', 'd']]
    """
    order = list(rows)
    shuffle(order)
    return [order[at::count] for at in range(min(count, len(order)))]


def held_up(scores: Sequence[Mapping[T, float]], gaps: Sequence[float], folds: Sequence[Sequence[T]]) -> int:
    """Return which of several scores by row is the best, of equals that with the widest gap; 0 if its gain does not hold.

    It holds if the best on the rows of all other folds, summed over the folds, is better on the part set apart than the first.

    >>> held_up([{"a": 0, "b": 0}, {"a": 1, "b": 1}], [0, 0], [["a"], ["b"]])
    1
    >>> held_up([{"a": 0, "b": 0}, {"a": 1, "b": 0}], [0, 0], [["a"], ["b"]])
    0
    """

    def best(rows: Sequence[T]) -> int:
        totals = [math.fsum(each[row] for row in rows) for each in scores]
        found = max(range(len(scores)), key=lambda at: (totals[at], gaps[at]))
        return found if totals[found] > totals[0] else 0

    found, gain = best([row for fold in folds for row in fold]), 0.0
    for apart in folds if found else ():
        chosen = best([row for fold in folds if fold is not apart for row in fold])
        gain += math.fsum(scores[chosen][row] - scores[0][row] for row in apart)
    return found if gain > 0 else 0


def _weights(
    output: ObservedOutput, seen: Sequence[Observed], rule: DecisionRule, number: int, most: int
) -> list[Alternative]:
    """Return rules with another weight of a value: between the ratios at which a row changes to the value."""
    weights, label = rule.weights_of(output.values), label_of(output.values[number])
    ratios: list[float] = []
    for each in seen:
        own = each.probabilities[number]
        other = max(p * w for at, (p, w) in enumerate(zip(each.probabilities, weights, strict=True)) if at != number)
        if own > 0 and other > 0:
            ratios.append(other / own)
    if not ratios:
        return []
    known: Mapping[Any, float] = {label_of(value): w for value, w in zip(output.values, weights, strict=True)}
    pairs = _thinned([min(ratios) / 4, *ratios, max(ratios) * 4], most)
    return [Alternative(replace(rule, weights={**known, label: math.sqrt(a * b)}), math.log(b / a)) for a, b in pairs]


def _thinned(values: Sequence[float], most: int) -> list[tuple[float, float]]:
    """Return neighbours among the distinct values, at most ``most`` pairs, evenly over the values."""
    distinct = sorted({*values})
    pairs = list(pairwise(distinct))
    if len(pairs) <= most:
        return pairs
    ordered = sorted(values)
    wanted = {ordered[round(at * (len(ordered) - 1) / (most + 1))] for at in range(1, most + 1)}
    return [pair for pair in pairs if pair[0] in wanted]
