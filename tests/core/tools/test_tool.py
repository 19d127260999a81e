"""Tools, calls and results: what is offered, what a model asks for, what comes back."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import pickle
import threading
from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sigwire.core.tools.calls import CallError, ToolCall, ToolCalls, ToolResult, WebSearch, number_calls
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError, ToolDefinitionError
from tests.strategies import any_text, json_objects, json_values, tool_calls


class Place(BaseModel):
    x: float


# --- calls: reading arguments --------------------------------------------------------------------------

NO_ARGUMENTS = ["", "  \n", "null", "{}", " {} ", '""', '"null"', '"{}"', None, {}]


@pytest.mark.parametrize("given", NO_ARGUMENTS, ids=repr)
def test_nothing_null_and_empty_mean_no_arguments(given: Any) -> None:
    call = ToolCall.read("call_0", "f", given)
    assert (call.arguments, call.error) == ({}, None)


@given(json_objects)
def test_an_object_is_read_from_every_wrapping(arguments: dict[str, Any]) -> None:
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
def test_what_is_no_object_is_a_tagged_error_and_the_raw_text_stays(given: Any, code: str) -> None:
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
def test_reading_never_raises_and_gives_arguments_or_an_error(given: Any) -> None:
    call = ToolCall.read("call_0", "f", given)
    assert (call.arguments is None) == (call.error is not None)
    if isinstance(given, str):
        assert call.raw_arguments == given
    ToolCall.from_json(call.to_json())


@given(st.text('{}[]":,\\ \n\tantrue0123.eE-\ud800é', max_size=30))
def test_text_that_looks_like_json_never_raises_either(text: str) -> None:
    call = ToolCall.read("call_0", "f", text)
    assert (call.arguments is None) == (call.error is not None)
    assert call.raw_arguments == text


def test_an_escaped_lone_surrogate_is_read_and_kept() -> None:
    call = ToolCall.read("call_0", "f", '{"a": "\\ud800"}')
    assert call.arguments == {"a": "\ud800"}
    assert json.loads(json.dumps(call.to_json()))["arguments"] == {"a": "\ud800"}


def test_reading_copies_the_object_it_was_given() -> None:
    given = {"a": 1}
    call = ToolCall.read("call_0", "f", given)
    given["a"] = 2
    assert call.args == {"a": 1}


@given(json_objects)
def test_the_text_to_send_back_reads_as_the_same_arguments(arguments: dict[str, Any]) -> None:
    call = ToolCall("call_0", "f", arguments)
    assert ToolCall.read("call_0", "f", call.arguments_text).arguments == arguments


# --- calls: ids ----------------------------------------------------------------------------------------

ids = st.sampled_from(["", "call_0", "call_1", "call_2", "x"])


@given(st.lists(ids, max_size=8), st.sets(ids))
def test_numbered_calls_have_ids_and_the_new_ones_are_unique(given_ids: list[str], taken: set[str]) -> None:
    calls = [ToolCall(id, "f", {"n": n}) for n, id in enumerate(given_ids)]
    numbered = number_calls(calls, taken)
    made = [new.id for old, new in zip(calls, numbered, strict=True) if not old.id]
    assert len(set(made)) == len(made)
    assert not set(made) & (taken | set(given_ids) | {""})
    assert [new.id for old, new in zip(calls, numbered, strict=True) if old.id] == [id for id in given_ids if id]


@given(st.lists(tool_calls, max_size=4))
def test_numbering_changes_nothing_but_missing_ids(calls: list[ToolCall]) -> None:
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


def test_a_providers_id_is_kept() -> None:
    calls = ToolCalls([{"id": "abc", "function": {"name": "f", "arguments": ""}}, {"name": "g"}])
    assert [call.id for call in calls] == ["abc", "call_0"]


@pytest.mark.parametrize("shape", [{}, {"name": ""}, {"name": 5}, {"function": {}}, {"args": {}}])
def test_a_call_without_a_name_is_refused(shape: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs a name"):
        ToolCalls([shape])


def test_calls_are_a_sequence_that_does_not_change() -> None:
    calls = ToolCalls([{"name": "a"}, {"name": "b"}], text="Two things.")
    assert [call.name for call in calls] == ["a", "b"]
    assert (len(calls), calls[-1].name, calls[:1], calls[0] in calls) == (2, "b", (calls[0],), True)
    assert (bool(calls), bool(ToolCalls()), calls.text) == (True, False, "Two things.")
    assert calls.tool_calls == list(calls)
    with pytest.raises(AttributeError):
        calls.text = "changed"  # type: ignore[misc]


def test_equal_calls_are_equal_and_their_text_counts() -> None:
    first, second = ToolCalls([{"name": "a"}]), ToolCalls([{"name": "a"}])
    assert first == second
    assert hash(first) == hash(second)
    assert first != ToolCalls([{"name": "a"}], text="and words")
    assert first != [first[0]]


RESULTS = [("plain", "plain"), ({"left": 3}, '{"left":3}'), (None, "null"), ([], "[]"), (4.0, "4.0"), ("é", "é")]


@pytest.mark.parametrize(("content", "text"), RESULTS)
def test_a_results_text_is_the_string_itself_or_json(content: Any, text: str) -> None:
    assert ToolResult("call_0", "f", content).text == text


# --- tools ---------------------------------------------------------------------------------------------


class Point(BaseModel):
    x: int
    y: int = 0


def distance(start: Point, stops: list[Point], unit: str = "km") -> str:
    """How far it is.

    Args:
        start: Where to begin.
        unit: Of the result.
    """
    return f"{start.x} {[stop.y for stop in stops]} {unit}"


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


FIND = {
    "type": "object",
    "properties": {"from": {"type": "string"}, "Content-Type": {"type": "string"}, "self": {"type": "integer"}},
    "required": ["from"],
    "additionalProperties": False,
}


def test_a_tool_says_what_it_is() -> None:
    tool = Tool(distance)
    assert tool.spec == {
        "type": "function",
        "function": {"name": "distance", "description": "How far it is.", "parameters": tool.parameters},
    }
    assert tool.parameters["required"] == ["start", "stops"]
    assert tool.spec is tool.spec
    assert Tool.from_function(distance) == tool


def test_a_direct_call_converts_its_arguments() -> None:
    assert Tool(distance)(start={"x": "4"}, stops=[{"x": 1, "y": 2}]) == "4 [2] km"


async def test_an_awaited_call_does_the_same() -> None:
    assert await Tool(distance).acall(start={"x": "4"}, stops=[], unit="m") == "4 [] m"


async def test_an_async_handler_works_both_ways() -> None:
    tool = Tool(later)
    assert tool.is_async
    assert await tool.acall(n="1") == 2
    assert tool(n=1) == 2  # inside a running loop, too


def test_a_blocking_handler_is_awaited_off_the_loop() -> None:
    here = threading.current_thread()
    tool = Tool(lambda: threading.current_thread() is here, name="where")
    assert asyncio.run(tool.acall()) is False
    assert tool() is True


def test_a_handler_that_gives_an_awaitable_is_waited_for() -> None:
    tool = Tool(lambda n: later(n), name="later")
    assert not tool.is_async
    assert tool(n=1) == 2
    assert asyncio.run(tool.acall(n=1)) == 2


@pytest.mark.parametrize("call", [lambda tool, kw: tool(**kw), lambda tool, kw: asyncio.run(tool.acall(**kw))])
def test_arguments_may_have_any_name(call: Callable[[Tool, dict[str, Any]], Any]) -> None:
    tool = Tool.from_schema("find", "", FIND, handler=lambda **given: given)
    arguments = {"from": "a", "Content-Type": "text/plain", "self": 3}
    assert call(tool, arguments) == arguments


@pytest.mark.parametrize("call", [lambda tool: tool(n="x"), lambda tool: asyncio.run(tool.acall(n="x"))])
def test_a_direct_call_with_bad_arguments_says_which(call: Callable[[Tool], Any]) -> None:
    with pytest.raises(InputError, match="n: Input should be a valid integer"):
        call(Tool(later))


def test_a_tool_without_a_handler_can_be_offered_and_not_called() -> None:
    tool = Tool.from_schema("find", "Find it.", FIND)
    assert tool.bind({"from": "me"}).kwargs == {"from": "me"}
    with pytest.raises(ToolDefinitionError, match="'find' has no handler"):
        tool(**{"from": "me"})


def test_a_schema_is_sent_as_it_is() -> None:
    before = copy.deepcopy(FIND)
    tool = Tool.from_schema("find", "Find it.", FIND)
    assert tool.spec["function"] == {"name": "find", "description": "Find it.", "parameters": before}
    assert before == FIND


SCHEMA_FAULTS = [
    ({}, "from: this argument is required"),
    ({"from": 1}, "from: must be a string, not 1"),
    ({"from": "a", "to": "b"}, "to: there is no such argument; the names are: from, Content-Type, self"),
    ({"from": "a", "self": "x" * 500}, "self: must be an integer, not 'xxx"),
]


@pytest.mark.parametrize(("arguments", "message"), SCHEMA_FAULTS)
def test_a_schema_is_enforced_in_words_a_model_can_act_on(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Tool.from_schema("find", "", FIND).bind(arguments)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 200


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Tool(), "no function and no parameters"),
    (lambda: Tool(5), "from a function, not from int"),  # type: ignore[arg-type]
    (lambda: Tool(lambda a: a), "A lambda has no name"),
    (lambda: Tool(distance, name=""), "needs a name"),
    (lambda: Tool(distance, name="  "), "needs a name"),
    (lambda: Tool.from_schema("f", "", {"type": "array"}), "must describe an object"),
    (lambda: Tool.from_schema("f", "", {"properties": 5}), "not a valid JSON Schema"),
    (lambda: Tool.from_schema("f", "", {"type": "objekt"}), "not a valid JSON Schema"),
    (lambda: Tool.from_schema("f", "", [1]), "must be a JSON Schema, not list"),  # type: ignore[arg-type]
    (lambda: Tool.from_schema("f", "", {"default": {1, 2}}), "are not JSON"),
    (lambda: Tool.from_schema("f", "", FIND, handler=5), "must be callable, not int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_a_tool_that_cannot_be_offered_is_refused_where_it_is_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        make()


def test_a_tool_does_not_change() -> None:
    tool = Tool(distance)
    with pytest.raises(AttributeError, match="is immutable"):
        tool.name = "other"
    with pytest.raises(AttributeError, match="is immutable"):
        del tool.name
    assert copy.copy(tool) is tool
    assert copy.deepcopy([tool])[0] is tool


def _nearest(places: list[Place], home: Place, limit: float = 1.5) -> int:
    return len([place for place in places if abs(place.x - home.x) < limit])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (Tool(_nearest, timeout=3), {"places": [{"x": "1"}], "home": {"x": 2}}),
        (Tool.from_schema("size", "Size.", {"type": "object", "properties": {"obj": {"type": "array"}}}), {"obj": [1]}),
        (Tool.web_search(), {}),
    ],
    ids=lambda tool: getattr(tool, "name", ""),
)
def test_a_used_tool_may_go_to_another_process(tool: Tool, arguments: dict[str, Any]) -> None:
    bound = tool.bind(arguments)
    arrived: Tool = pickle.loads(pickle.dumps(tool))
    assert (arrived, arrived.spec, arrived.bind(arguments)) == (tool, tool.spec, bound)
    with pytest.raises(AttributeError, match="is immutable"):
        arrived.name = "other"


def test_equal_tools_are_equal() -> None:
    assert Tool(distance) == Tool(distance)
    assert len({Tool(distance), Tool(distance)}) == 1
    assert Tool(distance) != Tool(distance, name="other")
    assert Tool(distance) != Tool(distance, parallel=False)
    assert Tool(distance) != distance


def test_tools_come_back_from_json_without_their_handlers() -> None:
    for tool in (
        Tool(distance, timeout=1.5, max_output=100, parallel=False),
        Tool.from_schema("find", "Find it.", FIND),
        Tool.web_search(WebSearch(("a.org",), max_uses=2)),
    ):
        again = Tool.from_json(json.loads(json.dumps(tool.to_json())), handler=tool.handler)
        assert again.to_json() == tool.to_json()
        assert again == tool


def test_a_tool_from_little_json_has_the_defaults() -> None:
    tool = Tool.from_json({"name": "ping"})
    assert (tool.parallel, tool.timeout, tool.handler, tool.description) == (True, None, None, "")
    assert tool.parameters == {"type": "object", "properties": {}}


def test_a_built_in_tool_is_offered_by_its_kind() -> None:
    tool = Tool.web_search(WebSearch(allowed_domains=("a.org",)))
    assert tool.spec == {"type": "web_search", "web_search": {"allowed_domains": ["a.org"]}}
    assert Tool.web_search().spec == {"type": "web_search", "web_search": {}}


def test_a_tool_is_shown_by_name_and_arguments() -> None:
    assert repr(Tool(distance)) == "Tool(distance(start, stops, unit))"


def test_making_a_plain_tool_compiles_nothing_and_a_doubtful_one_is_checked_at_once() -> None:
    def plain(a: int, b: list[str] | None = None) -> int:
        return a

    def locked(lock: threading.Thread) -> None: ...

    assert Tool(plain)._parameters is None
    with pytest.raises(ToolDefinitionError, match="its parameter 'lock' has the type Thread"):
        Tool(locked)


def test_errors_of_calls_have_a_code_and_words() -> None:
    error = CallError("unknown_tool", "There is no tool 'f'.")
    assert CallError.from_json(error.to_json()) == error


def test_a_tool_with_a_schema_is_described_by_its_handler_and_not_by_the_partial_around_it() -> None:
    tool = Tool(functools.partial(distance, unit="m"), name="far", parameters={"type": "object"})
    assert tool.description == "How far it is."
    assert Tool.web_search().description == "Search the web."
    assert Tool(name="far", parameters={"type": "object"}).description == ""


def test_arguments_that_are_an_object_of_other_names_are_told_so() -> None:
    error = ToolCall.read("call_0", "f", {1: 2}).error
    assert error is not None
    assert error.message.endswith("not an object with keys that are not strings.")
