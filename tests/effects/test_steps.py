"""Programs and their drivers: one program, the same outcome blocking and awaiting, cancellation and errors at the yield."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import time
import warnings
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from sigwire.effects import steps
from sigwire.effects.steps import Gather, OwnerLoop, Steps, arun, block_on, run, to_thread
from sigwire.errors import EventLoopError

Driver = Callable[[Steps[Any]], Awaitable[Any]]
colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


class Give:
    """An effect that gives a value, or raises it, both ways; it says which way it went."""

    def __init__(self, value: Any, log: list[str] | None = None) -> None:
        self.value = value
        self.log = log if log is not None else []

    def run(self) -> Any:
        self.log.append("run")
        return self._outcome()

    async def arun(self) -> Any:
        self.log.append("arun")
        await asyncio.sleep(0)
        return self._outcome()

    def _outcome(self) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class Call:
    """An effect that calls a function, both ways."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function

    def run(self) -> Any:
        return self.function()

    async def arun(self) -> Any:
        return await to_thread(self.function)


async def blocking(program: Steps[Any]) -> Any:
    """The blocking driver, called where an event loop runs: as in a notebook."""
    return run(program)


async def in_thread(program: Steps[Any]) -> Any:
    """The blocking driver in a thread without a loop."""
    return await asyncio.to_thread(run, program)


drivers = pytest.mark.parametrize("drive", [blocking, in_thread, arun])


# --- one program, both drivers -----------------------------------------------------------------------


@drivers
async def test_a_program_gets_its_effects_values_and_returns_its_own(drive: Driver) -> None:
    def program() -> Steps[int]:
        first = yield Give(40)
        second = yield Give(2)
        return first + second

    assert await drive(program()) == 42


@drivers
async def test_a_program_without_effects_just_returns(drive: Driver) -> None:
    def program() -> Steps[str]:
        return "done"
        yield

    assert await drive(program()) == "done"


@drivers
async def test_programs_call_programs(drive: Driver) -> None:
    def inner(n: int) -> Steps[int]:
        return (yield Give(n)) * 2

    def outer() -> Steps[int]:
        return (yield from inner(10)) + (yield from inner(11))

    assert await drive(outer()) == 42


@pytest.mark.parametrize(("drive", "way"), [(blocking, "run"), (arun, "arun")])
async def test_each_driver_performs_effects_its_own_way(drive: Driver, way: str) -> None:
    log: list[str] = []

    def program() -> Steps[None]:
        yield Give(1, log)

    await drive(program())
    assert log == [way]


@drivers
async def test_an_effects_error_is_raised_at_the_yield_and_can_be_handled(drive: Driver) -> None:
    def program() -> Steps[str]:
        try:
            yield Give(KeyError("lost"))
        except KeyError as error:
            return f"handled {error}, then {(yield Give('on'))}"
        return "never"

    assert await drive(program()) == "handled 'lost', then on"


@drivers
async def test_an_error_nobody_handles_comes_out_with_the_programs_line(drive: Driver) -> None:
    def program() -> Steps[None]:
        yield Give(LookupError("nowhere"))

    with pytest.raises(LookupError, match="nowhere") as caught:
        await drive(program())
    assert "program" in [entry.name for entry in caught.traceback]


@drivers
async def test_a_programs_own_error_comes_out_and_its_cleanup_runs(drive: Driver) -> None:
    cleaned: list[str] = []

    def program() -> Steps[None]:
        try:
            yield Give(1)
            raise ArithmeticError
        finally:
            cleaned.append((yield Give("yes")))

    with pytest.raises(ArithmeticError):
        await drive(program())
    assert cleaned == ["yes"]


@drivers
async def test_stop_iteration_from_an_effect_does_not_end_the_program_quietly(drive: Driver) -> None:
    def program() -> Steps[str]:
        yield Call(lambda: next(iter(())))
        return "never"

    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(drive(program()), 5)


# --- cancellation ------------------------------------------------------------------------------------


class Wait:
    """An effect that never ends by itself."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    def run(self) -> None:
        raise AssertionError("only for the awaiting driver")

    async def arun(self) -> None:
        self.begun.set()
        await asyncio.Event().wait()


async def test_cancelling_the_task_raises_at_the_yield_and_cleanup_may_still_wait() -> None:
    seen: list[Any] = []
    wait = Wait()

    def program() -> Steps[None]:
        try:
            yield wait
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append((yield Give("cleaned")))

    task = asyncio.create_task(arun(program()))
    await wait.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled", "cleaned"]


async def test_a_program_may_answer_a_timeout_itself() -> None:
    def program() -> Steps[str]:
        try:
            yield Wait()
        except asyncio.CancelledError:
            return "gave up"
        return "never"

    task = asyncio.create_task(arun(program()))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "gave up"


@drivers
async def test_an_interrupt_runs_the_programs_cleanup(drive: Driver) -> None:
    cleaned: list[str] = []

    class Interrupt(BaseException):
        pass

    def program() -> Steps[None]:
        try:
            yield Give(Interrupt())
        finally:
            cleaned.append("yes")

    with pytest.raises(Interrupt):
        await drive(program())
    assert cleaned == ["yes"]


# --- gather ------------------------------------------------------------------------------------------


def giving(value: Any) -> Steps[Any]:
    return (yield Give(value))


def sleeping(seconds: float, value: Any) -> Steps[Any]:
    yield Call(lambda: time.sleep(seconds))
    return (yield Give(value))


def gather(*programs: Steps[Any], limit: int | None = None) -> Steps[list[Any]]:
    return (yield Gather(programs, limit=limit))


@drivers
@pytest.mark.parametrize("limit", [None, 1, 2, 50])
async def test_gathered_values_come_in_the_given_order(drive: Driver, limit: int | None) -> None:
    programs = [sleeping(0.02 if n == 0 else 0.0, n) for n in range(5)]
    assert await drive(gather(*programs, limit=limit)) == [0, 1, 2, 3, 4]


@drivers
async def test_gathering_nothing_is_an_empty_list(drive: Driver) -> None:
    assert await drive(gather()) == []


@drivers
@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_never_more_than_the_limit_run_at_once(drive: Driver, limit: int) -> None:
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
async def test_gathered_programs_run_at_the_same_time(drive: Driver) -> None:
    meet = threading.Barrier(2, timeout=5)

    def program() -> Steps[int]:
        return (yield Call(meet.wait))

    assert sorted(await drive(gather(program(), program()))) == [0, 1]


@drivers
async def test_one_error_ends_the_gathering_and_drops_what_has_not_begun(drive: Driver) -> None:
    begun: list[int] = []

    def program(n: int) -> Steps[None]:
        begun.append(n)
        yield Give(ValueError("first") if n == 0 else None)

    with pytest.raises(ValueError, match="first"):
        await drive(gather(*(program(n) for n in range(50)), limit=1))
    assert begun == [0]


@drivers
async def test_of_two_errors_the_first_in_order_is_raised(drive: Driver) -> None:
    with pytest.raises(KeyError):
        await drive(gather(giving(KeyError()), giving(IndexError())))


async def test_an_error_cancels_the_others_where_they_wait() -> None:
    seen: list[str] = []
    wait = Wait()

    def waiting() -> Steps[None]:
        try:
            yield wait
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    def failing() -> Steps[None]:
        yield Give(None)
        yield Give(ValueError("broken"))

    with pytest.raises(ValueError, match="broken"):
        await arun(gather(waiting(), failing()))
    assert seen == ["cancelled"]


async def test_cancelling_a_gathering_cancels_every_program_in_it() -> None:
    seen: list[int] = []
    waits = [Wait(), Wait()]

    def waiting(n: int) -> Steps[None]:
        try:
            yield waits[n]
        finally:
            seen.append(n)

    task = asyncio.create_task(arun(gather(waiting(0), waiting(1))))
    for wait in waits:
        await wait.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(seen) == [0, 1]


@drivers
@pytest.mark.parametrize("limit", [None, 1])
async def test_each_gathered_program_has_its_own_copy_of_the_context(drive: Driver, limit: int | None) -> None:
    def program(name: str) -> Steps[str]:
        inherited = colour.get()
        colour.set(name)
        yield Give(None)
        return f"{inherited}>{colour.get()}"

    colour.set("red")
    assert await drive(gather(program("green"), program("blue"), limit=limit)) == ["red>green", "red>blue"]
    assert colour.get() == "red"


async def test_what_a_cancelled_program_puts_away_it_puts_away_in_its_own_context() -> None:
    waits, seen = [Wait(), Wait()], list[str]()

    def program(name: str, wait: Wait) -> Steps[None]:
        colour.set(name)
        try:
            yield wait
        finally:
            seen.append(f"{name}>{colour.get()}")
            yield Give(None)
            seen.append(f"{name}>{colour.get()}")

    colour.set("red")
    task = asyncio.create_task(arun(gather(program("green", waits[0]), program("blue", waits[1]))))
    for wait in waits:
        await wait.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(seen) == ["blue>blue", "blue>blue", "green>green", "green>green"]


@pytest.mark.skipif(
    not hasattr(signal, "pthread_kill") or threading.current_thread() is not threading.main_thread(),
    reason="signals arrive in the main thread",
)
def test_an_interrupt_while_gathering_waits_for_no_thread() -> None:
    released = threading.Event()
    ran: list[int] = []

    def program(n: int) -> Steps[None]:
        ran.append(n)
        if n == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        yield Call(lambda: released.wait(5))

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
        worker.join(5)
    assert ran == [0, 1]


@drivers
async def test_an_error_lets_those_under_way_end_and_begins_no_other(drive: Driver) -> None:
    begun: list[int] = []
    both = threading.Barrier(2, timeout=5)

    def program(n: int) -> Steps[None]:
        begun.append(n)
        yield Call(both.wait)
        yield Give(ValueError("broken"))

    with pytest.raises(ValueError, match="broken"):
        await drive(gather(*(program(n) for n in range(50)), limit=2))
    assert sorted(begun) == [0, 1]


async def test_a_program_that_takes_no_notice_of_being_cancelled_is_waited_for_and_no_other_is_begun() -> None:
    begun: list[int] = []
    wait = Wait()

    def stubborn(n: int) -> Steps[str]:
        begun.append(n)
        try:
            yield wait
        except asyncio.CancelledError:
            yield Give(None)
        return "stayed"

    task = asyncio.create_task(arun(gather(*(stubborn(n) for n in range(5)), limit=1)))
    await wait.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert begun == [0]


async def test_a_program_that_is_cancelled_by_itself_is_no_result() -> None:
    begun: list[int] = []

    def program(n: int) -> Steps[int]:
        begun.append(n)
        return (yield Give(asyncio.CancelledError() if n == 0 else n))

    with pytest.raises(asyncio.CancelledError):
        await arun(gather(*(program(n) for n in range(50)), limit=2))
    assert len(begun) <= 2


async def test_programs_of_one_worker_may_each_wait_with_a_timeout() -> None:
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


async def test_what_a_program_begins_elsewhere_sees_the_programs_own_context() -> None:
    async def seen() -> str:
        await asyncio.sleep(0)
        return colour.get()

    class Elsewhere:
        async def arun(self) -> list[str]:
            loop, called = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
            loop.call_soon(lambda: called.set_result(colour.get()))
            return [await seen(), await asyncio.create_task(seen()), await called, await to_thread(colour.get)]

        def run(self) -> list[str]:
            raise AssertionError("only for the awaiting driver")

    def program(name: str) -> Steps[list[str]]:
        colour.set(name)
        return (yield Elsewhere())

    names = ["green", "blue", "red"]
    assert await arun(gather(*map(program, names), limit=1)) == [[name] * 4 for name in names]


async def test_programs_that_never_wait_let_others_have_their_turn() -> None:
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

    beside = asyncio.create_task(other())
    await arun(gather(*(program(n) for n in range(100)), limit=2))
    beside.cancel()
    assert max(after - before for before, after in pairwise([0, *seen, 100])) <= 4


@drivers
@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_many_programs_are_run_by_few(drive: Driver, limit: int) -> None:
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
async def test_gatherings_nest(drive: Driver) -> None:
    def both(n: int) -> Steps[list[int]]:
        return (yield Gather([giving(n), giving(n + 1)]))

    assert await drive(gather(both(1), both(3))) == [[1, 2], [3, 4]]


# --- bridges -----------------------------------------------------------------------------------------


async def answer(value: Any = 42) -> Any:
    await asyncio.sleep(0)
    return value


def test_block_on_waits_without_a_loop() -> None:
    assert block_on(answer()) == 42


async def test_block_on_waits_inside_a_running_loop() -> None:
    assert block_on(answer()) == 42


def test_block_on_raises_what_the_coroutine_raises() -> None:
    async def fail() -> None:
        raise LookupError("nowhere")

    with pytest.raises(LookupError, match="nowhere"):
        block_on(fail())


def test_block_on_gives_up_in_time_and_cancels() -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(TimeoutError):
        block_on(wait(), timeout=0.01)
    assert cancelled.wait(5)


def test_an_interrupt_while_blocking_cancels_the_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    def interrupted(future: Any, timeout: float | None = None) -> None:
        time.sleep(0.02)  # the coroutine has begun
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        block_on(wait())
    assert cancelled.wait(5)


@pytest.mark.parametrize("interrupt", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("in_a_task", [False, True])
def test_an_interrupt_raised_by_a_coroutine_is_raised_here_and_the_loop_goes_on(
    interrupt: type[BaseException], in_a_task: bool
) -> None:
    async def leave() -> None:
        raise interrupt

    async def gathers() -> None:
        await asyncio.ensure_future(leave())

    with pytest.raises(interrupt):
        block_on(gathers() if in_a_task else leave(), timeout=5)
    assert block_on(answer(), timeout=5) == 42


def test_block_on_shows_the_callers_context() -> None:
    async def read() -> str:
        return colour.get()

    colour.set("violet")
    assert block_on(read()) == "violet"


def test_blocking_in_the_loop_that_would_have_to_go_on_is_refused() -> None:
    async def blocks() -> None:
        block_on(answer())

    with pytest.raises(EventLoopError, match="Await the async form"):
        block_on(blocks())


# --- where something lives -----------------------------------------------------------------------------------


async def own_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def test_what_lives_on_a_loop_is_used_there_from_every_thread() -> None:
    home = OwnerLoop()
    here = asyncio.get_running_loop()
    assert await home.run(own_loop) is here
    assert await asyncio.to_thread(lambda: block_on(home.run(own_loop))) is here
    assert bool(home)


def test_without_a_home_work_happens_where_it_is_awaited() -> None:
    home = OwnerLoop()
    assert not home
    assert asyncio.run(home.run(own_loop)).is_closed()


async def test_a_blocking_call_on_the_loop_that_is_needed_is_refused_at_once() -> None:
    home = OwnerLoop()
    with pytest.raises(EventLoopError, match=r"waits for this very call.*Await the async form"):
        block_on(home.run(own_loop))


async def test_a_gather_that_blocks_the_loop_that_is_needed_is_refused_too() -> None:
    home = OwnerLoop()

    class Needs:
        def run(self) -> object:
            return block_on(home.run(own_loop))

        async def arun(self) -> object:
            return await home.run(own_loop)

    def one() -> Steps[object]:
        return (yield Needs())

    with pytest.raises(EventLoopError, match="waits for this very call"):
        Gather([one(), one()]).run()
    assert await Gather([one(), one()]).arun() == [asyncio.get_running_loop()] * 2


@pytest.mark.parametrize("state", ["closed", "not running"])
def test_a_loop_that_cannot_go_on_is_an_error_that_says_so(state: str) -> None:
    loop = asyncio.new_event_loop()
    if state == "closed":
        loop.close()
    with pytest.raises(EventLoopError, match=f"is {state}"):
        block_on(OwnerLoop(loop).run(own_loop))
    loop.close()


async def test_cancelling_reaches_what_runs_at_home() -> None:
    ended = asyncio.Event()

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    home = OwnerLoop()

    def elsewhere() -> None:
        with pytest.raises(TimeoutError):
            block_on(home.run(wait_for_ever), timeout=0.05)

    await asyncio.to_thread(elsewhere)
    await asyncio.wait_for(ended.wait(), 5)


def test_many_threads_block_at_once() -> None:
    results: list[int] = []
    threads = [threading.Thread(target=lambda n=n: results.append(block_on(answer(n)))) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(results) == list(range(16))


async def test_off_loop_leaves_the_loop_free() -> None:
    released = threading.Event()
    waiting = asyncio.ensure_future(to_thread(released.wait, 5))
    await asyncio.sleep(0.01)  # the loop goes on while the thread waits
    released.set()
    assert await waiting is True


async def test_off_loop_shows_the_callers_context_and_keeps_its_own_changes() -> None:
    def work(suffix: str, *, mark: str) -> str:
        colour.set(colour.get() + suffix)
        return colour.get() + mark

    colour.set("red")
    assert await to_thread(work, "dish", mark="!") == "reddish!"
    assert colour.get() == "red"


async def test_off_loop_raises_what_the_function_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        await to_thread(lambda: 1 // 0)


async def test_off_loop_does_not_wait_forever_for_stop_iteration() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(to_thread(lambda: next(iter(()))), 5)


async def test_blocking_work_that_waits_for_blocking_work_never_runs_out_of_threads() -> None:
    outer = 70  # more than a pool of the usual sizes has
    all_wait = threading.Barrier(outer)

    def work() -> int:
        all_wait.wait(10)
        return block_on(inner(), timeout=10)

    async def inner() -> int:
        return await to_thread(lambda: 1)

    assert sum(await asyncio.gather(*(to_thread(work) for _ in range(outer)))) == outer


# --- forks -------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("held", [False, True], ids=["lock free", "lock held by another thread"])
def test_a_forked_child_starts_its_own_loop_and_pool(held: bool) -> None:
    assert block_on(answer()) == 42  # the parent's loop runs
    if held:
        steps._lock.acquire()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
            child = os.fork()
        if child == 0:
            _exit_with(lambda: block_on(_both()) == ("ok", "ok"))
    finally:
        if held:
            steps._lock.release()
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
