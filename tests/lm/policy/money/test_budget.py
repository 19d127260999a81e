"""Budgets around real calls: models in a script, and a provider on the loopback interface."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import sigwire
from sigwire import Budget, BudgetSpent, Message, Price, Request, TextDelta, Usage
from sigwire.errors import ConfigurationError, LMRateLimitError, LMServerError, LMTimeoutError
from sigwire.lm.policy.money.queue import Held, is_awaited, reserve
from sigwire.lm.policy.money.sums import Amounts, Sums
from sigwire.settings import bind
from sigwire.testing import FakeProvider, Fault
from tests.patience import wait_until

PRICE = Price(input=1.0, output=10.0)
ASK = Request((Message.user("Hi"),))
USED = Usage(input_tokens=10, output_tokens=5)


def fake(**usage: int) -> sigwire.FakeLM:
    return sigwire.FakeLM(lambda request: "Hello", usage=Usage(**usage) if usage else USED)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(lambda request: "Hello") as running:
        yield running


def lm_of(provider: FakeProvider, place: str = "openai", **options: object) -> sigwire.LM:
    given: dict[str, object] = {"price": PRICE, "max_tokens": 100, **PLACES[place][1], **options}
    return sigwire.LM(PLACES[place][0], base_url=provider.url(place), api_key="any", **given)  # type: ignore[arg-type]


PLACES: dict[str, tuple[str, dict[str, object]]] = {
    "openai": ("openai/gpt-4o-mini", {}),
    "openai-responses": ("openai/gpt-4o-mini", {"wire": "responses"}),
    "anthropic": ("anthropic/claude-sonnet-4-5", {}),
    "gemini": ("gemini/gemini-2.5-flash", {}),
    "ollama": ("ollama/qwen3", {}),
}


# --- the arguments


@pytest.mark.parametrize("name", ["usd", "dollars"])
def test_budget_refuses_other_names_of_money(name: str) -> None:
    with pytest.raises(ConfigurationError, match="Did you mean money"):
        Budget(**{name: 1.0})  # type: ignore[arg-type]


def test_budget_refuses_a_number_without_a_name() -> None:
    with pytest.raises(ConfigurationError, match=r"Write Budget\(money=5\)"):
        Budget(5)


@pytest.mark.parametrize(
    "limit", [{"money": -1}, {"calls": 1.5}, {"tokens": True}, {"seconds": float("nan")}, {"money": "1"}]
)
def test_budget_refuses_a_limit_that_is_no_number(limit: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="0 or more"):
        Budget(**limit)  # type: ignore[arg-type]


def test_budget_is_shared_and_not_copied() -> None:
    budget = Budget(calls=1)
    assert copy.deepcopy(budget) is budget is copy.copy(budget)
    with pytest.raises(ConfigurationError, match="path="):
        pickle.dumps(budget)


def test_budget_spent_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(BudgetSpent("no", spent=1, limit=2, needed=3, part="tokens")))
    assert (str(error), error.spent, error.limit, error.needed, error.part, error.attempts) == (
        "no",
        1,
        2,
        3,
        "tokens",
        (),
    )


# --- what a call counts


def test_budget_counts_calls_tokens_and_money(provider: FakeProvider) -> None:
    lm = lm_of(provider)
    with Budget(money=1.0, tokens=10_000, calls=5) as budget:
        response = lm.respond(ASK)
    total = response.usage.total_tokens
    assert total
    assert (budget.spent.calls, budget.spent.tokens) == (1, total)
    assert budget.spent.money == pytest.approx(PRICE.cost(response.usage)) == pytest.approx(response.cost)
    assert budget.reserved == sigwire.Budget().spent
    assert (budget.left.calls, budget.left.tokens) == (4, 10_000 - total)


def test_budget_without_limits_only_counts() -> None:
    with Budget() as budget:
        fake()("Hi")
    assert (budget.spent.calls, budget.spent.tokens, budget.spent.unpriced) == (1, 15, 1)
    assert str(budget.spent) == "at least $0, 1 calls, 15 tokens"
    assert budget.left.calls is None


def test_calls_outside_the_block_are_not_counted() -> None:
    with Budget(calls=1) as budget:
        pass
    fake()("Hi")
    assert budget.spent.calls == 0


def test_nested_budgets_are_all_charged_and_the_inner_limit_counts() -> None:
    lm = fake()
    with Budget(calls=3) as outer:
        with Budget(calls=2) as inner:
            _ = lm("1"), lm("2")
            with pytest.raises(BudgetSpent) as caught:
                lm("3")
        lm("4")
        with pytest.raises(BudgetSpent), Budget(calls=5):
            lm("5")
    assert caught.value.limit == 2
    assert (outer.spent.calls, inner.spent.calls) == (3, 2)


def test_same_budget_twice_is_charged_once() -> None:
    with Budget(calls=2) as budget, budget, sigwire.context(budget=budget):
        fake()("Hi")
    assert budget.spent.calls == 1


def test_budget_of_the_settings_limits_calls() -> None:
    budget = Budget(calls=1)
    with sigwire.context(budget=budget):
        fake()("Hi")
        with pytest.raises(BudgetSpent):
            fake()("Hi")
    fake()("Hi")
    assert budget.spent.calls == 1


def test_context_refuses_a_budget_that_is_a_number() -> None:
    with pytest.raises(ConfigurationError, match="a budget such as"), sigwire.context(budget=5):
        pass


# --- the error


def test_call_that_never_fits_raises_before_anything_is_sent(provider: FakeProvider) -> None:
    with Budget(money=0.000001), pytest.raises(BudgetSpent) as caught:
        lm_of(provider).respond(ASK)
    assert not provider.requests
    error = caught.value
    assert (error.part, error.spent, error.limit) == ("money", 0.0, 0.000001)
    assert error.needed > error.limit
    assert "max_tokens" in str(error)


def test_predict_raises_budget_spent() -> None:
    predict = sigwire.Predict("question -> answer")
    predict.set_lm(sigwire.FakeLM(lambda request: {"answer": "yes"}, usage=USED))
    with Budget(calls=1):
        assert predict(question="1?").answer == "yes"
        with pytest.raises(BudgetSpent) as caught:
            predict(question="2?")
    assert caught.value.where is not None


def test_retry_reserves_for_itself_and_failed_exchanges_are_calls() -> None:
    with FakeProvider([Fault("server"), "Hello"]) as failing, Budget(calls=2) as budget:
        response = lm_of(failing, retry=sigwire.RetryPolicy(2, first_wait=0.001)).respond(ASK)
    assert [attempt.error for attempt in response.attempts] == ["server", None]
    assert response.cost == response.attempts[1].cost
    assert (budget.spent.calls, budget.spent.tokens) == (2, response.usage.total_tokens)


def test_budget_spent_on_a_retry_has_the_attempts_before() -> None:
    other = fake(input_tokens=400, output_tokens=0)

    def spend(request: Request) -> Fault:
        with budget:
            other("Hi", max_tokens=50)
        return Fault("server")

    budget = Budget(tokens=4_500)
    with FakeProvider(spend) as failing, budget, pytest.raises(BudgetSpent) as caught:
        lm_of(failing, max_tokens=None, retry=sigwire.RetryPolicy(2, first_wait=0.001)).respond(ASK)
    assert [attempt.error for attempt in caught.value.attempts] == ["server"]


def test_react_raises_budget_spent_with_steps_and_history() -> None:
    def double(n: int) -> int:
        return 2 * n

    agent = sigwire.ReAct("question -> answer: int", tools=[double])
    call = sigwire.ToolCall("a", "double", {"n": 2})
    agent.set_lm(sigwire.FakeLM(lambda request: call, usage=USED))
    with Budget(calls=2), pytest.raises(BudgetSpent) as caught:
        agent(question="?")
    run = sigwire.AgentRun.of(caught.value)
    assert len(run.steps) == 2
    assert run.usage == USED + USED
    agent.set_lm(sigwire.FakeLM([sigwire.ToolCall("b", "submit", {"answer": 4})]))
    assert agent(history=run.history).answer == 4


def test_batch_returns_finished_results_and_the_error_for_the_rest() -> None:
    predict = sigwire.Predict("question -> answer")
    predict.set_lm(sigwire.FakeLM(lambda request: {"answer": "yes"}, usage=USED))
    examples = [{"question": str(number)} for number in range(6)]
    with Budget(calls=4):
        results, failed, errors = predict.batch(examples, num_threads=3, return_failed_examples=True)
    assert [getattr(result, "answer", None) for result in results].count("yes") == 4
    assert len(failed) == 2
    assert {type(error) for error in errors} == {BudgetSpent}


# --- many at once


def _count(outcomes: list[object]) -> tuple[int, int]:
    return sum(1 for one in outcomes if isinstance(one, str)), sum(1 for one in outcomes if one is BudgetSpent)


@pytest.mark.parametrize("place", PLACES)
def test_64_threads_get_exactly_the_calls_of_the_budget(provider: FakeProvider, place: str) -> None:
    lm, outcomes = lm_of(provider, place), list[object]()

    def work() -> None:
        for number in range(5):
            try:
                outcomes.append(lm.respond(ASK).choices[0].text if number % 2 else _streamed(lm))
            except BudgetSpent:
                outcomes.append(BudgetSpent)

    with Budget(calls=10) as budget:
        bound = bind(work)
        threads = [threading.Thread(target=bound) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert _count(outcomes) == (10, 310)
    assert len(provider.requests) == budget.spent.calls == 10
    assert budget.reserved.calls == 0


def _streamed(lm: sigwire.LM) -> str:
    return "".join(event.text for event in lm.stream(ASK) if isinstance(event, TextDelta))


@pytest.mark.parametrize("place", PLACES)
async def test_64_tasks_get_exactly_the_calls_of_the_budget(provider: FakeProvider, place: str) -> None:
    lm, outcomes = lm_of(provider, place), list[object]()

    async def work() -> None:
        for number in range(5):
            try:
                if number % 2:
                    outcomes.append((await lm.arespond(ASK)).choices[0].text)
                else:
                    events = [event async for event in lm.astream(ASK)]
                    outcomes.append("".join(event.text for event in events if isinstance(event, TextDelta)))
            except BudgetSpent:
                outcomes.append(BudgetSpent)

    with Budget(calls=10) as budget:
        await asyncio.gather(*(work() for _ in range(64)))
    assert _count(outcomes) == (10, 310)
    assert len(provider.requests) == budget.spent.calls == 10
    assert budget.reserved.calls == 0


def test_money_is_never_exceeded_with_max_tokens(provider: FakeProvider) -> None:
    lm = lm_of(provider, max_tokens=20)
    with Budget(money=0.002, strict=True) as budget, ThreadPoolExecutor(16) as pool:
        ask = bind(partial(lm.respond, ASK))
        futures = [pool.submit(ask) for _ in range(200)]
        errors = [future.exception() for future in futures]
    assert {type(error) for error in errors} == {type(None), BudgetSpent}
    assert budget.spent.money is not None
    assert 0.001 < budget.spent.money <= 0.002
    assert budget.reserved.money == 0.0


# --- waiting


class Gate:
    """A scripted model whose answers wait for ``open``."""

    def __init__(self) -> None:
        self.open, self.asked = threading.Event(), threading.Event()
        self.lm = sigwire.FakeLM(self.answer, usage=USED)

    def answer(self, request: Request) -> str:
        self.asked.set()
        assert self.open.wait(60)
        return "Hello"


def waiting_for(budget: Budget, work: Callable[[], object]) -> threading.Thread:
    """Start a thread whose call waits in the queue of the budget."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    wait_until(lambda: is_awaited((budget.account,)))
    return thread


def test_call_waits_for_the_reservation_of_another_and_gets_the_rest() -> None:
    gate, texts = Gate(), list[list[str]]()
    with Budget(tokens=6_000) as budget:  # one bound of 4,096 and the input fits, two do not
        ask = bind(lambda: texts.append(gate.lm("Hi")))
        first = threading.Thread(target=ask)
        first.start()
        assert gate.asked.wait(60)
        second = waiting_for(budget, ask)
        gate.open.set()
        first.join(60)
        second.join(60)
    assert texts == [["Hello"], ["Hello"]]
    assert budget.spent.tokens == 30


async def test_cancelled_waiting_task_withdraws_from_the_queue(provider: FakeProvider) -> None:
    with Budget(calls=1) as budget:
        held = reserve((budget.account,), Sums(calls=1), ())
        assert isinstance(held, Held)
        task = asyncio.ensure_future(lm_of(provider).arespond(ASK))
        await asyncio.sleep(0.05)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.settle(Sums())
        assert (budget.spent.calls, budget.reserved.calls) == (0, 0)
        await lm_of(provider).arespond(ASK)
    assert budget.spent.calls == 1
    assert len(provider.requests) == 1


async def test_blocking_call_on_an_event_loop_never_waits_for_tasks_of_that_loop(provider: FakeProvider) -> None:
    lm = lm_of(provider)
    with Budget(calls=1) as budget:
        stream = lm.astream(ASK)
        await anext(stream)  # holds the only reservation

        async def other() -> None:
            lm.respond(ASK)

        with pytest.raises(BudgetSpent):
            await asyncio.wait_for(asyncio.ensure_future(other()), 5)
        async for _ in stream:
            pass
    assert budget.spent.calls == 1


def test_call_inside_the_loop_over_a_stream_never_waits_for_that_stream(provider: FakeProvider) -> None:
    lm = lm_of(provider)
    with Budget(calls=1) as budget:
        for _ in lm.stream(ASK):
            with pytest.raises(BudgetSpent):
                lm.respond(ASK)
    assert (budget.spent.calls, budget.reserved.calls) == (1, 0)


async def test_task_inside_the_loop_over_a_stream_never_waits_for_that_stream(provider: FakeProvider) -> None:
    lm = lm_of(provider)
    with Budget(calls=1) as budget:
        async for _ in lm.astream(ASK):
            outcomes = await asyncio.wait_for(
                asyncio.gather(lm.arespond(ASK), lm.arespond(ASK), return_exceptions=True), 5
            )
            assert [type(outcome) for outcome in outcomes] == [BudgetSpent, BudgetSpent]
    assert (budget.spent.calls, budget.reserved.calls) == (1, 0)


async def test_call_waits_for_another_process_and_a_blocking_call_on_the_loop_does_not(
    provider: FakeProvider, tmp_path: Path
) -> None:
    lm, path = lm_of(provider), tmp_path / "budget.sqlite3"
    elsewhere = Budget(calls=1, path=path)
    held = reserve((elsewhere.account,), Sums(calls=1), ())
    assert isinstance(held, Held)
    with Budget(calls=1, path=path) as budget:
        with pytest.raises(BudgetSpent):
            lm.respond(ASK)
        task = asyncio.ensure_future(lm.arespond(ASK))
        await asyncio.sleep(0.1)
        assert not task.done()
        held.settle(Sums())
        await asyncio.wait_for(task, 60)
    assert (budget.spent.calls, elsewhere.spent.calls) == (1, 1)


def test_seconds_are_a_deadline_for_every_call(provider: FakeProvider) -> None:
    with Budget(seconds=0.0), pytest.raises(LMTimeoutError, match="deadline of the call"):
        lm_of(provider).respond(ASK)
    assert not provider.requests
    with Budget(seconds=60) as budget:
        lm_of(provider).respond(ASK)
    assert budget.spent.calls == 1


# --- settling


def test_refused_exchange_costs_a_call_and_nothing_else() -> None:
    with FakeProvider([Fault("rate_limit"), Fault("auth")]) as provider, Budget(calls=2, money=1.0) as budget:
        lm = lm_of(provider, num_retries=0)
        for kind in (LMRateLimitError, sigwire.LMAuthenticationError):
            with pytest.raises(kind):
                lm.respond(ASK)
    assert budget.spent == Amounts(2, 0, 0.0)


@pytest.mark.parametrize("is_async", [False, True])
def test_exchanges_never_exceed_the_limit_of_calls_when_the_provider_fails(is_async: bool) -> None:
    def fail(request: Request) -> Fault:
        return Fault("server")

    with FakeProvider(fail) as provider, Budget(calls=3) as budget:
        lm = lm_of(provider, retry=sigwire.RetryPolicy(6, first_wait=0.001))
        for _ in range(3):
            with pytest.raises(BudgetSpent, match="3 of 3 calls") as caught:
                asyncio.run(lm.arespond(ASK)) if is_async else lm.respond(ASK)
    assert (len(provider.requests), budget.spent) == (3, Amounts(3, 0, 0.0))
    assert caught.value.part == "calls"


def test_exchange_that_never_connected_costs_nothing() -> None:
    lm = sigwire.LM("openai/gpt-4o-mini", base_url="http://127.0.0.1:9/v1", api_key="any", num_retries=0, price=PRICE)
    with Budget(calls=1, money=1.0) as budget, pytest.raises(sigwire.LMTransportError):
        lm.respond(ASK)
    assert budget.spent.calls == 0
    assert budget.reserved.calls == 0


def test_request_without_an_answer_costs_its_input_and_is_marked() -> None:
    release = threading.Event()

    def answer(request: Request) -> str:
        release.wait(60)
        return "late"

    with FakeProvider(answer) as provider, Budget(calls=1, money=1.0) as budget:
        lm = lm_of(provider, num_retries=0, timeout=0.2)
        try:
            with pytest.raises(LMTimeoutError) as caught:
                lm.respond(ASK)
        finally:
            release.set()
    assert (budget.spent.calls, budget.spent.estimated) == (1, 1)
    assert budget.spent.money
    assert str(budget.spent).startswith("at least $")
    (attempt,) = caught.value.attempts
    assert attempt.why is not None
    assert attempt.cost == pytest.approx(budget.spent.money)


@pytest.mark.parametrize("is_dropped", [False, True])
def test_stream_that_is_closed_or_collected_costs_what_was_emitted(is_dropped: bool) -> None:
    text = "word " * 400
    with FakeProvider([text]) as provider, Budget(tokens=20_000) as budget:
        stream = lm_of(provider, max_tokens=5_000).stream(ASK)
        for _ in range(20):
            next(stream)
        if is_dropped:
            del stream
            gc.collect()
        else:
            stream.close()
        assert budget.reserved.calls == 0
    assert budget.spent.estimated == 1
    assert budget.spent.tokens
    assert 10 < budget.spent.tokens < 1_500


def test_usage_that_is_not_sent_is_estimated_and_marked() -> None:
    with Budget(calls=5) as budget:
        sigwire.FakeLM(["a long answer of some words"])("Hi")
    assert (budget.spent.calls, budget.spent.estimated) == (1, 1)
    assert budget.spent.tokens


def test_cost_sent_by_the_provider_counts_first() -> None:
    lm = sigwire.FakeLM(["Hello"], usage=Usage(input_tokens=10, output_tokens=5, cost=0.5))
    with Budget(calls=5) as budget:
        lm("Hi")
    assert budget.spent.money == 0.5


# --- unknown prices, strict


def test_money_alone_refuses_a_model_without_a_price() -> None:
    with Budget(money=1.0), pytest.raises(ConfigurationError, match="No price of fake is known"):
        fake()("Hi")


def test_money_with_other_limits_counts_a_model_without_a_price() -> None:
    with Budget(money=1.0, calls=5) as budget:
        fake()("Hi")
    assert (budget.spent.unpriced, budget.spent.money) == (1, 0.0)


def test_strict_refuses_a_call_without_a_price_or_max_tokens(provider: FakeProvider) -> None:
    with Budget(money=1.0, calls=5, strict=True):
        with pytest.raises(ConfigurationError, match="No price"):
            fake()("Hi")
        with pytest.raises(ConfigurationError, match="max_tokens"):
            lm_of(provider, max_tokens=None).respond(ASK)
        lm_of(provider).respond(ASK)


def test_local_model_fits_a_money_budget_of_nothing() -> None:
    with Budget(money=0.0) as budget:
        sigwire.LM("offline/lexical")("Hi")
    assert (budget.spent.calls, budget.spent.money, budget.spent.unpriced) == (1, 0.0, 0)


def test_server_error_is_a_call() -> None:
    with FakeProvider([Fault("server")]) as provider, Budget(calls=1) as budget, pytest.raises(LMServerError):
        lm_of(provider, num_retries=0).respond(ASK)
    assert budget.spent == Amounts(1, 0, 0.0)


def test_budget_is_spent_when_a_call_does_not_fit() -> None:
    lm = sigwire.LM("offline/lexical")
    with Budget(calls=2) as outer, Budget(calls=5) as inner:
        lm("What is the capital of France?")
        lm("And of Italy?")
        assert not outer.is_spent
        with pytest.raises(BudgetSpent):
            lm("And of Spain?")
    assert outer.is_spent
    assert not inner.is_spent, "the call did not fit into the other"
