"""Content on spans: off by default, through ``redact``, in the JSON form of the conventions."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sigwire
from sigwire import FakeLM, ToolCall
from sigwire.core.json import JsonValue
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.lm.secrets import Secret
from sigwire.observe.otel import instrument, uninstrument
from sigwire.observe.tracing import names
from sigwire.observe.tracing.content import Content, plain

PRIVATE = "the patient's name is Ada"
KINDS = {
    names.INPUT_MESSAGES,
    names.OUTPUT_MESSAGES,
    names.SYSTEM_INSTRUCTIONS,
    names.TOOL_DEFINITIONS,
    names.TOOL_ARGUMENTS,
    names.TOOL_RESULT,
    names.EXCEPTION_MESSAGE,
    names.INPUTS,
    names.OUTPUTS,
}


def run_private_program() -> None:
    """Run an agent, of which every value holds the private text, the message of a tool's exception too."""

    def read(record: str) -> str:
        if record.startswith("bad"):
            raise LookupError(PRIVATE)
        return PRIVATE

    agent = sigwire.ReAct(sigwire.Signature("note -> answer", PRIVATE), tools=[read])
    calls = [ToolCall("a", "read", {"record": PRIVATE}), ToolCall("b", "read", {"record": f"bad {PRIVATE}"})]
    agent.set_lm(FakeLM([Choice(PRIVATE, tuple(calls)), ToolCall("c", "submit", {"answer": PRIVATE})]))
    with pytest.warns(sigwire.ToolWarning):
        agent(note=PRIVATE)


def everything(telemetry: Any) -> list[tuple[str, str]]:
    """Every attribute of every span and of every event of a span, by name."""
    holders = [holder for span in telemetry.spans for holder in (span, *span.events)]
    found = [(name, str(value)) for holder in holders for name, value in (holder.attributes or {}).items()]
    return [*found, *(("status", str(span.status.description)) for span in telemetry.spans)]


def test_no_attribute_is_content_by_default(telemetry: Any) -> None:
    run_private_program()
    assert [name for name, value in everything(telemetry) if PRIVATE in value] == []
    assert not KINDS & {name for name, _ in everything(telemetry)}


def test_redact_sees_every_value_of_content_first(telemetry: Any) -> None:
    seen: dict[str, list[JsonValue]] = {}

    def redact(kind: str, value: JsonValue) -> JsonValue:
        seen.setdefault(kind, []).append(value)
        return json.loads(json.dumps(value).replace(PRIVATE, "[hidden]"))

    telemetry.start(content=True, redact=redact)
    run_private_program()
    assert set(seen) == KINDS
    recorded = everything(telemetry)
    assert [name for name, value in recorded if PRIVATE in value] == []
    assert {name for name, value in recorded if "[hidden]" in value} >= KINDS - {names.TOOL_DEFINITIONS}


@pytest.mark.parametrize("returned", [None, KeyError("broken")])
def test_value_that_redact_drops_or_fails_on_is_not_recorded(telemetry: Any, returned: object) -> None:
    def redact(kind: str, value: JsonValue) -> JsonValue:
        if isinstance(returned, Exception):
            raise returned
        return None

    telemetry.start(content=True, redact=redact)
    if returned is None:
        FakeLM(["x"])("Hello")
    else:
        with pytest.warns(RuntimeWarning, match=r"redact raised KeyError for gen_ai\.\w+\.messages, which is not"):
            FakeLM(["x"])("Hello")
    assert not KINDS & {name for name, _ in everything(telemetry)}


def test_messages_have_the_form_of_the_conventions(telemetry: Any) -> None:
    telemetry.start(content=True)
    request = Request(
        (
            Message.system("Be brief."),
            Message("user", (TextPart("See"), ImagePart(data="aGk=", media_type="image/png"), AudioPart("aGk="))),
            Message("assistant", (ThinkingPart("Hm"), ToolCall("a", "add", {"x": 1}))),
            Message.tool(sigwire.ToolResult("a", "add", {"sum": 2})),
            Message("user", (ImagePart(url="https://pictures.example/a.png"), FilePart(file_id="file_1"))),
        ),
        tools=({"name": "add", "description": "Add.", "input_schema": {"type": "object"}}, {"type": "web_search"}),
    )
    FakeLM([Choice("4", (ToolCall("b", "add", {}),), reasoning="Two and two.")]).respond(request)
    found = telemetry.attributes("chat fake")
    assert json.loads(found["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be brief."}]
    assert json.loads(found["gen_ai.input.messages"]) == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "content": "See"},
                {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "", "size": 4},
                {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "", "size": 4},
            ],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Hm"},
                {"type": "tool_call", "id": "a", "name": "add", "arguments": {"x": 1}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": {"sum": 2}}]},
        {
            "role": "user",
            "parts": [
                {"type": "uri", "modality": "image", "mime_type": None, "uri": "https://pictures.example/a.png"},
                {"type": "file", "modality": "document", "mime_type": None, "file_id": "file_1"},
            ],
        },
    ]
    assert json.loads(found["gen_ai.tool.definitions"]) == [
        {"type": "function", "name": "add", "description": "Add.", "parameters": {"type": "object"}},
        {"type": "web_search", "name": "web_search"},
    ]
    assert json.loads(found["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "Two and two."},
                {"type": "text", "content": "4"},
                {"type": "tool_call", "id": "b", "name": "add", "arguments": {}},
            ],
        }
    ]


def test_module_has_its_declared_inputs_and_outputs_as_json(telemetry: Any) -> None:
    telemetry.start(content=True)
    sigwire.Predict("question -> answer: int", lm=FakeLM([{"answer": 4}]))(question="2+2?", config={"seed": 1})
    found = telemetry.attributes("predict Predict")
    assert (found["sigwire.inputs"], found["sigwire.outputs"]) == ('{"question": "2+2?"}', '{"answer": 4}')


@pytest.mark.parametrize("content", [False, True])
def test_no_key_reaches_a_span(telemetry: Any, monkeypatch: pytest.MonkeyPatch, content: bool) -> None:
    key = "sk-canary-4f1d2c3b4a"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    telemetry.start(content=content)
    lm = sigwire.LM(
        "openai/gpt-5-mini",
        api_key=key,
        base_url=f"http://user:{key}@localhost:9/v1",
        headers={"x-key": key},
        extra_body={"token": key},
        num_retries=0,
    )
    predict = sigwire.Predict("q -> a", lm=lm)
    with pytest.raises(sigwire.LMError):
        predict(q="x", config={"extra_headers": {"authorization": key}})
    assert telemetry.spans
    assert [name for name, value in everything(telemetry) if key in value] == []


def test_plain_masks_secrets_and_shows_what_has_no_json_form() -> None:
    class Broken:
        def to_json(self) -> object:
            raise ValueError("no")

    assert plain({"key": Secret("sk-12345678"), "set": frozenset({1}), "broken": Broken()}) == "<dict: ValueError>"
    assert plain({"key": Secret("sk-12345678"), "set": frozenset({1})}) == {"key": "***", "set": [1]}


# --- switching content on ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "is_on"),
    [("SPAN_ONLY", True), ("event_only", True), ("SPAN_AND_EVENT", True), ("NO_CONTENT", False), ("", False)],
)
def test_environment_switches_content_on(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch, value: str, is_on: bool
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    telemetry.start()
    FakeLM(["x"])("Hello")
    assert ("gen_ai.input.messages" in telemetry.attributes("chat fake")) == is_on


def test_unknown_value_in_the_environment_is_off_and_warns(telemetry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    with pytest.warns(RuntimeWarning, match="'true' is not known, so no content is traced. Use NO_CONTENT, SPAN_ONLY"):
        telemetry.start()
    FakeLM(["x"])("Hello")
    assert "gen_ai.input.messages" not in telemetry.attributes("chat fake")


def test_redact_must_be_callable() -> None:
    with pytest.raises(sigwire.ConfigurationError, match=r"redact is a function of \(kind, value\), not str"):
        instrument(redact="phone")  # type: ignore[arg-type]
    uninstrument()


def test_content_that_is_off_is_not_even_converted() -> None:
    class Costly:
        def to_json(self) -> object:
            raise AssertionError("converted")

    assert Content(False).attributes(names.TOOL_RESULT, Costly()) == {}
