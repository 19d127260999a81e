"""Numbers for people: counts with their noun, US dollars, durations. The one place that formats them.

The script of reports has the same rules, for its table; a test compares both.
"""

from __future__ import annotations

import re
from math import floor, log10

__all__ = ["count", "money_text", "per_thousand", "seconds_text"]


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    >>> count(1, "reply", "replies"), count(2, "reply", "replies"), count(0, "call")
    ('1 reply', '2 replies', '0 calls')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def money_text(cost: float | None, digits: int = 2) -> str:
    """Return US dollars: whole cents, or ``digits`` digits that matter. No exponent.

    >>> money_text(0.00021), money_text(1.5), money_text(0.0), money_text(None)
    ('$0.00021', '$1.50', '$0', 'cost unknown')
    >>> money_text(0.000018), money_text(0.123456, digits=6)
    ('$0.000018', '$0.123456')
    """
    if cost is None or cost != cost:
        return "cost unknown"
    if not cost or abs(cost) == float("inf"):
        return f"${cost:g}"
    places = max(2, digits - 1 - floor(log10(abs(cost)))) if digits > 2 or abs(cost) < 0.01 else 2
    return re.sub(r"(\.\d\d\d*?)0+$", r"\1", f"${cost:,.{places}f}")


def per_thousand(cost: float | None) -> str:
    """Return the price of 1,000 of what costs ``cost``.

    >>> per_thousand(0.000018), per_thousand(0.0021)
    ('$0.018 per 1,000', '$2.10 per 1,000')
    """
    if cost is None:
        return "cost unknown"
    return f"{money_text(1_000 * cost, 2 if 1_000 * cost >= 1 else 3)} per 1,000"


def seconds_text(seconds: float) -> str:
    """Return a duration.

    >>> seconds_text(0.0000068), seconds_text(0.0021), seconds_text(0.0591), seconds_text(2.34), seconds_text(75)
    ('6.8 µs', '2.1 ms', '59 ms', '2.3 s', '1:15')
    >>> seconds_text(0), seconds_text(3_723)
    ('0 ms', '1:02:03')
    """
    for factor, unit in ((1_000_000, "µs"), (1_000, "ms")):
        if 0 < factor * seconds < 999.5:
            shown = f"{factor * seconds:.{1 if factor * seconds < 9.95 else 0}f}"
            return f"{shown.removesuffix('.0')} {unit}"
    if seconds < 59.5:
        return f"{seconds:.{1 if seconds < 9.95 else 0}f} s" if seconds else "0 ms"
    hours, rest = divmod(int(seconds + 0.5), 3_600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
