"""``DriverWatch``: a worker process of a pool, whose driver may be killed or interrupted.

A process pool leaves its workers behind when the driver is killed. Ctrl-C in a terminal reaches driver and workers: the driver
lets the rows in flight end, so a worker ignores the first interrupt of a chunk, and raises it when their seconds are over.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from _thread import interrupt_main
from collections.abc import Callable
from typing import Self

from sigwire.effects.cancellation import INTERRUPT_GRACE_SECONDS

__all__ = ["DriverWatch"]


class DriverWatch:
    """Ends this process when its driver is gone and the chunks under way are over.

    Each chunk runs in the ``with`` block of the watch. ``is_orphan``: the driver is gone, so no row may start. Engines with
    processes of their own (Dask, Ray) are not watched: there the driver is not the parent of a worker.
    """

    def __init__(self) -> None:
        self._ended = threading.Condition()
        self._chunks = self._number = self._interrupted = 0
        self._is_started = self.is_orphan = False

    def start(self, driver: object) -> None:
        """Watch the parent of this process from now on, if it is the process ``driver``."""
        parent = sys.modules["multiprocessing"].parent_process() if "multiprocessing" in sys.modules else None
        with self._ended:
            if self._is_started or parent is None or parent.pid != driver:
                return
            self._is_started = True
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            signal.signal(signal.SIGINT, self._interrupt)
        threading.Thread(target=self._wait, args=(parent.join,), name="sigwire-driver-watch", daemon=True).start()

    def _interrupt(self, *_: object) -> None:
        """Take an interrupt, in the main thread, which runs one chunk at a time. The first one of a chunk is ignored."""
        number = self._number
        if self._interrupted == number:
            raise KeyboardInterrupt
        self._interrupted = number

        def interrupt_again() -> None:
            if self._chunks and self._number == number:
                interrupt_main()

        timer = threading.Timer(INTERRUPT_GRACE_SECONDS, interrupt_again)
        timer.daemon = True
        timer.start()

    def _wait(self, join: Callable[[], None]) -> None:
        join()
        self.is_orphan = True
        with self._ended:
            self._ended.wait_for(lambda: self._chunks == 0)
            os._exit(1)  # the main thread waits for a chunk that no driver will send

    def __enter__(self) -> Self:
        with self._ended:
            self._chunks += 1
            self._number += 1
        return self

    def __exit__(self, *error: object) -> None:
        with self._ended:
            self._chunks -= 1
            self._ended.notify()
