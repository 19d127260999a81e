"""Anthropic Messages: output in a form, sampling, reasoning and the other options."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.errors import InputError, UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.anthropic import ANTHROPIC, COMPATIBLE_MESSAGES, MessagesProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.anthropic.reading import read_request
from tests.lm.codecs.anthropic.wire import (
    ABLE,
    ALWAYS_ON,
    ASKED,
    BY_BUDGET,
    CLOSED,
    SCHEMA,
    TOOL,
    WIRE_ASKED,
    WIRE_TOOL,
    body,
    encoded,
    target,
    text,
)
from tests.lm.codecs.encoding import features

ADAPTIVE: JsonObject = {"type": "adaptive", "display": "summarized"}
FIELDS: dict[str, tuple[Target[MessagesProfile], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"max_tokens": 50}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {"max_tokens": 4096}, []),
    "row 39 max tokens unset, by the model": (target(default_max_tokens=512), {}, {"max_tokens": 512}, []),
    "row 39 max tokens unset, within what the model writes": (
        target(able=replace(ABLE, max_output_tokens=1000)),
        {},
        {"max_tokens": 1000},
        [],
    ),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_k": 5}, {"temperature": 0.0, "top_k": 5}, []),
    "row 40 temperature on a model without sampling": (
        target(sampling="never"),
        {"temperature": 0.0, "top_p": 0.5, "top_k": 5},
        {},
        ["temperature", "top_p", "top_k"],
    ),
    "row 40 top_p alone on a model without sampling": (target(sampling="never"), {"top_p": 0.5}, {}, ["top_p"]),
    "row 40 temperature since the version of 2026-10-21": (
        target(replace(ANTHROPIC, version="2026-10-21")),
        {"temperature": 1.0},
        {},
        ["temperature"],
    ),
    "row 40 temperature on a model that thinks": (
        target(sampling="unless_reasoning"),
        {"temperature": 0.0, "reasoning": "low"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["temperature"],
    ),
    "row 40 temperature with thinking switched off": (
        target(sampling="unless_reasoning", default_effort="high"),
        {"temperature": 0.0, "reasoning": "off"},
        {"temperature": 0.0, "thinking": {"type": "disabled"}},
        [],
    ),
    "row 40 temperature and top_p": (target(), {"top_p": 0.5, "temperature": 0.1}, {"temperature": 0.1}, ["top_p"]),
    "row 40 top_p alone": (target(), {"top_p": 0.5, "temperature": None}, {"top_p": 0.5}, []),
    "row 40 temperature and top_p on a host that takes both": (
        target(COMPATIBLE_MESSAGES),
        {"top_p": 0.5, "temperature": 0.1},
        {"temperature": 0.1, "top_p": 0.5},
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {"stop_sequences": ["a", "b"]}, []),
    "row 41 stop as one text": (target(), {"stop": "a"}, {"stop_sequences": ["a"]}, []),
    "row 41 stop of white space": (target(), {"stop": ["\n\n", "a"]}, {"stop_sequences": ["a"]}, ["stop"]),
    "row 41 stop on a model without": (target(stop=False), {"stop": "a"}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, {}, ["seed"]),
    "row 43 two choices": (target(), {"n": 2}, {}, ["n"]),
    "row 43 one choice": (target(), {"n": 1}, {}, []),
    "row 45 effort": (
        target(),
        {"reasoning": "high"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "high"}},
        [],
    ),
    "row 45 effort the wire does not have": (
        target(),
        {"reasoning": "minimal"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 45 effort the model does not have": (
        ALWAYS_ON,
        {"reasoning": "xhigh"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "high"}},
        ["reasoning"],
    ),
    "row 45 effort on a model with budgets": (
        BY_BUDGET,
        {"reasoning": "medium"},
        {"max_tokens": 8192, "thinking": {"type": "enabled", "budget_tokens": 4096}},
        [],
    ),
    "row 45 effort within the caller's limit": (
        BY_BUDGET,
        {"reasoning": "high", "max_tokens": 4000},
        {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}},
        ["reasoning"],
    ),
    "row 45 effort that has no room": (
        BY_BUDGET,
        {"reasoning": "high", "max_tokens": 1024},
        {"max_tokens": 1024, "thinking": {"type": "disabled"}},
        ["reasoning"],
    ),
    "row 46 budget": (
        BY_BUDGET,
        {"reasoning": {"budget": 2000}, "max_tokens": 4000},
        {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}},
        [],
    ),
    "row 46 budget beyond the caller's limit": (
        BY_BUDGET,
        {"reasoning": {"budget": 2000}, "max_tokens": 1500},
        {"max_tokens": 1500, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        ["reasoning"],
    ),
    "row 46 budget below the least": (
        BY_BUDGET,
        {"reasoning": {"budget": 7}},
        {"max_tokens": 5120, "thinking": {"type": "enabled", "budget_tokens": 1024}},
        ["reasoning"],
    ),
    "row 46 budget beyond what the model writes": (
        target(able=replace(ABLE, max_output_tokens=8000), thinking="budget"),
        {"reasoning": {"budget": 20000}},
        {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 4000}},
        ["reasoning"],
    ),
    "row 46 budget on a model with efforts": (
        target(),
        {"reasoning": {"budget": 2000}},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"thinking": {"type": "disabled"}}, []),
    "row 47 reasoning off on a model with budgets": (
        BY_BUDGET,
        {"reasoning": "off"},
        {"thinking": {"type": "disabled"}},
        [],
    ),
    "row 47 reasoning off on a model that always thinks": (
        ALWAYS_ON,
        {"reasoning": "off"},
        {"thinking": ADAPTIVE, "output_config": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not think": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 cache hint": (target(), {"prompt_cache": {}}, {"cache_control": {"type": "ephemeral"}}, []),
    "row 48 cache hint for an hour": (
        target(),
        {"prompt_cache": {"ttl": "1h"}},
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
        [],
    ),
    "row 48 no cache hint": (target(), {"prompt_cache": False}, {}, []),
    "row 48 cache hint on a host without marks": (target(COMPATIBLE_MESSAGES), {"prompt_cache": {}}, {}, []),
    "row 50 extra body": (
        target(),
        {"temperature": 1.0, "extra_body": {"temperature": 0.5, "inference_geo": "us"}},
        {"temperature": 0.5, "inference_geo": "us"},
        [],
    ),
    "row 50 extra body beside ours": (
        target(),
        {"reasoning": "high", "extra_body": {"thinking": {"display": "omitted"}}},
        {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}},
        [],
    ),
    "the rest": (
        target(),
        {"user": "u", "service_tier": "auto"},
        {"metadata": {"user_id": "u"}, "service_tier": "auto"},
        [],
    ),
    "metadata": (target(), {"metadata": {"user_id": "u"}}, {"metadata": {"user_id": "u"}}, []),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options(to: Target[MessagesProfile], options: JsonObject, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED) | fields
    assert features(sent.warnings) == warned


READ_BACK: dict[str, JsonObject] = {
    "row 38 max tokens": {"max_tokens": 50},
    "row 40 sampling": {"max_tokens": 50, "temperature": 0.5, "top_k": 3},
    "row 41 stop": {"max_tokens": 50, "stop": ["a"]},
    "row 45 effort": {"max_tokens": 50, "reasoning": "high"},
    "row 45 effort and its display": {
        "max_tokens": 50,
        "reasoning": "high",
        "extra_body": {"thinking": {"display": "omitted"}},
    },
    "row 45 effort alone": {"max_tokens": 50, "extra_body": {"output_config": {"effort": "low"}}},
    "row 45 thinking alone": {"max_tokens": 50, "extra_body": {"thinking": {"type": "adaptive"}}},
    "row 47 reasoning off": {"max_tokens": 50, "reasoning": "off"},
    "row 48 cache hint": {"max_tokens": 50, "prompt_cache": {}},
    "row 48 cache hint for an hour": {"max_tokens": 50, "prompt_cache": {"ttl": "1h"}},
    "row 48 another mark": {"max_tokens": 50, "extra_body": {"cache_control": {"type": "new"}}},
    "row 50 extra body": {"max_tokens": 50, "extra_body": {"speed": "fast", "container": "c"}},
    "the rest": {"max_tokens": 50, "user": "u", "service_tier": "auto"},
}


@pytest.mark.parametrize("options", READ_BACK.values(), ids=READ_BACK)
def test_options_are_read_back(options: JsonObject) -> None:
    request = Request((ASKED,), options=options)
    assert read_request(encoded(request).body) == request


def test_row_46_a_budget_is_read_back() -> None:
    request = Request((ASKED,), options={"max_tokens": 4000, "reasoning": {"budget": 2000}})
    assert read_request(encoded(request, BY_BUDGET).body) == request


def test_row_43_the_request_is_sent_as_often_as_choices_are_wanted() -> None:
    assert encoded(Request((ASKED,), options={"n": 3})).repeat == 3
    assert encoded(Request((ASKED,))).repeat == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({"logprobs": True}, "logprobs", id="row 44 logprobs"),
        pytest.param({"top_logprobs": 3}, "top_logprobs", id="row 44 top_logprobs"),
        pytest.param({"presence_penalty": 1}, "presence_penalty", id="an option this wire has no place for"),
    ],
)
def test_an_option_without_a_place_is_refused(options: JsonObject, named: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {named!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options=options))
    assert caught.value.option == named


def test_metadata_other_than_user_id_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="metadata 'team'"):
        encoded(Request((ASKED,), options={"metadata": {"team": "t"}}))
    with pytest.raises(InputError, match="metadata must be an object"):
        encoded(Request((ASKED,), options={"metadata": "t"}))


def test_row_45_a_model_that_does_not_think_refuses_an_effort() -> None:
    with pytest.raises(UnsupportedFeature, match="reasoning effort 'high'"):
        encoded(Request((ASKED,), options={"reasoning": "high"}), target(thinking="none"))


def test_row_1_the_path_is_under_a_base_without_v1_and_row_2_the_version_is_a_header() -> None:
    sent = encoded(Request((ASKED,)))
    assert sent.path == "/v1/messages"
    assert sent.headers == {"anthropic-version": "2023-06-01"}
    newer = replace(ANTHROPIC, version="2026-10-21")
    assert encoded(Request((ASKED,)), target(newer)).headers == {"anthropic-version": "2026-10-21"}


def test_row_50_beta_header_is_sent_with_the_version() -> None:
    sent = encoded(Request((ASKED,), options={"extra_headers": {"anthropic-beta": "a,b"}}))
    assert sent.headers == {"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"}


def test_row_64_a_stream_is_switched_on() -> None:
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, stream=True)


FORMAT: JsonObject = {"format": {"type": "json_schema", "schema": CLOSED}}


def test_row_34_structured_output_and_row_35_its_name_is_dropped() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(CLOSED, "answer"))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, output_config=FORMAT)
    assert sent.warnings == ()
    assert read_request(sent.body).response_format == ResponseFormat(CLOSED)


def test_row_34_structured_output_is_sent_with_an_effort() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(SCHEMA), options={"reasoning": "low"})
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, thinking=ADAPTIVE, output_config={**FORMAT, "effort": "low"})
    read = read_request(sent.body)
    assert (read.response_format, read.options["reasoning"]) == (ResponseFormat(CLOSED), "low")
    assert "extra_body" not in read.options


def test_row_37_structured_output_and_tools_go_together() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    assert encoded(request).body == body(WIRE_ASKED, tools=[WIRE_TOOL], output_config=FORMAT)
    apart = encoded(request, target(able=replace(ABLE, tools_with_json_schema=False)))
    assert apart.body == body(WIRE_ASKED, tools=[WIRE_TOOL], system=in_words(SCHEMA))
    assert features(apart.warnings) == ["response_format"]


def in_words(schema: JsonObject) -> str:
    text = json.dumps(schema, separators=(",", ":"))
    return f"Reply with only a JSON value that matches this JSON Schema:\n{text}"


def test_row_36_a_model_without_structured_output_is_asked_in_words() -> None:
    request = Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA))
    to = target(able=Capabilities())
    sent = encoded(request, to)
    assert sent.body == body(WIRE_ASKED, system=f"S\n\n{in_words(SCHEMA)}")
    assert features(sent.warnings) == ["response_format"]
    blocks = Message("system", (TextPart("S"), TextPart("T")))
    sent = encoded(replace(request, messages=(blocks, ASKED)), to)
    assert sent.body == body(WIRE_ASKED, system=[text("S"), text("T"), text(in_words(SCHEMA))])


def test_row_36_any_object_is_asked_for_in_words() -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat()))
    assert sent.body == body(WIRE_ASKED, system="Reply with only a JSON object.")
    assert features(sent.warnings) == ["response_format"]


COMPILED: dict[str, tuple[JsonObject, JsonObject, int]] = {
    "objects are closed": ({"type": "object", "properties": {"a": SCHEMA}}, {"a": CLOSED}, 0),
    "oneOf is anyOf": (
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"const": 1}]}}},
        {"a": {"anyOf": [{"type": "string"}, {"const": 1}]}},
        0,
    ),
    "a list of types is anyOf": (
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        0,
    ),
    "limits are said in words": (
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "description": "How many."}}},
        {"a": {"type": "integer", "description": "How many. (minimum: 1)"}},
        1,
    ),
    "formats and counts the provider knows stay": (
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "format": "date"},
                "b": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
            },
        },
        {
            "a": {"type": "string", "format": "date"},
            "b": {"type": "array", "items": {"type": "string", "description": "(format: binary)"}, "minItems": 1},
        },
        1,
    ),
}


@pytest.mark.parametrize(("schema", "properties", "lost"), COMPILED.values(), ids=COMPILED)
def test_an_output_schema_is_compiled_to_what_the_wire_takes(
    schema: JsonObject, properties: JsonObject, lost: int
) -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(schema)))
    compiled: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    assert sent.body["output_config"] == {"format": {"type": "json_schema", "schema": compiled}}
    assert features(sent.warnings) == ["schema"] * lost


NOT_SENT: dict[str, tuple[JsonObject, str]] = {
    "an open map": (
        {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}},
        "at /properties/a it is a map",
    ),
    "an open root": ({"type": "object"}, "a map of undeclared keys"),
    "a root with further keys": ({**SCHEMA, "additionalProperties": True}, "a map of undeclared keys"),
    "recursion": (
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        "at /properties/a it is recursive",
    ),
    "no type": ({"type": "object", "properties": {"a": {}}}, "at /properties/a it has no type"),
}


@pytest.mark.parametrize(("schema", "why"), NOT_SENT.values(), ids=NOT_SENT)
def test_output_schema_that_would_lose_data_becomes_an_instruction(schema: JsonObject, why: str) -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(schema)))
    assert sent.body == body(WIRE_ASKED, system=in_words(schema))
    assert features(sent.warnings) == ["response_format"]
    assert why in sent.warnings[0].detail
