"""Differences of two texts, word by word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from sigwire.show.card import BoundedRepr
from sigwire.show.html import diff_html
from sigwire.show.lines import DiffLine

__all__ = ["TextDiff"]


@dataclass(frozen=True, slots=True)
class TextDiff(BoundedRepr):
    """The changes from one text to another: ``[-old-]{+new+}`` as text, ``<del>`` and ``<ins>`` in notebooks.

    >>> str(TextDiff("Answer the question.", "Answer the hard question."))
    'Answer the {+hard +}question.'
    """

    old: str
    new: str

    def parts(self) -> list[tuple[str, str, str]]:
        """Return parts in order: "equal", "delete", "insert" or "replace", the old words, the new words."""
        old, new = (re.findall(r"\S+\s*|\s+", text) for text in (self.old, self.new))
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        return [(kind, "".join(old[a:b]), "".join(new[c:d])) for kind, a, b, c, d in matcher.get_opcodes()]

    def __str__(self) -> str:
        return "".join(
            new if kind == "equal" else (f"[-{old}-]" if old else "") + (f"{{+{new}+}}" if new else "")
            for kind, old, new in self.parts()
        )

    @property
    def line(self) -> DiffLine:
        """The changes as a line of a card."""
        return DiffLine(str(self), parts=tuple(self.parts()))

    @property
    def html(self) -> str:
        """The changes as escaped text with ``<del>`` and ``<ins>``."""
        return diff_html(self.parts())

    def _repr_html_(self) -> str:
        return f'<div style="white-space: pre-wrap">{self.html}</div>'
