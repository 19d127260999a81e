"""A clock that jumps: what waits for a time is there at once, unless a request comes first."""

from __future__ import annotations

import threading

from sigwire.lm.batch.queue import BatchQueue
from sigwire.lm.batch.sending import AskedLine, LineFuture
from tests.patience import PATIENCE


class JumpingClock:
    """Seconds since 1970 that pass only while the queue of a BatchLM waits."""

    def __init__(self) -> None:
        self.time, self._missing = 1_900_000_000.0, 0

    def now(self) -> float:
        return self.time

    def stop_until(self, count: int, queue: BatchQueue) -> None:
        """Let no time pass before ``count`` more lines are in the queue: the deadline of a run would pass without some."""
        ask, self._missing = type(queue).ask, count

        def counted(asked: AskedLine) -> LineFuture:
            self._missing -= 1
            return ask(queue, asked)

        queue.ask = counted  # type: ignore[method-assign]

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        if self._missing > 0:
            condition.wait(PATIENCE)
        elif not condition.wait(0.005):  # longer than a thread or task needs for its next request
            self.time += min(seconds, 1e6)
