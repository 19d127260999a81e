"""The SQLite file of a journal: rows of runs and effects, and texts by digest. One connection for each process.

Each write is one transaction with ``synchronous=FULL``: what is committed survives a crash of the machine. A forked child
drops the connection without closing it (sqlite.org/howtocorrupt.html, 2.6) and opens its own.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar

from sigwire.effects.forks import reset_when_forked
from sigwire.errors import StateError
from sigwire.journal.records import Row, RunHead

__all__ = ["Store"]

R = TypeVar("R", Row, RunHead)

_APPLICATION = 0x51677731  # "sgw1"
_FORMAT = 1
_SCHEMA = f"""
CREATE TABLE runs (run TEXT PRIMARY KEY, state TEXT NOT NULL, header BLOB NOT NULL, inputs BLOB NOT NULL,
  inputs_digest TEXT NOT NULL, result BLOB, error TEXT, started REAL NOT NULL, updated REAL NOT NULL);
CREATE TABLE effects (run TEXT NOT NULL, place TEXT NOT NULL, kind TEXT NOT NULL, fingerprint TEXT NOT NULL,
  state TEXT NOT NULL, attempt INTEGER NOT NULL, on_crash TEXT, key BLOB NOT NULL, value BLOB, decision BLOB,
  started REAL NOT NULL, ended REAL, PRIMARY KEY (run, place));
CREATE TABLE texts (digest TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE uses (run TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (run, digest)) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_FORMAT};
"""
_HEAD = ", ".join(field.name for field in fields(RunHead))
_ROW = ", ".join(field.name for field in fields(Row))
_BUSY_SECONDS = 30.0


class Store:
    """The file at ``path``, made with mode 0600 if it is missing. Used from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reset()
        reset_when_forked(self)

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closing: weakref.finalize[..., Store] | None = None

    def reset_after_fork(self) -> None:
        """Drop the connection of the parent process, in a forked child."""
        if self._closing is not None:
            self._closing.detach()
            _inherited.append(self._connection)
        self._reset()

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._connection = self._closing = None

    # --- runs ---

    def head(self, run: str) -> RunHead | None:
        found = self._read(RunHead, f"SELECT {_HEAD} FROM runs WHERE run = ?", run)
        return found[0] if found else None

    def heads(self) -> list[RunHead]:
        return self._read(RunHead, f"SELECT {_HEAD} FROM runs ORDER BY started, run")

    def add_run(self, head: RunHead, texts: Mapping[str, bytes]) -> None:
        with self._writing() as execute:
            execute(f"INSERT INTO runs ({_HEAD}) VALUES ({_marks(RunHead)})", astuple(head))
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

    def fork(self, old: str, new: str, places: Iterable[str]) -> None:
        """Copy a run with the effects at some places, unless the new run exists."""
        with self._writing() as execute:
            if execute("SELECT 1 FROM runs WHERE run = ?", (new,)).fetchone():
                return
            names = _HEAD.replace("run, state,", "").replace("result, error,", "")
            execute(
                f"INSERT INTO runs (run, state, {names}) SELECT ?, 'running', {names} FROM runs WHERE run = ?",
                (new, old),
            )
            for place in places:
                execute(
                    f"INSERT INTO effects (run, {_ROW}) SELECT ?, {_ROW} FROM effects WHERE run = ? AND place = ?",
                    (new, old, place),
                )
            execute("INSERT INTO uses SELECT ?, digest FROM uses WHERE run = ?", (new, old))

    def remove(self, run: str) -> None:
        with self._writing() as execute:
            for table in ("runs", "effects", "uses"):
                execute(f"DELETE FROM {table} WHERE run = ?", (run,))

    def remove_unused_texts(self) -> None:
        with self._writing() as execute:
            execute("DELETE FROM texts WHERE digest NOT IN (SELECT digest FROM uses)", ())

    # --- effects ---

    def rows(self, run: str) -> list[Row]:
        return self._read(Row, f"SELECT {_ROW} FROM effects WHERE run = ? ORDER BY started, place", run)

    def put(self, run: str, row: Row, texts: Mapping[str, bytes]) -> None:
        """Add an effect, or replace the effect of its place."""
        with self._writing() as execute:
            execute(f"INSERT OR REPLACE INTO effects (run, {_ROW}) VALUES (?, {_marks(Row)})", (run, *astuple(row)))
            _add_texts(execute, run, texts)

    def decide(self, run: str, decisions: Mapping[str, bytes], texts: Mapping[str, bytes]) -> None:
        with self._writing() as execute:
            _add_texts(execute, run, texts)
            for place, decision in decisions.items():
                execute("UPDATE effects SET decision = ? WHERE run = ? AND place = ?", (decision, run, place))

    def text(self, digest: str) -> object:
        """Return the packed text of a digest. Raises ``LookupError``."""
        with self._using():
            found = self._open().execute("SELECT data FROM texts WHERE digest = ?", (digest,)).fetchone()
        if found is None:
            raise LookupError(f"no text {digest!r:.80}")
        return found[0]

    # --- the connection ---

    def _read(self, kind: type[R], query: str, *values: str) -> list[R]:
        with self._using():
            rows = self._open().execute(query, values).fetchall()
        return [kind(*row) for row in rows]

    @contextmanager
    def _using(self) -> Generator[None]:
        try:
            with self._lock:
                yield
        except (OSError, sqlite3.Error) as error:
            raise StateError(
                f"{str(self.path)!r} is not a journal, or cannot be used: {error} (opening the journal). Name a file of its "
                "own, in a folder that exists on a local disk."
            ) from error

    @contextmanager
    def _writing(self) -> Generator[Any]:
        with self._using():
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection.execute
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                _prepare(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._closing = weakref.finalize(self, connection.close)
        return self._connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    kind, number = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if (kind, number) == (_APPLICATION, _FORMAT):
        return
    if kind == _APPLICATION:
        raise StateError(
            f"{str(path)!r} is a journal of format {number}, not {_FORMAT}. Use the sigwire that wrote it."
        )
    _switch_to_wal(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:  # another process was not first
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise StateError(f"{str(path)!r} is another kind of database (opening the journal). Name another file.")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to write-ahead logging. SQLite does not wait for other connections that do the same."""
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _marks(kind: type[Row] | type[RunHead]) -> str:
    return ", ".join("?" * len(fields(kind)))


def _add_texts(execute: Any, run: str, texts: Mapping[str, bytes]) -> None:
    for digest, data in texts.items():
        execute("INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest, data))
        execute("INSERT OR IGNORE INTO uses VALUES (?, ?)", (run, digest))


_inherited: list[sqlite3.Connection | None] = []  # never closed
