"""Chat completions, row by row: values and their encodings, for the tests of this wire.

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
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import OPENAI, ChatProfile
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, ModelFacts, Target
from tests.lm.codecs.encoding import encoded_untouched

CODEC: Codec[ChatProfile] = openai_chat
ABLE = Capabilities(
    native_tools=True, tool_choice=True, json_schema=True, json_object=True, tools_with_json_schema=True, images=True
)
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g", "description": "e", "parameters": SCHEMA}}
CALL = ToolCall.read("c1", "f", '{"x":1}')
SECOND = ToolCall.read("c2", "f", '{"x":2}')
WIRE_CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
WIRE_SECOND: JsonObject = {"id": "c2", "type": "function", "function": {"name": "f", "arguments": '{"x":2}'}}
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "content": "q"}
ASSISTANT: JsonObject = {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL]}


def target(profile: ChatProfile = OPENAI, *, able: Capabilities = ABLE, **facts: Any) -> Target[ChatProfile]:
    return Target(profile.family, "m", profile, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[ChatProfile] | None = None, *, stream: bool = False) -> EncodedRequest:
    return encoded_untouched(openai_chat, request, to or target(), stream=stream)


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "messages": list(messages), **fields}


DETAILS: JsonObject = {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "S"}]}

USAGE: JsonObject = {
    "prompt_tokens": 10,
    "completion_tokens": 7,
    "total_tokens": 17,
    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 2},
}


def answer(message: JsonObject, finish_reason: JsonValue = "stop", **fields: JsonValue) -> JsonObject:
    choice: JsonObject = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {"id": "r1", "model": "m-1", "choices": [choice], "usage": USAGE, **fields}


def decoded(wire: JsonValue, to: Target[ChatProfile] | None = None, *history: Message) -> Response:
    before = copy.deepcopy(wire)
    response = openai_chat.decode(wire, encoded(Request((ASKED, *history)), to), to or target())
    assert wire == before
    return response
