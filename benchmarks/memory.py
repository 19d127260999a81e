"""Growth of resident memory over 20,000 calls, measured in a separate process.

In process (i2) and over HTTP (i2h). What a resumed run of many rows holds for each row is i3.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.over_http import predictor
from benchmarks.predict import INPUTS, stub_predict
from benchmarks.server import ROOT, posted, serving
from benchmarks.timing import SIGWIRE, Contestant, Job
from sigwire.core.example import Prediction
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs.job import Job as MapJob

__all__ = ["jobs", "over_http", "report", "report_over_http", "report_resume", "resumed"]

CALLS, WARM_UP = 20_000, 2_000
RESUMED = 200_000


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def growth(call: Callable[[], object]) -> float:
    """Make the calls and return the growth of this process in megabytes."""
    for _ in range(WARM_UP):
        call()
    gc.collect()
    before = resident_megabytes()
    for _ in range(CALLS):
        call()
    gc.collect()
    return resident_megabytes() - before


def report() -> float:
    """Return the growth in process."""
    predict = stub_predict()
    return growth(lambda: predict(**INPUTS))


def report_over_http(port: int) -> float:
    """Return the growth over HTTP. The server counts the calls."""
    predict = predictor(port, "predict")
    before = posted(port)
    growth_megabytes = growth(lambda: predict(**INPUTS))
    assert posted(port) - before == WARM_UP + CALLS
    return growth_megabytes


def report_resume() -> float:
    """Return the bytes that a resumed ``map_rows`` holds for each row that has a record, at most."""
    rows = ({"id": f"row {number}", "question": "When?"} for number in range(RESUMED))
    job = MapJob(program="benchmarks.memory:answer")
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        out = Path(folder, "out.jsonl")
        map_rows(job, [{"id": "row 0", "question": "When?"}], out, executor=pool)
        map_rows(job, [], out, executor=pool)  # a resumed run imports late
        header, record, *_ = map(json.loads, out.read_text(encoding="utf-8").splitlines())
        with out.open("w", encoding="utf-8") as file:
            file.write(f"{json.dumps(header)}\n")
            for number in range(RESUMED):
                file.write(f"{json.dumps({**record, 'id': f'row {number}', 'index': number})}\n")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = map_rows(job, rows, out, executor=pool)
        assert result.kept == result.rows == RESUMED
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / RESUMED


def answer(question: str) -> Prediction:
    """Answer without a model."""
    return Prediction(answer=question)


def process(report: str) -> Contestant:
    program = f"from benchmarks.memory import *; print({report})"
    command = [sys.executable, "-c", program]
    return lambda: subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout


def megabytes(contestant: Contestant) -> float:
    return float(str(contestant()))


def jobs() -> Iterator[Job]:
    """Yield i2 if the system has ``/proc/self/statm``."""
    if Path("/proc/self/statm").exists():
        what = f"growth over {CALLS:,} calls"
        yield Job("i2", what, "≤ 0.5 MB", {SIGWIRE: process("report()")}, unit="MB", sample=megabytes)


def resumed() -> Iterator[Job]:
    """Yield i3 if the system has ``/proc/self/statm``."""
    if Path("/proc/self/statm").exists():
        what = f"held a row by a resumed map_rows of {RESUMED:,} rows"
        contestants = {SIGWIRE: process("report_resume()")}
        yield Job("i3", what, "≤ 200 B", contestants, unit="B", sample=megabytes, most_rounds=1)


def over_http() -> Iterator[Job]:
    """Yield i2h if the system has ``/proc/self/statm``. A round takes seconds, so there are few rounds."""
    if Path("/proc/self/statm").exists():
        with serving() as port:
            what = f"growth over {CALLS:,} calls over HTTP"
            contestants = {SIGWIRE: process(f"report_over_http({port})")}
            yield Job("i2h", what, "≤ 0.5 MB", contestants, unit="MB", sample=megabytes, most_rounds=3)
