"""``program.export``: data that sends the request of a call without sigwire."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import sigwire
from sigwire import (
    LM,
    ChainOfThought,
    ChatAdapter,
    ConfigurationError,
    FakeLM,
    Image,
    InputError,
    JSONAdapter,
    Module,
    Predict,
    ReAct,
    XMLAdapter,
)
from sigwire.core.tools.calls import ToolCall
from sigwire.testing import FakeProvider
from tests.modules.preview.test_first_request import PIXEL, Recording, add, chat, look, with_demos

WIRES = {"openai": None, "openai-responses": "responses"}


def agent() -> Module:
    return ReAct("question -> answer: int", tools=[add])


PROGRAMS: Mapping[str, tuple[Callable[[], Module], dict[str, object], Any]] = {
    "image": (look, {"picture": Image(PIXEL), "question": "What is it?"}, chat(answer="A cat", kind="cat")),
    "demos": (with_demos, {"question": "2+2?", "hints": ["\u202e", "é'`"]}, chat(answer="4", sure="True")),
    "tools": (agent, {"question": "What is 1 + 2?"}, ToolCall("call_1", "submit", {"answer": 3})),
}


def compact(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wire", WIRES)
def test_openai_export_has_the_bytes_that_the_call_sends(wire: str, name: str) -> None:
    make, inputs, answer = PROGRAMS[name]
    transport, program = Recording(), make()
    with FakeProvider([answer]) as provider:
        url = provider.url(wire)
        program.set_lm(
            LM("openai/gpt-4.1-mini", base_url=url, api_key="any", wire=WIRES[wire], transport=transport, cache=False)
        )
        body, messages = program.export("openai", **inputs), program.export("messages", **inputs)
        assert transport.sent == []
        program(**inputs)
    assert compact(body) == transport.sent[0].body
    assert wire == "openai-responses" or messages == body["messages"]


def test_exported_body_is_answered_without_sigwire() -> None:
    with FakeProvider([chat(answer="4", sure="True")] * 2) as provider:
        lm = LM("openai/gpt-4.1-mini", base_url=provider.url("openai"), api_key="any", cache=False)
        program = with_demos()
        body = program.export("openai", question="2+2?", hints=[], lm=lm)
        request = urllib.request.Request(
            f"{provider.url('openai')}/chat/completions",
            json.dumps(body).encode(),
            {"authorization": "Bearer any", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            text = json.load(reply)["choices"][0]["message"]["content"]
        program(question="2+2?", hints=[], lm=lm)
    assert "4" in text
    assert provider.requests[0].body == provider.requests[1].body == body


@pytest.mark.long  # loading the SDK costs seconds
def test_official_sdk_sends_the_exported_body() -> None:
    openai = pytest.importorskip("openai", reason="the SDK of OpenAI is not installed")
    with FakeProvider([chat(answer="4", sure="True")]) as provider:
        lm = LM("openai/gpt-4.1-mini", base_url=provider.url("openai"), api_key="any", cache=False)
        body = with_demos().export("openai", question="2+2?", hints=["one"], lm=lm)
        client = openai.OpenAI(base_url=provider.url("openai"), api_key="any")
        client.chat.completions.create(**body)
        client.close()
    assert provider.requests[0].body == body


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter()], ids=["chat", "json", "xml"])
def test_placeholders_stand_where_the_values_of_a_call_stand(adapter: sigwire.Adapter) -> None:
    predict = Predict("question, hints: list[str], k: int -> answer", lm=LM("openai/gpt-4.1-mini", cache=False))
    with sigwire.context(adapter=adapter):
        template = json.dumps(predict.export("openai"))
        filled = predict.export("openai", question="2+2?", hints=["one"], k=3)
        partly = predict.export("openai", question="2+2?", k=3)

    for name, value in {"hints": '["one"]', "k": "3"}.items():
        template = template.replace(json.dumps(f'"{{{name}}}"')[1:-1], json.dumps(value)[1:-1])
    assert json.loads(template.replace("{question}", "2+2?")) == filled
    assert json.dumps(partly).replace(json.dumps('"{hints}"')[1:-1], json.dumps('["one"]')[1:-1]) == json.dumps(filled)


class Chain(Module):
    def __init__(self) -> None:
        super().__init__()
        self.ask = ChainOfThought("topic, tone -> text")

    def forward(self, topic: str, tone: str = "calm") -> Any:
        return self.ask(topic=topic.upper(), tone=tone)


@pytest.mark.parametrize(
    ("program", "expected"),
    [(Chain(), ("{TOPIC}", "calm")), (ChainOfThought("topic -> text"), ("{topic}",)), (agent(), ("{question}",))],
    ids=["user's module", "chain of thought", "agent"],
)
def test_placeholders_are_the_open_inputs_of_the_program(program: Module, expected: tuple[str, ...]) -> None:
    program.set_lm(FakeLM())
    text = str(program.export("messages")[-1]["content"])
    assert all(each in text for each in expected)


def test_media_input_has_no_placeholder() -> None:
    with pytest.raises(InputError, match="picture"):
        look().export("openai", lm=LM("openai/gpt-4.1-mini"))


def test_openai_export_is_refused_on_another_wire() -> None:
    predict = Predict("question -> answer")
    for lm in (LM("anthropic/claude-haiku-4-5"), FakeLM()):
        with pytest.raises(ConfigurationError, match=r"not reached over a wire of OpenAI .*lm=LM"):
            predict.export("openai", lm=lm)
        assert [message["role"] for message in predict.export("messages", lm=lm)] == ["system", "user"]


def test_unknown_form_is_refused() -> None:
    form: Any = "yaml"
    with pytest.raises(ConfigurationError, match="openai, messages, markdown"):
        Predict("question -> answer").export(form)


def test_exports_hold_no_secret() -> None:
    predict = Predict("question -> answer", extra_body={"token": "canary-1", "deep": {"api_key": "canary-2"}})
    lm = LM("openai/gpt-4.1-mini", api_key="canary-3", headers={"authorization": "canary-4"})
    forms: list[Any] = [
        predict.export("openai", lm=lm),
        predict.export("messages", lm=lm),
        predict.export("markdown", lm=lm),
    ]
    assert "canary" not in json.dumps(forms)
    assert forms[0]["token"] == "***"


def test_markdown_export_shows_messages_tools_and_options_whole() -> None:
    program = ReAct("question -> answer: int", tools=[add], temperature=0.25)
    page = program.export("markdown", question="```\n# Not a heading", lm=LM("openai/gpt-4.1-mini"))
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert headings[:3] == ["# Request to openai/gpt-4.1-mini", "## 1. system", "## 2. user"]
    assert {"## Tools", "## Options"} <= set(headings)
    assert "````text" in page
    assert '"temperature": 0.25' in page
    for message in program.export("messages", question="```\n# Not a heading", lm=LM("openai/gpt-4.1-mini")):
        assert str(message["content"]) in page
