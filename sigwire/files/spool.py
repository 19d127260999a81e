"""``Spool``: JSON values by key in a temporary file, so that memory has their places only."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Hashable
from typing import IO, Generic, TypeVar, cast

from sigwire.core.json import JsonObject, dumps

__all__ = ["Spool"]

_LENGTH = 1 << 32  # offsets and lengths share a number

K = TypeVar("K", bound=Hashable)


class Spool(Generic[K]):
    """Values by key. A value that is put again replaces the one before. Used from any thread.

    >>> spool = Spool[str]()
    >>> spool.put("a", {"n": 1})
    >>> spool.get("a"), "b" in spool, len(spool)
    ({'n': 1}, False, 1)
    >>> spool.close()
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None  # made for the first value
        self._is_closed = False
        self._lock = threading.Lock()
        self._end = 0
        self._places: dict[K, int] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def put(self, key: K, value: JsonObject) -> None:
        """Keep a value. Does nothing after ``close``: a late thread of an interrupted run may call it."""
        data = dumps(value).encode(errors="surrogatepass")
        with self._lock:
            if self._is_closed:
                return
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="sigwire-")  # noqa: SIM115  # closed by ``close``
            self._file.seek(self._end)
            self._file.write(data)
            self._places[key] = self._end * _LENGTH + len(data)
            self._end += len(data)

    def get(self, key: K) -> JsonObject:
        """Return a value. Raises ``KeyError`` for an unknown key."""
        offset, length = divmod(self._places[key], _LENGTH)
        with self._lock:
            assert self._file is not None  # the key has a place in it
            self._file.seek(offset)
            data = self._file.read(length)
        return cast(JsonObject, json.loads(data.decode(errors="surrogatepass")))

    def drop(self, key: K) -> None:
        """Forget a value, if there is one."""
        self._places.pop(key, None)

    def clear(self) -> None:
        """Forget all values."""
        self._places.clear()

    def close(self) -> None:
        """Remove the file."""
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                self._file.close()
