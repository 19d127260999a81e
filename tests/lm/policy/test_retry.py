"""Retries: of which errors, after which waits, how often; blocking and awaited."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.request import Request
from sigwire.core.response import Attempt
from sigwire.effects.cancellation import CancelScope, StreamCancelled, set_scope
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import (
    ConfigurationError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnexpectedError,
)
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.policy.retry import RetryPolicy, Sleep


@dataclass
class Clock:
    """A clock that records the waits and returns at once."""

    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def policy(clock: Clock | None = None, **changes: Any) -> RetryPolicy:
    return RetryPolicy(clock=clock or Clock(), random=lambda: 0.0, **changes)


def scripted(*outcomes: LMError | str) -> Callable[[], Steps[str]]:
    """An exchange that raises or returns one outcome each time."""
    remaining = iter(outcomes)

    def exchange() -> Steps[str]:
        outcome = next(remaining)
        yield Sleep(0.0, Clock())  # an exchange has effects
        if isinstance(outcome, LMError):
            raise outcome
        return outcome

    return exchange


def retried(retry: RetryPolicy, call: Call, exchange: Callable[[], Steps[str]]) -> Steps[str]:
    """Return the steps of a call whose exchange begins each time, as backends begin it."""

    def begun() -> Steps[str]:
        call.begin()
        return exchange()

    return retry.around(call, begun)


def new_call(model: str = "m") -> Call:
    return Call(Request(), TargetKey("acme", None, None, model))


async def drive(how: str, steps: Steps[str]) -> str:
    return run(steps) if how == "blocking" else await arun(steps)


HOWS = pytest.mark.parametrize("how", ["blocking", "awaited"])


@HOWS
async def test_transient_failures_are_retried_after_waits_that_double(how: str) -> None:
    clock, call = Clock(), new_call("openai/m")
    exchange = scripted(LMServerError("busy"), LMTimeoutError("slow"), LMTransportError("reset"), "done")
    assert await drive(how, retried(policy(clock), call, exchange)) == "done"
    assert clock.slept == [0.5, 1.0, 2.0]
    assert call.report.log == [
        Attempt("ask", "openai/m", error="server"),
        Attempt("retry", "openai/m", error="timeout"),
        Attempt("retry", "openai/m", error="connection"),
    ]


@HOWS
@pytest.mark.parametrize(
    "error",
    [
        LMAuthenticationError("no"),
        LMBillingError("empty"),
        LMInvalidRequestError("bad"),
        LMUnexpectedError("what"),
    ],
    ids=lambda error: error.code,
)
async def test_final_error_is_raised_at_once_with_its_attempt(how: str, error: LMError) -> None:
    clock = Clock()
    with pytest.raises(LMError) as caught:
        await drive(how, retried(policy(clock), new_call(), scripted(error)))
    assert caught.value is error
    assert error.attempts == (Attempt("ask", "m", error=error.code),)
    assert clock.slept == []


@HOWS
async def test_retries_are_bounded_and_the_last_error_has_all_attempts(how: str) -> None:
    errors = [LMServerError(str(number)) for number in range(4)]
    with pytest.raises(LMServerError, match="2") as caught:
        await drive(how, retried(policy(retries=2), new_call(), scripted(*errors)))
    assert [attempt.purpose for attempt in caught.value.attempts] == ["ask", "retry", "retry"]


WAITS = [
    (LMRateLimitError(retry_after=30.0), 30.0),
    (LMRateLimitError(retry_after=120.0), 120.0),
    (LMRateLimitError(retry_after=121.0), None),
    (LMRateLimitError(retry_after=0.0), 0.5),
    (LMRateLimitError(retry_after=0.1), 0.1),
    (LMRateLimitError(retry_after=0.01), 0.05),
    (LMServerError(), 0.5),
]


@pytest.mark.parametrize(("error", "seconds"), WAITS)
def test_stated_wait_is_kept_up_to_two_minutes(error: LMError, seconds: float | None) -> None:
    assert policy().wait(error, 0) == seconds


def test_error_marked_retryable_is_retried() -> None:
    error = LMInvalidRequestError("the model wrote a broken call")
    error.retryable = True
    assert run(retried(policy(), new_call(), scripted(error, "done"))) == "done"


def no_choices() -> LMServerError:
    error = LMServerError("no choices", status=200)
    error.empty = True
    return error


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_success_without_an_answer_is_retried_once_at_most(retries: int) -> None:
    errors = [no_choices() for _ in range(3)]
    call = new_call()
    with pytest.raises(LMServerError):
        run(retried(policy(retries=retries), call, scripted(*errors)))
    assert len(call.report.log) == min(retries, 1) + 1


@pytest.mark.parametrize("code", ["rate_limit_exceeded", None])
def test_error_in_a_success_is_retried_like_any_error(code: str | None) -> None:
    errors = [LMServerError("slow down", status=200, provider_code=code) for _ in range(3)]
    call = new_call()
    with pytest.raises(LMServerError):
        run(retried(policy(retries=2), call, scripted(*errors)))
    assert len(call.report.log) == 3


def test_success_without_an_answer_is_counted_apart_from_other_failures() -> None:
    empty, clock = [no_choices(), no_choices()], Clock()
    exchange = scripted(LMServerError("busy", status=500), empty[0], LMServerError("busy", status=500), "done")
    assert run(retried(policy(clock), new_call(), exchange)) == "done"
    with pytest.raises(LMServerError) as caught:
        run(retried(policy(retries=9), new_call(), scripted(empty[0], LMServerError("busy", status=500), empty[1])))
    assert caught.value is empty[1]


def stale() -> LMTransportError:
    error = LMTransportError("closed")
    error.stale = True
    return error


@HOWS
async def test_stale_connection_is_redialled_at_once_and_is_no_retry(how: str) -> None:
    clock, call = Clock(), new_call()
    purposes = list[str]()

    def exchange() -> Steps[str]:
        purposes.append(call.report.purpose)
        return (yield from outcomes())

    outcomes = scripted(stale(), LMServerError("busy"), stale(), "done")
    assert await drive(how, retried(policy(clock, retries=1), call, exchange)) == "done"
    assert purposes == ["ask", "redial", "retry", "redial"]
    assert clock.slept == [0.5]
    assert [(attempt.purpose, attempt.error) for attempt in call.report.log] == [
        ("ask", "connection"),
        ("redial", "server"),
        ("retry", "connection"),
    ]


@HOWS
async def test_redial_that_fails_is_not_redialled(how: str) -> None:
    clock, call = Clock(), new_call()
    errors = [stale() for _ in range(3)]
    with pytest.raises(LMTransportError) as caught:
        await drive(how, retried(policy(clock, retries=0), call, scripted(*errors)))
    assert caught.value is errors[1]
    assert clock.slept == []


@HOWS
async def test_error_is_raised_at_once_when_the_wait_would_pass_the_deadline(how: str) -> None:
    clock, error = Clock(), LMRateLimitError(retry_after=5.0)
    call = Call(Request(), TargetKey("acme", None, None, "m"), timeout=2.0)
    call.begin()
    with pytest.raises(LMRateLimitError) as caught:
        await drive(how, retried(policy(clock), call, scripted(LMServerError("busy"), error)))
    assert caught.value is error
    assert clock.slept == [0.5]


def test_other_exceptions_are_not_caught() -> None:
    def exchange() -> Steps[str]:
        raise ZeroDivisionError
        yield

    call = new_call()
    with pytest.raises(ZeroDivisionError):
        run(retried(policy(), call, exchange))
    assert call.report.log == []


@given(st.integers(0, 10_000), st.floats(0.0, 1.0, exclude_max=True))
def test_backoff_lies_between_its_jittered_and_its_longest_value(number: int, drawn: float) -> None:
    plan = RetryPolicy(random=lambda: drawn)
    assert 0.05 <= plan.backoff(number) <= min(plan.longest_backoff, 0.5 * 2.0 ** min(number, 9))


async def test_system_clock_sleeps_blocking_and_awaited() -> None:
    Sleep(0.0).run()
    await Sleep(0.0).arun()


def test_blocking_sleep_ends_when_its_scope_is_cancelled() -> None:
    scope, started = CancelScope(), time.monotonic()

    def wait() -> None:
        set_scope(scope)
        threading.Timer(0.05, scope.cancel).start()
        Sleep(90.0).run()

    with pytest.raises(StreamCancelled):
        contextvars.copy_context().run(wait)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("draw", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("stated", "most"), [(2.0, 2.5), (4.0, 5.0), (100.0, 101.0)])
def test_stated_wait_gets_up_to_a_quarter_and_a_second_more(stated: float, most: float, draw: float) -> None:
    waited = RetryPolicy(random=lambda: draw).wait(LMRateLimitError(retry_after=stated), 0)
    assert waited == stated + draw * (most - stated)


def test_wait_after_an_overload_starts_at_two_seconds() -> None:
    error = LMServerError("busy")
    error.overload = True
    assert [policy().wait(error, number) for number in range(4)] == [2.0, 4.0, 8.0, 8.0]


def test_jitter_as_a_number_is_a_share_of_the_wait() -> None:
    assert RetryPolicy(jitter=0.25, random=lambda: 1.0).backoff(1) == 0.75
    with pytest.raises(ConfigurationError):
        RetryPolicy(jitter="half")  # type: ignore[arg-type]


def test_no_failure_of_the_provider_is_retried_without_retries() -> None:
    call = new_call()
    with pytest.raises(LMRateLimitError):
        run(retried(policy(retries=0), call, scripted(LMRateLimitError("slow"), "done")))
    assert len(call.report.log) == 1
