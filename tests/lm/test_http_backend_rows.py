"""The rows of the wire's checklist that need a backend, on every wire: URLs, keys and errors.

A test id names its row and the wire. Errors come from ``FakeProvider``, in each provider's own words; what no provider should
send, and some do, are raw bodies.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from sigwire.core.events import collect
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall, ToolResult, WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.tool import Tool
from sigwire.errors import (
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTransportError,
    LMUnsupportedModelError,
    UnsupportedFeature,
)
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.providers.registry import register
from sigwire.lm.providers.row import ApiKey, Provider
from sigwire.testing import Answer, FakeProvider, Fault, Raw
from tests.lm.calls import HELLO, HOWS, KEY, TOOL, Clock, ask, forget_keys, patient, stream

# The wire of the fake provider, a model, and the options that select the wire.
MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "openai": ("openai/gpt-4.1", {}),
    "openai-responses": ("openai/gpt-4.1", {"wire": "responses"}),
    "anthropic": ("anthropic/claude-opus-5", {}),
    "gemini": ("gemini/gemini-3-flash", {}),
    "ollama": ("ollama/qwen3", {}),
}
WITH_KEY = [wire for wire in MODELS if wire != "ollama"]
EVERY_WIRE = pytest.mark.parametrize("wire", MODELS)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


def model_at(provider: FakeProvider, wire: str, clock: Clock | None = None, retries: int = 3) -> LM:
    model, options = MODELS[wire]
    return LM(model, base_url=provider.url(wire), api_key=KEY, limit=False, retry=patient(clock, retries), **options)


class Failed(NamedTuple):
    """An error, and how many requests were made for it."""

    error: LMError
    requests: int


async def failed(how: str, wire: str, answers: Any, **rest: Any) -> Failed:
    with FakeProvider(answers, **rest) as provider, pytest.raises(LMError) as caught:
        await ask(how, model_at(provider, wire))
    return Failed(caught.value, len(provider.requests))


# --- rows 1 to 5: where to, and with which key --------------------------------------------------------------------------


class Taken(Exception):
    """The request is all that was wanted."""


class Double:
    """A transport that takes a request down and sends nothing."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    def send(self, request: HttpRequest) -> HttpReply:
        self.requests.append(request)
        raise Taken

    async def asend(self, request: HttpRequest) -> HttpReply:
        return self.send(request)

    def stream(self, request: HttpRequest) -> Any:
        raise AssertionError(request)

    astream = stream

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


def taken(model: str, request: Request = HELLO, **options: Any) -> HttpRequest:
    double = Double()
    with pytest.raises(Taken):
        LM(model, transport=double, **options).respond(request)
    return double.requests[0]


class Place(NamedTuple):
    """How a wire is reached: rows 1 to 4."""

    url: str
    key_variable: str
    auth: tuple[str, str]
    base_variable: str
    base: str
    url_there: str
    also: Mapping[str, str] = {}


_GENERATE = "/v1/models/gemini-3-flash:generateContent"
BEARER = ("authorization", f"Bearer {KEY}")
PLACES = {
    "openai": Place(
        "https://api.openai.com/v1/chat/completions",
        "OPENAI_API_KEY",
        BEARER,
        "OPENAI_BASE_URL",
        "https://there.example/v1",
        "https://there.example/v1/chat/completions",
    ),
    "openai-responses": Place(
        "https://api.openai.com/v1/responses",
        "OPENAI_API_KEY",
        BEARER,
        "OPENAI_BASE_URL",
        "https://there.example/v1/",
        "https://there.example/v1/responses",
    ),
    "anthropic": Place(
        "https://api.anthropic.com/v1/messages",
        "ANTHROPIC_API_KEY",
        ("x-api-key", KEY),
        "ANTHROPIC_BASE_URL",
        "https://there.example/v1",  # one too many: the path has it already
        "https://there.example/v1/messages",
        {"anthropic-version": "2023-06-01"},
    ),
    "gemini": Place(
        f"https://generativelanguage.googleapis.com{_GENERATE}",
        "GEMINI_API_KEY",
        ("x-goog-api-key", KEY),
        "GOOGLE_GEMINI_BASE_URL",
        "https://there.example",
        f"https://there.example{_GENERATE}",
    ),
    "ollama": Place(
        "http://127.0.0.1:11434/api/chat",
        "OLLAMA_API_KEY",
        BEARER,
        "OLLAMA_HOST",
        "gpu-box",
        "http://gpu-box:11434/api/chat",
    ),
}


@EVERY_WIRE
def test_row_1_request_goes_to_the_url_of_the_wire(wire: str) -> None:
    model, options = MODELS[wire]
    request = taken(model, api_key=KEY, **options)
    assert request.url == PLACES[wire].url
    assert request.headers["content-type"] == "application/json"


@EVERY_WIRE
def test_row_2_headers_carry_the_key(wire: str) -> None:
    model, options = MODELS[wire]
    place = PLACES[wire]
    headers = taken(model, api_key=KEY, **options).headers
    assert headers == {"content-type": "application/json", place.auth[0]: place.auth[1], **place.also}


@pytest.mark.parametrize("wire", WITH_KEY)
def test_row_3_key_is_read_from_its_variable(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, options = MODELS[wire]
    monkeypatch.setenv(PLACES[wire].key_variable, KEY)
    name, value = PLACES[wire].auth
    assert taken(model, **options).headers[name] == value


def test_row_3_first_variable_that_is_set_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(variable, f"from {variable}")
    assert taken("gemini/gemini-3-flash").headers["x-goog-api-key"] == "from GOOGLE_API_KEY"
    assert taken("anthropic/claude-opus-5").headers["x-api-key"] == "from ANTHROPIC_API_KEY"


@EVERY_WIRE
def test_row_4_base_url_of_the_environment_gets_the_key(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, options = MODELS[wire]
    place = PLACES[wire]
    monkeypatch.setenv(place.base_variable, place.base)
    monkeypatch.setenv(place.key_variable, KEY)
    request = taken(model, **options)
    assert request.url == place.url_there
    assert (request.headers.get(place.auth[0]) == place.auth[1]) is (wire != "ollama")  # that key is ollama.com's


@HOWS
@pytest.mark.parametrize("wire", WITH_KEY)
async def test_row_5_nothing_is_sent_without_a_key(how: str, wire: str) -> None:
    model, options = MODELS[wire]
    double = Double()
    with pytest.raises(LMAuthenticationError, match=r"nothing was sent.*api_key=") as caught:
        await ask(how, LM(model, transport=double, **options))
    assert PLACES[wire].key_variable in str(caught.value)
    assert (double.requests, caught.value.retryable) == ([], False)


@EVERY_WIRE
def test_row_5_users_host_gets_no_key_when_none_is_set(wire: str) -> None:
    model, options = MODELS[wire]
    headers = taken(model, base_url="http://localhost:9/v1", **options).headers
    assert PLACES[wire].auth[0] not in headers


# --- row 43: several choices -----------------------------------------------------------------------------------------


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
async def test_row_43_refused_candidates_are_requested_one_by_one(how: str, streamed: bool) -> None:
    refusal = Fault("bad_request", "Multiple candidates is not enabled for this model.")
    with FakeProvider([refusal, "one", "two"]) as provider:
        lm = model_at(provider, "gemini")
        two = replace(HELLO, options={"n": 2})
        response = await (streamed_by if streamed else ask)(how, lm, two)
    assert {choice.text for choice in response.choices} == {"one", "two"}
    assert [warning.feature for warning in response.warnings] == ["n"]
    assert [attempt.error for attempt in response.attempts] == [LMInvalidRequestError.code, None, None]
    assert len(provider.requests) == 3


async def streamed_by(how: str, lm: LM, request: Request) -> Response:
    if how == "blocking":
        return collect(lm.stream(request))
    return collect([event async for event in lm.astream(request)])


@HOWS
async def test_row_43_other_bad_requests_are_raised(how: str) -> None:
    with FakeProvider([Fault("bad_request", "No.")]) as provider, pytest.raises(LMInvalidRequestError):
        await ask(how, model_at(provider, "gemini"), replace(HELLO, options={"n": 2}))
    assert len(provider.requests) == 1


# --- rows 31, 38 and 49: what depends on where the model is -------------------------------------------------------------

ANOTHER: JsonObject = {
    "type": "function",
    "function": {"name": "g", "parameters": {"type": "object", "properties": {}}},
}
LIMITED = replace(HELLO, tools=(TOOL, ANOTHER), tool_choice=ToolChoice("auto", ("f",)), options={"max_tokens": 50})


def body_sent(model: str, request: Request, **options: Any) -> Any:
    return json.loads(taken(model, request, api_key=KEY, **options).body)


@pytest.mark.parametrize(
    ("model", "base_url", "own"),
    [
        ("openai/gpt-4.1", None, True),
        ("openai/some-model", None, True),  # newer than the table
        ("openai/some-model", "https://us.api.openai.com/v1", True),
        ("openai/gpt-4.1", "https://gateway.example/v1", True),
        ("openai/ft:gpt-4o-mini:acme", "https://gateway.example/v1", True),
        ("openai/some-model", "http://localhost:8000/v1", False),
        ("openai/gpt-oss-20b", "https://gateway.example/v1", False),
        ("openai/some-model", "http://api.openai.com/v1", False),
    ],
)
def test_rows_31_and_38_foreign_hosts_get_the_compatible_profile(model: str, base_url: str | None, own: bool) -> None:
    body = body_sent(model, LIMITED, base_url=base_url)
    assert body.get("max_completion_tokens" if own else "max_tokens") == 50
    assert len(body["tools"]) == (2 if own else 1)
    assert body["tool_choice"] == (ALLOWED if own else "auto")


ALLOWED = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
}


def test_row_38_foreign_host_may_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = LM("openai/some-model", transport=(double := Double()), api_key=KEY)
    for url in ("http://localhost:8000/v1", "https://api.openai.com/v1"):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with pytest.raises(Taken):
            lm.respond(LIMITED)
    bodies = [json.loads(request.body) for request in double.requests]
    assert [body.get("max_tokens") for body in bodies] == [50, None]
    assert [body.get("max_completion_tokens") for body in bodies] == [None, 50]


SEARCHING = replace(HELLO, tools=(Tool.web_search(WebSearch()).spec, TOOL))


@pytest.mark.parametrize("model", ["openai/gpt-4.1", "openai/gpt-5.5", "openai/newer"])
def test_row_49_web_search_uses_the_wire_that_supports_web_search(model: str) -> None:
    assert [tool["type"] for tool in body_sent(model, SEARCHING)["tools"]] == ["web_search", "function"]
    assert taken(model, SEARCHING, api_key=KEY).url == PLACES["openai-responses"].url


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("openai/gpt-4.1", {"wire": "chat"}),
        ("openai/some-model", {"base_url": "http://localhost:9/v1"}),
        ("ollama/qwen3", {}),
        ("groq/llama-3.3-70b", {"api_key": KEY}),
    ],
)
def test_row_49_unsupported_web_search_is_refused_before_sending(model: str, options: Mapping[str, Any]) -> None:
    double = Double()
    with pytest.raises(UnsupportedFeature, match="no place for"):
        LM(model, transport=double, **options).respond(SEARCHING)
    assert double.requests == []


# --- rows 73 to 80: what becomes of errors ---------------------------------------------------------------------------


@HOWS
@pytest.mark.parametrize("wire", WITH_KEY)
async def test_row_73_authentication_error_names_the_variable_and_masks_the_key(how: str, wire: str) -> None:
    error, requests = await failed(how, wire, ["never"], key="another one")
    assert type(error) is LMAuthenticationError
    assert "Check the API key and its permissions. It was given as api_key." in str(error)
    assert error.status in (400, 401)  # Gemini calls it a bad request
    assert KEY not in f"{error} {error!r} {error.args}"
    assert requests == 1


@HOWS
@EVERY_WIRE
async def test_row_74_unknown_model_is_an_error(how: str, wire: str) -> None:
    error, requests = await failed(how, wire, ["never"], models={"another-one"})
    assert type(error) is LMUnsupportedModelError
    assert (error.status, requests) == (404, 1)
    assert (error.provider, error.model) == tuple(MODELS[wire][0].split("/"))
    assert error.model is not None
    next_step = (
        "Download it with `ollama pull {1}`" if wire == "ollama" else "Check the model's name: {0} does not serve {1!r}"
    )
    assert next_step.format(error.provider, error.model) in error.message


@HOWS
@EVERY_WIRE
async def test_refused_connection_error_names_the_base_url(how: str, wire: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
    base = f"{host}/v1" if wire.startswith("openai") else host
    model, options = MODELS[wire]
    with pytest.raises(LMTransportError, match=r"refused.*Check that the server is running") as caught:
        await ask(how, LM(model, base_url=base, api_key=KEY, num_retries=0, **options))
    assert host + urlsplit(PLACES[wire].url).path in str(caught.value)
    assert ("`ollama serve`" in str(caught.value)) is (wire == "ollama")


@HOWS
@pytest.mark.parametrize("model", ["ollama/gemma2", "ollama/llama3:8b", "gemini/gemma-3-27b-it", "groq/compound"])
async def test_listed_model_without_tools_is_refused_before_sending(how: str, model: str) -> None:
    double = Double()
    with pytest.raises(UnsupportedFeature, match=rf"{model} does not take tools.*native_tools=True"):
        await ask(how, LM(model, transport=double, api_key=KEY), replace(HELLO, tools=(TOOL,)))
    assert double.requests == []


class Expected(NamedTuple):
    """The error of a fault, and whether a retry can cure it."""

    kind: type[LMError]
    again: bool


FAULTS: Mapping[str, tuple[Fault, Expected]] = {
    "row 75 context": (Fault("context_length"), Expected(ContextWindowExceededError, again=False)),
    "row 76 rate limit": (Fault("rate_limit"), Expected(LMRateLimitError, again=True)),
    "row 77 overloaded": (Fault("overloaded"), Expected(LMServerError, again=True)),
    "row 77 a server error": (Fault("server"), Expected(LMServerError, again=True)),
    "row 78 billing": (Fault("billing"), Expected(LMBillingError, again=False)),
    "a request that does not fit": (Fault("bad_request"), Expected(LMInvalidRequestError, again=False)),
    "a permission": (Fault("permission"), Expected(LMAuthenticationError, again=False)),
}


@HOWS
@EVERY_WIRE
@pytest.mark.parametrize("row", FAULTS)
async def test_fault_has_one_error_class_on_every_wire_and_retries_only_if_transient(
    row: str, wire: str, how: str
) -> None:
    fault, expected = FAULTS[row]
    error, requests = await failed(how, wire, lambda request: fault)
    assert type(error) is expected.kind
    assert error.retryable is expected.again
    most = 33 if expected.kind is LMRateLimitError else 4  # bounded: 32 rounds, or num_retries, and the first
    assert requests == (most if expected.again else 1)
    assert [attempt.error for attempt in error.attempts] == [error.code] * requests
    assert error.provider == MODELS[wire][0].partition("/")[0]


@HOWS
@EVERY_WIRE
async def test_row_76_stated_wait_is_on_the_error(how: str, wire: str) -> None:
    clock = Clock()
    with FakeProvider([Fault("rate_limit", retry_after=7), "Hi"]) as provider:
        response = await ask(how, model_at(provider, wire, clock))
    assert response.choices[0].text == "Hi"
    assert clock.slept == [7.0]
    assert [(attempt.purpose, attempt.error) for attempt in response.attempts] == [
        ("ask", "rate_limit"),
        ("retry", None),
    ]


@HOWS
@pytest.mark.parametrize("wire", ["openai", "openai-responses", "anthropic"])  # the others send none
async def test_error_has_the_request_id_of_the_provider(how: str, wire: str) -> None:
    error, _ = await failed(how, wire, [Fault("bad_request")])
    assert error.request_id is not None
    assert error.request_id.startswith("req_")
    assert error.request_id in str(error)


def in_200(code: str, message: str) -> JsonValue:
    return {"error": {"message": message, "code": code}}


# The wire, the body, what it is, its status (the provider's own word for it where there is one), and how often it is asked for.
INSIDE_200: Mapping[str, tuple[str, JsonValue, type[LMError], int, int]] = {
    "row 79 openai, by its code": ("openai", in_200("rate_limit_exceeded", "slow down"), LMRateLimitError, 200, 33),
    "row 79 openai, by a number": ("openai", {"error": {"message": "down", "code": 503}}, LMServerError, 503, 4),
    "row 79 openai-responses, failed": (
        "openai-responses",
        {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}, "output": []},
        LMRateLimitError,
        200,
        33,
    ),
    "row 79 anthropic": (
        "anthropic",
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        LMServerError,
        529,
        4,
    ),
    "row 79 gemini": (
        "gemini",
        {"error": {"code": 503, "message": "down", "status": "UNAVAILABLE"}},
        LMServerError,
        503,
        4,
    ),
    "row 79 ollama, without a code": ("ollama", {"error": "model runner has stopped"}, LMServerError, 200, 4),
    "row 62 openai, choices null": ("openai", {"choices": None}, LMServerError, 200, 2),
    "row 62 openai, no choices": ("openai", {"choices": []}, LMServerError, 200, 2),
    "row 62 anthropic, no content at all": ("anthropic", {"type": "message"}, LMServerError, 200, 2),
    "row 62 gemini, nothing": ("gemini", {}, LMServerError, 200, 2),
    "row 62 ollama, nothing": ("ollama", {}, LMServerError, 200, 2),
}


@HOWS
@pytest.mark.parametrize("row", INSIDE_200)
async def test_error_inside_a_success_is_raised(row: str, how: str) -> None:
    wire, body, kind, status, requests = INSIDE_200[row]
    error, made = await failed(how, wire, lambda request: Raw(body))
    assert (type(error), error.status, made) == (kind, status, requests)


HTML = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>"


@HOWS
@EVERY_WIRE
@pytest.mark.parametrize(
    ("status", "kind", "requests"),
    [
        (502, LMServerError, 4),
        (401, LMAuthenticationError, 1),
        (400, LMInvalidRequestError, 1),
        (200, LMTransportError, 2),  # a gateway may be damaged for a moment
    ],
)
async def test_row_80_error_body_without_json_is_read_by_its_status(
    status: int, kind: type[LMError], requests: int, wire: str, how: str
) -> None:
    page = Raw(HTML, status, {"content-type": "text/html"})
    error, made = await failed(how, wire, lambda request: page)
    assert isinstance(error, kind)
    assert (error.status, made) == (status, requests)
    assert "502 Bad Gateway" in error.message


@HOWS
@EVERY_WIRE
@pytest.mark.parametrize("streamed", [False, True])
async def test_damaged_success_after_a_server_error_is_retried(how: str, wire: str, streamed: bool) -> None:
    damaged = [Raw("Service is warm\0\0\0"), Raw('data: {"broken\n\n' if streamed else '{"broken')]
    with FakeProvider([Fault("server"), *damaged, "Hi"]) as provider:
        lm = model_at(provider, wire, retries=3)
        response = collect(await stream(how, lm)) if streamed else await ask(how, lm)
        assert response.choices[0].text == "Hi"
        assert len(provider.requests) == 4


@HOWS
@EVERY_WIRE
async def test_truncated_reply_is_retried(how: str, wire: str) -> None:
    answers: list[Answer] = [Raw({"choices": [], "much": "more" * 50}, cut=True), "Hi"]
    with FakeProvider(answers) as provider:
        response = await ask(how, model_at(provider, wire))
    assert response.choices[0].text == "Hi"
    assert [attempt.error for attempt in response.attempts] == [LMTransportError.code, None]


def test_row_57_blocked_prompt_is_a_content_filter_error() -> None:
    with FakeProvider([Fault("content_filter")]) as provider, pytest.raises(LMContentFilteredError):
        model_at(provider, "openai").respond(HELLO)


# --- a row of one's own ------------------------------------------------------------------------------------------------


@HOWS
async def test_registered_row_sends_its_own_key(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeProvider(["Hi"], key=KEY) as provider:
        register(Provider(prefix="acme", base_url=provider.url("openai"), keys=(ApiKey("ACME_API_KEY"),)))
        lm = LM("acme/some-model")
        with pytest.raises(LMAuthenticationError, match="Set ACME_API_KEY in the environment"):
            await ask(how, lm)
        monkeypatch.setenv("ACME_API_KEY", KEY)
        assert (await ask(how, lm)).choices[0].text == "Hi"
    (sent,) = provider.requests
    assert isinstance(sent.body, dict)
    assert (sent.path, sent.body["model"]) == ("/v1/chat/completions", "some-model")


# --- call ids of Mistral's models, on every host

MISTRAL_HOSTS: dict[str, dict[str, Any]] = {
    "vllm/mistralai/Mistral-Small-3.2-24B": {},
    "llamacpp/Ministral-8B-Instruct": {},
    "lmstudio/devstral-small": {},
    "together/mistralai/Mixtral-8x7B-Instruct-v0.1": {},
    "openrouter/mistralai/magistral-medium": {},
    "openai/open-mixtral-8x22b": {"base_url": "http://127.0.0.1:9/v1"},
    "mistral/mistral-large-latest": {},
}


@pytest.mark.parametrize("call_id", ["call_0", "call_x7Kq0000000000000000", "123456789"])
@pytest.mark.parametrize("name", MISTRAL_HOSTS)
def test_mistral_models_get_ids_of_nine_characters_on_every_host(name: str, call_id: str) -> None:
    turns: list[Message] = [Message.user("q")]
    bodies: list[Any] = []
    for turn in range(3):
        calls = [ToolCall(f"{call_id}{n or ''}", "f", {"turn": turn}) for n in range(2)]
        turns += [Message.assistant("", calls), Message.tool(*(ToolResult(call.id, "f", "ok") for call in calls))]
        sent = taken(name, Request(tuple(turns), (TOOL,)), api_key="any", **MISTRAL_HOSTS[name])
        bodies.append(json.loads(sent.body))
    messages = bodies[-1]["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", each) for each in ids)
    assert len(set(ids)) == 6
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids
    assert all(body["messages"] == messages[: len(body["messages"])] for body in bodies)


@pytest.mark.parametrize("name", ["vllm/qwen3-8b", "together/meta-llama/Llama-3.3-70B", "llamacpp/m"])
def test_ids_of_other_models_are_sent_unchanged(name: str) -> None:
    called = Message.assistant("", [ToolCall("call_0", "f", {})])
    request = Request((Message.user("q"), called, Message.tool(ToolResult("call_0", "f", "ok"))), (TOOL,))
    assert json.loads(taken(name, request, api_key="any").body)["messages"][2]["tool_call_id"] == "call_0"


@pytest.mark.parametrize("name", ["vllm/gemma-3", "llamacpp/gemma-3", "lmstudio/gemma-3"])
def test_two_user_turns_are_one_on_hosts_with_chat_templates(name: str) -> None:
    turns = (Message.user("one"), Message.user("two"), Message.assistant("three"), Message.user("four"))
    sent = json.loads(taken(name, Request(turns), api_key="any").body)["messages"]
    assert [(message["role"], message["content"]) for message in sent] == [
        ("user", "one\n\ntwo"), ("assistant", "three"), ("user", "four"),
    ]  # fmt: skip
