"""Jobs, rounds and the table. A contestant is a function that does the job once; times are CPU time of this process."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from types import FrameType
from typing import Any, TypeAlias

__all__ = ["FLOOR", "SIGWIRE", "Contestant", "Job", "Line", "cpu_seconds", "measure", "opcodes", "table"]

Contestant: TypeAlias = Callable[[], object]
Sampler: TypeAlias = Callable[[Contestant], float]

FLOOR, SIGWIRE = "floor", "sigwire"
UNITS = {"µs": 1e6, "ms": 1e3, "MB": 1.0, "B": 1.0, "": 1.0}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table: every contestant's samples, in the job's unit."""

    job: str
    what: str
    unit: str
    target: str
    samples: Mapping[str, Sequence[float]]

    def ratio(self, name: str = SIGWIRE) -> float | None:
        """Return the median of a contestant divided by the floor's."""
        if name not in self.samples or not self.samples.get(FLOOR):
            return None
        floor = statistics.median(self.samples[FLOOR])
        return statistics.median(self.samples[name]) / floor if floor else None


@dataclass(frozen=True, slots=True)
class Job:
    """One measurement: the contestants, and the number of jobs in one call of a contestant (``per``).

    ``sample`` times one round of a contestant and returns seconds per call; the default repeats the contestant.
    ``most_rounds``: the limit for jobs whose rounds take long.
    """

    name: str
    what: str
    target: str
    contestants: Mapping[str, Contestant]
    unit: str = "µs"
    per: int = 1
    sample: Sampler | None = field(default=None)
    most_rounds: int | None = None


def cpu_seconds(seconds: float = 0.03) -> Sampler:
    """Return a sampler that repeats a contestant for about ``seconds`` and returns the CPU time of one call."""
    numbers: dict[Contestant, int] = {}

    def sample(contestant: Contestant) -> float:
        number = numbers.get(contestant) or numbers.setdefault(contestant, _calibrate(contestant, seconds))
        return _time(contestant, number) / number

    return sample


def _calibrate(contestant: Contestant, seconds: float) -> int:
    contestant()  # the first call imports
    number = 1
    while (taken := _time(contestant, number)) < seconds / 4:
        number *= 4
    return max(1, round(number * seconds / taken))


def _time(contestant: Contestant, number: int) -> float:
    start = time.process_time()
    for _ in repeat(None, number):
        contestant()
    return time.process_time() - start


def opcodes(contestant: Contestant) -> float:
    """Return the number of opcodes of one call: the same on every machine with this Python, however busy it is."""
    number = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal number
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        number += event == "opcode"
        return count

    contestant()  # the first call imports
    traced = sys.gettrace()
    gc.disable()
    sys.settrace(count)
    try:
        contestant()
    finally:
        sys.settrace(traced)
        gc.enable()
    return float(number)


def measure(job: Job, rounds: int) -> Line:
    """Time the contestants in turn for ``rounds`` rounds. The order rotates, so each contestant also runs on a cold cache."""
    sample = job.sample or cpu_seconds()
    names = list(job.contestants)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        sample(job.contestants[name])
    for number in range(min(rounds, job.most_rounds or rounds)):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            gc.collect()
            samples[name].append(sample(job.contestants[name]) / job.per * UNITS[job.unit])
    return Line(job.name, job.what, job.unit, job.target, samples)


def table(lines: Iterable[Line]) -> str:
    """Return the results as one markdown table: median (min to max), and ratios to the floor."""
    lines = list(lines)
    peers = sorted({name for line in lines for name in line.samples} - {FLOOR, SIGWIRE})
    head = ["job", "what", "unit", FLOOR, SIGWIRE, "ratio", "target", *peers]
    rows = [head, ["---"] * len(head), *(_row(line, peers) for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(line: Line, peers: Sequence[str]) -> list[str]:
    ratio = line.ratio()
    return [
        line.job,
        line.what,
        line.unit,
        _spread(line.samples.get(FLOOR)),
        _spread(line.samples.get(SIGWIRE)),
        "" if ratio is None else f"{ratio:.2f}x",
        line.target,
        *(_peer(line, peer) for peer in peers),
    ]


def _peer(line: Line, peer: str) -> str:
    ratio = line.ratio(peer)
    return _spread(line.samples.get(peer)) + ("" if ratio is None else f" {ratio:.0f}x")


def _spread(samples: Sequence[float] | None) -> str:
    if not samples:
        return ""
    middle, low, high = statistics.median(samples), min(samples), max(samples)
    return f"{_short(middle)} ({_short(low)} to {_short(high)})"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
