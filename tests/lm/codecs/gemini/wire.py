"""Gemini, row by row: what the tests of this wire share, values beside how they are written.

A test id names its row of the checklist of the wire: its number and the behaviour.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.codecs import gemini
from sigwire.lm.codecs.gemini import GEMINI, GeminiProfile
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, ModelFacts, Target
from tests.lm.codecs.encoding import encoded_untouched

CODEC: Codec[GeminiProfile] = gemini
ABLE = Capabilities(
    native_tools=True, tool_choice=True, json_schema=True, json_object=True, tools_with_json_schema=True, images=True
)
OLD: dict[str, Any] = {"thinking": "budget", "media_in_results": False, "builtin_with_functions": False}
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g", "description": "e", "parameters": SCHEMA}}
SEARCH: JsonObject = {"type": "web_search", "web_search": {}}
F: JsonObject = {"name": "f", "description": "d", "parametersJsonSchema": SCHEMA}
G: JsonObject = {"name": "g", "description": "e", "parametersJsonSchema": SCHEMA}
CALL = ToolCall("c1", "f", {"x": 1})
SECOND = ToolCall("c2", "f", {"x": 2})
SIGNED = replace(CALL, provider_data={"gemini": {"thoughtSignature": "AAEC"}})
WIRE_CALL: JsonObject = {"functionCall": {"id": "c1", "name": "f", "args": {"x": 1}}}
WIRE_SECOND: JsonObject = {"functionCall": {"id": "c2", "name": "f", "args": {"x": 2}}}
WIRE_SIGNED: JsonObject = {**WIRE_CALL, "thoughtSignature": "AAEC"}
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "parts": [{"text": "q"}]}


def target(
    dialect: GeminiProfile = GEMINI, *, able: Capabilities = ABLE, model: str = "m", **facts: Any
) -> Target[GeminiProfile]:
    return Target(dialect.family, model, dialect, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[GeminiProfile] | None = None, *, stream: bool = False) -> EncodedRequest:
    return encoded_untouched(gemini, request, to or target(), stream=stream)


def body(*contents: JsonObject, **fields: Any) -> JsonObject:
    return {"contents": list(contents), **fields}


def user(*parts: JsonObject) -> JsonObject:
    return {"role": "user", "parts": list(parts)}


def model(*parts: JsonObject) -> JsonObject:
    return {"role": "model", "parts": list(parts)}


def result(call_id: str, response: JsonObject, **fields: JsonValue) -> JsonObject:
    return {"functionResponse": {"id": call_id, "name": "f", "response": response, **fields}}


PNG = ImagePart(data="iVBO", media_type="image/png")
WIRE_PNG: JsonObject = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}

DECLARED: JsonObject = {"tools": [{"functionDeclarations": [F]}]}


def calling(**config: Any) -> JsonObject:
    return {"functionCallingConfig": config}


def thinking(**config: Any) -> JsonObject:
    return {"generationConfig": {"thinkingConfig": config}}


def config(**fields: Any) -> JsonObject:
    return {"generationConfig": fields}


USAGE: JsonObject = {
    "promptTokenCount": 10,
    "cachedContentTokenCount": 4,
    "toolUsePromptTokenCount": 3,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 2,
    "totalTokenCount": 20,
}


def answer(*parts: JsonObject, reason: JsonValue = "STOP", **fields: JsonValue) -> JsonObject:
    candidate: JsonObject = {"content": model(*parts), "finishReason": reason, "index": 0, **fields}
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "m-1", "responseId": "r1"}


def decoded(wire: JsonValue, to: Target[GeminiProfile] | None = None, *history: Message) -> Response:
    before = copy.deepcopy(wire)
    response = gemini.decode(wire, encoded(Request((ASKED, *history)), to), to or target())
    assert wire == before
    return response
