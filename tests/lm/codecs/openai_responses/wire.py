"""OpenAI Responses, row by row: values and their encodings, for the tests of this wire.

A test id names its row of the checklist of the wire: its number and the behaviour.
"""

from __future__ import annotations

import copy
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.lm.codecs import openai_responses
from sigwire.lm.codecs.openai_responses import OPENAI, ResponsesProfile
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, ModelFacts, Target
from tests.lm.codecs.encoding import encoded_untouched, features

CODEC: Codec[ResponsesProfile] = openai_responses
FAMILY = "openai-responses"
ABLE = Capabilities(
    native_tools=True, tool_choice=True, json_schema=True, json_object=True, tools_with_json_schema=True, images=True
)
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g", "description": "e", "parameters": SCHEMA}}
WIRE_TOOL: JsonObject = {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": False}
WIRE_OTHER: JsonObject = {"type": "function", "name": "g", "description": "e", "parameters": SCHEMA, "strict": False}
CALL = ToolCall.read("c1", "f", '{"x":1}')
SECOND = ToolCall.read("c2", "f", '{"x":2}')
WIRE_CALL: JsonObject = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"x":1}'}
WIRE_SECOND: JsonObject = {"type": "function_call", "call_id": "c2", "name": "f", "arguments": '{"x":2}'}
WIRE_OK: JsonObject = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
ANSWERED = Message.tool(ToolResult("c1", "f", "ok"))
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "content": "q"}
REASONING: JsonObject = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "ENC",
}
WIRE_TEXT: JsonObject = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
}
TRACE: JsonObject = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
ADDED: JsonObject = {"type": "additional_tools", "role": "developer", "tools": []}
SHELL: JsonObject = {**WIRE_TEXT, "content": [{"type": "output_text", "annotations": []}]}


def target(profile: ResponsesProfile = OPENAI, *, able: Capabilities = ABLE, **facts: Any) -> Target[ResponsesProfile]:
    return Target(profile.family, "m", profile, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[ResponsesProfile] | None = None, *, stream: bool = False) -> EncodedRequest:
    return encoded_untouched(openai_responses, request, to or target(), stream=stream)


def body(*items: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "input": list(items), "store": False, **fields}


def encoded_messages(*messages: Message, to: Target[ResponsesProfile] | None = None) -> tuple[JsonValue, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["input"], features(sent.warnings)


ITEM: JsonObject = {"id": "fc_1", "status": "completed"}
AFTER: JsonObject = {"item": ITEM, "after": "rs_1"}

SEARCH = Tool.web_search().spec

FILES: JsonObject = {"type": "file_search", "file_search": {"vector_store_ids": ["vs_1"]}}

USAGE: JsonObject = {
    "input_tokens": 10,
    "output_tokens": 7,
    "total_tokens": 17,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens_details": {"reasoning_tokens": 2},
}


def answer(*items: JsonObject, **fields: JsonValue) -> JsonObject:
    return {"id": "r1", "model": "m-1", "status": "completed", "output": list(items), "usage": USAGE, **fields}


def decoded(wire: JsonValue, request: Request | None = None, to: Target[ResponsesProfile] | None = None) -> Response:
    before = copy.deepcopy(wire)
    response = openai_responses.decode(wire, encoded(request or Request((ASKED,)), to), to or target())
    assert wire == before
    return response


def text_item(text: str, *annotations: JsonObject, **fields: JsonValue) -> JsonObject:
    return {**WIRE_TEXT, "content": [{"type": "output_text", "text": text, "annotations": list(annotations)}], **fields}


CITED: JsonObject = {"type": "url_citation", "url": "https://x", "title": "X", "start_index": 0, "end_index": 2}
REFUSAL: JsonObject = {"type": "refusal", "refusal": "No."}
