"""Cancel scopes: waits in other threads and loops are woken, and partial results are kept."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from sigwire.effects.cancellation import (
    CancelScope,
    StreamCancelled,
    current_scope,
    merge_partial,
    on_cancel,
    run_cancellable,
    set_scope,
)
from sigwire.effects.gather import Gather
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Steps, arun

T = TypeVar("T")


def within(scope: CancelScope, function: Callable[[], T]) -> T:
    """Call a function in a context with a cancel scope."""

    def work() -> T:
        set_scope(scope)
        return function()

    return contextvars.copy_context().run(work)


def test_cancel_calls_each_callback_once() -> None:
    scope, woken = CancelScope(), list[int]()

    def wait() -> None:
        with on_cancel(lambda: woken.append(1)), on_cancel(lambda: woken.append(2)):
            assert scope.cancel()
            assert not scope.cancel()

    within(scope, wait)
    assert woken == [1, 2]


def test_cancel_does_not_call_a_callback_after_its_block() -> None:
    scope = CancelScope()

    def wait() -> None:
        with on_cancel(pytest.fail):
            pass

    within(scope, wait)
    assert not scope.cancel()


def test_on_cancel_raises_when_the_scope_is_cancelled_already() -> None:
    scope = CancelScope()
    scope.cancel()

    def wait() -> None:
        with pytest.raises(StreamCancelled), on_cancel(pytest.fail):
            pytest.fail("entered the block")

    within(scope, wait)


def test_cancelled_scope_cancels_inner_scopes() -> None:
    outer, inner = CancelScope(), CancelScope()
    with outer.on_cancel(inner.cancel):
        assert not outer.cancel()  # no wait was registered
    assert inner.cancelled


def test_on_cancel_does_nothing_without_a_scope() -> None:
    with on_cancel(pytest.fail):
        assert current_scope() is None


def test_merge_partial_copies_attributes_of_cancellations_only() -> None:
    outer, inner, failed = StreamCancelled(), StreamCancelled(), ValueError()
    outer.steps, inner.steps, inner.partial, failed.message = 1, 2, "par", "no"  # type: ignore[attr-defined]
    merge_partial(outer, failed, None, inner)
    assert vars(outer) == {"steps": 1, "partial": "par"}


# --- the bridges -----------------------------------------------------------------------------------------


async def _forever(started: Callable[[], object]) -> None:
    started()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError as error:
        error.partial = "par"  # type: ignore[attr-defined]
        raise


def test_cancelled_scope_cancels_the_coroutine_of_block_on() -> None:
    scope = CancelScope()
    with pytest.raises(StreamCancelled) as caught:
        within(scope, lambda: block_on(_forever(scope.cancel)))
    assert vars(caught.value) == {"partial": "par"}


def test_block_on_does_not_start_a_coroutine_in_a_cancelled_scope() -> None:
    scope = CancelScope()
    scope.cancel()
    with pytest.raises(StreamCancelled):
        within(scope, lambda: block_on(_forever(lambda: pytest.fail("started"))))


def test_cancelled_scope_cancels_steps_on_a_loop_of_the_user() -> None:
    scope, log = CancelScope(), list[str]()

    class Forever:
        def run(self) -> Any: ...

        async def arun(self) -> None:
            await _forever(scope.cancel)

    def waits() -> Steps[None]:
        try:
            yield Forever()
        finally:
            log.append("released")

    async def main() -> None:
        try:
            await arun(waits())
        finally:
            task = asyncio.current_task()
            assert task is not None
            assert not task.cancelling()  # later awaits are not cancelled

    with pytest.raises(StreamCancelled) as caught:
        within(scope, lambda: asyncio.run(main()))
    assert vars(caught.value) == {"partial": "par"}
    assert log == ["released"]


def test_cancelled_scope_does_not_interrupt_the_cleanup_of_a_cancelled_task() -> None:
    scope, log = CancelScope(), list[str]()

    async def cleanup() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            scope.cancel()
            await asyncio.sleep(0)
            log.append("released")

    async def main() -> None:
        task = asyncio.ensure_future(run_cancellable(scope, cleanup()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == ["released"]


def test_cancelled_scope_ignores_a_closed_loop() -> None:
    scope, loop = CancelScope(), asyncio.new_event_loop()
    task = loop.create_task(run_cancellable(scope, _forever(loop.stop)))
    loop.run_forever()
    loop.close()
    assert scope.cancel()
    task.cancelled()  # still referred to until here


def test_coroutine_that_cancels_itself_does_not_raise_stream_cancelled() -> None:
    async def cancels() -> None:
        raise asyncio.CancelledError

    with pytest.raises(BaseException) as caught:
        within(CancelScope(), lambda: block_on(cancels()))
    assert not isinstance(caught.value, StreamCancelled)


def _wait_until_woken(started: Callable[[], object]) -> None:
    woken = threading.Event()
    with on_cancel(woken.set):
        started()
        assert woken.wait(60)
    cancelled = StreamCancelled()
    cancelled.partial = "par"  # type: ignore[attr-defined]
    raise cancelled


async def test_cancelled_to_thread_wakes_the_thread_and_merges_its_partial() -> None:
    loop, waiting = asyncio.get_running_loop(), asyncio.Event()
    task = asyncio.ensure_future(to_thread(_wait_until_woken, lambda: loop.call_soon_threadsafe(waiting.set)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert vars(caught.value) == {"partial": "par"}


async def test_cancelled_to_thread_does_not_wait_for_a_thread_without_callbacks() -> None:
    loop, running, go_on, ended = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), threading.Event()

    def work() -> None:
        loop.call_soon_threadsafe(running.set)
        go_on.wait(60)
        ended.set()

    task = asyncio.ensure_future(to_thread(work))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 60)


async def test_cancelled_gather_merges_the_partial_of_its_steps() -> None:
    started = asyncio.Event()

    class Forever:
        def run(self) -> Any: ...

        async def arun(self) -> None:
            await _forever(started.set)

    def waits() -> Steps[None]:
        yield Forever()

    def both() -> Steps[Any]:
        return (yield Gather([waits(), waits()]))

    task = asyncio.ensure_future(arun(both()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert vars(caught.value) == {"partial": "par"}


async def test_cancelled_scope_cancels_running_steps_of_a_gather_and_starts_no_more() -> None:
    scope, started, errors = CancelScope(), list[int](), list[type[BaseException]]()
    both = asyncio.Event()

    class Forever:
        def run(self) -> Any: ...

        async def arun(self) -> None:
            if len(started) == 2:
                both.set()
            await asyncio.Event().wait()

    def waits(n: int) -> Steps[None]:
        started.append(n)
        try:
            yield Forever()
        except BaseException as error:
            errors.append(type(error))
            raise

    def many() -> Steps[Any]:
        return (yield Gather([waits(n) for n in range(9)], limit=2))

    task = within(scope, lambda: asyncio.ensure_future(arun(many())))
    await both.wait()
    scope.cancel()
    with pytest.raises(StreamCancelled):
        await task
    assert (started, errors) == ([0, 1], [asyncio.CancelledError] * 2)


async def test_steps_cancelled_before_their_start_have_no_unawaited_coroutine() -> None:
    def nothing() -> Steps[None]:
        raise AssertionError("was started")
        yield

    task = within(CancelScope(), lambda: asyncio.ensure_future(arun(nothing())))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
