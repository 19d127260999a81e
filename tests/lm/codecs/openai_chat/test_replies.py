"""Chat completions: replies, decoded and sent again in history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import CallError, ToolCall, ToolResult
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import (
    DEEPSEEK,
    GROQ,
    LLAMACPP,
    MISTRAL,
    OPENAI,
    OPENROUTER,
    VLLM,
    ChatProfile,
)
from tests.lm.codecs.encoding import features, with_parts
from tests.lm.codecs.openai_chat.wire import (
    ASKED,
    CALL,
    DETAILS,
    SECOND,
    USAGE,
    WIRE_CALL,
    WIRE_SECOND,
    answer,
    decoded,
    encoded,
    target,
)

USED = Usage(10, 7, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2)


def thinking(family: str, text: str = "hm", signature: str | None = None) -> ThinkingPart:
    return ThinkingPart(text, signature=signature, provider=family)


CITED: JsonObject = {"url": "https://x", "title": "X", "start_index": 0, "end_index": 4}
BROKEN = CallError("malformed_json", "The arguments are not valid JSON: Expecting value: line 1 column 7 (char 6)")
REPLIES: dict[str, tuple[ChatProfile, JsonObject, JsonValue, Choice]] = {
    "row 51 text": (OPENAI, {"content": "Hi"}, "stop", Choice("Hi")),
    "row 52 call id, row 55 two parallel calls": (
        OPENAI,
        {"content": None, "tool_calls": [WIRE_CALL, WIRE_SECOND]},
        "tool_calls",
        Choice(
            tool_calls=(CALL, SECOND),
            finish_reason="tool_calls",
        ),
    ),
    "row 52 no call id": (
        OPENAI,
        {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("call_0", "f", {}, "{}"),), finish_reason="tool_calls"),
    ),
    "row 52 the id null on mistral": (
        MISTRAL,
        {"tool_calls": [{"id": "null", "function": {"name": "f", "arguments": {"x": 1}}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("call_0", "f", {"x": 1}),), finish_reason="tool_calls"),
    ),
    "row 53 empty arguments": (
        OPENAI,
        {"tool_calls": [{"id": n, "function": {"name": "f", "arguments": a}} for n, a in (("a", ""), ("b", None))]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("a", "f", {}, ""), ToolCall("b", "f", {})), finish_reason="tool_calls"),
    ),
    "row 54 invalid arguments": (
        OPENAI,
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x": '}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("a", "f", None, '{"x": ', BROKEN),), finish_reason="tool_calls"),
    ),
    "row 56 reasoning_content": (
        DEEPSEEK,
        {"reasoning_content": "hm", "content": "Hi"},
        "stop",
        with_parts(thinking("deepseek"), TextPart("Hi")),
    ),
    "row 56 reasoning": (
        VLLM,
        {"reasoning": "hm", "content": "Hi"},
        "stop",
        with_parts(thinking("vllm"), TextPart("Hi")),
    ),
    "row 56 reasoning_details": (
        OPENROUTER,
        {**DETAILS, "reasoning": None, "content": "Hi"},
        "stop",
        with_parts(thinking("openrouter"), OpaquePart("openrouter", DETAILS), TextPart("Hi")),
    ),
    "row 56 thinking chunks": (
        MISTRAL,
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "S"},
                {"type": "text", "text": "Hi"},
            ]
        },
        "stop",
        with_parts(thinking("mistral", signature="S"), TextPart("Hi")),
    ),
    "row 56 think tags": (
        LLAMACPP,
        {"content": "<think>\nhm\n</think>\n\nHi"},
        "stop",
        with_parts(thinking("llamacpp"), TextPart("Hi")),
    ),
    "row 56 think tags stay text where thinking has a field": (
        OPENAI,
        {"content": "<think>hm</think>Hi"},
        "stop",
        Choice("<think>hm</think>Hi"),
    ),
    "row 57 refusal": (
        OPENAI,
        {"content": None, "refusal": "No."},
        "stop",
        Choice(refusal="No.", finish_reason="content_filter"),
    ),
    "row 58 citations": (
        OPENAI,
        {"content": "Hi", "annotations": [{"type": "url_citation", "url_citation": CITED}]},
        "stop",
        Choice("Hi", citations=({"type": "url_citation", **CITED},)),
    ),
    "row 59 calls but reason stop": (
        OPENAI,
        {"tool_calls": [WIRE_CALL]},
        "stop",
        Choice(tool_calls=(CALL,), finish_reason="tool_calls"),
    ),
    "row 60 cut inside a call": (
        OPENAI,
        {"tool_calls": [WIRE_CALL, {"id": "c2", "function": {"name": "f", "arguments": '{"x'}}]},
        "length",
        Choice(tool_calls=(CALL,), finish_reason="length"),
    ),
    "row 61 nothing": (OPENAI, {"content": None}, "stop", Choice()),
    "the form before tool_calls": (
        OPENAI,
        {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
        "function_call",
        Choice(tool_calls=(ToolCall("call_0", "f", {}, "{}"),), finish_reason="tool_calls"),
    ),
    "extra content of a call is kept": (
        OPENAI,
        {"tool_calls": [{**WIRE_CALL, "extra_content": {"a": 1}}]},
        "tool_calls",
        Choice(
            tool_calls=(replace(CALL, provider_data={"openai-chat": {"extra_content": {"a": 1}}}),),
            finish_reason="tool_calls",
        ),
    ),
    "audio output": (
        OPENAI,
        {"content": None, "audio": {"id": "a1", "data": "UklG", "transcript": "Hi"}},
        "stop",
        with_parts(AudioPart("UklG"), OpaquePart("openai-chat", {"audio": {"id": "a1"}}), TextPart("Hi")),
    ),
}


@pytest.mark.parametrize(("profile", "message", "reason", "choice"), REPLIES.values(), ids=REPLIES)
def test_decode_returns_the_choice_of_a_reply(
    profile: ChatProfile, message: JsonObject, reason: JsonValue, choice: Choice
) -> None:
    wire = answer(message, reason)
    response = decoded(wire, target(profile))
    choices = wire["choices"]
    assert isinstance(choices, list)
    raw = choices[0]
    assert response == Response((replace(choice, raw=raw),), USED, "m-1", "r1", response.warnings, raw=wire)
    lost = {"row 60 cut inside a call": ["tool_calls"], "row 61 nothing": ["content"]}
    name = next(name for name, case in REPLIES.items() if case[1] is message)
    assert features(response.warnings) == lost.get(name, [])


FINISHES = {
    ("stop", "t"): "stop",
    ("eos", ""): "stop",
    ("eos_token", ""): "stop",
    ("length", "t"): "length",
    ("model_length", "t"): "length",
    ("content_filter", "t"): "content_filter",
    ("error", "t"): "error",
    ("insufficient_system_resource", ""): "error",
    ("tool_calls", "t"): "stop",
    ("tool_calls", ""): "error",
    (None, "t"): "stop",
    (None, ""): "error",
    ("", "t"): "stop",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "expected"), FINISHES.items(), ids=map(str, FINISHES))
def test_decode_maps_finish_reasons(wire: tuple[JsonValue, str], expected: str) -> None:
    reason, text = wire
    assert decoded(answer({"content": text}, reason)).choices[0].finish_reason == expected


def test_synthetic_call_id_is_not_in_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    wire = answer({"tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "f"}}]})
    calls = decoded(wire, None, *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_row_43_choices_are_ordered_by_index() -> None:
    first: JsonObject = {"index": 1, "message": {"content": "b"}, "finish_reason": "stop"}
    second: JsonObject = {"index": 0, "message": {"content": "a"}, "finish_reason": "length"}
    response = decoded({"choices": [first, second]})
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("a", "length"), ("b", "stop")]
    assert response.usage == Usage()


def test_row_44_logprobs_are_kept() -> None:
    logprobs: JsonObject = {"content": [{"token": "Hi", "logprob": -0.5, "top_logprobs": []}]}
    choice: JsonObject = {"message": {"content": "Hi"}, "finish_reason": "stop", "logprobs": logprobs}
    assert decoded({"choices": [choice]}).choices[0].logprobs == logprobs


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        pytest.param(USAGE, USED, id="row 63 openai"),
        pytest.param(
            {"prompt_tokens": 3, "prompt_cache_hit_tokens": 2}, Usage(3, cached_tokens=2), id="row 63 deepseek"
        ),
        pytest.param(
            {"prompt_tokens": 3, "cost": 0.5, "prompt_tokens_details": None}, Usage(3, cost=0.5), id="row 63 openrouter"
        ),
        pytest.param(
            {"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 100},
            Usage(60, 40, reasoning_tokens=28),
            id="gemini counts thinking in the total",
        ),
        pytest.param(
            {
                "prompt_tokens": 60,
                "completion_tokens": 12,
                "total_tokens": 100,
                "completion_tokens_details": {"reasoning_tokens": 28},
            },
            Usage(60, 40, reasoning_tokens=28),
            id="xai counts reasoning beside the completion",
        ),
        pytest.param(
            {"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 10**12},
            Usage(60, 12),
            id="a total that no request can have",
        ),
        pytest.param(None, Usage(), id="row 63 none"),
    ],
)
def test_decode_reads_usage(usage: JsonValue, read: Usage) -> None:
    assert decoded({**answer({"content": "Hi"}), "usage": usage}).usage == read


def test_decode_reads_usage_in_x_groq() -> None:
    wire = answer({"content": "Hi"}, x_groq={"usage": {"prompt_tokens": 3}})
    del wire["usage"]
    assert decoded(wire, target(GROQ)).usage == Usage(3)


def test_response_has_the_warnings_of_encode() -> None:
    to = target(stop=False)
    sent = encoded(Request((ASKED,), options={"stop": "x"}), to)
    assert features(openai_chat.decode(answer({"content": "Hi"}), sent, to).warnings) == ["stop"]
