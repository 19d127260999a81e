"""sigwire's own client against the fake provider: the same program on every wire gives the same calls and the same answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import sigwire
from sigwire.core.events import collect
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import LMError
from sigwire.testing import FakeProvider, Fault, Gate, Streamed
from tests.strategies import at_most

MODELS = {
    "openai": "openai/gpt-4.1-mini",
    "openai-responses": "openai/gpt-4.1-mini",
    "anthropic": "anthropic/claude-haiku-4-5",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/qwen3",
}
WIRES = {"openai-responses": {"wire": "responses"}}


def weather(city: str, days: int = 1) -> str:
    """The weather forecast for a city.

    Args:
        city: Name of the city.
        days: How many days ahead.
    """
    return f"rain in {city}"


@pytest.mark.parametrize("how", ["called", "awaited"])
@pytest.mark.parametrize("wire", MODELS)
async def test_an_agent_gives_the_same_calls_and_answer_on_every_wire(wire: str, how: str) -> None:
    question = "What will the weather in Oslo be for 3 days?"
    agent = sigwire.ReAct("question -> answer", tools=[weather])
    with FakeProvider(sigwire.LM("offline/lexical")) as provider:
        lm = sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any", **WIRES.get(wire, {}))
        agent.set_lm(lm)
        result = agent(question=question) if how == "called" else await agent.acall(question=question)
    assert [call.arguments for call in result.steps[0].calls] == [{"city": "Oslo", "days": 3}]
    assert "rain" in result.answer
    assert {(sent.wire, sent.status) for sent in provider.requests} == {(wire, 200)}


class City(BaseModel):
    """A city and how many live there."""

    name: str
    people: int | None = None


@pytest.mark.parametrize("how", ["called", "awaited"])
@pytest.mark.parametrize("wire", MODELS)
async def test_a_program_has_the_same_structured_output_on_every_wire(wire: str, how: str) -> None:
    program = sigwire.Predict(sigwire.make_signature("question -> city: City, sure: bool", custom_types={"City": City}))
    with (
        FakeProvider(['{"city": {"name": "Oslo", "people": 7}, "sure": true}']) as provider,
        sigwire.context(lm=model_at(provider, wire), adapter=sigwire.JSONAdapter()),
    ):
        said = program(question="Where?") if how == "called" else await program.acall(question="Where?")
    assert (said.city, said.sure) == (City(name="Oslo", people=7), True)
    (sent,) = provider.requests
    assert sent.request is not None
    wanted = sent.request.response_format
    assert wanted is not None
    assert wanted.schema is not None
    assert wanted.schema["required"] == ["city", "sure"]


@pytest.mark.parametrize("wire", ["openai", "gemini"])
def test_several_choices_come_in_one_exchange(wire: str) -> None:
    with FakeProvider(["one", "two", "three"]) as provider:
        lm = sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any")
        response = lm.respond(Request((Message.user("Hi"),), options={"n": 3}))
    assert [choice.text for choice in response.choices] == ["one", "two", "three"]
    assert len(provider.requests) == 1


@pytest.mark.parametrize("wire", [wire for wire in MODELS if wire != "anthropic"])
def test_token_log_probabilities_are_sent_when_requested(wire: str) -> None:
    token = {"token": "Hey", "logprob": -1.5, "bytes": [72, 101, 121], "top_logprobs": []}
    with FakeProvider(["Hi you", Choice("Hey", logprobs={"content": [token]}), "Hi"]) as provider:
        lm = sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any", **WIRES.get(wire, {}))
        asked = Request((Message.user("Hi"),), options={"logprobs": True, "top_logprobs": 1})
        made_up, scripted = (lm.respond(asked).choices[0].logprobs for _ in range(2))
        assert lm.respond(Request((Message.user("Hi"),))).choices[0].logprobs is None
    assert [(one["token"], one["logprob"]) for one in made_up["content"]] == [("Hi", -0.25), (" you", -0.25)]  # type: ignore[index,call-overload,union-attr]
    assert len(made_up["content"][0]["top_logprobs"]) == 1  # type: ignore[index,call-overload]
    assert [(one["token"], one["logprob"]) for one in scripted["content"]] == [("Hey", -1.5)]  # type: ignore[index,call-overload,union-attr]


ASKED = Request(
    (Message.user("Hi"),), ({"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}},)
)
CALLS = (ToolCall("call_a", "add", {"city": "Ōslo", "days": 3}), ToolCall("call_b", "add", {}))


def model_at(provider: FakeProvider, wire: str) -> sigwire.LM:
    return sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any", num_retries=0, **WIRES.get(wire, {}))


def canonical(response: Response) -> list[Any]:
    """Return the canonical fields of a response, without ``raw``."""
    return [*(replace(choice, raw=None) for choice in response.choices), response.usage, response.model, response.id]


@pytest.mark.parametrize("wire", MODELS)
@at_most(10)
@given(seed=st.integers(), packets=st.integers(1, 400))
def test_streamed_answer_equals_the_whole_answer(wire: str, seed: int, packets: int) -> None:
    answer = Response((Choice("Let me see.\nSo: 4", CALLS, "Two sums"),), Usage(10, 7, 4, None, 2))
    with FakeProvider([answer]) as provider:
        whole = model_at(provider, wire).respond(ASKED)
    with FakeProvider([Streamed(answer, seed=seed, packets=packets)]) as provider:  # a new provider: its ids start at 1
        streamed = collect(model_at(provider, wire).stream(ASKED))
    assert canonical(streamed) == canonical(whole)


@pytest.mark.parametrize("wire", MODELS)
async def test_awaited_stream_equals_the_whole_answer(wire: str) -> None:
    answer = Response((Choice("Let me see", CALLS),), Usage(10, 7))
    async with FakeProvider([answer]) as provider:
        whole = await model_at(provider, wire).arespond(ASKED)
    async with FakeProvider([answer]) as provider:
        streamed = collect([event async for event in model_at(provider, wire).astream(ASKED)])
    assert canonical(streamed) == canonical(whole)


HELLO = Request((Message.user("Hi"),))


@pytest.mark.parametrize("wire", MODELS)
def test_closing_a_stream_closes_the_connection(wire: str) -> None:
    gate = Gate(6)
    with FakeProvider([Streamed("one two three four five six seven eight", gate=gate)]) as provider:
        events = model_at(provider, wire).stream(HELLO)
        assert next(event for event in events if event.kind == "text_delta")
        events.close()
        progress = provider.requests[0].stream
        assert progress is not None
        assert progress.wait() == "client left"
        assert progress.sent <= 6


@pytest.mark.parametrize("wire", MODELS)
async def test_closing_an_awaited_stream_closes_the_connection(wire: str) -> None:
    gate = Gate(6)
    async with FakeProvider([Streamed("one two three four five six seven eight", gate=gate)]) as provider:
        events = model_at(provider, wire).astream(HELLO)
        async for event in events:
            if event.kind == "text_delta":
                break
        await events.aclose()
        progress = provider.requests[0].stream
        assert progress is not None
        assert await asyncio.to_thread(progress.wait) == "client left"


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize(
    "how", [{}, {"clean": True}, {"fault": Fault("overloaded")}], ids=["broken off", "no end", "an error inside"]
)
def test_stream_without_a_proper_end_is_a_retryable_error(wire: str, how: dict[str, Any]) -> None:
    answer = Streamed("one two three four five six seven eight", stop_after=4, **how)
    with FakeProvider([answer]) as provider, pytest.raises(LMError) as caught:
        list(model_at(provider, wire).stream(HELLO))
    assert caught.value.retryable
