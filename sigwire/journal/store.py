"""The SQLite file of a journal: rows of runs and effects, and texts by digest. ``files/database.py`` has the connection.

Each write is one transaction with ``synchronous=FULL``: what is committed survives a crash of the machine.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar

from sigwire.errors import StateError
from sigwire.files.database import Database, Form, OtherForm, trouble_of
from sigwire.journal.records import EffectRow, RunHead

__all__ = ["Store"]

R = TypeVar("R", EffectRow, RunHead)

_SCHEMA = """
CREATE TABLE runs (run TEXT PRIMARY KEY, state TEXT NOT NULL, header BLOB NOT NULL, inputs BLOB NOT NULL,
  inputs_digest TEXT NOT NULL, result BLOB, error TEXT, started REAL NOT NULL, updated REAL NOT NULL);
CREATE TABLE effects (run TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, fingerprint TEXT NOT NULL,
  state TEXT NOT NULL, attempt INTEGER NOT NULL, on_crash TEXT, key BLOB NOT NULL, value BLOB, decision BLOB,
  started REAL NOT NULL, ended REAL, PRIMARY KEY (run, place));
CREATE TABLE texts (digest TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE uses (run TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (run, digest)) WITHOUT ROWID;
"""
_FORM = Form(
    _SCHEMA,
    application=0x51677731,  # "sgw1"
    settings=("synchronous = FULL",),
    wal=True,
    busy_seconds=30.0,
)
_HEAD = ", ".join(field.name for field in fields(RunHead))
_ROW = ", ".join(field.name for field in fields(EffectRow))


class Store:
    """The file at ``path``, made with mode 0600 if it is missing. Used from any thread."""

    def __init__(self, path: Path) -> None:
        self.path, self._database = path, Database(path, _FORM)

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
        self._database.close()

    # --- runs ---

    def head(self, run: str) -> RunHead | None:
        found = self._read(RunHead, f"SELECT {_HEAD} FROM runs WHERE run = ?", run)
        return found[0] if found else None

    def heads(self) -> list[RunHead]:
        return self._read(RunHead, f"SELECT {_HEAD} FROM runs ORDER BY started, run")

    def add_run(self, head: RunHead, texts: Mapping[str, bytes]) -> None:
        with self._writing() as execute:
            _add(execute, "runs", _HEAD, astuple(head))
            _add_texts(execute, head.run, texts)

    def set_run(
        self, run: str, state: str, error: str | None, result: bytes | None = None, texts: Mapping[str, bytes] = {}
    ) -> None:
        with self._writing() as execute:
            _add_texts(execute, run, texts)
            execute(
                "UPDATE runs SET state = ?, error = ?, result = ?, updated = ? WHERE run = ?",
                (state, error, result, time.time(), run),
            )

    def fork(self, old: str, head: RunHead, rows: Iterable[EffectRow], texts: Mapping[str, bytes]) -> bool:
        """Add a run with its first effects, which may use the texts of ``old``; return False if the run exists."""
        with self._writing() as execute:
            if execute("SELECT 1 FROM runs WHERE run = ?", (head.run,)).fetchone():
                return False
            _add(execute, "runs", _HEAD, astuple(head))
            for row in rows:
                _add(execute, "effects", f"run, {_ROW}", (head.run, *astuple(row)))
            execute("INSERT INTO uses SELECT ?, digest FROM uses WHERE run = ?", (head.run, old))
            _add_texts(execute, head.run, texts)
            return True

    def remove(self, run: str) -> None:
        with self._writing() as execute:
            for table in ("runs", "effects", "uses"):
                execute(f"DELETE FROM {table} WHERE run = ?", (run,))

    def remove_unused_texts(self) -> None:
        with self._writing() as execute:
            execute("DELETE FROM texts WHERE digest NOT IN (SELECT digest FROM uses)", ())

    # --- effects ---

    def rows(self, run: str) -> list[EffectRow]:
        return self._read(EffectRow, f"SELECT {_ROW} FROM effects WHERE run = ? ORDER BY started, place", run)

    def put(self, run: str, row: EffectRow, texts: Mapping[str, bytes]) -> None:
        """Add an effect, or replace the effect of its place."""
        with self._writing() as execute:
            _add(execute, "effects", f"run, {_ROW}", (run, *astuple(row)), "INSERT OR REPLACE")
            _add_texts(execute, run, texts)

    def decide(self, run: str, decisions: Mapping[str, bytes], texts: Mapping[str, bytes]) -> None:
        with self._writing() as execute:
            _add_texts(execute, run, texts)
            for place, decision in decisions.items():
                execute("UPDATE effects SET decision = ? WHERE run = ? AND place = ?", (decision, run, place))

    def text(self, digest: str) -> object:
        """Return the packed text of a digest. Raises ``LookupError``."""
        with self._using(self._database.reading()) as connection:
            found = connection.execute("SELECT data FROM texts WHERE digest = ?", (digest,)).fetchone()
        if found is None:
            raise LookupError(f"no text {digest!r:.80}")
        return found[0]

    # --- the connection ---

    def _read(self, kind: type[R], query: str, *values: str) -> list[R]:
        with self._using(self._database.reading()) as connection:
            rows = connection.execute(query, values).fetchall()
        return [kind(*row) for row in rows]

    @contextmanager
    def _using(self, use: AbstractContextManager[sqlite3.Connection]) -> Generator[sqlite3.Connection]:
        try:
            if not self._database.is_open:
                self.path.parent.mkdir(mode=0o700, exist_ok=True)
            with use as connection:
                yield connection
        except OtherForm as error:
            raise _form_error(self.path, error) from error
        except (OSError, sqlite3.Error) as error:
            raise _error(self.path, error) from error

    @contextmanager
    def _writing(self) -> Generator[Any]:
        with self._using(self._database.writing()) as connection:
            yield connection.execute


def _form_error(path: Path, error: OtherForm) -> StateError:
    if error.number is None:
        return StateError(f"{str(path)!r} is another kind of database (opening the journal). Name another file.")
    return StateError(
        f"{str(path)!r} is a journal of format {error.number}, not {_FORM.number}. Use the sigwire that wrote it."
    )


def _error(path: Path, error: OSError | sqlite3.Error) -> StateError:
    trouble = trouble_of(error)
    if trouble == "full":
        return StateError(
            f"{str(path)!r} cannot be written: {error} (using the journal). Free space on its disk, then resume the run: what "
            "was recorded before is kept."
        )
    if trouble == "busy":
        return StateError(
            f"{str(path)!r} cannot be used: {error} (waiting {_FORM.busy_seconds:g} s for other processes). End the process "
            "that holds the file."
        )
    return StateError(
        f"{str(path)!r} is not a journal, or cannot be used: {error} (opening the journal). Name a file of its own, in a "
        "folder that exists on a local disk."
    )


def _add(execute: Any, table: str, names: str, values: Sequence[object], verb: str = "INSERT") -> None:
    execute(f"{verb} INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", values)


def _add_texts(execute: Any, run: str, texts: Mapping[str, bytes]) -> None:
    for digest, data in texts.items():
        execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest, data))
        execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, digest))
