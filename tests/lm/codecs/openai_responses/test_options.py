"""OpenAI Responses: output formats, sampling, reasoning and other options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.errors import UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.openai_responses import COMPATIBLE, ResponsesProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_responses.reading import read_request
from tests.lm.codecs.openai_responses.wire import (
    ABLE,
    ANSWERED,
    ASKED,
    CALL,
    SCHEMA,
    TOOL,
    WIRE_ASKED,
    WIRE_CALL,
    WIRE_OK,
    WIRE_TOOL,
    body,
    encoded,
    target,
)

FORMAT: JsonObject = {"format": {"type": "json_schema", "name": "response", "schema": SCHEMA}}
IN_WORDS = (
    "Reply with only a JSON value that matches this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)
REASONS = replace(ABLE, reasoning=True)
ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
FIELDS: dict[str, tuple[Target[ResponsesProfile], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"max_output_tokens": 50}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_p": 0.5}, {"temperature": 0.0, "top_p": 0.5}, []),
    "row 40 temperature on a model that reasons": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {"temperature": 0.0, "top_p": 0.5},
        {},
        ["temperature", "top_p"],
    ),
    "row 40 temperature with reasoning switched off": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {"temperature": 0.0, "reasoning": "off"},
        {"reasoning": {"effort": "none"}, "temperature": 0.0},
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, {}, ["seed"]),
    "row 43 two choices": (target(), {"n": 2}, {}, ["n"]),
    "row 43 one choice": (target(), {"n": 1}, {}, []),
    "row 44 logprobs": (
        target(),
        {"logprobs": True, "top_logprobs": 3},
        {"include": [LOGPROBS], "top_logprobs": 3},
        [],
    ),
    "row 44 no logprobs": (target(), {"logprobs": False}, {}, []),
    "row 44 no logprobs on a model that reasons": (
        target(sampling="never"),
        {"logprobs": False, "top_logprobs": 0},
        {},
        [],
    ),
    "row 44 logprobs with reasoning switched off": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {"logprobs": True, "reasoning": "off"},
        {"include": [LOGPROBS], "reasoning": {"effort": "none"}},
        [],
    ),
    "row 45 effort": (target(), {"reasoning": "high"}, {"reasoning": {"effort": "high"}}, []),
    "row 45 effort with tools": (
        target(tools_with_reasoning=False),
        {"reasoning": "high"},
        {"reasoning": {"effort": "high"}},
        [],
    ),
    "row 45 effort the model does not have": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "max"},
        {"reasoning": {"effort": "high"}},
        ["reasoning"],
    ),
    "row 46 budget": (target(), {"reasoning": {"budget": 2000}}, {"reasoning": {"effort": "low"}}, ["reasoning"]),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"reasoning": {"effort": "none"}}, []),
    "row 47 reasoning off where it cannot be": (
        target(efforts=("low", "high"), default_effort="high"),
        {"reasoning": "off"},
        {"reasoning": {"effort": "low"}},
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not reason": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 16 reasoning is asked for in a form that can be sent back": (
        target(able=REASONS),
        {"logprobs": True},
        {"include": [ENCRYPTED, LOGPROBS]},
        [],
    ),
    "row 48 caching is automatic": (target(), {"prompt_cache": {"ttl": "1h"}}, {}, []),
    "row 48 a cache key": (target(), {"prompt_cache": {"key": "k"}}, {"prompt_cache_key": "k"}, []),
    "row 50 extra body": (
        target(),
        {"temperature": 1.0, "reasoning": "low", "extra_body": {"temperature": 0.5, "reasoning": {"summary": "auto"}}},
        {"temperature": 0.5, "reasoning": {"effort": "low", "summary": "auto"}},
        [],
    ),
    "row 50 the caller may have answers stored": (target(), {"extra_body": {"store": True}}, {"store": True}, []),
    "row 75 truncation if asked": (target(), {"extra_body": {"truncation": "auto"}}, {"truncation": "auto"}, []),
    "verbosity": (target(), {"verbosity": "low"}, {"text": {"verbosity": "low"}}, []),
    "the rest": (
        target(),
        {"user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        {"user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        [],
    ),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_encode_places_options(
    to: Target[ResponsesProfile], options: JsonObject, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


READ_BACK: dict[str, tuple[JsonObject, JsonObject]] = {
    "row 38 max tokens": ({"max_output_tokens": 50}, {"max_tokens": 50}),
    "row 44 logprobs": ({"include": [LOGPROBS], "top_logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
    "row 16 encrypted reasoning goes without saying": ({"include": [ENCRYPTED]}, {}),
    "row 45 effort": (
        {"reasoning": {"effort": "high", "summary": "auto"}},
        {"reasoning": "high", "extra_body": {"reasoning": {"summary": "auto"}}},
    ),
    "row 47 reasoning off": ({"reasoning": {"effort": "none"}}, {"reasoning": "off"}),
    "row 50 what is not modelled": (
        {"truncation": "auto", "include": [ENCRYPTED, "web_search_call.action.sources"]},
        {"extra_body": {"truncation": "auto", "include": [ENCRYPTED, "web_search_call.action.sources"]}},
    ),
    "responses are stored by default": ({"store": None}, {"extra_body": {"store": True}}),
    "verbosity beside a format": (
        {"text": {"format": {"type": "text"}, "verbosity": "low"}},
        {"extra_body": {"text": {"format": {"type": "text"}, "verbosity": "low"}}},
    ),
}


@pytest.mark.parametrize(("fields", "options"), READ_BACK.values(), ids=READ_BACK)
def test_reader_reads_options(fields: JsonObject, options: JsonObject) -> None:
    assert read_request(body(WIRE_ASKED, **fields)) == Request((ASKED,), options=options)


def test_reader_reads_text_input_as_a_user_turn() -> None:
    read = read_request({"model": "m", "input": "q", "instructions": "S", "store": False})
    assert read == Request((Message.system("S"), ASKED))


def test_reader_keeps_two_plain_texts_of_the_model_separate() -> None:
    wire = body(*({"role": "assistant", "content": text} for text in "ab"), WIRE_CALL, WIRE_OK)
    read = read_request(wire)
    assert read.messages == (Message.assistant("a"), Message.assistant("b", [CALL]), ANSWERED)
    assert encoded(read).body == wire


def test_row_43_encode_repeats_the_request_for_two_choices() -> None:
    assert encoded(Request((ASKED,), options={"n": 2})).repeat == 2
    assert encoded(Request((ASKED,))).repeat == 1


@pytest.mark.parametrize("option", ["top_k", "frequency_penalty", "presence_penalty", "temprature"])
def test_unknown_option_is_refused(option: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {option!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options={option: 1}))
    assert caught.value.option == option


@pytest.mark.parametrize("options", [{"logprobs": True}, {"top_logprobs": 3}])
def test_row_44_logprobs_are_refused_when_the_model_reasons(options: JsonObject) -> None:
    for to in (target(sampling="never"), target(sampling="unless_reasoning", default_effort="medium")):
        with pytest.raises(UnsupportedFeature, match=r"openai-responses/m has no place for log probabilities.*'off'"):
            encoded(Request((ASKED,), options=options), to)


def test_option_that_the_host_rejects_is_refused() -> None:
    strict = target(replace(COMPATIBLE, options={"metadata": None}))
    with pytest.raises(UnsupportedOption, match="no option 'metadata'"):
        encoded(Request((ASKED,), options={"metadata": {}}), strict)


def test_row_48_system_text_gets_a_cache_mark_when_the_model_takes_marks() -> None:
    request = Request((Message.system("S"), ASKED), options={"prompt_cache": {}})
    text: JsonObject = {"type": "input_text", "text": "S", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert encoded(request, target(cache_breakpoints=True)).body == body(
        {"role": "developer", "content": [text]}, WIRE_ASKED, prompt_cache_options={"mode": "explicit"}
    )


def test_row_34_encode_sends_the_schema_and_row_35_its_name() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, text=FORMAT)
    assert read_request(sent.body) == request
    named = encoded(replace(request, response_format=ResponseFormat(SCHEMA, "my answer"))).body["text"]
    assert named == {"format": {"type": "json_schema", "name": "my_answer", "schema": SCHEMA}}


def test_strict_format_stays_strict_when_read() -> None:
    strict: JsonObject = {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}
    request = read_request(body(WIRE_ASKED, text=strict))
    assert request.response_format == ResponseFormat(SCHEMA, "a")
    assert encoded(request).body == body(WIRE_ASKED, text=strict)


def test_output_schema_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"schema of the output 'response'.*the root must be an object"):
        encoded(Request((ASKED,), response_format=ResponseFormat({"type": "array"})))


def test_response_format_without_a_schema_is_json_mode_with_the_system_turn_in_the_input() -> None:
    request = Request((Message.system("Answer in JSON."), ASKED), response_format=ResponseFormat())
    sent = encoded(request)
    assert sent.body == body(
        {"role": "developer", "content": "Answer in JSON."}, WIRE_ASKED, text={"format": {"type": "json_object"}}
    )
    assert read_request(sent.body) == request


def test_row_36_prompt_asks_for_the_format_when_the_model_has_no_schemas() -> None:
    request = Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request, target(able=Capabilities(json_object=True)))
    assert sent.body == body(
        {"role": "developer", "content": f"S\n\n{IN_WORDS}"}, WIRE_ASKED, text={"format": {"type": "json_object"}}
    )
    assert features(sent.warnings) == ["response_format"]
    without = encoded(replace(request, messages=(ASKED,)), target(able=Capabilities()))
    assert without.body == body(WIRE_ASKED, instructions=IN_WORDS)


def test_row_37_structured_output_is_sent_with_tools_when_the_model_takes_both() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    assert encoded(request).body == body(WIRE_ASKED, tools=[WIRE_TOOL], text=FORMAT)
    apart = encoded(request, target(able=Capabilities(json_schema=True)))
    assert apart.body == body(WIRE_ASKED, tools=[WIRE_TOOL], instructions=IN_WORDS)
    assert features(apart.warnings) == ["response_format"]


def test_row_1_path_continues_a_base_url_that_ends_in_v1() -> None:
    assert encoded(Request((ASKED,))).path == "/responses"


def test_row_64_stream_request_has_one_more_field() -> None:
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, stream=True)


def test_compatible_host_gets_no_openai_fields() -> None:
    sent = encoded(Request((Message.system("S"), ASKED)), target(COMPATIBLE, able=REASONS))
    assert sent.body == {"model": "m", "instructions": "S", "input": [WIRE_ASKED]}


def test_verbosity_is_beside_the_format_of_the_output() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(None), options={"verbosity": "low"})
    assert encoded(request).body["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
