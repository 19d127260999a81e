"""Demos from runs: the calls of predictors in successful runs, and labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sigwire.evaluate.cell import Cell
from sigwire.optimizers.candidate import Candidate, Demo
from sigwire.optimizers.rule import RuleSteps, RunBy, measure
from sigwire.optimizers.task import Task

__all__ = ["Success", "TraceSteps", "collect_successes", "demos_of", "labelled", "with_success_demos"]

TraceSteps: TypeAlias = Literal["last", "sampled", "all"]


@dataclass(frozen=True, slots=True)
class Success:
    """A successful run of the teacher on a training row, with its trace."""

    row: str
    round: int
    cell: Cell


def collect_successes(
    task: Task,
    teacher: Candidate,
    rows: Sequence[str],
    *,
    wanted: int | None = None,
    rounds: int = 1,
    by: RunBy = "teacher",
    wave: int = 8,
) -> RuleSteps[list[Success]]:
    """Run the teacher on rows in waves until ``wanted`` runs are successful; return them in the order of ``rows``.

    A round after the first runs the rows that failed, at temperature 1 and as another sample. A wave runs at once, so up to
    ``wave - 1`` runs more are made than a serial search would make, and their successes are not used.
    """
    found: dict[str, Success] = {}
    for number in range(rounds):
        left = [row for row in rows if row not in found]
        asked = teacher if number == 0 else teacher.with_lm_options({"temperature": 1.0})
        while left and (wanted is None or len(found) < wanted):
            part, left = left[:wave], left[wave:]
            cells = yield from measure(asked, part, repeat=number, traced=True, by=by)
            for row, cell in zip(part, cells, strict=True):
                if task.judge.is_success(cell) and (wanted is None or len(found) < wanted):
                    found[row] = Success(row, number, cell)
    return [found[row] for row in rows if row in found]


def demos_of(task: Task, success: Success, steps: TraceSteps = "sampled") -> dict[str, list[Demo]]:
    """Return the demos of a run by predictor. Of several calls of a predictor, ``steps`` keeps the last, a sampled one (half
    of the time the last) or all."""
    calls: dict[str, list[Demo]] = {}
    for step in success.cell.trace:
        calls.setdefault(step.path, []).append(Demo(step.demo, success.row))
    if steps == "all":
        return calls
    kept: dict[str, list[Demo]] = {}
    for name, demos in calls.items():
        source = task.rng("trace step", success.row, name)
        is_last = steps == "last" or len(demos) == 1 or source.random() < 0.5
        kept[name] = [demos[-1] if is_last else source.choice(demos[:-1])]
    return kept


def labelled(task: Task, count: int, purpose: str, rows: Sequence[str] | None = None) -> dict[str, tuple[Demo, ...]]:
    """Return up to ``count`` labelled rows for each predictor, drawn at random without replacement."""
    rows = task.train if rows is None else rows
    drawn: dict[str, tuple[Demo, ...]] = {}
    for name in task.signatures:
        usable = [demo for row in rows if (demo := task.labeled_demo(row, name)) is not None]
        drawn[name] = tuple(task.rng(purpose, name).sample(usable, min(count, len(usable))))
    return drawn


def with_success_demos(
    task: Task,
    base: Candidate,
    successes: Sequence[Success],
    *,
    most_labelled: int,
    purpose: str = "labelled",
    steps: TraceSteps = "sampled",
) -> Candidate:
    """Return a candidate with the demos of successes, filled up with labelled rows to ``most_labelled`` in all."""
    bootstrapped: dict[str, list[Demo]] = {name: [] for name in task.signatures}
    for success in successes:
        for name, demos in demos_of(task, success, steps).items():
            if name in bootstrapped:
                bootstrapped[name] += demos
    used = {success.row for success in successes}
    rest = [row for row in task.train if row not in used]
    candidate = base
    for name, demos in bootstrapped.items():
        fill = labelled(task, max(0, most_labelled - len(demos)), purpose, rest)[name]
        candidate = candidate.with_demos(name, (*demos, *fill), base.digest)
    return candidate
