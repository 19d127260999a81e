"""A conversation of one provider, cut anywhere, is accepted by every other, whose fake refuses what the real one refuses."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire import LM, Message, Request, to_provider
from sigwire.core.events import collect
from sigwire.core.json import dumps, loads
from sigwire.core.parts import ImagePart, TextPart, ThinkingPart
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.lm.codecs.shared.interface import EncodedRequest
from sigwire.lm.litellm.codec import encode_call, target_for
from sigwire.testing import FakeProvider
from sigwire.testing.places import WIRES
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import ReceivedRequest
from tests.lm.histories.any_history import TARGETS, WIRES_OF, histories
from tests.strategies import at_most

TOOLS: Any = ({"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}},)
PICTURE = ImagePart(data="iVBORw0KGgo=", media_type="image/png")
ANSWERS = [
    Choice.from_parts(
        (ThinkingPart("Two."), TextPart("I look."), ToolCall("a", "add", {"x": 1}), ToolCall("b", "add", {}))
    ),
    Choice.from_parts((ThinkingPart("Now one."), ToolCall("c", "add", {"y": 2}))),
    Choice.from_parts((ThinkingPart("Done."), TextPart("It is three."))),
]  # fmt: skip


def model_at(provider: FakeProvider, wire: str, **options: Any) -> LM:
    return LM(TARGETS[wire], base_url=provider.url(wire), api_key="k", cache=False, wire=WIRES_OF.get(wire), **options)


@functools.cache
def conversation_of(wire: str) -> list[Message]:
    """Return a conversation that the model of a wire led: two rounds of calls, then an answer."""
    turns = [Message.system("Be brief."), Message.user("Add.", PICTURE)]
    with FakeProvider(ANSWERS) as provider:
        lm = model_at(provider, wire, **({"reasoning": "low"} if wire == "anthropic" else {}))
        for _ in ANSWERS:
            turn = lm.respond(Request(tuple(turns), TOOLS)).choices[0].message()
            turns.append(turn)
            if turn.tool_calls:
                results = [ToolResult(call.id, call.name, f"result {call.id}") for call in turn.tool_calls]
                turns.append(Message.tool(*results))
    return [*turns, Message.user("And now?")]


def cuts_of(history: list[Message]) -> Iterator[list[Message]]:
    """Yield the history without its end or its start, and with one turn left out."""
    for cut in range(1, len(history)):
        yield history[:cut]
        yield history[cut:]
        yield history[:cut] + history[cut + 1 :]


@pytest.mark.long
@pytest.mark.parametrize(("there", "back"), list(itertools.product(sorted(WIRES), repeat=2)))
def test_conversation_cut_anywhere_is_accepted_by_every_provider(there: str, back: str) -> None:
    history = conversation_of(there)
    with FakeProvider(lambda request: "ok", keep=0) as provider:
        lm = model_at(provider, back)
        for cut in cuts_of(history):
            assert lm.respond(Request(tuple(cut), TOOLS)).choices[0].text == "ok"
            assert lm.respond(Request(to_provider(cut, lm).messages, TOOLS)).choices[0].text == "ok"


@pytest.mark.parametrize("back", sorted(WIRES))
def test_conversation_of_another_provider_is_accepted_awaited_and_streamed(back: str) -> None:
    history = conversation_of("gemini" if back == "anthropic" else "anthropic")

    async def ask(lm: LM, request: Request) -> list[str]:
        awaited = await lm.arespond(request)
        return [awaited.choices[0].text, collect([event async for event in lm.astream(request)]).choices[0].text]

    with FakeProvider(lambda request: "ok") as provider:
        lm, request = model_at(provider, back), Request(tuple(history), TOOLS)
        assert asyncio.run(ask(lm, request)) == ["ok", "ok"]
        assert collect(lm.stream(request)).choices[0].text == "ok"


def read_by_fake(wire: str, history: list[Message]) -> None:
    """Raise unless the fake provider accepts the history as the encoder of the wire writes it."""
    headers: Mapping[str, str] = {}
    if wire == "litellm":
        target = target_for("cohere/command-r", None)
        arguments, _ = encode_call(Request(to_provider(history, TARGETS[wire]).messages), target)
        body: Any = {"model": "m", "messages": arguments["messages"]}
        path = "/v1/chat/completions"
        wire = "openai"
    else:
        lm = LM(TARGETS[wire], wire=WIRES_OF.get(wire))
        sent = encoded(lm, Request(to_provider(history, lm).messages))
        body, path, headers = sent.body, WIRES[wire].base + sent.path, sent.headers
    WIRES[wire].read(RequestNode(loads(dumps(body))), ReceivedRequest("POST", path, {}, headers))


def encoded(lm: LM, request: Request) -> EncodedRequest:
    backend: Any = vars(lm)["_backend"]
    codec = backend._route("none").codec
    sent: EncodedRequest = codec.encode(request, backend.target_of(request))
    return sent


@given(histories, st.sampled_from([*sorted(WIRES), "litellm"]))
@at_most(60)
def test_any_history_is_accepted_by_every_provider(history: list[Message], wire: str) -> None:
    read_by_fake(wire, history)
