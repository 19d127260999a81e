"""Many programs at once over one ``BatchLM``: a batch is sent as soon as all that run wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TypeVar

from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.lm.batch.queue import BatchQueue

__all__ = ["in_waves"]

T = TypeVar("T")


def in_waves(queue: BatchQueue, programs: Sequence[Steps[T]], limit: int) -> Steps[list[T]]:
    """Run programs, at most ``limit`` at once; return their values in order. The first error is raised, as by ``Gather``.

    Awaited, a program costs a task; blocking, a thread.
    """
    count = _ProgramCount(queue, len(programs), limit)
    try:
        values: list[T] = yield Gather([count.around(program) for program in programs], limit=limit)
    finally:
        count.end()
    return values


class _ProgramCount:
    """Keeps the queue's number of running programs, from before the first one runs: else it would be alone in a batch."""

    def __init__(self, queue: BatchQueue, unfinished: int, limit: int) -> None:
        self._queue, self._unfinished, self._limit, self._counted = queue, unfinished, limit, 0
        self._lock = Lock()
        self._count()

    def around(self, program: Steps[T]) -> Steps[T]:
        try:
            return (yield from program)
        finally:
            with self._lock:
                self._unfinished -= 1
                self._count()

    def end(self) -> None:
        with self._lock:
            self._unfinished = 0
            self._count()

    def _count(self) -> None:
        running = max(min(self._unfinished, self._limit), 0)
        self._queue.count_programs(running - self._counted)
        self._counted = running
