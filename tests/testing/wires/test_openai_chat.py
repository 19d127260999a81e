"""The OpenAI wires of the fake provider: the official package as the referee, and what OpenAI refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import TextPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.testing import FakeProvider, Fault
from tests.packages import Package

openai = Package("openai")

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
USER = {"role": "user", "content": "Hi"}
ASKS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_a", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
        {"id": "call_b", "type": "function", "function": {"name": "add", "arguments": '{"a":2}'}},
    ],
}
RESULTS = [
    {"role": "tool", "tool_call_id": "call_a", "content": "1"},
    {"role": "tool", "tool_call_id": "call_b", "content": "ERROR: no"},
]


@pytest.fixture
def client(provider: FakeProvider, openai_package: Any) -> Any:
    return openai_package.with_options(base_url=provider.url("openai"))


def chat(client: Any, messages: Any = (USER,), **rest: Any) -> Any:
    return client.chat.completions.create(model="m", messages=messages, **rest)


def test_a_text_comes_as_the_message_with_usage(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Response((Choice("Hello"),), Usage(7, 3, 2, None, 1)))
    answer = chat(client)
    assert answer.choices[0].message.content == "Hello"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (7, 3, 10)
    assert answer.usage.prompt_tokens_details.cached_tokens == 2
    assert answer.usage.completion_tokens_details.reasoning_tokens == 1
    assert answer._request_id.startswith("req_")


def test_parallel_calls_come_with_ids_and_arguments_as_text(provider: FakeProvider, client: Any) -> None:
    provider.script.add([ToolCall("call_7", "add", {"a": 1}), ToolCall("", "add", {"a": 2})])
    choice = chat(client, tools=[ADD]).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == [{"a": 1}, {"a": 2}]
    assert choice.message.tool_calls[0].id == "call_7"
    assert choice.message.tool_calls[1].id.startswith("call_fake")


def test_request_of_the_official_package_is_read_as_the_canonical_request(provider: FakeProvider, client: Any) -> None:
    provider.script.add("Done")
    chat(
        client,
        [{"role": "system", "content": "S"}, USER, ASKS, *RESULTS],
        tools=[ADD],
        tool_choice={"type": "function", "function": {"name": "add"}},
        parallel_tool_calls=False,
        max_completion_tokens=50,
        temperature=0,
        reasoning_effort="none",
        response_format={"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object"}}},
    )
    calls = (ToolCall.read("call_a", "add", '{"a":1}'), ToolCall.read("call_b", "add", '{"a":2}'))
    assert provider.requests[0].request == Request(
        (
            Message.system("S"),
            Message.user("Hi"),
            Message("assistant", calls),
            Message.tool(ToolResult("call_a", "add", "1"), ToolResult("call_b", "add", "ERROR: no")),
        ),
        (ADD,),
        ToolChoice.named("add"),
        False,
        ResponseFormat({"type": "object"}, "r"),
        {"temperature": 0, "max_tokens": 50, "reasoning": "off"},
    )


def test_n_candidates_consume_n_answers(provider: FakeProvider, client: Any) -> None:
    provider.script.add("one", "two")
    answer = chat(client, n=2)
    assert [(choice.index, choice.message.content) for choice in answer.choices] == [(0, "one"), (1, "two")]


def test_refused_and_truncated_answers_have_their_finish_reasons(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice(refusal="No."), Choice("Long", finish_reason="length"))
    assert chat(client).choices[0].message.refusal == "No."
    assert chat(client).choices[0].finish_reason == "length"


def test_finish_reason_without_a_name_at_openai_is_stop(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice("Hi", finish_reason="error"))
    assert chat(client).choices[0].finish_reason == "stop"


def test_structured_output_parses_into_the_packages_model(provider: FakeProvider, client: Any) -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        city: str

    provider.script.add('{"city": "Oslo"}')
    parsed = client.chat.completions.parse(model="m", messages=[USER], response_format=Answer)
    assert parsed.choices[0].message.parsed == Answer(city="Oslo")


async def test_async_client_receives_the_answer() -> None:
    async with (
        FakeProvider("Hello") as provider,
        openai.AsyncOpenAI(base_url=provider.url("openai"), api_key="k", max_retries=0) as client,
    ):
        answer = await client.chat.completions.create(model="m", messages=[USER])
    assert answer.choices[0].message.content == "Hello"


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        (Fault("auth"), "AuthenticationError", "invalid_api_key"),
        (Fault("permission"), "PermissionDeniedError", None),
        (Fault("not_found"), "NotFoundError", "model_not_found"),
        (Fault("context_length"), "BadRequestError", "context_length_exceeded"),
        (Fault("rate_limit", retry_after=2), "RateLimitError", "rate_limit_exceeded"),
        (Fault("billing"), "RateLimitError", "insufficient_quota"),
        (Fault("overloaded"), "InternalServerError", "server_is_overloaded"),
        (Fault(status=503), "InternalServerError", "server_is_overloaded"),
        (Fault(status=418), "APIStatusError", None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_fault_raises_the_error_of_the_official_package(
    provider: FakeProvider, client: Any, fault: Fault, error: str, code: str | None
) -> None:
    provider.script.add(fault)
    with pytest.raises(getattr(openai, error)) as caught:
        chat(client)
    assert caught.value.code == code
    if fault.retry_after:
        assert caught.value.response.headers["retry-after"] == "2"


def no_type(tool: dict[str, Any]) -> dict[str, Any]:
    return {**tool, "function": {**tool["function"], "parameters": {"type": "array"}}}


def named(name: str) -> dict[str, Any]:
    return {**ADD, "function": {**ADD["function"], "name": name}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": []}, "empty array"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "Supported values"),
        ({"messages": [{"role": "user"}]}, r"Invalid type for 'messages\[0\].content'"),
        ({"messages": [{"role": "user", "content": None}]}, "expected a string, but got null"),
        ({"messages": [USER, ASKS]}, "did not have response messages: call_a, call_b"),
        ({"messages": [USER, ASKS, RESULTS[0], USER]}, "did not have response messages: call_b"),
        ({"messages": [USER, RESULTS[0]]}, "must be a response to a preceeding message"),
        ({"messages": [USER, ASKS, RESULTS[0], RESULTS[0]]}, "'call_a' not found"),
        (
            {"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]},
            "'image_url'",
        ),
        ({"tools": [named("math.add")]}, "does not match pattern"),
        ({"tools": [named("x" * 65)]}, "string too long"),
        ({"tools": [no_type(ADD)]}, "schema must be a JSON Schema of"),
        ({"tools": [{**ADD, "function": {**ADD["function"], "strict": True}}]}, "'additionalProperties' is required"),
        ({"tool_choice": "auto"}, "only allowed when 'tools' are specified"),
        ({"parallel_tool_calls": True}, "only allowed when 'tools' are specified"),
        ({"tools": [ADD], "tool_choice": {"type": "function", "function": {"name": "sub"}}}, "'sub' not found"),
        ({"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
        ({"temperature": 3}, "<= 2"),
        ({"temperature": "hot"}, "expected a number, but got a string"),
        ({"stop": list("abcde")}, "maximum length 4"),
        ({"top_logprobs": 2}, "'logprobs' is enabled"),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "at the same time"),
        ({"extra_body": {"top_k": 3}}, "Unknown parameter: 'top_k'"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_openai_refuses(provider: FakeProvider, client: Any, body: dict[str, Any], message: str) -> None:
    with pytest.raises(openai.BadRequestError, match=message) as caught:
        chat(client, **body)
    assert caught.value.type == "invalid_request_error"
    assert provider.requests[0].status == 400
    assert provider.requests[0].request is None


def test_arguments_must_be_text(provider: FakeProvider, client: Any) -> None:
    call = {"id": "call_a", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    with pytest.raises(openai.BadRequestError, match=r"arguments': expected a string, but got an object"):
        chat(client, [USER, {"role": "assistant", "tool_calls": [call]}, RESULTS[0]])


def test_stream_options_need_a_stream(client: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="only allowed when 'stream' is enabled"):
        chat(client, stream_options={"include_usage": True})


def test_texts_join_and_media_are_read(provider: FakeProvider, client: Any) -> None:
    provider.script.add("ok")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
    chat(client, [{"role": "user", "content": [{"type": "text", "text": "See"}, image]}])
    request = provider.requests[0].request
    assert request is not None
    text, picture = request.messages[0].parts
    assert text == TextPart("See")
    assert picture.to_json() == {"type": "image", "data": "AAAA", "media_type": "image/png", "detail": "low"}
