"""Ollama: offered tools, choices and schemas of tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import ollama
from tests.lm.codecs.encoding import features
from tests.lm.codecs.ollama.reading import read_request
from tests.lm.codecs.ollama.wire import ASKED, OTHER, SCHEMA, THIRD, TOOL, WIRE_ASKED, answer, body, encoded, target

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
EMPTY: JsonObject = {"type": "object", "properties": {}}
NOTHING: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": EMPTY}}
BARE: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
OFFERS: dict[str, tuple[Request, JsonObject, list[str]]] = {
    "row 24 definition": (Request(tools=(TOOL,)), {"tools": [TOOL]}, []),
    "row 25 no-argument tool": (Request(tools=(NOTHING,)), {"tools": [NOTHING]}, []),
    "row 25 tool without parameters": (Request(tools=(NO_PARAMETERS,)), {"tools": [NOTHING]}, []),
    "row 25 tool without properties": (Request(tools=(BARE,)), {"tools": [NOTHING]}, []),
    "row 27 auto": (Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO), {"tools": [TOOL]}, []),
    "row 28 required": (
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL, OTHER]},
        ["tool_choice"],
    ),
    "row 29 named": (
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("g")),
        {"tools": [OTHER]},
        ["tool_choice"],
    ),
    "row 30 none": (Request(tools=(TOOL,), tool_choice=ToolChoice.NONE), {}, []),
    "row 31 allowed list": (
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ToolChoice("auto", ("f", "h"))),
        {"tools": [TOOL, THIRD]},
        [],
    ),
    "row 31 allowed list, one of which must be called": (
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ToolChoice("required", ("f", "h"))),
        {"tools": [TOOL, THIRD]},
        ["tool_choice"],
    ),
    "row 32 parallel off": (
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [TOOL]},
        ["parallel_tool_calls"],
    ),
    "row 32 parallel on": (Request(tools=(TOOL,), parallel_tool_calls=True), {"tools": [TOOL]}, []),
    "row 32 parallel off without tools": (Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (Request(tool_choice=ToolChoice.REQUIRED), {}, []),
}


@pytest.mark.parametrize(("request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_encode_sends_tools_and_choices(request_: Request, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)))
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


def test_reader_reads_tools() -> None:
    request = Request((ASKED,), (TOOL, NOTHING))
    assert read_request(encoded(request).body) == request


def with_name(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA}}


def test_row_26_dotted_name_is_unchanged_and_an_invalid_name_is_mapped_both_ways() -> None:
    dotted, strange = "shop.orders", "shop/orders äöü"
    tools = [with_name(name) for name in (dotted, strange)]
    sent = encoded(Request((ASKED,), tuple(tools)))
    assert sent.names.encode(dotted) == dotted
    wire = sent.names.encode(strange)
    assert wire.isascii()
    assert sent.body["tools"] == [with_name(dotted), with_name(wire)]
    reply = answer({"tool_calls": [{"function": {"name": wire, "arguments": {}}}]})
    assert ollama.decode(reply, sent, target()).choices[0].tool_calls[0].name == strange


def test_row_49_web_search_is_refused_with_an_alternative() -> None:
    search: JsonObject = {"type": "web_search", "web_search": {}}
    with pytest.raises(UnsupportedFeature, match=r"ollama/m has no place for built-in tools.*Responses API"):
        encoded(Request((ASKED,), (search,)))


SCHEMAS: dict[str, tuple[JsonObject, JsonObject, list[str]]] = {
    "references are put in place": (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string", "title": "A"}}},
        {"properties": {"a": {"type": "string"}}},
        [],
    ),
    "lost limits are in the description": (
        {"properties": {"a": {"type": "integer", "minimum": 1, "description": "How many"}}},
        {"properties": {"a": {"type": "integer", "description": "How many (minimum: 1)"}}},
        ["schema"],
    ),
    "const and oneOf have other words": (
        {"properties": {"a": {"oneOf": [{"const": "b"}, {"type": "null"}]}}},
        {"properties": {"a": {"anyOf": [{"enum": ["b"]}, {"type": "null"}]}}},
        [],
    ),
    "several types stay": (
        {"properties": {"a": {"type": ["string", "null"]}}},
        {"properties": {"a": {"type": ["string", "null"]}}},
        [],
    ),
    "closed objects lose nothing": (
        {"properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        {"properties": {"a": {"type": "integer"}}},
        [],
    ),
    "an open map is in the description": (
        {"properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}},
        {"properties": {"a": {"type": "object", "description": '(additionalProperties: {"type":"string"})'}}},
        ["schema"],
    ),
    "recursion ends in an object": (
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {
            "type": "object", "properties": {"next": {"$ref": "#/$defs/A"}},
        }}},
        {"properties": {"a": {"type": "object", "properties": {
            "next": {"type": "object", "description": "Same structure as A."},
        }}}},
        ["schema"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "compiled", "warned"), SCHEMAS.values(), ids=SCHEMAS)
def test_tool_schema_has_only_keywords_of_the_server(
    schema: JsonObject, compiled: JsonObject, warned: list[str]
) -> None:
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", **schema}}}
    sent = encoded(Request((ASKED,), (tool,)))
    function: JsonObject = {"name": "f", "parameters": {"type": "object", **compiled}}
    assert sent.body == body(WIRE_ASKED, tools=[{"type": "function", "function": function}])
    assert features(sent.warnings) == warned
    # Without tools in the request, no warning is due.
    assert encoded(Request((ASKED,), (tool,), ToolChoice.NONE)).warnings == ()


def test_tool_with_a_union_of_arguments_is_refused() -> None:
    union: JsonObject = {"anyOf": [SCHEMA, EMPTY]}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "parameters": union}}
    with pytest.raises(UnsupportedFeature, match=r"tool 'f'.*the root must be an object"):
        encoded(Request((ASKED,), (tool,)))
