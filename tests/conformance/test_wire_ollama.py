"""Ollama's documented exchanges: replies decode to the recorded reading, requests are read and encoded equally."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.lm.codecs import ollama
from sigwire.lm.codecs.ollama import OLLAMA
from sigwire.lm.codecs.shared.interface import Target
from tests.conformance.readings import sent_of
from tests.conformance.recordings import recorded
from tests.lm.codecs.ollama.reading import read_request

ANSWERS = recorded("ollama-chat.jsonl")
REQUESTS = [*ANSWERS, *recorded("ollama-chat-stream.jsonl")]  # a request is the same whichever way it is answered
PLAIN = replace(OLLAMA, defaults={})
"""The recorded programs did not change the server's defaults."""

pytestmark = pytest.mark.skipif(not ANSWERS, reason="no recorded traffic; set SIGWIRE_FIXTURES")


def target_of(exchange: dict[str, Any]) -> Target[ollama.OllamaProfile]:
    return Target("ollama", exchange["model"], PLAIN, Capabilities(native_tools=True, json_schema=True))


def decoded(exchange: dict[str, Any]) -> Response:
    return ollama.decode(exchange["response"], sent_of(exchange), target_of(exchange))


def ids(exchanges: list[dict[str, Any]]) -> list[str]:
    return [exchange["id"] for exchange in exchanges]


# --- replies


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_decodes_to_its_recorded_reading(exchange: dict[str, Any]) -> None:
    expected, response = exchange["expected"], decoded(exchange)
    (choice,) = response.choices
    assert choice.text == (expected["text"] or "")
    assert choice.reasoning == expected["reasoning"]
    assert choice.refusal == expected["refusal"]
    assert [(call.name, call.arguments) for call in choice.tool_calls] == [
        (call["name"], call["arguments"]) for call in expected["tool_calls"]
    ]
    assert [call.id for call in choice.tool_calls] == [
        call["id"] or f"call_{number}" for number, call in enumerate(expected["tool_calls"])
    ]
    assert choice.finish_reason == ("tool_calls" if choice.tool_calls else expected["finish_reason"] or "stop")
    assert response.usage.input_tokens == expected["usage"]["input"]
    assert response.usage.output_tokens == expected["usage"]["output"]
    assert response.usage.cached_tokens is None
    assert (response.model, response.id) == (expected["response_model"], expected["response_id"])
    assert response.raw is exchange["response"]


@pytest.mark.parametrize("exchange", ANSWERS, ids=ids(ANSWERS))
def test_recorded_reply_in_history_is_sent_unchanged(exchange: dict[str, Any]) -> None:
    choice = decoded(exchange).choices[0]
    written: Any = ollama.encode(Request((Message.user("q"), choice.message())), target_of(exchange)).body["messages"]
    assert written[1] == exchange["response"]["message"]


# --- requests


def normal_body(body: dict[str, Any]) -> dict[str, Any]:
    """Add the default of ``stream``, which encode() always sends, and sort the fields of a result."""
    return {"stream": True, **body}


@pytest.mark.parametrize("exchange", REQUESTS, ids=ids(REQUESTS))
def test_recorded_request_is_read_and_encoded_equally(exchange: dict[str, Any]) -> None:
    request = read_request(exchange["request"], PLAIN)
    sent = ollama.encode(request, target_of(exchange), stream=exchange["stream"])
    assert sent.body == normal_body(exchange["request"])
    assert sent.warnings == ()
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


def test_counts_per_provider_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counter(exchange["provider"] for exchange in REQUESTS)
    with capsys.disabled():
        print(f"\nollama-chat: {len(ANSWERS)} answers, {len(REQUESTS)} requests, no exceptions")
        print("  " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    assert counts == {"ollama": len(REQUESTS)}
