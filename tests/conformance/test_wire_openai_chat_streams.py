"""Recorded streams of chat completions, of many hosts: they come to their recorded reading, whole or cut off."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.events import TextDelta, ToolCallStart
from sigwire.core.response import Response
from sigwire.errors import LMError, LMTransportError
from sigwire.lm.codecs import openai_chat
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_openai_chat import (
    USED,
    expected_call,
    expected_finish,
    read_call,
    same_form,
    sent_of,
    target_of,
    used,
    without_space,
)
from tests.conformance.wire_streams import read, told, wire_events

EXCHANGES = recorded("openai-chat-stream.jsonl")
FAILURES = [exchange for exchange in EXCHANGES if "stream_error" in exchange["expected"]]
ANSWERS = [exchange for exchange in EXCHANGES if exchange not in FAILURES]
REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


def response_of(exchange: Exchange) -> Response:
    return read(openai_chat, exchange, sent_of(exchange), target_of(exchange))


def used_of(expected: Exchange) -> Exchange:
    return expected["usage"] or {}


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_a_recorded_stream_comes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], response_of(exchange)
    (choice,) = response.choices
    assert choice.text == (expected["text"] or "")
    assert without_space(choice.reasoning) == without_space(expected["reasoning"])
    assert choice.refusal == expected["refusal"]
    assert [read_call(call) for call in choice.tool_calls] == [expected_call(call) for call in expected["tool_calls"]]
    assert choice.finish_reason == expected_finish(choice, expected)
    assert (response.id, response.model) == (expected["response_id"] or None, expected["response_model"])
    assert used(response) == dict.fromkeys(USED) | {
        name: count for name, count in used_of(expected).items() if name in USED
    }


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_the_stream_is_the_same_answer_as_its_body_in_one_piece(exchange: Exchange) -> None:
    response = response_of(exchange)
    assert response == openai_chat.decode(response.raw, sent_of(exchange), target_of(exchange))


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_what_is_told_as_it_comes_is_the_answer(exchange: Exchange) -> None:
    events = told(openai_chat, wire_events(openai_chat, exchange["response"]), sent_of(exchange), target_of(exchange))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == (
        exchange["expected"]["text"] or ""
    )
    assert [(event.id, event.name) for event in events if isinstance(event, ToolCallStart)] == [
        (call["id"], call["name"]) for call in exchange["expected"]["tool_calls"]
    ]


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_a_stream_cut_before_its_finish_reason_is_an_error_that_keeps_what_came(exchange: Exchange) -> None:
    events = wire_events(openai_chat, exchange["response"])
    last = next((number for number, event in enumerate(events) if ends(event)), len(events) - 1)
    with pytest.raises(LMTransportError) as caught:
        told(openai_chat, events[:last], sent_of(exchange), target_of(exchange))
    assert caught.value.retryable
    text = "".join(choice.text for choice in (caught.value.partial or Response()).choices)
    assert (exchange["expected"]["text"] or "").startswith(text)


def ends(event: Any) -> bool:
    return any(choice.get("finish_reason") for choice in event["choices"])


@pytest.mark.parametrize("exchange", FAILURES, ids=ids(FAILURES))
def test_a_recorded_error_in_a_stream_is_told_apart_and_keeps_what_came(exchange: Exchange) -> None:
    expected = exchange["expected"]
    error = expected["stream_error"]
    if error["code"] == "tool_use_failed":
        response = response_of(exchange)
        (call,) = response.choices[0].tool_calls
        assert call.error is not None
        assert call.error.message == error["message"]
    else:
        with pytest.raises(LMError, match=error["message"]) as caught:
            response_of(exchange)
        assert caught.value.provider_code == str(error["code"])
        response = caught.value.partial
    assert without_space(response.choices[0].reasoning) == without_space(expected["reasoning"])
    assert response.id == expected["response_id"]


EXCEPTIONS = {"oc-aad822b3f8": "the host's own advisor is refused on this wire; extra_body has to carry it"}
"""Requests we do not write the same, each with the reason."""


def without_empty_turns(body: Exchange) -> Exchange:
    """A turn in which nothing is said is left out: some hosts refuse it."""
    empty = {"role": "assistant", "content": ""}
    return {**body, "messages": [message for message in body["messages"] if message != empty]}


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_a_recorded_request_for_a_stream_is_read_and_written_again(exchange: Exchange) -> None:
    if exchange["id"] in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[exchange["id"]])
    target, body = target_of(exchange), exchange["request"]
    if "max_completion_tokens" in body and target.dialect.options.get("max_tokens"):
        target = replace(target, dialect=replace(target.dialect, options={}))
    # Whether counts are asked for was up to the recorded program; ours follows the host.
    target = replace(target, dialect=replace(target.dialect, usage_in_streams="stream_options" in body))
    sent = openai_chat.encode(openai_chat.read_request(body, target.dialect), target, stream=True)
    assert same_form(sent.body) == same_form(without_empty_turns(body))


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = Counter(exchange["provider"] for exchange in EXCHANGES)
    with capsys.disabled():
        print(
            f"\nopenai-chat streams: {len(ANSWERS)} answers, {len(FAILURES)} errors, "
            f"{len(REQUESTS) - len(EXCEPTIONS)} requests"
        )
        print("  " + json.dumps(hosts, sort_keys=True).strip("{}").replace('"', ""))
    assert EXCEPTIONS.keys() <= {exchange["id"] for exchange in REQUESTS}
    assert len(EXCHANGES) == len(ANSWERS) + len(FAILURES)
