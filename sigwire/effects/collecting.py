"""Collectors of the calls inside a call, in order of their start; those of steps that run at once, in order of the steps.

Reports of calls are made of them (``sigwire.observe.reports``). Threads and tasks that copy the context add to the collector of
the call that started them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from sigwire.effects.steps import Steps

__all__ = ["Collector", "collector", "in_order"]

T = TypeVar("T")


class Collector:
    """The entries of a call. ``owner``: the call. ``further``: the collector that gets the entries as well.

    ``entries`` are ``None`` after the end of the call: what a thread that goes on adds is of the call around.

    >>> outer = Collector()
    >>> inner = Collector(further=outer)
    >>> inner.add("a")
    >>> inner.entries, outer.entries
    (['a'], ['a'])
    """

    __slots__ = ("entries", "further", "owner")

    def __init__(self, owner: Any = None, further: Collector | None = None) -> None:
        self.owner, self.further = owner, further
        self.entries: list[Any] | None = []

    def add(self, entry: object) -> None:
        """Add an entry."""
        if self.entries is not None:
            self.entries.append(entry)
        if self.further is not None:
            self.further.add(entry)


collector: ContextVar[Collector | None] = ContextVar("sigwire_collector", default=None)
"""The collector of the running code; ``None``: nothing is collected."""


def in_order(steps: Sequence[Steps[T]]) -> Sequence[Steps[T]]:
    """Return steps that are about to run at once, each in a context of its own, with a place for its entries."""
    around = collector.get()
    if around is None or len(steps) < 2:
        return steps
    return [_in_part(_part_of(around), each) for each in steps]


def _part_of(around: Collector) -> Collector:
    part = Collector(around.owner)
    around.add(part)
    return part


def _in_part(part: Collector, steps: Steps[T]) -> Steps[T]:
    collector.set(part)
    return (yield from steps)
