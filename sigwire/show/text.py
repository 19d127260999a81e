"""Cards as text of a given width, 80 columns by default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from sigwire.show.card import MOST_CHILDREN, MOST_DEPTH, MOST_ROWS, Card
from sigwire.show.cleaning import MOST_IN_CELL, display_width, inline

__all__ = ["text_card"]

MOST_LINES = 1_000


def text_card(card: Card, width: int = 80) -> str:
    """Return a card as lines of at most ``width`` columns.

    >>> print(text_card(Card("Result", "3 examples", [("exact", ["0.667"])], [["name", "n"], ["a", "1"]])))
    Result  3 examples
      exact  0.667
      name  n
      a     1
    """
    return "\n".join(line.rstrip() for line in islice(_text_lines(card, max(width, 20), 0), MOST_LINES))


def _text_lines(card: Card, width: int, depth: int) -> Iterator[str]:
    title = inline(card.title) + (f"  {inline(card.subtitle)}" if card.subtitle else "")
    yield from _wrapped(title, "", "  ", width)
    label_width = min(max((display_width(inline(label)) for label, _ in card.rows), default=0), 24)
    for label, lines in card.rows[:MOST_ROWS]:
        first = _padded(inline(label, 24), label_width)
        for position, line in enumerate(lines):
            start = f"  {first if position == 0 else ' ' * label_width}  "
            yield from _wrapped(inline(line, 1_000), start, " " * (label_width + 4), width)
    yield from _text_table(card.table, width)
    for child in card.children[:MOST_CHILDREN] if depth < MOST_DEPTH else ():
        if child.is_open:
            yield from (f"  {line}" for line in _text_lines(child, width - 2, depth + 1))


def _wrapped(text: str, start: str, rest: str, width: int) -> Iterator[str]:
    """Yield lines broken at blanks, or inside a word that is longer than a line."""
    line = start
    is_empty = True
    for word in text.split(" "):
        if not is_empty and display_width(line) + 1 + display_width(word) > width:
            yield line
            line, is_empty = rest, True
        line += word if is_empty else f" {word}"
        is_empty = False
        while display_width(line) > width:
            cut = _cut_at(line, width)
            yield line[:cut]
            line = rest + line[cut:]
    yield line


def _cut_at(text: str, width: int) -> int:
    """Return how many characters of a text fit into ``width`` columns."""
    columns = 0
    for position, character in enumerate(text):
        columns += display_width(character)
        if columns > width:
            return position
    return len(text)


def _text_table(table: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    cells = [[inline(cell, MOST_IN_CELL) for cell in row] for row in table[: MOST_ROWS + 1]]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    while widths and sum(widths) + 2 * len(widths) > width and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    for row in cells:
        yield "  " + "  ".join(_padded(cell, columns) for cell, columns in zip(row, widths, strict=True))
    if len(table) > len(cells):
        yield f"  … {len(table) - len(cells)} more"


def _padded(text: str, columns: int) -> str:
    if display_width(text) > columns:
        text = f"{text[: _cut_at(text, columns - 1)]}…"
    return text + " " * (columns - display_width(text))
