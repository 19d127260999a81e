"""``Unbatchify`` of ``dspy.utils.unbatchify``: a function over batches as a function of one item."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, Queue
from threading import Lock, Thread
from typing import Generic, Self, TypeVar
from weakref import finalize

from sigwire.errors import ConfigurationError, InputError, StateError
from sigwire.keywords import ChecksKeywords

__all__ = ["Unbatchify"]

T = TypeVar("T")
R = TypeVar("R")


class Unbatchify(ChecksKeywords, Generic[T, R]):
    """Call a function over lists with single items: calls of several threads share one batch.

    A batch is run in a thread of its own, in the settings of the process, when it has ``max_batch_size`` items (default 32)
    or ``max_wait_time`` seconds (default 0.1) after its first item. An error of ``batch_fn`` is raised in each call of the
    batch. ``close``, or the end of a ``with`` block, answers the waiting calls and ends the thread. Raises
    ``ConfigurationError`` for a size below 1, ``StateError`` for a call after ``close``, and ``InputError`` if the batch has
    another number of outputs than items.

    >>> with Unbatchify(lambda texts: [len(text) for text in texts], max_wait_time=0.0) as measure:
    ...     measure("four"), measure("seven")
    (4, 5)
    """

    def __init__(
        self, batch_fn: Callable[[list[T]], Sequence[R]], max_batch_size: int = 32, max_wait_time: float = 0.1
    ) -> None:
        if max_batch_size < 1:
            raise ConfigurationError(f"max_batch_size is a number above 0, not {max_batch_size!r} (making Unbatchify).")
        self.batch_fn, self.max_batch_size, self.max_wait_time = batch_fn, max_batch_size, max_wait_time
        self.input_queue: Queue[tuple[T, Future[R]] | None] = Queue()
        self.worker_thread = Thread(
            target=_work, args=(self.input_queue, batch_fn, max_batch_size, max_wait_time), daemon=True
        )
        self.worker_thread.start()
        self._lock = Lock()
        self._end = finalize(self, self.input_queue.put, None)

    def __call__(self, input_item: T) -> R:
        """Return the output of one item, when its batch was run."""
        future: Future[R] = Future()
        with self._lock:  # nothing is put behind the end
            if not self._end.alive:
                raise StateError("This Unbatchify was closed (calling it). Make another one.")
            self.input_queue.put((input_item, future))
        return future.result()

    def close(self) -> None:
        """Answer the waiting calls, and end the thread."""
        with self._lock:
            self._end()
        self.worker_thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _work(
    items: Queue[tuple[T, Future[R]] | None], batch_fn: Callable[[list[T]], Sequence[R]], most: int, wait: float
) -> None:
    """Run batches until ``None`` is in the queue."""
    is_open = True
    while is_open and (first := items.get()) is not None:
        batch, deadline = [first], time.monotonic() + wait
        while len(batch) < most:
            try:
                item = items.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                break
            if item is None:
                is_open = False
                break
            batch.append(item)
        _answer(batch, batch_fn)


def _answer(batch: Sequence[tuple[T, Future[R]]], batch_fn: Callable[[list[T]], Sequence[R]]) -> None:
    try:
        outputs = batch_fn([item for item, _ in batch])
        if len(outputs) != len(batch):
            raise InputError(f"batch_fn returned {len(outputs)} outputs for {len(batch)} items (running a batch).")
        for (_, future), output in zip(batch, outputs, strict=True):
            future.set_result(output)
    except BaseException as error:
        for _, future in batch:
            future.set_exception(error)
