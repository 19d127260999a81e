"""Messages streamed by the fake provider: the official package reads the events and puts them together again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import Events, FakeProvider, Fault, Gate, Streamed
from tests.packages import Package
from tests.strategies import at_most
from tests.testing.breaking import breaks_off
from tests.testing.cutting import cut_anywhere

anthropic = Package("anthropic")

ADD = {"name": "add", "input_schema": {"type": "object"}}
ASK: dict[str, Any] = {"model": "m", "max_tokens": 2048, "messages": [{"role": "user", "content": "Hi"}]}
CALLS = (ToolCall("toolu_a", "add", {"city": "Ōslo", "days": 3}), ToolCall("toolu_b", "add", {}))


@pytest.fixture
def client(provider: FakeProvider, anthropic_package: Any) -> Any:
    return anthropic_package.with_options(base_url=provider.url("anthropic"))


def collected(client: Any, **rest: Any) -> Any:
    """The answer that the package's own helper makes of the stream."""
    with client.messages.stream(**ASK, **rest) as stream:
        return stream.get_final_message()


def test_events_are_in_the_order_of_anthropic(provider: FakeProvider, client: Any) -> None:
    provider.script.add(
        Choice.from_parts([ThinkingPart("Hm", "SIG"), TextPart("Hi you"), ToolCall("t1", "add", {"x": 1}), CALLS[1]])
    )
    with client.messages.create(**ASK, tools=[ADD], stream=True) as stream:
        shown = [_shown(event) for event in stream]
    assert shown == [
        "message_start",
        "content_block_start 0 thinking",
        "content_block_delta 0 thinking_delta Hm",
        "content_block_delta 0 signature_delta SIG",
        "content_block_stop 0",
        "content_block_start 1 text",
        "content_block_delta 1 text_delta Hi",
        "content_block_delta 1 text_delta  you",
        "content_block_stop 1",
        "content_block_start 2 tool_use",
        *(f"content_block_delta 2 input_json_delta {text}" for text in ["", '{"', "x", '":', "1", "}"]),
        "content_block_stop 2",
        "content_block_start 3 tool_use",
        "content_block_delta 3 input_json_delta ",
        "content_block_stop 3",
        "message_delta tool_use",
        "message_stop",
    ]
    assert {"type": "ping"} in provider.requests[0].answer  # type: ignore[operator]


def _shown(event: Any) -> str:
    if event.type == "content_block_delta":
        (text,) = (value for name, value in event.delta.model_dump().items() if name != "type")
        return f"{event.type} {event.index} {event.delta.type} {text}"
    if event.type == "content_block_start":
        return f"{event.type} {event.index} {event.content_block.type}"
    return {
        "content_block_stop": lambda: f"{event.type} {event.index}",
        "message_delta": lambda: f"{event.type} {event.delta.stop_reason}",
    }.get(event.type, lambda: str(event.type))()


LONG = Response((Choice("Let me  see…\n", CALLS, "Two  sums"),), Usage(10, 7, 4, 1, 2))


@at_most(20)
@given(how=cut_anywhere(LONG))
@pytest.mark.long
def test_official_package_assembles_the_same_answer_for_any_cut(anthropic_package: Any, how: Streamed) -> None:
    with FakeProvider([how, LONG]) as provider:
        client = anthropic_package.with_options(base_url=provider.url("anthropic"))
        streamed = collected(client, tools=[ADD])
        whole = client.messages.create(**ASK, tools=[ADD])
    assert [_without_ids(block) for block in streamed.content] == [_without_ids(block) for block in whole.content]
    assert (streamed.stop_reason, streamed.usage.output_tokens) == ("tool_use", 7)
    assert (streamed.usage.input_tokens, streamed.usage.cache_read_input_tokens) == (5, 4)
    assert streamed.usage.cache_creation_input_tokens == 1


def _without_ids(block: Any) -> Any:
    return {name: value for name, value in block.model_dump(exclude_none=True).items() if name != "signature"}


async def test_async_client_reads_an_equal_answer() -> None:
    async with (
        FakeProvider(["Hello there"]) as provider,
        anthropic.AsyncAnthropic(base_url=provider.url("anthropic"), api_key="k", max_retries=0) as client,
        client.messages.stream(**ASK) as stream,
    ):
        assert await stream.get_final_text() == "Hello there"


def test_a_refusal_citations_and_blocks_of_other_kinds_are_streamed(provider: FakeProvider, client: Any) -> None:
    where = {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None}
    cited = {**where, "start_char_index": 0, "end_char_index": 1, "file_id": None}
    provider.script.add(
        Choice(refusal="No."),
        Choice("So", citations=(cited,)),
        Choice.from_parts([OpaquePart("anthropic", {"type": "redacted_thinking", "data": "XYZ"}), TextPart("So")]),
    )
    refused = collected(client)
    assert (refused.stop_reason, refused.stop_details.explanation, refused.content) == ("refusal", "No.", [])
    assert [citation.cited_text for citation in collected(client).content[0].citations] == ["x"]
    assert collected(client).content[0].data == "XYZ"


def test_error_in_the_stream_raises_the_error_of_the_official_package(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=4, fault=Fault("overloaded")))
    with pytest.raises(anthropic.APIStatusError) as caught:
        collected(client)
    assert caught.value.body["error"] == {"type": "overloaded_error", "message": "Overloaded"}


def test_a_stream_that_breaks_off_is_a_connection_error(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=4))
    with breaks_off(provider):
        collected(client)


def test_events_have_their_names(provider: FakeProvider, client: Any) -> None:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    start = {"type": "message_start", "message": {**message, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    provider.script.add(Events([start, "event: new\ndata: {}\n\n", {"type": "message_stop"}]))
    assert collected(client).content == []


def test_disconnect_is_detected_while_the_next_event_waits(provider: FakeProvider, client: Any) -> None:
    gate = Gate(4)
    provider.script.add(Streamed("one two three four", gate=gate))
    with client.messages.stream(**ASK) as stream:
        assert next(iter(stream.text_stream)) == "one"
    progress = provider.requests[0].stream
    assert progress is not None
    assert (progress.wait(), progress.sent) == ("client left", 4)
