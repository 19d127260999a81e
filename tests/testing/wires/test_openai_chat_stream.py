"""Chat completions streamed by the fake provider: the official package reads the chunks and puts them together again."""

from __future__ import annotations

import json
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
ADD = {"type": "function", "function": {"name": "add", "strict": True, "parameters": SCHEMA}}
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
USAGE = {"stream_options": {"include_usage": True}}
CALLS = (ToolCall("call_a", "add", {"city": "Ōslo", "days": 3}), ToolCall("call_b", "add", {}))


@pytest.fixture
def client(provider: FakeProvider, openai_package: Any) -> Any:
    return openai_package.with_options(base_url=provider.url("openai"))


def collected(client: Any, **rest: Any) -> Any:
    """The answer that the package's own helper makes of the stream."""
    with client.chat.completions.stream(**ASK, **rest) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def deltas(client: Any, **rest: Any) -> list[dict[str, Any]]:
    with client.chat.completions.create(**ASK, stream=True, **rest) as chunks:
        return [choice.delta.model_dump(exclude_unset=True) for chunk in chunks for choice in chunk.choices]


def test_chunks_are_in_the_order_of_openai(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice("Hi you", CALLS))
    assert deltas(client, tools=[ADD]) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Hi"},
        {"content": " you"},
        {
            "tool_calls": [
                {"index": 0, "id": "call_a", "type": "function", "function": {"name": "add", "arguments": ""}}
            ]
        },
        *(
            {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
            for text in ['{"', "city", '":"', "Ōslo", '","', "days", '":', "3", "}"]
        ),
        {
            "tool_calls": [
                {"index": 1, "id": "call_b", "type": "function", "function": {"name": "add", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]


LONG = Response((Choice("Let me  see…\n", CALLS),), Usage(7, 3, 2, None, 1))


@at_most(20)
@given(how=cut_anywhere(LONG))
def test_official_package_assembles_the_same_answer_for_any_cut(openai_package: Any, how: Streamed) -> None:
    with FakeProvider([how]) as provider:
        client = openai_package.with_options(base_url=provider.url("openai"))
        completion = collected(client, tools=[ADD], **USAGE)
    (choice,) = completion.choices
    assert choice.message.content == "Let me  see…\n"
    assert [(call.id, json.loads(call.function.arguments)) for call in choice.message.tool_calls] == [
        (call.id, call.arguments) for call in CALLS
    ]
    assert choice.finish_reason == "tool_calls"
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (7, 3)
    assert completion.usage.prompt_tokens_details.cached_tokens == 2


async def test_async_client_reads_an_equal_answer() -> None:
    async with (
        FakeProvider(["Hello there"]) as provider,
        openai.AsyncOpenAI(base_url=provider.url("openai"), api_key="k", max_retries=0) as client,
        client.chat.completions.stream(**ASK) as stream,
    ):
        assert (await stream.get_final_completion()).choices[0].message.content == "Hello there"


def test_deltas_of_several_choices_alternate(provider: FakeProvider, client: Any) -> None:
    provider.script.add("one two", "three")
    with client.chat.completions.create(**ASK, n=2, stream=True) as stream:
        chunks = list(stream)
    assert [chunk.choices[0].index for chunk in chunks] == [0, 1, 0, 1, 0, 1, 0]
    provider.script.add("one two", "three")
    assert [choice.message.content for choice in collected(client, n=2).choices] == ["one two", "three"]


def test_usage_is_a_separate_chunk_when_requested(provider: FakeProvider, client: Any) -> None:
    provider.script.add("a", "a")
    with client.chat.completions.create(**ASK, stream=True, **USAGE) as stream:
        *chunks, last = list(stream)
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert (last.choices, last.usage.prompt_tokens) == ([], provider.requests[0].answer[-1]["usage"]["prompt_tokens"])  # type: ignore[index,call-overload]
    assert collected(client).usage is None


def test_a_refusal_is_streamed(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Choice(refusal="I will not."))
    assert collected(client).choices[0].message.refusal == "I will not."


def test_tokens_come_with_the_text_they_belong_to(provider: FakeProvider, client: Any) -> None:
    tokens = [{"token": token, "logprob": -0.5, "bytes": None, "top_logprobs": []} for token in ("He", "llo", " you")]
    provider.script.add(Streamed(Choice("Hello you", logprobs={"content": tokens}), cut=[5]))
    with client.chat.completions.create(**ASK, logprobs=True, stream=True) as stream:
        found = [chunk.choices[0].logprobs for chunk in stream]
    assert [[one.token for one in share.content] for share in found if share] == [["He", "llo"], [" you"]]


def test_error_in_the_stream_raises_the_error_of_the_official_package(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=2, fault=Fault("overloaded", "Busy")))
    seen = []
    with pytest.raises(openai.APIError, match="Busy"), client.chat.completions.create(**ASK, stream=True) as stream:
        seen.extend(chunk.choices[0].delta.content for chunk in stream)
    assert provider.requests[0].stream is not None
    assert (provider.requests[0].stream.wait(), provider.requests[0].stream.sent) == ("complete", 2)


def test_an_error_before_the_stream_has_its_status(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Fault("rate_limit"))
    with pytest.raises(openai.RateLimitError):
        collected(client)


def test_a_stream_that_breaks_off_is_a_connection_error(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=2))
    with breaks_off(provider):
        collected(client)


def test_a_stream_may_end_without_its_end_marker(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two", stop_after=99, clean=True))
    assert collected(client).choices[0].message.content == "one two"


def test_scripted_events_are_sent_unchanged(provider: FakeProvider, client: Any) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"content": "raw"}, "finish_reason": "stop"}
    provider.script.add(Events([": hello\n\n", {**chunk, "choices": [choice]}, b"data: [DONE]\n\n"]))
    assert collected(client).choices[0].message.content == "raw"


def test_disconnect_is_detected_while_the_next_event_waits(provider: FakeProvider, client: Any) -> None:
    gate = Gate()
    provider.script.add(Streamed("one two three four", gate=gate))
    gate.release(2)
    with client.chat.completions.create(**ASK, stream=True) as stream:
        texts = [next(stream).choices[0].delta.content for _ in range(2)]
        progress = provider.requests[0].stream
        assert progress is not None
        assert (progress.sent, progress.ended) == (2, None)
    assert texts == ["", "one"]
    assert progress.wait() == "client left"
    assert progress.sent == 2


@pytest.mark.parametrize("wanted", [True, False])
def test_deltas_are_padded_unless_the_request_disables_padding(
    provider: FakeProvider, client: Any, wanted: bool
) -> None:
    provider.script.add("one two", "one two")
    options = {} if wanted else {"stream_options": {"include_obfuscation": False}}
    for endpoint, ask in ((client.chat.completions, ASK), (client.responses, {"model": "m", "input": "Hi"})):
        list(endpoint.create(**ask, stream=True, **options))
    answers: Any = [sent.answer for sent in provider.requests]
    padded = ["obfuscation" in event for event in [answers[0][1], answers[1][4]]]
    assert padded == [wanted, wanted]
