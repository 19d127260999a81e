"""Cards as Markdown, for descriptions of changes and other pages. Every value is cleaned, and its marks are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sigwire.show.card import Card
from sigwire.show.cleaning import inline
from sigwire.show.lines import CardLine, PictureLine, Strong

__all__ = ["card_markdown"]


def card_markdown(card: Card) -> str:
    r"""Return the rows and tables of a card, and of its open children.

    >>> print(card_markdown(Card("Result", "3 | 4", [("exact", ["0.667", "of 3"])])))
    **Result** 3 \| 4
    <BLANKLINE>
    | | |
    |---|---|
    | exact | 0.667<br>of 3 |
    """
    return "\n".join(_lines(card))


def _lines(card: Card) -> Iterator[str]:
    yield f"**{_escaped(card.title)}** {_escaped(card.subtitle)}".rstrip()
    if card.rows:
        yield from _table([["", ""], *([label, *map(_text, lines)] for label, lines in card.rows)])
    if card.table:
        yield from _table(card.table, columns=len(card.table[0]))
    for child in card.children:
        if child.is_open:
            yield ""
            yield from _lines(child)


def _text(line: CardLine) -> str:
    return line if isinstance(line, str) else line.media_type if isinstance(line, PictureLine) else line.text


def _table(rows: Sequence[Sequence[str]], columns: int = 2) -> Iterator[str]:
    """Yield the lines of a table; the last column has all that is left of a row, in lines."""
    yield ""
    for place, row in enumerate(rows):
        cells = [*map(_cell, row[: columns - 1]), "<br>".join(map(_cell, row[columns - 1 :]))]
        yield f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
        if place == 0:
            yield f"|{'---|' * columns}"


def _cell(text: str) -> str:
    return f"**{_escaped(text)}**" if isinstance(text, Strong) else _escaped(text)


def _escaped(text: str) -> str:
    text = re.sub(r"([\\`*\[\]|#~$])", r"\\\1", inline(text, 300))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
