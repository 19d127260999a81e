"""Structured output on every wire: the form that is sent, what replaces it, and what a required format refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs import anthropic, gemini, ollama, openai_chat, openai_responses
from sigwire.lm.codecs.anthropic import ANTHROPIC
from sigwire.lm.codecs.gemini import GEMINI
from sigwire.lm.codecs.ollama.tables import OLLAMA, OLLAMA_CLOUD
from sigwire.lm.codecs.openai_chat.profiles import DEEPSEEK, OPENAI
from sigwire.lm.codecs.openai_responses.profiles import OPENAI as RESPONSES
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target

WIRES: dict[str, tuple[Any, Any]] = {
    "chat": (openai_chat, OPENAI),
    "chat without schemas": (openai_chat, DEEPSEEK),
    "responses": (openai_responses, RESPONSES),
    "anthropic": (anthropic, ANTHROPIC),
    "gemini": (gemini, GEMINI),
    "ollama": (ollama, OLLAMA),
    "ollama cloud": (ollama, OLLAMA_CLOUD),
}
ABLE = Capabilities(native_tools=True, json_schema=True, json_object=True, tools_with_json_schema=True)
PLAIN: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
MAP: JsonObject = {
    "type": "object",
    "properties": {"m": {"type": "object", "additionalProperties": {"type": "integer"}}},
}
OPTIONAL: JsonObject = {"type": "object", "properties": {"kid": {"$ref": "#"}}}
ENDLESS: JsonObject = {"type": "object", "properties": {"kid": {"$ref": "#"}}, "required": ["kid"]}
SCHEMAS = {"plain": PLAIN, "map": MAP, "optional recursion": OPTIONAL, "required recursion": ENDLESS}
# Hosts that enforce no schema without a demand: what they enforce on one.
ON_DEMAND = {
    "chat": {"plain", "required recursion"},
    "responses": {"plain", "required recursion"},
    "ollama cloud": set[str](),
}
# What is sent instead of a schema, by wire; every other schema is sent.
REPLACED: dict[tuple[str, str], str] = {
    **{("chat without schemas", name): "native_json" for name in SCHEMAS},
    **{("anthropic", name): "prompt" for name in SCHEMAS if name != "plain"},
    ("gemini", "required recursion"): "native_json",
}
NOT_ENFORCED = "ollama cloud"


def encoded(wire: str, wanted: ResponseFormat, able: Capabilities | None = None) -> EncodedRequest:
    codec, profile = WIRES[wire]
    able = able or replace(ABLE, schema_on_demand=wire in ON_DEMAND)
    sent: EncodedRequest = codec.encode(
        Request((Message.user("q"),), response_format=wanted), Target("p", "m", profile, able)
    )
    return sent


def is_native(sent: EncodedRequest) -> bool:
    return any(f'"{key}"' in json.dumps(sent.body) for key in ("json_schema", "responseJsonSchema", "properties"))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_sent_or_replaced_with_a_warning_that_has_the_mode(wire: str, name: str) -> None:
    sent = encoded(wire, ResponseFormat(SCHEMAS[name]))
    instead = REPLACED.get((wire, name))
    about = [warning.sent for warning in sent.warnings if warning.feature == "response_format"]
    assert about == ([instead] if instead else [None] if wire == NOT_ENFORCED else [])
    assert ("matches this JSON Schema" in json.dumps(sent.body)) == (instead is not None)
    assert is_native(sent) or instead is not None


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", SCHEMAS)
def test_required_schema_is_sent_or_refused(wire: str, name: str) -> None:
    required = ResponseFormat(SCHEMAS[name], required=True)
    if (wire, name) in REPLACED or name not in ON_DEMAND.get(wire, SCHEMAS):
        with pytest.raises(UnsupportedFeature, match="requires it, so nothing was sent"):
            encoded(wire, required)
    elif wire in ON_DEMAND:
        assert '"strict": true' in json.dumps(encoded(wire, required).body)
    else:
        assert encoded(wire, required).body == encoded(wire, ResponseFormat(SCHEMAS[name])).body


BY_DEFAULT: JsonObject = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 0, "default": 5, "description": "how many"},
        "kind": {"$ref": "#/$defs/Kind", "default": "a"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    },
    "$defs": {"Kind": {"oneOf": [{"const": "a"}, {"const": "b"}]}},
}
BY_DEMAND: JsonObject = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 0, "description": "how many (default: 5)"},
        "kind": {"$ref": "#/$defs/Kind"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["n", "kind", "note"],
    "additionalProperties": False,
    "$defs": {"Kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
}


def test_schema_that_is_demanded_of_openai_is_made_to_fit_without_loss() -> None:
    chat = encoded("chat", ResponseFormat(BY_DEFAULT, required=True))
    named: JsonObject = {"name": "response", "schema": BY_DEMAND, "strict": True}
    assert (chat.body["response_format"], chat.warnings) == ({"type": "json_schema", "json_schema": named}, ())
    responses = encoded("responses", ResponseFormat(BY_DEFAULT, required=True))
    assert responses.body["text"] == {"format": {"type": "json_schema", **named}}
    assert encoded("chat", ResponseFormat(BY_DEFAULT)).body["response_format"] == {
        "type": "json_schema", "json_schema": {"name": "response", "schema": BY_DEFAULT},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "string", "minLength": 3}, "at /properties/x minLength cannot be enforced"),
        ({"type": "string", "pattern": "^(?!a)"}, "at /properties/x pattern cannot be enforced"),
        ({"type": "string", "format": "uri"}, "at /properties/x format cannot be enforced"),
        ({"type": "array", "prefixItems": [PLAIN]}, "at /properties/x prefixItems cannot be enforced"),
        ({"type": "object", "properties": {"y": PLAIN}}, "at /properties/x 'y' may be left out and has no default"),
        ({}, "at /properties/x it has no type"),
    ],
)
def test_schema_that_openai_cannot_enforce_is_refused_with_its_place(schema: JsonObject, place: str) -> None:
    whole: JsonObject = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    assert encoded("chat", ResponseFormat(whole)).warnings == ()
    with pytest.raises(UnsupportedFeature, match=place):
        encoded("chat", ResponseFormat(whole, required=True))


@pytest.mark.parametrize("wire", WIRES)
def test_required_schema_is_refused_on_a_model_without_schemas(wire: str) -> None:
    with pytest.raises(UnsupportedFeature, match="p/m has no structured output by schema here"):
        encoded(wire, ResponseFormat(PLAIN, required=True), Capabilities(json_object=True))


@pytest.mark.parametrize("wire", WIRES)
def test_required_object_is_refused_instead_of_replaced(wire: str) -> None:
    with pytest.raises(UnsupportedFeature, match="p/m has no JSON output without a schema here"):
        encoded(wire, ResponseFormat(required=True), Capabilities())


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_root_that_the_host_refuses_is_refused(wire: str) -> None:
    with pytest.raises(UnsupportedFeature, match="the root must be an object schema"):
        encoded(wire, ResponseFormat({"type": "array", "items": PLAIN}))
