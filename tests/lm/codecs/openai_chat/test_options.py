"""Chat completions: output formats, sampling, reasoning and other options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.errors import InputError, UnsupportedFeature, UnsupportedOption
from sigwire.lm.codecs.openai_chat.profiles import (
    AZURE,
    COMPATIBLE,
    DEEPSEEK,
    GROQ,
    MISTRAL,
    OPENROUTER,
    VLLM,
    ChatProfile,
)
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.encoding import features
from tests.lm.codecs.openai_chat.reading import read_request
from tests.lm.codecs.openai_chat.wire import ASKED, SCHEMA, TOOL, WIRE_ASKED, body, encoded, target

FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}}
IN_WORDS = (
    "Reply with only a JSON value that matches this JSON Schema:\n"
    '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
)
LOGPROBS: JsonObject = {"logprobs": True, "top_logprobs": 3}
FIELDS: dict[str, tuple[Target[ChatProfile], JsonObject, JsonObject, list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"max_completion_tokens": 50}, []),
    "row 38 max tokens on a compatible host": (target(COMPATIBLE), {"max_tokens": 50}, {"max_tokens": 50}, []),
    "row 38 max tokens on groq": (target(GROQ), {"max_tokens": 50}, {"max_completion_tokens": 50}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_p": 0.5}, {"temperature": 0.0, "top_p": 0.5}, []),
    "row 40 temperature on a model that reasons": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {"temperature": 0.0},
        {},
        ["temperature"],
    ),
    "row 40 the other sampling options on a model that reasons": (
        target(sampling="never"),
        {"top_p": 0.5, "frequency_penalty": 1, "presence_penalty": 1},
        {},
        ["top_p", "frequency_penalty", "presence_penalty"],
    ),
    "row 40 temperature with reasoning switched off": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {"temperature": 0.0, "reasoning": "off"},
        {"reasoning_effort": "none", "temperature": 0.0},
        [],
    ),
    "row 41 stop": (target(), {"stop": ["a", "b"]}, {"stop": ["a", "b"]}, []),
    "row 41 stop on a model that reasons": (target(stop=False), {"stop": "a"}, {}, ["stop"]),
    "row 42 seed": (target(), {"seed": 7}, {"seed": 7}, []),
    "row 42 seed on mistral": (target(MISTRAL), {"seed": 7}, {"random_seed": 7}, []),
    "row 43 two choices": (target(), {"n": 2}, {"n": 2}, []),
    "row 43 two choices on groq": (target(GROQ), {"n": 2}, {}, ["n"]),
    "row 43 one choice on groq": (target(GROQ), {"n": 1}, {"n": 1}, []),
    "row 44 logprobs": (target(), LOGPROBS, LOGPROBS, []),
    "row 44 logprobs with reasoning switched off": (
        target(sampling="unless_reasoning", default_effort="medium"),
        {**LOGPROBS, "reasoning": "off"},
        {**LOGPROBS, "reasoning_effort": "none"},
        [],
    ),
    "row 44 no logprobs on a model that reasons": (target(sampling="never"), {"logprobs": False}, {}, []),
    "row 45 effort": (target(), {"reasoning": "high"}, {"reasoning_effort": "high"}, []),
    "row 45 effort the model does not have": (
        target(efforts=("low", "medium", "high")),
        {"reasoning": "max"},
        {"reasoning_effort": "high"},
        ["reasoning"],
    ),
    "row 45 effort on deepseek": (
        target(DEEPSEEK),
        {"reasoning": "medium"},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ["reasoning"],
    ),
    "row 45 effort on openrouter": (target(OPENROUTER), {"reasoning": "low"}, {"reasoning": {"effort": "low"}}, []),
    "row 46 budget": (target(), {"reasoning": {"budget": 2000}}, {"reasoning_effort": "low"}, ["reasoning"]),
    "row 46 budget on openrouter": (
        target(OPENROUTER),
        {"reasoning": {"budget": 2000}},
        {"reasoning": {"max_tokens": 2000}},
        [],
    ),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"reasoning_effort": "none"}, []),
    "row 47 reasoning off where it cannot be": (
        target(efforts=("low", "high"), default_effort="high"),
        {"reasoning": "off"},
        {"reasoning_effort": "low"},
        ["reasoning"],
    ),
    "row 47 reasoning off on deepseek": (
        target(DEEPSEEK),
        {"reasoning": "off"},
        {"thinking": {"type": "disabled"}},
        [],
    ),
    "row 47 reasoning off on openrouter": (
        target(OPENROUTER),
        {"reasoning": "off"},
        {"reasoning": {"enabled": False}},
        [],
    ),
    "row 47 reasoning off on vllm": (
        target(VLLM),
        {"reasoning": "off"},
        {"chat_template_kwargs": {"enable_thinking": False}},
        [],
    ),
    "reasoning off and arguments of the template on vllm": (
        target(VLLM),
        {"reasoning": "off", "chat_template_kwargs": {"date": "today"}},
        {"chat_template_kwargs": {"date": "today", "enable_thinking": False}},
        [],
    ),
    "options of openai": (
        target(),
        {"logit_bias": {"50256": -100}, "verbosity": "low", "safety_identifier": "u"},
        {"logit_bias": {"50256": -100}, "verbosity": "low", "safety_identifier": "u"},
        [],
    ),
    "options of open models": (
        target(VLLM),
        {"top_k": 4, "min_p": 0.1, "repetition_penalty": 1.1, "stop_token_ids": [1]},
        {"top_k": 4, "min_p": 0.1, "repetition_penalty": 1.1, "stop_token_ids": [1]},
        [],
    ),
    "routing of openrouter": (
        target(OPENROUTER),
        {"provider": {"order": ["a"]}, "models": ["b"]},
        {"provider": {"order": ["a"]}, "models": ["b"]},
        [],
    ),
    "row 47 reasoning off on a model that does not reason": (target(thinking="none"), {"reasoning": "off"}, {}, []),
    "row 48 caching is automatic": (target(), {"prompt_cache": {"ttl": "1h"}}, {}, []),
    "row 48 a cache key": (target(), {"prompt_cache": {"key": "k"}}, {"prompt_cache_key": "k"}, []),
    "row 50 extra body": (
        target(),
        {"temperature": 1.0, "extra_body": {"temperature": 0.5, "verbosity": "low"}},
        {"temperature": 0.5, "verbosity": "low"},
        [],
    ),
    "the rest": (
        target(),
        {"presence_penalty": 1, "frequency_penalty": 2, "user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        {"presence_penalty": 1, "frequency_penalty": 2, "user": "u", "metadata": {"a": "b"}, "service_tier": "flex"},
        [],
    ),
}


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_encode_places_options(
    to: Target[ChatProfile], options: JsonObject, fields: JsonObject, warned: list[str]
) -> None:
    sent = encoded(Request((ASKED,), options=options), to)
    assert sent.body == body(WIRE_ASKED, **fields)
    assert features(sent.warnings) == warned


def test_row_43_encode_repeats_the_request_when_the_host_gives_one_choice() -> None:
    assert encoded(Request((ASKED,), options={"n": 2}), target(GROQ)).repeat == 2
    assert encoded(Request((ASKED,), options={"n": 2})).repeat == 1


@pytest.mark.parametrize(
    ("to", "options", "named"),
    [
        pytest.param(target(GROQ), {"logprobs": True}, "logprobs", id="row 44 logprobs on groq"),
        pytest.param(target(), {"top_k": 5}, "top_k", id="an option this wire has no place for"),
        pytest.param(target(), {"temprature": 5}, "temprature", id="a misspelt option"),
    ],
)
def test_unknown_option_is_refused(to: Target[ChatProfile], options: JsonObject, named: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"no option {named!r}.*extra_body") as caught:
        encoded(Request((ASKED,), options=options), to)
    assert caught.value.option == named


@pytest.mark.parametrize("options", [{"logprobs": True}, {"top_logprobs": 3}])
def test_row_44_logprobs_are_refused_when_the_model_reasons(options: JsonObject) -> None:
    for to in (target(sampling="never"), target(sampling="unless_reasoning", default_effort="medium")):
        with pytest.raises(UnsupportedFeature, match=r"openai-chat/m has no place for log probabilities.*'off'"):
            encoded(Request((ASKED,), options=options), to)


def test_row_45_tools_switch_reasoning_off_or_fail_when_the_model_takes_not_both() -> None:
    request = Request((ASKED,), (TOOL,), options={"reasoning": "high"})
    sent = encoded(request, target(tools_with_reasoning=False, default_effort="medium"))
    assert sent.body == body(WIRE_ASKED, tools=[TOOL], reasoning_effort="none")
    assert features(sent.warnings) == ["reasoning"]
    quiet = encoded(replace(request, options={}), target(tools_with_reasoning=False))
    assert quiet.body == body(WIRE_ASKED, tools=[TOOL])
    with pytest.raises(UnsupportedFeature, match="Responses API takes both"):
        encoded(request, target(tools_with_reasoning=False, default_effort="high", efforts=("low", "high")))


def test_row_48_system_text_gets_a_cache_mark_when_the_model_takes_marks() -> None:
    request = Request((Message.system("S"), ASKED), options={"prompt_cache": {}})
    text: JsonObject = {"type": "text", "text": "S"}
    marked: JsonObject = {**text, "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert encoded(request, target(cache_breakpoints=True)).body == body(
        {"role": "system", "content": [marked]}, WIRE_ASKED, prompt_cache_options={"mode": "explicit"}
    )
    mark: JsonObject = {"cache_control": {"type": "ephemeral"}}
    asked: JsonObject = {"role": "user", "content": [{"type": "text", "text": "q", **mark}]}
    assert encoded(request, target(OPENROUTER, cache_breakpoints=True)).body == body(
        {"role": "system", "content": [{**text, **mark}]}, asked
    )


@pytest.mark.parametrize("asked", ["hard", {"budget": "x"}, {"budget": True}, 3, {"effort": "low"}])
def test_invalid_reasoning_option_is_an_input_error(asked: JsonValue) -> None:
    with pytest.raises(InputError, match="reasoning must be one of off, minimal"):
        encoded(Request((ASKED,), options={"reasoning": asked}))


def test_row_34_encode_sends_the_schema_and_row_35_its_name() -> None:
    request = Request((ASKED,), response_format=ResponseFormat(SCHEMA))
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, response_format=FORMAT)
    assert read_request(sent.body) == request
    named = encoded(replace(request, response_format=ResponseFormat(SCHEMA, "my answer"))).body["response_format"]
    assert named == {"type": "json_schema", "json_schema": {"name": "my_answer", "schema": SCHEMA}}


def test_output_schema_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"schema of the output 'response'.*the root must be an object"):
        encoded(Request((ASKED,), response_format=ResponseFormat({"type": "array"})))


def test_response_format_without_a_schema_is_json_mode() -> None:
    request = Request((ASKED,), response_format=ResponseFormat())
    sent = encoded(request)
    assert sent.body == body(WIRE_ASKED, response_format={"type": "json_object"})
    assert read_request(sent.body) == request


@pytest.mark.parametrize(
    ("to", "fields"),
    [
        pytest.param(target(DEEPSEEK), {"response_format": {"type": "json_object"}}, id="row 36 deepseek"),
        pytest.param(
            target(GROQ, able=Capabilities(json_object=True)),
            {"response_format": {"type": "json_object"}},
            id="row 36 a groq model without schemas",
        ),
        pytest.param(target(able=Capabilities()), {}, id="row 36 a model without any"),
    ],
)
def test_prompt_asks_for_the_format_when_the_host_has_no_structured_output(
    to: Target[ChatProfile], fields: JsonObject
) -> None:
    sent = encoded(Request((Message.system("S"), ASKED), response_format=ResponseFormat(SCHEMA)), to)
    assert sent.body == body({"role": "system", "content": f"S\n\n{IN_WORDS}"}, WIRE_ASKED, **fields)
    assert features(sent.warnings) == ["response_format"]
    alone = encoded(Request((ASKED,), response_format=ResponseFormat(SCHEMA)), to)
    assert alone.body == body({"role": "system", "content": IN_WORDS}, WIRE_ASKED, **fields)


def test_row_37_structured_output_is_sent_with_tools_when_the_model_takes_both() -> None:
    request = Request((ASKED,), (TOOL,), response_format=ResponseFormat(SCHEMA))
    assert encoded(request).body == body(WIRE_ASKED, tools=[TOOL], response_format=FORMAT)
    apart = encoded(request, target(GROQ, able=Capabilities(json_schema=True)))
    assert apart.body == body({"role": "system", "content": IN_WORDS}, WIRE_ASKED, tools=[TOOL])
    assert features(apart.warnings) == ["response_format"]


def test_row_1_path_continues_a_base_url_that_ends_in_v1() -> None:
    assert encoded(Request((ASKED,))).path == "/chat/completions"
    assert encoded(Request((ASKED,)), target(AZURE)).path == "/openai/deployments/m/chat/completions"


def test_row_64_stream_request_asks_for_usage_when_the_host_has_usage() -> None:
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    assert encoded(Request((ASKED,)), stream=True).body == body(WIRE_ASKED, **usage)
    assert encoded(Request((ASKED,)), target(MISTRAL), stream=True).body == body(WIRE_ASKED, stream=True)
