"""Programs that tell things as they go: what comes out, in which order, and what happens to who stops reading."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.effects.cancellation import StreamCancelled, on_cancel
from sigwire.effects.emitting import Emit, Returned, astream, in_stream, stream
from sigwire.effects.steps import Gather, Steps, arun, block_on, run, to_thread


class Give:
    """An effect that gives a value, or raises it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def run(self) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    async def arun(self) -> Any:
        await asyncio.sleep(0)
        return self.run()


class InPieces(Give):
    """An effect whose value can be had letter by letter."""

    def streamed(self) -> Steps[str]:
        for letter in self.value:
            yield Emit(letter)
        return (yield Give(self.value))


class Calls(Give):
    """An effect that calls code in which other programs run."""

    nests = True

    def run(self) -> Any:
        return self.value()

    async def arun(self) -> Any:
        if inspect.iscoroutinefunction(self.value):
            return await self.value()
        return await to_thread(self.value)


def pieces_of(program: Steps[Any]) -> tuple[list[Any], Any]:
    events: list[Any] = []

    def watching() -> Generator[Any]:
        value = yield from stream(program)
        events.append(Returned(value))

    told = list(watching())
    return told, events[0].value


async def apieces_of(program: Steps[Any]) -> tuple[list[Any], Any]:
    *told, last = [event async for event in astream(program)]
    return told, last.value


@pytest.fixture(params=["blocking", "awaited"])
def read(request: pytest.FixtureRequest) -> Callable[[Steps[Any]], tuple[list[Any], Any]]:
    if request.param == "blocking":
        return pieces_of
    return lambda program: asyncio.run(apieces_of(program))


def greeting() -> Steps[str]:
    yield Emit("a", "b")
    word = yield InPieces("xyz")
    yield Emit("c")
    return word


def test_events_come_in_order_and_the_value_last(read: Any) -> None:
    assert read(greeting()) == (["a", "b", "x", "y", "z", "c"], "xyz")


def test_the_plain_drivers_hear_nothing_and_give_the_same_value() -> None:
    assert run(greeting()) == "xyz"
    assert asyncio.run(arun(greeting())) == "xyz"


def test_nothing_is_read_ahead() -> None:
    done: list[str] = []

    def program() -> Steps[None]:
        yield Emit(1)
        done.append("first")
        yield Emit(2)
        done.append("second")

    events = stream(program())
    assert (next(events), done) == (1, [])
    assert (next(events), done) == (2, ["first"])
    assert list(events) == []
    assert done == ["first", "second"]


def test_an_effects_error_is_thrown_in_at_the_yield(read: Any) -> None:
    def program() -> Steps[str]:
        try:
            yield Give(ValueError("no"))
        except ValueError as error:
            yield Emit(str(error))
        return "went on"

    assert read(program()) == (["no"], "went on")


def test_an_error_that_nobody_catches_comes_out_after_what_was_told(read: Any) -> None:
    def program() -> Steps[None]:
        yield Emit(1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        read(program())


@given(st.lists(st.one_of(st.integers(), st.text(max_size=3)), max_size=8))
def test_whatever_is_told_comes_out_as_it_is(items: list[Any]) -> None:
    def program() -> Steps[int]:
        for item in items:
            if isinstance(item, str):
                yield InPieces(item)
            else:
                yield Emit(item)
        return len(items)

    expected = [piece for item in items for piece in (item if isinstance(item, str) else [item])]
    assert pieces_of(program()) == (expected, len(items))
    assert asyncio.run(apieces_of(program())) == (expected, len(items))


# --- programs inside effects ---------------------------------------------------------------------------


def inner() -> Steps[str]:
    """Listens as an effect of a module does: it emits only where somebody hears it."""
    if in_stream():
        yield Emit("heard")
    return "inner"


def test_what_a_program_inside_an_effect_tells_comes_out_too(read: Any) -> None:
    def program() -> Steps[str]:
        return (yield Calls(lambda: run(inner())))

    assert read(program()) == (["heard"], "inner")
    assert run(program()) == "inner"


def test_so_does_what_an_awaited_one_tells() -> None:
    async def call() -> str:
        return await arun(inner())

    def program() -> Steps[str]:
        return (yield Calls(call))

    assert asyncio.run(apieces_of(program())) == (["heard"], "inner")


def test_also_across_the_bridges_between_blocking_and_awaiting() -> None:
    async def deep() -> str:
        return await to_thread(lambda: run(inner()))

    def program() -> Steps[str]:
        return (yield Calls(lambda: block_on(deep())))

    assert pieces_of(program()) == (["heard"], "inner")
    assert asyncio.run(apieces_of(program())) == (["heard"], "inner")


def test_programs_that_run_at_once_all_tell(read: Any) -> None:
    def one(number: int) -> Steps[int]:
        yield Emit(number)
        return number

    def program() -> Steps[list[int]]:
        return (yield Gather([one(number) for number in range(5)]))

    told, value = read(program())
    assert sorted(told) == value == [0, 1, 2, 3, 4]


def test_an_error_inside_comes_out_of_the_effect(read: Any) -> None:
    def fail() -> None:
        run(inner())
        raise ValueError("inside")

    def program() -> Steps[str]:
        try:
            yield Calls(fail)
        except ValueError as error:
            return str(error)
        return "unreached"

    assert read(program()) == (["heard"], "inside")


# --- leaving ---------------------------------------------------------------------------------------------


def tidy(log: list[str]) -> Steps[None]:
    try:
        while True:
            yield Emit("more")
    except StreamCancelled as error:
        error.add_note("with what was there")
        raise
    finally:
        yield Give(None)  # putting away may take effects of its own
        log.append("put away")


def test_who_leaves_lets_the_program_put_away_what_it_holds() -> None:
    log: list[str] = []
    gone: list[StreamCancelled] = []
    events = stream(tidy(log), left=gone.append)
    assert next(events) == "more"
    events.close()
    assert log == ["put away"]
    assert gone[0].__notes__ == ["with what was there"]


def test_leaving_reaches_the_innermost_program_first() -> None:
    log: list[str] = []

    class Holding(Give):
        def streamed(self) -> Steps[None]:
            return tidy(log)

    def program() -> Steps[None]:
        try:
            yield Holding(None)
        finally:
            log.append("outer")

    events = stream(program())
    next(events)
    events.close()
    assert log == ["put away", "outer"]


async def test_an_awaited_stream_that_is_closed_does_the_same() -> None:
    log: list[str] = []
    gone: list[StreamCancelled] = []
    events = astream(tidy(log), left=gone.append)
    assert await anext(events) == "more"
    await events.aclose()
    assert log == ["put away"]
    assert len(gone) == 1


async def test_a_cancelled_reader_cancels_the_program() -> None:
    log: list[str] = []
    begun = asyncio.Event()

    class Forever(Give):
        async def arun(self) -> None:
            begun.set()
            await asyncio.Event().wait()

    def program() -> Steps[None]:
        try:
            yield Forever(None)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async def read_all() -> list[Any]:
        return [event async for event in astream(program())]

    task = asyncio.ensure_future(read_all())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["cancelled"]


def test_what_runs_beside_a_stream_that_was_left_stops_at_its_next_word() -> None:
    stopped = threading.Event()

    def work() -> None:
        try:
            while True:
                run(inner())
        except StreamCancelled:
            stopped.set()
            raise

    def program() -> Steps[None]:
        yield Calls(work)

    events = stream(program())
    assert next(events) == "heard"
    events.close()
    assert stopped.wait(5)


class Waits(Give):
    """An effect that waits in a thread until it is woken."""

    def __init__(self) -> None:
        self.waiting, self.woken = threading.Event(), threading.Event()

    def run(self) -> None:
        with on_cancel(self.woken.set):
            self.waiting.set()
            self.woken.wait(5)
        raise StreamCancelled

    async def arun(self) -> None:
        await to_thread(self.run)


def waiting_for(effect: Waits) -> Steps[None]:
    yield effect


@pytest.mark.parametrize("awaited", [False, True])
async def test_what_waits_beside_a_stream_that_was_left_is_woken(awaited: bool) -> None:
    effect = Waits()

    def both() -> Steps[Any]:
        return (yield Gather([waiting_for(effect), inner()]))

    if awaited:
        aevents = astream(both())
        assert await anext(aevents) == "heard"
        assert await asyncio.to_thread(effect.waiting.wait, 5)
        await aevents.aclose()
    else:
        events = stream(both())
        assert next(events) == "heard"
        assert effect.waiting.wait(5)
        events.close()
    assert effect.woken.is_set()


class Lasts(Give):
    """An effect that is awaited until it is cancelled, and then puts away what it holds by another one."""

    def __init__(self) -> None:
        self.waiting, self.log = threading.Event(), list[str]()

    async def arun(self) -> None:
        self.waiting.set()
        await asyncio.sleep(30)

    def program(self) -> Steps[None]:
        try:
            yield self
        except BaseException as error:
            error.partial = "so far"  # type: ignore[attr-defined]
            yield Give(None)
            self.log.append("put away")
            raise


async def _awaits(program: Steps[Any]) -> None:
    await arun(program)


def _nothing_comes() -> Steps[None]:
    yield Lasts()


async def _awaits_two(program: Steps[Any]) -> None:
    await Gather([program, _nothing_comes()]).arun()


async def _streams(program: Steps[Any]) -> None:
    async for _ in astream(program):
        pass


@pytest.mark.parametrize("reading", [_awaits, _awaits_two, _streams])
@pytest.mark.parametrize("awaited", [False, True])
async def test_a_loop_that_the_programs_own_code_runs_is_left_along(reading: Any, awaited: bool) -> None:
    """Its ``asyncio.run`` blocks a thread beside the stream, and nothing that is awaited there would hear of it."""
    effect, gone = Lasts(), list[StreamCancelled]()

    def waits() -> Steps[None]:
        yield Calls(lambda: asyncio.run(reading(effect.program())))

    def both() -> Steps[Any]:
        return (yield Gather([waits(), inner()]))

    before = time.monotonic()
    if awaited:
        aevents = astream(both(), left=gone.append)
        assert await anext(aevents) == "heard"
        assert await asyncio.to_thread(effect.waiting.wait, 5)
        await aevents.aclose()
    else:
        events = stream(both(), left=gone.append)
        assert next(events) == "heard"
        assert effect.waiting.wait(5)
        events.close()
    assert effect.log == ["put away"]
    assert vars(gone[0]) == {"partial": "so far"}
    assert time.monotonic() - before < 10


def told_in_steps(log: list[str]) -> Steps[None]:
    for word in ("one", "two", "three"):
        log.append(word)
        yield Emit(word)


def test_leaving_minds_no_loop_that_was_closed_before_its_turn_came() -> None:
    closed = threading.Event()

    class Tells:
        async def arun(self) -> None:
            with on_cancel(lambda: closed.wait(5)):  # who leaves comes first to the loop, then here, then to who tells
                await Emit("told").arun()

        def run(self) -> None:
            raise AssertionError("only for the awaiting driver")

    def inner() -> Steps[None]:
        yield Tells()

    def on_a_loop_of_its_own() -> None:
        try:
            asyncio.run(arun(inner()))
        finally:
            closed.set()

    def program() -> Steps[None]:
        yield Calls(on_a_loop_of_its_own)

    events = stream(program())
    assert next(events) == "told"
    events.close()
    assert closed.is_set()


def test_what_runs_beside_a_stream_goes_on_when_what_it_told_was_read() -> None:
    log: list[str] = []

    def program() -> Steps[None]:
        yield Calls(lambda: run(told_in_steps(log)))

    for number, word in enumerate(stream(program())):
        assert log == ["one", "two", "three"][: number + 1]
        assert log[-1] == word


@pytest.mark.parametrize("inside", ["task", "thread"])
async def test_so_it_does_beside_an_awaited_one(inside: str) -> None:
    log: list[str] = []

    async def in_a_task() -> None:
        await arun(told_in_steps(log))

    def program() -> Steps[None]:
        yield Calls(in_a_task if inside == "task" else lambda: run(told_in_steps(log)))

    told: list[Any] = []
    async for word in astream(program()):
        told.append(word)
        await asyncio.sleep(0.01)  # time enough to run ahead in
        assert log == ["one", "two", "three"][: len(told)]
    assert told == [*log, Returned(None)]


def _tells_and_is_left(partial: str) -> Steps[None]:
    try:
        while True:
            yield Emit("heard")
    except StreamCancelled as error:
        error.partial = partial  # type: ignore[attr-defined]
        raise


def _adds_its_own(work: Callable[[], Any]) -> Steps[None]:
    try:
        yield Calls(work)
    except BaseException as error:
        error.steps = 1  # type: ignore[attr-defined]
        raise


def test_who_leaves_hears_what_was_said_in_another_thread() -> None:
    gone: list[StreamCancelled] = []
    events = stream(_adds_its_own(lambda: run(_tells_and_is_left("so far"))), left=gone.append)
    assert next(events) == "heard"
    events.close()
    assert vars(gone[0]) == {"partial": "so far", "steps": 1}


def test_an_interrupted_reader_hears_it_too() -> None:
    events = stream(_adds_its_own(lambda: run(_tells_and_is_left("so far"))))
    assert next(events) == "heard"
    with pytest.raises(KeyboardInterrupt) as caught:
        events.throw(KeyboardInterrupt())
    assert vars(caught.value) == {"partial": "so far", "steps": 1}


@pytest.mark.parametrize("inside", ["task", "thread"])
async def test_so_does_who_leaves_an_awaited_stream(inside: str) -> None:
    async def in_a_task() -> None:
        try:
            await arun(inner())
        except asyncio.CancelledError as error:
            error.partial = "so far"  # type: ignore[attr-defined]
            raise

    work = in_a_task if inside == "task" else lambda: run(_tells_and_is_left("so far"))
    gone: list[StreamCancelled] = []
    events = astream(_adds_its_own(work), left=gone.append)
    assert await anext(events) == "heard"
    await events.aclose()
    assert vars(gone[0]) == {"partial": "so far", "steps": 1}


async def test_a_cancelled_reader_hears_it_too() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            error.partial = "so far"  # type: ignore[attr-defined]
            raise

    task = asyncio.ensure_future(apieces_of(_adds_its_own(work)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert vars(caught.value) == {"partial": "so far", "steps": 1}


def test_a_stream_that_is_read_beside_one_that_was_left_is_left_along() -> None:
    effect = Waits()

    def nested() -> Steps[None]:
        for _ in stream(_adds_its_own(lambda: run(waiting_for(effect)))):
            pass
        return
        yield

    def both() -> Steps[Any]:
        return (yield Gather([nested(), inner()]))

    events = stream(both())
    assert next(events) == "heard"
    assert effect.waiting.wait(5)
    events.close()
    assert effect.woken.is_set()


async def test_leaving_cancels_the_task_beside_an_awaited_stream() -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            await arun(inner())
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    def program() -> Steps[None]:
        yield Calls(work)

    events = astream(program())
    assert await anext(events) == "heard"
    await events.aclose()
    assert log == ["cancelled"]


def test_a_stream_that_is_forgotten_is_put_away() -> None:
    log: list[str] = []
    events = stream(tidy(log))
    next(events)
    del events
    gc.collect()
    assert log == ["put away"]


def test_outside_of_streams_leaving_means_nothing() -> None:
    with on_cancel(pytest.fail):
        assert not in_stream()
