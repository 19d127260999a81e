"""Responses streamed by the fake provider: the official package reads the typed events and puts them together again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import Events, FakeProvider, Fault, Gate, Streamed
from tests.packages import Package
from tests.strategies import at_most
from tests.testing.breaking import breaks_off
from tests.testing.cutting import cut_anywhere

openai = Package("openai")

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
ADD = {"type": "function", "name": "add", "strict": True, "parameters": SCHEMA}
ASK: dict[str, Any] = {"model": "m", "input": "Hi"}
CALLS = (ToolCall("call_a", "add", {"city": "Ōslo", "days": 3}), ToolCall("call_b", "add", {}))


@pytest.fixture
def client(provider: FakeProvider, openai_package: Any) -> Any:
    return openai_package.with_options(base_url=provider.url("openai-responses"))


def collected(client: Any, **rest: Any) -> Any:
    """The answer that the package's own helper makes of the stream."""
    with client.responses.stream(**ASK, **rest) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def test_events_are_numbered_and_in_the_order_of_openai(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice("Hi you", CALLS[1:], "Hm"))
    with client.responses.create(**ASK, tools=[ADD], stream=True) as stream:
        events = list(stream)
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(20))
    assert [event.output_index for event in events if event.type == "response.output_item.added"] == [0, 1, 2]
    assert events[2].item.encrypted_content != events[7].item.encrypted_content


def test_every_event_is_of_the_packages_types(provider: FakeProvider, client: Any) -> None:
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    tokens = {"include": ["message.output_text.logprobs"]}
    cited = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    provider.script.add(Choice("Hi", CALLS, "Hm", citations=(cited,)), Choice(refusal="No."))
    known = TypeAdapter(ResponseStreamEvent)
    for _ in range(2):
        list(client.responses.create(**ASK, tools=[ADD], stream=True, **tokens))
    for request in provider.requests:
        for event in request.answer:  # type: ignore[union-attr]
            known.validate_python(event)


LONG = Response((Choice("Let me  see…\n", CALLS, "Two  sums"),), Usage(7, 3, 2, None, 1))


@at_most(20)
@given(how=cut_anywhere(LONG))
@pytest.mark.long
def test_official_package_assembles_the_same_answer_for_any_cut(openai_package: Any, how: Streamed) -> None:
    texts: list[str] = []
    with FakeProvider([how]) as provider:
        client = openai_package.with_options(base_url=provider.url("openai-responses"))
        with client.responses.stream(**ASK, tools=[ADD]) as stream:
            texts.extend(event.delta for event in stream if event.type == "response.output_text.delta")
            final = stream.get_final_response()
    assert "".join(texts) == final.output_text == "Let me  see…\n"
    assert final.output[0].summary[0].text == "Two  sums"
    assert [(item.call_id, item.parsed_arguments) for item in final.output[2:]] == [
        (call.id, call.arguments) for call in CALLS
    ]
    assert (final.usage.input_tokens, final.usage.output_tokens, final.usage.total_tokens) == (7, 3, 10)


async def test_async_client_reads_an_equal_answer() -> None:
    async with (
        FakeProvider(["Hello there"]) as provider,
        openai.AsyncOpenAI(base_url=provider.url("openai-responses"), api_key="k", max_retries=0) as client,
        client.responses.stream(**ASK) as stream,
    ):
        assert (await stream.get_final_response()).output_text == "Hello there"


def test_truncated_answer_ends_incomplete(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice("Long", finish_reason="length"))
    with client.responses.create(**ASK, stream=True) as stream:
        *_, last = stream
    assert (last.type, last.response.incomplete_details.reason) == ("response.incomplete", "max_output_tokens")


def test_tokens_come_with_the_text_they_belong_to(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("Hello you", cut=[5]))
    with client.responses.create(**ASK, stream=True, include=["message.output_text.logprobs"]) as stream:
        deltas = [event.logprobs for event in stream if event.type == "response.output_text.delta"]
    assert [[one.token for one in share] for share in deltas] == [["Hello"], [" you"]]


def test_an_error_inside_the_stream_is_an_event(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=5, fault=Fault("rate_limit", "Slow down")))
    with client.responses.create(**ASK, stream=True) as stream:
        *_, last = stream
    assert (last.type, last.sequence_number, last.code, last.message) == (
        "error",
        5,
        "rate_limit_exceeded",
        "Slow down",
    )


def test_a_stream_that_breaks_off_is_a_connection_error(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=5))
    with breaks_off(provider):
        collected(client)


def test_events_have_their_names(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Events([{"type": "response.new_thing", "sequence_number": 0}]))
    with client.responses.create(**ASK, stream=True) as stream:
        assert [event.type for event in stream] == ["response.new_thing"]


def test_disconnect_is_detected_while_the_next_event_waits(provider: FakeProvider, client: Any) -> None:
    gate = Gate(3)
    provider.script.add(Streamed("one two three four", gate=gate))
    with client.responses.create(**ASK, stream=True) as stream:
        assert [next(stream).sequence_number for _ in range(3)] == [0, 1, 2]
    progress = provider.requests[0].stream
    assert progress is not None
    assert (progress.wait(), progress.sent) == ("client left", 3)
