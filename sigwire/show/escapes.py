"""Unprintable characters as escapes, and the columns that a text takes."""

from __future__ import annotations

import unicodedata

__all__ = ["display_width", "visible"]


def visible(text: str) -> str:
    r"""Return a text whose unprintable characters are Python escapes: controls, bidi marks, lone surrogates.

    Newline, tab, blanks of all scripts and the joiners of emoji and Indic scripts stay.

    >>> print(visible("a\x1b[31m\u202eb\ud800"))
    a\x1b[31m\u202eb\ud800
    """
    return text if text.isprintable() else text.translate(_ESCAPES)


class _EscapesByCharacter(dict[int, str]):
    """The shown form of characters, filled as they are met: ``str.translate`` is fast for those that it knows."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_kept = character.isprintable() or character in "\n\t\u200c\u200d" or unicodedata.category(character) == "Zs"
        shown = character if is_kept else character.encode("unicode_escape").decode("ascii")
        if len(self) < _MOST_KNOWN:
            self[code] = shown
        return shown


_MOST_KNOWN = 20_000
_ESCAPES = _EscapesByCharacter()


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: wide characters take two, combining marks none.

    >>> display_width("abc"), display_width("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0
        if each in "\u200c\u200d" or unicodedata.category(each) in ("Mn", "Me")
        else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
