"""Gemini: conversations encoded, and read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import CallerError, InputError, UnsupportedFeature
from sigwire.lm.codecs.gemini import UNSIGNED, GeminiProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.gemini.reading import read_request
from tests.lm.codecs.gemini.wire import (
    ASKED,
    CALL,
    OLD,
    PNG,
    SECOND,
    SIGNED,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_PNG,
    WIRE_SECOND,
    WIRE_SIGNED,
    body,
    encoded,
    model,
    result,
    target,
    user,
)

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
    assert read_request(sent.body).messages == messages


NONE_SAID = {"parts": [{"text": "S"}]}
ONE_WAY: dict[str, tuple[Target[GeminiProfile], tuple[Message, ...], JsonObject, list[str]]] = {
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
        ["thinking"],
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
        [],
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
        ["thinking"],
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
def test_encode_changes_parts_without_a_place(
    to: Target[GeminiProfile], messages: tuple[Message, ...], wire: JsonObject, warned: list[str]
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
