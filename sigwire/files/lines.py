"""Files of lines of JSON that one writer appends to: whole lines, a torn end, a full disk, two writers.

A process that is killed while it writes leaves a part of the last line: text without a line feed that is no JSON. A machine
that loses power may leave zeros there. Both are dropped when the file is read, and cut off when it is opened for writing. Any
other line that is no JSON is an error: a person may have edited the file, as is usual with cassettes. Records lose a
last line that is no JSON, also with its line feed (``drops_last``): no person edits them, and the row is run again.

Raises ``OSError``, ``BlockingIOError`` (another writer has the file) and ``BrokenLine``: each room has its own words for them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sigwire.core.json import loads
from sigwire.core.narrow import is_object
from sigwire.effects.forks import reset_when_forked
from sigwire.files.lock import HeldFile

__all__ = ["BrokenLine", "LineFile", "read_lines"]


class BrokenLine(ValueError):
    """A line is no JSON. ``number`` counts from 1."""

    def __init__(self, number: int, why: str) -> None:
        self.number, self.why = number, why
        super().__init__(f"line {number}: {why}")


def read_lines(path: Path, *, drops_last: bool = False) -> list[Any]:
    """Return the values of the lines of a file, without a torn end; ``drops_last``: and without a last line that is no JSON.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.jsonl")
    ...     _ = path.write_text('{"row": 1}\\n{"row": 2}\\n{"ro')
    ...     read_lines(path)
    [{'row': 1}, {'row': 2}]
    """
    with path.open("rb") as file:
        return [value for value, _ in _parse(iter(file), drops_last)]


class LineFile:
    """The file at ``path``, made with the permissions ``mode`` if it is missing; folders are not made.

    ``rows``: the values of the lines that it had when it was opened; ``empty``: they are dropped, unread. ``sync_seconds``: the
    longest time after which an appended line is forced to the disk, at the next one; ``None``: never, also not by ``close``.
    ``drops_last``: see ``read_lines``. ``visit``: is given each value in place of ``rows``, one at a time.
    A forked child has it closed. Used from any thread.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = LineFile(Path(folder, "rows.jsonl"))
    ...     _ = file.append('{"row": 1}')
    ...     file.close()
    ...     read_lines(file.path)
    [{'row': 1}]
    """

    def __init__(
        self,
        path: Path,
        *,
        mode: int = 0o666,
        empty: bool = False,
        sync_seconds: float | None = 1.0,
        drops_last: bool = False,
        visit: Callable[[Any], object] | None = None,
    ) -> None:
        self.path = path
        self._seconds, self._synced = sync_seconds, time.monotonic()
        self._lock = threading.Lock()
        self._file = HeldFile(path, flags=os.O_APPEND, mode=mode)
        try:
            self.rows = self._start(empty, drops_last, visit)
        except BaseException:
            self._file.close()
            raise
        reset_when_forked(self)

    def _start(self, empty: bool, drops_last: bool, visit: Callable[[Any], object] | None) -> list[Any]:
        """Cut off a torn end, and end the last line."""
        if empty:
            os.ftruncate(self._file.descriptor, 0)
            return []
        rows, size = list[Any](), 0
        with self.path.open("rb") as file:
            for value, size in _parse(iter(file), drops_last):  # noqa: B007  # the last size counts
                (visit or rows.append)(value)
            whole = file.seek(0, os.SEEK_END)
            file.seek(max(0, whole - 1))
            is_ended = file.read(1) in (b"", b"\n")
        if size < whole:
            os.ftruncate(self._file.descriptor, size)
        elif not is_ended:
            self._write(b"\n")
        return rows

    def append(self, text: str) -> bool:
        """Write the JSON text of a line, all of it or nothing. Return False after ``close``, and in a forked child.

        A half of a surrogate pair, which UTF-8 cannot encode, is written as its escape in JSON.
        """
        line = f"{text}\n".encode("utf-8", "backslashreplace")
        with self._lock:
            if self._file.descriptor < 0:
                return False
            self._write(line)
            if self._seconds is not None and time.monotonic() - self._synced >= self._seconds:
                self._sync()
        return True

    def sync(self) -> None:
        """Return when all lines are on disk."""
        with self._lock:
            if self._file.descriptor >= 0:
                self._sync()

    def close(self) -> None:
        """Close the file, and free it for other writers."""
        with self._lock:
            try:
                if self._file.descriptor >= 0 and self._seconds is not None:
                    self._sync()
            finally:
                self._file.close()

    def reset_after_fork(self) -> None:
        """Begin with a new lock. The file is closed: its writer is the parent."""
        self._lock = threading.Lock()

    def _sync(self) -> None:
        os.fsync(self._file.descriptor)
        self._synced = time.monotonic()

    def _write(self, line: bytes) -> None:
        rest = line
        try:
            while rest:
                rest = rest[os.write(self._file.descriptor, rest) :]
        except BaseException as error:  # a full disk; an interrupt
            if written := len(line) - len(rest):
                os.ftruncate(self._file.descriptor, os.fstat(self._file.descriptor).st_size - written)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise


def _parse(lines: Iterator[bytes], drops_last: bool) -> Generator[tuple[Any, int]]:
    """Yield the values of the lines, each with the size of the content up to its end, without a torn end."""
    size, number, line = 0, 0, next(lines, b"")
    while line.endswith(b"\n"):
        number, after = number + 1, next(lines, b"")
        try:
            value = loads(line[:-1].decode())
        except ValueError as error:
            if not after.endswith(b"\n") and (drops_last or b"\0" in line):
                return
            raise BrokenLine(number, str(error)) from error
        size += len(line)
        yield value, size
        line = after
    with suppress(ValueError):
        if is_object(row := loads(line.decode())):  # a part of an object is no JSON, so this one is whole
            yield row, size + len(line)
