"""The file of a ``BatchLM``: batches, and the lines in them. What was sent, and what came back, survives the process.

The intent to create a batch is committed before its first request, with the ids of its lines. A line without an answer belongs
to a batch that is under way, or in doubt. The bodies of lines are not stored: the programs make them again.

A line whose result did not come keeps a mark: it is sent a second time, and then its answer is an error (status ``LOST``).

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

__all__ = ["FORM", "LOST", "BatchStore", "StoredBatch", "StoredLine"]

_SCHEMA = """
CREATE TABLE batches (number INTEGER PRIMARY KEY, provider TEXT NOT NULL, base TEXT NOT NULL, mark TEXT NOT NULL,
  name TEXT, created REAL NOT NULL, lines INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE lines (id TEXT PRIMARY KEY, batch INTEGER NOT NULL, status INTEGER, answer BLOB) WITHOUT ROWID;
CREATE INDEX lines_of_batch ON lines (batch) WHERE status IS NULL;
"""
_TABLES_OF_DOUBT = (  # made when they are needed: a file without a doubt has the form of every version
    "CREATE TABLE IF NOT EXISTS missed (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS doubts (batch INTEGER PRIMARY KEY, since REAL NOT NULL)",
)
LOST = 410
"""The status of a line that was perhaps paid and has no result; its answer is the text of the error. No provider's answer has
it: only answers that a repetition would have again are stored."""
FORM = Form(
    _SCHEMA,
    settings=("locking_mode = EXCLUSIVE", "synchronous = FULL"),
    exclusive=True,
    busy_seconds=2.0,  # a BatchLM of this process may be about to close the file
)
_COLUMNS = "number, provider, base, mark, name, created, lines, state"


class StoredBatch(NamedTuple):
    """A batch. ``name``: the provider's, ``None`` before it is known. ``created``: seconds since 1970. ``lines``: their number.

    ``state``: "intent": its creation had no reply yet; "running"; "ended"; "failed": it was never made; "orphan": it was not
    found, and its lines were sent again; "lost": the provider has no results of it any more.
    """

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

    def lines_of(self, number: int) -> dict[str, int | None]:
        """Return the status of each line of a batch, ``None`` for those without an answer, ordered by id."""
        with self._using(self._database.reading()) as connection:
            return dict(connection.execute("SELECT id, status FROM lines WHERE batch = ? ORDER BY id", (number,)))

    def set_in_doubt(self, number: int, now: float) -> float:
        """Commit that the provider does not show a batch, or results of it; return since when it does not."""
        with self._using(self._database.writing()) as connection:
            _allow_doubts(connection)
            connection.execute("INSERT OR IGNORE INTO doubts VALUES (?, ?)", (number, now))
            found = connection.execute("SELECT since FROM doubts WHERE batch = ?", (number,)).fetchone()[0]
        return float(found)

    def doubts(self) -> dict[int, float]:
        """Return the batches that are in doubt, and since when."""
        with self._using(self._database.reading()) as connection:
            return dict(connection.execute("SELECT batch, since FROM doubts")) if _had_doubts(connection) else {}

    def end_doubt(self, number: int) -> None:
        """Commit that the provider shows a batch."""
        with self._using(self._database.writing()) as connection:
            connection.execute("DELETE FROM doubts WHERE batch = ?", (number,))

    def unname(self, number: int) -> None:
        """Commit that a batch of the provider was not the one that was looked for."""
        with self._using(self._database.writing()) as connection:
            connection.execute("UPDATE batches SET name = NULL, state = 'intent' WHERE number = ?", (number,))

    def keep_results(self, number: int, answers: Iterable[tuple[str, int, bytes]], unsent: Iterable[str]) -> None:
        """Commit answers of a batch that stays open, and the lines of it that become unsent."""
        with self._using(self._database.writing()) as connection:
            _keep_results(connection, number, answers, unsent)

    def finish(
        self,
        number: int,
        state: str,
        answers: Iterable[tuple[str, int, bytes]] = (),
        missed: Iterable[str] = (),
        name: str | None = None,
    ) -> None:
        """Commit the answers of a batch. Its lines without one become unsent; those that are ``missed`` get the mark."""
        with self._using(self._database.writing()) as connection:
            _keep_results(connection, number, answers, ())
            if marks := [(id,) for id in missed]:
                _allow_doubts(connection)
                connection.executemany("INSERT OR IGNORE INTO missed VALUES (?)", marks)
            connection.execute("DELETE FROM lines WHERE batch = ? AND status IS NULL", (number,))
            connection.execute(
                "UPDATE batches SET state = ?, name = ifnull(?, name) WHERE number = ?", (state, name, number)
            )
            if _had_doubts(connection):
                connection.execute("DELETE FROM doubts WHERE batch = ?", (number,))

    def missed(self, ids: Iterable[str]) -> set[str]:
        """Return those of the lines that were sent a second time already."""
        with self._using(self._database.reading()) as connection:
            marked = connection.execute("SELECT id FROM missed").fetchall() if _had_doubts(connection) else []
        return {id for (id,) in marked} & set(ids)

    def reopen_lost(self, provider: str, base: str) -> list[StoredBatch]:
        """Forget that lines of an account are lost: batches whose results were gone run again, other lines are unsent."""
        account = "batch IN (SELECT number FROM batches WHERE provider = ? AND base = ?%s)"
        with self._using(self._database.writing()) as connection:
            _allow_doubts(connection)
            for order in (
                f"DELETE FROM missed WHERE id IN (SELECT id FROM lines WHERE status = {LOST} AND {account % ''})",
                f"UPDATE lines SET status = NULL, answer = NULL WHERE status = {LOST} AND {account % _IS_LOST}",
                f"DELETE FROM lines WHERE status = {LOST} AND {account % ''}",
                f"UPDATE batches SET state = 'running' WHERE provider = ? AND base = ?{_IS_LOST}",
            ):
                connection.execute(order, (provider, base))
        return [each for each in self.batches() if each.state == "running" and each[1:3] == (provider, base)]

    def keep(self, id: str, status: int, answer: bytes) -> None:
        """Commit the answer of a line that was sent alone."""
        with self._using(self._database.writing()) as connection:
            _keep(connection, 0, id, status, answer)


def _check_columns(connection: sqlite3.Connection) -> None:
    """Read a row: other databases may have the same marks."""
    connection.execute(f"SELECT {_COLUMNS} FROM batches LIMIT 1").fetchall()


def _had_doubts(connection: sqlite3.Connection) -> bool:
    found = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name IN ('missed', 'doubts')")
    return bool(found.fetchone()[0])


def _allow_doubts(connection: sqlite3.Connection) -> None:
    for statement in _TABLES_OF_DOUBT:
        connection.execute(statement)


_IS_LOST = " AND state = 'lost'"


def _keep_results(
    connection: sqlite3.Connection, number: int, answers: Iterable[tuple[str, int, bytes]], unsent: Iterable[str]
) -> None:
    for id, status, answer in answers:
        connection.execute(
            "UPDATE lines SET status = ?, answer = ? WHERE id = ? AND batch = ? AND status IS NULL",
            (status, answer, id, number),
        )
    connection.executemany(
        "DELETE FROM lines WHERE id = ? AND batch = ? AND status IS NULL", [(id, number) for id in unsent]
    )


def _keep(connection: sqlite3.Connection, number: int, id: str, status: int, answer: bytes) -> None:
    connection.execute(
        "INSERT INTO lines VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET status = ?3, answer = ?4",
        (id, number, status, answer),
    )
