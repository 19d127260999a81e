"""A streamed reply told as it comes: bytes to JSON to events, and what an answer that failed had said until then.

The pure half of ``endpoint``'s streams, in a file of its own because a call that is not streamed needs none of it, nor of
``core.events``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sigwire.core.events import (
    ChoiceEnd,
    ResponseEnd,
    ResponseStart,
    StreamEvent,
    UsageUpdate,
    collect,
    events_of,
)
from sigwire.core.response import Response
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from sigwire.lm.codecs.shared.interface import EncodedRequest, StreamingCodec, Target
from sigwire.lm.http.reply_stream import ReplyReader

__all__ = ["attach_partial", "emit_content", "emit_decoded", "emit_response", "end_events", "end_events_of"]

E = TypeVar("E", bound=BaseException)


def emit_response(response: Response) -> Emit:
    """The effect that tells a whole answer."""
    return Emit(*events_of(response))


def emit_content(response: Response, told: list[StreamEvent]) -> Emit:
    """The effect that tells an answer but for its ends; ``told`` gets all of it."""
    said = list(events_of(response))
    told += said
    return Emit(*(event for event in said if not _is_end(event)))


def emit_decoded(
    reply: ReplyReader, codec: StreamingCodec[Any], sent: EncodedRequest, target: Target[Any], told: list[StreamEvent]
) -> Steps[None]:
    """Read a reply to its end and tell its events, those of a piece at once; its ends are only put into ``told``."""
    splitter, decoder = make_frame_decoder(codec.FRAMING), codec.decoder(sent, target)
    ended, failure = False, None
    while not ended and failure is None:
        piece: bytes | None = yield reply.next()
        ended, said = piece is None, list[StreamEvent]()
        try:
            for found in splitter.close() if piece is None else splitter.feed(piece):
                said += decoder.feed(found)
            if ended:
                said += decoder.close()
        except LMError as error:  # told is told: what came before it in the same piece, too
            failure = error
        told += said
        if shown := [event for event in said if not _is_end(event)]:
            yield Emit(*shown)
    if failure is not None:
        raise failure


def _is_end(event: StreamEvent) -> bool:
    """Whether the event ends a choice or the answer."""
    return isinstance(event, ChoiceEnd | ResponseEnd)


def end_events(told: Sequence[StreamEvent]) -> list[StreamEvent]:
    """The ends among the events of one reply."""
    return [event for event in told if _is_end(event)]


def end_events_of(response: Response) -> list[StreamEvent]:
    """Counts and ends of an answer that came in several replies, each choice with all its parts."""
    ends = [
        replace(event, parts=response.choices[event.choice].message().parts) if isinstance(event, ChoiceEnd) else event
        for event in events_of(response)
        if _is_end(event)
    ]
    return [UsageUpdate(response.usage), *ends]


def attach_partial(error: E, told: Sequence[StreamEvent]) -> E:
    """The error with the answer as far as it had come, if any of it was shown. A decoder's own word on that stands."""
    if getattr(error, "partial", None) is None and not all(isinstance(e, ResponseStart | UsageUpdate) for e in told):
        error.partial = collect(told)  # type: ignore[attr-defined]  # of ours or not, an exception takes attributes
    return error
