"""The other policies through a router: cache, budgets, limiter, journal, deadlines, threads."""

from __future__ import annotations

import asyncio
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import BudgetSpent, LMInvalidRequestError, LMServerError, LMTimeoutError
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.deadlines import Timeout, deadline
from sigwire.lm.policy.limits.registry import limits
from sigwire.lm.policy.money.prices import Price
from sigwire.lm.router import Router
from sigwire.testing import Delivered, FakeProvider
from tests.lm.calls import HELLO, forget_keys, patient
from tests.lm.router.test_router import BUSY, DRIVERS, answer, log, model


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


# --- cache -------------------------------------------------------------------------------------------------


@DRIVERS
async def test_cached_answer_of_any_target_is_a_hit_before_a_target_is_asked(driver: str) -> None:
    sigwire.configure_cache(enable_disk_cache=False)
    with FakeProvider([BUSY, BUSY, "A"]) as first, FakeProvider(["B"]) as second:
        one, two = model("openai", first.url("openai")), model("anthropic", second.url("anthropic"))
        router = Router([one, two])
        assert (await answer(driver, router)).choices[0].text == "B"
        hit = await answer(driver, router)
        assert (hit.choices[0].text, hit.cache, hit.attempts) == ("B", "hit", ())
        assert (len(first.requests), len(second.requests)) == (2, 1)
        fresh = await answer(driver, router, Request(HELLO.messages, options={"fresh": True}))
        assert (fresh.choices[0].text, fresh.cache) == ("A", "miss")
        router.close()


# --- money, limits -----------------------------------------------------------------------------------------


@DRIVERS
async def test_budget_counts_the_exchanges_of_every_target(driver: str) -> None:
    prices = {"price": Price(input=1.0, output=1.0), "max_tokens": 100}
    with FakeProvider([BUSY, BUSY]) as first, FakeProvider(["B"] * 9) as second, sigwire.Budget(calls=4) as budget:
        router = Router(
            [model("openai", first.url("openai"), **prices), model("gemini", second.url("gemini"), **prices)]
        )
        response = await answer(driver, router)
        assert budget.spent.calls == 3  # with the refused ones
        assert response.cost == sum(attempt.cost or 0.0 for attempt in response.attempts) > 0.0
        router.close()


@DRIVERS
async def test_spent_budget_is_raised_and_no_other_target_asked(driver: str) -> None:
    second = FakeLM(["B"], model="b")
    with FakeProvider(["A"]) as first, sigwire.Budget(calls=1):
        router = Router([model("openai", first.url("openai")), second])
        await answer(driver, router)
        with pytest.raises(BudgetSpent):
            await answer(driver, router)
        router.close()
    assert second.requests == []
    assert router.health()[0].penalty == 0.0


@DRIVERS
async def test_each_target_has_its_own_limiter(driver: str) -> None:
    with FakeProvider([BUSY, BUSY]) as first, FakeProvider(["B"]) as second:
        targets = [model("openai", first.url("openai"), limit=None), model("ollama", second.url("ollama"), limit=None)]
        router = Router(targets)
        await answer(driver, router)
        router.close()
    assert {(state.provider, state.in_flight) for state in limits()} == {("openai", 0), ("ollama", 0)}


# --- journal -----------------------------------------------------------------------------------------------


def test_journal_records_the_answer_of_a_router_and_a_second_run_asks_no_model(tmp_path: Path) -> None:
    answers: list[Any] = ["[[ ## answer ## ]]\nB"]
    router = Router([FakeLM([LMServerError()], model="a"), FakeLM(answers, model="b")])
    journal = sigwire.Journal(tmp_path / "runs.sqlite3")
    program = sigwire.Predict("question -> answer")
    with sigwire.context(lm=router):
        first = journal.run(program, "one", question="Who?")
        again = journal.run(program, "one", question="Who?")
    assert first.answer == again.answer == "B"
    (asked,) = [effect for effect in journal.effects("one") if effect.kind == "ask"]
    assert asked.state == "done"


# --- time --------------------------------------------------------------------------------------------------


@DRIVERS
async def test_silent_target_is_left_after_its_exchange_and_the_total_bounds_all_targets(driver: str) -> None:
    silent = Delivered("A", after=math.inf)
    with FakeProvider([silent] * 4) as first, FakeProvider(["B", silent]) as second:
        one = model("openai", first.url("openai"), retry=patient(retries=0))
        other = model("openai", second.url("openai"), retry=patient(retries=0), timeout=60)
        lm = one.copy(timeout=Timeout(exchange=0.1, total=60.0), fallbacks=[other])
        response = await answer(driver, lm)
        assert log(response.attempts) == [("ask", "timeout"), ("fallback", None)]
        short = one.copy(timeout=0.1, fallbacks=[other])
        with pytest.raises(LMTimeoutError) as caught:
            await answer(driver, short)
        assert [attempt.why for attempt in caught.value.attempts] == ["no time left"]
        lm.close()


@DRIVERS
async def test_deadline_that_has_passed_asks_no_target_and_blames_none(driver: str) -> None:
    with FakeProvider(["A"]) as first, FakeProvider(["B"]) as second, deadline(0):
        router = Router([model("openai", first.url("openai")), model("openai", second.url("openai"))])
        with pytest.raises(LMTimeoutError):
            await answer(driver, router)
        assert first.requests == second.requests == ()
    assert [row.penalty for row in router.health()] == [0.0, 0.0]


# --- cancelling, threads -----------------------------------------------------------------------------------


class Hanging:
    """A model that answers when the test lets it."""

    model, capabilities = "hanging", Capabilities()

    def __init__(self) -> None:
        self.fails = True

    def respond(self, request: Request) -> Response:
        if self.fails:
            raise LMServerError
        return Response((Choice("A"),))

    async def arespond(self, request: Request) -> Response:
        if self.fails:
            raise LMServerError
        await asyncio.sleep(60)
        return Response()


async def test_cancelled_probe_lets_the_next_call_probe() -> None:
    now = [0.0]
    hanging = Hanging()
    router = Router(
        [hanging, FakeLM(lambda request: "B", model="b")], clock=lambda: now[0], health=sigwire.Health(limit=1.0)
    )
    await router.arespond(HELLO)
    now[0], hanging.fails = 6.0, False
    probe = asyncio.create_task(router.arespond(HELLO))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    passing = await router.arespond(HELLO)
    assert log(passing.attempts) == [("skip", "probed by another call"), ("fallback", None)]
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert router.health()[0].state == "half open"
    assert router.respond(HELLO).choices[0].text == "A"
    assert router.health()[0].state == "closed"


def test_probe_that_has_no_time_left_lets_the_next_call_probe() -> None:
    now = [0.0]

    def fail_late(request: Request) -> Response:
        time.sleep(0.01)
        raise LMServerError

    first, second = FakeLM(fail_late, model="a"), FakeLM([LMServerError(), "B"], model="b")
    router = Router([first, second], clock=lambda: now[0], health=sigwire.Health(limit=1.0))
    with pytest.raises(LMServerError):
        router.respond(HELLO)
    now[0] = 6.0
    with deadline(0.005), pytest.raises(LMServerError) as raised:
        router.respond(HELLO)
    assert raised.value.attempts[-1].why == "no time left"
    response = router.respond(HELLO)
    assert (response.choices[0].text, [why for why, _ in log(response.attempts)]) == ("B", ["skip", "fallback"])


def test_probe_whose_request_is_refused_lets_the_next_call_probe() -> None:
    now = [0.0]
    first = FakeLM([LMServerError(), LMInvalidRequestError("no such option"), "A"], model="a")
    router = Router([first, FakeLM(["B"], model="b")], clock=lambda: now[0], health=sigwire.Health(limit=1.0))
    router.respond(HELLO)
    now[0] = 6.0
    with pytest.raises(LMInvalidRequestError):
        router.respond(HELLO)
    assert router.respond(HELLO).choices[0].text == "A"


def test_closed_stream_lets_the_next_call_probe() -> None:
    now = [0.0]
    first = FakeLM([LMServerError(), "A long answer in words", "A"], model="a")
    router = Router([first, FakeLM(["B"], model="b")], clock=lambda: now[0], health=sigwire.Health(limit=1.0))
    router.respond(HELLO)
    now[0] = 6.0
    events = router.stream(HELLO)
    next(events)
    assert router.health()[0].state == "half open"
    events.close()
    assert router.respond(HELLO).choices[0].text == "A"


def test_threads_ask_a_failing_target_only_a_few_times() -> None:
    count = 0

    def fail(request: Request) -> Any:
        nonlocal count
        count += 1
        return LMServerError()

    router = Router(
        [FakeLM(fail, model="a"), FakeLM(lambda request: "B", model="b", usage=Usage(1, 1))], clock=lambda: 0.0
    )
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda _: router.respond(HELLO), range(200)))
    assert {response.choices[0].text for response in responses} == {"B"}
    assert 3 <= count <= 3 + 7  # those that were on their way when the circuit opened
    row = router.health()[0]
    assert (row.failures, row.state) == (count, "open")
