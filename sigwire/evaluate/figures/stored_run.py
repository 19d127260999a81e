"""``load_run``: the last run in a file of records."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, decode_fields
from sigwire.errors import DataError
from sigwire.evaluate.cell import stored_prediction
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.plain import typed_fields
from sigwire.evaluate.records import RecordFile, headers_of, last_records, last_run, reading_records
from sigwire.evaluate.statistics import check_reducer
from sigwire.modules.field_types import FieldTypes, types_of

__all__ = ["load_run"]


@dataclass(frozen=True)
class _Header:
    """The members of a header that the figures of its run depend on."""

    program: JsonObject
    devset: JsonObject
    metrics: tuple[str, ...]
    repeat: int
    reduce: str
    cluster: str | None = None
    interval: float = 0.95
    failure_score: float = 0.0
    errors: str = "score"


@dataclass(frozen=True)
class _End:
    """The members of the end of a run."""

    status: str = "cancelled"
    seconds: float = 0.0


def load_run(path: str | os.PathLike[str], program: object = None) -> ScoredRun:
    """Return the last run in a file of records, with the headers of its parts. Raises ``ConfigurationError`` without a run.

    Examples and predictions are built from the JSON of the records; declared fields of ``program`` get their types.
    """
    types = types_of(program)
    with reading_records(path):
        return _run_of(last_run(RecordFile.read(path)), path, types, is_plain=program is None)


def _run_of(rows: list[JsonObject], path: str | os.PathLike[str], types: FieldTypes, *, is_plain: bool) -> ScoredRun:
    if not rows:
        raise DataError(f"{Path(path).name} has no run (loading records). Pass the log of an evaluation.")
    earlier = headers_of(rows)
    header = earlier.pop()
    head = _Header(**decode_fields(_Header, header, ignores_unknown=True))
    check_reducer(head.reduce)
    ends = [row for row in rows if row.get("type") == "end"]
    end = _End(**decode_fields(_End, ends[-1] if ends else {}, ignores_unknown=True))
    records = sorted(last_records(rows, omitted=False).values(), key=lambda record: (record.index, record.repeat))
    return ScoredRun(
        str(head.program["class"]).rpartition(".")[2],
        tuple(records),
        tuple(
            Example.with_inputs(
                Example(typed_fields({**record.inputs, **record.labels}, types, record.forms)), *record.inputs
            )
            for record in records
        ),
        tuple(stored_prediction(record.cell, types) for record in records),
        cast("int | None", head.devset["n"])
        or len({record.index for record in records}),  # rows of a job are drawn lazily
        header=header,
        status=end.status,
        metric_names=head.metrics,
        repeat=head.repeat,
        reduce=head.reduce,
        cluster=head.cluster,
        confidence=head.interval,
        failure_score=head.failure_score,
        errors=head.errors,
        seconds=end.seconds,
        path=str(path),
        is_plain=is_plain,
        earlier=earlier,
    )
