"""LiteLLM's answers as effects: ``CompletionEffect`` (whole) and ``LiteLLMStream`` (chunks), read by ``emit_stream``.

LiteLLM returns an iterator, blocking or asynchronous, of its own objects. A stream is opened, read and closed.

The caller's timeout is for the whole answer: LiteLLM's restarts with every byte that arrives.

A blocking call of LiteLLM cannot be cancelled before its first chunk. In a ``CancelScope``, blocking code therefore waits for
the awaitable call on a loop of sigwire's; cancelling that closes its socket (ADR 0024).
"""

from __future__ import annotations

import contextlib
import contextvars
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, TypeVar, cast

from sigwire.core.events import ResponseEnd, StreamEvent, collect
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.response import Response
from sigwire.effects.cancellation import current_scope, on_cancel
from sigwire.effects.emitting import Emit
from sigwire.effects.loops import block_on, started_by_block_on
from sigwire.effects.steps import Effect, FunctionEffect, Steps
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.interface import Decoder
from sigwire.lm.http.deadlines import seconds_until
from sigwire.lm.policy.call import Call

__all__ = ["CompletionEffect", "LiteLLMStream", "emit_stream", "to_json_value"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class CompletionEffect:
    """Effect: LiteLLM's whole answer. ``arguments`` are those of ``litellm.completion``."""

    litellm: Any
    arguments: JsonObject

    def run(self) -> Any:
        if _must_be_cancellable(self.litellm, self.arguments):
            return block_on(self.arun())
        return self.litellm.completion(**self.arguments)

    async def arun(self) -> Any:
        import asyncio

        async with asyncio.timeout(cast("float | None", self.arguments.get("timeout"))):
            return await _close_when_cancelled(self.litellm.acompletion(**self.arguments))


class LiteLLMStream:
    """One streamed answer of LiteLLM; ``arguments`` are those of ``litellm.completion``."""

    def __init__(self, litellm: Any, arguments: JsonObject) -> None:
        self._litellm, self._arguments = litellm, arguments
        self._timeout = cast("float | None", arguments.get("timeout"))
        self._deadline: float | None = None  # of ``time.monotonic()``, from the start of the request
        self._chunks: Any = None
        self._is_async = False

    def open(self) -> FunctionEffect[None]:
        """Send the request."""
        return FunctionEffect(self._open, self._aopen)

    def next(self) -> FunctionEffect[JsonValue]:
        """Read the next chunk; ``None`` at the end."""
        return FunctionEffect(self._next, self._anext)

    def close(self) -> FunctionEffect[None]:
        """Close the stream, read to its end or not."""
        return FunctionEffect(self._close, self._aclose)

    def abort(self) -> None:
        """Close what can be closed without waiting. A task that waits for the stream has to be cancelled."""
        for layer in [] if self._is_async else _closable_layers(self._chunks):
            with contextlib.suppress(Exception):  # the stream is abandoned: no caller needs the error
                layer.close()

    def _open(self) -> None:
        if _must_be_cancellable(self._litellm, self._arguments):
            block_on(self._aopen())
            return
        self._start_deadline()
        self._chunks = iter(self._litellm.completion(**self._arguments))

    async def _aopen(self) -> None:
        import asyncio

        self._start_deadline()
        self._is_async = True
        async with asyncio.timeout(self._timeout):
            self._chunks = aiter(await _close_when_cancelled(self._litellm.acompletion(**self._arguments)))

    def _next(self) -> JsonValue:
        if self._is_async:
            return block_on(self._anext())
        chunk = next(self._chunks, None)
        seconds_until(self._deadline)
        return to_json_value(chunk)

    async def _anext(self) -> JsonValue:
        import asyncio

        async with asyncio.timeout(seconds_until(self._deadline)):
            return to_json_value(await _close_when_cancelled(anext(self._chunks, None)))

    def _close(self) -> None:
        if self._is_async:
            contextvars.Context().run(block_on, self._aclose())  # outside the scope, which may be cancelled
        else:
            self.abort()

    async def _aclose(self) -> None:
        await _close_all(_closable_layers(self._chunks))

    def _start_deadline(self) -> None:
        self._deadline = None if self._timeout is None else time.monotonic() + self._timeout


def _must_be_cancellable(litellm: Any, arguments: JsonObject) -> bool:
    """Return True if blocking code waits for the awaitable call, which can be cancelled."""
    # Not on a loop of sigwire's, where it would wait for itself; and not for a LiteLLM provider of the user's own, which may
    # have the blocking half only.
    if current_scope() is None or started_by_block_on():
        return False
    prefix = str(arguments.get("model")).partition("/")[0]
    return all(row.get("provider") != prefix for row in getattr(litellm, "custom_provider_map", None) or ())


async def _close_when_cancelled(awaitable: Awaitable[T]) -> T:
    """Await LiteLLM. If cancelled, close the reply that it was reading, which it leaves open until collected."""
    import asyncio

    try:
        return await awaitable
    except asyncio.CancelledError as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            await _close_all(_replies_in(frame))
        raise


async def _close_all(layers: Iterable[Any]) -> None:
    for layer in layers:
        with contextlib.suppress(Exception):  # the stream is abandoned: no caller needs the error
            await (layer.aclose if hasattr(layer, "aclose") else layer.close)()


def _replies_in(frame: FrameType | None) -> list[Any]:
    """Return the replies of httpx in the local variables of a function or generator. No attribute leads to them (ADR 0024)."""
    values: Iterable[Any] = frame.f_locals.values() if frame is not None else ()
    return [value for value in values if "is_stream_consumed" in getattr(value, "__dict__", ())]


def _closable_layers(stream: Any) -> list[Any]:
    """Return a stream and the objects it reads from. Many of LiteLLM's iterators do not close the one below them."""
    layers = [stream]
    for layer in layers:  # grows meanwhile
        below = [getattr(layer, name, None) for name in _LAYER_NAMES]
        below += _replies_in(getattr(layer, "ag_frame", None) or getattr(layer, "gi_frame", None))
        layers += [one for one in below if one is not None and not any(one is known for known in layers)]
    return layers


_LAYER_NAMES = (
    "completion_stream", "streaming_response", "response_iterator", "stream_iterator", "response", "http_response",
)  # fmt: skip


def emit_stream(
    call: Call, stream: LiteLLMStream, decoder: Decoder, translate: Callable[[Exception], LMError]
) -> Steps[Response]:
    """Emit the events of an answer as they arrive. ``translate`` makes an ``LMError`` of LiteLLM's exception.

    An error after the first event has the partial answer as its ``partial``.
    """
    events: list[StreamEvent] = []
    with on_cancel(stream.abort):
        try:
            yield from _translate(stream.open(), events, translate)
            while (chunk := (yield from _translate(stream.next(), events, translate))) is not None:
                yield from _emit(call, decoder.feed(chunk), events)
            yield from _emit(call, decoder.close(), events)
        except GeneratorExit:  # a closed generator may not wait
            stream.abort()
            raise
        except BaseException:
            yield stream.close()
            raise
        yield stream.close()
    return collect(events)


def _translate(effect: Effect[T], events: list[StreamEvent], translate: Callable[[Exception], LMError]) -> Steps[T]:
    try:
        value: T = yield effect
    except Exception as error:  # LiteLLM and the packages below it raise anything; their texts and frames show the key
        translated = translate(error)
        if events:
            translated.partial = collect(events)
        raise translated from None
    return value


def _emit(call: Call, found: list[StreamEvent], events: list[StreamEvent]) -> Steps[None]:
    found = [replace(event, cache=call.report.cache) if isinstance(event, ResponseEnd) else event for event in found]
    events += found
    call.report.emitted += len(found)
    if found:
        yield Emit(*found)


def to_json_value(answer: Any) -> JsonValue:
    """Return LiteLLM's object as JSON; of an object that is no JSON only the name of its type.

    >>> to_json_value({"choices": []}), to_json_value(b"data")
    ({'choices': []}, 'an object of type bytes')
    """
    value: object = answer.model_dump(mode="json") if hasattr(answer, "model_dump") else answer
    return cast(JsonValue, value) if isinstance(value, _JSON) else f"an object of type {type(value).__name__}"


_JSON = (dict, list, str, int, float, type(None))
