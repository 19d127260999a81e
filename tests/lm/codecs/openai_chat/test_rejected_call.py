"""A call that the host rejected has the host's complaint, if the error names the tool."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.tools.calls import CallError, ToolCall
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import GROQ
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target

TARGET = Target("groq", "m", GROQ)
COMPLAINT = "parameters for tool f did not match schema"


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object"}}}


SENT: EncodedRequest = openai_chat.encode(Request((Message.user("q"),), (tool("maps.find"), tool("g"))), TARGET)


def refusal(generation: Any, code: str = "tool_use_failed") -> bytes:
    return json.dumps({"error": {"message": COMPLAINT, "code": code, "failed_generation": generation}}).encode()


def mismatch(code: Any = "schema_mismatch") -> CallError:
    return CallError(code, COMPLAINT)


RECOVERED: dict[str, tuple[str, tuple[ToolCall, ...]]] = {
    "one call": ('{"name": "g", "arguments": {"x": 1}}', (ToolCall("call_0", "g", {"x": 1}, None, mismatch()),)),
    "in Llama's words": ('{"name": "g", "parameters": {}}', (ToolCall("call_0", "g", {}, None, mismatch()),)),
    "no arguments": ('{"name": "g"}', (ToolCall("call_0", "g", {}, None, mismatch()),)),
    "arguments as text": (
        '{"name": "g", "arguments": "{\\"x\\""}',
        (ToolCall("call_0", "g", None, '{"x"', mismatch("malformed_json")),),
    ),
    "several": (
        '[{"name": "g", "arguments": {}}, {"name": "h", "arguments": {}}]',
        (ToolCall("call_0", "g", {}, None, mismatch()), ToolCall("call_1", "h", {}, None, mismatch())),
    ),
    "a mapped name": (
        '{"name": "maps_find", "arguments": {}}',
        (ToolCall("call_0", "maps.find", {}, None, mismatch()),),
    ),
    "text that names one tool": (
        '<function=maps_find>{"x": 1',
        (ToolCall("call_0", "maps.find", None, '<function=maps_find>{"x": 1', mismatch("malformed_json")),),
    ),
}


@pytest.mark.parametrize(("generation", "calls"), RECOVERED.values(), ids=RECOVERED)
def test_rejected_call_has_the_complaint(generation: str, calls: tuple[ToolCall, ...]) -> None:
    response = openai_chat.recover(400, {}, refusal(generation), SENT, TARGET)
    assert response is not None
    assert response.choices[0].tool_calls == calls
    assert response.choices[0].finish_reason == "tool_calls"
    assert [warning.feature for warning in response.warnings] == ["tool_calls"]
    assert COMPLAINT in response.warnings[0].detail


@pytest.mark.parametrize(
    "body",
    [
        refusal("I would rather not."),
        refusal("maps_find or g"),
        refusal("going for g-force"),
        refusal(""),
        refusal(None),
        refusal('{"name": ""}'),
        refusal('{"name": "g"}', "invalid_request_error"),
        b"",
        b"<html></html>",
        b"[]",
    ],
)
def test_error_without_a_call_is_not_recovered(body: bytes) -> None:
    assert openai_chat.recover(400, {}, body, SENT, TARGET) is None


def test_rejected_call_and_its_complaint_can_be_sent_again() -> None:
    response = openai_chat.recover(400, {}, refusal('{"name": "g", "arguments": {"x": 1}}'), SENT, TARGET)
    assert response is not None
    sent = openai_chat.encode(Request((Message.user("q"), response.choices[0].message())), TARGET)
    assert sent.body["messages"] == [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_0", "type": "function", "function": {"name": "g", "arguments": '{"x":1}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": "ERROR: tool was not executed"},
    ]


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda of: st.dictionaries(st.text(), of)))
def test_any_generation_gives_calls_or_none(generation: Any) -> None:
    response = openai_chat.recover(400, {}, refusal(generation), SENT, TARGET)
    assert response is None or all(call.error is not None for call in response.choices[0].tool_calls)
