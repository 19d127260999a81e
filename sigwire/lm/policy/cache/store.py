"""Answers on disk: one SQLite file that processes share.

A row is the key, two times, a size and the value: a digest of key and JSON, then the JSON, compressed if it is long. A read row
is hostile until it is parsed: one of another form, a swapped one, one that inflates without end is a miss and is deleted. A
file that is damaged, or of another program, is renamed by the process that gets the lock exclusively; the others go on in
memory.

Nothing here raises: a failed look-up is a miss, a failed write is dropped, and both are counted. ``files/database.py`` has the
connection.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, TypeVar, TypeVarTuple

from sigwire.effects.forks import reset_when_forked
from sigwire.files.database import Database, OtherForm
from sigwire.files.lock import HeldFile, lock_file
from sigwire.lm.policy.cache.folder import RefusedFolder, check_file, make_folder
from sigwire.lm.policy.cache.rows import (
    BROKEN_FILE,
    FORM,
    LARGEST_VALUE,
    bytes_in_use,
    clear,
    count,
    pack,
    prepare,
    unpack,
)

__all__ = ["DiskStore", "StoredAnswer"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
StoredAnswer: TypeAlias = tuple[bytes, float]
"""A stored JSON text, and the time when it was stored."""

_FILE, _LOCK_FILE = "cache-1.sqlite3", "cache.lock"
_USED_EVERY = 3600.0  # seconds: hits of an entry write its time once in these
_EVICT_ROWS = 200
_CHECK_EVERY = 64  # writes between two looks at the size of the file


class DiskStore:
    """The file in ``folder``, opened on first use. ``counts`` has what happened, by name.

    ``refused`` is called once with the reason if the folder is not safe to use.
    """

    def __init__(
        self,
        folder: Path,
        limit: int,
        *,
        clock: Callable[[], float] = time.time,
        refused: Callable[[str], object] = lambda reason: None,
    ) -> None:
        self.path = folder / _FILE
        self.counts: Counter[str] = Counter()
        self._limit, self._clock, self._refused = limit, clock, refused
        self._lock = threading.Lock()
        self._database = Database(self.path, FORM, prepare)
        self._file_lock: HeldFile | None = None
        self._is_off = False
        self._writes = 0
        self._inode: int | None = None
        reset_when_forked(self)

    # --- entries

    def get(self, key: bytes, oldest: float = 0.0) -> StoredAnswer | None:
        """Return the answer of a key, ``None`` if there is none that was stored after ``oldest``."""
        with self._lock:  # as ``_use``, without its calls
            try:
                if self._database.is_open or self._prepare_folder():
                    with self._database.reading() as connection:
                        return self._get(connection, key, oldest)
            except (sqlite3.Error, OSError, OtherForm) as error:
                self._fail(error, "failed")
        return None

    def _get(self, connection: sqlite3.Connection, key: bytes, oldest: float) -> StoredAnswer | None:
        row = connection.execute("SELECT value, at, used FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        value, at, used = row
        text = unpack(key, value)
        if text is None or type(at) is not float or type(used) is not float:
            self._delete(connection, key)
            return None
        if at < oldest:
            return None
        now = self._clock()
        if abs(now - used) > _USED_EVERY:
            with suppress(sqlite3.OperationalError):  # locked
                connection.execute("UPDATE answers SET used = ? WHERE key = ?", (now, key))
        return text, at

    def put(self, key: bytes, json: bytes) -> None:
        """Store an answer, in a transaction of its own."""
        value = pack(key, json)
        if len(value) > LARGEST_VALUE:
            self.counts["dropped"] += 1
        else:
            self._use(self._put, key, value, failed="dropped")

    def _put(self, connection: sqlite3.Connection, key: bytes, value: bytes) -> None:
        now = self._clock()
        connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", (key, now, now, len(value), value))
        self.counts["stored"] += 1
        self._writes += 1
        if self._writes % _CHECK_EVERY == 1 or len(value) > self._limit // 100:
            self._evict(connection)

    def drop(self, key: bytes) -> None:
        """Delete an entry whose JSON is no answer."""
        self._use(self._delete, key)

    def _delete(self, connection: sqlite3.Connection, key: bytes) -> None:
        self.counts["foreign"] += 1
        connection.execute("DELETE FROM answers WHERE key = ?", (key,))

    def clear(self) -> None:
        """Delete all entries."""
        self._use(clear)

    def size(self) -> tuple[int, int]:
        """Return the number of entries and the bytes that they take in the file."""
        return self._use(lambda connection: (count(connection), bytes_in_use(connection))) or (0, 0)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._close()

    def reset_after_fork(self) -> None:
        """Begin with a new lock, in a forked child."""
        self._lock, self._file_lock = threading.Lock(), None

    def _evict(self, connection: sqlite3.Connection) -> None:
        """Delete the entries that were not used for longest, if the file is too large."""
        if bytes_in_use(connection) <= self._limit:
            return
        while bytes_in_use(connection) > self._limit * 0.9:
            done = connection.execute(
                f"DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers ORDER BY used LIMIT {_EVICT_ROWS})"
            ).rowcount
            if not done:
                break
            self.counts["evicted"] += done
        connection.execute("PRAGMA incremental_vacuum").fetchall()

    # --- the file

    def _use(self, action: Callable[[sqlite3.Connection, *Ts], T], *args: *Ts, failed: str = "failed") -> T | None:
        """Return the result of an action with the connection; ``None`` if there is none, or for an error of SQLite.

        An error is counted as ``failed``. A broken file is replaced for the next use.
        """
        with self._lock:
            try:
                if not self._database.is_open and not self._prepare_folder():
                    return None
                with self._database.reading() as connection:
                    return action(connection, *args)
            except (sqlite3.Error, OSError, OtherForm) as error:
                self._fail(error, failed)
        return None

    def _fail(self, error: Exception, failed: str) -> None:
        self.counts[failed] += 1
        if isinstance(error, OtherForm) or getattr(error, "sqlite_errorcode", 0) & 0xFF in BROKEN_FILE:
            self._replace()

    def _prepare_folder(self) -> bool:
        """Check the folder, make the file and take the shared lock. Return False if the folder is not safe to use."""
        if self._is_off:
            return False
        try:
            make_folder(self.path.parent)
            check_file(self.path)
            self._inode = self.path.stat().st_ino
            # ``BlockingIOError``: another process has the lock alone, and replaces the file.
            self._file_lock = self._file_lock or HeldFile(
                self.path.parent / _LOCK_FILE, shared=True, flags=getattr(os, "O_NOFOLLOW", 0)
            )
        except RefusedFolder as error:
            self._is_off = True
            self._refused(str(error))
            return False
        except OSError:
            self._is_off = True
            raise
        return True

    def _replace(self) -> None:
        """Rename a broken file and begin a new one. If other processes have it open, go on without a file."""
        self._close(keep_lock=True)
        lock = self._file_lock
        if lock is None or lock_file(lock.descriptor) != "locked":
            self._is_off = True
            return
        try:
            if self.path.stat().st_ino == self._inode:  # else another process has replaced it already
                stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock()))
                self.path.rename(f"{self.path}.broken-{stamp}")
                for end in ("-wal", "-shm"):
                    Path(f"{self.path}{end}").unlink(missing_ok=True)
            if self._prepare_folder():
                with self._database.reading():  # the new file gets its form
                    pass
        except (sqlite3.Error, OSError, OtherForm):
            self._is_off = True
        finally:
            lock_file(lock.descriptor, shared=True)

    def _close(self, keep_lock: bool = False) -> None:
        with suppress(sqlite3.Error):
            self._database.close()
        if self._file_lock is not None and not keep_lock:
            self._file_lock.close()
            self._file_lock = None
