"""Metrics: durations and tokens, with their attributes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM, ToolCall
from sigwire.core.response import Usage
from sigwire.errors import LMServerError
from sigwire.lm.policy.cache.cache import read_environment
from sigwire.observe.tracing.metrics import CALL_SECONDS
from sigwire.testing import FakeProvider

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5"}


def test_call_of_a_model_has_duration_and_tokens(telemetry: Any) -> None:
    FakeLM(["x"], model="openai/gpt-5", usage=Usage(input_tokens=185, output_tokens=29))("Hello")
    expected = {**CHAT, "gen_ai.response.model": "openai/gpt-5"}
    (duration,) = telemetry.points("gen_ai.client.operation.duration")
    assert (dict(duration.attributes), duration.count) == (expected, 1)
    assert duration.explicit_bounds == pytest.approx(list(CALL_SECONDS))
    tokens = {point.attributes["gen_ai.token.type"]: point for point in telemetry.points("gen_ai.client.token.usage")}
    assert {kind: point.sum for kind, point in tokens.items()} == {"input": 185, "output": 29}
    assert dict(tokens["input"].attributes) == {**expected, "gen_ai.token.type": "input"}


def test_failed_call_has_its_error_in_the_duration_and_no_tokens(telemetry: Any) -> None:
    with pytest.raises(LMServerError):
        FakeLM([LMServerError("down")], model="openai/gpt-5")("Hello")
    (duration,) = telemetry.points("gen_ai.client.operation.duration")
    assert dict(duration.attributes) == {**CHAT, "error.type": "LMServerError"}
    assert telemetry.points("gen_ai.client.token.usage") == []


def test_tool_and_agent_have_durations(telemetry: Any) -> None:
    async def slow(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    agent = sigwire.ReAct("q -> a", tools=[slow])
    agent.set_lm(FakeLM([ToolCall("a", "slow", {"seconds": 0.02}), ToolCall("b", "submit", {"a": "x"})]))
    agent(q="?")
    (tool,) = telemetry.points("gen_ai.execute_tool.duration")
    (run,) = telemetry.points("gen_ai.invoke_agent.duration")
    assert dict(tool.attributes) == {
        "gen_ai.tool.name": "slow",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "ReAct",
    }
    assert dict(run.attributes) == {"gen_ai.agent.name": "ReAct"}
    assert 0.02 <= tool.sum <= run.sum


def test_stored_answer_is_no_operation_of_a_client(telemetry: Any, tmp_path: Path) -> None:
    sigwire.configure_cache(disk_cache_dir=tmp_path)
    try:
        with FakeProvider(["4"]) as provider:
            lm = sigwire.LM("openai/gpt-5", api_key="any", base_url=provider.url("openai"))
            assert [lm("2+2?"), lm("2+2?")] == [["4"], ["4"]]
    finally:
        read_environment()
    first, second = (dict(span.attributes or {}) for span in telemetry.spans)
    assert (first["sigwire.cache"], second["sigwire.cache"]) == ("miss", "hit")
    assert first["sigwire.attempts"] == 1
    (duration,) = telemetry.points("gen_ai.client.operation.duration")
    assert duration.count == 1
