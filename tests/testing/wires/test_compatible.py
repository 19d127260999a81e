"""The fake provider's compatible hosts: they accept the option names of sigwire's rows and apply OpenAI's rules."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.events import collect
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import LMAuthenticationError, LMInvalidRequestError
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider, Streamed

HOSTS = [
    "mistral/mistral-large-latest",
    "deepseek/deepseek-chat",
    "groq/openai/gpt-oss-120b",
    "openrouter/openai/gpt-5",
    "together/m",
    "fireworks/m",
    "xai/grok-3-mini",
    "cerebras/gpt-oss-120b",
    "cerebras/zai-glm-4.7",
    "moonshot/kimi-k2.5",
    "crusoe/zai/GLM-5.2",
    "vllm/m",
    "llamacpp/m",
    "lmstudio/m",
]
EVERY_HOST = pytest.mark.parametrize("model", HOSTS)
TOOL: JsonObject = {
    "type": "function",
    "function": {"name": "add", "description": "d", "parameters": {"type": "object", "properties": {}}},
}
ASKED = Message.user("Hi")


def model_at(provider: FakeProvider, model: str, **rest: Any) -> LM:
    return LM(model, base_url=provider.url("compatible"), num_retries=0, **rest)


@EVERY_HOST
@pytest.mark.parametrize("streamed", [False, True])
def test_compatible_host_accepts_the_option_names_of_its_row(model: str, streamed: bool) -> None:
    request = Request(
        (ASKED,), (TOOL,), ToolChoice.REQUIRED, options={"seed": 7, "max_tokens": 50, "reasoning": "high"}
    )
    with FakeProvider([ToolCall("", "add", {})]) as provider:
        lm = model_at(provider, model)
        response = collect(lm.stream(request)) if streamed else lm.respond(request)
    assert [call.name for call in response.choices[0].tool_calls] == ["add"]
    assert response.usage.output_tokens is not None
    read = provider.requests[0].request
    assert read is not None
    warned = {warning.feature for warning in response.warnings}
    assert read.tool_choice == (ToolChoice.AUTO if "tool_choice" in warned else ToolChoice.REQUIRED)
    assert read.options.get("seed") == (None if "seed" in warned else 7)
    assert read.options["max_tokens"] == 50


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("model", "refused"),
    [("deepseek/deepseek-reasoner", None), ("moonshot/kimi-k2.5", ""), ("moonshot/kimi-k2-thinking", None)],
)
def test_call_turn_of_another_model_is_accepted_by_a_host_that_wants_reasoning(
    model: str, refused: str | None, streamed: bool
) -> None:
    turn = Message.assistant(tool_calls=[ToolCall("c1", "add", {})])
    request = Request((ASKED, turn, Message.tool(ToolResult("c1", "add", "4"))), (TOOL,))
    with FakeProvider(["Done"]) as provider:
        lm = model_at(provider, model)
        response = collect(lm.stream(request)) if streamed else lm.respond(request)
        assert response.choices[0].text == "Done"
        sent = json.loads(json.dumps(provider.requests[0].body))
        sent["messages"][1]["reasoning_content"] = refused
        with pytest.raises(LMInvalidRequestError, match="reasoning_content"):
            lm.respond(replace(request, options={"extra_body": {"messages": sent["messages"]}}))


@EVERY_HOST
def test_turn_with_calls_results_and_thinking_is_accepted_in_history(model: str) -> None:
    family = model.partition("/")[0]
    with FakeProvider([ToolCall("", "add", {}), "Done"]) as provider:
        lm = model_at(provider, model)
        first = lm.respond(Request((ASKED,), (TOOL,))).choices[0].message()
        (call,) = first.tool_calls
        turn = Message("assistant", (ThinkingPart("hm", provider=family), *first.parts))
        results = Message.tool(ToolResult(call.id, "add", "4"))
        assert lm.respond(Request((ASKED, turn, results), (TOOL,))).choices[0].text == "Done"
    read = provider.requests[1].request
    assert read is not None
    assert [result.content for result in read.messages[2].tool_results] == ["4"]


def test_mistral_option_names_are_accepted() -> None:
    with FakeProvider(["Hi"]) as provider:
        model_at(provider, HOSTS[0]).respond(
            Request((ASKED,), (TOOL,), ToolChoice.REQUIRED, options={"seed": 7, "reasoning": "off"})
        )
    (sent,) = provider.requests
    assert isinstance(sent.body, dict)
    assert (sent.wire, sent.body["tool_choice"], sent.body["random_seed"]) == ("compatible", "any", 7)
    assert "seed" not in sent.body


def test_compatible_host_applies_the_rules_of_openai() -> None:
    with FakeProvider(["never"], key="right") as provider:
        body: JsonObject = {"tool_choice": "any", "top_k": 3}
        wrong = Request((ASKED,), options={"extra_body": body})
        with pytest.raises(LMInvalidRequestError, match="only allowed when 'tools' are specified"):
            model_at(provider, "vllm/m", api_key="right").respond(wrong)
        with pytest.raises(LMAuthenticationError):
            model_at(provider, "vllm/m").respond(Request((ASKED,)))
    assert [sent.status for sent in provider.requests] == [400, 401]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@EVERY_HOST
def test_reasoning_of_the_script_is_sent_to_every_host(model: str, streamed: bool) -> None:
    with FakeProvider([Choice("So: 4", reasoning="Two sums")]) as provider:
        lm, asked = model_at(provider, model), Request((ASKED,))
        (choice,) = (collect(lm.stream(asked)) if streamed else lm.respond(asked)).choices
    assert (choice.reasoning, choice.text) == ("Two sums", "So: 4")


@pytest.mark.parametrize("wire", ["openai", "azure", "compatible"])
def test_only_compatible_hosts_send_reasoning_content(wire: str) -> None:
    answer = Choice("", (ToolCall("", "add", {}),), "Two sums")
    with FakeProvider([answer, Streamed(answer, cut=4)]) as provider:
        url = provider.url(wire) + ("/openai/v1" if wire == "azure" else "")
        lm = LM("vllm/m", base_url=url, api_key="any", num_retries=0)
        lm.respond(Request((ASKED,), (TOOL,)))
        list(lm.stream(Request((ASKED,), (TOOL,))))
    whole, streamed = [json.dumps(sent.answer) for sent in provider.requests]
    assert ('"reasoning_content": "Two sums"' in whole) is (wire == "compatible")
    assert re.findall('"reasoning_content": "(.*?)"', streamed) == (["Two ", "sums"] if wire == "compatible" else [])


def test_official_package_receives_the_fields_of_a_compatible_host() -> None:
    openai = pytest.importorskip("openai", reason="the official openai package is not installed")
    with (
        FakeProvider(["Hello"]) as provider,
        openai.OpenAI(base_url=provider.url("compatible"), api_key="k", max_retries=0) as client,
    ):
        answer = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Hi"}], extra_body={"top_k": 3, "min_p": 0.1}
        )
    assert answer.choices[0].message.content == "Hello"
