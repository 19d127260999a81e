"""``Buckets``: what the caller and the provider state that a target takes, in requests and tokens.

Tokens are estimated before an exchange and corrected after it by its usage. Not locked: the limiter's lock is held around each
method.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sigwire.lm.policy.limits.limit import Limit
from sigwire.lm.policy.limits.pace import RefillBucket
from sigwire.lm.policy.limits.queue import Ticket

if TYPE_CHECKING:
    from sigwire.core.request import Request
    from sigwire.core.response import Usage

__all__ = ["LONGEST_WAIT", "Buckets"]

LONGEST_WAIT = 60.0
"""Seconds: a call is sent, and refused, rather than held longer by what a provider states. It may state a day."""


class Buckets:
    """The stated buckets of a ``Limit``, and those that mirror the headers of replies."""

    def __init__(self, limit: Limit, now: float) -> None:
        stated = {"requests": limit.requests, "tokens": limit.tokens}
        self._stated = {name: RefillBucket(most, limit.per, now) for name, most in stated.items() if most is not None}
        self._mirrored: dict[str, RefillBucket] = {}
        self._mean_output = 0.0

    def __bool__(self) -> bool:
        return bool(self._stated or self._mirrored)

    @property
    def rate(self) -> float:
        """The stated requests a second."""
        return self._stated["requests"].rate if "requests" in self._stated else math.inf

    def estimate(self, request: Request) -> tuple[float, float]:
        """Return the estimated tokens of an exchange, of the request and of the answer."""
        characters = sum(len(message.text) for message in request.messages)
        most: Any = request.options.get("max_tokens")
        output = float(most) if isinstance(most, (int, float)) and most > 0 else self._mean_output
        return characters / 4 + 8 * len(request.messages) + 64 * len(request.tools), output

    def wait(self, ticket: Ticket, now: float) -> float:
        """Return the seconds until each bucket has enough for an exchange."""
        seconds = 0.0
        for name, bucket in self._stated.items():
            seconds = max(seconds, bucket.wait(_units(name, ticket.tokens), now))
        for name, bucket in self._mirrored.items():
            wait = bucket.wait(_units(name, ticket.tokens), now)
            seconds = max(seconds, wait if wait <= LONGEST_WAIT else 0.0)
        return seconds

    def take(self, ticket: Ticket, now: float) -> None:
        """Take what an exchange needs."""
        for name, bucket in self._all():
            bucket.take(_units(name, ticket.tokens), now)
        if self._mirrored:
            ticket.taken = {name: bucket.taken for name, bucket in self._mirrored.items()}

    def mirror(self, headers: Mapping[str, str], ticket: Ticket, now: float) -> bool:
        """Take over the allowance that the headers of a reply state. Return True if they state one."""
        if "-ratelimit-" not in "".join(headers):  # most hosts state none, and this is part of the cost of each call
            return False
        from sigwire.lm.policy.limits.headers import allowances

        found = allowances(headers)
        for resource, limit, remaining, reset in found:
            bucket = self._mirrored.get(resource)
            if bucket is None:
                bucket = self._mirrored[resource] = RefillBucket(limit, 60.0, now)
            taken = (ticket.taken or {}).get(resource, bucket.taken)
            bucket.mirror(limit, remaining, reset, taken=taken, sent=ticket.sent)
        return bool(found)

    def correct(self, ticket: Ticket, result: object, now: float) -> None:
        """Take the difference between the usage of a result and the estimate; a negative one goes back.

        Only of the stated buckets: headers state what the provider itself has counted.
        """
        usage: Usage | None = getattr(getattr(result, "response", result), "usage", None)
        if usage is None or usage.output_tokens is None or usage.input_tokens is None:
            return
        self._mean_output += (usage.output_tokens - self._mean_output) * 0.1
        tokens = (float(usage.input_tokens), float(usage.output_tokens))
        for name, bucket in self._stated.items():
            bucket.take(_units(name, tokens) - _units(name, ticket.tokens), now)

    def remaining(self, now: float) -> tuple[float | None, float | None]:
        """Return the requests and the tokens that are left; ``None`` if unknown."""
        levels: dict[str, float] = {}
        for name, bucket in self._all():
            levels[name] = min(bucket.level(now), levels.get(name, math.inf))
        return levels.get("requests"), levels.get("tokens")

    def _all(self) -> Iterable[tuple[str, RefillBucket]]:
        yield from self._stated.items()
        yield from self._mirrored.items()


def _units(resource: str, tokens: tuple[float, float] | None) -> float:
    """Return what an exchange of so many tokens takes of a bucket."""
    if resource == "requests":
        return 1.0
    given, written = tokens or (0.0, 0.0)
    return {"input-tokens": given, "output-tokens": written}.get(resource, given + written)
