"""Targets that decode replies: ``splitter`` (bytes to JSON), events and bytes to a response for every wire, and chunks to a
response for LiteLLM, whose chunks are objects.

Any input gives a response or an ``LMError``. The result does not depend on the chunk boundaries. An emitted call has arguments
or an error. The emitted text is not longer than the input.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sigwire.core.events import StreamEvent, TextDelta, ToolCallEnd, collect
from sigwire.core.response import Response
from sigwire.effects.emitting import stream
from sigwire.errors import LMError
from sigwire.lm.codecs import anthropic, gemini, ollama, openai_chat, openai_responses
from sigwire.lm.codecs.openai_chat.profiles import DEEPSEEK, OPENAI
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from sigwire.lm.codecs.shared.interface import Framing, StreamingCodec, Target
from sigwire.lm.litellm.tables import LiteLLMProfile
from tests.fuzz.source import Source, damaged, in_chunks
from tests.lm.codecs.anthropic import test_streams as anthropic_streams
from tests.lm.codecs.gemini import test_streams as gemini_streams
from tests.lm.codecs.ollama import test_streams as ollama_streams
from tests.lm.codecs.openai_chat import test_streams as openai_chat_streams
from tests.lm.codecs.openai_responses import test_streams as openai_responses_streams
from tests.lm.codecs.streaming import sent_to
from tests.lm.litellm.test_effects import CHUNKS, CLAUDE, GEMINI, Package, program

__all__ = ["LITELLM_CHUNKS", "TARGETS", "WIRES", "Outcome", "Wire", "check", "read", "run_chunks"]

LIMIT = 100_000  # bytes of one event, more than any input here has


@dataclass(frozen=True)
class Wire:
    """A wire's codec, the target of a request, and a valid stream of the wire's events."""

    codec: StreamingCodec[Any]
    target: Target[Any]
    transcript: Sequence[Any]

    @property
    def body(self) -> Any:
        """The body of a reply with the same content that is not streamed."""
        return collect(read(self, [lambda: self.transcript]).events).raw

    @property
    def words(self) -> list[str]:
        """The keys and the short texts of its events."""
        return sorted({word for event in self.transcript for word in _words(event)})

    def framed(self, events: Iterable[Any]) -> bytes:
        """Events as bytes."""
        lines = [json.dumps(event).encode() for event in events]
        if self.codec.FRAMING == "ndjson":
            return b"".join(line + b"\n" for line in lines)
        return b"".join(b"data: " + line + b"\n\n" for line in lines)


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _words(item)
    elif isinstance(value, str) and len(value) < 24:
        yield value


_MODULES: Mapping[str, tuple[Any, Any, Any]] = {
    "anthropic": (anthropic, anthropic_streams, None),
    "gemini": (gemini, gemini_streams, None),
    "ollama": (ollama, ollama_streams, None),
    "openai_chat": (openai_chat, openai_chat_streams, Target("openai", "m", OPENAI)),
    "openai_chat_thinking": (openai_chat, openai_chat_streams, Target("deepseek", "m", DEEPSEEK)),
    "openai_responses": (openai_responses, openai_responses_streams, None),
}
WIRES: Mapping[str, Wire] = {
    name: Wire(codec, target or module.TARGET, module.TRANSCRIPT) for name, (codec, module, target) in _MODULES.items()
}


# --- assertions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The result of a reply: the emitted events, the error if one was raised, and its partial response."""

    events: tuple[StreamEvent, ...]
    error: type[LMError] | None
    partial: Response | None


def read(wire: Wire, batches: Iterable[Callable[[], Iterable[Any]]]) -> Outcome:
    """Feed all events to a decoder and close the decoder, as a backend does."""
    decoder = wire.codec.decoder(sent_to(wire.codec, wire.target), wire.target)
    emitted: list[StreamEvent] = []
    try:
        for batch in batches:
            for event in batch():
                emitted += decoder.feed(event)
        emitted += decoder.close()
    except LMError as error:
        return Outcome(tuple(emitted), type(error), error.partial)
    return Outcome(tuple(emitted), None, None)


def check(outcome: Outcome, size: int) -> None:
    """Assert the properties of every outcome. ``size``: the characters of the input."""
    response = collect(outcome.events)
    assert Response.from_json(response.to_json()) == response
    assert sum(len(event.text) for event in outcome.events if isinstance(event, TextDelta)) <= size
    for event in outcome.events:
        if isinstance(event, ToolCallEnd):
            assert (event.call.arguments is None) == (event.call.error is not None)
    if outcome.partial is not None:
        assert Response.from_json(outcome.partial.to_json()) == outcome.partial


# --- the targets ---------------------------------------------------------------------------------------------------


def splitter(source: Source) -> None:
    """Any bytes in any chunks give JSON or an ``LMError``."""
    framing: Framing = "ndjson" if source.below(2) else "sse"
    cuts, data = source.cuts(), source.rest()
    assert _split(framing, in_chunks(data, cuts)) == _split(framing, [data])
    assert _split(framing, [data[at : at + 1] for at in range(len(data))]) == _split(framing, [data])


def _split(framing: Framing, chunks: Iterable[bytes]) -> tuple[list[Any], type[LMError] | None]:
    reading, values = make_frame_decoder(framing, LIMIT), list[Any]()
    try:
        for chunk in chunks:
            values.extend(reading.feed(chunk))
        values.extend(reading.close())
    except LMError as error:
        return values, type(error)
    return values, None


def events_of(wire: Wire, source: Source) -> None:
    """Decode a valid stream with damaged events."""
    events = damaged(source, wire.transcript, wire.words)
    check(read(wire, [lambda: events]), len(json.dumps(events)))


def bytes_of(wire: Wire, source: Source) -> None:
    """Decode a damaged stream as bytes, with damaged bytes, or any bytes, in any chunks."""
    cuts = source.cuts()
    if source.below(4):
        data = bytearray(wire.framed(damaged(source, wire.transcript, wire.words)))
        while source and data:
            data[source.below(len(data))] = source.below(256)
        whole = bytes(data)
    else:
        whole = source.rest()
    outcome = read(wire, _batches(wire, [whole]))
    check(outcome, len(whole))
    assert read(wire, _batches(wire, in_chunks(whole, cuts))) == outcome


def _batches(wire: Wire, chunks: Iterable[bytes]) -> Iterator[Callable[[], Iterable[Any]]]:
    reading = make_frame_decoder(wire.codec.FRAMING, LIMIT)
    for chunk in chunks:
        yield partial(reading.feed, chunk)
    yield reading.close


def whole_of(wire: Wire, body: Any, source: Source) -> None:
    """Decode a damaged reply that is not streamed."""
    bodies = damaged(source, [body], wire.words)
    try:
        response = wire.codec.decode(bodies[0] if bodies else None, sent_to(wire.codec, wire.target), wire.target)
    except LMError:
        return
    assert Response.from_json(response.to_json()) == response
    for choice in response.choices:
        for call in choice.tool_calls:
            assert (call.arguments is None) == (call.error is not None)


_COMPLAINT = {
    "message": "Slow down, try again in 1.5s",
    "type": "rate_limit_error",
    "code": 429,
    "status": "UNAVAILABLE",
}
_ERRORS: tuple[Any, ...] = (
    {"error": _COMPLAINT, "request_id": "r1"},
    {"type": "error", "error": {**_COMPLAINT, "details": [{"@type": "x.RetryInfo", "retryDelay": "3.5s"}]}},
    [{"error": {"code": 429, "message": "no", "status": "RESOURCE_EXHAUSTED"}}],
    {"detail": [{"loc": ["body", 1], "msg": "field required"}]},
    {"error": "model not found"},
)
_ERROR_WORDS = sorted({word for body in _ERRORS for word in _words(body)})
_HEADERS = ("retry-after", "Retry-After-Ms", "date", "x-request-id", "x-should-retry", "content-type")
_HEADER_VALUES = (
    "1", "-1", "1e999", "nan", "soon", "", "true", "Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 99 Oct 0000 07:28:00 GMT",
)  # fmt: skip


def errors_of(wire: Wire, source: Source) -> None:
    """Any error body gives an ``LMError`` with a message."""
    status = source.choose((400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 499, 500, 503, 529, 302, 999))
    headers = {source.choose(_HEADERS): source.choose(_HEADER_VALUES) for _ in range(source.below(4))}
    if source.below(3):
        bodies = damaged(source, [source.choose(_ERRORS)], _ERROR_WORDS)
        body = json.dumps(bodies[0] if bodies else None).encode()
    else:
        body = source.rest()
    error = wire.codec.decode_error(status, headers, body, wire.target)
    assert error.message
    assert error.retry_after is None or error.retry_after >= 0


# --- LiteLLM -------------------------------------------------------------------------------------------------------


class Dumped:
    """A chunk of LiteLLM: an object whose ``model_dump`` returns JSON or raises."""

    def __init__(self, chunk: Any) -> None:
        self._chunk = chunk

    def model_dump(self, *, mode: str) -> Any:
        if self._chunk is None:
            raise ValueError(f"no value in mode {mode}")
        return self._chunk


_IMAGE = {"choices": [{"index": 0, "delta": {"images": [{"image_url": {"url": "data:image/png;base64,iVBO"}}]}}]}
_SIGNED = {"thinking_blocks": [], "provider_specific_fields": {"thought_signatures": ["S"]}}
LITELLM_CHUNKS: tuple[Any, ...] = (*CHUNKS, _IMAGE, {"choices": [{"index": 0, "delta": _SIGNED}]})
LITELLM_WORDS = sorted(
    {"c1__thought__S", "message", "images", *(word for one in LITELLM_CHUNKS for word in _words(one))}
)
_NO_CHUNKS: tuple[Any, ...] = (Dumped(None), object(), b"x", RuntimeError("it broke"), TimeoutError())


def chunks_of(to: Target[LiteLLMProfile], source: Source) -> None:
    """Decode a damaged stream of chunks that may contain foreign objects and exceptions."""
    chunks: list[Any] = [
        Dumped(one) if source.below(2) else one for one in damaged(source, LITELLM_CHUNKS, LITELLM_WORDS)
    ]
    if source.below(4) == 3:
        chunks.insert(source.below(len(chunks) + 1), source.choose(_NO_CHUNKS))
    package = Package(chunks)
    check(run_chunks(package, to), 2000 + len(str(LITELLM_CHUNKS)) * 4)
    assert package.events.closed


def run_chunks(package: Package, to: Target[LiteLLMProfile]) -> Outcome:
    """Read all events of LiteLLM's stream."""
    emitted: list[StreamEvent] = []
    try:
        emitted.extend(stream(program(package, to)))
    except LMError as error:
        return Outcome(tuple(emitted), type(error), error.partial)
    return Outcome(tuple(emitted), None, None)


TARGETS: Mapping[str, Callable[[Source], None]] = {
    "splitter": splitter,
    "chunks_litellm_anthropic": partial(chunks_of, CLAUDE),
    "chunks_litellm_gemini": partial(chunks_of, GEMINI),
    **{f"whole_{name}": partial(whole_of, wire, wire.body) for name, wire in WIRES.items()},
    **{f"errors_{name}": partial(errors_of, wire) for name, wire in WIRES.items()},
    **{f"events_{name}": partial(events_of, wire) for name, wire in WIRES.items()},
    **{f"bytes_{name}": partial(bytes_of, wire) for name, wire in WIRES.items()},
}
