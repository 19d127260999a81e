"""Events of an answer: taken apart and put together it is the same answer, and a call is seen only when complete."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.events import (
    ChoiceEnd,
    PartEnd,
    ReasoningDelta,
    ResponseEnd,
    ResponseStart,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
    collect,
    event_from_json,
    explode,
    words,
)
from sigwire.core.messages import TextPart, ThinkingPart
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools import ToolCall
from tests.strategies import events, responses

CALL = ToolCall("call_0", "add", {"a": 1})


@given(responses)
def test_collecting_the_events_of_an_answer_gives_the_answer(response: Response) -> None:
    assert collect(explode(response)) == response


@given(responses)
def test_the_events_of_an_answer_survive_json(response: Response) -> None:
    sent = [json.loads(json.dumps(event.to_json())) for event in explode(response)]
    assert collect(map(event_from_json, sent)) == response


@given(events)
def test_any_event_comes_back_equal_from_json(event: StreamEvent) -> None:
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event


@given(responses, st.data())
def test_choices_may_come_interleaved(response: Response, data: st.DataObject) -> None:
    first, *rest = explode(response)
    by_choice = [[event for event in rest if getattr(event, "choice", None) == n] for n in range(len(response.choices))]
    mixed: list[Any] = []
    while any(by_choice):
        mixed.append(data.draw(st.sampled_from([queue for queue in by_choice if queue])).pop(0))
    ends = [event for event in rest if not hasattr(event, "choice")]
    assert collect([first, *mixed, *ends]) == response


def test_text_cut_anywhere_is_the_same_text() -> None:
    whole = "What is 6 × 7?"
    for cut in range(len(whole)):
        assert collect([TextDelta(whole[:cut]), TextDelta(whole[cut:])]).choices[0].text == whole


def test_a_call_that_never_ends_is_not_a_call() -> None:
    started = [ToolCallStart(0, "call_0", "add"), ToolCallDelta(0, '{"a": 1}'), ChoiceEnd("length")]
    assert collect(started).choices[0].tool_calls == ()
    assert collect([*started[:2], ToolCallEnd(0, CALL), ChoiceEnd("tool_calls")]).choices[0].tool_calls == (CALL,)


def test_a_finished_thought_replaces_its_deltas_and_brings_its_signature() -> None:
    thought = ThinkingPart("So 42.", signature="s1", provider="anthropic")
    pieces = [ReasoningDelta("So "), ReasoningDelta("42."), PartEnd(thought), TextDelta("42"), ChoiceEnd(ordered=True)]
    (choice,) = collect(pieces).choices
    assert choice.parts == (thought, TextPart("42"))
    assert choice.reasoning == "So 42."


def test_neighbouring_texts_are_both_told_in_deltas_and_stay_two_parts() -> None:
    response = Response((Choice.from_parts([TextPart("a b"), TextPart(""), TextPart("c")]),))
    events = list(explode(response, words))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a ", "b", "c"]
    assert collect(events) == response


def test_the_order_of_parts_is_kept_where_it_counts() -> None:
    first, second = ThinkingPart("a", signature="1"), ThinkingPart("b", signature="2")
    other = ToolCall("call_1", "add", {})
    response = Response((Choice.from_parts([first, CALL, second, other]),))
    assert collect(explode(response)).choices[0].parts == (first, CALL, second, other)


def test_the_last_usage_counts() -> None:
    seen = collect([UsageUpdate(Usage(1)), TextDelta("a"), UsageUpdate(Usage(1, 2)), ResponseEnd()])
    assert seen.usage == Usage(1, 2)


def test_start_names_the_answer() -> None:
    assert collect([ResponseStart("id_1", "a-model"), ResponseEnd()]) == Response(model="a-model", id="id_1")


def test_nothing_collected_is_an_empty_response() -> None:
    assert collect([]) == Response()


def test_an_unknown_event_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no event of type 'noise'.*text_delta"):
        event_from_json({"type": "noise"})


def test_parts_at_the_end_are_the_choices_whatever_was_told_before() -> None:
    thought, text = ThinkingPart("hm", provider="p"), TextPart("ab")
    told: list[StreamEvent] = [TextDelta("a"), ReasoningDelta("hm"), TextDelta("b")]
    assert collect([*told, ChoiceEnd(ordered=True, parts=(thought, text))]) == Response(
        (Choice.from_parts((thought, text)),)
    )
    assert collect([*told, ChoiceEnd(parts=(text,))]) == Response((Choice("ab"),))
    end = ChoiceEnd(ordered=True, parts=(thought, text))
    assert event_from_json(json.loads(json.dumps(end.to_json()))) == end
    assert collect([*told, ChoiceEnd(ordered=True)]).choices[0].parts == (
        TextPart("a"),
        ThinkingPart("hm"),
        TextPart("b"),
    )
