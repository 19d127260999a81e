"""The provider's request id of every exchange: in the log of a call, and on an error about an answer."""

from __future__ import annotations

from typing import Any

import pytest

import sigwire
from sigwire import AdapterParseError, AgentRun, Predict, ReAct, ReActStep
from sigwire.lm.client import LM
from sigwire.lm.http.transport import HttpTransport
from sigwire.testing import FakeProvider, Fault
from tests.lm.calls import HELLO, KEY, patient
from tests.modules.code.driving import MODES, called

WIRES = {"openai": "openai/gpt-4.1", "anthropic": "anthropic/claude-opus-5"}


def model(provider: FakeProvider, wire: str, **options: Any) -> LM:
    return LM(WIRES[wire], base_url=provider.url(wire), api_key=KEY, retry=patient(), max_tokens=50, **options)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wire", WIRES)
def test_each_exchange_has_the_request_id_of_its_reply(wire: str, streamed: bool) -> None:
    with FakeProvider([Fault("server"), "Hello"]) as provider:
        response = sigwire.effects.steps.run(model(provider, wire).steps(HELLO, streamed=streamed))
    ids = [attempt.request_id for attempt in response.attempts]
    assert [attempt.error for attempt in response.attempts] == ["server", None]
    assert len({*ids}) == 2
    assert all(ids)


@pytest.mark.parametrize("mode", MODES)
def test_parse_error_has_the_request_id_and_every_answer_of_the_call(mode: str) -> None:
    with FakeProvider(["first", "second", "third"]) as provider:
        predict = Predict("question -> count: int, unit", lm=model(provider, "openai"), max_reasks=2)
        with pytest.raises(AdapterParseError) as caught:
            called(mode, predict, question="?")
    error = caught.value
    assert [answer.text for answer in error.answers] == ["first", "second", "third"]
    assert error.text == "third"
    assert error.request_id == error.attempts[-1].request_id is not None
    assert error.where is not None
    assert error.where.request_id == error.request_id


def test_error_without_reasks_has_its_answer() -> None:
    predict = Predict("question -> count: int, unit", lm=sigwire.FakeLM(["only"]))
    with pytest.raises(AdapterParseError) as caught:
        predict(question="?")
    assert [answer.text for answer in caught.value.answers] == ["only"]
    assert caught.value.request_id is None


@pytest.mark.parametrize("mode", MODES)
def test_run_of_an_agent_has_the_seconds_of_each_call_and_a_json(mode: str) -> None:
    def find(n: int) -> int:
        """Find a number."""
        return n

    agent: Any = ReAct("question -> answer", tools=[find])
    calls = [sigwire.ToolCall(f"c{n}", "find", {"n": n}) for n in range(3)]
    agent.set_lm(sigwire.FakeLM([calls, sigwire.ToolCall("d", "submit", {"answer": "done"})]))
    result = called(mode, agent, question="?")
    run = AgentRun.of(result)
    first: ReActStep = run.steps[0]
    assert len(first.call_seconds) == len(first.results) == 3
    assert all(0 < seconds <= first.seconds + 1 for seconds in first.call_seconds)
    again = AgentRun.from_json(run.to_json())
    assert (again.steps, again.history, again.termination_reason) == (run.steps, run.history, "submit")
    assert again.steps[0].call_seconds == first.call_seconds
    assert again.usage == run.usage


@pytest.mark.parametrize("data", [{}, {"steps": 3, "history": {}, "termination_reason": None, "report": {}}])
def test_other_json_is_no_run_of_an_agent(data: Any) -> None:
    with pytest.raises(sigwire.StateError):
        AgentRun.from_json(data)


async def test_model_is_a_context_manager_that_closes_its_connections() -> None:
    class Counting(HttpTransport):
        closed = 0

        def close(self) -> None:
            self.closed += 1
            super().close()

    transport = Counting()
    with FakeProvider(["one", "two"]) as provider:
        with model(provider, "openai", transport=transport) as lm:
            assert lm("Hi") == ["one"]
        assert transport.closed == 1
        async with lm as same:
            assert (await same.acall("Hi"), same is lm) == (["two"], True)
    assert transport.closed == 2
