"""How long a test waits for what must happen. What must not happen is never waited for."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds. A wait ends as soon as its condition holds; on a busy machine a thread may get no turn for many seconds.
PATIENCE = 60.0


def wait_until(condition: Callable[[], object]) -> None:
    """Return as soon as the condition holds; fail if it does not within ``PATIENCE``."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the condition did not hold in time"
        time.sleep(0.001)
