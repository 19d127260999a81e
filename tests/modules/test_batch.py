"""Batches that end early: the exception has the finished results and the failed examples."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sigwire import BatchRun, InputError, Module

Run = Callable[[Module, list[dict[str, Any]], int], Awaitable[list[Any]]]


async def blocking(program: Module, examples: list[dict[str, Any]], threads: int) -> list[Any]:
    return program.batch(examples, threads)


async def awaited(program: Module, examples: list[dict[str, Any]], threads: int) -> list[Any]:
    return await program.abatch(examples, threads)


async def streamed(program: Module, examples: list[dict[str, Any]], threads: int) -> list[Any]:
    class Outer(Module):
        async def aforward(self) -> list[Any]:
            return await program.abatch(examples, threads)

    return [event async for event in Outer().astream()][-1].value  # type: ignore[union-attr]


every_way = pytest.mark.parametrize("run", [blocking, awaited, streamed])


class Invert(Module):
    """Fails for 0."""

    def forward(self, n: int) -> float:
        return 12 / n


@every_way
async def test_error_of_a_batch_has_the_finished_results_and_the_failed_example(run: Run) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        await run(Invert(), [{"n": 3}, {"n": 4}, {"n": 0}, {"n": 1}], 1)
    found = BatchRun.of(caught.value)
    assert found.results == {0: 4, 1: 3}
    (failed,) = found.failures
    assert (failed.index, failed.inputs, failed.error) == (2, {"n": 0}, caught.value)


@pytest.mark.parametrize("limit", [2, 3])
def test_batch_names_every_example_that_failed_in_order(limit: int) -> None:
    both = threading.Barrier(limit)

    class Fails(Module):
        def forward(self, n: int) -> None:
            both.wait(60)
            raise LookupError(n)

    with pytest.raises(LookupError) as caught:
        Fails().batch([{"n": n} for n in range(9)], limit)
    failures = BatchRun.of(caught.value).failures
    assert [(failed.index, failed.error.args) for failed in failures] == [(n, (n,)) for n in range(limit)]
    assert failures[0].error is caught.value


@every_way
@pytest.mark.parametrize("threads", [1, 3])
async def test_results_and_errors_of_return_exceptions_are_in_the_order_of_the_examples(run: Run, threads: int) -> None:
    class Keeping(Invert):
        def batch(self, examples: Any, num_threads: Any = None, **_: Any) -> Any:
            return super().batch(examples, num_threads, return_exceptions=True)

        async def abatch(self, examples: Any, num_threads: Any = None, **_: Any) -> Any:
            return await super().abatch(examples, num_threads, return_exceptions=True)

    results = await run(Keeping(), [{"n": n} for n in (0, 2, 0, 3, 4)], threads)
    assert [result if isinstance(result, float) else type(result) for result in results] == [
        ZeroDivisionError, 6, ZeroDivisionError, 4, 3,
    ]  # fmt: skip


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("end", ["cancel", "timeout"])
async def test_cancelled_batch_has_its_finished_results(end: str, keep: bool) -> None:
    started = asyncio.Event()

    class Waits(Module):
        async def aforward(self, n: int) -> int:
            if n == 2:
                started.set()
                await asyncio.Event().wait()
            return n * n

    task = asyncio.create_task(Waits().abatch([{"n": n} for n in range(5)], 1, return_exceptions=keep))
    await started.wait()
    if end == "cancel":
        task.cancel()
    with pytest.raises((asyncio.CancelledError, TimeoutError)) as caught:
        await asyncio.wait_for(task, 0.01)
    assert BatchRun.of(caught.value) == BatchRun({0: 0, 1: 1})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keep", [True, False])
def test_interrupt_inside_a_call_has_the_finished_results(threads: int, keep: bool) -> None:
    class Interrupted(Module):
        def forward(self, n: int) -> int:
            if n == 2:
                raise KeyboardInterrupt
            return n

    with pytest.raises(KeyboardInterrupt) as caught:
        Interrupted().batch([{"n": n} for n in range(3)], threads, return_exceptions=keep)
    found = BatchRun.of(caught.value)
    assert found.results.items() >= {0: 0}.items()
    assert (sorted(found.results), found.failures) == (list(found.results), ())


def test_batch_run_of_an_error_without_a_batch_is_an_input_error() -> None:
    with pytest.raises(InputError, match="does not come from a batch"):
        BatchRun.of(ValueError("x"))


# The process interrupts itself as Ctrl-C does, while two calls are under way that never end.
INTERRUPTED = """
import asyncio, os, signal, sys, threading
from sigwire import BatchRun, Module

class Blocks(Module):
    def forward(self, n):
        if n == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return n if n < 2 else threading.Event().wait()

examples = [{"n": n} for n in range(9)]

async def ticks():  # asyncio.run sees an interrupt only when its loop wakes up
    while True:
        await asyncio.sleep(0.05)

async def awaited():
    task = asyncio.create_task(ticks())
    await Blocks().abatch(examples, 2)

try:
    asyncio.run(awaited()) if sys.argv[1] == "awaited" else Blocks().batch(examples, 2)
except KeyboardInterrupt as interrupt:
    print(BatchRun.of(interrupt).results)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot interrupt itself alone")
def test_interrupted_batch_has_its_finished_results_and_the_process_ends() -> None:
    runs = [
        subprocess.Popen([sys.executable, "-c", INTERRUPTED, how], stdout=subprocess.PIPE, text=True)
        for how in ("blocking", "awaited")
    ]
    try:
        assert [run.communicate(timeout=60)[0] for run in runs] == ["{0: 0, 1: 1}\n"] * 2
        assert [run.returncode for run in runs] == [0, 0]
    finally:
        for run in runs:
            run.kill()
