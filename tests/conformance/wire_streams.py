"""Recorded streams, read as the client reads them: bytes -> events of the wire -> stream events -> a response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sigwire.core.events import StreamEvent, collect
from sigwire.core.json import JsonValue
from sigwire.core.response import Response
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from sigwire.lm.codecs.shared.interface import EncodedRequest, StreamingCodec, Target
from tests.conformance.recordings import Exchange


@dataclass(frozen=True)
class Streams:
    """The recorded complete streams of one wire, with the functions that read them.

    ``cut`` returns the index of the event from which on a stream is truncated.
    """

    codec: StreamingCodec[Any]
    sent_of: Callable[[Exchange], EncodedRequest]
    target_of: Callable[[Exchange], Target[Any]]
    answers: list[Exchange]
    cut: Callable[[list[Any]], int]

    def events(self, exchange: Exchange, size: int = 100) -> list[Any]:
        """Return the events of a reply, decoded from chunks of ``size`` bytes."""
        splitter, data = make_frame_decoder(self.codec.FRAMING), exchange["response"].encode()
        chunks = (data[start : start + size] for start in range(0, len(data), size))
        return [event for chunk in chunks for event in splitter.feed(chunk)] + [*splitter.close()]

    def stream_events(self, exchange: Exchange, events: Sequence[JsonValue] | None = None) -> list[StreamEvent]:
        """Return the stream events of ``events``, or of the recorded events if None."""
        decoder = self.codec.decoder(self.sent_of(exchange), self.target_of(exchange))
        given = self.events(exchange) if events is None else events
        return [*(emitted for event in given for emitted in decoder.feed(event)), *decoder.close()]

    def response(self, exchange: Exchange) -> Response:
        """Return the response of a recorded stream."""
        return collect(self.stream_events(exchange))
