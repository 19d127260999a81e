"""Programs that tell things as they go, and the drivers that hand on what is told.

A program says something with ``yield Emit(event)``. Under ``run`` and ``arun`` nobody hears it; these drivers hand it on:

    for event in stream(program())            blocks; the program's value is the generator's
    async for event in astream(program())     awaits; the last event is ``Returned(value)``

What is told comes out before the program goes on: nothing is read ahead. Two kinds of effects are special here:

- one that can be had in pieces has ``streamed()``, a program of the same value that emits; it is run instead;
- one inside which other programs run has ``nests = True`` (``Gather``, a user's ``forward``, a tool). It is run beside the
  stream, in a thread or a task of its own, and what is emitted there comes out too; who emitted it waits until it was read,
  except in blocking code on an event loop. Such an inner program is run by the plain drivers; an effect of it that could emit
  asks ``listening()``.

Who leaves a stream early raises ``StreamCancelled`` at the program's yield, so that it can put away what it holds; what
waits on a socket in another thread is woken (``leaving``). The same exception goes from the innermost program outwards, so
that in the end it holds what each of them put on it.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sigwire.effects.cancellation import (
    CANCEL_GRACE_SECONDS,
    CancelScope,
    StreamCancelled,
    current_scope,
    merge_partial,
    on_cancel,
    set_scope,
)
from sigwire.effects.steps import Effect, Steps, drive, has_running_loop, run, run_cancellable

__all__ = ["Emit", "Returned", "StreamCancelled", "astream", "in_stream", "on_cancel", "stream"]

T = TypeVar("T")


class Emit:
    """An effect: tell these events to whoever streams the program. Without a stream nobody hears them.

    >>> def count() -> Steps[str]:
    ...     for number in range(2):
    ...         yield Emit(number)
    ...     return "done"
    >>> list(stream(count())), run(count())
    ([0, 1], 'done')
    """

    __slots__ = ("events",)

    def __init__(self, *events: Any) -> None:
        self.events = events

    def run(self) -> None:
        if (ear := _ear.get()) is not None:
            ear.put(self.events)

    async def arun(self) -> None:
        if (ear := _ear.get()) is not None:
            await ear.aput(self.events)


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The last item of ``astream``: the program's value. (Asynchronous generators return none.)"""

    value: T


def in_stream() -> bool:
    """Whether what is run here is part of a stream that runs elsewhere: an effect that can emit should then.

    >>> listening()
    False
    """
    return _ear.get() is not None


def stream(program: Steps[T], *, left: Callable[[StreamCancelled], object] | None = None) -> Generator[Any, None, T]:
    """Run a program, blocking, and yield what it emits as it comes; the generator's value is the program's.

    Closing the generator early raises ``StreamCancelled`` at the program's yield, waits until the program has cleaned up, and
    hands that exception (with what programs put on it) to ``left``.
    """
    return (yield from _streamed(program, StreamCancelled(), left))


def _streamed(
    program: Steps[T], gone: StreamCancelled, left: Callable[[StreamCancelled], object] | None = None
) -> Generator[Any, None, T]:
    """``gone`` is what programs hear when the stream is left, from the innermost one outwards."""
    try:
        effect = program.send(None)
        while True:
            try:
                value = yield from _in_pieces(effect, gone)
            except GeneratorExit:
                run(_leaving(program, gone, left))
                raise
            except BaseException as error:
                effect = program.throw(error)
            else:
                effect = program.send(value)
    except StopIteration as stop:
        return cast(T, stop.value)


def _in_pieces(effect: Any, gone: StreamCancelled) -> Generator[Any, None, Any]:
    if type(effect) is Emit:
        yield from effect.events
        return None
    if (streamed := getattr(effect, "streamed", None)) is not None:
        return (yield from _streamed(streamed(), gone))
    if getattr(effect, "nests", False):
        return (yield from _run_nested(effect, gone))
    value: Any = effect.run()
    return value


def _run_nested(effect: Effect[Any], gone: StreamCancelled) -> Generator[Any, None, Any]:
    """Run an effect in a thread; yield what is emitted there."""
    from concurrent.futures import Future
    from queue import SimpleQueue

    told: SimpleQueue[Any] = SimpleQueue()
    future: Future[Any] = Future()
    ear = _EventQueue(told.put)

    def work() -> None:
        ear.listen()
        try:
            future.set_result(effect.run())
        except BaseException as error:
            future.set_exception(error)
        told.put(future)

    with on_cancel(ear.scope.cancel):
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), name="sigwire-stream", daemon=True).start()
        try:
            while (heard := told.get()) is not future:
                yield from heard.events
                heard.take()
        except BaseException as error:
            if ear.scope.cancel() or isinstance(error, GeneratorExit):  # an interrupt waits only for what it woke
                with suppress(TimeoutError):  # a thread cannot be stopped: what does not end soon goes on unheard
                    merge_partial(
                        gone if isinstance(error, GeneratorExit) else error, future.exception(CANCEL_GRACE_SECONDS)
                    )
            raise
        finally:
            ear.scope.cancel()
    return future.result()


async def astream(
    program: Steps[T], *, left: Callable[[StreamCancelled], object] | None = None
) -> AsyncGenerator[Any, None]:
    """``stream``, awaited. The last item is ``Returned(value)``. Cancelling the task raises ``CancelledError`` at the
    program's yield; closing the generator early raises ``StreamCancelled`` there.

    >>> async def last(program: Steps[Any]) -> Any:
    ...     return [event async for event in astream(program)][-1]
    >>> def nothing() -> Steps[str]:
    ...     yield Emit("started")
    ...     return "done"
    >>> from sigwire.effects.steps import block_on
    >>> block_on(last(nothing()))
    Returned(value='done')
    """
    async with aclosing(_astreamed(program, StreamCancelled(), left)) as events:
        async for event in events:
            yield event


async def _astreamed(
    program: Steps[Any], gone: StreamCancelled, left: Callable[[StreamCancelled], object] | None = None
) -> AsyncGenerator[Any, None]:
    value: Any
    scope = current_scope()
    try:
        effect: Any = program.send(None)
        while True:
            try:
                value = None
                if type(effect) is Emit:
                    for event in effect.events:
                        yield event
                elif _has_pieces(effect):
                    async with aclosing(_apieces(effect, gone)) as pieces:
                        async for event in pieces:
                            if type(event) is Returned:
                                value = cast(Any, event).value
                            else:
                                yield event
                else:
                    value = await (effect.arun() if scope is None else run_cancellable(scope, effect.arun()))
            except GeneratorExit:
                await drive(_leaving(program, gone, left))
                raise
            except BaseException as error:
                if not isinstance(error, Exception):  # the program knows; what it does now is putting away
                    scope = None
                effect = program.throw(error)
            else:
                effect = program.send(value)
    except StopIteration as stop:
        value = stop.value
    yield Returned(value)


def _has_pieces(effect: Any) -> bool:
    return getattr(effect, "nests", False) or hasattr(effect, "streamed")


def _apieces(effect: Any, gone: StreamCancelled) -> AsyncGenerator[Any, None]:
    return _astreamed(effect.streamed(), gone) if hasattr(effect, "streamed") else _arun_nested(effect, gone)


async def _arun_nested(effect: Effect[Any], gone: StreamCancelled) -> AsyncGenerator[Any, None]:
    """Await an effect in a task; yield what is emitted there, last its value."""
    import asyncio

    loop, told = asyncio.get_running_loop(), asyncio.Queue[Any]()
    here = threading.get_ident()

    def tell(heard: _Delivery) -> None:
        if threading.get_ident() == here:
            told.put_nowait(heard)
        else:
            loop.call_soon_threadsafe(told.put_nowait, heard)

    ear = _EventQueue(tell)
    failures: list[BaseException] = []

    async def work() -> Any:
        ear.listen()
        try:
            return await effect.arun()
        except BaseException as error:
            failures.append(error)
            raise

    with on_cancel(ear.scope.cancel):
        task = asyncio.ensure_future(work())
        task.add_done_callback(told.put_nowait)
        try:
            while (heard := await told.get()) is not task:
                for event in heard.events:
                    yield event
                heard.take()
            yield Returned(task.result())
        except BaseException as error:
            if not task.done():
                ear.scope.cancel()
                task.cancel()
                await asyncio.wait([task])
                merge_partial(gone if isinstance(error, GeneratorExit) else error, *failures)
            raise
        finally:
            ear.scope.cancel()


def _leaving(
    program: Steps[Any], gone: StreamCancelled, left: Callable[[StreamCancelled], object] | None
) -> Steps[None]:
    """The rest of a program that nobody reads any more: it is told so, and cleans up."""
    try:
        effect = program.throw(gone)
        while True:
            try:
                value = yield effect
            except BaseException as error:
                effect = program.throw(error)
            else:
                effect = program.send(value)
    except StopIteration:
        pass
    except StreamCancelled as error:
        if error is not gone:
            raise
    finally:
        if left is not None:
            left(gone)


class _Delivery(NamedTuple):
    """What was told beside a stream; ``take`` lets who told it go on."""

    events: tuple[Any, ...]
    take: Callable[[], object]


class _EventQueue:
    """Where programs beside a stream tell what they emit. They go on when it was read; ``StreamCancelled`` where nobody will."""

    __slots__ = ("_tell", "scope")

    def __init__(self, tell: Callable[[_Delivery], None]) -> None:
        self._tell, self.scope = tell, CancelScope()

    def listen(self) -> None:
        """What follows in this context is told here."""
        _ear.set(self)
        set_scope(self.scope)

    def put(self, events: tuple[Any, ...]) -> None:
        """Tell, and wait until it was read. On an event loop, which others need meanwhile, tell only."""
        from queue import SimpleQueue

        taken: SimpleQueue[None] = SimpleQueue()
        take = partial(taken.put, None)
        with self.scope.on_cancel(take):
            self._tell(_Delivery(events, take))
            if not has_running_loop():
                taken.get()
        if self.scope.cancelled:
            raise StreamCancelled

    async def aput(self, events: tuple[Any, ...]) -> None:
        """Tell, and await that it was read."""
        import asyncio

        loop, taken, here = asyncio.get_running_loop(), asyncio.Event(), threading.get_ident()

        def take() -> None:
            if threading.get_ident() == here:
                taken.set()
            else:
                with suppress(RuntimeError):  # the loop was closed, and who told with it
                    loop.call_soon_threadsafe(taken.set)

        with self.scope.on_cancel(take):
            self._tell(_Delivery(events, take))
            await taken.wait()
        if self.scope.cancelled:
            raise StreamCancelled


_ear: ContextVar[_EventQueue | None] = ContextVar("sigwire_ear", default=None)
