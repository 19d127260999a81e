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
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast

from sigwire.errors import EventLoopError
from sigwire.leaving import PATIENCE, Scope, StreamLeft, current_scope, enter, learn, on_leave

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = [
    "Effect",
    "Either",
    "Gather",
    "HomeLoop",
    "Program",
    "arun",
    "block_on",
    "driven",
    "is_blocking",
    "leavable",
    "off_loop",
    "on_a_loop",
    "run",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")


class Effect(Protocol[T_co]):
    """Something that has to be waited for. Either method gives the same value or raises the same error."""

    def run(self) -> T_co: ...

    async def arun(self) -> T_co: ...


Program: TypeAlias = Generator[Effect[Any], Any, T]


def run(program: Program[T]) -> T:
    """Run a program, blocking. Works in any thread, also inside a running event loop.

    >>> def double(text: str) -> Program[str]:
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


async def arun(program: Program[T]) -> T:
    """Run a program on the running event loop. Cancelling the task raises ``CancelledError`` at the program's yield.

    So does leaving it, where that is done in another thread, and ``StreamLeft`` comes out: a user's ``asyncio.run`` inside
    a program that is streamed is left along.
    """
    scope = current_scope()
    return await (driven(program) if scope is None else leavable(scope, driven(program)))


async def driven(program: Program[T]) -> T:
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


class Either(Generic[T]):
    """An effect made of two functions: one that blocks, one that awaits.

    >>> async def awaited() -> str:
    ...     return "done"
    >>> effect = Either(lambda: "done", awaited)
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

    Each program runs in a copy of the caller's context. When one raises, programs not yet started are dropped, running
    ones are cancelled (async) or waited for (sync), and of the errors that came the first in the given order is raised.
    An interrupt of a blocked caller waits for nobody: what runs goes on in daemon threads, and its value is dropped.

    >>> def number(n: int) -> Program[int]:
    ...     return n
    ...     yield
    >>> def both() -> Program[list[int]]:
    ...     return (yield Gather([number(1), number(2)]))
    >>> run(both())
    [1, 2]
    """

    __slots__ = ("_limit", "_programs")

    nests = True  # other programs run inside: see ``streams``

    def __init__(self, programs: Sequence[Program[T]], *, limit: int | None = None) -> None:
        self._programs = list(programs)
        self._limit = max(1, min(limit or len(self._programs), max(1, len(self._programs))))

    def run(self) -> list[T]:
        if self._limit == 1:
            return [contextvars.copy_context().run(run, program) for program in self._programs]
        from concurrent.futures import FIRST_EXCEPTION, wait

        with _holding_its_loop():
            jobs = [_Job(program) for program in self._programs]
        futures = [job.future for job in jobs]
        waiting = deque(jobs)
        for _ in range(self._limit):
            threading.Thread(target=_work_off, args=(waiting,), name="sigwire-gather", daemon=True).start()
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:  # an interrupt too: nothing more is begun
            for future in futures:
                future.cancel()
        wait(futures)
        return _results(futures)

    async def arun(self) -> list[T]:
        import asyncio

        gate = asyncio.Semaphore(self._limit)
        failures: list[BaseException] = []

        async def one(program: Program[T]) -> T:
            async with gate:
                if failures:  # the gate opens before the others can be cancelled
                    raise asyncio.CancelledError
                try:
                    return await arun(program)
                except BaseException as error:
                    failures.append(error)
                    raise

        tasks = [asyncio.ensure_future(one(program)) for program in self._programs]
        try:
            if tasks:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError as error:
            await _cancelled(tasks)
            learn(error, *failures)
            raise
        finally:
            await _cancelled(tasks)
        return _results(tasks)


async def _cancelled(tasks: Sequence[asyncio.Task[Any]]) -> None:
    import asyncio

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Job(Generic[T]):
    """A program that some thread will run, in a copy of the context in which the job was made."""

    __slots__ = ("_context", "_program", "future")

    def __init__(self, program: Program[T]) -> None:
        from concurrent.futures import Future

        self._program, self._context = program, contextvars.copy_context()
        self.future: Future[T] = Future()

    def work(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            value = self._context.run(run, self._program)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(value)


def _work_off(waiting: deque[_Job[T]]) -> None:
    with suppress(IndexError):  # nothing waits any more
        while True:
            waiting.popleft().work()


def _results(finished: Sequence[Future[T]] | Sequence[asyncio.Task[T]]) -> list[T]:
    """The values in order; the first error in order instead, where one failed and the others were cancelled for it."""
    for future in finished:
        if not future.cancelled() and (error := future.exception()) is not None:
            raise error
    return [future.result() for future in finished]


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
    with _holding_its_loop():
        future = asyncio.run_coroutine_threadsafe(coroutine if scope is None else leavable(scope, coroutine), loop.loop)
    try:
        return future.result(timeout)
    except BaseException:
        future.cancel()
        raise


async def leavable(scope: Scope, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await it; when those for whom it is done leave, it is cancelled and ``StreamLeft`` raised. They may be in any thread.

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
        with scope.watching(leave):
            return await coroutine
    except asyncio.CancelledError as error:
        if not left:
            raise
        task.uncancel()
        gone = StreamLeft()
        learn(gone, error)
        raise gone from None
    finally:
        waits = False
        coroutine.close()  # left before it began


async def off_loop(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking code in a thread with the caller's context, so that the event loop stays free.

    Cancelling wakes what waits in the thread for a provider; the thread itself cannot be stopped.

    >>> import time
    >>> async def main() -> None:
    ...     await off_loop(time.sleep, 0.001)
    >>> block_on(main())
    """
    import asyncio

    context, scope, around = contextvars.copy_context(), Scope(), current_scope()

    def work() -> T:
        enter(scope)
        try:
            return function(*args, **kwargs)
        except StopIteration as error:  # a future cannot hold it: on Python 3.11 whoever waits would wait forever
            raise RuntimeError("a function that was called in a thread raised StopIteration") from error

    with on_leave(scope.leave):
        future = asyncio.get_running_loop().run_in_executor(_blocking_pool(), context.run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError as error:
            if scope.leave() or (around is not None and around.gone):
                await asyncio.wait([future], timeout=PATIENCE)
                learn(error, future.exception() if future.done() and not future.cancelled() else None)
            raise


def is_blocking() -> bool:
    """Whether somebody who blocks (``block_on``) waits for the running code, and not an event loop of the user's.

    >>> async def ask() -> bool:
    ...     return is_blocking()
    >>> block_on(ask()), is_blocking()
    (True, False)
    """
    return _loop is not None and threading.current_thread() is _loop.thread


# The event loops whose threads stand still until the running code is done.
_held: contextvars.ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = contextvars.ContextVar("held_loops", default=())


@contextmanager
def _holding_its_loop() -> Generator[None]:
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


def on_a_loop() -> bool:
    """Whether this thread is running an event loop, which must not be kept waiting.

    >>> on_a_loop()
    False
    """
    return _running_loop() is not None


class HomeLoop:
    """The event loop on which something lives (a session, a connection), and on which alone it can be used.

    It is the loop given, or else the one that runs where the object is made; where none runs, there is no home, and
    work happens on whatever loop it is awaited on.

    >>> async def double(n: int) -> int:
    ...     return 2 * n
    >>> block_on(HomeLoop().run(lambda: double(21)))
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


def _start_anew() -> None:
    """In a forked child: threads did not come along, and the lock may have been held by one of them."""
    global _lock, _loop, _pool
    _lock, _loop, _pool = threading.Lock(), None, None


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_start_anew)
