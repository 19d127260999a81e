"""Cards for rich, which users may have installed. Rich gets clean ``Text`` only: its markup is never read."""

from __future__ import annotations

from collections.abc import Iterator

from sigwire.show.card import Card
from sigwire.show.text import styled_lines

__all__ = ["rich_card"]

_STYLES = {"title": "bold", "muted": "dim", "right": "green", "wrong": "red", "attention": "yellow", "call": "cyan"}


def rich_card(card: Card, width: int) -> Iterator[object]:
    """Yield the lines of a card for rich."""
    from rich.text import Text

    for line in styled_lines(card, width):
        text = Text(no_wrap=True, overflow="ignore")
        for part, style in line:
            text.append(part, style=_STYLES.get(style))
        text.rstrip()
        yield text
