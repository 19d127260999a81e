"""Recorded streams of Responses: they decode to their recorded reading, complete or truncated."""

from __future__ import annotations

from collections import Counter

import pytest

from sigwire.core.events import collect
from sigwire.core.json import JsonObject
from sigwire.lm.codecs import openai_responses
from tests.conformance.readings import USED, expected_call, read_call, sent_of, used, without_space
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_openai_responses import (
    builtin_of,
    expected_finish,
    items_of,
    normal_body,
    target_of,
    texts_of,
)
from tests.conformance.wire_streams import Streams
from tests.lm.codecs.openai_responses.reading import read_request

EXCHANGES = recorded("openai-responses-stream.jsonl")
REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]

STREAMS = Streams(openai_responses, sent_of, target_of, EXCHANGES, cut=lambda events: -1)

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_recorded_stream_decodes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], STREAMS.response(exchange)
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
    assert used(response) == {name: (expected["usage"] or {}).get(name) for name in USED}


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_items_of_the_last_event_are_optional(exchange: Exchange) -> None:
    *events, last = STREAMS.events(exchange)
    assert isinstance(last, dict)
    assert isinstance(last["response"], dict)
    bare: JsonObject = {**last, "response": {**last["response"], "output": []}}
    (whole,) = STREAMS.response(exchange).choices
    (choice,) = collect(STREAMS.stream_events(exchange, [*events, bare])).choices
    assert (choice.text, choice.tool_calls, choice.reasoning) == (whole.text, whole.tool_calls, whole.reasoning)
    assert [type(part) for part in choice.parts] == [type(part) for part in whole.parts]


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_stream_request_is_read_and_encoded_equally(exchange: Exchange) -> None:
    target = target_of(exchange)
    request = read_request(exchange["request"], target.profile)
    sent = openai_responses.encode(request, target, stream=True)
    assert normal_body(sent.body) == normal_body(exchange["request"])


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = Counter(exchange["provider"] for exchange in EXCHANGES)
    with capsys.disabled():
        print(f"\nopenai-responses streams: {len(EXCHANGES)} answers, {len(REQUESTS)} requests, no exceptions")
        print("  " + ", ".join(f"{name} {count}" for name, count in sorted(hosts.items())))
    assert EXCHANGES
