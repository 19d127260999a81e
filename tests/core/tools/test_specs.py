"""Tools given as dicts: every public form is read as one spec, anything else is refused with the forms."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.request import MemoTuple, Request
from sigwire.core.tools.specs import are_specs, read_tools
from sigwire.core.tools.tool import Tool
from sigwire.errors import ToolDefinitionError

SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
ABOUT: JsonObject = {"name": "f", "description": "d"}
SPEC: JsonObject = {"type": "function", "function": {**ABOUT, "parameters": SCHEMA}}
CACHED: JsonObject = {"type": "ephemeral"}

FUNCTIONS: dict[str, JsonObject] = {
    "chat completions": SPEC,
    "chat completions without a type": {"function": SPEC["function"]},
    "Responses": {"type": "function", **ABOUT, "parameters": SCHEMA},
    "Responses with fields that are not set": {"type": "function", **ABOUT, "parameters": SCHEMA, "strict": None},
    "Anthropic": {**ABOUT, "input_schema": SCHEMA},
    "Anthropic with its type": {"type": "custom", **ABOUT, "input_schema": SCHEMA},
    "Gemini's list": {"functionDeclarations": [{**ABOUT, "parameters": SCHEMA}]},
    "Gemini's list in snake case": {"function_declarations": [{**ABOUT, "parameters_json_schema": SCHEMA}]},
    "Gemini's JSON Schema": {"functionDeclarations": [{**ABOUT, "parametersJsonSchema": SCHEMA}]},
    "Gemini's declaration": {**ABOUT, "parametersJsonSchema": SCHEMA},
    "Gemini's declaration with parameters": {**ABOUT, "parameters": SCHEMA},
    "Gemini's types in capitals": {
        **ABOUT,
        "parameters": {"type": "OBJECT", "properties": {"x": {"type": "INTEGER"}}, "required": ["x"]},
    },
    "MCP": {**ABOUT, "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}, "title": "F"},
}


@pytest.mark.parametrize("tool", FUNCTIONS.values(), ids=FUNCTIONS)
def test_public_form_of_a_function_is_read_as_its_spec(tool: JsonObject) -> None:
    assert read_tools([tool]) == (SPEC,)
    assert Request(tools=(tool,)).tools == (SPEC,)


OTHER_FIELDS: dict[str, tuple[JsonObject, JsonObject]] = {
    "in a function": ({"type": "function", "function": {**ABOUT, "strict": True}}, {"strict": True}),
    "beside a function": (
        {"type": "function", "function": ABOUT, "cache_control": CACHED, "defer_loading": True},
        {"cache_control": CACHED, "defer_loading": True},
    ),
    "of Responses": ({"type": "function", **ABOUT, "strict": True, "async": True}, {"strict": True, "async": True}),
    "of Anthropic": (
        {**ABOUT, "input_schema": {}, "cache_control": CACHED},
        {"parameters": {}, "cache_control": CACHED},
    ),
    "of Gemini": (
        {"function_declarations": [{**ABOUT, "behavior": "BLOCKING", "response_json_schema": SCHEMA}]},
        {"behavior": "BLOCKING", "responseJsonSchema": SCHEMA},
    ),
}


@pytest.mark.parametrize(("tool", "fields"), OTHER_FIELDS.values(), ids=OTHER_FIELDS)
def test_other_fields_of_a_function_are_kept_beside_its_name(tool: JsonObject, fields: JsonObject) -> None:
    assert read_tools([tool]) == ({"type": "function", "function": {**ABOUT, **fields}},)


def test_fields_for_one_family_stay_beside_the_function() -> None:
    mine: JsonObject = {"anthropic": {"defer_loading": True}}
    assert read_tools([{**SPEC, **mine, "strict": True}]) == (
        {"type": "function", "function": {**ABOUT, "parameters": SCHEMA, "strict": True}, **mine},
    )


BUILTIN: dict[str, tuple[JsonObject, JsonObject]] = {
    "canonical": ({"type": "web_search", "web_search": {"max_uses": 2}}, {"max_uses": 2}),
    "OpenAI": ({"type": "file_search", "vector_store_ids": ["v"], "filters": {}}, {"vector_store_ids": ["v"], "filters": {}}),
    "OpenAI's custom tool": ({"type": "custom", "name": "sql", "format": {}}, {"name": "sql", "format": {}}),
    "Anthropic": (
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
        {"name": "web_search", "max_uses": 5},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("tool", "settings"), BUILTIN.values(), ids=BUILTIN)
def test_built_in_tool_keeps_its_settings(tool: JsonObject, settings: JsonObject) -> None:
    kind = tool["type"]
    assert read_tools([tool]) == ({"type": kind, kind: settings},)


def test_tool_of_gemini_may_hold_functions_and_built_in_tools() -> None:
    ping: JsonObject = {"name": "ping"}
    read = read_tools([{"function_declarations": [{**ABOUT, "parameters": SCHEMA}, ping], "google_search": {"a": 1}}])
    assert read == (
        SPEC,
        {"type": "function", "function": ping},
        {"type": "googleSearch", "googleSearch": {"a": 1}},
    )
    assert read_tools([{"codeExecution": {}}]) == ({"type": "codeExecution", "codeExecution": {}},)


def test_openapi_schema_of_gemini_is_read_as_json_schema() -> None:
    given: JsonObject = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True, "enum": ["A", "B"]},
            "list": {"type": "ARRAY", "items": {"type": "NUMBER"}, "min_items": 2},
            "either": {"any_of": [{"type": "BOOLEAN"}, {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}]},
        },
    }
    (spec,) = read_tools([{"name": "f", "parameters": given}])
    function: Any = spec["function"]
    assert function["parameters"] == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["A", "B"]},
            "list": {"type": "array", "items": {"type": "number"}, "minItems": 2},
            "either": {"anyOf": [{"type": "boolean"}, {"type": "object", "properties": {"a": {"type": "string"}}}]},
        },
    }


UNKNOWN: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "none of the known forms"),
    "a name alone": ({"name": "f"}, "none of the known forms"),
    "a key that is no text": ({1: "f"}, "none of the known forms"),
    "a description alone": ({"description": "d"}, "none of the known forms"),
    "a misspelt key": ({"func": ABOUT}, "none of the known forms"),
    "a type that is no text": ({"type": 3}, "none of the known forms"),
    "no name": ({"type": "function", "parameters": SCHEMA}, "needs a name"),
    "no name in the function": ({"type": "function", "function": {"description": "d"}}, "needs a name"),
    "an empty name": ({"name": " ", "input_schema": SCHEMA}, "needs a name"),
    "a name that is no text": ({"name": None, "input_schema": SCHEMA}, "needs a name"),
    "parameters as text": ({"type": "function", "name": "f", "parameters": "x"}, "'f' are no JSON Schema"),
    "parameters as text in a function": ({"type": "function", "function": {"name": "f", "parameters": "x"}}, "no JSON Schema"),
    "a declaration that is no list": ({"functionDeclarations": ABOUT}, "is a list of dicts"),
    "a function": (len, "not builtin_function_or_method"),
    "text": ("web_search", "not str"),
    "none": (None, "not NoneType"),
}  # fmt: skip


@pytest.mark.parametrize(("tool", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_anything_else_is_a_definition_error_that_names_the_forms(tool: Any, words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words) as raised:
        Request(tools=(tool,))
    assert "Responses, Anthropic, Gemini or MCP" in str(raised.value)


def test_request_takes_tools_and_keeps_specs_as_they_are() -> None:
    tool = Tool.from_schema("f", "d", SCHEMA)
    tools: Any = (tool, SPEC)
    assert Request(tools=tools).tools == (SPEC, SPEC)
    specs = MemoTuple([SPEC])
    assert Request(tools=specs).tools is specs
    assert Request(tools=MemoTuple([FUNCTIONS["Anthropic"]])).tools == (SPEC,)
    assert are_specs([SPEC, {"type": "mcp"}])
    assert not are_specs([FUNCTIONS["MCP"]])


def test_error_shows_the_keys_of_a_tool_and_not_its_values() -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        read_tools([{"server_url": "https://a.example", "authorization": "a secret"}])
    assert "authorization" in str(raised.value)
    assert "a secret" not in str(raised.value)
