"""Partial JSON: every partial value is a prefix of the value, and the last one is the value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.streaming.lookahead import Lookahead
from sigwire.adapters.streaming.partial_json import PartialJsonParser, PartialString
from sigwire.adapters.values.json_text import read_json
from tests.adapters.streaming.emitting import cut_at, cuts
from tests.strategies import any_text, json_values

rooted = st.lists(json_values, max_size=4) | st.dictionaries(any_text, json_values, max_size=4)


def is_prefix(part: Any, whole: Any) -> bool:
    """Return True if a value is a prefix of another: equal except for missing ends."""
    if isinstance(part, dict) and isinstance(whole, dict):
        names = list(part)
        return names == list(whole)[: len(names)] and all(is_prefix(part[name], whole[name]) for name in names)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(is_prefix(*pair) for pair in zip(part, whole, strict=False))
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    return type(part) is type(whole) and part == whole


@given(rooted, cuts, st.booleans(), st.sampled_from([None, 1]))
def test_every_partial_value_is_a_prefix_of_the_value(
    value: Any, at: list[int], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    parser = PartialJsonParser()
    for chunk in cut_at(text, at):
        parser.read(chunk, 0)
        assert not parser.failed
        assert is_prefix(parser.partial_value(), value) or parser.changes == 0
    assert parser.done
    assert parser.partial_value() == value


@given(rooted, st.data())
def test_partial_value_is_not_mutated_by_later_text(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    half = data.draw(st.integers(1, len(text)))
    parser = PartialJsonParser()
    parser.read(text[:half], 0)
    before = parser.partial_value()
    shown = json.dumps(before)
    parser.read(text[half:], 0)
    assert json.dumps(before) == shown


@given(any_text, cuts)
def test_string_in_chunks_is_the_string(text: str, at: list[int]) -> None:
    for write_json in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        string = PartialString()
        streamed = "".join(string.read(chunk, 0)[0] for chunk in cut_at(write_json[1:], at))
        assert string.closed
        assert streamed == json.loads(write_json)


ODD = ["\\", "u", "d8", "3d", "de", "00", "n", "'", "x", "\n", "é", "\\ud83d"]


@given(st.lists(st.sampled_from(ODD), max_size=10).map("".join), cuts)
def test_odd_escapes_are_read_as_the_lenient_reader_does(text: str, at: list[int]) -> None:
    chunks = PartialString()
    streamed = "".join(chunks.read(chunk, 0)[0] for chunk in [*cut_at(text, at), '"'])
    if chunks.closed:
        assert streamed == read_json(f'"{text}"')[0]


@pytest.mark.parametrize(
    "text",
    ["{'a': 1}", "{a: 1}", '{"a" 1}', '{"a": 1,}', "[1,]", "[1 2]", "[1}", "[NaN]", "[01]", '{"a": None}', "[,1]", "]"],
)
def test_invalid_json_fails_for_good(text: str) -> None:
    parser = PartialJsonParser()
    parser.read(text, 0)
    parser.close()
    assert parser.failed


def test_depth_of_nesting_is_bounded() -> None:
    parser = PartialJsonParser()
    parser.read("[" * 100_000, 0)
    assert parser.failed


def test_closed_members_are_shared_between_partial_values() -> None:
    parser = PartialJsonParser()
    parser.read('[{"a": 1}, [', 0)
    before: Any = parser.partial_value()
    parser.read("2", 0)
    after: Any = parser.partial_value()
    assert before == [{"a": 1}, []]
    assert before[0] is after[0]


@pytest.mark.parametrize(("text", "value"), [("12 ", 12), ("-1.5e3\n", -1500.0), ("true", True), ("null ", None)])
def test_top_level_number_is_complete_at_the_end_of_the_text(text: str, value: Any) -> None:
    parser = PartialJsonParser()
    for character in text:
        parser.read(character, 0)
    parser.close()
    assert parser.done
    assert parser.partial_value() == value


def test_long_lookahead_is_examined_a_bounded_number_of_times() -> None:
    held, looks = Lookahead(), 0
    for _ in range(10_000):
        if (text := held.join(" ")) is not None:
            looks += len(text)
            held.hold(text)
    assert len(held.release()) == 10_000
    assert looks < 40 * 10_000
