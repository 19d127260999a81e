"""``Card``: the neutral form of a shown object, and ``HasCard``: the surfaces of an object that has one.

The renderers are loaded when an object is shown. Every text of a card is untrusted: the renderers clean it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

__all__ = ["MOST_CHILDREN", "MOST_DEPTH", "MOST_ROWS", "Card", "HasCard"]

MOST_ROWS = 50
MOST_CHILDREN = 50
MOST_DEPTH = 6


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
        import shutil
        import sys

        columns = width or min(shutil.get_terminal_size((80, 24)).columns, 120)
        from sigwire.show.text import text_card

        print(text_card(self._card(), columns), file=file or sys.stdout)

    def _repr_html_(self) -> str:
        from sigwire.show.html import html_card

        return html_card(self._card())

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        from sigwire.show.text import text_card

        printer.text("..." if cycle else text_card(self._card(), 80))


class _Printer(Protocol):
    """The part of IPython's pretty printer that a card uses."""

    @property
    def text(self) -> Callable[[str], object]: ...
