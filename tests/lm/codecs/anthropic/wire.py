"""Anthropic Messages, row by row: what the tests of this wire share, values beside how they are written.

A test id names its row of the checklist of the wire: its number and the behaviour.
"""

from __future__ import annotations

import copy
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import ANTHROPIC, MessagesProfile
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, ModelFacts, Target
from tests.lm.codecs.encoding import encoded_untouched, features

CODEC: Codec[MessagesProfile] = anthropic
ABLE = Capabilities(
    native_tools=True, tool_choice=True, json_schema=True, tools_with_json_schema=True, images=True, files=True
)
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
CLOSED: JsonObject = {**SCHEMA, "additionalProperties": False}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g", "description": "e", "parameters": SCHEMA}}
THIRD: JsonObject = {"type": "function", "function": {"name": "h", "description": "i", "parameters": SCHEMA}}
WIRE_TOOL: JsonObject = {"name": "f", "description": "d", "input_schema": SCHEMA}
WIRE_OTHER: JsonObject = {"name": "g", "description": "e", "input_schema": SCHEMA}
WIRE_THIRD: JsonObject = {"name": "h", "description": "i", "input_schema": SCHEMA}
CALL = ToolCall("toolu_1", "f", {"x": 1})
SECOND = ToolCall("toolu_2", "f", {"x": 2})
WIRE_CALL: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
WIRE_SECOND: JsonObject = {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {"x": 2}}
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "content": "q"}
OK = Message.tool(ToolResult("toolu_1", "f", "ok"))
WIRE_OK: JsonObject = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}


def target(dialect: MessagesProfile = ANTHROPIC, *, able: Capabilities = ABLE, **facts: Any) -> Target[MessagesProfile]:
    return Target(dialect.family, "m", dialect, able, ModelFacts(**facts))


BY_BUDGET = target(thinking="budget")


def encoded(request: Request, to: Target[MessagesProfile] | None = None, *, stream: bool = False) -> EncodedRequest:
    return encoded_untouched(anthropic, request, to or target(), stream=stream)


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "max_tokens": 4096, "messages": list(messages), **fields}


def assistant(*blocks: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: JsonObject) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def wire_messages(*messages: Message, to: Target[MessagesProfile] | None = None) -> tuple[Any, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["messages"], features(sent.warnings)


THOUGHT = ThinkingPart("hm", signature="SIG", provider="anthropic")
WIRE_THOUGHT: JsonObject = {"type": "thinking", "thinking": "hm", "signature": "SIG"}
REDACTED = ThinkingPart(redacted="RED", provider="anthropic")
WIRE_REDACTED: JsonObject = {"type": "redacted_thinking", "data": "RED"}
SEARCHED: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: JsonObject = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://x", "title": "X", "encrypted_content": "ENC"}],
}
CITATION: JsonObject = {
    "type": "web_search_result_location",
    "url": "https://x",
    "title": "X",
    "cited_text": "said",
    "encrypted_index": "IDX",
}

SEARCH = Tool.web_search().spec

ALWAYS_ON = target(efforts=("low", "medium", "high"), default_effort="high", forced_choice=False)

USAGE: JsonObject = {
    "input_tokens": 5,
    "cache_read_input_tokens": 4,
    "cache_creation_input_tokens": 1,
    "output_tokens": 7,
    "output_tokens_details": {"thinking_tokens": 2},
}


def answer(*blocks: JsonObject, stop_reason: JsonValue = "end_turn", **fields: JsonValue) -> JsonObject:
    wire: JsonObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": list(blocks)}
    return {**wire, "stop_reason": stop_reason, "stop_sequence": None, "usage": USAGE, **fields}


def decoded(wire: JsonValue, to: Target[MessagesProfile] | None = None, *history: Message) -> Response:
    before = copy.deepcopy(wire)
    response = anthropic.decode(wire, encoded(Request((ASKED, *history)), to), to or target())
    assert wire == before
    return response
