"""The cost of the policies around a call (l1 to l3), the overrun of a timeout (l4), many loops and threads at once (m1).

The file of a budget is l5.

Of l1 to l3 the floor is the same model without layers: its exchange returns a canned answer at once, so the difference between
the two columns is the price of the layers.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sigwire
from benchmarks.by_hand import AsyncSender, Sender
from benchmarks.over_http import model, read, written
from benchmarks.predict import INPUTS
from benchmarks.server import answered, serving
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.effects.steps import Steps
from sigwire.errors import LMTimeoutError
from sigwire.lm.policy.call import Call, Layer, answer_once
from sigwire.lm.policy.money.ledger import Reserved
from sigwire.lm.policy.money.store import FileLedger
from sigwire.lm.policy.money.sums import BudgetLimits, Sums

__all__ = ["jobs", "ledger", "over_http", "silent"]

REQUEST = Request((Message.user("When was the bridge opened?"),))
ANSWER = Response((Choice("In 1932."),), Usage(20, 5))
LOOPS = THREADS = 20
TIMEOUT = 0.3
CALLS = 25
QUESTION = {**INPUTS, "question": "Question 7?"}


class StubbedBackend:
    """A backend whose exchange is a canned answer."""

    def answer(self, call: Call) -> Steps[Response]:
        """Answer inside the layers of the call."""
        return answer_once(call, partial(self._exchange, call))

    def _exchange(self, call: Call) -> Steps[Response]:
        call.begin()
        return ANSWER
        yield

    def close(self) -> None:
        """Close nothing."""

    def option_names(self) -> tuple[()]:
        """Return no options."""
        return ()


class StubbedLM(sigwire.LM):
    """A model with all its policies, and a stub in place of HTTP."""

    def _connect(self) -> None:
        super()._connect()
        self._backend = StubbedBackend()


class BareLM(StubbedLM):
    """The same without a layer."""

    def _layers(self) -> tuple[Layer, ...]:
        return ()


def jobs() -> Iterator[Job]:
    """Yield l1, l2 and l3."""
    bare = made(BareLM)
    yield Job(
        "l1", "a call, its layers by default", "≤ + 3 µs", {FLOOR: called(bare), SIGWIRE: called(made(StubbedLM))}
    )
    retried = called(made(StubbedLM, limit=False))
    yield Job("l2", "the same without a limiter", "", {FLOOR: called(bare), SIGWIRE: retried})
    charged = copy_context()
    charged.run(sigwire.Budget(calls=10**9).__enter__)
    yield Job(
        "l3",
        "l1 inside a Budget",
        "",
        {FLOOR: partial(charged.run, called(bare)), SIGWIRE: partial(charged.run, called(made(StubbedLM)))},
    )


def ledger() -> Iterator[Job]:
    """Yield l5. The floor is one commit that waits for the disk, as a file of SQLite makes it."""
    with TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder, "floor"), isolation_level=None)) as floor:
        floor.execute("PRAGMA journal_mode = WAL")
        floor.execute("CREATE TABLE rows (number INTEGER)")
        book = FileLedger(str(Path(folder, "budget")))

        def charge() -> None:
            ticket = book.take(Sums(1), BudgetLimits(calls=10**9), ())
            assert isinstance(ticket, Reserved)
            book.settle(ticket, Sums(1))

        commit = partial(floor.execute, "INSERT INTO rows VALUES (1)")
        yield Job("l5", "a call in a Budget(path=...)", "≤ 3 x", {FLOOR: commit, SIGWIRE: charge})


# --- l4: a silent server ---------------------------------------------------------------------------------


def silent() -> Iterator[Job]:
    """Yield l4."""
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts by its backlog, and sends nothing
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        lm = sigwire.LM("openai/gpt-5-mini", base_url=address, api_key="benchmark", cache=False, timeout=TIMEOUT)

        def ask() -> None:
            with suppress(LMTimeoutError):
                lm.respond(REQUEST)
                raise AssertionError("the server is silent")

        floor = partial(time.sleep, TIMEOUT)
        yield Job(
            "l4", f"timeout={TIMEOUT} at a silent server, wall time", "≤ 1.1x", {FLOOR: floor, SIGWIRE: ask}, "ms",
            sample=wall_seconds, most_rounds=5,
        )  # fmt: skip
        lm.close()


def wall_seconds(contestant: Contestant) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    contestant()
    return time.perf_counter() - start


def made(kind: type[sigwire.LM], **options: Any) -> sigwire.LM:
    return kind("openai/gpt-5-mini", api_key="benchmark", cache=False, **options)


def called(lm: sigwire.LM) -> Contestant:
    """Return a call of the model, after its answer was checked."""
    call = partial(lm.respond, REQUEST)
    assert call().choices == ANSWER.choices
    return call


# --- m1: many loops and threads ------------------------------------------------------------------------


def over_http() -> Iterator[Job]:
    """Yield m1."""
    with serving() as port:
        lm = model(port, "count")
        predict: Any = sigwire.Predict("context, question -> answer, confidence: float")
        predict.lm = lm

        async def awaited() -> int:
            predictions = [await predict.acall(**QUESTION) for _ in range(CALLS)]
            return sum(prediction.answer == "7" for prediction in predictions)

        def blocked() -> int:
            return sum(predict(**QUESTION).answer == "7" for _ in range(CALLS))

        floor = at_once(partial(by_hand, port), lambda: asyncio.run(by_hand_awaited(port)))
        contestants = {FLOOR: floor, SIGWIRE: at_once(blocked, lambda: asyncio.run(awaited()))}
        number = (LOOPS + THREADS) * CALLS
        checked = {name: answered(port, contestant, number, number) for name, contestant in contestants.items()}
        what = f"{number:,} calls over HTTP, {LOOPS} event loops and {THREADS} threads"
        yield Job("m1", what, "≤ 4x", checked, per=number, most_rounds=5)
        lm.close()


def by_hand(port: int) -> int:
    send = Sender(port, "/count/chat/completions")
    right = sum(read(send(written(QUESTION)))[0] == "7" for _ in range(CALLS))
    send.close()
    return right


async def by_hand_awaited(port: int) -> int:
    send = AsyncSender(port, "/count/chat/completions")
    right = sum([read(await send(written(QUESTION)))[0] == "7" for _ in range(CALLS)])
    await send.close()
    return right


def at_once(blocked: Callable[[], int], in_a_loop: Callable[[], int]) -> Callable[[], int]:
    """Return a contestant that does both in as many threads; its value is the number of right answers."""

    def together() -> int:
        with ThreadPoolExecutor(LOOPS + THREADS) as pool:
            running = [pool.submit(call) for call in (*[blocked] * THREADS, *[in_a_loop] * LOOPS)]
            return sum(each.result() for each in running)

    return together
