"""A clock that jumps: what waits for a time is there at once, unless a program that runs may still ask something."""

from __future__ import annotations

import threading

from sigwire.lm.batch.queue import BatchQueue
from sigwire.lm.batch.sending import AskedLine, LineFuture


class JumpingClock:
    """Seconds since 1970 that pass only while a BatchLM waits, and all programs that its queue counts wait for it."""

    def __init__(self) -> None:
        self.time = 1_900_000_000.0
        self._running, self._lock = 0, threading.Lock()  # programs that are counted and wait for no answer

    def now(self) -> float:
        return self.time

    def follow(self, queue: BatchQueue) -> None:
        """Stop while a program of this queue runs, however long the machine takes for it."""
        ask, count_programs = queue.ask, queue.count_programs

        def change(count: int) -> None:
            with self._lock:
                self._running += count

        def counted_ask(asked: AskedLine) -> LineFuture:
            future = ask(asked)
            change(-1)
            future.add_done_callback(lambda _: change(1))  # called in the thread that waits by this clock
            return future

        def counted_programs(count: int) -> None:
            change(count)
            count_programs(count)

        queue.ask, queue.count_programs = counted_ask, counted_programs  # type: ignore[method-assign]

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        if not condition.wait(0.001) and self._running <= 0:
            self.time += min(seconds, 1e6)
