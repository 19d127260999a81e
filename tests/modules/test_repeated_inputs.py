"""``InputField(repeats=True)``: values that many calls share are sent first, and the prompt cache is marked behind them."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.client import LM
from sigwire.lm.codecs.shared.cache_marks import MOST_MARKS
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.signatures.types.media import File
from sigwire.testing import FakeProvider

TEXT = "A clause of the contract. " * 200


class Ask(Signature):
    """Answer from the contract."""

    question: str = InputField()
    contract: str = InputField(repeats=True)
    answer: str = OutputField()


class Plain(Signature):
    """Answer from the contract."""

    question: str = InputField()
    contract: str = InputField()
    answer: str = OutputField()


def sent(program: Any, **inputs: Any) -> Request:
    lm = FakeLM([{"answer": "x"}])
    program.set_lm(lm)
    program(**inputs)
    return lm.requests[0]


def text_parts(request: Request) -> list[TextPart]:
    return [part for part in request.messages[-1].parts if isinstance(part, TextPart)]


def encoded_by(question: str) -> Request:
    return Predict(Ask, lm=FakeLM([{"answer": "x"}])).preview(question=question, contract=TEXT).request


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter()])
def test_repeated_input_is_a_first_part_of_its_own(adapter: Any) -> None:
    with context(adapter=adapter):
        request, again = (encoded_by(each) for each in ("When?", "Why?"))
    first, rest = text_parts(request)
    assert TEXT in first.text
    assert "When?" not in first.text
    assert "When?" in rest.text
    assert request.repeated_part == (1, 1)
    other = text_parts(again)
    assert other[0] == first
    assert other[1] != rest


def test_texts_of_both_parts_are_those_of_one_message() -> None:
    request, plain = (sent(Predict(each), question="When?", contract=TEXT) for each in (Ask, Plain))

    def paragraphs(message: Message) -> list[str]:
        return sorted(message.text.split("\n\n"))

    assert paragraphs(request.messages[-1]) == paragraphs(plain.messages[-1])
    assert request.messages[0] == plain.messages[0]
    assert plain.repeated_part is None


def test_request_with_a_repeated_part_is_json_and_keeps_its_place_in_the_cache() -> None:
    request = sent(Predict(Ask), question="When?", contract=TEXT)
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request
    assert request.with_options({"temperature": 0}).repeated_part == (1, 1)


def test_part_is_that_of_the_call_and_not_of_a_demo_without_the_value() -> None:
    class Optional(Signature):
        """Answer."""

        question: str = InputField()
        contract: str = InputField(default="", repeats=True)
        answer: str = OutputField()

    lm = FakeLM([{"answer": "x"}] * 2)
    program = Predict(Optional, lm=lm)
    program(question="When?", contract=TEXT)
    program.demos = [{"question": "q", "answer": "a"}]
    program(question="When?", contract=TEXT)
    assert [request.repeated_part for request in lm.requests] == [(1, 1), (3, 1)]
    assert lm.requests[1].repeated == (3,)


LMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "anthropic": ("anthropic/claude-sonnet-4-5", {}, "cache_control"),
    "converse": ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", {"region": "eu-west-1"}, "cachePoint"),
    "chat": ("openai/gpt-5.6", {}, "prompt_cache_breakpoint"),
    "responses": ("openai/gpt-5.6", {"wire": "responses"}, "prompt_cache_breakpoint"),
    "openrouter": ("openrouter/anthropic/claude-sonnet-4.5", {}, "cache_control"),
}
marking = pytest.mark.parametrize("wire", LMS)


def body_of(wire: str, request: Request) -> Any:
    """Return the encoded body of a request."""
    model, options, _ = LMS[wire]
    sent = LM(model, api_key="any", **options).preview(request).wire
    assert sent is not None
    return sent["body"]


def user_blocks(wire: str, body: Any) -> list[Any]:
    return [
        block
        for message in body.get("messages") or body["input"]
        if message.get("role") == "user"
        for block in (message["content"] if isinstance(message["content"], list) else [message["content"]])
    ]


def blocks_before_the_mark(wire: str, body: Any) -> list[Any]:
    """Return the blocks of user messages up to the mark; none without a mark."""
    blocks, mark = user_blocks(wire, body), LMS[wire][2]
    end = next((at for at, block in enumerate(blocks) if isinstance(block, dict) and mark in block), -1)
    return blocks[: end + (0 if mark == "cachePoint" else 1)] if end >= 0 else []


@marking
def test_mark_is_behind_the_repeated_part(wire: str) -> None:
    bodies = [body_of(wire, sent(Predict(Ask), question=each, contract=TEXT)) for each in ("When?", "Why?")]
    first, other = (blocks_before_the_mark(wire, body) for body in bodies)
    assert TEXT in json.dumps(first)
    assert "When?" not in json.dumps(first)
    assert first == other
    assert "When?" in json.dumps(user_blocks(wire, bodies[0]))
    assert json.dumps(bodies[0]).count(f'"{LMS[wire][2]}"') == 1


@marking
def test_without_repeated_inputs_no_byte_changes(wire: str) -> None:
    request = sent(Predict(Plain), question="When?", contract=TEXT)
    assert LMS[wire][2] not in json.dumps(body_of(wire, request))
    short = sent(Predict(Ask), question="When?", contract="short")
    off = sent(Predict(Ask, prompt_cache=False), question="When?", contract=TEXT)
    for each in (short, off):
        assert LMS[wire][2] not in json.dumps(body_of(wire, each))


@pytest.mark.parametrize("wire", ["anthropic", "converse"])
def test_document_is_marked_as_well(wire: str) -> None:
    class OfFile(Signature):
        """Answer from the contract."""

        contract: File = InputField(repeats=True)
        question: str = InputField()
        answer: str = OutputField()

    lm = FakeLM([{"answer": "x"}])
    paper = File(file_data=b64encode(b"%PDF-1.4 " + b"x" * 4_000).decode(), media_type="application/pdf")
    Predict(OfFile, lm=lm, prompt_cache={"ttl": "5m"})(question="When?", contract=paper)
    front = json.dumps(blocks_before_the_mark(wire, body_of(wire, lm.requests[0])))
    assert "document" in front
    assert "When?" not in front


def test_other_hosts_get_the_order_only() -> None:
    request = sent(Predict(Ask), question="When?", contract=TEXT)
    sent_body = LM("groq/llama-3.3-70b-versatile", api_key="any").preview(request).wire
    assert sent_body is not None
    content = sent_body["body"]["messages"][-1]["content"]
    assert content.index(TEXT) < content.index("When?")


@pytest.mark.parametrize("wire", ["anthropic", "converse"])
def test_there_are_at_most_four_marks(wire: str) -> None:
    program = Predict(Ask, prompt_cache={"ttl": "5m"})
    program.demos = [{"question": "q", "contract": TEXT, "answer": "a"}]
    text = json.dumps(body_of(wire, sent(program, question="When?", contract=TEXT)))
    assert 1 < text.count(f'"{LMS[wire][2]}"') <= MOST_MARKS


@pytest.mark.parametrize("wire", LMS)
def test_task_of_an_agent_is_marked_behind_its_repeated_inputs(wire: str) -> None:
    lm = FakeLM([[ToolCall("", "look", {})], [ToolCall("", "submit", {"answer": "x"})]])
    agent = ReAct(Ask, tools=[look])
    agent.set_lm(lm)
    agent(question="When?", contract=TEXT)
    assert [request.repeated_part for request in lm.requests] == [(1, 1), (1, 1)]
    fronts = [blocks_before_the_mark(wire, body_of(wire, request)) for request in lm.requests]
    assert TEXT in json.dumps(fronts[0])
    assert "When?" not in json.dumps(fronts[0])
    assert fronts[0] == fronts[1]


def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize(
    ("wire", "model"), [("anthropic", "anthropic/claude-sonnet-4-5"), ("openai", "openai/gpt-5.6")]
)
def test_provider_accepts_the_marked_request(wire: str, model: str) -> None:
    answer = "[[ ## answer ## ]]\nx\n\n[[ ## completed ## ]]"
    with FakeProvider([answer]) as provider:
        program = Predict(Ask, lm=LM(model, base_url=provider.url(wire), api_key="any", num_retries=0))
        assert program(question="When?", contract=TEXT).answer == "x"
