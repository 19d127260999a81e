"""Drawings as SVG: marks, labels, scales. No script, font or link, and every text is escaped.

Numbers that are floats are written with one digit; other attributes as they are. In names of attributes ``_`` is a hyphen,
and ``css`` is the class.

A drawing fills the width that it is given: places across are percent of it, and texts keep their size at any width.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

__all__ = ["Scale", "label", "mark", "percent", "svg"]


class Scale(NamedTuple):
    """Values on an axis: ``low`` is drawn at ``start``, ``high`` at ``end``, a value outside at the nearer of them.

    >>> Scale(0, 10, 100, 200).at(5), Scale(0, 10, 100, 200).at(11)
    (150.0, 200.0)
    """

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a value."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def mark(kind: str, title: str = "", /, **attributes: float | str) -> str:
    """Return an element. ``title``: the text that a pointer over it shows.

    >>> mark("circle", "3 values", css="dot", cx=1.25, cy=2, stroke_width="2")
    '<circle class="dot" cx="1.2" cy="2" stroke-width="2"><title>3 values</title></circle>'
    """
    written = _attributes(attributes)
    return f"<{kind}{written}><title>{escape(title)}</title></{kind}>" if title else f"<{kind}{written}/>"


def label(x: float | str, y: float, text: str, anchor: str = "start", **attributes: float | str) -> str:
    """Return a text at a place, which is its start, middle or end.

    >>> label(1, 2, "a < b", "end")
    '<text x="1" y="2" text-anchor="end">a &lt; b</text>'
    """
    return f"<text{_attributes({'x': x, 'y': y, 'text-anchor': anchor, **attributes})}>{escape(text)}</text>"


def percent(place: float) -> str:
    """Return a place across a drawing: a share of its width.

    >>> percent(12.5), percent(100)
    ('12.5%', '100%')
    """
    return f"{place:.2f}".rstrip("0").rstrip(".") + "%"


def svg(height: int, name: str, parts: Iterable[str], /, *, width: int | None = None, **attributes: float | str) -> str:
    """Return a drawing of some parts. ``name``: its content in words, for screen readers.

    ``width``: that of a drawing for a file; by default that of the element around it.

    >>> print(svg(10, "A dot", [mark("circle", r=2)]))
    <svg width="100%" height="10" role="img" aria-label="A dot"><title>A dot</title><circle r="2"/></svg>
    >>> svg(10, "A dot", [], width=20)[:47]
    '<svg width="20" height="10" viewBox="0 0 20 10"'
    """
    shown = escape(name, quote=True)
    size = f'width="100%" height="{height}"' if width is None else _file_size(width, height)
    return (
        f'<svg {size}{_attributes(attributes)} role="img" '
        f'aria-label="{shown}"><title>{shown}</title>{"".join(parts)}</svg>'
    )


def _file_size(width: int, height: int) -> str:
    return f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'


def _attributes(values: dict[str, float | str]) -> str:
    return "".join(
        f' {_NAMES.get(name) or name.replace("_", "-")}="{_written(value)}"' for name, value in values.items()
    )


_NAMES = {"css": "class"}


def _written(value: float | str) -> str:
    return f"{value:.1f}" if isinstance(value, float) else escape(str(value), quote=True)
