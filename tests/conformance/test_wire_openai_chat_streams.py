"""Recorded streams of chat completions, of many hosts: they decode to their recorded reading, complete or truncated."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from sigwire.errors import LMError
from sigwire.lm.codecs import openai_chat
from tests.conformance.readings import USED, expected_call, read_call, sent_of, used, without_space
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_openai_chat import expected_finish, normal_body, target_of
from tests.conformance.wire_streams import Streams
from tests.lm.codecs.openai_chat.reading import read_request

EXCHANGES = recorded("openai-chat-stream.jsonl")
FAILURES = [exchange for exchange in EXCHANGES if "stream_error" in exchange["expected"]]
ANSWERS = [exchange for exchange in EXCHANGES if exchange not in FAILURES]
REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


def before_its_finish_reason(events: list[Any]) -> int:
    ends = (number for number, event in enumerate(events) if any(c.get("finish_reason") for c in event["choices"]))
    return next(ends, len(events) - 1)


STREAMS = Streams(openai_chat, sent_of, target_of, ANSWERS, cut=before_its_finish_reason)


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_stream_decodes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], STREAMS.response(exchange)
    (choice,) = response.choices
    assert choice.text == (expected["text"] or "")
    assert without_space(choice.reasoning) == without_space(expected["reasoning"])
    assert choice.refusal == expected["refusal"]
    assert [read_call(call) for call in choice.tool_calls] == [expected_call(call) for call in expected["tool_calls"]]
    assert choice.finish_reason == expected_finish(choice, expected)
    assert (response.id, response.model) == (expected["response_id"] or None, expected["response_model"])
    assert used(response) == {name: (expected["usage"] or {}).get(name) for name in USED}


@pytest.mark.parametrize("exchange", FAILURES, ids=ids(FAILURES))
def test_recorded_error_in_a_stream_has_its_class_and_the_partial_response(exchange: Exchange) -> None:
    expected = exchange["expected"]
    error = expected["stream_error"]
    if error["code"] == "tool_use_failed":
        response = STREAMS.response(exchange)
        (call,) = response.choices[0].tool_calls
        assert call.error is not None
        assert call.error.message == error["message"]
    else:
        with pytest.raises(LMError, match=error["message"]) as caught:
            STREAMS.response(exchange)
        assert caught.value.provider_code == str(error["code"])
        response = caught.value.partial
    assert without_space(response.choices[0].reasoning) == without_space(expected["reasoning"])
    assert response.id == expected["response_id"]


def without_empty_turns(body: Exchange) -> Exchange:
    """Remove empty turns, which some hosts reject."""
    empty = {"role": "assistant", "content": ""}
    return {**body, "messages": [message for message in body["messages"] if message != empty]}


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_stream_request_is_read_and_encoded_equally(exchange: Exchange) -> None:
    target, body = target_of(exchange), exchange["request"]
    if "max_completion_tokens" in body and target.profile.options.get("max_tokens"):
        target = replace(target, profile=replace(target.profile, options={}))
    # The request for usage: the recorded program chose, the encoder follows the host.
    target = replace(target, profile=replace(target.profile, usage_in_streams="stream_options" in body))
    sent = openai_chat.encode(read_request(body, target.profile), target, stream=True)
    assert normal_body(sent.body) == normal_body(without_empty_turns(body))


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = Counter(exchange["provider"] for exchange in EXCHANGES)
    with capsys.disabled():
        print(f"\nopenai-chat streams: {len(ANSWERS)} answers, {len(FAILURES)} errors, {len(REQUESTS)} requests")
        print("  " + json.dumps(hosts, sort_keys=True).strip("{}").replace('"', ""))
    assert len(EXCHANGES) == len(ANSWERS) + len(FAILURES)
