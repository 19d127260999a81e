"""``Limit``: the limit that a caller states for a model. ``LimitState``: a limiter at one moment, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sigwire.errors import ConfigurationError
from sigwire.keywords import ChecksKeywords

__all__ = ["Limit", "LimitState", "read_limit"]


@dataclass(frozen=True, slots=True)
class Limit(ChecksKeywords):
    """A limit on the exchanges of a model: ``LM(..., limit=Limit(requests=500))``.

    ``requests`` and ``tokens`` are per ``per`` seconds, refilled evenly; ``concurrency`` is the most exchanges at once. The
    limiter also adapts to the provider: to refusals (429), overload and the allowance in headers; ``adaptive=False`` keeps the
    stated limits only. Models of one account with an equal Limit that has a ``key`` share a limiter.

    >>> Limit(requests=500, tokens=200_000).per
    60.0
    """

    requests: float | None = None
    tokens: float | None = None
    concurrency: int | None = None
    per: float = 60.0
    adaptive: bool = True
    key: str | None = None

    def __post_init__(self) -> None:
        for name in ("requests", "tokens", "concurrency", "per"):
            number: Any = getattr(self, name)
            if not (_is_positive(number) or (number is None and name != "per")):
                raise ConfigurationError(f"Limit({name}=...) is a number above 0, not {number!r:.80}.")
        if type(self.adaptive) is not bool:
            raise ConfigurationError(f"Limit(adaptive=...) is True or False, not {self.adaptive!r:.80}.")
        if not (self.key is None or isinstance(self.key, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(f"Limit(key=...) is a string, not {self.key!r:.80}.")


def _is_positive(number: Any) -> bool:
    return isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number < float("inf")


def read_limit(limit: object) -> Limit | Literal[False] | None:
    """Return the limit of a model; a list has the values of a saved one. Raises ``ConfigurationError`` for another form."""
    if isinstance(limit, list):
        limit = Limit(*limit)  # pyright: ignore[reportUnknownArgumentType]
    if limit is not None and limit is not False and not isinstance(limit, Limit):
        raise ConfigurationError(
            f"limit is a Limit, or False for no limiter, not {limit!r:.80} (making an LM). Try limit=Limit(requests=500)."
        )
    return limit


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limiter at one moment.

    ``concurrency``: the most exchanges at once; ``in_flight`` of them are under way, ``queued`` calls wait. ``rate``: sends a
    second, ``None`` while the provider has refused none. ``requests_remaining`` and ``tokens_remaining`` are of the stated or
    the provider's allowance, ``None`` if unknown.
    """

    provider: str
    model: str
    concurrency: int
    in_flight: int
    queued: int
    rate: float | None = None
    requests_remaining: float | None = None
    tokens_remaining: float | None = None
