"""Chat completions: what holds for any request and any answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.tools import ToolCall, ToolResult
from sigwire.errors import CallerError
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.base import Encoded, Target
from sigwire.lm.codecs.dialects import DEEPSEEK, DIALECTS, MISTRAL, OPENAI, OPENROUTER, ChatDialect
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_chat.wire import ASKED, SCHEMA, WIRE_ASKED, WIRE_CALL, decoded, target

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
    st.builds(AudioPart, st.text(), st.sampled_from(["wav", "mp3", "flac"])),
    st.builds(FilePart, st.none() | st.text(), st.none() | st.text(), media_type=st.sampled_from(["text/plain", None])),
)
families = st.sampled_from(["openai-chat", "deepseek", "anthropic"])
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
        "top_k": st.just(3),
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


def attempt(request: Request, to: Target[ChatDialect]) -> Encoded | str:
    """What would be sent, or why nothing can be."""
    try:
        return openai_chat.encode(request, to)
    except CallerError as error:
        return str(error)


@given(requests, st.sampled_from(sorted(DIALECTS)))
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request, host: str) -> None:
    sent = attempt(request, target(DIALECTS[host]))
    if isinstance(sent, str):
        refused = ("no place for", "no option 'top_k'", "An image needs", "extra_body must", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)


def call_ids(message: dict[str, Any]) -> list[str]:
    return [call["id"] for call in message.get("tool_calls", ())]


@given(requests)
def test_every_call_is_answered_at_once_and_in_order(request: Request) -> None:
    sent = attempt(replace(request, options={}), target())
    if isinstance(sent, str):
        return
    written = sent.body["messages"]
    assert isinstance(written, list)
    waiting: list[str] = []
    seen: set[str] = set()
    for message in written:
        assert isinstance(message, dict)
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        waiting = call_ids(message)
        assert seen.isdisjoint(waiting)
        assert all(waiting)
        seen.update(waiting)
    assert waiting == []


texts = st.text(max_size=12)
arguments = objects.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))
wire_calls = st.lists(
    st.builds(
        lambda name, arguments: {"type": "function", "function": {"name": name, "arguments": arguments}},
        st.text("abc_", min_size=1, max_size=8),
        arguments,
    ),
    max_size=3,
).map(lambda calls: [{"id": f"id_{number}", **call} for number, call in enumerate(calls)])


@given(texts, texts, wire_calls, st.sampled_from([OPENAI, DEEPSEEK, OPENROUTER, MISTRAL]))
def test_an_answer_put_into_history_is_sent_as_it_came(
    text: str, thought: str, wires: list[JsonObject], dialect: ChatDialect
) -> None:
    keep_ids = replace(dialect, repair=replace(dialect.repair, ids=None))
    came: dict[str, Any] = {"role": "assistant", "content": text or None, **({"tool_calls": wires} if wires else {})}
    if thought and dialect is DEEPSEEK:
        came["reasoning_content"] = thought
    if thought and dialect is OPENROUTER:
        came["reasoning_details"] = [{"type": "reasoning.text", "text": thought}]
    to = target(keep_ids)
    choice = decoded({"choices": [{"message": came, "finish_reason": "stop"}]}, to).choices[0]
    written = openai_chat.encode(Request((ASKED, choice.message())), to).body["messages"]
    assert isinstance(written, list)
    if len(came) == 2 and not text:
        assert written == [WIRE_ASKED]  # nothing was said
    else:
        assert written[1] == {**came, "content": text or (None if wires else "")}


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    to = target(DEEPSEEK)
    for turn in range(10):
        call: JsonObject = {**WIRE_CALL, "id": f"c{turn}"}
        wire: JsonObject = {
            "role": "assistant",
            "content": None,
            "tool_calls": [call],
            "reasoning_content": f"hm {turn}",
        }
        sent = openai_chat.encode(Request(tuple(history)), to)
        assert sent.body["messages"] == came
        choice = openai_chat.decode({"choices": [{"message": wire, "finish_reason": "tool_calls"}]}, sent, to).choices[
            0
        ]
        history += [choice.message(), Message.tool(ToolResult(f"c{turn}", "f", "ok"))]
        came += [wire, {"role": "tool", "tool_call_id": f"c{turn}", "content": "ok"}]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert openai_chat.encode(Request(tuple(stored)), to).body["messages"] == came
