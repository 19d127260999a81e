"""The file of a ``BatchLM``: batches, and the lines in them. What was sent, and what came back, survives the process.

The intent to create a batch is committed before its first request, with the ids of its lines. A line without an answer belongs
to a batch that is under way, or in doubt. The bodies of lines are not stored: the programs make them again.

One process at a time: SQLite's exclusive lock, which the kernel frees with the process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from sigwire.errors import ConfigurationError
from sigwire.files.database import Database, Form, OtherForm, trouble_of

__all__ = ["FORM", "BatchStore", "StoredBatch", "StoredLine"]

_SCHEMA = """
CREATE TABLE batches (number INTEGER PRIMARY KEY, provider TEXT NOT NULL, base TEXT NOT NULL, mark TEXT NOT NULL,
  name TEXT, created REAL NOT NULL, lines INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE lines (id TEXT PRIMARY KEY, batch INTEGER NOT NULL, status INTEGER, answer BLOB) WITHOUT ROWID;
CREATE INDEX lines_of_batch ON lines (batch) WHERE status IS NULL;
"""
FORM = Form(
    _SCHEMA,
    settings=("locking_mode = EXCLUSIVE", "synchronous = FULL"),
    exclusive=True,
    busy_seconds=2.0,  # a BatchLM of this process may be about to close the file
)
_COLUMNS = "number, provider, base, mark, name, created, lines, state"


class StoredBatch(NamedTuple):
    """A batch. ``state``: "intent", "running", "ended" or "failed". ``name``: the provider's, ``None`` for an intent."""

    number: int
    provider: str
    base: str
    mark: str
    name: str | None
    created: float
    lines: int
    state: str


class StoredLine(NamedTuple):
    """A line: the number of its batch; status and body of its result, ``None`` while it is under way."""

    batch: int
    status: int | None
    answer: bytes | None


class BatchStore:
    """The file at ``path``, made with mode 0600. Raises ``ConfigurationError`` if another process uses it.

    A forked child is another process, also for a file that its parent has open.
    """

    def __init__(self, path: Path, form: Form | None = None) -> None:
        self._database = Database(path, form or FORM, _check_columns)
        with self._using(self._database.reading(), "opening"):
            pass

    @contextmanager
    def _using(
        self, use: AbstractContextManager[sqlite3.Connection], stage: str = "using"
    ) -> Generator[sqlite3.Connection]:
        path = self._database.path
        try:
            if not self._database.is_open:
                path.parent.mkdir(parents=True, exist_ok=True)
            with use as connection:
                yield connection
        except (OSError, sqlite3.Error, OtherForm) as error:
            if trouble_of(error) == "full":
                raise ConfigurationError(
                    f"{path} cannot be written: {error} ({stage} the store of a BatchLM). Free space on its disk, then run "
                    "again: what was kept before is not paid twice."
                ) from error
            if isinstance(error, OSError) or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CANTOPEN:
                raise ConfigurationError(
                    f"{path} is no file that can be written ({stage} the store of a BatchLM): {error}."
                ) from error
            raise ConfigurationError(
                f"{path} cannot be used ({stage} the store of a BatchLM): {error}. Another process or BatchLM may use it; give "
                "each BatchLM a file of its own."
            ) from error

    def close(self) -> None:
        """Close the file and free the lock."""
        self._database.close()

    def find(self, id: str) -> StoredLine | None:
        """Return a line that was sent."""
        with self._using(self._database.reading()) as connection:
            row = connection.execute("SELECT batch, status, answer FROM lines WHERE id = ?", (id,)).fetchone()
        return row and StoredLine(*row)

    def batches(self) -> list[StoredBatch]:
        """Return all batches in the order of their creation."""
        with self._using(self._database.reading()) as connection:
            return [StoredBatch(*row) for row in connection.execute(f"SELECT {_COLUMNS} FROM batches")]

    def intend(self, provider: str, base: str, now: float, ids: Sequence[str]) -> StoredBatch:
        """Commit the intent to create a batch of these lines."""
        with self._using(self._database.writing()) as connection:
            number = connection.execute("SELECT ifnull(max(number), 0) + 1 FROM batches").fetchone()[0]
            mark = f"sigwire-{sha256(repr((number, now, sorted(ids))).encode()).hexdigest()[:32]}"
            batch = StoredBatch(number, provider, base, mark, None, now, len(ids), "intent")
            connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?)", batch)
            connection.executemany("INSERT INTO lines (id, batch) VALUES (?, ?)", [(id, number) for id in ids])
        return batch

    def set_created(self, number: int, name: str) -> None:
        """Commit the name of a created batch."""
        with self._using(self._database.writing()) as connection:
            connection.execute("UPDATE batches SET name = ?, state = 'running' WHERE number = ?", (name, number))

    def finish(self, number: int, state: str, answers: Iterable[tuple[str, int, bytes]] = ()) -> None:
        """Commit the answers of a batch. Its lines without one become unsent."""
        with self._using(self._database.writing()) as connection:
            for id, status, answer in answers:
                _keep(connection, number, id, status, answer)
            connection.execute("DELETE FROM lines WHERE batch = ? AND status IS NULL", (number,))
            connection.execute("UPDATE batches SET state = ? WHERE number = ?", (state, number))

    def keep(self, id: str, status: int, answer: bytes) -> None:
        """Commit the answer of a line that was sent alone."""
        with self._using(self._database.writing()) as connection:
            _keep(connection, 0, id, status, answer)


def _check_columns(connection: sqlite3.Connection) -> None:
    """Read a row: other databases may have the same marks."""
    connection.execute(f"SELECT {_COLUMNS} FROM batches LIMIT 1").fetchall()


def _keep(connection: sqlite3.Connection, number: int, id: str, status: int, answer: bytes) -> None:
    connection.execute(
        "INSERT INTO lines VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET status = ?3, answer = ?4",
        (id, number, status, answer),
    )
