"""Streams of steps: order of events, nested steps, and cancellation when the consumer stops."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.effects.cancellation import StreamCancelled, on_cancel
from sigwire.effects.emitting import Emit, Returned, astream, in_stream, stream
from sigwire.effects.gather import Gather
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Steps, arun, run


class Value:
    """An effect that returns or raises a value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def run(self) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    async def arun(self) -> Any:
        await asyncio.sleep(0)
        return self.run()


class Streamed(Value):
    """An effect whose value can be streamed letter by letter."""

    def streamed(self) -> Steps[str]:
        for letter in self.value:
            yield Emit(letter)
        return (yield Value(self.value))


class Calls(Value):
    """An effect that calls code in which other steps run."""

    nests = True

    def run(self) -> Any:
        return self.value()

    async def arun(self) -> Any:
        if inspect.iscoroutinefunction(self.value):
            return await self.value()
        return await to_thread(self.value)


def collect(program: Steps[Any]) -> tuple[list[Any], Any]:
    values: list[Any] = []

    def read() -> Generator[Any]:
        values.append((yield from stream(program)))

    return list(read()), values[0]


async def acollect(program: Steps[Any]) -> tuple[list[Any], Any]:
    *events, last = [event async for event in astream(program)]
    return events, last.value


@pytest.fixture(params=["blocking", "awaited"])
def read(request: pytest.FixtureRequest) -> Callable[[Steps[Any]], tuple[list[Any], Any]]:
    if request.param == "blocking":
        return collect
    return lambda program: asyncio.run(acollect(program))


def greeting() -> Steps[str]:
    yield Emit("a", "b")
    text = yield Streamed("xyz")
    yield Emit("c")
    return text


def test_stream_yields_events_in_order_and_the_value_last(read: Any) -> None:
    assert read(greeting()) == (["a", "b", "x", "y", "z", "c"], "xyz")


def test_run_and_arun_drop_events_and_return_the_same_value() -> None:
    assert run(greeting()) == "xyz"
    assert asyncio.run(arun(greeting())) == "xyz"


def test_stream_reads_nothing_ahead() -> None:
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


def test_stream_raises_the_error_of_an_effect_at_the_yield(read: Any) -> None:
    def program() -> Steps[str]:
        try:
            yield Value(ValueError("no"))
        except ValueError as error:
            yield Emit(str(error))
        return "went on"

    assert read(program()) == (["no"], "went on")


def test_stream_raises_an_uncaught_error_after_the_events(read: Any) -> None:
    def program() -> Steps[None]:
        yield Emit(1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        read(program())


@given(st.lists(st.one_of(st.integers(), st.text(max_size=3)), max_size=8))
def test_stream_yields_every_event_unchanged(items: list[Any]) -> None:
    def program() -> Steps[int]:
        for item in items:
            if isinstance(item, str):
                yield Streamed(item)
            else:
                yield Emit(item)
        return len(items)

    expected = [piece for item in items for piece in (item if isinstance(item, str) else [item])]
    assert collect(program()) == (expected, len(items))
    assert asyncio.run(acollect(program())) == (expected, len(items))


# --- steps inside effects ---


def inner() -> Steps[str]:
    """Emit only inside a stream, as effects of modules do."""
    if in_stream():
        yield Emit("event")
    return "inner"


def test_stream_yields_events_of_steps_inside_an_effect(read: Any) -> None:
    def program() -> Steps[str]:
        return (yield Calls(lambda: run(inner())))

    assert read(program()) == (["event"], "inner")
    assert run(program()) == "inner"


def test_async_stream_yields_events_of_awaited_steps_inside_an_effect() -> None:
    async def call() -> str:
        return await arun(inner())

    def program() -> Steps[str]:
        return (yield Calls(call))

    assert asyncio.run(acollect(program())) == (["event"], "inner")


def test_stream_yields_events_across_block_on_and_to_thread() -> None:
    async def deep() -> str:
        return await to_thread(lambda: run(inner()))

    def program() -> Steps[str]:
        return (yield Calls(lambda: block_on(deep())))

    assert collect(program()) == (["event"], "inner")
    assert asyncio.run(acollect(program())) == (["event"], "inner")


def test_stream_yields_events_of_all_gathered_steps(read: Any) -> None:
    def one(number: int) -> Steps[int]:
        yield Emit(number)
        return number

    def program() -> Steps[list[int]]:
        return (yield Gather([one(number) for number in range(5)]))

    events, value = read(program())
    assert sorted(events) == value == [0, 1, 2, 3, 4]


def test_error_inside_an_effect_is_raised_by_the_effect(read: Any) -> None:
    def fail() -> None:
        run(inner())
        raise ValueError("inside")

    def program() -> Steps[str]:
        try:
            yield Calls(fail)
        except ValueError as error:
            return str(error)
        return "unreached"

    assert read(program()) == (["event"], "inside")


# --- cancellation ---------------------------------------------------------------------------------------------


def emit_for_ever(log: list[str]) -> Steps[None]:
    try:
        while True:
            yield Emit("more")
    except StreamCancelled as error:
        error.add_note("with what was there")
        raise
    finally:
        yield Value(None)  # cleanup may yield effects
        log.append("released")


def test_closed_stream_runs_the_cleanup_of_the_steps() -> None:
    log: list[str] = []
    cancelled: list[StreamCancelled] = []
    events = stream(emit_for_ever(log), on_cancelled=cancelled.append)
    assert next(events) == "more"
    events.close()
    assert log == ["released"]
    assert cancelled[0].__notes__ == ["with what was there"]


def test_closed_stream_cancels_the_innermost_steps_first() -> None:
    log: list[str] = []

    class Holding(Value):
        def streamed(self) -> Steps[None]:
            return emit_for_ever(log)

    def program() -> Steps[None]:
        try:
            yield Holding(None)
        finally:
            log.append("outer")

    events = stream(program())
    next(events)
    events.close()
    assert log == ["released", "outer"]


async def test_closed_async_stream_runs_the_cleanup_of_the_steps() -> None:
    log: list[str] = []
    cancelled: list[StreamCancelled] = []
    events = astream(emit_for_ever(log), on_cancelled=cancelled.append)
    assert await anext(events) == "more"
    await events.aclose()
    assert log == ["released"]
    assert len(cancelled) == 1


async def test_cancelled_consumer_cancels_the_steps() -> None:
    log: list[str] = []
    started = asyncio.Event()

    class Forever(Value):
        async def arun(self) -> None:
            started.set()
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
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["cancelled"]


def test_nested_steps_of_a_closed_stream_stop_at_their_next_event() -> None:
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
    assert next(events) == "event"
    events.close()
    assert stopped.wait(60)


class Waits(Value):
    """An effect that waits in a thread until it is woken."""

    def __init__(self) -> None:
        self.waiting, self.woken = threading.Event(), threading.Event()

    def run(self) -> None:
        with on_cancel(self.woken.set):
            self.waiting.set()
            self.woken.wait(60)
        raise StreamCancelled

    async def arun(self) -> None:
        await to_thread(self.run)


def waiting_for(effect: Waits) -> Steps[None]:
    yield effect


@pytest.mark.parametrize("awaited", [False, True])
async def test_closed_stream_wakes_waits_of_nested_steps(awaited: bool) -> None:
    effect = Waits()

    def both() -> Steps[Any]:
        return (yield Gather([waiting_for(effect), inner()]))

    if awaited:
        aevents = astream(both())
        assert await anext(aevents) == "event"
        assert await asyncio.to_thread(effect.waiting.wait, 60)
        await aevents.aclose()
    else:
        events = stream(both())
        assert next(events) == "event"
        assert effect.waiting.wait(60)
        events.close()
    assert effect.woken.is_set()


class Lasts(Value):
    """An effect that waits until it is cancelled; its steps then clean up with another effect."""

    def __init__(self) -> None:
        self.waiting, self.log = threading.Event(), list[str]()

    async def arun(self) -> None:
        self.waiting.set()
        await asyncio.sleep(60)
        self.log.append("ended")

    def program(self) -> Steps[None]:
        try:
            yield self
        except BaseException as error:
            error.partial = "par"  # type: ignore[attr-defined]
            yield Value(None)
            self.log.append("released")
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
async def test_closed_stream_cancels_a_loop_that_nested_code_runs(reading: Any, awaited: bool) -> None:
    """``asyncio.run`` of nested code blocks a thread; cancellation must reach the tasks of that loop."""
    effect, cancelled = Lasts(), list[StreamCancelled]()

    def waits() -> Steps[None]:
        yield Calls(lambda: asyncio.run(reading(effect.program())))

    def both() -> Steps[Any]:
        return (yield Gather([waits(), inner()]))

    if awaited:
        aevents = astream(both(), on_cancelled=cancelled.append)
        assert await anext(aevents) == "event"
        assert await asyncio.to_thread(effect.waiting.wait, 60)
        await aevents.aclose()
    else:
        events = stream(both(), on_cancelled=cancelled.append)
        assert next(events) == "event"
        assert effect.waiting.wait(60)
        events.close()
    assert effect.log == ["released"]
    assert vars(cancelled[0]) == {"partial": "par"}


def counting(log: list[str]) -> Steps[None]:
    for text in ("one", "two", "three"):
        log.append(text)
        yield Emit(text)


def test_closed_stream_ignores_a_loop_that_closed_before_its_callback() -> None:
    closed = threading.Event()

    class Emits:
        async def arun(self) -> None:
            with on_cancel(lambda: closed.wait(60)):  # callbacks run in this order: loop, this one, emitter
                await Emit("events").arun()

        def run(self) -> None:
            raise AssertionError("only for the awaiting driver")

    def inner() -> Steps[None]:
        yield Emits()

    def on_another_loop() -> None:
        try:
            asyncio.run(arun(inner()))
        finally:
            closed.set()

    def program() -> Steps[None]:
        yield Calls(on_another_loop)

    events = stream(program())
    assert next(events) == "events"
    events.close()
    assert closed.is_set()


def test_nested_steps_wait_until_their_event_was_read() -> None:
    log: list[str] = []

    def program() -> Steps[None]:
        yield Calls(lambda: run(counting(log)))

    for number, text in enumerate(stream(program())):
        assert log == ["one", "two", "three"][: number + 1]
        assert log[-1] == text


@pytest.mark.parametrize("inside", ["task", "thread"])
async def test_nested_steps_of_an_async_stream_wait_until_their_event_was_read(inside: str) -> None:
    log: list[str] = []

    async def in_task() -> None:
        await arun(counting(log))

    def program() -> Steps[None]:
        yield Calls(in_task if inside == "task" else lambda: run(counting(log)))

    events: list[Any] = []
    async for text in astream(program()):
        events.append(text)
        await asyncio.sleep(0.01)  # enough time to run ahead
        assert log == ["one", "two", "three"][: len(events)]
    assert events == [*log, Returned(None)]


def _emitting_until_cancelled(partial: str) -> Steps[None]:
    try:
        while True:
            yield Emit("event")
    except StreamCancelled as error:
        error.partial = partial  # type: ignore[attr-defined]
        raise


def _adding_steps(work: Callable[[], Any]) -> Steps[None]:
    try:
        yield Calls(work)
    except BaseException as error:
        error.steps = 1  # type: ignore[attr-defined]
        raise


def test_closed_stream_merges_the_partial_of_another_thread() -> None:
    cancelled: list[StreamCancelled] = []
    events = stream(_adding_steps(lambda: run(_emitting_until_cancelled("par"))), on_cancelled=cancelled.append)
    assert next(events) == "event"
    events.close()
    assert vars(cancelled[0]) == {"partial": "par", "steps": 1}


def test_interrupted_stream_merges_the_partial_of_another_thread() -> None:
    events = stream(_adding_steps(lambda: run(_emitting_until_cancelled("par"))))
    assert next(events) == "event"
    with pytest.raises(KeyboardInterrupt) as caught:
        events.throw(KeyboardInterrupt())
    assert vars(caught.value) == {"partial": "par", "steps": 1}


@pytest.mark.parametrize("inside", ["task", "thread"])
async def test_closed_async_stream_merges_the_partial_of_nested_steps(inside: str) -> None:
    async def in_task() -> None:
        try:
            await arun(inner())
        except asyncio.CancelledError as error:
            error.partial = "par"  # type: ignore[attr-defined]
            raise

    work = in_task if inside == "task" else lambda: run(_emitting_until_cancelled("par"))
    cancelled: list[StreamCancelled] = []
    events = astream(_adding_steps(work), on_cancelled=cancelled.append)
    assert await anext(events) == "event"
    await events.aclose()
    assert vars(cancelled[0]) == {"partial": "par", "steps": 1}


async def test_cancelled_async_stream_merges_the_partial_of_nested_steps() -> None:
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            error.partial = "par"  # type: ignore[attr-defined]
            raise

    task = asyncio.ensure_future(acollect(_adding_steps(work)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert vars(caught.value) == {"partial": "par", "steps": 1}


def test_closed_stream_cancels_a_stream_nested_inside() -> None:
    effect = Waits()

    def nested() -> Steps[None]:
        for _ in stream(_adding_steps(lambda: run(waiting_for(effect)))):
            pass
        return
        yield

    def both() -> Steps[Any]:
        return (yield Gather([nested(), inner()]))

    events = stream(both())
    assert next(events) == "event"
    assert effect.waiting.wait(60)
    events.close()
    assert effect.woken.is_set()


async def test_closed_async_stream_cancels_nested_tasks() -> None:
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
    assert await anext(events) == "event"
    await events.aclose()
    assert log == ["cancelled"]


def test_garbage_collected_stream_runs_the_cleanup_of_the_steps() -> None:
    log: list[str] = []
    events = stream(emit_for_ever(log))
    next(events)
    del events
    gc.collect()
    assert log == ["released"]


def test_on_cancel_does_nothing_outside_of_streams() -> None:
    with on_cancel(pytest.fail):
        assert not in_stream()
