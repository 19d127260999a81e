"""OpenAI Responses: messages, encoded and read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError, UnsupportedFeature
from sigwire.lm.codecs.openai_responses import COMPATIBLE, DEEPSEEK, OPENAI, ResponsesProfile
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_responses.reading import read_request
from tests.lm.codecs.openai_responses.wire import (
    ADDED,
    AFTER,
    ANSWERED,
    ASKED,
    CALL,
    FAMILY,
    ITEM,
    REASONING,
    SECOND,
    SHELL,
    TRACE,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_OK,
    WIRE_SECOND,
    WIRE_TEXT,
    answer,
    body,
    decoded,
    encoded,
    encoded_messages,
    target,
)

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
def test_messages_are_encoded_and_read_back(messages: tuple[Message, ...], wire: JsonObject) -> None:
    sent = encoded(Request(messages))
    assert sent.body == wire
    assert sent.warnings == ()
    assert read_request(sent.body) == Request(messages)


def test_row_7_system_role_is_sent_when_the_host_has_no_developer_role() -> None:
    wire, _ = encoded_messages(ASKED, Message.system("T"), to=target(COMPATIBLE))
    assert wire == [WIRE_ASKED, {"role": "system", "content": "T"}]


def test_messages_of_the_model_are_sent_with_their_type_to_compatible_hosts() -> None:
    turn = Message("assistant", (TextPart("a"), TextPart("b")))
    wire, _ = encoded_messages(ASKED, turn, to=target(COMPATIBLE))
    assert wire == [WIRE_ASKED, {"type": "message", "role": "assistant", "content": "ab"}]


@pytest.mark.parametrize("part", [AudioPart("UklG", "wav"), AudioPart("UklG", "mp3")])
def test_row_11_audio_is_refused(part: AudioPart) -> None:
    with pytest.raises(UnsupportedFeature, match=r"openai-responses/m has no place for audio input\. Transcribe it"):
        encoded(Request((Message("user", (part,)),)))


def test_row_12_text_document_is_sent_as_text_and_a_document_without_a_name_gets_a_name() -> None:
    note = FilePart(data="aGk=", filename="a.txt", media_type="text/plain")
    wire, _ = encoded_messages(Message("user", (note, replace(PDF, filename=None))))
    text: JsonObject = {"type": "input_text", "text": "a.txt:\nhi"}
    assert wire == [{"role": "user", "content": [text, {**WIRE_PDF, "filename": "document.pdf"}]}]


@pytest.mark.parametrize("part", [PNG, PDF], ids=["image", "file"])
def test_media_are_refused_when_the_host_takes_none(part: Part) -> None:
    with pytest.raises(UnsupportedFeature, match=r"deepseek-responses/m has no place for (image|file) input"):
        encoded(Request((Message("user", (part,)),)), target(DEEPSEEK))


@pytest.mark.parametrize("part", [ImagePart(), FilePart()])
def test_media_without_data_are_an_input_error(part: Part) -> None:
    with pytest.raises(InputError, match="needs a url, data or a file_id"):
        encoded(Request((Message("user", (part,)),)))


def test_text_after_an_item_like_a_message_does_not_change_the_item() -> None:
    item: JsonObject = {"role": "user", "content": "x"}
    wire, _ = encoded_messages(ASKED, Message("assistant", (OpaquePart(FAMILY, item), TextPart("a"), TextPart("b"))))
    assert wire == [WIRE_ASKED, item, {"role": "assistant", "content": "ab"}]


def test_media_in_an_assistant_turn_are_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="a ImagePart in an assistant turn"):
        encoded(Request((ASKED, Message("assistant", (PNG,)))))


REPLAYS: dict[str, tuple[ResponsesProfile, tuple[Part, ...], list[JsonObject]]] = {
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


@pytest.mark.parametrize(("profile", "parts", "wire"), REPLAYS.values(), ids=REPLAYS)
def test_assistant_turn_is_sent_again(
    profile: ResponsesProfile, parts: tuple[Part, ...], wire: list[JsonObject]
) -> None:
    encoded_again = encoded(Request((ASKED, Message("assistant", parts))), target(profile)).body["input"]
    assert isinstance(encoded_again, list)
    turn = [item for item in encoded_again[1:] if isinstance(item, dict) and item.get("type") != "function_call_output"]
    assert turn == wire


def test_row_21_media_of_results_are_in_a_user_turn_when_results_take_no_media() -> None:
    results = Message.tool(ToolResult("c1", "f", "see", media=(PNG,)))
    wire, warned = encoded_messages(
        ASKED, Message.assistant(tool_calls=[CALL]), results, to=target(media_in_results=False)
    )
    assert wire == [
        WIRE_ASKED,
        WIRE_CALL,
        {**WIRE_OK, "output": "see\n[image attached below]"},
        {"role": "user", "content": [WIRE_PNG]},
    ]
    assert warned == ["result_media"]


def test_row_22_unanswered_call_gets_an_error_result() -> None:
    wire, warned = encoded_messages(ASKED, Message.assistant(tool_calls=[CALL]), Message.user("never mind"))
    assert wire == [
        WIRE_ASKED,
        WIRE_CALL,
        {**WIRE_OK, "output": "ERROR: tool was not executed"},
        {"role": "user", "content": "never mind"},
    ]
    assert warned == ["tool_results"]


def test_json_result_is_sent_as_compact_text() -> None:
    wire, _ = encoded_messages(
        ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", {"é": [1]}))
    )
    assert wire == [WIRE_ASKED, WIRE_CALL, {**WIRE_OK, "output": '{"é":[1]}'}]


def test_invalid_arguments_are_sent_unchanged() -> None:
    wire, _ = encoded_messages(ASKED, Message.assistant(tool_calls=[ToolCall.read("c1", "f", '{"x": ')]), ANSWERED)
    assert wire == [WIRE_ASKED, {**WIRE_CALL, "arguments": '{"x": '}, WIRE_OK]


def test_empty_turn_is_not_sent() -> None:
    wire, _ = encoded_messages(ASKED, Message("assistant", (ThinkingPart("hm"),)), Message.user("r"))
    assert wire == [WIRE_ASKED, {"role": "user", "content": "r"}]


@pytest.mark.parametrize("name", ["previous_response_id", "conversation"])
def test_result_is_kept_when_the_provider_has_its_call(name: str) -> None:
    request = Request((Message.tool(ToolResult("c1", "", "boom", is_error=True)),), options={"extra_body": {name: "r"}})
    sent = encoded(request)
    assert sent.body == body({**WIRE_OK, "output": "ERROR: boom"}, **{name: "r"})
    assert sent.warnings == ()
    assert read_request(sent.body) == request
    alone = encoded(replace(request, options={}))
    quoted = {"role": "user", "content": "[result of c1, whose call is not in the conversation]\nERROR: boom"}
    assert (alone.body, features(alone.warnings)) == (body(quoted), ["tool_results"])


def test_results_of_local_and_stored_calls_are_kept() -> None:
    results = Message.tool(ToolResult("c0", "", "far"), ToolResult("c1", "f", "ok"))
    extra: JsonObject = {"previous_response_id": "r"}
    sent = encoded(Request((Message.assistant(tool_calls=[CALL]), results), options={"extra_body": extra}))
    assert sent.body == body(WIRE_CALL, WIRE_OK, {**WIRE_OK, "call_id": "c0", "output": "far"}, **extra)
    assert sent.warnings == ()


def test_reader_keeps_an_image_without_data() -> None:
    wire = body({"role": "user", "content": [{"type": "input_image", "detail": "auto"}]})
    request = read_request(wire)
    assert request.messages == (Message("user", (OpaquePart(FAMILY, {"type": "input_image", "detail": "auto"}),)),)
    assert encoded(request).body == wire


def test_custom_call_and_its_result_are_sent_as_custom_items() -> None:
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
    assert read_request(sent.body) == request
