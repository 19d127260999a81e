"""Anthropic Messages: conversations encoded, and read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError, UnsupportedFeature
from sigwire.lm.codecs.anthropic import ANTHROPIC, COMPATIBLE_MESSAGES
from tests.lm.codecs.anthropic.reading import read_request
from tests.lm.codecs.anthropic.wire import (
    ASKED,
    CALL,
    CITATION,
    FOUND,
    OK,
    REDACTED,
    SEARCHED,
    SECOND,
    THOUGHT,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_OK,
    WIRE_REDACTED,
    WIRE_SECOND,
    WIRE_THOUGHT,
    assistant,
    body,
    encoded,
    target,
    text,
    user,
    wire_messages,
)
from tests.lm.codecs.encoding import features

PNG = ImagePart(data="iVBO", media_type="image/png")
WIRE_PNG: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
PDF = FilePart(data="JVBE", filename="a.pdf", media_type="application/pdf")
WIRE_PDF: JsonObject = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
    "title": "a.pdf",
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
    assert read_request(sent.body).messages == messages


def test_row_7_a_later_system_turn_is_moved_to_the_front() -> None:
    sent = encoded(Request((Message.system("S"), ASKED, Message.system("T"))))
    assert sent.body == body(WIRE_ASKED, system="S\n\nT")
    assert features(sent.warnings) == ["system"]


def test_row_7_later_system_turn_is_kept_if_the_model_accepts_later_turns() -> None:
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
    assert read_request(sent.body).messages == asked


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
def test_unsupported_part_is_refused_before_sending(message: Message, said: str) -> None:
    with pytest.raises(UnsupportedFeature, match=said) as caught:
        encoded(Request((ASKED, message)))
    assert "anthropic/m" in str(caught.value)


BEGUN: dict[str, Message] = {
    "text": Message.assistant("So"),
    "text behind white space": Message("assistant", (TextPart("So"), TextPart(" "))),
    "thinking": Message("assistant", (ThinkingPart("hm", signature="S", provider="anthropic"),)),
}


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
def test_prefill_is_refused_for_models_without_prefill(begun: Message) -> None:
    assert wire_messages(ASKED, begun)[0][-1]["role"] == "assistant"
    with pytest.raises(
        UnsupportedFeature, match=r"anthropic/m has no place for an answer to continue\. .* a user turn"
    ):
        encoded(Request((ASKED, begun)), target(prefill=False))


def test_paused_turn_and_turn_with_calls_are_no_prefill() -> None:
    search = OpaquePart("anthropic", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}})
    for turn in (Message("assistant", (TextPart("So"), search)), Message.assistant("So", tool_calls=[CALL])):
        assert encoded(Request((ASKED, turn)), target(prefill=False)).body["messages"]


def test_row_10_host_without_images_refuses_images() -> None:
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
    assert warned == ["thinking", "opaque"]


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
    assert wire == [{"role": "user", "content": "Continue."}, {"role": "assistant", "content": "a"}, WIRE_ASKED]
    assert warned == ["messages", "messages"]


def test_a_conversation_begins_with_the_user() -> None:
    wire, warned = wire_messages(Message.assistant("a"), ASKED)
    assert wire == [{"role": "user", "content": "Continue."}, {"role": "assistant", "content": "a"}, WIRE_ASKED]
    assert warned == ["messages"]
    sent = encoded(Request((Message.system("S"),)))
    assert sent.body == body({"role": "user", "content": "Continue."}, system="S")
    assert features(sent.warnings) == ["messages"]


def test_a_result_that_is_json_is_sent_as_compact_text() -> None:
    wire, _ = wire_messages(
        ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("toolu_1", "f", {"é": [1]}))
    )
    assert wire[2] == user({**WIRE_OK, "content": '{"é":[1]}'})


def test_unmodelled_fields_are_read_into_opaque_parts_and_extra_body_and_encoded_again() -> None:
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
    request = read_request(wire)
    assert request.messages[0].parts[:2] == (OpaquePart("anthropic", upload), OpaquePart("anthropic", odd))
    assert encoded(request).body == wire
    assert read_request(body(user(empty))).messages[0].parts == (OpaquePart("anthropic", empty),)
    read = read_request(body(WIRE_ASKED, assistant(WIRE_CALL), user(mixed))).messages[2]
    assert read.tool_results[0] == ToolResult("toolu_1", "f", "a", media=(TextPart('{"type":"odd"}'),))
