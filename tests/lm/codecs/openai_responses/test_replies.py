"""OpenAI Responses: replies, decoded and sent again in history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import CallError, ToolCall, ToolResult
from tests.lm.codecs.encoding import features, with_parts
from tests.lm.codecs.openai_responses.wire import (
    AFTER,
    ASKED,
    CALL,
    CITED,
    FAMILY,
    ITEM,
    REASONING,
    REFUSAL,
    SECOND,
    SHELL,
    TRACE,
    USAGE,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_SECOND,
    WIRE_TEXT,
    answer,
    body,
    decoded,
    encoded,
    text_item,
)

USED = Usage(10, 7, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2)


def incomplete(reason: str) -> JsonObject:
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def shell(*annotations: JsonObject, **fields: JsonValue) -> OpaquePart:
    part: JsonObject = {"type": "output_text", "annotations": list(annotations)}
    return OpaquePart(FAMILY, {**SHELL, "content": [part], **fields})


BROKEN = CallError("malformed_json", "The arguments are not valid JSON: Expecting value: line 1 column 7 (char 6)")
WIRE_ITEM: JsonObject = {**WIRE_CALL, **ITEM}
CALL_ITEM = replace(CALL, provider_data={FAMILY: {"item": ITEM}})
CUT_ITEM: JsonObject = {**WIRE_SECOND, "arguments": "", "status": "incomplete"}
REPLIES: dict[str, tuple[JsonObject, Choice]] = {
    "row 51 text": (answer(WIRE_TEXT), with_parts(OpaquePart(FAMILY, SHELL), TextPart("Hi"))),
    "row 51 text is not always first": (
        answer(TRACE, WIRE_TEXT),
        with_parts(OpaquePart(FAMILY, TRACE), OpaquePart(FAMILY, SHELL), TextPart("Hi")),
    ),
    "row 51 two texts": (
        answer({**WIRE_TEXT, "content": [{"type": "output_text", "text": text} for text in ("a", "", "b")]}),
        with_parts(
            OpaquePart(
                FAMILY,
                {
                    **WIRE_TEXT,
                    "content": [{"type": "output_text"}, {"type": "output_text", "text": ""}, {"type": "output_text"}],
                },
            ),
            TextPart("a"),
            TextPart("b"),
        ),
    ),
    "row 51 a host with few fields": (
        answer({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}, status=None),
        with_parts(OpaquePart(FAMILY, {"type": "message", "content": [{"type": "output_text"}]}), TextPart("Hi")),
    ),
    "row 52 call id, row 55 two parallel calls, row 59 completed": (
        answer(WIRE_ITEM, WIRE_SECOND),
        with_parts(CALL_ITEM, SECOND, finish_reason="tool_calls"),
    ),
    "row 52 no call id": (
        answer({"type": "function_call", "name": "f", "arguments": "{}"}),
        with_parts(ToolCall("call_0", "f", {}, "{}"), finish_reason="tool_calls"),
    ),
    "row 53 empty arguments": (
        answer(*({**WIRE_CALL, "call_id": n, "arguments": a} for n, a in (("a", ""), ("b", None), ("c", "{}")))),
        with_parts(
            ToolCall("a", "f", {}, ""), ToolCall("b", "f", {}), ToolCall("c", "f", {}, "{}"), finish_reason="tool_calls"
        ),
    ),
    "row 54 invalid arguments": (
        answer({**WIRE_CALL, "arguments": '{"x": '}),
        with_parts(ToolCall("c1", "f", None, '{"x": ', BROKEN), finish_reason="tool_calls"),
    ),
    "row 56 thinking, before its call": (
        answer(REASONING, WIRE_ITEM),
        with_parts(
            ThinkingPart("hm", provider=FAMILY),
            OpaquePart(FAMILY, REASONING),
            replace(CALL, provider_data={FAMILY: AFTER}),
            finish_reason="tool_calls",
        ),
    ),
    "row 56 thinking without words": (
        answer({**REASONING, "summary": []}, WIRE_TEXT),
        with_parts(OpaquePart(FAMILY, {**REASONING, "summary": []}), OpaquePart(FAMILY, SHELL), TextPart("Hi")),
    ),
    "row 56 thinking of open models": (
        answer({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}, WIRE_TEXT),
        with_parts(
            ThinkingPart("hm", provider=FAMILY),
            OpaquePart(
                FAMILY, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
            ),
            OpaquePart(FAMILY, SHELL),
            TextPart("Hi"),
        ),
    ),
    "row 57 refusal": (
        answer({**WIRE_TEXT, "content": [REFUSAL]}),
        with_parts(
            OpaquePart(FAMILY, {**WIRE_TEXT, "content": [REFUSAL]}), refusal="No.", finish_reason="content_filter"
        ),
    ),
    "row 58 citations": (
        answer(text_item("Hi", CITED)),
        with_parts(shell(CITED), TextPart("Hi"), citations=(CITED,)),
    ),
    "row 58 citations count from the start of all text": (
        answer(text_item("abc"), text_item("Hi", CITED, id="msg_2")),
        with_parts(
            shell(),
            TextPart("abc"),
            shell(CITED, id="msg_2"),
            TextPart("Hi"),
            citations=({**CITED, "start_index": 3, "end_index": 5},),
        ),
    ),
    "row 60 cut by length": (
        answer(WIRE_TEXT, **incomplete("max_output_tokens")),
        with_parts(OpaquePart(FAMILY, SHELL), TextPart("Hi"), finish_reason="length"),
    ),
    "row 60 cut inside a call": (
        answer(WIRE_CALL, CUT_ITEM, **incomplete("max_output_tokens")),
        with_parts(CALL, finish_reason="length"),
    ),
    "row 60 cut inside a call whose status does not tell": (
        answer(WIRE_CALL, {**WIRE_SECOND, "arguments": '{"x'}, **incomplete("max_output_tokens")),
        with_parts(CALL, finish_reason="length"),
    ),
    "row 61 nothing": (answer(text_item("")), with_parts(OpaquePart(FAMILY, text_item("")))),
    "row 62 no items": (answer(), Choice()),
    "row 62 null": ({**answer(), "output": None}, Choice()),
    "a cut call in an answer that is complete cannot be run": (
        answer(CUT_ITEM),
        with_parts(
            ToolCall(
                "c2",
                "f",
                None,
                "",
                CallError("malformed_json", "The call was truncated before its arguments were complete."),
                {FAMILY: {"item": {"status": "incomplete"}}},
            ),
            finish_reason="tool_calls",
        ),
    ),
    "a background answer is not there yet": (answer(status="queued"), Choice(finish_reason="error")),
}
LOST = {
    "row 51 a host with few fields": ["finish_reason"],
    "row 60 cut inside a call": ["tool_calls"],
    "row 60 cut inside a call whose status does not tell": ["tool_calls"],
    "row 61 nothing": ["content"],
    "row 62 no items": ["content"],
    "row 62 null": ["content"],
    "a background answer is not there yet": ["background"],
}


@pytest.mark.parametrize("name", REPLIES)
def test_decode_returns_the_choice_of_a_reply(name: str) -> None:
    wire, choice = REPLIES[name]
    response = decoded(wire)
    raw = wire["output"]
    assert response == Response((replace(choice, raw=raw),), USED, "m-1", "r1", response.warnings, raw=wire)
    assert features(response.warnings) == LOST.get(name, [])


FINISHES: dict[tuple[str, str], str] = {
    ("completed", "t"): "stop",
    ("max_output_tokens", "t"): "length",
    ("content_filter", "t"): "content_filter",
    ("max_messages", "t"): "stop",
    ("steered", "t"): "stop",
    ("cancelled", "t"): "error",
    ("in_progress", ""): "error",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "expected"), FINISHES.items(), ids=map(str, FINISHES))
def test_decode_maps_finish_reasons(wire: tuple[str, str], expected: str) -> None:
    reason, text = wire
    statuses = ("completed", "cancelled", "in_progress", "strange")
    fields: JsonObject = {"status": reason} if reason in statuses else incomplete(reason)
    assert decoded(answer(text_item(text), **fields)).choices[0].finish_reason == expected


def test_incomplete_response_without_a_reason_is_not_finished() -> None:
    assert decoded(answer(WIRE_TEXT, status="incomplete")).choices[0].finish_reason == "length"


def test_row_41_response_ends_before_the_first_stop_sequence() -> None:
    request = Request((ASKED,), options={"stop": ["END", "FIN"]})
    first, second = text_item("one FIN two END"), text_item("three", id="msg_2")
    response = decoded(answer(REASONING, first, second, WIRE_CALL, **incomplete("max_output_tokens")), request)
    (choice,) = response.choices
    assert (choice.text, choice.tool_calls, choice.finish_reason) == ("one ", (), "stop")
    assert features(response.warnings) == ["stop"]
    again = encoded(Request((ASKED, choice.message()))).body
    assert again == body(WIRE_ASKED, REASONING, text_item("one "))
    whole = decoded(answer(first, WIRE_CALL), replace(request, options={"stop": "NONE"})).choices[0]
    assert (whole.text, whole.tool_calls) == ("one FIN two END", (CALL,))


def test_synthetic_call_id_is_not_in_the_conversation() -> None:
    old = ToolCall("call_0", "f", {})
    request = Request((ASKED, Message.assistant(tool_calls=[old]), Message.tool(ToolResult("call_0", "f", ""))))
    nameless: JsonObject = {"type": "function_call", "name": "f", "arguments": ""}
    calls = decoded(answer(nameless, nameless), request).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_row_44_logprobs_are_on_the_choice_and_not_sent_again() -> None:
    tokens: JsonValue = [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}]
    item = text_item("Hi")
    parts = item["content"]
    assert isinstance(parts, list)
    part = parts[0]
    assert isinstance(part, dict)
    choice = decoded(answer({**item, "content": [{**part, "logprobs": tokens}]})).choices[0]
    assert choice.logprobs == {"content": tokens}
    assert encoded(Request((ASKED, choice.message()))).body == body(WIRE_ASKED, item)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        pytest.param(USAGE, USED, id="row 63 openai"),
        pytest.param({"input_tokens": 3, "input_tokens_details": None}, Usage(3), id="row 63 a host that says little"),
        pytest.param({"input_tokens": 3, "cost": 0.5}, Usage(3, cost=0.5), id="row 63 a host that says the price"),
        pytest.param(None, Usage(), id="row 63 none"),
    ],
)
def test_decode_reads_usage(usage: JsonValue, read: Usage) -> None:
    assert decoded({**answer(WIRE_TEXT), "usage": usage}).usage == read
