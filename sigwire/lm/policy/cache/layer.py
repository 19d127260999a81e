"""``CacheLayer``: the layer around a whole answer that finds it in the cache, or stores it there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.emitting import Emit
from sigwire.lm.policy.cache.answers import as_miss
from sigwire.lm.policy.cache.cache import ResponseCache
from sigwire.lm.policy.cache.choice import CacheChoice, with_settings
from sigwire.lm.policy.cache.keys import changes_with_time, request_key
from sigwire.observe.log_names import LOG_CHECKS

if TYPE_CHECKING:
    from sigwire.effects.steps import Steps
    from sigwire.lm.policy.call import Call, Exchange

__all__ = ["CacheLayer"]


class CacheLayer:
    """The layer around a call: a hit ends it; a miss asks, once for equal calls at once.

    ``identity`` returns what decides an answer beside the request, ``None`` if answers must not be kept.
    """

    __slots__ = ("_cache", "_choice", "_identity")

    def __init__(self, of: ResponseCache, identity: Callable[[Request], bytes | None], choice: CacheChoice) -> None:
        self._cache, self._identity, self._choice = of, identity, choice

    def around(self, call: Call, inner: Exchange[Any]) -> Steps[Any]:
        cache, choice = self._cache, self._choice
        is_fresh, sample = with_settings(choice)
        key = self._key(call.request, sample)
        if key is None:
            return (yield from inner())
        call.report.cache = "miss"
        if is_fresh:
            return (yield from self._ask(key, inner))
        answer = cache.find(key)
        if answer is None:
            answer = yield from cache.flights.fly(key, call, partial(self._ask_unless_known, key, inner))
        if answer.cache == "hit" and LOG_CHECKS["hit"]():
            from sigwire.observe.tracing.logs import log_hit

            log_hit(call.target.model)
        if call.streamed and answer.cache == "hit":
            from sigwire.core.events import events_of  # only streams need events

            yield Emit(*events_of(answer))
        return answer

    def _key(self, request: Request, sample: object) -> bytes | None:
        if self._choice.cache != "on" and changes_with_time(request):
            return None
        identity = self._identity(request)
        return None if identity is None else request_key(identity, request, sample)

    def _ask(self, key: bytes, inner: Exchange[Response]) -> Steps[Response]:
        response = yield from inner()
        self._cache.store(key, response)
        return as_miss(response)

    def _ask_unless_known(self, key: bytes, inner: Exchange[Response]) -> Steps[Response]:
        """Ask, unless the answer came between the look-up and this call."""
        answer = self._cache.peek(key)
        return (yield from self._ask(key, inner)) if answer is None else answer
