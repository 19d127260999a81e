"""Anthropic Messages: replies decoded, and sent back in history."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.codecs import anthropic
from tests.lm.codecs.anthropic.wire import (
    ASKED,
    CALL,
    CITATION,
    FOUND,
    REDACTED,
    SEARCH,
    SEARCHED,
    SECOND,
    THOUGHT,
    USAGE,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_REDACTED,
    WIRE_SECOND,
    WIRE_THOUGHT,
    answer,
    assistant,
    decoded,
    encoded,
    target,
    text,
)
from tests.lm.codecs.encoding import features, with_parts

USED = Usage(10, 7, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2)

CITED: JsonObject = {
    "type": "char_location",
    "cited_text": "said",
    "document_index": 0,
    "document_title": "D",
    "start_char_index": 3,
    "end_char_index": 7,
    "file_id": None,
}
REPLIES: dict[str, tuple[JsonObject, Choice, list[str]]] = {
    "row 51 text": (answer(text("Hi")), Choice("Hi"), []),
    "row 51 texts are joined": (
        answer(text("Hi "), text("there")),
        with_parts(TextPart("Hi "), TextPart("there")),
        [],
    ),
    "row 52 call id, row 55 two parallel calls": (
        answer(text("t"), WIRE_CALL, WIRE_SECOND, stop_reason="tool_use"),
        Choice("t", (CALL, SECOND), finish_reason="tool_calls"),
        [],
    ),
    "row 53 empty arguments": (
        answer({**WIRE_CALL, "input": {}}, {**WIRE_SECOND, "input": None}, stop_reason="tool_use"),
        Choice(
            tool_calls=(replace(CALL, arguments={}), replace(SECOND, arguments={})),
            finish_reason="tool_calls",
        ),
        [],
    ),
    "row 54 arguments that are no object": (
        answer({**WIRE_CALL, "input": [1]}, stop_reason="tool_use"),
        Choice(tool_calls=(ToolCall.read("toolu_1", "f", [1]),), finish_reason="tool_calls"),
        [],
    ),
    "row 56 thinking": (
        answer(WIRE_THOUGHT, WIRE_REDACTED, text("Hi")),
        with_parts(THOUGHT, REDACTED, TextPart("Hi")),
        [],
    ),
    "row 56 thinking between calls": (
        answer(WIRE_THOUGHT, WIRE_CALL, {**WIRE_THOUGHT, "signature": "S2"}, WIRE_SECOND, stop_reason="tool_use"),
        with_parts(THOUGHT, CALL, replace(THOUGHT, signature="S2"), SECOND, finish_reason="tool_calls"),
        [],
    ),
    "row 57 refusal": (
        answer(stop_reason="refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "No."}),
        Choice(refusal="No.", finish_reason="content_filter"),
        [],
    ),
    "row 57 refusal without words": (
        answer(stop_reason="refusal"),
        Choice(refusal="", finish_reason="content_filter"),
        [],
    ),
    "row 58 citations of a search": (
        answer(SEARCHED, FOUND, text("So: "), {**text("it is."), "citations": [CITATION]}),
        with_parts(
            OpaquePart("anthropic", SEARCHED),
            OpaquePart("anthropic", FOUND),
            TextPart("So: "),
            TextPart("it is."),
            OpaquePart("anthropic", {"citations": [CITATION]}),
            citations=(
                {
                    "type": "web_search_result_location",
                    "url": "https://x",
                    "title": "X",
                    "text": "said",
                    "start_index": 4,
                    "end_index": 10,
                },
            ),
        ),
        [],
    ),
    "row 58 citations of a document": (
        answer({**text("It is."), "citations": [CITED]}),
        with_parts(
            TextPart("It is."),
            OpaquePart("anthropic", {"citations": [CITED]}),
            citations=(
                {
                    "type": "char_location",
                    "text": "said",
                    "document_index": 0,
                    "title": "D",
                    "start_char_index": 3,
                    "end_char_index": 7,
                    "start_index": 0,
                    "end_index": 6,
                },
            ),
        ),
        [],
    ),
    "row 58 no citations": (answer({**text("Hi"), "citations": None}), Choice("Hi"), []),
    "row 59 calls but another reason": (
        answer(WIRE_CALL),
        Choice(tool_calls=(CALL,), finish_reason="tool_calls"),
        [],
    ),
    "row 60 cut inside a call": (
        answer(text("t"), WIRE_CALL, {**WIRE_SECOND, "input": {}}, stop_reason="max_tokens"),
        Choice("t", (CALL,), finish_reason="length"),
        ["tool_calls"],
    ),
    "row 60 cut after a call": (
        answer(WIRE_CALL, text("and"), stop_reason="max_tokens"),
        with_parts(CALL, TextPart("and"), finish_reason="length"),
        [],
    ),
    "row 61 nothing": (answer(), Choice(), []),
    "row 61 an empty text": (answer(text("")), Choice(), []),
    "row 75 the context is full": (
        answer(text("t"), stop_reason="model_context_window_exceeded"),
        Choice("t", finish_reason="length"),
        [],
    ),
    "row 81 a pause that nobody ended": (
        answer(text("t"), stop_reason="pause_turn"),
        Choice("t", finish_reason="length"),
        ["finish_reason"],
    ),
    "a call's caller is kept": (
        answer({**WIRE_CALL, "caller": {"type": "direct"}, "toolset_name": None}, stop_reason="tool_use"),
        Choice(
            tool_calls=(replace(CALL, provider_data={"anthropic": {"caller": {"type": "direct"}}}),),
            finish_reason="tool_calls",
        ),
        [],
    ),
    "a host's call without an id": (
        answer({"type": "tool_use", "name": "f", "input": {"x": 1}}, stop_reason="tool_use"),
        Choice(tool_calls=(replace(CALL, id="call_0"),), finish_reason="tool_calls"),
        [],
    ),
    "content that is plain text": ({**answer(), "content": "Hi"}, Choice("Hi"), []),
    "a block nobody knows is kept": (
        answer({"type": "new", "a": 1}, text("Hi")),
        with_parts(OpaquePart("anthropic", {"type": "new", "a": 1}), TextPart("Hi")),
        [],
    ),
}


@pytest.mark.parametrize(("wire", "choice", "warned"), REPLIES.values(), ids=REPLIES)
def test_replies(wire: JsonObject, choice: Choice, warned: list[str]) -> None:
    response = decoded(wire)
    assert response == Response((replace(choice, raw=wire),), USED, "m-1", "msg_1", response.warnings, raw=wire)
    assert features(response.warnings) == warned


FINISHES = {
    ("end_turn", "t"): "stop",
    ("stop_sequence", "t"): "stop",
    ("tool_use", "t"): "stop",
    ("tool_use", ""): "error",
    ("max_tokens", "t"): "length",
    ("compaction", ""): "length",
    ("refusal", "t"): "content_filter",
    (None, "t"): "stop",
    (None, ""): "error",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "ours"), FINISHES.items(), ids=map(str, FINISHES))
def test_finish_reasons(wire: tuple[JsonValue, str], ours: str) -> None:
    reason, words = wire
    assert decoded(answer(text(words), stop_reason=reason)).choices[0].finish_reason == ours


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        pytest.param(USAGE, USED, id="row 63 the input is the sum of three"),
        pytest.param({"input_tokens": 3, "output_tokens": 1}, Usage(3, 1), id="row 63 no cache"),
        pytest.param(
            {"input_tokens": 3, "cache_read_input_tokens": None, "cache_creation_input_tokens": 0},
            Usage(3, cache_write_tokens=0),
            id="row 63 unknown is not none",
        ),
        pytest.param(None, Usage(), id="row 63 nothing"),
    ],
)
def test_usage(usage: JsonValue, read: Usage) -> None:
    assert decoded({**answer(text("Hi")), "usage": usage}).usage == read


def test_an_invented_id_does_not_repeat_one_of_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    wire = answer({"type": "tool_use", "name": "f"}, {"type": "tool_use", "name": "f"}, stop_reason="tool_use")
    calls = decoded(wire, None, *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_warnings_of_encode_are_on_the_response() -> None:
    sent = encoded(Request((ASKED,), options={"seed": 1}))
    assert features(anthropic.decode(answer(text("Hi")), sent, target()).warnings) == ["seed"]


def test_row_81_a_paused_turn_is_sent_back_unchanged_with_the_same_tools() -> None:
    sent = encoded(Request((ASKED,), (SEARCH,), options={"temperature": 0.5}))
    before = copy.deepcopy(sent.body)
    first = answer(SEARCHED, stop_reason="pause_turn", container={"id": "c1", "expires_at": "..."})
    again = anthropic.continuation(first, sent)
    assert again is not None
    assert again.body == {**sent.body, "messages": [WIRE_ASKED, assistant(SEARCHED)], "container": "c1"}
    second = answer(FOUND, stop_reason="pause_turn")
    thrice = anthropic.continuation(second, again)
    assert thrice is not None
    assert thrice.body == {**again.body, "messages": [WIRE_ASKED, assistant(SEARCHED, FOUND)]}
    last = answer({**text("it is."), "citations": [CITATION]})
    assert anthropic.continuation(last, thrice) is None
    assert sent.body == before
    response = anthropic.decode([first, second, last], sent, target())
    whole = decoded(answer(SEARCHED, FOUND, {**text("it is."), "citations": [CITATION]}))
    assert response.choices[0] == replace(whole.choices[0], raw=[first, second, last])
    assert response.usage == USED + USED + USED
    assert response.raw == [first, second, last]
    assert response.warnings == ()


SKILLED: JsonObject = {"extra_body": {"container": {"skills": ["s"]}}}


def test_row_81_a_container_keeps_its_settings_and_an_empty_pause_asks_again() -> None:
    sent = encoded(Request((ASKED,), options=SKILLED))
    again = anthropic.continuation(answer(stop_reason="compaction", container={"id": "c1"}), sent)
    assert again is not None
    container: JsonObject = {"skills": ["s"], "id": "c1"}
    assert again.body == {**sent.body, "container": container}
    assert anthropic.continuation("<html>", sent) is None
