"""Recorded streams of the Gemini API and Vertex AI: they decode to their recorded reading, like plain replies."""

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
from tests.conformance.readings import read_call, reasoning_texts
from tests.conformance.recordings import Exchange, ids, recorded
from tests.conformance.test_wire_gemini import (
    builtin,
    expected_calls,
    expected_finish,
    normal_body,
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
def test_recorded_stream_decodes_to_its_recorded_reading(exchange: Exchange) -> None:
    expected, response = exchange["expected"], STREAMS.response(exchange)
    assert len(response.choices) == expected["n_choices"] == 1
    choice = response.choices[0]
    assert choice.text == (expected["text"] or "")
    assert "".join(reasoning_texts(choice)) == (expected["reasoning"] or "")
    assert choice.refusal == expected["refusal"]
    assert [read_call(call) for call in choice.tool_calls] == expected_calls(expected["tool_calls"])
    assert builtin(choice) == expected["builtin"]
    assert choice.finish_reason == expected_finish(choice, expected)
    assert (response.model, response.id) == (expected["response_model"], expected["response_id"])
    assert used(response) == expected_usage(exchange)


def expected_usage(exchange: Exchange) -> tuple[int | None, ...]:
    """The recorded numbers are native: output without reasoning, input without results of built-in tools."""
    counts = exchange["expected"]["usage"]
    results = [event["usageMetadata"].get("toolUsePromptTokenCount", 0) for event in events_of(exchange)]
    said, thought = counts["output"], counts["reasoning"]
    output = None if said is None and thought is None else (said or 0) + (thought or 0)
    return counts["input"] + results[-1], output, counts["cached_input"], thought, None


def events_of(exchange: Exchange) -> list[Exchange]:
    return [event for event in STREAMS.events(exchange) if isinstance(event, dict)]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=ids(EXCHANGES))
def test_signature_is_sent_on_its_part(exchange: Exchange) -> None:
    choice = STREAMS.response(exchange).choices[0]
    sent = gemini.encode(Request((Message.user("q"), choice.message())), target_of(exchange))
    assert signed(sent.body["contents"]) == signed(
        [candidate["content"] for event in events_of(exchange) for candidate in event["candidates"]]
    )


def signed(contents: Any) -> list[JsonObject]:
    return [part for content in contents for part in content["parts"] if "thoughtSignature" in part]


@pytest.mark.parametrize("exchange", CITED, ids=ids(CITED))
def test_recorded_citation_points_at_its_text(exchange: Exchange) -> None:
    choice = STREAMS.response(exchange).choices[0]
    assert choice.citations
    placed: list[Any] = [citation for citation in choice.citations if "start_index" in citation]
    for citation in placed:
        assert choice.text[citation["start_index"] : citation["end_index"]] == citation["text"]


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_stream_request_is_read_and_encoded_equally(exchange: Exchange) -> None:
    target = target_of(exchange)
    sent = gemini.encode(read_request(exchange["request"], target.profile), target, stream=True)
    assert normal_body(sent.body) == normal_body(exchange["request"])
    assert exchange["path"].endswith(re.sub("^/v1(beta)?/", "/", sent.path))
    assert exchange["query"] == urlencode(sent.query)


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    answers, requests = (Counter(exchange["provider"] for exchange in part) for part in (EXCHANGES, REQUESTS))
    with capsys.disabled():
        print(f"\ngemini streams: {len(EXCHANGES)} answers, {len(REQUESTS)} requests, no exceptions")
        print("  " + ", ".join(f"{name} {answers[name]}/{requests[name]}" for name in sorted(answers)))
    assert EXCHANGES
