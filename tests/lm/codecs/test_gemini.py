"""Gemini's generateContent, row by row: whole requests and replies, of older and newer models and of both hosts.

A test id names its row of the wire's checklist: its number and the behaviour.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.capabilities import Capabilities
from sigwire.core.events import collect, explode
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools import Tool, ToolCall, ToolResult, WebSearch
from sigwire.errors import (
    CallerError,
    ContextWindowExceededError,
    InputError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnexpectedError,
    LMUnsupportedModelError,
    UnsupportedFeature,
    UnsupportedOption,
)
from sigwire.lm.codecs import gemini
from sigwire.lm.codecs.base import Codec, Encoded, ModelFacts, Target
from sigwire.lm.codecs.gemini import BUILTIN, FINISH_REASONS, GEMINI, UNSIGNED, VERTEX, GeminiDialect
from tests.lm.codecs.encoding import encoded_untouched, features, with_parts

CODEC: Codec[GeminiDialect] = gemini
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
    dialect: GeminiDialect = GEMINI, *, able: Capabilities = ABLE, model: str = "m", **facts: Any
) -> Target[GeminiDialect]:
    return Target(dialect.family, model, dialect, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[GeminiDialect] | None = None, *, stream: bool = False) -> Encoded:
    return encoded_untouched(gemini, request, to or target(), stream=stream)


def body(*contents: JsonObject, **fields: Any) -> JsonObject:
    return {"contents": list(contents), **fields}


def user(*parts: JsonObject) -> JsonObject:
    return {"role": "user", "parts": list(parts)}


def model(*parts: JsonObject) -> JsonObject:
    return {"role": "model", "parts": list(parts)}


def result(call_id: str, response: JsonObject, **fields: JsonValue) -> JsonObject:
    return {"functionResponse": {"id": call_id, "name": "f", "response": response, **fields}}


# --- messages: what is said, and how it is written (both ways) ------------------------------------------------

PNG = ImagePart(data="iVBO", media_type="image/png")
WIRE_PNG: JsonObject = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
FILES = "https://generativelanguage.googleapis.com/v1beta/files/a1"
OK = Message.tool(ToolResult("c1", "f", "ok"))
SECOND_OK = Message.tool(ToolResult("c2", "f", "ok"))
WIRE_OK = result("c1", {"output": "ok"})
CONVERSATIONS: dict[str, tuple[tuple[Message, ...], JsonObject]] = {
    "row 6 system": (
        (Message.system("S"), ASKED),
        body(WIRE_ASKED, systemInstruction={"parts": [{"text": "S"}]}),
    ),
    "row 8 user text": ((ASKED,), body(WIRE_ASKED)),
    "row 9 image url": (
        (Message("user", (TextPart("q"), ImagePart(url="https://x/a", media_type="image/webp"))),),
        body(user({"text": "q"}, {"fileData": {"fileUri": "https://x/a", "mimeType": "image/webp"}})),
    ),
    "row 10 image base64": ((Message("user", (PNG,)),), body(user(WIRE_PNG))),
    "row 11 audio": (
        (Message("user", (AudioPart("UklG", "flac"),)),),
        body(user({"inlineData": {"mimeType": "audio/flac", "data": "UklG"}})),
    ),
    "row 12 pdf": (
        (Message("user", (FilePart(data="JVBE", media_type="application/pdf"),)),),
        body(user({"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}})),
    ),
    "row 12 a file the provider has": (
        (Message("user", (FilePart(url=FILES, media_type="video/mp4"),)),),
        body(user({"fileData": {"fileUri": FILES, "mimeType": "video/mp4"}})),
    ),
    "row 12 text document": (
        (Message("user", (FilePart(data="aGk=", media_type="text/plain"),)),),
        body(user({"inlineData": {"mimeType": "text/plain", "data": "aGk="}})),
    ),
    "row 13 assistant text and call": (
        (ASKED, Message.assistant("t", [CALL]), OK),
        body(WIRE_ASKED, model({"text": "t"}, WIRE_CALL), user(WIRE_OK)),
    ),
    "row 14 call without text, row 15 arguments are an object, row 17 one result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), OK),
        body(WIRE_ASKED, model(WIRE_CALL), user(WIRE_OK)),
    ),
    "row 16 a call's signature, row 18 two results, row 19 error result": (
        (
            ASKED,
            Message.assistant(tool_calls=[SIGNED, SECOND]),
            Message.tool(ToolResult("c1", "f", "ok"), ToolResult("c2", "f", "boom", is_error=True)),
        ),
        body(WIRE_ASKED, model(WIRE_SIGNED, WIRE_SECOND), user(WIRE_OK, result("c2", {"error": "boom"}))),
    ),
    "row 16 a text's signature": (
        (
            ASKED,
            Message("assistant", (TextPart("a"), ThinkingPart(signature="AAED", redacted="", provider="gemini"))),
            ASKED,
        ),
        body(WIRE_ASKED, model({"text": "a", "thoughtSignature": "AAED"}), WIRE_ASKED),
    ),
    "row 16 a signature alone": (
        (ASKED, Message("assistant", (TextPart("a"), ThinkingPart(redacted="AAED", provider="gemini"))), ASKED),
        body(WIRE_ASKED, model({"text": "a"}, {"text": "", "thoughtSignature": "AAED"}), WIRE_ASKED),
    ),
    "row 16 thinking": (
        (
            ASKED,
            Message("assistant", (ThinkingPart("hm", provider="gemini"), TextPart("a"))),
            ASKED,
        ),
        body(WIRE_ASKED, model({"text": "hm", "thought": True}, {"text": "a"}), WIRE_ASKED),
    ),
    "row 20 empty result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", ""))),
        body(WIRE_ASKED, model(WIRE_CALL), user(result("c1", {"output": ""}))),
    ),
    "a result that is JSON stays JSON": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", {"error": "é", "n": [1]}))),
        body(WIRE_ASKED, model(WIRE_CALL), user(result("c1", {"output": {"error": "é", "n": [1]}}))),
    ),
    "row 21 an image in a result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "see", media=(PNG,)))),
        body(WIRE_ASKED, model(WIRE_CALL), user(result("c1", {"output": "see"}, parts=[WIRE_PNG]))),
    ),
    "row 23 user text after results": (
        (ASKED, Message.assistant(tool_calls=[CALL]), OK, Message.user("and?")),
        body(WIRE_ASKED, model(WIRE_CALL), user(WIRE_OK, {"text": "and?"})),
    ),
    "what is not modelled goes back as it came": (
        (
            Message("user", (OpaquePart("gemini", {"fileData": {"fileUri": FILES}, "videoMetadata": {"fps": 1}}),)),
            Message("assistant", (OpaquePart("gemini", {"toolCall": {"id": "t"}, "thoughtSignature": "AAED"}),)),
            ASKED,
        ),
        body(
            user({"fileData": {"fileUri": FILES}, "videoMetadata": {"fps": 1}}),
            model({"toolCall": {"id": "t"}, "thoughtSignature": "AAED"}),
            WIRE_ASKED,
        ),
    ),
    "an image the model made": (
        (
            ASKED,
            Message("assistant", (PNG, ThinkingPart(signature="AAED", redacted="", provider="gemini"))),
            ASKED,
        ),
        body(WIRE_ASKED, model({**WIRE_PNG, "thoughtSignature": "AAED"}), WIRE_ASKED),
    ),
}


@pytest.mark.parametrize(("messages", "wire"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_messages_are_written_and_read_back(messages: tuple[Message, ...], wire: JsonObject) -> None:
    sent = encoded(Request(messages))
    assert sent.body == wire
    assert sent.warnings == ()
    assert gemini.read_request(sent.body).messages == messages


NONE_SAID = {"parts": [{"text": "S"}]}
ONE_WAY: dict[str, tuple[Target[GeminiDialect], tuple[Message, ...], JsonObject, list[str]]] = {
    "row 7 a later system turn": (
        target(),
        (Message.system("S"), ASKED, Message.system("T")),
        body(WIRE_ASKED, systemInstruction={"parts": [{"text": "S\n\nT"}]}),
        ["system"],
    ),
    "row 9 an image's type is read off its address": (
        target(),
        (Message("user", (ImagePart(url="https://x/a.JPG?size=1"),)),),
        body(user({"fileData": {"fileUri": "https://x/a.JPG?size=1", "mimeType": "image/jpeg"}})),
        [],
    ),
    "row 9 an address that is data": (
        target(),
        (Message("user", (ImagePart(url="data:image/png;base64,iVBO"),)),),
        body(user(WIRE_PNG)),
        [],
    ),
    "an image's detail has no place": (
        target(),
        (Message("user", (replace(PNG, detail="low"), replace(PNG, detail="auto"))),),
        body(user(WIRE_PNG, WIRE_PNG)),
        ["detail"],
    ),
    "row 12 a file by id": (
        target(),
        (Message("user", (FilePart(file_id=FILES),)),),
        body(user({"fileData": {"fileUri": FILES}})),
        [],
    ),
    "row 16 thinking that nobody tagged is not sent": (
        target(),
        (ASKED, Message("assistant", (ThinkingPart("hm"), TextPart("a")))),
        body(WIRE_ASKED, model({"text": "a"})),
        [],
    ),
    "row 16 a seal without its part stands alone": (
        target(),
        (
            ASKED,
            Message("assistant", (ThinkingPart(signature="AAED", redacted="", provider="gemini"), TextPart("a"))),
        ),
        body(WIRE_ASKED, model({"text": "", "thoughtSignature": "AAED"}, {"text": "a"})),
        [],
    ),
    "row 21 an image in a result of an older model": (
        target(**OLD),
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "see", media=(PNG,)))),
        body(
            WIRE_ASKED,
            model(WIRE_CALL),
            user(result("c1", {"output": "see\n[image attached below]"}), WIRE_PNG),
        ),
        ["result_media"],
    ),
    "a text in a result's media is a text document": (
        target(),
        (
            ASKED,
            Message.assistant(tool_calls=[CALL]),
            Message.tool(ToolResult("c1", "f", "see", media=(TextPart("hi"),))),
        ),
        body(
            WIRE_ASKED,
            model(WIRE_CALL),
            user(result("c1", {"output": "see"}, parts=[{"inlineData": {"mimeType": "text/plain", "data": "aGk="}}])),
        ),
        [],
    ),
    "row 22 an unanswered call": (
        target(),
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind")),
        body(
            WIRE_ASKED,
            model(WIRE_CALL),
            user(result("c1", {"error": "tool was not executed"}), {"text": "never mind"}),
        ),
        ["tool_results"],
    ),
    "results follow the order of the calls": (
        target(),
        (
            ASKED,
            Message.assistant(tool_calls=[CALL, SECOND]),
            Message.tool(ToolResult("c2", "f", "b"), ToolResult("c1", "f", "a")),
        ),
        body(
            WIRE_ASKED,
            model(WIRE_CALL, WIRE_SECOND),
            user(result("c1", {"output": "a"}), result("c2", {"output": "b"})),
        ),
        [],
    ),
    "row 52 an invented id is not sent": (
        target(),
        (ASKED, Message.assistant(tool_calls=[replace(CALL, id="call_0")]), Message.tool(ToolResult("call_0", "f"))),
        body(
            WIRE_ASKED,
            model({"functionCall": {"name": "f", "args": {"x": 1}}}),
            user({"functionResponse": {"name": "f", "response": {"output": ""}}}),
        ),
        [],
    ),
    "row 54 arguments that are no object are shown as text": (
        target(),
        (ASKED, Message.assistant(tool_calls=[ToolCall.read("c1", "f", '{"x": ')]), OK),
        body(
            WIRE_ASKED,
            model({"functionCall": {"id": "c1", "name": "f", "args": {"invalid_arguments": '{"x": '}}}),
            user(WIRE_OK),
        ),
        [],
    ),
    "neighbouring turns of one role are one content": (
        target(),
        (ASKED, ASKED, Message.assistant("a"), Message.assistant("b")),
        body(user({"text": "q"}, {"text": "q"}), model({"text": "a"}, {"text": "b"})),
        [],
    ),
    "a conversation that begins with the model": (
        target(),
        (Message.assistant("a"), ASKED),
        body(user({"text": ""}), model({"text": "a"}), WIRE_ASKED),
        ["messages"],
    ),
    "a system turn alone": (
        target(),
        (Message.system("S"),),
        body(user({"text": ""}), systemInstruction=NONE_SAID),
        ["messages"],
    ),
    "an empty user turn": (
        target(),
        (Message.system("S"), Message.user("")),
        body(user({"text": ""}), systemInstruction=NONE_SAID),
        ["messages", "messages"],
    ),
    "row 82 another provider's thinking and signature are dropped, its id kept": (
        target(),
        (
            ASKED,
            Message(
                "assistant",
                (
                    ThinkingPart("hm", signature="A", provider="anthropic"),
                    replace(CALL, provider_data={"vertex": {"thoughtSignature": "V"}}),
                ),
            ),
            OK,
        ),
        body(WIRE_ASKED, model(WIRE_CALL), user(WIRE_OK)),
        [],
    ),
    "row 82 unsigned steps of the current turn get a stand-in": (
        target(signed_calls=True),
        (
            ASKED,
            Message.assistant(tool_calls=[replace(CALL, id="c0")]),
            Message.tool(ToolResult("c0", "f", "old")),
            Message.assistant("a"),
            ASKED,
            Message.assistant(tool_calls=[CALL, SECOND]),
            Message.tool(ToolResult("c1", "f", "ok"), ToolResult("c2", "f", "ok")),
            Message.assistant(tool_calls=[replace(SIGNED, id="c3")]),
            Message.tool(ToolResult("c3", "f", "ok")),
        ),
        body(
            WIRE_ASKED,
            model({"functionCall": {"id": "c0", "name": "f", "args": {"x": 1}}}),
            user(result("c0", {"output": "old"})),
            model({"text": "a"}),
            WIRE_ASKED,
            model({**WIRE_CALL, "thoughtSignature": UNSIGNED}, WIRE_SECOND),
            user(WIRE_OK, result("c2", {"output": "ok"})),
            model({"functionCall": {"id": "c3", "name": "f", "args": {"x": 1}}, "thoughtSignature": "AAEC"}),
            user(result("c3", {"output": "ok"})),
        ),
        [],
    ),
    "row 82 what is said right after results, row 23 in their content, begins no turn": (
        target(signed_calls=True),
        (ASKED, Message.assistant(tool_calls=[CALL]), OK, ASKED, Message.assistant(tool_calls=[SECOND]), SECOND_OK),
        body(
            WIRE_ASKED,
            model({**WIRE_CALL, "thoughtSignature": UNSIGNED}),
            user(WIRE_OK, {"text": "q"}),
            model({**WIRE_SECOND, "thoughtSignature": UNSIGNED}),
            user(result("c2", {"output": "ok"})),
        ),
        [],
    ),
}


@pytest.mark.parametrize(("to", "messages", "wire", "warned"), ONE_WAY.values(), ids=ONE_WAY)
def test_what_is_changed_on_the_way_out(
    to: Target[GeminiDialect], messages: tuple[Message, ...], wire: JsonObject, warned: list[str]
) -> None:
    sent = encoded(Request(messages), to)
    assert sent.body == wire
    assert features(sent.warnings) == warned


@pytest.mark.parametrize(
    ("message", "error", "words"),
    [
        (Message("user", (ImagePart(),)), InputError, "needs a url or data"),
        (Message("user", (FilePart(filename="a.pdf"),)), InputError, "id of an uploaded file"),
        (Message("system", (PNG,)), UnsupportedFeature, "ImagePart in a system turn"),
    ],
    ids=["an image of nothing", "a file of nothing", "an image in a system turn"],
)
def test_parts_that_cannot_be_sent_are_refused(message: Message, error: type[CallerError], words: str) -> None:
    with pytest.raises(error, match=words):
        encoded(Request((message, ASKED)))


# --- tools ------------------------------------------------------------------------------------------------------

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
NOTHING: JsonObject = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False, "title": "f"},
    },
}
OPEN: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
DECLARED: JsonObject = {"tools": [{"functionDeclarations": [F]}]}
BOTH_DECLARED: JsonObject = {"tools": [{"functionDeclarations": [F, G]}]}


def calling(**config: Any) -> JsonObject:
    return {"functionCallingConfig": config}


OFFERS: dict[str, tuple[Target[GeminiDialect], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL, OTHER)), BOTH_DECLARED, []),
    "row 25 no-argument tool": (
        target(),
        Request(tools=(NOTHING,)),
        {"tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}]},
        [],
    ),
    "row 25 tool without parameters": (
        target(),
        Request(tools=(NO_PARAMETERS,)),
        {"tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}]},
        [],
    ),
    "a tool of any arguments declares them": (
        target(),
        Request(tools=({"type": "function", "function": {"name": "f", "parameters": OPEN}},)),
        {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": OPEN}]}]},
        [],
    ),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {**DECLARED, "toolConfig": calling(mode="ANY")},
        [],
    ),
    "row 28 required where it cannot be": (
        target(forced_choice=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        ["tool_choice"],
    ),
    "row 28 required beside thinking": (
        target(default_effort="high"),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {**DECLARED, "toolConfig": calling(mode="ANY")},
        [],
    ),
    "row 28 required and row 32 parallel off where neither can be": (
        target(forced_choice=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, parallel_tool_calls=False),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        ["tool_choice", "parallel_tool_calls"],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {**BOTH_DECLARED, "toolConfig": calling(mode="ANY", allowedFunctionNames=["f"])},
        [],
    ),
    "row 29 named where thinking forbids it": (
        target(default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        ["tool_choice"],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {**DECLARED, "toolConfig": calling(mode="NONE")},
        [],
    ),
    "row 30 none of some": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("none", ("f",))),
        {**BOTH_DECLARED, "toolConfig": calling(mode="NONE")},
        [],
    ),
    "row 31 some must be called": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("required", ("f", "g"))),
        {**BOTH_DECLARED, "toolConfig": calling(mode="ANY", allowedFunctionNames=["f", "g"])},
        [],
    ),
    "row 31 some may be called": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("auto", ("f",))),
        {**BOTH_DECLARED, "toolConfig": calling(mode="VALIDATED", allowedFunctionNames=["f"])},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        DECLARED,
        ["parallel_tool_calls"],
    ),
    "row 32 parallel on": (target(), Request(tools=(TOOL,), parallel_tool_calls=True), DECLARED, []),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
    "row 49 web search": (target(), Request(tools=(SEARCH,)), {"tools": [{"googleSearch": {}}]}, []),
    "row 49 web search beside functions is announced": (
        target(),
        Request(tools=(SEARCH, TOOL), tool_choice=ToolChoice.REQUIRED),
        {
            "tools": [{"googleSearch": {}}, {"functionDeclarations": [F]}],
            "toolConfig": {**calling(mode="ANY"), "includeServerSideToolInvocations": True},
        },
        [],
    ),
    "row 49 web search beside functions on Vertex": (
        target(VERTEX),
        Request(tools=(SEARCH, TOOL)),
        {"tools": [{"googleSearch": {}}, {"functionDeclarations": [F]}]},
        [],
    ),
    "row 49 web search alone takes no choice": (
        target(),
        Request(tools=(SEARCH,), tool_choice=ToolChoice.AUTO),
        {"tools": [{"googleSearch": {}}]},
        [],
    ),
    "row 49 web search cannot be forced": (
        target(),
        Request(tools=(SEARCH,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [{"googleSearch": {}}]},
        ["tool_choice"],
    ),
    "row 49 no tool may be used": (
        target(),
        Request(tools=(SEARCH, TOOL), tool_choice=ToolChoice.NONE),
        {**DECLARED, "toolConfig": calling(mode="NONE")},
        [],
    ),
    "row 49 limits of a web search that have no place": (
        target(),
        Request(tools=(Tool.web_search(WebSearch(max_uses=2, user_location={"city": "Oslo"})).spec,)),
        {"tools": [{"googleSearch": {}}]},
        ["web_search", "web_search"],
    ),
    "row 49 domains left out on Vertex": (
        target(VERTEX),
        Request(tools=(Tool.web_search(WebSearch(blocked_domains=("x.com",))).spec,)),
        {"tools": [{"googleSearch": {"excludeDomains": ["x.com"]}}]},
        [],
    ),
    "the provider's other tools": (
        target(),
        Request(tools=({"type": "fileSearch", "fileSearch": {"fileSearchStoreNames": ["s"]}},)),
        {"tools": [{"fileSearch": {"fileSearchStoreNames": ["s"]}}]},
        [],
    ),
}


@pytest.mark.parametrize(("to", "request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choices(to: Target[GeminiDialect], request_: Request, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


READ_BACK = [
    name
    for name, (to, request, _, warned) in OFFERS.items()
    if to == target()
    and not warned
    and request.tools
    and not name.startswith(("row 25 no-", "row 30 none of", "row 49 no", "row 32"))
]


@pytest.mark.parametrize("name", [name for name in READ_BACK if name != "row 49 web search alone takes no choice"])
def test_tools_and_choices_are_read_back(name: str) -> None:
    _, request, fields, _ = OFFERS[name]
    assert gemini.read_request(body(WIRE_ASKED, **fields)) == replace(request, messages=(ASKED,))


REFUSED_TOOLS: dict[str, tuple[Target[GeminiDialect], tuple[JsonObject, ...], str]] = {
    "row 49 web search beside functions on an older model": (
        target(**OLD),
        (SEARCH, TOOL),
        "gemini/m has no place for built-in tools beside functions",
    ),
    "row 49 a search of some domains only": (
        target(VERTEX),
        (Tool.web_search(WebSearch(allowed_domains=("x.com",))).spec,),
        "vertex/m has no place for a web search limited to domains",
    ),
    "row 49 a search without some domains": (
        target(),
        (Tool.web_search(WebSearch(blocked_domains=("x.com",))).spec,),
        "gemini/m has no place for a web search without some domains",
    ),
    "a built-in tool of another provider": (
        target(),
        ({"type": "bash", "bash": {}},),
        "gemini/m has no place for the built-in tool 'bash'. It has codeExecution",
    ),
}


@pytest.mark.parametrize(("to", "tools", "words"), REFUSED_TOOLS.values(), ids=REFUSED_TOOLS)
def test_tools_that_cannot_be_offered_are_refused(
    to: Target[GeminiDialect], tools: tuple[JsonObject, ...], words: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        encoded(Request((ASKED,), tools), to)


@pytest.mark.parametrize("name", ["shop.orders:all", "_f", "a" * 128])
def test_row_26_names_the_wire_takes_stay(name: str) -> None:
    assert encoded(Request((ASKED,), ({"type": "function", "function": {"name": name}},))).names.encode(name) == name


@pytest.mark.parametrize("name", ["3d.plot", "-f", "shop/orders", "é", "a" * 129])
def test_row_26_a_name_the_wire_forbids_is_mapped_and_mapped_back(name: str) -> None:
    tool: JsonObject = {"type": "function", "function": {"name": name, "description": "d", "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert wire != name
    assert sent.body == body(
        WIRE_ASKED,
        tools=[{"functionDeclarations": [{**F, "name": wire}]}],
        toolConfig=calling(mode="ANY", allowedFunctionNames=[wire]),
    )
    response = gemini.decode(answer({"functionCall": {"name": wire}}), sent, target())
    assert response.choices[0].tool_calls[0].name == name


# --- schemas ----------------------------------------------------------------------------------------------------

TREE: JsonObject = {
    "$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}},
    "$ref": "#/$defs/T",
}
SCHEMAS: dict[str, tuple[JsonObject, JsonObject, list[str]]] = {
    "const": ({"const": "a"}, {"enum": ["a"]}, []),
    "const null": ({"const": None}, {"type": "null"}, []),
    "null among the values": (
        {"enum": ["a", None], "description": "d"},
        {"description": "d", "anyOf": [{"enum": ["a"]}, {"type": "null"}]},
        [],
    ),
    "a list of types": (
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        [],
    ),
    "oneOf is anyOf here": ({"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "string"}]}, []),
    "allOf": ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, {"type": "integer", "minimum": 1}, []),
    "bounds, defaults and formats stay": (
        {"type": "integer", "minimum": 1, "maximum": 3, "default": 2, "format": "int32", "title": "N"},
        {"type": "integer", "minimum": 1, "maximum": 3, "default": 2, "format": "int32", "title": "N"},
        [],
    ),
    "what is read past is said in words": (
        {"type": "string", "pattern": "^a", "minLength": 1, "description": "d"},
        {"type": "string", "description": "d (pattern: ^a; minLength: 1)"},
        ["schema"],
    ),
    "a reference stands alone": (
        {"$ref": "#/$defs/A", "description": "d"},
        {"$ref": "#/$defs/A"},
        [],
    ),
}


@pytest.mark.parametrize(("schema", "sent", "warned"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas(schema: JsonObject, sent: JsonObject, warned: list[str]) -> None:
    definitions: JsonObject = {"$defs": {"A": {"type": "string"}}}
    whole: JsonObject = {"type": "object", "properties": {"a": schema}, **definitions}
    wire = encoded(Request((ASKED,), response_format=ResponseFormat(whole)))
    assert wire.body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"a": sent}, **definitions},
    }
    assert features(wire.warnings) == warned


def test_recursion_is_sent_where_it_may_end_and_told_in_words_with_its_path_where_it_may_not() -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(TREE)))
    assert sent.body["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": TREE}
    endless = json.loads(json.dumps(TREE))
    endless["$defs"]["T"]["required"] = ["next"]
    told = encoded(Request((ASKED,), response_format=ResponseFormat(endless)))
    assert told.body["generationConfig"] == {"responseMimeType": "application/json"}
    assert json.dumps(endless, separators=(",", ":")) in str(told.body["systemInstruction"])
    (warning,) = told.warnings
    assert re.search("the output 'response'.* at .*recursive in required properties.* in words", warning.detail)


def test_a_tool_whose_arguments_are_endless_is_refused_with_the_path() -> None:
    endless = json.loads(json.dumps(TREE))
    endless["$defs"]["T"]["required"] = ["next"]
    tool = Tool.from_schema("f", "d", {"type": "object", "properties": {"t": endless}, "$defs": endless["$defs"]})
    with pytest.raises(UnsupportedFeature, match=r"tool 'f' .* at /properties/t"):
        encoded(Request((ASKED,), tools=(tool.spec,)))


def test_a_tools_arguments_are_an_object_and_an_output_may_be_anything() -> None:
    items: JsonObject = {"type": "array", "items": {"type": "string"}}
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(items)))
    assert sent.body["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": items}
    with pytest.raises(UnsupportedFeature, match=r"tool 'f'.*the root must be an object"):
        encoded(Request((ASKED,), ({"type": "function", "function": {"name": "f", "parameters": items}},)))


# --- output and sampling --------------------------------------------------------------------------------------------

FORMAT: JsonObject = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
IN_WORDS = (
    "Answer with one JSON value and nothing else. It must fit this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)


def thinking(**config: Any) -> JsonObject:
    return {"generationConfig": {"thinkingConfig": config}}


def config(**fields: Any) -> JsonObject:
    return {"generationConfig": fields}


FIELDS: dict[str, tuple[Target[GeminiDialect], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, config(maxOutputTokens=50), []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (
        target(),
        {"temperature": 0.0, "top_p": 0.5, "top_k": 3},
        config(temperature=0.0, topP=0.5, topK=3),
        [],
    ),
    "row 40 temperature on a model that takes none": (
        target(sampling="never"),
        {"temperature": 0.0},
        {},
        ["temperature"],
    ),
    "row 40 temperature beside thinking": (
        target(sampling="unless_reasoning"),
        {"temperature": 0.0, "reasoning": "high"},
        thinking(thinkingLevel="high", includeThoughts=True),
        ["temperature"],
    ),
    "row 40 temperature with thinking switched off": (
        target(**OLD, sampling="unless_reasoning", default_effort="high"),
        {"temperature": 0.0, "reasoning": "off"},
        config(temperature=0.0, thinkingConfig={"thinkingBudget": 0}),
        [],
    ),
    "row 40 temperature on a model that does not reason": (
        target(thinking="none", sampling="unless_reasoning"),
        {"temperature": 0.0, "reasoning": "off"},
        config(temperature=0.0),
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, config(stopSequences=["a", "b"]), []),
    "row 41 one stop": (target(), {"stop": "a"}, config(stopSequences=["a"]), []),
    "row 41 stop on a model that takes none": (target(stop=False), {"stop": "a"}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, config(seed=7), []),
    "row 43 two choices": (target(), {"n": 2}, config(candidateCount=2), []),
    "row 44 logprobs": (
        target(),
        {"logprobs": True, "top_logprobs": 3},
        config(responseLogprobs=True, logprobs=3),
        [],
    ),
    "row 45 effort": (target(), {"reasoning": "high"}, thinking(thinkingLevel="high", includeThoughts=True), []),
    "row 45 effort the model does not have": (
        target(efforts=("off", "low", "high")),
        {"reasoning": "max"},
        thinking(thinkingLevel="high", includeThoughts=True),
        ["reasoning"],
    ),
    "row 45 effort on an older model": (
        target(**OLD),
        {"reasoning": "high"},
        thinking(thinkingBudget=16384, includeThoughts=True),
        [],
    ),
    "row 46 budget": (
        target(),
        {"reasoning": {"budget": 2000}},
        thinking(thinkingLevel="low", includeThoughts=True),
        ["reasoning"],
    ),
    "row 46 budget on an older model": (
        target(**OLD),
        {"reasoning": {"budget": 2000}},
        thinking(thinkingBudget=2000, includeThoughts=True),
        [],
    ),
    "row 46 budget out of bounds": (
        target(**OLD, budgets=(128, 24576)),
        {"reasoning": {"budget": 50000}},
        thinking(thinkingBudget=24576, includeThoughts=True),
        ["reasoning"],
    ),
    "row 47 reasoning off": (
        target(),
        {"reasoning": "off"},
        thinking(thinkingLevel="low", includeThoughts=True),
        ["reasoning"],
    ),
    "row 47 reasoning off on an older model": (target(**OLD), {"reasoning": "off"}, thinking(thinkingBudget=0), []),
    "row 47 reasoning off on an older model that cannot": (
        target(**OLD, efforts=("low", "high"), budgets=(128, 32768)),
        {"reasoning": "off"},
        thinking(thinkingBudget=128, includeThoughts=True),
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not reason": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 caching is implicit": (target(), {"cache": True}, {}, []),
    "row 50 extra body": (
        target(),
        {
            "temperature": 1.0,
            "extra_body": {
                "cachedContent": "cachedContents/1",
                "generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"},
            },
        },
        {"cachedContent": "cachedContents/1", **config(temperature=1.0, mediaResolution="MEDIA_RESOLUTION_LOW")},
        [],
    ),
    "the rest": (
        target(),
        {"presence_penalty": 1, "frequency_penalty": 2, "service_tier": "flex"},
        {"serviceTier": "flex", **config(presencePenalty=1, frequencyPenalty=2)},
        [],
    ),
    "metadata are labels on Vertex": (target(VERTEX), {"metadata": {"a": "b"}}, {"labels": {"a": "b"}}, []),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options(to: Target[GeminiDialect], options: JsonObject, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


SAID_OTHERWISE = ("row 39", "row 40 temperature on a model that does", "row 41 one", "row 45 effort on", "row 48")


@pytest.mark.parametrize(
    "name", [name for name, case in FIELDS.items() if not case[3] and case[2] and not name.startswith(SAID_OTHERWISE)]
)
def test_options_are_read_back(name: str) -> None:
    to, options, fields, _ = FIELDS[name]
    assert gemini.read_request(body(WIRE_ASKED, **fields), to.dialect) == Request((ASKED,), options=options)


@pytest.mark.parametrize("name", ["metadata", "user", "temprature"])
def test_an_option_without_a_place_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {name!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options={name: "x"}))
    assert caught.value.option == name


def test_row_45_effort_on_a_model_that_cannot_reason_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="reasoning effort 'high'"):
        encoded(Request((ASKED,), options={"reasoning": "high"}), target(thinking="none"))


def test_row_50_extra_headers_are_sent_and_row_2_no_key_is_among_them() -> None:
    assert encoded(Request((ASKED,), options={"extra_headers": {"X-A": "1"}})).headers == {"X-A": "1"}
    assert encoded(Request((ASKED,))).headers == {}


@pytest.mark.parametrize("name", ["default", "my answer"])
def test_row_34_structured_output_and_row_35_its_name_has_no_place(name: str) -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(SCHEMA, name)))
    assert sent.body == body(WIRE_ASKED, generationConfig=FORMAT)
    assert sent.warnings == ()
    assert gemini.read_request(sent.body) == Request((ASKED,), response_format=ResponseFormat(SCHEMA))


def test_any_object_is_asked_for_without_a_schema() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(), options={"temperature": 0})
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, **config(temperature=0, responseMimeType="application/json"))
    assert sent.warnings == ()
    assert gemini.read_request(sent.body) == request


IN_SYSTEM = {"parts": [{"text": "S"}, {"text": IN_WORDS}]}
MISSING: dict[str, tuple[Capabilities, Request, JsonObject]] = {
    "row 36 a model without schemas": (
        Capabilities(json_object=True),
        Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA)),
        body(WIRE_ASKED, systemInstruction=IN_SYSTEM, **config(responseMimeType="application/json")),
    ),
    "row 36 a model without any": (
        Capabilities(),
        Request((ASKED,), response_format=ResponseFormat()),
        body(
            WIRE_ASKED,
            systemInstruction={"parts": [{"text": "Answer with one JSON object and nothing else."}]},
        ),
    ),
    "row 37 tools and structured output on an older model": (
        replace(ABLE, tools_with_json_schema=False),
        Request((Message.system("S"), ASKED), (TOOL,), response_format=ResponseFormat(SCHEMA)),
        body(WIRE_ASKED, systemInstruction=IN_SYSTEM, **DECLARED),
    ),
}


@pytest.mark.parametrize(("able", "request_", "wire"), MISSING.values(), ids=MISSING)
def test_structured_output_that_is_missing_is_asked_for_in_words(
    able: Capabilities, request_: Request, wire: JsonObject
) -> None:
    sent = encoded(request_, target(able=able))
    assert sent.body == wire
    assert features(sent.warnings) == ["response_format"]


def test_row_37_structured_output_and_tools_go_together_on_newer_models() -> None:
    sent = encoded(Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA)))
    assert sent.body == body(WIRE_ASKED, **DECLARED, generationConfig=FORMAT)
    assert sent.warnings == ()


PATHS = {
    ("gemini", "gemini-3-pro"): "/v1/models/gemini-3-pro:generateContent",
    ("gemini", "gemini-3-flash-preview-05"): "/v1beta/models/gemini-3-flash-preview-05:generateContent",
    ("gemini", "gemini-flash-latest"): "/v1beta/models/gemini-flash-latest:generateContent",
    ("gemini", "gemini-2.0-flash-exp"): "/v1beta/models/gemini-2.0-flash-exp:generateContent",
    ("gemini", "models/gemini-expert"): "/v1/models/gemini-expert:generateContent",
    ("gemini", "tunedModels/mine"): "/v1/tunedModels/mine:generateContent",
    ("vertex", "gemini-3-pro"): "/publishers/google/models/gemini-3-pro:generateContent",
}


@pytest.mark.parametrize(("where", "path"), PATHS.items(), ids=map(str, PATHS))
def test_row_1_the_path_names_version_and_model(where: tuple[str, str], path: str) -> None:
    host, model = where
    sent = encoded(Request((ASKED,)), target(GEMINI if host == "gemini" else VERTEX, model=model))
    assert (sent.path, sent.query) == (path, {})


def test_row_64_a_stream_has_its_own_method() -> None:
    whole, stream = encoded(Request((ASKED,))), encoded(Request((ASKED,)), stream=True)
    assert (stream.path, stream.query) == ("/v1/models/m:streamGenerateContent", {"alt": "sse"})
    assert stream.body == whole.body


# --- replies ----------------------------------------------------------------------------------------------------------

USAGE: JsonObject = {
    "promptTokenCount": 10,
    "cachedContentTokenCount": 4,
    "toolUsePromptTokenCount": 3,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 2,
    "totalTokenCount": 20,
}
USED = Usage(13, 7, cached_tokens=4, reasoning_tokens=2)


def answer(*parts: JsonObject, reason: JsonValue = "STOP", **fields: JsonValue) -> JsonObject:
    candidate: JsonObject = {"content": model(*parts), "finishReason": reason, "index": 0, **fields}
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "m-1", "responseId": "r1"}


def decoded(wire: JsonValue, to: Target[GeminiDialect] | None = None, *history: Message) -> Response:
    before = copy.deepcopy(wire)
    response = gemini.decode(wire, encoded(Request((ASKED, *history)), to), to or target())
    assert wire == before
    return response


def thought(text: str = "", **rest: Any) -> ThinkingPart:
    return ThinkingPart(text, provider="gemini", **rest)


CODE: JsonObject = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "AAED"}
REPLIES: dict[str, tuple[tuple[JsonObject, ...], str, Choice, list[str]]] = {
    "row 51 text": (({"text": "Hi"},), "STOP", Choice("Hi"), []),
    "row 51 texts are joined": (
        ({"text": "Hi "}, {"text": "you"}),
        "STOP",
        with_parts(TextPart("Hi "), TextPart("you")),
        [],
    ),
    "row 51 an empty text is nothing": (({"text": "Hi"}, {"text": ""}), "STOP", Choice("Hi"), []),
    "row 52 call id, row 55 two parallel calls, row 59 reason STOP": (
        (WIRE_SIGNED, WIRE_SECOND),
        "STOP",
        Choice(tool_calls=(SIGNED, SECOND), finish_reason="tool_calls"),
        [],
    ),
    "row 52 no call id, row 53 no arguments": (
        ({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": None}}),
        "STOP",
        Choice(tool_calls=(ToolCall("call_0", "f", {}), ToolCall("call_1", "f", {})), finish_reason="tool_calls"),
        [],
    ),
    "row 54 a call the provider could not read": (
        (),
        "MALFORMED_FUNCTION_CALL",
        Choice(finish_reason="error"),
        ["finish_reason"],
    ),
    "row 56 thinking": (
        ({"text": "hm", "thought": True}, {"text": "Hi", "thought": False}),
        "STOP",
        with_parts(thought("hm"), TextPart("Hi")),
        [],
    ),
    "row 56 thinking that is signed": (
        ({"text": "hm", "thought": True, "thoughtSignature": "AAED"}, {"text": "Hi"}),
        "STOP",
        with_parts(thought("hm", signature="AAED"), TextPart("Hi")),
        [],
    ),
    "a text that is signed": (
        ({"text": "Hi", "thoughtSignature": "AAED"},),
        "STOP",
        with_parts(TextPart("Hi"), thought(signature="AAED", redacted="")),
        [],
    ),
    "a signature alone": (
        ({"text": "Hi"}, {"text": "", "thoughtSignature": "AAED"}),
        "STOP",
        with_parts(TextPart("Hi"), thought(redacted="AAED")),
        [],
    ),
    "row 57 filtered": (({"text": "Hi"},), "SAFETY", Choice("Hi", finish_reason="content_filter"), ["finish_reason"]),
    "row 60 cut": (({"text": "Hi"},), "MAX_TOKENS", Choice("Hi", finish_reason="length"), []),
    "row 60 a call in a cut answer is whole": (
        (WIRE_CALL,),
        "MAX_TOKENS",
        Choice(tool_calls=(CALL,), finish_reason="length"),
        [],
    ),
    "row 60 a call that is no call is dropped from a cut answer": (
        ({"text": "Hi"}, {"functionCall": {"id": "c1", "name": "f", "args": [1]}}),
        "MAX_TOKENS",
        Choice("Hi", finish_reason="length"),
        ["tool_calls"],
    ),
    "row 61 nothing": ((), "STOP", Choice(), ["content"]),
    "row 61 nothing for another reason": ((), "OTHER", Choice(finish_reason="error"), ["finish_reason"]),
    "row 81 the provider asks to continue": (
        ({"text": "Hi"},),
        "CONTINUATION",
        Choice("Hi", finish_reason="length"),
        ["continuation"],
    ),
    "calls before text keep their order": (
        (WIRE_CALL, {"text": "Hi"}),
        "STOP",
        with_parts(CALL, TextPart("Hi"), finish_reason="tool_calls"),
        [],
    ),
    "what the provider ran is kept": (
        (CODE, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}, {"text": "Hi"}),
        "STOP",
        with_parts(
            OpaquePart("gemini", CODE),
            OpaquePart("gemini", {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}),
            TextPart("Hi"),
        ),
        [],
    ),
    "an image": (
        ({**WIRE_PNG, "thoughtSignature": "AAED"},),
        "STOP",
        with_parts(PNG, thought(signature="AAED", redacted="")),
        [],
    ),
    "sound": (
        ({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "UklG"}},),
        "STOP",
        with_parts(AudioPart("UklG", "L16;rate=24000")),
        [],
    ),
}


@pytest.mark.parametrize(("parts", "reason", "choice", "warned"), REPLIES.values(), ids=REPLIES)
def test_replies(parts: tuple[JsonObject, ...], reason: str, choice: Choice, warned: list[str]) -> None:
    wire = answer(*parts, reason=reason)
    response = decoded(wire)
    candidates = wire["candidates"]
    assert isinstance(candidates, list)
    expected = Response((replace(choice, raw=candidates[0]),), USED, "m-1", "r1", response.warnings, raw=wire)
    assert response == expected
    assert features(response.warnings) == warned
    assert collect(explode(response)) == response
    assert Response.from_json(json.loads(json.dumps(response.to_json()))) == response


FINISHES: dict[tuple[str | None, str], str] = {
    **{(native, ""): ours for native, ours in FINISH_REASONS.items()},
    ("OTHER", "t"): "stop",
    ("FINISH_REASON_UNSPECIFIED", "t"): "stop",
    ("NEWER_THAN_US", "t"): "stop",
    ("NEWER_THAN_US", ""): "error",
    (None, "t"): "stop",
    (None, ""): "error",
}


@pytest.mark.parametrize(("wire", "ours"), FINISHES.items(), ids=map(str, FINISHES))
def test_finish_reasons(wire: tuple[str | None, str], ours: str) -> None:
    reason, text = wire
    assert decoded(answer({"text": text}, reason=reason)).choices[0].finish_reason == ours


def test_what_the_provider_says_of_the_end_is_in_the_warning() -> None:
    wire = answer(reason="UNEXPECTED_TOOL_CALL", finishMessage="undeclared function: x")
    assert decoded(wire).warnings == (
        LMWarning("finish_reason", "The provider ended the answer with UNEXPECTED_TOOL_CALL: undeclared function: x."),
    )


BLOCKED: dict[str, tuple[JsonObject, str]] = {
    "row 57 the Gemini API": ({"blockReason": "SAFETY"}, "The prompt was blocked (SAFETY)."),
    "row 57 Vertex": (
        {"blockReason": "OTHER", "blockReasonMessage": "No."},
        "The prompt was blocked (OTHER: No.).",
    ),
}


@pytest.mark.parametrize(("feedback", "said"), BLOCKED.values(), ids=BLOCKED)
@pytest.mark.parametrize("candidates", [{}, {"candidates": None}, {"candidates": []}], ids=["absent", "null", "empty"])
def test_row_62_a_blocked_prompt_is_a_filtered_choice(feedback: JsonObject, said: str, candidates: JsonObject) -> None:
    wire: JsonObject = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 3}, **candidates}
    choice = Choice(finish_reason="content_filter", raw=feedback)
    assert decoded(wire) == Response((choice,), Usage(3), warnings=(LMWarning("content_filter", said),), raw=wire)


def test_an_invented_id_does_not_repeat_one_of_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    wire = answer({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f"}})
    calls = decoded(wire, None, *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_row_43_two_candidates_come_in_the_order_of_their_index() -> None:
    first: JsonObject = {"index": 1, "content": model({"text": "b"}), "finishReason": "STOP"}
    second: JsonObject = {"content": model({"text": "a"}), "finishReason": "MAX_TOKENS"}
    response = decoded({"candidates": [first, second]})
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("a", "length"), ("b", "stop")]
    assert response.usage == Usage()


def test_row_44_logprobs_have_the_shape_of_all_wires() -> None:
    token: JsonObject = {"token": "Hi", "tokenId": 1, "logProbability": -0.5}
    other: JsonObject = {"token": "Ho", "tokenId": 2, "logProbability": -1.5}
    wire = answer(
        {"text": "Hi"},
        logprobsResult={"chosenCandidates": [token], "topCandidates": [{"candidates": [token, other]}]},
    )
    assert decoded(wire).choices[0].logprobs == {
        "content": [
            {
                "token": "Hi",
                "logprob": -0.5,
                "top_logprobs": [{"token": "Hi", "logprob": -0.5}, {"token": "Ho", "logprob": -1.5}],
            }
        ]
    }


GROUNDING: JsonObject = {
    "groundingChunks": [
        {"web": {"uri": "https://x", "title": "X"}},
        {"retrievedContext": {"title": "a.pdf", "text": "source"}},
        {"maps": {"uri": "https://maps/1", "title": "Place"}},
    ],
    "groundingSupports": [
        {"segment": {"startIndex": 4, "endIndex": 8, "text": "19°"}, "groundingChunkIndices": [0, 1]},
        {"segment": {"text": "elsewhere"}, "groundingChunkIndices": [0, 3]},
    ],
}
PLACED: JsonObject = {"start_index": 3, "end_index": 6, "text": "19°"}


def test_row_58_citations_are_placed_by_characters() -> None:
    wire = answer({"text": "é: 19° today"}, groundingMetadata=GROUNDING)
    assert decoded(wire).choices[0].citations == (
        {"type": "url_citation", "url": "https://x", "title": "X", **PLACED},
        {"type": "file_citation", "title": "a.pdf", **PLACED},
        {"type": "url_citation", "url": "https://x", "title": "X", "text": "elsewhere"},
        {"type": "url_citation", "url": "https://maps/1", "title": "Place"},
    )


ONE: JsonObject = {"start_index": 0, "end_index": 3, "text": "one"}
SEGMENTS: dict[str, tuple[tuple[JsonObject, ...], JsonObject, JsonObject]] = {
    "of a later part": (
        ({"text": "one "}, {"text": "two"}),
        {"partIndex": 1, "endIndex": 3, "text": "two"},
        {"start_index": 4, "end_index": 7, "text": "two"},
    ),
    "of the whole answer after thoughts": (
        ({"text": "hmmm", "thought": True}, {"text": "one two"}),
        {"startIndex": 4, "endIndex": 7, "text": "two"},
        {"start_index": 4, "end_index": 7, "text": "two"},
    ),
    "without its words": (({"text": "one"},), {"endIndex": 3}, ONE),
    "counted wrongly": (
        ({"text": "one two"},),
        {"startIndex": 2, "endIndex": 5, "text": "two"},
        {"start_index": 4, "end_index": 7, "text": "two"},
    ),
    "of words that stand twice": (
        ({"text": "two two"},),
        {"startIndex": 2, "endIndex": 5, "text": "two"},
        {"text": "two"},
    ),
    "of a part that is not there": (({"text": "one"},), {"partIndex": 9, "endIndex": 3, "text": "x"}, {"text": "x"}),
    "of the part after the last": (({"text": "one"},), {"partIndex": 1, "endIndex": 3}, ONE),
    "of nothing": (({"text": "one"},), {}, {}),
}


@pytest.mark.parametrize(("parts", "segment", "place"), SEGMENTS.values(), ids=SEGMENTS)
def test_row_58_a_segment(parts: tuple[JsonObject, ...], segment: JsonObject, place: JsonObject) -> None:
    support: JsonObject = {"segment": segment, "groundingChunkIndices": [0]}
    grounding: JsonObject = {"groundingChunks": [{"web": {"uri": "u"}}], "groundingSupports": [support]}
    citations = decoded(answer(*parts, groundingMetadata=grounding)).choices[0].citations
    assert citations == ({"type": "url_citation", "url": "u", **place},)


def test_row_58_quotations_and_pages_that_were_read_are_citations() -> None:
    wire = answer(
        {"text": "Hi you"},
        citationMetadata={"citations": [{"startIndex": 3, "endIndex": 6, "uri": "https://q", "license": "MIT"}]},
        urlContextMetadata={"urlMetadata": [{"retrievedUrl": "https://p", "urlRetrievalStatus": "OK"}]},
    )
    assert decoded(wire).choices[0].citations == (
        {"type": "url_citation", "url": "https://q", "start_index": 3, "end_index": 6, "text": "you"},
        {"type": "url_citation", "url": "https://p"},
    )


COUNTS: dict[str, tuple[JsonValue, Usage]] = {
    "row 63 all": (USAGE, USED),
    "row 63 only the prompt": ({"promptTokenCount": 3, "totalTokenCount": 3}, Usage(3)),
    "row 63 only thoughts": (
        {"promptTokenCount": 3, "thoughtsTokenCount": 2},
        Usage(3, 2, reasoning_tokens=2),
    ),
    "row 63 nulls are unknown": ({"promptTokenCount": None}, Usage()),
    "row 63 none": (None, Usage()),
}


@pytest.mark.parametrize(("wire", "usage"), COUNTS.values(), ids=COUNTS)
def test_usage(wire: JsonValue, usage: Usage) -> None:
    assert decoded({**answer({"text": "Hi"}), "usageMetadata": wire}).usage == usage


def test_what_encode_warned_of_is_on_the_response() -> None:
    to = target(stop=False)
    sent = encoded(Request((ASKED,), options={"stop": "x"}), to)
    assert features(gemini.decode(answer({"text": "Hi"}), sent, to).warnings) == ["stop"]


# --- errors -----------------------------------------------------------------------------------------------------------


def error_body(code: int, status: str, message: str, *details: JsonObject) -> JsonObject:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def reason(word: str) -> JsonObject:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": word, "domain": "googleapis.com"}


def quota(name: str) -> JsonObject:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


WAIT: JsonObject = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36s"}
ERRORS: dict[str, tuple[JsonObject, type[LMError], bool, str]] = {
    "row 73 bad key": (
        error_body(400, "INVALID_ARGUMENT", "API key not valid.", reason("API_KEY_INVALID")),
        LMAuthenticationError,
        False,
        "api_key_invalid",
    ),
    "row 73 bad key without a reason": (
        error_body(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key."),
        LMAuthenticationError,
        False,
        "invalid_argument",
    ),
    "row 73 no key": (error_body(401, "UNAUTHENTICATED", "No"), LMAuthenticationError, False, "unauthenticated"),
    "row 73 forbidden": (error_body(403, "PERMISSION_DENIED", "No"), LMAuthenticationError, False, "permission_denied"),
    "row 73 region": (
        error_body(400, "FAILED_PRECONDITION", "User location is not supported"),
        LMAuthenticationError,
        False,
        "failed_precondition",
    ),
    "row 74 unknown model": (
        error_body(404, "NOT_FOUND", "models/m is not found for API version v1"),
        LMUnsupportedModelError,
        False,
        "not_found",
    ),
    "row 75 context": (
        error_body(
            400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)"
        ),
        ContextWindowExceededError,
        False,
        "invalid_argument",
    ),
    "row 76 rate limit": (
        error_body(429, "RESOURCE_EXHAUSTED", "Slow", quota("RequestsPerMinutePerProject"), WAIT),
        LMRateLimitError,
        True,
        "resource_exhausted",
    ),
    "row 77 overloaded": (error_body(503, "UNAVAILABLE", "Overloaded"), LMServerError, True, "unavailable"),
    "row 78 the day's quota": (
        error_body(429, "RESOURCE_EXHAUSTED", "Quota", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")),
        LMBillingError,
        False,
        "quota_per_day",
    ),
    "row 78 billing": (
        error_body(400, "FAILED_PRECONDITION", "Please enable billing on your project"),
        LMBillingError,
        False,
        "failed_precondition",
    ),
    "bad request": (error_body(400, "INVALID_ARGUMENT", "Bad"), LMInvalidRequestError, False, "invalid_argument"),
    "a signature is missing": (
        error_body(400, "INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts"),
        LMInvalidRequestError,
        False,
        "invalid_argument",
    ),
    "a signature of another key": (
        error_body(400, "INVALID_ARGUMENT", "Corrupted thought signature"),
        LMInvalidRequestError,
        False,
        "invalid_argument",
    ),
    "cancelled": (error_body(499, "CANCELLED", "Gone"), LMTransportError, True, "cancelled"),
    "internal": (error_body(500, "INTERNAL", "Oops"), LMServerError, True, "internal"),
    "deadline": (error_body(504, "DEADLINE_EXCEEDED", "Slow"), LMTimeoutError, True, "deadline_exceeded"),
}


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in a list"])
@pytest.mark.parametrize(("wire", "kind", "retryable", "code"), ERRORS.values(), ids=ERRORS)
def test_errors(wire: JsonObject, kind: type[LMError], retryable: bool, code: str, wrapped: bool) -> None:
    detail = wire["error"]
    assert isinstance(detail, dict)
    status, message = detail["code"], detail["message"]
    assert isinstance(status, int)
    error = gemini.decode_error(status, {}, json.dumps([wire] if wrapped else wire), target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model, error.provider_code) == (status, "gemini", "m", code)
    assert str(message).rstrip(".") in error.message


def test_a_missing_signature_says_how_to_keep_it() -> None:
    for name, words in (("a signature is missing", "choice.message()"), ("a signature of another key", "route")):
        error = gemini.decode_error(400, {}, json.dumps(ERRORS[name][0]), target())
        assert words in error.message


def test_row_76_the_wait_is_on_the_error() -> None:
    wire = json.dumps(ERRORS["row 76 rate limit"][0])
    assert gemini.decode_error(429, {}, wire, target()).retry_after == 36.0
    assert gemini.decode_error(429, {"Retry-After": "5"}, wire, target()).retry_after == 5.0


@pytest.mark.parametrize(
    ("status", "wire", "kind"),
    [
        pytest.param(502, "<html><title>502 Bad Gateway</title>...</html>", LMServerError, id="row 80 html"),
        pytest.param(500, "", LMServerError, id="row 80 empty"),
        pytest.param(400, "[]", LMInvalidRequestError, id="row 80 an empty list"),
        pytest.param(302, "", LMUnexpectedError, id="no status we know"),
    ],
)
def test_errors_that_are_not_the_services_own(status: int, wire: str, kind: type[LMError]) -> None:
    error = gemini.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.message


INSIDE: dict[str, tuple[JsonValue, type[LMError], int]] = {
    "row 79 a code": (error_body(503, "UNAVAILABLE", "Overloaded"), LMServerError, 503),
    "row 79 a limit": (error_body(429, "RESOURCE_EXHAUSTED", "Slow"), LMRateLimitError, 429),
    "row 79 only text": ({"error": "overloaded"}, LMServerError, 200),
    "row 62 no candidates and no reason": ({"usageMetadata": {"promptTokenCount": 3}}, LMServerError, 200),
    "row 62 candidates are null": ({"candidates": None}, LMServerError, 200),
    "row 80 html": ("<html>hello</html>", LMServerError, 200),
    "row 80 empty": ("", LMServerError, 200),
    "row 80 some text": ("hello", LMUnexpectedError, 200),
    "a list": ([], LMServerError, 200),
}


@pytest.mark.parametrize(("wire", "kind", "status"), INSIDE.values(), ids=INSIDE)
def test_failures_inside_a_success(wire: JsonValue, kind: type[LMError], status: int) -> None:
    with pytest.raises(LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == status
    if isinstance(wire, str):
        assert wire in caught.value.message


# --- requests, read ---------------------------------------------------------------------------------------------------


def test_a_request_is_read_in_either_spelling_and_what_is_the_callers_own_is_left_alone() -> None:
    snake: JsonObject = {
        "system_instruction": {"role": "user", "parts": [{"text": "S"}]},
        "contents": [
            WIRE_ASKED,
            model({"function_call": {"name": "f", "args": {"my_key": 1}}, "thought_signature": "AAEC"}),
            user({"function_response": {"name": "f", "response": {"output": {"my_key": 2}}}}),
        ],
        "tools": {
            "function_declarations": [
                {
                    "name": "f",
                    "parameters": {"type": "OBJECT", "title": "F", "properties": {"my_key": {"type": "INTEGER"}}},
                }
            ]
        },
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
        "generation_config": {"max_output_tokens": 5, "thinking_config": {"thinking_budget": 0}},
    }
    parameters: JsonObject = {"type": "object", "title": "F", "properties": {"my_key": {"type": "integer"}}}
    call = ToolCall("call_0", "f", {"my_key": 1}, provider_data={"gemini": {"thoughtSignature": "AAEC"}})
    assert gemini.read_request(snake) == Request(
        (
            Message.system("S"),
            ASKED,
            Message.assistant(tool_calls=[call]),
            Message.tool(ToolResult("call_0", "f", {"my_key": 2})),
        ),
        ({"type": "function", "function": {"name": "f", "parameters": parameters}},),
        ToolChoice.named("f"),
        options={"max_tokens": 5, "reasoning": "off"},
    )


def unnamed_result(name: str) -> JsonObject:
    return {"functionResponse": {"name": name, "response": {"output": name}}}


def test_results_without_ids_find_their_calls_by_name_and_order() -> None:
    wire = body(
        WIRE_ASKED,
        model({"functionCall": {"name": "f"}}, {"functionCall": {"name": "g"}}, {"functionCall": {"name": "f"}}),
        user(*map(unnamed_result, ("g", "f", "f"))),
    )
    results = gemini.read_request(wire).messages[2].tool_results
    assert [(result.id, result.name) for result in results] == [("call_1", "g"), ("call_0", "f"), ("call_2", "f")]


READ_RESULTS: dict[str, tuple[JsonValue, ToolResult]] = {
    "an output": ({"output": [1]}, ToolResult("c9", "f", [1])),
    "an error": ({"error": "boom"}, ToolResult("c9", "f", "boom", is_error=True)),
    "an object of its own": ({"left": 3}, ToolResult("c9", "f", {"left": 3})),
    "an output among other keys": ({"output": 1, "n": 2}, ToolResult("c9", "f", {"output": 1, "n": 2})),
    "an empty object": ({}, ToolResult("c9", "f", {})),
}


@pytest.mark.parametrize(("response", "read"), READ_RESULTS.values(), ids=READ_RESULTS)
def test_a_result_is_read_whatever_its_call(response: JsonValue, read: ToolResult) -> None:
    wire = body(user({"functionResponse": {"id": "c9", "name": "f", "response": response}}))
    assert gemini.read_request(wire).messages == (Message.tool(read),)
    nameless = gemini.read_request(body(user({"functionResponse": {"response": response}})))
    assert nameless.messages == (Message.tool(replace(read, id="", name="")),)


UNMODELLED: dict[str, JsonObject] = {
    "a mode without names": {**DECLARED, "toolConfig": calling(mode="VALIDATED")},
    "a choice without functions": {"tools": [{"googleSearch": {}}], "toolConfig": calling(mode="AUTO")},
    "an announcement without functions": {
        "tools": [{"googleSearch": {}}],
        "toolConfig": {"includeServerSideToolInvocations": True},
    },
    "thoughts that are off and shown": thinking(thinkingBudget=0, includeThoughts=True),
    "another output type": config(responseMimeType="text/x.enum", responseSchema={"type": "STRING"}),
    "a budget of the model's choosing": thinking(thinkingBudget=-1),
    "thoughts of the model's choosing": thinking(thinkingBudget=-1, includeThoughts=True),
    "thoughts without a level": thinking(includeThoughts=True),
    "safety settings and modalities": {"safetySettings": [{"category": "C"}], **config(responseModalities=["TEXT"])},
    "a search with settings of its own": {"tools": [{"googleSearch": {"timeRangeFilter": {"startTime": "t"}}}]},
}


@pytest.mark.parametrize("fields", UNMODELLED.values(), ids=UNMODELLED)
def test_what_is_not_modelled_is_read_and_written_again(fields: JsonObject) -> None:
    wire = body(WIRE_ASKED, **fields)
    request = gemini.read_request(wire)
    assert encoded(request).body == wire
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


# --- properties -------------------------------------------------------------------------------------------------------

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
names = st.text(min_size=1, max_size=140)
wild_text = st.text(st.characters(), max_size=12)  # lone surrogates included
ours = objects.map(lambda data: {"gemini": data} if data else None)
calls = st.builds(ToolCall.read, st.text(max_size=5), names, objects | st.text(max_size=9), provider_data=ours)
media = st.one_of(
    st.builds(ImagePart, st.none() | st.text(), st.none() | st.text(), st.none() | st.just("image/png")),
    st.builds(AudioPart, st.text(), st.sampled_from(["wav", "mp3", "flac"])),
    st.builds(FilePart, st.none() | st.text(), st.none() | st.text(), media_type=st.sampled_from(["text/plain", None])),
)
results = st.builds(
    ToolResult,
    st.text(max_size=5),
    names,
    wild_text | json_values,
    st.booleans(),
    st.lists(media, max_size=1).map(tuple),
)
thoughts = st.builds(
    ThinkingPart,
    st.text(max_size=5),
    st.none() | st.text(max_size=5),
    st.none() | st.text(max_size=5),
    st.sampled_from(["gemini", "anthropic", None]),
)
parts_of = {
    "system": st.builds(TextPart, wild_text) | media,
    "user": st.builds(TextPart, wild_text) | media,
    "assistant": st.builds(TextPart, wild_text) | calls | thoughts | media,
    "tool": results,
}
messages = st.sampled_from(sorted(parts_of)).flatmap(
    lambda role: st.builds(Message, st.just(role), st.lists(parts_of[role], max_size=3).map(tuple))
)
tools_offered = st.lists(names, max_size=3, unique=True).map(
    lambda names: tuple({"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names)
)
builtin_tools: st.SearchStrategy[tuple[JsonObject, ...]] = st.sampled_from(
    [(), (SEARCH,), ({"type": "codeExecution", "codeExecution": {}},)]
)
options = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "n": st.integers(1, 3),
        "reasoning": st.sampled_from(["off", "high", "max", {"budget": 7}]),
        "top_k": st.just(3),
        "user": st.just("u"),
        "stop": st.sampled_from(["a", ["a", "b"]]),
        "extra_body": objects,
    },
)


def with_tools(builtin: tuple[JsonObject, ...], functions: tuple[JsonObject, ...], request: Request) -> Request:
    return replace(request, tools=builtin + functions)


bare_requests = st.builds(
    Request,
    st.lists(messages, max_size=5).map(tuple),
    st.just(()),
    st.sampled_from([None, ToolChoice.AUTO, ToolChoice.REQUIRED, ToolChoice.NONE]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, ResponseFormat(), ResponseFormat(SCHEMA, "x y")]),
    options,
)
requests = st.builds(with_tools, builtin_tools, tools_offered, bare_requests)
TARGETS = {
    "newer": target(signed_calls=True),
    "older": target(able=replace(ABLE, tools_with_json_schema=False), **OLD),
    "vertex": target(VERTEX),
    "weak": target(able=Capabilities(), thinking="none", forced_choice=False, sampling="never", stop=False),
}


def attempt(request: Request, to: Target[GeminiDialect]) -> Encoded | str:
    """What would be sent, or why nothing can be."""
    try:
        return gemini.encode(request, to)
    except CallerError as error:
        return str(error)


@given(requests, st.sampled_from(sorted(TARGETS)))
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request, which: str) -> None:
    sent = attempt(request, TARGETS[which])
    if isinstance(sent, str):
        refused = ("no place for", "no option 'user'", "An image needs", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()


def parts_by_turn(sent: Encoded) -> list[tuple[str, list[dict[str, Any]]]]:
    contents: Any = sent.body["contents"]
    return [(content["role"], content["parts"]) for content in contents]


@given(requests, st.sampled_from(sorted(TARGETS)))
def test_turns_take_turns_and_every_call_is_answered_at_once_and_in_order(request: Request, which: str) -> None:
    sent = attempt(replace(request, options={}), TARGETS[which])
    if isinstance(sent, str):
        return
    turns = parts_by_turn(sent)
    assert [role for role, _ in turns] == ["user", "model"] * (len(turns) // 2) + ["user"] * (len(turns) % 2)
    for (_, asked), (_, answered) in zip(turns, [*turns[1:], ("user", [])], strict=True):
        assert asked
        wanted = [
            (part["functionCall"].get("id"), part["functionCall"]["name"]) for part in asked if "functionCall" in part
        ]
        given_ = [part["functionResponse"] for part in answered if "functionResponse" in part]
        assert [(answer.get("id"), answer["name"]) for answer in given_] == wanted
        assert all("functionResponse" in part for part in answered[: len(given_)])


@given(requests)
def test_every_step_of_the_current_turn_is_signed(request: Request) -> None:
    sent = attempt(replace(request, options={}), TARGETS["newer"])
    if isinstance(sent, str):
        return
    for role, parts in reversed(parts_by_turn(sent)):
        if role == "user" and any("functionResponse" not in part for part in parts):
            return
        first = next((part for part in parts if "functionCall" in part), None)
        assert first is None or first["thoughtSignature"]


signatures = st.none() | st.text("ABab01+/=", min_size=1, max_size=8)


def signed(part: JsonObject, signature: str | None) -> JsonObject:
    return {**part, **({"thoughtSignature": signature} if signature else {})}


def text_part(text: str, signature: str | None) -> JsonObject:
    return signed({"text": text}, signature)


def thought_part(text: str, signature: str | None) -> JsonObject:
    return signed({"text": text, "thought": True}, signature)


def call_part(name: str, arguments: JsonObject, signature: str | None) -> JsonObject:
    return signed({"functionCall": {"name": name, "args": arguments}}, signature)


def with_ids(parts: list[JsonObject], identified: bool) -> list[JsonObject]:
    """Newer models give every call an id, and no two the same; older ones give none."""
    if not identified:
        return parts
    return [
        {**part, "functionCall": {"id": f"id{number}", **call}} if isinstance(call, dict) else part
        for number, part in enumerate(parts)
        for call in [part.get("functionCall")]
    ]


def media_part(kind: str, data: str, signature: str | None) -> JsonObject:
    return signed({"inlineData": {"mimeType": kind, "data": data}}, signature)


def other_part(kind: str, data: JsonObject, signature: str | None) -> JsonObject:
    return signed({kind: {"id": "t1", "args": data}}, signature)


base64_text = st.text("ABab01+/=", min_size=1, max_size=8)
own_kinds = st.sampled_from(["toolCall", "toolResponse", "executableCode", "codeExecutionResult"])
media_types = st.sampled_from(["image/png", "audio/wav", "application/pdf", "video/mp4"])
wire_parts: st.SearchStrategy[JsonObject] = st.one_of(
    st.builds(text_part, st.text(min_size=1, max_size=9), signatures),
    st.builds(text_part, st.just(""), base64_text),
    st.builds(thought_part, st.text(max_size=9), signatures),
    st.builds(call_part, st.text("abc_", min_size=1, max_size=8), objects, signatures),
    st.builds(media_part, media_types, base64_text, signatures),
    st.builds(other_part, own_kinds, objects, signatures),
)


@given(st.builds(with_ids, st.lists(wire_parts, max_size=6), st.booleans()), st.sampled_from([GEMINI, VERTEX]))
def test_an_answer_put_into_history_is_sent_as_it_came(came: list[JsonObject], dialect: GeminiDialect) -> None:
    to = target(dialect)
    choice = decoded({"candidates": [{"content": model(*came), "finishReason": "STOP"}]}, to).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    turns = parts_by_turn(gemini.encode(Request((ASKED, stored)), to))
    assert [part for role, parts in turns if role == "model" for part in parts] == came
    read = gemini.read_request({"contents": [WIRE_ASKED, model(*came)]}, dialect)
    assert [part for role, parts in parts_by_turn(gemini.encode(read, to)) if role == "model" for part in parts] == came


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    to = target(signed_calls=True)
    for turn in range(10):
        call: JsonObject = {"functionCall": {"name": "f", "args": {"x": turn}}}  # no ids, as older models answer
        parts: list[JsonObject] = [
            {"text": f"hm {turn}", "thought": True},
            {"text": "Let me see.", "thoughtSignature": f"T{turn}"},
            {**call, "thoughtSignature": f"S{turn}"},
            call,
        ]
        sent = gemini.encode(Request(tuple(history)), to)
        assert sent.body["contents"] == came
        wire: JsonObject = {"candidates": [{"content": model(*parts), "finishReason": "STOP"}]}
        choice = gemini.decode(wire, sent, to).choices[0]
        assert [call.id for call in choice.tool_calls] == [f"call_{2 * turn}", f"call_{2 * turn + 1}"]
        results = (ToolResult(call.id, "f", number) for number, call in enumerate(choice.tool_calls))
        history += [choice.message(), Message.tool(*results)]
        answers: list[JsonObject] = [
            {"functionResponse": {"name": "f", "response": {"output": number}}} for number in range(2)
        ]
        came += [model(*parts), user(*answers)]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert gemini.encode(Request(tuple(stored)), to).body["contents"] == came
    assert gemini.encode(gemini.read_request({"contents": list(came)}), to).body["contents"] == came


def test_the_tables_name_only_what_the_wire_has() -> None:
    assert set(FINISH_REASONS.values()) == {"stop", "length", "content_filter", "error"}
    assert BUILTIN["web_search"] == "googleSearch"
    assert all(kind == key for kind, key in BUILTIN.items() if kind != "web_search")
