"""Growth over 20,000 calls (i2), in a process of its own: the resident memory after, less that before."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.predict import INPUTS, ours_module
from benchmarks.timing import OURS, Contestant, Job

__all__ = ["jobs", "report"]

ROOT = Path(__file__).resolve().parent.parent
CALLS = 20_000


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def report() -> float:
    """Make the calls; how many megabytes this process grew by."""
    predict = ours_module()
    for _ in range(2_000):
        predict(**INPUTS)
    gc.collect()
    before = resident_megabytes()
    for _ in range(CALLS):
        predict(**INPUTS)
    gc.collect()
    return resident_megabytes() - before


def grow() -> str:
    program = "from benchmarks.memory import report; print(report())"
    return subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, capture_output=True, text=True).stdout


def megabytes(contestant: Contestant) -> float:
    return float(str(contestant()))


def jobs() -> Iterator[Job]:
    """i2, where the system tells a process its memory."""
    if Path("/proc/self/statm").exists():
        yield Job("i2", f"growth over {CALLS:,} calls", "≤ 0.5 MB", {OURS: grow}, unit="MB", sample=megabytes)
