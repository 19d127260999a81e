"""LiteLLM's answers as effects: whole, or as a stream of chunks, and the program that reads that to its end.

LiteLLM gives an iterator, or an asynchronous one, of its own objects. ``LiteLLMStream`` opens it, reads it and puts it away;
``tell(chunks, decoder, failed)`` emits what a decoder makes of the chunks. ``CompletionEffect`` is the answer in one piece.

The caller's timeout is for the whole answer: LiteLLM's own starts anew with every byte that arrives.

A blocking call of LiteLLM's cannot be woken before its first chunk. So where those for whom it is made may leave (``leaving``),
blocking code waits for the awaited call, on a loop of ours: that can be cancelled, which closes its socket.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar, cast

from sigwire.core.events import StreamEvent, collect
from sigwire.core.json import JsonValue
from sigwire.core.response import Response
from sigwire.effects.cancellation import current_scope, on_cancel
from sigwire.effects.emitting import Emit
from sigwire.effects.loops import block_on, started_by_block_on
from sigwire.effects.steps import Effect, FunctionEffect, Steps
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.interface import Decoder

__all__ = ["CompletionEffect", "LiteLLMStream", "emit_stream", "to_json_value"]

T = TypeVar("T")


def to_json_value(answer: Any) -> JsonValue:
    """What LiteLLM gives as JSON; of what says itself in no such way only the type.

    >>> plain({"choices": []}), plain(b"data")
    ({'choices': []}, 'an object of type bytes')
    """
    return _told(answer.model_dump(mode="json") if hasattr(answer, "model_dump") else answer)


def _told(answer: object) -> JsonValue:
    return cast("JsonValue", answer) if isinstance(answer, _JSON) else f"an object of type {type(answer).__name__}"


_JSON = (dict, list, str, int, float, type(None))


def _may_be_left(litellm: Any, arguments: dict[str, Any]) -> bool:
    """Whether blocking code waits for the awaited call, which can be cancelled.

    Not on our own loop, where it would wait for itself; nor for a provider of the user's own, who may have written one half.
    """
    if current_scope() is None or started_by_block_on():
        return False
    prefix = str(arguments.get("model")).partition("/")[0]
    return all(row.get("provider") != prefix for row in getattr(litellm, "custom_provider_map", None) or ())


async def _closing(awaited: Awaitable[T]) -> T:
    """What LiteLLM gives. Cancelled, the reply that it was reading is closed, which it would leave to the collector."""
    import asyncio

    try:
        return await awaited
    except asyncio.CancelledError as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            await _close(_replies(frame))
        raise


async def _close(layers: Iterable[Any]) -> None:
    for layer in layers:
        with contextlib.suppress(Exception):  # it is given up: how that went helps nobody
            await (layer.aclose if hasattr(layer, "aclose") else layer.close)()


def _replies(frame: FrameType | None) -> list[Any]:
    """The replies of httpx that a function or a generator works on. Nobody gives them out, and only they end the reading."""
    here: Iterable[Any] = frame.f_locals.values() if frame is not None else ()
    return [value for value in here if "is_stream_consumed" in getattr(value, "__dict__", ())]


@dataclass(frozen=True, slots=True, repr=False)
class CompletionEffect:
    """An effect: LiteLLM answers, in one piece. ``arguments`` are those of ``litellm.completion``."""

    litellm: Any
    arguments: dict[str, Any]

    def run(self) -> Any:
        if _may_be_left(self.litellm, self.arguments):
            return block_on(self.arun())
        return self.litellm.completion(**self.arguments)

    async def arun(self) -> Any:
        import asyncio

        async with asyncio.timeout(self.arguments.get("timeout")):
            return await _closing(self.litellm.acompletion(**self.arguments))


def _layers(stream: Any) -> list[Any]:
    """A stream and what it is made of, down to the reply over HTTP. Many of LiteLLM's iterators close nothing below them."""
    layers = [stream]
    for layer in layers:  # which grow meanwhile
        held = [getattr(layer, name, None) for name in _HELD]
        held += _replies(getattr(layer, "ag_frame", None) or getattr(layer, "gi_frame", None))
        layers += [one for one in held if one is not None and not any(one is known for known in layers)]
    return layers


_HELD = ("completion_stream", "streaming_response", "response_iterator", "stream_iterator", "response", "http_response")


class LiteLLMStream:
    """One answer of LiteLLM's that is read as it comes; ``arguments`` are those of ``litellm.completion``."""

    def __init__(self, litellm: Any, arguments: dict[str, Any]) -> None:
        self._litellm, self._arguments = litellm, arguments
        self._timeout: float | None = arguments.get("timeout")
        self._deadline: float | None = None
        self._came: Any = None
        self._is_awaited = False

    def open(self) -> FunctionEffect[None]:
        """Ask."""
        return FunctionEffect(self._open, self._aopen)

    def next(self) -> FunctionEffect[JsonValue]:
        """The next chunk; ``None`` at the end."""
        return FunctionEffect(self._next, self._anext)

    def shut(self) -> FunctionEffect[None]:
        """Put the stream away, read to its end or not."""
        return FunctionEffect(self._shut, self._ashut)

    def abort(self) -> None:
        """Close what can be closed without waiting. What is awaited is cancelled by whoever awaits it."""
        for layer in [] if self._is_awaited else _layers(self._came):
            with contextlib.suppress(Exception):  # it is given up: how that went helps nobody
                layer.close()

    def _open(self) -> None:
        if _may_be_left(self._litellm, self._arguments):
            block_on(self._aopen())
            return
        self._start()
        self._came = iter(self._litellm.completion(**self._arguments))

    async def _aopen(self) -> None:
        import asyncio

        self._start()
        self._is_awaited = True
        async with asyncio.timeout(self._left()):
            self._came = aiter(await _closing(self._litellm.acompletion(**self._arguments)))

    def _next(self) -> JsonValue:
        if self._is_awaited:
            return block_on(self._anext())
        chunk = next(self._came, None)
        self._left()
        return to_json_value(chunk)

    async def _anext(self) -> JsonValue:
        import asyncio

        async with asyncio.timeout(self._left()):
            return to_json_value(await _closing(anext(self._came, None)))

    def _shut(self) -> None:
        if self._is_awaited:
            contextvars.Context().run(block_on, self._ashut())  # not part of what may have been left by now
        else:
            self.abort()

    async def _ashut(self) -> None:
        await _close(_layers(self._came))

    def _start(self) -> None:
        self._deadline = None if self._timeout is None else time.monotonic() + self._timeout

    def _left(self) -> float | None:
        """Seconds until the deadline. Raises ``TimeoutError`` where it is past."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def emit_stream(chunks: LiteLLMStream, decoder: Decoder, failed: Callable[[Exception], LMError]) -> Steps[Response]:
    """Emit the events of an answer as they come. ``failed`` makes LiteLLM's exceptions ours.

    An error that comes after something was told has the answer so far as its ``partial``.
    """
    told: list[StreamEvent] = []
    with on_cancel(chunks.abort):
        try:
            yield from _try(chunks.open(), told, failed)
            while (chunk := (yield from _try(chunks.next(), told, failed))) is not None:
                yield from _emit(decoder.feed(chunk), told)
            yield from _emit(decoder.close(), told)
        except GeneratorExit:  # nobody is left to wait
            chunks.abort()
            raise
        except BaseException:
            yield chunks.shut()
            raise
        yield chunks.shut()
    return collect(told)


def _try(effect: Effect[T], told: list[StreamEvent], failed: Callable[[Exception], LMError]) -> Steps[T]:
    try:
        value: T = yield effect
    except Exception as error:  # whatever LiteLLM and the packages below it raise
        ours = failed(error)
        if told:
            ours.partial = collect(told)
        raise ours from error
    return value


def _emit(said: list[StreamEvent], told: list[StreamEvent]) -> Steps[None]:
    told += said
    if said:
        yield Emit(*said)
