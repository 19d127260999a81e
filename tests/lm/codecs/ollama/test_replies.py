"""Ollama: replies, decoded and sent again in history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import CallError, ToolCall, ToolResult
from sigwire.lm.codecs import ollama
from tests.lm.codecs.encoding import features
from tests.lm.codecs.ollama.wire import (
    ASKED,
    CALL,
    PNG,
    SECOND,
    WIRE_CALL,
    WIRE_SECOND,
    answer,
    decoded,
    encoded,
    target,
)

THOUGHT = ThinkingPart("hm", provider="ollama")
BROKEN = CallError("malformed_json", "The arguments are not valid JSON: Expecting value: line 1 column 7 (char 6)")
INDEXED: JsonObject = {"id": "call_ab12cd34", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}}
REPLIES: dict[str, tuple[JsonObject, JsonValue, Choice]] = {
    "row 51 text": ({"content": "Hi"}, "stop", Choice("Hi")),
    "row 52 call id, row 55 two parallel calls": (
        {"tool_calls": [INDEXED, WIRE_SECOND]},
        "stop",
        Choice(tool_calls=(CALL, SECOND), finish_reason="tool_calls"),
    ),
    "row 52 no call ids": (
        {"tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}, {"function": {"name": "f", "arguments": {}}}]},
        "stop",
        Choice(
            tool_calls=(ToolCall("call_0", "f", {"x": 1}), ToolCall("call_1", "f", {})), finish_reason="tool_calls"
        ),
    ),
    "row 53 empty arguments": (
        {"tool_calls": [{"id": "a", "function": {"name": "f"}}, {"id": "b", "function": {"name": "f", "arguments": None}}]},
        "stop",
        Choice(tool_calls=(ToolCall("a", "f", {}), ToolCall("b", "f", {})), finish_reason="tool_calls"),
    ),
    "row 53 arguments as text all the same": (
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]},
        "stop",
        Choice(tool_calls=(ToolCall("a", "f", {"x": 1}, '{"x":1}'),), finish_reason="tool_calls"),
    ),
    "row 54 invalid arguments": (
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x": '}}]},
        "stop",
        Choice(tool_calls=(ToolCall("a", "f", None, '{"x": ', BROKEN),), finish_reason="tool_calls"),
    ),
    "row 56 thinking": (
        {"thinking": "hm", "content": "Hi"},
        "stop",
        Choice.from_parts((THOUGHT, TextPart("Hi"))),
    ),
    "row 56 think tags stay text: thinking has a field": (
        {"content": "<think>hm</think>Hi"},
        "stop",
        Choice("<think>hm</think>Hi"),
    ),
    "row 59 calls but reason stop": (
        {"thinking": "hm", "content": "t", "tool_calls": [WIRE_CALL]},
        "stop",
        Choice.from_parts((THOUGHT, TextPart("t"), CALL), finish_reason="tool_calls"),
    ),
    "row 60 cut": ({"content": "Hi"}, "length", Choice("Hi", finish_reason="length")),
    "row 60 cut inside a call": (
        {"tool_calls": [WIRE_CALL, {"id": "a", "function": {"name": "f", "arguments": '{"x'}}]},
        "length",
        Choice(tool_calls=(CALL,), finish_reason="length"),
    ),
    "row 61 nothing": ({}, "stop", Choice()),
    "a model was loaded": ({}, "load", Choice()),
    "a model was unloaded": ({}, "unload", Choice()),
    "a call that is only text stays text": (
        {"content": '{"name": "f", "parameters": {"x": 1}}'},
        "stop",
        Choice('{"name": "f", "parameters": {"x": 1}}'),
    ),
    "a picture": ({"content": "See", "images": ["iVBO"]}, "stop", Choice.from_parts((TextPart("See"), PNG))),
    "empty fields say nothing": ({"content": "Hi", "images": None, "thinking": "", "tool_name": ""}, "stop", Choice("Hi")),
    "unknown fields are kept": (
        {"content": "Hi", "mood": "good", "tool_calls": [{**WIRE_CALL, "sig": "S"}]},
        "stop",
        Choice.from_parts(
            (TextPart("Hi"), replace(CALL, provider_data={"ollama": {"sig": "S"}}), OpaquePart("ollama", {"mood": "good"})),
            finish_reason="tool_calls",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_decode_returns_the_choice_of_a_reply(name: str) -> None:
    message, reason, choice = REPLIES[name]
    wire = answer(message, reason)
    response = decoded(wire)
    assert response == Response((replace(choice, raw=wire),), Usage(10, 7), "m-1", warnings=response.warnings, raw=wire)
    assert features(response.warnings) == (["tool_calls"] if name == "row 60 cut inside a call" else [])


FINISHES = {
    ("stop", "t"): "stop",
    ("load", ""): "stop",
    ("length", "t"): "length",
    (None, "t"): "stop",
    (None, ""): "error",
    ("", ""): "error",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "expected"), FINISHES.items(), ids=map(str, FINISHES))
def test_decode_maps_finish_reasons(wire: tuple[JsonValue, str], expected: str) -> None:
    reason, text = wire
    assert decoded(answer({"content": text}, reason)).choices[0].finish_reason == expected


def test_row_52_synthetic_call_id_is_not_in_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    calls = decoded(answer({"tool_calls": [{"function": {"name": "f"}}]}), *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1"]


def test_row_44_logprobs_are_kept_in_the_common_shape() -> None:
    logprobs: list[JsonValue] = [{"token": "Hi", "logprob": -0.5, "top_logprobs": [{"token": "Hi", "logprob": -0.5}]}]
    assert decoded(answer({"content": "Hi"}, logprobs=logprobs)).choices[0].logprobs == {"content": logprobs}


@pytest.mark.parametrize(
    ("counts", "read"),
    [
        pytest.param({"prompt_eval_count": 3, "eval_count": 2}, Usage(3, 2), id="row 63 both"),
        pytest.param(
            {"prompt_eval_count": None, "eval_count": 2}, Usage(None, 2), id="row 63 a zero that was left out"
        ),
        pytest.param({"prompt_eval_count": None, "eval_count": None}, Usage(), id="row 63 none"),
    ],
)
def test_decode_reads_usage(counts: JsonObject, read: Usage) -> None:
    assert decoded(answer({"content": "Hi"}, **counts)).usage == read


def test_response_has_the_warnings_of_encode() -> None:
    sent = encoded(Request((ASKED,), options={"n": 2}))
    assert features(ollama.decode(answer({"content": "Hi"}), sent, target()).warnings) == ["n"]
