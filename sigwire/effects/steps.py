"""Programs as generators of effects, and the drivers that run them.

A *program* is a generator. It decides; it does no I/O itself. Where something must be waited for it yields an
*effect*, an object that knows how to happen in two ways: ``run()`` blocks, ``arun()`` awaits. A *driver* performs each
effect and sends its value back in, or throws its exception in at the yield:

    def program():                        run(program())          blocks; also fine inside a running event loop
        answer = yield Ask(lm, request)   await arun(program())   awaits; cancellation arrives at the yield
        return answer.text.upper()

So each loop of the library is written once. Programs call programs with ``yield from``; ``Gather`` runs several at once.

What a program tells while it runs, and the drivers that hand it on, are in ``streams``.

This file knows nothing of models, tools or settings. It owns two process-wide resources, both started on first use only:
an event loop in a daemon thread, for effects that can only be awaited while the caller blocks, and a pool of threads, for
effects that can only block while the caller awaits. Loops and pools are imported where they are used: a program that only
blocks, as most scripts do, never pays for them.

An interrupt (``KeyboardInterrupt``, ``SystemExit``) is never swallowed, and never waits for threads that cannot be stopped.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from sigwire.effects.cancellation import (
    CANCEL_GRACE_SECONDS,
    CancelScope,
    StreamCancelled,
    current_scope,
    merge_partial,
    on_cancel,
    set_scope,
)
from sigwire.errors import EventLoopError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

__all__ = [
    "Effect",
    "FunctionEffect",
    "Gather",
    "OwnerLoop",
    "Steps",
    "arun",
    "block_on",
    "drive",
    "has_running_loop",
    "run",
    "run_cancellable",
    "started_by_block_on",
    "to_thread",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")


class Effect(Protocol[T_co]):
    """Something that has to be waited for. Either method gives the same value or raises the same error."""

    def run(self) -> T_co: ...

    async def arun(self) -> T_co: ...


Steps: TypeAlias = Generator[Effect[Any], Any, T]


def run(program: Steps[T]) -> T:
    """Run a program, blocking. Works in any thread, also inside a running event loop.

    >>> def double(text: str) -> Steps[str]:
    ...     return text * 2
    ...     yield
    >>> run(double("ab"))
    'abab'
    """
    try:
        effect = program.send(None)
        while True:
            try:
                value = effect.run()
            except BaseException as error:
                effect = program.throw(error)
            else:
                effect = program.send(value)
    except StopIteration as stop:
        return cast(T, stop.value)


def arun(program: Steps[T]) -> Coroutine[Any, Any, T]:
    """Run a program on the running event loop. Cancelling the task raises ``CancelledError`` at the program's yield.

    So does leaving it, where that is done in another thread, and ``StreamCancelled`` comes out: a user's ``asyncio.run`` inside
    a program that is streamed is left along.
    """
    scope = current_scope()
    return drive(program) if scope is None else _run_in_scope(scope, program)


async def _run_in_scope(scope: CancelScope, program: Steps[T]) -> T:
    return await run_cancellable(scope, drive(program))


async def drive(program: Steps[T]) -> T:
    """``arun``, whoever leaves."""
    try:
        effect = program.send(None)
        while True:
            try:
                value = await effect.arun()
            except BaseException as error:
                effect = program.throw(error)
            else:
                effect = program.send(value)
    except StopIteration as stop:
        return cast(T, stop.value)


class FunctionEffect(Generic[T]):
    """An effect made of two functions: one that blocks, one that awaits.

    >>> async def awaited() -> str:
    ...     return "done"
    >>> effect = FunctionEffect(lambda: "done", awaited)
    >>> effect.run(), block_on(effect.arun())
    ('done', 'done')
    """

    __slots__ = ("_awaited", "_blocking")

    def __init__(self, blocking: Callable[[], T], awaited: Callable[[], Awaitable[T]]) -> None:
        self._blocking, self._awaited = blocking, awaited

    def run(self) -> T:
        return self._blocking()

    async def arun(self) -> T:
        return await self._awaited()


class Gather(Generic[T]):
    """An effect: run several programs at once, at most ``limit`` at a time; their values come in the given order.

    So many threads or tasks take the programs one after the other. Each program runs in a copy of the caller's context.
    When one raises, programs not yet started are dropped, running ones are cancelled (async) or waited for (sync), and of
    the errors that came the first in the given order is raised. An interrupt of a blocked caller waits for nobody: what
    runs goes on in daemon threads, and its value is dropped.

    >>> def number(n: int) -> Steps[int]:
    ...     return n
    ...     yield
    >>> def both() -> Steps[list[int]]:
    ...     return (yield Gather([number(1), number(2)]))
    >>> run(both())
    [1, 2]
    """

    __slots__ = ("_limit", "_programs")

    nests = True  # other programs run inside: see ``streams``

    def __init__(self, programs: Sequence[Steps[T]], *, limit: int | None = None) -> None:
        self._programs = list(programs)
        self._limit = max(1, min(limit or len(self._programs), max(1, len(self._programs))))

    def run(self) -> list[T]:
        if self._limit == 1:
            return [contextvars.copy_context().run(run, program) for program in self._programs]
        with _marking_loop_blocked():
            work = _GatherQueue(self._programs)
        threads = [threading.Thread(target=work.off, name="sigwire-gather", daemon=True) for _ in range(self._limit)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:  # an interrupt too: nothing more is begun
            work.drop()
        return work.values()

    async def arun(self) -> list[T]:
        import asyncio

        work = _GatherQueue(self._programs)
        tasks = [asyncio.ensure_future(drive(work.taken())) for _ in range(self._limit)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError as error:
            await _cancelled(work, tasks)
            merge_partial(error, *work.failures.values())
            raise
        finally:
            await _cancelled(work, tasks)
        return work.values(given_up=(asyncio.CancelledError,))


async def _cancelled(work: _GatherQueue[Any], tasks: Sequence[asyncio.Task[Any]]) -> None:
    import asyncio

    work.drop()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _GatherQueue(Generic[T]):
    """Programs for several who each take the next one when they are done with one; and what came of them, by place.

    A few who take are cheaper than a task or a future for each program, in memory most of all: what one leaves behind is used
    up by the next.
    """

    __slots__ = ("_context", "_values", "_waiting", "failures")

    def __init__(self, programs: Sequence[Steps[T]]) -> None:
        self._context = contextvars.copy_context()
        self._waiting = deque(enumerate(programs))
        self._values: list[Any] = [None] * len(programs)
        self.failures: dict[int, BaseException] = {}

    def taken(self) -> Steps[None]:
        """Run one after the other. Where one fails, nobody begins another."""
        for place, program in _popped(self._waiting):
            try:
                self._values[place] = yield _Isolated(program, self._context)
            except BaseException as error:
                self.failures[place] = error
                self.drop()
                raise

    def off(self) -> None:
        """The same, in a thread of its own."""
        with suppress(BaseException):  # it is among the failures
            run(self.taken())

    def drop(self) -> None:
        """Forget those that have not begun."""
        self._waiting.clear()

    def values(self, given_up: tuple[type[BaseException], ...] = ()) -> list[T]:
        """The values in order; where there are errors the first in order is raised, a ``given_up`` one if all are."""
        if self.failures:
            first = min(self.failures, key=lambda place: (isinstance(self.failures[place], given_up), place))
            raise self.failures.pop(first)  # were it kept here, its traceback and it would keep each other
        return self._values


def _popped(waiting: deque[T]) -> Generator[T]:
    """What waits, first come first; in any thread."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


class _Isolated(Generic[T]):
    """An effect: run a program in a copy of a context, so that what it sets there is seen by nobody else."""

    __slots__ = ("_context", "_program")

    def __init__(self, program: Steps[T], context: contextvars.Context) -> None:
        self._program, self._context = program, context

    def run(self) -> T:
        return self._context.copy().run(run, self._program)

    async def arun(self) -> T:
        return await _inside(self._context.copy(), arun(self._program))


@coroutine
def _inside(context: contextvars.Context, awaited: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await in a context: each step is made there, whichever task makes it. Who never waits gives others a turn at the end."""
    waited = False
    try:
        waits_for = context.run(awaited.send, None)
        waited = True
        while True:
            try:
                value = yield waits_for
            except BaseException as error:
                waits_for = context.run(awaited.throw, error)
            else:
                waits_for = context.run(awaited.send, value)
    except StopIteration as stop:
        if not waited:
            yield
        return cast(T, stop.value)


# --- bridges between blocking and awaiting --------------------------------------------------------


def block_on(coroutine: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
    """Wait for a coroutine from blocking code, on an event loop of our own, whether or not one runs in this thread.

    The caller's context variables are visible inside. ``timeout`` is in seconds; past it the coroutine is cancelled and
    ``TimeoutError`` is raised. An interrupt cancels it too.

    >>> async def answer() -> int:
    ...     return 42
    >>> block_on(answer())
    42
    """
    import asyncio

    loop = _background_loop()
    if threading.current_thread() is loop.thread:
        coroutine.close()
        raise EventLoopError(
            "Blocking code that was called by a coroutine of this same loop would wait for itself. "
            "Await the async form (acall, arun) there instead."
        )
    scope = current_scope()
    with _marking_loop_blocked():
        future = asyncio.run_coroutine_threadsafe(
            coroutine if scope is None else run_cancellable(scope, coroutine), loop.loop
        )
    try:
        return future.result(timeout)
    except BaseException:
        future.cancel()
        raise


async def run_cancellable(scope: CancelScope, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await it; when those for whom it is done leave, it is cancelled and ``StreamCancelled`` raised. They may be in any thread.

    What is being cancelled already is let alone: an interrupted farewell leaves things open.
    """
    import asyncio

    loop, task = asyncio.get_running_loop(), cast("asyncio.Task[T]", asyncio.current_task())
    waits, left = True, False

    def cancel() -> None:
        nonlocal left
        if waits and not task.cancelling():
            left = task.cancel()

    def leave() -> None:
        with suppress(RuntimeError):  # the loop was closed, and this with it
            loop.call_soon_threadsafe(cancel)

    try:
        with scope.on_cancel(leave):
            return await coroutine
    except asyncio.CancelledError as error:
        if not left:
            raise
        task.uncancel()
        gone = StreamCancelled()
        merge_partial(gone, error)
        raise gone from None
    finally:
        waits = False
        coroutine.close()  # left before it began


async def to_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking code in a thread with the caller's context, so that the event loop stays free.

    Cancelling wakes what waits in the thread for a provider; the thread itself cannot be stopped.

    >>> import time
    >>> async def main() -> None:
    ...     await to_thread(time.sleep, 0.001)
    >>> block_on(main())
    """
    import asyncio

    context, scope, around = contextvars.copy_context(), CancelScope(), current_scope()

    def work() -> T:
        set_scope(scope)
        try:
            return function(*args, **kwargs)
        except StopIteration as error:  # a future cannot hold it: on Python 3.11 whoever waits would wait forever
            raise RuntimeError("a function that was called in a thread raised StopIteration") from error

    with on_cancel(scope.cancel):
        future = asyncio.get_running_loop().run_in_executor(_blocking_pool(), context.run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if scope.cancel() or (around is not None and around.cancelled):
                await asyncio.wait([future], timeout=CANCEL_GRACE_SECONDS)
                merge_partial(error, future.exception() if future.done() and not future.cancelled() else None)
            raise


def started_by_block_on() -> bool:
    """Whether somebody who blocks (``block_on``) waits for the running code, and not an event loop of the user's.

    >>> async def ask() -> bool:
    ...     return started_by_block_on()
    >>> block_on(ask()), started_by_block_on()
    (True, False)
    """
    return _loop is not None and threading.current_thread() is _loop.thread


# The event loops whose threads stand still until the running code is done.
_held: contextvars.ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = contextvars.ContextVar("held_loops", default=())


@contextmanager
def _marking_loop_blocked() -> Generator[None]:
    """Note, for what is begun in here, that the event loop of this thread, if there is one, will wait for it."""
    loop = _running_loop()
    if loop is None:
        yield
        return
    token = _held.set((*_held.get(), loop))
    try:
        yield
    finally:
        _held.reset(token)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    if "asyncio" not in sys.modules:  # then no loop runs either, and nothing needs to be imported to know it
        return None
    import asyncio

    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


def has_running_loop() -> bool:
    """Whether this thread is running an event loop, which must not be kept waiting.

    >>> has_running_loop()
    False
    """
    return _running_loop() is not None


class OwnerLoop:
    """The event loop on which something lives (a session, a connection), and on which alone it can be used.

    It is the loop given, or else the one that runs where the object is made; where none runs, there is no home, and
    work happens on whatever loop it is awaited on.

    >>> async def double(n: int) -> int:
    ...     return 2 * n
    >>> block_on(OwnerLoop().run(lambda: double(21)))
    42
    """

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or _running_loop()

    def __bool__(self) -> bool:
        return self._loop is not None

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await what ``start`` makes, at home, wherever this is awaited. Cancelling reaches it there.

        Raises ``EventLoopError`` where that would never end: the loop is closed, stopped, or waits for this very call.
        """
        import asyncio

        home = self._loop
        if home is None or home is asyncio.get_running_loop():
            return await start()
        if fault := self._fault(home):
            raise EventLoopError(fault)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), home))

    @staticmethod
    def _fault(home: asyncio.AbstractEventLoop) -> str:
        if home in _held.get():
            return (
                "The event loop that is needed here waits for this very call: a blocking call was made on it. "
                "Await the async form (acall) there instead, or block in another thread: await asyncio.to_thread(...)."
            )
        if home.is_closed() or not home.is_running():
            state = "closed" if home.is_closed() else "not running"
            return (
                f"The event loop that is needed here is {state}. Keep it running, in its own thread, for as long as what was "
                "opened on it is used."
            )
        return ""


class _BackgroundLoop:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        import asyncio

        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._serve, name="sigwire-loop", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """Run the loop for good: asyncio stops it when a task raises an interrupt, which that task's waiter gets anyway."""
        while True:
            with suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()


_lock = threading.Lock()
_loop: _BackgroundLoop | None = None
_pool: ThreadPoolExecutor | None = None
# No limit in practice: what is under way is limited by who starts it (num_threads, parallel), and blocking work that waits for
# other blocking work would wait for ever in a full pool. Threads are made only when no other one is free.
_BLOCKING_THREADS = 10_000


def _background_loop() -> _BackgroundLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = _BackgroundLoop()
        return _loop


def _blocking_pool() -> ThreadPoolExecutor:
    global _pool
    from concurrent.futures import ThreadPoolExecutor

    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_BLOCKING_THREADS, thread_name_prefix="sigwire-blocking")
        return _pool


def reset_after_fork() -> None:
    """In a forked child: threads did not come along, and the lock may have been held by one of them."""
    global _lock, _loop, _pool
    _lock, _loop, _pool = threading.Lock(), None, None


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=reset_after_fork)
