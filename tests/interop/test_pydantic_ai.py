"""pydantic-ai as a client of ``FakeProvider``: it validates replies with the models of the official packages."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from pydantic import BaseModel

from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import FakeProvider, Fault, Streamed

COMMAND = 'pip install "pydantic-ai-slim[openai,anthropic,google]>=2.60"'
pytestmark = [
    pytest.mark.skipif(not find_spec("pydantic_ai"), reason=f"pydantic-ai is not installed: {COMMAND}"),
    pytest.mark.filterwarnings("ignore"),  # those of pydantic-ai
]
WIRES = ["openai", "openai-responses", "anthropic", "gemini", "compatible"]
CALLS = Choice("Sums.", (ToolCall("", "add", {"a": 1, "b": 2}), ToolCall("", "add", {"a": 3, "b": 4})), "Two sums")


@pytest.fixture(autouse=True)
def collect_clients() -> Iterator[None]:
    """Collect the clients inside the test, whose filter ignores the warnings about their open sockets."""
    yield
    gc.collect()


class City(BaseModel):
    """A city and how many live there."""

    name: str
    people: int


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def model_at(provider: FakeProvider, wire: str) -> Any:
    url = provider.url(wire)
    if wire == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = AsyncAnthropic(base_url=url, api_key="any", max_retries=0)
        return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=client))
    if wire == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel("gemini-3-flash", provider=GoogleProvider(base_url=url, api_key="any"))
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    place = OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, api_key="any", max_retries=0))
    kind = OpenAIResponsesModel if wire == "openai-responses" else OpenAIChatModel
    return kind("gpt-4.1", provider=place)


async def run(agent: Any, streamed: bool) -> Any:
    """Run an agent; a streamed run reads the text in deltas and checks that they add up."""
    if not streamed:
        return await agent.run("Hi")
    async with agent.run_stream("Hi") as result:
        deltas = [delta async for delta in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(deltas) == result.all_messages()[-1].text
    return result


each_wire = pytest.mark.parametrize("wire", WIRES)
whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@each_wire
@whole_and_streamed
async def test_text_reasoning_and_usage_are_read(wire: str, streamed: bool) -> None:
    from pydantic_ai import Agent

    answer = Response((Choice("Hello there", reasoning="Hm"),), Usage(7, 3, 2, None, 1))
    async with FakeProvider([answer]) as provider:
        reply = (await run(Agent(model_at(provider, wire)), streamed)).all_messages()[-1]
    assert reply.text == "Hello there"
    assert reply.thinking == (None if wire == "openai" else "Hm")
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (7, 3, 2)
    assert reply.finish_reason == "stop"


@each_wire
async def test_parallel_calls_and_their_results_make_a_turn(wire: str) -> None:
    from pydantic_ai import Agent

    async with FakeProvider([CALLS, "Done"]) as provider:
        assert (await Agent(model_at(provider, wire), tools=[add]).run("Hi")).output == "Done"
    sent = provider.requests[1].request
    assert sent is not None
    results = [result.content for result in sent.messages[2].tool_results]
    assert results == ([{"return_value": 3}, {"return_value": 7}] if wire == "gemini" else ["3", "7"])


@each_wire
async def test_streamed_calls_and_their_results_make_a_turn(wire: str) -> None:
    from pydantic_ai import Agent, AgentRunResultEvent, FunctionToolResultEvent

    results, output = [], None
    async with (
        FakeProvider([CALLS, "All done"], streamed=Streamed(seed=7)) as provider,
        Agent(model_at(provider, wire), tools=[add]).run_stream_events("Hi") as events,
    ):
        async for event in events:
            if isinstance(event, FunctionToolResultEvent):
                results.append(event.part.content)
            elif isinstance(event, AgentRunResultEvent):
                output = event.result.output
    assert (sorted(results), output) == ([3, 7], "All done")


@each_wire
@pytest.mark.parametrize("how", ["tool", "native"])
async def test_structured_output_is_read(wire: str, how: str) -> None:
    from pydantic_ai import Agent, NativeOutput

    values: Any = {"name": "Oslo", "people": 7}
    answer: Any = ToolCall("", "final_result", values) if how == "tool" else '{"name": "Oslo", "people": 7}'
    async with FakeProvider([answer]) as provider:
        agent = Agent(model_at(provider, wire), output_type=City if how == "tool" else NativeOutput(City))
        assert (await agent.run("Where?")).output == City(name="Oslo", people=7)
    sent = provider.requests[0].request
    assert sent is not None
    assert (sent.response_format is not None) == (how == "native")


@each_wire
@pytest.mark.parametrize(("kind", "status"), [("rate_limit", 429), ("context_length", 400)])
async def test_fault_is_an_http_error_with_its_status(wire: str, kind: Any, status: int) -> None:
    from pydantic_ai import Agent, ModelHTTPError

    async with FakeProvider([Fault(kind)] * 6) as provider:
        with pytest.raises(ModelHTTPError) as caught:
            await Agent(model_at(provider, wire)).run("Hi")
    assert caught.value.status_code == status


@each_wire
async def test_refusal_and_truncated_text_are_read(wire: str) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import ContentFilterError

    async with FakeProvider([Choice(refusal="No."), Choice("Lo", finish_reason="length")]) as provider:
        agent = Agent(model_at(provider, wire))
        with pytest.raises(ContentFilterError):
            await agent.run("Hi")
        assert (await agent.run("Hi")).all_messages()[-1].finish_reason == "length"
