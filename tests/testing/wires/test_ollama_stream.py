"""Ollama's lines from the fake provider: the official package reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import Events, FakeProvider, Fault, Gate, Streamed
from tests.strategies import at_most
from tests.testing.breaking import breaks_off

ollama = pytest.importorskip("ollama", reason="the official ollama package is not installed")

ADD = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {"type": "object"}}}
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
CALLS = (ToolCall("call_a", "add", {"city": "Ōslo", "days": 3}), ToolCall("call_b", "add", {}))


@pytest.fixture
def client(provider: FakeProvider) -> Iterator[Any]:
    client = ollama.Client(host=provider.url("ollama"), verify=False)  # no authorities are loaded
    yield client
    client._client.close()


def test_lines_are_in_the_order_of_ollama(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Response((Choice("Hi you", CALLS, "Hm"),), Usage(7, 3)))
    *lines, last = client.chat(**ASK, tools=[ADD])
    assert [line.message.model_dump(exclude_none=True) for line in lines] == [
        {"role": "assistant", "content": "", "thinking": "Hm"},
        {"role": "assistant", "content": "Hi"},
        {"role": "assistant", "content": " you"},
        *(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "add", "arguments": call.arguments}}],
            }
            for call in CALLS
        ),
    ]
    assert not any(line.done for line in lines)
    assert (last.done, last.done_reason, last.message.content) == (True, "stop", "")
    assert (last.prompt_eval_count, last.eval_count) == (7, 3)


@at_most(20)
@given(seed=st.integers(), packets=st.integers(1, 300))
def test_texts_are_the_same_for_any_cut(seed: int, packets: int) -> None:
    answer = Choice("Let me  see…\n", reasoning="Two  sums")
    with FakeProvider([Streamed(answer, seed=seed, packets=packets)]) as provider:
        client = ollama.Client(host=provider.url("ollama"))
        lines = list(client.chat(**ASK))
        client._client.close()
    assert "".join(line.message.content for line in lines) == answer.text
    assert "".join(line.message.thinking or "" for line in lines) == answer.reasoning


async def test_async_client_reads_an_equal_answer() -> None:
    async with FakeProvider(["Hello there"]) as provider:
        client = ollama.AsyncClient(host=provider.url("ollama"))
        texts = [line.message.content async for line in await client.chat(**ASK)]
        await client._client.aclose()
    assert texts == ["Hello", " there", ""]


def test_request_without_stream_field_streams(provider: FakeProvider, client: Any) -> None:
    provider.script.add("one two")
    body = {name: value for name, value in ASK.items() if name != "stream"}
    answer = client._request_raw("POST", "/api/chat", json=body)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert len(answer.text.splitlines()) == 3


def test_error_in_the_stream_raises_the_error_of_the_official_package(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=1, fault=Fault("server", "runner died")))
    with pytest.raises(ollama.ResponseError, match="runner died"):
        list(client.chat(**ASK))


def test_a_stream_that_breaks_off_is_a_connection_error(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("one two three", stop_after=1))
    with breaks_off(provider):
        list(client.chat(**ASK))


def test_events_are_lines(provider: FakeProvider, client: Any) -> None:
    line = {"model": "m", "message": {"role": "assistant", "content": "raw"}, "done": True}
    provider.script.add(Events([line]))
    assert [found.message.content for found in client.chat(**ASK)] == ["raw"]


def test_tokens_come_with_the_text_they_belong_to(provider: FakeProvider, client: Any) -> None:
    provider.script.add(Streamed("Hello you", cut=[5]))
    lines = list(client.chat(**ASK, logprobs=True))
    assert [[one.token for one in line.logprobs or ()] for line in lines] == [["Hello"], [" you"], []]


def test_disconnect_is_detected_while_the_next_event_waits(provider: FakeProvider, client: Any) -> None:
    gate = Gate(1)
    provider.script.add(Streamed("one two three four", gate=gate))
    stream = client.chat(**ASK)
    assert next(stream).message.content == "one"
    stream.close()
    progress = provider.requests[0].stream
    assert progress is not None
    assert (progress.wait(), progress.sent) == ("client left", 1)
