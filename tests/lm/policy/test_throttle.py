"""Budgets of retries: by target, shared by threads, empty in a forked child."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from sigwire.core.request import Request
from sigwire.effects.steps import Steps, run
from sigwire.errors import LMRateLimitError, LMServerError
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.lm.policy.throttle import throttle_failure, throttle_success
from tests.lm.policy.test_retry import Clock, scripted

A, B = (TargetKey("acme", None, None, name) for name in "ab")


def fail(target: TargetKey, times: int) -> str | None:
    return [throttle_failure(target) for _ in range(times)][-1]


def test_budget_ends_retries_after_26_failures_of_a_target() -> None:
    assert fail(A, 25) is None
    assert fail(A, 1) == "retries are throttled: 26 of the last 26 exchanges failed"
    assert fail(B, 1) is None


def test_four_successes_pay_for_one_failure() -> None:
    fail(A, 24)
    for _ in range(1000):  # 20 % of failures
        assert fail(A, 1) is None
        for _ in range(4):
            throttle_success(A)
    assert fail(A, 19) == "retries are throttled: 27 of the last 60 exchanges failed"


def test_budget_is_exact_when_threads_share_a_target() -> None:
    with ThreadPoolExecutor(8) as pool:
        refused = list(pool.map(lambda _: throttle_failure(A), range(1000)))
    assert refused.count(None) == 25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_child_starts_with_full_budgets() -> None:
    fail(A, 40)
    child = os.fork()
    if child == 0:
        os._exit(0 if fail(A, 1) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def exchanges(*outcomes: LMServerError | LMRateLimitError | str, policy: RetryPolicy) -> int:
    call, exchange = Call(Request(), A), scripted(*outcomes)

    def started() -> Steps[str]:
        call.begin()
        return (yield from exchange())

    try:
        run(policy.around(call, started))
    except (LMServerError, LMRateLimitError):
        return len(call.report.log)
    return len(call.report.log) + 1


def test_throttled_call_is_asked_once_and_rate_limits_are_free() -> None:
    policy = RetryPolicy(clock=Clock(), random=lambda: 0.0)
    assert exchanges(*[LMRateLimitError("slow")] * 30, "done", policy=policy) == 31
    assert fail(A, 30) is not None
    assert exchanges(LMServerError("busy"), "done", policy=policy) == 1
    assert exchanges(LMRateLimitError("slow"), "done", policy=policy) == 2
