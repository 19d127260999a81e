"""Ollama's documented streams: they come to their recorded reading, and say as much as a whole reply."""

from __future__ import annotations

import pytest

from sigwire.core.names import NameMap, NameRules
from sigwire.core.response import Response
from sigwire.errors import LMTransportError
from sigwire.lm.codecs import ollama
from sigwire.lm.codecs.base import Encoded
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_ollama import target_of
from tests.conformance.wire_streams import read, told, wire_events

EXCHANGES = recorded("ollama-chat-stream.jsonl")

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


def sent_of(exchange: Exchange) -> Encoded:
    return Encoded("", exchange["request"], {}, {}, (), NameMap((), NameRules()))


def response_of(exchange: Exchange) -> Response:
    return read(ollama, exchange, sent_of(exchange), target_of(exchange))


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_a_recorded_stream_comes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], response_of(exchange)
    (choice,) = response.choices
    usage = expected["usage"] or {"input": None, "output": None}
    assert choice.text == (expected["text"] or "")
    assert choice.reasoning == expected["reasoning"]
    assert choice.tool_calls == ()
    assert expected["tool_calls"] == []
    assert choice.finish_reason == "stop"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (usage["input"], usage["output"])
    assert (response.model, response.id) == (expected["response_model"], expected["response_id"])


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_the_stream_is_the_same_answer_as_its_body_in_one_piece(exchange: Exchange) -> None:
    response = response_of(exchange)
    assert response == ollama.decode(response.raw, sent_of(exchange), target_of(exchange))


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_a_stream_without_its_last_line_was_cut_off(exchange: Exchange) -> None:
    events = wire_events(ollama, exchange["response"])
    with pytest.raises(LMTransportError, match="before the end of the answer"):
        told(ollama, events[:-1], sent_of(exchange), target_of(exchange))


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_the_lines_as_one_array_are_the_same_answer(exchange: Exchange) -> None:
    events = wire_events(ollama, exchange["response"])
    whole = told(ollama, [events], sent_of(exchange), target_of(exchange))
    assert whole == told(ollama, events, sent_of(exchange), target_of(exchange))


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nollama streams: {len(EXCHANGES)} answers, no exceptions")
    assert EXCHANGES
