"""Token totals over any stretch of a program: ``with track_usage() as tracker``.

Whoever asks a model calls ``record_usage``; every tracker that is open in the context, outer ones too, counts it. The
context goes into threads and tasks, so nothing is lost there.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from sigwire.core.response import Usage

__all__ = ["UsageTracker", "record_usage", "track_usage"]


class UsageTracker:
    """Usage by model. ``usage_data[model]`` lists every request's entry.

    >>> tracker = UsageTracker()
    >>> tracker.add_usage("m", {"input_tokens": 3, "details": {"cached": 1}})
    >>> tracker.add_usage("m", {"input_tokens": 4, "details": {"cached": None}})
    >>> tracker.get_total_tokens()
    {'m': {'input_tokens': 7, 'details': {'cached': 1}}}
    """

    def __init__(self) -> None:
        self.usage_data: dict[str, list[dict[str, Any]]] = {}

    def add_usage(self, model: str, usage: Usage | Mapping[str, Any]) -> None:
        """Count one request's usage; safe from several threads."""
        entry = usage.to_json() if isinstance(usage, Usage) else dict(usage)
        if entry:
            self.usage_data.setdefault(model, []).append(entry)

    def get_total_tokens(self) -> dict[str, dict[str, Any]]:
        """The sums by model. Nested dicts are summed key by key; ``None`` counts as unknown, not as zero."""
        totals: dict[str, dict[str, Any]] = {}
        for model, entries in list(self.usage_data.items()):
            total: dict[str, Any] = {}
            for entry in list(entries):
                total = _sum(total, entry)
            totals[model] = total
        return totals


def _sum(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _add(left.get(key), right.get(key)) for key in (*left, *(key for key in right if key not in left))}


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, Mapping) or isinstance(right, Mapping):
        return _sum(_as_mapping(left), _as_mapping(right))
    if left is None or right is None:
        return right if left is None else left
    try:
        return left + right
    except TypeError:
        return right


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


_open: ContextVar[tuple[UsageTracker, ...]] = ContextVar("sigwire_usage_trackers", default=())


@contextmanager
def track_usage() -> Generator[UsageTracker]:
    """Count the usage of every request made inside.

    >>> with track_usage() as tracker:
    ...     record_usage("m", Usage(input_tokens=3))
    >>> tracker.get_total_tokens()
    {'m': {'input_tokens': 3}}
    """
    tracker = UsageTracker()
    before = _open.get()
    _open.set((*before, tracker))
    try:
        yield tracker
    finally:
        _open.set(before)


def record_usage(model: str | None, usage: Usage) -> None:
    """Count a request's usage in every open tracker; costs next to nothing when none is open."""
    for tracker in _open.get():
        tracker.add_usage(model or "unknown", usage)
