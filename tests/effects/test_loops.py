"""Bridges between blocking and awaiting code, owner loops, and forks."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from sigwire.effects import loops
from sigwire.effects.gather import Gather
from sigwire.effects.loops import OwnerLoop, block_on, to_thread
from sigwire.effects.steps import Steps
from sigwire.errors import EventLoopError
from tests.effects.effects import answer, colour


def test_block_on_returns_the_value_without_a_running_loop() -> None:
    assert block_on(answer()) == 42


async def test_block_on_returns_the_value_inside_a_running_loop() -> None:
    assert block_on(answer()) == 42


def test_block_on_raises_the_error_of_the_coroutine() -> None:
    async def fail() -> None:
        raise LookupError("nowhere")

    with pytest.raises(LookupError, match="nowhere"):
        block_on(fail())


def test_block_on_cancels_the_coroutine_after_the_timeout() -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        block_on(wait(), timeout=0.01)
    assert cancelled.wait(60)


def test_interrupt_of_block_on_cancels_the_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    def interrupted(future: Any, seconds: float | None = None) -> None:
        time.sleep(0.02)  # the coroutine has started
        raise KeyboardInterrupt

    monkeypatch.setattr("sigwire.effects.loops.result_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        block_on(wait())
    assert cancelled.wait(60)


@pytest.mark.parametrize("interrupt", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("in_task", [False, True])
def test_interrupt_raised_by_a_coroutine_does_not_stop_the_background_loop(
    interrupt: type[BaseException], in_task: bool
) -> None:
    async def leave() -> None:
        raise interrupt

    async def gathers() -> None:
        await asyncio.ensure_future(leave())

    with pytest.raises(interrupt):
        block_on(gathers() if in_task else leave(), timeout=60)
    assert block_on(answer(), timeout=60) == 42


def test_coroutine_of_block_on_sees_the_context_of_the_caller() -> None:
    async def read() -> str:
        return colour.get()

    colour.set("violet")
    assert block_on(read()) == "violet"


def test_block_on_raises_on_the_background_loop() -> None:
    async def blocks() -> None:
        block_on(answer())

    with pytest.raises(EventLoopError, match="Await the async form"):
        block_on(blocks())


# --- owner loops ------


async def own_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def test_owner_loop_runs_coroutines_on_its_loop_from_every_thread() -> None:
    owner = OwnerLoop()
    here = asyncio.get_running_loop()
    assert await owner.run(own_loop) is here
    assert await asyncio.to_thread(lambda: block_on(owner.run(own_loop))) is here
    assert bool(owner)


def test_owner_loop_without_a_loop_runs_on_the_awaiting_loop() -> None:
    owner = OwnerLoop()
    assert not owner
    assert asyncio.run(owner.run(own_loop)).is_closed()


async def test_owner_loop_raises_when_block_on_blocks_that_loop() -> None:
    owner = OwnerLoop()
    with pytest.raises(EventLoopError, match=r"blocked by this call.*Await the async form"):
        block_on(owner.run(own_loop))


async def test_owner_loop_raises_when_a_gather_blocks_that_loop() -> None:
    owner = OwnerLoop()

    class Needs:
        def run(self) -> object:
            return block_on(owner.run(own_loop))

        async def arun(self) -> object:
            return await owner.run(own_loop)

    def one() -> Steps[object]:
        return (yield Needs())

    with pytest.raises(EventLoopError, match="blocked by this call"):
        Gather([one(), one()]).run()
    assert await Gather([one(), one()]).arun() == [asyncio.get_running_loop()] * 2


@pytest.mark.parametrize("state", ["closed", "not running"])
def test_owner_loop_raises_when_the_loop_does_not_run(state: str) -> None:
    loop = asyncio.new_event_loop()
    if state == "closed":
        loop.close()
    with pytest.raises(EventLoopError, match=f"is {state}"):
        block_on(OwnerLoop(loop).run(own_loop))
    loop.close()


async def test_cancellation_reaches_a_coroutine_on_the_owner_loop() -> None:
    ended = asyncio.Event()

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    owner = OwnerLoop()

    def in_thread() -> None:
        with pytest.raises(TimeoutError):
            block_on(owner.run(wait_for_ever), timeout=0.05)

    await asyncio.to_thread(in_thread)
    await asyncio.wait_for(ended.wait(), 5)


def test_block_on_works_in_many_threads_at_once() -> None:
    results: list[int] = []
    threads = [threading.Thread(target=lambda n=n: results.append(block_on(answer(n)))) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == list(range(16))


async def test_to_thread_does_not_block_the_loop() -> None:
    released = threading.Event()
    waiting = asyncio.ensure_future(to_thread(released.wait, 5))
    await asyncio.sleep(0.01)  # the loop goes on while the thread waits
    released.set()
    assert await waiting is True


async def test_to_thread_runs_in_a_copy_of_the_context() -> None:
    def work(suffix: str, *, mark: str) -> str:
        colour.set(colour.get() + suffix)
        return colour.get() + mark

    colour.set("red")
    assert await to_thread(work, "dish", mark="!") == "reddish!"
    assert colour.get() == "red"


async def test_to_thread_raises_the_error_of_the_function() -> None:
    with pytest.raises(ZeroDivisionError):
        await to_thread(lambda: 1 // 0)


async def test_to_thread_turns_stop_iteration_into_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(to_thread(lambda: next(iter(()))), 5)


async def test_to_thread_does_not_run_out_of_threads_when_calls_nest() -> None:
    outer = 70  # more than a pool of the usual sizes has
    all_wait = threading.Barrier(outer)

    def work() -> int:
        all_wait.wait(60)
        return block_on(inner(), timeout=60)

    async def inner() -> int:
        return await to_thread(lambda: 1)

    assert sum(await asyncio.gather(*(to_thread(work) for _ in range(outer)))) == outer


# --- forks ------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("held", [False, True], ids=["lock free", "lock held by another thread"])
def test_forked_child_makes_its_own_loop_and_pool(held: bool) -> None:
    assert block_on(answer()) == 42  # the parent's loop runs
    if held:
        loops._lock.acquire()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
            child = os.fork()
        if child == 0:
            _exit_with(lambda: block_on(_both()) == ("ok", "ok"))
    finally:
        if held:
            loops._lock.release()
    assert _exit_code(child) == 0


async def _both() -> tuple[str, str]:
    return await answer("ok"), await to_thread(lambda: "ok")


def _exit_with(check: Callable[[], bool]) -> None:
    """End the child without the parent's cleanup, whatever happens."""
    try:
        os._exit(0 if check() else 1)
    except BaseException:
        os._exit(2)


def _exit_code(child: int) -> int | None:
    """The child's exit code, ``None`` if it hangs (it is then ended)."""
    for _ in range(200):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.025)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None
