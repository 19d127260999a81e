"""A transport with some of the methods of ``Transport``: calls of its kinds work, others name what is missing."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

from sigwire.core.events import collect
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpReply, HttpRequest, ReplyStream
from sigwire.lm.http.transport import HttpTransport
from sigwire.testing import FakeProvider

HOWS = {"send": "blocking", "asend": "awaited", "stream": "streamed", "astream": "awaited stream"}
REQUEST = Request((Message.user("Hi"),))


class OnlySend:
    def __init__(self) -> None:
        self._inner = HttpTransport()

    def send(self, request: HttpRequest) -> HttpReply:
        return self._inner.send(request)


class OnlyAsend:
    def __init__(self) -> None:
        self._inner = HttpTransport()

    async def asend(self, request: HttpRequest) -> HttpReply:
        return await self._inner.asend(request)


class WithStream(OnlySend):
    def stream(self, request: HttpRequest) -> AbstractContextManager[ReplyStream]:
        return self._inner.stream(request)


async def ask(lm: LM, how: str) -> Response:
    match how:
        case "blocking":
            return lm.respond(REQUEST)
        case "awaited":
            return await lm.arespond(REQUEST)
        case "streamed":
            return collect(lm.stream(REQUEST))
        case _:
            return collect([event async for event in lm.astream(REQUEST)])


@pytest.mark.parametrize("kind", [OnlySend, OnlyAsend, WithStream])
@pytest.mark.parametrize("method", HOWS)
async def test_call_names_the_method_that_its_transport_lacks(kind: Any, method: str) -> None:
    with FakeProvider(["Hello."]) as provider:
        lm = LM("openai/gpt-4.1-mini", base_url=provider.url("openai"), api_key="k", cache=False, transport=kind())
        if hasattr(kind, method):
            assert (await ask(lm, HOWS[method])).choices[0].text == "Hello."
            return
        with pytest.raises(ConfigurationError) as caught:
            await ask(lm, HOWS[method])
        assert not provider.requests
    assert f"The transport {kind.__name__} has no {method}, which" in str(caught.value)
    assert f"(sending a request). Add {method}(request), or " in str(caught.value)
