"""``Card``: the neutral form of a shown object. ``HasLine`` and ``HasCard``: the surfaces of an object.

The builders and renderers are loaded when an object is shown, so this file is cheap to import. Every text of a card is
untrusted: the renderers clean it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TextIO

if TYPE_CHECKING:
    from sigwire.show.lines import CallLine, CardLine, CardTag

__all__ = ["MOST_CHILDREN", "MOST_DEPTH", "MOST_ROWS", "BoundedRepr", "Card", "HasCard", "HasLine"]

MOST_ROWS = 50
MOST_CHILDREN = 50
MOST_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Card:
    """A title, rows of a label with lines, a table (the first row names its columns), calls of tools, and parts that fold.

    ``is_open``: text and HTML show the part; otherwise HTML folds it, and text leaves it out. ``tags``: what is odd, beside
    the title. A line is a text of at most 1,000 characters, or one of ``sigwire.show.lines``.
    """

    title: str
    subtitle: str = ""
    rows: Sequence[tuple[str, Sequence[CardLine]]] = ()
    table: Sequence[Sequence[str]] = ()
    children: Sequence[Card] = ()
    is_open: bool = False
    tags: Sequence[CardTag] = ()
    calls: Sequence[CallLine] = ()


class HasLine:
    """The ``repr`` of an object: one line of Python-like text, made by a builder.

    ``_shown_by`` names the builders: ``"module:stem"`` is ``stem_line(object)`` and ``stem_card(object)`` of the module. It is
    a text because builders import the classes that they show.
    """

    __slots__ = ()
    _shown_by: ClassVar[str] = ""

    def __repr__(self) -> str:
        if not (kind := type(self))._shown_by:
            return object.__repr__(self)
        try:
            line: str = kind._builder("line")(self)
        except Exception as error:  # an attribute of a user's class may raise anything
            return f"<unshowable {kind.__name__}: {type(error).__name__}>"
        return line

    @classmethod
    def _builder(cls, form: str) -> Callable[..., Any]:
        module, _, stem = cls._shown_by.partition(":")
        builder: Callable[..., Any] = getattr(import_module(module), f"{stem}_{form}")
        return builder


class BoundedRepr:
    """The ``repr`` of a dataclass in at most 500 characters: as Python writes the dataclass, or with cut values.

    >>> @dataclass(frozen=True, slots=True)
    ... class Note(BoundedRepr):
    ...     text: str
    >>> Note("two words"), len(repr(Note("x" * 3_000_000)))
    (Note(text='two words'), 91)
    """

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        # ``dataclass`` replaces an inherited ``__repr__``, and keeps one of the class itself.
        defined = (base.__dict__.get("__repr__", _dataclass_repr) for base in cls.__mro__)
        line = next(each for each in defined if each is not _dataclass_repr)
        cls.__repr__ = _dataclass_repr if line is object.__repr__ else line  # type: ignore[method-assign]


def _dataclass_repr(value: Any) -> str:
    from dataclasses import fields

    from sigwire.show.values import fields_line

    shown = [each.name for each in fields(value) if each.repr]
    return fields_line(type(value).__qualname__, {name: getattr(value, name) for name in shown})


class HasCard(HasLine):
    """The surfaces of an object with a card: terminal of IPython, notebook, rich, ``show``.

    Fields of a record may have any name, so methods are found on the class.
    """

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        # IPython takes the ``__repr__`` of a class before the ``_repr_pretty_`` of its bases.
        cls._repr_pretty_ = HasCard._repr_pretty_  # type: ignore[method-assign]

    def _card(self) -> Card:
        card: Card = type(self)._builder("card")(self)
        return card

    def _safe_card(self) -> Card:
        kind = type(self)
        try:
            return kind._card(self)
        except Exception as error:  # as in ``repr``
            return Card(f"<unshowable {kind.__name__}: {type(error).__name__}>")

    def show(self, file: TextIO | None = None, width: int | None = None) -> None:
        """Print the card as text. ``width``: columns; by default those of the terminal, or 80."""
        import shutil
        import sys

        columns = width or min(shutil.get_terminal_size((80, 24)).columns, 120)
        print(_render("text", HasCard._safe_card(self), columns), file=file or sys.stdout)

    def _repr_html_(self) -> str:
        page: str = _render("html", HasCard._safe_card(self))
        return page

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        # Inside of a list or a dict, whose elements are lines.
        is_inside = len(getattr(printer, "stack", ())) > 1
        printer.text("..." if cycle else repr(self) if is_inside else _render("text", HasCard._safe_card(self), 80))

    def __rich_console__(self, console: object, options: _RichOptions) -> Iterator[object]:
        lines: Iterator[object] = _render("terminal", HasCard._safe_card(self), options.max_width)
        return lines


_RENDERERS = {"html": "html_card", "terminal": "rich_card", "text": "text_card"}


def _render(form: str, card: Card, *args: int) -> Any:
    renderer = getattr(import_module(f"sigwire.show.{form}"), _RENDERERS[form])
    return renderer(card, *args)


class _Printer(Protocol):
    """The part of IPython's pretty printer that a card uses."""

    @property
    def text(self) -> Callable[[str], object]: ...


class _RichOptions(Protocol):
    """The part of rich's options that a card uses."""

    @property
    def max_width(self) -> int: ...
