"""State that ``finally`` blocks change: streams that the collector closes, interrupts and closed loops keep nothing."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from sigwire import Budget
from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.effects.emitting import Emit, stream
from sigwire.effects.steps import Steps, arun, run
from sigwire.lm.policy.cache.single_flight import SingleFlight
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.policy.guard import Guard
from sigwire.lm.policy.limits.alarm import Alarm
from sigwire.lm.policy.limits.limit import Limit
from sigwire.lm.policy.limits.limiter import Limiter
from sigwire.lm.policy.money.ledger import MemoryLedger
from sigwire.lm.policy.money.reserve import Reserve
from sigwire.lm.policy.waiting import Wait, claim
from tests.patience import wait_until

ANSWER = Response(usage=Usage(input_tokens=1, output_tokens=1))


def new_call(streamed: bool = False) -> Call:
    return Call(Request(), TargetKey("acme", None, None, "acme/m"), streamed=streamed)


def answer() -> Steps[Response]:
    return ANSWER
    yield


def two_events() -> Steps[Response]:
    yield Emit("first")
    yield Emit("second")
    return ANSWER


def held(gate: Future[Any]) -> Callable[[], Steps[Any]]:
    def steps() -> Steps[Any]:
        return (yield Wait(gate, None))

    return steps


def in_time(work: Callable[[], object]) -> None:
    """Run in a thread, which a deadlock does not end."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "deadlock"


def abandon(steps: Steps[Any]) -> None:
    """Take the first event of a stream, and leave the stream to the collector."""
    events = stream(steps)
    next(events)
    cycle: list[object] = [events]
    cycle.append(cycle)


@pytest.fixture
def collector() -> Iterator[None]:
    """Collect only if a test does."""
    gc.disable()
    yield
    gc.enable()


# --- a stream that is collected while its thread has the lock


@pytest.mark.usefixtures("collector")
def test_limiter_frees_the_slot_of_a_stream_that_is_collected_under_its_lock() -> None:
    collects = False

    def clock() -> float:
        if collects:
            gc.collect(0)
        return time.monotonic()

    limiter = Limiter(Limit(concurrency=2), clock=clock)
    abandon(limiter.around(new_call(streamed=True), two_events))
    collects = True
    in_time(lambda: run(limiter.around(new_call(), answer)))
    assert limiter.state("acme", "m").in_flight == 0


@pytest.mark.usefixtures("collector")
def test_budget_settles_a_stream_that_is_collected_under_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    check = MemoryLedger.check

    def collecting(*arguments: Any) -> Any:
        gc.collect(0)
        return check(*arguments)

    budget = Budget(calls=2)
    abandon(Reserve((budget,)).around(new_call(streamed=True), two_events))
    assert budget.reserved.calls == 1
    monkeypatch.setattr(MemoryLedger, "check", collecting)
    in_time(lambda: run(Reserve((budget,)).around(new_call(), answer)))
    assert (budget.reserved.calls, budget.spent.calls) == (0, 1)


@pytest.mark.usefixtures("collector")
def test_flight_of_a_stream_that_is_collected_under_the_lock_ends() -> None:
    class Collecting(SingleFlight):
        def _enter(self, key: bytes, call: Call) -> Any:
            if key == b"b":
                gc.collect(0)
            return super()._enter(key, call)

    flights = Collecting()
    abandon(flights.fly(b"a", new_call(streamed=True), two_events))
    in_time(lambda: run(flights.fly(b"b", new_call(), answer)))
    assert flights._flights == {}


def test_streams_that_the_collector_closes_at_any_allocation_keep_no_slot() -> None:
    limiter, flights, budget = Limiter(Limit(concurrency=3)), SingleFlight(), Budget(calls=10_000)
    reserve = Reserve((budget,))

    def steps(number: int, streamed: bool) -> Steps[Response]:
        call, inner = new_call(streamed), two_events if streamed else answer
        key = b"stream %d %d" % (threading.get_ident(), number) if streamed else b"%d" % (number % 3)
        return flights.fly(key, call, lambda: reserve.around(call, lambda: limiter.around(call, inner)))

    def work() -> None:
        for number in range(200):
            abandon(steps(number, streamed=True))
            run(steps(number, streamed=False))

    before = gc.get_threshold()
    gc.set_threshold(7, 1, 1)
    try:
        threads = [threading.Thread(target=in_time, args=[work], daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        gc.set_threshold(*before)
    gc.collect(0)
    assert not any(thread.is_alive() for thread in threads)
    assert (limiter.state("acme", "m").in_flight, flights._flights, budget.reserved.calls) == (0, {}, 0)


# --- the guard


def test_release_does_not_wait_for_another_thread_that_has_the_lock() -> None:
    guard, begun, gate, released = Guard(), threading.Event(), threading.Event(), list[str]()

    def hold() -> None:
        begun.set()
        gate.wait(60)

    thread = threading.Thread(target=guard.use, args=[hold])
    thread.start()
    assert begun.wait(60)
    guard.release(released.append, "slot")
    assert released == []
    gate.set()
    thread.join(60)
    assert released == ["slot"]


def test_use_sees_the_releases_before_it_and_an_interrupt_frees_the_lock() -> None:
    guard, released = Guard(), list[str]()

    def interrupted() -> None:
        guard.release(released.append, "slot")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.use(interrupted)
    assert guard.use(lambda: list(released)) == ["slot"]


# --- interrupts, closed loops


@pytest.mark.parametrize("name", ["_take", "_pace.send"])
def test_limiter_keeps_no_slot_when_an_interrupt_comes_while_it_is_taken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    limiter = Limiter(Limit(concurrency=1))
    if name == "_take":
        monkeypatch.setattr(limiter, "_take", interrupted)
    else:
        monkeypatch.setattr(limiter, "_pace", SimpleNamespace(send=interrupted, rate=float("inf")))
    with pytest.raises(KeyboardInterrupt):
        run(limiter.around(new_call(), answer))
    assert (limiter.state("acme", "m").in_flight, limiter._in_flight) == (0, 0)


def test_slot_is_not_given_to_a_task_of_a_closed_loop() -> None:
    limiter, gate, loop = Limiter(Limit(concurrency=1)), Future[Any](), asyncio.new_event_loop()
    holder = threading.Thread(target=lambda: run(limiter.around(new_call(), held(gate))), daemon=True)
    holder.start()
    wait_until(lambda: limiter.state("acme", "m").in_flight)
    lost = loop.create_task(arun(limiter.around(new_call(), answer)))
    loop.run_until_complete(asyncio.sleep(0.01))
    assert limiter.state("acme", "m").queued == 1
    loop.close()
    gate.set_result(ANSWER)
    in_time(lambda: run(limiter.around(new_call(), answer)))
    assert limiter.state("acme", "m").in_flight == 0
    assert not lost.done()
    lost.get_coro().close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_slot_and_flight_of_a_collected_task_are_free() -> None:
    limiter, flights, loop = Limiter(Limit(concurrency=1)), SingleFlight(), asyncio.new_event_loop()
    call = new_call(streamed=True)
    task = loop.create_task(arun(flights.fly(b"a", call, lambda: limiter.around(call, held(Future())))))
    loop.run_until_complete(asyncio.sleep(0.01))
    assert limiter.state("acme", "m").in_flight == 1
    loop.close()
    del task, loop
    gc.collect(0)
    assert (limiter.state("acme", "m").in_flight, flights._flights) == (0, {})


def test_future_of_a_closed_loop_cannot_be_claimed() -> None:
    future, loop = Future[str](), asyncio.new_event_loop()
    waiting = arun(_wait(future))
    task = loop.create_task(waiting)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert not claim(future)
    waiting.close()
    assert task is not None


def _wait(future: Future[str]) -> Steps[Any]:
    return (yield Wait(future, None))


def test_lead_is_passed_on_when_its_follower_is_closed_at_the_moment_of_its_turn() -> None:
    flights, gate = SingleFlight(), threading.Event()
    leader, follower = flights.fly(b"a", new_call(), two_events), flights.fly(b"a", new_call(), answer)
    next(leader)
    next(follower)
    flight, claimed = flights._flights[b"a"], threading.Event()
    future = flight.followers.popleft()

    def hand_over() -> None:
        assert claim(future)
        claimed.set()
        gate.wait(60)
        future.set_result("lead")

    thread = threading.Thread(target=flights._guard.use, args=[hand_over])
    thread.start()
    assert claimed.wait(60)
    follower.close()
    gate.set()
    thread.join(60)
    assert flights._flights == {}
    leader.close()


# --- the alarm


def test_alarm_wakes_all_that_ask_from_its_own_thread_and_while_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from sigwire.lm.policy.limits import alarm as module

    monkeypatch.setattr(module, "_IDLE_SECONDS", 0.0005)
    alarm, woken = Alarm(), threading.Semaphore(0)

    def ask(number: int) -> None:
        def wake() -> None:
            woken.release()
            if number:
                ask(number - 1)

        alarm.wake_at(wake, time.monotonic() + 0.0005 * (number % 3))

    def work() -> None:
        for _ in range(50):
            ask(3)
            time.sleep(0.0005)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(woken.acquire(timeout=60) for _ in range(4 * 50 * 4))
