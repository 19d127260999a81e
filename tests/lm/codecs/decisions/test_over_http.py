"""Decision endpoints over HTTP: refused keys, waits, ids of requests, what hangs, what is cancelled, secrets and costs."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import traceback
from typing import Any

import pytest

from sigwire.core.events import collect
from sigwire.core.json import JsonObject
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import LMAuthenticationError, LMError, LMRateLimitError, LMTimeoutError, LMUnexpectedError
from sigwire.lm.client import LM
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.policy.money.prices import Price, prices
from sigwire.testing import Delivered, FakeProvider, Fault, Raw
from tests.lm.calls import HOWS, KEY, QUESTION, Clock, ask, patient, stream

ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai": ("openai/gpt-6-luna", "decisions", {"wire": "decisions"}),
    "system-one": ("system-one/jev", "system-one", {}),
    "typesafe": ("typesafe/jev-latest", "system-one", {}),
    "gemini": ("gemini/gemini-decision-1", "gemini-decisions", {"wire": "decisions"}),
}
HOSTS = pytest.mark.parametrize("host", ROWS)
"""``system-one`` is a row of its own: its key is optional, and it has an option."""


def model(provider: FakeProvider, host: str, **options: Any) -> LM:
    name, place, wire = ROWS[host]
    given: dict[str, Any] = {"api_key": KEY, "retry": patient(retries=0), "cache": False, **wire, **options}
    return LM(name, base_url=provider.url(place), **given)


def script(host: str, p: float = 0.75) -> str:
    return json.dumps({"q0" if host == "gemini" else "urgent": p})


def probabilities(response: Response) -> Any:
    evidence: Any = response.choices[0].evidence
    return evidence["urgent"]["probabilities"]


@HOSTS
def test_refused_key_is_an_authentication_error(host: str) -> None:
    with FakeProvider([script(host)], key="another") as provider:
        lm = model(provider, host)
        with pytest.raises(LMAuthenticationError) as caught:
            lm.respond(QUESTION)
    assert not caught.value.retryable


@HOSTS
@HOWS
async def test_wait_that_the_host_states_is_kept_before_the_retry(host: str, how: str) -> None:
    clock = Clock()
    with FakeProvider([Fault("rate_limit", retry_after=7), script(host)]) as provider:
        response = await ask(how, model(provider, host, retry=patient(clock), limit=False), QUESTION)
    assert probabilities(response) == [0.75, 0.25]
    assert [attempt.error for attempt in response.attempts] == ["rate_limit", None]
    assert response.attempts[1].waited == 7
    assert response.usage == response.attempts[1].usage  # that of a refused request is not counted


@HOSTS
def test_rate_limit_without_retries_has_the_wait(host: str) -> None:
    with FakeProvider([Fault("rate_limit", "Slow down.", retry_after=7)]) as provider:
        lm = model(provider, host)
        with pytest.raises(LMRateLimitError, match="Slow down") as caught:
            lm.respond(QUESTION)
    assert caught.value.retry_after == 7


@pytest.mark.parametrize("host", ["openai", "system-one", "typesafe"])
def test_exchange_and_error_have_the_id_of_the_request(host: str) -> None:
    with FakeProvider([script(host), Fault("server")]) as provider:
        lm = model(provider, host)
        (attempt,) = lm.respond(QUESTION).attempts
        with pytest.raises(LMError) as caught:
            lm.respond(QUESTION)
    assert attempt.request_id
    assert caught.value.request_id not in (None, attempt.request_id)


@HOSTS
@HOWS
async def test_streamed_answer_is_the_whole_one(host: str, how: str) -> None:
    with FakeProvider([script(host)] * 2) as provider:
        lm = model(provider, host)
        events, whole = await stream(how, lm, QUESTION), await ask(how, lm, QUESTION)
    (choice,) = collect(events).choices
    assert (choice.text, choice.evidence) == (whole.choices[0].text, whole.choices[0].evidence)


@HOSTS
@HOWS
async def test_reply_that_does_not_come_ends_by_the_time_limit(host: str, how: str) -> None:
    with FakeProvider([Delivered(script(host), after=math.inf)]) as provider:
        lm = model(provider, host, timeout=0.05)
        with pytest.raises(LMTimeoutError):
            await ask(how, lm, QUESTION)


@HOSTS
async def test_cancelled_call_ends_and_the_next_one_is_answered(host: str) -> None:
    with FakeProvider([Delivered(script(host), after=math.inf), script(host)]) as provider:
        lm = model(provider, host)
        waiting = asyncio.create_task(lm.arespond(QUESTION))
        while not provider.requests:
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert probabilities(await lm.arespond(QUESTION)) == [0.75, 0.25]


@HOSTS
def test_key_is_in_no_text(host: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    broken = Raw({"answers": [{"name": KEY}]})
    with FakeProvider([Fault("auth", f"The key {KEY} is wrong."), Fault("server", KEY), broken], key=KEY) as provider:
        lm = model(provider, host)
        texts = [repr(lm), str(lm.preview(QUESTION).wire), str(lm.dump_state())]
        for _ in range(3):
            with pytest.raises(LMError) as caught:
                lm.respond(QUESTION)
            texts += traceback.format_exception(caught.value)
    assert KEY not in "\n".join([*texts, caplog.text])


# --- costs


def answered(tokens: int = 1_000, written: int = 100) -> Any:
    return Response((Choice('{"urgent": 0.5}'),), Usage(input_tokens=tokens, output_tokens=written))


@pytest.mark.parametrize("host", ["openai", "typesafe"])
def test_cost_is_that_of_the_input(host: str) -> None:
    with FakeProvider([answered()]) as provider:
        lm = model(provider, host)
        response = lm.respond(QUESTION)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (1_000, 100)
    assert response.cost == prices.cost(ROWS[host][0], Usage(input_tokens=1_000)) is not None
    assert response.cost > 0


def test_output_of_the_same_model_on_a_text_wire_costs_money() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=100)
    assert (prices.cost("openai/gpt-6-luna", usage) or 0) > (prices.cost("openai/gpt-6-luna", Usage(1_000)) or 0)


@pytest.mark.parametrize("host", ["system-one", "gemini"])
def test_cost_of_a_model_without_a_price_is_unknown(host: str) -> None:
    with FakeProvider([script(host)]) as provider:
        lm = model(provider, host)
        assert (lm.respond(QUESTION).cost, lm.preview(QUESTION).price) == (None, None)
        assert prices.source(ROWS[host][0]) is None


@HOSTS
def test_price_of_the_user_is_taken_as_it_is(host: str) -> None:
    with FakeProvider([script(host)]) as provider:
        response = model(provider, host, price=Price(input=1, output=2)).respond(QUESTION)
    usage = response.usage
    assert response.cost == pytest.approx(((usage.input_tokens or 0) + 2 * (usage.output_tokens or 0)) / 1e6)


def test_budget_of_money_counts_a_decision_by_its_input() -> None:
    with FakeProvider([answered()]) as provider, Budget(money=1) as budget:
        model(provider, "openai").respond(QUESTION)
    assert budget.spent.money == pytest.approx(prices.cost("openai/gpt-6-luna", Usage(input_tokens=1_000)))


# --- what was sent


def test_question_of_a_schema_alone_is_answered_without_a_signature() -> None:
    schema: JsonObject = {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}}, "required": ["kind"]}
    request = Request(QUESTION.messages, response_format=ResponseFormat(schema))
    with FakeProvider(['{"kind": {"a": 0.25, "b": 0.75}}']) as provider:
        choice = model(provider, "openai").respond(request).choices[0]
    assert (json.loads(choice.text), choice.finish_reason) == ({"kind": "b"}, "stop")


@HOSTS
def test_reply_that_does_not_fit_ends_after_the_retries(host: str) -> None:
    broken = Raw({"answers": {"q9": {"type": "noul", "noul": 2}}, "model": "m"})
    with FakeProvider([broken] * 3) as provider:
        lm = model(provider, host, retry=patient(retries=2))
        with pytest.raises(LMUnexpectedError, match="no question has this name") as caught:
            lm.respond(QUESTION)
    assert len(caught.value.attempts) == len(provider.requests) == 3
