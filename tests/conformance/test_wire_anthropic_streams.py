"""Recorded streams of Anthropic Messages: they come to their recorded reading, and say as much as a whole reply."""

from __future__ import annotations

from collections import Counter

import pytest

from sigwire.core.events import ResponseEnd
from sigwire.core.json import JsonObject
from sigwire.core.messages import ThinkingPart
from sigwire.core.response import Choice, Response
from sigwire.errors import LMTransportError
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import FINISH_REASONS
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_anthropic import (
    builtin,
    expected_use,
    kind_of,
    same_form,
    sent_of,
    target_of,
    text_parts,
    thoughts,
    used,
)
from tests.conformance.wire_streams import read, told, wire_events

EXCHANGES = recorded("anthropic-messages-stream.jsonl")
REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


def response_of(exchange: Exchange) -> Response:
    return read(anthropic, exchange, sent_of(exchange), target_of(exchange))


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_a_recorded_stream_comes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], response_of(exchange)
    (choice,) = response.choices
    assert choice.text == (expected["text"] or "")
    assert text_parts(choice) == [text for text in expected["text_parts"] if text]
    assert choice.reasoning == expected["reasoning"]
    assert thoughts(choice) == expected["reasoning_parts"]
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
def test_the_stream_is_the_same_answer_as_its_body_in_one_piece(exchange: Exchange) -> None:
    response = response_of(exchange)
    assert response == anthropic.decode(response.raw, sent_of(exchange), target_of(exchange))


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_the_stream_put_into_history_goes_back_block_by_block(exchange: Exchange) -> None:
    response = response_of(exchange)
    assert isinstance(response.raw, dict)
    blocks = response.raw["content"]
    assert isinstance(blocks, list)
    assert Counter(kind_of(block) for block in blocks if isinstance(block, dict)) == Counter(began(exchange))


def began(exchange: Exchange) -> list[str]:
    events: list[JsonObject] = [e for e in wire_events(anthropic, exchange["response"]) if isinstance(e, dict)]
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    return [kind_of(block) for block in blocks if isinstance(block, dict)]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_a_stream_without_its_last_two_events_was_cut_off_and_keeps_what_came(exchange: Exchange) -> None:
    events = wire_events(anthropic, exchange["response"])
    with pytest.raises(LMTransportError) as caught:
        told(anthropic, events[:-2], sent_of(exchange), target_of(exchange))
    assert caught.value.retryable
    choices = caught.value.partial.choices
    assert "".join(choice.text for choice in choices) == (exchange["expected"]["text"] or "")
    assert {choice.finish_reason for choice in choices} <= {"error"}


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_the_end_marker_may_be_missing(exchange: Exchange) -> None:
    events = wire_events(anthropic, exchange["response"])
    assert isinstance(told(anthropic, events[:-1], sent_of(exchange), target_of(exchange))[-1], ResponseEnd)


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_a_recorded_request_for_a_stream_is_read_and_written_again(exchange: Exchange) -> None:
    sent = anthropic.encode(anthropic.read_request(exchange["request"]), target_of(exchange), stream=True)
    assert same_form(sent.body) == same_form(exchange["request"])
    assert sent.warnings == ()


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nanthropic streams: {len(EXCHANGES)} answers, {len(REQUESTS)} requests, no exceptions")
    assert EXCHANGES
