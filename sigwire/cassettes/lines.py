"""The file of a cassette: a head, then a line of JSON for each effect, in the order in which the effects ended.

    {"cassette": 1, "sigwire": version}
    {"lm": 2, "place": ..., "key": ..., "model": ..., "request": ..., "response": ..., "cuts": [[milliseconds, length], ...]}
    {"tool": 3, "place": ..., "key": ..., "name": ..., "arguments": ..., "result": ...}
    {"approval": 4, "place": ..., "key": ..., "name": ..., "arguments": ..., "value": ...}
    {"durable": 5, "place": ..., "key": ..., "name": "now", "value": ...}

The first value is the number of the line. ``key`` is a digest of the question, with the ``sample`` if it has one. Equal
keys are used in the order of the file; a line of the asking place goes first, so that the order of threads does not matter.
Reading runs nothing.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from sigwire.cassettes.packing import MEDIA_NAME
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.lazy import version
from sigwire.core.narrow import is_object
from sigwire.errors import StateError
from sigwire.files import lines as line_files
from sigwire.files.lines import BrokenLine, LineFile
from sigwire.files.lock import HeldFile
from sigwire.files.whole import write_whole

__all__ = ["HEADS", "CassetteFile", "CassetteLine", "LineSet", "read_lines", "without_failures"]

HEADS = ("lm", "tool", "approval", "durable")
_FORMAT = 1
_SHOWN = 4000  # characters of two questions that are compared


@dataclass(slots=True, eq=False)
class CassetteLine:
    """A recorded effect. ``number`` counts the lines of the file from 1, the head included."""

    number: int
    head: str
    data: JsonObject
    used: bool = False

    @property
    def place(self) -> str:
        return str(self.data.get("place"))

    def question(self) -> JsonObject:
        """Return the fields of the line that identify its effect."""
        return {name: self.data[name] for name in _QUESTION if name in self.data}

    @property
    def may_pass(self) -> bool:
        """Whether the effect ended with a failure of the provider that the same question may not meet again."""
        error = self.data.get("error")
        return self.head == "lm" and is_object(error) and error.get("retryable") is True


_QUESTION = ("model", "request", "sample", "name", "arguments")


def read_lines(path: Path) -> list[CassetteLine]:
    """Return the lines of a file, without a torn end. Raises ``StateError`` for a file that is no cassette of this format."""
    try:
        return _lines_of(path, line_files.read_lines(path) if path.exists() else [])
    except (BrokenLine, OSError) as error:
        raise _file_error(path, error) from error


def _lines_of(path: Path, rows: list[JsonObject]) -> list[CassetteLine]:
    number = 1
    try:
        if rows and (form := rows[0].get("cassette")) != _FORMAT:
            raise ValueError(f"its format is {form!r}, not {_FORMAT}")
        lines: list[CassetteLine] = []
        for number, data in enumerate(rows[1:], 2):
            if not is_object(data):
                raise ValueError("it is no JSON object")
            lines.append(CassetteLine(number, next(head for head in HEADS if head in data), data))
        return lines
    except (ValueError, TypeError, AttributeError, StopIteration) as error:
        raise _file_error(path, BrokenLine(number, str(error) or "a line of another kind")) from error


def _file_error(path: Path, error: Exception) -> StateError:
    if isinstance(error, BrokenLine):
        return StateError(
            f"{path}, line {error.number}, cannot be read: {error.why} (opening the cassette). Correct the line, or record "
            "again."
        )
    if isinstance(error, BlockingIOError):
        return StateError(
            f"{path} is being recorded by another block or process (opening the cassette). Wait for its end, or name another "
            "file."
        )
    return StateError(
        f"{path} cannot be used: {getattr(error, 'strerror', None) or error} (reading or writing the cassette). Free space "
        "on its disk, or name a file in a folder that you can write; the lines before are kept."
    )


def without_failures(lines: Sequence[CassetteLine], *, all_of_them: bool) -> list[CassetteLine]:
    """Return lines without failures that may pass: all of them, or those whose question has an answer in a later line."""
    answered = set[object]()
    kept: list[CassetteLine] = []
    for line in reversed(lines):
        if line.may_pass and (all_of_them or line.data.get("key") in answered):
            continue
        kept.append(line)
        answered.add(line.data.get("key"))
    return kept[::-1]


class LineSet:
    """The lines that a program may use, once each. Used from any thread."""

    def __init__(self, lines: Iterable[CassetteLine]) -> None:
        self.lines = list(lines)
        self._by_key: defaultdict[tuple[str, str], list[CassetteLine]] = defaultdict(list)
        self._lock = threading.Lock()
        for line in self.lines:
            self._by_key[line.head, str(line.data.get("key"))].append(line)

    def take(self, head: str, key: str, place: str) -> CassetteLine | None:
        """Return the line of a key, and mark it as used: that of the place, else the first."""
        with self._lock:
            unused = [line for line in self._by_key.get((head, key), ()) if not line.used]
            found = next((line for line in unused if line.place == place), unused[0] if unused else None)
            if found is not None:
                found.used = True
            return found

    def nearest(self, head: str, place: str, question: Mapping[str, JsonValue]) -> CassetteLine | None:
        """Return the line of the same place, else the one with the most similar question."""
        lines = [line for line in self.lines if line.head == head]
        text = dumps(question)[-_SHOWN:]

        def likeness(line: CassetteLine) -> tuple[bool, float]:
            return line.place == place, SequenceMatcher(None, dumps(line.question())[-_SHOWN:], text).quick_ratio()

        return max(lines, key=likeness, default=None)

    def unused(self, heads: Iterable[str]) -> list[CassetteLine]:
        return [line for line in self.lines if not line.used and line.head in heads]


class CassetteFile:
    """Writes lines. ``replaces``: into another file, which takes the place of the old one when it is complete.

    ``lines``: those that the file has. Raises ``StateError`` if another block or process records it, and for a full disk.
    """

    def __init__(self, path: Path, *, replaces: bool) -> None:
        self._path, self._replaces = path, replaces
        self._lock, self._media = threading.Lock(), set[str]()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._held = HeldFile(self._lock_path)
            try:
                self._open()
            except BaseException:
                self._release()
                raise
        except (OSError, BrokenLine) as error:
            raise _file_error(path, error) from error

    def _open(self) -> None:
        self._file = LineFile(self.part if self._replaces else self._path, empty=self._replaces)
        try:
            rows, self._file.rows = self._file.rows, []
            self.lines, self._count = _lines_of(self._path, rows), max(len(rows), 1)
            if not rows:
                self._file.append(dumps({"cassette": _FORMAT, "sigwire": version()}))
        except BaseException:
            self._file.close()
            raise

    @property
    def part(self) -> Path:
        """The file of a recording that is not complete."""
        return self._path.with_name(f"{self._path.name}.part")

    @property
    def _lock_path(self) -> Path:
        """The lock of all modes: a recording that replaces the file, and one that appends to it, write into different files."""
        return self._path.with_name(f".{self._path.name}.lock")

    @property
    def folder(self) -> Path:
        """The folder of media."""
        return self._path.with_name(f"{self._path.stem}.media")

    def add(self, head: str, data: JsonObject, media: Mapping[str, bytes]) -> None:
        """Write a line, after the files of media that it names."""
        if self._held.descriptor < 0:
            raise StateError(
                f"The cassette {self._path} was opened by the parent process (recording a line). Open one in the child, with "
                "another file."
            )
        with self._lock:
            text = dumps({head: self._count + 1, **data})
            try:
                for name in {name for name in media if name in text} - self._media:
                    self.folder.mkdir(exist_ok=True)
                    write_whole(self.folder / name, media[name])
                    self._media.add(name)
                self._file.append(text)
            except OSError as error:
                raise _file_error(self._path, error) from error
            self._count += 1

    def close(self, *, complete: bool) -> int:
        """Close the file. Return how many lines of a recording that is not complete are kept in ``part``."""
        if self._held.descriptor < 0:  # in a forked child
            return 0
        try:
            self._file.close()
            if self._replaces and complete:
                self.part.replace(self._path)
                self._remove_old_media()
        except OSError as error:
            raise _file_error(self._path, error) from error
        finally:
            self._release()
        if not self._replaces or complete:
            return 0
        if self._count == 1:
            self.part.unlink(missing_ok=True)
        return self._count - 1

    def _remove_old_media(self) -> None:
        for path in self.folder.glob("*") if self.folder.is_dir() else ():
            if MEDIA_NAME.fullmatch(path.name) and path.name not in self._media:
                path.unlink()

    def _release(self) -> None:
        with suppress(OSError):  # Windows removes no open file
            os.unlink(self._lock_path)
        self._held.close()
