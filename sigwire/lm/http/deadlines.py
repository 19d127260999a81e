"""TODO map."""

from __future__ import annotations

import time

__all__ = ["seconds_until"]


def seconds_until(deadline: float | None) -> float | None:
    """Seconds until a deadline. Raises ``TimeoutError`` when it has passed."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _shorter(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return one if one < other else other
