"""Programs streamed over every wire: deltas arrive at once; a stream closed after any event keeps a state to continue from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sigwire.core.events import FieldDelta
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.client import LM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider, Gate, Streamed
from tests.grids import grid

MODELS = {
    "openai": ("openai/gpt-4.1-mini", None),
    "openai-responses": ("openai/gpt-4.1-mini", "responses"),
    "anthropic": ("anthropic/claude-haiku-4-5", None),
    "gemini": ("gemini/gemini-3-flash", None),
    "ollama": ("ollama/qwen3", None),
}
SUBMIT = ToolCall("call_s", "submit", {"answer": 3})
CALLS = Choice("I think.", (ToolCall("call_1", "add", {"a": 1, "b": 2}), ToolCall("call_2", "add", {"a": 3, "b": 4})))


def model(provider: FakeProvider, wire: str) -> LM:
    name, own_wire = MODELS[wire]
    return LM(name, base_url=provider.url(wire), api_key="any", wire=own_wire)


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


class Around(Module):
    """A user's module around another module."""

    def __init__(self, part: Module) -> None:
        self.part = part

    def forward(self, question: str) -> Any:
        return self.part(question=question)


class AwaitedAround(Module):
    """The same, awaited."""

    def __init__(self, part: Module) -> None:
        self.part = part

    async def aforward(self, question: str) -> Any:
        return await self.part.acall(question=question)


def _bare(part: Module) -> Module:
    return part


PLACES: list[Callable[[Module], Module]] = [_bare, Around, AwaitedAround]


@grid("wire, place", MODELS, PLACES)
def test_first_delta_is_emitted_before_provider_sends_more(wire: str, place: Callable[[Module], Module]) -> None:
    gate = Gate(6)
    answer = "[[ ## answer ## ]]\n" + "one two three four five " * 10
    with FakeProvider([Streamed(answer, cut=25, gate=gate)]) as provider:
        events = place(Predict("question -> answer", lm=model(provider, wire))).stream(question="?")
        first = next(event for event in events if isinstance(event, FieldDelta))
        (sent,) = provider.requests
        assert sent.stream is not None
        assert sent.stream.sent <= 6 < sent.stream.total
        gate.open()
        rest = [event.text for event in events if isinstance(event, FieldDelta)]
    assert first.text + "".join(rest) == answer.removeprefix("[[ ## answer ## ]]\n").rstrip()


@grid("wire, place", MODELS, PLACES)
@pytest.mark.long
def test_agent_closed_after_any_event_continues_from_its_history(wire: str, place: Callable[[Module], Module]) -> None:
    agent: ReAct[..., Any] = ReAct("question -> answer: int", tools=[add])
    program = place(agent)

    def closed_after(count: int) -> tuple[BaseException | None, list[str | None]]:
        with FakeProvider([Streamed(CALLS, cut=6), Streamed(SUBMIT, cut=6)]) as provider:
            agent.set_lm(model(provider, wire))
            with program.stream(question="?") as events:
                read = sum(1 for _ in zip(range(count), events, strict=False))
            ended = [sent.stream.wait(60) for sent in provider.requests if sent.stream is not None]
            return (events.error if read == count else None), ended

    count = 1
    while (left := closed_after(count))[0] is not None:
        assert set(left[1]) <= {"client left", "complete"}
        run = AgentRun.of(left[0])
        assert run.termination_reason == "cancelled"
        with FakeProvider([SUBMIT]) as provider:  # the fake provider is as strict as the real one
            agent.set_lm(model(provider, wire))
            assert agent(history=run.history).answer == 3
        count += 1
    assert count > 12
