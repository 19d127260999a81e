"""Ollama: output formats, sampling, reasoning and other options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.ollama import OLLAMA_CLOUD, OllamaProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.ollama.reading import read_request
from tests.lm.codecs.ollama.wire import ABLE, ASKED, SCHEMA, TOOL, WIRE_ASKED, body, encoded, target

IN_WORDS = (
    "Reply with only a JSON value that matches this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)
FIELDS: dict[str, tuple[Target[OllamaProfile], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"options": {"num_predict": 50}}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_p": 0.5}, {"options": {"temperature": 0.0, "top_p": 0.5}}, []),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {"options": {"stop": ["a", "b"]}}, []),
    "row 42 seed": (target(), {"seed": 7}, {"options": {"seed": 7}}, []),
    "row 44 logprobs": (
        target(),
        {"logprobs": True, "top_logprobs": 3},
        {"logprobs": True, "top_logprobs": 3},
        [],
    ),
    "row 45 effort": (target(), {"reasoning": "high"}, {"think": "high"}, []),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"think": False}, []),
    "row 48 caching is automatic": (target(), {"prompt_cache": None}, {}, []),
    "row 50 extra body": (
        target(),
        {"seed": 7, "extra_body": {"options": {"mirostat": 1}, "verbosity": "low"}},
        {"options": {"seed": 7, "mirostat": 1}, "verbosity": "low"},
        [],
    ),
    "row 75 a caller who wants the prompt cut": (
        target(),
        {"truncate": True, "shift": True},
        {"truncate": True, "shift": True},
        [],
    ),
    "row 75 a caller who wants more context": (target(), {"num_ctx": 32768}, {"options": {"num_ctx": 32768}}, []),
    "the rest": (
        target(),
        {"top_k": 5, "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": 2, "repeat_penalty": 3, "keep_alive": "5m"},
        {
            "options": {"top_k": 5, "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": 2, "repeat_penalty": 3},
            "keep_alive": "5m",
        },
        [],
    ),
}  # fmt: skip
ONE_WAY: dict[str, tuple[Target[OllamaProfile], JsonObject, JsonObject, list[str]]] = {
    "row 41 one stop": (target(), {"stop": "a"}, {"options": {"stop": ["a"]}}, []),
    "row 43 two choices": (target(), {"n": 2}, {}, ["n"]),
    "row 43 one choice": (target(), {"n": 1}, {}, []),
    "row 45 minimal effort": (target(), {"reasoning": "minimal"}, {"think": "low"}, ["reasoning"]),
    "row 45 extra high effort": (target(), {"reasoning": "xhigh"}, {"think": "max"}, ["reasoning"]),
    "row 45 effort the model does not have": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "max"},
        {"think": "high"},
        ["reasoning"],
    ),
    "row 46 budget": (target(), {"reasoning": {"budget": 2000}}, {"think": "low"}, ["reasoning"]),
    "row 47 reasoning off where it cannot be": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "off"},
        {"think": "low"},
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not think": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 a cache hint": (target(), {"prompt_cache": {"ttl": "1h", "key": "k"}}, {}, []),
    "row 50 extra body over an option": (
        target(),
        {"seed": 7, "extra_body": {"options": {"seed": 8}}},
        {"options": {"seed": 8}},
        [],
    ),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), (FIELDS | ONE_WAY).values(), ids=FIELDS | ONE_WAY)
def test_encode_places_options(
    to: Target[OllamaProfile], options: JsonObject, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED) | fields
    assert features(sent.warnings) == warned


@pytest.mark.parametrize(("options", "fields"), [(case[1], case[2]) for case in FIELDS.values()], ids=FIELDS)
def test_reader_reads_options(options: JsonObject, fields: JsonObject) -> None:
    given: JsonObject = {name: value for name, value in options.items() if value is not None}
    assert read_request(body(WIRE_ASKED) | fields) == Request((ASKED,), options=given)


@pytest.mark.parametrize("think", [True, "loud"])
def test_reader_keeps_unknown_think_values(think: JsonValue) -> None:
    assert read_request(body(WIRE_ASKED, think=think)).options == {"extra_body": {"think": think}}


def test_row_43_encode_repeats_the_request_for_each_choice() -> None:
    assert encoded(Request((ASKED,), options={"n": 2})).repeat == 2
    assert encoded(Request((ASKED,))).repeat == 1


@pytest.mark.parametrize("option", ["user", "metadata", "service_tier", "temprature"])
def test_unknown_option_is_refused(option: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {option!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options={option: "x"}))
    assert caught.value.option == option


def test_row_45_effort_is_refused_when_the_model_does_not_reason() -> None:
    with pytest.raises(UnsupportedFeature, match="no place for reasoning effort 'high'"):
        encoded(Request((ASKED,), options={"reasoning": "high"}), target(thinking="none"))


@pytest.mark.parametrize("schema", [SCHEMA, {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": SCHEMA}}])
def test_row_34_encode_sends_the_schema_and_row_35_no_name(schema: JsonObject) -> None:
    request = Request((ASKED,), response_format=ResponseFormat(schema))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, format=schema)
    assert sent.warnings == ()
    assert read_request(sent.body) == request
    named = replace(request, response_format=ResponseFormat(schema, "my answer"))
    assert encoded(named).body == sent.body


def test_response_format_without_a_schema_is_json_mode() -> None:
    request = Request((ASKED,), response_format=ResponseFormat())
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, format="json")
    assert read_request(sent.body) == request


def test_row_36_schema_gets_a_warning_when_the_host_does_not_enforce_schemas() -> None:
    sent = encoded(
        Request((ASKED,), response_format=ResponseFormat(SCHEMA)),
        target(OLLAMA_CLOUD, able=replace(ABLE, schema_on_demand=True)),
    )
    assert sent.body == body(WIRE_ASKED, format=SCHEMA)
    assert features(sent.warnings) == ["response_format"]


@pytest.mark.parametrize(
    ("able", "wanted", "words", "fields"),
    [
        (Capabilities(), ResponseFormat(SCHEMA), IN_WORDS, {}),
        (Capabilities(json_object=True), ResponseFormat(SCHEMA), IN_WORDS, {"format": "json"}),
        (Capabilities(), ResponseFormat(), "Reply with only a JSON object.", {}),
    ],
)
def test_row_36_prompt_asks_for_the_format_when_the_host_has_no_structured_output(
    able: Capabilities, wanted: ResponseFormat, words: str, fields: JsonObject
) -> None:
    sent = encoded(Request((Message.system("S"), ASKED), response_format=wanted), target(able=able))
    assert sent.body == body({"role": "system", "content": f"S\n\n{words}"}, WIRE_ASKED, **fields)
    assert features(sent.warnings) == ["response_format"]
    alone = encoded(Request((ASKED,), response_format=wanted), target(able=able))
    assert alone.body == body({"role": "system", "content": words}, WIRE_ASKED, **fields)


def test_row_37_schema_is_in_the_prompt_with_tools_and_in_format_without_tools() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request)
    assert sent.body == body({"role": "system", "content": IN_WORDS}, WIRE_ASKED, tools=[TOOL])
    assert features(sent.warnings) == ["response_format"]
    last = encoded(replace(request, tool_choice=ToolChoice.NONE))
    assert last.body == body(WIRE_ASKED, format=SCHEMA)
    assert last.warnings == ()


def test_row_1_path_is_api_chat() -> None:
    assert encoded(Request((ASKED,))).path == "/api/chat"


def test_row_64_stream_field_is_always_sent() -> None:
    assert encoded(Request((ASKED,))).body["stream"] is False
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, stream=True)


def test_row_75_encode_disables_silent_truncation() -> None:
    sent = encoded(Request((ASKED,)))
    assert (sent.body["truncate"], sent.body["shift"]) == (False, False)
