"""Recorded streams of every wire, complete, truncated and compared with replies that are not streamed."""

from __future__ import annotations

import pytest

from sigwire.core.events import ResponseEnd, TextDelta, ToolCallEnd, ToolCallStart
from sigwire.core.response import Response
from sigwire.errors import LMTransportError
from tests.conformance import (
    test_wire_anthropic_streams,
    test_wire_gemini_streams,
    test_wire_ollama_streams,
    test_wire_openai_chat_streams,
    test_wire_openai_responses_streams,
)
from tests.conformance.recordings import Exchange
from tests.conformance.wire_streams import Streams

WIRES: dict[str, Streams] = {
    "anthropic": test_wire_anthropic_streams.STREAMS,
    "gemini": test_wire_gemini_streams.STREAMS,
    "ollama": test_wire_ollama_streams.STREAMS,
    "openai-chat": test_wire_openai_chat_streams.STREAMS,
    "openai-responses": test_wire_openai_responses_streams.STREAMS,
}


def answers(*names: str) -> list[object]:
    return [
        pytest.param(WIRES[name], exchange, id=f"{name}-{exchange['id']}-{exchange['provider']}")
        for name in names or WIRES
        for exchange in WIRES[name].answers
    ]


pytestmark = pytest.mark.skipif(not answers(), reason="no recorded traffic; set SIGWIRE_FIXTURES")


@pytest.mark.parametrize(("wire", "exchange"), answers())
def test_stream_gives_the_same_response_as_its_body(wire: Streams, exchange: Exchange) -> None:
    response = wire.response(exchange)
    assert response == wire.codec.decode(response.raw, wire.sent_of(exchange), wire.target_of(exchange))


@pytest.mark.parametrize(("wire", "exchange"), answers())
def test_deltas_of_a_stream_add_up_to_the_response(wire: Streams, exchange: Exchange) -> None:
    (choice,) = wire.response(exchange).choices
    events = wire.stream_events(exchange)
    calls = [(call.id, call.name) for call in choice.tool_calls]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == choice.text
    assert [(event.id, event.name) for event in events if isinstance(event, ToolCallStart)] == calls
    assert [(event.call.id, event.call.name) for event in events if isinstance(event, ToolCallEnd)] == calls


@pytest.mark.parametrize(("wire", "exchange"), answers())
def test_truncated_stream_is_an_error_with_the_partial_response(wire: Streams, exchange: Exchange) -> None:
    events = wire.events(exchange)
    with pytest.raises(LMTransportError, match="before the end of the answer") as caught:
        wire.stream_events(exchange, events[: wire.cut(events)])
    assert caught.value.retryable
    choices = (caught.value.partial or Response()).choices
    said = "".join(choice.text for choice in choices)
    assert (exchange["expected"]["text"] or "").startswith(said)
    assert {choice.finish_reason for choice in choices} <= {"error"}


@pytest.mark.parametrize(("wire", "exchange"), answers("anthropic", "openai-responses"))
def test_stream_without_its_end_event_is_an_error_with_the_whole_text(wire: Streams, exchange: Exchange) -> None:
    events = wire.events(exchange)
    with pytest.raises(LMTransportError) as caught:
        wire.stream_events(exchange, events[: wire.cut(events)])
    assert "".join(choice.text for choice in caught.value.partial.choices) == (exchange["expected"]["text"] or "")


@pytest.mark.parametrize(("wire", "exchange"), answers("gemini", "ollama"))
def test_events_in_one_array_give_the_same_response(wire: Streams, exchange: Exchange) -> None:
    events = wire.events(exchange)
    assert isinstance(wire.stream_events(exchange, [events])[-1], ResponseEnd)
    assert wire.stream_events(exchange, [events]) == wire.stream_events(exchange, events)
