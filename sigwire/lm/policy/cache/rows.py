"""The form of the cache's file, and values that are checked before they are trusted. No state."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

from sigwire.files.database import Form
from sigwire.files.packing import deflate, inflate

__all__ = ["BROKEN_FILE", "FORM", "LARGEST_VALUE", "bytes_in_use", "clear", "count", "pack", "prepare", "unpack"]

LARGEST_VALUE = 16 << 20  # bytes
BROKEN_FILE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})  # error codes of a file that must be replaced
_MOST_INFLATED = 64 << 20
_DIGEST = 16
_SHORT = 4096  # bytes: inflating costs more than reading them
_KEY = 32
_SCHEMA = (
    "CREATE TABLE answers (key BLOB UNIQUE NOT NULL, at REAL NOT NULL, used REAL NOT NULL, size INTEGER NOT NULL, "
    "value BLOB NOT NULL)",
    "CREATE INDEX answers_used ON answers (used)",
)
FORM = Form(
    ";".join(_SCHEMA),
    settings=(
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "synchronous = NORMAL",
        "journal_size_limit = 67108864",
    ),
    restarts=True,
    first_settings=("auto_vacuum = INCREMENTAL",),
    wal=True,
    busy_seconds=0.05,
)


def prepare(connection: sqlite3.Connection) -> None:
    """Set up a connection. Raises ``sqlite3.DatabaseError`` for a file with other tables, indexes or triggers."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * LARGEST_VALUE)
    if _schema_of(connection) != {*_SCHEMA, None}:
        error = sqlite3.DatabaseError("not a file of this cache")
        error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
        raise error
    connection.text_factory = bytes  # a row of another form must not fail to decode


def _schema_of(connection: sqlite3.Connection) -> set[str | None]:
    return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema")}


def bytes_in_use(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file that hold data."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def clear(connection: sqlite3.Connection) -> None:
    """Delete all entries and shrink the file."""
    connection.execute("DELETE FROM answers")
    connection.execute("PRAGMA incremental_vacuum").fetchall()


def count(connection: sqlite3.Connection) -> int:
    """Return the number of entries."""
    count: int = connection.execute("SELECT count(*) FROM answers").fetchone()[0]
    return count


def pack(key: bytes, json: bytes) -> bytes:
    """Return the value of a row: a digest, then the JSON (a list or an object), compressed if it is long.

    >>> unpack(b"k" * 32, pack(b"k" * 32, b"{}")), unpack(b"x" * 32, pack(b"k" * 32, b"{}"))
    (b'{}', None)
    """
    digest = blake2b(key + json, digest_size=_DIGEST).digest()
    return digest + (json if len(json) < _SHORT else deflate(json, 1))


def unpack(key: bytes, value: object) -> bytes | None:
    """Return the JSON of a value; ``None`` if it is not the value of this key."""
    if not isinstance(value, bytes) or len(key) != _KEY or len(value) > LARGEST_VALUE:
        return None
    json = value[_DIGEST:]
    if not json.startswith((b"[", b"{")):  # no JSON: compressed
        try:
            json = inflate(json, _MOST_INFLATED)
        except ValueError:
            return None
    return json if blake2b(key + json, digest_size=_DIGEST).digest() == value[:_DIGEST] else None
