"""``DriverWatch``: the end of a worker process whose driver was killed, since a process pool leaves its workers behind."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Self

__all__ = ["DriverWatch"]


class DriverWatch:
    """Ends this process when its driver is gone and the chunks under way are over.

    Each chunk runs in the ``with`` block of the watch. ``is_orphan``: the driver is gone, so no row may start. Engines with
    processes of their own (Dask, Ray) are not watched: there the driver is not the parent of a worker.
    """

    def __init__(self) -> None:
        self._ended = threading.Condition()
        self._chunks = 0
        self._is_started = self.is_orphan = False

    def start(self, driver: object) -> None:
        """Watch the parent of this process from now on, if it is the process ``driver``."""
        parent = sys.modules["multiprocessing"].parent_process() if "multiprocessing" in sys.modules else None
        with self._ended:
            if self._is_started or parent is None or parent.pid != driver:
                return
            self._is_started = True
        threading.Thread(target=self._wait, args=(parent.join,), name="sigwire-driver-watch", daemon=True).start()

    def _wait(self, join: Callable[[], None]) -> None:
        join()
        self.is_orphan = True
        with self._ended:
            self._ended.wait_for(lambda: self._chunks == 0)
            os._exit(1)  # the main thread waits for a chunk that no driver will send

    def __enter__(self) -> Self:
        with self._ended:
            self._chunks += 1
        return self

    def __exit__(self, *error: object) -> None:
        with self._ended:
            self._chunks -= 1
            self._ended.notify()
