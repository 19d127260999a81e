"""BatchDriver against a provider of any mood: each line is answered and charged once, whatever is lost in between."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.errors import LMTransportError
from sigwire.lm.batch.driver import BatchDriver
from sigwire.lm.batch.options import BatchOptions
from sigwire.lm.batch.sending import AskedLine, BatchGroup, LineFuture
from sigwire.lm.batch.store import FORM, BatchStore
from sigwire.lm.codecs.batches.shared import (
    BatchCall,
    BatchCalls,
    BatchCounts,
    BatchLimits,
    BatchLine,
    BatchListing,
    BatchStatus,
    LineResult,
    read_json,
)
from sigwire.lm.http.messages import HttpReply
from tests.strategies import at_most


class World:
    """A provider in memory, and its batch API. Each call may fail, before or after it took effect.

    ``lag``: seconds after which a batch is listed. ``loses``: whether lines that ran may have no result.
    """

    def __init__(self, seed: int, marks: bool, lag: float, loses: bool) -> None:
        self.lag, self.loses = lag, loses
        self.LIMITS = BatchLimits(lines=1000, bytes=10**9, price=0.5, date="", has_marks=marks)
        self.random, self.marks = random.Random(seed), marks
        self.batches: dict[str, tuple[str, list[str], float]] = {}
        self.results_of: dict[str, list[LineResult]] = {}
        self.charged: Counter[str] = Counter()
        self.time, self.calm = 1e9, False

    def chance(self, percent: int) -> bool:
        return not self.calm and self.random.randrange(100) < percent

    def send(self, headers: Mapping[str, str], call: BatchCall) -> HttpReply:
        if self.chance(10):
            raise LMTransportError("lost before it arrived")
        if self.chance(10):
            return HttpReply(self.random.choice((429, 500, 503)), {}, b"busy")
        if call.path == "create" and self.chance(10):
            return HttpReply(413, {}, b"too large")
        body = read_json(call.body)
        if call.path == "create":
            name, ids = f"b{len(self.batches)}", [str(each) for each in cast("list[object]", body["ids"])]
            self.batches[name] = (str(body["mark"]), ids, self.time)
            results = [self.run(id) for id in ids]  # charged, even if no caller reads them
            self.results_of[name] = [each for each in results if not (self.loses and each.status and self.chance(15))]
        if self.chance(10):
            raise LMTransportError("lost on the way back")
        return HttpReply(200, {}, json.dumps({"name": f"b{len(self.batches) - 1}"}).encode())

    # --- the API

    def create(self, lines: Sequence[BatchLine], mark: str) -> BatchCalls[str]:
        body = json.dumps({"mark": mark, "ids": [line.id for line in lines]}).encode()
        return str(read_json((yield BatchCall("POST", "create", body)))["name"])

    def status(self, name: str) -> BatchCalls[BatchStatus]:
        yield BatchCall("GET", "status", b"{}")
        return BatchStatus("running" if self.chance(30) else "ended", BatchCounts(), {})

    def results(self, name: str, status: BatchStatus) -> BatchCalls[list[LineResult]]:
        yield BatchCall("GET", "results", b"{}")
        return self.results_of[name]

    def run(self, id: str) -> LineResult:
        if self.chance(20):
            return LineResult(id, None)
        self.charged[id] += 1
        return LineResult(id, 200, {"answer": id})

    def cancel(self, name: str) -> BatchCalls[None]:
        yield BatchCall("POST", "cancel", b"{}")

    def listed(self, since: float) -> BatchCalls[list[BatchListing]]:
        yield BatchCall("GET", "list", b"{}")
        return [
            BatchListing(name, mark if self.marks else None, created, len(ids))
            for name, (mark, ids, created) in self.batches.items()
            if created + self.lag <= self.time
        ]


def ask(world: World, driver: BatchDriver, numbers: Sequence[int]) -> dict[int, LineFuture]:
    futures: dict[int, LineFuture] = {}
    for number in numbers:
        futures[number] = Future()
        group = BatchGroup("acme", "https://acme.example", "/v1", f"model {number % 2}")
        line = BatchLine(f"id {number}", "/v1", b"{}")
        driver.ask(AskedLine(line, group, world, world.send), futures[number], world.time)
    return futures


def pass_time(world: World, driver: BatchDriver, rounds: int, waiting: dict[int, LineFuture]) -> None:
    """Let time pass; ask again for lines whose reply was an error, as the retries of a model do."""
    for _ in range(rounds):
        world.time += 7.0
        driver.step(world.time, all_wait=True)
        failed = [number for number, future in waiting.items() if future.done() and not is_answered(future)]
        waiting.update(ask(world, driver, failed))


def is_answered(future: LineFuture) -> bool:
    reply = future.result() if future.done() and future.exception() is None else None
    return reply is not None and reply.status == 200


@pytest.mark.long
@given(
    seed=st.integers(0, 2**32),
    lives=st.integers(1, 4),
    marks=st.booleans(),
    lag=st.sampled_from([0.0, 20.0, 50.0]),
    loses=st.booleans(),
)
@at_most(30)
def test_each_line_is_answered_and_charged_once_or_if_results_are_lost_twice(
    seed: int, lives: int, marks: bool, lag: float, loses: bool
) -> None:
    world = World(seed, marks, lag, loses)
    fast = replace(FORM, settings=("locking_mode = EXCLUSIVE", "synchronous = OFF"))
    with TemporaryDirectory() as folder:
        options = BatchOptions(Path(folder) / "x.batch", size=4, on_doubt="ask", poll=(5.0, 20.0), settle=60.0)
        waiting: dict[int, LineFuture] = {}
        for life in range(lives):
            with closing(BatchStore(options.store, fast)) as store:
                driver = BatchDriver(store, options, world.time)
                waiting = ask(world, driver, range(9))
                world.calm = life == lives - 1  # so that the last life reaches the end
                pass_time(world, driver, 120 if world.calm else world.random.randrange(20), waiting)
        replies = {number: read_json(future.result().body) for number, future in waiting.items() if is_answered(future)}  # type: ignore[union-attr]
        lost = {number for number, future in waiting.items() if "paid twice" in str(future.exception(timeout=0))}
    assert replies == {number: {"answer": f"id {number}"} for number in range(9) if number not in lost}
    assert set(world.charged.values()) <= ({1, 2} if loses else {1})
    assert len(world.charged) == 9
    assert loses or not lost
    assert {world.charged[f"id {number}"] for number in lost} <= {2}
