"""The Anthropic wire of the fake provider: the official package as the referee, and what Anthropic refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.testing import FakeProvider, Fault
from tests.packages import Package

anthropic = Package("anthropic")

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"name": "add", "description": "Add.", "input_schema": SCHEMA}
USER = {"role": "user", "content": "Hi"}


def use(id: str, **rest: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "add", "input": {"a": 1}, **rest}


def result(id: str, **rest: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "1", **rest}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


THOUGHT = {"type": "thinking", "thinking": "Hm", "signature": "sig"}
TEXT = {"type": "text", "text": "So?"}


@pytest.fixture
def client(provider: FakeProvider, anthropic_package: Any) -> Any:
    return anthropic_package.with_options(base_url=provider.url("anthropic"))


def ask(client: Any, messages: Any = (USER,), **rest: Any) -> Any:
    return client.messages.create(**{"model": "m", "max_tokens": 2048, "messages": list(messages), **rest})


def test_a_text_comes_as_a_block_with_usage(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Response((Choice("Hello"),), Usage(10, 3, cached_tokens=4, cache_write_tokens=1)))
    answer = ask(client)
    assert [block.text for block in answer.content] == ["Hello"]
    assert answer.stop_reason == "end_turn"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (5, 3)
    assert (answer.usage.cache_read_input_tokens, answer.usage.cache_creation_input_tokens) == (4, 1)
    assert answer._request_id.startswith("req_")


def test_thinking_and_parallel_calls_come_in_order_and_can_be_sent_back(provider: FakeProvider, client: Any) -> None:
    calls = (ToolCall("toolu_1", "add", {"a": 1}), ToolCall("", "add", {}))
    provider.script.add(Choice("Let me see", calls, reasoning="Two sums"), "3")
    answer = ask(client, tools=[ADD])
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[0].thinking == "Two sums"
    assert answer.content[0].signature
    assert [block.input for block in answer.content[2:]] == [{"a": 1}, {}]
    assert answer.stop_reason == "tool_use"
    results = [result(block.id) for block in answer.content[2:]]
    again = ask(client, [USER, {"role": "assistant", "content": answer.content}, user(*results)], tools=[ADD])
    assert again.content[0].text == "3"
    sent = provider.requests[1].request
    assert sent is not None
    assert [part.kind for part in sent.messages[1].parts] == ["thinking", "text", "tool_call", "tool_call"]
    assert sent.messages[1].tool_calls[0] == calls[0]


def test_request_of_the_official_package_is_read_as_the_canonical_request(provider: FakeProvider, client: Any) -> None:
    provider.script.add("Done")
    ask(
        client,
        [USER, assistant(THOUGHT, use("t1"), use("t2")), user(result("t1"), result("t2", is_error=True), TEXT)],
        system="S",
        tools=[ADD],
        tool_choice={"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        stop_sequences=["END"],
    )
    call = ToolCall("t1", "add", {"a": 1})
    assert provider.requests[0].request == Request(
        (
            Message.system("S"),
            Message.user("Hi"),
            Message(
                "assistant", (ThinkingPart("Hm", "sig", provider="anthropic"), call, ToolCall("t2", "add", {"a": 1}))
            ),
            Message.tool(ToolResult("t1", "add", "1"), ToolResult("t2", "add", "1", True)),
            Message("user", (TextPart("So?"),)),
        ),
        ({"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}},),
        ToolChoice.named("add"),
        False,
        options={"max_tokens": 2048, "stop": ["END"]},
    )
    assert provider.requests[0].headers.get("x-api-key", provider.requests[0].headers.get("authorization")) == "***"


def test_refused_and_truncated_answers_have_their_finish_reasons(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice(refusal="No."), Choice("Long", finish_reason="length"))
    refused = ask(client)
    assert (refused.stop_reason, refused.stop_details.explanation, refused.content) == ("refusal", "No.", [])
    assert ask(client).stop_reason == "max_tokens"


def test_structured_output_parses_into_the_packages_model(provider: FakeProvider, client: Any) -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        city: str

    provider.script.add('{"city": "Oslo"}')
    answer = client.messages.parse(model="m", max_tokens=50, messages=[USER], output_format=Answer)
    assert answer.parsed_output == Answer(city="Oslo")
    request = provider.requests[0].request
    assert request is not None
    assert request.response_format is not None


FORMER = {"output_format": {"type": "json_schema", "schema": {"type": "object", "additionalProperties": False}}}
BETA = {"anthropic-beta": "other-2025-01-01, structured-outputs-2025-11-13"}


def test_output_format_is_read_with_its_beta_header(provider: FakeProvider, client: Any) -> None:
    provider.script.add("{}")
    ask(client, extra_body=FORMER, extra_headers=BETA)
    request = provider.requests[0].request
    assert request is not None
    assert request.response_format == ResponseFormat(FORMER["output_format"]["schema"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("headers", "body", "message"),
    [
        ({}, {}, "output_format: Extra inputs are not permitted"),
        (BETA, {"output_config": {"format": FORMER["output_format"]}}, "Cannot specify both"),
    ],
    ids=["no beta header", "both names"],
)
def test_output_format_is_refused(client: Any, headers: Any, body: Any, message: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message):
        ask(client, extra_body={**FORMER, **body}, extra_headers=headers)


def test_text_block_has_citations_only_if_the_answer_has_some(provider: FakeProvider, client: Any) -> None:
    citation: Any = {"type": "char_location", "cited_text": "a"}
    provider.script.add("Hi", Choice("Hi", citations=(citation,)))
    for _ in range(2):
        ask(client)
    blocks = [sent.answer["content"] for sent in provider.requests]  # type: ignore[index,call-overload]
    assert blocks == [[{"type": "text", "text": "Hi"}], [{"type": "text", "text": "Hi", "citations": [citation]}]]


async def test_async_client_receives_the_answer() -> None:
    async with (
        FakeProvider("Hello") as provider,
        anthropic.AsyncAnthropic(base_url=provider.url("anthropic"), api_key="k", max_retries=0) as client,
    ):
        answer = await client.messages.create(model="m", max_tokens=5, messages=[USER])
    assert answer.content[0].text == "Hello"


@pytest.mark.parametrize(
    ("fault", "error", "kind"),
    [
        (Fault("auth"), "AuthenticationError", "authentication_error"),
        (Fault("permission"), "PermissionDeniedError", "permission_error"),
        (Fault("not_found"), "NotFoundError", "not_found_error"),
        (Fault("context_length"), "BadRequestError", "invalid_request_error"),
        (Fault("rate_limit", retry_after=2), "RateLimitError", "rate_limit_error"),
        (Fault("billing"), "APIStatusError", "billing_error"),
        (Fault("overloaded"), "OverloadedError", "overloaded_error"),
        (Fault(status=529), "OverloadedError", "overloaded_error"),
        (Fault("server"), "InternalServerError", "api_error"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_fault_raises_the_error_of_the_official_package(
    provider: FakeProvider, client: Any, fault: Fault, error: str, kind: str
) -> None:
    provider.script.add(fault)
    known = getattr(anthropic, error, anthropic.APIStatusError)
    with pytest.raises(known) as caught:
        ask(client)
    assert caught.value.body["error"]["type"] == kind
    assert caught.value.request_id == caught.value.body["request_id"]


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "at least one message"),
        ([assistant(TEXT)], 'first message must use the \\\\?"user\\\\?" role'),
        ([USER, {"role": "tool", "content": "x"}], "messages.1.role"),
        ([{"role": "user", "content": ""}], "non-empty content"),
        ([user({"type": "text", "text": ""})], "text content blocks must be non-empty"),
        ([USER, assistant(use("t1"))], "without `tool_result` blocks immediately after: t1"),
        ([USER, assistant(use("t1"), use("t2")), user(result("t1"))], "immediately after: t2"),
        ([USER, assistant(use("t1")), user(TEXT, result("t1"))], "immediately after: t1"),
        (
            [USER, assistant(use("t1")), user(result("t2"))],
            "unexpected `tool_use_id` found in `tool_result` blocks: t2",
        ),
        ([USER, assistant(use("t1")), user(result("t1"), result("t1"))], "multiple `tool_result` blocks with id: t1"),
        ([user(result("t1"))], "unexpected `tool_use_id`"),
        ([USER, assistant(use("a.b")), user(result("a.b"))], r"messages.1.content.0.id: String should match pattern"),
        ([USER, assistant(use("t1", input="{}")), user(result("t1"))], "input: Input should be a valid dictionary"),
        ([USER, assistant(use("t1"), use("t1")), user(result("t1"))], "ids must be unique"),
        ([USER, assistant({**THOUGHT, "signature": ""}, TEXT)], "Invalid `signature`"),
        ([USER, assistant({"type": "thinking", "thinking": "Hm"}, TEXT)], "signature: Field required"),
        ([USER, {"role": "assistant", "content": "So "}], "trailing whitespace"),
        ([user({"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": ""}})], "media_type"),
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_anthropic_refuses_these_messages(provider: FakeProvider, client: Any, messages: Any, message: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message) as caught:
        ask(client, messages, tools=[ADD])
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert provider.requests[0].request is None


CLOSED = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"extra_body": {"max_tokens": None}}, "max_tokens: Input should be a valid integer"),
        ({"tools": [{**ADD, "name": "math.add"}]}, "tools.0.name: String should match pattern"),
        ({"tools": [ADD, ADD]}, "Tool names must be unique"),
        ({"tools": [{**ADD, "input_schema": {"type": "array"}}]}, "Input should be 'object'"),
        ({"tools": [{**ADD, "input_schema": {}}]}, "input_schema.type: Field required"),
        ({"tools": [{**ADD, "input_schema": {**SCHEMA, "anyOf": []}}]}, "at the top level"),
        ({"tools": [{**ADD, "strict": True}]}, "'additionalProperties' must be explicitly set to false"),
        ({"tool_choice": {"type": "auto"}}, "while providing tools"),
        ({"tools": [ADD], "tool_choice": {"type": "tool", "name": "sub"}}, "Tool 'sub' not found"),
        ({"tools": [ADD], "tool_choice": {"type": "none", "disable_parallel_tool_use": True}}, "Extra inputs"),
        ({"thinking": {"type": "enabled", "budget_tokens": 100}}, "budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "must be greater than `thinking.budget_tokens`"),
        (
            {"tools": [ADD], "tool_choice": {"type": "any"}, "thinking": {"type": "enabled", "budget_tokens": 1024}},
            "forces tool use",
        ),
        ({"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, "'additionalProperties' must be"),
        ({"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}}, "'minimum' is not supported"),
        ({"output_config": {"format": {"type": "json_schema", "name": "r", "schema": {}}}}, "name: Extra inputs"),
        ({"stop_sequences": [" "]}, "non-whitespace"),
        ({"extra_body": {"seed": 3}}, "seed: Extra inputs are not permitted"),
        ({"extra_headers": {"anthropic-version": "2024-01-01"}}, "is not a valid version"),
        (
            {"extra_headers": {"anthropic-version": "2026-10-21"}, "extra_body": {"temperature": 1}},
            "temperature: Extra inputs",
        ),
        (
            {"extra_headers": {"anthropic-version": "2023-06-01"}, "extra_body": {"temperature": 2}},
            "temperature: Expected a value <= 1",
        ),
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_anthropic_refuses(client: Any, body: dict[str, Any], message: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=message):
        ask(client, **body)


def test_call_without_object_arguments_is_a_server_error_with_advice(provider: FakeProvider, client: Any) -> None:
    provider.script.add(ToolCall.read("t1", "add", "{nope"))
    with pytest.raises(anthropic.InternalServerError, match="arguments that are not an object"):
        ask(client)
