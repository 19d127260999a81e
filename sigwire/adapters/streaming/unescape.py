"""Guarded marks in pieces: what ``Escaper.off`` does with a whole text. Held back are backslashes before what may be a mark."""

from __future__ import annotations

import re

from sigwire.adapters.field_events import FieldSink
from sigwire.adapters.prompts.escaping import AnyEscaper, Escaper, EscaperPair
from sigwire.adapters.streaming.lookahead import Lookahead

__all__ = ["Unescaper"]

_RUN = re.compile(r"\\+")


class Unescaper:
    r"""Takes the backslash off guarded marks, and hands the text on.

    >>> class Shown:
    ...     def feed(self, text): print(repr(text))
    ...     def close(self): print("end")
    >>> from sigwire.adapters.prompts.escaping import line_guard
    >>> text = Unescaper.by(line_guard(calls=False), Shown())
    >>> text.feed("a \\ b\n\\[[ ")
    'a \\ b\n'
    >>> text.feed("## answer")
    '[[ ## answer'
    """

    __slots__ = ("_blank", "_guard", "_last", "_lookahead", "_looks", "_next")

    def __init__(self, guard: Escaper, following: FieldSink) -> None:
        self._guard, self._next = guard, following
        self._lookahead = Lookahead()
        self._blank = True  # whether the line has nothing but blanks so far
        self._last = ""
        self._looks = guard.before not in ("", Escaper.LINE)  # at the character before a mark

    @classmethod
    def by(cls, guard: AnyEscaper, following: FieldSink) -> FieldSink:
        """The sink before ``following`` that undoes these guards, in the order in which ``off`` does."""
        if isinstance(guard, EscaperPair):
            return cls.by(guard.second, cls.by(guard.first, following))
        return cls(guard, following)

    def feed(self, text: str) -> None:
        """More of the text."""
        if not self._lookahead.text:
            if "\\" not in text:
                if self._blank or self._looks or "\n" in text:
                    self._look(text)
                self._next.feed(text)
                return
        elif (joined := self._lookahead.joined(text)) is None:
            return
        else:
            text = joined
        self._read(text)

    def close(self) -> None:
        """The end of the text: what was held is no mark."""
        if self._lookahead.text:
            self._next.feed(self._lookahead.release())
        self._next.close()

    def _look(self, text: str) -> None:
        """Remember where in a line the next character will stand."""
        self._last = text[-1:] or self._last
        line = text.rfind("\n") + 1
        if self._blank or line:
            self._blank = (self._blank or line > 0) and not text[line:].strip(" \t")

    def _read(self, text: str) -> None:
        guard, sure, at = self._guard, [""], 0
        while (run := _RUN.search(text, at)) is not None:
            before = text[at : run.start()]
            sure.append(before)
            self._look(before)
            at = run.end()
            if not self._may_stand_here():
                sure.append(run[0])
            elif mark := guard.mark.match(text, at):
                sure.append(run[0][1:])
                sure.append(mark[0])
                at = mark.end()
            elif guard.unsure.match(text, at):
                self._lookahead.keep(text[run.start() :])
                at = len(text)
                break
            else:
                sure.append(run[0])
            self._look(text[run.start() : at])
        sure.append(text[at:])
        self._look(text[at:])
        if whole := "".join(sure):
            self._next.feed(whole)

    def _may_stand_here(self) -> bool:
        before = self._guard.before
        return self._blank if before == Escaper.LINE else not before or self._last == before
