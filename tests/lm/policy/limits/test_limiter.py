"""The limiter: its queue, slots and pace; blocking, awaited and streamed; and the waits that would never end."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.effects.cancellation import StreamCancelled
from sigwire.effects.emitting import Emit, astream, stream
from sigwire.effects.gather import Gather
from sigwire.effects.loops import block_on
from sigwire.effects.steps import FunctionEffect, Steps, arun, run
from sigwire.errors import ConfigurationError, LMInvalidRequestError, LMRateLimitError, LMServerError, LMTimeoutError
from sigwire.lm.client import LM
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.policy.deadlines import deadline
from sigwire.lm.policy.limits.limit import Limit
from sigwire.lm.policy.limits.limiter import Limiter
from sigwire.lm.policy.limits.registry import limiter_of, limits
from sigwire.lm.policy.limits.runs import Run, current_run
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.lm.policy.waiting import Wait
from tests.patience import wait_until

TARGET = TargetKey("acme", None, None, "acme/m")


def new_call(*, streamed: bool = False, seconds: float | None = None) -> Call:
    with deadline(seconds) if seconds is not None else nullcontext():
        return Call(Request(), TARGET, streamed=streamed)


@dataclass
class Clock:
    """A time that tests set; ``due`` are the alarms that were set."""

    now: float = 0.0
    due: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def wake_at(self, wake: Callable[[], object], due: float) -> None:
        self.due.append(due)


def exchange(value: str = "done") -> Steps[str]:
    return value
    yield


def failing(error: Exception) -> Callable[[], Steps[str]]:
    def steps() -> Steps[str]:
        raise error
        yield

    return steps


def held(gate: Future[str]) -> Callable[[], Steps[str]]:
    """An exchange that ends when the gate opens."""

    def steps() -> Steps[str]:
        return (yield Wait(gate, None))

    return steps


def two_events() -> Steps[str]:
    yield Emit("first")
    yield Emit("second")
    return "done"


def ask(limiter: Limiter, inner: Callable[[], Steps[Any]] = exchange, **options: Any) -> Steps[Any]:
    return limiter.around(new_call(**options), inner)


def state(limiter: Limiter) -> tuple[int, int]:
    found = limiter.state("acme", "m")
    return found.in_flight, found.queued


def one_slot(**options: Any) -> Limiter:
    return Limiter(Limit(concurrency=1), **options)


# --- slots


def test_calls_in_threads_use_at_most_the_slots() -> None:
    limiter, most, lock = Limiter(Limit(concurrency=3)), 0, threading.Lock()

    def work() -> Steps[None]:
        nonlocal most
        with lock:
            most = max(most, limiter.state("acme", "m").in_flight)
        yield FunctionEffect(lambda: time.sleep(0.002), lambda: asyncio.sleep(0.002))

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: run(ask(limiter, work)), range(40)))
    assert 1 < most <= 3
    assert state(limiter) == (0, 0)


async def test_calls_in_tasks_use_at_most_the_slots() -> None:
    limiter, seen = Limiter(Limit(concurrency=3)), list[int]()

    async def pause() -> None:
        seen.append(limiter.state("acme", "m").in_flight)
        await asyncio.sleep(0.001)

    def work() -> Steps[None]:
        yield FunctionEffect(lambda: None, pause)

    await asyncio.gather(*(arun(ask(limiter, work)) for _ in range(40)))
    assert max(seen) == 3
    assert state(limiter) == (0, 0)


@pytest.mark.parametrize("error", [LMInvalidRequestError(), KeyError("x"), KeyboardInterrupt()])
def test_slot_is_released_when_the_exchange_fails(error: Any) -> None:
    limiter = one_slot()
    with pytest.raises(type(error)):
        run(ask(limiter, failing(error)))
    assert state(limiter) == (0, 0)
    assert run(ask(limiter)) == "done"


def test_slot_is_released_when_a_stream_is_closed() -> None:
    limiter = one_slot()
    events = stream(ask(limiter, two_events, streamed=True))
    assert next(events) == "first"
    assert state(limiter) == (1, 0)
    events.close()
    assert state(limiter) == (0, 0)


async def test_slot_is_released_when_an_awaited_stream_is_closed() -> None:
    limiter = one_slot()
    events = astream(ask(limiter, two_events, streamed=True))
    assert await anext(events) == "first"
    await events.aclose()
    assert state(limiter) == (0, 0)


def test_stream_passes_its_events_and_value() -> None:
    limiter, values = one_slot(), list[str]()

    def watched() -> Generator[str]:
        values.append((yield from stream(ask(limiter, two_events, streamed=True))))

    assert [*watched(), *values] == ["first", "second", "done"]


# --- withdrawing from the queue


async def test_queue_drops_a_call_at_once_when_its_task_is_cancelled() -> None:
    limiter, gate = one_slot(), Future[str]()
    holder = asyncio.ensure_future(arun(ask(limiter, held(gate))))
    await asyncio.sleep(0)
    waiting = [asyncio.ensure_future(arun(ask(limiter))) for _ in range(3)]
    await asyncio.sleep(0.01)
    assert state(limiter) == (1, 3)
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    assert state(limiter) == (1, 2)
    gate.set_result("held")
    assert await asyncio.gather(holder, *waiting[1:]) == ["held", "done", "done"]
    assert state(limiter) == (0, 0)


async def test_slot_is_passed_on_when_a_task_is_cancelled_at_the_moment_of_its_turn() -> None:
    limiter, gate = one_slot(), Future[str]()
    holder = asyncio.ensure_future(arun(ask(limiter, held(gate))))
    await asyncio.sleep(0)
    first, second = (asyncio.ensure_future(arun(ask(limiter))) for _ in range(2))
    await asyncio.sleep(0.01)
    limiter._release(next(iter(limiter._holders)))  # the holder's slot is free before its task runs
    limiter._serve()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second == "done"
    gate.set_result("held")
    await holder
    assert state(limiter) == (0, 0)


def test_queue_drops_a_call_when_a_stream_around_it_is_closed() -> None:
    limiter, gate = one_slot(), Future[str]()

    def program() -> Steps[list[Any]]:
        return (yield Gather([ask(limiter, held(gate)), emit_when_queued(), ask(limiter)]))

    def emit_when_queued() -> Steps[None]:
        yield FunctionEffect(lambda: wait_until(lambda: state(limiter) == (1, 1)), asyncio.sleep)  # type: ignore[arg-type]
        yield Emit("queued")

    events = stream(program())
    assert next(events) == "queued"
    events.close()
    wait_until(lambda: state(limiter) == (0, 0))


def test_call_raises_a_timeout_error_when_its_deadline_passes_in_the_queue() -> None:
    limiter, gate = one_slot(), Future[str]()
    holder = threading.Thread(target=lambda: run(ask(limiter, held(gate))), daemon=True)
    holder.start()
    wait_until(lambda: state(limiter) == (1, 0))
    with pytest.raises(LMTimeoutError, match="waiting to send"):
        run(ask(limiter, seconds=0.05))
    assert state(limiter) == (1, 0)
    gate.set_result("held")
    holder.join(60)


# --- pace


def paced(rate: float) -> tuple[Limiter, Clock]:
    clock = Clock()
    return Limiter(Limit(requests=rate, per=1.0), clock=clock, wake_at=clock.wake_at), clock


def refused_at(clock: Clock, rate: int) -> Limiter:
    """A limiter whose provider has taken ``rate`` sends a second and refused the last ones."""
    limiter = Limiter(clock=clock, wake_at=clock.wake_at)
    for number in range(10 * rate):
        clock.now = number / rate
        run(ask(limiter))
    for _ in range(3):
        with pytest.raises(LMRateLimitError):
            run(ask(limiter, failing(LMRateLimitError())))
    return limiter


def test_refusal_sets_the_rate_of_later_sends() -> None:
    limiter = refused_at(Clock(), 20)
    assert limiter.state("acme", "m").rate == pytest.approx(20, rel=0.05)
    assert limiter.state("acme", "m").concurrency >= 32  # a refusal for the rate moves no slot


def test_overload_takes_slots_and_sets_no_rate() -> None:
    limiter = Limiter()
    with pytest.raises(LMServerError):
        run(ask(limiter, failing(LMServerError(status=503))))
    found = limiter.state("acme", "m")
    assert (found.concurrency, found.rate) == (25, None)


def test_limiter_that_does_not_adapt_keeps_to_the_stated_limit() -> None:
    limiter = Limiter(Limit(requests=600, concurrency=7, adaptive=False))
    for error in (LMRateLimitError(), LMServerError(status=503)):
        with pytest.raises(type(error)):
            run(ask(limiter, failing(error)))
    found = limiter.state("acme", "m")
    assert (found.concurrency, found.rate) == (7, 10.0)


async def test_call_fails_at_once_when_its_turn_is_past_its_deadline() -> None:
    clock, call = Clock(time.monotonic()), new_call(seconds=5.0)
    limiter = Limiter(Limit(requests=20, per=1.0), clock=clock, wake_at=clock.wake_at)
    for _ in range(20):
        await arun(ask(limiter))
    waiting = [asyncio.ensure_future(arun(ask(limiter))) for _ in range(142)]
    await asyncio.sleep(0)
    with pytest.raises(LMTimeoutError, match=r"142 before it at 20/s") as caught:
        await arun(RetryPolicy().around(call, lambda: limiter.around(call, exchange)))
    assert not caught.value.retryable
    [attempt] = caught.value.attempts
    assert (attempt.purpose, attempt.error, attempt.why) == ("skip", "timeout", "142 before it at 20/s")
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert state(limiter) == (0, 0)


def test_calls_wait_for_the_stated_rate_on_the_alarm() -> None:
    limiter, begin = Limiter(Limit(requests=1, per=0.05)), time.monotonic()
    for _ in range(3):
        run(ask(limiter))
    assert time.monotonic() - begin >= 0.09


@pytest.mark.long
def test_thread_of_the_alarm_ends_after_the_last_wait_and_starts_again() -> None:
    for _ in range(3):
        limiter = Limiter(Limit(requests=1, per=0.01))
        for _ in range(3):
            run(ask(limiter))
        wait_until(lambda: "sigwire-limits" not in [thread.name for thread in threading.enumerate()])


def test_seconds_in_the_queue_are_counted() -> None:
    limiter = Limiter(Limit(requests=1, per=0.05))
    run(ask(limiter))
    call = new_call()
    run(limiter.around(call, exchange))
    assert 0.03 < call.report.queued < 1


def test_tokens_are_estimated_before_and_corrected_after() -> None:
    limiter = Limiter(Limit(tokens=1000), clock=Clock())

    def answered() -> Steps[Response]:
        assert limiter.state("acme", "m").tokens_remaining == 900  # max_tokens
        return Response(usage=Usage(input_tokens=20, output_tokens=30))
        yield

    call = Call(Request(options={"max_tokens": 100}), TARGET)
    run(limiter.around(call, answered))
    assert limiter.state("acme", "m").tokens_remaining == 950


def test_headers_of_a_reply_hold_the_next_call() -> None:
    clock = Clock()
    limiter, call = Limiter(clock=clock, wake_at=clock.wake_at), new_call()

    def answered() -> Steps[str]:
        call.report.headers = {
            "x-ratelimit-limit-requests": "60",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "60s",
        }
        return "done"
        yield

    run(limiter.around(call, answered))
    assert limiter.state("acme", "m").requests_remaining == 0
    waiting = ask(limiter)
    next(waiting)
    assert clock.due == [pytest.approx(1.0)]
    waiting.close()
    assert state(limiter) == (0, 0)


def test_headers_that_state_a_day_hold_no_call() -> None:
    limiter, call = Limiter(clock=Clock()), new_call()

    def answered() -> Steps[str]:
        call.report.headers = {
            "x-ratelimit-limit-requests": "2",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "24h",
        }
        return "done"
        yield

    run(limiter.around(call, answered))
    assert run(ask(limiter)) == "done"  # a refusal of the provider is an answer, a silent wait is none


def test_refusal_that_states_a_day_holds_no_call() -> None:
    limiter = Limiter(clock=Clock())
    for _ in range(3):
        with pytest.raises(LMRateLimitError):
            run(ask(limiter, failing(LMRateLimitError(retry_after=3600.0))))
    assert limiter.state("acme", "m").rate is None


# --- waits that would never end


async def test_blocking_call_goes_over_the_limit_when_its_own_loop_runs_the_holder() -> None:
    limiter, gate, call = one_slot(), Future[str](), new_call()
    holder = asyncio.ensure_future(arun(ask(limiter, held(gate))))
    await asyncio.sleep(0)
    assert run(limiter.around(call, exchange)) == "done"
    assert call.report.why == "over the limit: its thread or task holds a slot"
    gate.set_result("held")
    await holder
    assert state(limiter) == (0, 0)


async def test_blocking_call_goes_over_the_limit_when_its_loop_runs_a_queued_call() -> None:
    limiter, gate = one_slot(), Future[str]()
    holder = threading.Thread(target=lambda: run(ask(limiter, held(gate))), daemon=True)
    holder.start()
    wait_until(lambda: state(limiter) == (1, 0))
    waiting = asyncio.ensure_future(arun(ask(limiter)))
    await asyncio.sleep(0)
    assert run(ask(limiter)) == "done"
    gate.set_result("held")
    assert await waiting == "done"


async def test_call_of_the_background_loop_goes_over_the_limit_when_the_blocked_loop_runs_the_holder() -> None:
    limiter, gate = one_slot(), Future[str]()
    holder = asyncio.ensure_future(arun(ask(limiter, held(gate))))
    await asyncio.sleep(0)
    assert block_on(arun(ask(limiter)), timeout=60) == "done"
    gate.set_result("held")
    await holder


async def test_blocking_call_in_a_thread_waits_when_no_holder_needs_its_loop() -> None:
    limiter, gate = one_slot(), Future[str]()
    holder = threading.Thread(target=lambda: run(ask(limiter, held(gate))), daemon=True)
    holder.start()
    wait_until(lambda: state(limiter) == (1, 0))
    threading.Timer(0.02, gate.set_result, ["held"]).start()
    call = new_call()
    run(limiter.around(call, exchange))  # on a thread with an event loop, as in a notebook
    assert call.report.why is None
    assert call.report.queued > 0


def test_reader_of_a_stream_calls_the_same_model() -> None:
    limiter = one_slot()
    events = stream(ask(limiter, two_events, streamed=True))
    assert [(event, run(ask(limiter))) for event in events] == [("first", "done"), ("second", "done")]
    assert state(limiter) == (0, 0)


async def test_reader_of_an_awaited_stream_calls_the_same_model() -> None:
    limiter, answers = one_slot(), list[str]()
    async for _ in astream(ask(limiter, two_events, streamed=True)):
        async with asyncio.timeout(5):
            answers.append(await arun(ask(limiter)))
    assert len(answers) == 3
    assert state(limiter) == (0, 0)


def test_slot_of_an_abandoned_stream_is_lent() -> None:
    limiter = one_slot(idle=0.05)
    events = stream(ask(limiter, two_events, streamed=True))
    assert next(events) == "first"
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: run(ask(limiter))).result(60) == "done"
    assert list(events) == ["second"]
    assert state(limiter) == (0, 0)
    assert limiter._in_flight == 0


# --- order


def served(limiter: Limiter, clock: Clock, calls: list[tuple[str, Run | None]], seconds: float = 1.0) -> list[str]:
    """Queue calls in order, then let one go each time the clock moves; return the names in the order of service."""
    order, steps = list[str](), list[Any]()
    for name, run_of in calls:

        def work(name: str = name) -> Steps[str]:
            order.append(name)
            return name
            yield

        token = current_run.set(run_of)
        call = new_call()
        entered = limiter.around(call, work)
        next(entered)
        steps.append(entered)
        current_run.reset(token)
    for _ in calls:
        clock.now += seconds
        limiter._serve()
        for entered in steps[:]:
            if _has_turn(entered):
                steps.remove(entered)
                with pytest.raises(StopIteration):
                    next(entered)
    return order


def _has_turn(entered: Any) -> bool:
    frame = entered.gi_frame
    return frame is not None and not frame.f_locals["ticket"].is_queued


def full_limiter() -> tuple[Limiter, Clock]:
    limiter, clock = paced(1)
    run(ask(limiter))
    return limiter, clock


def test_calls_are_served_in_the_order_of_their_start() -> None:
    limiter, clock = full_limiter()
    assert served(limiter, clock, [(name, None) for name in "abcde"]) == list("abcde")


def test_calls_of_a_user_are_served_before_those_of_a_batch() -> None:
    limiter, clock = full_limiter()
    batch = Run()
    assert served(limiter, clock, [("b1", batch), ("b2", batch), ("u1", None), ("u2", None)]) == [
        "u1",
        "u2",
        "b1",
        "b2",
    ]


def test_batches_take_turns() -> None:
    limiter, clock = full_limiter()
    large, small = Run(), Run()
    calls = [*((f"large{number}", large) for number in range(6)), ("small0", small), ("small1", small)]
    order = served(limiter, clock, calls)
    assert order.index("small1") <= 4


def test_call_of_a_batch_is_served_after_thirty_seconds_although_users_call() -> None:
    limiter, clock = full_limiter()
    users = [(f"u{number}", None) for number in range(8)]
    order = served(limiter, clock, [("batch", Run()), *users], seconds=8.0)
    assert order.index("batch") in (3, 4)


def test_retry_keeps_its_place() -> None:
    limiter, clock = full_limiter()
    first, order = new_call(), list[str]()
    others = [limiter.around(new_call(), exchange) for _ in range(3)]
    for entered in others:
        next(entered)
    first.report.purpose = "retry"

    def work() -> Steps[str]:
        order.append("first")
        return "done"
        yield

    again = limiter.around(first, work)
    next(again)
    clock.now += 1.0
    limiter._serve()
    with pytest.raises(StopIteration):
        next(again)
    assert order == ["first"]
    for entered in others:
        entered.close()


# --- the limiters of the process


def test_models_of_one_account_share_a_limiter_by_key() -> None:
    team = Limit(concurrency=5, key="team-a")
    first, second = LM("openai/gpt-5-mini", limit=team), LM("openai/gpt-5", limit=team)
    assert first._limiter is second._limiter
    assert LM("openai/gpt-5", limit=team, api_key="another")._limiter is not second._limiter
    assert LM("openai/gpt-5-mini")._limiter is LM("openai/gpt-5-mini")._limiter
    assert any(found.model == "team-a" and found.concurrency == 5 for found in limits())


def test_model_without_a_limiter() -> None:
    assert LM("openai/gpt-5-mini", limit=False)._limiter is None
    assert LM("offline/lexical")._limiter is None


def test_limit_is_kept_by_copies_and_states() -> None:
    limit = Limit(requests=5, key="team-b")
    lm = LM("openai/gpt-5-mini", limit=limit)
    assert lm.copy(temperature=1.0)._limiter is lm._limiter
    assert LM.load_state(lm.dump_state())._limiter is lm._limiter
    assert lm.copy(limit=False)._limiter is None
    assert LM.load_state(lm.copy(limit=False).dump_state())._limiter is None


@pytest.mark.parametrize("limit", [5, "5", True, {"requests": 5}])
def test_limit_of_another_type_is_refused(limit: Any) -> None:
    with pytest.raises(ConfigurationError, match="limit is a Limit"):
        LM("openai/gpt-5-mini", limit=limit)


@pytest.mark.parametrize("arguments", [{"requests": 0}, {"tokens": "9"}, {"per": 0}, {"concurrency": True}, {"key": 5}])
def test_limit_is_made_of_numbers_above_zero(arguments: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Limit\(\w+=...\) is a (number above 0|string), not"):
        Limit(**arguments)


def test_suggested_calls_at_once_follow_the_rate() -> None:
    assert Limiter().suggested() == 32
    assert Limiter(Limit(requests=2, per=1.0)).suggested() == 1


def test_forked_child_begins_with_an_empty_limiter() -> None:
    limiter = limiter_of(TARGET, Limit(concurrency=1, key="fork"))
    gate: Future[str] = Future()
    holder = threading.Thread(target=lambda: run(ask(limiter, held(gate))), daemon=True)
    holder.start()
    wait_until(lambda: state(limiter) == (1, 0))
    with limiter._guard._lock:  # a lock that is held while the process forks stays held in the child
        child = os.fork()
        if child == 0:
            os._exit(0 if run(ask(limiter)) == "done" else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.set_result("held")
    holder.join(60)
    assert state(limiter) == (0, 0)


def test_queue_drops_a_call_when_its_steps_are_cancelled() -> None:
    limiter, _ = full_limiter()
    entered = ask(limiter)
    next(entered)
    with pytest.raises(StreamCancelled):
        entered.throw(StreamCancelled())
    assert state(limiter) == (0, 0)
