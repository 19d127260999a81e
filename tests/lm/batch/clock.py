"""A clock that jumps: what waits for a time is there at once, unless a request comes first."""

from __future__ import annotations

import threading


class JumpingClock:
    """Seconds since 1970 that pass only while the queue of a BatchLM waits."""

    def __init__(self, grace: float = 0.005) -> None:
        self.time, self.grace = 1_900_000_000.0, grace

    def now(self) -> float:
        return self.time

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        if not condition.wait(self.grace):  # longer than a thread or task needs for its next request
            self.time += min(seconds, 1e6)
