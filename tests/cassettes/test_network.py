"""A replay sends nothing: each way to a network raises ``CassetteMiss`` in it, and none is refused outside of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import Cassette, CassetteMiss, FakeLM, Message, Predict, Request, Response, Router, StateError
from sigwire.core.response import Choice
from sigwire.effects.steps import arun, run
from sigwire.lm.batch.model import BatchLM
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.litellm import backend as litellm_backend
from sigwire.lm.policy.call import Call, TargetKey
from sigwire.lm.providers.connection import ConnectionOptions
from sigwire.mcp.errors import McpServerError
from sigwire.mcp.servers import mcp_tools
from sigwire.media.fetching import fetch
from sigwire.retrieval.model import EmbeddingModel
from tests.lm.replies import CHAT, Double

ASK = Request((Message.user("Hi"),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The recording of one question."""
    path = tmp_path / "run.jsonl"
    with Cassette(path, mode="record"):
        Predict("question -> answer", lm=FakeLM([{"answer": "4"}]))(question="2+2?")
    return path


class Custom(sigwire.BaseLM):
    """A model of a user, which could ask anything."""

    asked = 0

    def forward(self, request: Request) -> str:
        self.asked += 1
        return "sent"


async def all_of(events: AsyncIterator[object]) -> None:
    async for _ in events:
        pass


FORMS: dict[str, Callable[[Any], object]] = {
    "call": lambda lm: lm("Hi"),
    "acall": lambda lm: asyncio.run(lm.acall("Hi")),
    "respond": lambda lm: lm.respond(ASK),
    "arespond": lambda lm: asyncio.run(lm.arespond(ASK)),
    "stream": lambda lm: list(lm.stream(ASK)),
    "astream": lambda lm: asyncio.run(all_of(lm.astream(ASK))),
}


def plain(**options: Any) -> LM:
    return LM("openai/gpt-4.1", api_key="any", **options)


MODELS: dict[str, Callable[[Double, Path], Any]] = {
    "a transport of the user": lambda wire, folder: plain(transport=wire),
    "the transport of sigwire": lambda wire, folder: plain(base_url="http://127.0.0.1:9"),
    "no cache": lambda wire, folder: plain(transport=wire, cache=False),
    "a router": lambda wire, folder: Router([plain(transport=wire), FakeLM(lambda request: "no")]),
    "a fallback": lambda wire, folder: plain(transport=wire, fallbacks=["openai/gpt-4.1-mini"]),
    "a model of the user": lambda wire, folder: Custom("custom"),
    "embeddings": lambda wire, folder: EmbeddingModel("openai/text-embedding-3-small", api_key="any", transport=wire),
    "a batch": lambda wire, folder: BatchLM(plain(transport=wire), folder / "x.batch"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", MODELS)
def test_direct_call_in_a_replay_is_a_miss_and_sends_nothing(kind: str, form: str, path: Path) -> None:
    wire = Double(CHAT)
    lm = MODELS[kind](wire, path.parent)
    before = getattr(lm, "asked", 0)
    cassette = Cassette(path, mode="replay", strict=True)
    cassette.__enter__()
    Predict("question -> answer", lm=FakeLM([]))(question="2+2?")
    with pytest.raises(CassetteMiss, match=r"outside of a module.*nothing was sent.*Predict") as caught:
        FORMS[form](lm)
    assert caught.value.path == path
    with pytest.raises(StateError, match="1 CassetteMiss"):
        cassette.__exit__(None, None, None)
    assert wire.requests == []
    assert getattr(lm, "asked", 0) == before


def test_direct_call_is_sent_outside_of_a_replay(path: Path) -> None:
    wire = Double(CHAT)
    lm = plain(transport=wire)
    with Cassette(path, mode="replay"):
        Predict("question -> answer", lm=FakeLM([]))(question="2+2?")
    with Cassette(path.with_name("other.jsonl"), mode="record"):
        lm("in a recording")
    lm("behind it")
    assert len(wire.requests) == 2


def test_models_inside_the_process_answer_direct_calls_of_a_replay(path: Path) -> None:
    with Cassette(path, mode="replay"):
        Predict("question -> answer", lm=FakeLM([]))(question="2+2?")
        assert FakeLM(["here"])("Hi") == ["here"]
        assert LM("offline/lexical")("Hi")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the miss that the test catches
def test_litellm_is_not_called_in_a_replay(path: Path) -> None:
    backend = litellm_backend.LiteLLM("openai/gpt-4.1", ConnectionOptions(api_key="any"))
    for streamed in (False, True):
        call = Call(ASK, TargetKey("litellm", None, None, "litellm/openai/gpt-4.1"), streamed=streamed)
        with Cassette(path, mode="replay"):
            Predict("question -> answer", lm=FakeLM([]))(question="2+2?")
            with pytest.raises(CassetteMiss):
                run(backend.answer(call))
            with pytest.raises(CassetteMiss):
                asyncio.run(arun(backend.answer(call)))


async def _opened(transport: HttpTransport, request: HttpRequest) -> None:
    async with transport.astream(request):
        pass


def _stream(transport: HttpTransport, request: HttpRequest) -> None:
    with transport.stream(request):
        pass


OTHERS: dict[str, Callable[[HttpTransport, HttpRequest], object]] = {
    "send": lambda transport, request: transport.send(request),
    "asend": lambda transport, request: asyncio.run(transport.asend(request)),
    "stream": _stream,
    "astream": lambda transport, request: asyncio.run(_opened(transport, request)),
    "fetch": lambda transport, request: asyncio.run(fetch("https://93.184.216.34/a.png?key=secret")),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("how", OTHERS)
def test_transport_and_fetch_send_nothing_in_a_replay(how: str, path: Path) -> None:
    request = HttpRequest("http://127.0.0.1:9/v1?key=secret", {}, b"{}")
    with Cassette(path, mode="replay"), HttpTransport() as transport:
        Predict("question -> answer", lm=FakeLM([]))(question="2+2?")
        with pytest.raises(CassetteMiss) as caught:
            OTHERS[how](transport, request)
    assert "secret" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mcp_server_over_http_is_not_opened_in_a_replay(path: Path) -> None:
    pytest.importorskip("mcp")
    with Cassette(path, mode="replay"):
        Predict("question -> answer", lm=FakeLM([]))(question="2+2?")
        with pytest.raises(CassetteMiss, match=r"MCP server 127.0.0.1"), mcp_tools("http://127.0.0.1:9/mcp"):
            pass
        with pytest.raises(CassetteMiss, match=r"MCP server 127.0.0.1"):
            asyncio.run(_opened_tools())


async def _opened_tools() -> None:
    async with mcp_tools("http://127.0.0.1:9/mcp"):
        pass


def test_mcp_server_is_opened_in_a_replay_that_runs_tools(path: Path) -> None:
    pytest.importorskip("mcp")
    tools = mcp_tools("http://127.0.0.1:9/mcp", timeout=5.0)
    with pytest.raises(McpServerError), Cassette(path, mode="replay", tools="run"), tools:
        pass


def test_response_of_a_custom_model_is_its_own_outside_of_a_replay() -> None:
    assert Custom("custom").respond(ASK) == Response((Choice("sent"),), model="custom")
