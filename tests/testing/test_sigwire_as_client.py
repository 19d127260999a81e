"""sigwire's own client against the fake provider: the same program on every wire gives the same calls and the same answer."""

from __future__ import annotations

import pytest

import sigwire
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
