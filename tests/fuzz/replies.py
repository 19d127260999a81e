"""Targets that read replies: ``splitter`` (bytes -> JSON) and, for every wire, events -> answer and bytes -> answer.

Whatever comes, an answer or one of our errors comes out; what a reply comes to does not depend on where its bytes are cut; a
call that was told is whole or says what is wrong with it; and no more is told than came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sigwire.core.events import StreamEvent, TextDelta, ToolCallEnd, collect
from sigwire.core.response import Response
from sigwire.errors import LMError
from sigwire.lm.codecs import anthropic, gemini, ollama, openai_chat, openai_responses
from sigwire.lm.codecs.base import Framing, StreamingCodec, Target
from sigwire.lm.codecs.dialects import DEEPSEEK, OPENAI
from sigwire.lm.sse import splitter_for
from tests.fuzz.source import Source, damaged, in_pieces
from tests.lm.codecs import (
    test_anthropic_streams,
    test_gemini_streams,
    test_ollama_streams,
    test_openai_chat_streams,
    test_openai_responses_streams,
)
from tests.lm.codecs.streaming import sent_to

__all__ = ["TARGETS", "WIRES", "Wire"]

LIMIT = 100_000  # bytes of one event, more than any input here has


@dataclass(frozen=True)
class Wire:
    """A wire's codec, who is asked, and a true stream of its events."""

    codec: StreamingCodec[Any]
    target: Target[Any]
    transcript: Sequence[Any]

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
    "anthropic": (anthropic, test_anthropic_streams, None),
    "gemini": (gemini, test_gemini_streams, None),
    "ollama": (ollama, test_ollama_streams, None),
    "openai_chat": (openai_chat, test_openai_chat_streams, Target("openai", "m", OPENAI)),
    "openai_chat_thinking": (openai_chat, test_openai_chat_streams, Target("deepseek", "m", DEEPSEEK)),
    "openai_responses": (openai_responses, test_openai_responses_streams, None),
}
WIRES: Mapping[str, Wire] = {
    name: Wire(codec, target or module.TARGET, module.TRANSCRIPT) for name, (codec, module, target) in _MODULES.items()
}


# --- what is asserted ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a reply came to: the events that were told, and the error, if there was one."""

    told: tuple[StreamEvent, ...]
    error: type[LMError] | None
    partial: Response | None


def read(wire: Wire, batches: Iterable[Callable[[], Iterable[Any]]]) -> Outcome:
    """Feed a decoder to its end, as an endpoint does."""
    decoder = wire.codec.decoder(sent_to(wire.codec, wire.target), wire.target)
    told: list[StreamEvent] = []
    try:
        for batch in batches:
            for event in batch():
                told += decoder.feed(event)
        told += decoder.close()
    except LMError as error:
        return Outcome(tuple(told), type(error), error.partial)
    return Outcome(tuple(told), None, None)


def check(outcome: Outcome, size: int) -> None:
    """What holds of any outcome. ``size``: how many characters came."""
    response = collect(outcome.told)
    assert Response.from_json(response.to_json()) == response
    assert sum(len(event.text) for event in outcome.told if isinstance(event, TextDelta)) <= size
    for event in outcome.told:
        if isinstance(event, ToolCallEnd):
            assert (event.call.arguments is None) == (event.call.error is not None)
    if outcome.partial is not None:
        assert Response.from_json(outcome.partial.to_json()) == outcome.partial


# --- the targets ---------------------------------------------------------------------------------------------------


def splitter(source: Source) -> None:
    """Any bytes, cut anywhere: JSON, or one of our errors."""
    framing: Framing = "ndjson" if source.below(2) else "sse"
    cuts, data = source.cuts(), source.rest()
    assert _split(framing, in_pieces(data, cuts)) == _split(framing, [data])
    assert _split(framing, [data[at : at + 1] for at in range(len(data))]) == _split(framing, [data])


def _split(framing: Framing, pieces: Iterable[bytes]) -> tuple[list[Any], type[LMError] | None]:
    reading, values = splitter_for(framing, LIMIT), list[Any]()
    try:
        for piece in pieces:
            values.extend(reading.feed(piece))
        values.extend(reading.close())
    except LMError as error:
        return values, type(error)
    return values, None


def events_of(wire: Wire, source: Source) -> None:
    """A true stream whose events are damaged."""
    events = damaged(source, wire.transcript, wire.words)
    check(read(wire, [lambda: events]), len(json.dumps(events)))


def bytes_of(wire: Wire, source: Source) -> None:
    """The same in bytes, damaged again, or any bytes at all; cut anywhere."""
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
    assert read(wire, _batches(wire, in_pieces(whole, cuts))) == outcome


def _batches(wire: Wire, pieces: Iterable[bytes]) -> Iterator[Callable[[], Iterable[Any]]]:
    reading = splitter_for(wire.codec.FRAMING, LIMIT)
    for piece in pieces:
        yield partial(reading.feed, piece)
    yield reading.close


TARGETS: Mapping[str, Callable[[Source], None]] = {
    "splitter": splitter,
    **{f"events_{name}": partial(events_of, wire) for name, wire in WIRES.items()},
    **{f"bytes_{name}": partial(bytes_of, wire) for name, wire in WIRES.items()},
}
