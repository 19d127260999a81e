"""All layers in one model: cache, flight, retry, budget and limiter, over HTTP; blocking, awaited and streamed.

Each layer has tests of its own. Here: what one layer does inside the others, and that a call that leaves any of its waits gives
back its place, its slot and its reservation.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import Budget, Limit, Price, deadline
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import arun, run
from sigwire.errors import LMError, LMServerError
from sigwire.lm.client import LM
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.testing import Answer, Delivered, FakeProvider, Fault
from tests.lm.calls import HELLO, KEY, patient
from tests.patience import wait_until

WIRES = {
    "openai": "openai/gpt-4.1",
    "anthropic": "anthropic/claude-opus-5",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/qwen3",
}
DRIVERS = pytest.mark.parametrize("driver", ["blocking", "awaited", "blocking stream", "awaited stream"])
OTHER = Request((Message.user("another request"),))
PRICE = Price(input=1.0, output=10.0)


@pytest.fixture(autouse=True)
def stored_answers(tmp_path: Path) -> None:
    configure_cache(disk_cache_dir=tmp_path)


def model(provider: FakeProvider, wire: str = "openai", **options: Any) -> LM:
    """Return a model with every layer. Its limiter is its own, by the address of the provider."""
    given = {"api_key": KEY, "retry": patient(), "price": PRICE, "cache": True, "max_tokens": 50, **options}
    return LM(WIRES[wire], base_url=provider.url(wire), **given)


async def answer(driver: str, lm: LM, request: Request = HELLO) -> Response:
    how, _, streamed = driver.partition(" ")
    steps = lm.steps(request, streamed=bool(streamed))
    # A blocking call on the thread of a running loop does not wait for others.
    return await asyncio.to_thread(run, steps) if how == "blocking" else await arun(steps)


def in_flight(lm: LM) -> int:
    """Return the exchanges and the queue of the limiter."""
    return sum(state.in_flight + state.queued for state in sigwire.limits() if state.model == lm.model)


def assert_all_is_given_back(lm: LM, budget: Budget, provider: FakeProvider) -> None:
    wait_until(lambda: in_flight(lm) == 0)
    assert (budget.reserved.calls, budget.reserved.tokens, budget.reserved.money) == (0, 0, 0.0)
    wait_until(lambda: all(counts.now == 0 for counts in provider.traffic.values()))


# --- one layer inside the others -----------------------------------------------------------------------


@DRIVERS
@pytest.mark.parametrize("wire", WIRES)
async def test_retried_answer_is_paid_once_and_is_a_hit_the_second_time(wire: str, driver: str) -> None:
    with (
        FakeProvider([Fault("server"), Fault("rate_limit", retry_after=0.01), "Hello"]) as provider,
        Budget(calls=5) as budget,
    ):
        lm = model(provider, wire)
        first, second = await answer(driver, lm), await answer(driver, lm)
        assert [attempt.error for attempt in first.attempts] == ["server", "rate_limit", None]
        assert (first.cache, second.cache, second.attempts) == ("miss", "hit", ())
        assert first.choices == second.choices
        assert second.usage.total_tokens == 0
        assert second.cached_usage == first.usage
        # Refused exchanges are calls, and cost nothing else.
        assert (budget.spent.calls, budget.spent.tokens) == (3, first.usage.total_tokens)
        assert_all_is_given_back(lm, budget, provider)


async def test_equal_calls_of_tasks_threads_and_streams_fail_together_and_pay_once() -> None:
    script: list[Answer] = [Fault("server"), Delivered("Hello", after=0.1)]
    with FakeProvider(script) as provider, Budget(calls=5) as budget, ThreadPoolExecutor(16) as pool:
        lm = model(provider)
        blocked = [
            pool.submit(contextvars.copy_context().run, run, lm.steps(HELLO, streamed=number % 2 == 0))
            for number in range(16)
        ]
        tasks = [answer("awaited" if number % 2 else "awaited stream", lm) for number in range(16)]
        responses = await asyncio.gather(*map(asyncio.wrap_future, blocked), *tasks)
        assert {response.choices[0].text for response in responses} == {"Hello"}
        assert (len(provider.requests), budget.spent.calls) == (2, 2)
        assert sum(response.cache == "hit" for response in responses) == 31
        assert_all_is_given_back(lm, budget, provider)


@DRIVERS
async def test_spent_budget_sends_nothing_and_a_hit_costs_nothing(driver: str) -> None:
    with FakeProvider(["Hello", "never asked"]) as provider, Budget(calls=1) as budget:
        lm = model(provider)
        await answer(driver, lm)
        with pytest.raises(sigwire.BudgetSpent):
            await answer(driver, lm, OTHER)
        assert (await answer(driver, lm)).cache == "hit"
        assert len(provider.requests) == 1
        assert_all_is_given_back(lm, budget, provider)


@DRIVERS
async def test_failed_call_is_paid_by_what_failed_and_is_not_stored(driver: str) -> None:
    with FakeProvider([Fault("server")] * 4 + ["Hello"]) as provider, Budget(calls=5) as budget:
        lm = model(provider)
        with pytest.raises(LMServerError) as caught:
            await answer(driver, lm)
        assert [attempt.error for attempt in caught.value.attempts] == ["server"] * 4
        assert_all_is_given_back(lm, budget, provider)
        assert (await answer(driver, lm)).cache == "miss"


# --- cancelling each wait -----------------------------------------------------------------------------


@dataclass
class Place:
    """A wait of a call: ``script`` and ``options`` lead a call there; ``held``: the request of a call that is there before."""

    script: Callable[[Request], Answer]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    calls: int = 5
    held: Request | None = None


def silent(request: Request) -> Answer:
    return Delivered("late", after=math.inf)


def failing(request: Request) -> Answer:
    return Fault("server")


def slow(request: Request) -> Answer:
    return Delivered("slow", every=0.01)


WAITS = {
    "for an equal call": Place(silent, held=HELLO),
    "for the budget": Place(silent, calls=1, held=OTHER),
    "for the limiter": Place(silent, {"limit": Limit(concurrency=1)}, held=OTHER),
    "for a retry": Place(failing, {"retry": RetryPolicy(first_wait=60, longest_backoff=60, jitter=0)}),
    "for the reply": Place(silent),
    "for the rest of the reply": Place(slow),
}


@pytest.fixture(params=WAITS)
def place(request: pytest.FixtureRequest) -> Place:
    return WAITS[request.param]


class Holder:
    """The provider of a test, and a call that holds what the next call waits for until ``release``."""

    def __init__(self, place: Place) -> None:
        self._place, self._released = place, threading.Event()
        self.provider = FakeProvider(self._answer)
        self.lm, self.budget = None, Budget(calls=place.calls)
        self._pool = ThreadPoolExecutor(1)
        self._held: Future[Response] | None = None

    def _answer(self, request: Request) -> Answer:
        if self._place.held is not None and not self._released.is_set():
            self._released.wait(60)
            return "held"
        return "released" if self._released.is_set() else self._place.script(request)

    def start(self) -> LM:
        lm = model(self.provider.start(), **self._place.options)
        if self._place.held is not None:
            held = contextvars.copy_context()
            self._held = self._pool.submit(held.run, lm.respond, self._place.held)
            wait_until(lambda: any(counts.now for counts in self.provider.traffic.values()))
        return lm

    def release(self) -> str | None:
        """Let the first call end; return its answer."""
        self._released.set()
        return self._held.result(60).choices[0].text if self._held else None

    def close(self) -> None:
        self._released.set()
        self._pool.shutdown()
        self.provider.close()


@pytest.fixture
def holder(place: Place) -> Iterator[Holder]:
    holder = Holder(place)
    try:
        yield holder
    finally:
        holder.close()


@pytest.mark.parametrize("driver", ["awaited", "awaited stream"])
async def test_cancelled_call_gives_everything_back(driver: str, place: Place, holder: Holder) -> None:
    with holder.budget:
        lm = holder.start()
        waiting = asyncio.create_task(answer(driver, lm))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await assert_the_next_call_passes(driver, lm, place, holder)


@DRIVERS
async def test_call_past_its_deadline_gives_everything_back(driver: str, place: Place, holder: Holder) -> None:
    with holder.budget:
        lm = holder.start()
        with pytest.raises(LMError), deadline(0.15):
            await answer(driver, lm)
        await assert_the_next_call_passes(driver, lm, place, holder)


async def assert_the_next_call_passes(driver: str, lm: LM, place: Place, holder: Holder) -> None:
    """After the first call ended nothing is in use; a budget of one call is spent by the first."""
    held = await asyncio.to_thread(holder.release)
    assert held == ("held" if place.held is not None else None)
    await asyncio.to_thread(assert_all_is_given_back, lm, holder.budget, holder.provider)
    lm = lm.copy(retry=patient())
    if place.calls == 1:
        with pytest.raises(sigwire.BudgetSpent):
            await answer(driver, lm)
        return
    following = (await answer(driver, lm)).choices[0].text
    assert following == ("held" if place.held is HELLO else "released")
    await asyncio.to_thread(assert_all_is_given_back, lm, holder.budget, holder.provider)
