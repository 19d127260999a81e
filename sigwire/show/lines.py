"""The contents of a card: values, calls of tools, pictures and tags.

Tones have a meaning, never a colour alone: a mark or a word stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["CallLine", "CardLine", "CardTag", "DiffLine", "PictureLine", "Strong", "Tone", "ValueLine"]

Tone: TypeAlias = Literal["", "right", "wrong", "attention", "call"]


class Strong(str):
    """A cell of a table that stands out: bold, in text with a star."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CardTag:
    """A word beside the title: "1 repair", "cache hit"."""

    text: str
    tone: Tone = "attention"


@dataclass(frozen=True, slots=True)
class ValueLine:
    """A value as text, of any length: HTML folds what is long. ``is_code``: the text is Python or JSON."""

    text: str
    tone: Tone = ""
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class DiffLine(ValueLine):
    """The difference of two texts, word by word. ``parts``: "equal", "delete", "insert" or "replace", old words, new words.

    ``text`` is the difference for surfaces without marks: ``[-old-]{+new+}``.
    """

    parts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PictureLine:
    """An image of the user: base64 text. It is shown if it is a small png, jpeg, gif or webp, else by type and size."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """A call of a tool, and its result if there is one. ``facts``: what the programs inside took. ``code``: lines of code."""

    name: str
    arguments: str
    result: str | None = None
    is_error: bool = False
    facts: str = ""
    code: str = ""


CardLine: TypeAlias = str | ValueLine | PictureLine
