"""Cards as HTML: one style, no script, no id, no link.

Untrusted text is cleaned, then escaped, then placed as text; it is in no attribute, URL or style. Colours are mixed with the
host's text colour, so light and dark pages need no detection.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from sigwire.show.card import MOST_CHILDREN, MOST_DEPTH, MOST_ROWS, Card
from sigwire.show.cleaning import MOST_IN_CELL, MOST_INLINE, inline

__all__ = ["html_card"]

MOST_CHARACTERS = 256_000


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
