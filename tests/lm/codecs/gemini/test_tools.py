"""Gemini: tools offered, chosen and written, and what their schemas may hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.tool import Tool
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import gemini
from sigwire.lm.codecs.gemini import VERTEX, GeminiProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.gemini.reading import read_request
from tests.lm.codecs.gemini.wire import (
    ASKED,
    DECLARED,
    OLD,
    OTHER,
    SCHEMA,
    SEARCH,
    TOOL,
    WIRE_ASKED,
    F,
    G,
    answer,
    body,
    calling,
    encoded,
    target,
)

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
NOTHING: JsonObject = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False, "title": "f"},
    },
}
OPEN: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
BOTH_DECLARED: JsonObject = {"tools": [{"functionDeclarations": [F, G]}]}

OFFERS: dict[str, tuple[Target[GeminiProfile], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL, OTHER)), BOTH_DECLARED, []),
    "row 25 no-argument tool": (
        target(),
        Request(tools=(NOTHING,)),
        {"tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}]},
        [],
    ),
    "row 25 tool without parameters": (
        target(),
        Request(tools=(NO_PARAMETERS,)),
        {"tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}]},
        [],
    ),
    "a tool of any arguments declares them": (
        target(),
        Request(tools=({"type": "function", "function": {"name": "f", "parameters": OPEN}},)),
        {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": OPEN}]}]},
        [],
    ),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {**DECLARED, "toolConfig": calling(mode="ANY")},
        [],
    ),
    "row 28 required where it cannot be": (
        target(forced_choice=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        ["tool_choice"],
    ),
    "row 28 required beside thinking": (
        target(default_effort="high"),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {**DECLARED, "toolConfig": calling(mode="ANY")},
        [],
    ),
    "row 28 required and row 32 parallel off where neither can be": (
        target(forced_choice=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED, parallel_tool_calls=False),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        ["tool_choice", "parallel_tool_calls"],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {**BOTH_DECLARED, "toolConfig": calling(mode="ANY", allowedFunctionNames=["f"])},
        [],
    ),
    "row 29 named where thinking forbids it": (
        target(default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {**DECLARED, "toolConfig": calling(mode="AUTO")},
        ["tool_choice"],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {**DECLARED, "toolConfig": calling(mode="NONE")},
        [],
    ),
    "row 30 none of some": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("none", ("f",))),
        {**BOTH_DECLARED, "toolConfig": calling(mode="NONE")},
        [],
    ),
    "row 31 some must be called": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("required", ("f", "g"))),
        {**BOTH_DECLARED, "toolConfig": calling(mode="ANY", allowedFunctionNames=["f", "g"])},
        [],
    ),
    "row 31 some may be called": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("auto", ("f",))),
        {**BOTH_DECLARED, "toolConfig": calling(mode="VALIDATED", allowedFunctionNames=["f"])},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        DECLARED,
        ["parallel_tool_calls"],
    ),
    "row 32 parallel on": (target(), Request(tools=(TOOL,), parallel_tool_calls=True), DECLARED, []),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
    "row 49 web search": (target(), Request(tools=(SEARCH,)), {"tools": [{"googleSearch": {}}]}, []),
    "row 49 web search beside functions is announced": (
        target(),
        Request(tools=(SEARCH, TOOL), tool_choice=ToolChoice.REQUIRED),
        {
            "tools": [{"googleSearch": {}}, {"functionDeclarations": [F]}],
            "toolConfig": {**calling(mode="ANY"), "includeServerSideToolInvocations": True},
        },
        [],
    ),
    "row 49 web search beside functions on Vertex": (
        target(VERTEX),
        Request(tools=(SEARCH, TOOL)),
        {"tools": [{"googleSearch": {}}, {"functionDeclarations": [F]}]},
        [],
    ),
    "row 49 web search alone takes no choice": (
        target(),
        Request(tools=(SEARCH,), tool_choice=ToolChoice.AUTO),
        {"tools": [{"googleSearch": {}}]},
        [],
    ),
    "row 49 web search cannot be forced": (
        target(),
        Request(tools=(SEARCH,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [{"googleSearch": {}}]},
        ["tool_choice"],
    ),
    "row 49 no tool may be used": (
        target(),
        Request(tools=(SEARCH, TOOL), tool_choice=ToolChoice.NONE),
        {**DECLARED, "toolConfig": calling(mode="NONE")},
        [],
    ),
    "row 49 limits of a web search that have no place": (
        target(),
        Request(tools=(Tool.web_search(WebSearch(max_uses=2, user_location={"city": "Oslo"})).spec,)),
        {"tools": [{"googleSearch": {}}]},
        ["web_search", "web_search"],
    ),
    "row 49 domains left out on Vertex": (
        target(VERTEX),
        Request(tools=(Tool.web_search(WebSearch(blocked_domains=("x.com",))).spec,)),
        {"tools": [{"googleSearch": {"excludeDomains": ["x.com"]}}]},
        [],
    ),
    "the provider's other tools": (
        target(),
        Request(tools=({"type": "fileSearch", "fileSearch": {"fileSearchStoreNames": ["s"]}},)),
        {"tools": [{"fileSearch": {"fileSearchStoreNames": ["s"]}}]},
        [],
    ),
}


@pytest.mark.parametrize(("to", "request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_tools_and_choices(to: Target[GeminiProfile], request_: Request, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


READ_BACK = [
    name
    for name, (to, request, _, warned) in OFFERS.items()
    if to == target()
    and not warned
    and request.tools
    and not name.startswith(("row 25 no-", "row 30 none of", "row 49 no", "row 32"))
]


@pytest.mark.parametrize("name", [name for name in READ_BACK if name != "row 49 web search alone takes no choice"])
def test_tools_and_choices_are_read_back(name: str) -> None:
    _, request, fields, _ = OFFERS[name]
    assert read_request(body(WIRE_ASKED, **fields)) == replace(request, messages=(ASKED,))


REFUSED_TOOLS: dict[str, tuple[Target[GeminiProfile], tuple[JsonObject, ...], str]] = {
    "row 49 web search beside functions on an older model": (
        target(**OLD),
        (SEARCH, TOOL),
        "gemini/m has no place for built-in tools beside functions",
    ),
    "row 49 a search of some domains only": (
        target(VERTEX),
        (Tool.web_search(WebSearch(allowed_domains=("x.com",))).spec,),
        "vertex/m has no place for a web search limited to domains",
    ),
    "row 49 a search without some domains": (
        target(),
        (Tool.web_search(WebSearch(blocked_domains=("x.com",))).spec,),
        "gemini/m has no place for a web search without some domains",
    ),
    "a built-in tool of another provider": (
        target(),
        ({"type": "bash", "bash": {}},),
        "gemini/m has no place for the built-in tool 'bash'. It has codeExecution",
    ),
}


@pytest.mark.parametrize(("to", "tools", "words"), REFUSED_TOOLS.values(), ids=REFUSED_TOOLS)
def test_tools_that_cannot_be_offered_are_refused(
    to: Target[GeminiProfile], tools: tuple[JsonObject, ...], words: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        encoded(Request((ASKED,), tools), to)


@pytest.mark.parametrize("name", ["shop.orders:all", "_f", "a" * 128])
def test_row_26_names_the_wire_takes_stay(name: str) -> None:
    assert encoded(Request((ASKED,), ({"type": "function", "function": {"name": name}},))).names.encode(name) == name


@pytest.mark.parametrize("name", ["3d.plot", "-f", "shop/orders", "é", "a" * 129])
def test_row_26_a_name_the_wire_forbids_is_mapped_and_mapped_back(name: str) -> None:
    tool: JsonObject = {"type": "function", "function": {"name": name, "description": "d", "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert wire != name
    assert sent.body == body(
        WIRE_ASKED,
        tools=[{"functionDeclarations": [{**F, "name": wire}]}],
        toolConfig=calling(mode="ANY", allowedFunctionNames=[wire]),
    )
    response = gemini.decode(answer({"functionCall": {"name": wire}}), sent, target())
    assert response.choices[0].tool_calls[0].name == name


TREE: JsonObject = {
    "$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}},
    "$ref": "#/$defs/T",
}
SCHEMAS: dict[str, tuple[JsonObject, JsonObject, list[str]]] = {
    "const": ({"const": "a"}, {"enum": ["a"]}, []),
    "const null": ({"const": None}, {"type": "null"}, []),
    "null among the values": (
        {"enum": ["a", None], "description": "d"},
        {"description": "d", "anyOf": [{"enum": ["a"]}, {"type": "null"}]},
        [],
    ),
    "a list of types": (
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        [],
    ),
    "oneOf is anyOf here": ({"oneOf": [{"type": "string"}]}, {"oneOf": [{"type": "string"}]}, []),
    "allOf": ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, {"type": "integer", "minimum": 1}, []),
    "bounds, defaults and formats stay": (
        {"type": "integer", "minimum": 1, "maximum": 3, "default": 2, "format": "int32", "title": "N"},
        {"type": "integer", "minimum": 1, "maximum": 3, "default": 2, "format": "int32", "title": "N"},
        [],
    ),
    "what is read past is said in words": (
        {"type": "string", "pattern": "^a", "minLength": 1, "description": "d"},
        {"type": "string", "description": "d (pattern: ^a; minLength: 1)"},
        ["schema"],
    ),
    "a reference stands alone": (
        {"$ref": "#/$defs/A", "description": "d"},
        {"$ref": "#/$defs/A"},
        [],
    ),
}


@pytest.mark.parametrize(("schema", "sent", "warned"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas(schema: JsonObject, sent: JsonObject, warned: list[str]) -> None:
    definitions: JsonObject = {"$defs": {"A": {"type": "string"}}}
    whole: JsonObject = {"type": "object", "properties": {"a": schema}, **definitions}
    wire = encoded(Request((ASKED,), response_format=ResponseFormat(whole)))
    assert wire.body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"a": sent}, **definitions},
    }
    assert features(wire.warnings) == warned


def test_recursion_is_sent_if_optional_and_becomes_an_instruction_if_required() -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(TREE)))
    assert sent.body["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": TREE}
    endless = json.loads(json.dumps(TREE))
    endless["$defs"]["T"]["required"] = ["next"]
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(endless)))
    assert sent.body["generationConfig"] == {"responseMimeType": "application/json"}
    assert json.dumps(endless, separators=(",", ":")) in str(sent.body["systemInstruction"])
    (warning,) = sent.warnings
    assert re.search(
        "the output 'response'.* at .*recursive in required properties.* An instruction requests it", warning.detail
    )


def test_a_tool_whose_arguments_are_endless_is_refused_with_the_path() -> None:
    endless = json.loads(json.dumps(TREE))
    endless["$defs"]["T"]["required"] = ["next"]
    tool = Tool.from_schema("f", "d", {"type": "object", "properties": {"t": endless}, "$defs": endless["$defs"]})
    with pytest.raises(UnsupportedFeature, match=r"tool 'f' .* at /properties/t"):
        encoded(Request((ASKED,), tools=(tool.spec,)))


def test_a_tools_arguments_are_an_object_and_an_output_may_be_anything() -> None:
    items: JsonObject = {"type": "array", "items": {"type": "string"}}
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(items)))
    assert sent.body["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": items}
    with pytest.raises(UnsupportedFeature, match=r"tool 'f'.*the root must be an object"):
        encoded(Request((ASKED,), ({"type": "function", "function": {"name": "f", "parameters": items}},)))
