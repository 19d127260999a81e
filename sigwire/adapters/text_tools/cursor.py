"""A text that arrives in chunks, and the steps that a reader takes through it.

Every step is a generator that yields ``None`` when it needs more text. A reader written with ``yield from`` reads top to
bottom like a parser of whole texts. It resumes at the step where it waited, so that no text is read twice. Events that a
reader emits pass through the same generator.

    matched = yield from cursor.accept("</tool_call>")      True or False; waits while both are possible
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable
from typing import TypeAlias, TypeVar

from sigwire.core.events import ReasoningDelta, TextDelta

__all__ = ["LINE_REST", "Cursor", "Finder", "Wait", "run_complete"]

T = TypeVar("T")
Wait: TypeAlias = Generator[TextDelta | ReasoningDelta | None, None, T]

LINE_REST = re.compile(r"[^\n]*")
_SPACE = re.compile(r"\s*")
_BLANKS = re.compile(r"[ \t]*")


def run_complete(waiting: Wait[T]) -> T:
    """Return the result of steps through a complete text.

    >>> run_complete(Cursor("abc", closed=True).accept("ab"))
    True
    """
    while True:
        try:
            next(waiting)
        except StopIteration as end:
            result: T = end.value
            return result


class Finder:
    """Literals to search for, compiled once.

    >>> Finder(["</a>", "</b>"]).width
    4
    """

    __slots__ = ("pattern", "width")

    def __init__(self, literals: Iterable[str]) -> None:
        ordered = sorted(set(literals), key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, ordered)))
        self.width = max(map(len, ordered))


class Cursor:
    """A position in a text that grows until it is ``closed``. ``is_truncated``: the token limit ended the text."""

    __slots__ = ("closed", "is_truncated", "not_found", "position", "text")

    def __init__(self, text: str = "", *, closed: bool = False) -> None:
        self.text = text
        self.position = 0
        self.closed = closed
        self.is_truncated = False
        self.not_found: dict[int, int] = {}  # id of a finder -> position from which its search failed

    def has(self, count: int) -> Wait[bool]:
        """Return True if ``count`` more characters arrive."""
        while len(self.text) - self.position < count:
            if self.closed:
                return False
            yield None
        return True

    def wait_for_end(self) -> Wait[None]:
        """Wait until all the text is here."""
        while not self.closed:
            yield None

    def peek(self, count: int = 1) -> Wait[str]:
        """Return the next characters, fewer at the end."""
        yield from self.has(count)
        return self.text[self.position : self.position + count]

    def skip_space(self) -> Wait[None]:
        """Pass blanks and line breaks."""
        yield from self.run(_SPACE)

    def skip_blanks(self) -> Wait[None]:
        """Pass blanks of this line."""
        yield from self.run(_BLANKS)

    def run(self, pattern: re.Pattern[str], most: int = sys.maxsize) -> Wait[str]:
        """Pass and return the text that a pattern of the form ``[...]*`` matches, at most ``most`` characters."""
        start = self.position
        while True:
            match = pattern.match(self.text, self.position, min(start + most, sys.maxsize))
            self.position = match.end() if match else self.position
            if self.position < len(self.text) or self.closed or self.position - start >= most:
                return self.text[start : self.position]
            yield None

    def accept(self, literal: str) -> Wait[bool]:
        """Pass a literal. Return True if it was here."""
        return (yield from self.accept_any((literal,))) is not None

    def accept_any(self, literals: tuple[str, ...]) -> Wait[str | None]:
        """Pass and return the longest of the literals that is here."""
        while True:
            found, rest = None, len(self.text) - self.position
            for literal in literals:
                if self.text.startswith(literal, self.position):
                    found = literal if found is None or len(literal) > len(found) else found
                elif rest < len(literal) and not self.closed and literal.startswith(self.text[self.position :]):
                    break  # more text decides about this literal
            else:
                self.position += len(found or "")
                return found
            yield None

    def accept_after_space(self, *literals: str) -> Wait[str | None]:
        """Pass space and one of the literals, or nothing. Return the literal."""
        start = self.position
        yield from self.skip_space()
        found = yield from self.accept_any(literals)
        self.position = start if found is None else self.position
        return found

    def peek_any(self, literals: tuple[str, ...]) -> Wait[str | None]:
        """Return the longest of the literals that is here. The cursor stays."""
        found = yield from self.accept_any(literals)
        self.position -= len(found or "")
        return found

    def skip_marks(self, literals: tuple[str, ...]) -> Wait[None]:
        """Pass space and literals, which come once or doubled."""
        for _ in range(2):
            yield from self.skip_space()
            if (yield from self.accept_any(literals)) is None:
                return
        yield from self.skip_space()

    def find(self, finder: Finder, start: int | None = None) -> Wait[re.Match[str] | None]:
        """Return the next match of the finder's literals. The cursor stays; a failed search is not repeated."""
        start = self.position if start is None else start
        if start >= self.not_found.get(id(finder), len(self.text) + 1):
            return None
        searched = start
        while True:
            match = finder.pattern.search(self.text, searched)
            if match:
                return match
            if self.closed:
                self.not_found[id(finder)] = min(start, self.not_found.get(id(finder), start))
                return None
            searched = max(start, len(self.text) - finder.width + 1)
            yield None
