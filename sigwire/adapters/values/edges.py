r"""Edges: preserve blanks at the ends of a text, which readers strip.

A text that is empty, or begins or ends with blanks, gets a backslash at that end; an end that looks protected gets one more.
So ``restore_edges(protect_edges(text).strip()) == text`` for every text, and almost every text stays unchanged.
``escape_null`` adds a backslash to a string that would be read as ``None``.
"""

from __future__ import annotations

import re

__all__ = ["EDGES", "escape_null", "protect_edges", "restore_edges", "unescape_null"]

EDGES = frozenset(
    "\\\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
"""Characters at the ends of a text that may need protection: blanks and backslashes."""

_OPEN, _OPENED = re.compile(r"\\*(?:\s|\Z)"), re.compile(r"\\+(?:\s|\Z)")
_CLOSE, _CLOSED = re.compile(r"\s\\*\Z"), re.compile(r"\s\\+\Z")
_NULL, _NULLED = re.compile(r"\\*(?:null|None)\Z"), re.compile(r"\\+(?:null|None)\Z")


def protect_edges(text: str) -> str:
    r"""Return the text with its ends protected.

    >>> protect_edges("plain"), protect_edges(" x"), protect_edges("")
    ('plain', '\\ x', '\\')
    """
    if not text:
        return "\\"
    if (first := text[0]) in EDGES and (first != "\\" or _OPEN.match(text)):
        text = "\\" + text
    if (last := text[-1]) in EDGES and (last != "\\" or _CLOSE.search(text, _tail(text))):
        text += "\\"
    return text


def restore_edges(text: str) -> str:
    """Return the text that ``protect_edges`` was given, from its stripped result."""
    if text and text[0] == "\\" and _OPENED.match(text):
        text = text[1:]
    if text and text[-1] == "\\" and _CLOSED.search(text, _tail(text)):
        text = text[:-1]
    return text


def _tail(text: str) -> int:
    """Return the position of the character before the closing backslashes; keeps the search short."""
    return max(0, len(text.rstrip("\\")) - 1)


def escape_null(text: str) -> str:
    r"""Return the text, escaped if it is a word for ``None``.

    >>> escape_null("null"), escape_null("nullable")
    ('\\null', 'nullable')
    """
    return "\\" + text if _NULL.match(text) else text


def unescape_null(text: str) -> str:
    """Return the text that ``escape_null`` was given."""
    return text[1:] if _NULLED.match(text) else text
