"""Deltas of several blocks or calls that alternate in a stream: each belongs to the block that its index names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import pytest

from sigwire.core.events import ToolCallDelta, ToolCallEnd, collect
from sigwire.core.json import JsonObject
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.codecs import anthropic, bedrock_converse, openai_chat, openai_responses
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.shared.interface import StreamingCodec, Target
from tests.lm.codecs.streaming import decoded_events


class Steps(NamedTuple):
    """The events of one wire: the start of a call, a delta of its arguments, its end, and the end of the reply."""

    codec: StreamingCodec[Any]
    target: Target[Any]
    start: Callable[[int], Sequence[JsonObject]]
    delta: Callable[[int, str], Sequence[JsonObject]]
    stop: Callable[[int], Sequence[JsonObject]]
    end: Sequence[JsonObject]


def _anthropic(kind: str, index: int, **fields: Any) -> Sequence[JsonObject]:
    return [{"type": f"content_block_{kind}", "index": index, **fields}]


def _converse(kind: str, index: int, **fields: Any) -> Sequence[JsonObject]:
    return [{f"contentBlock{kind}": {"contentBlockIndex": index, **fields}}]


def _chat(index: int, **fields: Any) -> Sequence[JsonObject]:
    return [{"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, **fields}]}}]}]


def _responses(kind: str, index: int, **fields: Any) -> Sequence[JsonObject]:
    return [{"type": f"response.{kind}", "output_index": index, **fields}]


def _item(index: int, arguments: str = "") -> JsonObject:
    names: JsonObject = {"id": f"fc_{index}", "call_id": f"t{index}", "name": f"f{index}"}
    return {"type": "function_call", **names, "arguments": arguments}


WIRES: Mapping[str, Steps] = {
    "anthropic": Steps(
        anthropic,
        Target("anthropic", "m", anthropic.ANTHROPIC),
        lambda n: _anthropic(
            "start", n, content_block={"type": "tool_use", "id": f"t{n}", "name": f"f{n}", "input": {}}
        ),
        lambda n, text: _anthropic("delta", n, delta={"type": "input_json_delta", "partial_json": text}),
        lambda n: _anthropic("stop", n),
        [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}],
    ),
    "converse": Steps(
        bedrock_converse,
        Target("bedrock", "m", bedrock_converse.CONVERSE),
        lambda n: _converse("Start", n, start={"toolUse": {"toolUseId": f"t{n}", "name": f"f{n}"}}),
        lambda n, text: _converse("Delta", n, delta={"toolUse": {"input": text}}),
        lambda n: _converse("Stop", n),
        [{"messageStop": {"stopReason": "tool_use"}}],
    ),
    "chat": Steps(
        openai_chat,
        Target("openai", "m", ChatProfile()),
        lambda n: _chat(n, id=f"t{n}", function={"name": f"f{n}"}),
        lambda n, text: _chat(n, function={"arguments": text}),
        lambda n: [],
        [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}],
    ),
    "responses": Steps(
        openai_responses,
        Target("openai", "m", openai_responses.OPENAI),
        lambda n: _responses("output_item.added", n, item=_item(n)),
        lambda n, text: _responses("function_call_arguments.delta", n, delta=text),
        lambda n: _responses("output_item.done", n, item=_item(n, f'{{"n": {n}}}')),
        [{"type": "response.completed", "response": {"id": "r", "status": "completed"}}],
    ),
}
STOPPED = ["anthropic", "converse"]  # the wires whose blocks have an end of their own


def calls_of(wire: Steps, *events: Sequence[JsonObject]) -> tuple[ToolCall, ...]:
    found = decoded_events(wire.codec, wire.target, [event for group in events for event in group])
    response = collect(found)
    calls = response.choices[0].tool_calls
    ends = {event.index: event.call for event in found if isinstance(event, ToolCallEnd)}
    assert tuple(ends[number] for number in range(len(calls))) == calls
    for number, call in enumerate(calls):
        deltas = [event.arguments for event in found if isinstance(event, ToolCallDelta) and event.index == number]
        if call.error is None:
            assert ToolCall.read(call.id, call.name, "".join(deltas)).arguments == call.arguments
    return calls


@pytest.mark.parametrize("order", list(permutations([0, 1, 2])), ids=str)
@pytest.mark.parametrize("name", WIRES)
def test_alternating_deltas_of_parallel_calls_join_by_index(name: str, order: Sequence[int]) -> None:
    wire = WIRES[name]
    starts = [event for n in range(3) for event in wire.start(n)]
    firsts = [event for n in order for event in wire.delta(n, '{"n": ')]
    rests = [event for n in reversed(order) for event in wire.delta(n, f"{n}}}")]
    stops = [event for n in order for event in wire.stop(n)]
    calls = calls_of(wire, starts, firsts, rests, stops, wire.end)
    assert [(call.id, call.name, call.arguments) for call in calls] == [(f"t{n}", f"f{n}", {"n": n}) for n in range(3)]


@pytest.mark.parametrize("name", STOPPED)
def test_text_between_the_deltas_of_a_call_keeps_the_call_whole(name: str) -> None:
    wire = WIRES[name]
    say: Mapping[str, Sequence[JsonObject]] = {
        "anthropic": _anthropic("delta", 1, delta={"type": "text_delta", "text": "Hm."}),
        "converse": _converse("Delta", 1, delta={"text": "Hm."}),
    }
    (call,) = calls_of(
        wire,
        wire.start(0),
        wire.delta(0, '{"n": '),
        say[name],
        wire.delta(0, "7}"),
        wire.stop(0),
        wire.stop(1),
        wire.end,
    )
    assert call.arguments == {"n": 7}


@pytest.mark.parametrize("name", ["anthropic", "converse", "responses"])
def test_call_whose_arguments_never_came_is_malformed(name: str) -> None:
    wire = WIRES[name]
    (call,) = calls_of(wire, wire.start(0), wire.end)
    assert call.arguments is None
    assert call.error is not None
    assert call.error.code == "malformed_json"


@pytest.mark.parametrize("name", STOPPED)
def test_arguments_of_an_unknown_block_make_no_call_and_no_empty_arguments(name: str) -> None:
    wire = WIRES[name]
    calls = calls_of(wire, wire.start(0), wire.delta(5, '{"n": 1}'), wire.stop(0), wire.end)
    assert [(call.name, call.arguments) for call in calls] == [("f0", None)]


@pytest.mark.parametrize("deltas", [[], [""]], ids=["no delta", "an empty delta"])
@pytest.mark.parametrize("name", STOPPED)
def test_call_that_ends_without_arguments_has_none(name: str, deltas: Sequence[str]) -> None:
    wire = WIRES[name]
    events = [event for text in deltas for event in wire.delta(0, text)]
    (call,) = calls_of(wire, wire.start(0), events, wire.stop(0), wire.end)
    assert call.arguments == {}
