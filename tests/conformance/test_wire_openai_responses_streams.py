"""Recorded streams of Responses: they come to their recorded reading, whole or cut off."""

from __future__ import annotations

from collections import Counter

import pytest

from sigwire.core.events import TextDelta, ToolCallEnd, ToolCallStart, collect
from sigwire.core.json import JsonObject
from sigwire.core.response import Response
from sigwire.errors import LMTransportError
from sigwire.lm.codecs import openai_responses
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_openai_responses import (
    USED,
    builtin_of,
    expected_call,
    expected_finish,
    items_of,
    read_call,
    same_form,
    sent_of,
    target_of,
    texts_of,
    used,
    without_space,
)
from tests.conformance.wire_streams import read, told, wire_events

EXCHANGES = recorded("openai-responses-stream.jsonl")
REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


def response_of(exchange: Exchange) -> Response:
    return read(openai_responses, exchange, sent_of(exchange), target_of(exchange))


def used_of(expected: Exchange) -> Exchange:
    return expected["usage"] or {}


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_a_recorded_stream_comes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], response_of(exchange)
    (choice,) = response.choices
    assert choice.text == (expected["text"] or "")
    assert texts_of(choice) == [text for text in expected["text_parts"] if text]
    assert without_space(choice.reasoning) == without_space(expected["reasoning"])
    assert items_of(choice, "reasoning") == ["reasoning"] * expected.get("reasoning_items", 0)
    assert builtin_of(choice) == expected["builtin"]
    assert choice.refusal == expected["refusal"]
    assert [read_call(call) for call in choice.tool_calls] == [expected_call(call) for call in expected["tool_calls"]]
    assert choice.finish_reason == expected_finish(choice, expected)
    assert (response.id, response.model) == (expected["response_id"] or None, expected["response_model"])
    assert used(response) == dict.fromkeys(USED) | {
        name: count for name, count in used_of(expected).items() if name in USED
    }


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_the_stream_is_the_same_answer_as_its_body_in_one_piece(exchange: Exchange) -> None:
    response = response_of(exchange)
    assert response == openai_responses.decode(response.raw, sent_of(exchange), target_of(exchange))


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_what_is_told_as_it_comes_is_the_answer(exchange: Exchange) -> None:
    sent, target = sent_of(exchange), target_of(exchange)
    events = told(openai_responses, wire_events(openai_responses, exchange["response"]), sent, target)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == (
        exchange["expected"]["text"] or ""
    )
    calls = [(call["id"], call["name"]) for call in exchange["expected"]["tool_calls"]]
    assert [(event.id, event.name) for event in events if isinstance(event, ToolCallStart)] == calls
    assert [(event.call.id, event.call.name) for event in events if isinstance(event, ToolCallEnd)] == calls


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_a_stream_without_its_last_event_was_cut_off_and_keeps_what_came(exchange: Exchange) -> None:
    events = wire_events(openai_responses, exchange["response"])
    with pytest.raises(LMTransportError) as caught:
        told(openai_responses, events[:-1], sent_of(exchange), target_of(exchange))
    assert caught.value.retryable
    assert "".join(choice.text for choice in (caught.value.partial or Response()).choices) == (
        exchange["expected"]["text"] or ""
    )


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_the_last_event_may_leave_the_items_out(exchange: Exchange) -> None:
    *events, last = wire_events(openai_responses, exchange["response"])
    assert isinstance(last, dict)
    assert isinstance(last["response"], dict)
    bare: JsonObject = {**last, "response": {**last["response"], "output": []}}
    (whole,) = response_of(exchange).choices
    (choice,) = collect(told(openai_responses, [*events, bare], sent_of(exchange), target_of(exchange))).choices
    assert (choice.text, choice.tool_calls, choice.reasoning) == (whole.text, whole.tool_calls, whole.reasoning)
    assert [type(part) for part in choice.parts] == [type(part) for part in whole.parts]


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_a_recorded_request_for_a_stream_is_read_and_written_again(exchange: Exchange) -> None:
    target = target_of(exchange)
    request = openai_responses.read_request(exchange["request"], target.dialect)
    sent = openai_responses.encode(request, target, stream=True)
    assert same_form(sent.body) == same_form(exchange["request"])


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = Counter(exchange["provider"] for exchange in EXCHANGES)
    with capsys.disabled():
        print(f"\nopenai-responses streams: {len(EXCHANGES)} answers, {len(REQUESTS)} requests, no exceptions")
        print("  " + ", ".join(f"{name} {count}" for name, count in sorted(hosts.items())))
    assert EXCHANGES
