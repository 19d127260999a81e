"""What models of some name refuse from the fake provider, and that invented names refuse nothing."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from sigwire.testing import FakeProvider

KEYS = {"authorization": "Bearer k", "x-goog-api-key": "k", "anthropic-version": "2023-06-01"}
FUNCTION = {"name": "f", "parameters": {"type": "object"}}


def answer(wire: str, path: str, body: Any) -> tuple[int, str]:
    """Status, and the message of an error."""
    with FakeProvider(["ok"]) as provider:
        try:
            request = HttpRequest(provider.url(wire) + path, json.dumps(body).encode(), KEYS)
            with urlopen(request, timeout=10) as reply:
                return int(reply.status), ""
        except HTTPError as error:
            with error:
                return error.code, str(json.loads(error.read())["error"]["message"])


def chat(**body: Any) -> tuple[int, str]:
    tools = {"tools": [{"type": "function", "function": FUNCTION}]} if body.pop("tools", False) else {}
    return answer("openai", "/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], **tools, **body})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"model": "o3-mini", "temperature": 0}, "'temperature' does not support 0 with this model"),
        ({"model": "gpt-5-mini", "temperature": 0.5}, "Only the default"),
        ({"model": "gpt-5", "top_p": 0.5}, "'top_p' is not supported"),
        ({"model": "gpt-5", "logprobs": True}, "'logprobs' is not supported"),
        ({"model": "gpt-5", "max_tokens": 5}, "Use 'max_completion_tokens' instead"),
        ({"model": "o4-mini", "stop": ["x"]}, "'stop' is not supported"),
        ({"model": "gpt-5", "reasoning_effort": "none"}, "Supported values are: 'minimal', 'low', 'medium', 'high'"),
        ({"model": "gpt-5.6", "reasoning_effort": "minimal"}, "does not support 'minimal'"),
        ({"model": "gpt-5.2", "reasoning_effort": "low", "temperature": 0}, "'temperature' does not support"),
        ({"model": "gpt-5.4", "reasoning_effort": "low", "tools": True}, "Function tools with reasoning_effort"),
        ({"model": "gpt-5.6", "tools": True}, "Function tools with reasoning_effort"),
        ({"model": "gpt-6-astra", "tools": True, "reasoning_effort": "none"}, "does not support 'none'"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_openais_reasoning_models_refuse(body: Any, message: str) -> None:
    status, found = chat(**body)
    assert status == 400
    assert message in found


@pytest.mark.parametrize(
    "body",
    [
        {"model": "o1", "stop": ["x"]},
        {"model": "gpt-5", "temperature": 1, "max_completion_tokens": 5},
        {"model": "gpt-5.2", "temperature": 0},
        {"model": "gpt-5-chat-latest", "temperature": 0, "max_tokens": 5},
        {"model": "gpt-5.4", "tools": True},
        {"model": "gpt-5.6", "tools": True, "reasoning_effort": "none"},
        {"model": "gpt-4.1", "temperature": 0, "max_tokens": 5, "stop": ["x"], "tools": True},
        {"model": "invented", "temperature": 0, "reasoning_effort": "minimal", "tools": True},
    ],
    ids=lambda value: str(value)[:60],
)
def test_openais_models_take(body: Any) -> None:
    assert chat(**body) == (200, "")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "gpt-5.6", "tools": [{"type": "function", **FUNCTION}], "reasoning": {"effort": "low"}}, 200),
        ({"model": "gpt-5.6", "temperature": 0}, 400),
        ({"model": "gpt-5.6", "temperature": 0, "reasoning": {"effort": "none"}}, 200),
        ({"model": "gpt-5", "reasoning": {"effort": "max"}}, 400),
    ],
)
def test_the_responses_endpoint_takes_tools_beside_reasoning(body: Any, status: int) -> None:
    assert answer("openai-responses", "/responses", {"input": "Hi", **body})[0] == status


def claude(**body: Any) -> tuple[int, str]:
    messages = [{"role": "user", "content": "Hi"}, *body.pop("then", ())]
    return answer("anthropic", "/v1/messages", {"max_tokens": 4096, "messages": messages, **body})


FORCED: Any = {"tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"}}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
RESTS = {"thinking": {"type": "disabled"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"model": "claude-opus-4-7", "temperature": 1}, "temperature: `temperature` is not supported"),
        ({"model": "claude-sonnet-5", **BUDGET}, "thinking.type: `enabled` is not supported"),
        ({"model": "claude-opus-5-5", **RESTS}, "cannot be disabled"),
        ({"model": "claude-fable-5-1", **FORCED}, "forces tool use"),
        ({"model": "claude-sonnet-4-6", "then": [{"role": "assistant", "content": "So"}]}, "prefill"),
        ({"model": "claude-haiku-4-5", "then": [{"role": "system", "content": "S"}]}, "role 'system' is not supported"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_claude_models_refuse(body: Any, message: str) -> None:
    status, found = claude(**body)
    assert status == 400
    assert message in found


@pytest.mark.parametrize(
    "body",
    [
        {"model": "claude-haiku-4-5", "temperature": 0, "then": [{"role": "assistant", "content": "So"}]},
        {"model": "claude-sonnet-4-6", **BUDGET},
        {"model": "claude-opus-5", **RESTS, **FORCED, "then": [{"role": "system", "content": "S"}]},
        {"model": "invented", "temperature": 0, **FORCED},
    ],
    ids=lambda value: str(value)[:60],
)
def test_claude_models_take(body: Any) -> None:
    assert claude(**body) == (200, "")


DECLARED: Any = [{"functionDeclarations": [{"name": "f"}]}]
SEARCH = [*DECLARED, {"googleSearch": {}}]
SCHEMA = {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        ("gemini-2.5-flash", {"tools": DECLARED, "generationConfig": SCHEMA}, "mime type: 'application/json'"),
        ("gemini-2.5-flash", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}}, "Thinking level"),
        ("gemini-2.5-pro", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, "only works in thinking"),
        ("gemini-3-pro", {"tools": SEARCH}, "circulation is not enabled"),
        ("gemini-3-pro", {"tools": DECLARED, "generationConfig": SCHEMA}, ""),
        ("gemini-3-pro", {"tools": SEARCH, "toolConfig": {"includeServerSideToolInvocations": True}}, ""),
        ("gemini-2.5-flash", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}, ""),
    ],
    ids=lambda value: str(value)[:60],
)
def test_gemini_models_differ_by_version(model: str, body: Any, message: str) -> None:
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    status, found = answer("gemini", f"/v1/models/{model}:generateContent", {"contents": contents, **body})
    assert status == (400 if message else 200)
    assert message in found
