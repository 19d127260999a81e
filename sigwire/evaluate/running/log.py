"""``RunLog``: what is finished of an evaluation, and the file that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue
from sigwire.evaluate.cell import stored_prediction
from sigwire.evaluate.records import (
    ExampleRecord,
    RecordFile,
    finished_records,
    headers_of,
    last_run,
    segment_header,
)
from sigwire.evaluate.rows.rows import is_record_of
from sigwire.modules.field_types import NO_TYPES, FieldTypes

__all__ = ["RunLog"]


class RunLog:
    """The records and predictions of an evaluation by (index, repeat), in a file as well if ``path`` is given.

    ``unscored``: records whose metric failed; their outputs are scored again. ``earlier``: the headers of the parts of the run
    that are kept; ``segment``: the number of this part. ``resume``: see ``Evaluate``. ``keep`` and ``close`` are called by one
    thread at a time.
    """

    def __init__(self, path: Path | None, header: JsonObject, resume: object) -> None:
        self.path, self.header = path, header
        self.records: dict[tuple[int, int], ExampleRecord] = {}
        self.predictions: dict[tuple[int, int], Any] = {}
        self.unscored: dict[tuple[int, int], ExampleRecord] = {}
        self.earlier: list[JsonObject] = []
        self.is_closed = False
        self._file = None if path is None else RecordFile(path)
        self._kept: Mapping[tuple[str, int], ExampleRecord] = {}
        if self._file is not None and path is not None:
            try:
                rows, self._file.rows = self._file.rows, []
                kept = finished_records(rows, header, path, resume=resume)
                self.earlier = [] if kept is None else headers_of(last_run(rows))
            except BaseException:
                self._file.close()
                raise
            self._file.append(header if kept is None else segment_header(header))
            self._kept = kept or {}

    @property
    def segment(self) -> int:
        """The number of this part of the run."""
        return len(self.earlier)

    def take(self, ids: Sequence[str], examples: Sequence[Example], repeat: int, types: FieldTypes = NO_TYPES) -> None:
        """Take the records that the file has of these examples. ``types``: the fields that the program declares."""
        positions = {own: index for index, own in enumerate(ids)}
        left: list[JsonValue] = []
        for (own, number), record in self._kept.items():
            index = positions.get(own)
            if index is None or number > repeat or not is_record_of(record, examples[index], types):
                left.append([own, number])
                continue
            taken = replace(record, index=index)
            if record.is_unscored:
                self.unscored[index, number] = taken
            elif not record.is_run_again:
                self.records[index, number] = taken
                self.predictions[index, number] = stored_prediction(record.cell, types)
        if left and self._file is not None:
            self._file.append({"type": "omitted", "rows": left})

    def line_of(self, record: ExampleRecord) -> JsonObject | None:
        """Return the line of a record; ``None`` without a file."""
        return None if self._file is None else record.line(self.segment)

    def keep(self, record: ExampleRecord, prediction: object, line: JsonObject | None) -> None:
        """Write the line of a record, then keep the record."""
        if self._file is not None and line is not None:
            self._file.append(line)
        self.records[record.index, record.repeat] = record
        self.predictions[record.index, record.repeat] = prediction

    def sync(self) -> None:
        """Return when all records are on disk."""
        if self._file is not None:
            self._file.sync()

    def close(self, status: str, seconds: float) -> None:
        """Write the end, and close the file. Records that come later are not kept."""
        self.is_closed = True
        if self._file is None:
            return
        try:
            self._file.append({"type": "end", "status": status, "records": len(self.records), "seconds": seconds})
        except OSError:  # the disk is full; an error that is already raised keeps its result
            if status == "complete":
                raise
        finally:
            self._file.close()
