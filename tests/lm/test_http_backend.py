"""A model over real HTTP: every wire, endpoints and keys, retries, error texts."""

from __future__ import annotations

import copy
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.events import ChoiceEnd, ResponseEnd, TextDelta, UsageUpdate, collect
from sigwire.core.json import JsonObject
from sigwire.core.response import Attempt, Usage
from sigwire.errors import (
    ConfigurationError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMNotConfigured,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedModelError,
    StateError,
    UnsupportedFeature,
    UnsupportedOption,
)
from sigwire.lm.client import LM
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.lm.providers.registry import PROVIDERS
from sigwire.modules.predict import Predict
from tests.lm.calls import HELLO, HOWS, KEY, WITH_TOOLS, Clock, ask, forget_keys, patient, stream
from tests.lm.loopback import Host, Reply
from tests.lm.replies import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Double

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)


# --- every wire ------------------------------------------------------------------------------------------

WIRES = [
    ("openai/gpt-4.1", "/v1", "/v1/chat/completions", ("authorization", f"Bearer {KEY}"), CHAT),
    ("openai/gpt-5-pro", "/v1", "/v1/responses", ("authorization", f"Bearer {KEY}"), RESPONSES),
    ("azure/gpt-4.1", "", "/openai/deployments/gpt-4.1/chat/completions", ("api-key", KEY), CHAT),
    ("anthropic/claude-sonnet-4-5", "/v1", "/v1/messages", ("x-api-key", KEY), MESSAGES),
    ("gemini/gemini-2.5-flash", "", "/v1/models/gemini-2.5-flash:generateContent", ("x-goog-api-key", KEY), GEMINI),
    (
        "vertex/gemini-2.5-flash",
        "/v1/projects/p/locations/global",
        "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-flash:generateContent",
        ("authorization", f"Bearer {KEY}"),
        GEMINI,
    ),
    ("ollama/qwen3", "", "/api/chat", ("authorization", f"Bearer {KEY}"), OLLAMA),
    ("groq/llama-3.3-70b", "/openai/v1", "/openai/v1/chat/completions", ("authorization", f"Bearer {KEY}"), CHAT),
]


@HOWS
@pytest.mark.parametrize(("model", "base", "path", "auth", "body"), WIRES, ids=[wire[0] for wire in WIRES])
async def test_every_wire_answers_over_http(
    how: str, model: str, base: str, path: str, auth: tuple[str, str], body: JsonObject, serve: Callable[..., Host]
) -> None:
    host = serve(body)
    response = await ask(how, LM(model, api_key=KEY, base_url=host.url + base))
    assert (response.choices[0].text, response.model) == ("hi", "m-2026")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 1)
    assert response.raw == body
    assert response.attempts == (Attempt("ask", model, response.usage),)
    (seen,) = host.seen
    assert seen.path == path
    assert seen.headers[auth[0]] == auth[1]
    assert "hello" in json.dumps(seen.body)


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("model", "base", "path", "auth", "body"), WIRES, ids=[wire[0] for wire in WIRES])
async def test_query_of_the_base_url_is_kept_on_every_wire(
    how: str, streamed: bool, model: str, base: str, path: str, auth: tuple[str, str], body: JsonObject,
    serve: Callable[..., Host],
) -> None:  # fmt: skip
    host = serve(body)
    lm = LM(model, base_url=f"{host.url}{base}/?api-version=2031-01-01&tenant=a%20b", api_key=KEY)
    await (stream(how, lm) if streamed else ask(how, lm))
    (seen,) = host.seen
    assert seen.path == (path.replace(":generateContent", ":streamGenerateContent") if streamed else path)
    pairs = seen.query.split("&")
    assert pairs[:2] == ["api-version=2031-01-01", "tenant=a%20b"]
    assert [pair for pair in pairs[2:] if pair.startswith("api-version")] == []
    assert ("alt=sse" in pairs) == (streamed and body is GEMINI)
    assert "tenant" not in repr(lm)


def test_program_runs_over_http(serve: Callable[..., Host]) -> None:
    content = "[[ ## answer ## ]]\nOslo\n\n[[ ## completed ## ]]"
    host = serve({**CHAT, "choices": [{"message": {"content": content}, "finish_reason": "stop"}]})
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url)
    prediction = Predict("question -> answer", lm=lm)(question="Where?")
    assert prediction.answer == "Oslo"
    assert [attempt.purpose for attempt in prediction.attempts] == ["ask"]


@pytest.mark.parametrize(
    ("model", "tools", "options", "path"),
    [
        ("gpt-5.6", True, {}, "/responses"),
        ("gpt-5.6", False, {}, "/chat/completions"),
        ("gpt-5.1", True, {}, "/chat/completions"),
        ("gpt-5.1", True, {"wire": "responses"}, "/responses"),
        ("gpt-5.6", True, {"wire": "chat"}, "/chat/completions"),
    ],
)
def test_request_with_tools_uses_the_wire_of_the_rule(
    model: str, tools: bool, options: dict[str, Any], path: str, serve: Callable[..., Host]
) -> None:
    host = serve({**CHAT, **RESPONSES})
    lm = LM(f"openai/{model}", api_key=KEY, base_url=host.url, **options)
    assert lm.respond(WITH_TOOLS if tools else HELLO).choices[0].text == "hi"
    assert host.seen[0].path == path


def test_unknown_wire_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"anthropic has no wire 'responses'.*messages"):
        LM("anthropic/claude-sonnet-5", wire="responses")


# --- choices of several exchanges, paused turns


@HOWS
async def test_choices_of_several_exchanges_are_joined(how: str, serve: Callable[..., Host]) -> None:
    host = serve(MESSAGES)
    lm = LM("anthropic/claude-sonnet-4-5", api_key=KEY, base_url=host.url, n=3)
    response = await ask(how, lm)
    assert [choice.text for choice in response.choices] == ["hi"] * 3
    assert response.usage == Usage(input_tokens=9, output_tokens=3)
    assert [warning.feature for warning in response.warnings] == ["n"]
    assert response.raw == [MESSAGES] * 3
    assert len(response.attempts) == len(host.seen) == 3


@HOWS
async def test_only_the_failed_choice_is_retried(how: str, serve: Callable[..., Host]) -> None:
    host = serve(MESSAGES, Reply({"error": {"type": "overloaded_error"}}, 529), MESSAGES)
    lm = LM("anthropic/claude-sonnet-4-5", api_key=KEY, base_url=host.url, n=2, retry=patient())
    response = await ask(how, lm)
    assert len(response.choices) == 2
    assert sorted(attempt.error or "" for attempt in response.attempts) == ["", "", "server"]
    assert len(host.seen) == 3


@HOWS
async def test_paused_turn_is_continued(how: str, serve: Callable[..., Host]) -> None:
    paused = {**MESSAGES, "content": [{"type": "text", "text": "Well, "}], "stop_reason": "pause_turn"}
    host = serve(paused, MESSAGES)
    response = await ask(how, LM("anthropic/claude-sonnet-4-5", api_key=KEY, base_url=host.url))
    assert response.choices[0].text == "Well, hi"
    assert response.usage.input_tokens == 6
    assert host.seen[1].body["messages"][-1]["role"] == "assistant"
    assert [attempt.usage.input_tokens for attempt in response.attempts] == [3, 3]


@HOWS
async def test_paused_turn_is_streamed_as_one_answer(how: str, serve: Callable[..., Host]) -> None:
    paused = {**MESSAGES, "content": [{"type": "text", "text": "Well, "}], "stop_reason": "pause_turn"}
    host = serve(paused, MESSAGES)
    lm = LM("anthropic/claude-sonnet-4-5", api_key=KEY, base_url=host.url)
    events = list(lm.stream(HELLO)) if how == "blocking" else [event async for event in lm.astream(HELLO)]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Well, ", "hi"]
    assert [type(event) for event in events[-3:]] == [UsageUpdate, ChoiceEnd, ResponseEnd]
    assert sum(isinstance(event, ChoiceEnd | ResponseEnd) for event in events) == 2
    whole = await ask(how, LM("anthropic/claude-sonnet-4-5", api_key=KEY, base_url=serve(paused, MESSAGES).url))
    assert replace(collect(events), attempts=whole.attempts) == whole


LONG = {
    **GEMINI,
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "Well, "}]},
            "finishReason": "CONTINUATION",
            "continuationToken": "AAEC",
        }
    ],
}


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
async def test_truncated_reply_is_continued(how: str, streamed: bool, serve: Callable[..., Host]) -> None:
    host = serve(LONG, GEMINI)
    lm = LM("gemini/gemini-2.5-flash", api_key=KEY, base_url=host.url)
    if streamed:
        events = list(lm.stream(HELLO)) if how == "blocking" else [event async for event in lm.astream(HELLO)]
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["Well, ", "hi"]
        assert sum(isinstance(event, ChoiceEnd | ResponseEnd) for event in events) == 2
        response = collect(events)
    else:
        response = await ask(how, lm)
    assert (response.choices[0].text, response.choices[0].finish_reason) == ("Well, hi", "stop")
    assert (response.usage.input_tokens, response.warnings, response.raw) == (6, (), [LONG, GEMINI])
    first, second = (seen.body for seen in host.seen)
    assert second == {**first, "continuationToken": "AAEC"}


def test_endlessly_paused_turn_ends_after_a_limit(serve: Callable[..., Host]) -> None:
    host = serve({**MESSAGES, "stop_reason": "pause_turn"})
    response = LM("anthropic/claude-sonnet-4-5", api_key=KEY, base_url=host.url).respond(HELLO)
    assert response.choices[0].finish_reason == "length"
    assert len(host.seen) == 33


# --- trying again ----------------------------------------------------------------------------------------------------

BUSY = Reply({"error": {"message": "overloaded"}}, 503)


@HOWS
async def test_overloaded_provider_is_retried(how: str, serve: Callable[..., Host]) -> None:
    host, clock = serve(BUSY, BUSY, CHAT), Clock()
    response = await ask(how, LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient(clock)))
    assert response.choices[0].text == "hi"
    assert [(attempt.purpose, attempt.error) for attempt in response.attempts] == [
        ("ask", "server"),
        ("retry", "server"),
        ("retry", None),
    ]
    assert clock.slept == [0.5, 1.0]
    assert host.seen[0].body == host.seen[2].body


@HOWS
async def test_retry_waits_as_long_as_the_provider_states(how: str, serve: Callable[..., Host]) -> None:
    host, clock = serve(Reply({}, 429, {"retry-after": "7"}), CHAT), Clock()
    await ask(how, LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient(clock), limit=False))
    assert clock.slept == [7.0]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply({}, 429, {"retry-after": "3600"}), LMRateLimitError),
        (Reply({"error": {"message": "no", "code": "insufficient_quota"}}, 429), LMBillingError),
        (Reply({}, 401), LMAuthenticationError),
        (Reply({}, 400), LMInvalidRequestError),
        (Reply({}, 503, {"x-should-retry": "false"}), LMServerError),
    ],
)
def test_final_errors_are_not_retried(reply: Reply, error: type[LMError], serve: Callable[..., Host]) -> None:
    host = serve(reply)
    with pytest.raises(error) as caught:
        LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient()).respond(HELLO)
    assert len(host.seen) == 1
    why = "the stated wait exceeds 120 s" if error is LMRateLimitError else None
    assert caught.value.attempts == (Attempt("ask", "openai/gpt-4.1", error=error.code, why=why),)


BROKEN = [b"", b'{"choices": [{"message"', b"Service is warming up"]


@HOWS
@pytest.mark.parametrize("body", BROKEN)
async def test_success_that_is_not_json_is_retried_like_a_lost_connection(
    how: str, body: bytes, serve: Callable[..., Host]
) -> None:
    host = serve(BUSY, body, body, CHAT)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient())
    response = await ask(how, lm)
    assert response.choices[0].text == "hi"
    assert [attempt.error for attempt in response.attempts] == ["server", "connection", "connection", None]
    host = serve(body)
    with pytest.raises(LMTransportError) as caught:
        await ask(how, lm.copy(base_url=host.url))
    assert len(host.seen) == 4
    assert caught.value.status == 200


PAGES = [
    Reply(b"\n <!DOCTYPE html><html><title>Our site</title></html>"),
    Reply(b"Welcome", headers={"content-type": "Text/HTML; charset=utf-8"}),
]


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("page", PAGES, ids=["by its first tag", "by its content type"])
async def test_success_that_is_a_web_page_is_retried_once_and_names_base_url(
    how: str, page: Reply, streamed: bool, serve: Callable[..., Host]
) -> None:
    host = serve(page)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient())
    with pytest.raises(LMTransportError, match=r"HTML page.*check base_url") as caught:
        await (stream(how, lm) if streamed else ask(how, lm))
    assert len(host.seen) == 2
    assert caught.value.status == 200


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("page", PAGES, ids=["by its first tag", "by its content type"])
async def test_web_page_of_a_gateway_that_recovers_is_no_failure(
    how: str, page: Reply, streamed: bool, serve: Callable[..., Host]
) -> None:
    host = serve(page, CHAT)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient())
    response = collect(await stream(how, lm)) if streamed else await ask(how, lm)
    assert [attempt.error for attempt in response.attempts] == ["connection", None]


GARBAGE = [b"<", b"<\x00\xff{", b"<choices>", b"<a href=x>", b" \n<{}"]


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("body", GARBAGE, ids=repr)
async def test_damaged_body_that_starts_as_a_tag_is_retried_like_any_other(
    how: str, body: bytes, streamed: bool, serve: Callable[..., Host]
) -> None:
    damaged = Reply(body, headers={"content-type": "application/json"})
    host = serve(damaged, damaged, damaged, CHAT)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient())
    response = collect(await stream(how, lm)) if streamed else await ask(how, lm)
    assert [attempt.error for attempt in response.attempts] == ["connection", "connection", "connection", None]


@HOWS
async def test_success_without_an_answer_is_retried_once(how: str, serve: Callable[..., Host]) -> None:
    host = serve(BUSY, {"choices": []}, BUSY, {"choices": []}, CHAT)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient(retries=9))
    with pytest.raises(LMServerError, match="holds no choices"):
        await ask(how, lm)
    assert len(host.seen) == 4


@HOWS
async def test_truncated_body_is_retried(how: str, serve: Callable[..., Host]) -> None:
    host = serve(Reply(CHAT, cut=True), CHAT)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient())
    response = await ask(how, lm)
    assert [attempt.error for attempt in response.attempts] == ["connection", None]


def test_call_that_the_host_cannot_parse_is_retried(serve: Callable[..., Host]) -> None:
    failed = {"error": {"message": "Failed to call a function", "code": "tool_use_failed", "failed_generation": "?"}}
    host = serve(Reply(failed, 400), CHAT)
    lm = LM("groq/llama-3.3-70b", api_key=KEY, base_url=host.url, retry=patient())
    assert len(lm.respond(WITH_TOOLS).attempts) == 2


@HOWS
async def test_call_that_the_host_refuses_is_returned_with_its_error(how: str, serve: Callable[..., Host]) -> None:
    body = {"message": "x is missing", "code": "tool_use_failed", "failed_generation": '{"name":"f","arguments":{}}'}
    host = serve(Reply({"error": body}, 400))
    response = await ask(how, LM("groq/llama-3.3-70b", api_key=KEY, base_url=host.url, retry=patient()), WITH_TOOLS)
    (call,) = response.choices[0].tool_calls
    assert (call.name, call.arguments, call.error and call.error.message) == ("f", {}, "x is missing")
    assert len(host.seen) == 1


def test_num_retries_of_the_model_bounds_retries(serve: Callable[..., Host]) -> None:
    host = serve(BUSY)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, retry=patient(), num_retries=3)
    for model, requests in [
        (lm.copy(num_retries=0), 1),
        (lm.copy(num_retries=1), 2),
        (lm.copy(retry=patient(None, 2)), 3),
    ]:
        host.seen.clear()
        with pytest.raises(LMServerError):
            model.respond(HELLO)
        assert len(host.seen) == requests


@HOWS
async def test_timeout_covers_the_whole_request(how: str, serve: Callable[..., Host]) -> None:
    host = serve(Reply(CHAT, delay=0.3))
    with pytest.raises(LMTimeoutError, match=host.url):
        await ask(how, LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, timeout=0.05, num_retries=0))


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
async def test_timeout_of_a_request_ends_the_call_without_a_retry(
    streamed: bool, how: str, serve: Callable[..., Host]
) -> None:
    host = serve(Reply(CHAT, delay=0.6))
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, timeout=0.25, retry=patient(retries=9))
    with pytest.raises(LMTimeoutError) as caught:
        await (stream(how, lm) if streamed else ask(how, lm))
    assert [attempt.why for attempt in caught.value.attempts] == ["no time left"]
    assert len(host.seen) <= 1


@HOWS
@pytest.mark.parametrize("streamed", [False, True])
async def test_timeout_covers_the_call_with_its_retries(streamed: bool, how: str, serve: Callable[..., Host]) -> None:
    host, clock = serve(BUSY), Clock()
    retry = RetryPolicy(9, 15.0, longest_backoff=999.0, clock=clock, random=lambda: 0.0)
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, timeout=100, retry=retry)
    with pytest.raises(LMServerError, match="no time left") as caught:
        await (stream(how, lm) if streamed else ask(how, lm))
    assert clock.slept == [15.0, 30.0]  # the next wait would end after 105 s
    assert len(host.seen) == len(caught.value.attempts) == 3


@HOWS
@pytest.mark.parametrize(
    ("raised", "error"), [(OSError("no route"), LMTransportError), (TimeoutError(), LMTimeoutError)]
)
async def test_error_of_a_custom_transport_becomes_an_lm_error(
    how: str, raised: Exception, error: type[LMError]
) -> None:
    double = Double(raised)
    with pytest.raises(error, match=r"https://api\.openai\.com/v1") as caught:
        await ask(how, LM("openai/gpt-4.1", api_key=KEY, transport=double, retry=patient(retries=1)))
    assert caught.value.__cause__ is raised
    assert (caught.value.provider, caught.value.model) == ("openai", "gpt-4.1")
    assert len(double.requests) == 2


# --- error texts


def test_predict_without_a_model_raises() -> None:
    with pytest.raises(LMNotConfigured, match=r"configure\(lm=sigwire\.LM\("):
        Predict("question -> answer")(question="Where?")


def test_authentication_error_names_the_origin_of_the_key(
    serve: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = serve(Reply({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, 401))
    monkeypatch.setenv("OPENAI_BASE_URL", host.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(LMAuthenticationError, match=r"Incorrect API key provided.*read from OPENAI_API_KEY"):
        LM("openai/gpt-4.1").respond(HELLO)


def test_bad_request_for_a_wrong_key_is_an_authentication_error(serve: Callable[..., Host]) -> None:
    error = {
        "code": 400,
        "message": "API key not valid.",
        "status": "INVALID_ARGUMENT",
        "details": [{"reason": "API_KEY_INVALID"}],
    }
    host = serve(Reply({"error": error}, 400))
    with pytest.raises(LMAuthenticationError, match="given as api_key"):
        LM("gemini/gemini-2.5-flash", api_key=KEY, base_url=host.url).respond(HELLO)


def test_authentication_error_names_the_key_that_was_not_sent(
    serve: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = serve(Reply({"error": {"message": "no key"}}, 401))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(LMAuthenticationError, match=r"OPENAI_API_KEY was not sent.*127\.0\.0\.1.*Pass api_key="):
        LM("openai/gpt-4.1", base_url=host.url).respond(HELLO)
    assert "authorization" not in host.seen[0].headers


def test_unknown_model_of_a_provider_is_an_error_with_a_hint(serve: Callable[..., Host]) -> None:
    host = serve(Reply({"error": {"message": "The model does not exist", "code": "model_not_found"}}, 404))
    with pytest.raises(LMUnsupportedModelError, match=r"openai does not serve 'gpt-4\.2' to this key"):
        LM("openai/gpt-4.2", api_key=KEY, base_url=host.url).respond(HELLO)
    host = serve(Reply({"error": "model 'nope' not found"}, 404))
    with pytest.raises(LMUnsupportedModelError, match="`ollama pull nope`"):
        LM("ollama/nope", base_url=host.url).respond(HELLO)


def test_not_found_error_names_a_given_base_url(serve: Callable[..., Host]) -> None:
    host = serve(Reply({"error": {"message": "Not Found"}}, 404))
    with pytest.raises(
        LMError, match=rf"base_url is not the address of its API: the request went to {host.url} for /chat"
    ):
        LM("openai/gpt-4.1", api_key=KEY, base_url=host.url).respond(HELLO)


@HOWS
async def test_refused_connection_to_ollama_has_its_hint(how: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    lm = LM("ollama/qwen3", base_url=f"http://127.0.0.1:{port}", num_retries=0)
    with pytest.raises(LMTransportError, match=rf"http://127\.0\.0\.1:{port}/api/chat.*`ollama serve`"):
        await ask(how, lm)


def test_lost_connection_has_no_hint_to_start_the_server(serve: Callable[..., Host]) -> None:
    host = serve(Reply(OLLAMA, cut=True))
    with pytest.raises(LMTransportError) as caught:
        LM("ollama/qwen3", base_url=host.url, num_retries=0).respond(HELLO)
    assert "ollama serve" not in str(caught.value)


def test_tools_for_a_model_without_tools_are_refused_before_sending() -> None:
    double = Double(OLLAMA)
    with pytest.raises(UnsupportedFeature, match="does not take tools"):
        LM("ollama/gemma2", transport=double).respond(WITH_TOOLS)
    assert double.requests == []


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("ollama/unheard-of", "registry.ollama.ai/library/unheard-of does not support tools"),
        ("vllm/m", '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    ],
)
def test_refused_tools_have_the_hint_of_text_tools(model: str, said: str, serve: Callable[..., Host]) -> None:
    host = serve(Reply({"error": said}, 400))
    with pytest.raises(LMInvalidRequestError, match=r"native_tools=False") as caught:
        LM(model, base_url=host.url).respond(WITH_TOOLS)
    assert str(caught.value).count("native_tools=False") == 1


def test_unsupported_option_is_refused_before_sending() -> None:
    double = Double()
    with pytest.raises(UnsupportedOption, match="extra_body"):
        LM("openai/gpt-4.1", api_key=KEY, transport=double, frobnicate=1).respond(HELLO)
    assert double.requests == []


# --- copies and state ------------------------------------------------------------------------------------------------------


def test_copy_uses_its_connection_options() -> None:
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url="https://a.example", timeout=3.0, temperature=0.5)
    other = lm.copy(base_url="https://b.example", model="groq/llama-3.3-70b", seed=1)
    assert (other.base_url, other.timeout, other.kwargs["seed"]) == ("https://b.example", 3.0, 1)
    assert (lm.base_url, lm.model) == ("https://a.example", "openai/gpt-4.1")
    assert other.capabilities == PROVIDERS["groq"].capabilities_of("llama-3.3-70b")
    assert lm.copy(api_base="https://c.example").base_url == "https://c.example"


def test_load_state_takes_the_base_url_if_it_is_trusted() -> None:
    lm = LM(
        "vertex/gemini-2.5-pro", api_key=KEY, base_url="https://a.example", timeout=3.0, project="p", headers={"h": KEY}
    )
    state = json.loads(json.dumps(lm.dump_state()))
    assert (state["base_url"], state["timeout"], state["project"]) == ("https://a.example", 3.0, "p")
    with pytest.raises(StateError, match=r"base_url='https://a\.example'"):
        LM.load_state(state)
    trusted = LM.load_state(state, allow_unsafe_lm_state=True)
    assert isinstance(trusted, LM)
    assert (trusted.base_url, trusted.timeout) == ("https://a.example", 3.0)


def test_given_capabilities_decide_what_is_encoded() -> None:
    double = Double(OLLAMA)
    lm = LM("ollama/gemma2", transport=double, capabilities=Capabilities(native_tools=True))
    lm.respond(WITH_TOOLS)
    assert b'"tools"' in double.requests[0].body
    lm.capabilities = Capabilities()
    with pytest.raises(UnsupportedFeature):
        lm.respond(WITH_TOOLS)


def test_deepcopy_shares_only_the_backend(serve: Callable[..., Host]) -> None:
    lm = LM("openai/gpt-4.1", api_key=KEY, base_url=serve(CHAT).url, temperature=0.5)
    lm.respond(HELLO)
    twin = copy.deepcopy(lm)
    twin.kwargs["temperature"] = 1.0
    assert lm.kwargs["temperature"] == 0.5
    assert twin.respond(HELLO).choices[0].text == "hi"


def test_closed_model_can_be_called_again(serve: Callable[..., Host]) -> None:
    host = serve(CHAT)
    LM("offline/lexical").close()
    with HttpTransport() as transport:
        lm = LM("openai/gpt-4.1", api_key=KEY, base_url=host.url, transport=transport)
        lm.close()
        lm.respond(HELLO)
        lm.close()
        assert lm.respond(HELLO).choices[0].text == "hi"


LAZY = """
import sys
events = []
sys.addaudithook(lambda event, args: events.append(event))
from sigwire.lm.client import LM
for model in ("openai/gpt-5.6", "anthropic/claude-sonnet-5", "gemini/gemini-3-pro", "ollama/qwen3", "vertex/gemini-3-pro"):
    repr(LM(model, api_key="k"))
heavy = {"asyncio", "ssl", "http.client", "httptools", "pyreqwest", "aiohttp", "litellm", "pydantic"}
heavy.add("sigwire.lm.http.transport")
print(sorted(heavy & sys.modules.keys()), sorted({event for event in events if event.startswith("socket.")}))
"""


def test_constructor_loads_no_http_client_and_opens_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[] []"
