"""Events of a response: collecting them returns the response, and a call is visible only when complete."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core import events as ev
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from tests.strategies import events, responses

CALL = ToolCall("call_0", "add", {"a": 1})


@given(responses)
def test_collect_returns_the_response_of_its_events(response: Response) -> None:
    assert ev.collect(ev.events_of(response)) == response


@given(responses)
def test_events_of_a_response_equal_their_decoded_json(response: Response) -> None:
    sent = [json.loads(json.dumps(event.to_json())) for event in ev.events_of(response)]
    assert ev.collect(map(ev.event_from_json, sent)) == response


@given(events)
def test_event_equals_its_decoded_json(event: ev.StreamEvent) -> None:
    assert ev.event_from_json(json.loads(json.dumps(event.to_json()))) == event


@given(responses, st.data())
def test_collect_accepts_interleaved_choices(response: Response, data: st.DataObject) -> None:
    first, *rest = ev.events_of(response)
    by_choice = [[event for event in rest if getattr(event, "choice", None) == n] for n in range(len(response.choices))]
    mixed: list[Any] = []
    while any(by_choice):
        mixed.append(data.draw(st.sampled_from([queue for queue in by_choice if queue])).pop(0))
    ends = [event for event in rest if not hasattr(event, "choice")]
    assert ev.collect([first, *mixed, *ends]) == response


def test_collect_joins_text_split_anywhere() -> None:
    whole = "What is 6 × 7?"
    for cut in range(len(whole)):
        assert ev.collect([ev.TextDelta(whole[:cut]), ev.TextDelta(whole[cut:])]).choices[0].text == whole


def test_collect_ignores_a_call_without_its_end() -> None:
    started = [ev.ToolCallStart(0, "call_0", "add"), ev.ToolCallDelta(0, '{"a": 1}'), ev.ChoiceEnd("length")]
    assert ev.collect(started).choices[0].tool_calls == ()
    assert ev.collect([*started[:2], ev.ToolCallEnd(0, CALL), ev.ChoiceEnd("tool_calls")]).choices[0].tool_calls == (
        CALL,
    )


def test_thinking_part_replaces_its_deltas() -> None:
    thought = ThinkingPart("So 42.", signature="s1", provider="anthropic")
    pieces = [
        ev.ReasoningDelta("So "),
        ev.ReasoningDelta("42."),
        ev.PartEnd(thought),
        ev.TextDelta("42"),
        ev.ChoiceEnd(ordered=True),
    ]
    (choice,) = ev.collect(pieces).choices
    assert choice.parts == (thought, TextPart("42"))
    assert choice.reasoning == "So 42."


def test_neighbouring_texts_are_two_parts_with_deltas() -> None:
    response = Response((Choice.from_parts([TextPart("a b"), TextPart(""), TextPart("c")]),))
    events = list(ev.events_of(response, ev.by_word))
    assert [event.text for event in events if isinstance(event, ev.TextDelta)] == ["a ", "b", "c"]
    assert ev.collect(events) == response


def test_collect_keeps_the_order_of_parts_when_ordered() -> None:
    first, second = ThinkingPart("a", signature="1"), ThinkingPart("b", signature="2")
    other = ToolCall("call_1", "add", {})
    response = Response((Choice.from_parts([first, CALL, second, other]),))
    assert ev.collect(ev.events_of(response)).choices[0].parts == (first, CALL, second, other)


def test_collect_keeps_the_last_usage() -> None:
    seen = ev.collect([ev.UsageUpdate(Usage(1)), ev.TextDelta("a"), ev.UsageUpdate(Usage(1, 2)), ev.ResponseEnd()])
    assert seen.usage == Usage(1, 2)


def test_collect_reads_id_and_model_from_the_start() -> None:
    assert ev.collect([ev.ResponseStart("id_1", "a-model"), ev.ResponseEnd()]) == Response(model="a-model", id="id_1")


def test_collect_of_nothing_is_an_empty_response() -> None:
    assert ev.collect([]) == Response()


def test_unknown_event_type_raises_with_the_known_types() -> None:
    with pytest.raises(ValueError, match=r"unknown event type 'noise'.*text_delta"):
        ev.event_from_json({"type": "noise"})


def test_parts_of_the_choice_end_replace_earlier_parts() -> None:
    thought, text = ThinkingPart("hm", provider="p"), TextPart("ab")
    deltas: list[ev.StreamEvent] = [ev.TextDelta("a"), ev.ReasoningDelta("hm"), ev.TextDelta("b")]
    assert ev.collect([*deltas, ev.ChoiceEnd(ordered=True, parts=(thought, text))]) == Response(
        (Choice.from_parts((thought, text)),)
    )
    assert ev.collect([*deltas, ev.ChoiceEnd(parts=(text,))]) == Response((Choice("ab"),))
    end = ev.ChoiceEnd(ordered=True, parts=(thought, text))
    assert ev.event_from_json(json.loads(json.dumps(end.to_json()))) == end
    assert ev.collect([*deltas, ev.ChoiceEnd(ordered=True)]).choices[0].parts == (
        TextPart("a"),
        ThinkingPart("hm"),
        TextPart("b"),
    )
