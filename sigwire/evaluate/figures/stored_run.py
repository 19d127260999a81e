"""``load_run``: the last run in a file of records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sigwire.core.example import Example, Prediction
from sigwire.core.json import JsonObject
from sigwire.errors import ConfigurationError
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.plain import typed_fields
from sigwire.evaluate.records import ExampleRecord, RecordFile, last_run
from sigwire.modules.agents.run import load_run_fields
from sigwire.modules.field_types import FieldTypes, types_of

__all__ = ["load_run", "stored_prediction"]


_OF_SEGMENTS = ("started", "sigwire", "git", "forced")  # of an earlier part of a run that was resumed


def load_run(path: str | os.PathLike[str], program: object = None) -> ScoredRun:
    """Return the last run in a file of records, with the header of its last part. Raises ``ConfigurationError`` without a run.

    Examples and predictions are built from the JSON of the records; declared fields of ``program`` get their types.
    """
    types = types_of(program)
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
        tuple(
            Example(typed_fields({**record.inputs, **record.labels}, types, record.forms)).with_inputs(*record.inputs)
            for record in records
        ),
        tuple(stored_prediction(record, types) for record in records),
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
    )


def stored_prediction(record: ExampleRecord, types: FieldTypes) -> Prediction:
    """Return the prediction of a record: declared outputs and the run of an agent with their types, others as JSON data."""
    outputs = record.cell.outputs or {}
    fields = typed_fields(outputs, types, record.cell.forms)
    return Prediction({**fields, **_run_fields(outputs, types)} if types else fields)


def _run_fields(outputs: JsonObject, types: FieldTypes) -> dict[str, Any]:
    """Return the fields of the run of an agent, decoded; nothing for other programs."""
    run: dict[str, Any] = dict(outputs)
    try:
        load_run_fields(run, types)
    except (LookupError, ValueError, TypeError, AttributeError):
        return {}
    return {name: value for name, value in run.items() if value is not outputs[name]}
