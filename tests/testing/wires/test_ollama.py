"""The Ollama wire of the fake provider: the official package as the referee, and what Ollama refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.testing import FakeProvider, Fault

ollama = pytest.importorskip("ollama", reason="the official ollama package is not installed")

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}}
USER = {"role": "user", "content": "Hi"}


@pytest.fixture
def client(provider: FakeProvider) -> Iterator[Any]:
    client = ollama.Client(host=provider.url("ollama"), verify=False)  # no authorities are loaded
    yield client
    client._client.close()


def test_a_text_comes_with_counts_and_thinking(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Response((Choice("Hello", reasoning="Hm"),), Usage(7, 3)))
    answer = client.chat("m", [USER])
    assert (answer.message.content, answer.message.thinking) == ("Hello", "Hm")
    assert (answer.done, answer.done_reason, answer.prompt_eval_count, answer.eval_count) == (True, "stop", 7, 3)


def test_parallel_calls_come_with_arguments_as_objects(provider: FakeProvider, client: Any) -> None:
    provider.script.add([ToolCall("call_1", "add", {"a": 1}), ToolCall("", "add", {})])
    answer = client.chat("m", [USER], tools=[ADD])
    assert [dict(call.function.arguments) for call in answer.message.tool_calls] == [{"a": 1}, {}]
    sent = provider.requests[0].answer["message"]["tool_calls"]  # type: ignore[index,call-overload]
    assert sent[0]["id"] == "call_1"  # type: ignore[index,call-overload]


def test_request_of_the_official_package_is_read_as_the_canonical_request(provider: FakeProvider, client: Any) -> None:
    provider.script.add("Done")
    calls = [{"function": {"name": "add", "arguments": {"a": 1}}}, {"function": {"name": "sub", "arguments": {}}}]
    client.chat(
        "m",
        [
            {"role": "system", "content": "S"},
            USER,
            {"role": "assistant", "thinking": "Hm", "tool_calls": calls},
            {"role": "tool", "tool_name": "sub", "content": "2"},
            {"role": "tool", "tool_name": "add", "content": "1"},
        ],
        tools=[ADD],
        format=SCHEMA,
        think=False,
        options={"num_predict": 5, "temperature": 0},
    )
    assert provider.requests[0].request == Request(
        (
            Message.system("S"),
            Message.user("Hi"),
            Message(
                "assistant", (ThinkingPart("Hm"), ToolCall("call_0", "add", {"a": 1}), ToolCall("call_1", "sub", {}))
            ),
            Message.tool(ToolResult("call_1", "sub", "2"), ToolResult("call_0", "add", "1")),
        ),
        (ADD,),
        response_format=ResponseFormat(SCHEMA),
        options={"temperature": 0.0, "max_tokens": 5, "reasoning": "off"},
    )


def test_results_are_matched_by_name_and_order_when_calls_had_no_ids(provider: FakeProvider, client: Any) -> None:
    provider.script.add("Done")
    calls: Any = [{"function": {"name": name, "arguments": {}}} for name in ("add", "sub", "add")]
    results = [
        {"role": "tool", "tool_call_id": "mine_3", "tool_name": "sub", "content": "2"},
        {"role": "tool", "tool_call_id": "mine_1", "content": "1"},
        {"role": "tool", "tool_call_id": "mine_2", "tool_name": "add", "content": "3"},
    ]
    body: Any = {
        "model": "m",
        "stream": False,
        "messages": [USER, {"role": "assistant", "tool_calls": calls}, *results],
    }
    client._request_raw("POST", "/api/chat", json=body)
    request = provider.requests[0].request
    assert request is not None
    assert request.messages[2] == Message.tool(
        ToolResult("call_1", "sub", "2"), ToolResult("call_0", "add", "1"), ToolResult("call_2", "add", "3")
    )


def test_truncated_answer_has_its_done_reason(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice("Long", finish_reason="length"))
    assert client.chat("m", [USER]).done_reason == "length"


async def test_async_client_receives_the_answer() -> None:
    async with FakeProvider("Hello") as provider:
        client = ollama.AsyncClient(host=provider.url("ollama"))
        answer = await client.chat("m", [USER])
        await client._client.aclose()
    assert answer.message.content == "Hello"


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault("auth"), 401),
        (Fault("not_found"), 404),
        (Fault("overloaded"), 503),
        (Fault("server"), 500),
        (Fault("context_length"), 400),
        (Fault(status=502, message="bad gateway"), 502),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_fault_raises_the_error_of_the_official_package(
    provider: FakeProvider, client: Any, fault: Fault, status: int
) -> None:
    provider.script.add(fault)
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat("m", [USER])
    assert caught.value.status_code == status
    assert caught.value.error


def called(arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": arguments}}]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": [USER, called('{"a":1}')]}, "cannot unmarshal string into Go struct field"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "invalid role: wizard"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "cannot unmarshal array"),
        ({"messages": [{"role": "user", "content": "x", "images": ["data:image/png;base64,AA"]}]}, "illegal base64"),
        ({"think": "deep"}, "invalid think value"),
        ({"format": "xml"}, "invalid format"),
        ({"top_logprobs": 30}, "<= 20"),
        ({"options": {"stop": "END"}}, "cannot unmarshal string"),
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_ollama_refuses(provider: FakeProvider, client: Any, body: dict[str, Any], message: str) -> None:
    whole = {"model": "m", "stream": False, "messages": [USER], **body}
    with pytest.raises(ollama.ResponseError, match=message) as caught:
        client._request_raw("POST", "/api/chat", json=whole)
    assert caught.value.status_code == 400
    assert provider.requests[0].request is None


def test_unknown_fields_of_ollama_are_ignored_and_images_are_read(provider: FakeProvider, client: Any) -> None:
    provider.script.add("ok")
    body = {"model": "m", "stream": False, "tool_choice": "auto", "messages": [{**USER, "images": ["AAAA"]}]}
    client._request_raw("POST", "/api/chat", json=body)
    request = provider.requests[0].request
    assert request is not None
    assert request.messages[0].parts[0] == TextPart("Hi")
    assert request.messages[0].parts[1].to_json() == {"type": "image", "data": "AAAA"}
