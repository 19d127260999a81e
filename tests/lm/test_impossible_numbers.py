"""Numbers of a provider that no request can have: a warning, no count, and a budget charges the reservation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from sigwire import Budget, BudgetSpent, Message, Price, Request, Response, Usage
from sigwire.core.events import collect
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.response import IMPOSSIBLE
from sigwire.errors import LMServerError
from sigwire.lm.client import LM
from sigwire.lm.codecs.embeddings import gemini, ollama, openai
from sigwire.lm.codecs.embeddings.shared import EmbeddingProfile
from sigwire.lm.codecs.shared.errors import read_error_body
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.usage import read_usage
from sigwire.lm.litellm import tables as litellm_tables
from sigwire.lm.policy.money.estimates import input_bound
from tests.grids import grid
from tests.lm.calls import HOWS, ask, forget_keys, stream
from tests.lm.replies import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Double

ASK = Request((Message.user("Hi"),))
PRICE = Price(input=1.0, output=1.0)
RESERVED = input_bound(ASK) + 100
CONVERSE: JsonObject = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 1},
}


class Billing(NamedTuple):
    """A wire: a model, options, an answer, and the paths of the numbers in it."""

    model: str
    body: JsonObject
    input: str
    output: str
    cached: str | None = None
    cost: str | None = None
    options: Mapping[str, str] = {}


_CACHED = "usage.prompt_tokens_details.cached_tokens"
WIRES = {
    "chat": Billing("openai/gpt-4.1", CHAT, "usage.prompt_tokens", "usage.completion_tokens", _CACHED),
    "openrouter": Billing(
        "openrouter/x/y", CHAT, "usage.prompt_tokens", "usage.completion_tokens", _CACHED, "usage.cost"
    ),
    "responses": Billing(
        "openai/gpt-4.1",
        RESPONSES,
        "usage.input_tokens",
        "usage.output_tokens",
        "usage.input_tokens_details.cached_tokens",
        options={"wire": "responses"},
    ),
    "anthropic": Billing("anthropic/claude-sonnet-4-5", MESSAGES, "usage.input_tokens", "usage.output_tokens"),
    "gemini": Billing(
        "gemini/gemini-2.5-flash",
        GEMINI,
        "usageMetadata.promptTokenCount",
        "usageMetadata.candidatesTokenCount",
        "usageMetadata.cachedContentTokenCount",
    ),
    "ollama": Billing("ollama/qwen3", OLLAMA, "prompt_eval_count", "eval_count"),
    "converse": Billing(
        "bedrock/amazon.nova-lite-v1:0",
        CONVERSE,
        "usage.inputTokens",
        "usage.outputTokens",
        options={"region": "eu-west-1"},
    ),
}
BAD: Mapping[str, JsonValue] = {
    "negative": -1000, "infinite": "1e999", "a boolean": True, "text": "12", "absurd": 10**12, "a list": [3],
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


def changed(body: JsonObject, path: str, value: JsonValue) -> bytes:
    """Return the answer with another number, as bytes. The text ``1e999`` becomes a number."""
    copy: Any = json.loads(json.dumps(body))
    *steps, last = path.split(".")
    at = copy
    for step in steps:
        at = at.setdefault(step, {})
    at[last] = value
    return json.dumps(copy).replace('"1e999"', "1e999").encode()


async def answered(how: str, streamed: bool, wire: Billing, body: bytes) -> Response:
    lm = LM(wire.model, api_key="any", transport=Double(body), price=PRICE, max_tokens=100, **wire.options)  # type: ignore[arg-type]
    return collect(await stream(how, lm, ASK)) if streamed else await ask(how, lm, ASK)


@HOWS
@grid("name, member, streamed, bad", WIRES, ["input", "output"], [False, True], BAD)
async def test_impossible_count_is_a_warning_and_costs_the_reservation(
    how: str, name: str, member: str, streamed: bool, bad: str
) -> None:
    wire = WIRES[name]
    with Budget(money=1) as budget:
        response = await answered(how, streamed, wire, changed(wire.body, getattr(wire, member), BAD[bad]))
    assert [warning.feature for warning in response.warnings] == [IMPOSSIBLE]
    left = Usage(output_tokens=1) if member == "input" else Usage(input_tokens=3)
    assert (response.usage, response.choices[0].text) == (left, "hi")
    assert (budget.spent.tokens, budget.spent.estimated) == (RESERVED, 1)
    assert budget.spent.money == pytest.approx(RESERVED / 1e6)


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", [name for name, wire in WIRES.items() if wire.cached])
async def test_more_cached_tokens_than_input_are_not_counted(how: str, name: str, streamed: bool) -> None:
    wire = WIRES[name]
    with Budget(money=1) as budget:
        response = await answered(how, streamed, wire, changed(wire.body, str(wire.cached), 10**9))
    assert [warning.feature for warning in response.warnings] == [IMPOSSIBLE]
    assert response.usage == Usage(input_tokens=3, output_tokens=1)
    assert (budget.spent.tokens, budget.spent.estimated) == (RESERVED, 1)


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("bad", [-100, "1e999", True, 1e9], ids=str)
async def test_impossible_cost_gives_nothing_back_to_a_budget(how: str, bad: JsonValue, streamed: bool) -> None:
    wire = WIRES["openrouter"]
    with Budget(money=1) as budget:
        response = await answered(how, streamed, wire, changed(wire.body, str(wire.cost), bad))
    assert [warning.feature for warning in response.warnings] == [IMPOSSIBLE]
    assert response.usage == Usage(input_tokens=3, output_tokens=1)
    assert budget.spent.money == pytest.approx(RESERVED / 1e6)


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
async def test_count_far_above_the_reservation_is_a_warning_and_costs_the_reservation(how: str, streamed: bool) -> None:
    wire = WIRES["chat"]
    with Budget(money=1) as budget:
        response = await answered(how, streamed, wire, changed(wire.body, wire.output, 900_000_000))
    assert [warning.feature for warning in response.warnings] == [IMPOSSIBLE]
    assert response.usage == Usage()
    assert budget.spent.tokens == RESERVED


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
async def test_budget_ends_when_every_second_usage_is_negative(how: str, streamed: bool) -> None:
    wire = WIRES["chat"]
    body: Any = json.loads(json.dumps(CHAT))
    sent = 0
    with Budget(money=RESERVED * 5.5 / 1e6):
        for number in range(100):
            count = 100 if number % 2 else -100
            body["usage"] = {"prompt_tokens": count, "completion_tokens": count}
            try:
                await answered(how, streamed, wire, json.dumps(body).encode())
            except BudgetSpent:
                break
            sent += 1
    assert sent <= 6


# --- where a number is read by another reader


@pytest.mark.parametrize("bad", BAD)
def test_impossible_counts_of_litellm_are_not_used(bad: str) -> None:
    value = float("inf") if BAD[bad] == "1e999" else BAD[bad]
    usage, warnings = read_usage({"prompt_tokens": value, "completion_tokens": 1}, litellm_tables.USAGE)
    assert (usage, len(warnings)) == (Usage(output_tokens=1), 1)


_EMBEDDINGS: Sequence[Any] = [
    (openai, lambda tokens, vector: {"data": [{"embedding": vector}], "usage": {"prompt_tokens": tokens}}),
    (
        gemini,
        lambda tokens, vector: {"embeddings": [{"values": vector}], "usageMetadata": {"promptTokenCount": tokens}},
    ),
    (ollama, lambda tokens, vector: {"embeddings": [vector], "prompt_eval_count": tokens}),
]


@pytest.mark.parametrize(("codec", "body_of"), _EMBEDDINGS, ids=["openai", "gemini", "ollama"])
def test_impossible_numbers_of_embeddings_are_a_warning_or_an_error(codec: Any, body_of: Any) -> None:
    target: Any = Target("p", "m", EmbeddingProfile())
    sent = codec.encode(ASK, target)
    for value in BAD.values():
        response = codec.decode(body_of(value, [0.5]), sent, target)
        assert (response.usage, [warning.feature for warning in response.warnings]) == (Usage(), [IMPOSSIBLE])
    assert codec.decode(body_of(3, [0.5]), sent, target).usage == Usage(input_tokens=3)
    for vector in (["x"], [float("inf")], [True], [None]):
        with pytest.raises(LMServerError, match="finite numbers"):
            codec.decode(body_of(3, vector), sent, target)


@pytest.mark.parametrize("text", ["-5", "nan", "inf", "1e300", "1e999", "soon"])
def test_impossible_wait_of_a_header_is_none(text: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        assert read_error_body(429, {name: text}, b"{}").retry_after is None


def test_tokens_of_a_reply_without_usage_are_unknown_and_no_fault() -> None:
    assert read_usage({"prompt_tokens": None}, litellm_tables.USAGE) == (Usage(), ())
