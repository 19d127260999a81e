"""Answers in memory: the least recently used are dropped first. Shared by all threads and tasks of a process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from sigwire.core.response import Response

__all__ = ["MemoryStore"]

_MOST_BYTES = 256 << 20


class _Entry(NamedTuple):
    response: Response
    size: int
    at: float


class MemoryStore:
    """At most ``most_entries`` answers, and at most ``most_bytes`` by their stored size. Answers are shared, not copied.

    >>> store = MemoryStore(2)
    >>> for key in (b"a", b"b", b"a", b"c"):
    ...     store.put(key, Response(id=key.decode()), 10, 0.0)
    >>> b"a" in store, b"b" in store, store.size
    (True, False, 20)
    """

    def __init__(self, most_entries: int, most_bytes: int = _MOST_BYTES) -> None:
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0

    def get(self, key: bytes, oldest: float = 0.0) -> Response | None:
        """Return the answer of a key, ``None`` if there is none that was stored after ``oldest``."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.at < oldest:
                return None
            self._entries.move_to_end(key)
        return entry.response

    def put(self, key: bytes, response: Response, size: int, at: float) -> None:
        """Keep an answer; ``size`` in bytes."""
        with self._lock:
            before = self._entries.pop(key, None)
            self._entries[key] = _Entry(response, size, at)
            self.size += size - (before.size if before else 0)
            while len(self._entries) > self._most_entries or self.size > self._most_bytes:
                self.size -= self._entries.popitem(last=False)[1].size

    def clear(self) -> None:
        """Drop all answers."""
        with self._lock:
            self._entries.clear()
            self.size = 0

    def items(self) -> list[tuple[bytes, Response]]:
        """Return keys and answers, the least recently used first."""
        with self._lock:
            return [(key, entry.response) for key, entry in self._entries.items()]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def forget_lock(self) -> None:
        """Replace the lock in a forked child: another thread of the parent may hold it."""
        self._lock = threading.Lock()
