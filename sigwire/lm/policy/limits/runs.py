"""Runs: batches mark their calls, so that queues serve calls of a user first and batches in turns."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["Run", "current_run"]


class Run:
    """One batch. Its calls wait behind those outside batches, and take turns with those of other runs by ``weight``."""

    __slots__ = ("__weakref__", "weight")

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight


current_run: ContextVar[Run | None] = ContextVar("sigwire_run", default=None)
