"""One clock for the policies of a model: retries, limiter, timeout and circuits count by a fake one, and no test waits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from sigwire.core.events import TextDelta
from sigwire.errors import LMRateLimitError
from sigwire.lm.client import LM
from sigwire.lm.policy.limits.alarm import Alarm
from sigwire.lm.policy.limits.limit import Limit
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.testing import FakeClock, FakeProvider, Fault
from tests.lm.calls import HELLO, stream
from tests.patience import PATIENCE, wait_until


def model(provider: FakeProvider, clock: object, **options: Any) -> LM:
    retry = RetryPolicy(clock=clock, random=lambda: 0.0)  # type: ignore[arg-type]
    return LM("openai/m", base_url=provider.url("openai"), api_key="k", retry=retry, cache=False, **options)


def models(provider: FakeProvider) -> list[Any]:
    bodies: list[Any] = [request.body for request in provider.requests]
    return [body["model"] for body in bodies]


async def ask(driver: str, lm: LM) -> str:
    if driver == "blocking":
        return lm.respond(HELLO).choices[0].text
    if driver == "awaited":
        return (await lm.arespond(HELLO)).choices[0].text
    events = await stream("blocking" if driver == "streamed" else "awaited", lm)
    return "".join(event.text for event in events if isinstance(event, TextDelta))


DRIVERS = pytest.mark.parametrize("driver", ["blocking", "awaited", "streamed", "streamed and awaited"])


@DRIVERS
async def test_limiter_waits_by_the_clock_of_the_retry_policy(driver: str) -> None:
    clock = FakeClock()
    with FakeProvider(["yes"] * 3) as provider:
        lm = model(provider, clock, limit=Limit(requests=1, per=3600))
        assert [await ask(driver, lm) for _ in range(3)] == ["yes"] * 3
    assert clock.slept == pytest.approx((3600, 3600))


def test_limiter_of_threads_waits_by_one_fake_clock() -> None:
    clock = FakeClock()
    with FakeProvider(["yes"] * 8) as provider, ThreadPoolExecutor(8) as pool:
        lm = model(provider, clock, limit=Limit(requests=1, per=3600))
        assert [*pool.map(lambda _: lm("Hi"), range(8))] == [["yes"]] * 8
    assert clock.now() == pytest.approx(7 * 3600)


@DRIVERS
async def test_pace_after_refusals_counts_by_the_clock(driver: str) -> None:
    clock = FakeClock()
    with FakeProvider([Fault("rate_limit", retry_after=40), "yes", "again"]) as provider:
        lm = model(provider, clock)
        assert [await ask(driver, lm) for _ in range(2)] == ["yes", "again"]
    assert clock.now() >= 40


@DRIVERS
async def test_waits_on_a_fake_clock_count_against_the_timeout(driver: str) -> None:
    clock = FakeClock()
    script = [Fault("rate_limit", retry_after=40)] * 3 + ["yes"]
    with FakeProvider(script) as provider, pytest.raises(LMRateLimitError, match="no time left") as raised:
        await ask(driver, model(provider, clock, timeout=60, limit=False))
    assert len(raised.value.attempts) == 2


def test_models_with_different_clocks_have_different_limiters() -> None:
    first, second = FakeClock(), FakeClock()
    with FakeProvider(["yes"] * 4) as provider:
        limit = Limit(requests=1, per=3600)
        for lm in (model(provider, first, limit=limit), model(provider, second, limit=limit)):
            lm("Hi")
    assert first.slept == second.slept == ()


def test_circuits_of_fallbacks_count_by_the_clock() -> None:
    clock = FakeClock()
    with FakeProvider([Fault("auth"), "second", "second", "first"]) as provider:
        lm = model(provider, clock, limit=False)
        lm = lm.copy(fallbacks=[model(provider, clock, limit=False).copy(model="openai/other")])
        assert lm("Hi") == lm("Hi") == ["second"]
        assert models(provider) == ["m", "other", "other"]
        clock.advance(3600)
        assert lm("Hi") == ["first"]
        assert models(provider)[-1] == "m"


@dataclass
class SetClock:
    """A clock that only a test moves."""

    time: float = 0.0
    asked: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.asked.append(seconds)


def test_alarm_looks_again_at_a_clock_that_a_test_moves() -> None:
    clock, called = SetClock(), threading.Event()
    Alarm(clock).wake_at(called.set, 5.0)
    wait_until(lambda: len(clock.asked) > 1)
    assert not called.is_set()
    clock.time = 5.0
    assert called.wait(PATIENCE)
