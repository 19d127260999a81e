"""Steps that emit events, and the drivers that stream those events.

Steps emit with ``yield Emit(event)``. The drivers ``run`` and ``arun`` drop events; ``stream`` and ``astream`` pass them to a
consumer. Events are passed on before the steps go on: nothing is read ahead. Two kinds of effects are streamed differently:

- an effect with ``streamed()``, which returns steps of the same value that emit: the driver runs those steps instead;
- an effect with ``nests = True``, inside which other steps run (``Gather``, a user's ``forward``, a tool). The effect runs in a
  thread or task of its own, and its events enter the stream. The emitter waits until the consumer has read its event, except in
  blocking code on an event loop. Nested steps run under the plain drivers; an effect that could emit asks ``in_stream()``.

If the consumer closes a stream early, ``StreamCancelled`` is raised at the yield of the steps, which release their resources;
waits in other threads are woken (``cancellation``). The exception propagates from the innermost steps outwards and collects the
attributes that each level sets.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from sigwire.effects.cancellation import (
    CANCEL_GRACE_SECONDS,
    CancelScope,
    StreamCancelled,
    current_scope,
    merge_partial,
    on_cancel,
    run_cancellable,
    set_scope,
)
from sigwire.effects.loops import has_running_loop
from sigwire.effects.steps import Effect, Steps, drive_unscoped, run

__all__ = ["Emit", "Returned", "StreamCancelled", "astream", "in_stream", "on_cancel", "stream", "stream_queue"]

T = TypeVar("T")
CancelCallback: TypeAlias = Callable[[StreamCancelled], object]


class Emit:
    """Effect: emit events to the consumer of the stream. Does nothing when nothing streams.

    >>> def count() -> Steps[str]:
    ...     for number in range(2):
    ...         yield Emit(number)
    ...     return "done"
    >>> list(stream(count())), run(count())
    ([0, 1], 'done')
    """

    __slots__ = ("events",)

    def __init__(self, *events: object) -> None:
        self.events: tuple[Any, ...] = events

    def run(self) -> None:
        if (queue := stream_queue.get()) is not None:
            queue.put(self.events)

    async def arun(self) -> None:
        if (queue := stream_queue.get()) is not None:
            await queue.aput(self.events)


@dataclass(frozen=True, slots=True)
class Returned(Generic[T]):
    """The last item of ``astream``: the value of the steps. (Asynchronous generators cannot return one.)"""

    value: T


def in_stream() -> bool:
    """Return True if the running code is nested in a stream, so that an effect that can emit should emit.

    >>> in_stream()
    False
    """
    return stream_queue.get() is not None


def stream(steps: Steps[T], *, on_cancelled: CancelCallback | None = None) -> Generator[Any, None, T]:
    """Run steps, blocking, and yield their events; the generator returns the value of the steps.

    Closing the generator early raises ``StreamCancelled`` at the yield of the steps and waits for their cleanup. Then
    ``on_cancelled`` is called with the exception, which has the attributes that the steps set on it.
    """
    return _stream_steps(steps, StreamCancelled(), on_cancelled)


def _stream_steps(
    steps: Steps[T], cancelled: StreamCancelled, on_cancelled: CancelCallback | None = None
) -> Generator[object, None, T]:
    """Run steps and yield their events. ``cancelled`` is raised in every level of steps if the stream is closed early."""
    try:
        effect: Any = steps.send(None)
        while True:
            try:
                value: object = None
                if type(effect) is Emit:
                    yield from effect.events
                elif (nested := _nested(effect, cancelled)) is not None:
                    value = yield from nested
                else:
                    value = effect.run()
            except GeneratorExit:
                run(_cancel(steps, cancelled, on_cancelled))
                raise
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
    except StopIteration as stop:
        return cast(T, stop.value)


def _nested(effect: Effect[object], cancelled: StreamCancelled) -> Generator[object, None, object] | None:
    """Return the events of an effect that emits; ``None`` for an effect that is just performed."""
    if (streamed := getattr(effect, "streamed", None)) is not None:
        return _stream_steps(streamed(), cancelled)
    return _run_nested(effect, cancelled) if getattr(effect, "nests", False) else None


def _run_nested(effect: Effect[object], cancelled: StreamCancelled) -> Generator[object, None, object]:
    from concurrent.futures import Future

    from sigwire.effects.inbox import Inbox

    future: Future[object] = Future()
    deliveries: Inbox[_Delivery | Future[object]] = Inbox()
    queue = _EventQueue(deliveries.put)

    def work() -> None:
        queue.install()
        try:
            future.set_result(effect.run())
        except BaseException as error:
            future.set_exception(error)
        deliveries.put(future)

    with on_cancel(queue.scope.cancel):
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), name="sigwire-stream", daemon=True).start()
        try:
            while type(delivery := deliveries.get()) is _Delivery:
                yield from delivery.events
                delivery.acknowledge()
        except BaseException as error:
            if queue.scope.cancel() or isinstance(error, GeneratorExit):  # an interrupt waits only for woken threads
                with suppress(TimeoutError):  # threads cannot be stopped: a slow one continues without a consumer
                    failure = future.exception(CANCEL_GRACE_SECONDS)
                    merge_partial(cancelled if isinstance(error, GeneratorExit) else error, failure)
            raise
        finally:
            queue.scope.cancel()
    return future.result(0)


async def astream(steps: Steps[T], *, on_cancelled: CancelCallback | None = None) -> AsyncGenerator[Any, None]:
    """``stream``, awaited. The last item is ``Returned(value)``. Cancelling the task raises ``CancelledError`` at the yield of
    the steps; closing the generator early raises ``StreamCancelled`` there.

    >>> async def last(steps: Steps[str]) -> object:
    ...     return [event async for event in astream(steps)][-1]
    >>> def nothing() -> Steps[str]:
    ...     yield Emit("started")
    ...     return "done"
    >>> import asyncio
    >>> asyncio.run(last(nothing()))
    Returned(value='done')
    """
    async with aclosing(_astream_steps(steps, StreamCancelled(), on_cancelled)) as events:
        async for event in events:
            yield event


async def _astream_steps(
    steps: Steps[T], cancelled: StreamCancelled, on_cancelled: CancelCallback | None = None
) -> AsyncGenerator[object, None]:
    scope = current_scope()
    value: object
    try:
        effect: Any = steps.send(None)
        while True:
            try:
                value = None
                if type(effect) is Emit:
                    for event in effect.events:
                        yield event
                elif (nested := _nested_events(effect, cancelled)) is not None:
                    async with aclosing(nested) as events:
                        async for event in events:
                            if type(event) is Returned:
                                value = cast("Returned[object]", event).value
                            else:
                                yield event
                else:
                    value = await (effect.arun() if scope is None else run_cancellable(scope, effect.arun()))
            except GeneratorExit:
                await drive_unscoped(_cancel(steps, cancelled, on_cancelled))
                raise
            except BaseException as error:
                if not isinstance(error, Exception):  # the steps are being cancelled: their cleanup must not be
                    scope = None
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
    except StopIteration as stop:
        value = stop.value
    yield Returned(value)


def _nested_events(effect: Effect[object], cancelled: StreamCancelled) -> AsyncGenerator[object, None] | None:
    """Return the events of an effect that emits, last its value; ``None`` for an effect that is just awaited."""
    if (streamed := getattr(effect, "streamed", None)) is not None:
        return _astream_steps(streamed(), cancelled)
    return _arun_nested(effect, cancelled) if getattr(effect, "nests", False) else None


async def _arun_nested(effect: Effect[object], cancelled: StreamCancelled) -> AsyncGenerator[object, None]:
    """Await an effect in a task; yield the events that are emitted there, last its value."""
    import asyncio

    loop, deliveries = asyncio.get_running_loop(), asyncio.Queue[_Delivery | asyncio.Task[object]]()
    here = threading.get_ident()

    def deliver(delivery: _Delivery) -> None:
        if threading.get_ident() == here:
            deliveries.put_nowait(delivery)
        else:
            loop.call_soon_threadsafe(deliveries.put_nowait, delivery)

    queue = _EventQueue(deliver)
    failures: list[BaseException] = []

    async def work() -> object:
        queue.install()
        try:
            return await effect.arun()
        except BaseException as error:
            failures.append(error)
            raise

    with on_cancel(queue.scope.cancel):
        task = asyncio.ensure_future(work())
        task.add_done_callback(deliveries.put_nowait)
        try:
            while type(delivery := await deliveries.get()) is _Delivery:
                for event in delivery.events:
                    yield event
                delivery.acknowledge()
            yield Returned(task.result())
        except BaseException as error:
            if not task.done():
                queue.scope.cancel()
                task.cancel()
                await asyncio.wait([task])
                merge_partial(cancelled if isinstance(error, GeneratorExit) else error, *failures)
            raise
        finally:
            queue.scope.cancel()


def _cancel(steps: Steps[T], cancelled: StreamCancelled, on_cancelled: CancelCallback | None) -> Steps[None]:
    """Raise ``cancelled`` at the yield of steps and run their cleanup. Effects of the cleanup are performed, not streamed."""
    try:
        effect = steps.throw(cancelled)
        while True:
            try:
                value = yield effect
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
    except StopIteration:
        pass
    except StreamCancelled as error:
        if error is not cancelled:
            raise
    finally:
        if on_cancelled is not None:
            on_cancelled(cancelled)


class _Delivery(NamedTuple):
    """Events from nested steps. ``acknowledge`` wakes the emitter, which waits until the consumer has read them."""

    events: tuple[object, ...]
    acknowledge: Callable[[], object]


class _EventQueue:
    """Passes the events of nested steps to a stream. Emitters are woken by ``StreamCancelled`` when the scope is cancelled."""

    __slots__ = ("_deliver", "scope")

    def __init__(self, deliver: Callable[[_Delivery], None]) -> None:
        self._deliver, self.scope = deliver, CancelScope()

    def install(self) -> None:
        stream_queue.set(self)
        set_scope(self.scope)

    def put(self, events: tuple[object, ...]) -> None:
        """Deliver events and wait until they were read. On an event loop, which must not block, do not wait."""
        from sigwire.effects.inbox import Inbox

        acknowledged: Inbox[None] = Inbox()
        acknowledge = partial(acknowledged.put, None)
        with self.scope.on_cancel(acknowledge):
            self._deliver(_Delivery(events, acknowledge))
            if not has_running_loop():
                acknowledged.get()
        if self.scope.cancelled:
            raise StreamCancelled

    async def aput(self, events: tuple[object, ...]) -> None:
        import asyncio

        loop, acknowledged, here = asyncio.get_running_loop(), asyncio.Event(), threading.get_ident()

        def acknowledge() -> None:
            if threading.get_ident() == here:
                acknowledged.set()
            else:
                with suppress(RuntimeError):  # the loop is closed, and the emitter with it
                    loop.call_soon_threadsafe(acknowledged.set)

        with self.scope.on_cancel(acknowledge):
            self._deliver(_Delivery(events, acknowledge))
            await acknowledged.wait()
        if self.scope.cancelled:
            raise StreamCancelled


stream_queue: ContextVar[_EventQueue | None] = ContextVar("sigwire_event_queue", default=None)
