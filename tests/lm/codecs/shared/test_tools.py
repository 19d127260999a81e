"""Tools on every wire: functions in any public form, their other fields, no arguments, built-in tools, broken arguments."""

from __future__ import annotations

import importlib
import json
import typing
from dataclasses import replace
from typing import Any

import pytest

from sigwire import LM
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.specs import read_tools
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import anthropic, gemini, ollama, openai_chat, openai_responses
from sigwire.lm.codecs.anthropic import ANTHROPIC, COMPATIBLE_MESSAGES
from sigwire.lm.codecs.gemini import GEMINI, VERTEX
from sigwire.lm.codecs.ollama import OLLAMA
from sigwire.lm.codecs.openai_chat.profiles import COMPATIBLE, OPENAI, OPENROUTER
from sigwire.lm.codecs.openai_responses.profiles import COMPATIBLE as COMPATIBLE_RESPONSES
from sigwire.lm.codecs.openai_responses.profiles import OPENAI as RESPONSES
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.testing import FakeProvider

WIRES: dict[str, tuple[Any, Any]] = {
    "chat": (openai_chat, OPENAI),
    "compatible chat": (openai_chat, COMPATIBLE),
    "openrouter": (openai_chat, OPENROUTER),
    "responses": (openai_responses, RESPONSES),
    "compatible responses": (openai_responses, COMPATIBLE_RESPONSES),
    "anthropic": (anthropic, ANTHROPIC),
    "compatible anthropic": (anthropic, COMPATIBLE_MESSAGES),
    "gemini": (gemini, GEMINI),
    "vertex": (gemini, VERTEX),
    "ollama": (ollama, OLLAMA),
}
ASKED = (Message.user("q"),)
SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
ABOUT: JsonObject = {"name": "f", "description": "d"}
FORMS: dict[str, JsonObject] = {
    "chat completions": {"type": "function", "function": {**ABOUT, "parameters": SCHEMA}},
    "Responses": {"type": "function", **ABOUT, "parameters": SCHEMA},
    "Anthropic": {**ABOUT, "input_schema": SCHEMA},
    "Gemini": {"functionDeclarations": [{**ABOUT, "parameters": SCHEMA}]},
    "MCP": {**ABOUT, "inputSchema": SCHEMA},
}


def encoded(wire: str, *tools: JsonObject, **request: Any) -> EncodedRequest:
    codec, profile = WIRES[wire]
    messages = request.pop("messages", ASKED)
    sent: EncodedRequest = codec.encode(Request(messages, tools, **request), Target("p", "m", profile))
    return sent


def encoded_tools(wire: str, *tools: JsonObject) -> JsonValue:
    return encoded(wire, *tools).body["tools"]


def in_form_of(wire: str, parameters: JsonObject | None, **fields: JsonValue) -> JsonObject:
    """Return the tool ``f`` as it must be on the wire; ``parameters=None`` is no schema."""
    family = wire.split()[-1]
    if family == "anthropic":
        return {**ABOUT, "input_schema": parameters, **fields}
    if family == "responses":
        return {"type": "function", **ABOUT, "parameters": parameters, "strict": False, **fields}
    if family in ("gemini", "vertex"):
        schema: JsonObject = {} if parameters is None else {"parametersJsonSchema": parameters}
        return {"functionDeclarations": [{**ABOUT, **schema, **fields}]}
    beside = {name: fields.pop(name) for name in list(fields) if name == "cache_control"}
    schema = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {**ABOUT, **schema, **fields}, **beside}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("form", FORMS)
def test_function_in_any_public_form_is_sent_in_the_form_of_the_wire(wire: str, form: str) -> None:
    sent = encoded(wire, FORMS[form])
    assert sent.body["tools"] == [in_form_of(wire, SCHEMA)]
    assert sent.warnings == ()


@pytest.mark.parametrize(("wire", "name"), [("openai", "openai/gpt-4.1"), ("anthropic", "anthropic/claude-sonnet-5"),
                                            ("gemini", "gemini/gemini-3-flash"), ("ollama", "ollama/qwen3")])  # fmt: skip
@pytest.mark.parametrize("form", FORMS)
def test_function_in_any_public_form_is_offered_in_a_call_of_the_model(wire: str, name: str, form: str) -> None:
    with FakeProvider(["ok"]) as provider:
        model = LM(name, base_url=provider.url(wire), api_key="k")
        model(messages=[{"role": "user", "content": "q"}], tools=[FORMS[form]])
        assert provider.requests[0].request.tools == (FORMS["chat completions"],)


# --- no arguments


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}], ids=str)
def test_schema_without_properties_means_no_arguments(wire: str, schema: JsonObject) -> None:
    sent = encoded_tools(wire, {"type": "function", "function": {**ABOUT, "parameters": schema}})
    nothing = None if wire in ("gemini", "vertex") else {"type": "object", "properties": {}}
    assert sent == [in_form_of(wire, nothing)]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("tool", [{"function": ABOUT}, {"type": "function", **ABOUT, "parameters": None}], ids=str)
def test_missing_schema_means_no_arguments(wire: str, tool: JsonObject) -> None:
    omits = wire in ("gemini", "vertex", "chat", "compatible chat", "openrouter")
    assert encoded_tools(wire, tool) == [in_form_of(wire, None if omits else {"type": "object", "properties": {}})]


@pytest.mark.parametrize("wire", WIRES)
def test_map_of_any_keys_is_not_read_as_no_arguments(wire: str) -> None:
    free: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
    sent = json.dumps(encoded_tools(wire, {"function": {**ABOUT, "parameters": free}}))
    assert "additionalProperties" in sent


# --- other fields of a function

CACHED: JsonObject = {"type": "ephemeral"}
FIELDS: dict[str, JsonValue] = {
    "allowed_callers": ["direct"], "async": True, "behavior": "NON_BLOCKING", "cache_control": CACHED, "defer_loading": True,
    "eager_input_streaming": True, "input_examples": [{"x": 1}], "output_schema": SCHEMA, "response": SCHEMA, "strict": True,
}  # fmt: skip
SENT_FIELDS: dict[str, set[str]] = {
    "chat": {"strict"},
    "compatible chat": {"strict"},
    "openrouter": {"cache_control", "strict"},
    "responses": {"allowed_callers", "async", "defer_loading", "output_schema", "strict"},
    "compatible responses": {"strict"},
    "anthropic": {
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "eager_input_streaming",
        "input_examples",
        "strict",
    },
    "compatible anthropic": set(),
    "gemini": {"behavior", "response"},
    "vertex": {"behavior", "response"},
    "ollama": set(),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("field", FIELDS)
def test_other_field_of_a_function_is_sent_or_warned_about(wire: str, field: str) -> None:
    sent = encoded(wire, {**FORMS["Responses"], field: FIELDS[field]})
    has = field in SENT_FIELDS[wire]
    assert sent.body["tools"] == [in_form_of(wire, SCHEMA, **({field: FIELDS[field]} if has else {}))]
    lost = f"p/m has no place for {field} of the tool 'f'; it was left out."
    assert [(warning.feature, warning.detail) for warning in sent.warnings] == ([] if has else [("tools", lost)])


@pytest.mark.parametrize("wire", WIRES)
def test_fields_for_one_family_are_sent_by_its_wire_alone(wire: str) -> None:
    family = WIRES[wire][1].family
    sent = encoded(wire, {**FORMS["chat completions"], family: {"priority": 1}, "another": {"priority": 2}})
    assert sent.body["tools"] == [in_form_of(wire, SCHEMA, priority=1)]
    assert sent.warnings == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "union", "function", "wire"),
    [
        ("openai.types.responses.tool_param", "ToolParam", "FunctionToolParam", "responses"),
        ("anthropic.types.tool_union_param", "ToolUnionParam", "ToolParam", "anthropic"),
        ("anthropic.types.beta.beta_tool_union_param", "BetaToolUnionParam", "BetaToolParam", "anthropic"),
    ],
)
def test_every_tool_of_the_providers_package_is_sent(module: str, union: str, function: str, wire: str) -> None:
    pytest.importorskip(module.partition(".")[0], reason="the provider's package is not installed")
    for tool in typing.get_args(getattr(importlib.import_module(module), union)):
        hints = typing.get_type_hints(tool)
        if tool.__name__ == function:
            given: set[str] = {*hints} - {"type", "name", "description", "input_schema", "parameters"}
            assert given <= WIRES[wire][1].tool_fields
            continue
        for kind in typing.get_args(hints["type"]):
            settings: JsonObject = {name: {"type": "approximate"} for name in hints if name != "type"}
            assert encoded_tools(wire, {"type": kind, **settings}) == [{"type": kind, **settings}]


# --- built-in tools, in the flat form of their providers

OF_OPENAI: dict[str, JsonObject] = {
    "file_search": {"vector_store_ids": ["v"], "max_num_results": 3, "filters": {"type": "eq", "key": "a", "value": 1}},
    "mcp": {"server_label": "s", "server_url": "https://a.example", "require_approval": "never", "headers": {"A": "b"}},
    "code_interpreter": {"container": {"type": "auto", "file_ids": ["f"]}},
    "image_generation": {"size": "1024x1024", "background": "transparent"},
    "computer_use_preview": {"display_width": 1, "display_height": 2, "environment": "linux"},
    "computer_use": {"environment": "linux"},
    "custom": {"name": "sql", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
    "namespace": {"name": "crm", "description": "d", "tools": [{"type": "function", **ABOUT, "parameters": SCHEMA}]},
    "web_search": {"filters": {"allowed_domains": ["a.org"]}, "search_context_size": "low"},
    "web_search_preview": {"search_context_size": "high", "user_location": {"type": "approximate", "city": "Ulm"}},
}
OF_ANTHROPIC: dict[str, JsonObject] = {
    "web_search_20250305": {"name": "web_search", "max_uses": 5, "allowed_domains": ["a.org"], "cache_control": CACHED},
    "web_fetch_20250910": {"name": "web_fetch", "max_content_tokens": 9, "citations": {"enabled": True}},
    "mcp_toolset": {"mcp_server_name": "s", "default_config": {"defer_loading": True}},
    "tool_search_tool_regex": {"name": "tool_search_tool_regex"},
}
OF_GEMINI: dict[str, JsonObject] = {
    "googleSearch": {"timeRangeFilter": {"startTime": "2026-01-01T00:00:00Z"}},
    "fileSearch": {"fileSearchStoreNames": ["s"], "topK": 3},
    "computerUse": {"environment": "ENVIRONMENT_BROWSER"},
}
SEARCH: JsonObject = {"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}
FLAT: list[tuple[str, JsonObject, JsonObject]] = [
    *(("responses", {"type": kind, **given}, {"type": kind, **given}) for kind, given in OF_OPENAI.items()),
    *(("anthropic", {"type": kind, **given}, {"type": kind, **given}) for kind, given in OF_ANTHROPIC.items()),
    *(("gemini", {"type": kind, **given}, {kind: given}) for kind, given in OF_GEMINI.items()),
    *(("gemini", {kind: given}, {kind: given}) for kind, given in OF_GEMINI.items()),
    ("gemini", {"google_search": {"exclude_domains": ["a.org"]}}, {"googleSearch": {"exclude_domains": ["a.org"]}}),
    ("anthropic", SEARCH, {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.org"]}),
    ("vertex", {"type": "web_search", "blocked_domains": ["a.org"]}, {"googleSearch": {"excludeDomains": ["a.org"]}}),
]


@pytest.mark.parametrize(("wire", "tool", "sent"), FLAT)
def test_built_in_tool_in_the_flat_form_of_its_provider_keeps_its_settings(
    wire: str, tool: JsonObject, sent: JsonObject
) -> None:
    (spec,) = read_tools([tool])
    assert encoded_tools(wire, tool) == encoded_tools(wire, spec) == [sent]
    assert encoded_tools(wire, tool, FORMS["Anthropic"]) == [sent, in_form_of(wire, SCHEMA)]


def test_limits_of_a_web_search_are_added_to_its_other_filters() -> None:
    search: JsonObject = {"type": "web_search", "filters": {"kind": "news"}, "allowed_domains": ["a.org"]}
    nested: JsonObject = {"type": "web_search", "filters": {"kind": "news", "allowed_domains": ["a.org"]}}
    assert encoded_tools("responses", search) == [nested]


REFUSED: list[tuple[str, JsonObject, str]] = [
    *((wire, SEARCH, "built-in tools") for wire in ("chat", "compatible chat", "ollama")),
    ("openrouter", {"type": "file_search", "vector_store_ids": ["v"]}, "built-in tool 'file_search'"),
    ("compatible responses", SEARCH, "'web_search'"),
    ("compatible anthropic", SEARCH, "web search"),
    ("gemini", SEARCH, "limited to domains"),
    ("anthropic", {"type": "web_search", "search_context_size": "low"}, "search_context_size of a web search"),
    ("gemini", {"type": "web_search", "search_context_size": "low"}, "search_context_size of a web search"),
    ("anthropic", {"type": "file_search", "vector_store_ids": ["v"]}, "'file_search'"),
    ("gemini", {"type": "mcp", "server_label": "s"}, "'mcp'"),
    ("responses", {"type": "web_search_20250305", "name": "web_search"}, "'web_search_20250305'"),
    ("responses", {"googleSearch": {}}, "'googleSearch'"),
    ("anthropic", {"google_maps": {}}, "'googleMaps'"),
]


@pytest.mark.parametrize(("wire", "tool", "words"), REFUSED)
def test_built_in_tool_of_another_provider_is_refused_with_words(wire: str, tool: JsonObject, words: str) -> None:
    with pytest.raises(UnsupportedFeature, match=rf"p/m has no place for .*{words}"):
        encoded(wire, tool)


# --- arguments that are no object

BROKEN = '{"place" : {"ci'
TORN = (
    Message.user("q"),
    Message.assistant("", (ToolCall.read("call_1", "f", BROKEN),)),
    Message.tool(ToolResult("call_1", "f", "no JSON", True)),
)


@pytest.mark.parametrize("wire", WIRES)
def test_broken_arguments_are_an_object_on_every_host_that_reads_arguments(wire: str) -> None:
    body = encoded(wire, FORMS["Anthropic"], messages=TORN).body
    turns: Any = next(body[name] for name in ("messages", "input", "contents") if name in body)
    (found,) = _values_of(turns[1], {"arguments", "input", "args"})
    if wire in ("chat", "responses"):
        assert found == BROKEN
    else:
        assert (json.loads(found) if isinstance(found, str) else found) == {"invalid_arguments": BROKEN}


@pytest.mark.parametrize("wire", WIRES)
def test_whole_arguments_are_not_wrapped(wire: str) -> None:
    called = (TORN[0], Message.assistant("", (ToolCall.read("call_1", "f", '{"x": 1}'),)), TORN[2])
    body = encoded(wire, FORMS["Anthropic"], messages=called).body
    turns: Any = next(body[name] for name in ("messages", "input", "contents") if name in body)
    (found,) = _values_of(turns[1], {"arguments", "input", "args"})
    assert (json.loads(found) if isinstance(found, str) else found) == {"x": 1}


def _values_of(node: Any, names: set[str]) -> list[Any]:
    if isinstance(node, list):
        return [found for item in node for found in _values_of(item, names)]
    if not isinstance(node, dict):
        return []
    return [node[name] for name in node if name in names] or [f for v in node.values() for f in _values_of(v, names)]


# --- the choice


@pytest.mark.parametrize("wire", WIRES)
def test_allowed_functions_keep_their_other_fields(wire: str) -> None:
    other: JsonObject = {"name": "g", "input_schema": SCHEMA}
    strict: JsonObject = {**FORMS["Responses"], "strict": True}
    sent = encoded(wire, strict, other, tool_choice=ToolChoice("auto", ("f",)))
    assert ('"strict": true' in json.dumps(sent.body)) == ("strict" in SENT_FIELDS[wire])


def test_profile_of_a_custom_host_may_name_its_fields() -> None:
    own = replace(OPENAI, tool_fields=frozenset({"priority"}))
    request = Request(ASKED, ({**FORMS["Responses"], "priority": 1},))
    tools: Any = openai_chat.encode(request, Target("p", "m", own)).body["tools"]
    assert tools[0]["function"]["priority"] == 1


# --- tools in extra_body


def with_extra(wire: str, *more: JsonObject) -> list[JsonObject]:
    extra: JsonObject = {"extra_body": {"tools": list(more)}}
    tools: Any = encoded(wire, FORMS["Anthropic"], options=extra).body["tools"]
    return list(tools)


@pytest.mark.parametrize("wire", WIRES)
def test_tools_of_extra_body_are_added_to_the_functions(wire: str) -> None:
    new: JsonObject = {"type": "a_new_tool", "setting": 1}
    assert with_extra(wire, new) == [in_form_of(wire, SCHEMA), new]
    assert encoded(wire, options={"extra_body": {"tools": [new]}}).body["tools"] == [new]


@pytest.mark.parametrize("wire", WIRES)
def test_tool_of_extra_body_replaces_the_one_of_its_name(wire: str) -> None:
    other = in_form_of(wire, SCHEMA, priority=1)
    assert with_extra(wire, other) == [other]
    assert with_extra(wire, other, {"type": "x"}, {"type": "x", "y": 1}) == [other, {"type": "x", "y": 1}]


def test_functions_of_gemini_in_extra_body_join_the_list() -> None:
    more: JsonObject = {"functionDeclarations": [{"name": "g"}]}
    (joined,) = with_extra("gemini", more)
    assert joined == {"functionDeclarations": [{**ABOUT, "parametersJsonSchema": SCHEMA}, {"name": "g"}]}
    assert with_extra("gemini", {"googleSearch": {}}) == [in_form_of("gemini", SCHEMA), {"googleSearch": {}}]


def test_servers_of_extra_body_are_distinct_by_their_labels() -> None:
    servers: list[JsonObject] = [{"type": "mcp", "server_label": label} for label in "ab"]
    assert with_extra("responses", *servers) == [in_form_of("responses", SCHEMA), *servers]
