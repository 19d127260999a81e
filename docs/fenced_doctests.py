"""An extension of griffe for the API pages: the doctests of docstrings become fenced blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["FencedDoctests"]

_DOCTEST = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)


class FencedDoctests(griffe.Extension):
    """Fence every doctest: Markdown takes ``>>>`` for a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a collected object."""
        if obj.docstring:
            obj.docstring.value = _DOCTEST.sub(_fenced, obj.docstring.value)


def _fenced(doctest: re.Match[str]) -> str:
    return f"```pycon\n{doctest[0].rstrip()}\n```\n"
