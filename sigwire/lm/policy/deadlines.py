"""How long a call may take: ``Timeout`` of a model, and ``deadline`` around any code.

Deadlines are times of ``time.monotonic()``. ``Call`` keeps the deadline of a call; ``lm.http`` ends its waits there. No I/O.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords

__all__ = [
    "Timeout",
    "TimeoutLike",
    "current_deadline",
    "deadline",
    "is_limit",
    "remaining_seconds",
    "resolve_timeout",
    "shorter",
]


@dataclass(frozen=True, slots=True)
class Timeout(ChecksKeywords):
    """The time limits of the calls of a model, in seconds; ``None`` is no limit.

    ``connect``: to open a connection, with the name look-up and TLS. ``first``: from the begin of an exchange to the first
    content of a stream. ``idle``: between two chunks of a body; a keep-alive is a chunk here, and no content for ``first``.
    ``exchange``: one request and its whole reply. ``total``: the call with its retries and waits, from its first admission
    by the rate limiter.

    >>> Timeout(total=60)
    Timeout(connect=10.0, first=None, idle=120.0, exchange=600.0, total=60)
    """

    connect: float | None = 10.0
    first: float | None = None
    idle: float | None = 120.0
    exchange: float | None = 600.0
    total: float | None = 1800.0

    def __post_init__(self) -> None:
        for name in _NAMES:
            if (seconds := getattr(self, name)) is not None and not is_limit(seconds):
                raise ConfigurationError(
                    f"Timeout({name}=...) is a number of seconds above 0, or None; not {seconds!r}."
                )

    def dump(self) -> dict[str, float | None]:
        """Return the limits by name, as JSON.

        >>> Timeout(total=None).dump()["total"]
        """
        return asdict(self)


_NAMES = tuple(field.name for field in fields(Timeout))
TimeoutLike = float | Timeout | Mapping[str, Any] | None


def is_limit(value: object) -> bool:
    """Return True for a number above 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def resolve_timeout(given: float | Timeout | None, transport: object = None) -> Timeout:
    """Return the limits of a model. Without a ``Timeout``, those of a given transport hold, and have no total.

    A number is ``exchange`` and ``total``.

    >>> resolve_timeout(30).total, resolve_timeout(None).exchange
    (30, 600.0)
    """
    if isinstance(given, Timeout):
        return given
    limits = Timeout() if transport is None else _transport_limits(transport)
    return limits if given is None else replace(limits, exchange=given, total=given)


def _transport_limits(transport: object) -> Timeout:
    names = {"connect": "connect_timeout", "idle": "idle_timeout", "exchange": "timeout"}
    found = {name: getattr(transport, attribute, None) for name, attribute in names.items()}
    return Timeout(total=None, **{name: value if is_limit(value) else None for name, value in found.items()})


def shorter(one: float | None, other: float | None) -> float | None:
    """Return the shorter of two limits, or the earlier of two deadlines; ``None`` is no limit."""
    if one is None or other is None:
        return other if one is None else one
    return one if one < other else other


# --- the deadline of a context -------------------------------------------------------------------------

_deadline: ContextVar[float | None] = ContextVar("sigwire_deadline", default=None)
current_deadline = _deadline.get
"""Return the deadline of the current context (``time.monotonic()``); ``None`` for none."""


@contextmanager
def deadline(seconds: float) -> Generator[None]:
    """End the calls of models and tools inside the block ``seconds`` from now; nested, the earliest deadline holds.

    A context variable, so it holds in tasks and in the threads of sigwire. It counts waits in queues, retries and all turns
    of an agent. Other code of the block is not interrupted. A call past the deadline raises ``LMTimeoutError``.

    >>> with deadline(30), deadline(60):
    ...     round(remaining_seconds())
    30
    """
    if not (isinstance(seconds, (int, float)) and seconds >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"deadline() takes a number of seconds, 0 or more; not {seconds!r}.")
    before = _deadline.get()
    _deadline.set(shorter(before, time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.set(before)


def remaining_seconds() -> float | None:
    """Return the seconds until the deadline of the current context, 0 past it; ``None`` without one.

    >>> remaining_seconds()
    """
    at = _deadline.get()
    return None if at is None else max(at - time.monotonic(), 0.0)
