"""Exports of a run: flat rows, CSV, JSON lines, and the rows of ``save_as_csv`` and ``save_as_json``.

A file is written beside its target and renamed, so an error keeps the old file. Every row has all columns. In CSV, text that
a spreadsheet would run as a formula gets a leading apostrophe (CWE-1236); numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.record import Record
from sigwire.evaluate.figures.scored_run import ScoredRun
from sigwire.evaluate.figures.tool_counts import total_tools
from sigwire.evaluate.plain import plain_fields
from sigwire.evaluate.records import ExampleRecord
from sigwire.files.whole import write_whole

__all__ = ["ExportRow", "csv_text", "flat_rows", "json_text", "rows", "write_text"]

ExportRow: TypeAlias = dict[str, JsonValue]
"""A value for each column."""


def rows(run: ScoredRun) -> list[ExportRow]:
    """Return a flat row for each record, each with all columns: ``id``, ``inputs.…``, ``outputs.…``, ``score.…``, ``seconds``.

    Lists and objects are JSON text, so that tables of data frames have one type in a column.
    """
    return _with_all_columns([_row(run, record) for record in run.records])


def _row(run: ScoredRun, record: ExampleRecord) -> ExportRow:
    cell, failure, tools = record.cell, record.cell.failure, total_tools([record]).values()
    groups = {"inputs": record.inputs, "labels": record.labels, "outputs": cell.outputs or {}}
    scores = {run.metric_name: cell.score, **cell.subscores}
    return {
        "id": record.id,
        "index": record.index,
        "repeat": record.repeat,
        **{f"{group}.{name}": _flat(value) for group, fields in groups.items() for name, value in fields.items()},
        **{f"score.{name}": value for name, value in scores.items()},
        "feedback": cell.feedback or None,
        "error.kind": None if failure is None else failure.kind,
        "error.type": None if failure is None else failure.type,
        "error.message": None if failure is None else failure.message,
        "seconds": cell.seconds,
        "cost": cell.cost,
        "requests": cell.requests,
        "cache_hits": cell.hits,
        "tool_calls": sum(found.calls for found in tools),
        "tool_errors": sum(found.errors for found in tools),
        "tokens_in": _tokens(record, "input_tokens"),
        "tokens_out": _tokens(record, "output_tokens"),
    }


def _tokens(record: ExampleRecord, name: str) -> int | None:
    counts = [count for usage in record.cell.usage.values() if isinstance(count := usage.get(name), int)]
    return sum(counts) if counts else None


def flat_rows(run: ScoredRun) -> list[ExportRow]:
    """Return flat rows: fields of example and prediction, and the score under the name of the metric.

    A name of both has the prefixes ``example_`` and ``pred_``.
    """
    return _with_all_columns([_flat_row(run, place) for place in range(len(run.records))])


def _flat_row(run: ScoredRun, place: int) -> ExportRow:
    example, prediction, record = run.examples[place], run.predictions[place], run.records[place]
    score = record.cell.score
    inputs = _shown(example.__dict__, {**record.inputs, **record.labels})
    # An output without fields is a column.
    fields = prediction.__dict__ if isinstance(prediction, Record) else {"prediction": prediction}
    outputs = _shown(fields, record.cell.outputs or {})
    merged: ExportRow = {f"example_{name}" if name in outputs else name: value for name, value in inputs.items()}
    merged |= {f"pred_{name}" if name in inputs else name: value for name, value in outputs.items()}
    return {**merged, run.metric_name: run.failure_score if score is None else score}


def _shown(fields: Mapping[str, object], written: JsonObject) -> JsonObject:
    """Return fields as JSON: as the record has them, by their types."""
    rest = plain_fields({name: value for name, value in fields.items() if name not in written})
    return {name: written[name] if name in written else rest[name] for name in fields}


def _with_all_columns(found: Sequence[ExportRow]) -> list[ExportRow]:
    columns = dict.fromkeys(name for row in found for name in row)
    return [{name: row.get(name) for name in columns} for row in found]


def csv_text(found: Sequence[Mapping[str, JsonValue]]) -> str:
    r"""Return rows as CSV with a line of column names. Formulas are guarded.

    >>> csv_text([{"answer": "=1+1", "score": -1.5, "tags": ["a"]}])
    'answer,score,tags\r\n\'=1+1,-1.5,"[""a""]"\r\n'
    """
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(_guarded(name) for name in (found[0] if found else ()))
    writer.writerows([_guarded(_flat(value)) for value in row.values()] for row in found)
    return file.getvalue()


_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _guarded(value: JsonValue) -> JsonValue:
    return f"'{value}" if isinstance(value, str) and value.startswith(_STARTS_A_FORMULA) else value


def _flat(value: JsonValue) -> JsonValue:
    return dumps(value) if isinstance(value, (list, dict)) else value


def json_text(found: Iterable[Mapping[str, JsonValue]]) -> str:
    """Return rows as a JSON array of objects. Values are JSON already."""
    return json.dumps(list(found), indent=2, ensure_ascii=False)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace a file by a text. Directories are made; on an error the old file stays."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, text)
