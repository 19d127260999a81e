"""Candidates as choices: for each predictor one of several instructions and one of several sets of demos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sigwire.optimizers.candidate import Candidate, Demo, Slot
from sigwire.optimizers.operators.demos import Success, collect_successes, taught, with_success_demos
from sigwire.optimizers.rule import RuleSteps
from sigwire.optimizers.task import Task

__all__ = ["DemoSets", "Instructions", "demo_sets", "joined"]

Instructions: TypeAlias = Mapping[str, Sequence[str | None]]
"""Instructions by predictor; ``None`` is that of the student."""
DemoSets: TypeAlias = Mapping[str, Sequence[tuple[Demo, ...] | None]]
"""Sets of demos by predictor; ``None`` is that of the student."""

_POOL = 3  # successes that are collected for each demo of a set


def demo_sets(task: Task, count: int, most: int, labels: int) -> RuleSteps[DemoSets]:
    """Return the student's demos and up to ``count`` other sets for each predictor.

    A set has up to ``most`` demos from successful runs, all sets from one pool, and labelled rows up to ``labels`` in all.
    """
    pool: list[Success] = []
    if most:
        pool = yield from collect_successes(task, taught(task, labels), task.train, wanted=_POOL * most)
    found: dict[str, list[tuple[Demo, ...] | None]] = {name: [None] for name in task.signatures}
    for number in range(count):
        source = task.rng("demo set", number)
        size = most if number == 0 else source.randint(min(1, most), most)
        chosen = source.sample(pool, min(size, len(pool)))
        made = with_success_demos(task, task.baseline, chosen, most_labelled=labels, purpose=f"labels {number}")
        for name, demos in made.demos.items():
            if demos and demos not in found[name]:
                found[name].append(demos)
    return found


def joined(
    task: Task,
    choice: Mapping[str, int],
    texts: Instructions,
    demos: DemoSets,
    tools: Mapping[str, Sequence[Mapping[Slot, str]]],
) -> Candidate:
    """Return the candidate of a choice, whose names are ``text/<predictor>``, ``demos/<predictor>``, ``tools/<predictor>``."""
    candidate = task.baseline
    for name in task.signatures:
        if name in texts and (text := texts[name][choice.get(f"text/{name}", 0)]) is not None:
            candidate = candidate.with_text(f"{name}.instructions", text, task.baseline.digest)
        if name in demos and (chosen := demos[name][choice.get(f"demos/{name}", 0)]) is not None:
            candidate = candidate.with_demos(name, chosen, task.baseline.digest)
        if name in tools:
            for slot, changed in tools[name][choice.get(f"tools/{name}", 0)].items():
                candidate = candidate.with_text(slot, changed, task.baseline.digest)
    return candidate
