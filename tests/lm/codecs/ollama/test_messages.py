"""Ollama: messages, encoded and read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs.ollama import OllamaProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.ollama.reading import read_request
from tests.lm.codecs.ollama.wire import (
    ASKED,
    ASSISTANT,
    CALL,
    PNG,
    SECOND,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_SECOND,
    answered,
    body,
    encoded,
)

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
def test_messages_are_encoded_and_read_back(messages: tuple[Message, ...], wire: list[JsonObject]) -> None:
    sent = encoded(Request(messages))
    assert sent.body == body(*wire)
    assert sent.warnings == ()
    assert read_request(sent.body) == Request(messages)


def encoded_messages(*messages: Message, to: Target[OllamaProfile] | None = None) -> tuple[JsonValue, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["messages"], features(sent.warnings)


def test_row_7_second_system_turn_is_joined_to_the_first() -> None:
    wire, warned = encoded_messages(Message.system("S"), ASKED, Message.system("T"))
    assert wire == [{"role": "system", "content": "S\n\nT"}, WIRE_ASKED]
    assert warned == ["system"]


def test_row_9_image_by_url_is_refused_and_a_data_url_is_sent() -> None:
    with pytest.raises(UnsupportedFeature, match=r"ollama/m has no place for an image by URL\. Download it"):
        encoded(Request((Message("user", (ImagePart(url="https://x/a.png"),)),)))
    wire, warned = encoded_messages(Message("user", (ImagePart(url="data:image/png;base64,iVBO"),)))
    assert wire == [{"role": "user", "content": "", "images": ["iVBO"]}]
    assert warned == []


def test_row_11_audio_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="no place for audio input"):
        encoded(Request((Message("user", (AudioPart("UklG"),)),)))


@pytest.mark.parametrize("part", [FilePart(data="JVBE", media_type="application/pdf"), FilePart(url="https://x/a.pdf")])
def test_row_12_pdf_is_refused(part: FilePart) -> None:
    with pytest.raises(UnsupportedFeature, match="documents that are not text"):
        encoded(Request((Message("user", (part,)),)))


def test_row_12_text_document_is_a_paragraph_of_the_text() -> None:
    note = FilePart(data="aGk=", filename="a.txt", media_type="text/plain")
    wire, _ = encoded_messages(Message("user", (TextPart("Read"), TextPart(" this:"), note, PNG, TextPart("Well?"))))
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
        ["thinking", "tool_results"],
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
def test_assistant_turn_is_sent_again(parts: tuple[Part, ...], wire: JsonObject, warned: list[str]) -> None:
    messages, warnings = encoded_messages(ASKED, Message("assistant", parts))
    assert isinstance(messages, list)
    assert messages[1] == wire
    assert warnings == warned


def test_row_21_image_of_a_result_follows_all_results_in_a_user_turn() -> None:
    results = Message.tool(
        ToolResult("call_ab12cd34", "f", "see", media=(PNG,)), ToolResult("call_ef56gh78", "f", "ok")
    )
    wire, warned = encoded_messages(ASKED, Message.assistant(tool_calls=[CALL, SECOND]), results)
    assert wire == [
        WIRE_ASKED,
        {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL, WIRE_SECOND]},
        answered("f", "see\n[image attached below]"),
        answered("f", "ok", "call_ef56gh78"),
        {"role": "user", "content": "", "images": ["iVBO"]},
    ]
    assert warned == ["result_media"]


def test_row_22_unanswered_call_gets_an_error_result() -> None:
    wire, warned = encoded_messages(ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind"))
    assert wire == [
        WIRE_ASKED,
        ASSISTANT,
        answered("f", "ERROR: tool was not executed"),
        {"role": "user", "content": "never mind"},
    ]
    assert warned == ["tool_results"]


def test_json_result_is_sent_as_compact_text() -> None:
    result = ToolResult("call_ab12cd34", "f", {"é": [1]})
    wire, _ = encoded_messages(ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(result))
    assert isinstance(wire, list)
    assert wire[2] == answered("f", '{"é":[1]}')


def test_empty_turn_is_not_sent() -> None:
    wire, _ = encoded_messages(ASKED, Message("assistant", (TextPart(""),)), Message.user("r"))
    assert wire == [WIRE_ASKED, {"role": "user", "content": "r"}]


def test_opaque_item_is_refused_when_its_data_are_no_object() -> None:
    with pytest.raises(UnsupportedFeature, match="no place for an opaque item"):
        encoded(Request((Message("user", (OpaquePart("ollama", [1]),)),)))


def test_reader_pairs_results_without_ids_by_name_then_by_order() -> None:
    def called(name: str) -> JsonObject:
        return {"function": {"name": name, "arguments": {}}}

    wire: list[JsonObject] = [
        {"role": "assistant", "content": "", "tool_calls": [called("f"), called("g"), called("f")]},
        {"role": "tool", "tool_name": "g", "content": "1"},
        {"role": "tool", "tool_name": "f", "content": "2"},
        {"role": "tool", "content": "3"},
        {"role": "tool", "tool_name": "h", "content": "nobody asked"},
    ]
    results = read_request(body(*wire)).messages[1].tool_results
    assert [(result.id, result.name, result.content) for result in results] == [
        ("call_1", "g", "1"),
        ("call_0", "f", "2"),
        ("call_2", "f", "3"),
        ("", "h", "nobody asked"),
    ]
