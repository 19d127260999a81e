r"""Keep values apart from the marks around them: a backslash before whatever would be read as a mark.

A value may hold anything, the marks of its own layout included. Where a mark would begin, ``Escaper.on`` writes one backslash
more than there is and ``Escaper.off`` takes one away, so ``off(on(text)) == text`` for every text and no mark ever stands in
a guarded value. Most texts hold no mark and pass untouched after a substring test.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["HEADER_STEPS", "AnyEscaper", "Escaper", "EscaperPair", "MarkPattern", "line_guard", "tag_guard"]


@dataclass(frozen=True, slots=True)
class MarkPattern:
    r"""A mark as expressions: the whole of it, and any beginning of it, up to the whole, at the end of a text.

    >>> MarkPattern.of("a", r"b*", "c").begun
    '(?:a(?:b*(?:c)?)?)?'
    """

    whole: str
    begun: str

    @classmethod
    def of(cls, *steps: str) -> MarkPattern:
        """A mark of these steps, each a character or a run of some."""
        begun = ""
        for step in reversed(steps):
            begun = f"(?:{step}{begun})?"
        return cls("".join(steps), begun)

    @classmethod
    def literal(cls, text: str) -> MarkPattern:
        """A mark that is a fixed text."""
        return cls.of(*map(re.escape, text))


_BLANKS = r"[ \t]*"
HEADER_STEPS = (r"\[", r"\[", _BLANKS, "#", "#", _BLANKS, r"(\w+)", _BLANKS, "#", "#", _BLANKS, r"\]", r"\]")
_HEADER_MARK = MarkPattern.of(*HEADER_STEPS[:5])
_ACTION = MarkPattern.literal("Action:")
_ACTION_BEGUN = rf"(?:{_ACTION.begun}|(?:{_ACTION.whole}{_BLANKS})+(?:{_ACTION.begun}|\s*\\*`{{0,2}}))"
_CALL_LINES = (
    *map(MarkPattern.literal, ("~~~", "```tool_call", "```tool_result", "```tool_code")),
    # The word may stand there several times: what follows the last one decides, which may be a mark that is protected.
    MarkPattern(rf"{_ACTION.whole}(?=(?:{_BLANKS}{_ACTION.whole})*\s*\\*(?:```|[\[{{]))", _ACTION_BEGUN),
)


class Escaper:
    r"""Protects marks in values. ``hints`` are substrings without one of which no mark can be there.

    >>> guard = line_guard(calls=False)
    >>> guard.on("[[ ## answer ## ]]")
    '\\[[ ## answer ## ]]'
    >>> guard.off(guard.on("a\n\\[[ ##"))
    'a\n\\[[ ##'
    """

    LINE = r"^[ \t]*"
    """Before marks that stand at the start of a line."""

    __slots__ = ("_hints", "_marks", "_off", "_on", "before")

    def __init__(self, before: str, marks: Sequence[MarkPattern], hints: tuple[str, ...]) -> None:
        whole = "|".join(mark.whole for mark in marks)
        self._on = re.compile(rf"({before})(\\*(?:{whole}))", re.MULTILINE)
        self._off = re.compile(rf"({before})\\(\\*(?:{whole}))", re.MULTILINE)
        self._marks = tuple(marks)
        self._hints = hints
        self.before = before

    @property
    def mark(self) -> re.Pattern[str]:
        """Any of the marks."""
        return _any("|".join(mark.whole for mark in self._marks))

    @property
    def unsure(self) -> re.Pattern[str]:
        """What may become one of the marks, at the end of a text."""
        return _any(rf"(?:{'|'.join(mark.begun for mark in self._marks)})\Z")

    def on(self, text: str) -> str:
        """The text with every mark protected."""
        for hint in self._hints:
            if hint in text:
                return self._on.sub(r"\1\\\2", text)
        return text

    def off(self, text: str) -> str:
        """The text as it was before ``on``."""
        if "\\" not in text:  # what ``on`` adds
            return text
        for hint in self._hints:
            if hint in text:
                return self._off.sub(r"\1\2", text)
        return text


class EscaperPair:
    """Two guards whose marks never overlap, as one."""

    __slots__ = ("first", "second")

    def __init__(self, first: AnyEscaper, second: AnyEscaper) -> None:
        self.first, self.second = first, second

    def on(self, text: str) -> str:
        """The text with the marks of both protected."""
        return self.second.on(self.first.on(text))

    def off(self, text: str) -> str:
        """The text as it was before ``on``."""
        return self.first.off(self.second.off(text))


AnyEscaper: TypeAlias = "Escaper | EscaperPair"


def line_guard(*, calls: bool, headers: bool = True) -> AnyEscaper:
    r"""A guard for marks that stand at the start of a line, section headers and fences of calls; with ``calls`` also for
    the markers of every dialect of calls, wherever they stand.

    >>> line_guard(calls=True).on("as in <tool_call>ping")
    'as in \\<tool_call>ping'
    """
    marks = ((_HEADER_MARK,) if headers else ()) + (_CALL_LINES if calls else ())
    hints = (("[[",) if headers else ()) + (("~~~", "```tool_", "Action:") if calls else ())
    lines = Escaper(Escaper.LINE, marks, hints)
    if not calls:
        return lines
    # With it comes every dialect, and texts without calls need none.
    from sigwire.adapters.text_tools.registry import current_scanner

    return EscaperPair(lines, _marker_guard(current_scanner().markers))


@functools.lru_cache(maxsize=8)
def _marker_guard(markers: tuple[str, ...]) -> Escaper:
    hints = {marker if marker[0].isalnum() else marker[0] for marker in markers}
    return Escaper("", tuple(map(MarkPattern.literal, markers)), tuple(sorted(hints)))


def tag_guard(names: tuple[str, ...]) -> Escaper:
    """A guard for the tags of the given names.

    >>> print(tag_guard(("answer",)).on("see </answer> and <b>"))
    see <\\/answer> and <b>
    """
    ordered = sorted(names, key=len, reverse=True)
    return Escaper("<", tuple(MarkPattern.of("/?", *map(re.escape, name), r"\s*", ">") for name in ordered), ("<",))


@functools.lru_cache(maxsize=64)
def _any(expression: str) -> re.Pattern[str]:
    return re.compile(expression)
