"""The journal of rows: what a worker started and finished, for the chunk that runs again after a worker was lost.

A block is a folder with one file for each attempt, ``<host>-<pid>-<ns>.jsonl``; a chunk and its parts share the block:

    {"start": ["row 7", 1]}                                        before the first call of a row
    {"done": ["row 7", 1], "record": {...}}                        after its last

The process of an attempt holds the lock of its file. A start without its end in a file without a holder is a lost row. A full
disk and a killed process leave whole lines. Files are 0600 in folders of 0700: they hold users' data.
With a file ``stopped`` in a block no row of it may start: the driver was interrupted.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.errors import StateError
from sigwire.files.lines import LineFile
from sigwire.files.lock import lock_file

__all__ = [
    "BlockState",
    "RowAttempt",
    "RowKey",
    "digest_of",
    "key_of",
    "read_block",
    "read_blocks",
    "remove_block",
    "size_of",
    "stop_block",
]

RowKey: TypeAlias = tuple[str, int]
"""The id of a row, and its repeat."""
_STOPPED = "stopped"


def key_of(row: JsonObject) -> RowKey:
    """Return the key of a row or of its record."""
    return str(row["id"]), cast(int, row["repeat"])


def digest_of(row: JsonObject) -> int:
    """Return a digest of the key of a row: 96 bits, for sets of all rows of a run, in about 100 bytes each."""
    return int.from_bytes(blake2b(json.dumps(key_of(row)).encode(), digest_size=12).digest())


@dataclass(slots=True)
class BlockState:
    """The state of a block: ``done`` has the records of finished rows, ``started`` the rows that began.

    ``lost``: the rows without a record that began in an attempt that has ended.
    """

    done: dict[RowKey, JsonObject] = field(default_factory=dict[RowKey, JsonObject])
    started: set[RowKey] = field(default_factory=set[RowKey])
    lost: set[RowKey] = field(default_factory=set[RowKey])


def read_block(block: Path) -> BlockState:
    """Return the state of a block. Torn lines count as not written; a folder that is missing is an empty block."""
    state = BlockState()
    for file in sorted(block.glob("*.jsonl")):
        has_ended = not _is_held(file)  # asked first: an attempt that ends meanwhile has all its lines
        for line in file.read_bytes().splitlines():
            try:
                entry: JsonObject = loads(line)
            except ValueError:  # the process was killed while it wrote
                continue
            try:
                if "start" in entry:
                    state.started.add(key := _key(entry["start"]))
                    if has_ended:
                        state.lost.add(key)
                elif "done" in entry:
                    record = cast(JsonObject, entry["record"])
                    key_of(record)
                    state.done.setdefault(_key(entry["done"]), record)
            except (TypeError, ValueError, LookupError) as error:
                raise StateError(
                    f"{file} has a line that no worker wrote: {error!r:.100} (reading the journal of rows). Remove the folder "
                    f"{block.parent}: its rows run again."
                ) from error
    state.lost -= state.done.keys()
    return state


def read_blocks(folder: Path) -> Iterator[JsonObject]:
    """Yield the records of all blocks in a folder: those that a killed driver did not write."""
    for block in sorted(folder.iterdir()) if folder.is_dir() else ():
        yield from read_block(block).done.values()


def size_of(folder: Path) -> int:
    """Return the bytes in all blocks of a folder."""
    return sum(file.stat().st_size for file in folder.glob("*/*.jsonl"))


def _is_held(file: Path) -> bool:
    """Return True if a process has the lock of an attempt. Where files have no locks, an attempt counts as ended."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return lock_file(descriptor, shared=True) == "busy"
    finally:
        os.close(descriptor)


def _key(value: JsonValue) -> RowKey:
    name, repeat = cast("list[JsonValue]", value)
    if not isinstance(repeat, int):
        raise TypeError(f"a repeat is a number, not {type(repeat).__name__}")
    return str(name), repeat


def stop_block(block: Path) -> None:
    """Let no more rows of a block start, in any worker that sees its folder."""
    block.mkdir(mode=0o700, parents=True, exist_ok=True)
    (block / _STOPPED).touch(mode=0o600)


def remove_block(block: Path) -> None:
    """Remove a block whose records are on disk."""
    shutil.rmtree(block, ignore_errors=True)


class RowAttempt:
    """The file of one attempt at a chunk. Without a block nothing is written."""

    def __init__(self, block: Path | None) -> None:
        self._block, self._file = block, cast("LineFile | None", None)
        if block is not None:
            block.mkdir(mode=0o700, parents=True, exist_ok=True)
            name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}.jsonl"
            # Unsynced: a worker is killed more often than its machine, and runs its rows again if the lines are lost.
            self._file = LineFile(block / name, mode=0o600, sync_seconds=None)

    def is_stopped(self) -> bool:
        """Return True if the driver wants no row to start."""
        return self._block is not None and (self._block / _STOPPED).exists()

    def start(self, row: JsonObject) -> None:
        """Write that a row begins."""
        self._write({"start": [*key_of(row)]})

    def done(self, record: JsonObject) -> None:
        """Write the record of a row."""
        self._write({"done": [*key_of(record)], "record": record})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, entry: JsonObject) -> None:
        if self._file is not None:
            self._file.append(json.dumps(entry))
