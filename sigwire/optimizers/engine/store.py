"""Finished runs and answers of a search, by what they are: in memory, and in a journal file from which a search resumes.

A record is appended as its run ends. Its key is a digest of candidate, row, sample and program, so a changed example or
candidate has other keys, and a rule that starts again finds what is finished.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

from sigwire.core.json import JsonObject, dumps
from sigwire.errors import StateError
from sigwire.evaluate.cell import Cell
from sigwire.optimizers.rule import RunKey

__all__ = ["RunStore", "run_key", "write_key"]


def run_key(run: RunKey, by: str, traced: bool) -> str:
    """Return the key of a run."""
    return _digest(["run", by, run.candidate.digest, run.row, run.repeat, traced])


def write_key(request: JsonObject, index: int) -> str:
    """Return the key of an answer of the writing model."""
    return _digest(["write", request, index])


def _digest(value: object) -> str:
    return blake2b(dumps(value).encode(errors="surrogatepass"), digest_size=16).hexdigest()


class RunStore:
    """Records by key. ``path``: the journal file; ``None``: memory only. ``header`` identifies the search.

    Raises ``StateError`` if the file is of another search, naming what differs.
    """

    def __init__(self, path: str | os.PathLike[str] | None, header: Mapping[str, Any]) -> None:
        self._records: dict[str, JsonObject] = {}
        self._file: Any = None
        self.resumed = 0
        if path is None:
            return
        from sigwire.evaluate.records import RecordFile

        self._file = RecordFile(path)
        found: JsonObject | None = None
        for record in self._file.rows:
            if record.get("type") == "optimization":
                found = record
            elif isinstance(key := record.get("key"), str):
                self._records[key] = record
        if found is None:
            self._file.append({"type": "optimization", "format": 1, **header})
        else:
            _check_header(found, header, path)
        self.resumed = len(self._records)

    def find(self, run: RunKey, by: str, traced: bool) -> str | None:
        """Return the key of a finished run; a traced one serves where no trace is needed."""
        key = run_key(run, by, traced)
        if key in self._records:
            return key
        return key if not traced and (key := run_key(run, by, True)) in self._records else None

    def cell(self, key: str) -> Cell:
        """Return a finished run."""
        return Cell.from_json(cast("Mapping[str, object]", self._records[key]["cell"]))

    def put_cell(self, run: RunKey, by: str, traced: bool, cell: Cell) -> None:
        """Record a finished run."""
        place: JsonObject = {"candidate": run.candidate.digest, "row": run.row, "repeat": run.repeat}
        self._put(run_key(run, by, traced), {"type": "cell", **place, "cell": cell.to_json()})

    def written(self, key: str) -> JsonObject | None:
        """Return a recorded answer of the writing model, with its cost."""
        return self._records.get(key)

    def put_written(self, key: str, record: JsonObject) -> None:
        self._put(key, {"type": "write", **record})

    def note(self, record: JsonObject) -> None:
        """Append a record that nothing reads back while resuming: a trial, the end."""
        if self._file is not None:
            self._file.append(record)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _put(self, key: str, record: JsonObject) -> None:
        record = {"key": key, **record}
        if self._file is not None:
            self._file.append(record)
        self._records[key] = record


def _check_header(found: Mapping[str, Any], header: Mapping[str, Any], path: object) -> None:
    differing = [name for name in header if found.get(name) != header[name]]
    if differing:
        shown = ", ".join(f"{name} was {found.get(name)!r:.60} and is {header[name]!r:.60}" for name in differing)
        raise StateError(
            f"The journal {str(path)!r} is of another search: {shown} (resuming). Name another file, or restore what changed."
        )
