"""The marks of quotation: quoted words of a line, inline code and code fences. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["MARKS", "NO_TICKS", "TICKS", "LineQuotes", "is_closing"]

MARKS = {"`": re.compile(r"`*"), "~": re.compile(r"~*")}
TICKS = re.compile(r"`+")
NO_TICKS = re.compile(r"[^`\n]*")
_QUOTES: Mapping[str, str] = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_QUOTE_MARKS = re.compile(rf"[\n{''.join({*_QUOTES, *_QUOTES.values()})}]")


class LineQuotes:
    """Whether the end of a text is inside quoted words. No quotation passes the end of its line.

    >>> quotes = LineQuotes()
    >>> quotes.read('Write "<tool')
    >>> quotes.is_open
    True
    >>> quotes.read('_call>".')
    >>> quotes.is_open
    False
    """

    __slots__ = ("_closing", "_last")

    def __init__(self) -> None:
        self._closing = ""  # the mark that closes the quotation of this line
        self._last = ""  # the last character

    @property
    def is_open(self) -> bool:
        """True inside a quotation."""
        return bool(self._closing)

    def read(self, text: str) -> None:
        """Read the next part of the text, which is not empty."""
        for match in _QUOTE_MARKS.finditer(text):
            mark, before = match[0], text[match.start() - 1] if match.start() else self._last
            if mark in ("\n", self._closing) and before != "\\":
                self._closing = ""
            elif not self._closing and not (before.isalnum() or before == "\\"):
                self._closing = _QUOTES.get(mark, "")
        self._last = text[-1]

    def close(self) -> None:
        """End an open quotation: what follows is another text."""
        self._closing = ""


def is_closing(line: str, marks: str) -> bool:
    """Return True if a line closes the fence that ``marks`` opened.

    >>> is_closing("  ````", "```"), is_closing("```json", "```")
    (True, False)
    """
    body = line.rstrip(" \t\r")
    indent = len(body) - len(body.lstrip(" "))
    return indent <= 3 and len(body) - indent >= len(marks) and not body[indent:].strip(marks[0])
