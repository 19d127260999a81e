"""Clean untrusted text before it is shown: ``visible`` escapes, ``inline`` makes one short line, ``number`` and widths."""

from __future__ import annotations

import unicodedata

__all__ = ["MOST_INLINE", "MOST_IN_CELL", "display_width", "inline", "number", "visible"]

MOST_INLINE = 160
MOST_IN_CELL = 60


def visible(text: str) -> str:
    r"""Return a text whose unprintable characters are Python escapes: controls, bidi marks, lone surrogates.

    Newline, tab, blanks of all scripts and the joiners of emoji and Indic scripts stay.

    >>> print(visible("a\x1b[31m\u202eb\ud800"))
    a\x1b[31m\u202eb\ud800
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable() or character in "\n\t\u200c\u200d" or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def inline(value: object, most: int = MOST_INLINE) -> str:
    """Return a value as one line of clean text, cut to ``most`` characters. Text is shown without quotes.

    >>> inline("two\\nlines"), inline("x" * 300, 5), inline({"a": 1})
    ('two lines', 'xxxx…', "{'a': 1}")
    """
    if isinstance(value, str):
        text = value[: most + 1]
    else:
        try:
            text = repr(value)[: most + 1]
        except Exception as error:  # a user's class may raise anything
            text = f"<unshowable {type(value).__name__}: {type(error).__name__}>"
    text = visible(text.replace("\n", " ").replace("\t", " "))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for people; "unknown" for ``None`` and NaN.

    >>> number(0.76349), number(None), number(1.0)
    ('0.763', 'unknown', '1.000')
    """
    return "unknown" if value is None or value != value else f"{value:.{digits}f}"


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: wide characters take two, combining marks none.

    >>> display_width("abc"), display_width("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) or each in "\u200c\u200d" else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
