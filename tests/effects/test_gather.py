"""``Gather``: order, limit, errors, cancellation and contexts of steps that run at once."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from sigwire.effects.gather import Gather
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import Steps, arun, run
from tests.effects.effects import Call, Driver, Value, Wait, colour, drivers


def giving(value: Any) -> Steps[Any]:
    return (yield Value(value))


def sleeping(seconds: float, value: Any) -> Steps[Any]:
    yield Call(lambda: time.sleep(seconds))
    return (yield Value(value))


def gather(*programs: Steps[Any], limit: int | None = None) -> Steps[list[Any]]:
    return (yield Gather(programs, limit=limit))


@drivers
@pytest.mark.parametrize("limit", [None, 1, 2, 50])
async def test_gather_returns_values_in_the_given_order(drive: Driver, limit: int | None) -> None:
    programs = [sleeping(0.02 if n == 0 else 0.0, n) for n in range(5)]
    assert await drive(gather(*programs, limit=limit)) == [0, 1, 2, 3, 4]


@drivers
async def test_gather_of_nothing_returns_an_empty_list(drive: Driver) -> None:
    assert await drive(gather()) == []


@drivers
@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_gather_runs_at_most_limit_steps_at_once(drive: Driver, limit: int) -> None:
    lock = threading.Lock()
    running, most = 0, 0

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    def program() -> Steps[None]:
        yield Call(work)

    await drive(gather(*(program() for _ in range(6)), limit=limit))
    assert most <= limit


@drivers
async def test_gather_runs_steps_at_the_same_time(drive: Driver) -> None:
    meet = threading.Barrier(2, timeout=60)

    def program() -> Steps[int]:
        return (yield Call(meet.wait))

    assert sorted(await drive(gather(program(), program()))) == [0, 1]


@drivers
async def test_gather_drops_waiting_steps_after_an_error(drive: Driver) -> None:
    started: list[int] = []

    def program(n: int) -> Steps[None]:
        started.append(n)
        yield Value(ValueError("first") if n == 0 else None)

    with pytest.raises(ValueError, match="first"):
        await drive(gather(*(program(n) for n in range(50)), limit=1))
    assert started == [0]


@drivers
async def test_gather_raises_the_first_error_in_the_given_order(drive: Driver) -> None:
    with pytest.raises(KeyError):
        await drive(gather(giving(KeyError()), giving(IndexError())))


async def test_gather_cancels_running_steps_after_an_error() -> None:
    seen: list[str] = []
    wait = Wait()

    def waiting() -> Steps[None]:
        try:
            yield wait
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    def failing() -> Steps[None]:
        yield Value(None)
        yield Value(ValueError("broken"))

    with pytest.raises(ValueError, match="broken"):
        await arun(gather(waiting(), failing()))
    assert seen == ["cancelled"]


async def test_cancelled_gather_cancels_all_running_steps() -> None:
    seen: list[int] = []
    waits = [Wait(), Wait()]

    def waiting(n: int) -> Steps[None]:
        try:
            yield waits[n]
        finally:
            seen.append(n)

    task = asyncio.create_task(arun(gather(waiting(0), waiting(1))))
    for wait in waits:
        await wait.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(seen) == [0, 1]


@drivers
@pytest.mark.parametrize("limit", [None, 1])
async def test_gathered_steps_have_their_own_copy_of_the_context(drive: Driver, limit: int | None) -> None:
    def program(name: str) -> Steps[str]:
        inherited = colour.get()
        colour.set(name)
        yield Value(None)
        return f"{inherited}>{colour.get()}"

    colour.set("red")
    assert await drive(gather(program("green"), program("blue"), limit=limit)) == ["red>green", "red>blue"]
    assert colour.get() == "red"


async def test_cleanup_of_cancelled_steps_runs_in_their_own_context() -> None:
    waits, seen = [Wait(), Wait()], list[str]()

    def program(name: str, wait: Wait) -> Steps[None]:
        colour.set(name)
        try:
            yield wait
        finally:
            seen.append(f"{name}>{colour.get()}")
            yield Value(None)
            seen.append(f"{name}>{colour.get()}")

    colour.set("red")
    task = asyncio.create_task(arun(gather(program("green", waits[0]), program("blue", waits[1]))))
    for wait in waits:
        await wait.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(seen) == ["blue>blue", "blue>blue", "green>green", "green>green"]


@pytest.mark.skipif(
    not hasattr(signal, "pthread_kill") or threading.current_thread() is not threading.main_thread(),
    reason="signals arrive in the main thread",
)
def test_interrupt_of_a_blocking_gather_does_not_wait_for_threads() -> None:
    released = threading.Event()
    ran: list[int] = []

    def program(n: int) -> Steps[None]:
        ran.append(n)
        if n == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        yield Call(lambda: released.wait(60))

    try:
        with pytest.raises(KeyboardInterrupt):
            run(gather(*(program(n) for n in range(50)), limit=2))
        assert not released.is_set()
        workers = [thread for thread in threading.enumerate() if thread.name == "sigwire-gather"]
        assert workers
        assert all(thread.daemon for thread in workers)
    finally:
        released.set()
    for worker in workers:
        worker.join(60)
    assert ran == [0, 1]


@drivers
async def test_gather_starts_no_more_steps_after_an_error(drive: Driver) -> None:
    started: list[int] = []
    both = threading.Barrier(2, timeout=60)

    def program(n: int) -> Steps[None]:
        started.append(n)
        yield Call(both.wait)
        yield Value(ValueError("broken"))

    with pytest.raises(ValueError, match="broken"):
        await drive(gather(*(program(n) for n in range(50)), limit=2))
    assert sorted(started) == [0, 1]


async def test_cancelled_gather_waits_for_steps_that_catch_the_cancellation() -> None:
    started: list[int] = []
    wait = Wait()

    def stubborn(n: int) -> Steps[str]:
        started.append(n)
        try:
            yield wait
        except asyncio.CancelledError:
            yield Value(None)
        return "stayed"

    task = asyncio.create_task(arun(gather(*(stubborn(n) for n in range(5)), limit=1)))
    await wait.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started == [0]


async def test_gather_raises_when_steps_cancel_themselves() -> None:
    started: list[int] = []

    def program(n: int) -> Steps[int]:
        started.append(n)
        return (yield Value(asyncio.CancelledError() if n == 0 else n))

    with pytest.raises(asyncio.CancelledError):
        await arun(gather(*(program(n) for n in range(50)), limit=2))
    assert len(started) <= 2


async def test_steps_of_one_worker_may_each_use_a_timeout() -> None:
    class Late:
        async def arun(self) -> str:
            try:
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
            except TimeoutError:
                return "late"
            return "never"

        def run(self) -> str:
            raise AssertionError("only for the awaiting driver")

    def program() -> Steps[str]:
        return (yield Late())

    assert await arun(gather(*(program() for _ in range(6)), limit=2)) == ["late"] * 6


async def test_tasks_and_threads_of_gathered_steps_see_their_context() -> None:
    async def seen() -> str:
        await asyncio.sleep(0)
        return colour.get()

    class Spreads:
        async def arun(self) -> list[str]:
            loop, called = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
            loop.call_soon(lambda: called.set_result(colour.get()))
            return [await seen(), await asyncio.create_task(seen()), await called, await to_thread(colour.get)]

        def run(self) -> list[str]:
            raise AssertionError("only for the awaiting driver")

    def program(name: str) -> Steps[list[str]]:
        colour.set(name)
        return (yield Spreads())

    names = ["green", "blue", "red"]
    assert await arun(gather(*map(program, names), limit=1)) == [[name] * 4 for name in names]


async def test_gather_yields_to_the_loop_between_steps_that_never_suspend() -> None:
    done: list[int] = []
    seen: list[int] = []

    def program(n: int) -> Steps[None]:
        done.append(n)
        return
        yield

    async def other() -> None:
        while True:
            seen.append(len(done))
            await asyncio.sleep(0)

    other_task = asyncio.create_task(other())
    await arun(gather(*(program(n) for n in range(100)), limit=2))
    other_task.cancel()
    assert max(after - before for before, after in pairwise([0, *seen, 100])) <= 4


@drivers
@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_gather_uses_at_most_limit_workers(drive: Driver, limit: int) -> None:
    runners: set[object] = set()

    class Here:
        def run(self) -> None:
            runners.add(threading.current_thread())

        async def arun(self) -> None:
            runners.add(asyncio.current_task())
            await asyncio.sleep(0)

    def program() -> Steps[None]:
        yield Here()

    await drive(gather(*(program() for _ in range(100)), limit=limit))
    assert 1 <= len(runners) <= limit


@drivers
async def test_gather_nests(drive: Driver) -> None:
    def both(n: int) -> Steps[list[int]]:
        return (yield Gather([giving(n), giving(n + 1)]))

    assert await drive(gather(both(1), both(3))) == [[1, 2], [3, 4]]
