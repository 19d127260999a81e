"""Rate limits of the fake provider: buckets on a fake clock; refusals, headers and counters on every wire."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, LMError, LMRateLimitError, LMServerError
from sigwire.lm.client import LM
from sigwire.testing import Delivered, FakeProvider, Fault, Gate, RateLimit, Streamed, Traffic
from sigwire.testing.rate_limit import Turnstile
from tests.testing.test_fake_provider import HI, post

MODELS = {
    "openai": "openai/m",
    "openai-responses": "openai/m",
    "anthropic": "anthropic/m",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/m",
}


ASKED = Request((Message.user("Hi"),))


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def admitted(turnstile: Turnstile, count: int, tokens: int = 1) -> list[bool]:
    return [turnstile.admit("key", tokens).fault is None for _ in range(count)]


def waits(faults: Sequence[Fault | None]) -> list[float | None]:
    return [fault.retry_after for fault in faults if fault]


def model(provider: FakeProvider, wire: str = "openai", **options: Any) -> LM:
    named: Any = {"wire": "responses"} if wire == "openai-responses" else {}
    given = {"api_key": "any", "num_retries": 0, "limit": False, **named, **options}
    return LM(MODELS[wire], base_url=provider.url(wire), **given)


def wait_for_idle(provider: FakeProvider) -> Traffic:
    """Return the counters after the last byte of the last answer, which a client may have read before its thread ends."""
    while (traffic := next(iter(provider.traffic.values()))).now:
        time.sleep(0.001)
    return traffic


# --- buckets -------------------------------------------------------------------------------------------


def test_token_bucket_admits_its_burst_and_then_its_rate() -> None:
    clock = Time()
    turnstile = Turnstile(RateLimit(requests=20, per=1, burst=2), clock)
    assert admitted(turnstile, 3) == [True, True, False]
    clock.now += 0.05
    assert admitted(turnstile, 2) == [True, False]
    clock.now += 60
    assert admitted(turnstile, 3) == [True, True, False]


def test_fixed_window_admits_its_requests_at_the_start_of_each_window() -> None:
    clock = Time()
    turnstile = Turnstile(RateLimit(requests=2, per=10, fixed=True), clock)
    assert admitted(turnstile, 3) == [True, True, False]
    clock.now += 9.9
    refused = turnstile.admit("key", 1)
    assert waits([refused.fault]) == [pytest.approx(0.1, abs=0.002)]
    clock.now += 10.2  # 0.1 s into the third window
    assert admitted(turnstile, 3) == [True, True, False]
    assert waits([turnstile.admit("key", 1).fault]) == [pytest.approx(9.9, abs=0.002)]


def test_tokens_have_a_bucket_and_a_larger_request_passes_when_it_is_full() -> None:
    clock = Time()
    turnstile = Turnstile(RateLimit(tokens=100, per=1), clock)
    assert admitted(turnstile, 2, tokens=60) == [True, False]
    clock.now += 0.2
    assert admitted(turnstile, 1, tokens=60) == [True]
    assert admitted(turnstile, 1, tokens=500) == [False]
    clock.now += 1
    assert admitted(turnstile, 2, tokens=500) == [True, False]


@pytest.mark.parametrize(("stated", "expected"), [("exact", 0.05), (1, 1), (None, None)])
def test_refusal_states_the_exact_wait_or_a_constant_or_none(stated: Any, expected: float | None) -> None:
    turnstile = Turnstile(RateLimit(requests=20, per=1, burst=1, retry_after=stated), Time())
    assert waits([turnstile.admit("key", 1).fault for _ in range(2)] + [Fault(retry_after=7)]) == [expected, 7]


def test_keys_have_buckets_and_counters_of_their_own() -> None:
    turnstile = Turnstile(RateLimit(requests=1), Time())
    for key in ("a", "b", "b"):
        turnstile.see(key)
        turnstile.admit(key, 1)
    turnstile.finish("a")
    assert turnstile.traffic == {"a": Traffic(1, 1, 0, 0, 1), "b": Traffic(2, 1, 1, 1, 1)}


@pytest.mark.parametrize("name", ["requests", "tokens", "concurrency", "per", "burst"])
def test_limit_that_is_not_positive_is_refused(name: str) -> None:
    options: Any = {name: 0}
    with pytest.raises(ConfigurationError, match=f"{name}=0 is no limit"):
        RateLimit(**options)


# --- on the wires --------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", MODELS)
def test_refused_request_is_the_rate_limit_error_of_the_wire_with_its_wait(wire: str) -> None:
    with FakeProvider("yes", limit=RateLimit(requests=1, per=30)) as provider:
        lm = model(provider, wire)
        assert lm("Hi") == ["yes"]
        with pytest.raises(LMRateLimitError) as caught:
            lm("Hi")
        assert 29 < (caught.value.retry_after or 0) <= 30
        assert provider.requests[1].status == 429
        assert provider.traffic["any"].refused == 1


@pytest.mark.parametrize("wire", MODELS)
def test_refused_request_states_no_wait_if_the_limit_states_none(wire: str) -> None:
    with FakeProvider("yes", limit=RateLimit(requests=1, retry_after=None, headers=False)) as provider:
        lm = model(provider, wire)
        lm("Hi")
        with pytest.raises(LMRateLimitError) as caught:
            lm("Hi")
    assert caught.value.retry_after is None


@pytest.mark.parametrize(("wire", "status"), [("openai", 503), ("anthropic", 529), ("gemini", 503), ("ollama", 503)])
def test_request_above_the_concurrency_is_an_overload_of_the_wire(wire: str, status: int) -> None:
    gate = Gate()
    provider = FakeProvider(["one", "two"], streamed=Streamed(gate=gate), limit=RateLimit(concurrency=1))
    with provider, ThreadPoolExecutor(1) as pool:
        lm = model(provider, wire)
        first = pool.submit(lambda: [event.kind for event in lm.stream(ASKED)])
        while not first.done() and not provider.traffic:
            time.sleep(0.001)
        with pytest.raises(LMServerError) as caught:
            lm("Hi")
        gate.open()
        first.result()
        wait_for_idle(provider)
        assert caught.value.status == status
        assert lm("Hi") == ["two"]
        counts = wait_for_idle(provider)
    assert (counts.accepted, counts.refused, counts.most) == (2, 1, 1)


def test_openai_replies_announce_requests_and_tokens() -> None:
    limit = RateLimit(requests=500, tokens=60_000)
    with FakeProvider(["yes", Fault("server")], limit=limit) as provider:
        headers = [post(provider.url("openai"))[2] for _ in range(2)]
    names = [
        f"x-ratelimit-{what}-{name}" for what in ("limit", "remaining", "reset") for name in ("requests", "tokens")
    ]
    assert [headers[0][name] for name in names[:4]] == [
        "500",
        "60000",
        "499",
        headers[0]["x-ratelimit-remaining-tokens"],
    ]
    assert headers[0]["x-ratelimit-reset-requests"] == "120ms"
    assert set(names) <= set(headers[1])
    assert headers[1]["x-ratelimit-remaining-requests"] == "498"


def test_anthropic_replies_announce_requests_with_the_time_of_the_reset() -> None:
    body = {**HI, "max_tokens": 9}
    given = {"x-api-key": "any", "anthropic-version": "2023-06-01"}
    with FakeProvider("yes", limit=RateLimit(requests=1, per=30)) as provider:
        replies = [post(provider.url("anthropic"), body, given, "/v1/messages") for _ in range(2)]
    assert [status for status, _, _ in replies] == [200, 429]
    for _, _, headers in replies:
        assert headers["anthropic-ratelimit-requests-limit"] == "1"
        assert headers["anthropic-ratelimit-requests-remaining"] == "0"
        reset = datetime.strptime(headers["anthropic-ratelimit-requests-reset"], "%Y-%m-%dT%H:%M:%SZ")
        assert 28 < (reset.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds() < 32


@pytest.mark.parametrize("wire", ["gemini", "ollama"])
def test_other_wires_announce_nothing(wire: str) -> None:
    with FakeProvider("yes", limit=RateLimit(requests=9)) as provider:
        url = provider.url(wire)
        if wire == "gemini":
            said = {"contents": [{"parts": [{"text": "Hi"}]}]}
            headers = post(url, said, {"x-goog-api-key": "any"}, "/models/m:generateContent")[2]
        else:
            headers = post(url, {**HI, "stream": False}, {}, "/api/chat")[2]
    assert [name for name in headers if "ratelimit" in name.lower()] == []


def test_refusal_uses_up_no_answer_and_is_sent_without_the_latency() -> None:
    provider = FakeProvider(
        ["one", "two"], limit=RateLimit(requests=1, per=0.2, retry_after=1), delivered=Delivered(after=0.1)
    )
    with provider:
        assert post(provider.url("openai"))[0] == 200
        while (status := post(provider.url("openai"))[0]) == 429:
            time.sleep(0.02)
        counts = provider.traffic["secret"]
    assert (status, provider.script.remaining) == (200, 0)
    assert counts.seen == counts.accepted + counts.refused


def test_invalid_request_is_seen_and_not_counted_by_the_limit() -> None:
    with FakeProvider("yes", limit=RateLimit(requests=1)) as provider:
        post(provider.url("openai"), {"model": "m"})
        assert provider.traffic == {"secret": Traffic(seen=1)}


@pytest.mark.parametrize("clients", [100, pytest.param(500, marks=pytest.mark.long)])
def test_clients_at_once_each_get_their_answer(clients: int) -> None:
    provider = FakeProvider(lambda request: request.messages[-1].text, delivered=Delivered(after=0.3), keep=0)
    with provider, ThreadPoolExecutor(clients) as pool:
        lm = model(provider)
        answers = list(pool.map(lambda number: lm(str(number))[0], range(clients)))
        counts = wait_for_idle(provider)
    assert answers == [str(number) for number in range(clients)]
    assert (counts.accepted, counts.now) == (clients, 0)
    assert provider.requests == ()


def test_error_of_a_refusal_is_an_error_of_sigwire_in_a_stream() -> None:
    with FakeProvider("yes", limit=RateLimit(requests=1)) as provider:
        lm = model(provider)
        assert "".join(event.text for event in lm.stream(ASKED) if event.kind == "text_delta") == "yes"
        with pytest.raises(LMError, match="Rate limit reached"):
            list(lm.stream(ASKED))
