"""Ollama: what holds for any request and any answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.tools import ToolCall, ToolResult
from sigwire.errors import CallerError
from sigwire.lm.codecs import ollama
from sigwire.lm.codecs.base import Encoded
from tests.lm.codecs.encoding import features
from tests.lm.codecs.ollama.wire import ASKED, SCHEMA, WIRE_ASKED, answer, body, decoded, target

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
names = st.text(min_size=1, max_size=70)
wild_text = st.text(st.characters(), max_size=12)  # lone surrogates included
calls = st.builds(
    ToolCall.read, st.text(max_size=5), names, objects | st.text(max_size=9), provider_data=st.none() | objects
)
results = st.builds(ToolResult, st.text(max_size=5), names, wild_text | json_values, st.booleans())
media = st.one_of(
    st.builds(ImagePart, st.none() | st.text(), st.none() | st.text(), st.none() | st.just("image/png")),
    st.builds(AudioPart, st.text(), st.sampled_from(["wav", "flac"])),
    st.builds(FilePart, st.none() | st.text(), st.none() | st.text(), media_type=st.sampled_from(["text/plain", None])),
)
families = st.sampled_from(["ollama", "deepseek", None])
parts_of = {
    "system": st.builds(TextPart, wild_text),
    "user": st.builds(TextPart, wild_text) | media,
    "assistant": st.builds(TextPart, wild_text) | calls | st.builds(ThinkingPart, st.text(), provider=families),
    "tool": results,
}
messages = st.sampled_from(sorted(parts_of)).flatmap(
    lambda role: st.builds(Message, st.just(role), st.lists(parts_of[role], max_size=3).map(tuple))
)
tools_offered = st.lists(names, max_size=3, unique=True).map(
    lambda names: tuple({"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names)
)
options = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "n": st.integers(1, 3),
        "reasoning": st.sampled_from(["off", "high", "max", {"budget": 7}]),
        "service_tier": st.just("flex"),
        "seed": st.integers(),
        "extra_body": objects,
    },
)
requests = st.builds(
    Request,
    st.lists(messages, max_size=5).map(tuple),
    tools_offered,
    st.sampled_from([None, ToolChoice.AUTO, ToolChoice.REQUIRED, ToolChoice.NONE]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, ResponseFormat(), ResponseFormat(SCHEMA, "x y")]),
    options,
)


def attempt(request: Request) -> Encoded | str:
    """What would be sent, or why nothing can be."""
    try:
        return ollama.encode(request, target())
    except CallerError as error:
        return str(error)


@given(requests)
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request) -> None:
    sent = attempt(request)
    if isinstance(sent, str):
        refused = ("no place for", "no option 'service_tier'", "An image needs", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)


@given(requests)
def test_every_call_is_answered_at_once_and_in_order(request: Request) -> None:
    sent = attempt(replace(request, options={}))
    if isinstance(sent, str):
        return
    written = sent.body["messages"]
    assert isinstance(written, list)
    waiting: list[tuple[JsonValue, JsonValue]] = []
    for message in written:
        assert isinstance(message, dict)
        if message["role"] == "tool":
            assert (message.get("tool_call_id"), message["tool_name"]) == waiting.pop(0)
            continue
        assert waiting == []
        found: Any = message.get("tool_calls", ())
        waiting = [(call.get("id"), call["function"]["name"]) for call in found]
    assert waiting == []


@given(requests)
def test_what_was_written_is_read_and_written_the_same(request: Request) -> None:
    sent = attempt(replace(request, options={}, response_format=None, tools=()))
    if not isinstance(sent, str):
        assert ollama.encode(ollama.read_request(sent.body), target()).body == sent.body


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


def written_after(came: JsonObject) -> list[JsonValue]:
    """The turns that are sent when this answer is part of the history."""
    choice = decoded(answer(came)).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    written = ollama.encode(Request((ASKED, stored)), target()).body["messages"]
    assert isinstance(written, list)
    return [message for message in written if isinstance(message, dict) and message["role"] == "assistant"]


@given(turns)
def test_an_answer_put_into_history_is_sent_as_it_came(came: JsonObject) -> None:
    said_something = came != {"role": "assistant", "content": ""}
    assert written_after(came) == ([came] if said_something else [])


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    for turn in range(10):
        named: JsonObject = {"id": f"call_{turn}abcdefg"} if turn % 2 else {}
        wire: JsonObject = {
            "role": "assistant",
            "content": "t" * turn,
            "thinking": f"hm {turn}",
            "tool_calls": [{**named, "function": {"name": "f", "arguments": {"x": turn}}}],
        }
        sent = ollama.encode(Request(tuple(history)), target())
        assert sent.body["messages"] == came
        choice = ollama.decode(answer(wire), sent, target()).choices[0]
        history += [choice.message(), Message.tool(ToolResult(choice.tool_calls[0].id, "f", "ok"))]
        result_id: JsonObject = {"tool_call_id": named["id"]} if named else {}
        came += [wire, {"role": "tool", "tool_name": "f", **result_id, "content": "ok"}]
    assert len({call.id for message in history for call in message.tool_calls}) == 10
    assert ollama.read_request(body(*came)).messages == tuple(history)
