"""Import time (a1): wall time of whole processes, and the memory of one that declared its first Predict class."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import FLOOR, OURS, Contestant, Job

__all__ = ["jobs"]

ROOT = Path(__file__).resolve().parent.parent
FIRST_CLASS = """
import sigwire
class Ask(sigwire.Signature):
    question: str = sigwire.InputField()
    answer: str = sigwire.OutputField()
predict = sigwire.Predict(Ask)
"""
PEAK = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"


def process(program: str) -> Contestant:
    return lambda: subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True)


def wall_seconds(contestant: Contestant) -> float:
    start = time.perf_counter()
    contestant()
    return time.perf_counter() - start


def megabytes(contestant: Contestant) -> float:
    return float(str(contestant()))


def peak(program: str) -> Contestant:
    script = f"{program}\n{PEAK}"
    return lambda: (
        subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True, text=True).stdout
    )


def jobs() -> Iterator[Job]:
    """a1: three rows."""
    yield Job(
        "a1",
        "`import sigwire`, process wall (floor: bare python)",
        "≤ floor + 40 ms",
        {FLOOR: process("pass"), OURS: process("import sigwire")},
        unit="ms",
        sample=wall_seconds,
    )
    yield Job(
        "a1",
        "first Predict class, process wall (floor: `import pydantic`, one model)",
        "≤ floor + 60 ms",
        {FLOOR: process("import pydantic\nclass Ask(pydantic.BaseModel):\n    a: str"), OURS: process(FIRST_CLASS)},
        unit="ms",
        sample=wall_seconds,
    )
    yield Job(
        "a1",
        "the same, peak memory",
        "≤ 45 MB",
        {FLOOR: peak("pass"), OURS: peak(FIRST_CLASS)},
        unit="MB",
        sample=megabytes,
    )
