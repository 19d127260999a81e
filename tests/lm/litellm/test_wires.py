"""The real LiteLLM against ``FakeProvider``: the bridge over HTTP, to several upstreams, tools both ways, and its errors.

Skipped with a message where LiteLLM is not installed; it is part of the extra ``test``.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import socket
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import copy_context
from typing import Any

import pytest

from sigwire.core.events import FieldDelta, TextDelta
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import (
    ConfigurationError,
    ContextWindowExceededError,
    LMAuthenticationError,
    LMError,
    LMRateLimitError,
    LMServerError,
    LMTransportError,
    LMUnsupportedModelError,
)
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.litellm.backend import check_release
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider, Fault, Gate, Streamed
from tests.lm.calls import HELLO, HOWS, KEY, TOOL, Clock, ask, forget_keys, patient
from tests.lm.loopback import Host, Reply

# litellm's own models, built when they are first used.
pytestmark = [
    pytest.mark.long,  # importing the package takes seconds in each worker
    pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class:UserWarning"),
]

# A model of LiteLLM's, the wire that LiteLLM uses for it, and the suffix of its base URL.
UPSTREAMS: Mapping[str, tuple[str, str]] = {
    "litellm/openai/gpt-4.1": ("openai", ""),
    "litellm/openai/responses/gpt-5.5": ("openai-responses", ""),
    "litellm/anthropic/claude-opus-4-5": ("anthropic", ""),
    "litellm/gemini/gemini-2.5-flash": ("gemini", "/v1beta"),
    "litellm/mistral/mistral-large": ("openai", ""),
    "hyperbolic/m": ("openai", ""),  # a prefix without a row in the table
}
EVERY_UPSTREAM = pytest.mark.parametrize("model", UPSTREAMS)


@pytest.fixture(autouse=True)
def theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    try:
        check_release()
    except ConfigurationError as error:
        pytest.skip(str(error))


def model_at(provider: FakeProvider, model: str, **options: Any) -> LM:
    wire, end = UPSTREAMS[model]
    return LM(model, base_url=provider.url(wire) + end, api_key=KEY, **options)


@HOWS
@EVERY_UPSTREAM
async def test_calls_and_their_results_are_sent_back(how: str, model: str) -> None:
    asked = [ToolCall("", "f", {"x": 1}), ToolCall("", "f", {})]
    with FakeProvider([asked, "done"]) as provider:
        lm = model_at(provider, model)
        request = Request(HELLO.messages, (TOOL,), ToolChoice.AUTO)
        (choice,) = (await ask(how, lm, request)).choices
        results = [ToolResult(call.id, call.name, f"result {n}") for n, call in enumerate(choice.tool_calls)]
        messages = (*request.messages, choice.message(), Message.tool(*results))
        (last,) = (await ask(how, lm, Request(messages, (TOOL,)))).choices
    assert [(call.name, call.arguments) for call in choice.tool_calls] == [("f", {"x": 1}), ("f", {})]
    assert (choice.finish_reason, last.text, last.finish_reason) == ("tool_calls", "done", "stop")
    first, second = provider.requests
    assert {first.wire, second.wire} == {UPSTREAMS[model][0]}
    assert first.request is not None
    assert second.request is not None
    assert [spec["function"]["name"] for spec in first.request.tools] == ["f"]
    seen = [result for message in second.request.messages for result in message.tool_results]
    for number, result in enumerate(seen):  # LiteLLM wraps what Gemini wants as an object
        assert result.content in (f"result {number}", {"content": f"result {number}"})
    made = [call for message in second.request.messages for call in message.tool_calls]
    assert [call.id for call in made] == [result.id for result in seen]


@EVERY_UPSTREAM
def test_text_limits_and_usage_over_the_wire(model: str) -> None:
    with FakeProvider(["Hi"]) as provider:
        response = model_at(provider, model, max_tokens=50).respond(HELLO)
    assert response.choices[0].text == "Hi"
    assert response.usage.input_tokens is not None
    (sent,) = provider.requests
    assert sent.request is not None
    assert sent.request.options["max_tokens"] == 50


def test_structured_output_over_the_wire() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    with FakeProvider([Choice('{"n": 1}')]) as provider:
        lm = model_at(provider, "litellm/openai/gpt-4.1")
        response = lm.respond(Request(HELLO.messages, response_format=ResponseFormat(schema)))
    assert response.choices[0].text == '{"n": 1}'
    (sent,) = provider.requests
    assert sent.request is not None
    assert sent.request.response_format is not None
    assert sent.request.response_format.schema == schema


@HOWS
@pytest.mark.parametrize("model", ["litellm/openai/gpt-4.1", "litellm/anthropic/claude-opus-4-5"])
async def test_row_5_nothing_is_sent_without_a_key(how: str, model: str) -> None:
    with pytest.raises(LMAuthenticationError, match="Check the API key") as caught:
        await ask(how, LM(model))
    assert len(caught.value.attempts) == 1


@HOWS
async def test_row_73_wrong_key_is_masked(how: str) -> None:
    with FakeProvider(["never"], key="another one") as provider, pytest.raises(LMAuthenticationError) as caught:
        await ask(how, model_at(provider, "litellm/openai/gpt-4.1"))
    assert KEY not in f"{caught.value} {caught.value!r}"
    assert len(provider.requests) == 1


@HOWS
async def test_secrets_that_the_provider_repeats_are_masked(how: str, serve: Callable[..., Host]) -> None:
    token = KEY[::-1]
    host = serve(Reply({"error": {"message": f"refused: {KEY}, {token}"}}, status=401))
    lm = LM("litellm/openai/gpt-4.1", base_url=f"{host.url}/v1", api_key=KEY, extra_body={"upstream": {"token": token}})
    with pytest.raises(LMAuthenticationError, match=r"refused: \*\*\*, \*\*\*") as caught:
        await ask(how, lm)
    printed = "".join(traceback.format_exception(caught.value))
    assert KEY not in printed
    assert token not in printed


FAULTS: Mapping[str, tuple[Fault, type[LMError], int]] = {
    "row 74 model": (Fault("not_found"), LMUnsupportedModelError, 1),
    "row 75 context": (Fault("context_length"), ContextWindowExceededError, 1),
    "row 76 rate limit": (Fault("rate_limit"), LMRateLimitError, 33),
    "row 77 overloaded": (Fault("overloaded"), LMServerError, 3),
}


@HOWS
@pytest.mark.parametrize("model", ["litellm/openai/gpt-4.1", "litellm/anthropic/claude-opus-4-5"])
@pytest.mark.parametrize("row", FAULTS)
async def test_fault_is_an_lm_error_and_retried_by_sigwire_only(row: str, model: str, how: str) -> None:
    fault, kind, requests = FAULTS[row]
    with FakeProvider(lambda request: fault) as provider, pytest.raises(LMError) as caught:
        await ask(how, model_at(provider, model, limit=False, retry=patient(Clock(), 2)))
    assert type(caught.value) is kind
    assert len(provider.requests) == requests


@HOWS
@pytest.mark.parametrize("model", ["litellm/openai/gpt-4.1", "litellm/ollama_chat/qwen3"])
async def test_refused_connection_is_a_transport_error(how: str, model: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    lm = LM(model, base_url=f"http://127.0.0.1:{port}", api_key=KEY, num_retries=0)
    with pytest.raises(LMTransportError, match=r"Check that the server runs.*base_url"):
        await ask(how, lm)


# --- leaving -------------------------------------------------------------------------------------------------


async def _is_left(provider: FakeProvider) -> bool:
    (sent,) = provider.requests
    assert sent.stream is not None
    return await asyncio.to_thread(sent.stream.wait, 60) == "client left"


@EVERY_UPSTREAM
async def test_closing_a_stream_closes_the_connection(model: str) -> None:
    """Also where LiteLLM's own iterators would leave it open until they are collected: the collector is off."""
    gc.disable()
    try:
        for how in ("blocking", "awaited"):
            with FakeProvider([Streamed("one two three four five six seven eight", gate=Gate(6))]) as provider:
                if how == "blocking":
                    events = model_at(provider, model).stream(HELLO)
                    next(event for event in events if isinstance(event, TextDelta))
                    events.close()
                else:
                    async with aclosing(model_at(provider, model).astream(HELLO)) as awaited:
                        async for event in awaited:
                            if isinstance(event, TextDelta):
                                break
                assert await _is_left(provider)
    finally:
        gc.enable()


class Around(Module):
    """A user's blocking code around a predictor, and an event after the predictor has called the model."""

    def __init__(self, lm: LM, provider: FakeProvider) -> None:
        def say(_: Request) -> dict[str, str]:
            deadline = time.monotonic() + 30
            while not provider.requests and time.monotonic() < deadline:
                time.sleep(0.01)
            return {"answer": "Hi"}

        self.first = Predict("question -> answer", lm=FakeLM(say))
        self.predict = Predict("question -> answer", lm=lm)

    def forward(self, question: str) -> list[Any]:
        pairs = [(self.first, question), (self.predict, question)]
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(copy_context().run, predict, question=question) for predict, question in pairs]
            return [future.result() for future in asked]


@EVERY_UPSTREAM
def test_closing_does_not_wait_for_an_answer_without_chunks(model: str) -> None:
    importlib.import_module("litellm")  # takes seconds, and an import cannot be cancelled
    with FakeProvider([Streamed("never sent", gate=Gate())]) as provider:
        with Around(model_at(provider, model), provider).stream(question="?") as events:
            next(event for event in events if isinstance(event, FieldDelta))
        (sent,) = provider.requests
        assert sent.stream is not None
        assert sent.stream.wait(60) == "client left"


class Blocking(Module):
    """Blocking code that asks once."""

    def __init__(self, lm: LM) -> None:
        self.predict = Predict("question -> answer", lm=lm)

    def forward(self, question: str) -> Any:
        return self.predict(question=question)


async def test_cancelling_blocking_code_does_not_wait_for_the_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        lm = LM("litellm/openai/gpt-4.1", api_key=KEY, base_url=address, num_retries=0)
        task = asyncio.ensure_future(Blocking(lm).acall(question="?"))
        connection, _ = await asyncio.to_thread(server.accept)
        with connection:
            connection.settimeout(5)
            assert await asyncio.to_thread(connection.recv, 65536)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while await asyncio.to_thread(connection.recv, 65536):
                pass  # the rest of the request, and then the end
