"""Token counts and cost of a reply: the one gate for numbers that a provider bills by.

A table names the members of each canonical count. A number that no request can have (negative, no number, not finite, above
``_MOST``), and cached tokens above the input, are not used: the count is unknown and a warning names the member. A budget
charges such a reply its reservation (``IMPOSSIBLE``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from sigwire.core.json import JsonValue
from sigwire.core.response import IMPOSSIBLE, LMWarning, Usage
from sigwire.lm.codecs.shared.untrusted import is_number, value_at

__all__ = ["MOST_TOKENS", "SumOf", "UsageReading", "UsageTable", "read_usage"]


class SumOf(tuple[str, ...]):
    """The members whose known numbers add up to a count."""

    __slots__ = ()


UsageTable: TypeAlias = Mapping[str, str | tuple[str, ...] | SumOf]
"""By canonical count: a dotted path, several of which the first known one counts, or a ``SumOf`` paths."""


class UsageReading(NamedTuple):
    """The counts of a reply, and a warning about each number that was not used."""

    usage: Usage
    warnings: tuple[LMWarning, ...] = ()


_MOST = {"cost": 1e5}  # dollars; the dearest model with a full window costs hundreds
MOST_TOKENS = 10**9  # the largest windows hold 10 million tokens


def read_usage(data: JsonValue, table: UsageTable) -> UsageReading:
    """Return the token counts and the cost in dollars, as integers and a float; a count without a number is unknown.

    >>> table = {"input_tokens": SumOf(["new", "cached"]), "cached_tokens": "cached", "output_tokens": "written"}
    >>> read_usage({"new": 3, "cached": 1, "written": 2}, table).usage == Usage(4, 2, 1)
    True
    >>> read_usage({"new": 3, "written": -2}, table).warnings[0].detail
    'The provider sent a number that no request can have: written is -2. It was not used.'
    """
    if not isinstance(data, dict):
        return UsageReading(_UNKNOWN)
    counts: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for name, is_sum, paths in _rows(table):
        for path, first, rest in paths:
            value = data.get(first)
            if rest and value is not None:
                value = value_at(value, rest)
            if value is None:
                continue
            if not is_number(value) or not 0 <= value <= _MOST.get(name, MOST_TOKENS):
                faults.setdefault(name, f"{path} is {value!r:.40}")
                continue
            number = value if name == "cost" else int(value)
            counts[name] = counts.get(name, 0) + number if is_sum else number
            if not is_sum:
                break
    return UsageReading(Usage(**counts)) if not faults and _is_whole(counts) else _unknown_counts(counts, faults)


_UNKNOWN = Usage()
_Row: TypeAlias = tuple[str, bool, tuple[tuple[str, str, str], ...]]


_KNOWN: dict[int, tuple[UsageTable, tuple[_Row, ...]]] = {}  # by the id of the table, which is kept
_MOST_TABLES = 64  # each wire has one


def _rows(table: UsageTable) -> tuple[_Row, ...]:
    known = _KNOWN.get(id(table))
    if known is None:
        rows = tuple(
            (name, isinstance(paths, SumOf), tuple(map(_split, (paths,) if isinstance(paths, str) else paths)))
            for name, paths in table.items()
        )
        known = table, rows
        if len(_KNOWN) < _MOST_TABLES:
            _KNOWN[id(table)] = known
    return known[1]


def _split(path: str) -> tuple[str, str, str]:
    first, _, rest = path.partition(".")
    return path, first, rest


def _is_whole(counts: Mapping[str, Any]) -> bool:
    """Return True unless more tokens came from the cache or went into it than there were."""
    parts = counts.get("cached_tokens", 0) + counts.get("cache_write_tokens", 0)
    return parts == 0 or "input_tokens" not in counts or parts <= counts["input_tokens"]


def _unknown_counts(counts: dict[str, Any], faults: dict[str, str]) -> UsageReading:
    """Return what can be used of counts with faults."""
    if not _is_whole(counts):
        parts = counts.pop("cached_tokens", 0), counts.pop("cache_write_tokens", 0)
        faults["cached_tokens"] = f"{sum(parts)} cached tokens are more than the input of {counts['input_tokens']}"
    usage = Usage(**{name: count for name, count in counts.items() if name not in faults})
    named = "; ".join(dict.fromkeys(faults.values()))
    detail = f"The provider sent a number that no request can have: {named}. It was not used."
    return UsageReading(usage, (LMWarning(IMPOSSIBLE, detail),))
