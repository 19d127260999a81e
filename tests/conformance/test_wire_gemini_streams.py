"""Recorded streams of the Gemini API and Vertex AI: they come to their recorded reading, and say as much as a whole reply."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from urllib.parse import urlencode

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.lm.codecs import gemini
from tests.conformance.readings import read_call, thoughts
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_gemini import (
    builtin,
    expected_calls,
    expected_finish,
    same_form,
    sent_of,
    target_of,
    used,
)
from tests.conformance.wire_streams import Streams
from tests.lm.codecs.gemini.reading import read_request

EXCHANGES = recorded("gemini-stream.jsonl")
REQUESTS = [exchange for exchange in EXCHANGES if exchange["request"] is not None]
CITED = [exchange for exchange in EXCHANGES if "citations" in exchange["features"]]

STREAMS = Streams(gemini, sent_of, target_of, EXCHANGES, cut=lambda events: -1)

pytestmark = pytest.mark.skipif(not EXCHANGES, reason="no recorded traffic; set SIGWIRE_FIXTURES")


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_a_recorded_stream_comes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], STREAMS.response(exchange)
    assert len(response.choices) == expected["n_choices"] == 1
    choice = response.choices[0]
    assert choice.text == (expected["text"] or "")
    assert "".join(thoughts(choice)) == (expected["reasoning"] or "")
    assert choice.refusal == expected["refusal"]
    assert [read_call(call) for call in choice.tool_calls] == expected_calls(expected["tool_calls"])
    assert builtin(choice) == expected["builtin"]
    assert choice.finish_reason == expected_finish(choice, expected)
    assert (response.model, response.id) == (expected["response_model"], expected["response_id"])
    assert used(response) == expected_usage(exchange)


def expected_usage(exchange: Exchange) -> tuple[int | None, ...]:
    """The recorded numbers are the wire's own: thoughts beside the output, results of built-in tools beside the input."""
    counts = exchange["expected"]["usage"]
    results = [event["usageMetadata"].get("toolUsePromptTokenCount", 0) for event in events_of(exchange)]
    said, thought = counts["output"], counts["reasoning"]
    output = None if said is None and thought is None else (said or 0) + (thought or 0)
    return counts["input"] + results[-1], output, counts["cached_input"], thought, None


def events_of(exchange: Exchange) -> list[Exchange]:
    return [event for event in STREAMS.events(exchange) if isinstance(event, dict)]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_every_signature_goes_back_on_the_part_it_came_on(exchange: Exchange) -> None:
    choice = STREAMS.response(exchange).choices[0]
    sent = gemini.encode(Request((Message.user("q"), choice.message())), target_of(exchange))
    assert signed(sent.body["contents"]) == signed(
        [candidate["content"] for event in events_of(exchange) for candidate in event["candidates"]]
    )


def signed(contents: Any) -> list[JsonObject]:
    return [part for content in contents for part in content["parts"] if "thoughtSignature" in part]


@pytest.mark.parametrize("exchange", CITED, ids=ids(CITED))
def test_a_recorded_citation_points_at_the_text_it_supports(exchange: Exchange) -> None:
    choice = STREAMS.response(exchange).choices[0]
    assert choice.citations
    placed: list[Any] = [citation for citation in choice.citations if "start_index" in citation]
    for citation in placed:
        assert choice.text[citation["start_index"] : citation["end_index"]] == citation["text"]


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_a_recorded_request_for_a_stream_is_read_and_written_again(exchange: Exchange) -> None:
    target = target_of(exchange)
    sent = gemini.encode(read_request(exchange["request"], target.profile), target, stream=True)
    assert same_form(sent.body) == same_form(exchange["request"])
    assert exchange["path"].endswith(re.sub("^/v1(beta)?/", "/", sent.path))
    assert exchange["query"] == urlencode(sent.query)


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    answers, requests = (Counter(exchange["provider"] for exchange in part) for part in (EXCHANGES, REQUESTS))
    with capsys.disabled():
        print(f"\ngemini streams: {len(EXCHANGES)} answers, {len(REQUESTS)} requests, no exceptions")
        print("  " + ", ".join(f"{name} {answers[name]}/{requests[name]}" for name in sorted(answers)))
    assert EXCHANGES
