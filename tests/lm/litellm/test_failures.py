"""The table of failures through the real LiteLLM: stated waits, money, overload, keys, time limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sigwire.core.response import Response
from sigwire.effects.steps import arun, run
from sigwire.errors import ConfigurationError, LMBillingError, LMTimeoutError
from sigwire.lm.client import LM
from sigwire.lm.litellm import backend
from sigwire.testing import Answer, FakeProvider, Fault, Raw
from tests.grids import grid
from tests.lm.calls import HELLO, KEY, Clock, forget_keys, patient
from tests.lm.policy.relay import Relay

# litellm's own models, built when they are first used.
pytestmark = [
    pytest.mark.long,  # importing the package takes seconds in each worker
    pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]
UPSTREAMS: Mapping[str, tuple[str, str]] = {
    "litellm/openai/gpt-4.1": ("openai", ""),
    "litellm/anthropic/claude-opus-4-5": ("anthropic", ""),
    "litellm/gemini/gemini-2.5-flash": ("gemini", "/v1beta"),
}
EVERY_DRIVER = ["blocking", "awaited", "blocking stream", "awaited stream"]
DRIVERS = pytest.mark.parametrize("driver", EVERY_DRIVER)


@pytest.fixture(autouse=True)
def theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    try:
        backend.check_release()
    except ConfigurationError as error:
        pytest.skip(str(error))


def model_at(url: str, model: str, clock: Clock | None = None, **options: Any) -> LM:
    # No limiter: it would wait in real time.
    return LM(model, base_url=url, **{"api_key": KEY, "limit": False, "retry": patient(clock or Clock()), **options})


async def answer(driver: str, lm: LM) -> Response:
    how, _, streamed = driver.partition(" ")
    steps = lm.steps(HELLO, streamed=bool(streamed))
    return run(steps) if how == "blocking" else await arun(steps)


TRANSIENT: Mapping[str, tuple[Answer, list[float] | None]] = {
    "stated wait": (Fault("rate_limit", retry_after=2), [2.0]),
    "server error": (Fault("server"), [0.5]),
    "overload": (Fault("overloaded"), None),
    "wait in the message": (Raw({"error": {"message": "Slow down. Please try again in 1.5s."}}, 429), [1.5]),
}


@grid("model, row, driver", UPSTREAMS, TRANSIENT, EVERY_DRIVER)
async def test_transient_failure_is_retried_after_its_wait(row: str, model: str, driver: str) -> None:
    (wire, end), clock, (failure, slept) = UPSTREAMS[model], Clock(), TRANSIENT[row]
    with FakeProvider([failure, "Hi"]) as provider:
        response = await answer(driver, model_at(provider.url(wire) + end, model, clock))
    assert response.choices[0].text == "Hi"
    assert [attempt.purpose for attempt in response.attempts] == ["ask", "retry"]
    assert len(clock.slept) == 1
    assert slept is None or clock.slept == pytest.approx(slept)


SPENT: list[tuple[str, Any]] = [
    ("litellm/openai/gpt-4.1", {"error": {"message": "no", "code": "billing_hard_limit_reached"}}),
    (
        "litellm/anthropic/claude-opus-4-5",
        {"type": "error", "error": {"type": "enforced_spend_limit_reached", "message": "no"}},
    ),
    (
        "litellm/gemini/gemini-2.5-flash",
        {"error": {"code": 429, "message": "no", "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}},
    ),
]


@DRIVERS
@pytest.mark.parametrize(("model", "body"), SPENT)
async def test_rate_limit_that_is_money_or_a_day_is_not_retried(model: str, body: Any, driver: str) -> None:
    wire, end = UPSTREAMS[model]
    with FakeProvider([Raw(body, 429), "Hi"]) as provider, pytest.raises(LMBillingError) as caught:
        await answer(driver, model_at(provider.url(wire) + end, model))
    assert len(caught.value.attempts) == 1


@grid("model, driver", UPSTREAMS, EVERY_DRIVER)
async def test_key_of_a_function_is_renewed_once(model: str, driver: str) -> None:
    wire, end = UPSTREAMS[model]
    keys: Callable[[], str] = iter(["old", *["new"] * 9]).__next__
    with FakeProvider(["Hi"], key="new") as provider:
        response = await answer(driver, model_at(provider.url(wire) + end, model, api_key=keys))
    assert [attempt.error for attempt in response.attempts] == ["auth", None]


@DRIVERS
async def test_silent_server_ends_at_the_timeout(driver: str) -> None:
    model = "litellm/openai/gpt-4.1"
    backend._load()
    with FakeProvider() as provider, Relay(provider.url("openai"), *["silent"] * 4) as relay:
        lm = model_at(relay.url, model, timeout=0.5)
        with pytest.raises(LMTimeoutError) as caught:
            await answer(driver, lm)
    assert len(caught.value.attempts) == 1
