"""``BatchQueue``: the parked requests of all threads and event loops, and the thread that sends and polls batches.

The thread runs while a caller waits, and is a daemon: a process may end at any time, and the store resumes it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import TypeVar

from sigwire.effects.forks import reset_when_forked
from sigwire.effects.waiting import join
from sigwire.lm.batch.driver import BatchDriver
from sigwire.lm.batch.options import BatchOptions
from sigwire.lm.batch.sending import AskedLine, LineFuture
from sigwire.lm.batch.store import BatchStore

__all__ = ["BatchQueue"]

T = TypeVar("T")


class BatchQueue:
    """The requests of one store. Thread-safe; opens nothing before the first request."""

    def __init__(self, options: BatchOptions) -> None:
        self.options = options
        self.reset_after_fork()
        reset_when_forked(self)

    def reset_after_fork(self) -> None:
        """Begin without requests: those of the parent stay with its thread."""
        self._condition = threading.Condition()
        self._asked: deque[tuple[AskedLine, LineFuture]] = deque()
        self._calls: deque[tuple[Callable[[BatchDriver], None], Callable[[Exception], None]]] = deque()
        self._thread: threading.Thread | None = None
        self._last: threading.Thread | None = None
        self._programs = 0

    def __deepcopy__(self, memo: object) -> BatchQueue:
        return self

    def ask(self, asked: AskedLine) -> LineFuture:
        """Park a line. The future is its reply, or ``None``: the caller sends it alone."""
        future: LineFuture = Future()
        with self._condition:
            self._asked.append((asked, future))
            self._wake()
        return future

    def call(self, function: Callable[[BatchDriver], T]) -> Future[T]:
        """Call a function of the driver in its thread."""
        future: Future[T] = Future()

        def work(driver: BatchDriver) -> None:
            try:
                future.set_result(function(driver))
            except Exception as error:
                future.set_exception(error)

        with self._condition:
            self._calls.append((work, future.set_exception))
            self._wake()
        return future

    @contextmanager
    def programs(self, count: int) -> Generator[None]:
        """Inside the block ``count`` more programs run. When all wait, their requests are sent at once."""
        self.count_programs(count)
        try:
            yield
        finally:
            self.count_programs(-count)

    def count_programs(self, change: int) -> None:
        """Change the number of programs that run."""
        with self._condition:
            self._programs += change
            self._condition.notify()

    # --- the thread

    def _wake(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, args=(self._last,), name="sigwire-batch", daemon=True)
            self._last = self._thread
            self._thread.start()
        self._condition.notify()

    def _serve(self, before: threading.Thread | None) -> None:
        driver: BatchDriver | None = None
        if before is not None:
            join(before)  # it may be about to close the store
        try:
            with closing(BatchStore(self.options.store)) as store:
                driver = BatchDriver(store, self.options, self.options.clock.now())
                while self._turn(driver):
                    pass
        except Exception as error:
            self._fail(driver, error)

    def _turn(self, driver: BatchDriver) -> bool:
        """Do what is due, and wait for what is next. Return False if no caller waits."""
        clock = self.options.clock
        self._admit(driver, clock.now())
        driver.step(clock.now(), self._all_wait(driver))
        with self._condition:
            if self._asked or self._calls:
                return True
            if not driver.awaited:
                self._thread = None
                return False
            due = driver.next_time(self._all_wait(driver)) - clock.now()
            if due > 0:
                clock.wait(self._condition, due)
            return True

    def _admit(self, driver: BatchDriver, now: float) -> None:
        while self._asked:
            line, future = self._asked[0]
            driver.ask(line, future, now)
            self._asked.popleft()
        while self._calls:
            self._calls[0][0](driver)
            self._calls.popleft()

    def _all_wait(self, driver: BatchDriver) -> bool:
        return 0 < self._programs <= driver.awaited

    def _fail(self, driver: BatchDriver | None, error: Exception) -> None:
        with self._condition:
            self._thread = None
            futures = [future for _, future in self._asked]
            fails = [fail for _, fail in self._calls]
            self._asked.clear()
            self._calls.clear()
        if driver is not None:
            driver.fail_all(error)
        for future in futures:
            if not future.done():
                future.set_exception(error)
        for fail in fails:
            fail(error)
