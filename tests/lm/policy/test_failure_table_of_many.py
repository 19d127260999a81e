"""The rows of the failure table that concern several calls: limiter, equal calls, cache and budgets, in every driver.

``TESTS`` names the test of each row; ``test_failure_table.py`` has the rows 1 to 15 and 32.
"""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import threading
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sigwire import Budget, BudgetSpent, Price
from sigwire.core.response import Response
from sigwire.effects.steps import arun, run
from sigwire.errors import LMTimeoutError
from sigwire.lm.client import LM
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.lm.policy.deadlines import deadline
from sigwire.lm.policy.limits.limit import Limit
from sigwire.settings import bind
from sigwire.testing import FakeProvider
from sigwire.testing.rate_limit import RateLimit
from tests.lm.calls import HELLO
from tests.lm.policy.cache.test_single_flight import Gate, followers

_ONE, _MANY, _ROUTER = "lm.policy.test_failure_table", "lm.policy.test_failure_table_of_many", "lm.router.test_router"
TESTS = {
    **dict.fromkeys(range(1, 7), f"{_ONE}:test_failure_leads_to_its_row"),
    7: f"{_ONE}:test_row_7_kept_connection_that_the_server_closed_is_redialled_at_once",
    8: f"{_ONE}:test_row_8_new_connection_that_is_reset_is_retried_after_a_wait",
    9: f"{_ONE}:test_row_9_stream_that_breaks_before_its_first_content_is_retried",
    10: f"{_ONE}:test_row_10_stream_that_breaks_after_content_is_final_and_has_its_partial",
    11: f"{_ONE}:test_row_11_overload_as_first_event_of_a_success_is_retried",
    12: f"{_ONE}:test_row_12_silent_server_is_a_timeout_of_the_call",
    13: f"{_ONE}:test_row_13_body_that_never_ends_ends_at_the_total_and_silence_in_it_at_idle",
    14: f"{_ONE}:test_row_14_wait_past_the_deadline_is_not_started",
    15: f"{_ONE}:test_row_15_dead_provider_gets_few_retries",
    16: f"{_MANY}:test_row_16_calls_over_the_limit_of_the_provider_are_each_answered_once",
    17: f"{_MANY}:test_row_17_call_that_ends_in_the_queue_sends_nothing_and_holds_nothing",
    18: f"{_MANY}:test_row_18_equal_calls_at_once_make_one_exchange",
    19: f"{_MANY}:test_row_19_next_call_asks_after_a_cancelled_leader",
    20: f"{_MANY}:test_row_20_same_call_in_a_new_process_is_a_hit_that_costs_nothing",
    21: f"{_MANY}:test_row_21_corrupted_row_of_the_cache_is_asked_for_again",
    22: f"{_ROUTER}:test_row_22_next_target_answers_while_the_first_fails_and_the_first_when_it_is_well",
    23: f"{_ROUTER}:test_row_23_target_that_takes_no_image_is_skipped_without_a_penalty",
    24: f"{_ROUTER}:test_row_24_open_circuit_is_skipped_until_it_is_due",
    25: f"{_ROUTER}:test_row_25_stream_that_breaks_after_an_event_goes_to_no_other_target",
    26: f"{_MANY}:test_row_26_budget_of_calls_is_exact",
    27: f"{_MANY}:test_row_27_call_that_cannot_fit_is_refused_before_it_is_sent",
    28: "journal.test_interrupted_tools:test_interrupted_tool_asks_for_a_decision_by_default",
    29: "journal.test_journal:test_edited_instructions_raise_divergence_that_names_turn_and_message",
    30: "cassettes.test_cassette:test_changed_prompt_raises_a_miss_with_the_difference_and_sends_nothing",
    31: f"{_ROUTER}:test_row_31_request_that_is_too_long_for_one_target_goes_to_the_next_without_a_penalty",
    32: f"{_ONE}:test_row_32_key_of_a_function_is_renewed_once",
}
"""The test of each row. The share of row 16 is measured by ``limits/test_rates.py``."""
OF_STREAMS = {9, 10, 11, 25}  # a whole answer has no events
OF_ALL_AT_ONCE = {18, 19}  # the calls of one test use every driver
EVERY_DRIVER = ("blocking", "awaited", "blocking stream", "awaited stream")
DRIVERS = pytest.mark.parametrize("driver", EVERY_DRIVER)
PRICE = Price(input=1.0, output=10.0)


def test_every_row_has_a_test_that_runs_in_every_path() -> None:
    assert [*TESTS] == [*range(1, 33)]
    for row in TESTS.keys() - OF_ALL_AT_ONCE:
        module, _, name = TESTS[row].partition(":")
        found = drivers(getattr(importlib.import_module(f"tests.{module}"), name))
        assert len(found) == (2 if row in OF_STREAMS else 4), (row, found)


def drivers(test: Any) -> set[str]:
    """Return the drivers of a test, or the modes of a test of programs, among its parameters."""
    known = {*EVERY_DRIVER, "sync", "async", "run", "arun", "stream", "astream"}
    cases = [case for mark in test.pytestmark if mark.name == "parametrize" for case in mark.args[1]]
    values = [value for case in cases for value in (getattr(case, "values", None) or (case,))]
    flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    return known.intersection(each for each in flat if isinstance(each, str))


async def answer(driver: str, lm: LM) -> Response:
    """Answer in this thread or task."""
    how, _, streamed = driver.partition(" ")
    steps = partial(lm.steps, HELLO, streamed=bool(streamed))
    return run(steps()) if how == "blocking" else await arun(steps())


async def outcomes(drivers: Sequence[str], lm: LM) -> list[Response | BaseException]:
    """Return the outcomes of many calls at once: each in a thread or a task of its own."""

    def blocked(driver: str) -> Response:
        return run(lm.steps(HELLO, streamed="stream" in driver))

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(len(drivers)) as pool:
        calls = [
            loop.run_in_executor(pool, bind(blocked), driver)
            if driver.startswith("blocking")
            else asyncio.ensure_future(answer(driver, lm))
            for driver in drivers
        ]
        return await asyncio.gather(*calls, return_exceptions=True)


def model(provider: FakeProvider, **options: Any) -> LM:
    return LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", price=PRICE, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    configure_cache(disk_cache_dir=tmp_path)
    return tmp_path


@contextmanager
def gated() -> Generator[tuple[FakeProvider, Gate]]:
    gate = Gate()
    with FakeProvider(gate) as provider:
        try:
            yield provider, gate
        finally:
            gate.open()


# --- the limiter


@DRIVERS
async def test_row_16_calls_over_the_limit_of_the_provider_are_each_answered_once(driver: str) -> None:
    limit = RateLimit(requests=40, per=0.2, burst=4)
    with FakeProvider(lambda request: "Hi", limit=limit) as provider:
        lm = model(provider)
        found = await outcomes([driver] * 12, lm)
        lm.close()
    responses = [each for each in found if isinstance(each, Response)]
    assert [each.choices[0].text for each in responses] == ["Hi"] * 12
    errors = [[attempt.error for attempt in each.attempts] for each in responses]
    assert all(each[-1] is None and set(each[:-1]) <= {"rate_limit"} for each in errors)


@DRIVERS
async def test_row_17_call_that_ends_in_the_queue_sends_nothing_and_holds_nothing(driver: str) -> None:
    with gated() as (provider, gate), Budget(calls=9) as budget:
        lm = model(provider, limit=Limit(concurrency=1))
        first = threading.Thread(target=bind(partial(lm.respond, HELLO)))
        first.start()
        await asyncio.to_thread(gate.wait_for, 1)
        if driver.startswith("blocking"):  # a blocked thread ends by its deadline
            with deadline(0.05), pytest.raises(LMTimeoutError):
                await answer(driver, lm)
        else:
            task = asyncio.ensure_future(answer(driver, lm))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (gate.asked, budget.reserved.calls) == (1, 1)  # those of the first call
        gate.open()
        await asyncio.to_thread(first.join)
        assert (await answer(driver, lm)).choices[0].text == "answer 2"
        lm.close()
    assert (budget.spent.calls, budget.reserved.calls) == (2, 0)


# --- equal calls at once, the cache


@pytest.mark.usefixtures("folder")
async def test_row_18_equal_calls_at_once_make_one_exchange() -> None:
    with gated() as (provider, gate):
        lm = model(provider)
        leader = asyncio.create_task(answer("awaited", lm))
        await asyncio.to_thread(gate.wait_for, 1)
        opened = asyncio.create_task(_open_behind(gate, 99))
        found = [*(await outcomes([*EVERY_DRIVER] * 24 + ["awaited"] * 3, lm)), await leader]
        await opened
        lm.close()
    responses = [each for each in found if isinstance(each, Response)]
    assert Counter(each.choices[0].text for each in responses) == {"answer 1": 100}
    assert Counter(each.cache for each in responses) == {"hit": 99, "miss": 1}
    assert Counter(tuple(attempt.purpose for attempt in each.attempts) for each in responses) == {
        ("joined",): 99,
        ("ask",): 1,
    }


async def _open_behind(gate: Gate, number: int) -> None:
    await asyncio.to_thread(followers, number)
    gate.open()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("driver", ["awaited", "awaited stream"])
async def test_row_19_next_call_asks_after_a_cancelled_leader(driver: str) -> None:
    with gated() as (provider, gate):
        lm = model(provider)
        leader = asyncio.create_task(answer(driver, lm))
        await asyncio.to_thread(gate.wait_for, 1)
        cancelled = asyncio.create_task(_cancel_behind(leader, gate, 99))
        found = await outcomes([*EVERY_DRIVER] * 24 + ["awaited"] * 3, lm)
        await cancelled
        assert leader.cancelled()
        lm.close()
    responses = [each for each in found if isinstance(each, Response)]
    assert Counter(each.choices[0].text for each in responses) == {"answer 2": 99}
    assert gate.asked == 2


async def _cancel_behind(leader: asyncio.Task[Response], gate: Gate, number: int) -> None:
    await asyncio.to_thread(followers, number)
    leader.cancel()
    await asyncio.to_thread(gate.wait_for, 2)
    gate.open()


@DRIVERS
async def test_row_20_same_call_in_a_new_process_is_a_hit_that_costs_nothing(driver: str, folder: Path) -> None:
    with FakeProvider(lambda request: "Hi") as provider:
        first = await answer(driver, model(provider))
        configure_cache(disk_cache_dir=folder)  # as a new process begins
        hit = await answer(driver, model(provider))
        assert len(provider.requests) == 1
    assert (hit.cache, hit.attempts, hit.cost, hit.cached_usage) == ("hit", (), 0.0, first.usage)
    assert (hit.usage.total_tokens, hit.choices[0].text) == (0, "Hi")


@DRIVERS
async def test_row_21_corrupted_row_of_the_cache_is_asked_for_again(driver: str, folder: Path) -> None:
    with FakeProvider(["old", "new"]) as provider:
        await answer(driver, model(provider))
        connection = sqlite3.connect(folder / "cache-1.sqlite3")
        connection.execute("UPDATE answers SET value = zeroblob(60)")
        connection.commit()
        connection.close()
        configure_cache(disk_cache_dir=folder)
        again = await answer(driver, model(provider))
        configure_cache(disk_cache_dir=folder)
        replaced = await answer(driver, model(provider))
    assert (again.cache, [attempt.purpose for attempt in again.attempts]) == ("miss", ["ask"])
    assert (replaced.cache, replaced.choices[0].text) == ("hit", "new")


# --- budgets


@DRIVERS
async def test_row_26_budget_of_calls_is_exact(driver: str) -> None:
    with FakeProvider(lambda request: "Hi") as provider, Budget(calls=10) as budget:
        lm = model(provider)
        found = [each for _ in range(5) for each in await outcomes([driver] * 64, lm)]
        assert len(provider.requests) == 10
        lm.close()
    assert Counter(type(each) for each in found) == {Response: 10, BudgetSpent: 310}
    assert (budget.spent.calls, budget.reserved.calls) == (10, 0)


@DRIVERS
async def test_row_27_call_that_cannot_fit_is_refused_before_it_is_sent(driver: str) -> None:
    with FakeProvider(["Hi"]) as provider, Budget(money=0.001) as budget:
        with pytest.raises(BudgetSpent) as caught:
            await answer(driver, model(provider, max_tokens=1000))
        assert provider.requests == ()
    assert caught.value.needed > 0.001
    assert (caught.value.attempts, budget.spent.calls) == ((), 0)
