"""Chat completions: properties of any request and any reply."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import DEEPSEEK, MISTRAL, OPENAI, OPENROUTER, PROFILES, ChatProfile
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
from tests.lm.codecs.openai_chat.wire import ASKED, WIRE_ASKED, WIRE_CALL, decoded, target

families = st.sampled_from(["openai-chat", "deepseek", "anthropic"])
requests = requests_of(
    {
        "system": st.builds(TextPart, wild_text),
        "user": st.builds(TextPart, wild_text) | images | audio | files,
        "assistant": st.builds(TextPart, wild_text)
        | calls_with(st.none() | objects)
        | st.builds(ThinkingPart, st.text(), provider=families),
        "tool": results_with(),
    },
    {"top_k": st.just(3), "seed": st.integers()},
)


@given(requests, st.sampled_from(sorted(PROFILES)))
def test_any_request_is_encoded_or_the_error_names_the_feature(request: Request, host: str) -> None:
    sent = attempt(openai_chat, request, target(PROFILES[host]))
    if isinstance(sent, str):
        refused = ("no place for", "no option 'top_k'", "An image needs", "extra_body must", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)


def call_ids(message: dict[str, Any]) -> list[str]:
    return [call["id"] for call in message.get("tool_calls", ())]


@given(requests)
def test_every_call_has_its_result_at_once_and_in_order(request: Request) -> None:
    sent = attempt(openai_chat, replace(request, options={}), target())
    if isinstance(sent, str):
        return
    encoded_again = sent.body["messages"]
    assert isinstance(encoded_again, list)
    waiting: list[str] = []
    seen: set[str] = set()
    for message in encoded_again:
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
def test_response_in_history_is_sent_unchanged(
    text: str, thought: str, wires: list[JsonObject], profile: ChatProfile
) -> None:
    keep_ids = replace(profile, history_rules=replace(profile.history_rules, ids=None))
    received: dict[str, Any] = {
        "role": "assistant",
        "content": text or None,
        **({"tool_calls": wires} if wires else {}),
    }
    if thought and profile is DEEPSEEK:
        received["reasoning_content"] = thought
    if thought and profile is OPENROUTER:
        received["reasoning_details"] = [{"type": "reasoning.text", "text": thought}]
    to = target(keep_ids)
    choice = decoded({"choices": [{"message": received, "finish_reason": "stop"}]}, to).choices[0]
    encoded_again = openai_chat.encode(Request((ASKED, choice.message())), to).body["messages"]
    assert isinstance(encoded_again, list)
    if len(received) == 2 and not text:
        assert encoded_again == [WIRE_ASKED]  # an empty turn
    else:
        unthought = {"reasoning_content": ""} if wires and profile is DEEPSEEK else {}
        assert encoded_again[1] == {**unthought, **received, "content": text or (None if wires else "")}


def test_ten_turns_are_sent_unchanged() -> None:
    history: list[Message] = [ASKED]
    received: list[JsonObject] = [WIRE_ASKED]
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
        assert sent.body["messages"] == received
        choice = openai_chat.decode({"choices": [{"message": wire, "finish_reason": "tool_calls"}]}, sent, to).choices[
            0
        ]
        history += [choice.message(), Message.tool(ToolResult(f"c{turn}", "f", "ok"))]
        received += [wire, {"role": "tool", "tool_call_id": f"c{turn}", "content": "ok"}]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert openai_chat.encode(Request(tuple(stored)), to).body["messages"] == received
