"""Any value as one line of Python, of bounded length and cost: ``short_repr``, and ``call_line`` for a whole ``repr``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

from sigwire.show.escapes import visible

__all__ = ["MOST_IN_REPR", "MOST_OF_VALUE", "call_line", "fields_line", "safe_repr", "short_repr"]

MOST_IN_REPR = 500
MOST_OF_VALUE = 80
_MOST_DEPTH = 6


def short_repr(value: object, most: int = MOST_OF_VALUE) -> str:
    r"""Return the ``repr`` of a value as one clean line of at most ``most`` characters. It never raises.

    Texts and containers are cut before they are written, so a large value costs what a small one does.

    >>> short_repr("two\nlines"), short_repr("x" * 1_000_000, 8), short_repr({"a": [1, 2]})
    ("'two\\nlines'", "'xxxxxx…", "{'a': [1, 2]}")
    """
    size = 0
    parts: list[str] = []
    for part in _parts(value, most + 1, 0):
        parts.append(part)
        size += len(part)
        if size > most:
            break
    text = visible("".join(parts)[: most + 1].replace("\n", " ").replace("\t", " "))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def call_line(name: str, parts: Iterable[str], most: int = MOST_IN_REPR) -> str:
    """Return ``name(part, part)``, cut to ``most`` characters.

    >>> call_line("Usage", ["185 in", "29 out"]), call_line("Many", map(str, range(1_000)), 20)
    ('Usage(185 in, 29 out)', 'Many(0, 1, 2, 3, …)')
    """
    room = most - len(name) - 2
    kept: list[str] = []
    for part in parts:
        if len(", ".join([*kept, part])) > room:
            while kept and len(", ".join([*kept, "…"])) > room:
                kept.pop()
            kept.append("…" if kept else f"{part[: room - 1]}…")
            break
        kept.append(part)
    return f"{name}({', '.join(kept)})"


def fields_line(name: str, fields: Mapping[str, object], most: int = MOST_IN_REPR) -> str:
    """Return ``name(field=value)`` as Python writes it, or with values that are cut if it has more than ``most`` characters.

    >>> fields_line("Note", {"text": "a", "count": 2}), fields_line("Note", {"text": "x" * 100}, 90)[-10:]
    ("Note(text='a', count=2)", 'xxxxxxxx…)')
    """
    line = call_line(name, _assignments(fields, most), most)
    return call_line(name, _assignments(fields, MOST_OF_VALUE), most) if line.endswith("…)") else line


def _assignments(fields: Mapping[str, object], most: int) -> Iterator[str]:
    return (f"{visible(name)}={short_repr(value, most)}" for name, value in fields.items())


def safe_repr(value: object) -> str:
    """Return the ``repr`` of a value without unprintable characters. It never raises.

    >>> safe_repr("a"), safe_repr(10**5_000)
    ("'a'", '<unshowable int: ValueError>')
    """
    try:
        return visible(repr(value))
    except Exception as error:  # a user's class may raise anything
        return f"<unshowable {type(value).__name__}: {type(error).__name__}>"


def _parts(value: object, most: int, depth: int) -> Iterator[str]:
    """Yield the ``repr`` of a value in parts. Only the classes of Python are taken apart; others have a ``repr``."""
    kind: Any = type(value)
    if isinstance(value, str | bytes | bytearray) and (kind.__repr__ in _TEXT_REPRS or _is_long(value)):
        yield _text_repr(value, most)
    elif kind in _BRACKETS and value:
        yield from _items(cast("Iterable[object]", value), *_BRACKETS[kind], most, depth)
    elif kind is dict and value:
        yield from _members(cast("dict[object, object]", value), most, depth)
    else:
        yield safe_repr(value)


def _text_repr(value: str | bytes | bytearray, most: int) -> str:
    # A subclass may replace everything but the slices of its base.
    base = str if isinstance(value, str) else bytes if isinstance(value, bytes) else bytearray
    return repr(base.__getitem__(cast(Any, value), slice(most)))


def _is_long(value: str | bytes | bytearray) -> bool:
    return isinstance(value, str) and str.__len__(value) > _LONG


_LONG = 20_000
_TEXT_REPRS = (str.__repr__, bytes.__repr__, bytearray.__repr__)
_BRACKETS: dict[object, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"),
}  # fmt: skip


def _items(items: Iterable[object], left: str, right: str, most: int, depth: int) -> Iterator[str]:
    yield left
    for position, item in enumerate(islice(items, most)):
        yield ", " if position else ""
        yield from _parts(item, most, depth + 1) if depth < _MOST_DEPTH else "…"
    yield f",{right}" if left == "(" and position == 0 else right  # pyright: ignore[reportPossiblyUnboundVariable]


def _members(members: dict[object, object], most: int, depth: int) -> Iterator[str]:
    yield "{"
    for position, (name, item) in enumerate(islice(members.items(), most)):
        yield ", " if position else ""
        yield from _parts(name, most, depth + 1)
        yield ": "
        yield from _parts(item, most, depth + 1) if depth < _MOST_DEPTH else "…"
    yield "}"
