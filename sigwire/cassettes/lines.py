"""The file of a cassette: a head, then a line of JSON for each effect, in the order in which the effects ended.

    {"cassette": 1, "sigwire": version}
    {"lm": 2, "place": ..., "key": ..., "model": ..., "request": ..., "response": ..., "cuts": [[milliseconds, length], ...]}
    {"tool": 3, "place": ..., "key": ..., "name": ..., "arguments": ..., "result": ...}
    {"approval": 4, "place": ..., "key": ..., "name": ..., "arguments": ..., "value": ...}
    {"durable": 5, "place": ..., "key": ..., "name": "now", "value": ...}

The first value is the number of the line. ``key`` is a digest of the question. Equal keys are used in the order of the file; a
line of the asking place goes first, so that the order of threads does not matter. Reading runs nothing.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from sigwire.cassettes.packing import MEDIA_NAME
from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.lazy import version
from sigwire.errors import StateError

__all__ = ["HEADS", "CassetteFile", "CassetteLine", "LineSet", "read_lines"]

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


_QUESTION = ("model", "request", "name", "arguments")


def read_lines(path: Path) -> list[CassetteLine]:
    """Return the lines of a file. Raises ``StateError`` for a file that is no cassette of this format."""
    number = 1
    try:
        texts = path.read_bytes().decode().removesuffix("\n").split("\n") if path.exists() else []
        head = loads(texts[0]) if texts else {"cassette": _FORMAT}
        if head.get("cassette") != _FORMAT:
            raise ValueError(f"its format is {head.get('cassette')!r}, not {_FORMAT}")
        lines: list[CassetteLine] = []
        for number, text in enumerate(texts[1:], 2):
            data = loads(text)
            lines.append(CassetteLine(number, next(head for head in HEADS if head in data), data))
        return lines
    except (ValueError, TypeError, AttributeError, StopIteration) as error:
        why = str(error) or "a line of another kind"
        raise StateError(
            f"{path}, line {number}, cannot be read: {why} (opening the cassette). Correct the line, or record again."
        ) from error


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
    """Writes lines. ``replaces``: into another file, which takes the place of the old one when it is complete."""

    def __init__(self, path: Path, *, replaces: bool) -> None:
        self._path, self._replaces = path, replaces
        self._target = path.with_name(f"{path.name}.part") if replaces else path
        self._lock, self._media = threading.Lock(), set[str]()
        path.parent.mkdir(parents=True, exist_ok=True)
        has_head = not replaces and path.exists() and path.stat().st_size > 0
        self._count = len(path.read_bytes().splitlines()) if has_head else 1
        self._file = self._target.open("wb" if replaces else "ab")
        if not has_head:
            self._write(dumps({"cassette": _FORMAT, "sigwire": version()}))

    @property
    def folder(self) -> Path:
        """The folder of media."""
        return self._path.with_name(f"{self._path.stem}.media")

    def add(self, head: str, data: JsonObject, media: Mapping[str, bytes]) -> None:
        """Write a line, after the files of media that it names."""
        with self._lock:
            self._count += 1
            text = dumps({head: self._count, **data})
            for name in {name for name in media if name in text} - self._media:
                self.folder.mkdir(exist_ok=True)
                (self.folder / name).write_bytes(media[name])
                self._media.add(name)
            self._write(text)

    def _write(self, text: str) -> None:
        # Half of a surrogate pair, which UTF-8 cannot encode, becomes its escape in JSON.
        self._file.write(f"{text}\n".encode("utf-8", "backslashreplace"))
        self._file.flush()

    def close(self, *, complete: bool) -> None:
        self._file.close()
        if not self._replaces:
            return
        if not complete:
            self._target.unlink()
            return
        self._target.replace(self._path)
        for path in self.folder.glob("*") if self.folder.is_dir() else ():
            if MEDIA_NAME.fullmatch(path.name) and path.name not in self._media:
                path.unlink()
