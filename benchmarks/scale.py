"""CPU of rows that run on another process, as multiples of the same rows in one: ``python -m benchmarks.scale [ROWS]``.

The model answers at once and without a network, so the figures are those of the machinery only. The pool has one process.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import sigwire
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs.job import Job

__all__ = ["Cost", "costs", "make_lm", "table"]

_SIGNATURE = "question -> answer"
_TEXT = "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"


def make_lm() -> sigwire.FakeLM:
    """Return the model, in a worker."""
    return sigwire.FakeLM(_answer)


def _answer(request: sigwire.Request) -> str:
    return _TEXT


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a run, in the driver and in the worker."""

    name: str
    driver: float
    worker: float


def costs(count: int) -> Iterator[Cost]:
    """Yield the cost of each way to run ``count`` rows; the first is one process."""
    rows: list[dict[str, object]] = [{"question": f"Question {number}?"} for number in range(count)]
    predict = sigwire.Predict(_SIGNATURE)
    with sigwire.context(lm=make_lm()):
        predict.batch([sigwire.Example(row).with_inputs("question") for row in rows[:50]], num_threads=64)  # warm
        start = time.process_time()
        predict.batch([sigwire.Example(row).with_inputs("question") for row in rows], num_threads=64)
        yield Cost("one process, batch", time.process_time() - start, 0.0)
    job = Job.of(predict, lm="benchmarks.scale:make_lm")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, tempfile.TemporaryDirectory() as folder:
        map_rows(job, rows[:50], Path(folder) / "warm.jsonl", executor=pool)
        for name, chunk, calls in (
            ("process pool, chunks of 250", 250, None),
            ("process pool, chunks of 25", 25, None),
            ("process pool, chunks of 250, with a limit of calls", 250, 10 * count),
        ):
            start, before = time.process_time(), pool.submit(time.process_time).result()
            result = map_rows(job, rows, Path(folder) / f"{name}.jsonl", executor=pool, chunk=chunk, calls=calls)
            assert (result.rows, result.failures) == (count, {})
            driver, worker = time.process_time() - start, pool.submit(time.process_time).result() - before
            yield Cost(name, driver, worker)


def table(lines: list[Cost]) -> str:
    """Return the costs as multiples of the first."""
    one = lines[0].driver
    rows = [f"| {line.name} | {line.driver / one:.2f} | {line.worker / one:.2f} |" for line in lines]
    return "\n".join(["| rows run by | driver | worker |", "|---|---|---|", *rows])


if __name__ == "__main__":
    print(table([*costs(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)]))
