"""``map_rows``: a job over rows that are drawn lazily; records are appended to a file as they come.

``Job`` is public from here: this module sets its usual runner, which ``jobs`` does not know.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.inspection import function_name
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.examples import content_digest
from sigwire.evaluate.fingerprint.identity import run_fingerprint
from sigwire.evaluate.records import (
    ExampleRecord,
    FinishedKeys,
    RecordFile,
    job_header,
    reading_records,
    segment_header,
)
from sigwire.evaluate.rows.map_result import MapResult
from sigwire.evaluate.rows.rows import as_example, row_of
from sigwire.evaluate.rows.run import FinishedRow, Row, RowExecutor, RowRun, RowsCaller
from sigwire.evaluate.rows.worker import RowRunner
from sigwire.jobs.errors import JobRefused
from sigwire.jobs.job import Job, run_rows_with
from sigwire.jobs.journal import digest_of, read_blocks, remove_block
from sigwire.jobs.paths import load_path
from sigwire.jobs.submissions import ExecutorLike
from sigwire.modules.field_types import types_of

if TYPE_CHECKING:
    from sigwire.lm.policy.money.budget import Budget

__all__ = ["Job", "amap_rows", "map_rows"]

_TWO_DAYS = 172_800.0  # a batch takes a day at most, and its expired lines another
RowsLike = Iterable[Example | Mapping[str, object]] | Iterable[str] | Iterable[int]


def map_rows(
    job: Job,
    rows: RowsLike,
    out: str | os.PathLike[str],
    *,
    executor: ExecutorLike | Literal["provider-batch"],
    chunk: int = 250,
    in_flight: int | None = None,
    rate: float | None = None,
    calls: int | None = None,
    budget: Budget | None = None,
    coordinator: str | None = None,
    repeat: int = 1,
    stall: float = 300,
) -> MapResult:
    """Run a job on each row on the processes of an executor; append the records of ``Evaluate`` to the file ``out``.

    ``rows``: Examples, or mappings of inputs, drawn as they are needed; ids of rows, if the job has ``rows``. ``executor``: any
    PEP 3148 executor, or a function that makes one, so that a broken process pool is replaced; "provider-batch": the rows run
    in this process, their requests in batches of the provider; the store of ``BatchLM`` is ``<out>.batch``. ``chunk``: rows
    sent together.
    ``in_flight``: chunks that are out, by default two for each process of a pool, else 64. ``rate``: requests a second,
    ``calls`` and ``budget``: limits over all workers, kept by a coordinator on this machine; ``coordinator``: the URL of one
    that runs already, with its own limits. ``repeat``: runs for each row. ``stall``: seconds in which no chunk comes back and
    no row ends, after which the run ends.

    The folder ``<out>.journal`` has what workers began and finished; all of them must see it. Called again, the function runs
    the rows without a record, so a killed run goes on. A row that kills its worker, alone, has a failure of the kind "worker".
    Raises ``JobRefused`` if a worker cannot build the job, or no row can succeed, and ``ConfigurationError`` if ``out`` has
    the records of another job.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from tempfile import TemporaryDirectory
    >>> from sigwire.lm.client import LM
    >>> from sigwire.modules.predict import Predict
    >>> job = Job.of(Predict("question -> answer"), lm=LM("offline/lexical"))
    >>> with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
    ...     result = map_rows(job, [{"question": "2+2?"}], f"{folder}/out.jsonl", executor=pool)
    >>> result.status, result.rows
    ('complete', 1)
    """
    return run(
        _steps(job, rows, Path(out), executor, chunk, in_flight, (rate, calls, budget, coordinator), repeat, stall)
    )


async def amap_rows(
    job: Job,
    rows: RowsLike,
    out: str | os.PathLike[str],
    *,
    executor: ExecutorLike | Literal["provider-batch"],
    chunk: int = 250,
    in_flight: int | None = None,
    rate: float | None = None,
    calls: int | None = None,
    budget: Budget | None = None,
    coordinator: str | None = None,
    repeat: int = 1,
    stall: float = 300,
) -> MapResult:
    """``map_rows``, awaited."""
    return await arun(
        _steps(job, rows, Path(out), executor, chunk, in_flight, (rate, calls, budget, coordinator), repeat, stall)
    )


_Limits = tuple["float | None", "int | None", "Budget | None", "str | None"]


def _steps(
    job: Job,
    rows: RowsLike,
    out: Path,
    executor: ExecutorLike | Literal["provider-batch"],
    chunk: int,
    in_flight: int | None,
    limits: _Limits,
    repeat: int,
    stall: float,
) -> Steps[MapResult]:
    _check_given(job, rows)
    if min(chunk, repeat, in_flight or 1) < 1 or stall <= 0:
        raise ConfigurationError("chunk, in_flight, repeat and stall are numbers above 0 (starting map_rows).")
    if executor == "provider-batch":
        from sigwire.lm.batch.executor import BatchExecutor  # needed for batches only

        executor, stall = BatchExecutor.for_file(out, job.lm), max(stall, _TWO_DAYS)
    rate, calls, budget, coordinator = limits
    if coordinator is not None and (rate, calls, budget) != (None, None, None):
        raise ConfigurationError("coordinator has its own limits (starting map_rows). Give it rate, calls and budget.")
    started = time.monotonic()
    journal = out.with_name(f"{out.name}.journal")
    sending = RowExecutor(executor, chunk, in_flight, stall, rate, calls, coordinator)
    with _open(job, out, repeat) as file, closing(RowRun(None, None, job.concurrency, sending)) as run_of_rows:
        file.recover(journal)
        result = file.result
        try:
            yield from run_of_rows.steps(
                file.pending(_drawn(job, rows, repeat)), {}, file, budget=budget, journal=journal
            )
        except JobRefused as refused:
            refused.result = result
            raise
        finally:
            result.status, result.detail, result.lost, result.duplicates = run_of_rows.end
            result.seconds = time.monotonic() - started
    return result


def _drawn(job: Job, rows: RowsLike, repeat: int) -> Iterator[Row]:
    """Yield the rows with ids as in ``Evaluate``: the field ``id``, else a digest of the content. Repeats follow each other.

    If the job has ``rows``, they are ids, which the workers read.
    """
    seen, again, has_ids = set[int](), Counter[str](), job.rows is not None
    types = job.types or types_of(_found(job.program))
    for index, given in enumerate(rows):
        example = Example(id=_id(given, index)).with_inputs() if has_ids else as_example(given, f"Row {index}")
        has_id = "id" in example
        own = str(example["id"]) if has_id else content_digest(example, types)[:10]
        size = len(seen)
        seen.add(digest_of({"id": own, "repeat": 1}))
        if len(seen) == size:
            if has_id:
                raise InputError(f"Two rows have the id {own!r} (drawing row {index}). Records need ids of their own.")
            again[own] += 1
            own = f"{own}-{again[own] + 1}"
        sent = Example().with_inputs() if has_ids else example
        for number in range(1, repeat + 1):
            yield Row(lambda: job, sent, own, index, number, number if number > 1 else None, own, types)


def _content_of(row: JsonObject) -> int:
    """Return a digest of a row or its record, with the fields: another row of the same id is another row."""
    content = [str(row["id"]), row["repeat"], row["inputs"], row["labels"]]
    return int.from_bytes(blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=12).digest())


def _id(given: object, index: int) -> str | int:
    if not isinstance(given, str | int):
        raise InputError(
            f"Row {index} is no id (drawing rows), but {type(given).__name__}. Job(rows=...) takes a text or a number a row."
        )
    return given


def _check_given(job: object, rows: object) -> None:
    if not isinstance(job, Job):
        raise ConfigurationError(
            f"map_rows takes a Job, not {type(job).__name__} (starting it). Write Job.of(program)."
        )
    if isinstance(rows, str) or is_mapping(rows) or not isinstance(rows, Iterable):
        raise ConfigurationError(
            f"rows is an iterable of Examples or mappings, not {rows!r:.80} (starting map_rows). Rows of a file: "
            "load_examples(path)."
        )


class _MapFile(RowsCaller):
    """Appends records to the file, and counts them. ``finished``: what the file had when the run began."""

    def __init__(self, file: RecordFile, result: MapResult, finished: FinishedKeys) -> None:
        self._file, self.result, self._finished = file, result, finished
        self._segment = finished.segment - 1
        result.rows = result.kept = len(finished.keys)

    def recover(self, journal: Path) -> None:
        """Write the records in the journals of a killed run, then remove the journals. Rows are not drawn for that."""
        segment = self._segment
        for found in read_blocks(journal):
            record = ExampleRecord.from_json(found, segment=max(0, segment - 1))
            if _content_of(found) not in self._finished.keys:
                self._file.append(line := record.line(segment))
                self._finished.add(line)
                self.result.add(record.cell)
        self._file.sync()
        remove_block(journal)

    def pending(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows to run; those whose metric failed have their record. Known rows are forgotten: each is drawn once."""
        finished, known = self._finished, self._finished.keys
        for row in rows:
            if not (known or finished.has_stored):
                yield row
                continue
            content = _content_of(row_of(row.example, row.id, row.index, row.repeat, row.types))
            if content in known:
                known.discard(content)
            else:
                stored = finished.stored(content)
                yield row if stored is None else replace(row, stored=replace(stored, index=row.index))

    def keep(self, done: FinishedRow) -> Steps[None]:
        self._file.append(done.record(self._segment).line(self._segment))
        self.result.add(done.cell, is_stored=done.row.stored is not None)
        yield from ()

    def sync(self) -> None:
        self._file.sync()


def _found(given: object) -> object:
    """Return what a path names; other values, and a path that only the workers can import, as they are."""
    if not isinstance(given, str) or ":" not in given:
        return given
    with suppress(Exception):
        return load_path(given)
    return given


def _fingerprint(job: Job) -> JsonObject:
    """Return the fingerprint of a job: of what its paths name, as far as this process can import it."""

    missing: list[str] = []

    def found(given: object) -> object:
        if not isinstance(given, str) or ":" not in given:
            return given
        with suppress(Exception):  # only the workers have it
            return load_path(given)
        missing.append(f"`{given}`, which this process cannot import")
        return given

    given: Any = job.metric
    metrics: list[Any] = [] if given is None else [*given] if isinstance(given, (list, tuple)) else [given]
    names = [each.rpartition(":")[2] if isinstance(each, str) else function_name(each) for each in metrics]
    by_name = dict(zip(names, map(found, metrics), strict=True))
    parts = {"program": found(job.program), "state": job.state}
    fingerprint = run_fingerprint(parts, found(job.lm), found(job.adapter), by_name)
    return {**fingerprint, "unknown": [*cast("list[JsonValue]", fingerprint["unknown"]), *missing]}


@contextmanager
def _open(job: Job, out: Path, repeat: int) -> Generator[_MapFile]:
    """Open the file of records: its header, and what an earlier run finished."""
    header, finished = job_header(job.to_json(), repeat), FinishedKeys(_content_of)
    with reading_records(out):
        file = RecordFile(out, finished.add)
    header["fingerprint"] = _fingerprint(job)
    if job.allow_versions:
        header["allow_versions"] = True  # then workers may run other code than this process
    result = MapResult(str(out))
    try:
        goes_on = finished.goes_on(header, out)
        if not (goes_on or finished.is_empty):
            raise ConfigurationError(
                f"{out} has other lines than records (opening it for map_rows). Pass another path as out."
            )
        header = segment_header(header) if goes_on else header
        file.append(header)
        finished.add(header)
        yield _MapFile(file, result, finished)
        file.append({"type": "end", "status": result.status, "records": result.rows, "seconds": result.seconds})
    finally:
        finished.close()
        file.close()


run_rows_with(RowRunner)
