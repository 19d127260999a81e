"""One SQLite file and its one connection of a process: opening, the form of a new file, transactions, forks.

A file is new if it has no table and no mark (``application_id``, ``user_version``). A new file gets its form in one
transaction, after a second look: another process may have been first. A file of another form keeps its bytes.

SQLite keeps the locks of a file in memory, by inode. A forked child inherits them, and no release of the parent reaches it: a
lock that another thread held stays held for ever. So the connection is closed before a fork, in a moment in which no thread
uses it; parent and child open their own at the next use. A connection that cannot be closed (its transaction is that of the
forking thread, it holds its file exclusively, or a thread does not end its transaction within seconds) stays open in the
parent and unclosed in the child, also when the child ends (sqlite.org/howtocorrupt.html, 2.6).

A database knows its file until ``close``, over forks, too. A file that was removed meanwhile is an error: a new one would begin
from nothing. A file of the right form that took its place, such as a backup, is opened.

Raises ``sqlite3.Error``, ``OSError`` and ``OtherForm``: each store has its own errors and words.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from sigwire.effects.forks import pause_when_forking
from sigwire.effects.waiting import acquire, sleep
from sigwire.files.whole import FULL_DISK

__all__ = ["Database", "FileTrouble", "Form", "OtherForm", "make_private", "trouble_of"]

FileTrouble: TypeAlias = Literal["full", "busy", "other"]
"""``full``: the disk has no space, or cannot be written. ``busy``: another connection has the file."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a file. ``schema``: statements; ``application`` and ``number``: its marks.

    ``settings``: pragmas of each connection; ``first_settings``: of a new file, before its tables. ``exclusive``: a connection
    holds the file until it is closed, and no other one uses it. ``restarts``: a file that was removed is made again.
    ``busy_seconds``: the wait for other connections.
    """

    schema: str
    application: int = 0
    number: int = 1
    settings: tuple[str, ...] = ()
    first_settings: tuple[str, ...] = ()
    wal: bool = False
    exclusive: bool = False
    restarts: bool = False
    busy_seconds: float = 10.0


class OtherForm(Exception):
    """The file is of another form. ``number``: that of another version of the program, ``None`` for a foreign file."""

    def __init__(self, number: int | None) -> None:
        self.number = number
        super().__init__("another kind of database" if number is None else f"format {number}")


class _OpenFile:
    """The connection of a process, and the lock of its threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.connection: sqlite3.Connection | None = None
        self.closing: weakref.finalize[..., Database] | None = None
        self.file: tuple[int, int] | None = None  # device and inode, from the first opening until ``close``
        self.uses = 0  # of the thread that has the lock
        self.forking: int | None = None  # the thread that has the lock while it forks


class Database:
    """The file at ``path``, opened by its first use, and made for its user alone if it is missing. Used from any thread.

    ``prepare`` is called with each new connection, before any other use.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "notes.sqlite3"), Form("CREATE TABLE notes (text TEXT)", application=7))
    ...     with database.writing() as connection:
    ...         _ = connection.execute("INSERT INTO notes VALUES ('kept')")
    ...     with database.reading() as connection:
    ...         connection.execute("SELECT text FROM notes").fetchall()
    ...     database.close()
    [('kept',)]
    """

    def __init__(
        self, path: Path, form: Form, prepare: Callable[[sqlite3.Connection], object] = lambda connection: None
    ) -> None:
        self.path = Path(path).absolute()  # the process may change its folder
        self._form, self._prepare = form, prepare
        self._state = _OpenFile()
        pause_when_forking(self)

    @property
    def is_open(self) -> bool:
        """Whether this process has a connection."""
        return self._state.connection is not None

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Give the connection to one thread. Each statement is a transaction of its own."""
        return _Use(self._state, self._open)

    @contextmanager
    def writing(self, setting: str = "") -> Generator[sqlite3.Connection]:
        """Give the connection in a transaction, which is committed at the end, and rolled back on an error.

        ``setting``: a pragma of the connection that is set before, as ``synchronous``, which cannot change in a transaction.

        Raises ``FileNotFoundError`` if the file was removed: the transaction would be in a file without a name. So it does for
        a file that was replaced inside of a use by the same thread.
        """
        state = self._state
        with _Use(state, self._open) as connection:
            if (found := _identity(self.path)) != state.file:
                if found is None or state.uses > 1:
                    raise self._missing()
                _close(state)
                connection = self._open(state)
            if setting and state.uses == 1:
                connection.execute(f"PRAGMA {setting}")
            with _transaction(connection, "BEGIN IMMEDIATE"):
                yield connection

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
        state = self._state
        with state.lock:
            _close(state)
            state.file = None

    # --- opening

    def _open(self, state: _OpenFile) -> sqlite3.Connection:
        if self.path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self.path))
        if state.file is None or self._form.restarts:
            make_private(Path(os.path.realpath(self.path)))  # a link may lead to a file that does not exist yet
        elif (found := _identity(self.path)) is None or (found != state.file and self._has_old_log()):
            raise self._missing()
        connection = sqlite3.connect(
            self.path, timeout=self._form.busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            for setting in self._form.settings:
                connection.execute(f"PRAGMA {setting}").fetchall()
            self._give_form(connection, state)
            self._prepare(connection)
            file = _identity(self.path)
        except BaseException:
            connection.close()
            raise
        state.connection, state.file = connection, file
        state.closing = weakref.finalize(self, connection.close)
        return connection

    def _give_form(self, connection: sqlite3.Connection, state: _OpenFile) -> None:
        form = self._form
        # With an exclusive lock, a read would keep a shared one, which stops the first write of every other connection.
        with _transaction(connection, "BEGIN IMMEDIATE" if form.exclusive else "BEGIN"):
            is_new = self._is_new(connection)
        if not is_new:
            return
        if state.file is not None and not form.restarts:
            raise self._missing()
        for setting in form.first_settings:
            connection.execute(f"PRAGMA {setting}").fetchall()
        if form.wal:
            _switch_to_wal(connection, form.busy_seconds)
        with _transaction(connection, "BEGIN IMMEDIATE"):
            if not self._is_new(connection):  # another process was first
                return
            for statement in form.schema.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {form.application}")
            connection.execute(f"PRAGMA user_version = {form.number}")

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """Return False for a file of this form. Raises ``OtherForm``. In a transaction: a file may get its form meanwhile."""
        application, number, tables = (connection.execute(query).fetchone()[0] for query in _MARKS)
        form = self._form
        if (application, number) == (form.application, form.number) and (application or tables):
            return False
        if application or number or tables:
            raise OtherForm(number if application and application == form.application else None)
        return True

    def _has_old_log(self) -> bool:
        """Return True for a write-ahead log: it may be that of the file before, and would be written into this one."""
        log = Path(f"{os.path.realpath(self.path)}-wal")
        return self._form.wal and log.exists() and log.stat().st_size > 0

    def _missing(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "the file was removed or replaced while it was open", str(self.path))

    # --- forks

    def pause_for_fork(self, end: float) -> None:
        """Close the connection when no thread uses it, and keep the lock."""
        state = self._state
        if state.lock.acquire(timeout=max(end - time.monotonic(), 0)):
            state.forking = threading.get_ident()
            if not state.uses and not self._form.exclusive:
                _close(state)

    def resume_after_fork(self) -> None:
        """Free the lock; the next use opens the connection again."""
        state = self._state
        if state.forking == threading.get_ident():
            state.forking = None
            state.lock.release()

    def reset_after_fork(self) -> None:
        """Begin with a new lock, and leave a connection of the parent unclosed."""
        state, self._state = self._state, _OpenFile()
        self._state.file = state.file
        if state.closing is not None:
            state.closing.detach()
            _never_free(state.connection)


class _Use:
    """One use of a connection. A class: a generator takes a microsecond more, and a look-up of the cache takes six."""

    __slots__ = ("_open", "_state")

    def __init__(self, state: _OpenFile, open: Callable[[_OpenFile], sqlite3.Connection]) -> None:
        self._state, self._open = state, open  # a fork inside the block gives the child another state

    def __enter__(self) -> sqlite3.Connection:
        state = self._state
        acquire(state.lock)
        try:
            connection = state.connection or self._open(state)
        except BaseException:
            state.lock.release()
            raise
        state.uses += 1
        return connection

    def __exit__(self, *error: object) -> None:
        self._state.uses -= 1
        self._state.lock.release()


_MARKS = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
_inherited: list[object] = []  # connections of parents: closing one would damage the file


def _never_free(connection: object) -> None:
    """Keep an object to the end of the process, and after it: the interpreter frees all that it knows when it ends."""
    _inherited.append(connection)
    if sys.implementation.name == "cpython":
        with suppress(ImportError):
            import ctypes  # a child with an open connection of its parent is rare

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def trouble_of(error: Exception) -> FileTrouble:
    """Return what an error of a ``Database`` is about.

    >>> trouble_of(OSError(errno.ENOSPC, "No space left on device"))
    'full'
    """
    if isinstance(error, OSError):
        return "full" if error.errno in FULL_DISK else "other"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return "full" if code in _FULL else "busy" if code in _BUSY else "other"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def make_private(path: Path) -> None:
    """Make a file that only its user can read and write. A file that exists stays as it is.

    It is not even opened: closing it would free the locks that the process has on it (sqlite.org/howtocorrupt.html, 2.2).
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Generator[None]:
    process = os.getpid()
    connection.execute(begin)
    try:
        yield
        if os.getpid() != process:
            raise sqlite3.ProgrammingError("the transaction is that of the parent process")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction and os.getpid() == process:  # a full disk ends the transaction
            connection.execute("ROLLBACK")
        raise


def _close(state: _OpenFile) -> None:
    if state.closing is not None:
        state.closing()
    state.connection = state.closing = None


def _switch_to_wal(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch the file to write-ahead logging. SQLite does not wait for other connections that do the same."""
    end = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() > end:
                raise
        sleep(0.01)


_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
