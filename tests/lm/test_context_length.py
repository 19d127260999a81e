"""The context length of a model: asked once, bounded, and without effect on a call if the server does not answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import LMTransportError
from sigwire.lm.client import LM
from sigwire.lm.codecs.shared.untrusted import value_at
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.testing import FakeProvider
from tests.lm.calls import HELLO, HOWS, ask
from tests.lm.replies import OLLAMA

LONG = Request((Message.user("word " * 200_000),))
SHOWN: JsonObject = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}}


class Server:
    """A transport that answers ``/api/show`` with a reply or an error, and every chat."""

    def __init__(self, shown: Any = SHOWN, status: int = 200) -> None:
        self.shown, self.status, self.requests = shown, status, list[HttpRequest]()

    def send(self, request: HttpRequest) -> HttpReply:
        self.requests.append(request)
        if not request.url.endswith("/api/show"):
            return HttpReply(200, {}, json.dumps(OLLAMA).encode())
        if isinstance(self.shown, Exception):
            raise self.shown
        return HttpReply(self.status, {}, json.dumps(self.shown).encode())

    async def asend(self, request: HttpRequest) -> HttpReply:
        return self.send(request)

    def close(self) -> None: ...

    def asked(self) -> list[str]:
        return [request.url.rpartition("/")[2] for request in self.requests]

    def windows(self) -> list[Any]:
        bodies = [json.loads(request.body) for request in self.requests if request.url.endswith("chat")]
        return [body.get("options", {}).get("num_ctx") for body in bodies]


@pytest.mark.parametrize("how", ["respond", "arespond"])
async def test_window_is_at_most_the_context_length_which_is_asked_once(how: str) -> None:
    server = Server()
    lm = LM("ollama/qwen3", transport=server, cache=False)
    for _ in range(2):
        response = lm.respond(LONG) if how == "respond" else await lm.arespond(LONG)
        assert len(response.attempts) == 1
    assert (server.asked(), server.windows()) == (["show", "chat", "chat"], [40_960, 40_960])
    asked = server.requests[0]
    assert (json.loads(asked.body), asked.timeout) == ({"model": "qwen3"}, 3.0)


@pytest.mark.parametrize(
    "server",
    [
        Server(LMTransportError("down")),
        Server({"error": "model not found"}, 404),
        Server([]),
        Server({"model_info": {"general.architecture": "x", "x.context_length": "40960"}}),
    ],
)
def test_call_is_sent_when_the_context_length_is_unknown(server: Server) -> None:
    lm = LM("ollama/qwen3", transport=server, cache=False)
    for _ in range(2):
        lm.respond(LONG)
    assert (server.asked(), server.windows()) == (["show", "chat", "chat"], [524_288, 524_288])


@pytest.mark.parametrize("options", [{"num_ctx": 8_000}, {"extra_body": {"options": {"num_ctx": 8_000}}}])
def test_server_is_not_asked_for_a_window_of_the_caller(options: dict[str, Any]) -> None:
    server = Server()
    LM("ollama/qwen3", transport=server, cache=False).respond(Request(LONG.messages, options=options))
    assert (server.asked(), server.windows()) == (["chat"], [8_000])


def test_server_is_not_asked_for_a_short_prompt() -> None:
    server = Server()
    LM("ollama/qwen3", transport=server, cache=False).respond(HELLO)
    assert server.asked() == ["chat"]


@HOWS
async def test_fake_provider_has_a_context_length(how: str) -> None:
    with FakeProvider(["yes"]) as provider:
        lm = LM("ollama/qwen3", base_url=provider.url("ollama"), cache=False)
        await ask(how, lm, LONG)
    assert [value_at(sent.body, "options.num_ctx") for sent in provider.requests] == [131_072]
