"""``load_run``: the last run in a file of records."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sigwire.core.example import Example, Prediction
from sigwire.core.json import JsonObject, decode_fields
from sigwire.errors import ConfigurationError
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.plain import FieldTypes, typed_fields, types_of
from sigwire.evaluate.records import ExampleRecord, RecordFile, last_run, reading_records
from sigwire.evaluate.statistics import check_reducer

__all__ = ["load_run", "stored_prediction"]


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


_OF_SEGMENTS = ("started", "sigwire", "git", "forced")  # of an earlier part of a run that was resumed


def load_run(path: str | os.PathLike[str], program: object = None) -> ScoredRun:
    """Return the last run in a file of records, with the header of its last part. Raises ``ConfigurationError`` without a run.

    Examples and predictions are built from the JSON of the records; declared fields of ``program`` get their types.
    """
    types = types_of(program)
    with reading_records(path):
        return _run_of(last_run(RecordFile.read(path)), path, types, is_plain=program is None)


def _run_of(rows: list[JsonObject], path: str | os.PathLike[str], types: FieldTypes, *, is_plain: bool) -> ScoredRun:
    if not rows:
        raise ConfigurationError(f"{Path(path).name} has no run (loading records). Pass the log of an evaluation.")
    found = next(row for row in reversed(rows) if row.get("type") in ("run", "segment"))
    head, header = _Header(**decode_fields(_Header, found, ignores_unknown=True)), found
    if earlier := [row for row in rows if row.get("type") in ("run", "segment")][:-1]:
        header = {**found, "segments": [{name: row.get(name) for name in _OF_SEGMENTS} for row in earlier]}
    check_reducer(head.reduce)
    read = [ExampleRecord.from_json(row) for row in rows if row.get("type") == "record"]
    last = {(record.id, record.repeat): record for record in read}
    ends = [row for row in rows if row.get("type") == "end"]
    end = _End(**decode_fields(_End, ends[-1] if ends else {}, ignores_unknown=True))
    records = sorted(last.values(), key=lambda record: (record.index, record.repeat))
    return ScoredRun(
        str(head.program["class"]).rpartition(".")[2],
        tuple(records),
        tuple(
            Example.with_inputs(Example(typed_fields({**record.inputs, **record.labels}, types)), *record.inputs)
            for record in records
        ),
        tuple(stored_prediction(record, types) for record in records),
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
    )


def stored_prediction(record: ExampleRecord, types: FieldTypes) -> Prediction:
    """Return the prediction of a record: declared outputs with their types, others as JSON data."""
    return Prediction(typed_fields(record.cell.outputs or {}, types))
