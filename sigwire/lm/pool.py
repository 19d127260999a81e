"""Idle connections, kept for the next request to the same origin: by any thread, on any event loop, not in a forked child.

A connection is looked at before it is handed out; what the server has closed or spoken on is closed and forgotten.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import weakref
from collections import deque

from sigwire.lm.routes import Origin
from sigwire.lm.sockets import Line

__all__ = ["Connection", "Pool"]


class Connection:
    """A line to an origin, and where it may be used again."""

    __slots__ = ("generation", "home", "line", "origin", "since")

    def __init__(self, line: Line, origin: Origin, generation: int) -> None:
        self.line = line
        self.origin = origin
        self.generation = generation
        self.since = 0.0
        self.home = _home()

    def close(self) -> None:
        """Close the socket, at once."""
        self.line.bottom.close()


def _home() -> object:
    """The event loop that an awaited socket is bound to for good: on Windows (I/O completion ports), nowhere else."""
    if sys.platform != "win32":
        return None
    try:
        return weakref.ref(asyncio.get_running_loop())
    except RuntimeError:
        return None


class Pool:
    """Idle connections, the last used first. ``generation`` counts the closings: what was opened before one is not kept."""

    def __init__(self, keep_alive: float, max_idle: int) -> None:
        self.generation = 0
        self._keep_alive, self._max_idle = keep_alive, max_idle
        self._idle: dict[Origin, deque[Connection]] = {}
        self._lock = threading.Lock()
        _pools.add(self)

    def take(self, origin: Origin) -> Connection | None:
        """A connection that is still good, if there is one."""
        while True:
            with self._lock:
                idle = self._idle.get(origin)
                if not idle:
                    return None
                connection = idle.pop()
            fresh = time.monotonic() - connection.since < self._keep_alive
            if fresh and connection.home == _home() and connection.line.bottom.is_quiet():
                return connection
            connection.close()

    def put(self, connection: Connection) -> None:
        """Keep a connection for later, or close it."""
        connection.since = now = time.monotonic()
        surplus = [connection]
        with self._lock:
            if connection.generation == self.generation:
                idle = self._idle.setdefault(connection.origin, deque())
                idle.append(connection)
                surplus.clear()
                while idle and (len(idle) > self._max_idle or now - idle[0].since > self._keep_alive):
                    surplus.append(idle.popleft())
        for old in surplus:
            old.close()

    def close(self) -> None:
        """Close the idle ones; those in use are closed when they come back."""
        with self._lock:
            self.generation += 1
            connections = [connection for idle in self._idle.values() for connection in idle]
            self._idle.clear()
        for connection in connections:
            connection.close()

    def start_anew(self) -> None:
        """In a forked child: the connections are the parent's, and a thread that did not come along may hold the lock."""
        self._lock = threading.Lock()
        self.close()  # this process's copies of the file descriptors; nothing is sent


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _start_anew() -> None:
    for pool in list(_pools):
        pool.start_anew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_anew)
