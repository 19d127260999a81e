"""``Wait``: a future is awaited, blocking and awaited, and cancelled when the wait ends early."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

from sigwire.effects.cancellation import CancelScope, StreamCancelled, set_scope
from sigwire.effects.emitting import Emit, astream, stream
from sigwire.effects.gather import Gather
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import LMTimeoutError
from sigwire.lm.policy.retry import Sleep
from sigwire.lm.policy.waiting import Wait
from tests.patience import wait_until


def wait_for(future: Future[Any], deadline: float | None = None) -> Steps[Any]:
    return (yield Wait(future, deadline))


def resolve_soon(future: Future[Any], value: object) -> None:
    threading.Timer(0.02, future.set_result, [value]).start()


def test_wait_returns_the_value_that_another_thread_sets() -> None:
    future: Future[str] = Future()
    resolve_soon(future, "slot")
    assert run(wait_for(future)) == "slot"


async def test_wait_returns_the_value_that_another_thread_sets_when_awaited() -> None:
    future: Future[str] = Future()
    resolve_soon(future, "slot")
    assert await arun(wait_for(future)) == "slot"


def test_wait_returns_a_value_that_is_there_when_the_deadline_has_passed() -> None:
    future: Future[str] = Future()
    future.set_result("slot")
    assert run(wait_for(future, time.monotonic() - 1)) == "slot"
    assert asyncio.run(arun(wait_for(future, time.monotonic() - 1))) == "slot"


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("its own")])
def test_wait_raises_the_error_of_the_future(error: Exception) -> None:
    future: Future[str] = Future()
    future.set_exception(error)
    with pytest.raises(type(error), match=str(error.args[0])):
        run(wait_for(future))
    with pytest.raises(type(error), match=str(error.args[0])):
        asyncio.run(arun(wait_for(future)))


@pytest.mark.parametrize("drive", [run, lambda steps: asyncio.run(arun(steps))])
def test_wait_raises_a_timeout_error_and_cancels_the_future_when_the_deadline_passes(drive: Any) -> None:
    future: Future[str] = Future()
    with pytest.raises(LMTimeoutError, match="waiting to send"):
        drive(wait_for(future, time.monotonic() + 0.01))
    assert future.cancelled()


async def test_wait_cancels_the_future_when_its_task_is_cancelled() -> None:
    future: Future[str] = Future()
    task = asyncio.ensure_future(arun(wait_for(future)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert future.cancelled()


async def test_wait_keeps_the_result_of_the_future_when_its_task_is_cancelled_at_the_same_moment() -> None:
    future: Future[str] = Future()
    task = asyncio.ensure_future(arun(wait_for(future)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    future.set_result("slot")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not future.cancelled()


def test_wait_cancels_the_future_when_the_scope_of_its_thread_is_cancelled() -> None:
    future, scope, outcome = Future[str](), CancelScope(), list[BaseException]()

    def work() -> None:
        set_scope(scope)
        try:
            run(wait_for(future))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: scope.callbacks)
    assert scope.cancel()
    thread.join(60)
    assert type(outcome[0]) is StreamCancelled
    assert future.cancelled()


def test_wait_is_woken_in_a_thread_when_the_awaiting_task_is_cancelled() -> None:
    future: Future[str] = Future()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(to_thread(run, wait_for(future)), 0.02)

    block_on(main())
    assert future.cancelled()


def waiting_and_emitting(future: Future[Any]) -> Steps[list[Any]]:
    return (yield Gather([wait_for(future), emit_later()]))


def emit_later() -> Steps[None]:
    yield Sleep(0.02)
    yield Emit("first")


def test_wait_cancels_the_future_when_a_stream_around_it_is_closed() -> None:
    future: Future[str] = Future()
    events = stream(waiting_and_emitting(future))
    assert next(events) == "first"
    events.close()
    wait_until(future.cancelled)


async def test_wait_cancels_the_future_when_an_awaited_stream_around_it_is_closed() -> None:
    future: Future[str] = Future()
    events = astream(waiting_and_emitting(future))
    assert await anext(events) == "first"
    await events.aclose()
    assert future.cancelled()


def test_wait_cancels_the_future_when_the_wait_is_interrupted() -> None:
    class Interrupted(Future[str]):
        def exception(self, timeout: float | None = None) -> BaseException | None:
            raise KeyboardInterrupt

    future = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run(wait_for(future))
    assert future.cancelled()
