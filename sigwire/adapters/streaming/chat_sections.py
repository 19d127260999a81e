"""The chat layout in chunks: a header at the start of a line starts a section.

Equal to ``ChatLayout.read``: the first section of a name counts, sections of other names are skipped, and nothing after the
end mark is read. Only the last line can be an incomplete header, and only while it looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sigwire.adapters.field_events import FieldEvents, FieldSink
from sigwire.adapters.prompts.escaping import HEADER_STEPS, AnyEscaper, MarkPattern
from sigwire.adapters.streaming.lookahead import Lookahead
from sigwire.adapters.streaming.object_fields import make_sink
from sigwire.adapters.streaming.unescape import Unescaper
from sigwire.adapters.values.codecs import FieldCodec

__all__ = ["ChatSectionReader"]

_MARK = MarkPattern.of(*HEADER_STEPS)
_HEADER = re.compile(rf"\n[ \t]*{_MARK.whole}")
_PARTIAL_HEADER = re.compile(rf"[ \t]*{_MARK.prefix}\Z")


class ChatSectionReader:
    """Sections of one answer. ``end``: the name of the end mark; ``names``: of sections, by their lower case."""

    __slots__ = ("_end", "_escaper", "_events", "_is_complete", "_lookahead", "_names", "_pending", "_sink")

    def __init__(
        self,
        outputs: Iterable[tuple[str, FieldCodec]],
        end: str,
        escaper: AnyEscaper,
        events: FieldEvents,
        names: Mapping[str, str],
    ) -> None:
        self._names = names
        self._pending, self._end, self._escaper, self._events = dict(outputs), end, escaper, events
        self._sink: FieldSink | None = None
        self._lookahead = Lookahead("\n")  # the start of the answer is the start of a line
        self._is_complete = False

    def opens(self, text: str) -> bool | None:
        """Return True if a text starts with a header."""
        if _HEADER.match("\n" + text):
            return True
        return None if _PARTIAL_HEADER.match(text) else False

    def feed(self, text: str) -> None:
        if not self._lookahead.text and "\n" not in text:
            if text and self._sink is not None:
                self._sink.feed(text)
        elif (joined := self._lookahead.join(text)) is not None and not self._is_complete:
            self._read(joined)

    def close(self) -> None:
        self._feed_sink(self._lookahead.release())
        self._end_section()

    def _read(self, text: str) -> None:
        at = 0
        for header in _HEADER.finditer(text):
            self._feed_sink(text[at : header.start()])
            self._end_section()
            self._start_section(header[1])
            at = header.end()
            if self._is_complete:
                return
        line = text.rfind("\n", at)
        safe_end = line if line >= 0 and _PARTIAL_HEADER.match(text, line + 1) else len(text)
        self._feed_sink(text[at:safe_end])
        if safe_end < len(text):
            self._lookahead.hold(text[safe_end:])

    def _feed_sink(self, text: str) -> None:
        if text and self._sink is not None:
            self._sink.feed(text)

    def _start_section(self, name: str) -> None:
        name = self._names.get(name.lower(), name)
        codec = self._pending.pop(name, None)
        if codec is not None:
            self._sink = Unescaper.by(self._escaper, make_sink(codec, self._events))
        self._is_complete = codec is None and name == self._end

    def _end_section(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None
