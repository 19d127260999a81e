"""Gemini: what holds for any request and any answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.lm.codecs import gemini
from sigwire.lm.codecs.gemini import BUILTIN, FINISH_REASONS, GEMINI, VERTEX, GeminiProfile
from sigwire.lm.codecs.shared.interface import EncodedRequest
from tests.lm.codecs.any_request import (
    attempt,
    audio,
    calls_with,
    files,
    functions,
    images,
    objects,
    requests_of,
    results_with,
    wild_text,
)
from tests.lm.codecs.gemini.reading import read_request
from tests.lm.codecs.gemini.wire import (
    ABLE,
    ASKED,
    DECLARED,
    OLD,
    SEARCH,
    WIRE_ASKED,
    body,
    calling,
    config,
    decoded,
    encoded,
    model,
    target,
    thinking,
    user,
)


def test_a_request_is_read_in_either_spelling_and_what_is_the_callers_own_is_left_alone() -> None:
    snake: JsonObject = {
        "system_instruction": {"role": "user", "parts": [{"text": "S"}]},
        "contents": [
            WIRE_ASKED,
            model({"function_call": {"name": "f", "args": {"my_key": 1}}, "thought_signature": "AAEC"}),
            user({"function_response": {"name": "f", "response": {"output": {"my_key": 2}}}}),
        ],
        "tools": {
            "function_declarations": [
                {
                    "name": "f",
                    "parameters": {"type": "OBJECT", "title": "F", "properties": {"my_key": {"type": "INTEGER"}}},
                }
            ]
        },
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
        "generation_config": {"max_output_tokens": 5, "thinking_config": {"thinking_budget": 0}},
    }
    parameters: JsonObject = {"type": "object", "title": "F", "properties": {"my_key": {"type": "integer"}}}
    call = ToolCall("call_0", "f", {"my_key": 1}, provider_data={"gemini": {"thoughtSignature": "AAEC"}})
    assert read_request(snake) == Request(
        (
            Message.system("S"),
            ASKED,
            Message.assistant(tool_calls=[call]),
            Message.tool(ToolResult("call_0", "f", {"my_key": 2})),
        ),
        ({"type": "function", "function": {"name": "f", "parameters": parameters}},),
        ToolChoice.named("f"),
        options={"max_tokens": 5, "reasoning": "off"},
    )


def unnamed_result(name: str) -> JsonObject:
    return {"functionResponse": {"name": name, "response": {"output": name}}}


def test_results_without_ids_find_their_calls_by_name_and_order() -> None:
    wire = body(
        WIRE_ASKED,
        model({"functionCall": {"name": "f"}}, {"functionCall": {"name": "g"}}, {"functionCall": {"name": "f"}}),
        user(*map(unnamed_result, ("g", "f", "f"))),
    )
    results = read_request(wire).messages[2].tool_results
    assert [(result.id, result.name) for result in results] == [("call_1", "g"), ("call_0", "f"), ("call_2", "f")]


READ_RESULTS: dict[str, tuple[JsonValue, ToolResult]] = {
    "an output": ({"output": [1]}, ToolResult("c9", "f", [1])),
    "an error": ({"error": "boom"}, ToolResult("c9", "f", "boom", is_error=True)),
    "an object of its own": ({"left": 3}, ToolResult("c9", "f", {"left": 3})),
    "an output among other keys": ({"output": 1, "n": 2}, ToolResult("c9", "f", {"output": 1, "n": 2})),
    "an empty object": ({}, ToolResult("c9", "f", {})),
}


@pytest.mark.parametrize(("response", "read"), READ_RESULTS.values(), ids=READ_RESULTS)
def test_a_result_is_read_whatever_its_call(response: JsonValue, read: ToolResult) -> None:
    wire = body(user({"functionResponse": {"id": "c9", "name": "f", "response": response}}))
    assert read_request(wire).messages == (Message.tool(read),)
    nameless = read_request(body(user({"functionResponse": {"response": response}})))
    assert nameless.messages == (Message.tool(replace(read, id="", name="")),)


UNMODELLED: dict[str, JsonObject] = {
    "a mode without names": {**DECLARED, "toolConfig": calling(mode="VALIDATED")},
    "a choice without functions": {"tools": [{"googleSearch": {}}], "toolConfig": calling(mode="AUTO")},
    "an announcement without functions": {
        "tools": [{"googleSearch": {}}],
        "toolConfig": {"includeServerSideToolInvocations": True},
    },
    "thoughts that are off and shown": thinking(thinkingBudget=0, includeThoughts=True),
    "another output type": config(responseMimeType="text/x.enum", responseSchema={"type": "STRING"}),
    "a budget of the model's choosing": thinking(thinkingBudget=-1),
    "thoughts of the model's choosing": thinking(thinkingBudget=-1, includeThoughts=True),
    "thoughts without a level": thinking(includeThoughts=True),
    "safety settings and modalities": {"safetySettings": [{"category": "C"}], **config(responseModalities=["TEXT"])},
    "a search with settings of its own": {"tools": [{"googleSearch": {"timeRangeFilter": {"startTime": "t"}}}]},
}


@pytest.mark.parametrize("fields", UNMODELLED.values(), ids=UNMODELLED)
def test_unmodelled_fields_are_read_and_encoded_again(fields: JsonObject) -> None:
    wire = body(WIRE_ASKED, **fields)
    request = read_request(wire)
    assert encoded(request).body == wire
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


thoughts = st.builds(
    ThinkingPart,
    st.text(max_size=5),
    st.none() | st.text(max_size=5),
    st.none() | st.text(max_size=5),
    st.sampled_from(["gemini", "anthropic", None]),
)
media = images | audio | files
ours = objects.map(lambda data: {"gemini": data} if data else None)
builtin_tools: st.SearchStrategy[tuple[JsonObject, ...]] = st.sampled_from(
    [(), (SEARCH,), ({"type": "codeExecution", "codeExecution": {}},)]
)
requests = requests_of(
    {
        "system": st.builds(TextPart, wild_text) | media,
        "user": st.builds(TextPart, wild_text) | media,
        "assistant": st.builds(TextPart, wild_text) | calls_with(ours) | thoughts | media,
        "tool": results_with(media),
    },
    {"top_k": st.just(3), "user": st.just("u"), "stop": st.sampled_from(["a", ["a", "b"]])},
    tools=st.tuples(builtin_tools, functions).map(lambda both: both[0] + both[1]),
)
TARGETS = {
    "newer": target(signed_calls=True),
    "older": target(able=replace(ABLE, tools_with_json_schema=False), **OLD),
    "vertex": target(VERTEX),
    "weak": target(able=Capabilities(), thinking="none", forced_choice=False, sampling="never", stop=False),
}


@given(requests, st.sampled_from(sorted(TARGETS)))
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request, which: str) -> None:
    sent = attempt(gemini, request, TARGETS[which])
    if isinstance(sent, str):
        refused = ("no place for", "no option 'user'", "An image needs", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()


def parts_by_turn(sent: EncodedRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    contents: Any = sent.body["contents"]
    return [(content["role"], content["parts"]) for content in contents]


@given(requests, st.sampled_from(sorted(TARGETS)))
def test_turns_take_turns_and_every_call_is_answered_at_once_and_in_order(request: Request, which: str) -> None:
    sent = attempt(gemini, replace(request, options={}), TARGETS[which])
    if isinstance(sent, str):
        return
    turns = parts_by_turn(sent)
    assert [role for role, _ in turns] == ["user", "model"] * (len(turns) // 2) + ["user"] * (len(turns) % 2)
    for (_, asked), (_, answered) in zip(turns, [*turns[1:], ("user", [])], strict=True):
        assert asked
        wanted = [
            (part["functionCall"].get("id"), part["functionCall"]["name"]) for part in asked if "functionCall" in part
        ]
        given_ = [part["functionResponse"] for part in answered if "functionResponse" in part]
        assert [(answer.get("id"), answer["name"]) for answer in given_] == wanted
        assert all("functionResponse" in part for part in answered[: len(given_)])


@given(requests)
def test_every_step_of_the_current_turn_is_signed(request: Request) -> None:
    sent = attempt(gemini, replace(request, options={}), TARGETS["newer"])
    if isinstance(sent, str):
        return
    for role, parts in reversed(parts_by_turn(sent)):
        if role == "user" and any("functionResponse" not in part for part in parts):
            return
        first = next((part for part in parts if "functionCall" in part), None)
        assert first is None or first["thoughtSignature"]


signatures = st.none() | st.text("ABab01+/=", min_size=1, max_size=8)


def signed(part: JsonObject, signature: str | None) -> JsonObject:
    return {**part, **({"thoughtSignature": signature} if signature else {})}


def text_part(text: str, signature: str | None) -> JsonObject:
    return signed({"text": text}, signature)


def thought_part(text: str, signature: str | None) -> JsonObject:
    return signed({"text": text, "thought": True}, signature)


def call_part(name: str, arguments: JsonObject, signature: str | None) -> JsonObject:
    return signed({"functionCall": {"name": name, "args": arguments}}, signature)


def with_ids(parts: list[JsonObject], identified: bool) -> list[JsonObject]:
    """Newer models give every call an id, and no two the same; older ones give none."""
    if not identified:
        return parts
    return [
        {**part, "functionCall": {"id": f"id{number}", **call}} if isinstance(call, dict) else part
        for number, part in enumerate(parts)
        for call in [part.get("functionCall")]
    ]


def media_part(kind: str, data: str, signature: str | None) -> JsonObject:
    return signed({"inlineData": {"mimeType": kind, "data": data}}, signature)


def other_part(kind: str, data: JsonObject, signature: str | None) -> JsonObject:
    return signed({kind: {"id": "t1", "args": data}}, signature)


base64_text = st.text("ABab01+/=", min_size=1, max_size=8)
own_kinds = st.sampled_from(["toolCall", "toolResponse", "executableCode", "codeExecutionResult"])
media_types = st.sampled_from(["image/png", "audio/wav", "application/pdf", "video/mp4"])
wire_parts: st.SearchStrategy[JsonObject] = st.one_of(
    st.builds(text_part, st.text(min_size=1, max_size=9), signatures),
    st.builds(text_part, st.just(""), base64_text),
    st.builds(thought_part, st.text(max_size=9), signatures),
    st.builds(call_part, st.text("abc_", min_size=1, max_size=8), objects, signatures),
    st.builds(media_part, media_types, base64_text, signatures),
    st.builds(other_part, own_kinds, objects, signatures),
)


@given(st.builds(with_ids, st.lists(wire_parts, max_size=6), st.booleans()), st.sampled_from([GEMINI, VERTEX]))
def test_an_answer_put_into_history_is_sent_as_it_came(came: list[JsonObject], dialect: GeminiProfile) -> None:
    to = target(dialect)
    choice = decoded({"candidates": [{"content": model(*came), "finishReason": "STOP"}]}, to).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    turns = parts_by_turn(gemini.encode(Request((ASKED, stored)), to))
    assert [part for role, parts in turns if role == "model" for part in parts] == came
    read = read_request({"contents": [WIRE_ASKED, model(*came)]}, dialect)
    assert [part for role, parts in parts_by_turn(gemini.encode(read, to)) if role == "model" for part in parts] == came


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    to = target(signed_calls=True)
    for turn in range(10):
        call: JsonObject = {"functionCall": {"name": "f", "args": {"x": turn}}}  # no ids, as older models answer
        parts: list[JsonObject] = [
            {"text": f"hm {turn}", "thought": True},
            {"text": "Let me see.", "thoughtSignature": f"T{turn}"},
            {**call, "thoughtSignature": f"S{turn}"},
            call,
        ]
        sent = gemini.encode(Request(tuple(history)), to)
        assert sent.body["contents"] == came
        wire: JsonObject = {"candidates": [{"content": model(*parts), "finishReason": "STOP"}]}
        choice = gemini.decode(wire, sent, to).choices[0]
        assert [call.id for call in choice.tool_calls] == [f"call_{2 * turn}", f"call_{2 * turn + 1}"]
        results = (ToolResult(call.id, "f", number) for number, call in enumerate(choice.tool_calls))
        history += [choice.message(), Message.tool(*results)]
        answers: list[JsonObject] = [
            {"functionResponse": {"name": "f", "response": {"output": number}}} for number in range(2)
        ]
        came += [model(*parts), user(*answers)]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert gemini.encode(Request(tuple(stored)), to).body["contents"] == came
    assert gemini.encode(read_request({"contents": list(came)}), to).body["contents"] == came


def test_the_tables_name_only_what_the_wire_has() -> None:
    assert set(FINISH_REASONS.values()) == {"stop", "length", "content_filter", "error"}
    assert BUILTIN["web_search"] == "googleSearch"
    assert all(kind == key for kind, key in BUILTIN.items() if kind != "web_search")
