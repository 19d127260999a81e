"""A conversation with parts of other providers: every loss on every wire is one warning, and nothing else is."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from sigwire import LM
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import anthropic, gemini, ollama, openai_chat, openai_responses
from sigwire.lm.codecs.anthropic import ANTHROPIC, COMPATIBLE_MESSAGES
from sigwire.lm.codecs.gemini import GEMINI, VERTEX
from sigwire.lm.codecs.ollama import OLLAMA
from sigwire.lm.codecs.openai_chat.profiles import DEEPSEEK, MISTRAL, OPENAI, OPENROUTER
from sigwire.lm.codecs.openai_responses.profiles import AZURE
from sigwire.lm.codecs.openai_responses.profiles import OPENAI as RESPONSES
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.litellm.codec import encode_call, target_for
from sigwire.testing import FakeProvider

WIRES: dict[str, tuple[Any, Any]] = {
    "chat": (openai_chat, OPENAI),
    "openrouter": (openai_chat, OPENROUTER),
    "deepseek": (openai_chat, DEEPSEEK),
    "mistral": (openai_chat, MISTRAL),
    "responses": (openai_responses, RESPONSES),
    "azure responses": (openai_responses, AZURE),
    "anthropic": (anthropic, ANTHROPIC),
    "compatible anthropic": (anthropic, COMPATIBLE_MESSAGES),
    "gemini": (gemini, GEMINI),
    "vertex": (gemini, VERTEX),
    "ollama": (ollama, OLLAMA),
    "litellm": (None, None),
}
SENDS_UNTAGGED = {"deepseek", "mistral", "compatible anthropic", "ollama"}  # in a field for thinking
SENDS_SIGNED = {*SENDS_UNTAGGED, "anthropic"}
PICTURE = ImagePart(data="aGk=", media_type="image/png")


class Kind(NamedTuple):
    """Parts of an answer of another provider, the warned features, and the wires that send the parts."""

    parts: tuple[Part, ...]
    warned: list[str]
    kept_by: frozenset[str] | set[str] = frozenset()


def message_item(*content: JsonObject) -> JsonObject:
    return {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": list(content)}


KINDS: dict[str, Kind] = {
    "thinking": Kind((ThinkingPart("deep", provider="away"),), ["thinking"]),
    "signed thinking": Kind((ThinkingPart("deep", "U2ln", provider="away"),), ["thinking"]),
    "hidden thinking": Kind((ThinkingPart(redacted="eA==", provider="away"),), ["thinking"]),
    "thinking without a provider": Kind((ThinkingPart("deep"),), ["thinking"], SENDS_UNTAGGED),
    "signed thinking without a provider": Kind((ThinkingPart("deep", "U2ln"),), ["thinking"], SENDS_SIGNED),
    "thinking twice": Kind((ThinkingPart("deep", provider="away"), ThinkingPart("er", provider="away")), ["thinking"]),
    "a seal of a text": Kind((ThinkingPart(signature="U2ln", redacted="", provider="away"),), []),
    "a reasoning item beside its text": Kind(
        (ThinkingPart("deep", provider="away"), OpaquePart("away", {"type": "reasoning", "id": "rs_1", "summary": []})),
        ["thinking"],
    ),
    "a reasoning item without text": Kind((OpaquePart("away", {"type": "reasoning", "id": "rs_1"}),), ["thinking"]),
    "reasoning details": Kind((OpaquePart("away", {"reasoning_details": [{"type": "x"}]}),), ["thinking"]),
    "a message around its text": Kind((OpaquePart("away", message_item({"type": "output_text"})),), []),
    "a message of a weak host": Kind((OpaquePart("away", {"role": "assistant", "id": "m"}),), []),
    "a refusal in a message": Kind((OpaquePart("away", message_item({"type": "refusal", "refusal": "No."})),), ["opaque"]),
    "citations of a text": Kind((TextPart("a"), OpaquePart("away", {"citations": [{"type": "x"}]})), []),
    "the id of a spoken text": Kind((OpaquePart("away", {"audio": {"id": "audio_1"}}),), []),
    "the trace of a search": Kind((OpaquePart("away", {"type": "web_search_call", "id": "ws_1"}),), ["opaque"]),
    "results of a server tool": Kind((OpaquePart("away", {"type": "web_search_tool_result", "content": []}),), ["opaque"]),
    "code that ran": Kind((OpaquePart("away", {"executableCode": {"code": "1"}}),), ["opaque"]),
    "an item that is no object": Kind((OpaquePart("away", "x"),), ["opaque"]),
    "two items": Kind((OpaquePart("away", {"type": "a"}), OpaquePart("away", {"type": "b"})), ["opaque"]),
}  # fmt: skip


def encoded(wire: str, *messages: Message) -> EncodedRequest:
    codec, profile = WIRES[wire]
    if codec is None:
        return encode_call(Request(messages), target_for("cohere/x", None))[1]
    sent: EncodedRequest = codec.encode(Request(messages), Target("p", "m", profile))
    return sent


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_loss_of_a_foreign_part_is_one_warning_and_nothing_else_is(wire: str, kind: Kind) -> None:
    turn = Message("assistant", (*kind.parts, TextPart("hello")))
    sent = encoded(wire, Message.user("hi"), turn, Message.user("go on"))
    is_kept = wire in kind.kept_by
    assert [warning.feature for warning in sent.warnings] == ([] if is_kept else kind.warned)
    text = json.dumps(sent.body)
    assert "hello" in text
    assert ("deep" in text) == is_kept


@pytest.mark.parametrize("wire", WIRES)
def test_foreign_call_and_its_result_are_no_loss(wire: str) -> None:
    call = ToolCall(
        "call_1", "f", {"x": 1}, provider_data={"away": {"thoughtSignature": "U2ln", "item": {"id": "fc_1"}}}
    )
    turns = (Message.user("q"), Message.assistant("", (call,)), Message.tool(ToolResult("call_1", "f", "done", True)))
    sent = encoded(wire, *turns)
    assert sent.warnings == ()
    assert "done" in json.dumps(sent.body)


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "litellm"])
def test_own_thinking_is_sent_back_or_is_one_warning(wire: str) -> None:
    family = WIRES[wire][1].family
    turn = Message("assistant", (ThinkingPart("deep", "U2ln", provider=family), TextPart("hello")))
    sent = encoded(wire, Message.user("hi"), turn, Message.user("go on"))
    is_kept = "deep" in json.dumps(sent.body)
    assert [warning.feature for warning in sent.warnings] == ([] if is_kept else ["thinking"])


def test_own_thinking_without_its_signature_is_a_loss_where_signatures_are_checked() -> None:
    turn = Message("assistant", (ThinkingPart("deep", provider="anthropic"), TextPart("hello")))
    sent = encoded("anthropic", Message.user("hi"), turn, Message.user("go on"))
    assert [(warning.feature, warning.detail) for warning in sent.warnings] == [
        ("thinking", "Thinking without its signature was left out; the provider refuses it.")
    ]


DETAILS = {"chat": [], "responses": [], "anthropic": ["detail"], "gemini": ["detail"], "ollama": ["detail"]}


@pytest.mark.parametrize(("wire", "warned"), DETAILS.items())
@pytest.mark.parametrize("detail", ["low", "auto", None])
def test_detail_of_an_image_is_sent_or_warned_about(wire: str, warned: list[str], detail: str | None) -> None:
    image = ImagePart(data="aGk=", media_type="image/png", detail=detail)
    sent = encoded(wire, Message("user", (TextPart("q"), image)))
    assert [warning.feature for warning in sent.warnings] == (warned if detail == "low" else [])


NAMES = {"chat": [], "responses": [], "anthropic": [], "gemini": ["filename"], "vertex": ["filename"]}


@pytest.mark.parametrize(("wire", "warned"), NAMES.items())
def test_name_of_a_file_is_sent_or_warned_about(wire: str, warned: list[str]) -> None:
    file = FilePart(data="aGk=", media_type="application/pdf", filename="bill.pdf")
    sent = encoded(wire, Message("user", (TextPart("q"), file)))
    assert [warning.feature for warning in sent.warnings] == warned
    assert ("bill.pdf" in json.dumps(sent.body)) == (not warned)


@pytest.mark.parametrize("wire", WIRES)
def test_image_of_a_result_is_sent_in_its_place_or_moved_with_a_warning(wire: str) -> None:
    result = ToolResult("call_1", "f", "done", media=(PICTURE,))
    turns = (Message.user("q"), Message.assistant("", (ToolCall("call_1", "f", {}),)), Message.tool(result))
    if wire == "deepseek":
        return  # no images at all: refused
    sent = encoded(wire, *turns)
    in_place = wire in ("responses", "azure responses", "anthropic", "compatible anthropic", "gemini", "vertex")
    assert [warning.feature for warning in sent.warnings] == ([] if in_place else ["result_media"])


@pytest.mark.parametrize(("wire", "name"), [("openai", "openai/gpt-4.1"), ("gemini", "gemini/gemini-3-flash"),
                                            ("openai-responses", "openai/gpt-5.5")])  # fmt: skip
def test_switch_of_the_provider_warns_of_lost_thinking_once(wire: str, name: str) -> None:
    with FakeProvider([Choice.from_parts((ThinkingPart("deep", "U2ln"), TextPart("hello"))), "ok"]) as provider:
        first = LM("anthropic/claude-sonnet-4-5", base_url=provider.url("anthropic"), api_key="k", reasoning="low")
        history = [Message.user("hi"), first.respond(Request((Message.user("hi"),))).choices[0].message()]
        turns = (*history, Message.user("and?"), *history[1:], Message.user("go on"))
        options: dict[str, Any] = {"wire": "responses"} if wire == "openai-responses" else {}
        second = LM(name, base_url=provider.url(wire), api_key="k", **options)
        warned = second.respond(Request(turns)).warnings
    assert [warning.detail for warning in warned] == ["Thinking that only anthropic understands was left out."]


BY_ID: dict[str, JsonObject] = {
    "responses": {"type": "input_image", "detail": "auto", "file_id": "file_1"},
    "anthropic": {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    "gemini": {"fileData": {"fileUri": "file_1"}},
}


@pytest.mark.parametrize(("wire", "part"), BY_ID.items())
def test_image_by_the_id_of_a_file_is_sent_where_the_provider_keeps_files(wire: str, part: JsonObject) -> None:
    sent = encoded(wire, Message("user", (TextPart("q"), ImagePart(file_id="file_1"))))
    assert json.dumps(part) in json.dumps(sent.body)
    assert sent.warnings == ()


@pytest.mark.parametrize("wire", ["chat", "openrouter", "ollama", "litellm"])
def test_image_by_the_id_of_a_file_is_refused_without_such_files(wire: str) -> None:
    with pytest.raises(UnsupportedFeature, match=r"no place for an image by the id of a file. Pass its url or data"):
        encoded(wire, Message("user", (TextPart("q"), ImagePart(file_id="file_1"))))


def test_document_by_the_id_of_a_file_is_sent_to_anthropic() -> None:
    sent = encoded("anthropic", Message("user", (TextPart("q"), FilePart(file_id="file_1"))))
    assert {"type": "document", "source": {"type": "file", "file_id": "file_1"}} in sent.body["messages"][0]["content"]  # type: ignore[index, call-overload, operator]
