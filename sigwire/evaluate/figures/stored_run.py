"""``load_run``: the last run in a file of records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sigwire.core.example import Example
from sigwire.errors import ConfigurationError
from sigwire.evaluate.cell import stored_prediction
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.plain import typed_fields, types_of
from sigwire.evaluate.records import RecordFile, headers_of, last_records, last_run

__all__ = ["load_run"]


def load_run(path: str | os.PathLike[str], program: object = None) -> ScoredRun:
    """Return the last run in a file of records, with the headers of its parts. Raises ``ConfigurationError`` without a run.

    Examples and predictions are built from the JSON of the records; declared fields of ``program`` get their types.
    """
    types = types_of(program)
    rows = last_run(RecordFile.read(path))
    if not rows:
        raise ConfigurationError(f"{Path(path).name} has no run (loading records). Pass the log of an evaluation.")
    earlier: list[Any] = headers_of(rows)
    header = earlier.pop()
    ends: list[Any] = [row for row in rows if row.get("type") == "end"]
    end: dict[str, Any] = ends[-1] if ends else {}
    records = sorted(last_records(rows, omitted=False).values(), key=lambda record: (record.index, record.repeat))
    return ScoredRun(
        header["program"]["class"].rpartition(".")[2],
        tuple(records),
        tuple(
            Example(typed_fields({**record.inputs, **record.labels}, types)).with_inputs(*record.inputs)
            for record in records
        ),
        tuple(stored_prediction(record.cell, types) for record in records),
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
        is_plain=program is None,
        earlier=earlier,
    )
