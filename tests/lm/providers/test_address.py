"""Endpoints of requests: the base URL and the key, from code and from the environment."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, LMAuthenticationError
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.codecs import openai_chat
from sigwire.lm.providers.registry import PROVIDERS
from tests.lm.calls import HELLO, HOWS, KEY, QUESTION, ask, forget_keys
from tests.lm.loopback import Host, Reply
from tests.lm.replies import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Double


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


# --- keys --------------------------------------------------------------------------------------------------------


def test_key_is_read_for_each_request_and_sent_to_the_environments_base_url(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Host]
) -> None:
    host = serve(CHAT)
    lm = LM("openai/gpt-4.1")
    monkeypatch.setenv("OPENAI_BASE_URL", host.url)
    for key in ("first", "second\n"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        lm.respond(HELLO)
    assert [seen.headers["authorization"] for seen in host.seen] == ["Bearer first", "Bearer second"]


def test_key_is_read_for_each_request_when_a_dict_replaces_the_environment(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Host]
) -> None:
    host = serve(CHAT)
    environment = {"OPENAI_BASE_URL": host.url}
    monkeypatch.setattr(os, "environ", environment)
    lm = LM("openai/gpt-4.1")
    for key in ("first", "second"):
        environment["OPENAI_API_KEY"] = key
        lm.respond(HELLO)
    assert [seen.headers["authorization"] for seen in host.seen] == ["Bearer first", "Bearer second"]


def test_key_function_is_called_for_each_request(serve: Callable[..., Host]) -> None:
    host, tokens = serve(CHAT), iter("ab")
    lm = LM("openai/gpt-4.1", base_url=host.url, api_key=lambda: next(tokens))
    lm.respond(HELLO)
    lm.respond(HELLO)
    assert [seen.headers["authorization"] for seen in host.seen] == ["Bearer a", "Bearer b"]


NEEDY = sorted(row.prefix for row in PROVIDERS.values() if row.key == "needed" and row.keys)


@HOWS
@pytest.mark.parametrize("prefix", NEEDY)
async def test_missing_key_error_names_the_variable(how: str, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    double = Double()
    with pytest.raises(LMAuthenticationError, match=PROVIDERS[prefix].keys[0].variable) as caught:
        await ask(how, LM(f"{prefix}/m", transport=double), QUESTION)
    assert "api_key=" in str(caught.value)
    assert double.requests == []


@pytest.mark.parametrize("key", ["", "  ", lambda: ""])
def test_empty_key_counts_as_missing(key: Any) -> None:
    double = Double()
    with pytest.raises(LMAuthenticationError, match="OPENAI_API_KEY"):
        LM("openai/gpt-4.1", api_key=key, transport=double).respond(HELLO)
    assert double.requests == []


WHOSE = [
    ("openai/m", "OPENAI_API_KEY", None, True),
    ("openai/m", "OPENAI_API_KEY", "https://eu.api.openai.com/v1", True),
    ("openai/m", "OPENAI_API_KEY", "http://api.openai.com/v1", False),
    ("openai/m", "OPENAI_API_KEY", "https://api.openai.com.attacker.example/v1", False),
    ("openai/m", "OPENAI_API_KEY", "https://attacker.example/api.openai.com", False),
    ("openai/m", "OPENAI_API_KEY", "https://api.openai.com@attacker.example/v1", False),
    ("openai/m", "OPENAI_API_KEY", "http://localhost:8000/v1", False),
    ("azure/m", "AZURE_OPENAI_API_KEY", "https://mine.openai.azure.com", True),
    ("vllm/m", "VLLM_API_KEY", "http://gpu-box:8000/v1", True),
    ("ollama/m", "OLLAMA_API_KEY", None, False),
    ("ollama/m", "OLLAMA_API_KEY", "http://gpu-box", False),
    ("ollama/m", "OLLAMA_API_KEY", "https://ollama.com", True),
    ("ollama-cloud/m", "OLLAMA_API_KEY", None, True),
    ("vertex/m", "GOOGLE_OAUTH_ACCESS_TOKEN", "https://europe-west4-aiplatform.googleapis.com/v1/x", True),
    ("vertex/m", "GOOGLE_OAUTH_ACCESS_TOKEN", "https://other.googleapis.com/v1/x", False),
]


@pytest.mark.parametrize(("model", "variable", "base", "goes"), WHOSE)
def test_environment_key_is_sent_to_own_hosts_only(
    model: str, variable: str, base: str | None, goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    double = Double({**CHAT, **OLLAMA, **GEMINI})
    LM(model, base_url=base, transport=double).respond(HELLO)
    sent = " ".join(double.requests[0].headers.values())
    assert (KEY in sent) is goes
    assert ("org-canary" in sent) is (goes and model.startswith("openai"))


def test_key_header_of_the_user_replaces_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    double = Double()
    lm = LM("openai/gpt-4.1", headers={"Authorization": "Basic mine", "X-Team": "a"}, transport=double)
    lm.respond(HELLO)
    lm.respond(replace(HELLO, options={"extra_headers": {"x-team": "b"}}))
    first, second = (request.headers for request in double.requests)
    assert (first["authorization"], first["x-team"], second["x-team"]) == ("Basic mine", "a", "b")


def test_second_variable_has_its_own_header_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    double = Double(MESSAGES)
    LM("anthropic/claude-sonnet-5", transport=double).respond(HELLO)
    headers = double.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in headers


def test_key_is_not_in_repr_state_or_errors(serve: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> None:
    host = serve(
        Reply({"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}, 401), CHAT
    )
    lm = LM("openai/gpt-4.1", api_key=KEY, headers={"x-secret": KEY}, base_url=host.url)
    with pytest.raises(LMAuthenticationError) as caught:
        lm.respond(HELLO)
    error = caught.value
    lm.respond(HELLO)
    for shown in (
        str(error),
        repr(error),
        error.args,
        repr(lm),
        repr(vars(lm)),
        lm.dump_state(),
        list(lm.history),
        lm.kwargs,
    ):
        assert KEY not in str(shown)
    assert "given as api_key" in str(error)


@pytest.mark.parametrize("name", ["api_key", "api_base", "base_url", "headers", "timeout", "transport"])
def test_request_options_cannot_change_the_endpoint(name: str) -> None:
    double = Double()
    with pytest.raises(ConfigurationError, match=f"{name} is no option of one request"):
        LM("openai/gpt-4.1", api_key=KEY, transport=double)("hello", **{name: "x"})
    assert double.requests == []


# --- addresses -----------------------------------------------------------------------------------------------------

URLS = [
    ("openai/m", {}, {}, "https://api.openai.com/v1/chat/completions"),
    ("openai/m", {"base_url": "https://x.example/v1/"}, {}, "https://x.example/v1/chat/completions"),
    ("openai/m", {"api_base": "https://x.example/v1"}, {}, "https://x.example/v1/chat/completions"),
    ("openai/m", {}, {"OPENAI_BASE_URL": "https://x.example/v1"}, "https://x.example/v1/chat/completions"),
    (
        "azure/dep 1",
        {},
        {"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"},
        "https://mine.openai.azure.com/openai/deployments/dep%201/chat/completions?api-version=2024-10-21",
    ),
    (
        "azure/d",
        {"base_url": "https://mine.openai.azure.com", "api_version": "2026-01-01"},
        {},
        "https://mine.openai.azure.com/openai/deployments/d/chat/completions?api-version=2026-01-01",
    ),
    (
        "azure/gpt-5-pro",
        {"base_url": "https://mine.openai.azure.com"},
        {},
        "https://mine.openai.azure.com/openai/v1/responses",
    ),
    ("anthropic/m", {"base_url": "https://x.example/v1"}, {}, "https://x.example/v1/messages"),
    ("anthropic/m", {"base_url": "https://x.example"}, {}, "https://x.example/v1/messages"),
    (
        "azure/d",
        {"base_url": "https://mine.openai.azure.com/openai/v1/", "wire": "v1"},
        {},
        "https://mine.openai.azure.com/openai/v1/chat/completions",
    ),
    (
        "bedrock/m",
        {"region": "eu-west-1"},
        {},
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse",
    ),
    (
        "vertex/gemini-2.5-pro",
        {},
        {"GOOGLE_CLOUD_PROJECT": "p"},
        "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/"
        "gemini-2.5-pro:generateContent",
    ),
    (
        "vertex/gemini-2.5-pro",
        {"project": "p", "location": "us-central1"},
        {},
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google/models/"
        "gemini-2.5-pro:generateContent",
    ),
    ("ollama/m", {}, {}, "http://127.0.0.1:11434/api/chat"),
    (
        "openai/m",
        {},
        {"OPENAI_BASE_URL": "https://x.example/v1/?a=1&b="},
        "https://x.example/v1/chat/completions?a=1&b=",
    ),
    ("ollama/m", {}, {"OLLAMA_HOST": "gpu-box?a=http://b/"}, "http://gpu-box:11434/api/chat?a=http://b/"),
    ("ollama/m", {}, {"OLLAMA_HOST": "gpu-box"}, "http://gpu-box:11434/api/chat"),
    ("ollama/m", {}, {"OLLAMA_HOST": "http://gpu-box"}, "http://gpu-box:80/api/chat"),
    ("ollama-cloud/m", {}, {}, "https://ollama.com:443/api/chat"),
    ("foreman/m", {}, {"FOREMAN_HOST": "https://fleet.example"}, "https://fleet.example:443/api/chat"),
]


AZURE = "https://mine.openai.azure.com"
FOUNDRY = "https://mine.services.ai.azure.com"
TUNED = "projects/p/locations/us-central1/endpoints/123"
REGION = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1"
DATED = "api-version=2025-01-01-preview"
ARN = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"
DEPLOYMENT = f"{AZURE}/openai/deployments/d/chat/completions?{DATED}"
GOOGLE = f"{REGION}/publishers/google/models/m:generateContent"
MISTRALS = f"{REGION}/publishers/mistralai/models"
# The model, the address as a portal shows it, and the URL of the request.
PASTED = [
    ("azure/d", DEPLOYMENT, DEPLOYMENT),
    ("azure/gpt-4.1", DEPLOYMENT, DEPLOYMENT),
    ("azure/d", f"{AZURE}/openai/responses?{DATED}", f"{AZURE}/openai/v1/responses"),
    ("azure/d", f"{AZURE}/openai/v1/chat/completions", f"{AZURE}/openai/v1/chat/completions"),
    ("azure/d", f"{FOUNDRY}/api/projects/p/openai/v1/responses", f"{FOUNDRY}/openai/v1/responses"),
    ("azure/d", f"{FOUNDRY}/api/projects/p", f"{FOUNDRY}/openai/deployments/d/chat/completions?api-version=2024-10-21"),
    ("azure/Phi-4", f"{FOUNDRY}/models", f"{FOUNDRY}/models/chat/completions?api-version=2024-05-01-preview"),
    ("azure/Phi-4", f"{FOUNDRY}/models/chat/completions?{DATED}", f"{FOUNDRY}/models/chat/completions?{DATED}"),
    ("openai/m", "https://x.example/v1/chat/completions/?a=1", "https://x.example/v1/chat/completions?a=1"),
    ("openai/m", "https://x.example/v1/responses", "https://x.example/v1/responses"),
    ("groq/m", "https://x.example/v1/chat/completions", "https://x.example/v1/chat/completions"),
    ("anthropic/m", "https://x.example/v1/messages", "https://x.example/v1/messages"),
    ("ollama/m", "http://box:11434/api/chat", "http://box:11434/api/chat"),
    ("gemini/m", "https://x.example/v1beta/models/n:generateContent?key=k", "https://x.example/v1/models/n:generateContent"),
    ("vertex/m", f"{REGION}/publishers/google/models/m:streamGenerateContent?alt=sse", GOOGLE),
    ("vertex/m", f"{REGION}/endpoints/9:generateContent", f"{REGION}/endpoints/9:generateContent"),
    (f"vertex/{TUNED}", None, f"{REGION}/endpoints/123:generateContent"),
    ("vertex/projects/p/locations/us-central1/publishers/google/models/m", None, GOOGLE),
    ("vertex/meta/llama-4-maverick-17b-128e-instruct-maas", f"{REGION}", f"{REGION}/endpoints/openapi/chat/completions"),
    ("vertex/mistral-large-2411", REGION, f"{MISTRALS}/mistral-large-2411:rawPredict"),
    ("vertex/codestral-2", f"{MISTRALS}/codestral-2:streamRawPredict", f"{MISTRALS}/codestral-2:rawPredict"),
    (
        f"bedrock/{ARN}",
        None,
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3A"
        "application-inference-profile%2Fabc/converse",
    ),
]  # fmt: skip
REPLY: JsonObject = {
    **CHAT, **OLLAMA, **GEMINI, **RESPONSES, **MESSAGES, "output": {"message": {"content": [{"text": "hi"}]}}
}  # fmt: skip


@HOWS
@pytest.mark.parametrize(("model", "address", "url"), PASTED)
async def test_address_of_a_portal_is_read(how: str, model: str, address: str | None, url: str) -> None:
    body = {**REPLY, **RESPONSES} if url.endswith("/responses") else REPLY
    double = Double(body)
    lm = LM(model, api_key=KEY, transport=double, **({"base_url": address} if address else {}))
    await ask(how, lm)
    assert double.requests[0].url == url


def test_address_of_a_portal_in_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{FOUNDRY}/models/chat/completions?{DATED}")
    double = Double(CHAT)
    LM("azure/Phi-4", api_key=KEY, transport=double).respond(HELLO)
    assert double.requests[0].url == f"{FOUNDRY}/models/chat/completions?{DATED}"


def test_given_region_is_used_before_that_of_an_arn() -> None:
    double = Double({"output": {"message": {"content": [{"text": "hi"}]}}})
    LM(f"bedrock/{ARN}", api_key=KEY, region="us-east-1", transport=double).respond(HELLO)
    assert double.requests[0].url.startswith("https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3A")


@pytest.mark.parametrize(
    ("model", "base", "url"),
    [
        ("azure/mine", "gpt-5-pro", f"{AZURE}/openai/v1/responses"),
        (f"bedrock/{ARN}", "anthropic.claude-sonnet-4-5", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn"),
        (f"vertex/{TUNED}", "gemini-2.5-flash", f"{REGION}/endpoints/123:generateContent"),
    ],
)
def test_rules_of_a_base_model_count_for_a_name_of_the_user(model: str, base: str, url: str) -> None:
    double = Double({**REPLY, **(RESPONSES if "responses" in url else {})})
    address = {"base_url": AZURE} if "azure" in model else {}
    lm = LM(model, api_key=KEY, transport=double, base_model=base, **address)
    known = LM(f"{model.partition('/')[0]}/{base}")
    assert lm.capabilities == known.capabilities != LM(model).capabilities
    lm.respond(Request(HELLO.messages, options={"reasoning": "high"}))
    assert double.requests[0].url.startswith(url)
    body = json.loads(double.requests[0].body)
    assert any(name in json.dumps(body) for name in ("reasoning", "thinking", "thinkingConfig"))
    assert base not in json.dumps(body)
    assert lm.dump_state()["base_model"] == base
    assert BaseLM.load_state(lm.dump_state(), allow_unsafe_lm_state=True).capabilities == lm.capabilities
    assert lm.copy(model=f"{model}x").capabilities != lm.capabilities


def test_base_model_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="base_model is the name of a model"):
        LM("azure/mine", base_model=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("model", "options", "environment", "url"), URLS)
def test_request_url_of_each_row(
    model: str, options: dict[str, Any], environment: dict[str, str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    converse: Any = {"message": {"content": [{"text": "hi"}]}}
    double = Double(
        {**CHAT, **OLLAMA, **GEMINI, **RESPONSES, **MESSAGES, **({"output": converse} if "bedrock" in model else {})}
    )
    LM(model, api_key=KEY, transport=double, **options).respond(HELLO)
    assert double.requests[0].url == url


@pytest.mark.parametrize(
    ("model", "options", "named"),
    [
        ("azure/m", {}, "AZURE_OPENAI_ENDPOINT"),
        ("foreman/m", {}, "FOREMAN_HOST"),
        ("vertex/m", {}, "GOOGLE_CLOUD_PROJECT"),
        ("vertex/m", {"project": "p", "location": "evil.example/x"}, "is no location"),
    ],
)
def test_missing_url_variable_is_named(model: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        LM(model, api_key=KEY, transport=Double(), **options).respond(HELLO)


@HOWS
@pytest.mark.parametrize("token", ["eyJhbGciOi.eyJhdWQi.c2ln", "0123456789abcdef"])
async def test_azure_key_that_is_a_token_of_entra_id_is_sent_as_a_bearer(how: str, token: str) -> None:
    double = Double()
    await ask(how, LM("azure/d", base_url="https://mine.openai.azure.com", api_key=lambda: token, transport=double))
    headers = double.requests[0].headers
    assert (headers.get("authorization"), headers.get("api-key")) == (
        (f"Bearer {token}", None) if token.startswith("eyJ") else (None, token)
    )


@HOWS
@pytest.mark.parametrize(
    "base", ["http://[bad", "http://x:99999", "https://", "nowhere", "ftp://x.example", "http://a b", "http://a>b/v1"]
)
async def test_invalid_base_url_is_refused(how: str, base: str) -> None:
    with pytest.raises(ConfigurationError, match="is not an HTTP address"):
        await ask(how, LM("openai/some-model", base_url=base, num_retries=0))


# --- what is read for every request ----------------------------------------------------------------------------------


def test_environment_changes_apply_to_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    double = Double()
    lm = LM("openai/gpt-4.1", transport=double)
    changes: list[tuple[str, str | None]] = [
        ("OPENAI_API_KEY", "one"),
        ("OPENAI_ORG_ID", "mine"),
        ("OPENAI_BASE_URL", "https://other.example/v1"),
        ("OPENAI_API_KEY", "two"),
        ("OPENAI_BASE_URL", None),
        ("OPENAI_ORG_ID", None),
    ]
    seen: list[tuple[str, str, str | None]] = []
    for variable, value in changes:
        monkeypatch.delenv(variable, raising=False)
        if value is not None:
            monkeypatch.setenv(variable, value)
        lm.respond(HELLO)
        sent = double.requests[-1]
        seen.append((sent.url.split("/")[2], sent.headers["authorization"], sent.headers.get("openai-organization")))
    home, other = "api.openai.com", "other.example"
    assert seen == [
        (home, "Bearer one", None),
        (home, "Bearer one", "mine"),
        (other, "Bearer one", "mine"),
        (other, "Bearer two", "mine"),
        (home, "Bearer two", "mine"),
        (home, "Bearer two", None),
    ]


def test_request_headers_do_not_reach_the_next_request() -> None:
    double = Double()
    lm = LM("openai/gpt-4.1", transport=double, api_key=KEY, headers={"x-team": "a"})
    for extra in ({"X-Team": "b", "x-once": "1"}, None):
        lm.respond(replace(HELLO, options={"extra_headers": extra}))
    teams = [(sent.headers["x-team"], "x-once" in sent.headers) for sent in double.requests]
    assert teams == [("b", True), ("a", False)]


def test_transport_may_change_the_headers_of_its_request() -> None:
    double = Double()
    lm = LM("openai/gpt-4.1", transport=double, api_key=KEY)
    lm.respond(HELLO)
    first = double.requests[0]
    assert copy.deepcopy(first) == pickle.loads(pickle.dumps(first)) == first  # as recorders of traffic do
    cast("dict[str, str]", first.headers)["authorization"] = "other"
    lm.respond(HELLO)
    assert double.requests[1].headers["authorization"] == f"Bearer {KEY}"


def test_streamed_answer_of_mistral_on_vertex_has_a_path_of_its_own() -> None:
    backend: Any = LM("vertex/mistral-large-2411", api_key=KEY, base_url=REGION)._backend
    sent = openai_chat.encode(HELLO, backend.target_of(HELLO), stream=True)
    assert sent.path == "/publishers/mistralai/models/mistral-large-2411:streamRawPredict"
    body: Any = sent.body
    assert (body["model"], body["stream"]) == ("mistral-large-2411", True)
