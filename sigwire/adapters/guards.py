r"""Keep values apart from the marks around them: a backslash before whatever would be read as a mark.

A value may hold anything, the marks of its own layout included. Where a mark would begin, ``Guard.on`` writes one backslash
more than there is and ``Guard.off`` takes one away, so ``off(on(text)) == text`` for every text and no mark ever stands in
a guarded value. Most texts hold no mark and pass untouched after a substring test.
"""

from __future__ import annotations

import functools
import re
from typing import TypeAlias

from sigwire.adapters.text_tools.dialects import dialects
from sigwire.adapters.text_tools.scanner import scanner_for

__all__ = ["HEADER_MARK", "AnyGuard", "Guard", "GuardPair", "line_guard", "tag_guard"]

HEADER_MARK = r"\[\[[ \t]*##"
_CALL_LINES = r"~~~|```tool_(?:call|result|code)|Action:(?=\s*(?:```|[\[{]))"


class Guard:
    r"""Protects marks in values. ``hints`` are substrings without one of which no mark can be there.

    >>> guard = line_guard(calls=False)
    >>> guard.on("[[ ## answer ## ]]")
    '\\[[ ## answer ## ]]'
    >>> guard.off(guard.on("a\n\\[[ ##"))
    'a\n\\[[ ##'
    """

    __slots__ = ("_hints", "_off", "_on")

    def __init__(self, before: str, mark: str, hints: tuple[str, ...]) -> None:
        self._on = re.compile(rf"({before})(\\*(?:{mark}))", re.MULTILINE)
        self._off = re.compile(rf"({before})\\(\\*(?:{mark}))", re.MULTILINE)
        self._hints = hints

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


class GuardPair:
    """Two guards whose marks never overlap, as one."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: AnyGuard, second: AnyGuard) -> None:
        self._first, self._second = first, second

    def on(self, text: str) -> str:
        """The text with the marks of both protected."""
        return self._second.on(self._first.on(text))

    def off(self, text: str) -> str:
        """The text as it was before ``on``."""
        return self._first.off(self._second.off(text))


AnyGuard: TypeAlias = "Guard | GuardPair"


def line_guard(*, calls: bool, headers: bool = True) -> AnyGuard:
    r"""A guard for marks that stand at the start of a line, section headers and fences of calls; with ``calls`` also for
    the markers of every dialect of calls, wherever they stand.

    >>> line_guard(calls=True).on("as in <tool_call>ping")
    'as in \\<tool_call>ping'
    """
    marks = ([HEADER_MARK] if headers else []) + ([_CALL_LINES] if calls else [])
    hints = (("[[",) if headers else ()) + (("~~~", "```tool_", "Action:") if calls else ())
    lines = Guard(r"^[ \t]*", "|".join(marks), hints)
    return GuardPair(lines, _marker_guard(scanner_for(dialects()).markers)) if calls else lines


@functools.lru_cache(maxsize=8)
def _marker_guard(markers: tuple[str, ...]) -> Guard:
    hints = {marker if marker[0].isalnum() else marker[0] for marker in markers}
    return Guard("", "|".join(map(re.escape, markers)), tuple(sorted(hints)))


def tag_guard(names: tuple[str, ...]) -> Guard:
    """A guard for the tags of the given names.

    >>> print(tag_guard(("answer",)).on("see </answer> and <b>"))
    see <\\/answer> and <b>
    """
    alternatives = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return Guard("<", rf"/?(?:{alternatives})\s*>", ("<",))
