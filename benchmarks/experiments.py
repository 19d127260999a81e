"""An experiment above its evaluations (x1, with cassettes x2), its result from the files (x3), and a plan (x4).

The model answers at once. The floor of x1 and x2 are as many evaluations with a log; that of x3 reads the lines of the logs as
JSON; that of x4 previews the request of a row for each point.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import sigwire
from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire import DataSplit, Example, Experiment, FakeLM, Predict
from sigwire.experiments.folder import point_key

__all__ = ["jobs"]

POINTS, ROWS, THREADS = 4, 1_500, 8
STORED_POINTS, STORED_ROWS = 100, 1_000
PLANNED_POINTS = 1_000


def jobs() -> Iterator[Job]:
    """Yield x1 to x4."""
    with tempfile.TemporaryDirectory() as name:
        folders = (Path(name) / str(number) for number in count())
        for job, cassettes, target in (("x1", False, "≤ 1.2x"), ("x2", True, "≤ 2.0x")):
            contestants = {FLOOR: evaluations(folders), SIGWIRE: experiment_run(folders, cassettes)}
            what = f"{POINTS} points of {ROWS:,} rows{', with cassettes' if cassettes else ''}; floor: evaluations with a log"
            yield Job(job, what, target, contestants, "ms", most_rounds=5)
        what = f"load {STORED_POINTS} points of {STORED_ROWS:,} rows; floor: their lines as JSON"
        yield Job("x3", what, "≤ 10 s", loading(next(folders)), "ms", most_rounds=3)
        yield Job(
            "x4", f"plan of {PLANNED_POINTS:,} points; floor: a preview each", "≤ 5 s", planning(), "ms", most_rounds=3
        )


def rows(number: int) -> tuple[Example, ...]:
    """Return rows, each with a question of its own."""
    return tuple(Example(question=f"Question {n}?", answer="Paris").with_inputs("question") for n in range(number))


def model() -> FakeLM:
    """Return a model that answers at once."""
    return FakeLM(lambda request: "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]")


def exact(example: Any, prediction: Any, trace: object = None) -> bool:
    """Return True for the answer of the row."""
    return bool(example.answer == prediction.answer)


def programs(number: int) -> dict[str, Predict]:
    """Return programs that differ in their instructions."""
    return {f"p{n}": Predict("question -> answer", f"Answer in way {n}.") for n in range(number)}


def evaluations(folders: Iterator[Path]) -> Callable[[], int]:
    """Return a function that evaluates each program with a log."""
    data = rows(ROWS)

    def run() -> int:
        folder, right = next(folders), 0
        for label, program in programs(POINTS).items():
            program.set_lm(model())
            evaluate = sigwire.Evaluate(devset=data, metric=exact, num_threads=THREADS, progress=False)
            right += round(evaluate(program, log=folder / f"{label}.jsonl").mean * ROWS)
        shutil.rmtree(folder)
        return right

    assert run() == POINTS * ROWS
    return run


def experiment_run(folders: Iterator[Path], cassettes: bool) -> Callable[[], int]:
    """Return a function that runs the programs as one experiment."""
    data = DataSplit((), (), rows(ROWS))

    def run() -> int:
        folder = next(folders)
        experiment = Experiment(programs=programs(POINTS), models=model(), datasets=data, metric=exact)
        result = experiment.run(folder, num_threads=THREADS, cassettes=cassettes, progress=False)
        shutil.rmtree(folder)
        return sum(round(arm.mean * ROWS) for arm in result.arms.values())

    assert run() == POINTS * ROWS
    return run


def loading(folder: Path) -> Mapping[str, Callable[[], int]]:
    """Return two functions that read a folder whose points have the same records, each its own file."""
    data = DataSplit((), (), rows(STORED_ROWS))
    experiment = Experiment(
        programs=programs(1), models=model(), datasets=data, metric=exact, seeds=range(STORED_POINTS)
    )
    budget = sigwire.Budget(calls=STORED_ROWS)  # ends with the first point
    result = experiment.run(folder, budget=budget, num_threads=1, cassettes=False, progress=False)
    first = result.measured[0].folder
    assert first is not None
    for point in result.missing:
        shutil.copytree(first, folder / "points" / point_key(point), dirs_exist_ok=True)

    def lines() -> int:
        paths = sorted((folder / "points").glob("*/records.jsonl"))
        return sum(json.loads(line).get("type") == "example" for path in paths for line in path.open(encoding="utf-8"))

    def load() -> int:
        return sum(arm.n * len(arm.points) for arm in sigwire.load_experiment(folder).arms.values())

    assert load() == STORED_POINTS * STORED_ROWS
    return {FLOOR: lines, SIGWIRE: load}


def planning() -> Mapping[str, Callable[[], int]]:
    """Return two functions that look at the requests of a grid."""
    arms = PLANNED_POINTS // 2
    experiment = Experiment(
        programs=programs(arms),
        models=model(),
        datasets=DataSplit(rows(20), (), rows(200)[20:]),
        optimizers={"none": None, "demos": sigwire.LabeledFewShot(k=4)},
        metric=exact,
    )

    def previews() -> int:
        given = [program for program in programs(arms).values() for _ in range(2)]
        return len([program.preview(question="Question 0?", lm=model()).request for program in given])

    def plan() -> int:
        return len(experiment.plan().points)

    assert plan() == previews() == PLANNED_POINTS
    return {FLOOR: previews, SIGWIRE: plan}
