"""One run of one optimizer: its figures, the settings that both sides share, and the loop over tasks and seeds."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.landscape.server import counts, serving
from benchmarks.landscape.tasks import TASKS, Row, Split, Task, split

__all__ = ["MODEL", "SETTINGS", "Run", "Session", "Side", "main", "run"]

MODEL = "openai/gpt-4o-mini"
"""The model's name: both libraries know that a model of this name takes native tools. The server ignores the name."""

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "LabeledFewShot": {"k": 16},
    "BootstrapFewShot": {},
    "BootstrapFewShotWithRandomSearch": {"num_candidate_programs": 5},
    "MIPROv2": {"auto": "light"},
    "SIMBA": {"bsize": 16, "num_candidates": 4, "max_steps": 4},
    "COPRO": {"breadth": 5, "depth": 2},
    "GEPA": {"auto": "light"},
    "InferRules": {"num_candidates": 5},
}
"""The optimizers and their arguments, the same for both sides."""


@dataclass(frozen=True)
class Run:
    """The figures of one run; scores are from 0 to 1. ``start`` and ``final`` are of held-out rows, ``val_start`` is the
    student's on the rows for choosing, and ``estimate`` the optimizer's own of its program.
    """

    library: str
    task: str
    optimizer: str
    seed: int
    start: float
    final: float
    task_calls: int
    writing_calls: int
    runs: int
    estimate: float | None
    val_start: float
    seconds: float


@dataclass(frozen=True)
class Side:
    """A library: ``start`` opens a session for a task at a port, which gives the start and compiles by an optimizer's name."""

    library: str
    session: Callable[[Task, Split, int, int], Session]


class Session:
    """A library at work on one task: subclassed by each side. ``scored_runs`` counts the calls of the metric."""

    scored_runs = 0

    def scored(self, program: Any, rows: Sequence[Row]) -> float:
        """Return the share of right answers."""
        raise NotImplementedError

    def student(self) -> Any:
        raise NotImplementedError

    def compile(self, optimizer: str, budget: int | None) -> tuple[Any, float | None]:
        """Return the program and the optimizer's own estimate."""
        raise NotImplementedError


def run(side: Side, task: Task, optimizer: str, seed: int, budget: int | None = None) -> Run:
    """Run an optimizer at a server of its own."""
    rows = split(task, seed)
    with serving(seed) as port:
        session = side.session(task, rows, port, seed)
        start = session.scored(session.student(), rows.held_out)
        before, began = counts(port), time.perf_counter()
        program, estimate = session.compile(optimizer, budget)
        after, seconds = counts(port), time.perf_counter() - began
        final = session.scored(program, rows.held_out)
        val_start = session.scored(session.student(), rows.val)
    calls = {kind: after[kind] - before[kind] for kind in after}
    return Run(
        side.library,
        task.name,
        optimizer,
        seed,
        round(start, 4),
        round(final, 4),
        calls["task"],
        calls["writing"],
        session.scored_runs,
        None if estimate is None else round(estimate, 4),
        round(val_start, 4),
        round(seconds, 1),
    )


def main(side: Side, budgets: Callable[[str], int | None] = lambda optimizer: None) -> None:
    """Run what the command line asks for and print a JSON line for each run."""
    parser = argparse.ArgumentParser(description="Run optimizers on the landscape; one JSON line a run.")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--optimizers", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--budget", type=int, help="calls for an optimizer that takes a budget")
    arguments = parser.parse_args()
    for optimizer in arguments.optimizers:
        for task in arguments.tasks:
            for seed in arguments.seeds:
                try:
                    with contextlib.redirect_stdout(sys.stderr):  # optimizers print
                        done = run(side, TASKS[task], optimizer, seed, arguments.budget or budgets(optimizer))
                except Exception:  # the other runs continue
                    print(f"{task} {optimizer} {seed}", file=sys.stderr)
                    traceback.print_exc()
                    continue
                print(json.dumps(asdict(done)), flush=True)
