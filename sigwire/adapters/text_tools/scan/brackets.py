"""Find the end of a bracketed value: one walk over brackets and strings, without reading the content.

Outside strings the walk passes only characters of the notation and stops at any other. A missing bracket before a closing
marker shows by this. The depth is bounded, each character is passed once, and the walk can pause anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sigwire.adapters.text_tools.cursor import Cursor, Wait

__all__ = ["BARE", "JSON", "MAX_DEPTH", "PYTHON", "BracketNotation", "BracketSpan", "read_span", "skip_value"]

MAX_DEPTH = 100

_CLOSING: Mapping[str, str] = {"{": "}", "[": "]", "(": ")"}


@dataclass(frozen=True, slots=True)
class BracketNotation:
    """The characters outside strings (an expression), and the marks that open and close a string.

    In strings with a mark of one character a backslash escapes the next one. Longer marks enclose verbatim text.
    """

    plain: re.Pattern[str]
    strings: Mapping[str, str]

    def body_of(self, mark: str) -> re.Pattern[str]:
        """Return the expression of the text of a string with this mark, up to a possible end."""
        return _RUNS[self.strings[mark][0], len(mark) < 3 or mark in _TRIPLE_QUOTES]


_TRIPLE_QUOTES = ("'''", '"""')
_RUNS = {
    (first, escapes): re.compile(rf"[^{re.escape(first)}\\]*" if escapes else rf"[^{re.escape(first)}]*")
    for first in "\"'<"
    for escapes in (True, False)
}

JSON = BracketNotation(re.compile(r"[\s\ufeff\w:+\-.$]*"), {'"': '"', "'": "'"})
PYTHON = BracketNotation(re.compile(r"[\s\w:+\-.=]*"), {'"': '"', "'": "'", "'''": "'''", '"""': '"""'})
BARE = BracketNotation(re.compile(r"[^\[\]{},\"<]*"), {'"': '"', "<escape>": "<escape>", '<|"|>': '<|"|>'})


@dataclass(frozen=True, slots=True)
class BracketSpan:
    """The place of a value. ``missing``: the brackets that were not closed; ``truncated``: the text ended inside.

    ``members``: the places of the complete members between the outermost brackets.
    """

    start: int
    end: int
    missing: str = ""
    truncated: bool = False
    members: tuple[tuple[int, int], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every bracket was closed."""
        return not self.missing


def read_span(cursor: Cursor, notation: BracketNotation) -> Wait[BracketSpan]:
    """Pass the value that opens with a bracket here, as far as it is well formed."""
    walk = _BracketWalk(cursor, notation)
    while (yield from walk.step()):
        pass
    return walk.span()


def skip_value(cursor: Cursor, notation: BracketNotation) -> Wait[None]:
    """Pass the value here without positions: the text behind the cursor may be dropped at every wait."""
    walk = _BracketWalk(cursor, notation, records_members=False)
    while (yield from walk.step()):
        pass


class _BracketWalk:
    __slots__ = ("brackets", "cursor", "member_start", "members", "notation", "records_members", "start", "truncated")

    def __init__(self, cursor: Cursor, notation: BracketNotation, *, records_members: bool = True) -> None:
        self.cursor, self.notation, self.records_members = cursor, notation, records_members
        self.start = self.member_start = cursor.position
        self.brackets: list[str] = []
        self.members: list[tuple[int, int]] = []
        self.truncated = False

    def span(self) -> BracketSpan:
        missing = "".join(reversed(self.brackets))
        return BracketSpan(self.start, self.cursor.position, missing, self.truncated, tuple(self.members))

    def step(self) -> Wait[bool]:
        """Pass one token. Return True if the walk continues."""
        cursor = self.cursor
        yield from cursor.run(self.notation.plain)
        here = yield from cursor.peek()
        if here in _CLOSING and here:
            return self._open(here)
        if here == ",":
            self._record_member(cursor.position)
            cursor.position += 1
            if len(self.brackets) == 1:
                self.member_start = cursor.position
            return True
        if self.brackets and here == self.brackets[-1]:
            return self._close()
        mark = yield from cursor.accept_any(tuple(self.notation.strings))
        if mark is None:
            self.truncated = not here
            self._record_member(cursor.position)
            return False
        return (yield from self._skip_string(mark))

    def _open(self, bracket: str) -> bool:
        if len(self.brackets) >= MAX_DEPTH:
            return False
        self.brackets.append(_CLOSING[bracket])
        self.cursor.position += 1
        if len(self.brackets) == 1:
            self.member_start = self.cursor.position
        return True

    def _close(self) -> bool:
        self._record_member(self.cursor.position)
        self.cursor.position += 1
        self.brackets.pop()
        return bool(self.brackets)

    def _record_member(self, end: int) -> None:
        is_outermost = self.records_members and len(self.brackets) == 1 and end > self.member_start
        if is_outermost and not self.cursor.text[self.member_start : end].isspace():
            self.members.append((self.member_start, end))
            self.member_start = end

    def _skip_string(self, mark: str) -> Wait[bool]:
        cursor, close = self.cursor, self.notation.strings[mark]
        run = self.notation.body_of(mark)
        while True:
            yield from cursor.run(run)
            if (yield from cursor.accept(close)):
                return True
            here = yield from cursor.peek()
            if not here:
                self.truncated = True
                return False
            # An escaped character, or the first character of an incomplete longer mark.
            yield from cursor.has(2)
            cursor.position = min(cursor.position + (2 if here == "\\" else 1), len(cursor.text))
