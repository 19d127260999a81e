"""The encoding version of each codec: a changed encoding needs a new one.

Keys of stored answers have the version. Without a new one, a repaired encoder would get the answers of the broken one. If
this test fails, raise ``ENCODING_VERSION`` of the codec and write the new row into ``encodings.json`` beside this file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import CallerError
from sigwire.lm.codecs.shared.interface import Codec, Target
from sigwire.lm.litellm import codec as litellm_codec
from sigwire.lm.providers.registry import find_provider

KNOWN = Path(__file__).with_name("encodings.json")
MODELS = {
    "anthropic": ("anthropic/claude-sonnet-4-5", "anthropic/claude-opus-5"),
    "bedrock_converse": (
        "bedrock/amazon.nova-lite-v1:0",
        "bedrock/us.anthropic.claude-sonnet-4-5-v1:0",
        "bedrock/anthropic.claude-opus-5",
    ),
    "gemini": ("gemini/gemini-2.5-flash", "gemini/gemini-3-flash", "vertex/gemini-2.5-flash"),
    "ollama": ("ollama/qwen3", "ollama-cloud/gpt-oss:120b"),
    "openai_chat": ("openai/gpt-4.1", "groq/llama-3.3-70b", "mistral/large", "deepseek/deepseek-chat", "openrouter/x"),
    "openai_responses": ("openai/gpt-5.5", "azure/gpt-5.5"),
    "decisions": ("openai/gpt-6-luna", "system-one/jev", "typesafe/jev-latest", "gemini/decisions-1"),
}

SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}, "required": ["x"]}
TOOLS = tuple(
    {"type": "function", "function": {"name": f"f.{n}", "description": "d", "parameters": SCHEMA}} for n in "ab"
)
ASK = Message.user("What is it?")
CALL = ToolCall("call_0", "f.a", {"x": 1.0, "y": "é"})
REQUESTS = (
    Request((Message.system("Be brief."), ASK)),
    Request((ASK,), options={"temperature": 0.5, "top_p": 0.5, "max_tokens": 9, "stop": ["."], "seed": 1, "n": 1}),
    Request((ASK,), options={"reasoning": "high", "max_tokens": 9000}),
    Request((ASK,), options={"reasoning": "off", "prompt_cache": {"ttl": "1h"}}, repeated=(1,)),
    Request((ASK,), options={"extra_body": {"a": 1}}, response_format=ResponseFormat(SCHEMA)),
    Request((ASK,), response_format=ResponseFormat()),
    Request((ASK,), TOOLS, ToolChoice.REQUIRED, parallel_tool_calls=False),
    Request((ASK,), TOOLS, ToolChoice.named("f.b")),
    Request((ASK, Message.assistant("So:", [CALL]), Message.tool(ToolResult("call_0", "f.a", {"r": 1}, is_error=True))), TOOLS),
    Request((ASK, Message("assistant", (ThinkingPart("hm", "sig", provider="anthropic"), TextPart("4"))), ASK)),
    Request((Message("user", (TextPart("see"), ImagePart(data="aGk=", media_type="image/png"))),)),
)  # fmt: skip


LEVELS: JsonObject = {"x-levels": [{"label": "none"}, {"label": "severe", "description": "someone is hurt"}]}
QUESTIONS: JsonObject = {
    "urgent": {"type": "boolean", "description": "Now?"},
    "down": {"type": "boolean", "x-criteria": {"true": "no page loads"}},
    "kind": {"enum": ["a", 1, None], "x-criteria": {"a": "first"}},
    "tags": {"type": "array", "items": {"enum": ["x", "y"]}},
    "inner": {
        "type": "object",
        "properties": {"harm": {"type": "number", **LEVELS}, "level": {"type": "integer", **LEVELS}},
    },
}
DECISIONS = tuple(
    replace(request, response_format=ResponseFormat({"type": "object", "properties": QUESTIONS}))
    for request in (REQUESTS[0], *REQUESTS[4:5], *(replace(each, tools=()) for each in REQUESTS[8:]))
)


def digest(codec: Codec[Any], models: tuple[str, ...]) -> str:
    """The SHA-256 of what a codec makes of the requests, refusals included."""
    made: list[object] = []
    for model in models:
        row, name = find_provider(model)
        for wire in row.wires.values():
            if wire.load()[0] is codec:
                profile = wire.load()[1]
                able = wire.capabilities or row.capabilities_of(name)
                target = Target(row.prefix, name, profile, able, row.facts_of(name))
                requests = DECISIONS if wire.codec == "decisions" else REQUESTS
                made += [encoding(codec, request, target) for request in requests]
    assert made
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()


def encoding(codec: Codec[Any], request: Request, target: Target[Any]) -> object:
    try:
        sent = codec.encode(request, target)
    except CallerError as error:
        return type(error).__name__
    return [sent.path, sent.body, sent.query, sorted(sent.headers.items()), sent.repeat, sent.stop]


def row(name: str) -> list[object]:
    codec: Any = find_provider(MODELS[name][0])[0].wires
    codec = next(wire.load()[0] for wire in codec.values() if wire.codec == name)
    return [codec.ENCODING_VERSION, digest(codec, MODELS[name])]


def litellm_row() -> list[object]:
    target = litellm_codec.target_for("bedrock/anthropic.claude-sonnet-4-5", None)
    made: list[object] = []
    for request in REQUESTS:
        try:
            made.append(litellm_codec.encode_call(request, target)[0])
        except CallerError as error:
            made.append(type(error).__name__)
    return [litellm_codec.ENCODING_VERSION, hashlib.sha256(json.dumps(made).encode()).hexdigest()]


@pytest.mark.parametrize("name", [*MODELS, "litellm"])
def test_changed_encoding_has_a_new_version(name: str) -> None:
    known = json.loads(KNOWN.read_text(encoding="utf-8"))
    assert known[name] == (litellm_row() if name == "litellm" else row(name))


def test_codec_without_a_version_stores_nothing() -> None:
    from sigwire.lm.client import LM
    from sigwire.lm.codecs import openai_chat
    from sigwire.lm.providers.registry import register
    from sigwire.lm.providers.row import Provider, Wire

    class Own:
        encode, decode, decode_error = openai_chat.encode, openai_chat.decode, openai_chat.decode_error

    plain = find_provider("groq/m")[0].wires["chat"]
    register(Provider(prefix="own", base_url="https://x/v1", wires={"w": replace(plain, codec=Own())}))  # type: ignore[arg-type]
    register(Provider(prefix="same", base_url="https://x/v1", wires={"w": Wire()}))
    assert LM("own/m")._backend.identity(REQUESTS[0]) is None  # type: ignore[attr-defined]
    assert LM("same/m")._backend.identity(REQUESTS[0])  # type: ignore[attr-defined]
