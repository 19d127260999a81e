"""Cards as text of a given width, 80 columns by default; each part of a line with its style, for terminals with colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from sigwire.show.card import MOST_CHILDREN, MOST_DEPTH, MOST_ROWS, Card
from sigwire.show.cleaning import MOST_IN_CELL, cut, display_width, inline, visible
from sigwire.show.lines import CallLine, CardLine, CardTag, PictureLine, ValueLine
from sigwire.show.pictures import picture_text

__all__ = ["StyledLine", "styled_lines", "text_card"]

MOST_LINES = 1_000
MOST_LINES_OF_VALUE = 20
MOST_OF_LABEL = 24
LEAST_OF_CALL, MOST_OF_CALL = 20, 40  # short calls of several turns are aligned
MOST_IN_TEXT = 1_000

StyledLine: TypeAlias = "list[tuple[str, str]]"
"""The parts of a line, each with a tone, "title", "muted" or an empty style."""


def text_card(card: Card, width: int = 80) -> str:
    """Return a card as lines of at most ``width`` columns.

    >>> print(text_card(Card("Result", "3 examples", [("exact", ["0.667"])], [["name", "n"], ["a", "1"]])))
    Result  3 examples
      exact  0.667
      name  n
      a     1
    """
    return "\n".join("".join(text for text, _ in line).rstrip() for line in styled_lines(card, width))


def styled_lines(card: Card, width: int) -> Iterator[StyledLine]:
    """Yield the lines of a card as clean parts with styles."""
    return islice(_lines(card, max(width, 20), 0), MOST_LINES)


def _lines(card: Card, width: int, depth: int) -> Iterator[StyledLine]:
    yield from _header(card, width)
    label_width = min(max((display_width(inline(label)) for label, _ in card.rows), default=0), MOST_OF_LABEL)
    for label, lines in card.rows[:MOST_ROWS]:
        start: StyledLine = [("  ", ""), (_padded(inline(label, MOST_OF_LABEL), label_width), "muted"), ("  ", "")]
        for line in lines:
            yield from _value_lines(line, start, width)
            start = [(" " * (label_width + 4), "")]
    yield from _more(len(card.rows) - MOST_ROWS, "rows")
    yield from _table(card.table, width)
    yield from _call_lines(card.calls[:MOST_ROWS], width)
    yield from _more(len(card.calls) - MOST_ROWS, "calls")
    for child in card.children[:MOST_CHILDREN] if depth < MOST_DEPTH else ():
        if child.is_open:
            yield from ([("  ", ""), *line] for line in _lines(child, width - 2, depth + 1))
    yield from _more(len(card.children) - MOST_CHILDREN, "parts")


def _header(card: Card, width: int) -> Iterator[StyledLine]:
    title, subtitle = inline(card.title), inline(card.subtitle)
    tags = "".join(f" [{inline(tag.text, MOST_IN_CELL)}]" for tag in card.tags)
    shown = f"{title}  {subtitle}" if subtitle else title
    room = width - display_width(shown) - display_width(tags)
    if tags and room >= 1:
        heading: StyledLine = [(title, "title"), (f"  {subtitle}" if subtitle else "", "muted"), (" " * room, "")]
        yield [*heading, *_tag_parts(card.tags)]
        return
    lines = _wrapped(shown, width, width - 2)
    yield [(next(lines), "title")] if not subtitle or display_width(shown) > width else [
        (title, "title"), (f"  {subtitle}", "muted"),
    ]  # fmt: skip
    if display_width(shown) > width:
        yield from ([("  ", ""), (line, "")] for line in lines)
    yield from ([("  ", ""), (line, "muted")] for line in _wrapped(tags.strip(), width - 2, width - 2) if tags)


def _tag_parts(tags: Sequence[CardTag]) -> Iterator[tuple[str, str]]:
    for tag in tags:
        yield from ((" ", ""), (f"[{inline(tag.text, MOST_IN_CELL)}]", tag.tone))


def _value_lines(line: CardLine, start: StyledLine, width: int) -> Iterator[StyledLine]:
    """Yield a line of a row: the label before the first of its lines, blanks before the others."""
    indent = sum(display_width(text) for text, _ in start)
    columns = max(width - indent, 8)
    tone = line.tone if isinstance(line, ValueLine) else ""
    for text in islice(_texts(line, columns), MOST_LINES_OF_VALUE):
        yield [*start, (text, tone)]
        start = [(" " * indent, "")]


def _texts(line: CardLine, columns: int) -> Iterator[str]:
    if isinstance(line, PictureLine):
        yield from _wrapped(picture_text(line), columns, columns)
    elif isinstance(line, str):
        yield from _wrapped(inline(line, MOST_IN_TEXT), columns, columns)
    else:
        for part in visible(cut(line.text, MOST_IN_TEXT)).replace("\t", "    ").split("\n")[: MOST_LINES_OF_VALUE - 2]:
            yield from _wrapped(part, columns, columns)
        if (more := len(line.text) - MOST_IN_TEXT) > 0:
            yield f"… {more:,} more characters"


def _call_lines(calls: Sequence[CallLine], width: int) -> Iterator[StyledLine]:
    """Yield each call and its result, on one line if both are short."""
    shown = [inline(f"{call.name}({call.arguments})") for call in calls]
    call_width = min(max([LEAST_OF_CALL, *map(display_width, shown)]), MOST_OF_CALL)
    for call, text in zip(calls, shown, strict=True):
        tone = "wrong" if call.is_error else "call"
        result = "" if call.result is None else f"{'✗' if call.is_error else '→'} {inline(call.result)}"
        if display_width(text) <= call_width and 6 + call_width + display_width(result) <= width:
            yield [
                ("  ", ""),
                (_padded(text, call_width), tone),
                ("    ", ""),
                (result, "wrong" if call.is_error else ""),
            ]
            continue
        yield from ([("  ", ""), (line, tone)] for line in _wrapped(text, width - 2, width - 2))
        yield from ([("    ", ""), (line, "")] for line in _wrapped(result, width - 4, width - 4) if result)


def _more(count: int, noun: str) -> Iterator[StyledLine]:
    if count > 0:
        yield [(f"  … {count} more {noun}", "muted")]


def _wrapped(text: str, first: int, rest: int) -> Iterator[str]:
    """Yield lines broken at blanks, or inside a word that is longer than a line. ``first``, ``rest``: their columns."""
    line, width, is_empty = "", first, True
    for word in text.split(" "):
        if not is_empty and display_width(line) + 1 + display_width(word) > width:
            yield line
            line, width, is_empty = "", rest, True
        line += word if is_empty else f" {word}"
        is_empty = False
        while display_width(line) > width:
            position = _cut_at(line, width)
            yield line[:position]
            line, width = line[position:], rest
    yield line


def _cut_at(text: str, width: int) -> int:
    """Return how many characters of a text fit into ``width`` columns."""
    columns = 0
    for position, character in enumerate(text):
        columns += display_width(character)
        if columns > width:
            return position
    return len(text)


def _table(table: Sequence[Sequence[str]], width: int) -> Iterator[StyledLine]:
    cells = [[inline(cell, MOST_IN_CELL) for cell in row] for row in table[: MOST_ROWS + 1]]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    while widths and sum(widths) + 2 * len(widths) > width and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    for position, row in enumerate(cells):
        line = "  " + "  ".join(_padded(cell, columns) for cell, columns in zip(row, widths, strict=True))
        yield [(line if display_width(line) <= width else line[: _cut_at(line, width)], "" if position else "muted")]
    if len(table) > len(cells):
        yield [(f"  … {len(table) - len(cells)} more", "muted")]


def _padded(text: str, columns: int) -> str:
    if display_width(text) > columns:
        text = f"{text[: _cut_at(text, columns - 1)]}…"
    return text + " " * (columns - display_width(text))
