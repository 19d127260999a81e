"""Values equal their decoded JSON; the strict parsers are strict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import Value, dumps, loads, loads_once
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Usage
from sigwire.core.tools.calls import ToolCalls, ToolResult, WebSearch
from sigwire.core.tools.choice import ToolChoice
from tests.strategies import json_values, plain_values, tool_call_lists


def only_json(value: Any) -> bool:
    """Whether a value is what a JSON parser gives: no tuples, no other classes, texts as keys."""
    if isinstance(value, list):
        return all(only_json(item) for item in value)
    if isinstance(value, dict):
        return all(type(key) is str and only_json(item) for key, item in value.items())
    return type(value) in (type(None), bool, int, float, str)


@given(plain_values)
def test_value_equals_its_decoded_json_text(value: Value) -> None:
    data = value.to_json()
    assert only_json(data)
    assert type(value).from_json(json.loads(json.dumps(data))) == value


@given(tool_call_lists)
def test_tool_calls_equal_their_decoded_json_text(calls: ToolCalls) -> None:
    assert ToolCalls.from_json(json.loads(json.dumps(calls.to_json()))) == calls


@given(plain_values)
def test_decoded_value_encodes_to_the_same_json(value: Value) -> None:
    again = type(value).from_json(value.to_json())
    assert again.to_json() == value.to_json()
    assert repr(again) == repr(value)


TUPLES = [
    (ToolChoice.named("search"), {"mode": "required", "allowed": ["search"]}),
    (Request(tools=({"type": "a"},)), {"tools": [{"type": "a"}]}),
    (Choice(citations=({"url": "x"},)), {"citations": [{"url": "x"}]}),
    (WebSearch(allowed_domains=("a.org",)), {"type": "web_search", "allowed_domains": ["a.org"]}),
]


@pytest.mark.parametrize(("value", "data"), TUPLES, ids=lambda case: type(case).__name__)
def test_tuples_are_lists_in_json_and_tuples_after_decoding(value: Value, data: dict[str, Any]) -> None:
    assert value.to_json() == data
    assert type(value).from_json(data) == value


def test_users_json_that_looks_like_a_value_stays_json() -> None:
    content = {"type": "text", "text": "not ours"}
    result = ToolResult("call_0", "f", content)
    assert ToolResult.from_json(result.to_json()).content == content


@pytest.mark.parametrize("content", ["", False, 0, 0.0, None, [], {}])
def test_empty_contents_stay_distinct(content: Any) -> None:
    read = ToolResult.from_json(ToolResult("call_0", "f", content).to_json()).content
    assert read == content
    assert type(read) is type(content)


def test_defaults_are_omitted() -> None:
    assert Usage().to_json() == {}
    assert Message.user("Hi").to_json() == {"role": "user", "parts": [{"type": "text", "text": "Hi"}]}


UNREADABLE = [
    ({"type": "text", "text": "a", "colour": "red"}, "TextPart has no field 'colour'"),
    ({"type": "text"}, "TextPart needs a field 'text'"),
]


@pytest.mark.parametrize(("data", "message"), UNREADABLE)
def test_unknown_and_missing_fields_raise_with_their_name(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TextPart.from_json(data)


@pytest.mark.parametrize("part", ["text", {"type": "hologram"}, {"text": "no type"}, None])
def test_unknown_part_raises_with_the_known_types(part: Any) -> None:
    with pytest.raises(ValueError, match=r"type out of .*tool_call"):
        Message.from_json({"role": "user", "parts": [part]})


# --- reading and writing text ------------------------------------------------------------------------


@given(json_values)
def test_loads_reverses_dumps(value: Any) -> None:
    assert loads(dumps(value)) == value
    assert loads_once(dumps(value)) == value


def test_dumps_is_compact_and_keeps_characters() -> None:
    assert dumps({"a": [1, "é"]}) == '{"a":[1,"é"]}'


@pytest.mark.parametrize("read", [loads, loads_once])
@pytest.mark.parametrize(
    "text", ["", "{", "nul", "NaN", "[Infinity]", '{"a": -Infinity}', "1 2", "\ufeff{}", "[" * 100_000, "9" * 5_000]
)
def test_invalid_json_raises_value_error(read: Any, text: str) -> None:
    with pytest.raises(ValueError):
        read(text)


@pytest.mark.parametrize("read", [loads, loads_once])
def test_only_white_space_is_allowed_around_a_value(read: Any) -> None:
    assert read(' \t\r\n{"a": 1} \t\r\n') == {"a": 1}
    for beside in ("\u00a0", "\x0b", "\x1f", ",", "{}"):
        with pytest.raises(ValueError, match=r"Extra data.*char 2"):
            read("{}" + beside)
        with pytest.raises(ValueError):
            read(beside + "{}")


@pytest.mark.parametrize("read", [loads, loads_once])
def test_number_too_large_for_a_float_raises(read: Any) -> None:
    for text in ("1e999", '{"a": [-1e400]}', "9" * 400 + ".0"):
        with pytest.raises(ValueError, match="too large"):
            read(text)
    assert read("[1e308, 1e-999]") == [1e308, 0.0]


def test_loads_accepts_bytes() -> None:
    assert loads('{"a": "é"}'.encode()) == {"a": "é"}


@given(st.text(max_size=30))
def test_loads_and_loads_once_agree_without_duplicate_keys(text: str) -> None:
    def outcome(read: Any) -> Any:
        try:
            return read(text)
        except ValueError:
            return ValueError

    assert outcome(loads) == outcome(loads_once)


def test_loads_once_raises_on_duplicate_keys_with_different_values() -> None:
    with pytest.raises(ValueError, match="duplicate key 'b'"):
        loads_once('{"a": {"b": 1, "b": 2}}')
    assert loads_once('{"b": 1, "b": 1}') == {"b": 1}
