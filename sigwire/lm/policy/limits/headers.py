"""Read the allowance that a reply's headers state: of which resource, how much remains, and when it is full again.

    x-ratelimit-{limit,remaining,reset}-{requests,tokens}           most hosts; reset: "6m0s", "120ms", seconds
    NAME-ratelimit-{requests,[input-,output-]tokens}-{limit,...}    with the name of the provider; reset: an RFC 3339 time

Headers are foreign data: one that is incomplete, no number or out of range is ignored. Pure, no clock: a time is measured
against the ``date`` header of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Allowance", "allowances", "duration"]


class Allowance(NamedTuple):
    """The allowance of a provider: ``remaining`` of ``limit``, which is full again after ``reset`` seconds."""

    resource: str
    limit: float
    remaining: float
    reset: float


def allowances(headers: Mapping[str, str]) -> list[Allowance]:
    """Return the allowances that headers (names in lower case) state.

    >>> allowances({
    ...     "x-ratelimit-limit-requests": "500",
    ...     "x-ratelimit-remaining-requests": "499",
    ...     "x-ratelimit-reset-requests": "120ms",
    ... })
    [Allowance(resource='requests', limit=500.0, remaining=499.0, reset=0.12)]
    """
    found: list[Allowance] = []
    for name in headers:
        if match := _LIMIT.fullmatch(name):
            resource = match[1] or match[2]
            form = name.replace("limit-" + resource, "{}-" + resource) if match[1] else name[: -len("limit")] + "{}"
            limit, remaining = _number(headers[name]), _number(headers.get(form.format("remaining")))
            reset = _reset(headers.get(form.format("reset")), headers.get("date"))
            if limit and remaining is not None and remaining <= limit and reset is not None:
                found.append(Allowance(resource, limit, remaining, reset))
    return found


_LIMIT = re.compile(r"x-ratelimit-limit-(requests|tokens)|[a-z]+-ratelimit-(requests|(?:input-|output-)?tokens)-limit")
_MOST, _LONGEST = 1e12, 8 * 86400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DIGITS = re.compile(r"\d{1,15}(?:\.\d{0,15})?", re.ASCII)
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{0,15})?(?:ms|[smhd]))+", re.ASCII)
_DURATION_PART = re.compile(r"([\d.]+)(ms|[smhd])", re.ASCII)


def _number(text: object) -> float | None:
    if not isinstance(text, str) or not _DIGITS.fullmatch(text := text.strip()):
        return None
    number = float(text)
    return number if number <= _MOST else None


def duration(text: str) -> float | None:
    """Return a duration in seconds: "6m0s", "120ms", "1h2m3.5s", or a number of seconds.

    >>> duration("6m0s"), duration("120ms"), duration("7.66"), duration("soon")
    (360.0, 0.12, 7.66, None)
    """
    text = text.strip()
    seconds = _number(text)
    if seconds is None and _DURATION.fullmatch(text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(text))
    return seconds if seconds is not None and seconds <= _LONGEST else None


def _reset(text: object, date: object) -> float | None:
    """Return the seconds until a reset: a duration, or a time of RFC 3339 against the date of the reply."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    return _seconds_until(text, date) if "T" in text else duration(text)


def _seconds_until(text: str, date: object) -> float | None:
    from datetime import datetime  # only these headers need dates
    from email.utils import parsedate_to_datetime

    try:
        now = parsedate_to_datetime(str(date))
        seconds = (datetime.fromisoformat(text.strip()) - now).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):  # also a time without a zone
        return None
    return min(max(seconds, 0.0), _LONGEST) if seconds <= _LONGEST else None
