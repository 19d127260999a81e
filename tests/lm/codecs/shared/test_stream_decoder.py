"""The events of one choice: neighbouring texts, and calls in order, held back while they may be truncated."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.events import (
    PartEnd,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    collect,
)
from sigwire.core.parts import OpaquePart, TextPart
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents

F, G = ToolCall("a", "f", {}), ToolCall("b", "g", {})


def add_call(choice: ChoiceEvents, call: ToolCall) -> list[StreamEvent]:
    """Start and end a call, and return the events; the end is held back."""
    events = [*choice.start_call(call.id, call.name), *choice.emit_arguments("{}")]
    choice.end_call(call)
    return events


def test_call_ends_at_the_next_part_or_at_the_end() -> None:
    events = ChoiceEvents(0)
    assert add_call(events, F) == [ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}")]
    assert add_call(events, G) == [ToolCallEnd(0, F), ToolCallStart(1, "b", "g"), ToolCallDelta(1, "{}")]
    assert list(events.emit_text("t")) == [ToolCallEnd(1, G), TextDelta("t")]
    assert list(events.end(2)) == []


def test_call_missing_in_the_final_choice_does_not_end() -> None:
    events = ChoiceEvents(0)
    add_call(events, F)
    add_call(events, G)
    assert list(events.end(1)) == []


def test_calls_end_at_the_end_of_the_choice_if_calls_are_last() -> None:
    events = ChoiceEvents(0, calls_last=True)
    add_call(events, F)
    assert list(events.emit_text("t")) == [TextDelta("t")]
    assert list(events.end(1)) == [ToolCallEnd(0, F)]


def test_empty_deltas_emit_no_events() -> None:
    events = ChoiceEvents(0)
    assert [*events.emit_text(""), *events.emit_reasoning(""), *events.emit_arguments("")] == []


def _texts(choice: ChoiceEvents, texts: list[list[str]]) -> Iterator[StreamEvent]:
    for deltas in texts:
        for delta in deltas:
            yield from choice.emit_text(delta)
        choice.end_text()


@given(st.lists(st.lists(st.text(min_size=1), min_size=1, max_size=3), min_size=1, max_size=4))
def test_neighbouring_texts_stay_separate_parts_and_are_emitted_in_deltas(texts: list[list[str]]) -> None:
    events = list(_texts(ChoiceEvents(0), texts))
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        delta for text in texts for delta in text
    ]
    assert collect(events).choices[0].text == "".join(delta for text in texts for delta in text)
    assert collect([*events, PartEnd(OpaquePart("x", 1))]).choices[0].text == collect(events).choices[0].text


def test_text_behind_another_part_starts_a_part() -> None:
    events = ChoiceEvents(0)
    first = [*events.emit_text("a")]
    events.end_text()
    between = [*events.emit_reasoning("h"), *events.emit_part(OpaquePart("x", 1))]
    assert [*first, *between, *events.emit_text("b")] == [
        TextDelta("a"), ReasoningDelta("h"), PartEnd(OpaquePart("x", 1)), TextDelta("b"),
    ]  # fmt: skip


def test_first_of_two_texts_ends_before_the_second_starts() -> None:
    assert list(_texts(ChoiceEvents(0), [["a", "b"], ["c"]])) == [
        TextDelta("a"), TextDelta("b"), PartEnd(TextPart("ab")), TextDelta("c"),
    ]  # fmt: skip
