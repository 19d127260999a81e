"""``ProcessTable``: what a process knows of targets, such as limiters. All threads and event loops share it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from sigwire.effects.forks import reset_when_forked

__all__ = ["ProcessTable"]

K = TypeVar("K")
V = TypeVar("V")


class ProcessTable(Generic[K, V]):
    """Values by key, ``most`` of them: the oldest one is forgotten for a new one.

    A forked child begins with a new lock and an empty table; with ``reset`` it keeps the values, each reset. Any thread may
    read ``entries``; they are changed under ``lock``, which the thread that has it may take again.

    >>> table = ProcessTable[str, list[int]](2)
    >>> table.find("a", list) is table.find("a", list)
    True
    >>> [table.find(key, list) for key in "bc"] and sorted(table.entries)
    ['b', 'c']
    """

    def __init__(self, most: int, reset: Callable[[V], object] | None = None) -> None:
        self.entries: dict[K, V] = {}
        self.lock = threading.RLock()
        self._most, self._reset = most, reset
        reset_when_forked(self)

    def find(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made if there is none."""
        with self.lock:
            if key in self.entries:
                return self.entries[key]
            value = make()
            if len(self.entries) >= self._most:
                del self.entries[next(iter(self.entries))]
            self.entries[key] = value
            return value

    def clear(self) -> None:
        """Forget all values."""
        with self.lock:
            self.entries.clear()

    def reset_after_fork(self) -> None:
        """Begin with a new lock: a thread of the parent may hold the old one."""
        self.lock = threading.RLock()
        if self._reset is None:
            self.entries.clear()
            return
        for value in self.entries.values():
            self._reset(value)
