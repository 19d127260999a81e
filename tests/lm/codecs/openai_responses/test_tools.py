"""OpenAI Responses: offered tools, choices and schemas of tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.tools.calls import WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.tool import Tool
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import openai_responses
from sigwire.lm.codecs.openai_responses import AZURE, COMPATIBLE, OPENAI, ResponsesProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_responses.reading import read_request
from tests.lm.codecs.openai_responses.wire import (
    ASKED,
    FILES,
    OTHER,
    SCHEMA,
    SEARCH,
    TOOL,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_OTHER,
    WIRE_TOOL,
    answer,
    body,
    encoded,
    target,
)

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
EMPTY: JsonObject = {"type": "object", "properties": {}}
NOTHING: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": EMPTY}}
FORCED: JsonObject = {"type": "function", "name": "f"}
ALLOWED = ToolChoice("required", ("f", "g"))
ALLOWED_WIRE: JsonObject = {
    "type": "allowed_tools",
    "mode": "required",
    "tools": [FORCED, {"type": "function", "name": "g"}],
}
THIRD: JsonObject = {"type": "function", "function": {"name": "h", "description": "i", "parameters": SCHEMA}}
WIRE_THIRD: JsonObject = {"type": "function", "name": "h", "description": "i", "parameters": SCHEMA, "strict": False}
PLACE: JsonObject = {"country": "DE", "city": "Ulm"}
NARROW_SEARCH = Tool.web_search(WebSearch(allowed_domains=("a.de",), user_location=PLACE)).spec
WIRE_NARROW_SEARCH: JsonObject = {
    "type": "web_search",
    "filters": {"allowed_domains": ["a.de"]},
    "user_location": {"type": "approximate", **PLACE},
}
OFFERS: dict[str, tuple[Target[ResponsesProfile], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL,)), {"tools": [WIRE_TOOL]}, []),
    "row 25 no-argument tool": (
        target(),
        Request(tools=(NOTHING,)),
        {"tools": [{**WIRE_TOOL, "parameters": EMPTY}]},
        [],
    ),
    "row 25 the key is required": (
        target(AZURE),
        Request(tools=(NO_PARAMETERS,)),
        {"tools": [{**WIRE_TOOL, "parameters": EMPTY}]},
        [],
    ),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {"tools": [WIRE_TOOL], "tool_choice": "auto"},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": "required"},
        [],
    ),
    "row 28 required where thinking forbids it": (
        target(AZURE, default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [WIRE_TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [WIRE_TOOL, WIRE_OTHER], "tool_choice": FORCED},
        [],
    ),
    "row 29 named where it cannot be forced": (
        target(AZURE, forced_choice=False),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [WIRE_TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {"tools": [WIRE_TOOL], "tool_choice": "none"},
        [],
    ),
    "row 31 allowed list": (
        target(),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [WIRE_TOOL, WIRE_OTHER, WIRE_THIRD], "tool_choice": ALLOWED_WIRE},
        [],
    ),
    "row 31 allowed list on a compatible host": (
        target(COMPATIBLE),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [WIRE_TOOL, WIRE_OTHER], "tool_choice": "required"},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [WIRE_TOOL], "parallel_tool_calls": False},
        [],
    ),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
    "row 49 web search": (target(), Request(tools=(SEARCH,)), {"tools": [{"type": "web_search"}]}, []),
    "row 49 web search with limits, between functions": (
        target(),
        Request(
            tools=(TOOL, {**NARROW_SEARCH, "web_search": {"allowed_domains": ["a.de"], "user_location": PLACE}}, OTHER)
        ),
        {"tools": [WIRE_TOOL, WIRE_NARROW_SEARCH, WIRE_OTHER]},
        [],
    ),
    "row 49 domains may be a tuple": (
        target(AZURE),
        Request(tools=(NARROW_SEARCH,)),
        {"tools": [WIRE_NARROW_SEARCH]},
        [],
    ),
    "row 49 a limit of uses is exact for one built-in tool": (
        target(AZURE),
        Request(tools=(Tool.web_search(WebSearch(max_uses=2)).spec,)),
        {"tools": [{"type": "web_search"}], "max_tool_calls": 2},
        [],
    ),
    "row 49 a limit of uses is left out beside another built-in tool": (
        target(AZURE),
        Request(tools=(Tool.web_search(WebSearch(max_uses=2)).spec, FILES)),
        {"tools": [{"type": "web_search"}, {"type": "file_search", "vector_store_ids": ["vs_1"]}]},
        ["max_uses"],
    ),
    "another built-in tool is sent flat": (
        target(),
        Request(tools=(FILES,)),
        {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]},
        [],
    ),
}


@pytest.mark.parametrize(("to", "request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_encode_sends_tools_and_choices(
    to: Target[ResponsesProfile], request_: Request, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    wire = body(WIRE_ASKED, **fields)
    if to.profile.store is None:
        del wire["store"]
    assert sent.body == wire
    assert features(sent.warnings) == warned


@pytest.mark.parametrize("name", [name for name, case in OFFERS.items() if case[0].profile is OPENAI and case[2]])
def test_reader_reads_tools_and_choices(name: str) -> None:
    _, request, fields, _ = OFFERS[name]
    assert read_request(body(WIRE_ASKED, **fields)) == replace(request, messages=(ASKED,))


@pytest.mark.parametrize("choice", ["validated", {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]}])
def test_reader_keeps_an_unknown_choice(choice: JsonValue) -> None:
    wire = body(WIRE_ASKED, tools=[WIRE_TOOL], tool_choice=choice)
    assert encoded(read_request(wire)).body == wire


def test_reader_keeps_unknown_fields_of_tools_and_choices() -> None:
    deferred: JsonObject = {**WIRE_TOOL, "strict": True, "defer_loading": True}
    hosted: JsonObject = {"type": "file_search"}
    wire = body(WIRE_ASKED, tools=[deferred], tool_choice=hosted)
    request = read_request(wire)
    assert request.tools == (TOOL,)
    assert request.options == {"extra_body": {"tools": [deferred], "tool_choice": hosted}}
    assert encoded(request).body == wire


def test_row_26_invalid_tool_name_is_mapped_both_ways() -> None:
    name = "shop.orders/" + "x" * 80
    tool: JsonObject = {"type": "function", "function": {"name": name, "description": "", "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert len(wire) <= 64
    assert sent.body["tools"] == [{"type": "function", "name": wire, "parameters": SCHEMA, "strict": False}]
    assert sent.body["tool_choice"] == {"type": "function", "name": wire}
    reply = answer({**WIRE_CALL, "name": wire})
    assert openai_responses.decode(reply, sent, target()).choices[0].tool_calls[0].name == name


@pytest.mark.parametrize(
    ("to", "tool", "refused"),
    [
        pytest.param(target(COMPATIBLE), SEARCH, "'web_search'", id="row 49 a host without web search"),
        pytest.param(target(), {"type": "google_maps"}, "'google_maps'", id="another provider's tool"),
        pytest.param(
            target(), Tool.web_search(WebSearch(blocked_domains=("a.de",))).spec, "blocked domains", id="row 49 blocked"
        ),
    ],
)
def test_unknown_built_in_tool_is_refused(to: Target[ResponsesProfile], tool: JsonObject, refused: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"has no place for .*{refused}"):
        encoded(Request((ASKED,), (tool,)), to)


def test_tool_schema_is_sent_unchanged() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"const": 1}}}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
    assert encoded(Request((ASKED,), (tool,))).body["tools"] == [{**WIRE_TOOL, "parameters": schema}]
