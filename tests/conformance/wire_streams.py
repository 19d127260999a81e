"""Recorded streams, read as the client reads them: bytes -> events of the wire -> our events -> a response."""

from __future__ import annotations

from typing import Any

from sigwire.core.events import StreamEvent, collect
from sigwire.core.json import JsonValue
from sigwire.core.response import Response
from sigwire.lm.codecs.base import Encoded, StreamingCodec, Target
from sigwire.lm.sse import splitter_for
from tests.conformance.recordings import Exchange


def wire_events(codec: StreamingCodec[Any], text: str, size: int = 100) -> list[JsonValue]:
    """The events in the bytes of a reply, which come in pieces of this size."""
    splitter, data = splitter_for(codec.FRAMING), text.encode()
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    return [event for piece in pieces for event in splitter.feed(piece)] + [*splitter.close()]


def told(codec: StreamingCodec[Any], events: list[JsonValue], sent: Encoded, target: Target[Any]) -> list[StreamEvent]:
    """What the decoder tells of these events, to the end."""
    decoder = codec.decoder(sent, target)
    return [*(ours for event in events for ours in decoder.feed(event)), *decoder.close()]


def read(codec: StreamingCodec[Any], exchange: Exchange, sent: Encoded, target: Target[Any]) -> Response:
    """The response that a recorded stream comes to."""
    return collect(told(codec, wire_events(codec, exchange["response"]), sent, target))
