"""Time and chance for programs that run with a ``Journal``: a run that starts again gets the recorded values.

    from sigwire import durable

    durable.now()       the time in UTC
    durable.random()    a number from 0.0 up to 1.0
    durable.uuid()      a random UUID

Without a journal they are ``datetime.now``, ``random.random`` and ``uuid.uuid4``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from sigwire.effects.performing import performed
from sigwire.effects.steps import FunctionEffect

__all__ = ["now", "random", "uuid"]

T = TypeVar("T")


def now() -> datetime:
    """Return the time in UTC.

    >>> now().tzinfo
    datetime.timezone.utc
    """
    return performed(_Reading("now", lambda: datetime.now(UTC), datetime.isoformat, datetime.fromisoformat)).run()


def random() -> float:
    """Return a random number from 0.0 up to 1.0.

    >>> 0.0 <= random() < 1.0
    True
    """
    from random import random as draw

    return performed(_Reading("random", draw, float, float)).run()


def uuid() -> UUID:
    """Return a random UUID.

    >>> uuid().version
    4
    """
    return performed(_Reading("uuid", uuid4, str, UUID)).run()


class _Reading(Generic[T]):
    """A value of the outside world, read once for each place of a run."""

    __slots__ = ("_dump", "_load", "_read", "kind")

    def __init__(
        self, kind: str, read: Callable[[], T], dump: Callable[[T], str | float], load: Callable[[Any], T]
    ) -> None:
        self.kind, self._read, self._dump, self._load = kind, read, dump, load

    def run(self) -> T:
        return self._read()

    async def arun(self) -> T:
        return self._read()

    def fingerprint(self) -> dict[str, Any]:
        return {}

    def dump(self, value: T) -> str | float:
        return self._dump(value)

    def dump_error(self, error: Exception) -> Mapping[str, Any] | None:
        """Return ``None``: a clock does not fail."""

    def load(self, data: Any) -> FunctionEffect[T]:
        value = self._load(data)

        async def awaited() -> T:
            return value

        return FunctionEffect(lambda: value, awaited)
