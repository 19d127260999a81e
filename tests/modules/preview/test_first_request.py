"""``program.preview``: the body that a call then sends, on every wire, without a socket or a key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import pytest

import sigwire
from sigwire import LM, Image, Module, Predict, ReAct, ToolCall
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.testing import FakeProvider
from tests.lm.calls import forget_keys

MODELS: Mapping[str, tuple[str, str | None]] = {
    "openai": ("openai/gpt-4.1-mini", None),
    "openai-responses": ("openai/gpt-4.1-mini", "responses"),
    "anthropic": ("anthropic/claude-haiku-4-5", None),
    "gemini": ("gemini/gemini-2.5-flash", None),
    "ollama": ("ollama/qwen3", None),
}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000000020001e221bc330000000049454e44ae426082"
)


class Recording:
    """A transport that records each request and sends it on."""

    def __init__(self) -> None:
        self.sent: list[HttpRequest] = []
        self._inner = HttpTransport()

    def send(self, request: HttpRequest) -> HttpReply:
        self.sent.append(request)
        return self._inner.send(request)

    async def asend(self, request: HttpRequest) -> HttpReply:
        self.sent.append(request)
        return await self._inner.asend(request)

    @contextmanager
    def stream(self, request: HttpRequest) -> Iterator[Any]:
        self.sent.append(request)
        with self._inner.stream(request) as reply:
            yield reply

    @asynccontextmanager
    async def astream(self, request: HttpRequest) -> AsyncIterator[Any]:
        self.sent.append(request)
        async with self._inner.astream(request) as reply:
            yield reply

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()


def add(a: int, b: int = 2) -> int:
    """The sum of two numbers."""
    return a + b


class Look(sigwire.Signature):
    """Answer about a picture."""

    picture: Image = sigwire.InputField()
    question: str = sigwire.InputField()
    answer: str = sigwire.OutputField()
    kind: Literal["cat", "dog"] = sigwire.OutputField()


def look() -> Module:
    return Predict(Look, temperature=0.2, max_tokens=500)


def with_demos() -> Module:
    predict = Predict("question, hints: list[str] -> answer, sure: bool")
    predict.demos = [{"question": "1+1?", "hints": ["a"], "answer": "2", "sure": True}] * 2
    return predict


def agent() -> Module:
    return ReAct("question -> answer: int", tools=[add])


def chat(**fields: str) -> str:
    """The fields in the layout of the chat adapter."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**fields, "completed": ""}.items())


PROGRAMS: Mapping[str, tuple[Callable[[], Module], dict[str, object], Any]] = {
    "image": (look, {"picture": Image(PIXEL), "question": "What is it?"}, chat(answer="A cat", kind="cat")),
    "demos": (with_demos, {"question": "2+2?", "hints": ["\u202e", "'$HOME`"]}, chat(answer="4", sure="True")),
    "tools": (agent, {"question": "What is 1 + 2?"}, ToolCall("call_1", "submit", {"answer": 3})),
}


async def blocking(program: Any, inputs: Any) -> None:
    program(**inputs)


async def awaited(program: Any, inputs: Any) -> None:
    await program.acall(**inputs)


async def streamed(program: Any, inputs: Any) -> None:
    list(program.stream(**inputs))


@pytest.mark.parametrize("call", [blocking, awaited])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wire", MODELS)
async def test_preview_has_the_bytes_that_the_call_sends(
    wire: str, name: str, call: Callable[[Any, Any], Awaitable[None]], sockets: list[str]
) -> None:
    make, inputs, answer = PROGRAMS[name]
    model, own = MODELS[wire]
    transport = Recording()
    with FakeProvider([answer]) as provider:
        lm = LM(model, base_url=provider.url(wire), api_key="any", wire=own, transport=transport, cache=False)
        program = make()
        program.set_lm(lm)
        sockets.clear()
        preview = program.preview(**inputs)
        assert sockets == []
        assert (transport.sent, provider.requests) == ([], ())
        await call(program, inputs)
    assert preview.json() == transport.sent[0].body
    assert preview.wire is not None
    assert preview.wire["body"] == json.loads(transport.sent[0].body) == provider.requests[0].body
    assert preview.wire["url"] == transport.sent[0].url
    assert {name: value for name, value in preview.wire["headers"].items() if "env:" not in value} == {
        name: value for name, value in transport.sent[0].headers.items() if "any" not in value
    }


@pytest.mark.parametrize("wire", MODELS)
async def test_preview_equals_the_streamed_body_but_for_the_marks_of_streams(wire: str) -> None:
    make, inputs, answer = PROGRAMS["demos"]
    model, own = MODELS[wire]
    with FakeProvider([answer]) as provider:
        program = make()
        program.set_lm(LM(model, base_url=provider.url(wire), api_key="any", wire=own, cache=False))
        preview = program.preview(**inputs)
        await streamed(program, inputs)
    body: Any = provider.requests[0].body
    marks = {"stream", "stream_options"}
    assert preview.wire is not None
    assert {k: v for k, v in body.items() if k not in marks} == {
        k: v for k, v in preview.wire["body"].items() if k not in marks
    }


@pytest.mark.parametrize("model", ["openai/gpt-4.1-mini", "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"])
def test_preview_needs_no_key(model: str, monkeypatch: pytest.MonkeyPatch, sockets: list[str]) -> None:
    forget_keys(monkeypatch)
    preview = Predict("question -> answer", lm=LM(model)).preview(question="2+2?")
    assert preview.wire is not None
    assert [value for value in preview.wire["headers"].values() if "env:" in value]
    assert sockets == []
