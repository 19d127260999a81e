"""Figures as HTML that reads without a script: cards, outcomes, plots. Every value is cleaned and escaped by ``text``."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import cast

from sigwire.core.json import JsonObject, dumps
from sigwire.show.card import Card
from sigwire.show.cleaning import inline, visible
from sigwire.show.lines import Strong

__all__ = ["block", "card_rows", "card_table", "cards", "figures", "header", "messages", "outcomes", "text"]


def text(value: object, most: int = 300) -> str:
    """Return a value as clean, escaped text for HTML.

    >>> text("<b>\\x1b[31m")
    '&lt;b&gt;\\\\x1b[31m'
    """
    return html.escape(inline(value, most), quote=True)


def block(value: str, most: int = 20_000) -> str:
    """Return a text of several lines as clean, escaped text for HTML."""
    rest = f"… {len(value) - most:,} more characters" if len(value) > most else ""
    return html.escape(visible(value[:most]) + rest, quote=True)


def header(kind: str, title: str, facts: Sequence[str]) -> str:
    """Return the top of a page."""
    shown = "".join(f"<li>{text(fact)}</li> " for fact in facts if fact)
    return f'<header><p class="kind">sigwire · {kind}</p><h1>{text(title)}</h1><ul class="facts">{shown}</ul></header>'


def outcomes(counts: Sequence[tuple[str, str, int]]) -> str:
    """Return a bar of parts and its legend. ``counts``: a style word, a label and a number; parts of 0 are left out."""
    known = [each for each in counts if each[2]]
    bar = "".join(f'<i class="{word}" style="flex:{count}"></i>' for word, _, count in known)
    legend = "".join(
        f'<li class="{word}"><b>{_MARKS.get(word, "")} {count:,}</b> {text(label)}</li> '
        for word, label, count in known
    )
    return f'<div class="outcomes"><div class="bar" aria-hidden="true">{bar}</div><ul>{legend}</ul></div>'


_MARKS = {"right": "✓", "wrong": "✗", "failed": "!", "unscored": "—"}


def card_rows(card: Card) -> str:
    """Return the rows of a card."""
    return f'<dl class="card">{"".join(_card_rows(card))}</dl>' if card.rows else ""


def _card_rows(card: Card) -> Iterator[str]:
    for label, lines in card.rows:
        shown = "<br>".join(text(line, 2_000) for line in lines)
        yield f"<div><dt>{text(label)}</dt> <dd>{shown}</dd></div> "


def card_table(table: Sequence[Sequence[str]]) -> str:
    """Return a table whose first row names the columns."""
    if not table:
        return ""
    head, *rows = table
    names = "".join(f'<th scope="col">{text(cell)}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: str) -> str:
    return f"<b>{text(cell, 160)}</b>" if isinstance(cell, Strong) else text(cell, 160)


def cards(found: Sequence[Card]) -> str:
    """Return cards as sections, with rows and table."""
    return "".join(
        f"<section><h2>{text(card.title)} <small>{text(card.subtitle)}</small></h2>{card_rows(card)}"
        f"{card_table(card.table)}</section>"
        for card in found
    )


def messages(title: str, facts: str, found: Sequence[JsonObject]) -> str:
    """Return messages as a section, each below its role; that of the system is folded. ``found``: as records keep them."""
    parts = "".join(map(_message, found))
    if len(found) > _MOST_OPEN:
        parts = f"<details><summary>{len(found):,} messages</summary>{parts}</details>"
    return f"<section><h2>{text(title)} <small>{text(facts)}</small></h2>{parts}</section>"


_MOST_OPEN = 12  # messages of a prompt


def _message(message: JsonObject) -> str:
    parts = cast("Sequence[JsonObject]", message.get("parts") or ())
    role, shown = text(message.get("role", "")), block("\n".join(map(_part, parts)))
    if role == "system":
        return f'<details class="message"><summary>{role}</summary><pre>{shown}</pre></details>'
    return f'<div class="message"><small>{role}</small><pre>{shown}</pre></div>'


def _part(part: JsonObject) -> str:
    if "text" in part:
        return str(part["text"])
    shown = part.get("arguments", part.get("content", ""))
    return f"{part.get('name') or part.get('type')}: {shown if isinstance(shown, str) else dumps(shown)}"


def figures(plots: Sequence[tuple[str, str]], *, is_broad: bool = False) -> str:
    """Return plots with their captions. ``plots``: caption and SVG; empty drawings are left out. ``is_broad``: one a line."""
    tag = '<figure class="broad">' if is_broad else "<figure>"
    shown = "".join(f"{tag}<figcaption>{text(name)}</figcaption>{svg}</figure>" for name, svg in plots if svg)
    return f'<div class="plots">{shown}</div>' if shown else ""
