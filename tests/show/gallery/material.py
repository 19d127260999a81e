"""The values of which specimens are made: texts and counts, one set for each kind of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["HOSTILE", "HUGE_LENGTH", "MATERIALS", "Material", "huge"]

HOSTILE = (
    "<img src=x onerror=alert(1)></script>\x1b[31m\u202e\ud800\x00\U000e0041</style></details></div></code>"
    "<a href='javascript:alert(1)'>link</a><iframe src='http://example.com'></iframe>\" onload=\"alert(1) [/] [red] "
    "e\u0301 日本 🧑\u200d🚀 {0} %s\nsecond line\tend"
)
HUGE_LENGTH = 50_000_000


@dataclass(frozen=True, slots=True)
class Material:
    """A text, and how many of everything. ``name``: the text as the name of a field, a tool or a model."""

    text: str
    count: int

    @property
    def name(self) -> str:
        """The begin of the text, never empty."""
        return self.text[:120] or "name"

    @property
    def encodable(self) -> str:
        """The text without lone surrogates, which docstrings and digests refuse."""
        return self.text.encode(errors="replace").decode()

    @property
    def indices(self) -> range:
        """The numbers of the parts."""
        return range(self.count)


MATERIALS: Mapping[str, Material] = {
    "normal": Material("Where is my parcel?", 2),
    "long": Material("word " * 5_000, 120),
    "empty": Material("", 0),
    "hostile": Material(HOSTILE, 2),
}


def huge() -> Material:
    """Return a text of 50 million characters."""
    return Material("x" * HUGE_LENGTH, 2)
