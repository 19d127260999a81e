"""``DaemonPool``: threads that are reused while they are idle, and never hold an exit."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from sigwire.effects.daemon_pool import DaemonPool


def test_pool_reuses_an_idle_thread() -> None:
    pool = DaemonPool()
    first = pool.submit(threading.current_thread).result(60)
    while not pool._idle._value:  # the thread becomes idle after its future is done
        time.sleep(0.001)
    assert pool.submit(threading.current_thread).result(60) is first


def test_pool_starts_a_daemon_thread_when_all_are_busy() -> None:
    pool, meet = DaemonPool(), threading.Barrier(3)

    def work() -> bool:
        meet.wait(60)
        return threading.current_thread().daemon

    assert all(future.result(60) for future in [pool.submit(work) for _ in range(3)])


def test_pool_raises_the_error_of_a_call() -> None:
    with pytest.raises(ZeroDivisionError):
        DaemonPool().submit(lambda: 1 // 0).result(60)


# Each line leaves work behind that never ends. The last line is printed; then the interpreter exits.
ABANDONED = """
import asyncio, socket, threading
from sigwire import LM, FakeLM, LMTimeoutError, Module, Predict, ReAct, Tool, ToolCall

for_ever = threading.Event().wait

async def in_asyncio_thread():
    await asyncio.to_thread(for_ever)

async def catches_cancellation():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

def agent(tool):
    made = ReAct("q -> r", tools=[Tool(tool, name="t", timeout=0.05)])
    made.set_lm(FakeLM([ToolCall("", "t", {}), ToolCall("", "submit", {"r": "x"})]))
    return made

async def last(stream):
    return [event async for event in stream][-1].value

class Blocks(Module):
    def forward(self):
        for_ever()

async def cancelled(waiting):
    try:
        await asyncio.wait_for(waiting, 0.05)
    except TimeoutError:
        return "cancelled"

async def look_up():
    socket.getaddrinfo = lambda *args, **options: for_ever()
    try:
        await Predict("q -> r", lm=LM("openai/x", base_url="http://x.y", api_key="k", timeout=0.1, retry=None)).acall(q="")
    except LMTimeoutError:
        return "timed out"

def blocking(tool):
    return agent(tool)(q="q").r, [*agent(tool).stream(q="q")][-1].value.r

def awaited(tool):
    return asyncio.run(agent(tool).acall(q="q")).r, asyncio.run(last(agent(tool).astream(q="q"))).r

print(blocking(lambda: for_ever()), awaited(lambda: for_ever()))
print(blocking(in_asyncio_thread))
print(blocking(catches_cancellation), awaited(catches_cancellation))
print(asyncio.run(cancelled(Blocks().acall())), asyncio.run(cancelled(Blocks().abatch([{}, {}]))))
print(asyncio.run(look_up()))
"""


@pytest.mark.long
def test_abandoned_tools_and_threads_never_hold_asyncio_run_or_the_exit() -> None:
    done = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, text=True, timeout=30, check=True)
    pair = "('x', 'x')"
    assert done.stdout.splitlines() == [f"{pair} {pair}", pair, f"{pair} {pair}", "cancelled cancelled", "timed out"]
    assert "Traceback" not in done.stderr
