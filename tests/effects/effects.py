"""Effects and drivers that the tests of this folder share."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sigwire.effects.loops import to_thread
from sigwire.effects.steps import Steps, arun, run

Driver = Callable[[Steps[Any]], Awaitable[Any]]
colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


class Value:
    """An effect that returns or raises a value; ``log`` records the methods that were called."""

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


class Wait:
    """An effect that never ends by itself."""

    def __init__(self) -> None:
        self.started = asyncio.Event()

    def run(self) -> None:
        raise AssertionError("only for the awaiting driver")

    async def arun(self) -> None:
        self.started.set()
        await asyncio.Event().wait()


async def answer(value: Any = 42) -> Any:
    await asyncio.sleep(0)
    return value
