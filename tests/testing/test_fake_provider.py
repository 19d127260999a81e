"""The fake provider itself: running, recording, scripts, keys, models, many clients at once."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.errors import ConfigurationError, LMRateLimitError, LMServerError
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider, Fault, Raw, Streamed

HI = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
KEY = {"Authorization": "Bearer secret"}


def post(
    url: str, body: Any = HI, headers: Mapping[str, str] = KEY, path: str = "/chat/completions"
) -> tuple[int, Any, Mapping[str, str]]:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", place.path + path, data, dict(headers))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null"), dict(answer.getheaders())
    finally:
        connection.close()


def text(body: Any) -> str:
    return str(body["choices"][0]["message"]["content"])


def test_answers_come_in_order_and_an_empty_script_is_a_non_retryable_error() -> None:
    with FakeProvider(["one", "two"]) as provider:
        url = provider.url("openai")
        assert [text(post(url)[1]) for _ in range(2)] == ["one", "two"]
        status, body, _ = post(url)
    assert status == 400
    assert "no answer left" in body["error"]["message"]


def test_a_function_of_the_request_answers_every_request() -> None:
    with FakeProvider(lambda request: request.messages[-1].text.upper()) as provider:
        assert text(post(provider.url("openai"))[1]) == "HI"


def test_raising_script_function_is_a_server_error_with_its_error() -> None:
    def broken(request: Request) -> str:
        raise KeyError("nothing here")

    with FakeProvider(broken) as provider:
        status, body, _ = post(provider.url("openai"))
    assert status == 500
    assert "KeyError" in body["error"]["message"]


INVALID: list[tuple[Any, str]] = [
    (3, "cannot answer with int .* Use a text, ToolCalls"),
    (
        Choice("Hi", finish_reason="refusal"),
        "finish_reason='refusal' does not exist .* Use one of stop, .*Choice\\(refusal=",
    ),  # type: ignore[arg-type]
    (Response((Choice("a"), Choice("b", finish_reason="end_turn"))), "finish_reason='end_turn' does not exist"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("answer", "message"), INVALID, ids=["type", "choice", "response"])
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_invalid_script_item_is_refused_when_it_is_written(answer: Any, message: str, streamed: bool) -> None:
    item = Streamed(answer) if streamed else answer
    with pytest.raises(ConfigurationError, match=message):
        FakeProvider(["fine", item])
    with pytest.raises(ConfigurationError, match=message):
        FakeProvider().script.add(item)


@pytest.mark.parametrize(("answer", "message"), INVALID, ids=["type", "choice", "response"])
def test_invalid_answer_of_a_function_is_a_server_error_that_lists_the_valid_values(answer: Any, message: str) -> None:
    with FakeProvider(lambda request: answer) as provider:
        status, body, _ = post(provider.url("openai"))
    assert status == 500
    assert re.search(message, body["error"]["message"])


def test_fault_of_an_unknown_kind_is_refused_with_the_known_kinds() -> None:
    with pytest.raises(ConfigurationError, match=r"kind='telex' does not exist .* Use one of auth, bad_request"):
        Fault("telex")  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", ["openai", "openai-responses", "anthropic", "gemini", "ollama"])
def test_answer_that_a_wire_cannot_write_is_a_server_error_with_the_cause(wire: str, stream: bool) -> None:
    unwritable = Response((Choice("Hi"),), Usage(input_tokens=object()))  # type: ignore[arg-type]
    with FakeProvider([unwritable, "fine"]) as provider:
        lm = LM(
            {"openai-responses": "openai/m", "gemini": "gemini/gemini-3-flash"}.get(wire, f"{wire}/m"),
            base_url=provider.url(wire),
            api_key="any",
            num_retries=0,
            **({"wire": "responses"} if wire == "openai-responses" else {}),
        )
        asked = Request((Message.user("Hi"),))
        with pytest.raises(LMServerError, match="scripted answer cannot be written: TypeError"):
            list(lm.stream(asked)) if stream else lm.respond(asked)
        assert lm.respond(asked).choices[0].text == "fine"


def test_errors_of_sigwire_are_faults_of_the_same_kind() -> None:
    with FakeProvider([LMRateLimitError("Slow down", retry_after=3)]) as provider:
        status, body, headers = post(provider.url("openai"))
    assert (status, body["error"]["message"], headers["retry-after"]) == (429, "Slow down", "3")


def test_language_model_answers_and_its_calls_get_unique_ids() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "The weather in a city",
                    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
                },
            }
        ],
    }
    with FakeProvider(LM("offline/lexical")) as provider:
        calls = [post(provider.url("openai"), body)[1]["choices"][0]["message"]["tool_calls"][0] for _ in range(2)]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"city": "Oslo"}] * 2
    assert calls[0]["id"] != calls[1]["id"]


def test_raw_bodies_are_sent_unchanged() -> None:
    with FakeProvider([Raw({"choices": None}, 502, {"x-proxy": "yes"})]) as provider:
        status, body, headers = post(provider.url("openai"))
    assert (status, body, headers["x-proxy"]) == (502, {"choices": None}, "yes")


def test_cut_body_closes_the_connection_early() -> None:
    with FakeProvider([Raw("x" * 100, cut=True)]) as provider, pytest.raises(http.client.IncompleteRead):
        post(provider.url("openai"))


def test_a_missing_key_and_a_wrong_one_are_refused() -> None:
    with FakeProvider(["ok"], key="secret") as provider:
        url = provider.url("openai")
        assert post(url, headers={})[0] == 401
        assert post(url, headers={"Authorization": "Bearer other"})[1]["error"]["code"] == "invalid_api_key"
        assert post(url)[0] == 200


def test_unlisted_models_do_not_exist() -> None:
    with FakeProvider(["ok"], models={"n"}) as provider:
        status, body, _ = post(provider.url("openai"))
        assert post(provider.url("openai"), {**HI, "model": "n"})[0] == 200
    assert (status, body["error"]["code"]) == (404, "model_not_found")


def test_every_request_is_recorded_with_its_key_masked() -> None:
    with FakeProvider(["ok"]) as provider:
        url = provider.url("openai")
        post(url)
        post(url, b"{nope")
        post(url, path="/elsewhere?key=secret")
    good, bad, lost = provider.requests
    assert (good.wire, good.path, good.status, good.body) == ("openai", "/v1/chat/completions", 200, HI)
    assert good.headers["authorization"] == "***"
    assert text(good.answer) == "ok"
    assert (bad.status, bad.body, bad.request) == (400, "{nope", None)
    assert (lost.wire, lost.status, lost.query) == (None, 404, {"key": "***"})
    assert "secret" not in repr(provider.requests)


def test_a_connection_is_kept_for_the_next_request() -> None:
    with FakeProvider(["one", Fault("server"), "two"]) as provider:
        place = urlsplit(provider.url("openai"))
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        sockets: list[object] = []
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions", json.dumps(HI), KEY)
            connection.getresponse().read()
            sockets.append(connection.sock)
        connection.close()
    assert sockets[0] is not None
    assert len(set(map(id, sockets))) == 1


def test_url_of_each_provider_is_its_own_at_one_port() -> None:
    with FakeProvider(["old", "plain"]) as provider:
        old = provider.url("openai")
        assert text(post(old)[1]) == "old"
        port = urlsplit(old).port
        assert text(post(f"http://127.0.0.1:{port}/v1")[1]) == "plain"
        assert {found.path for found in provider.requests} == {"/v1/chat/completions"}
    with FakeProvider(["new"], port=port or 0) as provider:
        assert provider.url("openai") != old
        assert post(old)[0] == 404


def test_many_clients_at_once_each_get_one_answer() -> None:
    with FakeProvider([str(number) for number in range(40)]) as provider, ThreadPoolExecutor(8) as pool:
        url = provider.url("openai")
        answers = list(pool.map(lambda _: text(post(url)[1]), range(40)))
    assert sorted(answers, key=int) == [str(number) for number in range(40)]
    assert len(provider.requests) == 40


def test_closing_ends_open_connections_and_all_threads() -> None:
    before = threading.active_count()
    with FakeProvider(["one"]) as provider:
        place = urlsplit(provider.url("openai"))
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", json.dumps(HI), KEY)
        connection.getresponse().read()
    assert connection.sock is not None
    assert connection.sock.recv(1) == b""
    connection.close()
    assert threading.active_count() == before


def test_a_body_in_chunks_is_read() -> None:
    with FakeProvider(["ok"]) as provider:
        place = urlsplit(provider.url("openai"))
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        data = json.dumps(HI).encode()
        connection.request("POST", "/v1/chat/completions", iter([data[:9], data[9:]]), KEY, encode_chunked=True)
        assert connection.getresponse().status == 200
        connection.close()


def test_a_url_needs_a_known_wire_and_a_running_provider() -> None:
    with pytest.raises(ConfigurationError, match="not running"):
        FakeProvider().url("openai")
    with pytest.raises(ConfigurationError, match="Unknown wire 'telex'"):
        FakeProvider().url("telex")
