"""Chat completions: offered tools, choices and schemas of tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import (
    COMPATIBLE,
    DEEPSEEK,
    LLAMACPP,
    LM_STUDIO,
    MISTRAL,
    OLLAMA_CHAT,
    OPENAI,
    ChatProfile,
)
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_chat.reading import read_request
from tests.lm.codecs.openai_chat.wire import ASKED, OTHER, SCHEMA, TOOL, WIRE_ASKED, answer, body, encoded, target

NO_PARAMETERS: JsonObject = {"type": "function", "function": {"name": "f", "description": "d"}}
NOTHING: JsonObject = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}},
}
FORCED: JsonObject = {"type": "function", "function": {"name": "f"}}
ALLOWED = ToolChoice("required", ("f", "g"))
ALLOWED_WIRE: JsonObject = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "required", "tools": [FORCED, {"type": "function", "function": {"name": "g"}}]},
}
THIRD: JsonObject = {"type": "function", "function": {"name": "h", "description": "i", "parameters": SCHEMA}}
OFFERS: dict[str, tuple[Target[ChatProfile], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL,)), {"tools": [TOOL]}, []),
    "row 25 no-argument tool": (target(), Request(tools=(NOTHING,)), {"tools": [NOTHING]}, []),
    "row 25 tool without parameters": (target(), Request(tools=(NO_PARAMETERS,)), {"tools": [NO_PARAMETERS]}, []),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {"tools": [TOOL], "tool_choice": "auto"},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL], "tool_choice": "required"},
        [],
    ),
    "row 28 required on mistral": (
        target(MISTRAL),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL], "tool_choice": "any"},
        [],
    ),
    "row 28 required where thinking forbids it": (
        target(DEEPSEEK, default_effort="high", forced_choice_with_reasoning=False),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [TOOL, OTHER], "tool_choice": FORCED},
        [],
    ),
    "row 29 named where it cannot be forced": (
        target(OLLAMA_CHAT),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [TOOL], "tool_choice": "auto"},
        ["tool_choice"],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {"tools": [TOOL], "tool_choice": "none"},
        [],
    ),
    "row 30 none on mistral": (target(MISTRAL), Request(tools=(TOOL,), tool_choice=ToolChoice.NONE), {}, []),
    "row 30 none on LM Studio": (target(LM_STUDIO), Request(tools=(TOOL,), tool_choice=ToolChoice.NONE), {}, []),
    "row 31 allowed list": (
        target(),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [TOOL, OTHER, THIRD], "tool_choice": ALLOWED_WIRE},
        [],
    ),
    "row 31 allowed list on a compatible host": (
        target(COMPATIBLE),
        Request(tools=(TOOL, OTHER, THIRD), tool_choice=ALLOWED),
        {"tools": [TOOL, OTHER], "tool_choice": "required"},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [TOOL], "parallel_tool_calls": False},
        [],
    ),
    "row 32 parallel off without tools": (target(), Request(parallel_tool_calls=False), {}, []),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
    "row 32 parallel calls are not requested from llama.cpp": (
        target(LLAMACPP),
        Request(tools=(TOOL,)),
        {"tools": [TOOL]},
        [],
    ),
    "row 32 parallel on": (
        target(LLAMACPP),
        Request(tools=(TOOL,), parallel_tool_calls=True),
        {"tools": [TOOL], "parallel_tool_calls": True},
        [],
    ),
    **{
        f"row 29 named choice on a host that ignores names, {to.family}": (
            target(to),
            Request(tools=(TOOL, OTHER, THIRD), tool_choice=ToolChoice.named("f")),
            {"tools": [TOOL], "tool_choice": "required"},
            list[str](),
        )
        for to in (LLAMACPP, LM_STUDIO)
    },
}


@pytest.mark.parametrize(("to", "request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_encode_sends_tools_and_choices(
    to: Target[ChatProfile], request_: Request, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(replace(request_, messages=(ASKED,)), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


@pytest.mark.parametrize("name", [name for name, case in OFFERS.items() if case[0].profile is OPENAI and case[2]])
def test_reader_reads_tools_and_choices(name: str) -> None:
    _, request, fields, _ = OFFERS[name]
    assert read_request(body(WIRE_ASKED, **fields)) == replace(request, messages=(ASKED,))


def test_row_26_invalid_tool_name_is_mapped_both_ways() -> None:
    name = "shop.orders/" + "x" * 80
    tool: JsonObject = {"type": "function", "function": {"name": name, "description": "", "parameters": SCHEMA}}
    sent = encoded(Request((ASKED,), (tool,), ToolChoice.named(name)))
    wire = sent.names.encode(name)
    assert len(wire) <= 64
    assert sent.body["tools"] == [{"type": "function", "function": {"name": wire, "parameters": SCHEMA}}]
    assert sent.body["tool_choice"] == {"type": "function", "function": {"name": wire}}
    reply = answer({"tool_calls": [{"id": "c1", "function": {"name": wire, "arguments": "{}"}}]})
    assert openai_chat.decode(reply, sent, target()).choices[0].tool_calls[0].name == name


def test_row_49_web_search_is_refused_with_an_alternative() -> None:
    search: JsonObject = {"type": "web_search", "web_search": {}}
    with pytest.raises(UnsupportedFeature, match=r"openai-chat/m has no place for built-in tools.*Responses API"):
        encoded(Request((ASKED,), (search,)))


def test_tool_schema_is_sent_unchanged() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"const": 1}}}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}
    assert encoded(Request((ASKED,), (tool,))).body["tools"] == [tool]
