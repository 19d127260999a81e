"""The base of ``scanner``: emits text that cannot be markup, holds the rest, and passes quotation without reading it.

``emitted`` is the end of the text that was emitted or dropped. ``_compact`` may forget the text before it, so no method
keeps a position across a wait there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from sigwire.adapters.text_tools.cursor import LINE_REST, Cursor, Wait
from sigwire.adapters.text_tools.grammar import END_TOKENS, ToolCatalog
from sigwire.adapters.text_tools.scan.compiled import CompiledGrammars
from sigwire.adapters.text_tools.scan.output_buffer import CallsAlone, OutputBuffer
from sigwire.core.events import TextDelta

__all__ = ["END_LITERALS", "MARKS", "QuoteFilter", "ThinkingState", "is_closing"]

ThinkingState: TypeAlias = Literal["unknown", "open", "over"]

END_LITERALS = tuple(END_TOKENS)
MARKS = {"`": re.compile(r"`*"), "~": re.compile(r"~*")}
_FENCE_CHARACTERS = re.compile(r"[ \t\r`~]*")
_TICKS = re.compile(r"`+")
_NO_TICKS = re.compile(r"[^`\n]*")
_KEPT = 4096
_QUOTES: Mapping[str, str] = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_QUOTE_MARKS = re.compile(rf"[\n{''.join({*_QUOTES, *_QUOTES.values()})}]")


class QuoteFilter:
    """A text on its way to the output, and its quotations."""

    def __init__(
        self, grammars: CompiledGrammars, catalog: ToolCatalog, thinking: ThinkingState, whole_message: CallsAlone
    ) -> None:
        self.grammars, self.catalog = grammars, catalog
        self.pattern = grammars.pattern(catalog)
        self.cursor = Cursor()
        self.output = OutputBuffer(whole_message)
        self.thinking = thinking
        self.emitted = 0
        self.after_call = False  # only space followed the last call
        self.weak_from = 0  # no weak form is tried before this position
        self._unclosed_fences: dict[str, int] = {}  # mark -> length of the shortest fence that never closes
        self._ends: tuple[str, ...] | None = None  # the marks that end the result or output that is being passed
        self._quote = ""  # the mark that closes the quotation of this line
        self._last = ""  # the last emitted character

    def _emit(self) -> None:
        if self.cursor.position > self.emitted:
            text = self.cursor.text[self.emitted : self.cursor.position]
            self.after_call = self.after_call and text.isspace()
            self._track_quotes(text)
            self.output.add_text(TextDelta(text), thought=self.thinking == "open")
        self.emitted = max(self.emitted, self.cursor.position)

    def _track_quotes(self, text: str) -> None:
        """Note whether a quotation is open at the end of this text. No quotation passes the end of its line."""
        for match in _QUOTE_MARKS.finditer(text):
            mark, before = match[0], text[match.start() - 1] if match.start() else self._last
            if mark in ("\n", self._quote) and before != "\\":
                self._quote = ""
            elif not self._quote and not (before.isalnum() or before == "\\"):
                self._quote = _QUOTES.get(mark, "")
        self._last = text[-1]

    def _safe_end(self) -> int:
        """Return the position from which the text up to here can still become markup."""
        text, position = self.cursor.text, self.cursor.position
        start = max(position, len(text) - self.grammars.width)
        for index in range(start, len(text)):
            if text[index] in self.grammars.first_characters and text[index:] in self.grammars.prefixes:
                return self._before_line_break(index)
        return self._before_line_break(len(text))

    def _before_line_break(self, end: int) -> int:
        text = self.cursor.text
        blank = len(text.rstrip(" \t"))
        at_line = blank > self.cursor.position and text[blank - 1] == "\n"
        return min(end, blank - 1) if at_line else end

    @property
    def held_length(self) -> int:
        """The number of characters that arrived and were not emitted."""
        return len(self.cursor.text) - self.emitted

    def _compact(self) -> None:
        """Drop the text that was emitted, except for the last character of it."""
        cut = self.emitted - 1
        if cut > _KEPT and cut > len(self.cursor.text) // 2:
            self.cursor.text = self.cursor.text[cut:]
            self.cursor.position -= cut
            self.emitted -= cut
            self.weak_from -= cut

    def _line_end(self) -> tuple[int, bool]:
        cursor = self.cursor
        end = cursor.text.find("\n", cursor.position)
        return (end, True) if end >= 0 else (len(cursor.text), cursor.closed)

    def _skip_code(self) -> Wait[None]:
        """Pass inline code and emit its text. A marker inside waits until the code closes or the line ends."""
        cursor = self.cursor
        ticks = yield from cursor.run(MARKS["`"])
        if self.thinking == "open" or self._ends is not None:
            return
        while True:
            end, is_complete = self._line_end()
            match = _TICKS.search(cursor.text, cursor.position, end)
            token = self.grammars.token.search(cursor.text, cursor.position, match.start() if match else end)
            if token is not None:
                cursor.position = token.start()
                self._emit()
                yield from self._skip_quoted_marker(ticks)
                return
            if match is not None:
                cursor.position = match.start()
                if (yield from cursor.run(MARKS["`"])) == ticks:
                    return
                continue
            cursor.position = end if is_complete else max(cursor.position, self._safe_end())
            self._emit()
            if is_complete:
                return
            yield None

    def _skip_quoted_marker(self, ticks: str) -> Wait[None]:
        """Pass the rest of inline code, from a marker in it, if the code closes on this line."""
        cursor = self.cursor
        start = cursor.position
        while True:
            yield from cursor.run(_NO_TICKS)
            here = yield from cursor.peek()
            if here != "`":
                cursor.position = start
                return
            if (yield from cursor.run(MARKS["`"])) == ticks:
                return

    def _read_fence_opening(self) -> Wait[tuple[str, str]]:
        """Pass a fence's first line and return its marks and label; without a fence pass the marks and return none."""
        cursor = self.cursor
        here = yield from cursor.peek()
        marks = yield from cursor.run(MARKS[here])
        after = cursor.position
        if 3 <= len(marks) < self._unclosed_fences.get(here, len(marks) + 1):
            label = yield from cursor.run(LINE_REST)
            if not (here == "`" and here in label) and (yield from cursor.accept("\n")):
                return marks, label.strip().lower()
        cursor.position = after
        return "", ""

    def _peek_line_opener(self) -> Wait[str | None]:
        """Return the opener or stop that starts this line. The cursor stays."""
        literals = self.grammars.own_by_first.get((yield from self.cursor.peek()))
        return (yield from self.cursor.peek_any(literals)) if literals is not None else None

    def _skip_fence(self, marks: str) -> Wait[bool]:
        """Pass a fence and emit its text; from a marker on the text waits. Return True if the fence closes."""
        # A fence that never closes is none: the cursor returns to the held text.
        cursor, holds = self.cursor, False
        self._emit()
        while not (yield from self._accept_fence_end(marks)):
            holds = holds or (yield from self._peek_line_opener()) is not None
            holds = yield from self._skip_line(holds)
            if not (yield from cursor.accept("\n")):
                self._unclosed_fences[marks[0]] = min(len(marks), self._unclosed_fences.get(marks[0], len(marks)))
                cursor.position = self.emitted
                return False
        return True

    def _skip_line(self, holds: bool) -> Wait[bool]:
        """Pass the rest of a line. Return True if text is held from now on."""
        cursor = self.cursor
        while True:
            end, is_complete = self._line_end()
            if not holds and (match := self.grammars.token.search(cursor.text, cursor.position, end)):
                cursor.position, holds = match.start(), True
                self._emit()
            cursor.position = end if holds or is_complete else max(cursor.position, self._safe_end())
            if not holds:
                self._emit()
                self._compact()
            if is_complete:
                return holds
            yield None

    def _accept_fence_end(self, marks: str) -> Wait[bool]:
        cursor = self.cursor
        start = cursor.position
        line = yield from cursor.run(_FENCE_CHARACTERS)
        here = yield from cursor.peek()
        if is_closing(line, marks) and (here in ("", "\n") or (yield from cursor.peek_any(END_LITERALS))):
            return True
        cursor.position = start
        return False


def is_closing(line: str, marks: str) -> bool:
    """Return True if a line closes the fence that ``marks`` opened."""
    body = line.rstrip(" \t\r")
    indent = len(body) - len(body.lstrip(" "))
    return indent <= 3 and len(body) - indent >= len(marks) and not body[indent:].strip(marks[0])
