"""Answers through LiteLLM as they come: its chunks, its exceptions, its own stream, and leaving it early."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from contextvars import copy_context
from typing import Any

import pytest

from sigwire.core.events import PartEnd, ReasoningDelta, StreamEvent, TextDelta, ToolCallStart, collect
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.effects.cancellation import CancelScope, set_scope
from sigwire.effects.emitting import Returned, astream, stream
from sigwire.effects.steps import Steps, run
from sigwire.errors import ConfigurationError, LMError, LMRateLimitError, LMTimeoutError, LMTransportError
from sigwire.lm.client import LM
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.litellm.backend import check_release
from sigwire.lm.litellm.codec import LiteLLMDecoder, decode_answer, encode_call, target_for, translate_error
from sigwire.lm.litellm.effects import CompletionEffect, LiteLLMStream, emit_stream
from sigwire.lm.litellm.tables import LiteLLMProfile
from sigwire.lm.policy.call import Call, TargetKey

# litellm's own models, built when they are first used.
pytestmark = [
    pytest.mark.long,  # importing the package takes seconds in each worker
    pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class:UserWarning"),
]

HOWS = pytest.mark.parametrize("how", ["blocking", "awaited"])
ASKED = Request((Message.user("q"),))
CLAUDE = target_for("anthropic/c", None)
GEMINI = target_for("gemini/g", None)


class Events:
    """A blocking and async iterator over chunks; raises those that are exceptions. ``closed``: it was closed."""

    def __init__(self, chunks: list[Any]) -> None:
        self._chunks = iter(chunks)
        self.completion_stream = self
        self.closed = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        chunk = next(self._chunks)
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


class Package:
    """A double of the LiteLLM package."""

    def __init__(self, chunks: list[Any]) -> None:
        self.events = Events(chunks)
        self.used: list[str] = []
        self.custom_provider_map: list[dict[str, Any]] = []

    def completion(self, **arguments: Any) -> Events:
        self.used.append("completion")
        return self.events

    async def acompletion(self, **arguments: Any) -> Events:
        self.used.append("acompletion")
        return self.events


def program(package: Package, to: Target[LiteLLMProfile] = CLAUDE, **arguments: Any) -> Steps[Response]:
    sent = encode_call(ASKED, to, stream=True)[1]
    call = Call(ASKED, TargetKey("litellm", None, None, to.model), streamed=True)
    return emit_stream(
        call, LiteLLMStream(package, arguments), LiteLLMDecoder(sent, to), lambda error: translate_error(error, to)
    )


async def emitted_events(how: str, of: Steps[Response]) -> list[StreamEvent]:
    if how == "blocking":
        return list(stream(of))
    return [event async for event in astream(of) if not isinstance(event, Returned)]


def chunk(delta: JsonObject | None = None, reason: str | None = None, **fields: Any) -> JsonObject:
    choice: JsonObject = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return {"id": "r1", "model": "m-1", "choices": [choice], **fields}


def over(reason: str = "stop") -> JsonObject:
    return chunk({}, reason)


def fragment(arguments: str, name: str | None = None, **fields: Any) -> JsonObject:
    return chunk({"tool_calls": [{"index": 0, **fields, "function": {"name": name, "arguments": arguments}}]})


def thinking(text: str, **fields: str) -> JsonObject:
    return chunk({"reasoning_content": text, "thinking_blocks": [{"type": "thinking", "thinking": text, **fields}]})


COUNTED: JsonObject = {
    "id": "r1", "model": "m-1", "choices": [],
    "usage": {"prompt_tokens": 10, "completion_tokens": 7, "cache_read_input_tokens": 4},
}  # fmt: skip
THOUGHT = ThinkingPart("hm", provider="litellm/anthropic")
BLOCKS: JsonObject = {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "S"}]}

CHUNKS: list[JsonValue] = [
    thinking("h"), thinking("m"), thinking("", signature="S"),
    chunk({"content": "H"}), chunk({"content": "i"}),
    fragment("", "f", id="c1"), fragment('{"x":1}'), over("tool_calls"), COUNTED,
]  # fmt: skip
F = ToolCall.read("c1", "f", '{"x":1}')


@HOWS
async def test_rows_64_to_72_events_are_emitted_as_chunks_arrive(how: str) -> None:
    package = Package(CHUNKS)
    events = await emitted_events(how, program(package))
    (choice,) = collect(events).choices
    assert choice.parts == (THOUGHT, OpaquePart("litellm/anthropic", BLOCKS), TextPart("Hi"), F)
    assert collect(events).usage == Usage(10, 7, cached_tokens=4)
    assert events[1:6] == [
        ReasoningDelta("h"), ReasoningDelta("m"), PartEnd(THOUGHT), TextDelta("H"), TextDelta("i"),
    ]  # fmt: skip
    assert package.events.closed
    sent = encode_call(ASKED, CLAUDE, stream=True)[1]
    assert collect(events) == decode_answer(collect(events).raw, sent, CLAUDE)


def test_row_64_streamed_call_requests_usage() -> None:
    arguments, _ = encode_call(ASKED, CLAUDE, stream=True)
    assert (arguments["stream"], arguments["stream_options"]) == (True, {"include_usage": True})
    assert "stream" not in encode_call(ASKED, CLAUDE)[0]


@HOWS
async def test_row_52_signature_is_split_from_the_call_id(how: str) -> None:
    events = await emitted_events(
        how, program(Package([fragment("{}", "f", id="c1__thought__S"), over("tool_calls")]), GEMINI)
    )
    data: JsonValue = {"litellm/gemini": {"provider_specific_fields": {"thought_signature": "S"}}}
    assert ToolCallStart(0, "c1", "f") in events
    assert collect(events).choices[0].tool_calls == (ToolCall.read("c1", "f", "{}", provider_data=data),)


@HOWS
async def test_rows_65_and_66_calls_are_separated_by_index(how: str) -> None:
    calls: list[JsonObject] = [
        {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"x":'}},
        {"index": 1, "id": "c2", "function": {"name": "g", "arguments": ""}},
        {"index": 0, "function": {"name": None, "arguments": "1}"}},
    ]
    events = await emitted_events(
        how, program(Package([*(chunk({"tool_calls": [one]}) for one in calls), over("tool_calls")]))
    )
    assert collect(events).choices[0].tool_calls == (F, ToolCall.read("c2", "g", ""))


@HOWS
async def test_row_69_whole_answer_in_a_stream_is_decoded(how: str) -> None:
    body: JsonObject = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "model": "m-1"}
    assert collect(await emitted_events(how, program(Package([body])))).choices[0].text == "Hi"


@HOWS
async def test_images_and_empty_answers_are_decoded(how: str) -> None:
    image: JsonObject = {"image_url": {"url": "data:image/png;base64,iVBO"}}
    (choice,) = collect(await emitted_events(how, program(Package([chunk({"images": [image]}), over()])))).choices
    assert choice.parts == (ImagePart(data="iVBO", media_type="image/png"),)
    (choice,) = collect(await emitted_events(how, program(Package([chunk({"content": ""}), over()])))).choices
    assert choice.finish_reason == "error"


@HOWS
async def test_row_70_exception_in_a_stream_has_the_partial_answer(how: str) -> None:
    package = Package([*CHUNKS[:5], RuntimeError("it broke")])
    with pytest.raises(LMError, match="it broke") as caught:
        await emitted_events(how, program(package))
    assert [choice.text for choice in caught.value.partial.choices] == ["Hi"]
    assert package.events.closed
    with pytest.raises(LMError, match="it broke") as caught:
        await emitted_events(how, program(Package([RuntimeError("it broke")])))
    assert caught.value.partial is None


@HOWS
async def test_row_68_truncated_stream_is_an_error(how: str) -> None:
    package = Package(CHUNKS[:6])
    with pytest.raises(LMTransportError, match="stopped before the end") as caught:
        await emitted_events(how, program(package))
    assert caught.value.retryable
    assert package.events.closed


@HOWS
async def test_timeout_covers_the_whole_answer(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("sigwire.lm.litellm.effects.time.monotonic", lambda: next(clock))
    with pytest.raises(LMTimeoutError, match="in time"):
        await emitted_events(how, program(Package(CHUNKS), timeout=5))


async def test_closing_early_closes_the_litellm_stream() -> None:
    package = Package(CHUNKS)
    events = stream(program(package))
    assert next(events)
    events.close()
    assert package.events.closed
    package = Package(CHUNKS)
    async with aclosing(astream(program(package))) as awaited:
        async for _ in awaited:
            break
    assert package.events.closed


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("left", "own", "used"), [
    (False, [], "completion"),
    (True, [], "acompletion"),
    (True, [{"provider": "mine"}], "completion"),
])  # fmt: skip
def test_cancellable_call_is_awaited_unless_the_provider_is_the_users(
    left: bool, own: list[dict[str, Any]], used: str, whole: bool
) -> None:
    package = Package(CHUNKS)
    package.custom_provider_map = own

    def ask() -> None:
        if left:
            set_scope(CancelScope())
        if whole:
            CompletionEffect(package, {"model": "mine/m"}).run()
        else:
            run(program(package, model="mine/m"))
            assert package.events.closed

    copy_context().run(ask)
    assert package.used == [used]


# --- the real package, with its own mock answers ----------------------------------------------------------------------


def mocked(reply: str) -> Request:
    try:
        check_release()
    except ConfigurationError as error:
        pytest.skip(str(error))
    return Request(ASKED.messages, options={"extra_body": {"mock_response": reply}})


async def asked(how: str, lm: LM, request: Request) -> list[StreamEvent]:
    return list(lm.stream(request)) if how == "blocking" else [event async for event in lm.astream(request)]


@HOWS
async def test_package_streams(how: str) -> None:
    lm, request = LM("litellm/anthropic/claude-x", api_key="k"), mocked("Hello there, friend")
    events = await asked(how, lm, request)
    assert len([event for event in events if isinstance(event, TextDelta)]) > 2
    response, whole = collect(events), lm.respond(request)
    assert response.choices[0].text == whole.choices[0].text == "Hello there, friend"
    assert response.usage.output_tokens is not None


@HOWS
async def test_package_error_before_the_first_event_has_no_partial(how: str) -> None:
    lm = LM("litellm/openai/gpt-4o", api_key="k", num_retries=0)
    with pytest.raises(LMRateLimitError) as caught:
        await asked(how, lm, mocked("litellm.RateLimitError"))
    assert caught.value.partial is None
