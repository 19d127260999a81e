"""Options of LiteLLM, as programs for DSPy pass them to ``LM``: what is made, what is sent, what is kept."""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import Callable
from typing import Any

import pydantic
import pytest

import sigwire.dspy as dspy
from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, UnsupportedOption
from tests.lm.calls import HOWS, ask, forget_keys, stream
from tests.lm.replies import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Double
from tests.ways import in_every_way

LOCAL = {"api_base": "http://localhost:8000/v1", "api_key": "local"}
AZURE = {"api_base": "https://r.openai.azure.com", "api_version": "2024-02-01"}
MADE: list[tuple[str, dict[str, Any]]] = [
    ("openai/gpt-4o", {"reasoning_effort": "low"}),
    ("openai/gpt-5", {"temperature": 1.0, "max_tokens": 16000, "reasoning_effort": "minimal"}),
    ("openai/gpt-5", {"model_type": "responses", "temperature": 1.0, "max_tokens": 16000, "verbosity": "low"}),
    ("openai/gpt-5", {"max_tokens": None, "temperature": None}),
    ("openai/o3-mini", {"use_developer_role": True, "model_type": "responses"}),
    ("gpt-4o", {}),
    ("claude-sonnet-4-5", {}),
    ("anthropic/claude-3-7-sonnet", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ("anthropic/claude-haiku-4-5", {"cache_control_injection_points": [{"location": "message", "role": "system"}]}),
    ("azure/gpt4", AZURE),
    ("azure/gpt4", {**AZURE, "azure_ad_token_provider": lambda: "eyJ"}),
    ("vertex_ai/gemini-2.5-pro", {"vertex_project": "p", "vertex_location": "l", "vertex_credentials": "{}"}),
    ("gemini/gemini-2.5-flash", {"safety_settings": []}),
    ("bedrock/anthropic.claude-3", {"aws_region_name": "us-east-1", "aws_profile_name": "work"}),
    ("bedrock/anthropic.claude-3", {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_session_token": "c"}),
    ("ollama_chat/llama3", {"api_base": "http://localhost:11434", "api_key": "", "num_ctx": 8192}),
    (
        "openai/x",
        {
            "stop": ["a"], "top_p": 0.5, "seed": 3, "presence_penalty": 0.1, "frequency_penalty": 0.1, "logit_bias": {},
            "n": 2, "logprobs": True, "top_logprobs": 3, "user": "u", "service_tier": "flex",
        },
    ),
    ("openai/x", {**LOCAL, "top_k": 4, "min_p": 0.1, "repetition_penalty": 1.1, "chat_template_kwargs": {}}),
    ("openai/x", {"response_format": {"type": "json_object"}}),
    ("openai/x", {"request_timeout": 3, "num_retries": 5, "organization": "o", "custom_llm_provider": "openai"}),
    ("openai/x", {"provider": {"order": ["a"]}}),
    ("openrouter/x/y", {"provider": {"order": ["a"]}, "transforms": ["middle-out"]}),
    ("openai/x", {"drop_params": True, "allowed_openai_params": ["x"], "additional_drop_params": ["seed"]}),
    ("openai/x", {"finetuning_model": "y", "provider": object()}),
    ("openai/x", {"cache": False, "temperature": 0.0, "max_tokens": 100, "prefix": "q"}),
    ("hosted_vllm/x", {"api_base": "http://l/v1", "guided_json": {}}),
]  # fmt: skip
THROUGH_LITELLM: list[tuple[str, dict[str, Any]]] = [
    ("text-completion-openai/x", {}),
    ("openai/x", {"model_type": "text"}),
    ("huggingface/x/y", {"max_retries": 2}),
    ("cohere/command-r", {"drop_params": True}),
    ("sagemaker/x", {"aws_region_name": "eu-west-1", "anything": 1}),
    ("watsonx/ibm/x", {"project_id": "p", "space_id": "s"}),
]
needs_litellm = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="LiteLLM is not installed")


@pytest.mark.parametrize(("model", "options"), MADE)
def test_model_takes_options_of_litellm_without_a_warning(model: str, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lm = dspy.LM(model, **{"api_key": "k", **options})
    assert lm.model == model


@needs_litellm
@pytest.mark.parametrize(("model", "options"), THROUGH_LITELLM)
def test_model_behind_litellm_takes_any_option(model: str, options: dict[str, Any]) -> None:
    assert dspy.LM(model, api_key="k", **options).kwargs.keys() >= options.keys() - {"model_type"}


class Answer(pydantic.BaseModel):
    x: int


SCHEMA: JsonObject = {
    "type": "json_schema",
    "json_schema": {"name": "a", "schema": {"type": "object", "properties": {}}},
}
JSON: JsonObject = {"type": "json_object"}
SENT: dict[str, tuple[str, dict[str, Any], JsonObject, JsonObject, str, dict[str, str]]] = {
    "vertex": (
        "vertex_ai/gemini-2.5-flash",
        {"vertex_project": "p", "vertex_location": "eu-west1", "safety_settings": [{"category": "c", "threshold": "OFF"}]},
        GEMINI,
        {"safetySettings": [{"category": "c", "threshold": "OFF"}]},
        "https://eu-west1-aiplatform.googleapis.com/v1/projects/p/locations/eu-west1/",
        {},
    ),
    "bedrock": (
        "bedrock/anthropic.claude-3-haiku",
        {"aws_region_name": "eu-west-1", "guardrailConfig": {"guardrailIdentifier": "g"}, "unheard_of": 1},
        {"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}}, "stopReason": "end_turn"},
        {"guardrailConfig": {"guardrailIdentifier": "g"}, "additionalModelRequestFields": {"unheard_of": 1}},
        "https://bedrock-runtime.eu-west-1.amazonaws.com/",
        {},
    ),
    "azure": (
        "azure/gpt-4o",
        {**AZURE, "api_key": None, "azure_ad_token_provider": lambda: "eyJ-of-now"},
        CHAT,
        {},
        "api-version=2024-02-01",
        {"authorization": "Bearer eyJ-of-now"},
    ),
    "organization": ("openai/gpt-4o", {"organization": "o", "logit_bias": {"1": 2}}, CHAT, {"logit_bias": {"1": 2}}, "",
                     {"openai-organization": "o"}),
    "json object": (
        "openai/gpt-4o", {"response_format": JSON}, CHAT, {"response_format": JSON}, "", {},
    ),
    "schema": ("openai/x", {**LOCAL, "response_format": SCHEMA}, CHAT, {}, "localhost:8000", {}),
    "server": (
        "openai/x",
        {**LOCAL, "top_k": 4, "chat_template_kwargs": {"a": 1}, "unheard_of": [1], "extra_body": {"own": 2}},
        CHAT,
        {"top_k": 4, "chat_template_kwargs": {"a": 1}, "unheard_of": [1], "own": 2},
        "localhost:8000",
        {},
    ),
    "routes": ("openrouter/a/b", {"provider": {"order": ["x"]}}, CHAT, {"provider": {"order": ["x"]}}, "openrouter.ai", {}),
    "responses": ("openai/gpt-5", {"model_type": "responses", "verbosity": "low"}, RESPONSES, {"text": {"verbosity": "low"}},
                  "/responses", {}),
    "cache marks": (
        "anthropic/claude-sonnet-4-5",
        {"cache_control_injection_points": [{"location": "message", "role": "system"}], "drop_params": True, "logit_bias": {}},
        MESSAGES,
        {},
        "",
        {},
    ),
    "native": ("ollama/x", {"unheard_of": 1}, OLLAMA, {}, "", {}),
    "bare name": ("gpt-4o", {"additional_drop_params": ["seed"], "seed": 1}, CHAT, {"model": "gpt-4o"}, "api.openai.com", {}),
    "other provider": ("gpt-4o", {"custom_llm_provider": "openrouter"}, CHAT, {"model": "gpt-4o"}, "openrouter.ai", {}),
}  # fmt: skip


@HOWS
@pytest.mark.parametrize("name", SENT)
async def test_options_reach_the_host(how: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    model, options, reply, body, url, headers = SENT[name]
    double = Double(reply)
    lm = dspy.LM(model, **{"api_key": "k", "cache": False, "transport": double, **options})
    for made in (lm, lm.copy()):
        await ask(how, made)
    sent: JsonObject = {}
    for request in double.requests:
        sent = json.loads(request.body)
        assert sent.items() >= body.items()
        assert url in request.url
        assert {key.lower(): value for key, value in request.headers.items()}.items() >= headers.items()
    assert not {"drop_params", "logit_bias", "seed", "cache_control_injection_points"} & sent.keys() - body.keys()


@HOWS
async def test_options_reach_the_host_of_a_stream(how: str) -> None:
    lines = [{"id": "c", "choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}]
    double = Double(b"".join(b"data: " + json.dumps(line).encode() + b"\n\n" for line in lines) + b"data: [DONE]\n\n")
    lm = dspy.LM("openai/x", **LOCAL, transport=double, cache=False, min_p=0.1, unheard_of=1)
    assert await stream(how, lm)
    assert json.loads(double.requests[0].body).items() >= {"min_p": 0.1, "unheard_of": 1}.items()


@in_every_way
def test_options_of_a_call_reach_the_host_from_a_program(way: Callable[..., Any]) -> None:
    class Program(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = dspy.Predict("question -> answer", unheard_of=1, top_k=4)

        def forward(self, question: str) -> Any:
            return self.inner(question=question, config={"min_p": 0.1})

    text = "[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]"
    message = {"role": "assistant", "content": text}
    whole = {**CHAT, "choices": [{"message": message, "finish_reason": "stop"}]}
    lines = [{"id": "c", "choices": [{"delta": message, "finish_reason": "stop"}]}]
    streamed = b"".join(b"data: " + json.dumps(line).encode() + b"\n\n" for line in lines) + b"data: [DONE]\n\n"
    double = Double(streamed if "streamed" in way.__name__ else whole)
    with dspy.context(lm=dspy.LM("openai/x", **LOCAL, transport=double, cache=False)):
        assert way(Program(), question="2+2?").answer == "4"
    assert json.loads(double.requests[0].body).items() >= {"min_p": 0.1, "unheard_of": 1, "top_k": 4}.items()


@needs_litellm
def test_options_of_litellm_are_arguments_of_its_call() -> None:
    lm = dspy.LM("sagemaker/m", anything=1, top_k=4)
    request = Request(options={**lm.kwargs, "drop_params": True, "rpm": 3, "extra_body": {"own": 2}})
    sent = lm.prepare_request(request).options
    assert sent["extra_body"] == {"drop_params": True, "rpm": 3, "anything": 1, "own": 2}
    assert sent["top_k"] == 4


def test_adapter_replaces_a_response_format_of_a_model_class() -> None:
    lm = dspy.LM("openai/gpt-4o", api_key="k", response_format=Answer)
    sent = json.loads(lm.preview("Hi").json())["response_format"]["json_schema"]
    assert (sent["name"], list(sent["schema"]["properties"])) == ("Answer", ["x"])
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        preview = dspy.Predict("question -> answer: int").preview(question="?")
    assert "answer" in json.dumps(json.loads(preview.json())["response_format"])


def test_prompt_is_marked_for_the_cache_of_the_provider() -> None:
    lm = dspy.LM(
        "anthropic/claude-sonnet-4-5", cache_control_injection_points=[{"location": "message", "role": "system"}]
    )
    with dspy.context(lm=lm):
        sent = dspy.Predict("question -> answer").preview(question="?").json()
    assert b"cache_control" in sent


def test_options_are_saved_by_their_names_and_credentials_never() -> None:
    options = {"unheard_of": 1, "response_format": {"type": "json_object"}, "drop_params": True}
    lm = dspy.LM(
        "bedrock/m", aws_region_name="r-1", aws_access_key_id="AKIA", aws_secret_access_key="shhhhhhhh", **options
    )
    state = lm.dump_state()
    assert state.items() >= {**options, "region": "r-1"}.items()
    assert "shhhhhhhh" not in json.dumps(state) + repr(lm)
    assert dspy.BaseLM.load_state(state).dump_state() == state


def test_file_is_not_trusted_with_credentials() -> None:
    state = {
        "_dspy_lm_class": "dspy.clients.lm.LM",
        "model": "vertex_ai/gemini-2.5-flash",
        "vertex_credentials": "/etc/key",
    }
    assert "transport" not in repr(dspy.BaseLM.load_state(state))
    assert "transport" in repr(dspy.BaseLM.load_state(state, allow_unsafe_lm_state=True))


@pytest.mark.parametrize("option", ["temprature", "num_retry", "respones_format"])
def test_misspelt_option_is_refused_where_it_is_given(option: str) -> None:
    lm = dspy.LM("openai/x", **LOCAL, transport=Double())
    for give in (
        lambda: dspy.LM("openai/x", **{option: 1}),
        lambda: lm.copy(**{option: 1}),
        lambda: lm("Hi", **{option: 1}),
        lambda: dspy.Predict("question -> answer", lm=lm, **{option: 1}),
    ):
        with pytest.raises((UnsupportedOption, ConfigurationError), match="Did you mean"):
            give()


@pytest.mark.parametrize("option", ["mock_response", "aws_role_name", "client_secret"])
def test_option_that_would_change_what_is_asked_is_refused_with_advice(option: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{option} is not supported .*\. \w+"):
        dspy.LM("openai/x", **{option: "x"})


def test_option_that_steers_litellm_is_a_warning_on_other_hosts() -> None:
    with pytest.warns(UserWarning, match="rpm, ssl_verify would steer LiteLLM"):
        assert dspy.LM("openai/x", rpm=3, ssl_verify=False).kwargs.keys() == {"temperature", "max_tokens"}


def test_half_of_a_key_pair_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="belong together"):
        dspy.LM("bedrock/m", aws_access_key_id="AKIA")


@needs_litellm
def test_model_type_of_a_copy_follows_the_change() -> None:
    lm = dspy.LM("openai/davinci", model_type="text")
    assert (lm.model, lm.model_type) == ("text-completion-openai/davinci", "text")
    assert lm.copy(temperature=1.0).model == lm.model
    assert lm.copy(model_type="chat").model == "openai/davinci"
    assert dspy.BaseLM.load_state(lm.dump_state()).model == lm.model
