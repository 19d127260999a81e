"""``Examples``: a list of examples with a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, cast

from sigwire.core.example import Example
from sigwire.core.record import Record
from sigwire.errors import InputError
from sigwire.show.card import Card, HasCard
from sigwire.show.cleaning import inline
from sigwire.show.lines import CardTag
from sigwire.show.numbers import count
from sigwire.show.values import short_repr

__all__ = ["Examples", "examples_card", "examples_line"]

_MOST_COUNTED = 2_000  # a card costs at most some milliseconds
_MOST_COLUMNS = 8


class Examples(HasCard, list[Example]):
    """A list of examples that notebooks show as a table: types, distinct values, duplicates. A plain list is shown as a list.

    A keyword is another set by its name; the card counts the examples that are in both.

    >>> train = [Example(question="2+2?", answer="4"), Example(question="3+3?", answer="6")]
    >>> dev = Examples([Example(question="2+2?", answer="4")], train=train)
    >>> dev, dev.overlap
    (Examples(1: question, answer), {'train': 1})
    """

    _shown_by: ClassVar[str] = "sigwire.core.cards.examples:examples"
    __slots__ = ("_others",)
    _others: dict[str, frozenset[Hashable]]

    def __init__(self, examples: Iterable[Example] = (), /, **others: Iterable[Example]) -> None:
        super().__init__(examples)
        self._others = {name: frozenset(map(_key, _checked(name, other))) for name, other in others.items()}

    @property
    def overlap(self) -> dict[str, int]:
        """The number of examples that are also in another set, by the name of that set."""
        return {name: sum(_key(each) in other for each in self) for name, other in self._others.items()}

    def __reduce__(self) -> tuple[object, ...]:
        return list, (list(self),)


def examples_line(examples: Examples) -> str:
    """Return ``Examples(200: message, topic)``."""
    names = _names(examples)
    return f"Examples({len(examples):,}: {', '.join(inline(name, 40) for name in names[:8])}{', …' if len(names) > 8 else ''})"


def examples_card(examples: Examples) -> Card:
    """Return the card of a list of examples: columns with types and distinct values, the first 5 and last 2 rows."""
    names = _names(examples)
    inputs = {name for each in examples[:_MOST_COUNTED] for name in _inputs(each)}
    rows = [("inputs", [", ".join(inline(name, 40) for name in names if name in inputs)])] if inputs else []
    subtitle = f"{count(len(examples), 'example')} × {count(len(names), 'field')}"
    return Card("Examples", subtitle, rows, _table(examples, names[:_MOST_COLUMNS]), tags=_tags(examples))


def _table(examples: Examples, columns: list[str]) -> list[list[str]]:
    shown = [*enumerate(examples)] if len(examples) <= 7 else [*enumerate(examples[:5]), *_last(examples)]
    rows = [[str(at), *(_cell(row, name) for name in columns)] for at, row in shown]
    return [["#", *columns], ["", *(_column_text(examples, name) for name in columns)], *rows] if columns else []


def _checked(name: str, other: object) -> Iterable[object]:
    if isinstance(other, Iterable) and not isinstance(other, str | Mapping):
        return cast("Iterable[object]", other)
    raise InputError(
        f"{name!r} is a list of examples to compare with, not {other!r:.80} (making Examples). "
        "Write Examples(dev, train=train)."
    )


def _last(examples: Examples) -> list[tuple[int, Example]]:
    return [(at, examples[at]) for at in range(len(examples) - 2, len(examples))]


def _names(examples: Examples) -> list[str]:
    return list(dict.fromkeys(name for each in examples[:_MOST_COUNTED] for name in _fields(each)))


def _fields(example: object) -> dict[str, object]:
    if isinstance(example, Record):
        return example.__dict__
    return cast("dict[str, object]", example) if isinstance(example, dict) else {}


def _inputs(example: object) -> frozenset[str]:
    return cast(Any, example)._input_keys or frozenset() if isinstance(example, Record) else frozenset()


def _column_text(examples: Examples, name: str) -> str:
    """Return the types of a column and the number of its distinct values."""
    values = [fields[name] for each in examples[:_MOST_COUNTED] if name in (fields := _fields(each))]
    kinds = Counter(type(value).__name__ for value in values)
    distinct = len(set(map(_mark, values)))
    missing = min(len(examples), _MOST_COUNTED) - len(values)
    return f"{' | '.join(kinds)}, {distinct:,} distinct{f', {missing:,} missing' if missing else ''}"


def _cell(example: object, name: str) -> str:
    fields = _fields(example)
    return inline(fields[name], 60) if name in fields else ""


def _tags(examples: Examples) -> list[CardTag]:
    keys = Counter(map(_key, examples[:_MOST_COUNTED]))
    repeated = sum(number - 1 for number in keys.values())
    tags = [CardTag(count(repeated, "duplicate"))] if repeated else []
    tags += [CardTag(f"of the first {_MOST_COUNTED:,}", "")] if len(examples) > _MOST_COUNTED else []
    tags += [CardTag(f"{number:,} also in {inline(name, 40)}") for name, number in examples.overlap.items() if number]
    return tags


def _key(example: object) -> Hashable:
    """Return a value that equal examples share."""
    return frozenset((name, _mark(value)) for name, value in _fields(example).items())


def _mark(value: object) -> Hashable:
    try:
        hash(value)
    except TypeError:  # lists and dicts
        return short_repr(value, 1_000)
    return value
