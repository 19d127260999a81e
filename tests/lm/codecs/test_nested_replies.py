"""Replies with lists and objects nested hundreds of levels deep: read, or a tagged error, on every wire."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from sigwire.core.events import collect
from sigwire.core.json import dumps
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolResult
from sigwire.errors import SigwireError
from sigwire.lm.client import LM
from tests.lm.codecs.anthropic import test_streams as anthropic
from tests.lm.codecs.gemini import test_streams as gemini
from tests.lm.codecs.ollama import test_streams as ollama
from tests.lm.codecs.openai_chat import test_streams as chat
from tests.lm.codecs.openai_responses import test_streams as responses
from tests.lm.replies import CHAT, GEMINI, MESSAGES, OLLAMA, Double

TOOL: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
ASKED = Request((Message.user("q"),), (TOOL,))
CALL: Any = {"name": "f", "arguments": {"x": 1}}
WIRES: dict[str, tuple[str, dict[str, Any], Any, list[Any]]] = {
    "chat": (
        "openai/m",
        {},
        {**CHAT, "choices": [{"message": {"tool_calls": [{"id": "a", "function": {**CALL, "arguments": "{}"}}]}}]},
        chat.TRANSCRIPT,
    ),
    "responses": ("openai/m", {"wire": "responses"}, responses.answer(*responses.ITEMS), responses.TRANSCRIPT),
    "anthropic": (
        "anthropic/m",
        {},
        {**MESSAGES, "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]},
        anthropic.TRANSCRIPT,
    ),
    "gemini": ("gemini/m", {}, {**GEMINI, **gemini.said(gemini.calling("f", "a", args={"x": 1}))}, gemini.TRANSCRIPT),
    "ollama": ("ollama/m", {}, {**OLLAMA, "message": {"tool_calls": [{"function": CALL}]}}, ollama.TRANSCRIPT),
}
EVERY_WIRE = pytest.mark.parametrize("wire", WIRES)


def nested(depth: int, kind: str) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


def variants(value: Any, other: Any) -> Iterator[Any]:
    """Yield the value with ``other`` in place of each of its parts, and as an unknown member."""
    yield other
    if isinstance(value, dict):
        yield {**value, "unknown": other}
        for name in value:
            yield from ({**value, name: changed} for changed in variants(value[name], other))
    elif isinstance(value, list):
        for at in range(len(value)):
            yield from ([*value[:at], changed, *value[at + 1 :]] for changed in variants(value[at], other))


def written(value: Any) -> bytes:
    sys.setrecursionlimit(10_000)  # of the test's own encoder
    try:
        return json.dumps(value).encode()
    finally:
        sys.setrecursionlimit(1000)


def stream_of(wire: str, events: list[Any]) -> bytes:
    start, end = (b"", b"\n") if wire == "ollama" else (b"data: ", b"\n\n")
    return b"".join(start + written(event) + end for event in events)


def lm(wire: str, body: bytes) -> LM:
    model, options, *_ = WIRES[wire]
    return LM(model, api_key="any", transport=Double(body), num_retries=0, **options)


def use(model: LM, response: Response) -> None:
    """Print and store the response, and send its message back."""
    message = response.choices[0].message()
    results = Message.tool(*(ToolResult(call.id, call.name, "ok") for call in message.tool_calls))
    assert repr(response)
    assert dumps(response.to_json())
    model.respond(Request((*ASKED.messages, message, results, Message.user("on")), (TOOL,)))


def whole(wire: str, body: bytes) -> None:
    model = lm(wire, body)
    use(model, model.respond(ASKED))


def streamed(wire: str, body: bytes) -> None:
    model = lm(wire, body)
    use(model, collect(list(model.stream(ASKED))))


def only_tagged_errors(read: Any, wire: str, body: bytes) -> None:
    with suppress(SigwireError):
        read(wire, body)


@EVERY_WIRE
@pytest.mark.parametrize("depth", [190, 500, 900])
@pytest.mark.parametrize("kind", ["list", "object"])
def test_nested_event_is_read_or_a_tagged_error(wire: str, depth: int, kind: str) -> None:
    _, _, body, events = WIRES[wire]
    value = nested(depth, kind)
    for each in (value, {**body, "unknown": value}):
        only_tagged_errors(whole, wire, written(each))
    for event in (value, {**events[0], "unknown": value}):
        only_tagged_errors(streamed, wire, stream_of(wire, [event, *events[1:]]))


@EVERY_WIRE
@pytest.mark.parametrize("text", [False, True], ids=["JSON", "JSON in a text"])
def test_reply_with_a_nested_part_is_read_or_a_tagged_error(wire: str, text: bool) -> None:
    value = nested(600, "list")
    other = written({"x": value}).decode() if text else value
    for body in variants(WIRES[wire][2], other):
        only_tagged_errors(whole, wire, written(body))


@EVERY_WIRE
async def test_nested_event_is_a_tagged_error_for_awaited_calls(wire: str) -> None:
    async def read(body: bytes) -> None:
        async for _ in lm(wire, body).astream(ASKED):
            pass

    value = nested(700, "list")
    with pytest.raises(SigwireError):
        await read(stream_of(wire, [value]))
    with pytest.raises(SigwireError):
        await lm(wire, written(value)).arespond(ASKED)


@pytest.mark.long
@EVERY_WIRE
@pytest.mark.parametrize(("depth", "kind"), [(500, "list"), (900, "object")])
def test_stream_with_a_nested_part_is_read_or_a_tagged_error(wire: str, depth: int, kind: str) -> None:
    value = nested(depth, kind)
    events = WIRES[wire][3]
    for at, event in enumerate(events):
        for other in (value, written({"x": value}).decode()):
            for changed in variants(event, other):
                only_tagged_errors(streamed, wire, stream_of(wire, [*events[:at], changed, *events[at + 1 :]]))
