"""The engine of the optimizers alone: its cost beside a run (p1), a plan (p2), and memory over 100,000 runs (p3).

The program is a function and the model is never asked, so everything beyond the floor, a loop of calls and metrics, is the
engine: keys, records, the table of scores, spending.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.memory import megabytes, process, resident_megabytes
from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire.core.example import Example, Prediction
from sigwire.lm.fake import FakeLM
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.rule import Measure, Rule, RunKey
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.task import Task

__all__ = ["growth_of_runs", "jobs"]

ROWS, CANDIDATES, MANY = 50, 8, 2_000


class Echo(Module):
    """A program with a predictor that it does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = Predict("question -> answer", lm=FakeLM())

    def forward(self, question: str) -> Prediction:
        return Prediction(answer=question)


class Everything(Optimizer):
    """Run each of many candidates on every row."""

    _chooses = False

    def __init__(self, candidates: int) -> None:
        super().__init__(_metric, num_threads=1)
        self.candidates = candidates

    def rule(self, task: Task, options: Mapping[str, Any]) -> Rule:
        for number in range(self.candidates):
            candidate = task.baseline.with_text("answer.instructions", f"Answer {number}.")
            yield Measure(tuple(RunKey(candidate, row) for row in task.train))
        return task.baseline


def _metric(example: Example, prediction: Prediction, trace: object = None) -> bool:
    return len(str(prediction.answer)) == len(str(example.question))


def rows(count: int = ROWS) -> list[Example]:
    return [Example(question=f"{number}+1?", answer=str(number + 1)).with_inputs("question") for number in range(count)]


def searches() -> Callable[[], object]:
    student, data = Echo(), rows()
    return lambda: Everything(CANDIDATES).compile(student, trainset=data)


def loops() -> Callable[[], object]:
    student, data = Echo(), rows()

    def loop() -> None:
        for _ in range(CANDIDATES):
            for example in data:
                _metric(example, student(**dict(example.inputs().items())))

    return loop


def plans() -> Callable[[], object]:
    student, data = Predict("question -> answer"), rows()
    return lambda: MIPROv2(metric=_metric).plan(student, data)


def growth_of_runs() -> float:
    """Return the growth in megabytes over 100,000 runs of a search."""
    data = rows()
    Everything(CANDIDATES).compile(Echo(), trainset=data)
    gc.collect()
    before, most = resident_megabytes(), 0.0
    optimizer = Everything(MANY)

    def watch(_: object) -> None:
        nonlocal most
        most = max(most, resident_megabytes() - before)

    optimizer.search["on_event"] = watch
    program = optimizer.compile(Echo(), trainset=data)
    del program
    return max(most, resident_megabytes() - before)


def jobs() -> Iterator[Job]:
    """Yield p1, p2, and p3 if the system has ``/proc/self/statm``."""
    what = "a run of a search without its model"
    yield Job("p1", what, "≤ 100 µs more", {FLOOR: loops(), SIGWIRE: searches()}, per=ROWS * CANDIDATES)
    yield Job("p2", "plan() of MIPROv2 light", "≤ 50 ms", {SIGWIRE: plans()}, unit="ms")
    if Path("/proc/self/statm").exists():
        what = f"growth over {ROWS * MANY:,} runs of a search"
        report = "__import__('benchmarks.optimizing').optimizing.growth_of_runs()"
        yield Job("p3", what, "≤ 60 MB", {SIGWIRE: process(report)}, unit="MB", sample=megabytes, most_rounds=2)
