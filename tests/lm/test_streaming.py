"""Models streamed over HTTP: what is streamed equals what is returned whole, on every wire; and what stops halfway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.events import (
    FieldDelta,
    ResponseEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    collect,
)
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError, LMAuthenticationError, LMError, LMServerError, LMTransportError
from sigwire.lm.client import LM
from sigwire.lm.policy.retry import RetryPolicy
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider, Fault, Gate, Raw, Streamed
from tests.lm.calls import ask
from tests.lm.loopback import Host, Reply

MODELS = {
    "openai": "openai/gpt-4.1-mini",
    "openai-responses": "openai/gpt-4.1-mini",
    "anthropic": "anthropic/claude-haiku-4-5",
    "gemini": "gemini/gemini-3-flash",
    "ollama": "ollama/qwen3",
    "bedrock": "bedrock/amazon.nova-lite-v1:0",
}
WIRES: dict[str, Any] = {"openai-responses": {"wire": "responses"}}
HI = Request((Message.user("Hi"),))


class _NoWaiting:
    def sleep(self, seconds: float) -> None: ...

    async def asleep(self, seconds: float) -> None: ...


def model(provider: FakeProvider, wire: str, **more: Any) -> LM:
    at_once = RetryPolicy(retries=2, clock=_NoWaiting())
    given: dict[str, Any] = {
        "base_url": provider.url(wire),
        "api_key": "any",
        "retry": at_once,
        **WIRES.get(wire, {}),
        **more,
    }
    return LM(MODELS[wire], **given)


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


TOOLS = replace(HI, tools=(Tool(add).spec,))
CALL = ToolCall("call_a1", "add", {"a": 1, "b": 2})
OTHER = ToolCall("call_a2", "add", {"a": -3, "b": 40})

Read = Callable[[LM, Request], list[StreamEvent]]


def _blocking(lm: LM, request: Request) -> list[StreamEvent]:
    return list(lm.stream(request))


def _awaited(lm: LM, request: Request) -> list[StreamEvent]:
    async def read() -> list[StreamEvent]:
        return [event async for event in lm.astream(request)]

    return asyncio.run(read())


@pytest.fixture(params=[_blocking, _awaited], ids=["blocking", "awaited"])
def read(request: pytest.FixtureRequest) -> Read:
    reader: Read = request.param
    return reader


def essence(response: Response) -> list[Any]:
    """Return a response without ids and raw bodies, which change between requests."""
    choices = [
        (
            choice.text,
            [(call.name, call.arguments) for call in choice.tool_calls],
            choice.reasoning,
            choice.finish_reason,
        )
        for choice in response.choices
    ]
    return [choices, response.usage, response.model, response.warnings]


ANSWERS = {
    "text": (HI, "Hello there, how are you? Ä🙂\n\n\u2028 fine"),
    "one call": (TOOLS, CALL),
    "two calls": (TOOLS, [CALL, OTHER]),
    "a call after text": (TOOLS, Choice("Let me add.", (CALL,), finish_reason="tool_calls")),
    "cut off": (HI, Choice("Hello the", finish_reason="length")),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("wire", MODELS)
def test_streamed_response_equals_the_whole_response(wire: str, answer: str, read: Read) -> None:
    request, said = ANSWERS[answer]
    with FakeProvider([said, Streamed(said, cut=3, packets=7)]) as provider:
        lm = model(provider, wire)
        whole = lm.respond(request)
        events = read(lm, request)
    assert essence(collect(events)) == essence(whole)
    assert isinstance(events[-1], ResponseEnd)


@pytest.mark.parametrize("wire", MODELS)
def test_texts_and_arguments_arrive_as_deltas(wire: str) -> None:
    said = Choice("one two three", (CALL,), finish_reason="tool_calls")
    with FakeProvider([Streamed(said, cut=4)]) as provider:
        events = list(model(provider, wire).stream(TOOLS))
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(texts) == "one two three"
    assert len(texts) > 2
    ended = [event.call.arguments for event in events if isinstance(event, ToolCallEnd)]
    assert ended == [CALL.arguments]
    if any(isinstance(event, ToolCallDelta) for event in events):
        before = [type(event) for event in events]
        assert before.index(ToolCallDelta) < before.index(ToolCallEnd)


@pytest.mark.parametrize("wire", MODELS)
def test_first_delta_is_emitted_before_the_next_chunk_arrives(wire: str) -> None:
    gate = Gate()
    text = "one two three four five six seven"
    with FakeProvider([Streamed(text, gate=gate)]) as provider:
        events = model(provider, wire).stream(HI)
        gate.release(5)  # the events of the wires up to the first delta
        first = next(event for event in events if isinstance(event, TextDelta))
        (sent,) = provider.requests
        assert sent.stream is not None
        assert sent.stream.sent <= 5 < sent.stream.total
        gate.open()
        rest = [event.text for event in events if isinstance(event, TextDelta)]
    assert first.text + "".join(rest) == text


# --- what goes wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", MODELS)
def test_failure_before_the_first_event_is_retried(wire: str, read: Read) -> None:
    with FakeProvider([Fault("rate_limit"), Fault("server"), "Hello"]) as provider:
        response = collect(
            read(model(provider, wire, limit=False), HI)
        )  # the limit would pace requests after the refusal
        assert response.choices[0].text == "Hello"
        assert [sent.status // 100 for sent in provider.requests] == [4, 5, 2]
    assert [attempt.error for attempt in response.attempts] == ["rate_limit", "server", None]


@pytest.mark.parametrize("wire", MODELS)
def test_error_as_the_first_event_is_retried_like_an_error_status(wire: str, read: Read) -> None:
    with FakeProvider([Streamed(fault=Fault("overloaded")), Streamed(fault=Fault("server")), "Hello"]) as provider:
        response = collect(read(model(provider, wire), HI))
    assert response.choices[0].text == "Hello"
    assert [attempt.error for attempt in response.attempts] == ["server", "server", None]


@pytest.mark.parametrize("wire", MODELS)
def test_broken_stream_raises_with_the_partial_answer(wire: str, read: Read) -> None:
    with FakeProvider([Streamed("one two three four five six", stop_after=5), "never asked"]) as provider:
        with pytest.raises(LMTransportError) as caught:
            read(model(provider, wire), HI)
        assert len(provider.requests) == 1
    assert caught.value.retryable
    assert caught.value.partial.choices[0].text.startswith("one")


@pytest.mark.parametrize("how", ["blocking", "awaited"])
@pytest.mark.parametrize("wire", MODELS)
async def test_slow_reader_gets_every_event_before_the_stream_breaks(wire: str, how: str) -> None:
    gate, texts = Gate(), list[str]()

    async def read_slowly(lm: LM) -> None:
        events = lm.astream(HI) if how == "awaited" else _as_async(lm.stream(HI))
        async for event in events:
            if isinstance(event, TextDelta):
                texts.append(event.text)
                gate.open()
                await asyncio.sleep(0.05 * (len(texts) == 1))  # the rest arrives, and the end of the connection

    with FakeProvider([Streamed("one two three four five six", gate=gate, stop_after=8)]) as provider:
        gate.release(5)
        with pytest.raises(LMTransportError) as caught:
            await read_slowly(model(provider, wire))
    assert "".join(texts) == caught.value.partial.choices[0].text
    assert len("".join(texts).split()) >= 4


async def _as_async(events: Iterable[StreamEvent]) -> AsyncGenerator[StreamEvent, None]:
    for event in events:
        yield event


@pytest.mark.parametrize("wire", MODELS)
def test_stream_without_its_end_is_an_error(wire: str, read: Read) -> None:
    ending = Streamed("one two three four five six", stop_after=5, clean=True)
    with FakeProvider([ending]) as provider, pytest.raises(LMError) as caught:
        read(model(provider, wire), HI)
    assert caught.value.retryable
    assert "one" in caught.value.partial.choices[0].text


CHUNK = b'data: {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi there"}}]}\n\n'
USED = b'data: {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}}], "usage": {"prompt_tokens": 3}}\n\n'


@pytest.mark.parametrize("cut", [False, True], ids=["complete", "connection breaks behind the mark"])
def test_end_mark_ends_a_stream_without_finish_reason(cut: bool, read: Read, serve: Callable[..., Host]) -> None:
    host = serve(Reply(CHUNK + USED + b"data: [DONE]\n\n", cut=cut))
    response = collect(read(LM("openai/m", base_url=host.url, api_key="any"), HI))
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("Hi there", "stop")]
    assert [warning.feature for warning in response.warnings] == ["finish_reason"]
    assert response.usage.input_tokens == 3
    assert len(host.seen) == 1


@pytest.mark.parametrize("cut", [False, True], ids=["clean", "cut"])
def test_stream_without_end_mark_and_finish_reason_is_an_error(
    cut: bool, read: Read, serve: Callable[..., Host]
) -> None:
    host = serve(Reply(CHUNK, cut=cut))
    with pytest.raises(LMTransportError) as caught:
        read(LM("openai/m", base_url=host.url, api_key="any"), HI)
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.choices[0].text == "Hi there"


@pytest.mark.parametrize("how", ["blocking", "awaited"])
async def test_whole_reply_without_finish_reason_has_a_warning(how: str, serve: Callable[..., Host]) -> None:
    host = serve({"choices": [{"message": {"content": "Hi"}, "finish_reason": None}]})
    response = await ask(how, LM("openai/m", base_url=host.url, api_key="any"))
    assert response.choices[0].text == "Hi"
    assert [warning.feature for warning in response.warnings] == ["finish_reason"]


@pytest.mark.parametrize("wire", MODELS)
def test_error_event_of_a_stream_is_raised(wire: str, read: Read) -> None:
    broken = Streamed("one two three four five six", stop_after=5, fault=Fault("overloaded"))
    with FakeProvider([broken, "never asked"]) as provider:
        with pytest.raises(LMServerError) as caught:
            read(model(provider, wire), HI)
        assert len(provider.requests) == 1
    assert caught.value.partial.choices[0].text.startswith("one")


@pytest.mark.parametrize("wire", [wire for wire in MODELS if wire != "ollama"])
def test_streamed_call_raises_the_authentication_error(wire: str, read: Read) -> None:
    with FakeProvider(["Hello"], key="right") as provider:
        lm = model(provider, wire, api_key="wrong-key-of-mine")
        with pytest.raises(LMAuthenticationError) as caught:
            read(lm, HI)
    assert "wrong-key-of-mine" not in str(caught.value)


# --- leaving -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", MODELS)
def test_closing_a_stream_closes_the_connection(wire: str) -> None:
    gate = Gate(5)
    with FakeProvider([Streamed("one two three four five six", gate=gate)]) as provider:
        events = model(provider, wire).stream(HI)
        next(event for event in events if isinstance(event, TextDelta))
        events.close()
        (sent,) = provider.requests
        assert sent.stream is not None
        assert sent.stream.wait(60) == "client left"


@pytest.mark.parametrize("wire", MODELS)
async def test_closing_an_async_stream_closes_the_connection(wire: str) -> None:
    gate = Gate(5)
    with FakeProvider([Streamed("one two three four five six", gate=gate)]) as provider:
        async with aclosing(model(provider, wire).astream(HI)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    break
        (sent,) = provider.requests
        assert sent.stream is not None
        assert await asyncio.to_thread(sent.stream.wait, 60) == "client left"


@pytest.mark.parametrize("wire", MODELS)
async def test_cancelling_a_streaming_task_closes_the_connection(wire: str) -> None:
    gate, began = Gate(5), asyncio.Event()

    async def reading(lm: LM) -> None:
        async for event in lm.astream(HI):
            if isinstance(event, TextDelta):
                began.set()

    with FakeProvider([Streamed("one two three four five six", gate=gate)]) as provider:
        task = asyncio.ensure_future(reading(model(provider, wire)))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (sent,) = provider.requests
        assert sent.stream is not None
        assert await asyncio.to_thread(sent.stream.wait, 60) == "client left"


class Around(Module):
    """A user's blocking code around a predictor."""

    def __init__(self, lm: LM) -> None:
        self.predict = Predict("question -> answer", lm=lm)

    def forward(self, question: str) -> str:
        return str(self.predict(question=question).answer)


@pytest.mark.parametrize("wire", MODELS)
def test_closing_the_stream_of_a_threaded_program_closes_the_connection(wire: str) -> None:
    gate, answer = Gate(6), "[[ ## answer ## ]]\none two three" + " and so on" * 30
    with FakeProvider([Streamed(answer, cut=30, gate=gate)]) as provider:
        with Around(model(provider, wire)).stream(question="?") as events:
            next(event for event in events if isinstance(event, FieldDelta))
        (sent,) = provider.requests
        assert sent.stream is not None
        assert sent.stream.wait(60) == "client left"
        assert len(provider.requests) == 1  # cancelling is no failure that a retry could cure


class Both(Module):
    """A user's code that asks two questions at once."""

    def __init__(self, lm: LM) -> None:
        self.predict = Predict("question -> answer", lm=lm)

    def forward(self, questions: list[str]) -> list[Any]:
        return list(self.predict.batch([{"question": question} for question in questions], num_threads=2))


class AwaitedBoth(Both):
    """The same, awaited."""

    async def aforward(self, questions: list[str]) -> list[Any]:
        return list(await self.predict.abatch([{"question": question} for question in questions], num_threads=2))


class BothOnItsOwnLoop(Both):
    """The same on an event loop that the user's code runs by itself."""

    def forward(self, questions: list[str]) -> list[Any]:
        inputs = [{"question": question} for question in questions]
        return asyncio.run(self.predict.abatch(inputs, num_threads=2))


def one_of_them_waits() -> Callable[[Request], Streamed]:
    """The second question is never answered, and the first only once both were asked."""
    gate = Gate()

    def answer(request: Request) -> Streamed:
        if "second" in request.messages[-1].text:
            gate.release(6)
            return Streamed("never sent", gate=Gate())
        return Streamed("[[ ## answer ## ]]\none two three" + " and so on" * 30, cut=30, gate=gate)

    return answer


@pytest.mark.parametrize("program", [Both, AwaitedBoth, BothOnItsOwnLoop])
@pytest.mark.parametrize("wire", MODELS)
def test_closing_a_stream_does_not_wait_for_the_first_event(wire: str, program: type[Both]) -> None:
    with FakeProvider(one_of_them_waits()) as provider:
        with program(model(provider, wire)).stream(questions=["first", "second"]) as events:
            next(event for event in events if isinstance(event, FieldDelta))
            while len(provider.requests) < 2:
                time.sleep(0.01)
        assert [sent.stream and sent.stream.wait(60) for sent in provider.requests] == ["client left"] * 2
        assert events.partial is not None


@pytest.mark.parametrize("wire", MODELS)
async def test_cancelling_a_task_closes_connections_of_its_threads(wire: str) -> None:
    with FakeProvider([Streamed("never sent", gate=Gate())]) as provider:
        events = Around(model(provider, wire)).astream(question="?")
        reading = asyncio.ensure_future(_read_all(events))
        while not provider.requests:
            await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        (sent,) = provider.requests
        assert sent.stream is not None
        assert await asyncio.to_thread(sent.stream.wait, 60) == "client left"


async def _read_all(events: Any) -> None:
    async for _ in events:
        pass


# --- how an answer is read ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["openai", "openai-responses", "anthropic", "ollama"])
def test_stream_options_in_extra_body_are_refused_before_sending(wire: str, read: Read) -> None:
    with FakeProvider(["Hello"] * 2) as provider:
        lm = model(provider, wire)
        in_pieces, whole = (replace(HI, options={"extra_body": {"stream": stream}}) for stream in (True, False))
        with pytest.raises(InputError, match=r"stream=True, .*the other form.*stream\(\) and astream\(\) request"):
            lm.respond(in_pieces)
        with pytest.raises(InputError, match=r"stream=False, "):
            read(lm, whole)
        assert not provider.requests
        assert lm.respond(whole).choices[0].text == collect(read(lm, in_pieces)).choices[0].text == "Hello"


# --- numbers without bounds ----------------------------------------------------------------------------------

# What gives calls as objects gives numbers in them that no text's reader lets through.
TOO_GREAT = {
    "anthropic": b"""{"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1e999, "b": 2}}],
        "usage": {"input_tokens": 1e999, "output_tokens": 5}}""",
    "bedrock": b"""{"output": {"message": {"role": "assistant", "content": [{"toolUse": {
        "toolUseId": "t", "name": "add", "input": {"a": 1e999}}}]}}, "stopReason": "tool_use",
        "usage": {"inputTokens": 1e999, "outputTokens": 5}}""",
    "gemini": b"""{"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
        {"functionCall": {"name": "add", "args": {"a": 1, "b": [-1e999]}}}]}}],
        "usageMetadata": {"promptTokenCount": 1e999, "candidatesTokenCount": 5}}""",
    "ollama": b"""{"model": "m", "done": true, "done_reason": "stop", "message": {"role": "assistant", "content": "",
        "tool_calls": [{"function": {"name": "add", "arguments": {"a": {"b": 1e999}}}}]},
        "prompt_eval_count": 1e999, "eval_count": 5}""",
    "openai": b"""{"id": "m", "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "tool_calls": [
        {"id": "t", "type": "function", "function": {"name": "add", "arguments": "{\\"a\\": 1e999}"}}]}}],
        "usage": {"prompt_tokens": 1e999, "completion_tokens": 5}}""",
}


@pytest.mark.parametrize("wire", TOO_GREAT)
def test_oversized_number_reaches_no_tool_and_no_usage(wire: str, read: Read) -> None:
    with FakeProvider([Raw(b" ".join(TOO_GREAT[wire].split()))] * 2) as provider:
        whole = model(provider, wire).respond(TOOLS)
        streamed = collect(read(model(provider, wire), TOOLS))
    for response in (whole, streamed):
        (call,) = response.choices[0].tool_calls
        assert call.arguments is None
        assert call.error is not None
        assert call.error.code == "malformed_json"
        assert (response.usage.input_tokens, response.usage.output_tokens) == (None, 5)
    assert essence(whole) == essence(streamed)
