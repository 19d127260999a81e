"""Lines of a width: texts broken at blanks, padded cells, the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwire.show.escapes import display_width

__all__ = ["cut_at", "filled_columns", "padded", "wrapped"]


def wrapped(text: str, first: int, rest: int | None = None) -> Iterator[str]:
    """Yield lines broken at blanks, or inside a word that is longer than a line. ``first``, ``rest``: their columns.

    >>> list(wrapped("one two three", 7))
    ['one two', 'three']
    """
    line, width, is_empty = "", first, True
    rest = first if rest is None else rest
    for word in text.split(" "):
        if not is_empty and display_width(line) + 1 + display_width(word) > width:
            yield line
            line, width, is_empty = "", rest, True
        line += word if is_empty else f" {word}"
        is_empty = False
        while display_width(line) > width:
            position = max(cut_at(line, width), 1)
            yield line[:position]
            line, width = line[position:], rest
    yield line


def cut_at(text: str, width: int) -> int:
    """Return how many characters of a text fit into ``width`` columns.

    >>> cut_at("日本語", 5)
    2
    """
    columns = 0
    for position, character in enumerate(text):
        columns += display_width(character)
        if columns > width:
            return position
    return len(text)


def padded(text: str, columns: int) -> str:
    """Return a text of exactly ``columns`` columns.

    >>> padded("ab", 4), padded("abcdef", 4)
    ('ab  ', 'abc…')
    """
    if display_width(text) > columns:
        text = f"{text[: cut_at(text, columns - 1)]}…"
    return text + " " * (columns - display_width(text))


def filled_columns(table: Sequence[Sequence[str]], least: int) -> list[list[str]]:
    """Return a table without the columns that are empty below the head. The first ``least`` columns stay.

    >>> filled_columns([["name", "note", "n"], ["a", "", "1"]], 1)
    [['name', 'n'], ['a', '1']]
    """
    head, *rows = table
    kept = [at for at in range(len(head)) if at < least or any(row[at] for row in rows)]
    return [[row[at] for at in kept] for row in table]
