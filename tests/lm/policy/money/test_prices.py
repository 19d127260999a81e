"""Prices and their order, and the cost of responses, predictions and trackers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import sigwire
from sigwire import Message, Price, Request, Response, Usage
from sigwire.core.events import collect
from sigwire.core.response import Attempt, Choice
from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.policy.money import catalogs
from sigwire.lm.policy.money.prices import Prices, cost_of
from sigwire.testing import FakeProvider

USED = Usage(input_tokens=1_000, output_tokens=100, cached_tokens=400, cache_write_tokens=100)
ASK = Request((Message.user("Hi"),))
needs_genai = pytest.mark.skipif(find_spec("genai_prices") is None, reason="genai-prices is not installed")


def test_price_counts_cached_and_written_tokens_apart() -> None:
    price = Price(input=1.0, output=10.0, cached=0.1, cache_write=1.25)
    assert price.cost(USED) == pytest.approx((500 + 40 + 125 + 1_000) / 1e6)
    assert Price(input=1.0, output=10.0).cost(USED) == pytest.approx(2_000 / 1e6)


HOUR = replace(USED, hour_write_tokens=60)


def test_tokens_written_for_an_hour_have_their_price() -> None:
    price = Price(input=1.0, output=10.0, cached=0.1, cache_write=1.25)
    assert price.cost(HOUR) == pytest.approx((500 + 40 + 40 * 1.25 + 60 * 2 + 1_000) / 1e6)
    assert replace(price, hour_write=3.0).cost(HOUR) == pytest.approx((500 + 40 + 40 * 1.25 + 60 * 3 + 1_000) / 1e6)


@needs_genai
def test_genai_prices_are_completed_for_tokens_written_for_an_hour() -> None:
    cost = Prices().cost("anthropic/claude-sonnet-4-5", HOUR)
    assert cost == pytest.approx((500 * 3 + 400 * 0.3 + 40 * 3.75 + 60 * 6 + 100 * 15) / 1e6)


@pytest.mark.parametrize("streamed", [False, True])
def test_hour_writes_of_a_call_cost_more(streamed: bool) -> None:
    price = Price(input=1.0, output=10.0, cache_write=1.25)
    with FakeProvider([Response((Choice("4"),), HOUR)]) as provider:
        lm = LM("anthropic/claude-opus-5", base_url=provider.url("anthropic"), api_key="k", price=price)
        response = collect(lm.stream(ASK)) if streamed else lm.respond(ASK)
    assert response.usage.hour_write_tokens == 60
    assert response.cost == pytest.approx(price.cost(HOUR))


@pytest.mark.parametrize("value", [-1, True, "1", None, float("inf")])
def test_price_refuses_what_is_no_price(value: object) -> None:
    with pytest.raises(ConfigurationError, match="input of a Price"):
        Price(input=value, output=1.0)  # type: ignore[arg-type]


def test_price_refuses_an_unknown_keyword() -> None:
    with pytest.raises(ConfigurationError, match="cached"):
        Price(input=1, output=1, cache=0.1)  # type: ignore[call-arg]


def test_first_source_that_knows_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"acme/*": {"input": 3, "output": 3}, "zeta/z": {"input": 4, "output": 4}}))
    monkeypatch.setenv("SIGWIRE_PRICES", str(file))
    table = Prices()
    table.register("acme/m*", Price(input=1, output=1))
    table.register("ACME/M2", Price(input=2, output=2))
    used = Usage(input_tokens=1_000_000)
    assert table.cost("acme/m2", used) == 2.0
    assert table.cost("acme/m1", used) == 1.0
    assert table.cost("acme/other", used) == 3.0
    assert (table.cost("zeta/z", used), table.source("zeta/z")) == (4.0, "the file of SIGWIRE_PRICES")
    assert cost_of("acme/m2", used, Price(input=5, output=5), table=table) == (Decimal(5), "LM(price=)")
    sent = Usage(input_tokens=1_000_000, cost=0.25)
    assert cost_of("acme/m2", sent, Price(input=5, output=5), table=table) == (Decimal("0.25"), "sent by the provider")


@pytest.mark.parametrize("text", ["[]", "no JSON", '{"a/b": {"input": "1", "output": 1}}', '{"a/b": 5}'])
def test_broken_file_of_prices_is_an_error_that_names_the_file(
    text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "prices.json"
    file.write_text(text)
    monkeypatch.setenv("SIGWIRE_PRICES", str(file))
    with pytest.raises(ConfigurationError, match=r"prices\.json"):
        Prices().cost("a/b", USED)


@pytest.mark.parametrize("model", ["offline/lexical", "ollama/qwen3", "llamacpp/any", "vllm/any", "lm_studio/any"])
def test_servers_of_the_user_cost_nothing(model: str) -> None:
    assert Prices().cost(model, USED) == 0.0


@pytest.mark.parametrize("model", ["ollama-cloud/gpt-oss", "acme/unknown", "unknown", ""])
def test_unknown_price_is_none(model: str) -> None:
    assert Prices().cost(model, USED) is None


def test_litellm_is_asked_when_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost_per_token(model: str, **counts: int) -> tuple[float, float]:
        assert model == "acme/large"
        return counts["prompt_tokens"] / 1e3, counts["cache_read_input_tokens"] / 1e3

    package = SimpleNamespace(cost_per_token=cost_per_token, model_cost={"large": {"max_output_tokens": 9_000}})
    monkeypatch.setitem(sys.modules, "litellm", package)  # type: ignore[arg-type]
    assert Prices().cost("litellm/acme/large", USED) == pytest.approx(1.4)
    assert catalogs.output_limit("acme/large") == 9_000
    assert catalogs.output_limit("acme/small") is None


@needs_genai
@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("openai/gpt-4o-mini", (500 * 0.15 + 400 * 0.075 + 100 * 0.15 + 100 * 0.6) / 1e6),
        ("anthropic/claude-sonnet-4-5", (500 * 3 + 400 * 0.3 + 100 * 3.75 + 100 * 15) / 1e6),
    ],
)
def test_genai_prices_knows_cached_and_written_tokens(model: str, cost: float) -> None:
    assert Prices().cost(model, USED) == pytest.approx(cost)
    source = Prices().source(model)
    assert source is not None
    assert source.startswith("prices of genai-prices ")


@needs_genai
@pytest.mark.parametrize("model", ["gemini/gemini-2.5-flash", "xai/grok-4", "vertex/gemini-2.5-flash"])
def test_genai_prices_knows_the_provider_of_each_row(model: str) -> None:
    assert Prices().cost(model, Usage(input_tokens=1_000, output_tokens=10))


@needs_genai
def test_genai_prices_is_loaded_by_the_first_cost_that_is_read() -> None:
    with FakeProvider(["Hello"]) as provider:
        program = f"""
import sys, sigwire
lm = sigwire.LM("openai/gpt-4o-mini", base_url={provider.url("openai")!r}, api_key="any")
response = lm.respond(sigwire.Request((sigwire.Message.user("Hi"),)))
assert "genai_prices" not in sys.modules
assert not any(name.startswith("sigwire.lm.policy.money.") and not name.endswith(".opened") for name in sys.modules)
assert response.cost > 0
assert "genai_prices" in sys.modules
"""
        subprocess.run([sys.executable, "-c", program], check=True)


# --- costs of results


def test_response_costs_the_price_of_its_model() -> None:
    with FakeProvider(lambda request: "Hello") as provider:
        lm = sigwire.LM("openai/m", base_url=provider.url("openai"), api_key="any", price=Price(input=1, output=2))
        response = lm.respond(ASK)
        other = lm.copy(price=Price(input=2, output=4)).respond(ASK)
        copied = lm.copy(temperature=1.0).respond(ASK)
        assert copied.cost == pytest.approx(Price(input=1, output=2).cost(copied.usage))
        assert lm.copy(model="openai/no-such-model").respond(ASK).cost is None
    assert response.cost == pytest.approx(Price(input=1, output=2).cost(response.usage))
    assert response.usage.cost is None
    assert other.cost == pytest.approx(Price(input=2, output=4).cost(other.usage))


async def test_streamed_response_costs_what_the_whole_one_costs() -> None:
    with FakeProvider(lambda request: "Hello") as provider:
        lm = sigwire.LM("openai/m", base_url=provider.url("openai"), api_key="any", price=Price(input=1, output=2))
        whole, awaited = lm.respond(ASK), await lm.arespond(ASK)
        stream, value = lm.stream(ASK), None
        try:
            while True:
                next(stream)
        except StopIteration as stop:
            value = stop.value
    assert value is not None
    for response in (whole, awaited, value):
        assert response.cost == pytest.approx(Price(input=1, output=2).cost(response.usage))
        assert response.cost


def test_lm_refuses_a_price_that_is_a_number() -> None:
    with pytest.raises(ConfigurationError, match="price is a Price"):
        sigwire.LM("openai/m", price=1.0)  # type: ignore[arg-type]


def test_price_is_no_option_of_a_request() -> None:
    with pytest.raises(ConfigurationError, match="price is no option of one request"):
        sigwire.LM("offline/lexical")("Hi", price=Price(input=1, output=2))


def test_cost_of_a_response_is_the_sum_of_its_exchanges() -> None:
    failed, answered = Attempt(error="server"), Attempt("retry", "acme/m", USED, cost=0.5)
    assert Response(attempts=(failed, answered)).cost == 0.5
    assert Response(attempts=(answered, Attempt("ask", "acme/m", USED))).cost is None
    assert Response(usage=Usage(0, 0, cost=0.0)).cost == 0.0
    assert Response(usage=USED, model="acme/m").cost is None
    assert Response().cost is None


def test_registered_price_applies_to_a_scripted_model() -> None:
    sigwire.prices.register("test-registered", Price(input=1.0, output=1.0))
    lm = sigwire.FakeLM(["Hello", "[[ ## answer ## ]]\nyes"], model="test-registered", usage=USED)
    assert lm.respond(ASK).cost == pytest.approx(1_100 / 1e6)
    predict = sigwire.Predict("question -> answer")
    predict.set_lm(lm)
    with sigwire.track_usage() as tracker:
        prediction = predict(question="?")
        with pytest.raises(ConfigurationError):
            predict(question="?")
    assert sigwire.CallReport.of(prediction).cost == pytest.approx(1_100 / 1e6)
    assert tracker.get_total_cost() == {"test-registered": pytest.approx(1_100 / 1e6)}


def test_tracker_names_an_unknown_cost_as_unknown() -> None:
    with sigwire.track_usage() as tracker:
        sigwire.FakeLM(["Hello"], model="known", usage=Usage(input_tokens=1, cost=0.5))("Hi")
        sigwire.FakeLM(["Hello"], model="unknown", usage=USED)("Hi")
    assert tracker.get_total_cost() == {"known": 0.5, "unknown": None}
