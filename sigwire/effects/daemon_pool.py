"""``DaemonPool``: an executor whose threads never hold the exit of the interpreter or of ``asyncio.run``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from sigwire.effects.inbox import Inbox

__all__ = ["DaemonPool"]

T = TypeVar("T")
P = ParamSpec("P")


class DaemonPool(ThreadPoolExecutor):
    """Runs calls in daemon threads. A thread is started only if no other is idle; the number of threads has no limit.

    Python joins the threads of its own executors at exit, also if their calls are no longer waited for. The base class runs
    nothing: an event loop accepts no other class as its default executor.

    >>> DaemonPool().submit(len, "abc").result()
    3
    """

    def __init__(self) -> None:
        super().__init__(1)
        self._calls: Inbox[tuple[Future[Any], Callable[[], object]]] = Inbox()
        self._idle = threading.Semaphore(0)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a thread."""
        future: Future[T] = Future()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._serve, name="sigwire-blocking", daemon=True).start()
        return future

    def _serve(self) -> None:
        while True:
            _run(*self._calls.get())
            self._idle.release()


def _run(future: Future[Any], call: Callable[[], object]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)
