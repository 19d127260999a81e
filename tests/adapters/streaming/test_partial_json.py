"""JSON as it grows: every state is the beginning of the value, and the last one is the value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.streaming.lookahead import Lookahead
from sigwire.adapters.streaming.partial_json import PartialJsonParser, PartialString
from sigwire.adapters.values.json_text import read_json
from tests.adapters.streaming.emitting import cuts, pieces_of
from tests.strategies import any_text, json_values

rooted = st.lists(json_values, max_size=4) | st.dictionaries(any_text, json_values, max_size=4)


def begins(part: Any, whole: Any) -> bool:
    """Whether a value is the beginning of another one: the same but for what has not come yet."""
    if isinstance(part, dict) and isinstance(whole, dict):
        names = list(part)
        return names == list(whole)[: len(names)] and all(begins(part[name], whole[name]) for name in names)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(begins(*pair) for pair in zip(part, whole, strict=False))
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    return type(part) is type(whole) and part == whole


@given(rooted, cuts, st.booleans(), st.sampled_from([None, 1]))
def test_every_state_is_the_beginning_of_the_value(
    value: Any, at: list[int], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    growth = PartialJsonParser()
    for piece in pieces_of(text, at):
        growth.read(piece, 0)
        assert not growth.failed
        assert begins(growth.partial_value(), value) or growth.changes == 0
    assert growth.done
    assert growth.partial_value() == value


@given(rooted, st.data())
def test_what_was_told_stays_as_it_was(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    half = data.draw(st.integers(1, len(text)))
    growth = PartialJsonParser()
    growth.read(text[:half], 0)
    before = growth.partial_value()
    shown = json.dumps(before)
    growth.read(text[half:], 0)
    assert json.dumps(before) == shown


@given(any_text, cuts)
def test_a_string_in_pieces_is_the_string(text: str, at: list[int]) -> None:
    for written in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        string = PartialString()
        told = "".join(string.read(piece, 0)[0] for piece in pieces_of(written[1:], at))
        assert string.closed
        assert told == json.loads(written)


ODD = ["\\", "u", "d8", "3d", "de", "00", "n", "'", "x", "\n", "é", "\\ud83d"]


@given(st.lists(st.sampled_from(ODD), max_size=10).map("".join), cuts)
def test_odd_escapes_are_the_same_in_pieces_and_as_the_lenient_reader_has_them(text: str, at: list[int]) -> None:
    pieces = PartialString()
    told = "".join(pieces.read(piece, 0)[0] for piece in [*pieces_of(text, at), '"'])
    if pieces.closed:
        assert told == read_json(f'"{text}"')[0]


@pytest.mark.parametrize(
    "text",
    ["{'a': 1}", "{a: 1}", '{"a" 1}', '{"a": 1,}', "[1,]", "[1 2]", "[1}", "[NaN]", "[01]", '{"a": None}', "[,1]", "]"],
)
def test_what_is_no_json_grows_no_more(text: str) -> None:
    growth = PartialJsonParser()
    growth.read(text, 0)
    growth.close()
    assert growth.failed


def test_depth_is_bounded() -> None:
    growth = PartialJsonParser()
    growth.read("[" * 100_000, 0)
    assert growth.failed


def test_what_is_closed_is_shared_and_not_copied() -> None:
    growth = PartialJsonParser()
    growth.read('[{"a": 1}, [', 0)
    before: Any = growth.partial_value()
    growth.read("2", 0)
    after: Any = growth.partial_value()
    assert before == [{"a": 1}, []]
    assert before[0] is after[0]


@pytest.mark.parametrize(("text", "value"), [("12 ", 12), ("-1.5e3\n", -1500.0), ("true", True), ("null ", None)])
def test_a_number_by_itself_is_whole_at_its_end(text: str, value: Any) -> None:
    growth = PartialJsonParser()
    for character in text:
        growth.read(character, 0)
    growth.close()
    assert growth.done
    assert growth.partial_value() == value


def test_a_long_held_text_is_looked_at_a_bounded_number_of_times() -> None:
    held, looks = Lookahead(), 0
    for _ in range(10_000):
        if (text := held.joined(" ")) is not None:
            looks += len(text)
            held.hold(text)
    assert len(held.release()) == 10_000
    assert looks < 40 * 10_000
