"""Unescape marks in chunks, as ``Escaper.unescape`` does with a whole text. Backslashes before a possible mark are held."""

from __future__ import annotations

import re

from sigwire.adapters.field_events import FieldSink
from sigwire.adapters.prompts.escaping import AnyEscaper, Escaper, EscaperPair
from sigwire.adapters.streaming.lookahead import Lookahead

__all__ = ["Unescaper"]

_RUN = re.compile(r"\\+")


class Unescaper:
    r"""Removes the backslash before escaped marks, and feeds a sink.

    >>> class Shown:
    ...     def feed(self, text): print(repr(text))
    ...     def close(self): print("end")
    >>> from sigwire.adapters.prompts.escaping import line_escaper
    >>> text = Unescaper.by(line_escaper(calls=False), Shown())
    >>> text.feed("a \\ b\n\\[[ ")
    'a \\ b\n'
    >>> text.feed("## answer")
    '[[ ## answer'
    """

    __slots__ = ("_escaper", "_is_line_blank", "_last_character", "_lookahead", "_sink", "_tracks_character")

    def __init__(self, escaper: Escaper, sink: FieldSink) -> None:
        self._escaper, self._sink = escaper, sink
        self._lookahead = Lookahead()
        self._is_line_blank = True  # whether the line has only blanks up to here
        self._last_character = ""
        self._tracks_character = escaper.before not in ("", Escaper.LINE)  # whether the character before a mark matters

    @classmethod
    def by(cls, escaper: AnyEscaper, sink: FieldSink) -> FieldSink:
        """Return a sink that undoes these escapes before it feeds ``sink``, in the order of ``unescape``."""
        if isinstance(escaper, EscaperPair):
            return cls.by(escaper.second, cls.by(escaper.first, sink))
        return cls(escaper, sink)

    def feed(self, text: str) -> None:
        if not self._lookahead.text and "\\" not in text:
            if self._is_line_blank or self._tracks_character or "\n" in text:
                self._track_line(text)
            self._sink.feed(text)
        elif (joined := self._lookahead.join(text)) is not None:
            self._read(joined)

    def close(self) -> None:
        """Read the end of the text. Held text is no mark."""
        if self._lookahead.text:
            self._sink.feed(self._lookahead.release())
        self._sink.close()

    def _track_line(self, text: str) -> None:
        self._last_character = text[-1:] or self._last_character
        line = text.rfind("\n") + 1
        if self._is_line_blank or line:
            self._is_line_blank = (self._is_line_blank or line > 0) and not text[line:].strip(" \t")

    def _read(self, text: str) -> None:
        escaper, certain, at = self._escaper, [""], 0
        while (run := _RUN.search(text, at)) is not None:
            before = text[at : run.start()]
            certain.append(before)
            self._track_line(before)
            at = run.end()
            if not self._is_mark_allowed():
                certain.append(run[0])
            elif mark := escaper.mark.match(text, at):
                certain.append(run[0][1:])
                certain.append(mark[0])
                at = mark.end()
            elif escaper.mark_prefix.match(text, at):
                self._lookahead.hold(text[run.start() :])
                at = len(text)
                break
            else:
                certain.append(run[0])
            self._track_line(text[run.start() : at])
        certain.append(text[at:])
        self._track_line(text[at:])
        if joined := "".join(certain):
            self._sink.feed(joined)

    def _is_mark_allowed(self) -> bool:
        before = self._escaper.before
        return self._is_line_blank if before == Escaper.LINE else not before or self._last_character == before
