"""The table of runs: ``python -m benchmarks.landscape.report runs.jsonl more.json``."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["lines", "read", "summary"]

COLUMNS = (
    *("task", "optimizer", "library", "runs", "start", "final", "gain", "worst gain"),
    *("scored runs", "task calls", "writing calls", "estimate − held-out", "of it by choosing"),
)


def read(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Return the runs of files: JSON lines, or an object with ``runs``."""
    runs = list[dict[str, Any]]()
    for path in paths:
        text = Path(path).read_text()
        runs += (
            json.loads(text)["runs"]
            if path.endswith(".json")
            else [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
        )
    return runs


def summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the means of runs: scores in points, calls, the worst gain, and the estimate's mean error.

    ``flattery`` is the error without the part that the student has as well: rows for choosing that are easier by luck.
    """
    gains = [100 * (run["final"] - run["start"]) for run in runs]
    estimated = [run for run in runs if run["estimate"] is not None]
    errors = [100 * (run["estimate"] - run["final"]) for run in estimated]
    luck = [100 * (run["val_start"] - run["start"]) for run in estimated]
    return {
        "start": 100 * statistics.mean(run["start"] for run in runs),
        "final": 100 * statistics.mean(run["final"] for run in runs),
        "gain": statistics.mean(gains),
        "worst": min(gains),
        "runs": statistics.mean(run["runs"] for run in runs),
        "task_calls": statistics.mean(run["task_calls"] for run in runs),
        "writing_calls": statistics.mean(run["writing_calls"] for run in runs),
        "error": statistics.mean(errors) if errors else None,
        "flattery": statistics.mean(errors) - statistics.mean(luck) if errors else None,
    }


def lines(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a markdown table: a line for each task, optimizer and library, and one for the tasks that can gain."""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---" * len(COLUMNS) + "|"
    for optimizer in dict.fromkeys(run["optimizer"] for run in runs):
        of = [run for run in runs if run["optimizer"] == optimizer]
        for library in dict.fromkeys(run["library"] for run in of):
            mine = [run for run in of if run["library"] == library]
            for task in dict.fromkeys(run["task"] for run in mine):
                yield _line(task, optimizer, library, [run for run in mine if run["task"] == task])
            able = [run for run in mine if run["task"] not in ("coin", "tools")]
            if len({run["task"] for run in able}) > 1:
                yield _line("**tickets, records**", optimizer, library, able)


def _line(task: str, optimizer: str, library: str, runs: Sequence[Mapping[str, Any]]) -> str:
    of = summary(runs)
    scores = [f"{of['start']:.1f}", f"{of['final']:.1f}", f"{of['gain']:+.1f}", f"{of['worst']:+.1f}"]
    calls = [f"{of[name]:.0f}" for name in ("runs", "task_calls", "writing_calls")]
    errors = ["" if of[name] is None else f"{of[name]:+.1f}" for name in ("error", "flattery")]
    return "| " + " | ".join([task, optimizer, library, str(len(runs)), *scores, *calls, *errors]) + " |"


if __name__ == "__main__":
    print("\n".join(lines(read(sys.argv[1:]))))
