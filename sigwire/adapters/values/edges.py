r"""Edges: keep what a text has at its ends, where readers strip blanks.

A text that is empty, or begins or ends with blanks, gets a backslash on that side; one that already looks guarded gets one
more. So ``unguarded(guarded(text).strip()) == text`` for every text, and almost every text passes untouched. ``null_guarded``
does the same for a string that would be taken for ``None``.
"""

from __future__ import annotations

import re

__all__ = ["EDGES", "null_guarded", "null_unguarded", "protect_edges", "restore_edges"]

EDGES = frozenset(
    "\\\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
"""What needs a second look at the ends of a text: blanks and backslashes."""

_OPEN, _OPENED = re.compile(r"\\*(?:\s|\Z)"), re.compile(r"\\+(?:\s|\Z)")
_CLOSE, _CLOSED = re.compile(r"\s\\*\Z"), re.compile(r"\s\\+\Z")
_NULL, _NULLED = re.compile(r"\\*(?:null|None)\Z"), re.compile(r"\\+(?:null|None)\Z")


def protect_edges(text: str) -> str:
    r"""The text with its ends protected.

    >>> guarded("plain"), guarded(" x"), guarded("")
    ('plain', '\\ x', '\\')
    """
    if text and text[0] not in EDGES and text[-1] not in EDGES:
        return text
    before = "\\" if _OPEN.match(text) else ""
    after = "\\" if _CLOSE.search(text, _tail(text)) else ""
    return f"{before}{text}{after}"


def restore_edges(text: str) -> str:
    """The stripped text as it was before ``guarded``."""
    if text and text[0] == "\\" and _OPENED.match(text):
        text = text[1:]
    if text and text[-1] == "\\" and _CLOSED.search(text, _tail(text)):
        text = text[:-1]
    return text


def _tail(text: str) -> int:
    """Where the last blank before the closing backslashes stands at the earliest; keeps the search short."""
    return max(0, len(text.rstrip("\\")) - 1)


def null_guarded(text: str) -> str:
    r"""The text, protected where it is a word for ``None``.

    >>> null_guarded("null"), null_guarded("nullable")
    ('\\null', 'nullable')
    """
    return "\\" + text if _NULL.match(text) else text


def null_unguarded(text: str) -> str:
    """The text as it was before ``null_guarded``."""
    return text[1:] if _NULLED.match(text) else text
