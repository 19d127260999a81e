"""Forecasts of the cost of a search, before any call: the rule is run with made-up answers, with much and with little luck.

In one run nothing is accepted and everything succeeds, in another everything is accepted and nothing succeeds, and so on.
The fewest and the most runs of them are the bounds, for student, teacher and writing model apart, because one search may need
many of one and few of the other; the mean is the expectation. Tokens are those of the first requests of the program, with the
demos and texts that the made-up candidates add (``sizes``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.core.record import to_plain
from sigwire.evaluate.cell import Cell, TraceStep
from sigwire.evaluate.plain import dumped_example
from sigwire.modules.field_types import types_of
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.engine.sizes import Sizes, added_tokens, written_tokens
from sigwire.optimizers.judge import Judge, ScoreTable
from sigwire.optimizers.rule import Measure, Rule, RuleEffect, RunKey, Write
from sigwire.optimizers.task import Task
from sigwire.show.numbers import money_text
from sigwire.signatures.signature import SignatureMeta

__all__ = ["Amount", "Dollars", "Forecast", "LuckyJudge", "forecast"]

LUCK = ((0.0, 0.0), (0.0, 1.0), (0.5, 0.5), (1.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Amount:
    """The least, the expected and the most of something."""

    min: int
    expected: int
    max: int

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.min + other.min, self.expected + other.expected, self.max + other.max)

    def __str__(self) -> str:
        return f"{self.max:,}" if self.min == self.max else f"{self.min:,} to {self.max:,}, about {self.expected:,}"


@dataclass(frozen=True, slots=True)
class Dollars:
    """The least, the expected and the most US dollars of something.

    >>> print(Dollars(0.021, 0.1, 1.5), "|", Dollars(0.0, 0.0, 0.0))
    $0.02 to $1.50, about $0.10 | $0
    """

    min: float
    expected: float
    max: float

    def __str__(self) -> str:
        least, about, most = (money_text(each) for each in (self.min, self.expected, self.max))
        return most if least == most else f"{least} to {most}, about {about}"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The cost of a search that is not made yet: runs of the program, requests to the writing model, and all requests.

    A run counts one call for each predictor; agents and loops make more. If the search reuses answers, the least counts one
    call for each row and repetition: later candidates may ask the same.

    ``tokens`` and ``money`` are estimates of what these calls read and write. The least has short answers and no demos, the
    most has answers of ``max_tokens`` (without it 4,096) and the largest prompts of a candidate. ``tokens`` is ``None`` without
    a model, ``money`` also without a price. The calls of a metric are not in them.
    """

    runs: Amount
    writing: Amount
    calls: Amount
    tokens: Amount | None = None
    money: Dollars | None = None

    @classmethod
    def of(cls, runs: Amount, writing: Amount, predictors: int, rows: int | None) -> Forecast:
        """Return the forecast of a program with this number of predictors.

        ``rows``: the least number of rows and repetitions that are run; ``None`` if every question is asked.
        """
        least = runs.min * predictors if rows is None else min(rows, runs.min)
        return cls(runs, writing, Amount(least, runs.expected * predictors, runs.max * predictors) + writing)

    def within(
        self, most_runs: int, most_writing: int, tests: int, predictors: int, reuses: bool, more: int = 0
    ) -> Forecast:
        """Return the forecast with the bounds of the search itself. ``tests``, ``more``: runs on test rows, and of a
        front."""
        least = min(self.runs.min, tests + 2)
        runs = Amount(least, self.runs.expected, max(self.runs.max, most_runs + tests + more))
        writing = Amount(0, self.writing.expected, max(self.writing.max, most_writing))
        return Forecast.of(runs, writing, predictors, tests // 2 + 2 if reuses else None)

    def sized(self, sizes: Sizes | None) -> Forecast:
        """Return the forecast with tokens and money; without the sizes of calls as it is."""
        if sizes is None:
            return self
        least, likely, most = sizes.bounds(
            self.calls.min - self.writing.min,
            (self.runs.expected, self.writing.expected),
            (self.runs.max, self.writing.max),
        )
        money = (least.money, likely.money, most.money)
        return replace(
            self,
            tokens=Amount(least.tokens, likely.tokens, most.tokens),
            money=None if None in money else Dollars(*cast("tuple[float, float, float]", money)),
        )

    def __str__(self) -> str:
        parts = [f"{self.runs} runs", *([f"{self.writing} writing calls"] if self.writing.max else [])]
        parts += [f"{self.tokens} tokens"] if self.tokens is not None else []
        parts += [str(self.money)] if self.money is not None else []
        return f"{self.calls} calls ({'; '.join(parts)})"


class LuckyJudge(Judge):
    """A judge of made-up answers: a share of the candidates is accepted, a share of the runs succeeds."""

    def __init__(self, accepted: float, succeeding: float, objectives: Sequence[str], headline: str) -> None:
        super().__init__(ScoreTable(), objectives=objectives, headline=headline)
        self._accepted, self._succeeding = accepted, succeeding

    def is_success(self, cell: Cell) -> bool:
        """Return True for a share of the runs."""
        return _share(cell.feedback) < self._succeeding

    def is_better(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True for a share of the candidates."""
        return _share(challenger.digest) < self._accepted

    def is_worse(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True for a share of the candidates."""
        return challenger.digest != incumbent.digest and _share(challenger.digest) >= self._accepted

    def may_be_better(self, challenger: Candidate, incumbent: Candidate, rows: Sequence[str]) -> bool:
        """Return True for a share of the candidates."""
        return self.is_better(challenger, incumbent, rows)

    def mean(self, candidate: Candidate, rows: Sequence[str]) -> float:
        """Return a made-up mean."""
        return _share(candidate.digest)


def forecast(task: Task, make: Any, predictors: int, reuses: bool, sizes: Sizes | None = None) -> Forecast:
    """Return the forecast of the rules ``make(task)``. ``sizes`` gets the sizes of their candidates and writing requests."""
    wanted = task.judge.objectives, task.judge.headline
    counts = [
        _count(task.planned(LuckyJudge(*luck, *wanted), "many" if luck[0] else "few"), make, sizes) for luck in LUCK
    ]
    student, teacher, writing, rows = (_amount(part) for part in zip(*counts, strict=True))
    return Forecast.of(student + teacher, writing, predictors, rows.min if reuses else None)


def _amount(counts: Sequence[int]) -> Amount:
    return Amount(min(counts), round(sum(counts) / len(counts)), max(counts))


def _count(task: Task, make: Any, sizes: Sizes | None) -> tuple[int, int, int, int]:
    """Return the runs of student and teacher, the writing calls, and the rows and repetitions of one run of a rule."""
    rule: Rule = make(task)
    runs: dict[tuple[RunKey, str], None] = {}
    written: set[str] = set()
    answer: object = None
    with suppress(StopIteration):
        while True:
            effect: RuleEffect = rule.send(answer)
            answer = None
            if isinstance(effect, Measure):
                runs |= dict.fromkeys((run, effect.by) for run in effect.runs)
                answer = [_cell(task, run, effect) for run in effect.runs]
            elif isinstance(effect, Write):
                answer = _answers(task, effect, written)
                if sizes is not None:
                    sizes.writing.append(written_tokens(effect))
    if sizes is not None:
        added = {run.candidate.digest: run.candidate for run, _ in runs}
        tokens = {digest: added_tokens(each, task.baseline) for digest, each in added.items()}
        sizes.runs += [(by, tokens[run.candidate.digest]) for run, by in runs]
    by = Counter(by for _, by in runs)
    return by["student"], by["teacher"], len(written), len({(run.row, run.repeat) for run, _ in runs})


def _answers(task: Task, effect: Write, written: set[str]) -> list[Mapping[str, Any] | None]:
    """Return made-up answers; in a plan of few candidates none of them can be used."""
    answers = [_answer(effect, at) for at in range(effect.sample, effect.sample + effect.count)]
    written |= {f"{effect.name}{answer}" for answer in answers}
    return [None] * effect.count if task.plan == "few" else [*answers]


def _cell(task: Task, run: RunKey, effect: Measure) -> Cell:
    mark = f"{run.candidate.digest}/{run.row}/{run.repeat}"
    trace: tuple[TraceStep, ...] = ()
    if effect.traced:
        example = Example(task.example_of(run.row), augmented=True)
        trace = tuple(
            TraceStep(name, dumped_example(example, types_of(each))) for name, each in task.signatures.items()
        )
    score = float(_share(mark) < 0.5)
    task.judge.table.put(run.candidate.digest, run.row, run.repeat, score)
    return Cell(score, feedback=mark, outputs={}, requests=1, trace=trace)


def _answer(effect: Write, at: int) -> Mapping[str, Any]:
    mark = sha256(repr((effect.name, to_plain(dict(effect.inputs)), at)).encode()).hexdigest()[:12]
    outputs: JsonObject = {}
    if not isinstance(effect.signature, SignatureMeta):
        return {name: f"{name} {mark}" for name in cast("list[str]", effect.inputs.get("components_to_update", []))}
    for name, info in effect.signature.output_fields.items():
        outputs[name] = f"{name} {mark}" if info.annotation is str else [f"{name} {mark}"]
    return outputs


def _share(text: str) -> float:
    return int(sha256(text.encode()).hexdigest()[:8], 16) / 0x1_0000_0000
