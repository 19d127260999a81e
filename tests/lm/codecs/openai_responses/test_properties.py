"""OpenAI Responses: properties of any request and any reply."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.codecs import openai_responses
from sigwire.lm.codecs.openai_responses import DEEPSEEK, OPENAI, PROFILES, ResponsesProfile
from tests.lm.codecs.any_request import (
    attempt,
    audio,
    calls_with,
    files,
    functions,
    images,
    json_values,
    objects,
    requests_of,
    results_with,
    wild_text,
)
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_responses.reading import read_request
from tests.lm.codecs.openai_responses.wire import (
    AFTER,
    ASKED,
    CITED,
    FAMILY,
    FILES,
    REASONING,
    REFUSAL,
    SEARCH,
    SHELL,
    TRACE,
    WIRE_ASKED,
    WIRE_CALL,
    answer,
    decoded,
    target,
    text_item,
)

families = st.sampled_from([FAMILY, "deepseek-responses", "anthropic"])
opaques = st.builds(OpaquePart, families, st.sampled_from([REASONING, SHELL, TRACE, {"role": "assistant"}, {}, "x"]))
requests = requests_of(
    {
        "system": st.builds(TextPart, wild_text),
        "user": st.builds(TextPart, wild_text) | images | files | audio,
        "assistant": st.builds(TextPart, wild_text)
        | calls_with(st.none() | st.just({FAMILY: AFTER}) | objects)
        | opaques
        | st.builds(ThinkingPart, st.text(max_size=5), provider=families),
        "tool": results_with(images | files),
    },
    {"top_k": st.just(3), "seed": st.integers(), "stop": st.just("x")},
    tools=st.tuples(st.sampled_from([(), (SEARCH,), (FILES,)]), functions).map(lambda both: both[0] + both[1]),
)


@given(requests, st.sampled_from(sorted(PROFILES)))
def test_any_request_is_encoded_or_the_error_names_the_feature(request: Request, host: str) -> None:
    sent = attempt(openai_responses, request, target(PROFILES[host]))
    if isinstance(sent, str):
        refused = ("no place for", "no option 'top_k'", "needs a url", "extra_body must", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)
    assert ("stop" in features(sent.warnings)) == bool(sent.stop)


@given(requests, st.sampled_from([OPENAI, DEEPSEEK]))
def test_every_call_has_its_result_in_order_before_the_next_turn(request: Request, host: ResponsesProfile) -> None:
    sent = attempt(openai_responses, replace(request, options={}), target(host))
    if isinstance(sent, str):
        return
    encoded_again = sent.body["input"]
    assert isinstance(encoded_again, list)
    waiting: list[str] = []
    seen: set[str] = set()
    for item in encoded_again:
        assert isinstance(item, dict)
        if item.get("type") == "function_call":
            assert item["call_id"]
            assert item["call_id"] not in seen
            waiting.append(str(item["call_id"]))
        elif item.get("type") == "function_call_output":
            assert item["call_id"] == waiting.pop(0)
            seen.add(str(item["call_id"]))
        elif item.get("role") in ("user", "developer", "system") or host is DEEPSEEK:
            assert waiting == []
    assert waiting == []


texts = st.text(max_size=12)
arguments = objects.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))
output_texts = st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": texts, "annotations": st.lists(st.just(CITED), max_size=1)}
)
wire_items: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("message"),
            "role": st.just("assistant"),
            "status": st.just("completed"),
            "content": st.lists(output_texts | st.just(REFUSAL), min_size=1, max_size=3),
        },
        optional={"phase": st.sampled_from(["commentary", "final_answer"])},
    ),
    st.fixed_dictionaries(
        {"type": st.just("function_call"), "name": st.text("abc_", min_size=1, max_size=8), "arguments": arguments},
        optional={"status": st.just("completed"), "namespace": st.text(max_size=3)},
    ),
    st.fixed_dictionaries(
        {"type": st.just("custom_tool_call"), "name": st.just("sql"), "input": texts.filter(bool)},
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("reasoning"),
            "encrypted_content": st.none() | texts,
            "summary": st.lists(st.builds(lambda text: {"type": "summary_text", "text": text}, texts), max_size=2),
        }
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["web_search_call", "compaction"]), "x": json_values}),
)


def identified(items: list[dict[str, Any]]) -> list[JsonObject]:
    """The items with ids as the provider would give them."""
    named = [{"id": f"id_{number}", **item} for number, item in enumerate(items)]
    return [{**item, **({"call_id": f"call-{item['id']}"} if "name" in item else {})} for item in named]


def without_last_reasoning(items: list[JsonObject]) -> list[JsonObject]:
    while items and items[-1]["type"] == "reasoning":
        items = items[:-1]
    return items


@example(
    [
        {"id": "id_0", "type": "reasoning", "encrypted_content": None, "summary": []},
        {
            "id": "id_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "", "annotations": []}],
        },
    ]
)
@given(st.lists(wire_items, max_size=5).map(identified))
def test_response_in_history_is_sent_unchanged(items: list[JsonObject]) -> None:
    choice = decoded(answer(*items)).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    encoded_again = openai_responses.encode(Request((ASKED, stored)), target()).body["input"]
    assert isinstance(encoded_again, list)
    answers = ("function_call_output", "custom_tool_call_output")
    turn = [item for item in encoded_again[1:] if isinstance(item, dict) and item.get("type") not in answers]
    assert turn == without_last_reasoning(items)


@given(st.lists(wire_items, max_size=5).map(identified))
def test_encoded_request_is_read_and_encoded_equally(items: list[JsonObject]) -> None:
    choice = decoded(answer(*items)).choices[0]
    sent = openai_responses.encode(Request((Message.system("S"), ASKED, choice.message(), ASKED)), target())
    read = read_request(sent.body)
    assert openai_responses.encode(read, target()).body == sent.body


def test_ten_turns_are_sent_unchanged() -> None:
    history: list[Message] = [ASKED]
    received: list[JsonObject] = [WIRE_ASKED]
    for turn in range(10):
        reasoning: JsonObject = {**REASONING, "id": f"rs_{turn}"}
        call: JsonObject = {**WIRE_CALL, "call_id": f"c{turn}", "id": f"fc_{turn}", "status": "completed"}
        items = [reasoning, text_item(f"turn {turn}", id=f"msg_{turn}"), call]
        sent = openai_responses.encode(Request(tuple(history)), target())
        assert sent.body["input"] == received
        choice = openai_responses.decode(answer(*items), sent, target()).choices[0]
        history += [choice.message(), Message.tool(ToolResult(f"c{turn}", "f", "ok"))]
        received += [*items, {"type": "function_call_output", "call_id": f"c{turn}", "output": "ok"}]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert openai_responses.encode(Request(tuple(stored)), target()).body["input"] == received
