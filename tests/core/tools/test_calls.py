"""Calls and results: reading arguments, ids, sequences of calls, texts."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.tools.calls import CallError, CallIds, ToolCall, ToolCalls, ToolResult, number_calls
from tests.strategies import any_text, json_objects, json_values, tool_calls

# --- calls: reading arguments --------------------------------------------------------------------------

NO_ARGUMENTS = ["", "  \n", "null", "{}", " {} ", '""', '"null"', '"{}"', None, {}]


@pytest.mark.parametrize("given", NO_ARGUMENTS, ids=repr)
def test_null_and_empty_text_mean_no_arguments(given: Any) -> None:
    call = ToolCall.read("call_0", "f", given)
    assert (call.arguments, call.error) == ({}, None)


@given(json_objects)
def test_arguments_are_read_from_every_encoding(arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments)
    for wrapped in (arguments, text, json.dumps(text), f"\n {text} "):
        call = ToolCall.read("call_0", "f", wrapped)
        assert (call.arguments, call.error) == (arguments, None)


BAD = [
    ('{"path": "/srv/cache/old', "malformed_json"),
    ('{"path": "/srv/cache/old"', "malformed_json"),
    ("{'a': 1}", "malformed_json"),
    ('{"a": 1,}', "malformed_json"),
    ('{"a": 1} and more', "malformed_json"),
    ('{"a": 1}{"a": 2}', "malformed_json"),
    ('{"a": NaN}', "malformed_json"),
    ('{"a": -Infinity}', "malformed_json"),
    ('{"a": 1, "a": 2}', "malformed_json"),
    ('{"a": ' * 100_000, "malformed_json"),
    ("[" * 100_000, "malformed_json"),
    ('{"a": ' + "9" * 5_000 + "}", "malformed_json"),
    ('{"a": 1e999}', "malformed_json"),
    ({"a": {"b": [1, -inf]}}, "malformed_json"),
    ("[1]", "not_an_object"),
    ("5", "not_an_object"),
    ("true", "not_an_object"),
    ('"\\"\\\\\\"{}\\\\\\"\\""', "not_an_object"),
    ([("a", 1)], "not_an_object"),
    (5, "not_an_object"),
    ({1: 2}, "not_an_object"),
    ({"a"}, "not_an_object"),
]


@pytest.mark.parametrize(("given", "code"), BAD, ids=lambda case: repr(case)[:40])
def test_arguments_other_than_an_object_are_an_error_with_the_raw_text(given: Any, code: str) -> None:
    call = ToolCall.read("call_0", "rm", given)
    assert call.arguments is None
    assert call.error is not None
    assert call.error.code == code
    assert len(call.error.message) < 200
    if isinstance(given, str):
        assert call.raw_arguments == call.arguments_text == given
    else:
        assert call.raw_arguments


@given(any_text | json_values | st.binary(max_size=5) | st.builds(object))
def test_read_never_raises(given: Any) -> None:
    call = ToolCall.read("call_0", "f", given)
    assert (call.arguments is None) == (call.error is not None)
    if isinstance(given, str):
        assert call.raw_arguments == given
    ToolCall.from_json(call.to_json())


@given(st.text('{}[]":,\\ \n\tantrue0123.eE-\ud800é', max_size=30))
def test_read_never_raises_for_text_similar_to_json(text: str) -> None:
    call = ToolCall.read("call_0", "f", text)
    assert (call.arguments is None) == (call.error is not None)
    assert call.raw_arguments == text


def test_escaped_lone_surrogate_is_kept() -> None:
    call = ToolCall.read("call_0", "f", '{"a": "\\ud800"}')
    assert call.arguments == {"a": "\ud800"}
    assert json.loads(json.dumps(call.to_json()))["arguments"] == {"a": "\ud800"}


def test_read_copies_the_object() -> None:
    given = {"a": 1}
    call = ToolCall.read("call_0", "f", given)
    given["a"] = 2
    assert call.args == {"a": 1}


@given(json_objects)
def test_arguments_text_reads_as_equal_arguments(arguments: dict[str, Any]) -> None:
    call = ToolCall("call_0", "f", arguments)
    assert ToolCall.read("call_0", "f", call.arguments_text).arguments == arguments


# --- calls: ids ----------------------------------------------------------------------------------------

ids = st.sampled_from(["", "call_0", "call_1", "call_2", "x"])


@pytest.mark.parametrize(
    ("given_ids", "taken", "wanted"),
    [
        (["a", "b"], set[str](), ["a", "b"]),
        (["a", "b"], {"c"}, ["a", "b"]),
        (["a", "b"], {"b"}, ["a", "call_0"]),
        (["a", "a"], {"call_0"}, ["a", "call_1"]),
        (["", "a"], {"call_0"}, ["call_1", "a"]),
        (["", "call_0"], set[str](), ["call_0", "call_1"]),
        ([], {"a"}, []),
    ],
)
def test_number_calls_replaces_used_and_missing_ids_only(
    given_ids: list[str], taken: set[str], wanted: list[str]
) -> None:
    assert [call.id for call in number_calls([ToolCall(id, "f", {}) for id in given_ids], taken)] == wanted


@given(st.lists(ids, max_size=8), st.sets(ids))
def test_number_calls_makes_unique_ids(given_ids: list[str], taken: set[str]) -> None:
    calls = [ToolCall(id, "f", {"n": n}) for n, id in enumerate(given_ids)]
    numbered = number_calls(calls, taken)
    made = [call.id for call in numbered]
    assert len(set(made)) == len(made)
    assert not set(made) & (taken | {""})
    first_uses = [id and id not in taken and id not in made[:at] for at, id in enumerate(given_ids)]
    assert all(new == old for new, old, is_free in zip(made, given_ids, first_uses, strict=True) if is_free)


@given(st.lists(ids, max_size=8), st.sets(ids))
def test_calls_that_arrive_one_by_one_get_the_ids_of_the_whole_answer(given_ids: list[str], taken: set[str]) -> None:
    one_by_one = CallIds(taken)
    calls = [ToolCall(id, "f", {}) for id in given_ids]
    assert [one_by_one.unique(call.id) for call in calls] == [call.id for call in number_calls(calls, taken)]


@given(st.lists(tool_calls, max_size=4))
def test_number_calls_changes_only_missing_ids(calls: list[ToolCall]) -> None:
    numbered = number_calls(calls)
    assert [{**call.to_json(), "id": ""} for call in numbered] == [{**call.to_json(), "id": ""} for call in calls]
    assert number_calls(numbered) == numbered


# --- lists of calls ------------------------------------------------------------------------------------

SHAPES = [
    {"name": "add", "args": {"a": 1}},
    {"name": "add", "arguments": {"a": 1}},
    {"name": "add", "arguments": '{"a": 1}'},
    {"name": "add", "parameters": {"a": 1}},
    {"type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    {"type": "tool_call", "id": "", "name": "add", "arguments": {"a": 1}},
    ToolCall("", "add", {"a": 1}),
]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_calls_are_read_from_every_common_shape(shape: Any) -> None:
    (call,) = ToolCalls([shape])
    assert (call.id, call.name, call.arguments) == ("call_0", "add", {"a": 1})


def test_id_of_the_provider_is_kept() -> None:
    calls = ToolCalls([{"id": "abc", "function": {"name": "f", "arguments": ""}}, {"name": "g"}])
    assert [call.id for call in calls] == ["abc", "call_0"]


@pytest.mark.parametrize("shape", [{}, {"name": ""}, {"name": 5}, {"function": {}}, {"args": {}}])
def test_call_without_a_name_raises(shape: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs a name"):
        ToolCalls([shape])


def test_tool_calls_are_an_immutable_sequence() -> None:
    calls = ToolCalls([{"name": "a"}, {"name": "b"}], text="Two things.")
    assert [call.name for call in calls] == ["a", "b"]
    assert (len(calls), calls[-1].name, calls[:1], calls[0] in calls) == (2, "b", (calls[0],), True)
    assert (bool(calls), bool(ToolCalls()), calls.text) == (True, False, "Two things.")
    assert calls.tool_calls == list(calls)
    with pytest.raises(AttributeError):
        calls.text = "changed"  # type: ignore[misc]


def test_tool_calls_compare_by_calls_and_text() -> None:
    first, second = ToolCalls([{"name": "a"}]), ToolCalls([{"name": "a"}])
    assert first == second
    assert hash(first) == hash(second)
    assert first != ToolCalls([{"name": "a"}], text="and words")
    assert first != [first[0]]


RESULTS = [("plain", "plain"), ({"left": 3}, '{"left":3}'), (None, "null"), ([], "[]"), (4.0, "4.0"), ("é", "é")]


@pytest.mark.parametrize(("content", "text"), RESULTS)
def test_text_of_a_result_is_the_string_or_json(content: Any, text: str) -> None:
    assert ToolResult("call_0", "f", content).text == text


def test_call_error_has_a_code_and_a_message() -> None:
    error = CallError("unknown_tool", "Unknown tool 'f'.")
    assert CallError.from_json(error.to_json()) == error


def test_arguments_with_keys_other_than_strings_are_an_error() -> None:
    error = ToolCall.read("call_0", "f", {1: 2}).error
    assert error is not None
    assert error.message.endswith("not an object with keys that are not strings.")


@pytest.mark.parametrize("text", ['{"a": 1}{"a": 2}', '{"a": 1}\n{"a": {}} ', "{}" * 500])
def test_objects_in_a_row_are_named_for_the_model(text: str) -> None:
    error = ToolCall.read("c", "f", text).error
    assert error is not None
    assert "several JSON objects in a row" in error.message
    assert "Call the tool once for each" in error.message


@pytest.mark.parametrize("text", ['{"a": 1} and more', '{"a": 1}{"a": ', "{'a': 1}{'a': 2}", '{"a": 1}[2]'])
def test_other_arguments_that_are_no_json_keep_their_reason(text: str) -> None:
    error = ToolCall.read("c", "f", text).error
    assert error is not None
    assert error.message.startswith("The arguments are not valid JSON:")
