"""Ollama's documented streams: they decode to their recorded reading, like replies that are not streamed."""

from __future__ import annotations

import pytest

from sigwire.lm.codecs import ollama
from tests.conformance.readings import sent_of
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_ollama import target_of
from tests.conformance.wire_streams import Streams

EXCHANGES = recorded("ollama-chat-stream.jsonl")

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


STREAMS = Streams(ollama, sent_of, target_of, EXCHANGES, cut=lambda events: -1)


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_recorded_stream_decodes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], STREAMS.response(exchange)
    (choice,) = response.choices
    usage = expected["usage"] or {"input": None, "output": None}
    assert choice.text == (expected["text"] or "")
    assert choice.reasoning == expected["reasoning"]
    assert choice.tool_calls == ()
    assert expected["tool_calls"] == []
    assert choice.finish_reason == "stop"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (usage["input"], usage["output"])
    assert (response.model, response.id) == (expected["response_model"], expected["response_id"])


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nollama streams: {len(EXCHANGES)} answers, no exceptions")
    assert EXCHANGES
