"""Converse: values and their encodings, for the tests of this wire."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.codecs import bedrock_converse
from sigwire.lm.codecs.bedrock_converse import CLAUDE, CONVERSE, ConverseProfile
from sigwire.lm.codecs.shared.interface import EncodedRequest, ModelFacts, StreamingCodec, Target
from tests.lm.codecs.encoding import encoded_untouched

CODEC: StreamingCodec[ConverseProfile] = bedrock_converse
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g.h", "parameters": SCHEMA, "strict": True}}
WIRE_TOOL: JsonObject = {"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": SCHEMA}}}
WIRE_OTHER: JsonObject = {"toolSpec": {"name": "g_h", "inputSchema": {"json": SCHEMA}, "strict": True}}
CALL = ToolCall("tooluse_1", "f", {"x": 1})
WIRE_CALL: JsonObject = {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {"x": 1}}}
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "content": [{"text": "q"}]}
ABLE = Capabilities(native_tools=True, tool_choice=True, images=True, files=True, reasoning=True)


def target(profile: ConverseProfile = CONVERSE, **facts: Any) -> Target[ConverseProfile]:
    return Target("bedrock", "m", profile, ABLE, ModelFacts(**facts))


CLAUDE_4 = target(CLAUDE, thinking="budget", sampling="unless_reasoning", forced_choice_with_reasoning=False)
STRICT = replace(
    target(CLAUDE, efforts=("off", "low", "medium", "high")),
    capabilities=replace(ABLE, json_schema=True, tools_with_json_schema=True),
)
CLAUDE_5 = target(CLAUDE, efforts=("off", "low", "medium", "high"), sampling="never")
GPT = target(efforts=("low", "medium", "high"), forced_choice=False)


def encoded(request: Request, to: Target[ConverseProfile] | None = None, *, stream: bool = False) -> EncodedRequest:
    return encoded_untouched(bedrock_converse, request, to or target(), stream=stream)


def answer(*content: JsonValue, stop: str = "end_turn", **fields: JsonValue) -> JsonObject:
    return {
        "output": {"message": {"role": "assistant", "content": [*content]}},
        "stopReason": stop,
        "usage": {"inputTokens": 10, "outputTokens": 7, "totalTokens": 17},
        "metrics": {"latencyMs": 9},
        **fields,
    }


def decoded(wire: JsonValue, *history: Message, to: Target[ConverseProfile] | None = None) -> Response:
    before = copy.deepcopy(wire)
    response = bedrock_converse.decode(wire, encoded(Request((ASKED, *history))), to or target())
    assert wire == before
    return response
