"""Recorded streams of Anthropic Messages: they decode to their recorded reading, like replies that are not streamed."""

from __future__ import annotations

from collections import Counter

import pytest

from sigwire.core.events import ResponseEnd
from sigwire.core.json import JsonObject
from sigwire.core.parts import ThinkingPart
from sigwire.core.response import Choice
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import FINISH_REASONS
from tests.conformance.readings import reasoning_texts
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_anthropic import (
    builtin,
    expected_use,
    kind_of,
    normal_body,
    sent_of,
    target_of,
    text_parts,
    used,
)
from tests.conformance.wire_streams import Streams
from tests.lm.codecs.anthropic.reading import read_request

EXCHANGES = recorded("anthropic-messages-stream.jsonl")
REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]

STREAMS = Streams(anthropic, sent_of, target_of, EXCHANGES, cut=lambda events: -2)

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_recorded_stream_decodes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], STREAMS.response(exchange)
    (choice,) = response.choices
    assert choice.text == (expected["text"] or "")
    assert text_parts(choice) == [text for text in expected["text_parts"] if text]
    assert choice.reasoning == expected["reasoning"]
    assert reasoning_texts(choice) == expected["reasoning_parts"]
    assert redacted(choice) == expected.get("redacted_thinking", 0)
    assert choice.refusal == expected["refusal"]
    assert [(call.id, call.name, call.arguments) for call in choice.tool_calls] == [
        (call["id"], call["name"], call["arguments"]) for call in expected["tool_calls"]
    ]
    assert builtin(choice) == expected["builtin"]
    assert choice.finish_reason == FINISH_REASONS[expected["finish_reason"]]
    assert (response.id, response.model) == (expected["response_id"], expected["response_model"])
    assert used(response) == expected_use(expected["usage"])


def redacted(choice: Choice) -> int:
    return sum(1 for part in choice.parts if isinstance(part, ThinkingPart) and part.redacted is not None)


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_stream_in_history_is_sent_block_by_block(exchange: Exchange) -> None:
    response = STREAMS.response(exchange)
    assert isinstance(response.raw, dict)
    blocks = response.raw["content"]
    assert isinstance(blocks, list)
    assert Counter(kind_of(block) for block in blocks if isinstance(block, dict)) == Counter(began(exchange))


def began(exchange: Exchange) -> list[str]:
    events: list[JsonObject] = [e for e in STREAMS.events(exchange) if isinstance(e, dict)]
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    return [kind_of(block) for block in blocks if isinstance(block, dict)]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_end_marker_is_optional(exchange: Exchange) -> None:
    events = STREAMS.events(exchange)
    assert isinstance(STREAMS.stream_events(exchange, events[:-1])[-1], ResponseEnd)


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_stream_request_is_read_and_encoded_equally(exchange: Exchange) -> None:
    sent = anthropic.encode(read_request(exchange["request"]), target_of(exchange), stream=True)
    assert normal_body(sent.body) == normal_body(exchange["request"])
    assert sent.warnings == ()


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nanthropic streams: {len(EXCHANGES)} answers, {len(REQUESTS)} requests, no exceptions")
    assert EXCHANGES
