"""Cards as text of a given width, 80 columns by default; each part of a line with its style, for terminals with colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from sigwire.show.card import MOST_CHILDREN, MOST_DEPTH, MOST_ROWS, Card
from sigwire.show.cleaning import MOST_IN_CELL, MOST_INLINE, cut, display_width, inline, visible
from sigwire.show.layout import cut_at, padded, wrapped
from sigwire.show.lines import CallLine, CardLine, PictureLine, Strong, ValueLine
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
        start: StyledLine = [("  ", ""), (padded(inline(label, MOST_OF_LABEL), label_width), "muted"), ("  ", "")]
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
    """Yield the title, with the tags at the right end of its line if they fit."""
    title, subtitle = inline(card.title), f"  {inline(card.subtitle)}" if card.subtitle else ""
    tags = [(f"[{inline(tag.text, MOST_IN_CELL)}]", tag.tone) for tag in card.tags]
    parts: StyledLine = [part for tag in tags for part in ((" ", ""), tag)]
    room = width - display_width(title + subtitle) - sum(display_width(text) for text, _ in parts)
    if room >= 0:
        yield [(title, "title"), (subtitle, "muted"), (" " * room if tags else "", ""), *parts]
        return
    lines = wrapped(title + subtitle, width, width - 2)
    yield [(next(lines), "title")]
    yield from ([("  ", ""), (line, "")] for line in lines)
    yield from ([("  ", ""), (line, "muted")] for text, _ in tags for line in wrapped(text, width - 2))


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
        yield from wrapped(picture_text(line), columns)
    elif isinstance(line, str):
        yield from wrapped(inline(line, MOST_IN_TEXT), columns)
    else:
        for part in visible(cut(line.text, MOST_IN_TEXT)).replace("\t", "    ").split("\n")[: MOST_LINES_OF_VALUE - 2]:
            yield from wrapped(part, columns)
        if (more := str.__len__(line.text) - MOST_IN_TEXT) > 0:
            yield f"… {more:,} more characters"


def _call_lines(calls: Sequence[CallLine], width: int) -> Iterator[StyledLine]:
    """Yield each call and its result, on one line if both are short."""
    arguments = ["" if call.code else f"({cut(call.arguments, MOST_INLINE)})" for call in calls]
    shown = [inline(f"{cut(call.name, MOST_INLINE)}{given}") for call, given in zip(calls, arguments, strict=True)]
    call_width = min(max([LEAST_OF_CALL, *map(display_width, shown)]), MOST_OF_CALL)
    for call, text in zip(calls, shown, strict=True):
        yield from _call_parts(call, text, call_width, width)


def _call_parts(call: CallLine, text: str, call_width: int, width: int) -> Iterator[StyledLine]:
    mark, tone, result_tone = ("✗", "wrong", "wrong") if call.is_error else ("→", "call", "")
    result = "" if call.result is None else f"{mark} {inline(call.result)}"
    if call.facts or call.code:
        yield from ([("  ", ""), (line, tone)] for line in wrapped(text, width - 2))
        if call.code:
            yield from _value_lines(ValueLine(call.code, is_code=True), [("    ", "")], width)
        yield from ([("    ", ""), (line, "muted")] for line in wrapped(inline(call.facts), width - 4) if call.facts)
        yield from ([("    ", ""), (line, result_tone)] for line in wrapped(result, width - 4) if result)
        return
    if display_width(text) <= call_width and 6 + call_width + display_width(result) <= width:
        yield [("  ", ""), (padded(text, call_width), tone), ("    ", ""), (result, result_tone)]
        return
    yield from ([("  ", ""), (line, tone)] for line in wrapped(text, width - 2))
    yield from ([("    ", ""), (line, result_tone)] for line in wrapped(result, width - 4) if result)


def _more(count: int, noun: str) -> Iterator[StyledLine]:
    if count > 0:
        yield [(f"  … {count} more {noun}", "muted")]


def _table(table: Sequence[Sequence[str]], width: int) -> Iterator[StyledLine]:
    cells = [
        [f"{inline(cell, MOST_IN_CELL)}{'*' * isinstance(cell, Strong)}" for cell in row]
        for row in table[: MOST_ROWS + 1]
    ]
    widths = _column_widths(cells, width)
    style = "muted"
    for row in cells:
        line = "  " + "  ".join(padded(cell, columns) for cell, columns in zip(row, widths, strict=True))
        yield [(line[: cut_at(line, width)], style)]
        style = ""
    if len(table) > len(cells):
        yield [(f"  … {len(table) - len(cells)} more", "muted")]


def _column_widths(cells: list[list[str]], width: int) -> list[int]:
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    while widths and sum(widths) + 2 * len(widths) > width and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    return widths
