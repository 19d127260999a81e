"""Providers' prompt caches: which requests of programs are marked, and that a conversation repeats its bytes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from sigwire.core.tools.calls import ToolCall
from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.signatures.types.history import History
from sigwire.testing import FakeProvider
from tests.lm.replies import MESSAGES, Double

ANSWER = "[[ ## answer ## ]]\nx\n\n[[ ## completed ## ]]"
LONG = "Instructions. " * 300


class Script(Double):
    """Calls a tool with one id again and again, then submits."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = turns

    def send(self, request: HttpRequest) -> HttpReply:
        is_last = len(self.requests) + 1 >= self.turns
        call = (
            {"name": "submit", "input": {"answer": "x"}}
            if is_last
            else {"name": "look", "input": {"page": len(self.requests)}}
        )
        self.answer = {
            **MESSAGES,
            "content": [{"type": "tool_use", "id": "toolu_1", **call}],
            "stop_reason": "tool_use",
        }
        return super().send(request)


def look(page: int) -> str:
    """Return a page."""
    return f"page {page}: " + "text " * 300


def claude(transport: Double, **options: Any) -> LM:
    return LM("anthropic/claude-sonnet-5", api_key="any", transport=transport, **options)


def blocks_of(body: Any) -> tuple[list[str], list[int]]:
    """Return the blocks in the provider's order without marks, and how many blocks are before each mark."""
    system = body["system"] if isinstance(body["system"], list) else [{"type": "text", "text": body["system"]}]
    contents = [
        message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
        for message in body["messages"]
    ]
    blocks = [*body["tools"], *system, *(block for content in contents for block in content)]
    marks = [at + 1 for at, block in enumerate(blocks) if "cache_control" in block]
    marks += [len(blocks)] if "cache_control" in body else []
    plain = ({name: value for name, value in block.items() if name != "cache_control"} for block in blocks)
    return [json.dumps(block) for block in plain], marks


@pytest.mark.parametrize("how", ["blocking", "awaited"])
async def test_turns_of_an_agent_repeat_the_bytes_before_and_are_read_from_the_cache(how: str) -> None:
    transport = Script(20)
    agent = ReAct("question -> answer", tools=[look])
    agent.set_lm(claude(transport))
    assert (agent(question="q") if how == "blocking" else await agent.acall(question="q")).answer == "x"
    bodies = [request.body for request in transport.requests]
    assert len(bodies) == 20
    for before, after in pairwise(bodies):
        assert after.startswith(before[: before.rindex(b'],"tools":')])
        assert json.loads(after)["tools"] == json.loads(before)["tools"]
    cached: set[str] = set()
    last_marks: list[int] = []
    for body in map(json.loads, bodies):
        blocks, marks = blocks_of(body)
        assert len(marks) <= 4
        if last_marks:  # the provider looks back 20 blocks from a mark
            assert any("".join(blocks[:end]) in cached for end in range(marks[-1] - 20, marks[-1]))
            assert marks[-1] > last_marks[-1]
        cached |= {"".join(blocks[:end]) for end in marks}
        last_marks = marks
    assert last_marks[-1] == len(blocks_of(json.loads(bodies[-1]))[0])


def marked(program: Any, lm: LM, transport: Double, **inputs: Any) -> list[str]:
    """Return the places of the marks in the last request."""
    program.set_lm(lm)
    program(**inputs)
    body = json.loads(transport.requests[-1].body)
    places = ["body"] if "cache_control" in body else []
    places += ["system"] if "cache_control" in str(body.get("system")) else []
    return places + [str(at) for at, message in enumerate(body["messages"]) if "cache_control" in str(message)]


def prediction_of(config: dict[str, Any], lm_options: dict[str, Any], *, demos: int = 0, **inputs: Any) -> list[str]:
    transport = Double({**MESSAGES, "content": [{"type": "text", "text": ANSWER}]})
    predict = Predict("question, history: History -> answer", **config)
    predict.signature = predict.signature.with_instructions(LONG if not demos else "Answer.")
    predict.demos = [{"question": "q" * 300, "answer": "a" * 300} for _ in range(demos)]
    return marked(predict, claude(transport, **lm_options), transport, **{"question": "q", "history": None, **inputs})


def test_lone_request_is_not_marked_by_default() -> None:
    assert prediction_of({}, {}) == []
    assert prediction_of({"prompt_cache": "auto"}, {"prompt_cache": "auto"}) == []


def test_last_demo_of_many_is_marked() -> None:
    assert prediction_of({}, {}, demos=8) == ["15"]
    assert prediction_of({}, {}, demos=1) == []


def test_conversation_is_marked_at_its_end() -> None:
    history = History([{"question": "before", "answer": "a"}])
    assert prediction_of({}, {}, history=history) == ["body", "system"]


@pytest.mark.parametrize("off", [({"prompt_cache": False}, {}), ({}, {"prompt_cache": False})], ids=["Predict", "LM"])
def test_nothing_is_marked_when_the_prompt_cache_is_off(off: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert prediction_of(*off, demos=8) == []


@pytest.mark.parametrize(
    "given", [({"prompt_cache": {"ttl": "1h"}}, {}), ({}, {"prompt_cache": {"ttl": "1h"}})], ids=["Predict", "LM"]
)
def test_marks_that_are_asked_for_are_set_in_a_lone_request(given: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert prediction_of(*given) == ["body"]


def test_time_of_the_marks_of_an_agent_is_configured_in_one_place() -> None:
    transport = Script(2)
    agent = ReAct("question -> answer", tools=[look], prompt_cache={"ttl": "1h"})
    agent.set_lm(claude(transport))
    agent(question="q")
    body = json.loads(transport.requests[-1].body)
    assert body["cache_control"] == body["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


WIRES: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("openai/gpt-4.1", {}),
    "openai-responses": ("openai/gpt-5.6", {}),
    "gemini": ("gemini/gemini-3-flash", {}),
    "ollama": ("ollama/qwen3", {}),
    "compatible": ("groq/llama-3.3-70b-versatile", {}),
}


@pytest.mark.parametrize("wire", WIRES)
def test_other_wires_get_no_field_of_a_cache_by_default(wire: str) -> None:
    calls = [
        ToolCall("", "look", {"page": 1}),
        ToolCall("", "look", {"page": 2}),
        ToolCall("", "submit", {"answer": "x"}),
    ]
    model, options = WIRES[wire]
    with FakeProvider(calls) as provider:
        agent = ReAct("question -> answer", tools=[look])
        agent.set_lm(LM(model, base_url=provider.url(wire), api_key="any", **options))
        agent(question="q")
        assert "cache" not in str([request.body for request in provider.requests])


@pytest.mark.parametrize("wire", ["openai", "openai-responses"])
def test_cache_key_is_sent_to_openai_when_it_is_given(wire: str) -> None:
    with FakeProvider(lambda request: ANSWER) as provider:
        lm = LM(
            WIRES[wire][0], base_url=provider.url(wire), api_key="any", wire="responses" if "resp" in wire else None
        )
        Predict("question -> answer", lm=lm, prompt_cache={"key": "k1"})(question="q")
        body: Any = provider.requests[-1].body
    assert body["prompt_cache_key"] == "k1"


REFUSED: list[dict[str, Any]] = [
    {"prompt_cache": True},
    {"prompt_cache": "always"},
    {"prompt_cache": {"ttl": "2h"}},
    {"prompt_cache": {"tll": "1h"}},
    {"cache": {"ttl": "1h"}},
    {"cache": "1h"},
]


@pytest.mark.parametrize("config", REFUSED, ids=str)
def test_unknown_prompt_cache_is_refused_where_it_is_written(config: dict[str, Any]) -> None:
    lm = FakeLM([{"answer": "x"}])
    makers: list[Any] = [
        lambda: Predict("question -> answer", **config),
        lambda: ReAct("question -> answer", tools=[look], **config),
        lambda: Predict("question -> answer", lm=lm)(question="q", config=config),
        lambda: claude(Double(MESSAGES))("Hi", **config),
        lambda: claude(Double(MESSAGES), **config),
        lambda: claude(Double(MESSAGES)).copy(prompt_cache=config.get("prompt_cache", "x")),
    ]
    for make in makers:
        with pytest.raises(ConfigurationError, match="prompt_cache="):
            make()
    assert not lm.requests


@pytest.mark.parametrize("value", [True, False])
def test_cache_of_a_request_marks_nothing(value: bool) -> None:
    assert prediction_of({"cache": value}, {}) == []
