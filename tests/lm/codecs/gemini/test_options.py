"""Gemini: output in a form, sampling, reasoning and the other options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.errors import UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.gemini import GEMINI, VERTEX, GeminiProfile
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.gemini.reading import read_request
from tests.lm.codecs.gemini.wire import (
    ABLE,
    ASKED,
    DECLARED,
    OLD,
    SCHEMA,
    TOOL,
    WIRE_ASKED,
    body,
    config,
    encoded,
    target,
    thinking,
)

FORMAT: JsonObject = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
IN_WORDS = (
    "Reply with only a JSON value that matches this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)

FIELDS: dict[str, tuple[Target[GeminiProfile], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, config(maxOutputTokens=50), []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (
        target(),
        {"temperature": 0.0, "top_p": 0.5, "top_k": 3},
        config(temperature=0.0, topP=0.5, topK=3),
        [],
    ),
    "row 40 temperature on a model that takes none": (
        target(sampling="never"),
        {"temperature": 0.0},
        {},
        ["temperature"],
    ),
    "row 40 temperature beside thinking": (
        target(sampling="unless_reasoning"),
        {"temperature": 0.0, "reasoning": "high"},
        thinking(thinkingLevel="high", includeThoughts=True),
        ["temperature"],
    ),
    "row 40 temperature with thinking switched off": (
        target(**OLD, sampling="unless_reasoning", default_effort="high"),
        {"temperature": 0.0, "reasoning": "off"},
        config(temperature=0.0, thinkingConfig={"thinkingBudget": 0}),
        [],
    ),
    "row 40 temperature on a model that does not reason": (
        target(thinking="none", sampling="unless_reasoning"),
        {"temperature": 0.0, "reasoning": "off"},
        config(temperature=0.0),
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, config(stopSequences=["a", "b"]), []),
    "row 41 one stop": (target(), {"stop": "a"}, config(stopSequences=["a"]), []),
    "row 41 stop on a model that takes none": (target(stop=False), {"stop": "a"}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, config(seed=7), []),
    "row 43 two choices": (target(), {"n": 2}, config(candidateCount=2), []),
    "row 44 logprobs": (
        target(),
        {"logprobs": True, "top_logprobs": 3},
        config(responseLogprobs=True, logprobs=3),
        [],
    ),
    "row 45 effort": (target(), {"reasoning": "high"}, thinking(thinkingLevel="high", includeThoughts=True), []),
    "row 45 effort the model does not have": (
        target(efforts=("off", "low", "high")),
        {"reasoning": "max"},
        thinking(thinkingLevel="high", includeThoughts=True),
        ["reasoning"],
    ),
    "row 45 effort on an older model": (
        target(**OLD),
        {"reasoning": "high"},
        thinking(thinkingBudget=16384, includeThoughts=True),
        [],
    ),
    "row 46 budget": (
        target(),
        {"reasoning": {"budget": 2000}},
        thinking(thinkingLevel="low", includeThoughts=True),
        ["reasoning"],
    ),
    "row 46 budget on an older model": (
        target(**OLD),
        {"reasoning": {"budget": 2000}},
        thinking(thinkingBudget=2000, includeThoughts=True),
        [],
    ),
    "row 46 budget out of bounds": (
        target(**OLD, budgets=(128, 24576)),
        {"reasoning": {"budget": 50000}},
        thinking(thinkingBudget=24576, includeThoughts=True),
        ["reasoning"],
    ),
    "row 47 reasoning off": (
        target(),
        {"reasoning": "off"},
        thinking(thinkingLevel="low", includeThoughts=True),
        ["reasoning"],
    ),
    "row 47 reasoning off on an older model": (target(**OLD), {"reasoning": "off"}, thinking(thinkingBudget=0), []),
    "row 47 reasoning off on an older model that cannot": (
        target(**OLD, efforts=("low", "high"), budgets=(128, 32768)),
        {"reasoning": "off"},
        thinking(thinkingBudget=128, includeThoughts=True),
        ["reasoning"],
    ),
    "row 47 reasoning off on a model that does not reason": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 caching is implicit": (target(), {"prompt_cache": {"ttl": "1h", "key": "k"}}, {}, []),
    "row 50 extra body": (
        target(),
        {
            "temperature": 1.0,
            "extra_body": {
                "store": True,
                "generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"},
            },
        },
        {"store": True, **config(temperature=1.0, mediaResolution="MEDIA_RESOLUTION_LOW")},
        [],
    ),
    "the rest": (
        target(),
        {"presence_penalty": 1, "frequency_penalty": 2, "service_tier": "flex"},
        {"serviceTier": "flex", **config(presencePenalty=1, frequencyPenalty=2)},
        [],
    ),
    "safety settings and cached content": (
        target(),
        {"safety_settings": [{"category": "c", "threshold": "OFF"}], "cached_content": "cachedContents/1"},
        {"safetySettings": [{"category": "c", "threshold": "OFF"}], "cachedContent": "cachedContents/1"},
        [],
    ),
    "metadata are labels on Vertex": (target(VERTEX), {"metadata": {"a": "b"}}, {"labels": {"a": "b"}}, []),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options(to: Target[GeminiProfile], options: JsonObject, fields: JsonObject, warned: list[str]) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


SAID_OTHERWISE = ("row 39", "row 40 temperature on a model that does", "row 41 one", "row 45 effort on", "row 48")


@pytest.mark.parametrize(
    "name", [name for name, case in FIELDS.items() if not case[3] and case[2] and not name.startswith(SAID_OTHERWISE)]
)
def test_options_are_read_back(name: str) -> None:
    to, options, fields, _ = FIELDS[name]
    assert read_request(body(WIRE_ASKED, **fields), to.profile) == Request((ASKED,), options=options)


@pytest.mark.parametrize("name", ["metadata", "user", "temprature"])
def test_an_option_without_a_place_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {name!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options={name: "x"}))
    assert caught.value.option == name


def test_row_45_effort_on_a_model_that_cannot_reason_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="reasoning effort 'high'"):
        encoded(Request((ASKED,), options={"reasoning": "high"}), target(thinking="none"))


def test_row_50_extra_headers_are_sent_and_row_2_without_a_key() -> None:
    assert encoded(Request((ASKED,), options={"extra_headers": {"X-A": "1"}})).headers == {"X-A": "1"}
    assert encoded(Request((ASKED,))).headers == {}


@pytest.mark.parametrize("name", ["default", "my answer"])
def test_row_34_structured_output_and_row_35_its_name_has_no_place(name: str) -> None:
    sent = encoded(Request((ASKED,), response_format=ResponseFormat(SCHEMA, name)))
    assert sent.body == body(WIRE_ASKED, generationConfig=FORMAT)
    assert sent.warnings == ()
    assert read_request(sent.body) == Request((ASKED,), response_format=ResponseFormat(SCHEMA))


def test_any_object_is_asked_for_without_a_schema() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(), options={"temperature": 0})
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, **config(temperature=0, responseMimeType="application/json"))
    assert sent.warnings == ()
    assert read_request(sent.body) == request


IN_SYSTEM = {"parts": [{"text": "S"}, {"text": IN_WORDS}]}
MISSING: dict[str, tuple[Capabilities, Request, JsonObject]] = {
    "row 36 a model without schemas": (
        Capabilities(json_object=True),
        Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA)),
        body(WIRE_ASKED, systemInstruction=IN_SYSTEM, **config(responseMimeType="application/json")),
    ),
    "row 36 a model without any": (
        Capabilities(),
        Request((ASKED,), response_format=ResponseFormat()),
        body(
            WIRE_ASKED,
            systemInstruction={"parts": [{"text": "Reply with only a JSON object."}]},
        ),
    ),
    "row 37 tools and structured output on an older model": (
        replace(ABLE, tools_with_json_schema=False),
        Request((Message.system("S"), ASKED), (TOOL,), response_format=ResponseFormat(SCHEMA)),
        body(WIRE_ASKED, systemInstruction=IN_SYSTEM, **DECLARED),
    ),
}


@pytest.mark.parametrize(("able", "request_", "wire"), MISSING.values(), ids=MISSING)
def test_structured_output_that_is_missing_is_asked_for_in_words(
    able: Capabilities, request_: Request, wire: JsonObject
) -> None:
    sent = encoded(request_, target(able=able))
    assert sent.body == wire
    assert features(sent.warnings) == ["response_format"]


def test_row_37_structured_output_and_tools_go_together_on_newer_models() -> None:
    sent = encoded(Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA)))
    assert sent.body == body(WIRE_ASKED, **DECLARED, generationConfig=FORMAT)
    assert sent.warnings == ()


PATHS = {
    ("gemini", "gemini-3-pro"): "/v1/models/gemini-3-pro:generateContent",
    ("gemini", "gemini-3-flash-preview-05"): "/v1beta/models/gemini-3-flash-preview-05:generateContent",
    ("gemini", "gemini-flash-latest"): "/v1beta/models/gemini-flash-latest:generateContent",
    ("gemini", "gemini-2.0-flash-exp"): "/v1beta/models/gemini-2.0-flash-exp:generateContent",
    ("gemini", "models/gemini-expert"): "/v1/models/gemini-expert:generateContent",
    ("gemini", "tunedModels/mine"): "/v1/tunedModels/mine:generateContent",
    ("vertex", "gemini-3-pro"): "/publishers/google/models/gemini-3-pro:generateContent",
}


@pytest.mark.parametrize(("where", "path"), PATHS.items(), ids=map(str, PATHS))
def test_row_1_the_path_names_version_and_model(where: tuple[str, str], path: str) -> None:
    host, model = where
    sent = encoded(Request((ASKED,)), target(GEMINI if host == "gemini" else VERTEX, model=model))
    assert (sent.path, sent.query) == (path, {})


def test_row_64_a_stream_has_its_own_method() -> None:
    whole, stream = encoded(Request((ASKED,))), encoded(Request((ASKED,)), stream=True)
    assert (stream.path, stream.query) == ("/v1/models/m:streamGenerateContent", {"alt": "sse"})
    assert stream.body == whole.body
