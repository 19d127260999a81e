"""Shared by the tests of streamed replies: a decoder fed to its end, texts cut anywhere, and hostile events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from sigwire.core.events import StreamEvent, collect
from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.interface import EncodedRequest, StreamingCodec, Target

ASKED = Request((Message.user("q"),))


def decoded_events(
    codec: StreamingCodec[Any],
    target: Target[Any],
    events: Iterable[JsonValue],
    request: Request = ASKED,
    *,
    end_mark: bool = False,
) -> list[StreamEvent]:
    """Return all stream events of a decoder, to the end of the answer."""
    decoder = codec.decoder(codec.encode(request, target, stream=True), target)
    return [*(ours for event in events for ours in decoder.feed(event)), *decoder.close(end_mark=end_mark)]


def streamed(
    codec: StreamingCodec[Any], target: Target[Any], events: Iterable[JsonValue], request: Request = ASKED
) -> Response:
    """The answer that these events come to."""
    return collect(decoded_events(codec, target, events, request))


def sent_to(codec: StreamingCodec[Any], target: Target[Any]) -> EncodedRequest:
    return codec.encode(ASKED, target, stream=True)


def cuts(text: str) -> st.SearchStrategy[list[str]]:
    """Cut the text anywhere, sometimes into empty chunks."""
    places = st.lists(st.integers(0, len(text)), max_size=4).map(sorted)
    return places.map(lambda at: [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)])


def hostile(words: Sequence[str]) -> st.SearchStrategy[list[Any]]:
    """Sequences of JSON that look like a wire's events now and then: its own words, put together in any way."""
    keys, leaves = st.sampled_from(words), st.sampled_from([*words, "", "{", 0, 1, -1, 1.5, True, None])
    values: st.SearchStrategy[Any] = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )
    return st.lists(st.dictionaries(keys, values, max_size=5) | values, max_size=6)


@st.composite
def damaged(draw: st.DrawFn, transcript: Sequence[Any]) -> list[Any]:
    """A true stream in which some values are others, some are missing, and some events come twice."""
    events = [draw(_damaged(event)) if draw(st.integers(0, 3)) == 0 else event for event in transcript]
    again = draw(st.integers(0, len(events)))
    return [*events[:again], *draw(st.sampled_from([[], events[:again]])), *events[again:]]


_OTHERS: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "{", [], [[]], [None], {}, {"x": {}}]
)


@st.composite
def _damaged(draw: st.DrawFn, value: Any) -> Any:
    if not value or not isinstance(value, dict | list) or draw(st.integers(0, 4)) == 0:
        return draw(_OTHERS)
    if isinstance(value, list):
        items: list[Any] = [*value]
        at = draw(st.integers(0, len(items) - 1))
        return [*items[:at], draw(_damaged(items[at])), *items[at + 1 :]]
    fields: dict[str, Any] = {**value}
    name = draw(st.sampled_from(sorted(fields)))
    if draw(st.integers(0, 3)) == 0:
        return {key: child for key, child in fields.items() if key != name}
    return {**fields, name: draw(_damaged(fields[name]))}


def only_our_errors(codec: StreamingCodec[Any], target: Target[Any], events: Iterable[JsonValue]) -> None:
    """Check that any events give an answer, or an ``LMError`` with the partial response."""
    try:
        came = streamed(codec, target, events)
    except LMError as error:
        came = error.partial or Response()
    assert isinstance(came, Response)
