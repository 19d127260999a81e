"""The chat layout in pieces: a header at the start of a line begins a section.

The same as ``ChatLayout.read``: the first section of a name counts, sections of other names are passed over, nothing after the
end mark is read. Only the last line of what has come can be a header that is not there yet, and only while it looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sigwire.adapters.field_events import FieldEvents, FieldSink
from sigwire.adapters.prompts.escaping import HEADER_STEPS, AnyEscaper, MarkPattern
from sigwire.adapters.streaming.lookahead import Lookahead
from sigwire.adapters.streaming.object_fields import make_sink
from sigwire.adapters.streaming.unescape import Unescaper
from sigwire.adapters.values.codecs import FieldCodec

__all__ = ["ChatSectionReader"]

_MARK = MarkPattern.of(*HEADER_STEPS)
_HEADER = re.compile(rf"\n[ \t]*{_MARK.whole}")
_UNSURE = re.compile(rf"[ \t]*{_MARK.begun}\Z")


class ChatSectionReader:
    """Sections of one answer. ``end`` is the name of the end mark."""

    __slots__ = ("_done", "_end", "_events", "_guard", "_lookahead", "_sink", "_untold")

    def __init__(
        self, outputs: Iterable[tuple[str, FieldCodec]], end: str, guard: AnyEscaper, events: FieldEvents
    ) -> None:
        self._untold, self._end, self._guard, self._events = dict(outputs), end, guard, events
        self._sink: FieldSink | None = None
        self._lookahead = Lookahead("\n")  # the answer begins as a line does
        self._done = False

    def opens(self, text: str) -> bool | None:
        """Whether a text begins with a header."""
        if _HEADER.match("\n" + text):
            return True
        return None if _UNSURE.match(text) else False

    def feed(self, text: str) -> None:
        """More of the answer."""
        if not self._lookahead.text:
            if "\n" not in text:
                self._feed_sink(text)
                return
        elif (joined := self._lookahead.joined(text)) is None:
            return
        else:
            text = joined
        if not self._done:
            self._read(text)

    def close(self) -> None:
        """The end of the answer."""
        self._feed_sink(self._lookahead.release())
        self._end_section()

    def _read(self, text: str) -> None:
        at = 0
        for header in _HEADER.finditer(text):
            self._feed_sink(text[at : header.start()])
            self._end_section()
            self._begin_section(header[1])
            at = header.end()
            if self._done:
                return
        line = text.rfind("\n", at)
        cut = line if line >= 0 and _UNSURE.match(text, line + 1) else len(text)
        self._feed_sink(text[at:cut])
        if cut < len(text):
            self._lookahead.keep(text[cut:])

    def _feed_sink(self, text: str) -> None:
        if text and self._sink is not None:
            self._sink.feed(text)

    def _begin_section(self, name: str) -> None:
        codec = self._untold.pop(name, None)
        if codec is not None:
            self._sink = Unescaper.by(self._guard, make_sink(codec, self._events))
        self._done = codec is None and name == self._end

    def _end_section(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None
