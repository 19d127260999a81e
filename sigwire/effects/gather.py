"""Run several steps at once: ``Gather``, an effect.

``limit`` threads or tasks take steps from one queue. A task or a future for each would cost more, above all in memory. Steps
run in copies of the caller's context.
"""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sigwire.effects.cancellation import merge_partial
from sigwire.effects.collecting import in_order
from sigwire.effects.loops import await_in, marking_loop_blocked
from sigwire.effects.performing import in_parts
from sigwire.effects.steps import Steps, arun, drive_unscoped, run
from sigwire.effects.threads import run_in_threads

if TYPE_CHECKING:
    import asyncio

__all__ = ["Gather"]

T = TypeVar("T")


class Gather(Generic[T]):
    """Effect: run several steps at once, at most ``limit`` at a time; return their values in the given order.

    When one raises, steps not yet started are dropped, and running ones are cancelled (async) or waited for (sync). The error
    that is first in the given order is raised. An interrupt of a blocked caller does not wait: running steps continue in daemon
    threads, and their values are dropped.

    >>> def number(n: int) -> Steps[int]:
    ...     return n
    ...     yield
    >>> def both() -> Steps[list[int]]:
    ...     return (yield Gather([number(1), number(2)]))
    >>> run(both())
    [1, 2]
    """

    __slots__ = ("_limit", "_steps")

    nests = True  # steps run inside: see ``emitting``

    def __init__(self, steps: Sequence[Steps[T]], *, limit: int | None = None) -> None:
        self._steps = in_order(in_parts(steps))
        self._limit = max(1, min(limit or len(self._steps), max(1, len(self._steps))))

    def run(self) -> list[T]:
        if self._limit == 1:
            return [contextvars.copy_context().run(run, steps) for steps in self._steps]
        with marking_loop_blocked():
            queue = _GatherQueue(self._steps)
        try:
            run_in_threads(queue.run_worker, self._limit, queue.waiting)
        finally:  # after an interrupt, the threads must not start more steps
            queue.waiting.clear()
        return queue.values()

    async def arun(self) -> list[T]:
        import asyncio

        queue = _GatherQueue(self._steps)
        tasks = [asyncio.ensure_future(drive_unscoped(queue.worker())) for _ in range(self._limit)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError as error:
            await _cancel(queue, tasks)
            merge_partial(error, *queue.failures.values())
            raise
        finally:
            await _cancel(queue, tasks)
        return queue.values(last=(asyncio.CancelledError,))


async def _cancel(queue: _GatherQueue[T], tasks: Sequence[asyncio.Task[None]]) -> None:
    import asyncio

    queue.waiting.clear()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _GatherQueue(Generic[T]):
    """Steps that wait for a worker; values and errors of finished steps, by position."""

    __slots__ = ("_context", "_values", "failures", "waiting")

    def __init__(self, steps: Sequence[Steps[T]]) -> None:
        self._context = contextvars.copy_context()
        self.waiting = deque(enumerate(steps))
        self._values: list[Any] = [None] * len(steps)
        self.failures: dict[int, BaseException] = {}

    def worker(self) -> Steps[None]:
        """Run waiting steps one after the other. The first failure clears the queue."""
        for position, steps in _pop_all(self.waiting):
            try:
                self._values[position] = yield _Isolated(steps, self._context)
            except BaseException as error:
                self.failures[position] = error
                self.waiting.clear()
                raise

    def run_worker(self) -> None:
        with suppress(BaseException):  # kept in ``failures``
            run(self.worker())

    def values(self, last: tuple[type[BaseException], ...] = ()) -> list[T]:
        """Return the values in order, or raise the first error in order. Errors of the types ``last`` have the lowest rank."""
        if self.failures:
            first = min(self.failures, key=lambda position: (isinstance(self.failures[position], last), position))
            raise self.failures.pop(first)  # Drop the reference: the exception and its traceback would form a cycle.
        return self._values


def _pop_all(waiting: deque[T]) -> Generator[T]:
    """Pop items from the left until none is there. Several threads may pop from one deque."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


class _Isolated(Generic[T]):
    """Effect: run steps in a copy of a context. Context variables that the steps set are invisible outside."""

    __slots__ = ("_context", "_steps")

    def __init__(self, steps: Steps[T], context: contextvars.Context) -> None:
        self._steps, self._context = steps, context

    def run(self) -> T:
        return self._context.copy().run(run, self._steps)

    async def arun(self) -> T:
        return await await_in(self._context.copy(), arun(self._steps), always_yields=True)
