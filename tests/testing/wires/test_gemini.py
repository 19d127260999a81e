"""The Gemini wire of the fake provider: the official google-genai package as the referee, and what Gemini refuses."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import FakeProvider, Fault

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the package warns about itself while it is imported
    genai = pytest.importorskip("google.genai", reason="the official google-genai package is not installed")
    errors, types = genai.errors, genai.types

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"name": "add", "description": "Add.", "parametersJsonSchema": SCHEMA}
CALL = {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}, "thoughtSignature": "AAEC"}
MANUAL = {"automatic_function_calling": {"disable": True}}


@pytest.fixture
def client(provider: FakeProvider) -> Iterator[Any]:
    none = {"verify": False}  # no authorities are loaded
    options = {"base_url": provider.url("gemini"), "client_args": none, "async_client_args": none}
    client = genai.Client(api_key="secret", http_options=options)
    yield client
    client.close()


def ask(client: Any, contents: Any = "Hi", **config: Any) -> Any:
    return client.models.generate_content(model="gemini-3-pro", contents=contents, config={**MANUAL, **config})


def test_a_text_comes_with_usage(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Response((Choice("Hello"),), Usage(7, 5, reasoning_tokens=2)))
    answer = ask(client)
    assert answer.text == "Hello"
    assert answer.candidates[0].finish_reason == "STOP"
    usage = answer.usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count) == (7, 3, 2)
    assert provider.requests[0].headers["x-goog-api-key"] == "***"


def test_parallel_calls_carry_one_signature_and_can_be_sent_back(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice("", (ToolCall("c1", "add", {"a": 1}), ToolCall("", "add", {})), reasoning="Sums"), "3")
    tools = [{"function_declarations": [{"name": "add", "parameters_json_schema": SCHEMA}]}]
    answer = ask(client, tools=tools, system_instruction="S")
    content = answer.candidates[0].content
    assert [call.args for call in answer.function_calls] == [{"a": 1}, {}]
    assert [bool(part.thought_signature) for part in content.parts] == [False, True, False]
    assert content.parts[0].thought
    results = [
        types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))
        for call, response in zip(answer.function_calls, [{"output": 1}, {"error": "no"}], strict=True)
    ]
    history = [
        types.Content(role="user", parts=[types.Part(text="Hi")]),
        content,
        types.Content(role="user", parts=results),
    ]
    assert ask(client, history, tools=tools).text == "3"
    request = provider.requests[1].request
    assert request is not None
    assert [(r.content, r.is_error) for r in request.messages[2].tool_results] == [(1, False), ("no", True)]
    assert provider.requests[0].request.messages == (Message.system("S"), Message.user("Hi"))  # type: ignore[union-attr]


def test_blocked_and_truncated_answers_have_their_finish_reasons(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice(refusal="No."), Choice("Long", finish_reason="length"))
    blocked = ask(client)
    assert (blocked.candidates, blocked.prompt_feedback.block_reason) == (None, "PROHIBITED_CONTENT")
    assert ask(client).candidates[0].finish_reason == "MAX_TOKENS"


def test_structured_output_parses_into_the_packages_model(provider: FakeProvider, client: Any) -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        city: str

    provider.script.add('{"city": "Oslo"}')
    answer = ask(client, response_mime_type="application/json", response_schema=Answer)
    assert answer.parsed == Answer(city="Oslo")


async def test_async_client_receives_the_answer() -> None:
    async with FakeProvider("Hello") as provider:
        client = genai.Client(api_key="k", http_options={"base_url": provider.url("gemini")})
        answer = await client.aio.models.generate_content(model="m", contents="Hi")
        await client.aio.aclose()
        client.close()
    assert answer.text == "Hello"


@pytest.mark.parametrize(
    ("fault", "error", "code", "status"),
    [
        (Fault("auth"), "ClientError", 400, "INVALID_ARGUMENT"),
        (Fault("not_found"), "ClientError", 404, "NOT_FOUND"),
        (Fault("rate_limit", retry_after=2), "ClientError", 429, "RESOURCE_EXHAUSTED"),
        (Fault("overloaded"), "ServerError", 503, "UNAVAILABLE"),
        (Fault("server"), "ServerError", 500, "INTERNAL"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_fault_raises_the_error_of_the_official_package(
    provider: FakeProvider, client: Any, fault: Fault, error: str, code: int, status: str
) -> None:
    provider.script.add(fault)
    with pytest.raises(getattr(errors, error)) as caught:
        ask(client)
    assert (caught.value.code, caught.value.status) == (code, status)
    if fault.retry_after:
        assert caught.value.details["error"]["details"][0]["retryDelay"] == "2s"


def contents(*parts: Any, answers: Any = ()) -> dict[str, Any]:
    turns: list[Any] = [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": list(parts)}]
    return {"contents": [*turns, {"role": "user", "parts": list(answers)}] if answers else turns}


def answered(name: str = "add", **rest: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": 1}, **rest}}


HI = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"contents": []}, "must not be empty"),
        ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, "Supported values"),
        ({"contents": [{"role": "user", "parts": []}]}, "parts must not be empty"),
        (contents(CALL), "number of function response parts"),
        (contents(CALL, CALL, answers=[answered()]), "number of function response parts"),
        (contents(CALL, answers=[answered("sub")]), "number of function response parts"),
        (contents({"functionCall": CALL["functionCall"]}, answers=[answered()]), "missing a thought_signature"),
        (
            contents({"functionCall": {"name": "add", "args": "{}"}}, answers=[answered()]),
            "expected object, found string",
        ),
        ({**HI, "tools": [{"functionDeclarations": [{**ADD, "name": "3d"}]}]}, "Invalid function name"),
        ({**HI, "tools": [{"functionDeclarations": [{**ADD, "parameters": SCHEMA}]}]}, "only one of parameters"),
        ({**HI, "tools": [{"functionDeclarations": [ADD, ADD]}]}, "Duplicate function declaration"),
        ({**HI, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "without function_declarations"),
        (
            {
                **HI,
                "tools": [{"functionDeclarations": [ADD]}],
                "toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["add"]}},
            },
            "only be set when the mode is ANY",
        ),
        ({**HI, "generationConfig": {"responseJsonSchema": SCHEMA}}, "only supported with response_mime_type"),
        (
            {**HI, "generationConfig": {"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 5}}},
            "only set only one",
        ),
        ({**HI, "generationConfig": {"max_tokens": 5}}, 'Unknown name "maxTokens"'),
        ({**HI, "temperature": 1}, 'Unknown name "temperature"'),
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_gemini_refuses(provider: FakeProvider, client: Any, body: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.ClientError, match=message) as caught:
        client._api_client.request("post", "models/gemini-3-pro:generateContent", body, {})
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    assert provider.requests[0].request is None
