"""Finished runs and answers of a search, by what they are; with a journal file, a killed search resumes from them.

A record is written as its run ends. Its key is a digest of candidate, row, sample and program: a changed example or candidate
has another key, and a rule that starts again finds what is finished. Records are kept in a temporary file and read back when
they are asked for again, so that the memory of a search is an index: about 200 bytes a run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

from sigwire.core.json import JsonObject, decoding, dumps
from sigwire.core.narrow import is_object
from sigwire.core.response import Usage
from sigwire.errors import StateError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.fingerprint.identity import differences
from sigwire.evaluate.records import ExampleRecord, RecordFile
from sigwire.evaluate.segments import SegmentCounter, surroundings, warn_of_unknown
from sigwire.files.spool import Spool
from sigwire.optimizers.events import Spent
from sigwire.optimizers.rule import RunKey

__all__ = ["RunStore", "run_key", "write_key"]

_FORMAT = 1


def run_key(run: RunKey, by: str, traced: bool) -> bytes:
    """Return the key of a run."""
    text = f"run\0{by}\0{run.candidate.digest}\0{run.row}\0{run.repeat}\0{traced}"
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def write_key(request: JsonObject, index: int) -> bytes:
    """Return the key of an answer of the writing model."""
    return _digest(["write", request, index])


def _digest(value: object) -> bytes:
    return blake2b(dumps(value).encode(errors="surrogatepass"), digest_size=16).digest()


class RunStore:
    """Records by key. ``path``: the journal file, or ``None``. ``header`` identifies the search. Used from any thread.

    ``facts``: what else the headers of the journal have; it may differ. ``resumed``: how many records the file had.
    ``segments()``: the parts of the search, one for each start. Raises ``StateError`` if the file is of another search, with
    the difference.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, header: Mapping[str, Any], facts: Mapping[str, Any] | None = None
    ) -> None:
        self._records, self._unscored = Spool[bytes](), Spool[bytes]()
        self._used: set[bytes] = set()
        self._file: RecordFile | None = None
        self._counter = SegmentCounter()
        try:
            here = {**surroundings(with_git=path is not None), **(facts or {})}
            if path is not None:
                self._open(path, header, here)
            self._counter.start({**header, **here})
        except BaseException:
            self.close()
            raise
        self.resumed = len(self._records)
        self.segments = self._counter.segments

    def _open(self, path: str | os.PathLike[str], header: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        self._file = RecordFile(path)
        rows, self._file.rows = self._file.rows, []
        found = next((row for row in rows if row.get("type") == "optimization"), None)
        if found is None and rows:
            raise StateError(f"{str(path)!r} is no journal of a search (compiling). Name another file.")
        if found is not None:
            _check_header(found, header, path)
        for row in rows:
            self._take(row, path)
        if len(self._records):
            warn_of_unknown(self._file.path.name, found or {}, header)
        kind = "optimization" if found is None else "segment"
        self._file.append({"type": kind, "format": _FORMAT, **header, **facts})

    def _take(self, row: JsonObject, path: object) -> None:
        """Take a row of the journal."""
        key, kind = row.get("key"), row.get("type")
        if kind in ("optimization", "segment"):
            self._counter.start(row)
        elif isinstance(key, str):
            self._keep(_checked(key, row, path), row)

    # --- runs

    def find(self, key: bytes, run: RunKey, by: str, traced: bool) -> bytes | None:
        """Return the key of a finished run; a traced one serves where no trace is needed."""
        if key in self._records:
            return key
        return key if not traced and (key := run_key(run, by, True)) in self._records else None

    def cell(self, key: bytes) -> Cell:
        """Return a finished run."""
        return Cell.from_json(cast("Mapping[str, object]", self._records.get(key)["cell"]))

    def put_cell(self, key: bytes, run: RunKey, cell: Cell) -> None:
        """Record a finished run."""
        self._put_run("cell", key, run, cell)

    def put_unscored(self, key: bytes, run: RunKey, cell: Cell) -> None:
        """Record a run whose program answered, and whose scoring ended the search."""
        self._put_run("unscored", key, run, cell)

    def unscored(self, key: bytes, name: str, index: int, run: RunKey) -> ExampleRecord | None:
        """Return the record of a run that is not scored yet, under the name and the number of its row."""
        if key not in self._unscored:
            return None
        cell = Cell.from_json(cast("Mapping[str, object]", self._unscored.get(key)["cell"]))
        return ExampleRecord(name, index, run.repeat, {}, {}, cell)

    def _put_run(self, kind: str, key: bytes, run: RunKey, cell: Cell) -> None:
        place: JsonObject = {"candidate": run.candidate.digest, "row": run.row, "repeat": run.repeat}
        if kind == "cell" and key in self._unscored:  # the program answered in another part
            place["segment"] = self._unscored.get(key)["segment"]
        self._put(key, {"type": kind, **place, "cell": cell.to_json()})

    def first_use(self, key: bytes) -> bool:
        """Return True once for each key: what a record cost is counted once."""
        if key in self._used:
            return False
        self._used.add(key)
        return True

    # --- answers of the writing model

    def has(self, key: bytes) -> bool:
        """Return True if an answer is recorded."""
        return key in self._records

    def written(self, key: bytes) -> JsonObject:
        """Return a recorded answer, with its cost."""
        return self._records.get(key)

    def put_written(self, key: bytes, record: JsonObject) -> None:
        """Record an answer."""
        self._put(key, {"type": "write", **record})

    # --- the files

    def note(self, record: JsonObject) -> None:
        """Append a record to the journal that resuming does not read: a trial, the end."""
        if self._file is not None:
            self._file.append(record)

    def close(self) -> None:
        """Close the files."""
        if self._file is not None:
            self._file.close()
        self._records.close()
        self._unscored.close()

    def _put(self, key: bytes, record: JsonObject) -> None:
        record = {"key": key.hex(), **record}
        if self._file is not None:
            self._file.append(record)
        self._keep(key, record)

    def _keep(self, key: bytes, record: JsonObject) -> None:
        part = cast(int, record.get("segment", len(self._counter.headers) - 1))
        if record["type"] == "unscored":
            self._unscored.put(key, {**record, "segment": part})
            return
        self._records.put(key, record)
        if record["type"] == "cell":
            self._unscored.drop(key)
            cell = cast("Mapping[str, Any]", record["cell"])
            seen = Cell(None, served=cell.get("served", {}), metric_served=cell.get("metric_served", {}))
            self._counter.add(seen, part)


def _checked(key: str, row: JsonObject, path: object) -> bytes:
    """Return the key of a record that can be used."""
    try:
        with decoding("a record", row):
            if row["type"] in ("cell", "unscored"):
                cell = Cell.from_json(cast("Mapping[str, object]", row["cell"]))
                for counts in cell.usage.values():
                    Usage.from_json(counts)
            else:
                Spent.from_json(cast("Mapping[str, object]", row["spent"]))
                if row["outputs"] is not None and not is_object(row["outputs"]):
                    raise TypeError("its outputs are an object")
            return bytes.fromhex(key)
    except StateError as error:
        raise StateError(
            f"The journal {str(path)!r} has a line that no search wrote: {error} Remove the line, and its run is made again."
        ) from error


_DIGEST = 64  # characters of a SHA-256, which helps no reader


def _check_header(found: Mapping[str, Any], header: Mapping[str, Any], path: object) -> None:
    """Raise ``StateError`` with what differs. A journal of an earlier version has no fingerprint."""
    old, new = (each.get("fingerprint") for each in (found, header))
    named = differences(old, new) if is_object(old) and is_object(new) else []
    changed = {
        name: (found.get(name), value)
        for name, value in header.items()
        if name != "fingerprint" and found.get(name) != value
    }
    shown = ", ".join(
        [
            *(
                f"other {name}" if len(str(new)) == _DIGEST else f"{name} was {old!r:.60} and is {new!r:.60}"
                for name, (old, new) in changed.items()
            ),
            *named,
        ]
    )
    if shown:
        raise StateError(
            f"The journal {str(path)!r} is of another search: {shown} (resuming). Name another file, or restore what changed."
        )
