"""``Card``: the neutral form of a shown object, and its two renderers: text of 80 columns and HTML without a script.

Knows no class of the room, so that other objects can have cards as well. Every text of a card is untrusted: ``visible``
escapes control, bidi and private-use characters first, then HTML is escaped, then the text is placed as text. No text is in
an attribute, a URL or a style. Colours are mixed with the host's text colour, so light and dark pages need no detection.
"""

from __future__ import annotations

import html
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TextIO

__all__ = ["Card", "HasCard", "display_width", "html_card", "inline", "number", "text_card", "visible"]

MOST_INLINE = 160
MOST_IN_CELL = 60
MOST_ROWS = 50
MOST_CHILDREN = 50
MOST_DEPTH = 6
MOST_LINES = 1_000
MOST_CHARACTERS = 256_000


@dataclass(frozen=True, slots=True)
class Card:
    """A title, rows of a label with lines of text, a table (the first row names its columns), and parts that fold.

    ``is_open``: text and HTML show the part; otherwise HTML folds it, and text leaves it out.
    """

    title: str
    subtitle: str = ""
    rows: Sequence[tuple[str, Sequence[str]]] = ()
    table: Sequence[Sequence[str]] = ()
    children: Sequence[Card] = ()
    is_open: bool = False


class HasCard:
    """The surfaces of an object with a card: terminal of IPython, notebook, ``show``."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # IPython takes the ``__repr__`` of a class before the ``_repr_pretty_`` of its bases.
        cls._repr_pretty_ = HasCard._repr_pretty_  # type: ignore[method-assign]

    def _card(self) -> Card:
        raise NotImplementedError

    def show(self, file: TextIO | None = None, width: int | None = None) -> None:
        """Print the card as text. ``width``: columns; by default those of the terminal, or 80."""
        columns = width or min(shutil.get_terminal_size((80, 24)).columns, 120)
        print(text_card(self._card(), columns), file=file or sys.stdout)

    def _repr_html_(self) -> str:
        return html_card(self._card())

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        printer.text("..." if cycle else text_card(self._card(), 80))


class _Printer(Protocol):
    """The part of IPython's pretty printer that a card uses."""

    @property
    def text(self) -> Callable[[str], object]: ...


# --- cleaning


def visible(text: str) -> str:
    r"""Return a text whose unprintable characters are Python escapes: controls, bidi marks, lone surrogates.

    Newline, tab, blanks of all scripts and the joiners of emoji and Indic scripts stay.

    >>> print(visible("a\x1b[31m\u202eb\ud800"))
    a\x1b[31m\u202eb\ud800
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character.isprintable() or character in "\n\t\u200c\u200d" or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")


def inline(value: object, most: int = MOST_INLINE) -> str:
    """Return a value as one line of clean text, cut to ``most`` characters. Text is shown without quotes.

    >>> inline("two\\nlines"), inline("x" * 300, 5), inline({"a": 1})
    ('two lines', 'xxxx…', "{'a': 1}")
    """
    if isinstance(value, str):
        text = value[: most + 1]
    else:
        try:
            text = repr(value)[: most + 1]
        except Exception as error:  # a user's class may raise anything
            text = f"<unshowable {type(value).__name__}: {type(error).__name__}>"
    text = visible(text.replace("\n", " ").replace("\t", " "))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for people; "unknown" for ``None`` and NaN.

    >>> number(0.76349), number(None), number(1.0)
    ('0.763', 'unknown', '1.000')
    """
    return "unknown" if value is None or value != value else f"{value:.{digits}f}"


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal: wide characters take two, combining marks none.

    >>> display_width("abc"), display_width("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) or each in "\u200c\u200d" else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


# --- text


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


# --- HTML


def html_card(card: Card) -> str:
    """Return a card as HTML: one style, no script, no id, no link; it reads without the style as well.

    >>> html_card(Card("<b>")).endswith('<div class="sigwire"><header><b>&lt;b&gt;</b></header></div>')
    True
    """
    parts: list[str] = []
    size = 0
    for part in _html_parts(card, 0, "header"):
        size += len(part)
        if size > MOST_CHARACTERS:
            parts = [f"<header><b>{_escaped(card.title)}</b> <small>too large to show</small></header>"]
            break
        parts.append(part)
    return f'<style>{_STYLE}</style><div class="sigwire">{"".join(parts)}</div>'


def _html_parts(card: Card, depth: int, tag: str) -> Iterator[str]:
    subtitle = f" <small>{_escaped(card.subtitle)}</small>" if card.subtitle else ""
    yield f"<{tag}><b>{_escaped(card.title)}</b>{subtitle}</{tag}>"
    if card.rows:
        yield "<dl>"
        for label, lines in card.rows[:MOST_ROWS]:
            yield f"<dt>{_escaped(label)}</dt><dd>{'<br>'.join(_escaped(line, 1_000) for line in lines)}</dd>"
        yield "</dl>"
    yield from _html_table(card.table)
    for child in card.children[:MOST_CHILDREN] if depth < MOST_DEPTH else ():
        yield f"<details{' open' if child.is_open else ''}>"
        yield from _html_parts(child, depth + 1, "summary")
        yield "</details>"


def _html_table(table: Sequence[Sequence[str]]) -> Iterator[str]:
    if table:
        head, *rows = table
        yield f"<table><thead>{_html_row(head, 'th')}</thead><tbody>"
        yield from (_html_row(row, "td") for row in rows[:MOST_ROWS])
        yield "</tbody></table>"
        if len(rows) > MOST_ROWS:
            yield f"<small>… {len(rows) - MOST_ROWS} more</small>"


def _html_row(row: Sequence[str], tag: str) -> str:
    return f"<tr>{' '.join(f'<{tag}>{_escaped(cell, MOST_IN_CELL)}</{tag}>' for cell in row)}</tr>"


def _escaped(text: str, most: int = MOST_INLINE) -> str:
    return html.escape(inline(text, most), quote=True)


# The class is doubled: with one, the rules of JupyterLab for dt, code and td win.
_STYLE = """
.sigwire.sigwire{font:13px/1.5 system-ui,sans-serif;border:1px solid color-mix(in srgb,currentColor 18%,transparent);
border-radius:6px;padding:8px 12px;max-width:960px;overflow-x:auto}
.sigwire.sigwire small{color:color-mix(in srgb,currentColor 70%,transparent)}
.sigwire.sigwire dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:6px 0}
.sigwire.sigwire dt{color:color-mix(in srgb,currentColor 70%,transparent);font-weight:400;width:auto}
.sigwire.sigwire dd{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}
.sigwire.sigwire table{border-collapse:collapse;margin:6px 0;font-size:12px}
.sigwire.sigwire th,.sigwire.sigwire td{text-align:left;padding:2px 10px 2px 0;vertical-align:top;
border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent)}
.sigwire.sigwire summary{cursor:pointer}
""".replace("\n", "")
