"""``ParallelExecutor`` of ``dspy.utils.parallelizer``: a function over many items in threads, errors counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event, Lock
from typing import Any, TypeVar

from sigwire.dspy.settings import settings
from sigwire.errors import warn_user
from sigwire.keywords import ChecksKeywords
from sigwire.settings import bind

__all__ = ["ParallelExecutor"]

T = TypeVar("T")


class ParallelExecutor(ChecksKeywords):
    """Run a function over items in ``num_threads`` threads, in the caller's settings; one thread is the caller's.

    An item that fails is ``None`` in the results; ``failed_indices`` and ``exceptions_map`` have its place and error. The
    error that makes ``max_errors`` stops the run and is raised. ``straggler_limit`` has no effect: nothing is run twice.

    >>> ParallelExecutor(num_threads=2).execute(lambda n: 2 * n, [1, 2])
    [2, 4]
    """

    def __init__(
        self,
        num_threads: int | None = None,
        max_errors: int | None = None,
        disable_progress_bar: bool = False,
        provide_traceback: bool | None = None,
        compare_results: bool = False,
        timeout: float | None = 120,
        straggler_limit: int = 3,
    ) -> None:
        self.num_threads = num_threads or settings.num_threads
        self.max_errors = 10 if max_errors is None else max_errors
        self.failed_indices: list[int] = []
        self.exceptions_map: dict[int, Exception] = {}
        self._lock, self._stop = Lock(), Event()

    def execute(self, function: Callable[[T], Any], data: Iterable[T]) -> list[Any]:
        """Return the results in the order of the items. Raises the error that makes ``max_errors``."""
        self._stop.clear()
        self.failed_indices, self.exceptions_map = [], {}
        items: Sequence[T] = list(data)
        if self.num_threads == 1:
            results = [self._one(function, index, item) for index, item in enumerate(items)]
        else:
            with ThreadPoolExecutor(self.num_threads, "sigwire-dspy") as pool:
                results = list(pool.map(bind(partial(self._one, function)), range(len(items)), items))
        if self._stop.is_set():
            raise self.exceptions_map[self.failed_indices[self.max_errors - 1]]
        self.failed_indices.sort()
        return results

    def _one(self, function: Callable[[T], Any], index: int, item: T) -> Any:
        if self._stop.is_set():
            return None
        try:
            return function(item)
        except Exception as error:
            with self._lock:
                self.failed_indices.append(index)
                self.exceptions_map[index] = error
                if len(self.failed_indices) >= self.max_errors:
                    self._stop.set()
            warn_user(f"Item {index} failed (running a function over items): {type(error).__name__}: {error}")
            return None
