"""Equal calls at once: one exchange, whatever becomes of its caller."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from sigwire.core.events import TextDelta
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.loops import block_on
from sigwire.effects.steps import Steps
from sigwire.errors import LMError, LMServerError, LMTimeoutError
from sigwire.lm.client import LM
from sigwire.lm.policy.cache import single_flight
from sigwire.lm.policy.cache.cache import cache
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.policy.retry import RetryPolicy, Sleep
from sigwire.testing import FakeProvider, Fault
from tests.lm.calls import HELLO
from tests.patience import wait_until


class Gate:
    """The provider's answers wait here. ``asked`` counts the exchanges that arrived."""

    def __init__(self, *answers: Any) -> None:
        self._open, self._lock, self.asked = threading.Event(), threading.Lock(), 0
        self._answers = list(answers)

    def open(self) -> None:
        self._open.set()

    def __call__(self, request: Request) -> Any:
        with self._lock:
            self.asked += 1
            answer = self._answers.pop(0) if self._answers else f"answer {self.asked}"
        self._open.wait(60)
        return answer

    def wait_for(self, exchanges: int) -> None:
        wait_until(lambda: self.asked >= exchanges)


def followers(number: int) -> None:
    """Wait until as many calls wait for others."""
    wait_until(lambda: sum(len(flight.followers) for flight in cache.flights._flights.values()) >= number)


@contextmanager
def gated(*answers: Any, **options: Any) -> Iterator[tuple[LM, Gate]]:
    gate = Gate(*answers)
    with FakeProvider(gate) as provider:
        try:
            yield LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", **options), gate
        finally:
            gate.open()


pytestmark = pytest.mark.usefixtures("folder")


def text(response: Response) -> str:
    return response.choices[0].text


# --- the leader answers ------------------------------------------------------------------------------


def test_100_equal_calls_of_threads_make_one_exchange() -> None:
    with gated() as (lm, gate), ThreadPoolExecutor(100) as pool:
        calls = [pool.submit(lm.respond, HELLO) for _ in range(100)]
        followers(99)
        gate.open()
        found = [call.result(60) for call in calls]
    assert gate.asked == 1
    assert {text(response) for response in found} == {"answer 1"}
    (leader,) = [response for response in found if response.cache == "miss"]
    assert [attempt.purpose for attempt in leader.attempts] == ["ask"]
    joined = [response for response in found if response is not leader]
    assert {attempt.purpose for response in joined for attempt in response.attempts} == {"joined"}
    assert {(response.cache, response.usage.input_tokens, len(response.attempts)) for response in joined} == {
        ("hit", 0, 1)
    }
    assert {response.cached_usage for response in joined} == {leader.usage}
    assert (cache.stats().joined, cache.flights._flights) == (99, {})


async def test_100_equal_calls_of_tasks_threads_and_streams_make_one_exchange() -> None:
    async def streamed() -> str:
        events = [event async for event in lm.astream(HELLO)]
        return "".join(event.text for event in events if isinstance(event, TextDelta))

    async def awaited() -> str:
        return text(await lm.arespond(HELLO))

    async def threaded() -> str:
        return text(await asyncio.get_running_loop().run_in_executor(pool, lm.respond, HELLO))

    with gated() as (lm, gate), ThreadPoolExecutor(33) as pool:
        leader = asyncio.create_task(awaited())
        await asyncio.to_thread(gate.wait_for, 1)
        calls = [asyncio.create_task(kind()) for kind in (streamed, awaited, threaded) for _ in range(33)]
        await asyncio.to_thread(followers, 99)
        gate.open()
        assert {await leader, *await asyncio.gather(*calls)} == {"answer 1"}
        assert gate.asked == 1


async def test_streams_wait_for_a_stream() -> None:
    async def streamed() -> str:
        events = [event async for event in lm.astream(HELLO)]
        return "".join(event.text for event in events if isinstance(event, TextDelta))

    with gated() as (lm, gate):
        calls = [asyncio.create_task(streamed()) for _ in range(20)]
        await asyncio.to_thread(followers, 19)
        gate.open()
        assert {*await asyncio.gather(*calls)} == {"answer 1"}
        assert gate.asked == 1


def test_other_requests_and_fresh_ones_do_not_wait() -> None:
    with gated() as (lm, gate), ThreadPoolExecutor(4) as pool:
        calls = [
            pool.submit(lm, "hello", **options)
            for options in ({}, {"fresh": True}, {"rollout_id": 1}, {"cache": False})
        ]
        gate.wait_for(4)
        gate.open()
        assert len({call.result(60)[0] for call in calls}) == 4


# --- the leader fails --------------------------------------------------------------------------------


def test_error_of_the_leader_is_that_of_all() -> None:
    with gated(Fault(), Fault(), retry=RetryPolicy(1, first_wait=0.001)) as (lm, gate), ThreadPoolExecutor(10) as pool:
        calls = [pool.submit(lm.respond, HELLO) for _ in range(10)]
        followers(9)
        gate.open()
        errors = [call.exception(60) for call in calls]
        assert gate.asked == 2
    assert {type(error) for error in errors} == {LMServerError}
    assert len({id(error) for error in errors}) == 10
    assert len({str(error) for error in errors}) == 1
    purposes = sorted(
        tuple(attempt.purpose for attempt in error.attempts) for error in errors if isinstance(error, LMError)
    )
    assert purposes == [("ask", "retry")] + [("joined",)] * 9


async def test_oldest_follower_leads_after_a_cancelled_leader() -> None:
    with gated() as (lm, gate):
        leader = asyncio.create_task(lm.arespond(HELLO))
        await asyncio.to_thread(gate.wait_for, 1)
        calls = [asyncio.create_task(lm.arespond(HELLO)) for _ in range(99)]
        await asyncio.to_thread(followers, 99)
        leader.cancel()
        await asyncio.to_thread(gate.wait_for, 2)
        gate.open()
        found = await asyncio.gather(*calls)
        assert gate.asked == 2
        with pytest.raises(asyncio.CancelledError):
            await leader
    assert {text(response) for response in found} == {"answer 2"}
    assert [response.cache for response in found] == ["miss", *["hit"] * 98]
    assert cache.flights._flights == {}


async def test_cancelled_followers_are_skipped() -> None:
    with gated() as (lm, gate):
        calls = [asyncio.create_task(lm.arespond(HELLO)) for _ in range(4)]
        await asyncio.to_thread(gate.wait_for, 1)
        await asyncio.to_thread(followers, 3)
        for call in calls[:3]:
            call.cancel()
        await asyncio.to_thread(gate.wait_for, 2)
        gate.open()
        assert text(await calls[3]) == "answer 2"
        assert cache.flights._flights == {}


async def test_leader_and_all_followers_cancelled_leave_nothing() -> None:
    with gated() as (lm, gate):
        calls = [asyncio.create_task(lm.arespond(HELLO)) for _ in range(4)]
        await asyncio.to_thread(gate.wait_for, 1)
        await asyncio.to_thread(followers, 3)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert cache.flights._flights == {}
        gate.open()
        assert text(await lm.arespond(HELLO)) == "answer 2"


def test_follower_leads_after_a_leader_whose_deadline_passed() -> None:
    with gated() as (lm, gate), ThreadPoolExecutor(2) as pool:
        hasty = pool.submit(lm.copy(timeout=0.2).respond, HELLO)
        gate.wait_for(1)
        patient = pool.submit(lm.respond, HELLO)
        followers(1)
        assert isinstance(hasty.exception(60), LMTimeoutError)
        gate.wait_for(2)
        gate.open()
        assert text(patient.result(60)) == "answer 2"


def test_follower_has_a_deadline_of_its_own() -> None:
    with gated() as (lm, gate), ThreadPoolExecutor(2) as pool:
        leader = pool.submit(lm.respond, HELLO)
        gate.wait_for(1)
        with pytest.raises(LMTimeoutError):
            lm.copy(timeout=0.1).respond(HELLO)
        assert not leader.done()
        gate.open()
        assert text(leader.result(60)) == "answer 1"


async def test_follower_leads_after_a_stream_that_was_left() -> None:
    with gated() as (lm, gate):
        gate.open()
        events = lm.astream(HELLO)
        await anext(events)
        follower = asyncio.create_task(lm.arespond(HELLO))
        await asyncio.to_thread(followers, 1)
        await events.aclose()
        assert text(await follower) == "answer 2"


# --- nothing waits for itself ------------------------------------------------------------------------


async def test_blocking_call_on_the_loop_of_the_leader_asks_alone() -> None:
    with gated() as (lm, gate):
        leader = asyncio.create_task(lm.arespond(HELLO))
        await asyncio.to_thread(gate.wait_for, 1)
        threading.Timer(0.05, gate.open).start()
        assert text(lm.respond(HELLO)) == "answer 2"  # this loop is blocked meanwhile
        assert text(await leader) == "answer 1"


async def test_call_that_a_blocked_loop_waits_for_asks_alone() -> None:
    with gated() as (lm, gate):
        leader = asyncio.create_task(lm.arespond(HELLO))
        await asyncio.to_thread(gate.wait_for, 1)
        threading.Timer(0.05, gate.open).start()
        assert text(block_on(lm.arespond(HELLO))) == "answer 2"
        assert text(await leader) == "answer 1"


def test_reader_of_a_stream_asks_alone() -> None:
    with gated() as (lm, gate):
        gate.open()
        events = lm.stream(HELLO)
        next(events)
        assert text(lm.respond(HELLO)) == "answer 2"
        assert [event for event in events if isinstance(event, TextDelta)]


async def test_reader_of_an_awaited_stream_asks_alone() -> None:
    with gated() as (lm, gate):
        gate.open()
        events = lm.astream(HELLO)
        await anext(events)
        assert text(await lm.arespond(HELLO)) == "answer 2"
        await events.aclose()


def test_follower_of_a_stream_that_is_not_read_asks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_flight, "_PATIENCE", 0.05)
    with gated() as (lm, gate), ThreadPoolExecutor(1) as pool:
        gate.open()
        events = lm.stream(HELLO)
        while not isinstance(next(events), TextDelta):
            pass
        assert text(pool.submit(lm.respond, HELLO).result(60)) == "answer 2"
        events.close()
        assert cache.flights._flights == {}


async def test_follower_of_a_slow_stream_waits_for_its_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_flight, "_PATIENCE", 0.02)
    with gated() as (lm, gate):

        async def streamed() -> list[Any]:
            return [event async for event in lm.astream(HELLO)]

        leader = asyncio.create_task(streamed())
        await asyncio.to_thread(gate.wait_for, 1)
        follower = asyncio.create_task(lm.arespond(HELLO))
        await asyncio.sleep(0.1)  # some times as long as the patience
        assert not follower.done()
        gate.open()
        await leader
        assert (text(await follower), gate.asked) == ("answer 1", 1)


# --- a follower that is closed as it gets the lead ---------------------------------------------------


def test_lead_of_a_closed_follower_passes_to_the_next() -> None:
    def call() -> Call:
        return Call(HELLO, TargetKey("acme", None, None, "acme/m"))

    def hang() -> Steps[Response]:
        yield Sleep(0.0)
        raise AssertionError

    def ask() -> Steps[Response]:
        return Response(id="asked")
        yield

    flights = single_flight.SingleFlight()
    leader, second, third = (
        flights.fly(b"k", call(), hang),
        flights.fly(b"k", call(), ask),
        flights.fly(b"k", call(), ask),
    )
    leader.send(None)
    second.send(None)
    waiting = third.send(None)
    leader.close()  # offers the lead to the second
    second.close()
    with pytest.raises(StopIteration) as stopped:
        third.send(waiting.run())
    assert stopped.value.value.id == "asked"
    assert flights._flights == {}
