"""The ids of an agent's calls, if a model repeats ids: one id for each call, in events, steps, results and histories."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.events import Finished, ToolCallEnd, ToolCallStart, ToolDone
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall
from sigwire.dspy.lm import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider
from tests.grids import grid

NATIVE = Capabilities(native_tools=True, parallel_tool_calls=True, tool_choice=True)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def turns(call_id: str) -> list[list[ToolCall]]:
    """Return the calls of three turns, all with one id."""
    first = [ToolCall(call_id, "add", {"a": n, "b": 1}) for n in (1, 2, 3)]
    return [first, [ToolCall(call_id, "add", {"a": 7, "b": 1})], [ToolCall(call_id, "submit", {"answer": "8"})]]


class OpenAIShaped(BaseLM):
    """A user's model: its answers are dicts."""

    def __init__(self, call_id: str) -> None:
        super().__init__("mine", capabilities=NATIVE)
        self.answers = iter(turns(call_id))

    def forward(self, prompt: str | None = None, messages: Any = None, **kwargs: Any) -> Any:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in next(self.answers)
        ]
        return {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}


class Plain:
    """A user's model without a base class."""

    model, capabilities = "plain", NATIVE

    def __init__(self, call_id: str) -> None:
        self.answers = iter(turns(call_id))

    def respond(self, request: Request) -> Response:
        return Response((Choice("", tuple(next(self.answers)), finish_reason="tool_calls"),))

    async def arespond(self, request: Request) -> Response:
        return self.respond(request)


@contextmanager
def fake(call_id: str) -> Generator[Any]:
    yield FakeLM([Choice("", tuple(calls), finish_reason="tool_calls") for calls in turns(call_id)])


@contextmanager
def base(call_id: str) -> Generator[Any]:
    yield OpenAIShaped(call_id)


@contextmanager
def plain(call_id: str) -> Generator[Any]:
    yield Plain(call_id)


def over(wire: str, model: str, **options: Any) -> Callable[[str], Any]:
    @contextmanager
    def serve(call_id: str) -> Generator[Any]:
        with FakeProvider(list[Any](turns(call_id))) as provider:
            yield LM(model, base_url=provider.url(wire), api_key="any", num_retries=0, **options)

    return serve


MODELS: dict[str, Callable[[str], Any]] = {
    "FakeLM": fake,
    "BaseLM": base,
    "no base class": plain,
    "chat": over("compatible", "openai/m"),
    "responses": over("openai-responses", "openai/gpt-5.5"),
    "anthropic": over("anthropic", "anthropic/claude-haiku-4-5"),
    "gemini": over("gemini", "gemini/gemini-2.5-flash"),
    "ollama": over("ollama", "ollama/qwen3"),
}


async def run(how: str, agent: ReAct[..., Any]) -> tuple[list[Any], AgentRun]:
    if how == "call":
        return [], AgentRun.of(agent(question="q"))
    if how == "acall":
        return [], AgentRun.of(await agent.acall(question="q"))
    if how == "stream":
        events = list(agent.stream(question="q"))
    else:
        events = [event async for event in agent.astream(question="q")]
    assert isinstance(events[-1], Finished)
    return events, AgentRun.of(events[-1].value)


@grid("name, how, call_id", MODELS, ["call", "acall", "stream", "astream"], ["", "call_0"])
async def test_each_call_has_one_id_everywhere_when_the_model_repeats_ids(name: str, how: str, call_id: str) -> None:
    with MODELS[name](call_id) as lm:
        agent = ReAct("question -> answer", tools=[add])
        agent.set_lm(lm)
        events, done = await run(how, agent)
    made = [[call.id for call in step.calls] for step in done.steps]
    ids = [each for turn in made for each in turn]
    assert len(set(ids)) == len(ids) == 5
    assert [[result.id for result in step.results] for step in done.steps] == made
    messages = [turn for turn in done.history if isinstance(turn, Message)]
    assert [call.id for message in messages for call in message.tool_calls] == ids
    assert [result.id for message in messages for result in message.tool_results] == ids
    if events:
        assert [event.id for event in events if isinstance(event, ToolCallStart)] == ids
        assert [event.call.id for event in events if isinstance(event, ToolCallEnd)] == ids
        assert sorted(event.result.id for event in events if isinstance(event, ToolDone)) == sorted(ids)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["call", "stream"])
def test_reasked_calls_have_new_ids_when_the_model_repeats_ids(is_streamed: bool) -> None:
    lm = FakeLM([ToolCall("x", "add", {"a": "?"}), ToolCall("x", "add", {"a": 1, "b": 2})])
    predict = Predict("question, tools: list[Tool] -> calls: ToolCalls", lm=lm, max_reasks=1)
    if is_streamed:
        events = list(predict.stream(question="q", tools=[add]))
        assert [event.call.id for event in events if isinstance(event, ToolCallEnd)] == ["x", "call_0"]
        assert isinstance(events[-1], Finished)
        result = events[-1].value
    else:
        result = predict(question="q", tools=[add])
    assert [call.id for call in result.calls] == ["call_0"]
