"""Recorded streams, read as the client reads them: bytes -> events of the wire -> our events -> a response."""

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
    """The recorded streams of one wire whose answers come to an end, and what it takes to read them.

    ``cut`` finds the event without which, and without all after it, an answer was cut off.
    """

    codec: StreamingCodec[Any]
    sent_of: Callable[[Exchange], EncodedRequest]
    target_of: Callable[[Exchange], Target[Any]]
    answers: list[Exchange]
    cut: Callable[[list[Any]], int]

    def events(self, exchange: Exchange, size: int = 100) -> list[Any]:
        """The events in the bytes of a reply, which come in pieces of this size."""
        splitter, data = make_frame_decoder(self.codec.FRAMING), exchange["response"].encode()
        pieces = (data[start : start + size] for start in range(0, len(data), size))
        return [event for piece in pieces for event in splitter.feed(piece)] + [*splitter.close()]

    def told(self, exchange: Exchange, events: Sequence[JsonValue] | None = None) -> list[StreamEvent]:
        """What the decoder tells of these events (else of all that were recorded), to the end."""
        decoder = self.codec.decoder(self.sent_of(exchange), self.target_of(exchange))
        given = self.events(exchange) if events is None else events
        return [*(ours for event in given for ours in decoder.feed(event)), *decoder.close()]

    def response(self, exchange: Exchange) -> Response:
        """The response that a recorded stream comes to."""
        return collect(self.told(exchange))
