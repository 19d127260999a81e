"""Bridges between blocking and awaiting code: ``block_on``, ``to_thread``, ``OwnerLoop``.

This file owns two process-wide resources, both made on first use: an event loop in a daemon thread, for coroutines that
blocking code waits for, and a pool of threads, for blocking code that coroutines await. Their threads are daemons: work that
is no longer waited for never holds the exit. ``asyncio`` and thread pools are imported where they are used, so a program that
only blocks, as most scripts do, never loads them.
"""

from __future__ import annotations

import contextvars
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from types import coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

from sigwire.effects.cancellation import (
    CANCEL_GRACE_SECONDS,
    CancelScope,
    CoroutineOf,
    current_scope,
    merge_partial,
    on_cancel,
    run_cancellable,
    set_scope,
)
from sigwire.effects.forks import on_fork
from sigwire.effects.waiting import result_of
from sigwire.errors import EventLoopError

if TYPE_CHECKING:
    import asyncio

    from sigwire.effects.daemon_pool import DaemonPool

__all__ = [
    "EventLoop", "OwnerLoop", "await_in", "block_on", "block_on_result", "blocked_threads", "has_running_loop", "is_blocked",
    "marking_loop_blocked", "running_loop", "started_by_block_on", "to_thread",
]  # fmt: skip

EventLoop: TypeAlias = "asyncio.AbstractEventLoop"

T = TypeVar("T")
P = ParamSpec("P")


def block_on(coroutine: CoroutineOf[T], *, timeout: float | None = None) -> T:
    """Run a coroutine from blocking code, on the background loop, even if an event loop runs in this thread.

    The coroutine sees the caller's context variables. After ``timeout`` seconds the coroutine is cancelled and ``TimeoutError``
    raised. An interrupt cancels the coroutine. Raises ``EventLoopError`` if called on the background loop itself.

    >>> async def answer() -> int:
    ...     return 42
    >>> block_on(answer())
    42
    """
    import asyncio

    background = _background_loop()
    if threading.current_thread() is background.thread:
        coroutine.close()
        raise EventLoopError(
            "Blocking code was called by a coroutine of the loop that the blocking code would wait for. "
            "Await the async form (acall, arun) there instead."
        )
    scope = current_scope()
    with marking_loop_blocked():
        future = asyncio.run_coroutine_threadsafe(
            coroutine if scope is None else run_cancellable(scope, coroutine), background.loop
        )
    try:
        return result_of(future, timeout)
    except BaseException:
        future.cancel()
        raise


def block_on_result(value: object) -> Any:
    """Return what a function of the user returned; an awaitable is awaited, blocking."""
    if type(value) in _PLAIN or not inspect.isawaitable(value):
        return value
    return block_on(_awaited(value))


async def _awaited(value: Awaitable[T]) -> T:
    return await value


_PLAIN = (bool, float, int, str)  # isawaitable is slow


async def to_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking code in a thread with the caller's context, so that the event loop stays free.

    Cancelling wakes waits of the thread that registered with ``on_cancel``. The thread itself cannot be stopped.

    >>> import time
    >>> async def main() -> None:
    ...     await to_thread(time.sleep, 0.001)
    >>> block_on(main())
    """
    import asyncio

    context, scope, outer = contextvars.copy_context(), CancelScope(), current_scope()

    def work() -> T:
        set_scope(scope)
        try:
            return function(*args, **kwargs)
        except StopIteration as error:  # a future cannot hold it: on Python 3.11 its awaiter would wait for ever
            raise RuntimeError("a function that was called in a thread raised StopIteration") from error

    with on_cancel(scope.cancel):
        future = asyncio.get_running_loop().run_in_executor(_blocking_pool(), context.run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if scope.cancel() or (outer is not None and outer.cancelled):
                await asyncio.wait([future], timeout=CANCEL_GRACE_SECONDS)
                merge_partial(error, future.exception() if future.done() and not future.cancelled() else None)
            future.cancel()  # its thread may outlive this loop, which would then be a logged error
            raise


async def await_in(context: contextvars.Context, awaitable: Awaitable[T], *, always_yields: bool = False) -> T:
    """Await in another context, in the current task. ``always_yields``: to the loop once, also if nothing suspends."""
    steps = awaitable.__await__()
    try:
        waiting = context.run(next, steps)
    except StopIteration as stop:  # nothing suspended, as for nearly every event of a stream
        if always_yields:
            import asyncio

            await asyncio.sleep(0)
        return cast(T, stop.value)
    return await _await_rest(context, steps, waiting)


@coroutine
def _await_rest(
    context: contextvars.Context, steps: Generator[object, object, T], waiting: object
) -> Generator[object, object, T]:
    try:
        while True:
            try:
                sent = yield waiting
            except BaseException as error:
                waiting = context.run(steps.throw, error)
            else:
                waiting = context.run(steps.send, sent)
    except StopIteration as stop:
        return cast(T, stop.value)


def started_by_block_on() -> bool:
    """Return True if the running code was started by ``block_on``, False if by an event loop of the user's.

    >>> async def ask() -> bool:
    ...     return started_by_block_on()
    >>> block_on(ask()), started_by_block_on()
    (True, False)
    """
    return _loop is not None and threading.current_thread() is _loop.thread


# Event loops whose threads are blocked until the running code is done, with the ids of these threads.
_blocked: contextvars.ContextVar[Mapping[EventLoop, int]] = contextvars.ContextVar("sigwire_blocked_loops")
_NONE_BLOCKED: Mapping[EventLoop, int] = {}


@contextmanager
def marking_loop_blocked() -> Generator[None]:
    """Inside the block, started work sees the event loop of this thread, if one runs, as blocked."""
    loop = running_loop()
    if loop is None:
        yield
        return
    token = _blocked.set({**_blocked.get(_NONE_BLOCKED), loop: threading.get_ident()})
    try:
        yield
    finally:
        _blocked.reset(token)


def blocked_threads() -> set[int]:
    """Return the ids of the threads whose event loops are blocked until the running code is done.

    >>> blocked_threads()
    set()
    """
    return set(_blocked.get(_NONE_BLOCKED).values())


def is_blocked(loop: EventLoop) -> bool:
    """Return True if the thread of the loop waits for the running code."""
    return loop in _blocked.get(_NONE_BLOCKED)


def running_loop() -> EventLoop | None:
    """Return the event loop that runs in this thread, if any."""
    if "asyncio" not in sys.modules:  # then no loop runs, and the check must not import asyncio
        return None
    import asyncio  # waits for another thread that imports it

    return asyncio._get_running_loop()  # raises nothing


def has_running_loop() -> bool:
    """Return True if this thread runs an event loop, which must not be blocked.

    >>> has_running_loop()
    False
    """
    return running_loop() is not None


class OwnerLoop:
    """The event loop on which a session or connection was opened, and on which alone it can be used.

    ``loop`` defaults to the loop that runs where the object is made. If none runs, the owner is unknown (``bool`` is False),
    and coroutines run on the loop that awaits them.

    >>> async def double(n: int) -> int:
    ...     return 2 * n
    >>> block_on(OwnerLoop().run(lambda: double(21)))
    42
    """

    __slots__ = ("_loop",)

    def __init__(self, loop: EventLoop | None = None) -> None:
        self._loop = loop or running_loop()

    def __bool__(self) -> bool:
        return self._loop is not None

    async def run(self, start: Callable[[], CoroutineOf[T]]) -> T:
        """Await the coroutine of ``start`` on the owner loop, from any loop. Cancelling cancels the coroutine.

        Raises ``EventLoopError`` if the wait would never end: the owner loop is closed, stopped, or blocked by this call.
        """
        import asyncio

        owner = self._loop
        if owner is None or owner is asyncio.get_running_loop():
            return await start()
        if problem := self._problem(owner):
            raise EventLoopError(problem)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), owner))

    @staticmethod
    def _problem(owner: EventLoop) -> str:
        if is_blocked(owner):
            return (
                "The event loop that this call needs is blocked by this call: a blocking call was made on that loop. "
                "Await the async form (acall) there instead, or block in another thread: await asyncio.to_thread(...)."
            )
        if owner.is_closed() or not owner.is_running():
            state = "closed" if owner.is_closed() else "not running"
            return (
                f"The event loop that this call needs is {state}. Keep the loop running, in its own thread, while a session or "
                "connection that was opened on it is in use."
            )
        return ""


class _BackgroundLoop:
    def __init__(self) -> None:
        import asyncio

        from sigwire.effects.daemon_pool import DaemonPool

        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(DaemonPool())
        self.thread = threading.Thread(target=self._serve, name="sigwire-loop", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Run the loop for ever. A task that raises an interrupt stops its loop; the task's awaiter gets the interrupt."""
        while True:
            with suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()


_lock = threading.Lock()
_loop: _BackgroundLoop | None = None
# Unlimited: callers limit their work themselves (num_threads, parallel), and in a full pool blocking work that waits for
# other blocking work would wait for ever.
_pool: DaemonPool | None = None


def _background_loop() -> _BackgroundLoop:
    global _loop
    with _lock:
        _loop = _loop or _BackgroundLoop()
        return _loop


def _blocking_pool() -> DaemonPool:
    global _pool
    from sigwire.effects.daemon_pool import DaemonPool

    with _lock:
        _pool = _pool or DaemonPool()
        return _pool


@on_fork
def reset_after_fork() -> None:
    """Forget lock, loop and pool in a forked child: their threads do not exist there, and the lock may be held for ever."""
    global _lock, _loop, _pool
    _lock, _loop, _pool = threading.Lock(), None, None
