"""Anthropic Messages: tools offered, chosen and written, and what their schemas may hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.tools.calls import WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.tool import Tool
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import ANTHROPIC, COMPATIBLE_MESSAGES, MessagesProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.anthropic.reading import read_request
from tests.lm.codecs.anthropic.wire import (
    ASKED,
    BY_BUDGET,
    OTHER,
    SCHEMA,
    SEARCH,
    THIRD,
    TOOL,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_OTHER,
    WIRE_THIRD,
    WIRE_TOOL,
    answer,
    body,
    encoded,
    target,
)
from tests.lm.codecs.encoding import features

NOTHING: JsonObject = {"type": "object", "properties": {}}
NO_ARGUMENTS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": NOTHING}}
NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
WIRE_SEARCH: JsonObject = {"type": "web_search_20250305", "name": "web_search"}
LIMITED = Tool.web_search(
    WebSearch(allowed_domains=("a.org",), max_uses=2, user_location={"city": "Oslo", "country": "NO"})
).spec
CODE: JsonObject = {"type": "code_execution_20260120", "code_execution_20260120": {"name": "code_execution"}}
WIRE_CODE: JsonObject = {"type": "code_execution_20260120", "name": "code_execution"}
OFFERS: dict[str, tuple[Target[MessagesProfile], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL,)), {"tools": [WIRE_TOOL]}, []),
    "row 25 no-argument tool": (
        target(),
        Request(tools=(NO_ARGUMENTS,)),
        {"tools": [{**WIRE_TOOL, "input_schema": NOTHING}]},
        [],
    ),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto"}},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "any"}},
        [],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [WIRE_TOOL, WIRE_OTHER], "tool_choice": {"type": "tool", "name": "f"}},
        [],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "none"}},
        [],
    ),
    "row 32 parallel off beside a forced call": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        [],
    ),
    "row 49 web search": (target(), Request(tools=(SEARCH,)), {"tools": [WIRE_SEARCH]}, []),
    "row 49 web search within limits": (
        target(),
        Request(tools=(TOOL, LIMITED, OTHER)),
        {
            "tools": [
                WIRE_TOOL,
                {
                    **WIRE_SEARCH,
                    "allowed_domains": ["a.org"],
                    "max_uses": 2,
                    "user_location": {"type": "approximate", "city": "Oslo", "country": "NO"},
                },
                WIRE_OTHER,
            ]
        },
        [],
    ),
    "row 49 a tool of the provider's own": (target(), Request(tools=(CODE,)), {"tools": [WIRE_CODE]}, []),
    "row 49 a newer web search": (
        target(replace(ANTHROPIC, web_search="web_search_20260318")),
        Request(tools=(SEARCH,)),
        {"tools": [{**WIRE_SEARCH, "type": "web_search_20260318"}]},
        [],
    ),
    "fields of the provider's own on a tool": (
        target(),
        Request(tools=({**TOOL, "anthropic": {"defer_loading": True, "cache_control": {"type": "ephemeral"}}},)),
        {"tools": [{**WIRE_TOOL, "defer_loading": True, "cache_control": {"type": "ephemeral"}}]},
        [],
    ),
}
ONE_WAY: dict[str, tuple[Target[MessagesProfile], Request, JsonObject, list[str]]] = {
    "row 25 tool without parameters": (
        target(),
        Request(tools=(NO_PARAMETERS,)),
        {"tools": [{**WIRE_TOOL, "input_schema": NOTHING}]},
        [],
    ),
    "row 28 required on a model that cannot be forced": (
        target(forced_choice=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto"}},
        ["tool_choice"],
    ),
    "row 28 required where thinking forbids it": (
        target(default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto"}},
        ["tool_choice"],
    ),
    "row 28 required beside a thinking budget": (
        BY_BUDGET,
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, options={"reasoning": {"budget": 2000}}),
        {
            "max_tokens": 6096,
            "tools": [WIRE_TOOL],
            "tool_choice": {"type": "auto"},
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        },
        ["tool_choice"],
    ),
    "row 28 required beside adaptive thinking": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, options={"reasoning": "low"}),
        {
            "tools": [WIRE_TOOL],
            "tool_choice": {"type": "any"},
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "low"},
        },
        [],
    ),
    "row 29 named on a model that cannot be forced": (
        target(forced_choice=False),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("g")),
        {"tools": [WIRE_OTHER], "tool_choice": {"type": "auto"}},
        ["tool_choice"],
    ),
    "row 31 allowed list": (
        target(),
        Request(tools=(TOOL, SEARCH, OTHER, THIRD), tool_choice=ToolChoice("required", ("f", "h"))),
        {"tools": [WIRE_TOOL, WIRE_THIRD], "tool_choice": {"type": "any"}},
        [],
    ),
    "row 31 allowed list, open": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("auto", ("g",))),
        {"tools": [WIRE_OTHER], "tool_choice": {"type": "auto"}},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        [],
    ),
    "row 32 parallel off where no call may be made": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE, parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "tool_choice": {"type": "none"}},
        [],
    ),
    "row 32 parallel on": (target(), Request(tools=(TOOL,), parallel_tool_calls=True), {"tools": [WIRE_TOOL]}, []),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
}


@pytest.mark.parametrize(
    ("to", "request_", "fields", "warned"), {**OFFERS, **ONE_WAY}.values(), ids=[*OFFERS, *ONE_WAY]
)
def test_tools_and_choices(
    to: Target[MessagesProfile], request_: Request, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    assert sent.body == body(WIRE_ASKED) | fields
    assert features(sent.warnings) == warned


@pytest.mark.parametrize(("to", "request_", "fields", "_"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choices_are_read_back(
    to: Target[MessagesProfile], request_: Request, fields: JsonObject, _: list[str]
) -> None:
    read = read_request(body(WIRE_ASKED) | fields, to.profile)
    assert read == replace(request_, messages=(ASKED,), options={"max_tokens": 4096})


def test_row_26_a_name_the_wire_forbids_is_mapped_and_mapped_back() -> None:
    name = "shop.orders/" + "x" * 150
    tool: JsonObject = {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert len(wire) <= 128
    assert sent.body["tools"] == [{"name": wire, "input_schema": SCHEMA}]
    assert sent.body["tool_choice"] == {"type": "tool", "name": wire}
    response = anthropic.decode(answer({**WIRE_CALL, "name": wire}), sent, target())
    assert response.choices[0].tool_calls[0].name == name
    long = "x" * 100  # within this wire's length, though beyond others'
    assert encoded(Request((ASKED,), ({"type": "function", "function": {"name": long}},))).names.encode(long) == long


@pytest.mark.parametrize(
    ("tool", "to", "said"),
    [
        pytest.param({"type": "image_generation"}, target(), "built-in tool 'image_generation'", id="row 49 unknown"),
        pytest.param(SEARCH, target(COMPATIBLE_MESSAGES), "no place for web search", id="row 49 no search"),
        pytest.param(
            Tool.web_search(WebSearch(("a",), ("b",))).spec,
            target(),
            "allowed_domains together",
            id="row 49 both lists",
        ),
        pytest.param(
            {"type": "function", "function": {"name": "f", "parameters": {"anyOf": [SCHEMA]}}},
            target(),
            "schema of tool 'f'.*the root must be an object",
            id="row 24 a root that is no object",
        ),
    ],
)
def test_tools_without_a_place_are_refused(tool: JsonObject, to: Target[MessagesProfile], said: str) -> None:
    with pytest.raises(UnsupportedFeature, match=said):
        encoded(Request((ASKED,), (tool,)), to)


def test_row_24_the_callers_schema_is_sent_as_it_is() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "integer", "minimum": 1}},
        "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}},
    }
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": schema}}
    assert encoded(Request((ASKED,), (tool,))).body["tools"] == [{"name": "f", "input_schema": schema}]
