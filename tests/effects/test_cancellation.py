"""Leaving: what waits in another thread or on another loop is woken, whenever it began to wait; and tells what it had."""

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
    set_scope,
)
from sigwire.effects.steps import Gather, Steps, arun, block_on, run_cancellable, to_thread

T = TypeVar("T")


def within(scope: CancelScope, function: Callable[[], T]) -> T:
    """Call a function as work that is done for a scope."""

    def work() -> T:
        set_scope(scope)
        return function()

    return contextvars.copy_context().run(work)


def test_whoever_waits_is_woken_once() -> None:
    scope, woken = CancelScope(), list[int]()

    def wait() -> None:
        with on_cancel(lambda: woken.append(1)), on_cancel(lambda: woken.append(2)):
            assert scope.cancel()
            assert not scope.cancel()

    within(scope, wait)
    assert woken == [1, 2]


def test_who_waits_no_more_is_not_woken() -> None:
    scope = CancelScope()

    def wait() -> None:
        with on_cancel(pytest.fail):
            pass

    within(scope, wait)
    assert not scope.cancel()


def test_who_begins_to_wait_too_late_does_not_wait() -> None:
    scope = CancelScope()
    scope.cancel()

    def wait() -> None:
        with pytest.raises(StreamCancelled), on_cancel(pytest.fail):
            pytest.fail("waits for nobody")

    within(scope, wait)


def test_scopes_within_are_left_along() -> None:
    outer, inner = CancelScope(), CancelScope()
    with outer.on_cancel(inner.cancel):
        assert not outer.cancel()  # nothing waited in either
    assert inner.cancelled


def test_without_a_scope_leaving_means_nothing() -> None:
    with on_cancel(pytest.fail):
        assert current_scope() is None


def test_what_was_said_goes_on_from_what_was_given_up_and_not_from_what_failed() -> None:
    outer, inner, failed = StreamCancelled(), StreamCancelled(), ValueError()
    outer.steps, inner.steps, inner.partial, failed.message = 1, 2, "so far", "no"  # type: ignore[attr-defined]
    merge_partial(outer, failed, None, inner)
    assert vars(outer) == {"steps": 1, "partial": "so far"}


# --- the bridges -----------------------------------------------------------------------------------------


async def _forever(begun: Callable[[], object]) -> None:
    begun()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError as error:
        error.partial = "so far"  # type: ignore[attr-defined]
        raise


def test_a_coroutine_that_is_waited_for_is_cancelled_and_its_word_comes_out() -> None:
    scope = CancelScope()
    with pytest.raises(StreamCancelled) as caught:
        within(scope, lambda: block_on(_forever(scope.cancel)))
    assert vars(caught.value) == {"partial": "so far"}


def test_a_coroutine_is_not_begun_for_who_has_left() -> None:
    scope = CancelScope()
    scope.cancel()
    with pytest.raises(StreamCancelled):
        within(scope, lambda: block_on(_forever(lambda: pytest.fail("begun"))))


def test_a_loop_of_the_callers_own_is_left_along_and_its_word_comes_out() -> None:
    scope, log = CancelScope(), list[str]()

    class Forever:
        def run(self) -> Any: ...

        async def arun(self) -> None:
            await _forever(scope.cancel)

    def waits() -> Steps[None]:
        try:
            yield Forever()
        finally:
            log.append("put away")

    async def main() -> None:
        try:
            await arun(waits())
        finally:
            task = asyncio.current_task()
            assert task is not None
            assert not task.cancelling()  # what is awaited from here on is not cut short

    with pytest.raises(StreamCancelled) as caught:
        within(scope, lambda: asyncio.run(main()))
    assert vars(caught.value) == {"partial": "so far"}
    assert log == ["put away"]


def test_who_is_being_cancelled_puts_away_undisturbed_what_they_hold() -> None:
    scope, log = CancelScope(), list[str]()

    async def farewell() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            scope.cancel()
            await asyncio.sleep(0)
            log.append("put away")

    async def main() -> None:
        task = asyncio.ensure_future(run_cancellable(scope, farewell()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == ["put away"]


def test_a_loop_that_was_closed_is_left_in_peace() -> None:
    scope, loop = CancelScope(), asyncio.new_event_loop()
    task = loop.create_task(run_cancellable(scope, _forever(loop.stop)))
    loop.run_forever()
    loop.close()
    assert scope.cancel()
    task.cancelled()  # still referred to until here


def test_a_coroutine_that_cancels_itself_is_no_leaving() -> None:
    async def cancels() -> None:
        raise asyncio.CancelledError

    with pytest.raises(BaseException) as caught:
        within(CancelScope(), lambda: block_on(cancels()))
    assert not isinstance(caught.value, StreamCancelled)


def _wait_until_woken(begun: Callable[[], object]) -> None:
    woken = threading.Event()
    with on_cancel(woken.set):
        begun()
        assert woken.wait(5)
    gone = StreamCancelled()
    gone.partial = "so far"  # type: ignore[attr-defined]
    raise gone


async def test_cancelling_wakes_what_waits_in_a_thread_and_its_word_comes_out() -> None:
    loop, waiting = asyncio.get_running_loop(), asyncio.Event()
    task = asyncio.ensure_future(to_thread(_wait_until_woken, lambda: loop.call_soon_threadsafe(waiting.set)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert vars(caught.value) == {"partial": "so far"}


async def test_cancelling_does_not_wait_for_a_thread_that_nothing_can_wake() -> None:
    loop, running, go_on, ended = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), threading.Event()

    def work() -> None:
        loop.call_soon_threadsafe(running.set)
        go_on.wait(5)
        ended.set()

    task = asyncio.ensure_future(to_thread(work))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_cancelled_gathering_keeps_the_word_of_what_ran_in_it() -> None:
    begun = asyncio.Event()

    class Forever:
        def run(self) -> Any: ...

        async def arun(self) -> None:
            await _forever(begun.set)

    def waits() -> Steps[None]:
        yield Forever()

    def both() -> Steps[Any]:
        return (yield Gather([waits(), waits()]))

    task = asyncio.ensure_future(arun(both()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert vars(caught.value) == {"partial": "so far"}


async def test_leaving_a_gathering_reaches_all_that_run_in_it_and_begins_no_other() -> None:
    scope, begun, told = CancelScope(), list[int](), list[type[BaseException]]()
    both = asyncio.Event()

    class Forever:
        def run(self) -> Any: ...

        async def arun(self) -> None:
            if len(begun) == 2:
                both.set()
            await asyncio.Event().wait()

    def waits(n: int) -> Steps[None]:
        begun.append(n)
        try:
            yield Forever()
        except BaseException as error:
            told.append(type(error))
            raise

    def many() -> Steps[Any]:
        return (yield Gather([waits(n) for n in range(9)], limit=2))

    task = within(scope, lambda: asyncio.ensure_future(arun(many())))
    await both.wait()
    scope.cancel()
    with pytest.raises(StreamCancelled):
        await task
    assert (begun, told) == ([0, 1], [asyncio.CancelledError] * 2)


async def test_a_program_that_is_cancelled_before_it_began_leaves_nothing_unawaited() -> None:
    def nothing() -> Steps[None]:
        raise AssertionError("was begun")
        yield

    task = within(CancelScope(), lambda: asyncio.ensure_future(arun(nothing())))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
