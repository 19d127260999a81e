"""Ollama's own wire, row by row: whole requests and replies, written and read back.

A test id names its row of the wire's checklist: its number and the behaviour.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, OpaquePart, Part, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat, ToolChoice
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools import CallError, ToolCall, ToolResult
from sigwire.errors import (
    CallerError,
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTransportError,
    LMUnsupportedModelError,
    UnsupportedFeature,
    UnsupportedOption,
)
from sigwire.lm.codecs import ollama
from sigwire.lm.codecs.base import Codec, Encoded, ModelFacts, Target
from sigwire.lm.codecs.ollama import OLLAMA, OLLAMA_CLOUD, OllamaDialect
from tests.lm.codecs.encoding import encoded_untouched, features

CODEC: Codec[OllamaDialect] = ollama
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


def target(dialect: OllamaDialect = OLLAMA, *, able: Capabilities = ABLE, **facts: Any) -> Target[OllamaDialect]:
    return Target("ollama", "m", dialect, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[OllamaDialect] | None = None, *, stream: bool = False) -> Encoded:
    return encoded_untouched(ollama, request, to or target(), stream=stream)


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "messages": list(messages), "stream": False, "truncate": False, "shift": False, **fields}


def answered(name: str, content: str, call_id: str = "call_ab12cd34") -> JsonObject:
    return {"role": "tool", "tool_name": name, "tool_call_id": call_id, "content": content}


# --- messages: what is said, and how it is written (both ways) ------------------------------------------------

PNG = ImagePart(data="iVBO")
CONVERSATIONS: dict[str, tuple[tuple[Message, ...], list[JsonObject]]] = {
    "row 6 system": ((Message.system("S"), ASKED), [{"role": "system", "content": "S"}, WIRE_ASKED]),
    "row 8 user text": ((ASKED,), [WIRE_ASKED]),
    "row 10 image base64": (
        (Message("user", (TextPart("q"), PNG, PNG)),),
        [{"role": "user", "content": "q", "images": ["iVBO", "iVBO"]}],
    ),
    "row 10 nothing but an image": ((Message("user", (PNG,)),), [{"role": "user", "content": "", "images": ["iVBO"]}]),
    "row 13 assistant text and call": (
        (ASKED, Message.assistant("t", [CALL]), Message.tool(ToolResult("call_ab12cd34", "f", "ok"))),
        [WIRE_ASKED, {**ASSISTANT, "content": "t"}, answered("f", "ok")],
    ),
    "row 14 call without text, row 15 arguments are an object, row 17 one result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("call_ab12cd34", "f", "ok"))),
        [WIRE_ASKED, ASSISTANT, answered("f", "ok")],
    ),
    "row 16 thinking is sent back": (
        (
            ASKED,
            Message("assistant", (ThinkingPart("hm", provider="ollama"), TextPart("a"), CALL)),
            Message.tool(ToolResult("call_ab12cd34", "f", "ok")),
        ),
        [WIRE_ASKED, {**ASSISTANT, "content": "a", "thinking": "hm"}, answered("f", "ok")],
    ),
    "row 17 a call that had no id": (
        (
            ASKED,
            Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]),
            Message.tool(ToolResult("call_0", "f", "ok")),
        ),
        [
            WIRE_ASKED,
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_name": "f", "content": "ok"},
        ],
    ),
    "row 18 two results, row 19 error result": (
        (
            ASKED,
            Message.assistant(tool_calls=[CALL, SECOND]),
            Message.tool(
                ToolResult("call_ab12cd34", "f", "ok"), ToolResult("call_ef56gh78", "f", "boom", is_error=True)
            ),
        ),
        [
            WIRE_ASKED,
            {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL, WIRE_SECOND]},
            answered("f", "ok"),
            answered("f", "ERROR: boom", "call_ef56gh78"),
        ],
    ),
    "row 20 empty result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("call_ab12cd34", "f", ""))),
        [WIRE_ASKED, ASSISTANT, answered("f", "")],
    ),
    "row 23 user text after results": (
        (
            ASKED,
            Message.assistant(tool_calls=[CALL]),
            Message.tool(ToolResult("call_ab12cd34", "f", "ok")),
            Message.user("and?"),
        ),
        [WIRE_ASKED, ASSISTANT, answered("f", "ok"), {"role": "user", "content": "and?"}],
    ),
    "an id of eight digits is the server's": (
        (
            ASKED,
            Message.assistant(tool_calls=[replace(CALL, id="call_12345678")]),
            Message.tool(ToolResult("call_12345678", "f", "ok")),
        ),
        [
            WIRE_ASKED,
            {**ASSISTANT, "tool_calls": [{**WIRE_CALL, "id": "call_12345678"}]},
            answered("f", "ok", "call_12345678"),
        ],
    ),
    "unknown fields go back where they were": (
        (
            ASKED,
            Message(
                "assistant",
                (
                    TextPart("a"),
                    replace(CALL, provider_data={"ollama": {"sig": "S", "function": {"note": 1}}}),
                    OpaquePart("ollama", {"mood": "good"}),
                ),
            ),
            Message.tool(ToolResult("call_ab12cd34", "f", "ok")),
        ),
        [
            WIRE_ASKED,
            {
                "role": "assistant",
                "content": "a",
                "mood": "good",
                "tool_calls": [{**WIRE_CALL, "sig": "S", "function": {"name": "f", "arguments": {"x": 1}, "note": 1}}],
            },
            answered("f", "ok"),
        ],
    ),
}


@pytest.mark.parametrize(("messages", "wire"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_messages_are_written_and_read_back(messages: tuple[Message, ...], wire: list[JsonObject]) -> None:
    sent = encoded(Request(messages))
    assert sent.body == body(*wire)
    assert sent.warnings == ()
    assert ollama.read_request(sent.body) == Request(messages)


def one_way(*messages: Message, to: Target[OllamaDialect] | None = None) -> tuple[JsonValue, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["messages"], features(sent.warnings)


def test_row_7_a_second_system_turn_joins_the_first() -> None:
    wire, warned = one_way(Message.system("S"), ASKED, Message.system("T"))
    assert wire == [{"role": "system", "content": "S\n\nT"}, WIRE_ASKED]
    assert warned == ["system"]


def test_row_9_an_image_by_url_is_refused_and_one_inside_a_url_is_sent() -> None:
    with pytest.raises(UnsupportedFeature, match=r"ollama/m has no place for an image by URL\. Download it"):
        encoded(Request((Message("user", (ImagePart(url="https://x/a.png"),)),)))
    wire, warned = one_way(Message("user", (ImagePart(url="data:image/png;base64,iVBO"),)))
    assert wire == [{"role": "user", "content": "", "images": ["iVBO"]}]
    assert warned == []


def test_row_11_audio_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="no place for audio input"):
        encoded(Request((Message("user", (AudioPart("UklG"),)),)))


@pytest.mark.parametrize("part", [FilePart(data="JVBE", media_type="application/pdf"), FilePart(url="https://x/a.pdf")])
def test_row_12_a_pdf_is_refused(part: FilePart) -> None:
    with pytest.raises(UnsupportedFeature, match="documents that are not text"):
        encoded(Request((Message("user", (part,)),)))


def test_row_12_a_text_document_is_a_paragraph_of_the_text() -> None:
    note = FilePart(data="aGk=", filename="a.txt", media_type="text/plain")
    wire, _ = one_way(Message("user", (TextPart("Read"), TextPart(" this:"), note, PNG, TextPart("Well?"))))
    assert wire == [{"role": "user", "content": "Read this:\n\na.txt:\nhi\n\nWell?", "images": ["iVBO"]}]


REPLAYS: dict[str, tuple[tuple[Part, ...], JsonObject, list[str]]] = {
    "row 16 thinking without an owner": (
        (ThinkingPart("hm"), TextPart("a")),
        {"role": "assistant", "content": "a", "thinking": "hm"},
        [],
    ),
    "row 16 interleaved thinking is joined": (
        (ThinkingPart("h"), TextPart("a"), ThinkingPart("m"), TextPart("b")),
        {"role": "assistant", "content": "ab", "thinking": "hm"},
        [],
    ),
    "row 82 another provider's thinking is dropped, its id kept": (
        (ThinkingPart("hm", signature="S", provider="anthropic"), ToolCall("toolu_1", "f", {"x": 1})),
        {**ASSISTANT, "tool_calls": [{**WIRE_CALL, "id": "toolu_1"}]},
        ["tool_results"],
    ),
    "row 82 another provider's items are dropped": (
        (OpaquePart("gemini", {"a": 1}), replace(CALL, provider_data={"gemini": {"thoughtSignature": "S"}})),
        ASSISTANT,
        ["opaque", "tool_results"],
    ),
    "broken arguments are wrapped": (
        (ToolCall.read("call_ab12cd34", "f", '{"x": '),),
        {
            **ASSISTANT,
            "tool_calls": [{**WIRE_CALL, "function": {"name": "f", "arguments": {"invalid_arguments": '{"x": '}}}],
        },
        ["tool_results"],
    ),
}


@pytest.mark.parametrize(("parts", "wire", "warned"), REPLAYS.values(), ids=REPLAYS)
def test_what_an_assistant_turn_sends_back(parts: tuple[Part, ...], wire: JsonObject, warned: list[str]) -> None:
    messages, told = one_way(ASKED, Message("assistant", parts))
    assert isinstance(messages, list)
    assert messages[1] == wire
    assert told == warned


def test_row_21_an_image_in_a_result_follows_all_results_in_a_user_turn() -> None:
    results = Message.tool(
        ToolResult("call_ab12cd34", "f", "see", media=(PNG,)), ToolResult("call_ef56gh78", "f", "ok")
    )
    wire, warned = one_way(ASKED, Message.assistant(tool_calls=[CALL, SECOND]), results)
    assert wire == [
        WIRE_ASKED,
        {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL, WIRE_SECOND]},
        answered("f", "see\n[image attached below]"),
        answered("f", "ok", "call_ef56gh78"),
        {"role": "user", "content": "", "images": ["iVBO"]},
    ]
    assert warned == ["result_media"]


def test_row_22_an_unanswered_call_gets_an_error_result() -> None:
    wire, warned = one_way(ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind"))
    assert wire == [
        WIRE_ASKED,
        ASSISTANT,
        answered("f", "ERROR: tool was not executed"),
        {"role": "user", "content": "never mind"},
    ]
    assert warned == ["tool_results"]


def test_a_result_that_is_json_is_sent_as_compact_text() -> None:
    result = ToolResult("call_ab12cd34", "f", {"é": [1]})
    wire, _ = one_way(ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(result))
    assert isinstance(wire, list)
    assert wire[2] == answered("f", '{"é":[1]}')


def test_a_turn_in_which_nothing_was_said_is_not_sent() -> None:
    wire, _ = one_way(ASKED, Message("assistant", (TextPart(""),)), Message.user("r"))
    assert wire == [WIRE_ASKED, {"role": "user", "content": "r"}]


def test_an_opaque_item_of_ours_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="no place for an opaque item"):
        encoded(Request((Message("user", (OpaquePart("ollama", [1]),)),)))


def test_results_without_ids_are_read_by_name_and_then_by_order() -> None:
    def called(name: str) -> JsonObject:
        return {"function": {"name": name, "arguments": {}}}

    wire: list[JsonObject] = [
        {"role": "assistant", "content": "", "tool_calls": [called("f"), called("g"), called("f")]},
        {"role": "tool", "tool_name": "g", "content": "1"},
        {"role": "tool", "tool_name": "f", "content": "2"},
        {"role": "tool", "content": "3"},
        {"role": "tool", "tool_name": "h", "content": "nobody asked"},
    ]
    results = ollama.read_request(body(*wire)).messages[1].tool_results
    assert [(result.id, result.name, result.content) for result in results] == [
        ("call_1", "g", "1"),
        ("call_0", "f", "2"),
        ("call_2", "f", "3"),
        ("", "h", "nobody asked"),
    ]


# --- tools ------------------------------------------------------------------------------------------------------

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
EMPTY: JsonObject = {"type": "object", "properties": {}}
NOTHING: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": EMPTY}}
BARE: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
OFFERS: dict[str, tuple[Request, JsonObject, list[str]]] = {
    "row 24 definition": (Request(tools=(TOOL,)), {"tools": [TOOL]}, []),
    "row 25 no-argument tool": (Request(tools=(NOTHING,)), {"tools": [NOTHING]}, []),
    "row 25 tool without parameters": (Request(tools=(NO_PARAMETERS,)), {"tools": [NOTHING]}, []),
    "row 25 tool without properties": (Request(tools=(BARE,)), {"tools": [NOTHING]}, []),
    "row 27 auto": (Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO), {"tools": [TOOL]}, []),
    "row 28 required": (
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL, OTHER]},
        ["tool_choice"],
    ),
    "row 29 named": (
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("g")),
        {"tools": [OTHER]},
        ["tool_choice"],
    ),
    "row 30 none": (Request(tools=(TOOL,), tool_choice=ToolChoice.NONE), {}, []),
    "row 31 allowed list": (
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ToolChoice("auto", ("f", "h"))),
        {"tools": [TOOL, THIRD]},
        [],
    ),
    "row 31 allowed list, one of which must be called": (
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ToolChoice("required", ("f", "h"))),
        {"tools": [TOOL, THIRD]},
        ["tool_choice"],
    ),
    "row 32 parallel off": (
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [TOOL]},
        ["parallel_tool_calls"],
    ),
    "row 32 parallel on": (Request(tools=(TOOL,), parallel_tool_calls=True), {"tools": [TOOL]}, []),
    "row 32 parallel off without tools": (Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (Request(tool_choice=ToolChoice.REQUIRED), {}, []),
}


@pytest.mark.parametrize(("request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choices(request_: Request, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)))
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


def test_tools_are_read_back() -> None:
    request = Request((ASKED,), (TOOL, NOTHING))
    assert ollama.read_request(encoded(request).body) == request


def with_name(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA}}


def test_row_26_a_dotted_name_is_sent_as_it_is_and_another_is_mapped_and_mapped_back() -> None:
    dotted, strange = "shop.orders", "shop/orders äöü"
    tools = [with_name(name) for name in (dotted, strange)]
    sent = encoded(Request((ASKED,), tuple(tools)))
    assert sent.names.encode(dotted) == dotted
    wire = sent.names.encode(strange)
    assert wire.isascii()
    assert sent.body["tools"] == [with_name(dotted), with_name(wire)]
    reply = answer({"tool_calls": [{"function": {"name": wire, "arguments": {}}}]})
    assert ollama.decode(reply, sent, target()).choices[0].tool_calls[0].name == strange


def test_row_49_web_search_is_refused_with_where_to_find_it() -> None:
    search: JsonObject = {"type": "web_search", "web_search": {}}
    with pytest.raises(UnsupportedFeature, match=r"ollama/m has no place for built-in tools.*Responses API"):
        encoded(Request((ASKED,), (search,)))


SCHEMAS: dict[str, tuple[JsonObject, JsonObject, list[str]]] = {
    "references are put in place": (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string", "title": "A"}}},
        {"properties": {"a": {"type": "string"}}},
        [],
    ),
    "lost limits are told in words": (
        {"properties": {"a": {"type": "integer", "minimum": 1, "description": "How many"}}},
        {"properties": {"a": {"type": "integer", "description": "How many (minimum: 1)"}}},
        ["schema"],
    ),
    "const and oneOf have other words": (
        {"properties": {"a": {"oneOf": [{"const": "b"}, {"type": "null"}]}}},
        {"properties": {"a": {"anyOf": [{"enum": ["b"]}, {"type": "null"}]}}},
        [],
    ),
    "several types stay": (
        {"properties": {"a": {"type": ["string", "null"]}}},
        {"properties": {"a": {"type": ["string", "null"]}}},
        [],
    ),
    "closed objects lose nothing": (
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        {"properties": {"a": {"type": "integer"}}},
        [],
    ),
    "an open map is told in words": (
        {"properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}},
        {"properties": {"a": {"type": "object", "description": '(additionalProperties: {"type":"string"})'}}},
        ["schema"],
    ),
    "recursion ends in an object": (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {
            "type": "object", "properties": {"next": {"$ref": "#/$defs/A"}},
        }}},
        {"properties": {"a": {"type": "object", "properties": {
            "next": {"type": "object", "description": "Again an object like A."},
        }}}},
        ["schema"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "compiled", "warned"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_is_sent_in_the_keywords_the_server_keeps(
    schema: JsonObject, compiled: JsonObject, warned: list[str]
) -> None:
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", **schema}}}
    sent = encoded(Request((ASKED,), (tool,)))
    function: JsonObject = {"name": "f", "parameters": {"type": "object", **compiled}}
    assert sent.body == body(WIRE_ASKED, tools=[{"type": "function", "function": function}])
    assert features(sent.warnings) == warned
    # What is not sent has lost nothing.
    assert encoded(Request((ASKED,), (tool,), ToolChoice.NONE)).warnings == ()


def test_a_tool_whose_arguments_are_a_union_is_refused() -> None:
    union: JsonObject = {"anyOf": [SCHEMA, EMPTY]}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": union}}
    with pytest.raises(UnsupportedFeature, match=r"tool 'f'.*the root must be an object"):
        encoded(Request((ASKED,), (tool,)))


# --- output and sampling --------------------------------------------------------------------------------------------

IN_WORDS = (
    "Answer with one JSON value and nothing else. It must fit this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)
FIELDS: dict[str, tuple[Target[OllamaDialect], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"options": {"num_predict": 50}}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_p": 0.5}, {"options": {"temperature": 0.0, "top_p": 0.5}}, []),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {"options": {"stop": ["a", "b"]}}, []),
    "row 42 seed": (target(), {"seed": 7}, {"options": {"seed": 7}}, []),
    "row 44 logprobs": (
        target(),
        {"logprobs": True, "top_logprobs": 3},
        {"logprobs": True, "top_logprobs": 3},
        [],
    ),
    "row 45 effort": (target(), {"reasoning": "high"}, {"think": "high"}, []),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"think": False}, []),
    "row 48 caching is automatic": (target(), {"cache": None}, {}, []),
    "row 50 extra body": (
        target(),
        {"seed": 7, "extra_body": {"options": {"mirostat": 1}, "verbosity": "low"}},
        {"options": {"seed": 7, "mirostat": 1}, "verbosity": "low"},
        [],
    ),
    "row 75 a caller who wants the prompt cut": (
        target(),
        {"truncate": True, "shift": True},
        {"truncate": True, "shift": True},
        [],
    ),
    "row 75 a caller who wants more context": (target(), {"num_ctx": 32768}, {"options": {"num_ctx": 32768}}, []),
    "the rest": (
        target(),
        {"top_k": 5, "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": 2, "repeat_penalty": 3, "keep_alive": "5m"},
        {
            "options": {"top_k": 5, "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": 2, "repeat_penalty": 3},
            "keep_alive": "5m",
        },
        [],
    ),
}  # fmt: skip
ONE_WAY: dict[str, tuple[Target[OllamaDialect], JsonObject, JsonObject, list[str]]] = {
    "row 41 one stop": (target(), {"stop": "a"}, {"options": {"stop": ["a"]}}, []),
    "row 43 two choices": (target(), {"n": 2}, {}, ["n"]),
    "row 43 one choice": (target(), {"n": 1}, {}, []),
    "row 45 minimal effort": (target(), {"reasoning": "minimal"}, {"think": "low"}, ["reasoning"]),
    "row 45 extra high effort": (target(), {"reasoning": "xhigh"}, {"think": "max"}, ["reasoning"]),
    "row 45 effort the model does not have": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "max"},
        {"think": "high"},
        ["reasoning"],
    ),
    "row 46 budget": (target(), {"reasoning": {"budget": 2000}}, {"think": "low"}, ["reasoning"]),
    "row 47 reasoning off where it cannot be": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "off"},
        {"think": "low"},
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not think": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 a cache hint": (target(), {"cache": True}, {}, []),
    "row 50 extra body over an option": (
        target(),
        {"seed": 7, "extra_body": {"options": {"seed": 8}}},
        {"options": {"seed": 8}},
        [],
    ),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), (FIELDS | ONE_WAY).values(), ids=FIELDS | ONE_WAY)
def test_options(to: Target[OllamaDialect], options: JsonObject, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED) | fields
    assert features(sent.warnings) == warned


@pytest.mark.parametrize(("options", "fields"), [(case[1], case[2]) for case in FIELDS.values()], ids=FIELDS)
def test_options_are_read_back(options: JsonObject, fields: JsonObject) -> None:
    given: JsonObject = {name: value for name, value in options.items() if value is not None}
    assert ollama.read_request(body(WIRE_ASKED) | fields) == Request((ASKED,), options=given)


@pytest.mark.parametrize("think", [True, "loud"])
def test_thinking_asked_for_in_other_words_is_kept(think: JsonValue) -> None:
    assert ollama.read_request(body(WIRE_ASKED, think=think)).options == {"extra_body": {"think": think}}


def test_row_43_it_is_asked_as_often_as_choices_are_wanted() -> None:
    assert encoded(Request((ASKED,), options={"n": 2})).repeat == 2
    assert encoded(Request((ASKED,))).repeat == 1


@pytest.mark.parametrize("option", ["user", "metadata", "service_tier", "temprature"])
def test_an_option_without_a_place_is_refused(option: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {option!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options={option: "x"}))
    assert caught.value.option == option


def test_row_45_an_effort_for_a_model_that_does_not_think_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="no place for reasoning effort 'high'"):
        encoded(Request((ASKED,), options={"reasoning": "high"}), target(thinking="none"))


@pytest.mark.parametrize("schema", [SCHEMA, {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": SCHEMA}}])
def test_row_34_structured_output_and_row_35_without_its_name(schema: JsonObject) -> None:
    request = Request((ASKED,), response_format=ResponseFormat(schema))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, format=schema)
    assert sent.warnings == ()
    assert ollama.read_request(sent.body) == request
    named = replace(request, response_format=ResponseFormat(schema, "my answer"))
    assert encoded(named).body == sent.body


def test_any_object_is_asked_for_without_a_schema() -> None:
    request = Request((ASKED,), response_format=ResponseFormat())
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, format="json")
    assert ollama.read_request(sent.body) == request


def test_row_36_a_host_that_does_not_hold_the_model_to_a_schema_is_warned_of() -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(SCHEMA)), target(OLLAMA_CLOUD))
    assert sent.body == body(WIRE_ASKED, format=SCHEMA)
    assert features(sent.warnings) == ["response_format"]


@pytest.mark.parametrize(
    ("able", "wanted", "words", "fields"),
    [
        (Capabilities(), ResponseFormat(SCHEMA), IN_WORDS, {}),
        (Capabilities(json_object=True), ResponseFormat(SCHEMA), IN_WORDS, {"format": "json"}),
        (Capabilities(), ResponseFormat(), "Answer with one JSON object and nothing else.", {}),
    ],
)
def test_row_36_structured_output_that_is_missing_is_asked_for_in_words(
    able: Capabilities, wanted: ResponseFormat, words: str, fields: JsonObject
) -> None:
    sent = encoded(Request((Message.system("S"), ASKED), response_format=wanted), target(able=able))
    assert sent.body == body({"role": "system", "content": f"S\n\n{words}"}, WIRE_ASKED, **fields)
    assert features(sent.warnings) == ["response_format"]
    alone = encoded(Request((ASKED,), response_format=wanted), target(able=able))
    assert alone.body == body({"role": "system", "content": words}, WIRE_ASKED, **fields)


def test_row_37_beside_tools_the_schema_is_asked_for_in_words_and_without_them_by_format() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request)
    assert sent.body == body({"role": "system", "content": IN_WORDS}, WIRE_ASKED, tools=[TOOL])
    assert features(sent.warnings) == ["response_format"]
    last = encoded(replace(request, tool_choice=ToolChoice.NONE))
    assert last.body == body(WIRE_ASKED, format=SCHEMA)
    assert last.warnings == ()


def test_row_1_the_path_is_under_the_host() -> None:
    assert encoded(Request((ASKED,))).path == "/api/chat"


def test_row_64_whether_to_stream_is_always_said() -> None:
    assert encoded(Request((ASKED,))).body["stream"] is False
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, stream=True)


def test_row_75_a_prompt_that_is_too_long_shall_be_an_error_and_not_cut_silently() -> None:
    sent = encoded(Request((ASKED,)))
    assert (sent.body["truncate"], sent.body["shift"]) == (False, False)


# --- replies ----------------------------------------------------------------------------------------------------------


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


THOUGHT = ThinkingPart("hm", provider="ollama")
BROKEN = CallError("malformed_json", "The arguments are not valid JSON: Expecting value: line 1 column 7 (char 6)")
INDEXED: JsonObject = {"id": "call_ab12cd34", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}}
REPLIES: dict[str, tuple[JsonObject, JsonValue, Choice]] = {
    "row 51 text": ({"content": "Hi"}, "stop", Choice("Hi")),
    "row 52 call id, row 55 two parallel calls": (
        {"tool_calls": [INDEXED, WIRE_SECOND]},
        "stop",
        Choice(tool_calls=(CALL, SECOND), finish_reason="tool_calls"),
    ),
    "row 52 no call ids": (
        {"tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}, {"function": {"name": "f", "arguments": {}}}]},
        "stop",
        Choice(
            tool_calls=(ToolCall("call_0", "f", {"x": 1}), ToolCall("call_1", "f", {})), finish_reason="tool_calls"
        ),
    ),
    "row 53 empty arguments": (
        {"tool_calls": [{"id": "a", "function": {"name": "f"}}, {"id": "b", "function": {"name": "f", "arguments": None}}]},
        "stop",
        Choice(tool_calls=(ToolCall("a", "f", {}), ToolCall("b", "f", {})), finish_reason="tool_calls"),
    ),
    "row 53 arguments as text all the same": (
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]},
        "stop",
        Choice(tool_calls=(ToolCall("a", "f", {"x": 1}, '{"x":1}'),), finish_reason="tool_calls"),
    ),
    "row 54 invalid arguments": (
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x": '}}]},
        "stop",
        Choice(tool_calls=(ToolCall("a", "f", None, '{"x": ', BROKEN),), finish_reason="tool_calls"),
    ),
    "row 56 thinking": (
        {"thinking": "hm", "content": "Hi"},
        "stop",
        Choice.from_parts((THOUGHT, TextPart("Hi"))),
    ),
    "row 56 think tags stay text: thinking has a field": (
        {"content": "<think>hm</think>Hi"},
        "stop",
        Choice("<think>hm</think>Hi"),
    ),
    "row 59 calls but reason stop": (
        {"thinking": "hm", "content": "t", "tool_calls": [WIRE_CALL]},
        "stop",
        Choice.from_parts((THOUGHT, TextPart("t"), CALL), finish_reason="tool_calls"),
    ),
    "row 60 cut": ({"content": "Hi"}, "length", Choice("Hi", finish_reason="length")),
    "row 60 cut inside a call": (
        {"tool_calls": [WIRE_CALL, {"id": "a", "function": {"name": "f", "arguments": '{"x'}}]},
        "length",
        Choice(tool_calls=(CALL,), finish_reason="length"),
    ),
    "row 61 nothing": ({}, "stop", Choice()),
    "a model was loaded": ({}, "load", Choice()),
    "a model was unloaded": ({}, "unload", Choice()),
    "a call that is only text stays text": (
        {"content": '{"name": "f", "parameters": {"x": 1}}'},
        "stop",
        Choice('{"name": "f", "parameters": {"x": 1}}'),
    ),
    "a picture": ({"content": "See", "images": ["iVBO"]}, "stop", Choice.from_parts((TextPart("See"), PNG))),
    "empty fields say nothing": ({"content": "Hi", "images": None, "thinking": "", "tool_name": ""}, "stop", Choice("Hi")),
    "unknown fields are kept": (
        {"content": "Hi", "mood": "good", "tool_calls": [{**WIRE_CALL, "sig": "S"}]},
        "stop",
        Choice.from_parts(
            (TextPart("Hi"), replace(CALL, provider_data={"ollama": {"sig": "S"}}), OpaquePart("ollama", {"mood": "good"})),
            finish_reason="tool_calls",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLIES)
def test_replies(name: str) -> None:
    message, reason, choice = REPLIES[name]
    wire = answer(message, reason)
    response = decoded(wire)
    assert response == Response((replace(choice, raw=wire),), Usage(10, 7), "m-1", warnings=response.warnings, raw=wire)
    assert features(response.warnings) == (["tool_calls"] if name == "row 60 cut inside a call" else [])


FINISHES = {
    ("stop", "t"): "stop",
    ("load", ""): "stop",
    ("length", "t"): "length",
    (None, "t"): "stop",
    (None, ""): "error",
    ("", ""): "error",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "ours"), FINISHES.items(), ids=map(str, FINISHES))
def test_finish_reasons(wire: tuple[JsonValue, str], ours: str) -> None:
    reason, text = wire
    assert decoded(answer({"content": text}, reason)).choices[0].finish_reason == ours


def test_row_52_an_invented_id_does_not_repeat_one_of_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    calls = decoded(answer({"tool_calls": [{"function": {"name": "f"}}]}), *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1"]


def test_row_44_logprobs_are_kept_in_the_common_shape() -> None:
    logprobs: list[JsonValue] = [{"token": "Hi", "logprob": -0.5, "top_logprobs": [{"token": "Hi", "logprob": -0.5}]}]
    assert decoded(answer({"content": "Hi"}, logprobs=logprobs)).choices[0].logprobs == {"content": logprobs}


@pytest.mark.parametrize(
    ("counts", "read"),
    [
        pytest.param({"prompt_eval_count": 3, "eval_count": 2}, Usage(3, 2), id="row 63 both"),
        pytest.param(
            {"prompt_eval_count": None, "eval_count": 2}, Usage(None, 2), id="row 63 a zero that was left out"
        ),
        pytest.param({"prompt_eval_count": None, "eval_count": None}, Usage(), id="row 63 none"),
    ],
)
def test_usage(counts: JsonObject, read: Usage) -> None:
    assert decoded(answer({"content": "Hi"}, **counts)).usage == read


def test_what_encode_warned_of_is_on_the_response() -> None:
    sent = encoded(Request((ASKED,), options={"n": 2}))
    assert features(ollama.decode(answer({"content": "Hi"}), sent, target()).warnings) == ["n"]


# --- errors -----------------------------------------------------------------------------------------------------------


def said(message: str) -> str:
    return json.dumps({"error": message})


ERRORS: dict[str, tuple[int, str, type[LMError], bool, str]] = {
    "row 73 bad key": (
        401,
        '{"error": "unauthorized", "signin_url": "https://ollama.com/connect"}',
        LMAuthenticationError,
        False,
        "OLLAMA_API_KEY",
    ),
    "row 73 forbidden": (403, said("remote is disabled"), LMAuthenticationError, False, "ollama signin"),
    "row 74 unknown model": (404, said("model 'm' not found"), LMUnsupportedModelError, False, "`ollama pull m`"),
    "row 74 no such page": (404, "404 page not found", LMInvalidRequestError, False, "/v1"),
    "row 75 context": (
        400,
        said("the prompt is longer than the context length currently configured"),
        ContextWindowExceededError,
        False,
        "num_ctx",
    ),
    "row 75 context, in the runner's words": (
        400,
        said("the request exceeds the available context size"),
        ContextWindowExceededError,
        False,
        "num_ctx",
    ),
    "row 75 context, in older words": (
        500,
        said("the input length exceeds the context length"),
        ContextWindowExceededError,
        False,
        "num_ctx",
    ),
    "row 76 rate limit": (429, said("too many requests"), LMRateLimitError, True, ""),
    "row 77 overloaded": (
        503,
        said("server busy, please try again. maximum pending requests exceeded"),
        LMServerError,
        True,
        "",
    ),
    "row 78 billing": (402, said("payment required"), LMBillingError, False, "balance"),
    "row 80 html": (502, "<html><title>502 Bad Gateway</title>...</html>", LMServerError, True, "502 Bad Gateway"),
    "row 80 empty": (500, "", LMServerError, True, "status 500"),
    "row 54 a call nobody could read": (500, said("error parsing tool call: raw='{'"), LMServerError, True, "raw="),
    "no tools": (
        400,
        said("registry.ollama.ai/library/m:latest does not support tools"),
        LMInvalidRequestError,
        False,
        "`ollama show m`",
    ),
    "no thinking": (400, said('"m" does not support thinking'), LMInvalidRequestError, False, "option reasoning"),
    "bad request": (400, said('invalid think value: "loud"'), LMInvalidRequestError, False, "loud"),
    "canceled": (499, said("request canceled"), LMTransportError, True, ""),
    "runner crash": (500, said("llama runner process has terminated"), LMServerError, True, ""),
    "cloud away": (502, said("cloud model unreachable"), LMServerError, True, ""),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable", "words"), ERRORS.values(), ids=ERRORS)
def test_errors(status: int, wire: str, kind: type[LMError], retryable: bool, words: str) -> None:
    error = ollama.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model) == (status, "ollama", "m")
    assert words in error.message


def test_row_76_the_wait_is_on_the_error() -> None:
    assert ollama.decode_error(429, {"Retry-After": "9"}, said("slow"), target()).retry_after == 9


INSIDE: dict[str, tuple[JsonValue, type[LMError]]] = {
    "row 79 an error": ({"error": "llama runner process has terminated"}, LMServerError),
    "row 79 an error beside half an answer": ({**answer({"content": "Hi"}), "error": "gone"}, LMServerError),
    "row 79 an error that says more": ({"error": "the prompt is longer than the context length"}, ContextWindowExceededError),
    "row 62 no message": ({"model": "m", "done": True}, LMServerError),
    "row 68 cut off": ({**answer({"content": "Hi"}), "done": False}, LMTransportError),
    "row 80 html": ("<html>hello</html>", LMServerError),
    "row 80 empty": ("", LMServerError),
    "a list": ([], LMServerError),
}  # fmt: skip


@pytest.mark.parametrize(("wire", "kind"), INSIDE.values(), ids=INSIDE)
def test_failures_inside_a_success(wire: JsonValue, kind: type[LMError]) -> None:
    with pytest.raises(LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == 200
    assert caught.value.message


# --- properties -------------------------------------------------------------------------------------------------------

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
names = st.text(min_size=1, max_size=70)
wild_text = st.text(st.characters(), max_size=12)  # lone surrogates included
calls = st.builds(
    ToolCall.read, st.text(max_size=5), names, objects | st.text(max_size=9), provider_data=st.none() | objects
)
results = st.builds(ToolResult, st.text(max_size=5), names, wild_text | json_values, st.booleans())
media = st.one_of(
    st.builds(ImagePart, st.none() | st.text(), st.none() | st.text(), st.none() | st.just("image/png")),
    st.builds(AudioPart, st.text(), st.sampled_from(["wav", "flac"])),
    st.builds(FilePart, st.none() | st.text(), st.none() | st.text(), media_type=st.sampled_from(["text/plain", None])),
)
families = st.sampled_from(["ollama", "deepseek", None])
parts_of = {
    "system": st.builds(TextPart, wild_text),
    "user": st.builds(TextPart, wild_text) | media,
    "assistant": st.builds(TextPart, wild_text) | calls | st.builds(ThinkingPart, st.text(), provider=families),
    "tool": results,
}
messages = st.sampled_from(sorted(parts_of)).flatmap(
    lambda role: st.builds(Message, st.just(role), st.lists(parts_of[role], max_size=3).map(tuple))
)
tools_offered = st.lists(names, max_size=3, unique=True).map(
    lambda names: tuple({"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names)
)
options = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "n": st.integers(1, 3),
        "reasoning": st.sampled_from(["off", "high", "max", {"budget": 7}]),
        "service_tier": st.just("flex"),
        "seed": st.integers(),
        "extra_body": objects,
    },
)
requests = st.builds(
    Request,
    st.lists(messages, max_size=5).map(tuple),
    tools_offered,
    st.sampled_from([None, ToolChoice.AUTO, ToolChoice.REQUIRED, ToolChoice.NONE]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, ResponseFormat(), ResponseFormat(SCHEMA, "x y")]),
    options,
)


def attempt(request: Request) -> Encoded | str:
    """What would be sent, or why nothing can be."""
    try:
        return ollama.encode(request, target())
    except CallerError as error:
        return str(error)


@given(requests)
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request) -> None:
    sent = attempt(request)
    if isinstance(sent, str):
        refused = ("no place for", "no option 'service_tier'", "An image needs", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)


@given(requests)
def test_every_call_is_answered_at_once_and_in_order(request: Request) -> None:
    sent = attempt(replace(request, options={}))
    if isinstance(sent, str):
        return
    written = sent.body["messages"]
    assert isinstance(written, list)
    waiting: list[tuple[JsonValue, JsonValue]] = []
    for message in written:
        assert isinstance(message, dict)
        if message["role"] == "tool":
            assert (message.get("tool_call_id"), message["tool_name"]) == waiting.pop(0)
            continue
        assert waiting == []
        found: Any = message.get("tool_calls", ())
        waiting = [(call.get("id"), call["function"]["name"]) for call in found]
    assert waiting == []


@given(requests)
def test_what_was_written_is_read_and_written_the_same(request: Request) -> None:
    sent = attempt(replace(request, options={}, response_format=None, tools=()))
    if not isinstance(sent, str):
        assert ollama.encode(ollama.read_request(sent.body), target()).body == sent.body


texts = st.text(max_size=12)
wire_ids = st.sampled_from([{}, {"id": "call_{n}xyz"}, {"id": "call_{n}2345678"}])
wire_calls = st.lists(
    st.builds(
        lambda name, arguments, call_id: {**call_id, "function": {"name": name, "arguments": arguments}},
        st.text("abc_.", min_size=1, max_size=8),
        objects,
        wire_ids,
    ),
    max_size=3,
).map(
    lambda calls: [
        {**call, **({"id": call["id"].replace("{n}", str(number))} if "id" in call else {})}
        for number, call in enumerate(calls)
    ]
)
turns = st.builds(
    lambda text, thought, wires: {
        "role": "assistant",
        "content": text,
        **({"thinking": thought} if thought else {}),
        **({"tool_calls": wires} if wires else {}),
    },
    texts,
    texts,
    wire_calls,
)


def written_after(came: JsonObject) -> list[JsonValue]:
    """The turns that are sent when this answer is part of the history."""
    choice = decoded(answer(came)).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    written = ollama.encode(Request((ASKED, stored)), target()).body["messages"]
    assert isinstance(written, list)
    return [message for message in written if isinstance(message, dict) and message["role"] == "assistant"]


@given(turns)
def test_an_answer_put_into_history_is_sent_as_it_came(came: JsonObject) -> None:
    said_something = came != {"role": "assistant", "content": ""}
    assert written_after(came) == ([came] if said_something else [])


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    for turn in range(10):
        named: JsonObject = {"id": f"call_{turn}abcdefg"} if turn % 2 else {}
        wire: JsonObject = {
            "role": "assistant",
            "content": "t" * turn,
            "thinking": f"hm {turn}",
            "tool_calls": [{**named, "function": {"name": "f", "arguments": {"x": turn}}}],
        }
        sent = ollama.encode(Request(tuple(history)), target())
        assert sent.body["messages"] == came
        choice = ollama.decode(answer(wire), sent, target()).choices[0]
        history += [choice.message(), Message.tool(ToolResult(choice.tool_calls[0].id, "f", "ok"))]
        result_id: JsonObject = {"tool_call_id": named["id"]} if named else {}
        came += [wire, {"role": "tool", "tool_name": "f", **result_id, "content": "ok"}]
    assert len({call.id for message in history for call in message.tool_calls}) == 10
    assert ollama.read_request(body(*came)).messages == tuple(history)


# --- the official client's types as referee -----------------------------------------------------------------------------


def test_the_official_client_knows_what_is_sent() -> None:
    theirs = pytest.importorskip("ollama", reason="the ollama package is not installed")
    for messages, _ in CONVERSATIONS.values():
        sent = encoded(Request(messages)).body
        read = theirs._types.ChatRequest.model_validate(sent).model_dump(exclude_none=True)
        assert read["messages"] == sent["messages"]
    for request, *_ in OFFERS.values():
        sent = encoded(replace(request, messages=(ASKED,))).body
        read = theirs._types.ChatRequest.model_validate(sent).model_dump(exclude_none=True)
        assert read.get("tools") == sent.get("tools")
    for to, options, *_ in FIELDS.values():
        sent = encoded(Request((ASKED,), options=options), to).body
        read = theirs._types.ChatRequest.model_validate(sent)
        assert (read.think, read.logprobs) == (sent.get("think"), sent.get("logprobs"))


NOT_READ = {
    "row 53 empty arguments": "their type requires arguments",
    "row 53 arguments as text all the same": "their type takes an object only",
    "row 54 invalid arguments": "their type takes an object only",
    "row 60 cut inside a call": "their type takes an object only",
    "a picture": "their type takes no text for a picture in an answer",
}
"""Answers that the official client cannot read, each with the reason."""


def test_the_official_client_reads_the_same_answers() -> None:
    theirs = pytest.importorskip("ollama", reason="the ollama package is not installed")
    for name in REPLIES.keys() - NOT_READ.keys():
        wire = answer(*REPLIES[name][:2])
        choice, read = decoded(wire).choices[0], theirs.ChatResponse.model_validate(wire).message
        assert (read.content, read.thinking or None) == (choice.text, choice.reasoning)
        calls = [(call.function.name, dict(call.function.arguments)) for call in read.tool_calls or ()]
        assert calls == [(call.name, call.arguments) for call in choice.tool_calls]
