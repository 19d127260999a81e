"""Ollama's ``/api/chat``, streamed: transcripts, every kind of line, and equality with replies that are not streamed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core import events as ev
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import ContextWindowExceededError, LMError, LMServerError, LMTransportError
from sigwire.lm.codecs import ollama
from sigwire.lm.codecs.ollama import OLLAMA
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.streaming import ASKED, cuts, damaged, decoded_events, hostile, only_our_errors, sent_to, streamed

TARGET = Target("ollama", "m", OLLAMA)
AT = "2026-11-20T00:00:00Z"


# --- lines of the wire


def line(content: str = "", **fields: Any) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": content, **fields}
    return {"model": "m", "created_at": AT, "message": message, "done": False}


def calling(name: str, arguments: Any = None, call_id: str | None = None) -> JsonObject:
    function: JsonObject = {"name": name, "arguments": arguments}
    return {**({"id": call_id} if call_id else {}), "function": function}


def done(reason: str = "stop", **fields: Any) -> JsonObject:
    counts: JsonObject = {"prompt_eval_count": 10, "eval_count": 7}
    return {**line(), "done": True, "done_reason": reason, **counts, **fields}


THOUGHT = ThinkingPart("hm", provider="ollama")
F, G = ToolCall("call_aaaaaaaa", "f", {"x": 1}), ToolCall("call_bbbbbbbb", "g", {})

TRANSCRIPT: list[JsonObject] = [
    line(thinking="h"),
    line(thinking="m"),
    line("H"),
    line("i"),
    line(tool_calls=[calling("f", {"x": 1}, "call_aaaaaaaa")]),
    line(tool_calls=[calling("g", {}, "call_bbbbbbbb")]),
    done(),
]


def test_decoder_yields_the_events_of_a_transcript() -> None:
    events = decoded_events(ollama, TARGET, TRANSCRIPT)
    raw = events[-1].raw if isinstance(events[-1], ev.ResponseEnd) else None
    assert events == [
        ev.ResponseStart(None, "m"),
        ev.ReasoningDelta("h"),
        ev.ReasoningDelta("m"),
        ev.PartEnd(THOUGHT),
        ev.TextDelta("H"),
        ev.TextDelta("i"),
        ev.ToolCallStart(0, "call_aaaaaaaa", "f"),
        ev.ToolCallDelta(0, '{"x":1}'),
        ev.ToolCallStart(1, "call_bbbbbbbb", "g"),
        ev.ToolCallDelta(1, "{}"),
        ev.ToolCallEnd(0, F),
        ev.ToolCallEnd(1, G),
        ev.ChoiceEnd("tool_calls", ordered=True, raw=raw),
        ev.UsageUpdate(Usage(10, 7)),
        ev.ResponseEnd(raw=raw),
    ]
    assert raw == {
        "model": "m", "created_at": AT, "done": True, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 7,
        "message": {
            "role": "assistant", "content": "Hi", "thinking": "hm",
            "tool_calls": [calling("f", {"x": 1}, "call_aaaaaaaa"), calling("g", {}, "call_bbbbbbbb")],
        },
    }  # fmt: skip


ANSWERS: dict[str, tuple[list[JsonObject], tuple[object, ...]]] = {
    "row 66 a call without arguments": ([line(tool_calls=[calling("g")])], (ToolCall("call_0", "g", {}),)),
    "two calls on one line, without ids": (
        [line(tool_calls=[calling("g"), calling("g")])],
        (ToolCall("call_0", "g", {}), ToolCall("call_1", "g", {})),
    ),
    "arguments as text": (
        [line(tool_calls=[calling("f", '{"x": 1}')])],
        (ToolCall("call_0", "f", {"x": 1}, '{"x": 1}'),),
    ),
    "text behind a call": (
        [line(tool_calls=[calling("g")]), line("a")],
        (TextPart("a"), ToolCall("call_0", "g", {})),
    ),
    "a picture and what we have no word for": (
        [line("a", images=["iVBO"], mood="good"), line("b")],
        (TextPart("ab"), ImagePart(data="iVBO"), OpaquePart("ollama", {"mood": "good"})),
    ),
    "row 71 empty lines": (
        [line(), {}, {"message": None}, line("a", images=None)],
        (TextPart("a"),),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_stream_gives_the_response_of_its_lines(name: str) -> None:
    lines, parts = ANSWERS[name]
    response = streamed(ollama, TARGET, [*lines, done()])
    (choice,) = response.choices
    assert choice.message().parts == parts
    assert response == ollama.decode(response.raw, sent_to(ollama, TARGET), TARGET)


def test_decoder_returns_the_callers_tool_names_and_new_call_ids() -> None:
    tool = Tool.from_schema("look up", "d", {"type": "object", "properties": {}})
    before = (Message.assistant(tool_calls=[ToolCall("call_0", "look up", {})]), Message.user("r"))
    request = Request((*ASKED.messages, *before), tools=(tool.spec,))
    events = decoded_events(ollama, TARGET, [line(tool_calls=[calling("look_up")]), done()], request)
    assert ev.ToolCallStart(0, "call_1", "look up") in events
    assert ev.collect(events).choices[0].tool_calls == (ToolCall("call_1", "look up", {}),)


def test_logprobs_of_lines_are_concatenated() -> None:
    tokens: list[JsonValue] = [{"token": token, "logprob": -0.1} for token in "ab"]
    lines: list[JsonObject] = [{**line("a"), "logprobs": tokens[:1]}, {**line("b"), "logprobs": tokens[1:]}, done()]
    assert streamed(ollama, TARGET, lines).choices[0].logprobs == {"content": tokens}


@pytest.mark.parametrize("count", range(len(TRANSCRIPT)))
def test_row_68_stream_without_done_is_truncated(count: int) -> None:
    with pytest.raises(LMTransportError, match="stopped before the end") as caught:
        decoded_events(ollama, TARGET, TRANSCRIPT[:count])
    assert caught.value.retryable
    assert "".join(choice.text for choice in (caught.value.partial or Response()).choices) == "Hi"[: max(count - 2, 0)]


FAULTS: list[tuple[str, type[LMError]]] = [
    ("an error was encountered while running the model", LMServerError),
    ("the prompt is longer than the context length", ContextWindowExceededError),
]


@pytest.mark.parametrize(("message", "error"), FAULTS)
def test_row_70_error_line_is_raised_with_the_partial_response(message: str, error: type[LMError]) -> None:
    with pytest.raises(error, match=message) as caught:
        decoded_events(ollama, TARGET, [*TRANSCRIPT[:4], {"error": message}])
    assert caught.value.partial.choices[0].parts == (THOUGHT, TextPart("Hi"))


def test_row_69_body_or_array_gives_the_same_response_as_lines() -> None:
    whole: JsonObject = {**done(), "message": {"role": "assistant", "content": "Hi"}}
    assert streamed(ollama, TARGET, [whole]) == ollama.decode(whole, sent_to(ollama, TARGET), TARGET)
    assert streamed(ollama, TARGET, [[*TRANSCRIPT]]) == streamed(ollama, TARGET, TRANSCRIPT)


def test_text_instead_of_a_line_is_an_error_with_that_text() -> None:
    with pytest.raises(LMServerError, match="Bad gateway"):
        decoded_events(ollama, TARGET, ["<html><title>Bad gateway</title></html>"])


# --- properties

some = st.text(min_size=1, max_size=12)
objects = st.dictionaries(some, st.integers() | some | st.none(), max_size=3)
wire_calls = st.builds(calling, st.just("f"), objects, st.none() | some.map("call_x{}".format))
messages = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": st.text(max_size=12)},
    optional={
        "thinking": some, "tool_calls": st.lists(wire_calls, min_size=1, max_size=3),
        "images": st.just(["iVBO"]), "mood": some,
    },
)  # fmt: skip
bodies = st.fixed_dictionaries(
    {"model": some, "created_at": some, "message": messages, "done": st.just(True),
     "done_reason": st.sampled_from([*ollama.FINISH_REASONS, "later"])},
    optional={"prompt_eval_count": st.integers(0, 99), "eval_count": st.integers(0, 99),
              "logprobs": st.just([{"token": "a", "logprob": -1.0}])},
)  # fmt: skip


@st.composite
def in_lines(draw: st.DrawFn, body: dict[str, Any]) -> list[JsonObject]:
    """Draw the lines that the server would stream for a body, independent of the decoder."""
    message: dict[str, Any] = body["message"]
    told_first = {name: message[name] for name in ("images", "mood") if name in message}
    lines = [line(**told_first)] if told_first else []
    lines += [line(thinking=delta) for delta in draw(cuts(message.get("thinking", "")))]
    lines += [line(delta) for delta in draw(cuts(message["content"]))]
    calls = message.get("tool_calls", [])
    at = draw(st.integers(0, len(calls)))
    lines += [line(tool_calls=part) for part in (calls[:at], calls[at:]) if part]
    last: JsonObject = {**body, "message": {"role": "assistant", "content": ""}}
    return [*lines, last]


@given(st.data(), bodies)
def test_stream_gives_the_same_response_as_its_body(data: st.DataObject, body: dict[str, Any]) -> None:
    received = streamed(ollama, TARGET, data.draw(in_lines(body)))
    whole = ollama.decode(body, sent_to(ollama, TARGET), TARGET)
    assert received.choices[0].message() == whole.choices[0].message()
    assert (received.choices[0].finish_reason, received.choices[0].logprobs) == (
        whole.choices[0].finish_reason, whole.choices[0].logprobs,
    )  # fmt: skip
    assert (received.usage, received.model, received.warnings) == (whole.usage, whole.model, whole.warnings)
    assert without_empty_fields(received.raw) == without_empty_fields(body)
    assert received == ollama.decode(received.raw, sent_to(ollama, TARGET), TARGET)


def without_empty_fields(body: Any) -> dict[str, Any]:
    """Remove empty fields: either of a line and a body may omit these."""
    return {**body, "message": {name: value for name, value in body["message"].items() if value}}


WORDS = (
    "model", "message", "content", "thinking", "tool_calls", "function", "name", "arguments", "id", "images", "done",
    "done_reason", "stop", "length", "error", "logprobs", "token", "prompt_eval_count", "eval_count", "role",
)  # fmt: skip


@given(hostile(WORDS))
def test_any_events_give_a_response_or_an_lm_error(events: list[Any]) -> None:
    only_our_errors(ollama, TARGET, events)


@given(st.lists(st.sampled_from([*TRANSCRIPT, {"error": "no"}]), max_size=10))
def test_lines_in_any_order_give_a_response_or_an_lm_error(events: list[JsonObject]) -> None:
    only_our_errors(ollama, TARGET, events)


@given(damaged(TRANSCRIPT))
def test_damaged_stream_gives_a_response_or_an_lm_error(events: list[Any]) -> None:
    only_our_errors(ollama, TARGET, events)
