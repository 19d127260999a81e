"""OpenAI chat completions, row by row: whole requests and replies of OpenAI and of the hosts that differ.

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
    InputError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMUnexpectedError,
    LMUnsupportedModelError,
    UnsupportedFeature,
    UnsupportedOption,
)
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.base import Codec, Encoded, ModelFacts, Target
from sigwire.lm.codecs.dialects import (
    AZURE,
    COMPATIBLE,
    DEEPSEEK,
    DIALECTS,
    GROQ,
    LLAMACPP,
    LM_STUDIO,
    MISTRAL,
    OLLAMA_CHAT,
    OPENAI,
    OPENROUTER,
    VLLM,
    ChatDialect,
)
from tests.lm.codecs.encoding import encoded_untouched, features, openai_error, with_parts

CODEC: Codec[ChatDialect] = openai_chat
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


def target(dialect: ChatDialect = OPENAI, *, able: Capabilities = ABLE, **facts: Any) -> Target[ChatDialect]:
    return Target(dialect.family, "m", dialect, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[ChatDialect] | None = None, *, stream: bool = False) -> Encoded:
    return encoded_untouched(openai_chat, request, to or target(), stream=stream)


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "messages": list(messages), **fields}


# --- messages: what is said, and how it is written (both ways) ------------------------------------------------

PNG = ImagePart(data="iVBO", media_type="image/png")
CONVERSATIONS: dict[str, tuple[tuple[Message, ...], list[JsonObject]]] = {
    "row 6 system": ((Message.system("S"), ASKED), [{"role": "system", "content": "S"}, WIRE_ASKED]),
    "row 7 second system turn": (
        (Message.system("S"), ASKED, Message.system("T")),
        [{"role": "system", "content": "S"}, WIRE_ASKED, {"role": "system", "content": "T"}],
    ),
    "row 8 user text": ((ASKED,), [WIRE_ASKED]),
    "row 9 image url": (
        (Message("user", (TextPart("q"), ImagePart(url="https://x/a.png", detail="low"))),),
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "q"},
                    {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}},
                ],
            }
        ],
    ),
    "row 10 image base64": (
        (Message("user", (PNG,)),),
        [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}],
            }
        ],
    ),
    "row 11 audio": (
        (Message("user", (AudioPart("UklG", "wav"),)),),
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}]}],
    ),
    "row 12 pdf": (
        (Message("user", (FilePart(data="JVBE", filename="a.pdf", media_type="application/pdf"),)),),
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "file",
                        "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"},
                    }
                ],
            }
        ],
    ),
    "row 12 file by id": (
        (Message("user", (FilePart(file_id="file-1"),)),),
        [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}],
    ),
    "row 13 assistant text and call": (
        (ASKED, Message.assistant("t", [CALL]), Message.tool(ToolResult("c1", "f", "ok"))),
        [
            WIRE_ASKED,
            {"role": "assistant", "content": "t", "tool_calls": [WIRE_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
    ),
    "row 14 call without text, row 15 arguments are a string, row 17 one result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "ok"))),
        [WIRE_ASKED, ASSISTANT, {"role": "tool", "tool_call_id": "c1", "content": "ok"}],
    ),
    "row 18 two results, row 19 error result": (
        (
            ASKED,
            Message.assistant(tool_calls=[CALL, SECOND]),
            Message.tool(ToolResult("c1", "f", "ok"), ToolResult("c2", "f", "boom", is_error=True)),
        ),
        [
            WIRE_ASKED,
            {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL, WIRE_SECOND]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "tool", "tool_call_id": "c2", "content": "ERROR: boom"},
        ],
    ),
    "row 20 empty result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", ""))),
        [WIRE_ASKED, ASSISTANT, {"role": "tool", "tool_call_id": "c1", "content": ""}],
    ),
    "row 23 user text after results": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "ok")), Message.user("and?")),
        [
            WIRE_ASKED,
            ASSISTANT,
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "user", "content": "and?"},
        ],
    ),
}


@pytest.mark.parametrize(("messages", "wire"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_messages_are_written_and_read_back(messages: tuple[Message, ...], wire: list[JsonObject]) -> None:
    sent = encoded(Request(messages))
    assert sent.body == body(*wire)
    assert sent.warnings == ()
    assert openai_chat.read_request(sent.body).messages == messages


def one_way(*messages: Message, to: Target[ChatDialect] | None = None) -> tuple[JsonValue, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["messages"], features(sent.warnings)


def test_row_7_strict_hosts_get_one_system_turn_first() -> None:
    asked = (Message.system("S"), ASKED, Message.system("T"))
    wire, warned = one_way(*asked, to=target(VLLM))
    assert wire == [{"role": "system", "content": "S\n\nT"}, WIRE_ASKED]
    assert warned == ["system"]


def test_row_10_a_host_that_would_lose_an_image_refuses_it() -> None:
    with pytest.raises(UnsupportedFeature, match="deepseek/m has no place for image input"):
        encoded(Request((Message("user", (PNG,)),)), target(DEEPSEEK))


def test_row_11_audio_that_is_neither_wav_nor_mp3_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="'flac'"):
        encoded(Request((Message("user", (AudioPart("x", "flac"),)),)))


def test_row_12_a_document_by_url_is_refused_and_a_text_document_is_sent_as_text() -> None:
    with pytest.raises(UnsupportedFeature, match="document by URL"):
        encoded(Request((Message("user", (FilePart(url="https://x/a.pdf"),)),)))
    note = FilePart(data="aGk=", filename="a.txt", media_type="text/plain")
    wire, _ = one_way(Message("user", (note,)), to=target(DEEPSEEK))
    assert wire == [{"role": "user", "content": [{"type": "text", "text": "a.txt:\nhi"}]}]


THOUGHT = ThinkingPart("hm", provider="deepseek")
DETAILS: JsonObject = {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "S"}]}
REPLAYS: dict[str, tuple[ChatDialect, tuple[Part, ...], JsonObject]] = {
    "row 16 openai takes none": (
        OPENAI,
        (replace(THOUGHT, provider="openai-chat"), TextPart("a")),
        {"role": "assistant", "content": "a"},
    ),
    "row 16 deepseek reasoning_content": (
        DEEPSEEK,
        (THOUGHT, CALL),
        {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL], "reasoning_content": "hm"},
    ),
    "row 16 openrouter reasoning_details": (
        OPENROUTER,
        (ThinkingPart("hm", provider="openrouter"), OpaquePart("openrouter", DETAILS), TextPart("a")),
        {"role": "assistant", "content": "a", **DETAILS},
    ),
    "row 16 details stand for the reasoning text": (
        replace(OPENROUTER, replay="reasoning"),
        (ThinkingPart("hm", provider="openrouter"), OpaquePart("openrouter", DETAILS), TextPart("a")),
        {"role": "assistant", "content": "a", **DETAILS},
    ),
    "row 16 reasoning where the host takes it back": (
        OLLAMA_CHAT,
        (ThinkingPart("hm", provider="ollama-chat-completions"), TextPart("a")),
        {"role": "assistant", "content": "a", "reasoning": "hm"},
    ),
    "row 16 mistral thinking chunk": (
        MISTRAL,
        (ThinkingPart("hm", signature="S", provider="mistral"), TextPart("a")),
        {
            "role": "assistant",
            "content": [
                {
                    "type": "thinking",
                    "thinking": [{"type": "text", "text": "hm"}],
                    "signature": "S",
                    "closed": True,
                },
                {"type": "text", "text": "a"},
            ],
        },
    ),
    "row 82 another provider's thinking is dropped": (
        DEEPSEEK,
        (ThinkingPart("hm", signature="S", provider="anthropic"), TextPart("a")),
        {"role": "assistant", "content": "a"},
    ),
    "a call's extra content goes back": (
        OPENAI,
        (replace(CALL, provider_data={"openai-chat": {"extra_content": {"google": {"thought_signature": "S"}}}}),),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**WIRE_CALL, "extra_content": {"google": {"thought_signature": "S"}}}],
        },
    ),
    "row 82 another provider's signature is dropped, its id kept": (
        OPENAI,
        (replace(CALL, provider_data={"gemini": {"thoughtSignature": "S"}}),),
        {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL]},
    ),
}


@pytest.mark.parametrize(("dialect", "parts", "wire"), REPLAYS.values(), ids=REPLAYS)
def test_what_an_assistant_turn_sends_back(dialect: ChatDialect, parts: tuple[Part, ...], wire: JsonObject) -> None:
    sent = encoded(Request((ASKED, Message("assistant", parts))), target(dialect))
    messages = sent.body["messages"]
    assert isinstance(messages, list)
    written = messages[1]
    assert written == wire


def test_row_21_an_image_in_a_result_follows_all_results_in_a_user_turn() -> None:
    results = Message.tool(ToolResult("c1", "f", "see", media=(PNG,)), ToolResult("c2", "f", "ok"))
    wire, warned = one_way(ASKED, Message.assistant(tool_calls=[CALL, SECOND]), results)
    assert wire == [
        WIRE_ASKED,
        {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL, WIRE_SECOND]},
        {"role": "tool", "tool_call_id": "c1", "content": "see\n[image attached below]"},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]},
    ]
    assert warned == ["result_media"]


def test_row_22_an_unanswered_call_gets_an_error_result() -> None:
    wire, warned = one_way(ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind"))
    assert wire == [
        WIRE_ASKED,
        ASSISTANT,
        {"role": "tool", "tool_call_id": "c1", "content": "ERROR: tool was not executed"},
        {"role": "user", "content": "never mind"},
    ]
    assert warned == ["tool_results"]


def test_a_result_that_is_json_is_sent_as_compact_text() -> None:
    wire, _ = one_way(ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", {"é": [1]})))
    assert isinstance(wire, list)
    assert wire[2] == {"role": "tool", "tool_call_id": "c1", "content": '{"é":[1]}'}


def test_mistral_gets_ids_of_nine_characters_the_same_for_call_and_result() -> None:
    asked = (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "ok")))
    wire, _ = one_way(*asked, to=target(MISTRAL))
    assert isinstance(wire, list)
    call, result = wire[1], wire[2]
    assert isinstance(call, dict)
    assert isinstance(result, dict)
    call_id = result["tool_call_id"]
    assert isinstance(call_id, str)
    assert call_id.isalnum()
    assert len(call_id) == 9
    assert call["tool_calls"] == [{**WIRE_CALL, "id": call_id}]
    assert one_way(*asked, to=target(MISTRAL))[0] == wire


def test_broken_arguments_go_back_as_they_were_or_wrapped_where_a_template_would_fail() -> None:
    asked = (ASKED, Message.assistant(tool_calls=[ToolCall.read("c1", "f", '{"x": ')]))
    for dialect, arguments in ((OPENAI, '{"x": '), (VLLM, '{"invalid_arguments":"{\\"x\\": "}')):
        wire, _ = one_way(*asked, to=target(dialect))
        assert isinstance(wire, list)
        function = {"name": "f", "arguments": arguments}
        assert wire[1] == {**ASSISTANT, "tool_calls": [{**WIRE_CALL, "function": function}]}


def test_a_turn_in_which_nothing_was_said_is_not_sent() -> None:
    wire, _ = one_way(ASKED, Message("assistant", (ThinkingPart("hm"),)), Message.user("r"))
    assert wire == [WIRE_ASKED, {"role": "user", "content": "r"}]


# --- tools ------------------------------------------------------------------------------------------------------

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
NOTHING: JsonObject = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}},
}
FORCED: JsonObject = {"type": "function", "function": {"name": "f"}}
ALLOWED = ToolChoice("required", ("f", "g"))
ALLOWED_WIRE: JsonObject = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "required", "tools": [FORCED, {"type": "function", "function": {"name": "g"}}]},
}
THIRD: JsonObject = {"type": "function", "function": {"name": "h", "description": "i", "parameters": SCHEMA}}
OFFERS: dict[str, tuple[Target[ChatDialect], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL,)), {"tools": [TOOL]}, []),
    "row 25 no-argument tool": (target(), Request(tools=(NOTHING,)), {"tools": [NOTHING]}, []),
    "row 25 tool without parameters": (target(), Request(tools=(NO_PARAMETERS,)), {"tools": [NO_PARAMETERS]}, []),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {"tools": [TOOL], "tool_choice": "auto"},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL], "tool_choice": "required"},
        [],
    ),
    "row 28 required on mistral": (
        target(MISTRAL),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL], "tool_choice": "any"},
        [],
    ),
    "row 28 required where thinking forbids it": (
        target(DEEPSEEK, default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [TOOL, OTHER], "tool_choice": FORCED},
        [],
    ),
    "row 29 named where it cannot be forced": (
        target(OLLAMA_CHAT),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {"tools": [TOOL], "tool_choice": "none"},
        [],
    ),
    "row 30 none on mistral": (target(MISTRAL), Request(tools=(TOOL,), tool_choice=ToolChoice.NONE), {}, []),
    "row 30 none on LM Studio": (target(LM_STUDIO), Request(tools=(TOOL,), tool_choice=ToolChoice.NONE), {}, []),
    "row 31 allowed list": (
        target(),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [TOOL, OTHER, THIRD], "tool_choice": ALLOWED_WIRE},
        [],
    ),
    "row 31 allowed list on a compatible host": (
        target(COMPATIBLE),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [TOOL, OTHER], "tool_choice": "required"},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [TOOL], "parallel_tool_calls": False},
        [],
    ),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
    "llama.cpp has to be told of parallel calls": (
        target(LLAMACPP),
        Request(tools=(TOOL,)),
        {"tools": [TOOL], "parallel_tool_calls": True},
        [],
    ),
}


@pytest.mark.parametrize(("to", "request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choices(to: Target[ChatDialect], request_: Request, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


@pytest.mark.parametrize("name", [name for name, case in OFFERS.items() if case[0].dialect is OPENAI and case[2]])
def test_tools_and_choices_are_read_back(name: str) -> None:
    _, request, fields, _ = OFFERS[name]
    assert openai_chat.read_request(body(WIRE_ASKED, **fields)) == replace(request, messages=(ASKED,))


def test_row_26_a_name_the_wire_forbids_is_mapped_and_mapped_back() -> None:
    name = "shop.orders/" + "x" * 80
    tool: JsonObject = {"type": "function", "function": {"name": name, "description": "", "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert len(wire) <= 64
    assert sent.body["tools"] == [{"type": "function", "function": {"name": wire, "parameters": SCHEMA}}]
    assert sent.body["tool_choice"] == {"type": "function", "function": {"name": wire}}
    reply = answer({"tool_calls": [{"id": "c1", "function": {"name": wire, "arguments": "{}"}}]})
    assert openai_chat.decode(reply, sent, target()).choices[0].tool_calls[0].name == name


def test_row_49_web_search_is_refused_with_where_to_find_it() -> None:
    search: JsonObject = {"type": "web_search", "web_search": {}}
    with pytest.raises(UnsupportedFeature, match=r"openai-chat/m has no place for built-in tools.*Responses API"):
        encoded(Request((ASKED,), (search,)))


def test_the_callers_schema_is_sent_as_it_is() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"const": 1}}}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
    assert encoded(Request((ASKED,), (tool,))).body["tools"] == [tool]


# --- output and sampling --------------------------------------------------------------------------------------------

FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}}
IN_WORDS = (
    "Answer with one JSON value and nothing else. It must fit this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)
LOGPROBS: JsonObject = {"logprobs": True, "top_logprobs": 3}
FIELDS: dict[str, tuple[Target[ChatDialect], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"max_completion_tokens": 50}, []),
    "row 38 max tokens on a compatible host": (target(COMPATIBLE), {"max_tokens": 50}, {"max_tokens": 50}, []),
    "row 38 max tokens on groq": (target(GROQ), {"max_tokens": 50}, {"max_completion_tokens": 50}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_p": 0.5}, {"temperature": 0.0, "top_p": 0.5}, []),
    "row 40 temperature on a model that reasons": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {"temperature": 0.0},
        {},
        ["temperature"],
    ),
    "row 40 temperature with reasoning switched off": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {"temperature": 0.0, "reasoning": "off"},
        {"reasoning_effort": "none", "temperature": 0.0},
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {"stop": ["a", "b"]}, []),
    "row 41 stop on a model that reasons": (target(stop=False), {"stop": "a"}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, {"seed": 7}, []),
    "row 42 seed on mistral": (target(MISTRAL), {"seed": 7}, {"random_seed": 7}, []),
    "row 43 two choices": (target(), {"n": 2}, {"n": 2}, []),
    "row 43 two choices on groq": (target(GROQ), {"n": 2}, {}, ["n"]),
    "row 43 one choice on groq": (target(GROQ), {"n": 1}, {"n": 1}, []),
    "row 44 logprobs": (target(), LOGPROBS, LOGPROBS, []),
    "row 45 effort": (target(), {"reasoning": "high"}, {"reasoning_effort": "high"}, []),
    "row 45 effort the model does not have": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "max"},
        {"reasoning_effort": "high"},
        ["reasoning"],
    ),
    "row 45 effort on deepseek": (
        target(DEEPSEEK),
        {"reasoning": "medium"},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ["reasoning"],
    ),
    "row 45 effort on openrouter": (target(OPENROUTER), {"reasoning": "low"}, {"reasoning": {"effort": "low"}}, []),
    "row 46 budget": (target(), {"reasoning": {"budget": 2000}}, {"reasoning_effort": "low"}, ["reasoning"]),
    "row 46 budget on openrouter": (
        target(OPENROUTER),
        {"reasoning": {"budget": 2000}},
        {"reasoning": {"max_tokens": 2000}},
        [],
    ),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"reasoning_effort": "none"}, []),
    "row 47 reasoning off where it cannot be": (
        target(efforts=("low", "high"), default_effort="high"),
        {"reasoning": "off"},
        {"reasoning_effort": "low"},
        ["reasoning"],
    ),
    "row 47 reasoning off on deepseek": (
        target(DEEPSEEK),
        {"reasoning": "off"},
        {"thinking": {"type": "disabled"}},
        [],
    ),
    "row 47 reasoning off on openrouter": (
        target(OPENROUTER),
        {"reasoning": "off"},
        {"reasoning": {"enabled": False}},
        [],
    ),
    "row 47 reasoning off on vllm": (
        target(VLLM),
        {"reasoning": "off"},
        {"chat_template_kwargs": {"enable_thinking": False}},
        [],
    ),
    "row 47 reasoning off on a model that does not reason": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 caching is automatic": (target(), {"cache": True}, {}, []),
    "row 48 a cache key": (target(), {"cache": {"key": "k"}}, {"prompt_cache_key": "k"}, []),
    "row 50 extra body": (
        target(),
        {"temperature": 1.0, "extra_body": {"temperature": 0.5, "verbosity": "low"}},
        {"temperature": 0.5, "verbosity": "low"},
        [],
    ),
    "the rest": (
        target(),
        {"presence_penalty": 1, "frequency_penalty": 2, "user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        {"presence_penalty": 1, "frequency_penalty": 2, "user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        [],
    ),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options(to: Target[ChatDialect], options: JsonObject, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


def test_row_43_a_host_with_one_choice_at_a_time_is_asked_twice() -> None:
    assert encoded(Request((ASKED,), options={"n": 2}), target(GROQ)).repeat == 2
    assert encoded(Request((ASKED,), options={"n": 2})).repeat == 1


@pytest.mark.parametrize(
    ("to", "options", "named"),
    [
        pytest.param(target(GROQ), {"logprobs": True}, "logprobs", id="row 44 logprobs on groq"),
        pytest.param(target(), {"top_k": 5}, "top_k", id="an option this wire has no place for"),
        pytest.param(target(), {"temprature": 5}, "temprature", id="a misspelt option"),
    ],
)
def test_an_option_without_a_place_is_refused(to: Target[ChatDialect], options: JsonObject, named: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {named!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options=options), to)
    assert caught.value.option == named


def test_row_45_tools_and_reasoning_that_exclude_each_other_switch_reasoning_off_or_fail() -> None:
    request = Request((ASKED,), (TOOL,), options={"reasoning": "high"})
    sent = encoded(request, target(tools_with_reasoning=False, default_effort="medium"))
    assert sent.body == body(WIRE_ASKED, tools=[TOOL], reasoning_effort="none")
    assert features(sent.warnings) == ["reasoning"]
    quiet = encoded(replace(request, options={}), target(tools_with_reasoning=False))
    assert quiet.body == body(WIRE_ASKED, tools=[TOOL])
    with pytest.raises(UnsupportedFeature, match="Responses API takes both"):
        encoded(request, target(tools_with_reasoning=False, default_effort="high", efforts=("low", "high")))


def test_row_48_a_model_with_cache_marks_gets_one_after_the_system_text() -> None:
    request = Request((Message.system("S"), ASKED), options={"cache": True})
    text: JsonObject = {"type": "text", "text": "S"}
    marked: JsonObject = {**text, "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert encoded(request, target(cache_breakpoints=True)).body == body(
        {"role": "system", "content": [marked]}, WIRE_ASKED, prompt_cache_options={"mode": "explicit"}
    )
    marked = {**text, "cache_control": {"type": "ephemeral"}}
    assert encoded(request, target(OPENROUTER, cache_breakpoints=True)).body == body(
        {"role": "system", "content": [marked]}, WIRE_ASKED
    )


@pytest.mark.parametrize("asked", ["hard", {"budget": "x"}, {"budget": True}, 3, {"effort": "low"}])
def test_reasoning_that_cannot_be_is_an_input_error(asked: JsonValue) -> None:
    with pytest.raises(InputError, match="reasoning must be one of off, minimal"):
        encoded(Request((ASKED,), options={"reasoning": asked}))


def test_row_34_structured_output_and_row_35_its_name() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, response_format=FORMAT)
    assert openai_chat.read_request(sent.body) == request
    named = encoded(replace(request, response_format=ResponseFormat(SCHEMA, "my answer"))).body["response_format"]
    assert named == {"type": "json_schema", "json_schema": {"name": "my_answer", "schema": SCHEMA}}


def test_structured_output_that_is_no_object_is_refused_before_it_is_sent() -> None:
    with pytest.raises(UnsupportedFeature, match=r"schema of the output 'response'.*the root must be an object"):
        encoded(Request((ASKED,), response_format=ResponseFormat({"type": "array"})))


def test_any_object_is_asked_for_without_a_schema() -> None:
    request = Request((ASKED,), response_format=ResponseFormat())
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, response_format={"type": "json_object"})
    assert openai_chat.read_request(sent.body) == request


@pytest.mark.parametrize(
    ("to", "fields"),
    [
        pytest.param(target(DEEPSEEK), {"response_format": {"type": "json_object"}}, id="row 36 deepseek"),
        pytest.param(
            target(GROQ, able=Capabilities(json_object=True)),
            {"response_format": {"type": "json_object"}},
            id="row 36 a groq model without schemas",
        ),
        pytest.param(target(able=Capabilities()), {}, id="row 36 a model without any"),
    ],
)
def test_structured_output_that_is_missing_is_asked_for_in_words(to: Target[ChatDialect], fields: JsonObject) -> None:
    sent = encoded(Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA)), to)
    assert sent.body == body({"role": "system", "content": f"S\n\n{IN_WORDS}"}, WIRE_ASKED, **fields)
    assert features(sent.warnings) == ["response_format"]
    alone = encoded(Request((ASKED,), response_format=ResponseFormat(SCHEMA)), to)
    assert alone.body == body({"role": "system", "content": IN_WORDS}, WIRE_ASKED, **fields)


def test_row_37_structured_output_and_tools_go_together_where_they_can() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    assert encoded(request).body == body(WIRE_ASKED, tools=[TOOL], response_format=FORMAT)
    apart = encoded(request, target(GROQ, able=Capabilities(json_schema=True)))
    assert apart.body == body({"role": "system", "content": IN_WORDS}, WIRE_ASKED, tools=[TOOL])
    assert features(apart.warnings) == ["response_format"]


def test_row_1_the_path_is_under_a_base_that_ends_in_v1() -> None:
    assert encoded(Request((ASKED,))).path == "/chat/completions"
    assert encoded(Request((ASKED,)), target(AZURE)).path == "/openai/deployments/m/chat/completions"


def test_row_64_a_stream_asks_for_usage_where_the_host_has_it() -> None:
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, **usage)
    assert encoded(Request((ASKED,)), target(MISTRAL), stream=True).body == body(WIRE_ASKED, stream=True)


# --- replies ----------------------------------------------------------------------------------------------------------

USAGE: JsonObject = {
    "prompt_tokens": 10,
    "completion_tokens": 7,
    "total_tokens": 17,
    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
USED = Usage(10, 7, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2)


def answer(message: JsonObject, finish_reason: JsonValue = "stop", **fields: JsonValue) -> JsonObject:
    choice: JsonObject = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {"id": "r1", "model": "m-1", "choices": [choice], "usage": USAGE, **fields}


def decoded(wire: JsonValue, to: Target[ChatDialect] | None = None, *history: Message) -> Response:
    before = copy.deepcopy(wire)
    response = openai_chat.decode(wire, encoded(Request((ASKED, *history)), to), to or target())
    assert wire == before
    return response


def thinking(family: str, text: str = "hm", signature: str | None = None) -> ThinkingPart:
    return ThinkingPart(text, signature=signature, provider=family)


CITED: JsonObject = {"url": "https://x", "title": "X", "start_index": 0, "end_index": 4}
BROKEN = CallError("malformed_json", "The arguments are not valid JSON: Expecting value: line 1 column 7 (char 6)")
REPLIES: dict[str, tuple[ChatDialect, JsonObject, JsonValue, Choice]] = {
    "row 51 text": (OPENAI, {"content": "Hi"}, "stop", Choice("Hi")),
    "row 52 call id, row 55 two parallel calls": (
        OPENAI,
        {"content": None, "tool_calls": [WIRE_CALL, WIRE_SECOND]},
        "tool_calls",
        Choice(
            tool_calls=(CALL, SECOND),
            finish_reason="tool_calls",
        ),
    ),
    "row 52 no call id": (
        OPENAI,
        {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("call_0", "f", {}, "{}"),), finish_reason="tool_calls"),
    ),
    "row 52 the id null on mistral": (
        MISTRAL,
        {"tool_calls": [{"id": "null", "function": {"name": "f", "arguments": {"x": 1}}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("call_0", "f", {"x": 1}),), finish_reason="tool_calls"),
    ),
    "row 53 empty arguments": (
        OPENAI,
        {"tool_calls": [{"id": n, "function": {"name": "f", "arguments": a}} for n, a in (("a", ""), ("b", None))]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("a", "f", {}, ""), ToolCall("b", "f", {})), finish_reason="tool_calls"),
    ),
    "row 54 invalid arguments": (
        OPENAI,
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x": '}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("a", "f", None, '{"x": ', BROKEN),), finish_reason="tool_calls"),
    ),
    "row 56 reasoning_content": (
        DEEPSEEK,
        {"reasoning_content": "hm", "content": "Hi"},
        "stop",
        with_parts(thinking("deepseek"), TextPart("Hi")),
    ),
    "row 56 reasoning": (
        VLLM,
        {"reasoning": "hm", "content": "Hi"},
        "stop",
        with_parts(thinking("vllm"), TextPart("Hi")),
    ),
    "row 56 reasoning_details": (
        OPENROUTER,
        {**DETAILS, "reasoning": None, "content": "Hi"},
        "stop",
        with_parts(thinking("openrouter"), OpaquePart("openrouter", DETAILS), TextPart("Hi")),
    ),
    "row 56 thinking chunks": (
        MISTRAL,
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "S"},
                {"type": "text", "text": "Hi"},
            ]
        },
        "stop",
        with_parts(thinking("mistral", signature="S"), TextPart("Hi")),
    ),
    "row 56 think tags": (
        LLAMACPP,
        {"content": "<think>\nhm\n</think>\n\nHi"},
        "stop",
        with_parts(thinking("llamacpp"), TextPart("Hi")),
    ),
    "row 56 think tags stay text where thinking has a field": (
        OPENAI,
        {"content": "<think>hm</think>Hi"},
        "stop",
        Choice("<think>hm</think>Hi"),
    ),
    "row 57 refusal": (
        OPENAI,
        {"content": None, "refusal": "No."},
        "stop",
        Choice(refusal="No.", finish_reason="content_filter"),
    ),
    "row 58 citations": (
        OPENAI,
        {"content": "Hi", "annotations": [{"type": "url_citation", "url_citation": CITED}]},
        "stop",
        Choice("Hi", citations=({"type": "url_citation", **CITED},)),
    ),
    "row 59 calls but reason stop": (
        OPENAI,
        {"tool_calls": [WIRE_CALL]},
        "stop",
        Choice(tool_calls=(CALL,), finish_reason="tool_calls"),
    ),
    "row 60 cut inside a call": (
        OPENAI,
        {"tool_calls": [WIRE_CALL, {"id": "c2", "function": {"name": "f", "arguments": '{"x'}}]},
        "length",
        Choice(tool_calls=(CALL,), finish_reason="length"),
    ),
    "row 61 nothing": (OPENAI, {"content": None}, "stop", Choice()),
    "the form before tool_calls": (
        OPENAI,
        {"content": None, "function_call": {"name": "f", "arguments": "{}"}},
        "function_call",
        Choice(tool_calls=(ToolCall("call_0", "f", {}, "{}"),), finish_reason="tool_calls"),
    ),
    "extra content of a call is kept": (
        OPENAI,
        {"tool_calls": [{**WIRE_CALL, "extra_content": {"a": 1}}]},
        "tool_calls",
        Choice(
            tool_calls=(replace(CALL, provider_data={"openai-chat": {"extra_content": {"a": 1}}}),),
            finish_reason="tool_calls",
        ),
    ),
    "spoken output": (
        OPENAI,
        {"content": None, "audio": {"id": "a1", "data": "UklG", "transcript": "Hi"}},
        "stop",
        with_parts(AudioPart("UklG"), OpaquePart("openai-chat", {"audio": {"id": "a1"}}), TextPart("Hi")),
    ),
}


@pytest.mark.parametrize(("dialect", "message", "reason", "choice"), REPLIES.values(), ids=REPLIES)
def test_replies(dialect: ChatDialect, message: JsonObject, reason: JsonValue, choice: Choice) -> None:
    wire = answer(message, reason)
    response = decoded(wire, target(dialect))
    choices = wire["choices"]
    assert isinstance(choices, list)
    raw = choices[0]
    assert response == Response((replace(choice, raw=raw),), USED, "m-1", "r1", response.warnings, raw=wire)
    lost = {"row 60 cut inside a call": ["tool_calls"], "row 61 nothing": ["content"]}
    name = next(name for name, case in REPLIES.items() if case[1] is message)
    assert features(response.warnings) == lost.get(name, [])


FINISHES = {
    ("stop", "t"): "stop",
    ("eos", "t"): "stop",
    ("length", "t"): "length",
    ("model_length", "t"): "length",
    ("content_filter", "t"): "content_filter",
    ("error", "t"): "error",
    ("insufficient_system_resource", ""): "error",
    ("tool_calls", "t"): "stop",
    ("tool_calls", ""): "error",
    (None, "t"): "stop",
    (None, ""): "error",
    ("", "t"): "stop",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "ours"), FINISHES.items(), ids=map(str, FINISHES))
def test_finish_reasons(wire: tuple[JsonValue, str], ours: str) -> None:
    reason, text = wire
    assert decoded(answer({"content": text}, reason)).choices[0].finish_reason == ours


def test_an_invented_id_does_not_repeat_one_of_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    wire = answer({"tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "f"}}]})
    calls = decoded(wire, None, *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_row_43_two_choices_come_in_the_order_of_their_index() -> None:
    first: JsonObject = {"index": 1, "message": {"content": "b"}, "finish_reason": "stop"}
    second: JsonObject = {"index": 0, "message": {"content": "a"}, "finish_reason": "length"}
    response = decoded({"choices": [first, second]})
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("a", "length"), ("b", "stop")]
    assert response.usage == Usage()


def test_row_44_logprobs_are_kept() -> None:
    logprobs: JsonObject = {"content": [{"token": "Hi", "logprob": -0.5, "top_logprobs": []}]}
    choice: JsonObject = {"message": {"content": "Hi"}, "finish_reason": "stop", "logprobs": logprobs}
    assert decoded({"choices": [choice]}).choices[0].logprobs == logprobs


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        pytest.param(USAGE, USED, id="row 63 openai"),
        pytest.param(
            {"prompt_tokens": 3, "prompt_cache_hit_tokens": 2}, Usage(3, cached_tokens=2), id="row 63 deepseek"
        ),
        pytest.param(
            {"prompt_tokens": 3, "cost": 0.5, "prompt_tokens_details": None}, Usage(3, cost=0.5), id="row 63 openrouter"
        ),
        pytest.param(None, Usage(), id="row 63 none"),
    ],
)
def test_usage(usage: JsonValue, read: Usage) -> None:
    assert decoded({**answer({"content": "Hi"}), "usage": usage}).usage == read


def test_usage_of_groq_may_stand_in_its_own_field() -> None:
    wire = answer({"content": "Hi"}, x_groq={"usage": {"prompt_tokens": 3}})
    del wire["usage"]
    assert decoded(wire, target(GROQ)).usage == Usage(3)


def test_what_encode_warned_of_is_on_the_response() -> None:
    to = target(stop=False)
    sent = encoded(Request((ASKED,), options={"stop": "x"}), to)
    assert features(openai_chat.decode(answer({"content": "Hi"}), sent, to).warnings) == ["stop"]


# --- errors -----------------------------------------------------------------------------------------------------------


ERRORS: dict[str, tuple[int, str, type[LMError], bool]] = {
    "row 73 bad key": (401, openai_error("Incorrect API key", "invalid_api_key"), LMAuthenticationError, False),
    "row 73 forbidden": (403, openai_error("Country not supported"), LMAuthenticationError, False),
    "row 74 unknown model": (404, openai_error("No such model", "model_not_found"), LMUnsupportedModelError, False),
    "row 75 context code": (
        400,
        openai_error("Too long", "context_length_exceeded"),
        ContextWindowExceededError,
        False,
    ),
    "row 75 context text": (
        400,
        openai_error("This model's maximum context length is 8192 tokens"),
        ContextWindowExceededError,
        False,
    ),
    "row 75 context on llama.cpp": (
        400,
        openai_error("the request exceeds it", 400, "exceed_context_size_error"),
        ContextWindowExceededError,
        False,
    ),
    "row 76 rate limit": (429, openai_error("Slow", "rate_limit_exceeded"), LMRateLimitError, True),
    "row 77 overloaded": (503, openai_error("Busy", "server_is_overloaded"), LMServerError, True),
    "row 78 quota": (429, openai_error("No quota", "insufficient_quota"), LMBillingError, False),
    "row 78 quota by type": (429, openai_error("No quota", None, "insufficient_quota"), LMBillingError, False),
    "row 78 balance": (402, openai_error("Pay"), LMBillingError, False),
    "row 80 html": (502, "<html><title>502 Bad Gateway</title>...</html>", LMServerError, True),
    "row 80 empty": (500, "", LMServerError, True),
    "bad request": (400, openai_error("Bad", "unsupported_value"), LMInvalidRequestError, False),
    "validation": (422, '{"detail":[{"loc":["body","n"],"msg":"bad","type":"t"}]}', LMInvalidRequestError, False),
    "content filter": (400, openai_error("Filtered", "content_filter"), LMContentFilteredError, False),
    "timeout": (408, openai_error("Slow"), LMTimeoutError, True),
    "conflict": (409, openai_error("Busy"), LMServerError, True),
    "a call the host refused": (400, openai_error("Call", "tool_use_failed"), LMInvalidRequestError, True),
    "no status we know": (302, "", LMUnexpectedError, False),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_errors(status: int, wire: str, kind: type[LMError], retryable: bool) -> None:
    error = openai_chat.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model) == (status, "openai-chat", "m")
    assert error.message


def test_row_76_the_wait_and_the_request_id_are_on_the_error() -> None:
    headers = {"Retry-After-Ms": "1500", "retry-after": "9", "x-request-id": "r9"}
    error = openai_chat.decode_error(429, headers, openai_error("Slow"), target())
    assert (error.retry_after, error.request_id) == (1.5, "r9")


INSIDE: dict[str, tuple[JsonValue, type[LMError], int]] = {
    "row 79 a code": (
        {"choices": None, "error": {"code": 429, "message": "Rate limited"}},
        LMRateLimitError,
        429,
    ),
    "row 79 a word": ({"error": {"code": "rate_limit_exceeded", "message": "Rate limited"}}, LMRateLimitError, 200),
    "row 79 beside an answer": (
        {"choices": [{"message": {"content": "Hi"}}], "error": {"code": 429, "message": "Rate limited"}},
        LMRateLimitError,
        429,
    ),
    "row 79 only text": ({"error": "overloaded"}, LMServerError, 200),
    "row 79 in the choice": (
        {"choices": [{"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "Up"}}]},
        LMServerError,
        502,
    ),
    "row 62 choices are null": ({"choices": None}, LMServerError, 200),
    "row 62 no choices": ({"choices": []}, LMServerError, 200),
    "row 80 html": ("<html>hello</html>", LMServerError, 200),
    "row 80 empty": ("", LMServerError, 200),
    "row 80 some text": ("method=POST", LMUnexpectedError, 200),
    "a list": ([], LMServerError, 200),
}


@pytest.mark.parametrize(("wire", "kind", "status"), INSIDE.values(), ids=INSIDE)
def test_failures_inside_a_success(wire: JsonValue, kind: type[LMError], status: int) -> None:
    with pytest.raises(LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == status


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
    st.builds(AudioPart, st.text(), st.sampled_from(["wav", "mp3", "flac"])),
    st.builds(FilePart, st.none() | st.text(), st.none() | st.text(), media_type=st.sampled_from(["text/plain", None])),
)
families = st.sampled_from(["openai-chat", "deepseek", "anthropic"])
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
        "top_k": st.just(3),
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


def attempt(request: Request, to: Target[ChatDialect]) -> Encoded | str:
    """What would be sent, or why nothing can be."""
    try:
        return openai_chat.encode(request, to)
    except CallerError as error:
        return str(error)


@given(requests, st.sampled_from(sorted(DIALECTS)))
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request, host: str) -> None:
    sent = attempt(request, target(DIALECTS[host]))
    if isinstance(sent, str):
        refused = ("no place for", "no option 'top_k'", "An image needs", "extra_body must", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)


def call_ids(message: dict[str, Any]) -> list[str]:
    return [call["id"] for call in message.get("tool_calls", ())]


@given(requests)
def test_every_call_is_answered_at_once_and_in_order(request: Request) -> None:
    sent = attempt(replace(request, options={}), target())
    if isinstance(sent, str):
        return
    written = sent.body["messages"]
    assert isinstance(written, list)
    waiting: list[str] = []
    seen: set[str] = set()
    for message in written:
        assert isinstance(message, dict)
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        waiting = call_ids(message)
        assert seen.isdisjoint(waiting)
        assert all(waiting)
        seen.update(waiting)
    assert waiting == []


texts = st.text(max_size=12)
arguments = objects.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))
wire_calls = st.lists(
    st.builds(
        lambda name, arguments: {"type": "function", "function": {"name": name, "arguments": arguments}},
        st.text("abc_", min_size=1, max_size=8),
        arguments,
    ),
    max_size=3,
).map(lambda calls: [{"id": f"id_{number}", **call} for number, call in enumerate(calls)])


@given(texts, texts, wire_calls, st.sampled_from([OPENAI, DEEPSEEK, OPENROUTER, MISTRAL]))
def test_an_answer_put_into_history_is_sent_as_it_came(
    text: str, thought: str, wires: list[JsonObject], dialect: ChatDialect
) -> None:
    keep_ids = replace(dialect, repair=replace(dialect.repair, ids=None))
    came: dict[str, Any] = {"role": "assistant", "content": text or None, **({"tool_calls": wires} if wires else {})}
    if thought and dialect is DEEPSEEK:
        came["reasoning_content"] = thought
    if thought and dialect is OPENROUTER:
        came["reasoning_details"] = [{"type": "reasoning.text", "text": thought}]
    to = target(keep_ids)
    choice = decoded({"choices": [{"message": came, "finish_reason": "stop"}]}, to).choices[0]
    written = openai_chat.encode(Request((ASKED, choice.message())), to).body["messages"]
    assert isinstance(written, list)
    if len(came) == 2 and not text:
        assert written == [WIRE_ASKED]  # nothing was said
    else:
        assert written[1] == {**came, "content": text or (None if wires else "")}


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    to = target(DEEPSEEK)
    for turn in range(10):
        call: JsonObject = {**WIRE_CALL, "id": f"c{turn}"}
        wire: JsonObject = {
            "role": "assistant",
            "content": None,
            "tool_calls": [call],
            "reasoning_content": f"hm {turn}",
        }
        sent = openai_chat.encode(Request(tuple(history)), to)
        assert sent.body["messages"] == came
        choice = openai_chat.decode({"choices": [{"message": wire, "finish_reason": "tool_calls"}]}, sent, to).choices[
            0
        ]
        history += [choice.message(), Message.tool(ToolResult(f"c{turn}", "f", "ok"))]
        came += [wire, {"role": "tool", "tool_call_id": f"c{turn}", "content": "ok"}]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert openai_chat.encode(Request(tuple(stored)), to).body["messages"] == came
