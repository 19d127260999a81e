"""A time limit: a blocking call or a coroutine for at most some seconds. After them it raises ``TimeLimitReached``.

A thread cannot be stopped, and a coroutine may catch its cancellation: the caller continues without them.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from sigwire.effects.cancellation import CoroutineOf, merge_partial

__all__ = ["TimeLimitReached", "await_within", "call_within", "capture_outcome"]

T = TypeVar("T")
_CLEANUP_SECONDS = 0.1  # the run goes on after this time, even if a cancelled call has not ended


class TimeLimitReached(Exception):
    """A call exceeded its time limit."""


def call_within(seconds: float, call: Callable[[], T], name: str = "sigwire-tool") -> T:
    """Call for at most ``seconds``, in a thread of its own: a pool may have no free thread. ``name``: of the thread."""
    outcome: list[Callable[[], T]] = []

    def work() -> None:
        try:
            outcome.append(capture_outcome(call))
        except BaseException as error:
            outcome.append(_raiser(error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name=name, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if not outcome:
        raise TimeLimitReached
    return outcome[0]()


async def await_within(seconds: float, running: CoroutineOf[T]) -> T:
    """Await for at most ``seconds``, in a task of its own: code that catches its cancellation must not outlive its limit."""
    task = asyncio.ensure_future(_await_outcome(running))
    try:
        await asyncio.wait([task], timeout=max(seconds, 0))
        if task.done():
            return task.result()()
        await _cancel(task)
    except asyncio.CancelledError as error:
        merge_partial(error, await _cancel(task))
        raise
    raise TimeLimitReached


async def _await_outcome(running: CoroutineOf[T]) -> Callable[[], T]:
    """Await and return a function that returns the value. An interrupt is converted: a task would stop its loop."""
    try:
        value = await running
    except (KeyboardInterrupt, SystemExit) as error:
        return _raiser(error)
    return lambda: value


async def _cancel(task: asyncio.Task[Any]) -> BaseException | None:
    """Cancel a task, wait a moment for its cleanup, and return its exception. A task that goes on is dropped."""
    task.cancel()
    try:
        await asyncio.wait([task], timeout=_CLEANUP_SECONDS)
    finally:
        if not task.done():
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # not a logged error
            asyncio._unregister_task(task)  # asyncio.run would wait for the task (Python docs, "Extending asyncio")
    return task.exception() if task.done() and not task.cancelled() else None


def capture_outcome(call: Callable[[], T]) -> Callable[[], T]:
    """Call and return a function that returns the value. ``StopIteration`` is converted: a future cannot raise it."""
    try:
        value = call()
    except StopIteration as error:
        converted = RuntimeError("the tool raised StopIteration")
        converted.__cause__ = error
        return _raiser(converted)
    return lambda: value


def _raiser(error: BaseException) -> Callable[[], NoReturn]:
    def raise_error() -> NoReturn:
        raise error

    return raise_error
