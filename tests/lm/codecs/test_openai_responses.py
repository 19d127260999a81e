"""OpenAI Responses, row by row: whole requests and replies of OpenAI and of the hosts that differ.

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
from sigwire.core.tools import CallError, Tool, ToolCall, ToolResult, WebSearch
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
from sigwire.lm.codecs import openai_responses
from sigwire.lm.codecs.base import Codec, Encoded, ModelFacts, Target
from sigwire.lm.codecs.openai_responses import AZURE, COMPATIBLE, DEEPSEEK, DIALECTS, OPENAI, ResponsesDialect
from tests.lm.codecs.encoding import encoded_untouched, features, openai_error, with_parts

CODEC: Codec[ResponsesDialect] = openai_responses
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


def target(dialect: ResponsesDialect = OPENAI, *, able: Capabilities = ABLE, **facts: Any) -> Target[ResponsesDialect]:
    return Target(dialect.family, "m", dialect, able, ModelFacts(**facts))


def encoded(request: Request, to: Target[ResponsesDialect] | None = None, *, stream: bool = False) -> Encoded:
    return encoded_untouched(openai_responses, request, to or target(), stream=stream)


def body(*items: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "input": list(items), "store": False, **fields}


def one_way(*messages: Message, to: Target[ResponsesDialect] | None = None) -> tuple[JsonValue, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["input"], features(sent.warnings)


# --- messages: what is said, and how it is written (both ways) ------------------------------------------------

PNG = ImagePart(data="iVBO", media_type="image/png")
WIRE_PNG: JsonObject = {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"}
PDF = FilePart(data="JVBE", filename="a.pdf", media_type="application/pdf")
WIRE_PDF: JsonObject = {"type": "input_file", "file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"}
CONVERSATIONS: dict[str, tuple[tuple[Message, ...], JsonObject]] = {
    "row 6 system": ((Message.system("S"), ASKED), body(WIRE_ASKED, instructions="S")),
    "row 7 second system turn": (
        (Message.system("S"), ASKED, Message.system("T")),
        body(WIRE_ASKED, {"role": "developer", "content": "T"}, instructions="S"),
    ),
    "row 7 second system turn right after the first": (
        (Message.system("S"), Message.system("T"), ASKED),
        body({"role": "developer", "content": "T"}, WIRE_ASKED, instructions="S"),
    ),
    "row 6 system alone is an item, for the input may not be empty": (
        (Message.system("S"),),
        body({"role": "developer", "content": "S"}),
    ),
    "row 8 user text": ((ASKED,), body(WIRE_ASKED)),
    "row 9 image url": (
        (Message("user", (TextPart("q"), ImagePart(url="https://x/a.png", detail="low"))),),
        body(
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "q"},
                    {"type": "input_image", "image_url": "https://x/a.png", "detail": "low"},
                ],
            }
        ),
    ),
    "row 9 image by id": (
        (Message("user", (ImagePart(file_id="file-1"),)),),
        body({"role": "user", "content": [{"type": "input_image", "file_id": "file-1", "detail": "auto"}]}),
    ),
    "row 10 image base64": ((Message("user", (PNG,)),), body({"role": "user", "content": [WIRE_PNG]})),
    "row 12 pdf": ((Message("user", (PDF,)),), body({"role": "user", "content": [WIRE_PDF]})),
    "row 12 pdf by url": (
        (Message("user", (FilePart(url="https://x/a.pdf"),)),),
        body({"role": "user", "content": [{"type": "input_file", "file_url": "https://x/a.pdf"}]}),
    ),
    "row 12 file by id": (
        (Message("user", (FilePart(file_id="file-1"),)),),
        body({"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}),
    ),
    "row 13 assistant text and call": (
        (ASKED, Message.assistant("t", [CALL]), ANSWERED),
        body(WIRE_ASKED, {"role": "assistant", "content": "t"}, WIRE_CALL, WIRE_OK),
    ),
    "row 14 call without text, row 15 arguments are a string, row 17 one result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), ANSWERED),
        body(WIRE_ASKED, WIRE_CALL, WIRE_OK),
    ),
    "row 16 thinking replay": (
        (
            ASKED,
            Message("assistant", (ThinkingPart("hm", provider=FAMILY), OpaquePart(FAMILY, REASONING), CALL)),
            ANSWERED,
        ),
        body(WIRE_ASKED, REASONING, WIRE_CALL, WIRE_OK),
    ),
    "row 16 a message keeps id, status and phase": (
        (ASKED, Message("assistant", (OpaquePart(FAMILY, SHELL), TextPart("Hi")))),
        body(WIRE_ASKED, WIRE_TEXT),
    ),
    "row 16 a plain message keeps its phase": (
        (
            ASKED,
            Message("assistant", (OpaquePart(FAMILY, {"role": "assistant", "phase": "commentary"}), TextPart("Hi"))),
        ),
        body(WIRE_ASKED, {"role": "assistant", "phase": "commentary", "content": "Hi"}),
    ),
    "row 16 what is not modelled goes back as it came": (
        (ASKED, Message("assistant", (OpaquePart(FAMILY, TRACE), TextPart("Hi")))),
        body(WIRE_ASKED, TRACE, {"role": "assistant", "content": "Hi"}),
    ),
    "row 18 two results, row 19 error result": (
        (
            ASKED,
            Message.assistant(tool_calls=[CALL, SECOND]),
            Message.tool(ToolResult("c1", "f", "ok"), ToolResult("c2", "f", "boom", is_error=True)),
        ),
        body(
            WIRE_ASKED,
            WIRE_CALL,
            WIRE_SECOND,
            WIRE_OK,
            {"type": "function_call_output", "call_id": "c2", "output": "ERROR: boom"},
        ),
    ),
    "row 20 empty result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", ""))),
        body(WIRE_ASKED, WIRE_CALL, {"type": "function_call_output", "call_id": "c1", "output": ""}),
    ),
    "row 21 image in a result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "see", media=(PNG, PDF)))),
        body(
            WIRE_ASKED,
            WIRE_CALL,
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": [{"type": "input_text", "text": "see"}, WIRE_PNG, WIRE_PDF],
            },
        ),
    ),
    "row 21 image alone in a result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "", media=(PNG,)))),
        body(WIRE_ASKED, WIRE_CALL, {"type": "function_call_output", "call_id": "c1", "output": [WIRE_PNG]}),
    ),
    "row 23 user text after results": (
        (ASKED, Message.assistant(tool_calls=[CALL]), ANSWERED, Message.user("and?")),
        body(WIRE_ASKED, WIRE_CALL, WIRE_OK, {"role": "user", "content": "and?"}),
    ),
    "tools that a developer adds in between": (
        (ASKED, Message("system", (OpaquePart(FAMILY, ADDED),)), ASKED),
        body(WIRE_ASKED, ADDED, WIRE_ASKED),
    ),
    "a content part that is not modelled": (
        (Message("user", (TextPart("q"), OpaquePart(FAMILY, {"type": "input_video", "id": "v"}))),),
        body({"role": "user", "content": [{"type": "input_text", "text": "q"}, {"type": "input_video", "id": "v"}]}),
    ),
}


@pytest.mark.parametrize(("messages", "wire"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_messages_are_written_and_read_back(messages: tuple[Message, ...], wire: JsonObject) -> None:
    sent = encoded(Request(messages))
    assert sent.body == wire
    assert sent.warnings == ()
    assert openai_responses.read_request(sent.body) == Request(messages)


def test_row_7_a_host_may_know_no_developer() -> None:
    wire, _ = one_way(ASKED, Message.system("T"), to=target(COMPATIBLE))
    assert wire == [WIRE_ASKED, {"role": "system", "content": "T"}]


@pytest.mark.parametrize("part", [AudioPart("UklG", "wav"), AudioPart("UklG", "mp3")])
def test_row_11_audio_is_refused(part: AudioPart) -> None:
    with pytest.raises(UnsupportedFeature, match=r"openai-responses/m has no place for audio input\. Transcribe it"):
        encoded(Request((Message("user", (part,)),)))


def test_row_12_a_text_document_is_sent_as_text_and_a_nameless_one_gets_a_name() -> None:
    note = FilePart(data="aGk=", filename="a.txt", media_type="text/plain")
    wire, _ = one_way(Message("user", (note, replace(PDF, filename=None))))
    text: JsonObject = {"type": "input_text", "text": "a.txt:\nhi"}
    assert wire == [{"role": "user", "content": [text, {**WIRE_PDF, "filename": "document.pdf"}]}]


@pytest.mark.parametrize("part", [PNG, PDF], ids=["image", "file"])
def test_a_host_that_would_lose_media_refuses_them(part: Part) -> None:
    with pytest.raises(UnsupportedFeature, match=r"deepseek-responses/m has no place for (image|file) input"):
        encoded(Request((Message("user", (part,)),)), target(DEEPSEEK))


@pytest.mark.parametrize("part", [ImagePart(), FilePart()])
def test_media_of_nothing_are_an_input_error(part: Part) -> None:
    with pytest.raises(InputError, match="needs a url, data or a file_id"):
        encoded(Request((Message("user", (part,)),)))


def test_text_after_an_item_that_looks_like_a_message_does_not_change_it() -> None:
    item: JsonObject = {"role": "user", "content": "x"}
    wire, _ = one_way(ASKED, Message("assistant", (OpaquePart(FAMILY, item), TextPart("a"), TextPart("b"))))
    assert wire == [WIRE_ASKED, item, {"role": "assistant", "content": "ab"}]


def test_media_in_an_assistant_turn_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="a ImagePart in an assistant turn"):
        encoded(Request((ASKED, Message("assistant", (PNG,)))))


ITEM: JsonObject = {"id": "fc_1", "status": "completed"}
AFTER: JsonObject = {"item": ITEM, "after": "rs_1"}
REPLAYS: dict[str, tuple[ResponsesDialect, tuple[Part, ...], list[JsonObject]]] = {
    "row 16 interleaved reasoning and calls": (
        OPENAI,
        (
            OpaquePart(FAMILY, REASONING),
            replace(CALL, provider_data={FAMILY: AFTER}),
            OpaquePart(FAMILY, {**REASONING, "id": "rs_2"}),
            replace(SECOND, provider_data={FAMILY: {"item": {"id": "fc_2"}, "after": "rs_2"}}),
        ),
        [REASONING, {**WIRE_CALL, **ITEM}, {**REASONING, "id": "rs_2"}, {**WIRE_SECOND, "id": "fc_2"}],
    ),
    "a call whose reasoning is gone goes back without its item's id": (
        OPENAI,
        (replace(CALL, provider_data={FAMILY: AFTER}),),
        [{**WIRE_CALL, "status": "completed"}],
    ),
    "a call that needed no reasoning keeps its item's id": (
        OPENAI,
        (replace(CALL, provider_data={FAMILY: {"item": ITEM}}),),
        [{**WIRE_CALL, **ITEM}],
    ),
    "reasoning that led to nothing is left out": (
        OPENAI,
        (TextPart("a"), OpaquePart(FAMILY, REASONING)),
        [{"role": "assistant", "content": "a"}],
    ),
    "row 82 calls of another provider go without an item's id": (
        OPENAI,
        (
            ThinkingPart("hm", signature="S", provider="anthropic"),
            OpaquePart("azure-responses", REASONING),
            replace(CALL, provider_data={"azure-responses": AFTER}),
        ),
        [WIRE_CALL],
    ),
    "a host that takes nothing after a call gets the calls last": (
        DEEPSEEK,
        (TextPart("a"), CALL, OpaquePart("deepseek-responses", REASONING), SECOND),
        [{"role": "assistant", "content": "a"}, REASONING, WIRE_CALL, WIRE_SECOND],
    ),
    "text that is no item's becomes one message": (
        OPENAI,
        (TextPart("a"), ThinkingPart("hm"), TextPart("b"), CALL),
        [{"role": "assistant", "content": "ab"}, WIRE_CALL],
    ),
    "more text than a message had becomes a message of its own": (
        OPENAI,
        (OpaquePart(FAMILY, SHELL), TextPart("Hi"), TextPart("more"), CALL),
        [WIRE_TEXT, {"role": "assistant", "content": "more"}, WIRE_CALL],
    ),
    "a message whose text is gone is left out": (OPENAI, (OpaquePart(FAMILY, SHELL), CALL), [WIRE_CALL]),
    "a plain message whose text is gone is left out": (
        OPENAI,
        (OpaquePart(FAMILY, {"role": "assistant", "phase": "commentary"}), CALL),
        [WIRE_CALL],
    ),
}


@pytest.mark.parametrize(("dialect", "parts", "wire"), REPLAYS.values(), ids=REPLAYS)
def test_what_an_assistant_turn_sends_back(
    dialect: ResponsesDialect, parts: tuple[Part, ...], wire: list[JsonObject]
) -> None:
    written = encoded(Request((ASKED, Message("assistant", parts))), target(dialect)).body["input"]
    assert isinstance(written, list)
    turn = [item for item in written[1:] if isinstance(item, dict) and item.get("type") != "function_call_output"]
    assert turn == wire


def test_row_21_a_model_that_takes_no_media_in_results_gets_them_in_a_user_turn() -> None:
    results = Message.tool(ToolResult("c1", "f", "see", media=(PNG,)))
    wire, warned = one_way(ASKED, Message.assistant(tool_calls=[CALL]), results, to=target(media_in_results=False))
    assert wire == [
        WIRE_ASKED,
        WIRE_CALL,
        {**WIRE_OK, "output": "see\n[image attached below]"},
        {"role": "user", "content": [WIRE_PNG]},
    ]
    assert warned == ["result_media"]


def test_row_22_an_unanswered_call_gets_an_error_result() -> None:
    wire, warned = one_way(ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind"))
    assert wire == [
        WIRE_ASKED,
        WIRE_CALL,
        {**WIRE_OK, "output": "ERROR: tool was not executed"},
        {"role": "user", "content": "never mind"},
    ]
    assert warned == ["tool_results"]


def test_a_result_that_is_json_is_sent_as_compact_text() -> None:
    wire, _ = one_way(ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", {"é": [1]})))
    assert wire == [WIRE_ASKED, WIRE_CALL, {**WIRE_OK, "output": '{"é":[1]}'}]


def test_broken_arguments_go_back_as_they_were() -> None:
    wire, _ = one_way(ASKED, Message.assistant(tool_calls=[ToolCall.read("c1", "f", '{"x": ')]), ANSWERED)
    assert wire == [WIRE_ASKED, {**WIRE_CALL, "arguments": '{"x": '}, WIRE_OK]


def test_a_turn_in_which_nothing_was_said_is_not_sent() -> None:
    wire, _ = one_way(ASKED, Message("assistant", (ThinkingPart("hm"),)), Message.user("r"))
    assert wire == [WIRE_ASKED, {"role": "user", "content": "r"}]


@pytest.mark.parametrize("name", ["previous_response_id", "conversation"])
def test_a_result_is_kept_where_the_provider_has_its_call(name: str) -> None:
    request = Request((Message.tool(ToolResult("c1", "", "boom", is_error=True)),), options={"extra_body": {name: "r"}})
    sent = encoded(request)
    assert sent.body == body({**WIRE_OK, "output": "ERROR: boom"}, **{name: "r"})
    assert sent.warnings == ()
    assert openai_responses.read_request(sent.body) == request
    alone = encoded(replace(request, options={}))
    assert (alone.body, features(alone.warnings)) == (body(), ["tool_results"])


def test_results_of_calls_here_and_there_are_both_kept() -> None:
    results = Message.tool(ToolResult("c0", "", "far"), ToolResult("c1", "f", "ok"))
    extra: JsonObject = {"previous_response_id": "r"}
    sent = encoded(Request((Message.assistant(tool_calls=[CALL]), results), options={"extra_body": extra}))
    assert sent.body == body(WIRE_CALL, WIRE_OK, {**WIRE_OK, "call_id": "c0", "output": "far"}, **extra)
    assert sent.warnings == ()


def test_an_image_of_nothing_is_read_as_it_is() -> None:
    wire = body({"role": "user", "content": [{"type": "input_image", "detail": "auto"}]})
    request = openai_responses.read_request(wire)
    assert request.messages == (Message("user", (OpaquePart(FAMILY, {"type": "input_image", "detail": "auto"}),)),)
    assert encoded(request).body == wire


def test_a_custom_call_and_its_result_go_back_as_such() -> None:
    wire_call: JsonObject = {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "c1",
        "name": "sql",
        "input": "select",
    }
    choice = decoded(answer(wire_call)).choices[0]
    assert (choice.tool_calls[0].name, choice.tool_calls[0].arguments) == ("sql", {"input": "select"})
    request = Request((ASKED, choice.message(), Message.tool(ToolResult("c1", "sql", "ok"))))
    sent = encoded(request)
    assert sent.body == body(
        WIRE_ASKED, wire_call, {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}
    )
    assert openai_responses.read_request(sent.body) == request


# --- tools ------------------------------------------------------------------------------------------------------

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
EMPTY: JsonObject = {"type": "object", "properties": {}}
NOTHING: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": EMPTY}}
FORCED: JsonObject = {"type": "function", "name": "f"}
ALLOWED = ToolChoice("required", ("f", "g"))
ALLOWED_WIRE: JsonObject = {
    "type": "allowed_tools",
    "mode": "required",
    "tools": [FORCED, {"type": "function", "name": "g"}],
}
THIRD: JsonObject = {"type": "function", "function": {"name": "h", "description": "i", "parameters": SCHEMA}}
WIRE_THIRD: JsonObject = {"type": "function", "name": "h", "description": "i", "parameters": SCHEMA, "strict": False}
SEARCH = Tool.web_search().spec
PLACE: JsonObject = {"country": "DE", "city": "Ulm"}
NARROW_SEARCH = Tool.web_search(WebSearch(allowed_domains=("a.de",), user_location=PLACE)).spec
WIRE_NARROW_SEARCH: JsonObject = {
    "type": "web_search",
    "filters": {"allowed_domains": ["a.de"]},
    "user_location": {"type": "approximate", **PLACE},
}
FILES: JsonObject = {"type": "file_search", "file_search": {"vector_store_ids": ["vs_1"]}}
OFFERS: dict[str, tuple[Target[ResponsesDialect], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL,)), {"tools": [WIRE_TOOL]}, []),
    "row 25 no-argument tool": (
        target(),
        Request(tools=(NOTHING,)),
        {"tools": [{**WIRE_TOOL, "parameters": EMPTY}]},
        [],
    ),
    "row 25 the key is required": (
        target(AZURE),
        Request(tools=(NO_PARAMETERS,)),
        {"tools": [{**WIRE_TOOL, "parameters": EMPTY}]},
        [],
    ),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {"tools": [WIRE_TOOL], "tool_choice": "auto"},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": "required"},
        [],
    ),
    "row 28 required where thinking forbids it": (
        target(AZURE, default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [WIRE_TOOL, WIRE_OTHER], "tool_choice": FORCED},
        [],
    ),
    "row 29 named where it cannot be forced": (
        target(AZURE, forced_choice=False),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [WIRE_TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {"tools": [WIRE_TOOL], "tool_choice": "none"},
        [],
    ),
    "row 31 allowed list": (
        target(),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [WIRE_TOOL, WIRE_OTHER, WIRE_THIRD], "tool_choice": ALLOWED_WIRE},
        [],
    ),
    "row 31 allowed list on a compatible host": (
        target(COMPATIBLE),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [WIRE_TOOL, WIRE_OTHER], "tool_choice": "required"},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "parallel_tool_calls": False},
        [],
    ),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
    "row 49 web search": (target(), Request(tools=(SEARCH,)), {"tools": [{"type": "web_search"}]}, []),
    "row 49 web search with limits, between functions": (
        target(),
        Request(
            tools=(TOOL, {**NARROW_SEARCH, "web_search": {"allowed_domains": ["a.de"], "user_location": PLACE}}, OTHER)
        ),
        {"tools": [WIRE_TOOL, WIRE_NARROW_SEARCH, WIRE_OTHER]},
        [],
    ),
    "row 49 domains may be a tuple": (
        target(AZURE),
        Request(tools=(NARROW_SEARCH,)),
        {"tools": [WIRE_NARROW_SEARCH]},
        [],
    ),
    "row 49 a limit of uses is exact for one built-in tool": (
        target(AZURE),
        Request(tools=(Tool.web_search(WebSearch(max_uses=2)).spec,)),
        {"tools": [{"type": "web_search"}], "max_tool_calls": 2},
        [],
    ),
    "row 49 a limit of uses is left out beside another built-in tool": (
        target(AZURE),
        Request(tools=(Tool.web_search(WebSearch(max_uses=2)).spec, FILES)),
        {"tools": [{"type": "web_search"}, {"type": "file_search", "vector_store_ids": ["vs_1"]}]},
        ["max_uses"],
    ),
    "another built-in tool is sent flat": (
        target(),
        Request(tools=(FILES,)),
        {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]},
        [],
    ),
}


@pytest.mark.parametrize(("to", "request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choices(
    to: Target[ResponsesDialect], request_: Request, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    wire = body(WIRE_ASKED, **fields)
    if to.dialect.store is None:
        del wire["store"]
    assert sent.body == wire
    assert features(sent.warnings) == warned


@pytest.mark.parametrize("name", [name for name, case in OFFERS.items() if case[0].dialect is OPENAI and case[2]])
def test_tools_and_choices_are_read_back(name: str) -> None:
    _, request, fields, _ = OFFERS[name]
    assert openai_responses.read_request(body(WIRE_ASKED, **fields)) == replace(request, messages=(ASKED,))


@pytest.mark.parametrize("choice", ["validated", {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]}])
def test_a_choice_we_do_not_model_is_kept_when_read(choice: JsonValue) -> None:
    wire = body(WIRE_ASKED, tools=[WIRE_TOOL], tool_choice=choice)
    assert encoded(openai_responses.read_request(wire)).body == wire


def test_what_a_tool_or_a_choice_says_beyond_our_model_is_kept_when_read() -> None:
    deferred: JsonObject = {**WIRE_TOOL, "strict": True, "defer_loading": True}
    hosted: JsonObject = {"type": "file_search"}
    wire = body(WIRE_ASKED, tools=[deferred], tool_choice=hosted)
    request = openai_responses.read_request(wire)
    assert request.tools == (TOOL,)
    assert request.options == {"extra_body": {"tools": [deferred], "tool_choice": hosted}}
    assert encoded(request).body == wire


def test_row_26_a_name_the_wire_forbids_is_mapped_and_mapped_back() -> None:
    name = "shop.orders/" + "x" * 80
    tool: JsonObject = {"type": "function", "function": {"name": name, "description": "", "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert len(wire) <= 64
    assert sent.body["tools"] == [{"type": "function", "name": wire, "parameters": SCHEMA, "strict": False}]
    assert sent.body["tool_choice"] == {"type": "function", "name": wire}
    reply = answer({**WIRE_CALL, "name": wire})
    assert openai_responses.decode(reply, sent, target()).choices[0].tool_calls[0].name == name


@pytest.mark.parametrize(
    ("to", "tool", "refused"),
    [
        pytest.param(target(COMPATIBLE), SEARCH, "'web_search'", id="row 49 a host without web search"),
        pytest.param(target(), {"type": "google_maps"}, "'google_maps'", id="another provider's tool"),
        pytest.param(
            target(), Tool.web_search(WebSearch(blocked_domains=("a.de",))).spec, "blocked domains", id="row 49 blocked"
        ),
    ],
)
def test_a_built_in_tool_without_a_place_is_refused(
    to: Target[ResponsesDialect], tool: JsonObject, refused: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=f"has no place for .*{refused}"):
        encoded(Request((ASKED,), (tool,)), to)


def test_the_callers_schema_is_sent_as_it_is() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"const": 1}}}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
    assert encoded(Request((ASKED,), (tool,))).body["tools"] == [{**WIRE_TOOL, "parameters": schema}]


# --- output and sampling --------------------------------------------------------------------------------------------

FORMAT: JsonObject = {"format": {"type": "json_schema", "name": "response", "schema": SCHEMA}}
IN_WORDS = (
    "Answer with one JSON value and nothing else. It must fit this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)
REASONS = replace(ABLE, reasoning=True)
ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
FIELDS: dict[str, tuple[Target[ResponsesDialect], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"max_output_tokens": 50}, []),
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
        {"reasoning": {"effort": "none"}, "temperature": 0.0},
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, {}, ["seed"]),
    "row 43 two choices": (target(), {"n": 2}, {}, ["n"]),
    "row 43 one choice": (target(), {"n": 1}, {}, []),
    "row 44 logprobs": (
        target(),
        {"logprobs": True, "top_logprobs": 3},
        {"include": [LOGPROBS], "top_logprobs": 3},
        [],
    ),
    "row 44 no logprobs": (target(), {"logprobs": False}, {}, []),
    "row 44 logprobs on a model that reasons": (
        target(sampling="never"),
        {"logprobs": True, "top_logprobs": 3},
        {},
        ["logprobs", "top_logprobs"],
    ),
    "row 45 effort": (target(), {"reasoning": "high"}, {"reasoning": {"effort": "high"}}, []),
    "row 45 effort with tools": (
        target(tools_with_reasoning=False),
        {"reasoning": "high"},
        {"reasoning": {"effort": "high"}},
        [],
    ),
    "row 45 effort the model does not have": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "max"},
        {"reasoning": {"effort": "high"}},
        ["reasoning"],
    ),
    "row 46 budget": (target(), {"reasoning": {"budget": 2000}}, {"reasoning": {"effort": "low"}}, ["reasoning"]),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"reasoning": {"effort": "none"}}, []),
    "row 47 reasoning off where it cannot be": (
        target(efforts=("low", "high"), default_effort="high"),
        {"reasoning": "off"},
        {"reasoning": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not reason": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 16 reasoning is asked for in a form that can be sent back": (
        target(able=REASONS),
        {"logprobs": True},
        {"include": [ENCRYPTED, LOGPROBS]},
        [],
    ),
    "row 48 caching is automatic": (target(), {"cache": True}, {}, []),
    "row 48 a cache key": (target(), {"cache": {"key": "k"}}, {"prompt_cache_key": "k"}, []),
    "row 50 extra body": (
        target(),
        {"temperature": 1.0, "reasoning": "low", "extra_body": {"temperature": 0.5, "reasoning": {"summary": "auto"}}},
        {"temperature": 0.5, "reasoning": {"effort": "low", "summary": "auto"}},
        [],
    ),
    "row 50 the caller may have answers stored": (target(), {"extra_body": {"store": True}}, {"store": True}, []),
    "row 75 truncation if asked": (target(), {"extra_body": {"truncation": "auto"}}, {"truncation": "auto"}, []),
    "the rest": (
        target(),
        {"user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        {"user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        [],
    ),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options(to: Target[ResponsesDialect], options: JsonObject, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


READ_BACK: dict[str, tuple[JsonObject, JsonObject]] = {
    "row 38 max tokens": ({"max_output_tokens": 50}, {"max_tokens": 50}),
    "row 44 logprobs": ({"include": [LOGPROBS], "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
    "row 16 encrypted reasoning goes without saying": ({"include": [ENCRYPTED]}, {}),
    "row 45 effort": (
        {"reasoning": {"effort": "high", "summary": "auto"}},
        {"reasoning": "high", "extra_body": {"reasoning": {"summary": "auto"}}},
    ),
    "row 47 reasoning off": ({"reasoning": {"effort": "none"}}, {"reasoning": "off"}),
    "row 50 what is not modelled": (
        {"truncation": "auto", "include": [ENCRYPTED, "web_search_call.action.sources"]},
        {"extra_body": {"truncation": "auto", "include": [ENCRYPTED, "web_search_call.action.sources"]}},
    ),
    "answers are stored where nothing is said": ({"store": None}, {"extra_body": {"store": True}}),
    "verbosity beside a format": (
        {"text": {"format": {"type": "text"}, "verbosity": "low"}},
        {"extra_body": {"text": {"format": {"type": "text"}, "verbosity": "low"}}},
    ),
}


@pytest.mark.parametrize(("fields", "options"), READ_BACK.values(), ids=READ_BACK)
def test_options_are_read(fields: JsonObject, options: JsonObject) -> None:
    assert openai_responses.read_request(body(WIRE_ASKED, **fields)) == Request((ASKED,), options=options)


def test_an_input_of_text_is_read_as_a_user_turn() -> None:
    read = openai_responses.read_request({"model": "m", "input": "q", "instructions": "S", "store": False})
    assert read == Request((Message.system("S"), ASKED))


def test_two_plain_texts_of_the_model_in_a_row_stay_two() -> None:
    wire = body(*({"role": "assistant", "content": text} for text in "ab"), WIRE_CALL, WIRE_OK)
    read = openai_responses.read_request(wire)
    assert read.messages == (Message.assistant("a"), Message.assistant("b", [CALL]), ANSWERED)
    assert encoded(read).body == wire


def test_row_43_the_request_is_sent_twice_for_two_choices() -> None:
    assert encoded(Request((ASKED,), options={"n": 2})).repeat == 2
    assert encoded(Request((ASKED,))).repeat == 1


@pytest.mark.parametrize("option", ["top_k", "frequency_penalty", "presence_penalty", "temprature"])
def test_an_option_without_a_place_is_refused(option: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {option!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options={option: 1}))
    assert caught.value.option == option


def test_an_option_that_a_host_refuses_is_refused() -> None:
    strict = target(replace(COMPATIBLE, options={"metadata": None}))
    with pytest.raises(UnsupportedOption, match="no option 'metadata'"):
        encoded(Request((ASKED,), options={"metadata": {}}), strict)


def test_row_48_a_model_with_cache_marks_gets_one_after_the_system_text() -> None:
    request = Request((Message.system("S"), ASKED), options={"cache": True})
    text: JsonObject = {"type": "input_text", "text": "S", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert encoded(request, target(cache_breakpoints=True)).body == body(
        {"role": "developer", "content": [text]}, WIRE_ASKED, prompt_cache_options={"mode": "explicit"}
    )


def test_row_34_structured_output_and_row_35_its_name() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, text=FORMAT)
    assert openai_responses.read_request(sent.body) == request
    named = encoded(replace(request, response_format=ResponseFormat(SCHEMA, "my answer"))).body["text"]
    assert named == {"format": {"type": "json_schema", "name": "my_answer", "schema": SCHEMA}}


def test_a_strict_format_is_read_and_stays_strict() -> None:
    strict: JsonObject = {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}
    request = openai_responses.read_request(body(WIRE_ASKED, text=strict))
    assert request.response_format == ResponseFormat(SCHEMA, "a")
    assert encoded(request).body == body(WIRE_ASKED, text=strict)


def test_structured_output_that_is_no_object_is_refused_before_it_is_sent() -> None:
    with pytest.raises(UnsupportedFeature, match=r"schema of the output 'response'.*the root must be an object"):
        encoded(Request((ASKED,), response_format=ResponseFormat({"type": "array"})))


def test_any_object_is_asked_for_without_a_schema_and_the_system_turn_is_input_then() -> None:
    request = Request((Message.system("Answer in JSON."), ASKED), response_format=ResponseFormat())
    sent = encoded(request)
    assert sent.body == body(
        {"role": "developer", "content": "Answer in JSON."}, WIRE_ASKED, text={"format": {"type": "json_object"}}
    )
    assert openai_responses.read_request(sent.body) == request


def test_row_36_a_model_without_schemas_is_told_in_words() -> None:
    request = Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request, target(able=Capabilities(json_object=True)))
    assert sent.body == body(
        {"role": "developer", "content": f"S\n\n{IN_WORDS}"}, WIRE_ASKED, text={"format": {"type": "json_object"}}
    )
    assert features(sent.warnings) == ["response_format"]
    without = encoded(replace(request, messages=(ASKED,)), target(able=Capabilities()))
    assert without.body == body(WIRE_ASKED, instructions=IN_WORDS)


def test_row_37_structured_output_and_tools_go_together_where_they_can() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    assert encoded(request).body == body(WIRE_ASKED, tools=[WIRE_TOOL], text=FORMAT)
    apart = encoded(request, target(able=Capabilities(json_schema=True)))
    assert apart.body == body(WIRE_ASKED, tools=[WIRE_TOOL], instructions=IN_WORDS)
    assert features(apart.warnings) == ["response_format"]


def test_row_1_the_path_is_under_a_base_that_ends_in_v1() -> None:
    assert encoded(Request((ASKED,))).path == "/responses"


def test_row_64_a_stream_is_asked_for_by_one_field() -> None:
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, stream=True)


def test_a_compatible_host_is_not_asked_for_what_it_may_not_know() -> None:
    sent = encoded(Request((Message.system("S"), ASKED)), target(COMPATIBLE, able=REASONS))
    assert sent.body == {"model": "m", "instructions": "S", "input": [WIRE_ASKED]}


# --- replies ----------------------------------------------------------------------------------------------------------

USAGE: JsonObject = {
    "input_tokens": 10,
    "output_tokens": 7,
    "total_tokens": 17,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens_details": {"reasoning_tokens": 2},
}
USED = Usage(10, 7, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2)


def answer(*items: JsonObject, **fields: JsonValue) -> JsonObject:
    return {"id": "r1", "model": "m-1", "status": "completed", "output": list(items), "usage": USAGE, **fields}


def decoded(wire: JsonValue, request: Request | None = None, to: Target[ResponsesDialect] | None = None) -> Response:
    before = copy.deepcopy(wire)
    response = openai_responses.decode(wire, encoded(request or Request((ASKED,)), to), to or target())
    assert wire == before
    return response


def incomplete(reason: str) -> JsonObject:
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def text_item(text: str, *annotations: JsonObject, **fields: JsonValue) -> JsonObject:
    return {**WIRE_TEXT, "content": [{"type": "output_text", "text": text, "annotations": list(annotations)}], **fields}


def shell(*annotations: JsonObject, **fields: JsonValue) -> OpaquePart:
    part: JsonObject = {"type": "output_text", "annotations": list(annotations)}
    return OpaquePart(FAMILY, {**SHELL, "content": [part], **fields})


CITED: JsonObject = {"type": "url_citation", "url": "https://x", "title": "X", "start_index": 0, "end_index": 2}
REFUSAL: JsonObject = {"type": "refusal", "refusal": "No."}
BROKEN = CallError("malformed_json", "The arguments are not valid JSON: Expecting value: line 1 column 7 (char 6)")
WIRE_ITEM: JsonObject = {**WIRE_CALL, **ITEM}
CALL_ITEM = replace(CALL, provider_data={FAMILY: {"item": ITEM}})
CUT_ITEM: JsonObject = {**WIRE_SECOND, "arguments": "", "status": "incomplete"}
REPLIES: dict[str, tuple[JsonObject, Choice]] = {
    "row 51 text": (answer(WIRE_TEXT), with_parts(OpaquePart(FAMILY, SHELL), TextPart("Hi"))),
    "row 51 text is not always first": (
        answer(TRACE, WIRE_TEXT),
        with_parts(OpaquePart(FAMILY, TRACE), OpaquePart(FAMILY, SHELL), TextPart("Hi")),
    ),
    "row 51 two pieces of text": (
        answer({**WIRE_TEXT, "content": [{"type": "output_text", "text": text} for text in ("a", "", "b")]}),
        with_parts(
            OpaquePart(
                FAMILY,
                {
                    **WIRE_TEXT,
                    "content": [{"type": "output_text"}, {"type": "output_text", "text": ""}, {"type": "output_text"}],
                },
            ),
            TextPart("a"),
            TextPart("b"),
        ),
    ),
    "row 51 a host that says little": (
        answer({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}, status=None),
        with_parts(OpaquePart(FAMILY, {"type": "message", "content": [{"type": "output_text"}]}), TextPart("Hi")),
    ),
    "row 52 call id, row 55 two parallel calls, row 59 completed": (
        answer(WIRE_ITEM, WIRE_SECOND),
        with_parts(CALL_ITEM, SECOND, finish_reason="tool_calls"),
    ),
    "row 52 no call id": (
        answer({"type": "function_call", "name": "f", "arguments": "{}"}),
        with_parts(ToolCall("call_0", "f", {}, "{}"), finish_reason="tool_calls"),
    ),
    "row 53 empty arguments": (
        answer(*({**WIRE_CALL, "call_id": n, "arguments": a} for n, a in (("a", ""), ("b", None), ("c", "{}")))),
        with_parts(
            ToolCall("a", "f", {}, ""), ToolCall("b", "f", {}), ToolCall("c", "f", {}, "{}"), finish_reason="tool_calls"
        ),
    ),
    "row 54 invalid arguments": (
        answer({**WIRE_CALL, "arguments": '{"x": '}),
        with_parts(ToolCall("c1", "f", None, '{"x": ', BROKEN), finish_reason="tool_calls"),
    ),
    "row 56 thinking, before its call": (
        answer(REASONING, WIRE_ITEM),
        with_parts(
            ThinkingPart("hm", provider=FAMILY),
            OpaquePart(FAMILY, REASONING),
            replace(CALL, provider_data={FAMILY: AFTER}),
            finish_reason="tool_calls",
        ),
    ),
    "row 56 thinking without words": (
        answer({**REASONING, "summary": []}, WIRE_TEXT),
        with_parts(OpaquePart(FAMILY, {**REASONING, "summary": []}), OpaquePart(FAMILY, SHELL), TextPart("Hi")),
    ),
    "row 56 thinking of open models": (
        answer({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}, WIRE_TEXT),
        with_parts(
            ThinkingPart("hm", provider=FAMILY),
            OpaquePart(
                FAMILY, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
            ),
            OpaquePart(FAMILY, SHELL),
            TextPart("Hi"),
        ),
    ),
    "row 57 refusal": (
        answer({**WIRE_TEXT, "content": [REFUSAL]}),
        with_parts(
            OpaquePart(FAMILY, {**WIRE_TEXT, "content": [REFUSAL]}), refusal="No.", finish_reason="content_filter"
        ),
    ),
    "row 58 citations": (
        answer(text_item("Hi", CITED)),
        with_parts(shell(CITED), TextPart("Hi"), citations=(CITED,)),
    ),
    "row 58 citations count from the start of all text": (
        answer(text_item("abc"), text_item("Hi", CITED, id="msg_2")),
        with_parts(
            shell(),
            TextPart("abc"),
            shell(CITED, id="msg_2"),
            TextPart("Hi"),
            citations=({**CITED, "start_index": 3, "end_index": 5},),
        ),
    ),
    "row 60 cut by length": (
        answer(WIRE_TEXT, **incomplete("max_output_tokens")),
        with_parts(OpaquePart(FAMILY, SHELL), TextPart("Hi"), finish_reason="length"),
    ),
    "row 60 cut inside a call": (
        answer(WIRE_CALL, CUT_ITEM, **incomplete("max_output_tokens")),
        with_parts(CALL, finish_reason="length"),
    ),
    "row 60 cut inside a call whose status does not tell": (
        answer(WIRE_CALL, {**WIRE_SECOND, "arguments": '{"x'}, **incomplete("max_output_tokens")),
        with_parts(CALL, finish_reason="length"),
    ),
    "row 61 nothing": (answer(text_item("")), with_parts(OpaquePart(FAMILY, text_item("")))),
    "row 62 no items": (answer(), Choice()),
    "row 62 null": ({**answer(), "output": None}, Choice()),
    "a cut call in an answer that is complete cannot be run": (
        answer(CUT_ITEM),
        with_parts(
            ToolCall(
                "c2",
                "f",
                None,
                "",
                CallError("malformed_json", "The call was cut off before its arguments were complete."),
                {FAMILY: {"item": {"status": "incomplete"}}},
            ),
            finish_reason="tool_calls",
        ),
    ),
    "a background answer is not there yet": (answer(status="queued"), Choice(finish_reason="error")),
}
LOST = {
    "row 60 cut inside a call": ["tool_calls"],
    "row 60 cut inside a call whose status does not tell": ["tool_calls"],
    "row 61 nothing": ["content"],
    "row 62 no items": ["content"],
    "row 62 null": ["content"],
    "a background answer is not there yet": ["background"],
}


@pytest.mark.parametrize("name", REPLIES)
def test_replies(name: str) -> None:
    wire, choice = REPLIES[name]
    response = decoded(wire)
    raw = wire["output"]
    assert response == Response((replace(choice, raw=raw),), USED, "m-1", "r1", response.warnings, raw=wire)
    assert features(response.warnings) == LOST.get(name, [])


FINISHES: dict[tuple[str, str], str] = {
    ("completed", "t"): "stop",
    ("max_output_tokens", "t"): "length",
    ("content_filter", "t"): "content_filter",
    ("max_messages", "t"): "stop",
    ("steered", "t"): "stop",
    ("cancelled", "t"): "error",
    ("in_progress", ""): "error",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "ours"), FINISHES.items(), ids=map(str, FINISHES))
def test_finish_reasons(wire: tuple[str, str], ours: str) -> None:
    reason, text = wire
    statuses = ("completed", "cancelled", "in_progress", "strange")
    fields: JsonObject = {"status": reason} if reason in statuses else incomplete(reason)
    assert decoded(answer(text_item(text), **fields)).choices[0].finish_reason == ours


def test_an_incomplete_answer_without_a_reason_is_no_success() -> None:
    assert decoded(answer(WIRE_TEXT, status="incomplete")).choices[0].finish_reason == "length"


def test_row_41_the_text_is_cut_at_the_first_stop_sequence_and_nothing_follows() -> None:
    request = Request((ASKED,), options={"stop": ["END", "FIN"]})
    first, second = text_item("one FIN two END"), text_item("three", id="msg_2")
    response = decoded(answer(REASONING, first, second, WIRE_CALL, **incomplete("max_output_tokens")), request)
    (choice,) = response.choices
    assert (choice.text, choice.tool_calls, choice.finish_reason) == ("one ", (), "stop")
    assert features(response.warnings) == ["stop"]
    again = encoded(Request((ASKED, choice.message()))).body
    assert again == body(WIRE_ASKED, REASONING, text_item("one "))
    whole = decoded(answer(first, WIRE_CALL), replace(request, options={"stop": "NONE"})).choices[0]
    assert (whole.text, whole.tool_calls) == ("one FIN two END", (CALL,))


def test_an_invented_id_does_not_repeat_one_of_the_conversation() -> None:
    old = ToolCall("call_0", "f", {})
    request = Request((ASKED, Message.assistant(tool_calls=[old]), Message.tool(ToolResult("call_0", "f", ""))))
    nameless: JsonObject = {"type": "function_call", "name": "f", "arguments": ""}
    calls = decoded(answer(nameless, nameless), request).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_row_44_logprobs_are_on_the_choice_and_not_sent_back() -> None:
    tokens: JsonValue = [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}]
    item = text_item("Hi")
    parts = item["content"]
    assert isinstance(parts, list)
    part = parts[0]
    assert isinstance(part, dict)
    choice = decoded(answer({**item, "content": [{**part, "logprobs": tokens}]})).choices[0]
    assert choice.logprobs == {"content": tokens}
    assert encoded(Request((ASKED, choice.message()))).body == body(WIRE_ASKED, item)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        pytest.param(USAGE, USED, id="row 63 openai"),
        pytest.param({"input_tokens": 3, "input_tokens_details": None}, Usage(3), id="row 63 a host that says little"),
        pytest.param(None, Usage(), id="row 63 none"),
    ],
)
def test_usage(usage: JsonValue, read: Usage) -> None:
    assert decoded({**answer(WIRE_TEXT), "usage": usage}).usage == read


# --- errors -----------------------------------------------------------------------------------------------------------


ERRORS: dict[str, tuple[int, str, type[LMError], bool]] = {
    "row 73 bad key": (401, openai_error("Incorrect API key", "invalid_api_key"), LMAuthenticationError, False),
    "row 73 forbidden": (403, openai_error("Country not supported"), LMAuthenticationError, False),
    "row 74 unknown model": (404, openai_error("No such model", "model_not_found"), LMUnsupportedModelError, False),
    "row 74 unknown model as 400": (400, openai_error("No such", "model_not_found"), LMUnsupportedModelError, False),
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
    "row 76 rate limit": (429, openai_error("Slow", "rate_limit_exceeded"), LMRateLimitError, True),
    "row 77 overloaded": (503, openai_error("Busy", "server_is_overloaded"), LMServerError, True),
    "row 78 quota": (429, openai_error("No quota", "insufficient_quota"), LMBillingError, False),
    "row 78 balance": (402, openai_error("Pay"), LMBillingError, False),
    "row 80 html": (502, "<html><title>502 Bad Gateway</title>...</html>", LMServerError, True),
    "row 80 empty": (500, "", LMServerError, True),
    "bad request": (400, openai_error("Bad", "invalid_value"), LMInvalidRequestError, False),
    "content filter": (400, openai_error("Flagged", "invalid_prompt"), LMContentFilteredError, False),
    "timeout": (408, openai_error("Slow"), LMTimeoutError, True),
    "no status we know": (302, "", LMUnexpectedError, False),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_errors(status: int, wire: str, kind: type[LMError], retryable: bool) -> None:
    error = openai_responses.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model) == (status, FAMILY, "m")
    assert error.message


def test_row_76_the_wait_and_the_request_id_are_on_the_error() -> None:
    headers = {"Retry-After-Ms": "1500", "retry-after": "9", "x-request-id": "r9"}
    error = openai_responses.decode_error(429, headers, openai_error("Slow"), target())
    assert (error.retry_after, error.request_id) == (1.5, "r9")


def failed(code: JsonValue) -> JsonObject:
    return answer(status="failed", error={"code": code, "message": "It failed"})


INSIDE: dict[str, tuple[JsonValue, type[LMError]]] = {
    "row 76 rate limit": (failed("rate_limit_exceeded"), LMRateLimitError),
    "row 79 server": (failed("server_error"), LMServerError),
    "row 79 prompt": (failed("invalid_prompt"), LMContentFilteredError),
    "row 79 policy": (failed("bio_policy"), LMContentFilteredError),
    "row 79 image policy": (failed("image_content_policy_violation"), LMContentFilteredError),
    "row 79 image": (failed("invalid_image_format"), LMInvalidRequestError),
    "row 79 store": (failed("vector_store_timeout"), LMTimeoutError),
    "row 79 unknown": (failed("strange"), LMServerError),
    "row 79 no error": ({**answer(), "status": "failed", "error": None}, LMServerError),
    "row 79 an error without a status": ({"error": {"code": "rate_limit_exceeded", "message": "Up"}}, LMRateLimitError),
    "row 80 html": ("<html>hello</html>", LMServerError),
    "row 80 empty": ("", LMServerError),
    "row 80 some text": ("method=POST", LMUnexpectedError),
    "row 62 no output": ({"id": "r1"}, LMServerError),
    "a list": ([], LMServerError),
}


@pytest.mark.parametrize(("wire", "kind"), INSIDE.values(), ids=INSIDE)
def test_failures_inside_a_success(wire: JsonValue, kind: type[LMError]) -> None:
    with pytest.raises(LMError) as caught:
        decoded(wire)
    assert type(caught.value) is kind
    assert caught.value.status == 200
    if isinstance(wire, dict) and isinstance(error := wire.get("error"), dict):
        assert caught.value.provider_code == error["code"]
        assert str(error["message"]) in caught.value.message


def test_what_encode_warned_of_is_on_the_response() -> None:
    assert features(decoded(answer(WIRE_TEXT), Request((ASKED,), options={"seed": 1})).warnings) == ["seed"]


# --- properties -------------------------------------------------------------------------------------------------------

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
names = st.text(min_size=1, max_size=70)
wild_text = st.text(st.characters(), max_size=12)  # lone surrogates included
families = st.sampled_from([FAMILY, "deepseek-responses", "anthropic"])
opaques = st.builds(OpaquePart, families, st.sampled_from([REASONING, SHELL, TRACE, {"role": "assistant"}, {}, "x"]))
marks = st.none() | st.just({FAMILY: AFTER}) | objects
calls = st.builds(ToolCall.read, st.text(max_size=5), names, objects | st.text(max_size=9), provider_data=marks)
media = st.one_of(
    st.builds(ImagePart, st.none() | st.text(), st.none() | st.text(), st.none() | st.just("image/png")),
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
parts_of = {
    "system": st.builds(TextPart, wild_text),
    "user": st.builds(TextPart, wild_text) | media | st.builds(AudioPart, st.text(max_size=3)),
    "assistant": st.builds(TextPart, wild_text)
    | calls
    | opaques
    | st.builds(ThinkingPart, st.text(max_size=5), provider=families),
    "tool": results,
}
messages = st.sampled_from(sorted(parts_of)).flatmap(
    lambda role: st.builds(Message, st.just(role), st.lists(parts_of[role], max_size=4).map(tuple))
)
functions = st.lists(names, max_size=3, unique=True).map(
    lambda names: tuple({"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names)
)
tools_offered = st.tuples(functions, st.sampled_from([(), (SEARCH,), (FILES,)])).map(lambda both: both[1] + both[0])
options = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0, 2),
        "n": st.integers(1, 3),
        "reasoning": st.sampled_from(["off", "high", "max", {"budget": 7}]),
        "top_k": st.just(3),
        "seed": st.integers(),
        "stop": st.just("x"),
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


def attempt(request: Request, to: Target[ResponsesDialect]) -> Encoded | str:
    """What would be sent, or why nothing can be."""
    try:
        return openai_responses.encode(request, to)
    except CallerError as error:
        return str(error)


@given(requests, st.sampled_from(sorted(DIALECTS)))
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request, host: str) -> None:
    sent = attempt(request, target(DIALECTS[host]))
    if isinstance(sent, str):
        refused = ("no place for", "no option 'top_k'", "needs a url", "extra_body must", "cannot hold")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)
    assert ("stop" in features(sent.warnings)) == bool(sent.stop)


@given(requests, st.sampled_from([OPENAI, DEEPSEEK]))
def test_every_call_is_answered_in_order_before_anybody_else_speaks(request: Request, host: ResponsesDialect) -> None:
    sent = attempt(replace(request, options={}), target(host))
    if isinstance(sent, str):
        return
    written = sent.body["input"]
    assert isinstance(written, list)
    waiting: list[str] = []
    seen: set[str] = set()
    for item in written:
        assert isinstance(item, dict)
        if item.get("type") == "function_call":
            assert item["call_id"]
            assert item["call_id"] not in seen
            waiting.append(str(item["call_id"]))
        elif item.get("type") == "function_call_output":
            assert item["call_id"] == waiting.pop(0)
            seen.add(str(item["call_id"]))
        elif item.get("role") in ("user", "developer", "system") or host is DEEPSEEK:
            assert waiting == []
    assert waiting == []


texts = st.text(max_size=12)
arguments = objects.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))
output_texts = st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": texts, "annotations": st.lists(st.just(CITED), max_size=1)}
)
wire_items: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("message"),
            "role": st.just("assistant"),
            "status": st.just("completed"),
            "content": st.lists(output_texts | st.just(REFUSAL), min_size=1, max_size=3),
        },
        optional={"phase": st.sampled_from(["commentary", "final_answer"])},
    ),
    st.fixed_dictionaries(
        {"type": st.just("function_call"), "name": st.text("abc_", min_size=1, max_size=8), "arguments": arguments},
        optional={"status": st.just("completed"), "namespace": st.text(max_size=3)},
    ),
    st.fixed_dictionaries(
        {"type": st.just("custom_tool_call"), "name": st.just("sql"), "input": texts.filter(bool)},
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("reasoning"),
            "encrypted_content": st.none() | texts,
            "summary": st.lists(st.builds(lambda text: {"type": "summary_text", "text": text}, texts), max_size=2),
        }
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["web_search_call", "compaction"]), "x": json_values}),
)


def identified(items: list[dict[str, Any]]) -> list[JsonObject]:
    """The items with ids as the provider would give them."""
    named = [{"id": f"id_{number}", **item} for number, item in enumerate(items)]
    return [{**item, **({"call_id": f"call-{item['id']}"} if "name" in item else {})} for item in named]


def without_last_reasoning(items: list[JsonObject]) -> list[JsonObject]:
    while items and items[-1]["type"] == "reasoning":
        items = items[:-1]
    return items


@given(st.lists(wire_items, max_size=5).map(identified))
def test_an_answer_put_into_history_is_sent_as_it_came(items: list[JsonObject]) -> None:
    choice = decoded(answer(*items)).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    written = openai_responses.encode(Request((ASKED, stored)), target()).body["input"]
    assert isinstance(written, list)
    answers = ("function_call_output", "custom_tool_call_output")
    turn = [item for item in written[1:] if isinstance(item, dict) and item.get("type") not in answers]
    assert turn == without_last_reasoning(items)


@given(st.lists(wire_items, max_size=5).map(identified))
def test_what_was_written_is_read_and_written_again(items: list[JsonObject]) -> None:
    choice = decoded(answer(*items)).choices[0]
    sent = openai_responses.encode(Request((Message.system("S"), ASKED, choice.message(), ASKED)), target())
    read = openai_responses.read_request(sent.body)
    assert openai_responses.encode(read, target()).body == sent.body


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    for turn in range(10):
        reasoning: JsonObject = {**REASONING, "id": f"rs_{turn}"}
        call: JsonObject = {**WIRE_CALL, "call_id": f"c{turn}", "id": f"fc_{turn}", "status": "completed"}
        items = [reasoning, text_item(f"turn {turn}", id=f"msg_{turn}"), call]
        sent = openai_responses.encode(Request(tuple(history)), target())
        assert sent.body["input"] == came
        choice = openai_responses.decode(answer(*items), sent, target()).choices[0]
        history += [choice.message(), Message.tool(ToolResult(f"c{turn}", "f", "ok"))]
        came += [*items, {"type": "function_call_output", "call_id": f"c{turn}", "output": "ok"}]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert openai_responses.encode(Request(tuple(stored)), target()).body["input"] == came
