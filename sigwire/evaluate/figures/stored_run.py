"""``load_run``: the last run in a file of records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sigwire.core.example import Example, Prediction
from sigwire.errors import ConfigurationError
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.records import ExampleRecord, RecordFile, last_run

__all__ = ["load_run", "stored_prediction"]


_OF_SEGMENTS = ("started", "sigwire", "git", "forced")  # of an earlier part of a run that was resumed


def load_run(path: str | os.PathLike[str]) -> ScoredRun:
    """Return the last run in a file of records, with the header of its last part. Raises ``ConfigurationError`` without a run.

    Examples and predictions are built from the JSON of the records.
    """
    rows = last_run(RecordFile.read(path))
    if not rows:
        raise ConfigurationError(f"{Path(path).name} has no run (loading records). Pass the log of an evaluation.")
    header: Any = next(row for row in reversed(rows) if row.get("type") in ("run", "segment"))
    if earlier := [row for row in rows if row.get("type") in ("run", "segment")][:-1]:
        header = {**header, "segments": [{name: row.get(name) for name in _OF_SEGMENTS} for row in earlier]}
    last = {(row["id"], row["repeat"]): ExampleRecord.from_json(row) for row in rows if row.get("type") == "record"}
    ends: list[Any] = [row for row in rows if row.get("type") == "end"]
    end: dict[str, Any] = ends[-1] if ends else {}
    records = sorted(last.values(), key=lambda record: (record.index, record.repeat))
    return ScoredRun(
        header["program"]["class"].rpartition(".")[2],
        tuple(records),
        tuple(Example({**record.inputs, **record.labels}).with_inputs(*record.inputs) for record in records),
        tuple(map(stored_prediction, records)),
        header["devset"]["n"] or len({record.index for record in records}),  # rows of a job are drawn lazily
        header=header,
        status=str(end.get("status", "cancelled")),
        metric_names=tuple(header["metrics"]),
        repeat=header["repeat"],
        reduce=header["reduce"],
        cluster=header.get("cluster"),
        confidence=header.get("interval", 0.95),
        failure_score=header.get("failure_score", 0.0),
        errors=header.get("errors", "score"),
        seconds=float(end.get("seconds", 0.0)),
        path=str(path),
    )


def stored_prediction(record: ExampleRecord) -> Prediction:
    """Return the prediction of a record that was read from a file: its outputs as JSON data."""
    return Prediction(record.cell.outputs or {})
