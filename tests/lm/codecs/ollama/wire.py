"""Ollama, row by row: values and their encodings, for the tests of this wire.

A test id names its row of the checklist of the wire: its number and the behaviour.
"""

from __future__ import annotations

import copy
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.codecs import ollama
from sigwire.lm.codecs.ollama import OLLAMA, OllamaProfile
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, ModelFacts, Target
from tests.lm.codecs.encoding import encoded_untouched

CODEC: Codec[OllamaProfile] = ollama
ABLE = Capabilities(native_tools=True, json_schema=True, json_object=True, images=True)
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g", "description": "e", "parameters": SCHEMA}}
THIRD: JsonObject = {"type": "function", "function": {"name": "h", "description": "i", "parameters": SCHEMA}}
CALL = ToolCall("call_ab12cd34", "f", {"x": 1})
SECOND = ToolCall("call_ef56gh78", "f", {"x": 2})
WIRE_CALL: JsonObject = {"id": "call_ab12cd34", "function": {"name": "f", "arguments": {"x": 1}}}
WIRE_SECOND: JsonObject = {"id": "call_ef56gh78", "function": {"name": "f", "arguments": {"x": 2}}}
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "content": "q"}
ASSISTANT: JsonObject = {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL]}


def target(profile: OllamaProfile = OLLAMA, *, able: Capabilities = ABLE, **facts: Any) -> Target[OllamaProfile]:
    return Target("ollama", "m", profile, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[OllamaProfile] | None = None, *, stream: bool = False) -> EncodedRequest:
    return encoded_untouched(ollama, request, to or target(), stream=stream)


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "messages": list(messages), "stream": False, "truncate": False, "shift": False, **fields}


def answered(name: str, content: str, call_id: str = "call_ab12cd34") -> JsonObject:
    return {"role": "tool", "tool_name": name, "tool_call_id": call_id, "content": content}


PNG = ImagePart(data="iVBO")


def answer(message: JsonObject, done_reason: JsonValue = "stop", **fields: JsonValue) -> JsonObject:
    return {
        "model": "m-1",
        "created_at": "2026-11-20T00:00:00Z",
        "message": {"role": "assistant", "content": "", **message},
        "done": True,
        "done_reason": done_reason,
        "total_duration": 9,
        "prompt_eval_count": 10,
        "eval_count": 7,
        **fields,
    }


def decoded(wire: JsonValue, *history: Message) -> Response:
    before = copy.deepcopy(wire)
    response = ollama.decode(wire, encoded(Request((ASKED, *history))), target())
    assert wire == before
    return response
