"""The events of streamed replies: bytes to JSON to emitted events, and the partial answer of a reply that failed.

A call that is not streamed does not load this file, and does not load ``core.events``. The ends of a reply (of its
choices and of the response) are not emitted with it, because the provider may have paused the turn; ``ExchangeResult``
holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sigwire.core.events import ChoiceEnd, ResponseEnd, ResponseStart, StreamEvent, UsageUpdate, collect, events_of
from sigwire.core.json import JsonValue
from sigwire.core.response import Response
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.errors import damaged_reply_error
from sigwire.lm.codecs.shared.framing import LIMIT, make_frame_decoder
from sigwire.lm.codecs.shared.interface import EncodedRequest, StreamingCodec, Target
from sigwire.lm.http.messages import HttpReply, HttpRequest, Transport
from sigwire.lm.http.reply_mask import ReplyMask
from sigwire.lm.http.reply_stream import ReplyReader
from sigwire.lm.policy.call import Call

__all__ = [
    "attach_partial",
    "collected",
    "complete_ends",
    "emit_content",
    "emit_decoded",
    "emit_reply",
    "emit_response",
    "end_events",
    "end_events_of",
]

E = TypeVar("E", bound=BaseException)


def emit_response(call: Call, response: Response) -> Emit:
    """Return the effect that emits every event of a whole answer."""
    return Emit(*events_of(replace(response, cache=call.report.cache)))


def emit_reply(
    call: Call,
    transport: Transport,
    request: HttpRequest,
    mask: Callable[[], ReplyMask],
    codec: StreamingCodec[Any],
    sent: EncodedRequest,
    target: Target[Any],
    recover: Callable[[HttpReply], Response],
    events: list[StreamEvent],
) -> Steps[None]:
    """Open the reply and emit its events, without the secrets that ``mask`` knows; ``events`` gets them with the ends.

    ``recover`` reads an answer in an error reply.
    """
    reply = ReplyReader(transport, request, mask)
    try:
        yield reply.open()
        call.report.headers = reply.headers
        if 200 <= reply.status < 300:
            yield from emit_decoded(call, reply, codec, sent, target, events)
        else:
            whole = HttpReply(reply.status, reply.headers, (yield from reply.rest()))
            yield emit_content(call, recover(whole), events)
    except GeneratorExit:  # a closed generator may not wait
        reply.abort()
        raise
    except BaseException:
        yield reply.close()
        raise
    yield reply.close()


def emit_content(call: Call, response: Response, events: list[StreamEvent]) -> Emit:
    """Return the effect that emits a whole answer without its ends; ``events`` gets all of them."""
    found = list(events_of(response))
    events += found
    shown = [event for event in found if not isinstance(event, _ENDS)]
    call.report.count_emitted(len([event for event in shown if not isinstance(event, _EMPTY)]))
    return Emit(*shown)


def emit_decoded(
    call: Call,
    reply: ReplyReader,
    codec: StreamingCodec[Any],
    sent: EncodedRequest,
    target: Target[Any],
    events: list[StreamEvent],
) -> Steps[None]:
    """Read a reply to its end and emit its events, those of a chunk at once; ``events`` gets its ends, too."""
    framing, decoder = make_frame_decoder(codec.FRAMING), codec.decoder(sent, target)
    ended, failure, is_first = False, None, True
    message: JsonValue = None
    next_chunk, chunk, start, size = reply.next(), b"", 0, _FIRST_BYTES
    while not ended and failure is None:
        if start >= len(chunk):
            try:
                read: bytes | None = yield next_chunk
            except (LMError, OSError):
                if not framing.has_end_mark:
                    raise
                read = None  # the connection broke behind [DONE]
            ended, chunk, start = read is None, read or b"", 0
        # The first events of a fast host do not wait for the decoding of all that arrived with them.
        part = chunk[start : start + size]
        start += size
        found: list[StreamEvent] = []
        try:
            for message in framing.close() if ended else framing.feed(part):
                found += decoder.feed(reply.masked(message))
            if ended:
                found += decoder.close(end_mark=framing.has_end_mark)
        except LMError as error:  # Events decoded before the error are emitted first.
            failure = damaged_reply_error(error, message, reply.headers) if isinstance(message, str) else error
        events += found
        shown = [event for event in found if not isinstance(event, _ENDS)]
        call.report.count_emitted(len([event for event in shown if not isinstance(event, _EMPTY)]))
        if is_first and call.report.first is not None:
            is_first = False
            reply.end_first()
        if shown:
            size = min(size * 4, LIMIT)
            yield Emit(*shown)
    if failure is not None:
        raise failure


_FIRST_BYTES = 2048
_ENDS = (ChoiceEnd, ResponseEnd)
_EMPTY = (ResponseStart, UsageUpdate)  # events without content: after them a reply can still be asked for again


def end_events(events: Sequence[StreamEvent]) -> list[StreamEvent]:
    """Return the ends among the events of one reply."""
    return [event for event in events if isinstance(event, _ENDS)]


def collected(events: Sequence[StreamEvent]) -> tuple[Response, list[StreamEvent]]:
    """Return the response of the events of one reply, and the ends among them."""
    return collect(events), end_events(events)


def end_events_of(response: Response) -> list[StreamEvent]:
    """Return the usage and the ends of an answer that was joined from several replies, each choice with all its parts."""
    ends = [
        replace(event, parts=response.choices[event.choice].message().parts) if isinstance(event, ChoiceEnd) else event
        for event in end_events(list(events_of(response)))
    ]
    return [UsageUpdate(response.usage), *ends]


def complete_ends(call: Call, ends: Sequence[StreamEvent]) -> list[StreamEvent]:
    """Return the ends of an answer with the log of its call."""
    known: dict[str, Any] = {"attempts": tuple(call.report.log), "cache": call.report.cache}
    return [replace(event, **known) if isinstance(event, ResponseEnd) else event for event in ends]


def attach_partial(error: E, events: Sequence[StreamEvent]) -> E:
    """Return the error with the answer as far as it was emitted. A ``partial`` set by the decoder is kept."""
    if getattr(error, "partial", None) is None and not all(isinstance(event, _EMPTY) for event in events):
        error.partial = collect(events)  # type: ignore[attr-defined]  # any exception takes attributes
    return error
