"""One choice as it is told: texts side by side, calls held back until they cannot be cut off, numbered in their order."""

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
from sigwire.core.messages import OpaquePart, TextPart
from sigwire.core.tools.tool import ToolCall
from sigwire.lm.codecs.shared.stream_decoder import ChoiceEvents

F, G = ToolCall("a", "f", {}), ToolCall("b", "g", {})


def begin(told: ChoiceEvents, call: ToolCall) -> list[StreamEvent]:
    """A call begins and is there; its end is held back."""
    events = [*told.start_call(call.id, call.name), *told.emit_arguments("{}")]
    told.end_call(call)
    return events


def test_a_call_ends_when_something_follows_it_or_the_answer_ends() -> None:
    told = ChoiceEvents(0)
    assert begin(told, F) == [ToolCallStart(0, "a", "f"), ToolCallDelta(0, "{}")]
    assert begin(told, G) == [ToolCallEnd(0, F), ToolCallStart(1, "b", "g"), ToolCallDelta(1, "{}")]
    assert list(told.emit_text("t")) == [ToolCallEnd(1, G), TextDelta("t")]
    assert list(told.end(2)) == []


def test_a_call_that_the_answer_does_not_have_in_the_end_never_ends() -> None:
    told = ChoiceEvents(0)
    begin(told, F)
    begin(told, G)
    assert list(told.end(1)) == []


def test_where_calls_come_last_none_ends_before_the_answer() -> None:
    told = ChoiceEvents(0, calls_last=True)
    begin(told, F)
    assert list(told.emit_text("t")) == [TextDelta("t")]
    assert list(told.end(1)) == [ToolCallEnd(0, F)]


def test_nothing_said_is_nothing_told() -> None:
    told = ChoiceEvents(0)
    assert [*told.emit_text(""), *told.emit_reasoning(""), *told.emit_arguments("")] == []


def _texts(told: ChoiceEvents, texts: list[list[str]]) -> Iterator[StreamEvent]:
    for pieces in texts:
        for piece in pieces:
            yield from told.emit_text(piece)
        told.end_text()


@given(st.lists(st.lists(st.text(min_size=1), min_size=1, max_size=3), min_size=1, max_size=4))
def test_texts_side_by_side_stay_apart_and_all_of_them_is_told_in_deltas(texts: list[list[str]]) -> None:
    events = list(_texts(ChoiceEvents(0), texts))
    assert [event.text for event in events if isinstance(event, TextDelta)] == [
        piece for text in texts for piece in text
    ]
    assert collect(events).choices[0].text == "".join(piece for text in texts for piece in text)
    assert collect([*events, PartEnd(OpaquePart("x", 1))]).choices[0].text == collect(events).choices[0].text


def test_a_text_behind_another_part_replaces_nothing() -> None:
    told = ChoiceEvents(0)
    first = [*told.emit_text("a")]
    told.end_text()
    between = [*told.emit_reasoning("h"), *told.emit_part(OpaquePart("x", 1))]
    assert [*first, *between, *told.emit_text("b")] == [
        TextDelta("a"), ReasoningDelta("h"), PartEnd(OpaquePart("x", 1)), TextDelta("b"),
    ]  # fmt: skip


def test_the_first_of_two_texts_is_whole_before_the_second_grows() -> None:
    assert list(_texts(ChoiceEvents(0), [["a", "b"], ["c"]])) == [
        TextDelta("a"), TextDelta("b"), PartEnd(TextPart("ab")), TextDelta("c"),
    ]  # fmt: skip
