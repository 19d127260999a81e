"""sigwire's own client against the fake provider: the same program on every wire gives the same calls and the same answer."""

from __future__ import annotations

import pytest

import sigwire
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.testing import FakeProvider

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


@pytest.mark.parametrize("wire", MODELS)
def test_an_agent_gives_the_same_calls_and_answer_on_every_wire(wire: str) -> None:
    question = "What will the weather in Oslo be for 3 days?"
    agent = sigwire.ReAct("question -> answer", tools=[weather])
    with FakeProvider(sigwire.LM("offline/lexical")) as provider:
        lm = sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any", **WIRES.get(wire, {}))
        agent.set_lm(lm)
        result = agent(question=question)
    assert [call.arguments for call in result.steps[0].calls] == [{"city": "Oslo", "days": 3}]
    assert "rain" in result.answer
    assert {(sent.wire, sent.status) for sent in provider.requests} == {(wire, 200)}


@pytest.mark.parametrize("wire", ["openai", "gemini"])
def test_several_answers_come_in_one_trip(wire: str) -> None:
    with FakeProvider(["one", "two", "three"]) as provider:
        lm = sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any")
        response = lm.respond(Request((Message.user("Hi"),), options={"n": 3}))
    assert [choice.text for choice in response.choices] == ["one", "two", "three"]
    assert len(provider.requests) == 1


@pytest.mark.parametrize("wire", [wire for wire in MODELS if wire != "anthropic"])
def test_probabilities_of_tokens_come_where_they_are_asked_for(wire: str) -> None:
    token = {"token": "Hey", "logprob": -1.5, "bytes": [72, 101, 121], "top_logprobs": []}
    with FakeProvider(["Hi you", Choice("Hey", logprobs={"content": [token]}), "Hi"]) as provider:
        lm = sigwire.LM(MODELS[wire], base_url=provider.url(wire), api_key="any", **WIRES.get(wire, {}))
        asked = Request((Message.user("Hi"),), options={"logprobs": True, "top_logprobs": 1})
        made_up, scripted = (lm.respond(asked).choices[0].logprobs for _ in range(2))
        assert lm.respond(Request((Message.user("Hi"),))).choices[0].logprobs is None
    assert [(one["token"], one["logprob"]) for one in made_up["content"]] == [("Hi", -0.25), (" you", -0.25)]  # type: ignore[index,call-overload,union-attr]
    assert len(made_up["content"][0]["top_logprobs"]) == 1  # type: ignore[index,call-overload]
    assert [(one["token"], one["logprob"]) for one in scripted["content"]] == [("Hey", -1.5)]  # type: ignore[index,call-overload,union-attr]
