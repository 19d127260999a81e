"""Ollama: properties of any request and any reply."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.codecs import ollama
from tests.lm.codecs.any_request import (
    attempt,
    audio,
    calls_with,
    files,
    images,
    objects,
    requests_of,
    results_with,
    wild_text,
)
from tests.lm.codecs.encoding import features
from tests.lm.codecs.ollama.reading import read_request
from tests.lm.codecs.ollama.wire import ASKED, WIRE_ASKED, answer, body, decoded, target

families = st.sampled_from(["ollama", "deepseek", None])
requests = requests_of(
    {
        "system": st.builds(TextPart, wild_text),
        "user": st.builds(TextPart, wild_text) | images | audio | files,
        "assistant": st.builds(TextPart, wild_text)
        | calls_with(st.none() | objects)
        | st.builds(ThinkingPart, st.text(), provider=families),
        "tool": results_with(),
    },
    {"service_tier": st.just("flex"), "seed": st.integers()},
)


@given(requests)
def test_any_request_is_encoded_or_the_error_names_the_feature(request: Request) -> None:
    sent = attempt(ollama, request, target())
    if isinstance(sent, str):
        refused = ("no place for", "no option 'service_tier'", "An image needs", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)


@given(requests)
def test_every_call_has_its_result_at_once_and_in_order(request: Request) -> None:
    sent = attempt(ollama, replace(request, options={}), target())
    if isinstance(sent, str):
        return
    encoded_again = sent.body["messages"]
    assert isinstance(encoded_again, list)
    waiting: list[tuple[JsonValue, JsonValue]] = []
    for message in encoded_again:
        assert isinstance(message, dict)
        if message["role"] == "tool":
            assert (message.get("tool_call_id"), message["tool_name"]) == waiting.pop(0)
            continue
        assert waiting == []
        found: Any = message.get("tool_calls", ())
        waiting = [(call.get("id"), call["function"]["name"]) for call in found]
    assert waiting == []


@given(requests)
def test_encoded_request_is_read_and_encoded_equally(request: Request) -> None:
    sent = attempt(ollama, replace(request, options={}, response_format=None, tools=()), target())
    if not isinstance(sent, str):
        assert ollama.encode(read_request(sent.body), target()).body == sent.body


texts = st.text(max_size=12)
wire_ids = st.sampled_from([{}, {"id": "call_{n}xyz"}, {"id": "call_{n}2345678"}])
wire_calls = st.lists(
    st.builds(
        lambda name, arguments, call_id: {**call_id, "function": {"name": name, "arguments": arguments}},
        st.text("abc_.", min_size=1, max_size=8),
        objects,
        wire_ids,
    ),
    max_size=3,
).map(
    lambda calls: [
        {**call, **({"id": call["id"].replace("{n}", str(number))} if "id" in call else {})}
        for number, call in enumerate(calls)
    ]
)
turns = st.builds(
    lambda text, thought, wires: {
        "role": "assistant",
        "content": text,
        **({"thinking": thought} if thought else {}),
        **({"tool_calls": wires} if wires else {}),
    },
    texts,
    texts,
    wire_calls,
)


def turns_after(reply: JsonObject) -> list[JsonValue]:
    """Return the turns of a request with this reply in its history."""
    choice = decoded(answer(reply)).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    encoded_again = ollama.encode(Request((ASKED, stored)), target()).body["messages"]
    assert isinstance(encoded_again, list)
    return [message for message in encoded_again if isinstance(message, dict) and message["role"] == "assistant"]


@given(turns)
def test_response_in_history_is_sent_unchanged(reply: JsonObject) -> None:
    said_something = reply != {"role": "assistant", "content": ""}
    assert turns_after(reply) == ([reply] if said_something else [])


def test_ten_turns_are_sent_unchanged() -> None:
    history: list[Message] = [ASKED]
    reply: list[JsonObject] = [WIRE_ASKED]
    for turn in range(10):
        named: JsonObject = {"id": f"call_{turn}abcdefg"} if turn % 2 else {}
        wire: JsonObject = {
            "role": "assistant",
            "content": "t" * turn,
            "thinking": f"hm {turn}",
            "tool_calls": [{**named, "function": {"name": "f", "arguments": {"x": turn}}}],
        }
        sent = ollama.encode(Request(tuple(history)), target())
        assert sent.body["messages"] == reply
        choice = ollama.decode(answer(wire), sent, target()).choices[0]
        history += [choice.message(), Message.tool(ToolResult(choice.tool_calls[0].id, "f", "ok"))]
        result_id: JsonObject = {"tool_call_id": named["id"]} if named else {}
        reply += [wire, {"role": "tool", "tool_name": "f", **result_id, "content": "ok"}]
    assert len({call.id for message in history for call in message.tool_calls}) == 10
    assert read_request(body(*reply)).messages == tuple(history)
