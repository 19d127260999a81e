"""Trying again: what is, when, how often; the same blocking and awaited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.response import Attempt
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import (
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
from sigwire.lm.policy.retry import RetryPolicy, Sleep, retry_exchange


@dataclass
class Clock:
    """Nobody waits; the waits are written down."""

    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def policy(clock: Clock | None = None, **changes: Any) -> RetryPolicy:
    return RetryPolicy(clock=clock or Clock(), random=lambda: 0.0, **changes)


def trips(*outcomes: LMError | str) -> Callable[[], Steps[str]]:
    """A trip that fails and succeeds as told, once each."""
    left = iter(outcomes)

    def trip() -> Steps[str]:
        outcome = next(left)
        yield Sleep(0.0, Clock())  # a trip has effects of its own
        if isinstance(outcome, LMError):
            raise outcome
        return outcome

    return trip


async def drive(how: str, program: Steps[str]) -> str:
    return run(program) if how == "blocking" else await arun(program)


HOWS = pytest.mark.parametrize("how", ["blocking", "awaited"])


@HOWS
async def test_what_passes_is_tried_again_after_waits_that_double(how: str) -> None:
    clock, attempts = Clock(), list[Attempt]()
    trip = trips(LMServerError("busy"), LMTimeoutError("slow"), LMTransportError("reset"), "done")
    assert await drive(how, retry_exchange(trip, policy(clock), attempts, "openai/m")) == "done"
    assert clock.slept == [0.5, 1.0, 2.0]
    assert attempts == [
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
        LMRateLimitError("per day", retry_after=120.5),
    ],
    ids=lambda error: error.code,
)
async def test_what_does_not_pass_is_raised_at_once_with_its_attempt(how: str, error: LMError) -> None:
    clock = Clock()
    with pytest.raises(LMError) as caught:
        await drive(how, retry_exchange(trips(error), policy(clock), [], "m"))
    assert caught.value is error
    assert error.attempts == (Attempt("ask", "m", error=error.code),)
    assert clock.slept == []


@HOWS
async def test_the_number_of_retries_is_bounded_and_the_last_error_tells_of_all(how: str) -> None:
    errors = [LMServerError(str(number)) for number in range(4)]
    with pytest.raises(LMServerError, match="2") as caught:
        await drive(how, retry_exchange(trips(*errors), policy(retries=2), []))
    assert [attempt.purpose for attempt in caught.value.attempts] == ["ask", "retry", "retry"]


WAITS = [
    (LMRateLimitError(retry_after=30.0), 30.0),
    (LMRateLimitError(retry_after=120.0), 120.0),
    (LMRateLimitError(retry_after=121.0), None),
    (LMRateLimitError(retry_after=0.0), 0.5),
    (LMRateLimitError(retry_after=0.1), 0.5),
    (LMServerError(), 0.5),
]


@pytest.mark.parametrize(("error", "seconds"), WAITS)
def test_the_providers_word_on_waiting_counts_up_to_two_minutes(error: LMError, seconds: float | None) -> None:
    assert policy().wait(error, 0) == seconds


def test_an_error_that_says_of_itself_that_it_passes_is_tried_again() -> None:
    error = LMInvalidRequestError("the model wrote a broken call")
    error.retryable = True
    assert run(retry_exchange(trips(error, "done"), policy(), [])) == "done"


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_a_success_without_an_answer_in_it_is_tried_again_once_at_most(retries: int) -> None:
    errors = [LMServerError("no choices", status=200) for _ in range(3)]
    attempts = list[Attempt]()
    with pytest.raises(LMServerError):
        run(retry_exchange(trips(*errors), policy(retries=retries), attempts))
    assert len(attempts) == min(retries, 1) + 1


def test_an_error_that_a_success_names_is_tried_again_as_often_as_any() -> None:
    errors = [LMServerError("slow down", status=200, provider_code="rate_limit_exceeded") for _ in range(3)]
    attempts = list[Attempt]()
    with pytest.raises(LMServerError):
        run(retry_exchange(trips(*errors), policy(retries=2), attempts))
    assert len(attempts) == 3


def test_anything_but_an_lm_error_passes_untouched() -> None:
    def trip() -> Steps[str]:
        raise ZeroDivisionError
        yield

    attempts = list[Attempt]()
    with pytest.raises(ZeroDivisionError):
        run(retry_exchange(trip, policy(), attempts))
    assert attempts == []


@given(st.integers(0, 10_000), st.floats(0.0, 1.0, exclude_max=True))
def test_a_wait_lies_between_what_jitter_leaves_and_the_longest(number: int, drawn: float) -> None:
    plan = RetryPolicy(random=lambda: drawn)
    assert 0.375 <= plan.backoff(number) <= plan.longest_backoff


async def test_the_real_clock_waits_both_ways() -> None:
    Sleep(0.0).run()
    await Sleep(0.0).arun()
