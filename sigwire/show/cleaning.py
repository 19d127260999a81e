"""Clean untrusted text before it is shown: ``visible`` escapes, ``inline`` makes one short line, ``number`` and widths."""

from __future__ import annotations

from sigwire.show.escapes import display_width, visible
from sigwire.show.values import short_repr

__all__ = ["MOST_INLINE", "MOST_IN_CELL", "MOST_IN_VALUE", "cut", "display_width", "inline", "number", "visible"]

MOST_INLINE = 160
MOST_IN_CELL = 60
MOST_IN_VALUE = 20_000


def inline(value: object, most: int = MOST_INLINE) -> str:
    """Return a value as one line of clean text, cut to ``most`` characters. Text is shown without quotes.

    >>> inline("two\\nlines"), inline("x" * 300, 5), inline({"a": 1})
    ('two lines', 'xxxx…', "{'a': 1}")
    """
    if not isinstance(value, str):
        return short_repr(value, most)
    text = visible(cut(value, most + 1).replace("\n", " ").replace("\t", " "))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut(text: str, most: int) -> str:
    """Return the first characters of a text. Subclasses of ``str`` may have any ``__getitem__``.

    >>> cut("abc", 2)
    'ab'
    """
    return str.__getitem__(text, slice(most))


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for people; "unknown" for ``None`` and NaN.

    >>> number(0.76349), number(None), number(1.0)
    ('0.763', 'unknown', '1.000')
    """
    return "unknown" if value is None or value != value else f"{value:.{digits}f}"
