"""LiteLLM's stream of chunks, as effects, and the program that reads it to its end.

LiteLLM gives an iterator, or an asynchronous one, of its own objects. ``Chunks`` opens it, reads it and puts it away;
``tell(chunks, decoder, failed)`` emits what a decoder makes of the chunks. The caller's timeout is for the whole answer:
LiteLLM's own starts anew with every byte that arrives.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from sigwire.core.events import StreamEvent, collect
from sigwire.core.json import JsonValue
from sigwire.core.response import Response
from sigwire.errors import LMError
from sigwire.leaving import on_leave
from sigwire.lm.codecs.base import Decoder
from sigwire.steps import Effect, Either, Program
from sigwire.streams import Emit

__all__ = ["Chunks", "plain", "tell"]

T = TypeVar("T")


def plain(answer: Any) -> JsonValue:
    """What LiteLLM gives as JSON; of what says itself in no such way only the type.

    >>> plain({"choices": []}), plain(b"data")
    ({'choices': []}, 'an object of type bytes')
    """
    if hasattr(answer, "model_dump"):
        return cast("JsonValue", answer.model_dump(mode="json"))
    is_json = answer is None or isinstance(answer, dict | list | str | int | float)
    return cast("JsonValue", answer) if is_json else f"an object of type {type(answer).__name__}"


class Chunks:
    """One answer of LiteLLM's that is read as it comes; ``arguments`` are those of ``litellm.completion``."""

    def __init__(self, litellm: Any, arguments: dict[str, Any]) -> None:
        self._litellm, self._arguments = litellm, arguments
        self._timeout: float | None = arguments.get("timeout")
        self._deadline: float | None = None
        self._came: Any = None

    def open(self) -> Either[None]:
        """Ask."""
        return Either(self._open, self._aopen)

    def next(self) -> Either[JsonValue]:
        """The next chunk; ``None`` at the end."""
        return Either(self._next, self._anext)

    def shut(self) -> Either[None]:
        """Put the stream away, read to its end or not."""
        return Either(self.abort, self._ashut)

    def abort(self) -> None:
        """Close what can be closed without waiting."""
        close = getattr(getattr(self._came, "completion_stream", None), "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # it is given up: how that went helps nobody
                close()

    def _open(self) -> None:
        self._start()
        self._came = iter(self._litellm.completion(**self._arguments))

    async def _aopen(self) -> None:
        import asyncio

        self._start()
        async with asyncio.timeout(self._left()):
            self._came = aiter(await self._litellm.acompletion(**self._arguments))

    def _next(self) -> JsonValue:
        chunk = next(self._came, None)
        self._left()
        return plain(chunk)

    async def _anext(self) -> JsonValue:
        import asyncio

        async with asyncio.timeout(self._left()):
            return plain(await anext(self._came, None))

    async def _ashut(self) -> None:
        close = getattr(self._came, "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):
                await close()

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


def tell(chunks: Chunks, decoder: Decoder, failed: Callable[[Exception], LMError]) -> Program[Response]:
    """Emit the events of an answer as they come. ``failed`` makes LiteLLM's exceptions ours.

    An error that comes after something was told has the answer so far as its ``partial``.
    """
    told: list[StreamEvent] = []
    with on_leave(chunks.abort):
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


def _try(effect: Effect[T], told: list[StreamEvent], failed: Callable[[Exception], LMError]) -> Program[T]:
    try:
        value: T = yield effect
    except Exception as error:  # whatever LiteLLM and the packages below it raise
        ours = failed(error)
        if told:
            ours.partial = collect(told)
        raise ours from error
    return value


def _emit(said: list[StreamEvent], told: list[StreamEvent]) -> Program[None]:
    told += said
    if said:
        yield Emit(*said)
