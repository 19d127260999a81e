"""Converse: requests and their bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.bedrock_converse import CLAUDE, ConverseProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.bedrock_converse.wire import (
    ASKED,
    CALL,
    CLAUDE_4,
    CLAUDE_5,
    GPT,
    OTHER,
    SCHEMA,
    STRICT,
    TOOL,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_OTHER,
    WIRE_TOOL,
    encoded,
    target,
)
from tests.lm.codecs.encoding import features

PNG = ImagePart(data="iVBO", media_type="image/png")
THOUGHT = ThinkingPart("hm", signature="AAEC", provider="bedrock")
NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}

CONVERSATIONS: dict[str, tuple[tuple[Message, ...], JsonObject]] = {
    "system and user": (
        (Message.system("s"), ASKED),
        {"system": [{"text": "s"}], "messages": [WIRE_ASKED]},
    ),
    "neighbours of one role": (
        (ASKED, Message.user("r")),
        {"messages": [{"role": "user", "content": [{"text": "q"}, {"text": "r"}]}]},
    ),
    "an image and a document": (
        (Message("user", (PNG, FilePart(data="JVBE", filename="my_report v2.pdf"), TextPart("q"))),),
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"image": {"format": "png", "source": {"bytes": "iVBO"}}},
                        {"document": {"format": "pdf", "name": "my report v2 pdf", "source": {"bytes": "JVBE"}}},
                        {"text": "q"},
                    ],
                }
            ]
        },
    ),
    "objects in S3": (
        (Message("user", (ImagePart(url="s3://bucket/a.jpeg"), FilePart(url="s3://b/a.csv", media_type="text/csv"))),),
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a.jpeg"}}}},
                        {
                            "document": {
                                "format": "csv",
                                "name": "document",
                                "source": {"s3Location": {"uri": "s3://b/a.csv"}},
                            }
                        },
                        {"text": "See the attached document."},
                    ],
                }
            ]
        },
    ),
    "a call, its result and a question": (
        (
            ASKED,
            Message.assistant("t", [CALL]),
            Message.tool(ToolResult("tooluse_1", "f", {"y": 2})),
            Message.user("r"),
        ),
        {
            "messages": [
                WIRE_ASKED,
                {"role": "assistant", "content": [{"text": "t"}, WIRE_CALL]},
                {
                    "role": "user",
                    "content": [
                        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": '{"y":2}'}]}},
                        {"text": "r"},
                    ],
                },
            ],
            "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": NO_PARAMETERS}}}]},
        },
    ),
    "an opaque item": (
        (ASKED, Message("assistant", (OpaquePart("bedrock", {"citationsContent": {}}), TextPart("a"))), ASKED),
        {
            "messages": [
                WIRE_ASKED,
                {"role": "assistant", "content": [{"citationsContent": {}}, {"text": "a"}]},
                WIRE_ASKED,
            ]
        },
    ),
    "blank texts and an assistant first": (
        (Message.assistant("a"), Message.user("  "), ASKED),
        {
            "messages": [
                {"role": "user", "content": [{"text": "Continue."}]},
                {"role": "assistant", "content": [{"text": "a"}]},
                WIRE_ASKED,
            ]
        },
    ),
}


@pytest.mark.parametrize(("messages", "body"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_conversation_is_encoded(messages: tuple[Message, ...], body: JsonObject) -> None:
    assert encoded(Request(messages)).body == body


@pytest.mark.parametrize(("to", "is_sent"), [(CLAUDE_4, True), (target(), False)], ids=["Claude", "another model"])
def test_signed_thinking_is_sent_back_to_claude_only(to: Target[ConverseProfile], is_sent: bool) -> None:
    redacted = ThinkingPart(redacted="AAEC", provider="bedrock")
    sent = encoded(Request((ASKED, Message("assistant", (THOUGHT, redacted, TextPart("a"))), ASKED)), to)
    blocks: Any = sent.body["messages"]
    thoughts = [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "AAEC"}}},
        {"reasoningContent": {"redactedContent": "AAEC"}},
    ]
    assert blocks[1]["content"] == [*(thoughts if is_sent else []), {"text": "a"}]
    assert features(sent.warnings) == ([] if is_sent else ["thinking"])


@pytest.mark.parametrize(
    ("to", "result"),
    [
        (target(CLAUDE), {"toolUseId": "tooluse_1", "content": [{"text": "boom"}], "status": "error"}),
        (target(), {"toolUseId": "tooluse_1", "content": [{"text": "ERROR: boom"}]}),
    ],
    ids=["Claude", "another model"],
)
def test_failed_result_has_a_status_or_a_text(to: Target[ConverseProfile], result: JsonObject) -> None:
    failed = Message.tool(ToolResult("tooluse_1", "f", "boom", is_error=True))
    sent: Any = encoded(Request((ASKED, Message.assistant("", [CALL]), failed), (TOOL,)), to).body["messages"]
    assert sent[2]["content"] == [{"toolResult": result}]


def test_result_with_an_image_has_both_blocks() -> None:
    result = Message.tool(ToolResult("tooluse_1", "f", "seen", media=(PNG,)))
    sent: Any = encoded(Request((ASKED, Message.assistant("", [CALL]), result), (TOOL,))).body["messages"]
    image = {"image": {"format": "png", "source": {"bytes": "iVBO"}}}
    assert sent[2]["content"][0]["toolResult"]["content"] == [{"text": "seen"}, image]


OFFERS: dict[str, tuple[Request, Target[ConverseProfile], JsonObject, list[str]]] = {
    "two tools": (Request((ASKED,), (TOOL, OTHER)), target(), {"tools": [WIRE_TOOL, WIRE_OTHER]}, []),
    "auto": (Request((ASKED,), (TOOL,), ToolChoice.AUTO), target(), {"tools": [WIRE_TOOL]}, []),
    "required": (
        Request((ASKED,), (TOOL,), ToolChoice.REQUIRED),
        target(),
        {"tools": [WIRE_TOOL], "toolChoice": {"any": {}}},
        [],
    ),
    "named": (
        Request((ASKED,), (TOOL, OTHER), ToolChoice.named("g.h")),
        target(),
        {"tools": [WIRE_TOOL, WIRE_OTHER], "toolChoice": {"tool": {"name": "g_h"}}},
        [],
    ),
    "allowed": (Request((ASKED,), (TOOL, OTHER), ToolChoice("auto", ("f",))), target(), {"tools": [WIRE_TOOL]}, []),
    "required of a model that cannot": (
        Request((ASKED,), (TOOL,), ToolChoice.REQUIRED),
        GPT,
        {"tools": [WIRE_TOOL]},
        ["tool_choice"],
    ),
    "required of a model that thinks": (
        Request((ASKED,), (TOOL,), ToolChoice.REQUIRED, options={"reasoning": "low"}),
        CLAUDE_4,
        {"tools": [WIRE_TOOL]},
        ["tool_choice"],
    ),
    "none with a call in history": (
        Request(
            (ASKED, Message.assistant("", [CALL]), Message.tool(ToolResult("tooluse_1", "f", "1"))),
            (TOOL,),
            ToolChoice.NONE,
        ),
        target(),
        {"tools": [WIRE_TOOL]},
        ["tool_choice"],
    ),
}


@pytest.mark.parametrize(("request_", "to", "config", "warned"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choice_are_encoded(
    request_: Request, to: Target[ConverseProfile], config: JsonObject, warned: list[str]
) -> None:
    sent = encoded(request_, to)
    assert (sent.body["toolConfig"], features(sent.warnings)) == (config, warned)


def test_choice_none_removes_the_tools() -> None:
    assert "toolConfig" not in encoded(Request((ASKED,), (TOOL,), ToolChoice.NONE)).body


FIELDS: dict[str, tuple[Target[ConverseProfile], JsonObject, JsonObject, list[str]]] = {
    "limits and sampling": (
        target(),
        {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": "x", "top_k": 3},
        {
            "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"]},
            "additionalModelRequestFields": {"top_k": 3},
        },
        [],
    ),
    "service tier and metadata": (
        target(),
        {"service_tier": "flex", "metadata": {"team": "a"}},
        {"serviceTier": {"type": "flex"}, "requestMetadata": {"team": "a"}},
        [],
    ),
    "seed and user": (target(), {"seed": 1, "user": "u"}, {}, ["seed", "user"]),
    "sampling of a model without": (CLAUDE_5, {"temperature": 0.5}, {}, ["temperature"]),
    "thinking budget": (
        CLAUDE_4,
        {"reasoning": {"budget": 2000}, "temperature": 0.5, "top_k": 5},
        {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}},
        ["temperature", "top_k"],
    ),
    "thinking budget over the limit": (
        CLAUDE_4,
        {"reasoning": {"budget": 4000}, "max_tokens": 4000},
        {
            "inferenceConfig": {"maxTokens": 4000},
            "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        },
        ["reasoning"],
    ),
    "no room to think": (
        CLAUDE_4,
        {"reasoning": "high", "max_tokens": 100},
        {
            "inferenceConfig": {"maxTokens": 100},
            "additionalModelRequestFields": {"thinking": {"type": "disabled"}},
        },
        ["reasoning"],
    ),
    "effort": (
        CLAUDE_5,
        {"reasoning": "medium"},
        {
            "additionalModelRequestFields": {"thinking": {"type": "adaptive", "display": "summarized"}},
            "outputConfig": {"effort": "medium"},
        },
        [],
    ),
    "off": (CLAUDE_5, {"reasoning": "off"}, {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}, []),
    "effort of another vendor": (
        GPT,
        {"reasoning": "high", "top_k": 2},
        {"additionalModelRequestFields": {"top_k": 2, "reasoning_effort": "high"}},
        [],
    ),
    "off for a model that never reasons": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "stop of a model without": (target(stop=False), {"stop": ["x"]}, {}, ["stop"]),
    "guardrail": (
        target(),
        {"extra_body": {"guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}}},
        {"guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}},
        [],
    ),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options_are_placed(
    to: Target[ConverseProfile], options: JsonObject, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == {"messages": [WIRE_ASKED], **fields}
    assert features(sent.warnings) == warned


@pytest.mark.parametrize(
    ("request_", "feature"),
    [
        (Request((Message("user", (AudioPart("AAAA"),)),)), "audio"),
        (Request((Message("user", (ImagePart(url="https://a.example/b.png"),)),)), "image input by URL"),
        (Request((Message("user", (ImagePart(data="AAAA", media_type="image/tiff"),)),)), "image/tiff"),
        (Request((Message("user", (FilePart(file_id="f"),)),)), "file input by URL"),
        (Request((Message("user", (FilePart(data="AAAA", media_type="application/zip"),)),)), "application/zip"),
        (Request((ASKED,), ({"type": "web_search"},)), "built-in tools"),
        (Request((ASKED,), response_format=ResponseFormat(SCHEMA, required=True)), "structured output"),
        (Request((ASKED,), options={"reasoning": "high"}), "reasoning effort"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_feature_without_a_place_is_refused(request_: Request, feature: str) -> None:
    with pytest.raises(UnsupportedFeature, match=feature):
        encoded(request_, target(thinking="none"))


def test_option_without_a_place_is_refused() -> None:
    with pytest.raises(UnsupportedOption, match="logprobs"):
        encoded(Request((ASKED,), options={"logprobs": True}))


def test_schema_is_enforced_beside_an_effort() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA, name="n"), options={"reasoning": "low"})
    sent: Any = encoded(request, STRICT).body
    closed = {**SCHEMA, "additionalProperties": False}
    text_format = sent["outputConfig"]["textFormat"]
    assert json.loads(text_format["structure"]["jsonSchema"].pop("schema")) == closed
    assert sent["outputConfig"] == {
        "effort": "low",
        "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"name": "n"}}},
    }


def test_schema_becomes_an_instruction_in_the_system_text() -> None:
    sent = encoded(Request((Message.system("s"), ASKED), response_format=ResponseFormat(SCHEMA)))
    system: Any = sent.body["system"]
    assert (len(system), "JSON Schema" in system[1]["text"], features(sent.warnings)) == (2, True, ["response_format"])


def test_invalid_arguments_and_foreign_ids_are_sent_in_the_wires_form() -> None:
    broken = ToolCall.read("call|1/2", "g.h", '{"x": ')
    history = (ASKED, Message.assistant("", [broken]), Message.tool(ToolResult("call|1/2", "g.h", "no")))
    sent: Any = encoded(Request(history, (OTHER,))).body["messages"]
    use = {"toolUseId": "call_1_2", "name": "g_h", "input": {"invalid_arguments": '{"x": '}}
    assert sent[1]["content"] == [{"toolUse": use}]
    assert sent[2]["content"][0]["toolResult"]["toolUseId"] == "call_1_2"
