r"""Escape the marks of a layout inside values: a backslash in front of each.

A value may hold anything, even the marks of its own layout. ``Escaper.escape`` adds one backslash in front of a mark and
``Escaper.unescape`` removes one, so ``unescape(escape(text)) == text`` for every text, and an escaped value holds no mark.
Most texts hold no mark and are returned unchanged after a substring test.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["HEADER_STEPS", "AnyEscaper", "Escaper", "EscaperPair", "MarkPattern", "line_escaper", "tag_escaper"]


@dataclass(frozen=True, slots=True)
class MarkPattern:
    r"""A mark as regular expressions: the whole mark, and any prefix of it.

    >>> MarkPattern.of("a", r"b*", "c").prefix
    '(?:a(?:b*(?:c)?)?)?'
    """

    whole: str
    prefix: str

    @classmethod
    def of(cls, *steps: str) -> MarkPattern:
        """Return a mark of these steps, each a character or a repetition."""
        prefix = ""
        for step in reversed(steps):
            prefix = f"(?:{step}{prefix})?"
        return cls("".join(steps), prefix)

    @classmethod
    def literal(cls, text: str) -> MarkPattern:
        """Return a mark that is a fixed text."""
        return cls.of(*map(re.escape, text))


_BLANKS = r"[ \t]*"
HEADER_STEPS = (r"\[", r"\[", _BLANKS, "#", "#", _BLANKS, r"(\w+)", _BLANKS, "#", "#", _BLANKS, r"\]", r"\]")
_HEADER_MARK = MarkPattern.of(*HEADER_STEPS[:5])
_ACTION = MarkPattern.literal("Action:")
_ACTION_PREFIX = rf"(?:{_ACTION.prefix}|(?:{_ACTION.whole}{_BLANKS})+(?:{_ACTION.prefix}|\s*\\*`{{0,2}}))"
_CALL_LINES = (
    *map(MarkPattern.literal, ("~~~", "```tool_call", "```tool_result", "```tool_code")),
    # The word may be repeated: the text behind the last one decides, which may be an escaped mark.
    MarkPattern(rf"{_ACTION.whole}(?=(?:{_BLANKS}{_ACTION.whole})*\s*\\*(?:```|[\[{{]))", _ACTION_PREFIX),
)


class Escaper:
    r"""Escapes marks in values. ``hints``: a text that holds none of these substrings holds no mark.

    >>> escaper = line_escaper(calls=False)
    >>> escaper.escape("[[ ## answer ## ]]")
    '\\[[ ## answer ## ]]'
    >>> escaper.unescape(escaper.escape("a\n\\[[ ##"))
    'a\n\\[[ ##'
    """

    LINE = r"^[ \t]*"
    """The expression in front of marks at the start of a line."""

    __slots__ = ("_escape", "_hints", "_marks", "_unescape", "before")

    def __init__(self, before: str, marks: Sequence[MarkPattern], hints: tuple[str, ...]) -> None:
        whole = "|".join(mark.whole for mark in marks)
        self._escape = re.compile(rf"({before})(\\*(?:{whole}))", re.MULTILINE)
        self._unescape = re.compile(rf"({before})\\(\\*(?:{whole}))", re.MULTILINE)
        self._marks = tuple(marks)
        self._hints = hints
        self.before = before

    @property
    def mark(self) -> re.Pattern[str]:
        """An expression for any of the marks."""
        return _any("|".join(mark.whole for mark in self._marks))

    @property
    def mark_prefix(self) -> re.Pattern[str]:
        """An expression for the prefix of a mark at the end of a text."""
        return _any(rf"(?:{'|'.join(mark.prefix for mark in self._marks)})\Z")

    def escape(self, text: str) -> str:
        """Return the text with every mark escaped."""
        for hint in self._hints:
            if hint in text:
                return self._escape.sub(r"\1\\\2", text)
        return text

    def unescape(self, text: str) -> str:
        """Return the text that ``escape`` was given."""
        if "\\" not in text:
            return text
        for hint in self._hints:
            if hint in text:
                return self._unescape.sub(r"\1\2", text)
        return text


class EscaperPair:
    """Two escapers whose marks never overlap, as one."""

    __slots__ = ("first", "second")

    def __init__(self, first: AnyEscaper, second: AnyEscaper) -> None:
        self.first, self.second = first, second

    def escape(self, text: str) -> str:
        """Return the text with the marks of both escaped."""
        return self.second.escape(self.first.escape(text))

    def unescape(self, text: str) -> str:
        """Return the text that ``escape`` was given."""
        return self.first.unescape(self.second.unescape(text))


AnyEscaper: TypeAlias = "Escaper | EscaperPair"


def line_escaper(*, calls: bool, headers: bool = True) -> AnyEscaper:
    r"""Return an escaper for section headers and call fences at the start of a line; with ``calls`` also for the markers
    of every dialect of calls, anywhere.

    >>> line_escaper(calls=True).escape("as in <tool_call>ping")
    'as in \\<tool_call>ping'
    """
    marks = ((_HEADER_MARK,) if headers else ()) + (_CALL_LINES if calls else ())
    hints = (("[[",) if headers else ()) + (("~~~", "```tool_", "Action:") if calls else ())
    lines = Escaper(Escaper.LINE, marks, hints)
    if not calls:
        return lines
    # Late: it loads every dialect, and texts without calls need none.
    from sigwire.adapters.text_tools.registry import current_scanner

    return EscaperPair(lines, _marker_escaper(current_scanner().markers))


@functools.lru_cache(maxsize=8)
def _marker_escaper(markers: tuple[str, ...]) -> Escaper:
    hints = {marker if marker[0].isalnum() else marker[0] for marker in markers}
    return Escaper("", tuple(map(MarkPattern.literal, markers)), tuple(sorted(hints)))


def tag_escaper(names: tuple[str, ...]) -> Escaper:
    """Return an escaper for the tags of the given names.

    >>> print(tag_escaper(("answer",)).escape("see </answer> and <b>"))
    see <\\/answer> and <b>
    """
    ordered = sorted(names, key=len, reverse=True)
    return Escaper("<", tuple(MarkPattern.of("/?", *map(re.escape, name), r"\s*", ">") for name in ordered), ("<",))


@functools.lru_cache(maxsize=64)
def _any(expression: str) -> re.Pattern[str]:
    return re.compile(expression)
