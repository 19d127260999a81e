"""Tools and calls under DSPy's names."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from typing import Any

import pydantic
import pytest

import sigwire.dspy as dspy
from sigwire.core import tools as core
from sigwire.dspy.tools import Tool, ToolCallResults, ToolCalls
from sigwire.errors import ConfigurationError
from sigwire.signatures.roles import role_of


def distance(start: str, unit: str = "km") -> str:
    """Measure a distance.

    Args:
        start: Where it begins.
    """
    return f"{start} {unit}"


def test_attributes_have_the_names_of_dspy() -> None:
    def search(query, **rest):  # type: ignore[no-untyped-def]
        return query, rest

    tool = Tool(search, desc="Search.", arg_types={"query": str}, arg_desc={"query": "What for."})
    assert (tool.desc, tool.func, tool.has_kwargs) == ("Search.", search, True)
    assert tool.args == {"query": {"type": "string", "description": "What for."}}
    assert tool.arg_desc == {"query": "What for."}
    assert tool.format_as_litellm_function_call() is tool.spec
    assert tool(query="a", more=1) == ("a", {"more": 1})
    assert not Tool(distance).has_kwargs


def test_schemas_by_argument_make_a_tool() -> None:
    tool = Tool(lambda **k: k, name="f", args={"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}})
    assert tool.parameters["required"] == ["a"]
    assert tool(a=1) == {"a": 1}


def test_given_types_and_descriptions_replace_those_of_the_function() -> None:
    tool = Tool(
        distance, name="far", description="Far?", arg_types={"unit": int}, arg_desc={"start": "From."}, timeout=2.5
    )
    assert (tool.name, tool.description, tool.timeout) == ("far", "Far?", 2.5)
    assert tool.args["unit"]["type"] == "integer"
    assert tool.args["start"]["description"] == "From."
    assert tool.arg_types["unit"] is int


def test_positional_arguments_have_the_order_of_dspy() -> None:
    tool = Tool(distance, "far", "Far?", None, {"unit": int}, {"start": "From."})
    assert (tool.name, tool.desc, tool.arg_types["unit"], tool.arg_desc["start"]) == ("far", "Far?", int, "From.")


def test_other_constructors_give_tools_of_the_door() -> None:
    class Session:
        async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
            return {"content": [{"type": "text", "text": name}]}

    mcp = Tool.from_mcp_tool(Session(), {"name": "half", "inputSchema": {"type": "object"}})
    made = [
        mcp,
        Tool.from_function(distance),
        Tool.from_schema("ping"),
        Tool.web_search(),
        Tool.of(core.Tool(distance)),
    ]
    assert all(isinstance(tool, Tool) for tool in made)
    assert asyncio.run(mcp.acall()) == "half"
    assert Tool.from_json(Tool.from_schema("ping", "Hi.").to_json()) == Tool.from_schema("ping", "Hi.")
    assert Tool.of(mcp) is mcp


def test_a_tool_equals_the_same_tool_of_the_core_and_survives_copies() -> None:
    tool = Tool(distance)
    assert tool == core.Tool(distance)
    assert copy.deepcopy(tool) is tool
    assert type(pickle.loads(pickle.dumps(tool))) is Tool


@pytest.mark.parametrize(("annotation", "role"), [(list[Tool], "tools"), (dict[str, Tool], "tools"), (Tool, "tools")])
def test_fields_of_the_door_class_have_the_role_of_the_core_class(annotation: Any, role: str) -> None:
    assert role_of(annotation, "tools", "input") == role
    assert role_of(ToolCalls, "calls", "output") == "tool_calls"


def test_calls_are_read_and_formatted_as_in_dspy() -> None:
    calls = ToolCalls.from_dict_list([{"id": "abc", "function": {"name": "f", "arguments": ""}}, {"name": "g"}])
    assert [call.id for call in calls] == ["abc", "call_0"]
    calls = ToolCalls(
        tool_calls=[ToolCalls.ToolCall(name="add", args={"a": 1}), ToolCalls.ToolCall("add", '{"a": 2}', "x")]
    )
    assert [(call.id, call.arguments) for call in calls] == [("call_0", {"a": 1}), ("x", {"a": 2})]
    assert calls.format() == {"tool_calls": [{"name": "add", "args": {"a": 1}}, {"name": "add", "args": {"a": 2}}]}
    assert calls == core.ToolCalls(calls)
    assert list(calls) == [core.ToolCall("call_0", "add", {"a": 1}), core.ToolCall.read("x", "add", '{"a": 2}')]


def test_a_call_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        ToolCalls.ToolCall(name="")


def test_results_of_calls_are_kept_with_the_calls() -> None:
    calls = ToolCalls.from_dict_list([{"id": "a", "name": "f", "args": {}}])
    results = ToolCallResults.from_tool_calls_and_values(calls, [1])
    both = calls.model_copy(update={"tool_call_results": results})
    assert both.tool_call_results is results
    assert ToolCalls(tool_calls=calls, tool_call_results=results) == both
    assert both.model_dump() == both.format() == {"tool_calls": [{"name": "f", "args": {}}]}
    item = {"call_id": "a", "name": "f", "value": 1, "is_error": False}
    assert results.model_dump() == {"tool_call_results": [item]}
    assert calls.tool_call_results is None


def test_calls_are_a_type_of_pydantic_without_ids() -> None:
    class Turn(pydantic.BaseModel):
        calls: ToolCalls

    turn = Turn.model_validate({"calls": [{"id": "a", "name": "f", "args": {"x": 1}}]})
    assert turn.model_dump(mode="json") == {"calls": {"tool_calls": [{"name": "f", "args": {"x": 1}}]}}
    assert '"id"' not in json.dumps(Turn.model_json_schema())
    assert "args" in ToolCalls.description()


@pytest.mark.parametrize(
    ("text", "arguments"), [('{"a": 1,}', {"a": 1}), ("{'a': 1}", {"a": 1}), ("[1]", None), ("{a b", None)]
)
def test_arguments_that_are_nearly_json_are_repaired(text: str, arguments: Any) -> None:
    assert ToolCalls.from_dict_list([{"name": "f", "arguments": text}])[0].args == arguments


def test_calls_are_equal_by_id_name_and_arguments() -> None:
    read = ToolCalls.ToolCall.of(core.ToolCall.read("a", "f", '{"x": 1}'))
    assert read == ToolCalls.ToolCall(id="a", name="f", args={"x": 1})
    assert read != ToolCalls.ToolCall(id="b", name="f", args={"x": 1})
    assert ToolCalls.ToolCall("f", "{a") != ToolCalls.ToolCall("f", "{b")


def test_async_tool_is_not_called_blocking_if_a_setting_forbids_this() -> None:
    async def wait(seconds: int) -> int:
        return seconds

    tool = Tool(wait)
    assert tool(seconds=3) == 3
    with dspy.context(allow_tool_async_sync_conversion=False):
        with pytest.raises(ConfigurationError, match=r"'wait' is async.*tool\.acall"):
            tool(seconds=3)
        assert asyncio.run(tool.acall(seconds=3)) == 3
        assert Tool(distance)(start="here") == "here km"


@pytest.mark.parametrize(("options", "result"), [({}, "21 C"), ({"result_mode": "structured"}, {"celsius": 21})])
def test_result_of_an_mcp_tool_is_its_text_unless_asked_otherwise(options: Any, result: object) -> None:
    class Session:
        async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
            return {"content": [{"type": "text", "text": "21 C"}], "structuredContent": {"celsius": 21}}

    tool = Tool.from_mcp_tool(Session(), {"name": "weather", "inputSchema": {"type": "object"}}, **options)
    assert tool() == result


def test_tool_of_a_schema_has_types_and_descriptions_and_its_failure_is_a_runtime_error() -> None:
    class Session:
        async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
            return {"content": [{"type": "text", "text": "too far"}], "isError": True}

    schema = {
        "type": "object",
        "properties": {"km": {"$ref": "#/$defs/Km"}, "by": {"description": "Bike?"}},
        "$defs": {"Km": {"type": "number"}},
    }
    tool = Tool.from_mcp_tool(Session(), {"name": "ride", "inputSchema": {**schema, "required": ["km"]}})
    assert (tool.args["km"], tool.arg_types) == ({"type": "number"}, {"km": float, "by": Any})
    assert tool.arg_desc == {"km": "No description provided. (Required)", "by": "Bike?"}
    with pytest.raises(RuntimeError, match="too far"):
        tool(km=3.5)
