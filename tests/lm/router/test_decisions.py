"""Properties of a routed call: any outcomes of any number of targets, blocking, awaited and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.response import Attempt
from sigwire.errors import (
    ContextWindowExceededError,
    LMAuthenticationError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    UnsupportedFeature,
)
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.failover.health import Health
from sigwire.lm.router import Router
from tests.lm.router.test_router import EVERY_DRIVER, answer

ERRORS: Mapping[str, Callable[[], Exception]] = {
    "server": LMServerError,
    "timeout": LMTimeoutError,
    "auth": LMAuthenticationError,
    "limit": lambda: LMRateLimitError(retry_after=7.0),
    "long": ContextWindowExceededError,
    "unfit": lambda: UnsupportedFeature("no"),
    "invalid": LMInvalidRequestError,
}
PASSES = {"server", "timeout", "auth", "limit", "long", "unfit"}
OUTCOMES = st.sampled_from(["answer", "answer", *ERRORS])
SCRIPTS = st.integers(1, 3).flatmap(
    lambda count: st.lists(st.lists(OUTCOMES, min_size=count, max_size=count), min_size=1, max_size=12)
)


class Scripted:
    """Targets whose outcomes the test sets before each call, and the targets that the call asked."""

    def __init__(self, count: int) -> None:
        self.outcomes: list[str] = []
        self.asked: list[int] = []
        targets = [FakeLM(lambda request, n=n: self._outcome(n), model=str(n)) for n in range(count)]  # type: ignore[misc]
        self.now = 0.0
        self.router = Router(targets, clock=lambda: self.now, health=Health(jitter=0.0))

    def _outcome(self, number: int) -> Any:
        self.asked.append(number)
        outcome = self.outcomes[number]
        return outcome if outcome == "answer" else ERRORS[outcome]()


@pytest.mark.parametrize("driver", EVERY_DRIVER)
@given(scripts=SCRIPTS, seconds=st.sampled_from([0.0, 1.0, 6.0, 300.0]))
def test_call_asks_each_target_once_in_order_and_never_none(
    driver: str, scripts: list[list[str]], seconds: float
) -> None:
    asyncio.run(check_calls(driver, scripts, seconds))


async def check_calls(driver: str, scripts: list[list[str]], seconds: float) -> None:
    made = Scripted(len(scripts[0]))
    for outcomes in scripts:
        made.outcomes, made.asked = outcomes, []
        made.now += seconds
        closed = [row.opens_in == 0.0 for row in made.router.health()]
        log: tuple[Attempt, ...]
        try:
            response = await answer(driver, made.router)
            log = response.attempts
            assert outcomes[made.asked[-1]] == "answer"
            assert response.model == str(made.asked[-1])
        except (LMError, UnsupportedFeature) as error:
            log = getattr(error, "attempts", ())
            assert outcomes[made.asked[-1]] != "answer"
            if (
                outcomes[made.asked[-1]] in PASSES
            ):  # each target was asked that calls may ask, and one more if one is left
                assert {n for n, is_closed in enumerate(closed) if is_closed} <= set(made.asked)
                assert len(made.asked) == len(outcomes) or len(made.asked) == sum(closed) + 1
        assert made.asked
        assert len(made.asked) == len(set(made.asked))
        assert all(outcomes[number] in PASSES for number in made.asked[:-1])
        forced = [number for number in made.asked if not closed[number]]
        assert forced in ([], made.asked[-1:])
        assert [number for number in made.asked if closed[number]] == sorted(n for n in made.asked if closed[n])
        if log:
            sent = [int(attempt.model or "") for attempt in log if attempt.purpose != "skip" or attempt.why == "no"]
            assert sent == made.asked
