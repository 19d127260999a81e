"""Steps under both drivers: values, errors and cancellation at the yield."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sigwire.effects.steps import Steps, arun
from tests.effects.effects import Call, Driver, Value, Wait, blocking, drivers


@drivers
async def test_driver_sends_effect_values_and_returns_the_value_of_the_steps(drive: Driver) -> None:
    def program() -> Steps[int]:
        first = yield Value(40)
        second = yield Value(2)
        return first + second

    assert await drive(program()) == 42


@drivers
async def test_steps_without_effects_return_their_value(drive: Driver) -> None:
    def program() -> Steps[str]:
        return "done"
        yield

    assert await drive(program()) == "done"


@drivers
async def test_steps_call_steps_with_yield_from(drive: Driver) -> None:
    def inner(n: int) -> Steps[int]:
        return (yield Value(n)) * 2

    def outer() -> Steps[int]:
        return (yield from inner(10)) + (yield from inner(11))

    assert await drive(outer()) == 42


@pytest.mark.parametrize(("drive", "way"), [(blocking, "run"), (arun, "arun")])
async def test_each_driver_calls_its_own_method_of_an_effect(drive: Driver, way: str) -> None:
    log: list[str] = []

    def program() -> Steps[None]:
        yield Value(1, log)

    await drive(program())
    assert log == [way]


@drivers
async def test_error_of_an_effect_is_raised_at_the_yield_and_can_be_caught(drive: Driver) -> None:
    def program() -> Steps[str]:
        try:
            yield Value(KeyError("lost"))
        except KeyError as error:
            return f"handled {error}, then {(yield Value('on'))}"
        return "never"

    assert await drive(program()) == "handled 'lost', then on"


@drivers
async def test_uncaught_error_keeps_the_line_of_the_steps_in_its_traceback(drive: Driver) -> None:
    def program() -> Steps[None]:
        yield Value(LookupError("nowhere"))

    with pytest.raises(LookupError, match="nowhere") as caught:
        await drive(program())
    assert "program" in [entry.name for entry in caught.traceback]


@drivers
async def test_error_of_the_steps_is_raised_after_their_cleanup(drive: Driver) -> None:
    cleaned: list[str] = []

    def program() -> Steps[None]:
        try:
            yield Value(1)
            raise ArithmeticError
        finally:
            cleaned.append((yield Value("yes")))

    with pytest.raises(ArithmeticError):
        await drive(program())
    assert cleaned == ["yes"]


@drivers
async def test_stop_iteration_of_an_effect_becomes_a_runtime_error(drive: Driver) -> None:
    def program() -> Steps[str]:
        yield Call(lambda: next(iter(())))
        return "never"

    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(drive(program()), 5)


# --- cancellation ------


async def test_cancelled_error_is_raised_at_the_yield_and_cleanup_may_await() -> None:
    seen: list[Any] = []
    wait = Wait()

    def program() -> Steps[None]:
        try:
            yield wait
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append((yield Value("cleaned")))

    task = asyncio.create_task(arun(program()))
    await wait.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled", "cleaned"]


async def test_steps_may_return_a_value_after_cancellation() -> None:
    def program() -> Steps[str]:
        try:
            yield Wait()
        except asyncio.CancelledError:
            return "stopped"
        return "never"

    task = asyncio.create_task(arun(program()))
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "stopped"


@drivers
async def test_interrupt_runs_the_cleanup_of_the_steps(drive: Driver) -> None:
    cleaned: list[str] = []

    class Interrupt(BaseException):
        pass

    def program() -> Steps[None]:
        try:
            yield Value(Interrupt())
        finally:
            cleaned.append("yes")

    with pytest.raises(Interrupt):
        await drive(program())
    assert cleaned == ["yes"]
