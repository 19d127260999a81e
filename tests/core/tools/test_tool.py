"""Tools: definition, direct calls, schemas, immutability and JSON."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from sigwire.core.tools.calls import WebSearch
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError, ToolDefinitionError


class Place(BaseModel):
    x: float


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


def test_tool_has_name_and_description_and_schema() -> None:
    tool = Tool(distance)
    assert tool.spec == {
        "type": "function",
        "function": {"name": "distance", "description": "How far it is.", "parameters": tool.parameters},
    }
    assert tool.parameters["required"] == ["start", "stops"]
    assert tool.spec is tool.spec
    assert Tool.from_function(distance) == tool


def test_direct_call_converts_its_arguments() -> None:
    assert Tool(distance)(start={"x": "4"}, stops=[{"x": 1, "y": 2}]) == "4 [2] km"


async def test_awaited_call_converts_its_arguments() -> None:
    assert await Tool(distance).acall(start={"x": "4"}, stops=[], unit="m") == "4 [] m"


async def test_async_handler_is_called_blocking_and_awaited() -> None:
    tool = Tool(later)
    assert tool.is_async
    assert await tool.acall(n="1") == 2
    assert tool(n=1) == 2  # inside a running loop, too


def test_blocking_handler_is_awaited_in_a_thread() -> None:
    here = threading.current_thread()
    tool = Tool(lambda: threading.current_thread() is here, name="where")
    assert asyncio.run(tool.acall()) is False
    assert tool() is True


def test_awaitable_returned_by_a_handler_is_awaited() -> None:
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
def test_direct_call_with_invalid_arguments_raises_with_their_names(call: Callable[[Tool], Any]) -> None:
    with pytest.raises(InputError, match="n: Input should be a valid integer"):
        call(Tool(later))


def test_tool_without_a_handler_can_be_offered_but_not_called() -> None:
    tool = Tool.from_schema("find", "Find it.", FIND)
    assert tool.bind({"from": "me"}).kwargs == {"from": "me"}
    with pytest.raises(ToolDefinitionError, match="'find' has no handler"):
        tool(**{"from": "me"})


def test_schema_is_sent_unchanged() -> None:
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
def test_schema_is_enforced_with_messages_for_the_model(arguments: dict[str, Any], message: str) -> None:
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
def test_tool_that_cannot_be_offered_raises_when_made(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        make()


def test_tool_is_immutable() -> None:
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
def test_used_tool_can_be_pickled(tool: Tool, arguments: dict[str, Any]) -> None:
    bound = tool.bind(arguments)
    arrived: Tool = pickle.loads(pickle.dumps(tool))
    assert (arrived, arrived.spec, arrived.bind(arguments)) == (tool, tool.spec, bound)
    with pytest.raises(AttributeError, match="is immutable"):
        arrived.name = "other"


def test_tools_compare_by_value() -> None:
    assert Tool(distance) == Tool(distance)
    assert len({Tool(distance), Tool(distance)}) == 1
    assert Tool(distance) != Tool(distance, name="other")
    assert Tool(distance) != Tool(distance, parallel=False)
    assert Tool(distance) != distance


def test_tool_is_decoded_without_its_handler() -> None:
    for tool in (
        Tool(distance, timeout=1.5, max_output=100, parallel=False),
        Tool.from_schema("find", "Find it.", FIND),
        Tool.web_search(WebSearch(("a.org",), max_uses=2)),
    ):
        again = Tool.from_json(json.loads(json.dumps(tool.to_json())), handler=tool.handler)
        assert again.to_json() == tool.to_json()
        assert again == tool


def test_tool_of_minimal_json_has_the_defaults() -> None:
    tool = Tool.from_json({"name": "ping"})
    assert (tool.parallel, tool.timeout, tool.handler, tool.description) == (True, None, None, "")
    assert tool.parameters == {"type": "object", "properties": {}}


def test_built_in_tool_is_offered_by_its_kind() -> None:
    tool = Tool.web_search(WebSearch(allowed_domains=("a.org",)))
    assert tool.spec == {"type": "web_search", "web_search": {"allowed_domains": ["a.org"]}}
    assert Tool.web_search().spec == {"type": "web_search", "web_search": {}}


def test_repr_of_a_tool_has_name_and_arguments() -> None:
    assert repr(Tool(distance)) == "Tool(distance(start: Point, stops: list[Point], unit: str = 'km'))"


def test_plain_tool_is_compiled_lazily_and_other_types_are_checked_at_once() -> None:
    def plain(a: int, b: list[str] | None = None) -> int:
        return a

    def locked(lock: threading.Thread) -> None: ...

    assert Tool(plain)._parameters is None
    with pytest.raises(ToolDefinitionError, match="its parameter 'lock' has the type Thread"):
        Tool(locked)


def test_tool_with_a_schema_is_described_by_the_function_inside_a_partial() -> None:
    tool = Tool(functools.partial(distance, unit="m"), name="far", parameters={"type": "object"})
    assert tool.description == "How far it is."
    assert Tool.web_search().description == "Search the web."
    assert Tool(name="far", parameters={"type": "object"}).description == ""


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}], ids=str)
def test_schema_without_properties_means_no_arguments(schema: Any) -> None:
    tool = Tool.from_schema("ping", "Say hello.", schema, handler=lambda: "pong")
    assert tool.parameters == {"type": "object", "properties": {}}
    assert tool() == "pong"
    assert tool == Tool.from_schema("ping", "Say hello.", handler=tool.handler)
