"""The options of ``BatchLM``, and the clock that it waits by."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from sigwire.errors import ConfigurationError

__all__ = ["BATCH_CLOCK", "BatchClock", "BatchOptions"]


class BatchClock(Protocol):
    """A clock: seconds since 1970, and a wait that a notification ends."""

    def now(self) -> float: ...

    def wait(self, condition: threading.Condition, seconds: float) -> None: ...


class _WallClock:
    def now(self) -> float:
        return time.time()

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        condition.wait(min(seconds, 3600.0))


BATCH_CLOCK: BatchClock = _WallClock()


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """See ``BatchLM``. All durations are seconds."""

    store: Path
    size: int = 10_000
    quiet: float = 2.0
    max_wait: float = 60.0
    poll: tuple[float, float] = (10.0, 300.0)
    rest: Literal["batch", "now"] = "batch"
    on_doubt: Literal["ask", "resend"] = "ask"
    deadline: float | None = None
    width: int = 1_000
    settle: float | None = None
    clock: BatchClock = field(default=BATCH_CLOCK, repr=False)

    @property
    def settling(self) -> float:
        """Seconds that the provider has to show what it did: ``settle``, else the longest time between polls."""
        return max(self.poll) if self.settle is None else self.settle

    def __post_init__(self) -> None:
        poll = self.poll if hasattr(self.poll, "__len__") and len(self.poll) == 2 else (-1.0,)
        numbers = (self.quiet, self.max_wait, *poll, self.deadline or 0, self.settle or 0)
        problem = (
            'rest is "batch" or "now"'
            if self.rest not in ("batch", "now")
            else 'on_doubt is "ask" or "resend"'
            if self.on_doubt not in ("ask", "resend")
            else "size and width are 1 or more"
            if min(self.size, self.width) < 1
            else "quiet, max_wait, deadline, settle and both numbers of poll are seconds, 0 or more"
            if min(numbers) < 0
            else ""
        )
        if problem:
            raise ConfigurationError(f"{problem} (making a BatchLM): not {self!r:.300}.")
