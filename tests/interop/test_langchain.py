"""langchain's chat models as clients of ``FakeProvider``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from pydantic import BaseModel

from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import FakeProvider, Fault, Streamed

COMMAND = "pip install langchain-openai langchain-anthropic"
pytestmark = [
    pytest.mark.skipif(
        not (find_spec("langchain_openai") and find_spec("langchain_anthropic")),
        reason=f"langchain's packages for OpenAI and Anthropic are not installed: {COMMAND}",
    ),
    pytest.mark.filterwarnings("ignore"),  # those of langchain
]
WIRES = ["openai", "openai-responses", "anthropic", "compatible"]
CALLS = Choice("Sums.", (ToolCall("", "add", {"a": 1, "b": 2}), ToolCall("", "add", {"a": 3, "b": 4})), "Two sums")


class City(BaseModel):
    """A city and how many live there."""

    name: str
    people: int


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def model_at(provider: FakeProvider, wire: str) -> Any:
    place = {"base_url": provider.url(wire), "api_key": "any", "max_retries": 0}
    if wire == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model="claude-sonnet-4-5", **place)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4.1", use_responses_api=wire == "openai-responses", **place)


def reply_to(model: Any, messages: Any, streamed: bool) -> Any:
    if not streamed:
        return model.invoke(messages)
    first, *rest = model.stream(messages)
    return sum(rest, first)


each_wire = pytest.mark.parametrize("wire", WIRES)
whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@each_wire
@whole_and_streamed
def test_text_reasoning_and_usage_are_read(wire: str, streamed: bool) -> None:
    answer = Response((Choice("Hello there", reasoning="Hm"),), Usage(7, 3, 2, None, 1))
    with FakeProvider([answer]) as provider:
        reply = reply_to(model_at(provider, wire), "Hi", streamed)
    assert reply.text == "Hello there"
    thoughts = [block.get("reasoning") for block in reply.content_blocks if block["type"] == "reasoning"]
    assert thoughts == (["Hm"] if wire in ("openai-responses", "anthropic") else [])
    if not (streamed and wire == "openai"):  # a stream of OpenAI has counts only if the client asks for them
        counts = reply.usage_metadata
        assert (counts["input_tokens"], counts["output_tokens"], counts["input_token_details"]["cache_read"]) == (
            7,
            3,
            2,
        )


@each_wire
@whole_and_streamed
def test_parallel_calls_and_their_results_make_a_turn(wire: str, streamed: bool) -> None:
    from langchain_core.messages import HumanMessage, ToolMessage

    with FakeProvider([CALLS, "Done"]) as provider:
        model = model_at(provider, wire).bind_tools([add])
        turn = [HumanMessage("Hi")]
        reply = reply_to(model, turn, streamed)
        results = [ToolMessage(str(sum(call["args"].values())), tool_call_id=call["id"]) for call in reply.tool_calls]
        assert reply_to(model, [*turn, reply, *results], streamed).text == "Done"
    assert [call["args"] for call in reply.tool_calls] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    sent = provider.requests[1].request
    assert sent is not None
    assert [result.content for result in sent.messages[2].tool_results] == ["3", "7"]
    assert [call.arguments for call in sent.messages[1].tool_calls] == [call.arguments for call in CALLS.tool_calls]


@each_wire
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output_is_read(wire: str, method: str) -> None:
    values: Any = {"name": "Oslo", "people": 7}
    answer: Any = '{"name": "Oslo", "people": 7}' if method == "json_schema" else ToolCall("", "City", values)
    with FakeProvider([answer]) as provider:
        city = model_at(provider, wire).with_structured_output(City, method=method).invoke("Where?")
    assert city == City(name="Oslo", people=7)
    sent = provider.requests[0].request
    assert sent is not None
    assert (sent.response_format is not None) == (method == "json_schema")
    assert bool(sent.tools) == (method == "function_calling")


@each_wire
@pytest.mark.parametrize(("kind", "status"), [("rate_limit", 429), ("context_length", 400), ("server", 500)])
def test_fault_raises_an_error_with_its_status(wire: str, kind: Any, status: int) -> None:
    with FakeProvider([Fault(kind)]) as provider, pytest.raises(Exception, match=str(status)) as caught:
        model_at(provider, wire).invoke("Hi")
    assert getattr(caught.value, "status_code", None) == status


@each_wire
def test_error_inside_a_stream_is_raised(wire: str) -> None:
    answer = Streamed("Hello there", stop_after=2, fault=Fault("server", "The fake provider failed."))
    with FakeProvider([answer]) as provider, pytest.raises(Exception, match="fake provider failed"):
        list(model_at(provider, wire).stream("Hi"))
