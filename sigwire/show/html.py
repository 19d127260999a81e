"""Cards as HTML: one style, no script, no id, no link.

Untrusted text is cleaned, then escaped, then placed as text; it is in no attribute, URL or style. Only the pictures of the user
have a URL, which is made of their bytes. Inline parts are separated by blanks: viewers that remove the style show plain text.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from sigwire.show.card import MOST_CHILDREN, MOST_DEPTH, MOST_ROWS, Card
from sigwire.show.cleaning import MOST_IN_CELL, MOST_IN_VALUE, MOST_INLINE, cut, inline, visible
from sigwire.show.lines import CallLine, CardLine, DiffLine, PictureLine, Strong, Tone
from sigwire.show.pictures import MOST_BYTES, data_uri, picture_text
from sigwire.show.style import STYLE

__all__ = ["MOST_OF_PAGE", "diff_html", "html_card"]

MOST_OF_PAGE = 256_000
"""Bytes of a card, its pictures apart."""
_RESERVE = 8_000  # for the style and the end tags
_MOST_IN_TEXT_LINE = 1_000


def html_card(card: Card) -> str:
    """Return a card as HTML: one style, no script, no id, no link; it reads without the style as well.

    >>> html_card(Card("<b>")).endswith('<div class="sigwire"><header><b>&lt;b&gt;</b></header></div>')
    True
    """
    page = _Page()
    page.add_card(card, 0, "header")
    return f'<style>{STYLE}</style><div class="sigwire">{"".join(page.parts)}</div>'


class _Page:
    """The parts of an HTML card. Values that would make it too large are cut or left out."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._room = MOST_OF_PAGE - _RESERVE
        self._picture_room = MOST_BYTES

    def add_card(self, card: Card, depth: int, tag: str) -> None:
        self._add(_header(card, tag))
        if card.rows and self._add("<dl>"):
            for label, lines in card.rows[:MOST_ROWS]:
                self._add_row(label, lines)
            self._add("</dl>", is_end=True)
            self._add_count(len(card.rows) - MOST_ROWS, "rows")
        self._add_table(card.table)
        if card.calls and self._add("<ul>"):
            for call in card.calls[:MOST_ROWS]:
                self._add_call(call)
            self._add("</ul>", is_end=True)
            self._add_count(len(card.calls) - MOST_ROWS, "calls")
        for child in card.children[:MOST_CHILDREN] if depth < MOST_DEPTH else ():
            if self._add(f"<details{' open' if child.is_open else ''}>"):
                self.add_card(child, depth + 1, "summary")
                self._add("</details>", is_end=True)
        self._add_count(len(card.children) - MOST_CHILDREN, "parts")

    def _add(self, part: str, *, is_end: bool = False) -> bool:
        """Add a part if it fits, else a mark at the first that does not fit. End tags always fit."""
        self._room -= (size := len(part.encode()))
        if self._room >= 0 or is_end:
            self.parts.append(part)
            return True
        if self._room + size > 0:
            self.parts.append("<small>… too large to show</small> ")
            self._room = 0
        return False

    def _add_row(self, label: str, lines: Sequence[CardLine]) -> None:
        if self._add(f"<dt>{_escaped(label)}</dt> <dd>"):
            for position, line in enumerate(lines):
                self._add(f"{'<br>' if position else ''}{self._line(line)}")
            self._add("</dd>", is_end=True)

    def _line(self, line: CardLine) -> str:
        if isinstance(line, str):
            return _escaped(line, _MOST_IN_TEXT_LINE)
        if isinstance(line, PictureLine):
            return self._picture(line)
        if isinstance(line, DiffLine):
            return diff_html(line.parts)
        return _toned(self._folded(line.text, is_code=line.is_code), line.tone)

    def _picture(self, picture: PictureLine) -> str:
        uri = data_uri(picture)
        if uri is None or len(picture.data) > self._picture_room * 4 // 3 + 4:
            return _escape(picture_text(picture))
        self._picture_room -= len(picture.data) * 3 // 4
        return f'<img src="{uri}" alt="image"> <small>{_escape(picture_text(picture))}</small>'

    def _folded(self, text: str, before: str = "", *, is_code: bool = True) -> str:
        """Return a text whole if it is short, else its begin, with the whole text behind it."""
        whole = _escape(visible(cut(text, MOST_IN_VALUE)))
        if (length := str.__len__(text)) <= MOST_INLINE:
            return f"{before}<code>{whole}</code>" if is_code else before + whole
        begin = f"{before}{_escaped(text)}"
        more = f"\n… {length - MOST_IN_VALUE:,} more characters" if length > MOST_IN_VALUE else ""
        if len(whole.encode()) > self._room // 2:
            return f"{begin} <small>{length:,} characters</small>"
        return f"<details><summary>{begin}</summary><pre>{whole}{more}</pre></details>"

    def _add_table(self, table: Sequence[Sequence[str]]) -> None:
        if not table:
            return
        head, *rows = table
        if not self._add(f"<table><thead>{_table_row(head, 'th')}</thead><tbody>"):
            return
        for row in rows[:MOST_ROWS]:
            self._add(_table_row(row, "td"))
        self._add("</tbody></table>", is_end=True)
        self._add_count(len(rows) - MOST_ROWS, "")

    def _add_call(self, call: CallLine) -> None:
        arguments = "" if call.code else f"({_escaped(call.arguments)})"
        shown = f"<code><b>{_escaped(call.name)}</b>{arguments}</code>"
        if call.code:
            shown += f"<br>{self._folded(call.code)}"
        result = "" if call.result is None else f"<br>{self._folded(call.result, '✗ ' if call.is_error else '→ ')}"
        facts = f" <small>{_escaped(call.facts)}</small>" if call.facts else ""
        self._add(f'<li class="{"wrong" if call.is_error else "call"}">{shown}{facts}{result}</li> ')

    def _add_count(self, count: int, noun: str) -> None:
        if count > 0:
            self._add(f"<small>… {count} more {noun}</small>")


def diff_html(parts: Iterable[tuple[str, str, str]]) -> str:
    """Return a difference as escaped text with ``<del>`` and ``<ins>``. Each text is cut if it is very long.

    >>> diff_html([("equal", "Be ", "Be "), ("replace", "<b>", "brief")])
    'Be <del>&lt;b&gt;</del><ins>brief</ins>'
    """
    return "".join(
        _marked(new, "") if kind == "equal" else _marked(old, "del") + _marked(new, "ins") for kind, old, new in parts
    )


def _marked(text: str, tag: str) -> str:
    shown = _escape(visible(cut(text, MOST_IN_VALUE)))
    return f"<{tag}>{shown}</{tag}>" if tag and shown else shown


def _header(card: Card, tag: str) -> str:
    subtitle = f" <small>{_escaped(card.subtitle)}</small>" if card.subtitle else ""
    tags = "".join(f' <span class="tag {each.tone}">[{_escaped(each.text, MOST_IN_CELL)}]</span>' for each in card.tags)
    return f"<{tag}><b>{_escaped(card.title)}</b>{subtitle}{tags}</{tag}>"


def _table_row(row: Sequence[str], tag: str) -> str:
    return f"<tr>{' '.join(f'<{tag}>{_cell(cell)}</{tag}>' for cell in row)}</tr>"


def _cell(cell: str) -> str:
    shown = _escaped(cell, MOST_IN_CELL)
    return f"<b>{shown}</b>" if isinstance(cell, Strong) else shown


def _toned(shown: str, tone: Tone) -> str:
    return f'<div class="{tone}">{shown}</div>' if tone else shown


def _escaped(text: str, most: int = MOST_INLINE) -> str:
    return _escape(inline(text, most))


def _escape(text: str) -> str:
    return html.escape(text, quote=True)
