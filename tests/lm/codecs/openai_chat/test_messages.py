"""Chat completions: messages, encoded and read back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs.openai_chat.profiles import (
    CEREBRAS,
    CEREBRAS_GPT_OSS,
    CRUSOE,
    DEEPSEEK,
    FIREWORKS,
    GROQ,
    LLAMACPP,
    MISTRAL,
    MOONSHOT,
    OLLAMA_CHAT,
    OPENAI,
    OPENROUTER,
    PROFILES,
    VLLM,
    ChatProfile,
)
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_chat.reading import read_request
from tests.lm.codecs.openai_chat.wire import (
    ASKED,
    ASSISTANT,
    CALL,
    DETAILS,
    SECOND,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_SECOND,
    body,
    encoded,
    target,
)

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
def test_messages_are_encoded_and_read_back(messages: tuple[Message, ...], wire: list[JsonObject]) -> None:
    sent = encoded(Request(messages))
    assert sent.body == body(*wire)
    assert sent.warnings == ()
    assert read_request(sent.body).messages == messages


def encoded_messages(*messages: Message, to: Target[ChatProfile] | None = None) -> tuple[JsonValue, list[str]]:
    sent = encoded(Request(messages), to)
    return sent.body["messages"], features(sent.warnings)


def test_row_7_strict_host_gets_one_system_turn_first() -> None:
    asked = (Message.system("S"), ASKED, Message.system("T"))
    wire, warned = encoded_messages(*asked, to=target(VLLM))
    assert wire == [{"role": "system", "content": "S\n\nT"}, WIRE_ASKED]
    assert warned == ["system"]


def test_row_10_image_is_refused_when_the_host_takes_no_images() -> None:
    with pytest.raises(UnsupportedFeature, match="deepseek/m has no place for image input"):
        encoded(Request((Message("user", (PNG,)),)), target(DEEPSEEK))


def test_row_11_audio_is_refused_when_the_format_is_not_wav_or_mp3() -> None:
    with pytest.raises(UnsupportedFeature, match="'flac'"):
        encoded(Request((Message("user", (AudioPart("x", "flac"),)),)))


def test_row_12_document_by_url_is_refused_and_a_text_document_is_sent_as_text() -> None:
    with pytest.raises(UnsupportedFeature, match="document by URL"):
        encoded(Request((Message("user", (FilePart(url="https://x/a.pdf"),)),)))
    note = FilePart(data="aGk=", filename="a.txt", media_type="text/plain")
    wire, _ = encoded_messages(Message("user", (note,)), to=target(DEEPSEEK))
    assert wire == [{"role": "user", "content": [{"type": "text", "text": "a.txt:\nhi"}]}]


THOUGHT = ThinkingPart("hm", provider="deepseek")
REPLAYS: dict[str, tuple[ChatProfile, tuple[Part, ...], JsonObject]] = {
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
    "deepseek call turn without reasoning has an empty one": (
        DEEPSEEK,
        (CALL,),
        {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL], "reasoning_content": ""},
    ),
    "moonshot call turn without reasoning has a blank one": (
        MOONSHOT,
        (TextPart("a"), CALL),
        {"role": "assistant", "content": "a", "tool_calls": [WIRE_CALL], "reasoning_content": " "},
    ),
    **{
        f"{profile.family} {profile.replay}": (
            profile,
            (ThinkingPart("hm", provider=profile.family), TextPart("a"), CALL),
            {"role": "assistant", "content": "a", "tool_calls": [WIRE_CALL], profile.replay: "hm"},
        )
        for profile in (GROQ, FIREWORKS, VLLM, CRUSOE, LLAMACPP, MOONSHOT)
    },
    "cerebras reasoning in tags": (
        CEREBRAS,
        (ThinkingPart("hm", provider="cerebras"), TextPart("a")),
        {"role": "assistant", "content": "<think>\nhm\n</think>\na"},
    ),
    "cerebras reasoning of gpt-oss before the text": (
        CEREBRAS_GPT_OSS,
        (ThinkingPart("hm", provider="cerebras"), CALL),
        {"role": "assistant", "content": "hm", "tool_calls": [WIRE_CALL]},
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


@pytest.mark.parametrize(("profile", "parts", "wire"), REPLAYS.values(), ids=REPLAYS)
def test_assistant_turn_is_sent_again(profile: ChatProfile, parts: tuple[Part, ...], wire: JsonObject) -> None:
    sent = encoded(Request((ASKED, Message("assistant", parts))), target(profile))
    messages = sent.body["messages"]
    assert isinstance(messages, list)
    encoded_again = messages[1]
    assert encoded_again == wire


@pytest.mark.parametrize("row", PROFILES.values(), ids=PROFILES)
def test_reasoning_of_the_host_is_sent_back_or_named_as_lost(row: ChatProfile) -> None:
    turn = Message("assistant", (ThinkingPart("hm, so", provider=row.family), TextPart("a")))
    sent = encoded(Request((ASKED, turn, ASKED)), target(row))
    assert ("hm, so" in json.dumps(sent.body)) == (features(sent.warnings) == []) == (row.replay != "")
    assert set(features(sent.warnings)) <= {"thinking"}


def test_model_that_does_not_think_gets_no_reasoning() -> None:
    turn = Message("assistant", (ThinkingPart("hm", provider="moonshot"), CALL))
    results = Message.tool(ToolResult("c1", "f", "ok"))
    sent = encoded(Request((ASKED, turn, results)), target(MOONSHOT, thinking="none"))
    assert sent.body["messages"][1] == ASSISTANT  # type: ignore[index]
    assert features(sent.warnings) == ["thinking"]


def test_row_21_image_of_a_result_follows_all_results_in_a_user_turn() -> None:
    results = Message.tool(ToolResult("c1", "f", "see", media=(PNG,)), ToolResult("c2", "f", "ok"))
    wire, warned = encoded_messages(ASKED, Message.assistant(tool_calls=[CALL, SECOND]), results)
    assert wire == [
        WIRE_ASKED,
        {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL, WIRE_SECOND]},
        {"role": "tool", "tool_call_id": "c1", "content": "see\n[image attached below]"},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]},
    ]
    assert warned == ["result_media"]


def test_row_22_unanswered_call_gets_an_error_result() -> None:
    wire, warned = encoded_messages(ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind"))
    assert wire == [
        WIRE_ASKED,
        ASSISTANT,
        {"role": "tool", "tool_call_id": "c1", "content": "ERROR: tool was not executed"},
        {"role": "user", "content": "never mind"},
    ]
    assert warned == ["tool_results"]


def test_json_result_is_sent_as_compact_text() -> None:
    wire, _ = encoded_messages(
        ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", {"é": [1]}))
    )
    assert isinstance(wire, list)
    assert wire[2] == {"role": "tool", "tool_call_id": "c1", "content": '{"é":[1]}'}


def test_mistral_call_and_result_have_the_same_id_of_nine_characters() -> None:
    asked = (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "ok")))
    wire, _ = encoded_messages(*asked, to=target(MISTRAL))
    assert isinstance(wire, list)
    call, result = wire[1], wire[2]
    assert isinstance(call, dict)
    assert isinstance(result, dict)
    call_id = result["tool_call_id"]
    assert isinstance(call_id, str)
    assert call_id.isalnum()
    assert len(call_id) == 9
    assert call["tool_calls"] == [{**WIRE_CALL, "id": call_id}]
    assert encoded_messages(*asked, to=target(MISTRAL))[0] == wire


def test_invalid_arguments_are_sent_unchanged_or_wrapped_when_a_template_would_fail() -> None:
    asked = (ASKED, Message.assistant(tool_calls=[ToolCall.read("c1", "f", '{"x": ')]))
    for profile, arguments in ((OPENAI, '{"x": '), (VLLM, '{"invalid_arguments":"{\\"x\\": "}')):
        wire, _ = encoded_messages(*asked, to=target(profile))
        assert isinstance(wire, list)
        function = {"name": "f", "arguments": arguments}
        assert wire[1] == {**ASSISTANT, "tool_calls": [{**WIRE_CALL, "function": function}]}


def test_empty_turn_is_not_sent() -> None:
    wire, _ = encoded_messages(ASKED, Message("assistant", (ThinkingPart("hm"),)), Message.user("r"))
    assert wire == [WIRE_ASKED, {"role": "user", "content": "r"}]
