"""The Responses wire of the fake provider: the official package as the referee, and what OpenAI refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.testing import FakeProvider, Fault
from tests.packages import Package

openai = Package("openai")

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "name": "add", "description": "Add.", "parameters": SCHEMA, "strict": False}
USER = {"role": "user", "content": "Hi"}


def call(id: str, **rest: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": "add", "arguments": '{"a":1}', **rest}


def output(id: str, **rest: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": "1", **rest}


@pytest.fixture
def client(provider: FakeProvider, openai_package: Any) -> Any:
    return openai_package.with_options(base_url=provider.url("openai-responses"))


def ask(client: Any, items: Any = "Hi", **rest: Any) -> Any:
    return client.responses.create(model="m", input=items, **rest)


def test_a_text_comes_as_a_message_with_usage(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Response((Choice("Hello"),), Usage(7, 3, 2, None, 1)))
    answer = ask(client)
    assert (answer.output_text, answer.status) == ("Hello", "completed")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (7, 3, 10)
    assert answer.usage.input_tokens_details.cached_tokens == 2
    assert answer.usage.output_tokens_details.reasoning_tokens == 1


def test_reasoning_and_parallel_calls_come_as_items_and_can_be_sent_back(provider: FakeProvider, client: Any) -> None:
    calls = (ToolCall("call_1", "add", {"a": 1}), ToolCall("", "add", {}))
    provider.script.add(Choice("", calls, reasoning="Two sums"), "3")
    answer = ask(client, tools=[ADD])
    assert [item.type for item in answer.output] == ["reasoning", "function_call", "function_call"]
    assert answer.output[0].summary[0].text == "Two sums"
    assert [json.loads(item.arguments) for item in answer.output[1:]] == [{"a": 1}, {}]
    outputs = [output(item.call_id) for item in answer.output[1:]]
    assert ask(client, [USER, *answer.output, *outputs], tools=[ADD]).output_text == "3"
    request = provider.requests[1].request
    assert request is not None
    assert [message.role for message in request.messages] == ["user", "assistant", "tool"]
    assert request.messages[1].tool_calls[0].arguments == {"a": 1}


def test_request_of_the_official_package_is_read_as_the_canonical_request(provider: FakeProvider, client: Any) -> None:
    provider.script.add("Done")
    ask(
        client,
        [USER, call("a"), call("b"), output("a"), output("b", output="ERROR: no")],
        instructions="S",
        tools=[ADD],
        tool_choice={"type": "function", "name": "add"},
        parallel_tool_calls=False,
        max_output_tokens=50,
        reasoning={"effort": "low"},
        text={"format": {"type": "json_schema", "name": "r", "schema": {"type": "object"}}},
    )
    parsed = [ToolCall.read(id, "add", '{"a":1}') for id in "ab"]
    assert provider.requests[0].request == Request(
        (
            Message.system("S"),
            Message.user("Hi"),
            Message("assistant", tuple(parsed)),
            Message.tool(ToolResult("a", "add", "1"), ToolResult("b", "add", "ERROR: no")),
        ),
        ({"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}},),
        ToolChoice.named("add"),
        False,
        ResponseFormat({"type": "object"}, "r"),
        {"max_tokens": 50, "reasoning": "low"},
    )


def test_refused_and_truncated_answers_have_their_finish_reasons(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice(refusal="No."), Choice("Long", finish_reason="length"))
    assert ask(client).output[0].content[0].refusal == "No."
    cut = ask(client)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_structured_output_parses_into_the_packages_model(provider: FakeProvider, client: Any) -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        city: str

    provider.script.add('{"city": "Oslo"}')
    assert client.responses.parse(model="m", input="Hi", text_format=Answer).output_parsed == Answer(city="Oslo")


def test_fault_raises_the_error_of_the_official_package(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Fault("rate_limit"))
    with pytest.raises(openai.RateLimitError):
        ask(client)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"items": []}, "empty array"),
        ({"items": [USER, call("a")]}, "No tool output found for function call a"),
        ({"items": [USER, output("a")]}, "No tool call found for function call output with call_id a"),
        ({"items": [USER, call("a", arguments={}), output("a")]}, "expected a string, but got an object"),
        ({"items": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "Supported values"),
        ({"items": [{"role": "tool", "content": "x"}]}, "Supported values"),
        ({"tools": [{"type": "function", "function": {"name": "add"}}]}, r"tools\[0\].function"),
        ({"tools": [{**ADD, "name": "math.add"}]}, "does not match pattern"),
        ({"tools": [{**ADD, "strict": True}]}, "'additionalProperties' is required"),
        ({"tools": [ADD], "tool_choice": {"type": "function", "name": "sub"}}, "'sub' not found"),
        ({"tools": [ADD], "tool_choice": {"type": "function", "function": {"name": "add"}}}, "Unknown parameter"),
        ({"extra_body": {"stop": ["x"]}}, "Unknown parameter: 'stop'"),
        ({"extra_body": {"messages": []}}, "Unknown parameter: 'messages'"),
        ({"max_output_tokens": 1}, ">= 16"),
        ({"previous_response_id": "resp_1"}, "stores nothing"),
    ],
    ids=lambda value: json.dumps(value)[:70],
)
def test_openai_refuses(provider: FakeProvider, client: Any, body: dict[str, Any], message: str) -> None:
    with pytest.raises(openai.BadRequestError, match=message):
        ask(client, **body)
    assert provider.requests[0].request is None


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_references_to_items_of_earlier_answers_are_read(provider: FakeProvider, client: Any, streamed: bool) -> None:
    provider.script.add(Choice("See", (ToolCall("call_1", "add", {"a": 1}),), "Hm"), "Done")
    answer = ask(client, tools=[ADD], stream=streamed)
    items = list(answer)[-1].response.output if streamed else answer.output
    references = [{"type": "item_reference", "id": item.id} for item in items]
    assert ask(client, items=[USER, *references, output("call_1")], tools=[ADD]).output_text == "Done"
    sent = provider.requests[1].request
    assert sent is not None
    assert [part.kind for part in sent.messages[1].parts] == ["opaque", "text", "tool_call"]
    assert sent.messages[2].tool_results[0].name == "add"


def test_references_to_items_that_are_not_stored_are_refused(provider: FakeProvider, client: Any) -> None:
    provider.script.add("Hi")
    item = ask(client, store=False).output[0]
    for lost in (item.id, "msg_other"):
        with pytest.raises(openai.NotFoundError, match=f"Item with id '{lost}' not found"):
            ask(client, items=[USER, {"type": "item_reference", "id": lost}])
