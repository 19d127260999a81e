"""Anthropic Messages, row by row: whole requests and replies, both ways.

A test id names its row of the wire's checklist: its number and the behaviour.
"""

from __future__ import annotations

import copy
import itertools
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
    LMUnexpectedError,
    LMUnsupportedModelError,
    UnsupportedFeature,
    UnsupportedOption,
)
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import ANTHROPIC, COMPATIBLE_MESSAGES, MessagesDialect
from sigwire.lm.codecs.base import Codec, Encoded, ModelFacts, Target
from tests.lm.codecs.encoding import encoded_untouched, features, results_for, with_parts

CODEC: Codec[MessagesDialect] = anthropic
ABLE = Capabilities(
    native_tools=True, tool_choice=True, json_schema=True, tools_with_json_schema=True, images=True, files=True
)
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
CLOSED: JsonObject = {**SCHEMA, "additionalProperties": False}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g", "description": "e", "parameters": SCHEMA}}
THIRD: JsonObject = {"type": "function", "function": {"name": "h", "description": "i", "parameters": SCHEMA}}
WIRE_TOOL: JsonObject = {"name": "f", "description": "d", "input_schema": SCHEMA}
WIRE_OTHER: JsonObject = {"name": "g", "description": "e", "input_schema": SCHEMA}
WIRE_THIRD: JsonObject = {"name": "h", "description": "i", "input_schema": SCHEMA}
CALL = ToolCall("toolu_1", "f", {"x": 1})
SECOND = ToolCall("toolu_2", "f", {"x": 2})
WIRE_CALL: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
WIRE_SECOND: JsonObject = {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {"x": 2}}
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "content": "q"}
OK = Message.tool(ToolResult("toolu_1", "f", "ok"))
WIRE_OK: JsonObject = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}


def target(dialect: MessagesDialect = ANTHROPIC, *, able: Capabilities = ABLE, **facts: Any) -> Target[MessagesDialect]:
    return Target(dialect.family, "m", dialect, able, ModelFacts(**facts))


BY_BUDGET = target(thinking="budget")


def encoded(request: Request, to: Target[MessagesDialect] | None = None, *, stream: bool = False) -> Encoded:
    return encoded_untouched(anthropic, request, to or target(), stream=stream)


def body(*messages: JsonObject, **fields: Any) -> JsonObject:
    return {"model": "m", "max_tokens": 4096, "messages": list(messages), **fields}


def assistant(*blocks: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: JsonObject) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def wire_messages(*messages: Message, to: Target[MessagesDialect] | None = None) -> tuple[Any, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["messages"], features(sent.warnings)


# --- messages: what is said, and how it is written (both ways) ------------------------------------------------

PNG = ImagePart(data="iVBO", media_type="image/png")
WIRE_PNG: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
PDF = FilePart(data="JVBE", filename="a.pdf", media_type="application/pdf")
WIRE_PDF: JsonObject = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
    "title": "a.pdf",
}
THOUGHT = ThinkingPart("hm", signature="SIG", provider="anthropic")
WIRE_THOUGHT: JsonObject = {"type": "thinking", "thinking": "hm", "signature": "SIG"}
REDACTED = ThinkingPart(redacted="RED", provider="anthropic")
WIRE_REDACTED: JsonObject = {"type": "redacted_thinking", "data": "RED"}
SEARCHED: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: JsonObject = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://x", "title": "X", "encrypted_content": "ENC"}],
}
CITATION: JsonObject = {
    "type": "web_search_result_location",
    "url": "https://x",
    "title": "X",
    "cited_text": "said",
    "encrypted_index": "IDX",
}
CONVERSATIONS: dict[str, tuple[tuple[Message, ...], JsonObject]] = {
    "row 6 system": ((Message.system("S"), ASKED), body(WIRE_ASKED, system="S")),
    "row 6 system in two texts": (
        (Message("system", (TextPart("S"), TextPart("T"))), ASKED),
        body(WIRE_ASKED, system=[text("S"), text("T")]),
    ),
    "row 8 user text": ((ASKED,), body(WIRE_ASKED)),
    "row 9 image url": (
        (Message.user("q", ImagePart(url="https://x/a.png")),),
        body(user(text("q"), {"type": "image", "source": {"type": "url", "url": "https://x/a.png"}})),
    ),
    "row 10 image base64": ((Message("user", (PNG,)),), body(user(WIRE_PNG))),
    "row 12 pdf": ((Message("user", (PDF,)),), body(user(WIRE_PDF))),
    "row 12 pdf by url": (
        (Message("user", (FilePart(url="https://x/a.pdf"),)),),
        body(user({"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}})),
    ),
    "row 12 pdf by id": (
        (Message("user", (FilePart(file_id="file_1"),)),),
        body(user({"type": "document", "source": {"type": "file", "file_id": "file_1"}})),
    ),
    "row 12 text document": (
        (Message("user", (FilePart(data="aMOp", filename="a.txt", media_type="text/plain"),)),),
        body(
            user(
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "hé"},
                    "title": "a.txt",
                }
            )
        ),
    ),
    "row 13 assistant text and call": (
        (ASKED, Message.assistant("t", [CALL]), OK),
        body(WIRE_ASKED, assistant(text("t"), WIRE_CALL), user(WIRE_OK)),
    ),
    "row 14 call without text, row 15 arguments are an object, row 17 one result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), OK),
        body(WIRE_ASKED, assistant(WIRE_CALL), user(WIRE_OK)),
    ),
    "row 16 thinking replay": (
        (ASKED, Message("assistant", (THOUGHT, REDACTED, TextPart("t"), CALL)), OK),
        body(WIRE_ASKED, assistant(WIRE_THOUGHT, WIRE_REDACTED, text("t"), WIRE_CALL), user(WIRE_OK)),
    ),
    "row 16 thinking replay, interleaved": (
        (
            ASKED,
            Message("assistant", (THOUGHT, CALL, replace(THOUGHT, text="", signature="S2"), SECOND)),
            Message.tool(ToolResult("toolu_1", "f", "ok"), ToolResult("toolu_2", "f", "ok")),
        ),
        body(
            WIRE_ASKED,
            assistant(WIRE_THOUGHT, WIRE_CALL, {"type": "thinking", "thinking": "", "signature": "S2"}, WIRE_SECOND),
            user(WIRE_OK, {**WIRE_OK, "tool_use_id": "toolu_2"}),
        ),
    ),
    "row 18 two results, row 19 error result": (
        (
            ASKED,
            Message.assistant(tool_calls=[CALL, SECOND]),
            Message.tool(ToolResult("toolu_1", "f", "ok"), ToolResult("toolu_2", "f", "boom", is_error=True)),
        ),
        body(
            WIRE_ASKED,
            assistant(WIRE_CALL, WIRE_SECOND),
            user(WIRE_OK, {"type": "tool_result", "tool_use_id": "toolu_2", "content": "boom", "is_error": True}),
        ),
    ),
    "row 20 empty result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("toolu_1", "f", ""))),
        body(WIRE_ASKED, assistant(WIRE_CALL), user({**WIRE_OK, "content": ""})),
    ),
    "row 21 image in a result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("toolu_1", "f", "see", media=(PNG,)))),
        body(WIRE_ASKED, assistant(WIRE_CALL), user({**WIRE_OK, "content": [text("see"), WIRE_PNG]})),
    ),
    "row 21 nothing but media in a result": (
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("toolu_1", "f", media=(PNG, PDF)))),
        body(WIRE_ASKED, assistant(WIRE_CALL), user({**WIRE_OK, "content": [WIRE_PNG, WIRE_PDF]})),
    ),
    "row 23 user text after results": (
        (ASKED, Message.assistant(tool_calls=[CALL]), OK, Message.user("and?")),
        body(WIRE_ASKED, assistant(WIRE_CALL), user(WIRE_OK, text("and?"))),
    ),
    "row 49 the trace of a search goes back as it came": (
        (
            ASKED,
            Message(
                "assistant",
                (
                    OpaquePart("anthropic", SEARCHED),
                    OpaquePart("anthropic", FOUND),
                    TextPart("t"),
                    OpaquePart("anthropic", {"citations": [CITATION]}),
                ),
            ),
            Message.user("and?"),
        ),
        body(
            WIRE_ASKED,
            assistant(SEARCHED, FOUND, {**text("t"), "citations": [CITATION]}),
            {"role": "user", "content": "and?"},
        ),
    ),
    "a mark for the cache on one text": (
        (Message("user", (TextPart("q"), OpaquePart("anthropic", {"cache_control": {"type": "ephemeral"}}))),),
        body(user({**text("q"), "cache_control": {"type": "ephemeral"}})),
    ),
    "a call's caller goes back": (
        (
            ASKED,
            Message.assistant(tool_calls=[replace(CALL, provider_data={"anthropic": {"caller": {"type": "direct"}}})]),
            OK,
        ),
        body(WIRE_ASKED, assistant({**WIRE_CALL, "caller": {"type": "direct"}}), user(WIRE_OK)),
    ),
    "a result in the wire's own blocks": (
        (
            ASKED,
            Message.assistant(tool_calls=[CALL]),
            Message.tool(ToolResult("toolu_1", "f", [{"type": "tool_reference", "tool_name": "g"}])),
        ),
        body(
            WIRE_ASKED,
            assistant(WIRE_CALL),
            user({**WIRE_OK, "content": [{"type": "tool_reference", "tool_name": "g"}]}),
        ),
    ),
}


@pytest.mark.parametrize(("messages", "wire"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_messages_are_written_and_read_back(messages: tuple[Message, ...], wire: JsonObject) -> None:
    sent = encoded(Request(messages))
    assert sent.body == wire
    assert sent.warnings == ()
    assert anthropic.read_request(sent.body).messages == messages


def test_row_7_a_later_system_turn_is_moved_to_the_front() -> None:
    sent = encoded(Request((Message.system("S"), ASKED, Message.system("T"))))
    assert sent.body == body(WIRE_ASKED, system="S\n\nT")
    assert features(sent.warnings) == ["system"]


def test_row_7_a_later_system_turn_stays_where_the_model_takes_it() -> None:
    asked = (Message.system("S"), ASKED, Message.system("T"), Message.assistant("a"), Message.user("r"))
    sent = encoded(Request(asked), target(later_system=True))
    assert sent.body == body(
        WIRE_ASKED,
        {"role": "system", "content": "T"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "r"},
        system="S",
    )
    assert sent.warnings == ()
    assert anthropic.read_request(sent.body).messages == asked


LATER: dict[str, tuple[tuple[Message, ...], JsonObject]] = {
    "row 7 before a user turn": (
        (ASKED, Message.system("T"), Message.user("r")),
        body(user(text("q"), text("r")), {"role": "system", "content": "T"}),
    ),
    "row 7 between results and text": (
        (ASKED, Message.assistant(tool_calls=[CALL]), OK, Message.system("T"), Message.user("r")),
        body(WIRE_ASKED, assistant(WIRE_CALL), user(WIRE_OK, text("r")), {"role": "system", "content": "T"}),
    ),
    "row 7 behind a turn in which nothing was said": (
        (ASKED, Message.assistant("a"), Message.system("T"), Message("user", (OpaquePart("anthropic", {"a": 1}),))),
        body(WIRE_ASKED, {"role": "assistant", "content": "a"}, system="T"),
    ),
    "row 7 behind an answer": (
        (ASKED, Message.assistant("a"), Message.system("T")),
        body(WIRE_ASKED, {"role": "assistant", "content": "a"}, system="T"),
    ),
}


@pytest.mark.parametrize(("messages", "wire"), LATER.values(), ids=LATER)
def test_a_system_turn_in_a_forbidden_place_moves_to_the_next_allowed_one(
    messages: tuple[Message, ...], wire: JsonObject
) -> None:
    sent = encoded(Request(messages), target(later_system=True))
    assert sent.body == wire
    assert features(sent.warnings)[-1] == "system"


REFUSED: dict[str, tuple[Message, str]] = {
    "row 11 audio": (Message("user", (AudioPart("UklG"),)), "no place for audio input. Transcribe it"),
    "row 12 a document that is neither pdf nor text": (
        Message("user", (FilePart(data="UEsD", media_type="application/msword"),)),
        "a document as 'application/msword'. Send it as PDF",
    ),
    "row 10 an image in another format": (
        Message("user", (ImagePart(data="Qk0", media_type="image/bmp"),)),
        "an image as 'image/bmp'. Convert it",
    ),
    "an image in an assistant turn": (Message("assistant", (PNG,)), "a ImagePart in an assistant turn"),
    "an image in a system turn": (Message("system", (PNG,)), "a ImagePart in a system turn"),
}


@pytest.mark.parametrize(("message", "said"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_place_is_refused_before_it_is_sent(message: Message, said: str) -> None:
    with pytest.raises(UnsupportedFeature, match=said) as caught:
        encoded(Request((ASKED, message)))
    assert "anthropic/m" in str(caught.value)


BEGUN: dict[str, Message] = {
    "text": Message.assistant("So"),
    "text behind white space": Message("assistant", (TextPart("So"), TextPart(" "))),
    "thinking": Message("assistant", (ThinkingPart("hm", signature="S", provider="anthropic"),)),
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
def test_an_answer_that_is_begun_is_refused_by_models_that_do_not_go_on_with_one(begun: Message) -> None:
    assert wire_messages(ASKED, begun)[0][-1]["role"] == "assistant"
    with pytest.raises(
        UnsupportedFeature, match=r"anthropic/m has no place for an answer to go on with\. .* a user turn"
    ):
        encoded(Request((ASKED, begun)), target(prefill=False))


def test_a_turn_that_was_paused_and_one_with_calls_are_no_begun_answers() -> None:
    search = OpaquePart("anthropic", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}})
    for turn in (Message("assistant", (TextPart("So"), search)), Message.assistant("So", tool_calls=[CALL])):
        assert encoded(Request((ASKED, turn)), target(prefill=False)).body["messages"]


def test_row_10_a_host_without_images_refuses_them() -> None:
    with pytest.raises(UnsupportedFeature, match="image input"):
        encoded(Request((Message("user", (PNG,)),)), target(replace(ANTHROPIC, media=frozenset())))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        pytest.param(ImagePart(), "url or data", id="an image of nothing"),
        pytest.param(FilePart(), "data, a url or a file_id", id="a file of nothing"),
        pytest.param(FilePart(data="é", media_type="text/plain"), "not base64", id="text that is not base64"),
    ],
)
def test_media_that_cannot_be_are_input_errors(part: Part, said: str) -> None:
    with pytest.raises(InputError, match=said):
        encoded(Request((Message("user", (part,)),)))


def test_a_common_misspelling_of_a_media_type_is_corrected() -> None:
    wire, _ = wire_messages(Message("user", (ImagePart(data="/9j/", media_type="image/jpg"),)))
    assert wire[0]["content"][0]["source"]["media_type"] == "image/jpeg"


def test_an_images_detail_is_left_out_with_a_warning() -> None:
    wire, warned = wire_messages(Message("user", (replace(PNG, detail="low"),)))
    assert wire == [user(WIRE_PNG)]
    assert warned == ["detail"]


def test_row_21_a_model_without_images_in_results_gets_them_in_the_users_turn() -> None:
    wire, warned = wire_messages(
        ASKED,
        Message.assistant(tool_calls=[CALL]),
        Message.tool(ToolResult("toolu_1", "f", "see", media=(PNG,))),
        to=target(media_in_results=False),
    )
    assert wire[2] == user({**WIRE_OK, "content": "see\n[image attached below]"}, WIRE_PNG)
    assert warned == ["result_media"]


def test_row_22_an_unanswered_call_gets_an_error_result() -> None:
    wire, warned = wire_messages(ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind"))
    standin: JsonObject = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "tool was not executed",
        "is_error": True,
    }
    assert wire == [WIRE_ASKED, assistant(WIRE_CALL), user(standin, text("never mind"))]
    assert warned == ["tool_results"]


def test_row_82_foreign_ids_are_rewritten_and_foreign_thinking_is_dropped() -> None:
    foreign = ToolCall("call_1__thought__a+b/c=", "f", {"x": 1}, provider_data={"gemini": {"thoughtSignature": "S"}})
    wire, warned = wire_messages(
        ASKED,
        Message(
            "assistant",
            (ThinkingPart("hm", signature="S", provider="gemini"), OpaquePart("openai-responses", {"a": 1}), foreign),
        ),
        Message.tool(ToolResult(foreign.id, "f", "ok")),
    )
    new = "call_1__thought__a_b_c_"
    assert wire == [WIRE_ASKED, assistant({**WIRE_CALL, "id": new}), user({**WIRE_OK, "tool_use_id": new})]
    assert warned == ["opaque"]


def test_row_82_a_broken_call_of_another_provider_goes_as_an_object() -> None:
    wire, _ = wire_messages(ASKED, Message.assistant(tool_calls=[ToolCall.read("toolu_1", "f", '{"x": ')]), OK)
    assert wire[1] == assistant({**WIRE_CALL, "input": {"invalid_arguments": '{"x": '}})


def test_thinking_without_a_signature_goes_back_only_where_signatures_are_unknown() -> None:
    unsigned = ThinkingPart("hm")
    asked = (ASKED, Message("assistant", (unsigned, replace(THOUGHT, signature=""), TextPart("a"))), Message.user("r"))
    wire, _ = wire_messages(*asked)
    assert wire[1] == {"role": "assistant", "content": "a"}
    wire, _ = wire_messages(*asked[:1], Message("assistant", (unsigned, TextPart("a"))), to=target(COMPATIBLE_MESSAGES))
    assert wire[1] == assistant({"type": "thinking", "thinking": "hm"}, text("a"))


def test_text_of_white_space_is_not_sent_and_neighbours_become_one_turn() -> None:
    cited = OpaquePart("anthropic", {"citations": [CITATION]})
    wire, _ = wire_messages(
        Message("user", (TextPart("q"), TextPart(" \n"))),
        Message("assistant", (TextPart("\n\n"), cited)),
        Message.user("r"),
        Message.assistant("a"),
        Message("assistant", (TextPart("b \n"),)),
    )
    assert wire == [user(text("q"), text("r")), assistant(text("a"), text("b"))]
    wire, warned = wire_messages(Message.user(" "), Message.assistant("a"), ASKED)
    assert wire == [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "a"}, WIRE_ASKED]
    assert warned == ["messages", "messages"]


def test_a_conversation_begins_with_the_user() -> None:
    wire, warned = wire_messages(Message.assistant("a"), ASKED)
    assert wire == [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "a"}, WIRE_ASKED]
    assert warned == ["messages"]
    sent = encoded(Request((Message.system("S"),)))
    assert sent.body == body({"role": "user", "content": "Go on."}, system="S")
    assert features(sent.warnings) == ["messages"]


def test_a_result_that_is_json_is_sent_as_compact_text() -> None:
    wire, _ = wire_messages(
        ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("toolu_1", "f", {"é": [1]}))
    )
    assert wire[2] == user({**WIRE_OK, "content": '{"é":[1]}'})


def test_what_we_do_not_model_is_read_into_opaque_parts_and_extra_body_and_written_again() -> None:
    upload: JsonObject = {"type": "container_upload", "file_id": "file_1"}
    odd: JsonObject = {"type": "image", "source": {"type": "file", "file_id": "file_2"}}
    empty = text("")
    mixed: JsonObject = {**WIRE_OK, "content": [text("a"), {"type": "odd"}]}
    wire = body(
        user(upload, odd, text("q")),
        assistant(WIRE_CALL),
        user({**mixed, "content": [text("a"), text('{"type":"odd"}')]}),
        context_management={"edits": []},
        container="c1",
        metadata={"user_id": "u", "team": "t"},
        tool_choice={"type": "new"},
    )
    request = anthropic.read_request(wire)
    assert request.messages[0].parts[:2] == (OpaquePart("anthropic", upload), OpaquePart("anthropic", odd))
    assert encoded(request).body == wire
    assert anthropic.read_request(body(user(empty))).messages[0].parts == (OpaquePart("anthropic", empty),)
    read = anthropic.read_request(body(WIRE_ASKED, assistant(WIRE_CALL), user(mixed))).messages[2]
    assert read.tool_results[0] == ToolResult("toolu_1", "f", "a", media=(TextPart('{"type":"odd"}'),))


# --- tools ------------------------------------------------------------------------------------------------------

NOTHING: JsonObject = {"type": "object", "properties": {}}
NO_ARGUMENTS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": NOTHING}}
NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
SEARCH = Tool.web_search().spec
WIRE_SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
LIMITED = Tool.web_search(
    WebSearch(allowed_domains=("a.org",), max_uses=2, user_location={"city": "Oslo", "country": "NO"})
).spec
CODE: JsonObject = {"type": "code_execution_20260120", "code_execution_20260120": {"name": "code_execution"}}
WIRE_CODE: JsonObject = {"type": "code_execution_20260120", "name": "code_execution"}
OFFERS: dict[str, tuple[Target[MessagesDialect], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL,)), {"tools": [WIRE_TOOL]}, []),
    "row 25 no-argument tool": (
        target(),
        Request(tools=(NO_ARGUMENTS,)),
        {"tools": [{**WIRE_TOOL, "input_schema": NOTHING}]},
        [],
    ),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto"}},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "any"}},
        [],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [WIRE_TOOL, WIRE_OTHER], "tool_choice": {"type": "tool", "name": "f"}},
        [],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "none"}},
        [],
    ),
    "row 32 parallel off beside a forced call": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        [],
    ),
    "row 49 web search": (target(), Request(tools=(SEARCH,)), {"tools": [WIRE_SEARCH]}, []),
    "row 49 web search within limits": (
        target(),
        Request(tools=(TOOL, LIMITED, OTHER)),
        {
            "tools": [
                WIRE_TOOL,
                {
                    **WIRE_SEARCH,
                    "allowed_domains": ["a.org"],
                    "max_uses": 2,
                    "user_location": {"type": "approximate", "city": "Oslo", "country": "NO"},
                },
                WIRE_OTHER,
            ]
        },
        [],
    ),
    "row 49 a tool of the provider's own": (target(), Request(tools=(CODE,)), {"tools": [WIRE_CODE]}, []),
    "row 49 a newer web search": (
        target(replace(ANTHROPIC, web_search="web_search_20260318")),
        Request(tools=(SEARCH,)),
        {"tools": [{**WIRE_SEARCH, "type": "web_search_20260318"}]},
        [],
    ),
    "fields of the provider's own on a tool": (
        target(),
        Request(tools=({**TOOL, "anthropic": {"defer_loading": True, "cache_control": {"type": "ephemeral"}}},)),
        {"tools": [{**WIRE_TOOL, "defer_loading": True, "cache_control": {"type": "ephemeral"}}]},
        [],
    ),
}
ONE_WAY: dict[str, tuple[Target[MessagesDialect], Request, JsonObject, list[str]]] = {
    "row 25 tool without parameters": (
        target(),
        Request(tools=(NO_PARAMETERS,)),
        {"tools": [{**WIRE_TOOL, "input_schema": NOTHING}]},
        [],
    ),
    "row 28 required on a model that cannot be forced": (
        target(forced_choice=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto"}},
        ["tool_choice"],
    ),
    "row 28 required where thinking forbids it": (
        target(default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto"}},
        ["tool_choice"],
    ),
    "row 28 required beside a thinking budget": (
        BY_BUDGET,
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, options={"reasoning": {"budget": 2000}}),
        {
            "max_tokens": 6096,
            "tools": [WIRE_TOOL],
            "tool_choice": {"type": "auto"},
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        },
        ["tool_choice"],
    ),
    "row 28 required beside adaptive thinking": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, options={"reasoning": "low"}),
        {
            "tools": [WIRE_TOOL],
            "tool_choice": {"type": "any"},
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low"},
        },
        [],
    ),
    "row 29 named on a model that cannot be forced": (
        target(forced_choice=False),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("g")),
        {"tools": [WIRE_OTHER], "tool_choice": {"type": "auto"}},
        ["tool_choice"],
    ),
    "row 31 allowed list": (
        target(),
        Request(tools=(TOOL, SEARCH, OTHER, THIRD), tool_choice=ToolChoice("required", ("f", "h"))),
        {"tools": [WIRE_TOOL, WIRE_THIRD], "tool_choice": {"type": "any"}},
        [],
    ),
    "row 31 allowed list, open": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("auto", ("g",))),
        {"tools": [WIRE_OTHER], "tool_choice": {"type": "auto"}},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        [],
    ),
    "row 32 parallel off where no call may be made": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE, parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "none"}},
        [],
    ),
    "row 32 parallel on": (target(), Request(tools=(TOOL,), parallel_tool_calls=True), {"tools": [WIRE_TOOL]}, []),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
}


@pytest.mark.parametrize(
    ("to", "request_", "fields", "warned"), {**OFFERS, **ONE_WAY}.values(), ids=[*OFFERS, *ONE_WAY]
)
def test_tools_and_choices(
    to: Target[MessagesDialect], request_: Request, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    assert sent.body == body(WIRE_ASKED) | fields
    assert features(sent.warnings) == warned


@pytest.mark.parametrize(("to", "request_", "fields", "_"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choices_are_read_back(
    to: Target[MessagesDialect], request_: Request, fields: JsonObject, _: list[str]
) -> None:
    read = anthropic.read_request(body(WIRE_ASKED) | fields, to.dialect)
    assert read == replace(request_, messages=(ASKED,), options={"max_tokens": 4096})


def test_row_26_a_name_the_wire_forbids_is_mapped_and_mapped_back() -> None:
    name = "shop.orders/" + "x" * 150
    tool: JsonObject = {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert len(wire) <= 128
    assert sent.body["tools"] == [{"name": wire, "input_schema": SCHEMA}]
    assert sent.body["tool_choice"] == {"type": "tool", "name": wire}
    response = anthropic.decode(answer({**WIRE_CALL, "name": wire}), sent, target())
    assert response.choices[0].tool_calls[0].name == name
    long = "x" * 100  # within this wire's length, though beyond others'
    assert encoded(Request((ASKED,), ({"type": "function", "function": {"name": long}},))).names.encode(long) == long


@pytest.mark.parametrize(
    ("tool", "to", "said"),
    [
        pytest.param({"type": "image_generation"}, target(), "built-in tool 'image_generation'", id="row 49 unknown"),
        pytest.param(SEARCH, target(COMPATIBLE_MESSAGES), "no place for web search", id="row 49 no search"),
        pytest.param(
            Tool.web_search(WebSearch(("a",), ("b",))).spec,
            target(),
            "allowed_domains together",
            id="row 49 both lists",
        ),
        pytest.param(
            {"type": "function", "function": {"name": "f", "parameters": {"anyOf": [SCHEMA]}}},
            target(),
            "schema of tool 'f'.*the root must be an object",
            id="row 24 a root that is no object",
        ),
    ],
)
def test_tools_without_a_place_are_refused(tool: JsonObject, to: Target[MessagesDialect], said: str) -> None:
    with pytest.raises(UnsupportedFeature, match=said):
        encoded(Request((ASKED,), (tool,)), to)


def test_row_24_the_callers_schema_is_sent_as_it_is() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "integer", "minimum": 1}},
        "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}},
    }
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": schema}}
    assert encoded(Request((ASKED,), (tool,))).body["tools"] == [{"name": "f", "input_schema": schema}]


# --- output and sampling --------------------------------------------------------------------------------------------

ADAPTIVE: JsonObject = {"type": "adaptive"}
ALWAYS_ON = target(efforts=("low", "medium", "high"), default_effort="high", forced_choice=False)
FIELDS: dict[str, tuple[Target[MessagesDialect], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"max_tokens": 50}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {"max_tokens": 4096}, []),
    "row 39 max tokens unset, by the model": (target(default_max_tokens=512), {}, {"max_tokens": 512}, []),
    "row 39 max tokens unset, within what the model writes": (
        target(able=replace(ABLE, max_output_tokens=1000)),
        {},
        {"max_tokens": 1000},
        [],
    ),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_k": 5}, {"temperature": 0.0, "top_k": 5}, []),
    "row 40 temperature on a model without sampling": (
        target(sampling="never"),
        {"temperature": 0.0, "top_p": 0.5, "top_k": 5},
        {},
        ["temperature", "top_p", "top_k"],
    ),
    "row 40 temperature since the version of 2026-10-21": (
        target(replace(ANTHROPIC, version="2026-10-21")),
        {"temperature": 1.0},
        {},
        ["temperature"],
    ),
    "row 40 temperature on a model that thinks": (
        target(sampling="unless_reasoning"),
        {"temperature": 0.0, "reasoning": "low"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["temperature"],
    ),
    "row 40 temperature with thinking switched off": (
        target(sampling="unless_reasoning", default_effort="high"),
        {"temperature": 0.0, "reasoning": "off"},
        {"temperature": 0.0, "thinking": {"type": "disabled"}},
        [],
    ),
    "row 40 temperature and top_p": (target(), {"top_p": 0.5, "temperature": 0.1}, {"temperature": 0.1}, ["top_p"]),
    "row 40 top_p alone": (target(), {"top_p": 0.5, "temperature": None}, {"top_p": 0.5}, []),
    "row 40 temperature and top_p on a host that takes both": (
        target(COMPATIBLE_MESSAGES),
        {"top_p": 0.5, "temperature": 0.1},
        {"temperature": 0.1, "top_p": 0.5},
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}, []),
    "row 41 stop as one text": (target(), {"stop": "a"}, {"stop_sequences": ["a"]}, []),
    "row 41 stop of white space": (target(), {"stop": ["\n\n", "a"]}, {"stop_sequences": ["a"]}, ["stop"]),
    "row 41 stop on a model without": (target(stop=False), {"stop": "a"}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, {}, ["seed"]),
    "row 43 two choices": (target(), {"n": 2}, {}, ["n"]),
    "row 43 one choice": (target(), {"n": 1}, {}, []),
    "row 45 effort": (
        target(),
        {"reasoning": "high"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "high"}},
        [],
    ),
    "row 45 effort the wire does not have": (
        target(),
        {"reasoning": "minimal"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 45 effort the model does not have": (
        ALWAYS_ON,
        {"reasoning": "xhigh"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "high"}},
        ["reasoning"],
    ),
    "row 45 effort on a model with budgets": (
        BY_BUDGET,
        {"reasoning": "medium"},
        {"max_tokens": 8192, "thinking": {"type": "enabled", "budget_tokens": 4096}},
        [],
    ),
    "row 45 effort within the caller's limit": (
        BY_BUDGET,
        {"reasoning": "high", "max_tokens": 4000},
        {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}},
        ["reasoning"],
    ),
    "row 45 effort that has no room": (
        BY_BUDGET,
        {"reasoning": "high", "max_tokens": 1024},
        {"max_tokens": 1024, "thinking": {"type": "disabled"}},
        ["reasoning"],
    ),
    "row 46 budget": (
        BY_BUDGET,
        {"reasoning": {"budget": 2000}, "max_tokens": 4000},
        {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}},
        [],
    ),
    "row 46 budget beyond the caller's limit": (
        BY_BUDGET,
        {"reasoning": {"budget": 2000}, "max_tokens": 1500},
        {"max_tokens": 1500, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        ["reasoning"],
    ),
    "row 46 budget below the least": (
        BY_BUDGET,
        {"reasoning": {"budget": 7}},
        {"max_tokens": 5120, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        ["reasoning"],
    ),
    "row 46 budget beyond what the model writes": (
        target(able=replace(ABLE, max_output_tokens=8000), thinking="budget"),
        {"reasoning": {"budget": 20000}},
        {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 4000}},
        ["reasoning"],
    ),
    "row 46 budget on a model with efforts": (
        target(),
        {"reasoning": {"budget": 2000}},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"thinking": {"type": "disabled"}}, []),
    "row 47 reasoning off on a model with budgets": (
        BY_BUDGET,
        {"reasoning": "off"},
        {"thinking": {"type": "disabled"}},
        [],
    ),
    "row 47 reasoning off on a model that always thinks": (
        ALWAYS_ON,
        {"reasoning": "off"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not think": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 cache hint": (target(), {"cache": True}, {"cache_control": {"type": "ephemeral"}}, []),
    "row 48 cache hint for an hour": (
        target(),
        {"cache": {"ttl": "1h"}},
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
        [],
    ),
    "row 48 no cache hint": (target(), {"cache": False}, {}, []),
    "row 48 cache hint on a host without marks": (target(COMPATIBLE_MESSAGES), {"cache": True}, {}, []),
    "row 50 extra body": (
        target(),
        {"temperature": 1.0, "extra_body": {"temperature": 0.5, "inference_geo": "us"}},
        {"temperature": 0.5, "inference_geo": "us"},
        [],
    ),
    "row 50 extra body beside ours": (
        target(),
        {"reasoning": "high", "extra_body": {"thinking": {"display": "summarized"}}},
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
        [],
    ),
    "the rest": (
        target(),
        {"user": "u", "service_tier": "auto"},
        {"metadata": {"user_id": "u"}, "service_tier": "auto"},
        [],
    ),
    "metadata": (target(), {"metadata": {"user_id": "u"}}, {"metadata": {"user_id": "u"}}, []),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options(to: Target[MessagesDialect], options: JsonObject, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED) | fields
    assert features(sent.warnings) == warned


READ_BACK: dict[str, JsonObject] = {
    "row 38 max tokens": {"max_tokens": 50},
    "row 40 sampling": {"max_tokens": 50, "temperature": 0.5, "top_k": 3},
    "row 41 stop": {"max_tokens": 50, "stop": ["a"]},
    "row 45 effort": {"max_tokens": 50, "reasoning": "high"},
    "row 45 effort and its display": {
        "max_tokens": 50,
        "reasoning": "high",
        "extra_body": {"thinking": {"display": "omitted"}},
    },
    "row 45 effort alone": {"max_tokens": 50, "extra_body": {"output_config": {"effort": "low"}}},
    "row 45 thinking alone": {"max_tokens": 50, "extra_body": {"thinking": {"type": "adaptive"}}},
    "row 47 reasoning off": {"max_tokens": 50, "reasoning": "off"},
    "row 48 cache hint": {"max_tokens": 50, "cache": True},
    "row 48 cache hint for an hour": {"max_tokens": 50, "cache": {"ttl": "1h"}},
    "row 48 another mark": {"max_tokens": 50, "extra_body": {"cache_control": {"type": "new"}}},
    "row 50 extra body": {"max_tokens": 50, "extra_body": {"speed": "fast", "container": "c"}},
    "the rest": {"max_tokens": 50, "user": "u", "service_tier": "auto"},
}


@pytest.mark.parametrize("options", READ_BACK.values(), ids=READ_BACK)
def test_options_are_read_back(options: JsonObject) -> None:
    request = Request((ASKED,), options=options)
    assert anthropic.read_request(encoded(request).body) == request


def test_row_46_a_budget_is_read_back() -> None:
    request = Request((ASKED,), options={"max_tokens": 4000, "reasoning": {"budget": 2000}})
    assert anthropic.read_request(encoded(request, BY_BUDGET).body) == request


def test_row_43_the_request_is_sent_as_often_as_choices_are_wanted() -> None:
    assert encoded(Request((ASKED,), options={"n": 3})).repeat == 3
    assert encoded(Request((ASKED,))).repeat == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({"logprobs": True}, "logprobs", id="row 44 logprobs"),
        pytest.param({"top_logprobs": 3}, "top_logprobs", id="row 44 top_logprobs"),
        pytest.param({"presence_penalty": 1}, "presence_penalty", id="an option this wire has no place for"),
    ],
)
def test_an_option_without_a_place_is_refused(options: JsonObject, named: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {named!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options=options))
    assert caught.value.option == named


def test_metadata_beside_the_users_id_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="metadata 'team'"):
        encoded(Request((ASKED,), options={"metadata": {"team": "t"}}))
    with pytest.raises(InputError, match="metadata must be an object"):
        encoded(Request((ASKED,), options={"metadata": "t"}))


def test_row_45_a_model_that_does_not_think_refuses_an_effort() -> None:
    with pytest.raises(UnsupportedFeature, match="reasoning effort 'high'"):
        encoded(Request((ASKED,), options={"reasoning": "high"}), target(thinking="none"))


def test_row_1_the_path_is_under_a_base_without_v1_and_row_2_the_version_is_a_header() -> None:
    sent = encoded(Request((ASKED,)))
    assert sent.path == "/v1/messages"
    assert sent.headers == {"anthropic-version": "2023-06-01"}
    newer = replace(ANTHROPIC, version="2026-10-21")
    assert encoded(Request((ASKED,)), target(newer)).headers == {"anthropic-version": "2026-10-21"}


def test_row_50_a_beta_header_is_sent_beside_the_version() -> None:
    sent = encoded(Request((ASKED,), options={"extra_headers": {"anthropic-beta": "a,b"}}))
    assert sent.headers == {"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"}


def test_row_64_a_stream_is_switched_on() -> None:
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, stream=True)


FORMAT: JsonObject = {"format": {"type": "json_schema", "schema": CLOSED}}


def test_row_34_structured_output_and_row_35_its_name_is_dropped() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(CLOSED, "answer"))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, output_config=FORMAT)
    assert sent.warnings == ()
    assert anthropic.read_request(sent.body).response_format == ResponseFormat(CLOSED)


def test_row_34_structured_output_beside_an_effort() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(SCHEMA), options={"reasoning": "low"})
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, thinking=ADAPTIVE, output_config={**FORMAT, "effort": "low"})
    read = anthropic.read_request(sent.body)
    assert (read.response_format, read.options["reasoning"]) == (ResponseFormat(CLOSED), "low")
    assert "extra_body" not in read.options


def test_row_37_structured_output_and_tools_go_together() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    assert encoded(request).body == body(WIRE_ASKED, tools=[WIRE_TOOL], output_config=FORMAT)
    apart = encoded(request, target(able=replace(ABLE, tools_with_json_schema=False)))
    assert apart.body == body(WIRE_ASKED, tools=[WIRE_TOOL], system=in_words(SCHEMA))
    assert features(apart.warnings) == ["response_format"]


def in_words(schema: JsonObject) -> str:
    text = json.dumps(schema, separators=(",", ":"))
    return f"Answer with one JSON value and nothing else. It must fit this JSON Schema:\n{text}"


def test_row_36_a_model_without_structured_output_is_asked_in_words() -> None:
    request = Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA))
    to = target(able=Capabilities())
    sent = encoded(request, to)
    assert sent.body == body(WIRE_ASKED, system=f"S\n\n{in_words(SCHEMA)}")
    assert features(sent.warnings) == ["response_format"]
    blocks = Message("system", (TextPart("S"), TextPart("T")))
    sent = encoded(replace(request, messages=(blocks, ASKED)), to)
    assert sent.body == body(WIRE_ASKED, system=[text("S"), text("T"), text(in_words(SCHEMA))])


def test_row_36_any_object_is_asked_for_in_words() -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat()))
    assert sent.body == body(WIRE_ASKED, system="Answer with one JSON object and nothing else.")
    assert features(sent.warnings) == ["response_format"]


COMPILED: dict[str, tuple[JsonObject, JsonObject, int]] = {
    "objects are closed": ({"type": "object", "properties": {"a": SCHEMA}}, {"a": CLOSED}, 0),
    "oneOf is anyOf": (
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"const": 1}]}}},
        {"a": {"anyOf": [{"type": "string"}, {"const": 1}]}},
        0,
    ),
    "a list of types is anyOf": (
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        0,
    ),
    "limits are said in words": (
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "description": "How many."}}},
        {"a": {"type": "integer", "description": "How many. (minimum: 1)"}},
        1,
    ),
    "formats and counts the provider knows stay": (
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "format": "date"},
                "b": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
            },
        },
        {
            "a": {"type": "string", "format": "date"},
            "b": {"type": "array", "items": {"type": "string", "description": "(format: binary)"}, "minItems": 1},
        },
        1,
    ),
}


@pytest.mark.parametrize(("schema", "properties", "lost"), COMPILED.values(), ids=COMPILED)
def test_an_output_schema_is_compiled_to_what_the_wire_takes(
    schema: JsonObject, properties: JsonObject, lost: int
) -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(schema)))
    compiled: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    assert sent.body["output_config"] == {"format": {"type": "json_schema", "schema": compiled}}
    assert features(sent.warnings) == ["schema"] * lost


NOT_SENT: dict[str, tuple[JsonObject, str]] = {
    "an open map": (
        {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        "at /properties/a it is a map",
    ),
    "an open root": ({"type": "object"}, "an output object of any keys"),
    "a root with further keys": ({**SCHEMA, "additionalProperties": True}, "an output object of any keys"),
    "recursion": (
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        "at /properties/a it is recursive",
    ),
    "no type": ({"type": "object", "properties": {"a": {}}}, "at /properties/a it does not say which type"),
}


@pytest.mark.parametrize(("schema", "why"), NOT_SENT.values(), ids=NOT_SENT)
def test_an_output_schema_that_would_lose_data_is_said_in_words(schema: JsonObject, why: str) -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(schema)))
    assert sent.body == body(WIRE_ASKED, system=in_words(schema))
    assert features(sent.warnings) == ["response_format"]
    assert why in sent.warnings[0].detail


# --- replies ----------------------------------------------------------------------------------------------------------

USAGE: JsonObject = {
    "input_tokens": 5,
    "cache_read_input_tokens": 4,
    "cache_creation_input_tokens": 1,
    "output_tokens": 7,
    "output_tokens_details": {"thinking_tokens": 2},
}
USED = Usage(10, 7, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2)


def answer(*blocks: JsonObject, stop_reason: JsonValue = "end_turn", **fields: JsonValue) -> JsonObject:
    wire: JsonObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": list(blocks)}
    return {**wire, "stop_reason": stop_reason, "stop_sequence": None, "usage": USAGE, **fields}


def decoded(wire: JsonValue, to: Target[MessagesDialect] | None = None, *history: Message) -> Response:
    before = copy.deepcopy(wire)
    response = anthropic.decode(wire, encoded(Request((ASKED, *history)), to), to or target())
    assert wire == before
    return response


CITED: JsonObject = {
    "type": "char_location",
    "cited_text": "said",
    "document_index": 0,
    "document_title": "D",
    "start_char_index": 3,
    "end_char_index": 7,
    "file_id": None,
}
REPLIES: dict[str, tuple[JsonObject, Choice, list[str]]] = {
    "row 51 text": (answer(text("Hi")), Choice("Hi"), []),
    "row 51 texts are joined": (
        answer(text("Hi "), text("there")),
        with_parts(TextPart("Hi "), TextPart("there")),
        [],
    ),
    "row 52 call id, row 55 two parallel calls": (
        answer(text("t"), WIRE_CALL, WIRE_SECOND, stop_reason="tool_use"),
        Choice("t", (CALL, SECOND), finish_reason="tool_calls"),
        [],
    ),
    "row 53 empty arguments": (
        answer({**WIRE_CALL, "input": {}}, {**WIRE_SECOND, "input": None}, stop_reason="tool_use"),
        Choice(
            tool_calls=(replace(CALL, arguments={}), replace(SECOND, arguments={})),
            finish_reason="tool_calls",
        ),
        [],
    ),
    "row 54 arguments that are no object": (
        answer({**WIRE_CALL, "input": [1]}, stop_reason="tool_use"),
        Choice(tool_calls=(ToolCall.read("toolu_1", "f", [1]),), finish_reason="tool_calls"),
        [],
    ),
    "row 56 thinking": (
        answer(WIRE_THOUGHT, WIRE_REDACTED, text("Hi")),
        with_parts(THOUGHT, REDACTED, TextPart("Hi")),
        [],
    ),
    "row 56 thinking between calls": (
        answer(WIRE_THOUGHT, WIRE_CALL, {**WIRE_THOUGHT, "signature": "S2"}, WIRE_SECOND, stop_reason="tool_use"),
        with_parts(THOUGHT, CALL, replace(THOUGHT, signature="S2"), SECOND, finish_reason="tool_calls"),
        [],
    ),
    "row 57 refusal": (
        answer(stop_reason="refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "No."}),
        Choice(refusal="No.", finish_reason="content_filter"),
        [],
    ),
    "row 57 refusal without words": (
        answer(stop_reason="refusal"),
        Choice(refusal="", finish_reason="content_filter"),
        [],
    ),
    "row 58 citations of a search": (
        answer(SEARCHED, FOUND, text("So: "), {**text("it is."), "citations": [CITATION]}),
        with_parts(
            OpaquePart("anthropic", SEARCHED),
            OpaquePart("anthropic", FOUND),
            TextPart("So: "),
            TextPart("it is."),
            OpaquePart("anthropic", {"citations": [CITATION]}),
            citations=(
                {
                    "type": "web_search_result_location",
                    "url": "https://x",
                    "title": "X",
                    "text": "said",
                    "start_index": 4,
                    "end_index": 10,
                },
            ),
        ),
        [],
    ),
    "row 58 citations of a document": (
        answer({**text("It is."), "citations": [CITED]}),
        with_parts(
            TextPart("It is."),
            OpaquePart("anthropic", {"citations": [CITED]}),
            citations=(
                {
                    "type": "char_location",
                    "text": "said",
                    "document_index": 0,
                    "title": "D",
                    "start_char_index": 3,
                    "end_char_index": 7,
                    "start_index": 0,
                    "end_index": 6,
                },
            ),
        ),
        [],
    ),
    "row 58 no citations": (answer({**text("Hi"), "citations": None}), Choice("Hi"), []),
    "row 59 calls but another reason": (
        answer(WIRE_CALL),
        Choice(tool_calls=(CALL,), finish_reason="tool_calls"),
        [],
    ),
    "row 60 cut inside a call": (
        answer(text("t"), WIRE_CALL, {**WIRE_SECOND, "input": {}}, stop_reason="max_tokens"),
        Choice("t", (CALL,), finish_reason="length"),
        ["tool_calls"],
    ),
    "row 60 cut after a call": (
        answer(WIRE_CALL, text("and"), stop_reason="max_tokens"),
        with_parts(CALL, TextPart("and"), finish_reason="length"),
        [],
    ),
    "row 61 nothing": (answer(), Choice(), []),
    "row 61 an empty text": (answer(text("")), Choice(), []),
    "row 75 the context is full": (
        answer(text("t"), stop_reason="model_context_window_exceeded"),
        Choice("t", finish_reason="length"),
        [],
    ),
    "row 81 a pause that nobody ended": (
        answer(text("t"), stop_reason="pause_turn"),
        Choice("t", finish_reason="length"),
        ["finish_reason"],
    ),
    "a call's caller is kept": (
        answer({**WIRE_CALL, "caller": {"type": "direct"}, "toolset_name": None}, stop_reason="tool_use"),
        Choice(
            tool_calls=(replace(CALL, provider_data={"anthropic": {"caller": {"type": "direct"}}}),),
            finish_reason="tool_calls",
        ),
        [],
    ),
    "a host's call without an id": (
        answer({"type": "tool_use", "name": "f", "input": {"x": 1}}, stop_reason="tool_use"),
        Choice(tool_calls=(replace(CALL, id="call_0"),), finish_reason="tool_calls"),
        [],
    ),
    "content that is plain text": ({**answer(), "content": "Hi"}, Choice("Hi"), []),
    "a block nobody knows is kept": (
        answer({"type": "new", "a": 1}, text("Hi")),
        with_parts(OpaquePart("anthropic", {"type": "new", "a": 1}), TextPart("Hi")),
        [],
    ),
}


@pytest.mark.parametrize(("wire", "choice", "warned"), REPLIES.values(), ids=REPLIES)
def test_replies(wire: JsonObject, choice: Choice, warned: list[str]) -> None:
    response = decoded(wire)
    assert response == Response((replace(choice, raw=wire),), USED, "m-1", "msg_1", response.warnings, raw=wire)
    assert features(response.warnings) == warned


FINISHES = {
    ("end_turn", "t"): "stop",
    ("stop_sequence", "t"): "stop",
    ("tool_use", "t"): "stop",
    ("tool_use", ""): "error",
    ("max_tokens", "t"): "length",
    ("compaction", ""): "length",
    ("refusal", "t"): "content_filter",
    (None, "t"): "stop",
    (None, ""): "error",
    ("strange", "t"): "stop",
    ("strange", ""): "error",
}


@pytest.mark.parametrize(("wire", "ours"), FINISHES.items(), ids=map(str, FINISHES))
def test_finish_reasons(wire: tuple[JsonValue, str], ours: str) -> None:
    reason, words = wire
    assert decoded(answer(text(words), stop_reason=reason)).choices[0].finish_reason == ours


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        pytest.param(USAGE, USED, id="row 63 the input is the sum of three"),
        pytest.param({"input_tokens": 3, "output_tokens": 1}, Usage(3, 1), id="row 63 no cache"),
        pytest.param(
            {"input_tokens": 3, "cache_read_input_tokens": None, "cache_creation_input_tokens": 0},
            Usage(3, cache_write_tokens=0),
            id="row 63 unknown is not none",
        ),
        pytest.param(None, Usage(), id="row 63 nothing"),
    ],
)
def test_usage(usage: JsonValue, read: Usage) -> None:
    assert decoded({**answer(text("Hi")), "usage": usage}).usage == read


def test_an_invented_id_does_not_repeat_one_of_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    wire = answer({"type": "tool_use", "name": "f"}, {"type": "tool_use", "name": "f"}, stop_reason="tool_use")
    calls = decoded(wire, None, *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_what_encode_warned_of_is_on_the_response() -> None:
    sent = encoded(Request((ASKED,), options={"seed": 1}))
    assert features(anthropic.decode(answer(text("Hi")), sent, target()).warnings) == ["seed"]


# --- a turn that was paused -------------------------------------------------------------------------------------------


def test_row_81_a_paused_turn_is_sent_back_unchanged_with_the_same_tools() -> None:
    sent = encoded(Request((ASKED,), (SEARCH,), options={"temperature": 0.5}))
    before = copy.deepcopy(sent.body)
    first = answer(SEARCHED, stop_reason="pause_turn", container={"id": "c1", "expires_at": "..."})
    again = anthropic.resume(first, sent)
    assert again is not None
    assert again.body == {**sent.body, "messages": [WIRE_ASKED, assistant(SEARCHED)], "container": "c1"}
    second = answer(FOUND, stop_reason="pause_turn")
    thrice = anthropic.resume(second, again)
    assert thrice is not None
    assert thrice.body == {**again.body, "messages": [WIRE_ASKED, assistant(SEARCHED, FOUND)]}
    last = answer({**text("it is."), "citations": [CITATION]})
    assert anthropic.resume(last, thrice) is None
    assert sent.body == before
    response = anthropic.decode([first, second, last], sent, target())
    whole = decoded(answer(SEARCHED, FOUND, {**text("it is."), "citations": [CITATION]}))
    assert response.choices[0] == replace(whole.choices[0], raw=[first, second, last])
    assert response.usage == USED + USED + USED
    assert response.raw == [first, second, last]
    assert response.warnings == ()


SKILLED: JsonObject = {"extra_body": {"container": {"skills": ["s"]}}}


def test_row_81_a_container_keeps_its_settings_and_an_empty_pause_asks_again() -> None:
    sent = encoded(Request((ASKED,), options=SKILLED))
    again = anthropic.resume(answer(stop_reason="compaction", container={"id": "c1"}), sent)
    assert again is not None
    container: JsonObject = {"skills": ["s"], "id": "c1"}
    assert again.body == {**sent.body, "container": container}
    assert anthropic.resume("<html>", sent) is None


# --- errors -----------------------------------------------------------------------------------------------------------


def error_body(kind: str, message: str = "No", **fields: Any) -> JsonObject:
    return {"type": "error", "error": {"type": kind, "message": message, **fields}, "request_id": "req_1"}


LIMIT: dict[str, Any] = {"details": {"error_code": "enforced_spend_limit_reached"}}
ERRORS: dict[str, tuple[int, JsonObject, type[LMError], bool]] = {
    "row 73 bad key": (401, error_body("authentication_error"), LMAuthenticationError, False),
    "row 73 forbidden": (403, error_body("permission_error"), LMAuthenticationError, False),
    "row 74 unknown model": (404, error_body("not_found_error", "model: x"), LMUnsupportedModelError, False),
    "row 75 context": (
        400,
        error_body("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        ContextWindowExceededError,
        False,
    ),
    "row 75 context and limit": (
        400,
        error_body("invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 1 > 8"),
        ContextWindowExceededError,
        False,
    ),
    "row 75 bytes": (413, error_body("request_too_large"), ContextWindowExceededError, False),
    "row 76 rate limit": (429, error_body("rate_limit_error"), LMRateLimitError, True),
    "row 77 overloaded": (529, error_body("overloaded_error"), LMServerError, True),
    "row 78 billing": (402, error_body("billing_error"), LMBillingError, False),
    "row 78 spend limit": (429, error_body("rate_limit_error", **LIMIT), LMBillingError, False),
    "row 78 balance": (
        400,
        error_body("invalid_request_error", "Your credit balance is too low to access the API"),
        LMBillingError,
        False,
    ),
    "row 78 a limit of one's own": (
        400,
        error_body("invalid_request_error", "You have reached your specified API usage limits."),
        LMBillingError,
        False,
    ),
    "bad request": (400, error_body("invalid_request_error"), LMInvalidRequestError, False),
    "conflict": (409, error_body("conflict_error"), LMServerError, True),
    "server": (500, error_body("api_error"), LMServerError, True),
    "timeout": (504, error_body("timeout_error"), LMTimeoutError, True),
}


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_errors(status: int, wire: JsonObject, kind: type[LMError], retryable: bool) -> None:
    error = anthropic.decode_error(status, {}, json.dumps(wire), target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.status, error.provider, error.model, error.request_id) == (status, "anthropic", "m", "req_1")


@pytest.mark.parametrize(("status", "wire", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_row_79_the_same_error_inside_a_success(
    status: int, wire: JsonObject, kind: type[LMError], retryable: bool
) -> None:
    with pytest.raises(LMError) as caught:
        decoded(wire)
    assert (type(caught.value), caught.value.retryable) == (kind, retryable)
    assert caught.value.status == status


def test_row_76_the_wait_and_the_request_id_are_on_the_error() -> None:
    headers = {"Retry-After": "9", "Request-Id": "req_9"}
    error = anthropic.decode_error(429, headers, json.dumps(error_body("rate_limit_error")), target())
    assert (error.retry_after, error.request_id) == (9.0, "req_9")


def test_row_76_the_servers_word_on_trying_again_counts() -> None:
    error = anthropic.decode_error(
        429, {"x-should-retry": "false"}, json.dumps(error_body("rate_limit_error")), target()
    )
    assert error.retryable is False


@pytest.mark.parametrize(
    ("status", "wire", "kind"),
    [
        pytest.param(502, "<html><title>502 Bad Gateway</title></html>", LMServerError, id="row 80 html"),
        pytest.param(401, "", LMAuthenticationError, id="row 80 empty"),
        pytest.param(302, "", LMUnexpectedError, id="row 80 no status we know"),
    ],
)
def test_errors_that_are_no_json(status: int, wire: str, kind: type[LMError]) -> None:
    error = anthropic.decode_error(status, {}, wire, target())
    assert type(error) is kind
    assert len(error.message) < 600


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        pytest.param({"id": "msg_1"}, LMServerError, id="row 62 no content"),
        pytest.param({"content": None}, LMServerError, id="row 62 content is null"),
        pytest.param({"error": "overloaded"}, LMServerError, id="row 79 an error in words"),
        pytest.param([], LMServerError, id="an empty list"),
        pytest.param("<html>hello</html>", LMServerError, id="row 80 html"),
        pytest.param("", LMServerError, id="row 80 empty"),
        pytest.param("method=POST", LMUnexpectedError, id="row 80 some text"),
    ],
)
def test_a_success_that_is_no_answer(wire: JsonValue, kind: type[LMError]) -> None:
    with pytest.raises(LMError) as caught:
        decoded(wire)
    assert (type(caught.value), caught.value.status) == (kind, 200)


# --- properties -------------------------------------------------------------------------------------------------------

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
names = st.text(min_size=1, max_size=140)
wild_text = st.text(st.characters(), max_size=12)  # lone surrogates included
calls = st.builds(
    ToolCall.read, st.text(max_size=5), names, objects | st.text(max_size=9), provider_data=st.none() | objects
)
images = st.builds(ImagePart, st.none() | st.text(), st.none() | st.text(), st.sampled_from([None, "image/png", "x/y"]))
files = st.builds(
    FilePart, st.none() | st.text(), st.none() | st.text(), media_type=st.sampled_from(["text/plain", None])
)
media = images | files | st.builds(AudioPart, st.text())
results = st.builds(
    ToolResult,
    st.text(max_size=5),
    names,
    wild_text | json_values,
    st.booleans(),
    st.lists(images | st.builds(TextPart, wild_text), max_size=2).map(tuple),
)
families = st.sampled_from([None, "anthropic", "openai-chat"])
thinking = st.builds(ThinkingPart, wild_text, st.none() | st.text(), st.none() | st.text(), families)
told = st.dictionaries(st.text(max_size=5), json_values.filter(lambda value: value is not None), max_size=3)
opaque = st.builds(OpaquePart, st.just("anthropic"), told)
parts_of = {
    "system": st.builds(TextPart, wild_text) | opaque,
    "user": st.builds(TextPart, wild_text) | media | opaque,
    "assistant": st.builds(TextPart, wild_text) | calls | thinking | opaque,
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
        "temperature": st.floats(0, 1),
        "max_tokens": st.integers(0, 5000),
        "n": st.integers(1, 3),
        "reasoning": st.sampled_from(["off", "high", "max", {"budget": 7}]),
        "stop": st.text(max_size=3) | st.lists(st.text(max_size=3), max_size=3),
        "cache": st.booleans(),
        "logprobs": st.just(True),
        "seed": st.integers(),
        "extra_body": st.fixed_dictionaries({"x": objects}),
    },
)
requests = st.builds(
    Request,
    st.lists(messages, max_size=6).map(tuple),
    tools_offered,
    st.sampled_from([None, ToolChoice.AUTO, ToolChoice.REQUIRED, ToolChoice.NONE]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, ResponseFormat(), ResponseFormat(SCHEMA, "x y"), ResponseFormat({"type": "object"})]),
    options,
)
targets = st.sampled_from(
    [target(), BY_BUDGET, ALWAYS_ON, target(COMPATIBLE_MESSAGES), target(later_system=True, able=Capabilities())]
)


def attempt(request: Request, to: Target[MessagesDialect]) -> Encoded | str:
    """What would be sent, or why nothing can be."""
    try:
        return anthropic.encode(request, to)
    except CallerError as error:
        return str(error)


@given(requests, targets)
def test_any_request_encodes_or_fails_naming_what_has_no_place(request: Request, to: Target[MessagesDialect]) -> None:
    sent = attempt(request, to)
    if isinstance(sent, str):
        refused = ("no place for", "no option 'logprobs'", "An image needs", "A file needs", "not base64")
        assert any(words in sent for words in refused), sent
        return
    json.dumps(sent.body, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)
    budget = sent.body.get("thinking", {})
    assert isinstance(budget, dict)
    limit = sent.body["max_tokens"]
    assert isinstance(limit, int)
    assert "budget_tokens" not in budget or 1024 <= int(str(budget["budget_tokens"])) < limit


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


@given(requests, targets)
def test_what_is_sent_keeps_the_providers_rules_on_turns(request: Request, to: Target[MessagesDialect]) -> None:
    sent = attempt(replace(request, options={}), to)
    if isinstance(sent, str):
        return
    written: Any = sent.body["messages"]
    roles = [message["role"] for message in written]
    assert roles[0] == "user"
    assert all(role != following for role, following in itertools.pairwise(roles))
    waiting: list[str] = []
    seen: set[str] = set()
    for message in written:
        blocks = blocks_of(message)
        assert blocks
        assert all(block["text"].strip() for block in blocks if block.get("type") == "text")
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        assert results == waiting, "every call is answered at once, in order"
        assert results == [block.get("tool_use_id") for block in blocks[: len(results)]], "before anything else"
        waiting = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        assert seen.isdisjoint(waiting)
        seen.update(waiting)
    assert waiting == []
    later = [number for number, role in enumerate(roles) if role == "system"]
    assert all(
        roles[number - 1] == "user" and roles[number + 1 : number + 2] in ([], ["assistant"]) for number in later
    )


def cited(said: str) -> dict[str, Any]:
    return {**text(said), "citations": [CITATION]}


def thought(told: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": told, "signature": signature}


def redacted(data: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": data}


def used(name: str, given: dict[str, Any], caller: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": given, **caller}


words = st.text(min_size=1, max_size=12).filter(lambda text: bool(text.strip()))
callers: st.SearchStrategy[Any] = st.sampled_from([{}, {"caller": {"type": "direct"}}])
answer_block: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(text, words),
    st.builds(cited, words),
    st.builds(thought, st.text(), words),
    st.builds(redacted, words),
    st.builds(used, st.sampled_from(["f", "g"]), objects, callers),
    st.sampled_from([SEARCHED, FOUND]),
)
answer_blocks = st.lists(answer_block, min_size=1, max_size=6)


def with_ids(blocks: list[dict[str, Any]], turn: int = 0) -> list[dict[str, Any]]:
    return [
        {**block, "id": f"toolu_{turn}_{number}"} if block["type"] == "tool_use" else block
        for number, block in enumerate(blocks)
    ]


@given(st.lists(answer_blocks, min_size=1, max_size=4))
def test_answers_put_into_history_are_sent_as_they_came(answers: list[list[dict[str, Any]]]) -> None:
    history: list[Message] = [ASKED]
    came: list[list[dict[str, Any]]] = []
    for turn, blocks in enumerate(answers):
        wire = with_ids(blocks, turn)
        message = decoded(answer(*wire)).choices[0].message()
        history += [message, *results_for(message), Message.user("and?")]
        came.append(wire)
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    written: Any = anthropic.encode(Request(tuple(stored)), target()).body["messages"]
    assert [blocks_of(message) for message in written if message["role"] == "assistant"] == came


@given(requests)
def test_what_was_sent_is_read_and_sent_again(request: Request) -> None:
    sent = attempt(replace(request, options={}, response_format=None), target())
    if isinstance(sent, str):
        return
    again = anthropic.encode(anthropic.read_request(sent.body), target())
    assert again.body == sent.body


def test_ten_turns_are_sent_as_they_came() -> None:
    history: list[Message] = [ASKED]
    came: list[JsonObject] = [WIRE_ASKED]
    for turn in range(10):
        blocks: list[JsonObject] = [{**WIRE_THOUGHT, "signature": f"S{turn}"}, {**WIRE_CALL, "id": f"toolu_{turn}"}]
        sent = anthropic.encode(Request(tuple(history)), target())
        assert sent.body["messages"] == came
        choice = anthropic.decode(answer(*blocks, stop_reason="tool_use"), sent, target()).choices[0]
        history += [choice.message(), Message.tool(ToolResult(f"toolu_{turn}", "f", "ok"))]
        came += [assistant(*blocks), user({**WIRE_OK, "tool_use_id": f"toolu_{turn}"})]
    stored = [Message.from_json(json.loads(json.dumps(message.to_json()))) for message in history]
    assert anthropic.encode(Request(tuple(stored)), target()).body["messages"] == came
