"""Gemini's chunks from the fake provider: the official google-genai package reads them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import FakeProvider, Fault, Gate, Streamed
from tests.strategies import at_most
from tests.testing.breaking import breaks_off

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the package warns about itself while it is imported
    genai = pytest.importorskip("google.genai", reason="the official google-genai package is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TOOLS = [{"function_declarations": [{"name": "add", "parameters_json_schema": {"type": "object"}}]}]
CALLS = (ToolCall("c1", "add", {"city": "Ōslo", "days": 3}), ToolCall("c2", "add", {}))


@pytest.fixture(scope="module")
def package() -> Iterator[Any]:
    """Making a client is slow; one is pointed at the provider of each test."""
    client = genai.Client(api_key="secret", http_options={"base_url": "http://127.0.0.1:1"})
    yield client
    client.close()


def stream(package: Any, provider: FakeProvider, **config: Any) -> Iterator[Any]:
    there = {"base_url": provider.url("gemini")}
    rest = {"automatic_function_calling": {"disable": True}, "http_options": there, **config}
    chunks: Iterator[Any] = package.models.generate_content_stream(model="m", contents="Hi", config=rest)
    return chunks


def test_chunks_are_in_the_order_of_gemini(provider: FakeProvider, package: Any) -> None:
    provider.script.add(Response((Choice("Hi you", CALLS, "Hm"),), Usage(7, 5, reasoning_tokens=2)))
    chunks = list(stream(package, provider, tools=TOOLS))
    (first, *texts, call, second, last) = [chunk.candidates[0].content.parts[0] for chunk in chunks]
    assert (first.text, first.thought) == ("Hm", True)
    assert [part.text for part in texts] == ["Hi", " you"]
    assert [part.function_call.args for part in (call, second)] == [call.arguments for call in CALLS]
    assert [bool(part.thought_signature) for part in (call, second)] == [True, False]
    assert (last.text, chunks[-1].candidates[0].finish_reason) == ("", "STOP")
    assert [chunk.candidates[0].finish_reason for chunk in chunks[:-1]] == [None] * 5
    usage = chunks[-1].usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count) == (7, 3, 2)


@at_most(20)
@given(seed=st.integers(), packets=st.integers(1, 300), newline=st.sampled_from([None, "\n", "\r\n"]))
def test_texts_are_the_same_for_any_cut(package: Any, seed: int, packets: int, newline: Any) -> None:
    answer = Choice("Let me  see…\n", reasoning="Two  sums")
    with FakeProvider([Streamed(answer, seed=seed, packets=packets, newline=newline)]) as provider:
        parts = [part for chunk in stream(package, provider) for part in chunk.candidates[0].content.parts]
    assert "".join(part.text for part in parts if not part.thought) == answer.text
    assert "".join(part.text for part in parts if part.thought) == answer.reasoning


async def test_async_client_reads_an_equal_answer() -> None:
    async with FakeProvider(["Hello there"]) as provider:
        client = genai.Client(api_key="k", http_options={"base_url": provider.url("gemini")})
        texts = [
            chunk.text async for chunk in await client.aio.models.generate_content_stream(model="m", contents="Hi")
        ]
        await client.aio.aclose()
        client.close()
    assert texts == ["Hello", " there", ""]


def test_deltas_of_candidates_alternate(provider: FakeProvider, package: Any) -> None:
    provider.script.add("one two", "three")
    chunks = list(stream(package, provider, candidate_count=2))
    found = [(chunk.candidates[0].index, chunk.candidates[0].content.parts[0].text) for chunk in chunks]
    assert found == [(0, "one"), (1, "three"), (0, " two"), (1, ""), (0, "")]


def test_a_blocked_prompt_is_one_chunk_without_candidates(provider: FakeProvider, package: Any) -> None:
    provider.script.add(Choice(refusal="No."))
    (chunk,) = stream(package, provider)
    assert (chunk.candidates, chunk.prompt_feedback.block_reason) == (None, "PROHIBITED_CONTENT")


def test_without_alt_sse_it_is_one_array(provider: FakeProvider, package: Any) -> None:
    provider.script.add("one two")
    body = {"contents": [{"parts": [{"text": "Hi"}]}]}
    there = genai.types.HttpOptions(base_url=provider.url("gemini"))
    answer = package._api_client.request("post", "models/m:streamGenerateContent", body, there)
    parts = [chunk["candidates"][0]["content"]["parts"][0] for chunk in json.loads(answer.body)]
    assert [part["text"] for part in parts] == ["one", " two", ""]


def test_error_in_the_stream_raises_the_error_of_the_official_package(provider: FakeProvider, package: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=1, fault=Fault("overloaded")))
    with pytest.raises(genai.errors.ServerError) as caught:
        list(stream(package, provider))
    assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")


def test_a_stream_that_breaks_off_is_a_connection_error(provider: FakeProvider, package: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=1))
    with breaks_off(provider):
        list(stream(package, provider))


def test_disconnect_is_detected_while_the_next_event_waits(provider: FakeProvider, package: Any) -> None:
    gate = Gate(1)
    provider.script.add(Streamed("one two three four", gate=gate))
    chunks: Any = stream(package, provider)
    assert next(chunks).text == "one"
    chunks.close()
    progress = provider.requests[0].stream
    assert progress is not None
    assert (progress.wait(), progress.sent) == ("client left", 1)
