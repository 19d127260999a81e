"""Import time (a1): wall time of whole processes, and the memory of one that declared its first Predict class."""

from __future__ import annotations

import os
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
# Not resource.ru_maxrss: a child starts with its parent's.
PEAK = "print(next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')) / 1024)"


def process(program: str) -> Contestant:
    return lambda: output(program)


def output(program: str) -> str:
    """What a fresh interpreter prints. Bytecode is cached, as it is for everybody who installed the package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True, text=True).stdout


def wall_seconds(contestant: Contestant) -> float:
    start = time.perf_counter()
    contestant()
    return time.perf_counter() - start


def megabytes(contestant: Contestant) -> float:
    return float(str(contestant()))


def peak(program: str) -> Contestant:
    return process(f"{program}\n{PEAK}")


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
    if Path("/proc/self/status").exists():
        contestants = {FLOOR: peak("pass"), OURS: peak(FIRST_CLASS)}
        yield Job("a1", "the same, peak memory", "≤ 45 MB", contestants, unit="MB", sample=megabytes)
