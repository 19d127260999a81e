"""The front of a search with several objectives: the candidates that no other one beats in all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sigwire.core.json import JsonObject, Value, decode_fields
from sigwire.evaluate.statistics import Interval, mean_interval
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.optimizers.judge import Judge
from sigwire.show.cleaning import number
from sigwire.show.numbers import count

__all__ = ["FrontEntry", "HeldOutMean", "front_table", "spread_out"]

M = TypeVar("M", bound=Module)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HeldOutMean(Value):
    """The mean of an objective on test rows, with its interval; ``None``: they are too few, or do not differ."""

    mean: float
    interval: Interval | None = None
    rows: int = 0

    def __str__(self) -> str:
        ends = "" if self.interval is None else f" [{number(self.interval.low)}, {number(self.interval.high)}]"
        return f"{number(self.mean)}{ends}"


@dataclass(frozen=True, slots=True)
class FrontEntry:
    """A candidate that no other one beats in all objectives.

    ``means``: each objective on the ``rows`` validation rows on which all entries ran; chosen on them, so too good. ``test``:
    each objective on test rows, which choose nothing; empty without test rows, and for entries after the first eight.
    """

    candidate: Candidate
    means: Mapping[str, float]
    rows: int
    test: Mapping[str, HeldOutMean] = field(default_factory=dict[str, HeldOutMean])

    @classmethod
    def of(cls, judge: Judge, candidate: Candidate, rows: Sequence[str], test: Sequence[str]) -> FrontEntry:
        """Return the entry of a candidate that ran on ``rows``, and on all rows of ``test`` or on none."""
        held_out: dict[str, HeldOutMean] = {}
        if test and judge.point(candidate, test) is not None:
            for name in judge.objectives:
                values = list(judge.amounts(candidate, name, test).values())
                held_out[name] = HeldOutMean(sum(values) / len(values), mean_interval(values), len(values))
        return cls(candidate, judge.means(candidate, rows), len(rows), held_out)

    def apply(self, student: M, choices: Mapping[str, Mapping[str, Any]] | None = None) -> M:
        """Return a copy of a program with the candidate. ``choices``: as those of the search, for a report that was loaded."""
        return applied(student, self.candidate, choices)

    def to_json(self) -> JsonObject:
        """Return the entry as JSON."""
        known: JsonObject = {name: mean.to_json() for name, mean in self.test.items()}
        return {"candidate": self.candidate.to_json(), "means": {**self.means}, "rows": self.rows, "test": known}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FrontEntry:
        """Decode the result of ``to_json``."""
        return cls(**decode_fields(cls, data))


def front_table(front: Sequence[FrontEntry], objectives: Sequence[str]) -> list[list[str]]:
    """Return the front as a table: the candidate, the mean of each objective, and that on test rows."""
    tested = [name for name in objectives if any(name in entry.test for entry in front)]
    table = [["candidate", *objectives, "rows", *(f"{name}, held out" for name in tested)]]
    for entry in front:
        shown = [number(entry.means[name]) for name in objectives]
        held_out = [str(entry.test[name]) if name in entry.test else "" for name in tested]
        table.append([entry.candidate.summary, *shown, count(entry.rows, "row"), *held_out])
    return table


def spread_out(front: Sequence[T], most: int) -> list[T]:
    """Return ``most`` of the candidates of a front, the first and the last among them, at equal steps.

    >>> spread_out("abcdefg", 3)
    ['a', 'd', 'g']
    """
    if len(front) <= most:
        return list(front)
    return [front[round(at * (len(front) - 1) / (most - 1))] for at in range(most)]
